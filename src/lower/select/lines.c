/* Reductions and scans line by line: the value is in shared memory, and one thread processes each line of it along the
 * axis, in order; in a reduction the one that holds the result, if it is one alone. */
#include "lower/select/lowering.h"

/* The axes that number the lines, the last fastest: all but `along`. Returns how many. */
static int line_axes(const struct shape2 *to, int along, int *axes)
{
	int n = 0;

	for (int i = 0; i < shape_rank(to); i++)
		if (shape_axis(to, i) != along)
			axes[n++] = shape_axis(to, i);
	return n;
}

/* Sets the axes' indices to those of element ALONG of line EACH. Returns the number of lines. */
static int64_t set_line_indices(struct lowering *c, const struct stask *s, const struct shape2 *over, int along)
{
	int axes[2 * RANK_MAX], n = line_axes(over, along, axes);
	const struct num *line = V(c, VAR_EACH, NONE);
	int64_t below = 1;

	for (int i = n - 1; i >= 0; i--) {
		int64_t extent = axis_extent(c, s, over, axes[i]);
		const struct num *at = below > 1 ? DIV(line, N(c, below)) : line;

		c->axis_index[axes[i]] = i ? MOD(at, N(c, extent)) : at;
		below *= extent;
	}
	c->axis_index[along] = V(c, VAR_ALONG, NONE);
	return below;
}

static void clear_line_indices(struct lowering *c)
{
	for (int i = 0; i < LEN(c->axis_index); i++)
		c->axis_index[i] = NULL;
}

/* Elements of a line. */
static const struct num *line_length(struct lowering *c, const struct stask *s, const struct shape2 *over, int along)
{
	const struct num *extent = N(c, axis_extent(c, s, over, along));

	if (!axis_is_ragged(c, s, over, along))
		return extent;
	return NUM2(MIN, extent, SUB(axis_end(c, s, over, along), axis_first(c, s, over, along)));
}

/* Writes an argument in registers to the scratch, in its own layout. */
static enum err_code write_argument(struct lowering *c, const struct kentry *x, int arg, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = &c->k->node_shape[arg];
	struct frag *over = ARENA_NEW(c->a, struct frag);
	const struct val *value;

	TRY(lay_out_node(c, s, arg, over, e));
	TRY(operand_value(c, x, arg, arg, &value, e));
	add_put(c, over, owner_condition(c, s, shape, over), scratch_address(c, s, 0, shape, shape), value,
		scratch_type(c->p->nodes.v[arg].type));
	add_lane_sync(c, "all of it is in the scratch");
	return OK;
}

static void add_lines(struct lowering *c, const struct kentry *x, int node, const struct fold *f,
	const struct val *zero)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *scratch = fold_scratch_shape(c->k, node, f);
	int64_t lines = set_line_indices(c, s, &f->over, n->ref);
	enum dtype type = c->p->nodes.v[n->arg[0]].type;
	const struct val *value = f->shared ? ring_value(c, x, ring_of(c, buffer_of_node(c, s, n->arg[0])), &f->over) :
		val_shared(c, type, scratch_type(type), scratch_address(c, s, 0, scratch, &f->over));
	struct role_op *o = add_op(c, DO_LINES);
	int axes[2 * RANK_MAX];

	o->u.lines.n = lines;
	/* memory may have no space for lines beyond the ends of their axes */
	o->u.lines.when = within_ends(c, s, &f->over, axes, line_axes(&f->over, n->ref, axes));
	o->u.lines.length = line_length(c, s, &f->over, n->ref);
	o->u.lines.op = n->op;
	o->u.lines.type = n->type;
	o->u.lines.kept = scratch_type(n->type);
	o->u.lines.value = value;
	o->u.lines.zero = zero;
	o->u.lines.running = op_class(n->op) == CLASS_SCAN;
	if (!o->u.lines.running)	/* the result replaces the line's first element */
		c->axis_index[n->ref] = N(c, 0);
	o->u.lines.to = scratch_address(c, s, 0, scratch, &f->over);
	clear_line_indices(c);
}

/* Reads the results from the scratch into the node's fragment. */
static enum err_code read_results(struct lowering *c, const struct kentry *x, int node, const struct fold *f,
	struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *scratch = fold_scratch_shape(c->k, node, f);
	const struct val *value;
	const struct frag *to;

	TRY(find_node_frag(c, s, node, &to, e));
	if (op_class(n->op) == CLASS_REDUCE)
		c->axis_index[n->ref] = N(c, 0);
	value = val_guard(c, inside_condition(c, s, &f->over, to, scratch->full_axes & ~f->over.full_axes),
		val_shared(c, n->type, scratch_type(n->type), scratch_address(c, s, 0, scratch, &f->over)),
		val_const(c, DT_I32, 0));
	clear_line_indices(c);
	add_map(c, (struct frag_at){ to, 0 }, node, value);
	return OK;
}

enum err_code select_own_lines(struct lowering *c, const struct kentry *x, int node, const struct fold *f,
	const struct val *zero, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *scratch = fold_scratch_shape(c->k, node, f);
	enum dtype type = c->p->nodes.v[n->arg[0]].type;
	const struct val *value;
	const struct num *inside;
	const struct frag *to;
	struct role_op *o;

	TRY(find_node_frag(c, s, node, &to, e));
	if (!f->shared) {
		add_lane_sync(c, "what was in the scratch has been read");
		TRY(write_argument(c, x, n->arg[0], e));
	}
	c->axis_index[n->ref] = V(c, VAR_ALONG, NONE);
	inside = inside_condition(c, s, &f->over, to, scratch->full_axes & ~f->over.full_axes);
	if (f->shared)
		TRY(ring_value_as(c, x, ring_of(c, buffer_of_node(c, s, n->arg[0])), &f->over, &value, e));
	else
		value = val_guard(c, inside, neighbours_at_once(c, val_shared(c, type, scratch_type(type), scratch_address(c, s,
			0, scratch, &f->over)), inside), zero);
	clear_line_indices(c);
	o = add_op(c, DO_REDUCE_SHARED);
	o->u.reduce.over = o->u.reduce.to = to;
	o->u.reduce.op = n->op;
	o->u.reduce.value = value;
	o->u.reduce.zero = zero;
	o->u.reduce.length = line_length(c, s, &f->over, n->ref);
	return OK;
}

enum err_code select_lines(struct lowering *c, const struct kentry *x, int node, const struct fold *f,
	const struct val *zero, struct err *e)
{
	add_lane_sync(c, "what was in the scratch has been read");
	if (!f->shared)
		TRY(write_argument(c, x, c->p->nodes.v[node].arg[0], e));
	add_lines(c, x, node, f, zero);
	add_lane_sync(c, "all lines have been gone through");
	return read_results(c, x, node, f, e);
}
