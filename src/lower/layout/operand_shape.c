/* Shapes in which matrix instructions read an operand from shared memory.
 *
 * One side of the ring, rows or columns, has the axes that the result has from the operand: its own. The other has
 * those that the product contracts. Instructions number the elements of each side from the first to the last. So own
 * axes go in the order of the result's fragment, and contracted axes in an order on which both operands agree: that of
 * the program, which fragments have too (shape.c). Axes of which the product takes one element may lie anywhere. Some
 * types must have the contracted axes as columns.
 *
 * A value lies in its ring as in its tensor, or as in the registers of the sTask that makes it, if all products can
 * read that. Otherwise the products decide, and the elements are moved one by one or in short runs. */
#include "lower/layout/rings.h"

/* Axes of one side, without those of which the product takes one element. */
struct side {
	int n, axis[FRAG_AXES_MAX];
};

static bool shape_has_axis(const struct shape2 *v, int axis)
{
	return ints_hold(v->row, v->nrow, axis) || ints_hold(v->col, v->ncol, axis);
}

/* Does a product take one element along the axis? Of an axis that the result has, the operand may have more, of which
 * the product takes a tile. */
static bool takes_one(const struct kernel *k, const struct stask *s, const struct shape2 *operand, int axis)
{
	const struct graph *g = k->plan->graph;
	const struct shape2 *result = &k->node_shape[last_node(g, s)];
	uint64_t full = shape_has_axis(result, axis) ? result->full_axes : operand->full_axes;
	int64_t extent = full >> axis & 1 ? g->program->axes.v[axis].size : g->extents.tile[axis];

	return extent == (axis == s->split_axis && shape_has_axis(result, axis) ? s->slices : 1);
}

static struct side side_of(const struct kernel *k, const struct stask *s, const struct shape2 *operand,
	const int *axes, int n)
{
	struct side x = { 0 };

	for (int i = 0; i < n; i++)
		if (!takes_one(k, s, operand, axes[i]))
			x.axis[x.n++] = axes[i];
	return x;
}

/* Are all axes contracted, and in the program's order? */
static bool is_contracted_side(const struct side *x, const struct node *mma)
{
	for (int i = 0; i < x->n; i++)
		if (node_has_axis(mma, x->axis[i]) || (i && x->axis[i] < x->axis[i - 1]))
			return false;
	return true;
}

/* Are the columns those that the product contracts? If the product takes one element of each axis there, the rows
 * tell. */
static bool is_k_major(const struct node *mma, const struct shape2 *v, const struct side *rows, const struct side *cols)
{
	if (cols->n)
		return !node_has_axis(mma, cols->axis[0]);
	for (int i = 0; i < v->ncol && rows->n; i++)
		if (!node_has_axis(mma, v->col[i]))
			return node_has_axis(mma, rows->axis[0]);
	return !node_has_axis(mma, v->col[0]);
}

/* Can the instructions of product s contract rows? Those for some types contract columns alone. */
static bool may_contract_rows(const struct kernel *k, const struct stask *s)
{
	int task = (int)(s - k->plan->graph->tasks.v);
	const struct matrix_instruction *by = instruction_for(k, seu_of(k, task), &s->work);

	return by && by->loose >> s->work.type & 1;
}

bool lower_reads_operand(const struct kernel *k, const struct stask *s, int arg, const struct shape2 *v, bool *k_major)
{
	const struct node *mma = last_node_of(k, s);
	const struct shape2 *result = &k->node_shape[last_node(k->plan->graph, s)];
	struct side own = arg ? side_of(k, s, v, result->col, result->ncol) :
		side_of(k, s, v, result->row, result->nrow);
	struct side rows = side_of(k, s, v, v->row, v->nrow), cols = side_of(k, s, v, v->col, v->ncol);
	const struct side *have;

	if (!v->ncol)
		return false;
	*k_major = is_k_major(mma, v, &rows, &cols);
	have = *k_major ? &rows : &cols;
	if ((!*k_major && !may_contract_rows(k, s)) || have->n != own.n ||
	    !is_contracted_side(*k_major ? &cols : &rows, mma))
		return false;
	for (int i = 0; i < own.n; i++)
		if (have->axis[i] != own.axis[i])
			return false;
	return true;
}

static int operand_number(const struct kernel *k, const struct stask *s, const struct buffer *b)
{
	return product_operand(k->plan->graph->program, last_node_of(k, s), 0) == b->node ? 0 : 1;
}

static bool all_products_read(const struct kernel *k, int buffer, const struct shape2 *v)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct stask *s;
	bool k_major;

	for (int i = 0; (s = lower_next_product(k, buffer, &i));)
		if (!lower_reads_operand(k, s, operand_number(k, s, b), v, &k_major))
			return false;
	return true;
}

/* The shape in which product s reads the buffer. A side may have no axis of more than one element; columns then have
 * one all the same. */
static struct shape2 shape_for(const struct kernel *k, const struct stask *s, const struct buffer *b, bool k_major,
	uint64_t full_axes)
{
	const struct node *mma = last_node_of(k, s);
	const struct shape2 *result = &k->node_shape[last_node(k->plan->graph, s)];
	struct shape2 v = { .rows = 1, .cols = 1, .full_axes = full_axes };
	int axes[RANK_MAX], n = 0, first = operand_number(k, s, b) ? result->nrow : 0;

	for (int i = first; i < (first ? shape_rank(result) : result->nrow); i++)
		if (ints_hold(b->axis, b->naxes, shape_axis(result, i)))
			axes[n++] = shape_axis(result, i);
	for (int a = 0; a < k->plan->graph->program->axes.n; a++)
		if (ints_hold(b->axis, b->naxes, a) && !ints_hold(axes, n, a))
			axes[n++] = a;
	for (int i = 0; i < n; i++)
		if (ring_axis_extent(k, b, axes[i]) > 1)
			shape_add_axis(&v, node_has_axis(mma, axes[i]) == k_major, axes[i],
				ring_axis_extent(k, b, axes[i]));
	for (int i = 0; i < n && !v.ncol; i++)
		if (node_has_axis(mma, axes[i]) != k_major)
			shape_add_axis(&v, false, axes[i], 1);
	return v;
}

/* Is the contiguous axis of the shape one that the product contracts? */
static bool ends_contracted(const struct kernel *k, const struct stask *s, const struct shape2 *v)
{
	int n = shape_rank(v);

	return n && !node_has_axis(last_node_of(k, s), shape_axis(v, n - 1));
}

bool lower_make_readable(const struct kernel *k, int buffer, struct shape2 *v)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct stask *s;

	if (all_products_read(k, buffer, v))
		return false;
	for (int i = 0; (s = lower_next_product(k, buffer, &i));) {
		bool k_major = ends_contracted(k, s, v);

		for (int other = 0; other < 2; other++) {
			struct shape2 to = shape_for(k, s, b, k_major ^ other, v->full_axes);

			if (all_products_read(k, buffer, &to)) {
				*v = to;
				return true;
			}
		}
	}
	return false;
}
