#include "lower/layout/conversions.h"

#include "lower/passes.h"
#include "tile/reach.h"

/* Has the shape one element along the axis? Such an axis moves no other element. */
static bool has_one(const struct kernel *k, const struct shape2 *v, int axis)
{
	const struct graph *g = k->plan->graph;

	return g->program->axes.v[axis].size == 1 || (g->extents.tile[axis] == 1 && !(v->full_axes >> axis & 1));
}

/* Are they the same axes in the same order, but for those with one element? */
static bool same_axes(const struct kernel *k, const struct shape2 *to, const int *a, int na, const struct shape2 *from, const int *b,
	int nb)
{
	int i = 0, j = 0;

	for (;;) {
		while (i < na && has_one(k, to, a[i]))
			i++;
		while (j < nb && has_one(k, from, b[j]))
			j++;
		if (i == na || j == nb)
			return i == na && j == nb;
		if (a[i++] != b[j++])
			return false;
	}
}

bool has_same_layout(const struct kernel *k, const struct shape2 *to, const struct shape2 *from)
{
	uint64_t other = (to->full_axes ^ from->full_axes) & ~k->one_tile;

	for (int i = 0; i < shape_rank(from); i++)
		if (other >> shape_axis(from, i) & 1)
			return false;
	return (!from->nrow || (to->nrow && same_axes(k, to, to->row, to->nrow, from, from->row, from->nrow))) &&
		(!from->ncol || (to->ncol && same_axes(k, to, to->col, to->ncol, from, from->col, from->ncol)));
}

bool conversion_in_ring(const struct kernel *k, const struct stask *s, int node, int carry)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (node == g->buffers.v[i].node && carry == g->buffers.v[i].carry && stask_touches(s, i))
			return k->ring_of[i] != NONE;
	return false;
}

static bool is_elementwise(enum op op)
{
	enum op_class c = op_class(op);

	return c != CLASS_REDUCE && c != CLASS_SCAN && c != CLASS_MOVE && c != CLASS_MMA &&
		op != OP_CONST && op != OP_INDEX && op != OP_UNPACK && op != OP_EXPAND;
}

static bool same_shape(const struct kernel *k, const struct shape2 *x, const struct shape2 *y)
{
	return x->nrow == y->nrow && x->ncol == y->ncol && has_same_layout(k, x, y);
}

/* Of how many columns a step of the axis is: what the axes behind it number, if that is a power of two; else 0. */
static int64_t column_step(const struct kernel *k, const struct stask *s, const struct shape2 *v, int axis)
{
	int64_t step = 1;

	for (int i = v->ncol - 1; i >= 0 && v->col[i] != axis; i--) {
		int64_t extent = v->full_axes >> v->col[i] & 1 ? k->plan->graph->program->axes.v[v->col[i]].size :
			k->plan->graph->extents.tile[v->col[i]];

		step *= v->col[i] == s->split_axis ? extent / s->slices : extent;
	}
	return ints_hold(v->col, v->ncol, axis) && !(step & (step - 1)) ? step : 0;
}

/* The bits of the column in which the element that node n (OP_AT) reads differs from its own, if a thread of the same warp
 * has it in the same row, and not as a half of a word; 0: it is elsewhere. */
static int64_t flips_in_warp(const struct kernel *k, const struct stask *s, const struct node *n,
	const struct shape2 *from, const struct shape2 *to)
{
	const struct program *p = k->plan->graph->program;
	const struct frag_layout *l = &k->target->frag;
	int64_t mask = 0, all = 1, step = column_step(k, s, to, n->ref);

	if (lower_parts(k, s) > 1)
		return 0;
	if (dtype_bits(n->type) == 16 || !same_shape(k, to, from) || !step ||
	    !index_flips_bits(p, &n->index[0], n->ref, &mask))
		return 0;
	while (all <= mask)
		all *= 2;
	/* no column of the axis becomes one behind its end, or one of another axis */
	if (p->axes.v[n->ref].size % all || l->col.step != l->pair || l->col.step * l->col.mod != l->cols)
		return 0;
	/* those bits that number the threads of a row must be within a warp */
	return spread_bits(l, mask * step) < k->target->warp ? mask * step : 0;
}

/* The axis that stands for `axis` where `ref` is renamed. */
static int renamed(int axis, int ref, int other)
{
	return axis == ref ? other : axis;
}

bool at_moves_nothing(const struct kernel *k, const struct stask *s, int node)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[node];
	const struct shape2 *to = &k->node_shape[node], *from;
	uint64_t full, differs;
	int other, parts = lower_parts(k, s);

	/* columns of parts of the lane begin elsewhere where they are padded otherwise */
	if (!at_renames(p, n, &other) || (s->slices > 1 && s->split_axis == other) ||
	    (parts > 1 && to->cols % (parts * k->target->frag.deep)))
		return false;
	from = &k->node_shape[n->arg[0]];
	full = (to->full_axes | k->one_tile);
	differs = (from->full_axes ^ to->full_axes) & ~k->one_tile;
	if (!(full >> other & 1) || from->nrow != to->nrow || from->ncol != to->ncol)
		return false;
	for (int i = 0; i < shape_rank(from); i++)
		if (renamed(shape_axis(from, i), n->ref, other) != shape_axis(to, i) ||
		    (shape_axis(to, i) != other && differs >> shape_axis(to, i) & 1))
			return false;
	return from->rows == to->rows && from->cols == to->cols;
}

