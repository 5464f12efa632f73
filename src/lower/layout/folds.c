#include "lower/layout/folds.h"

#include "lower/passes.h"

static uint64_t bit(int axis)
{
	return (uint64_t)1 << axis;
}

/* Copies the axes of one side, without `axis`. Returns how many are left. */
static int remove_axis(const int *v, int n, int axis, int *out)
{
	int left = 0;

	for (int i = 0; i < n; i++)
		if (v[i] != axis)
			out[left++] = v[i];
	return left;
}

/* Set of the axes that one tile covers. */
static uint64_t axes_in_one_tile(const struct kernel *k)
{
	const struct graph *g = k->plan->graph;
	uint64_t all = 0;

	for (int i = 0; i < g->program->axes.n; i++)
		if (g->extents.tile[i] >= g->program->axes.v[i].size && !g->program->axes.v[i].multiple)
			all |= bit(i);
	return all;
}

/* Does the result have the layout of the shape without the axis? NONE: of the shape itself. */
static bool has_result_layout(const struct kernel *k, const struct shape2 *to, const struct shape2 *over, int axis)
{
	uint64_t either = axes_in_one_tile(k);
	struct shape2 left = { .full_axes = (over->full_axes & ~either) | (to->full_axes & either) };

	left.nrow = remove_axis(over->row, over->nrow, axis, left.row);
	left.ncol = remove_axis(over->col, over->ncol, axis, left.col);
	return left.nrow == to->nrow && left.ncol == to->ncol && has_same_layout(k, to, &left);
}

/* Is the axis the only one of its side, with the extent that is reduced? Sets f->way. */
static bool is_only_axis_of_side(const struct kernel *k, struct fold *f, const struct shape2 *over, int axis)
{
	bool full = over->full_axes & bit(axis);

	if (full != f->full && !(axes_in_one_tile(k) & bit(axis)))
		return false;
	if (over->ncol == 1 && over->col[0] == axis)
		f->way = FOLD_COLUMNS;
	else if (over->nrow == 1 && over->row[0] == axis)
		f->way = FOLD_ROWS;
	else
		return false;
	f->over = *over;
	return true;
}

static bool reduces_in_registers(const struct kernel *k, const struct node *n, const struct shape2 *to, struct fold *f)
{
	const struct graph *g = k->plan->graph;
	const struct shape2 *from = &k->node_shape[n->arg[0]];
	struct shape2 over = *to;

	if (has_result_layout(k, to, from, n->ref) && is_only_axis_of_side(k, f, from, n->ref))
		return true;
	/* an argument in shared memory can be read in the result's layout, with the axis on a side that is free
	 * there */
	if (!f->shared || (to->ncol && to->nrow))
		return false;
	shape_add_axis(&over, to->ncol, n->ref, f->full ? g->program->axes.v[n->ref].size : g->extents.tile[n->ref]);
	over.full_axes = f->full ? to->full_axes | bit(n->ref) : to->full_axes & ~bit(n->ref);
	return is_only_axis_of_side(k, f, &over, n->ref);
}

/* There is no scan along rows in registers, nor along columns that parts of the lane divide. */
static bool scans_in_registers(const struct kernel *k, const struct stask *s, const struct node *n,
	const struct shape2 *to, struct fold *f)
{
	if (lower_parts(k, s) > 1)
		return false;
	return (f->shared || has_result_layout(k, to, &k->node_shape[n->arg[0]], NONE)) &&
		is_only_axis_of_side(k, f, to, n->ref) && f->way == FOLD_COLUMNS;
}

/* Is there nothing to combine, as the axis has one element, of values in registers? Not if it is alone on its side: then
 * the result has another kind of fragment. */
static bool is_unit(const struct kernel *k, const struct node *n, const struct shape2 *to, const struct fold *f)
{
	const struct graph *g = k->plan->graph;
	const struct shape2 *from = &k->node_shape[n->arg[0]];
	bool column = ints_hold(from->col, from->ncol, n->ref);
	int64_t extent = f->full ? g->program->axes.v[n->ref].size : g->extents.tile[n->ref];

	return extent == 1 && !f->shared && (column ? from->ncol : from->nrow) > 1 &&
		has_result_layout(k, to, from, n->ref);
}

/* Is each element of the value held by one thread? */
static bool is_held_once(const struct kernel *k, const struct shape2 *v)
{
	const struct frag_layout *l = &k->target->frag;

	return v->ncol && (l->across_warps || (v->nrow && !l->every_warp));
}

void fold_of(const struct kernel *k, const struct stask *s, int node, struct fold *out)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[node];
	const struct shape2 *to = &k->node_shape[node];

	*out = (struct fold){ .shared = p->nodes.v[n->arg[0]].task != n->task &&
			conversion_in_ring(k, s, n->arg[0], NONE),
		.full = !program_reduces_tile(p, n, n->ref) };
	if (op_class(n->op) == CLASS_REDUCE && is_unit(k, n, to, out)) {
		out->way = FOLD_UNIT;
		out->over = k->node_shape[n->arg[0]];
		return;
	}
	if (op_class(n->op) == CLASS_SCAN ? scans_in_registers(k, s, n, to, out) : reduces_in_registers(k, n, to, out))
		return;
	out->way = op_class(n->op) == CLASS_REDUCE && is_held_once(k, to) ? FOLD_OWN : FOLD_LINES;
	out->over = *to;
	out->over.full_axes = out->full ? to->full_axes | bit(n->ref) : to->full_axes & ~bit(n->ref);
}

const struct shape2 *fold_scratch_shape(const struct kernel *k, int node, const struct fold *f)
{
	return &k->node_shape[f->shared ? node : k->plan->graph->program->nodes.v[node].arg[0]];
}

/* Warps that each have a part of a row exchange one number for each warp and row; in a scan one for each group of
 * columns as well. */
static int64_t columns_bytes(const struct frag_layout *l, const struct shape2 *over, bool scans, int warps)
{
	if (layout_parts(l) > 1)
		return 4 * warps * ceil_div(over->rows, layout_block_rows(l, warps)) * l->rows;
	return l->across_warps && warps > 1 ? 4 * warps * round_up(over->rows, l->rows) *
		(scans ? ceil_div(over->cols, l->cols) : 1) : 0;
}

/* A reduction along rows exchanges one number for each warp and column, padded as those of a fragment. */
static int64_t rows_bytes(const struct kernel *k, const struct frag_layout *l, const struct shape2 *over, int warps)
{
	int cols = layout_group_cols(l);

	for (int i = 0; i < over->ncol; i++)
		if (k->contracted & bit(over->col[i]))
			cols = l->deep * layout_parts(l);
	return layout_row_warps(l, warps) > 1 ? 4 * warps * round_up(over->cols, cols) / layout_parts(l) : 0;
}

int64_t fold_bytes(const struct kernel *k, const struct stask *s, int node, const struct frag_layout *l, int warps)
{
	bool scans = op_class(k->plan->graph->program->nodes.v[node].op) == CLASS_SCAN;
	struct fold f;

	fold_of(k, s, node, &f);
	if (f.way == FOLD_OWN && f.shared)
		return 0;
	if (f.way == FOLD_LINES || f.way == FOLD_OWN)
		return scratch_bytes(s, fold_scratch_shape(k, node, &f));
	if (f.way == FOLD_COLUMNS)
		return columns_bytes(l, &f.over, scans, warps);
	return f.way == FOLD_ROWS ? rows_bytes(k, l, &f.over, warps) : 0;
}
