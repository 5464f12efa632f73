/* Reductions and scans along an axis of a fragment.
 *
 * A row of a fragment lies in the four threads of a quad, each with two neighbouring columns
 * of every eight; a column lies in the eight quads of every warp of the lane. What is
 * beyond the end of the axis takes no part. */
#include "emit/gpu_text.h"

#include <string.h>

static bool adds(enum op op)
{
	return op == OP_SUM || op == OP_CUMSUM;
}

static const char *identity_of(enum op op, enum dtype t)
{
	bool most = op == OP_RMIN || op == OP_CUMMIN;

	if (adds(op))
		return "0";
	if (!dtype_is_float(t))
		return most ? "2147483647" : "(-2147483647 - 1)";
	return most ? "INFINITE" : "(-INFINITE)";
}

/* C text that joins two values; both may be any expression without side effects. */
static const char *join_text(struct text *c, const struct node *n, const char *a, const char *b)
{
	bool floats = dtype_is_float(n->type), most = n->op == OP_RMAX || n->op == OP_CUMMAX;

	if (adds(n->op))
		return arena_strf(c->a, floats ? "%s + %s" : "(int)((u32)%s + (u32)%s)", a, b);
	return arena_strf(c->a, "%s(%s, %s)", floats ? most ? "fmaxf" : "fminf" : most ? "max_of" :
		"min_of", a, b);
}

static const char *shuffled(struct text *c, const struct node *n, const char *how, const char *x,
	const char *lane)
{
	return arena_strf(c->a, "shuffle_%s%s(%s, %s)", how, dtype_is_float(n->type) ? "" : "_i", x,
		lane);
}

/* The argument's element, or the identity where it is beyond the end. */
static enum err_code guarded(struct text *c, const struct kentry *x, const struct node *n,
	const struct view *v, const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	struct shape2 along = { .rows = 1, .cols = 1, .whole = shape->whole };
	struct view part = *v;
	const char *inside;

	TRY(operand_text(c, x, n->arg[0], n->arg[0], out, e));
	/* only the side that is reduced has an end that matters */
	if (shape->ncol && shape->col[0] == n->ref) {
		along.col_share[along.ncol] = 1;
		along.col[along.ncol++] = n->ref;
		part.height = part.rows;
	} else {
		along.row_share[along.nrow] = 1;
		along.row[along.nrow++] = n->ref;
		part.width = part.cols;
	}
	inside = inside_text(c, s, &along, &part, ALL_AXES);
	if (strcmp(inside, "true"))
		*out = arena_strf(c->a, "(%s ? %s : %s)", inside, *out, identity_of(n->op, n->type));
	return OK;
}

/* Along columns: each thread over its own, then over the quad. */
static enum err_code reduce_columns(struct text *c, const struct kentry *x, int node,
	const struct view *v, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const char *type = register_type(n->type), *arg;

	TRY(guarded(c, x, n, v, &arg, e));
	put(c, "%s{", v->kind == FRAG_FULL ? arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ",
		v->blocks) : "");
	put(c, "\t%s y = %s;", type, identity_of(n->op, n->type));
	put(c, "\tEACH(j, %lld) EACH(e, 2) { const %s z = %s; y = %s; }", (long long)(v->cols / 8),
		type, arg, join_text(c, n, "y", "z"));
	put(c, "\tEACH(o, 2) { const %s z = %s; y = %s; }", type, shuffled(c, n, "xor", "y",
		"1 << o"), join_text(c, n, "y", "z"));
	put(c, "\tx%d%s = y;", node, v->kind == FRAG_FULL ? "[rb][h]" : "[0]");
	put(c, "}");
	return OK;
}

/* Where a warp leaves its part of the column at hand. */
static const char *scratch_text(struct text *c, const struct view *v, const char *warp)
{
	return arena_strf(c->a, "shared + %lld + 4 * (%s * %lld + %s)",
		(long long)c->lane->scratch, warp, (long long)v->cols, v->kind == FRAG_FULL ?
		"8 * j + col0 + e" : "0");
}

/* Along rows: each thread over its own, over the quads of its warp, and over the lane's
 * warps through its scratch in shared memory. */
