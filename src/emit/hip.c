/* Kernels for gfx942 (CDNA 3), as HIP or as C: hip_prelude.c has the definitions. We have not run them on AMD's
 * hardware: tests compile them, run the same body on the CPU, and interpret the machine code
 * (tests/lua/gfx942_machine.t.lua). */
#include "emit/print.h"

/* A product of operands of 8 bits as two of f16: the first contracts the elements of each operand's first word, the
 * second those of the second word. */
static void put_halves(struct buf *o, const struct product_form *f, int sums)
{
	const char *x = dtype_name(f->b_type), *y = dtype_name(f->a_type);

	buf_printf(o, "\tEACH(i, %d) s[i] = add ? d[i] : 0;\n\tEACH(i, 2) {\n", sums);
	buf_printf(o, "\t\tconst u32 xs[2] = { %s_halves(b[i], 0), %s_halves(b[i], 1) };\n", x, x);
	buf_printf(o, "\t\tconst u32 ys[2] = { %s_halves(a[i], 0), %s_halves(a[i], 1) };\n", y, y);
	buf_printf(o, "\t\tmemcpy(&x, xs, 8), memcpy(&y, ys, 8);\n\t\ts = __builtin_amdgcn_mfma_f32_%dx%dx%df16(x, y, s, 0, 0, 0);\n\t}\n",
		f->by->rows, f->cols, f->depth / 2);
	buf_printf(o, "\tEACH(i, %d) d[i] = s[i];\n", sums);
}

/* A product of operands of e4m3, for which the machine computes with half their values: so the sum is divided by four
 * before it, and multiplied by four after it. The compiler may cancel these factors between consecutive products; as
 * they are powers of two, that changes no sum but those that are nearly subnormal. */
static void put_of_fnuz(struct buf *o, const struct product_form *f, int sums)
{
	buf_puts(o, "\tconst u32 xs[2] = { e4m3_fnuz(b[0]), e4m3_fnuz(b[1]) }, ys[2] = { e4m3_fnuz(a[0]), e4m3_fnuz(a[1]) };\n");
	buf_printf(o, "\tmemcpy(&x, xs, 8), memcpy(&y, ys, 8);\n\tEACH(i, %d) s[i] = add ? d[i] * 0.25f : 0;\n", sums);
	buf_printf(o, "\ts = __builtin_amdgcn_mfma_f32_%dx%dx%d_fp8_fp8(x, y, s, 0, 0, 0);\n\tEACH(i, %d) d[i] = s[i] * 4.f;\n",
		f->by->rows, f->cols, f->depth, sums);
}

/* MFMA, 16 x 16 or 32 x 32: no registers but the operands' and the sums. The second operand comes first, so the result
 * is transposed, and a thread has neighbouring columns of a row. */
static void put_product(struct buf *o, const struct product_form *f)
{
	bool integers = !dtype_is_float(f->a_type), halves = (f->by->as_f16 >> f->a_type | f->by->as_f16 >> f->b_type) & 1;
	bool fnuz = !halves && f->by->fnuz >> f->a_type & 1;
	int sums = f->cols == 32 ? 16 : 4;

	if (fnuz)
		buf_puts(o, "\t_Pragma(\"clang fp reassociate(on)\")\n");
	buf_printf(o, "\t%s x, y;\n\t%s_%s s;\n", f->a_type == DT_BF16 ? "four_shorts" : halves || f->a_type == DT_F16 ? "four_halves" :
		"long", f->cols == 32 ? "sixteen" : "four", integers ? "ints" : "floats");
	if (halves || fnuz) {
		(halves ? put_halves : put_of_fnuz)(o, f, sums);
		return;
	}
	buf_printf(o, "\tmemcpy(&x, b, 8), memcpy(&y, a, 8);\n\tEACH(i, %d) s[i] = add ? d[i] : 0;\n", sums);
	buf_printf(o, "\ts = __builtin_amdgcn_mfma_%s_%dx%dx%d%s(x, y, s, 0, 0, 0);\n\tEACH(i, %d) d[i] = s[i];\n",
		integers ? "i32" : "f32", f->by->rows, f->cols, f->depth, f->a_type == DT_BF16 ? "bf16_1k" : f->a_type == DT_F16 ?
		"f16" : "_i8", sums);
}

void emit_hip(const struct role_program *r, struct arena *a, struct source *out)
{
	static const struct printer hip = { .prelude = hip_prelude, .stamps = hip_stamps, .additions = hip_additions, .staged = hip_staged,
		.dma = hip_dma, .pairs = hip_pairs, .skips = hip_skips, .recomputed = hip_recomputed, .nibbles = hip_nibbles, .rare = hip_rare, .priority = hip_priority, .product = put_product };

	emit_text(r, &hip, a, out);
}