bool at_is_far(const struct kernel *k, const struct stask *s, int node)
{
	const struct node *n = &k->plan->graph->program->nodes.v[node];

	return n->op == OP_AT && !at_moves_nothing(k, s, node) &&
		!flips_in_warp(k, s, n, &k->node_shape[n->arg[0]], &k->node_shape[node]);
}

int at_source(const struct program *p, int node)
{
	int task = p->nodes.v[node].task;

	do
		node = p->nodes.v[node].arg[0];
	while (p->nodes.v[node].op == OP_AT && p->nodes.v[node].task == task);
	return node;
}

/* Is the node used once, by a node of the sTask? */
static bool is_used_once(const struct kernel *k, const struct stask *s, int node)
{
	const struct program *p = k->plan->graph->program;
	const struct task *t = &p->tasks.v[s->task];
	int uses = 0;

	for (int i = 0; i < t->nodes.n; i++)
		for (int j = 0; j < node_arity(&p->nodes.v[t->nodes.v[i]]); j++)
			uses += p->nodes.v[t->nodes.v[i]].arg[j] == node;
	return uses == 1;
}

bool at_is_read_at_use(const struct kernel *k, const struct stask *s, int node, int user)
{
	const struct program *p = k->plan->graph->program;
	int source = p->nodes.v[node].op == OP_AT ? at_source(p, node) : NONE;
	enum op op = p->nodes.v[user].op;

	return source != NONE && op != OP_SET && op != OP_AT && is_elementwise(op) && p->nodes.v[node].task == s->task &&
		p->nodes.v[source].task != s->task && conversion_in_ring(k, s, source, NONE) &&
		(!has_same_layout(k, &k->node_shape[user], &k->node_shape[node]) || is_used_once(k, s, node)) && at_is_far(k, s, node);
}

bool at_is_skipped(const struct kernel *k, const struct stask *s, int node)
{
	const struct graph *g = k->plan->graph;
	const struct task *t = &g->program->tasks.v[s->task];
	bool used = false;

	if (g->program->nodes.v[node].op != OP_AT)
		return false;
	for (int i = 0; i < s->writes.n; i++)
		if (g->buffers.v[s->writes.v[i]].node == node)
			return false;
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &g->program->nodes.v[t->nodes.v[i]];

		if (!ints_hold(n->arg, node_arity(n), node))
			continue;
		if (!at_is_far(k, s, t->nodes.v[i]) && !at_is_read_at_use(k, s, node, t->nodes.v[i]))
			return false;
		used = true;
	}
	return used;
}

static bool needs_conversion(const struct kernel *k, const struct stask *s, int node, int arg,
	struct layout_conversion *out)
{
	const struct program *p = k->plan->graph->program;
	bool far = at_is_far(k, s, node);
	const struct node *n = &p->nodes.v[node], *a = &p->nodes.v[arg = far ? at_source(p, node) : arg];
	bool sets = n->op == OP_SET && !conversion_in_ring(k, s, NONE, n->ref);

	*out = (struct layout_conversion){ .arg = arg, .carry = NONE, .from = &k->node_shape[arg],
		.to = sets ? &k->carry_shape[n->ref] : &k->node_shape[node] };
	if (at_is_read_at_use(k, s, arg, node))
		return false;
	if (a->op == OP_CONST || a->op == OP_INDEX || (a->task != n->task && conversion_in_ring(k, s, arg, NONE)))
		return false;
	if (n->op == OP_AT && !far)
		out->flips = flips_in_warp(k, s, n, out->from, out->to);
	return n->op == OP_AT ? (far || out->flips) && !at_is_skipped(k, s, node) : !has_same_layout(k, out->to, out->from);
}

bool conversion_next(const struct kernel *k, const struct stask *s, int node, int *i, struct layout_conversion *out)
{
	const struct node *n = &k->plan->graph->program->nodes.v[node];

	if (!is_elementwise(n->op))
		return false;
	if (n->op == OP_GET) {
		*out = (struct layout_conversion){ .arg = NONE, .carry = n->ref,
			.from = &k->carry_shape[n->ref], .to = &k->node_shape[node] };
		return !(*i)++ && !conversion_in_ring(k, s, NONE, n->ref) && !has_same_layout(k, out->to, out->from);
	}
	while (*i < op_arity(n->op))
		if (needs_conversion(k, s, node, n->arg[(*i)++], out))
			return true;
	return false;
}

int64_t scratch_bytes(const struct stask *s, const struct shape2 *from)
{
	int64_t n = from->rows * from->cols;

	for (int i = 0; i < shape_rank(from); i++)
		if (shape_axis(from, i) == s->split_axis)
			n /= s->slices;
	return 4 * n;
}