static enum err_code reduce_rows(struct text *c, const struct kentry *x, int node,
	const struct view *v, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const char *type = register_type(n->type), *arg;
	bool full = v->kind == FRAG_FULL;
	int warps = c->lane->warps, sync = c->lane->barrier;
	enum dtype t = dtype_is_float(n->type) ? DT_F32 : DT_I32;
	const char *columns = full ? arena_strf(c->a, "EACH(j, %lld) EACH(e, 2) ",
		(long long)(v->cols / 8)) : "";
	const char *place = full ? "[j * 2 + e]" : "[0]";
	TRY(guarded(c, x, n, v, &arg, e));
	put(c, "%s{", columns);
	put(c, "\t%s y = %s;", type, identity_of(n->op, n->type));
	put(c, "\tEACH(rb, %d) EACH(h, 2) { const %s z = %s; y = %s; }", v->blocks, type, arg,
		join_text(c, n, "y", "z"));
	put(c, "\tEACH(o, 3) { const %s z = %s; y = %s; }", type, shuffled(c, n, "xor", "y",
		"4 << o"), join_text(c, n, "y", "z"));
	put(c, "\tx%d%s = y;", node, place);
	put(c, "}");
	if (warps == 1)
		return OK;
	put(c, "lane_sync(%d, %d);", sync, warps * 32);
	put(c, "if (thread %% 32 < %d) %s%s", full ? 4 : 1, columns, shared_put(c, t,
		scratch_text(c, v, "(thread / 32)"), arena_strf(c->a, "x%d%s", node, place)));
	put(c, "lane_sync(%d, %d);", sync, warps * 32);
	put(c, "%s{", columns);
	put(c, "\t%s y = %s;", type, identity_of(n->op, n->type));
	put(c, "\tEACH(w, %d) { const %s z = %s; y = %s; }", warps, type, shared_get(c, t,
		scratch_text(c, v, "w")), join_text(c, n, "y", "z"));
	put(c, "\tx%d%s = y;", node, place);
	put(c, "}");
	return OK;
}

enum err_code emit_reduce(struct text *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	struct view v;

	TRY(node_view(c, &c->g->tasks.v[x->task], n->arg[0], &v, e));
	if (shape->ncol == 1 && shape->col[0] == n->ref)
		return reduce_columns(c, x, node, &v, e);
	if (shape->nrow == 1 && shape->row[0] == n->ref)
		return reduce_rows(c, x, node, &v, e);
	return not_lowered(n, e);
}

/* Running value along the columns: of a thread's pair, of the pairs before it in the quad,
 * and of the eights before. */
enum err_code emit_scan(struct text *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	const char *type = register_type(n->type), *arg, *zero = identity_of(n->op, n->type);
	struct view v;

	TRY(node_view(c, &c->g->tasks.v[x->task], n->arg[0], &v, e));
	if (shape->ncol != 1 || shape->col[0] != n->ref)
		return not_lowered(n, e);
	TRY(operand_text(c, x, n->arg[0], n->arg[0], &arg, e));
	put(c, "%s{", v.kind == FRAG_FULL ? arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ", v.blocks) :
		"");
	put(c, "\t%s before = %s;", type, zero);
	put(c, "\tEACH(j, %lld) {", (long long)(v.cols / 8));
	put(c, "\t\t%s y[2], up, quad;", type);
	put(c, "\t\tEACH(e, 2) y[e] = %s;", arg);
	put(c, "\t\ty[1] = %s;", join_text(c, n, "y[0]", "y[1]"));
	put(c, "\t\tquad = y[1];");
	put(c, "\t\tEACH(o, 2) { up = %s; if (thread %% 4 >= 1 << o) quad = %s; }",
		shuffled(c, n, "from", "quad", "(thread - (1 << o)) & 31"),
		join_text(c, n, "up", "quad"));
	put(c, "\t\tup = %s;", shuffled(c, n, "from", "quad", "(thread - 1) & 31"));
	put(c, "\t\tif (thread %% 4 == 0) up = %s;", zero);
	put(c, "\t\tup = %s;", join_text(c, n, "before", "up"));
	put(c, "\t\tEACH(e, 2) x%d%s = %s;", node, frag_element(v.kind),
		join_text(c, n, "up", "y[e]"));
	put(c, "\t\tquad = %s;", shuffled(c, n, "from", "quad", "thread & 31 | 3"));
	put(c, "\t\tbefore = %s;", join_text(c, n, "before", "quad"));
	put(c, "\t}");
	put(c, "}");
	return OK;
}
