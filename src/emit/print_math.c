/* Products, element-wise loops, reductions and scans.
 *
 * A row of a fragment lies in the four threads of a quad, each with two neighbouring columns
 * of every eight; a column lies in the eight quads of every warp of the lane. */
#include "emit/print.h"

/* products --------------------------------------------------------------------- */

const char *product_name(struct arena *a, const struct product_form *f)
{
	return arena_strf(a, "mma_%s_%s_%d_%d_%d", dtype_name(f->type), f->registers ? "rs" : "ss",
		f->cols, f->a_rows, f->b_rows);
}

static void put_descriptor(struct print *c, const char *name, uint64_t bits, const struct num *at)
{
	put(c, "\tconst u64 %s = 0x%llxull | ((%s) >> 4 & 0x3fff);", name, (unsigned long long)bits,
		num(c, at));
}

static void product(struct print *c, const struct role_op *o)
{
	const struct product_form *f = &o->u.product.form;
	const struct frag *sum = o->u.product.sum.frag;
	bool pieces = o->u.product.pieces > 1;

	put(c, "EACH(rb, %d)%s EACH(ks, %d) {", sum->blocks, pieces ? arena_strf(c->a,
		" EACH(cb, %d)", o->u.product.pieces) : "", o->u.product.steps);
	if (!f->registers)
		put_descriptor(c, "da", o->u.product.a_bits, o->u.product.a_at);
	put_descriptor(c, "db", o->u.product.b_bits, o->u.product.b_at);
	put(c, "\t%s(%s[rb]%s%s, %s, db, %s);", product_name(c->a, f), frag_name(c, o->u.product.sum),
		o->u.product.first ? arena_strf(c->a, " + %d", o->u.product.first / 2) : "", pieces ? arena_strf(c->a, " + cb * %d", f->cols / 2) : "", f->registers ?
		arena_strf(c->a, "&%s[rb][4 * ks]", frag_name(c, o->u.product.a)) : "da", num(c,
		o->u.product.adds));
	put(c, "}");
}

/* A thread's elements of the result, step by step: of a step the operands' elements of its
 * rows are in registers, those of its columns come one after the other. */
static void sum_product(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.sum_product.sum.frag;
	const char *type = register_type(f->type), *sum = frag_name(c, o->u.sum_product.sum);
	bool rows = f->kind == FRAG_FULL || f->kind == FRAG_ROW;
	bool cols = f->kind == FRAG_FULL || f->kind == FRAG_COL;
	const char *each_row = rows ? arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ", f->blocks) : "";
	const char *x = rows ? "x[rb][h]" : "x[0][0]", *at = frag_element(f->kind);

	put(c, "LOOP (int ks = 0; ks < %lld; ks++) {", (long long)o->u.sum_product.depth);
	if (asks(o->u.sum_product.inside))
		put(c, "\tif (!(%s)) continue;", num(c, o->u.sum_product.inside));
	put(c, "\t%s x[%d][2];", type, rows ? f->blocks : 1);
	put(c, "\t%s%s = %s;", each_row, x, value(c, o->u.sum_product.a));
	put(c, "\t%s{", cols ? arena_strf(c->a, "EACH(j, %lld) EACH(e, 2) ", (long long)(f->cols / 8)) :
		"");
	put(c, "\t\tconst %s y = %s;", type, value(c, o->u.sum_product.b));
	if (dtype_is_float(f->type))
		put(c, "\t\t%s%s%s += %s * y;", each_row, sum, at, x);
	else
		put(c, "\t\t%s%s%s = (int)((u32)%s%s + (u32)%s * (u32)y);", each_row, sum, at, sum, at, x);
	put(c, "\t}");
	put(c, "}");
}

/* element-wise ----------------------------------------------------------------- */

static void init(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.frag.at.frag;
	bool rows = f->kind == FRAG_FULL || f->kind == FRAG_ROW;
	int64_t n = f->kind == FRAG_FULL ? f->cols / 2 : f->kind == FRAG_ROW ? 2 :
		f->kind == FRAG_COL ? f->cols / 4 : 1;

	put(c, "EACH(rb, %d) EACH(i, %lld) %s%s = %s;", rows ? f->blocks : 1, (long long)n,
		frag_name(c, o->u.frag.at), rows ? "[rb][i]" : "[i]", value(c, o->u.frag.value));
}

/* A value for each element: into one fragment, or step by step, so that what only other
 * steps use is never more than one element in registers. */
