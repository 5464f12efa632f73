/* Kernels for this machine's CPU: src/host/millrace_host.h defines all names. */
#include "emit/emit.h"

enum { HOST_SLACK = 1024 };		/* as struct host_launch has it */

static void put_product(struct buf *o, const struct product_form *f)
{
	if (f->by->transposed)		/* a thread has columns of a row */
		buf_printf(o, "\thost_mfma(%sd, b, a, add, %d, HOST_%s, HOST_%s);\n", dtype_is_float(f->b_type) ? "" :
			"(float *)", f->by->rows, dtype_name(f->b_type), dtype_name(f->a_type));
	else if (!f->by->async)
		buf_printf(o, "\thost_mma_warp(%sd, a, b, add, HOST_%s, HOST_%s);\n", dtype_is_float(f->b_type) ? "" :
			"(float *)", dtype_name(f->a_type), dtype_name(f->b_type));
	else if (f->sparse)
		buf_printf(o, "\thost_mma_sparse(%sd, a, b, pairs, add, %d, %d, %d, HOST_%s, HOST_%s);\n",
			dtype_is_float(f->b_type) ? "" : "(float *)", f->cols, f->a_rows, f->b_rows, dtype_name(f->a_type),
			dtype_name(f->b_type));
	else
		buf_printf(o, "\thost_mma_%s(%sd, a, b, add, %d, %d, %d, HOST_%s, HOST_%s);\n", f->registers ? "rs" :
			"ss", dtype_is_float(f->b_type) ? "" : "(float *)", f->cols, f->a_rows, f->b_rows, dtype_name(f->a_type), dtype_name(f->b_type));
}

/* A function that calls the kernel with the arguments in an array. */
static void put_entry_point(struct buf *o, const struct source *s)
{
	buf_printf(o, "HOST_ENTRY(%s, %d) { %s(", s->entry, s->threads, s->entry);
	for (int i = 0; i < s->params.n; i++)
		buf_printf(o, s->params.v[i].kind == PARAM_SIZE ? "%s*(const int *)args[%d]" : "%sargs[%d]", i ?
			", " : "", i);
	buf_puts(o, "); }\n");
}

void emit_host(const struct role_program *r, struct arena *a, struct source *out)
{
	static const char *const prelude[] = { "#include \"millrace_host.h\"\n\n", NULL };
	static const struct printer host = { .prelude = prelude, .product = put_product, .behind = put_entry_point };

	emit_text(r, &host, a, out);
	out->shared_bytes = r->shared_bytes + HOST_SLACK;
}
