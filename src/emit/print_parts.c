/* Prints the exchange of partial sums between the blocks of a cluster. */
#include "emit/print.h"

/* Where block q, which adds up chunk p, gets it from block `from`. It gets nothing from itself. */
static const char *chunk_address(struct print *c, const struct role_op *o, const char *from)
{
	const struct role_staging *v = c->r->stagings.v;

	const char *offset = by_lane(c, v[o->u.parts.staging].offset, v[second_of(o)->u.parts.staging].offset);

	return arena_strf(c->a, "shared + %s + ((%s - (%s > q)) * %d + p) * %d + thread * 16", offset, from, from,
		o->u.parts.chunks, 16 * lane_threads(c));
}

/* The block of rows and the group of columns of chunk p of block q, if there is one. */
static void begin_chunk(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.parts.from.frag;
	int groups = frag_groups(f), n = o->u.parts.chunks;

	put(c, "\tconst int rb = (q * %d + p) / %d, j = (q * %d + p) %% %d;", n, groups, n, groups);
	put(c, "\tif (rb < %d) {", f->blocks);
}

static void print_put_parts(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.parts.from.frag;

	put(c, "EACH(q, %d) if (q != rank) EACH(p, %d) {", c->r->cluster, o->u.parts.chunks);
	begin_chunk(c, o);
	put(c, "\t\tu32 y[4]; EACH(i, 4) y[i] = %s(%s[rb][4 * j + i]);", f->type == DT_F32 ? "float_bits" : "(u32)",
		frag_name(c, o->u.parts.from));
	put(c, "\t\tpeer_put_16(%s, q, y);", chunk_address(c, o, "rank"));
	put(c, "\t}");
	put(c, "}");
	c->vectors = c->parts = true;
}

/* Block r's part is the r-th summand. */
static void print_sum_parts(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.parts.from.frag;
	const char *type = register_type(f->type);
	const char *from = frag_name(c, o->u.parts.from), *to = frag_name(c, o->u.parts.to);
	const char *bits = f->type == DT_F32 ? "bits_float" : "(int)";

	put(c, "EACH(rb, %d) EACH(i, %d) %s[rb][i] = %s[rb][i];", f->blocks, frag_block_words(f), to, from);
	put(c, "EACH(q, %d) if (q == rank) EACH(p, %d) {", c->r->cluster, o->u.parts.chunks);
	begin_chunk(c, o);
	put(c, "\t\t%s y[4] = { 0 };", type);
	put(c, "\t\tEACH(r, %d) {", c->r->cluster);
	put(c, "\t\t\tu32 z[4] = { 0 };");
	put(c, "\t\t\tif (r != q) shared_16(z, %s);", chunk_address(c, o, "r"));
	put(c, "\t\t\tEACH(i, 4) {");
	put(c, "\t\t\t\tconst %s x = r == q ? %s[rb][4 * j + i] : %s(z[i]);", type, from, bits);
	put(c, "\t\t\t\ty[i] = r ? y[i] + x : x;");
	put(c, "\t\t\t}");
	put(c, "\t\t}");
	put(c, "\t\tEACH(i, 4) %s[rb][4 * j + i] = y[i];", to);
	put(c, "\t}");
	put(c, "}");
	c->vectors = c->parts = true;
}

void print_parts(struct print *c, const struct role_op *o)
{
	(o->what == DO_PUT_PARTS ? print_put_parts : print_sum_parts)(c, o);
}