static void map(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.map.over;

	if (o->u.map.to.frag) {
		put(c, "%s%s%s = %s;", frag_loops(c, f), frag_name(c, o->u.map.to),
			frag_element(f->kind), value(c, o->u.map.steps.v[0].value));
		return;
	}
	put(c, "%s{", frag_loops(c, f));
	for (int i = 0; i < o->u.map.steps.n; i++) {
		const struct role_step *s = &o->u.map.steps.v[i];

		put(c, "\tconst %s e%d = %s;", register_type(s->value->type), s->node, value(c,
			s->value));
		if (s->to)
			put(c, "\t%s%s = e%d;", s->to->name, frag_element(s->to->kind), s->node);
	}
	put(c, "}");
}

static void pack(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.pack.to.frag;

	put(c, "EACH(rb, %d) EACH(j, %lld) EACH(h, 2) {", f->blocks, (long long)(f->cols / 8));
	put(c, "\tfloat y[2]; EACH(e, 2) y[e] = %s;", value(c, o->u.pack.value));
	put(c, "\t%s[rb][j * 2 + h] = pack_%s(y[0], y[1]);", frag_name(c, o->u.pack.to),
		dtype_name(o->u.pack.type));
	put(c, "}");
}

static void keep(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.pack.to.frag;
	const char *to = frag_name(c, o->u.pack.to), *from = o->u.pack.from->name;

	if (!f->packed) {
		put(c, "%s%s%s = %s%s;", frag_loops(c, f), to, frag_element(f->kind), from,
			frag_element(f->kind));
		return;
	}
	put(c, "EACH(rb, %d) EACH(i, %lld) %s[rb][i] = %s[rb][i];", f->blocks,
		(long long)(f->cols / 4), to, from);
	if (asks(o->u.pack.inside))
		put(c, "%sif (!(%s)) %s[rb][j * 2 + h] &= e ? 0xffffu : 0xffff0000u;",
			frag_loops(c, f), num(c, o->u.pack.inside), to);
}

/* reductions and scans --------------------------------------------------------- */

static const char *shuffled(struct print *c, enum dtype t, const char *how, const char *x,
	const char *lane)
{
	return arena_strf(c->a, "shuffle_%s%s(%s, %s)", how, dtype_is_float(t) ? "" : "_i", x, lane);
}

/* Along columns: each thread over its own, then over the quad. */
static void reduce_columns(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type;
	const char *type = register_type(t), *both = joined(c, o->u.reduce.op, t, "y", "z");

	put(c, "%s{", f->kind == FRAG_FULL ? arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ",
		f->blocks) : "");
	put(c, "\t%s y = %s;", type, value(c, o->u.reduce.zero));
	put(c, "\tEACH(j, %lld) EACH(e, 2) { const %s z = %s; y = %s; }", (long long)(f->cols / 8),
		type, value(c, o->u.reduce.value), both);
	put(c, "\tEACH(o, 2) { const %s z = %s; y = %s; }", type, shuffled(c, t, "xor", "y",
		"1 << o"), both);
	put(c, "\t%s%s = y;", o->u.reduce.to->name, f->kind == FRAG_FULL ? "[rb][h]" : "[0]");
	put(c, "}");
}

/* Where a warp leaves its part of the column at hand. */
static const char *scratch(struct print *c, const struct role_op *o, const char *warp)
{
	const struct frag *f = o->u.reduce.over;

	return arena_strf(c->a, "shared + %lld + 4 * (%s * %lld + %s)",
		(long long)o->u.reduce.scratch, warp, (long long)f->cols, f->kind == FRAG_FULL ?
		"8 * j + col0 + e" : "0");
}

/* What each warp has found of its rows, joined by all of them through shared memory. */
static void join_warps(struct print *c, const struct role_op *o, const char *columns,
	const char *place)
{
	bool full = o->u.reduce.over->kind == FRAG_FULL;
	enum dtype t = o->u.reduce.to->type, kept = dtype_is_float(t) ? DT_F32 : DT_I32;
	const char *name = o->u.reduce.to->name, *type = register_type(t);

	put(c, "lane_sync(%d, %d);", c->role->barrier, lane_threads(c));
	put(c, "if (thread %% 32 < %d) %s%s", full ? 4 : 1, columns, shared_put(c, kept, scratch(c, o,
		"(thread / 32)"), arena_strf(c->a, "%s%s", name, place)));
	put(c, "lane_sync(%d, %d);", c->role->barrier, lane_threads(c));
	put(c, "%s{", columns);
	put(c, "\t%s y = %s;", type, value(c, o->u.reduce.zero));
	put(c, "\tEACH(w, %d) { const %s z = %s; y = %s; }", c->role->warps, type, shared_get(c, kept,
		scratch(c, o, "w")), joined(c, o->u.reduce.op, t, "y", "z"));
	put(c, "\t%s%s = y;", name, place);
	put(c, "}");
}

/* Along rows: each thread over its own, over the quads of its warp, and over the lane's
 * warps through its scratch in shared memory. */
