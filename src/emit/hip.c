/* Kernels for gfx942 (CDNA 3), as HIP or as C: hip_prelude.c has the definitions. Nobody has run them on AMD's hardware
 * for us: they are compiled, and the same body runs on the CPU. */
#include "emit/print.h"

/* MFMA, 16 x 16 or 32 x 32: no registers but the operands' and the sums. The second operand comes first, so the result
 * is transposed, and a thread has neighbouring columns of a row. */
static void put_product(struct buf *o, const struct product_form *f)
{
	bool integers = !dtype_is_float(f->a_type);
	const char *many = f->cols == 32 ? "sixteen" : "four";
	int sums = f->cols == 32 ? 16 : 4;

	buf_printf(o, "\t%s x, y;\n\t%s_%s s;\n", f->a_type == DT_BF16 ? "four_shorts" : f->a_type == DT_F16 ? "four_halves" :
		"long", many, integers ? "ints" : "floats");
	buf_printf(o, "\tmemcpy(&x, b, 8), memcpy(&y, a, 8);\n\tEACH(i, %d) s[i] = add ? d[i] : 0;\n", sums);
	buf_printf(o, "\ts = __builtin_amdgcn_mfma_%s_%dx%dx%d%s(x, y, s, 0, 0, 0);\n\tEACH(i, %d) d[i] = s[i];\n",
		integers ? "i32" : "f32", f->by->rows, f->cols, f->depth, f->a_type == DT_BF16 ? "bf16_1k" : f->a_type == DT_F16 ?
		"f16" : "_i8", sums);
}

void emit_hip(const struct role_program *r, struct arena *a, struct source *out)
{
	static const struct printer hip = { .prelude = hip_prelude, .stamps = hip_stamps, .additions = hip_additions,
		.recomputed = hip_recomputed, .nibbles = hip_nibbles, .rare = hip_rare, .product = put_product };

	emit_text(r, &hip, a, out);
}
