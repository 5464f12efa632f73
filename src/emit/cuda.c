/* Matrix instructions of sm_90a and sm_80; cuda_prelude.c has the other definitions. */
#include "emit/print.h"

#include <stdio.h>
#include <string.h>

/* Integers are called by their signs in PTX. */
static const char *ptx_type(enum dtype t)
{
	return t == DT_I8 ? "s8" : dtype_name(t);
}

/* wgmma, 64 x cols x 32 bytes of the contracted axis. Only instructions on operands of 16 bits say
 * which axis is contiguous, and only those on floats whether operands are negated. */
static void put_wgmma(struct buf *o, const struct product_form *f)
{
	int sums = f->cols / 2;		/* of a thread; operands are numbered behind them */
	bool says_axis = dtype_bits(f->b_type) == 16, is_float = dtype_is_float(f->b_type);
	const char *signs = is_float ? ", 1, 1" : "";
	char pairs[32] = "";		/* and which threads of a quad give them: 0 stands for the first two, or all */

	if (f->sparse)
		snprintf(pairs, sizeof(pairs), "%%%d, 0, ", sums + 2);
	buf_printf(o, "\tasm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n\"\n"
		"\t\t\"wgmma.mma_async%s.sync.aligned.m64n%dk%d.%s.%s.%s {", sums + (f->registers ? 5 : f->sparse ? 3 : 2),
		f->sparse ? ".sp" : "", f->cols, f->depth, is_float ? "f32" : "s32", ptx_type(f->a_type), ptx_type(f->b_type));
	for (int i = 0; i < sums; i++)
		buf_printf(o, "%s%%%d", i ? ", " : "", i);
	if (f->registers)
		buf_printf(o, "}, {%%%d, %%%d, %%%d, %%%d}, %%%d, p%s", sums, sums + 1, sums + 2,
			sums + 3, sums + 4, signs);
	else
		buf_printf(o, "}, %%%d, %%%d, %sp%s", sums, sums + 1, pairs, signs);
	if (says_axis && !f->registers)
		buf_printf(o, ", %d", f->a_rows);
	if (says_axis)
		buf_printf(o, ", %d", f->b_rows);
	buf_puts(o, ";\\n}\"\n\t\t: ");
	for (int i = 0; i < sums; i++)
		buf_printf(o, "%s\"+%c\"(d[%d])", i ? ", " : "", is_float ? 'f' : 'r', i);
	buf_printf(o, "\n\t\t: %s, \"l\"(b)%s, \"r\"(add));\n", f->registers ?
		"\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)", f->sparse ? ", \"r\"(pairs)" : "");
}

/* mma.sync, 16 x 8 x 32 bytes: no registers but the operands' and four sums. */
static void put_mma_sync(struct buf *o, const struct product_form *f)
{
	bool is_float = dtype_is_float(f->b_type);
	const char *sums = is_float ? "f32" : "s32", *by = is_float ? "+f" : "+r";

	buf_printf(o, "\tif (!add) EACH(i, 4) d[i] = %s;\n", is_float ? "0.f" : "0");
	buf_printf(o, "\tasm volatile(\"mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s "
		"{%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};\"\n"
		"\t\t: \"%s\"(d[0]), \"%s\"(d[1]), \"%s\"(d[2]), \"%s\"(d[3])\n"
		"\t\t: \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n",
		f->depth, sums, ptx_type(f->a_type), ptx_type(f->b_type), sums, by, by, by, by);
}

static void put_product(struct buf *o, const struct product_form *f)
{
	if (f->by->async)
		put_wgmma(o, f);
	else
		put_mma_sync(o, f);
}

void emit_cuda(const struct role_program *r, struct arena *a, struct source *out)
{
	bool sm_80 = !strcmp(r->target->name, target_sm_80.name);
	struct printer printer = { .machine = sm_80 ? ONLY_SM_80 : ONLY_SM_90, .waits = r->target->phases_overlap,
		.prelude = cuda_prelude, .stamps = cuda_stamps, .cluster = cuda_cluster, .parts = cuda_parts,
		.additions = cuda_additions, .taken = cuda_taken, .fresh = cuda_fresh, .skips = cuda_skips, .recomputed = cuda_recomputed,
		.vectors = cuda_vectors, .staged = cuda_staged, .nibbles = cuda_nibbles, .rare = cuda_rare, .matrices = cuda_matrices,
		.pairs = cuda_pairs, .transposes = cuda_transposes, .ordered_pairs = cuda_ordered_pairs,
		.product = put_product };

	emit_text(r, &printer, a, out);
}