static void reduce_rows(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type;
	bool full = f->kind == FRAG_FULL;
	const char *type = register_type(t), *both = joined(c, o->u.reduce.op, t, "y", "z");
	const char *columns = full ? arena_strf(c->a, "EACH(j, %lld) EACH(e, 2) ",
		(long long)(f->cols / 8)) : "", *place = full ? "[j * 2 + e]" : "[0]";

	put(c, "%s{", columns);
	put(c, "\t%s y = %s;", type, value(c, o->u.reduce.zero));
	put(c, "\tEACH(rb, %d) EACH(h, 2) { const %s z = %s; y = %s; }", f->blocks, type, value(c,
		o->u.reduce.value), both);
	put(c, "\tEACH(o, 3) { const %s z = %s; y = %s; }", type, shuffled(c, t, "xor", "y",
		"4 << o"), both);
	put(c, "\t%s%s = y;", o->u.reduce.to->name, place);
	put(c, "}");
	if (c->role->warps > 1)
		join_warps(c, o, columns, place);
}

/* Running value along the columns: of a thread's pair, of the pairs before it in the quad,
 * and of the eights before. */
static void scan(struct print *c, const struct role_op *o)
{
	const struct frag *f = o->u.reduce.over;
	enum dtype t = o->u.reduce.to->type;
	enum op op = o->u.reduce.op;
	const char *type = register_type(t), *zero = value(c, o->u.reduce.zero);

	put(c, "%s{", f->kind == FRAG_FULL ? arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ", f->blocks) :
		"");
	put(c, "\t%s before = %s;", type, zero);
	put(c, "\tEACH(j, %lld) {", (long long)(f->cols / 8));
	put(c, "\t\t%s y[2], up, quad;", type);
	put(c, "\t\tEACH(e, 2) y[e] = %s;", value(c, o->u.reduce.value));
	put(c, "\t\ty[1] = %s;", joined(c, op, t, "y[0]", "y[1]"));
	put(c, "\t\tquad = y[1];");
	put(c, "\t\tEACH(o, 2) { up = %s; if (thread %% 4 >= 1 << o) quad = %s; }",
		shuffled(c, t, "from", "quad", "(thread - (1 << o)) & 31"),
		joined(c, op, t, "up", "quad"));
	put(c, "\t\tup = %s;", shuffled(c, t, "from", "quad", "(thread - 1) & 31"));
	put(c, "\t\tif (thread %% 4 == 0) up = %s;", zero);
	put(c, "\t\tup = %s;", joined(c, op, t, "before", "up"));
	put(c, "\t\tEACH(e, 2) %s%s = %s;", o->u.reduce.to->name, frag_element(f->kind),
		joined(c, op, t, "up", "y[e]"));
	put(c, "\t\tquad = %s;", shuffled(c, t, "from", "quad", "thread & 31 | 3"));
	put(c, "\t\tbefore = %s;", joined(c, op, t, "before", "quad"));
	put(c, "\t}");
	put(c, "}");
}

/* Line by line in shared memory, each by one thread. */
static void lines(struct print *c, const struct role_op *o)
{
	enum dtype t = o->u.lines.type;
	const char *type = register_type(t), *result = shared_put(c, o->u.lines.kept, num(c,
		o->u.lines.to), "y");
	bool running = o->u.lines.running;

	put(c, "LOOP (int at = thread; at < %lld; at += %d) %s{", (long long)o->u.lines.n,
		lane_threads(c), asks(o->u.lines.when) ? arena_strf(c->a, "if (%s) ",
		num(c, o->u.lines.when)) : "");
	put(c, "\t%s y = %s;", type, value(c, o->u.lines.zero));
	put(c, "\tLOOP (int along = 0; along < %s; along++) {", num(c, o->u.lines.length));
	put(c, "\t\tconst %s z = %s;", type, value(c, o->u.lines.value));
	put(c, "\t\ty = %s;", joined(c, o->u.lines.op, t, "y", "z"));
	if (running)
		put(c, "\t\t%s", result);
	put(c, "\t}");
	if (!running)
		put(c, "\t%s", result);
	put(c, "}");
}

void print_math(struct print *c, const struct role_op *o)
{
	if (o->what == DO_PRODUCT)
		product(c, o);
	else if (o->what == DO_SUM_PRODUCT)
		sum_product(c, o);
	else if (o->what == DO_INIT)
		init(c, o);
	else if (o->what == DO_MAP)
		map(c, o);
	else if (o->what == DO_PACK)
		pack(c, o);
	else if (o->what == DO_KEEP)
		keep(c, o);
	else if (o->what == DO_SCAN)
		scan(c, o);
	else if (o->what == DO_LINES)
		lines(c, o);
	else if (o->u.reduce.along_rows)
		reduce_rows(c, o);
	else
		reduce_columns(c, o);
}
