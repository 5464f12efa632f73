/* Addresses of elements in rings of shared memory, by row and column in the ring's slot. A slot consists of panels,
 * in which rows may be swizzled. An address is made as a sum of what depends on the thread, what depends also on the
 * group of columns, and what is a constant once loops are unrolled, because the compiler keeps each of these apart
 * only if the sum does. */
#include "lower/select/indices.h"

/* from the element to its row and column ----------------------------------------- */

/* Index of the current element along an axis of a ring. `shape` is that of the value which has the element. */
static const struct num *ring_axis_index(struct lowering *c, const struct stask *s, const struct ring *r,
	int axis, const struct shape2 *shape)
{
	const struct num *elsewhere = c->read_at[axis], *at = elsewhere ? elsewhere : axis_local_index(c, s, shape, axis);

	if (!elsewhere && has_full_axis(&r->shape, axis) && !has_full_axis(shape, axis) && !(c->k->one_tile >> axis & 1))
		at = ADD(axis_first(c, s, shape, axis), at);
	if (!elsewhere && r->one_slice && axis == s->split_axis)
		at = SUB(at, N(c, s->slice * axis_extent(c, s, shape, axis)));
	if (axis_share(&r->shape, axis) > 1)
		at = quotient(c, at, axis_share(&r->shape, axis));
	return at;
}

/* Elements of the ring's value along an axis. */
static int64_t ring_value_extent(const struct lowering *c, const struct stask *s, const struct ring *r, int axis)
{
	int64_t x = has_full_axis(&r->shape, axis) ? c->p->axes.v[axis].size : c->g->extents.tile[axis];

	return r->one_slice && axis == s->split_axis ? x / s->slices : x;	/* the ring holds no other slice */
}

/* Number of the current element's row or column in a ring. It counts over the n axes, the last one fastest. */
static const struct num *flatten(struct lowering *c, const struct stask *s, const struct ring *r,
	const int *axes, int n, const struct shape2 *shape)
{
	const struct num *flat = N(c, 0);

	for (int i = 0; i < n; i++) {
		int axis = axes[i];
		int64_t extent = ceil_div(ring_value_extent(c, s, r, axis), axis_share(&r->shape, axis));
		const struct num *at = ring_axis_index(c, s, r, axis, shape);

		flat = i ? ADD(MUL(flat, N(c, extent)), at) : at;
	}
	return flat;
}

/* from row and column to the address ---------------------------------------------- */

const struct num *slot_address(struct lowering *c, const struct ring *r)
{
	return V(c, VAR_SLOT, (int)(r - c->k->rings.v));
}

/* Does the column have a term for the fragment's group of columns? */
static bool is_fragment_column(const struct num *col)
{
	if (col->op == NUM_ADD)
		return is_fragment_column(col->a) || is_fragment_column(col->b);
	return col->op == NUM_MUL && col->b->op == NUM_VAR && col->b->var == VAR_COL_GROUP;
}

/* The bits that are XORed into addresses in a row: the number of its line of memory, modulo the chunks of a row. */
static const struct num *swizzle_pattern(struct lowering *c, const struct ring *r, const struct num *row)
{
	const struct shared_layout *l = &c->k->target->shared;

	return NUM2(SHL, NUM2(AND, DIV(MUL(row, N(c, r->swizzle)), N(c, l->line)),
		N(c, r->swizzle / l->chunk - 1)), N(c, log2_of(l->chunk)));
}

/* The first column of a k step. The group within it, which may differ between threads (FETCH_MATRICES), becomes part of
 * what is XORed: so what depends on the step is a constant once loops are unrolled. */
static const struct num *first_of_step(struct lowering *c, const struct ring *r, int bytes, const struct num *col,
	const struct num **pattern)
{
	struct split_sum x;

	if (!c->fetches || !c->k_step_cols || r->panel_cols % c->k_step_cols)
		return col;
	x = split_multiples(c, col, c->k_step_cols);
	if (!x.multiple || !x.others || x.others->op != NUM_MUL || !is_fragment_column(x.others))
		return col;
	*pattern = NUM2(XOR, MUL(x.others, N(c, bytes)), *pattern);
	return x.multiple;
}

/* The thread's part of the lane may begin at a multiple of panels: *at is that much more, and the column without it. */
static const struct num *without_panels(struct lowering *c, const struct ring *r, const struct num *col,
	const struct num **at)
{
	struct split_sum x = split_multiples(c, col, r->panel_cols);

	if (layout_parts(current_layout(c)) == 1 || !x.multiple || !x.others)
		return col;
	*at = ADD(*at, MUL(divide_terms(c, x.multiple, r->panel_cols), N(c, r->panel_bytes)));
	return x.others;
}

/* The swizzled address of a fragment element, as a sum of three parts: one depends on the thread, one also on the group
 * of columns, the last is a constant once loops are unrolled. The compiler computes the first once and the second once
 * for all rows, and makes the third an immediate of the instruction. */
static const struct num *swizzled_address(struct lowering *c, const struct ring *r, int bytes,
	const struct split_sum *row, const struct split_sum *col)
{
	const struct shared_layout *l = &c->k->target->shared;
	int group = current_layout(c)->cols * bytes;
	const struct num *pattern = swizzle_pattern(c, r, row->others), *at = MUL(row->others, N(c, r->swizzle));
	const struct num *first = first_of_step(c, r, bytes, without_panels(c, r, col->multiple, &at), &pattern);
	const struct num *chunk = MUL(MOD(first, N(c, r->panel_cols)), N(c, bytes));
	const struct num *constant = MUL(DIV(first, N(c, r->panel_cols)), N(c, r->panel_bytes));
	const struct num *col0 = MUL(col->others->a, N(c, bytes)), *e = MUL(col->others->b, N(c, bytes));

	if (group > l->chunk) {			/* a group spans several chunks */
		col0 = NUM2(XOR, col0, NUM2(AND, pattern, N(c, group - 1)));
		pattern = NUM2(AND, pattern, N(c, l->line - group));
	}
	if (row->multiple)
		constant = ADD(constant, MUL(row->multiple, N(c, r->swizzle)));
	return ADD(ADD(ADD(ADD(slot_address(c, r), ADD(at, col0)), NUM2(XOR, chunk, pattern)), constant), e);
}

/* The swizzled address where a group of columns spans several panels: the thread's part has its panel and its column
 * within that. A thread's neighbours are in one chunk, so they follow each other. */
static const struct num *address_over_panels(struct lowering *c, const struct ring *r, int bytes, const struct split_sum *row,
	const struct split_sum *col)
{
	const struct num *col0 = col->others->a, *constant = N(c, 0);
	const struct num *in_panel = MUL(MOD(col0, N(c, r->panel_cols)), N(c, bytes));
	const struct num *thread = ADD(MUL(row->others, N(c, r->swizzle)), MUL(DIV(col0, N(c, r->panel_cols)), N(c, r->panel_bytes)));

	if (col->multiple)
		constant = MUL(DIV(col->multiple, N(c, r->panel_cols)), N(c, r->panel_bytes));
	if (row->multiple)
		constant = ADD(constant, MUL(row->multiple, N(c, r->swizzle)));
	thread = ADD(thread, NUM2(XOR, in_panel, swizzle_pattern(c, r, row->others)));
	return ADD(ADD(ADD(slot_address(c, r), thread), constant), MUL(col->others->b, N(c, bytes)));
}

/* The swizzled address of an element of which the row in the ring, not the column, is that within a fragment's group:
 * also a sum of a part that depends on the thread, one with the column within the panel, and a constant. */
static const struct num *address_across(struct lowering *c, const struct ring *r, int bytes, const struct split_sum *row,
	const struct split_sum *col)
{
	const struct num *at = MUL(row->others, N(c, r->swizzle)), *constant = N(c, 0), *chunk = N(c, 0);

	if (row->multiple)
		constant = ADD(constant, MUL(row->multiple, N(c, r->swizzle)));
	if (col->multiple)
		constant = ADD(constant, MUL(DIV(col->multiple, N(c, r->panel_cols)), N(c, r->panel_bytes)));
	if (col->others) {
		constant = ADD(constant, MUL(DIV(col->others, N(c, r->panel_cols)), N(c, r->panel_bytes)));
		chunk = MUL(MOD(col->others, N(c, r->panel_cols)), N(c, bytes));
	}
	return ADD(ADD(ADD(slot_address(c, r), at), NUM2(XOR, chunk, swizzle_pattern(c, r, row->others))), constant);
}

/* The address in panels that are not swizzled. What the thread adds to it and what its group of columns adds are
 * terms of their own, as in the functions above: a thread's neighbours are in one panel. */
static const struct num *plain_address(struct lowering *c, const struct ring *r, int bytes, const struct num *row,
	const struct num *col)
{
	int group = current_layout(c)->cols;
	struct split_sum x = split_multiples(c, col, group);
	const struct num *at = ADD(slot_address(c, r), MUL(row, N(c, r->panel_cols * bytes))), *panels = col, *e = NULL;

	if (!c->walks_ring && is_column_in_group(x.others) && r->panel_cols % current_layout(c)->pair == 0 &&
	    (r->panel_cols % group == 0 || group % r->panel_cols == 0)) {
		bool wide = group > r->panel_cols;	/* a thread's first column says in which panel it is */

		e = wide ? x.others->b : x.others;
		panels = wide ? x.others->a : x.multiple;
		if (wide && x.multiple)
			at = ADD(at, MUL(divide_terms(c, x.multiple, r->panel_cols), N(c, r->panel_bytes)));
	}
	if (panels)
		at = ADD(ADD(at, MUL(DIV(panels, N(c, r->panel_cols)), N(c, r->panel_bytes))),
			MUL(MOD(panels, N(c, r->panel_cols)), N(c, bytes)));
	return e ? ADD(at, MUL(e, N(c, bytes))) : at;
}

const struct num *ring_element_address(struct lowering *c, const struct ring *r, const struct num *row,
	const struct num *col)
{
	int bytes = dtype_bits(c->g->buffers.v[r->buffer].type) / 8;
	const struct num *slot = slot_address(c, r), *panel, *in_row;
	struct split_sum rows, cols;

	if (!r->swizzle && (r->rows == 1 || r->panel_cols == r->cols))
		return ADD(slot, MUL(ADD(MUL(row, N(c, r->panel_cols)), col), N(c, bytes)));
	if (!r->swizzle)
		return plain_address(c, r, bytes, row, col);
	rows = split_multiples(c, row, shared_pattern_rows(&c->k->target->shared));
	cols = split_multiples(c, col, current_layout(c)->cols);
	if (!c->walks_ring && rows.others && is_fragment_column(col) && is_column_in_group(cols.others) &&
	    current_layout(c)->pair * bytes <= c->k->target->shared.chunk) {
		if (r->panel_cols % current_layout(c)->cols == 0)
			return swizzled_address(c, r, bytes, &rows, &cols);
		if (current_layout(c)->cols % r->panel_cols == 0)
			return address_over_panels(c, r, bytes, &rows, &cols);
	}
	if (c->fetches && rows.others) {
		cols = split_multiples(c, col, r->panel_cols);
		return address_across(c, r, bytes, &rows, &cols);
	}
	panel = MUL(DIV(col, N(c, r->panel_cols)), N(c, r->panel_bytes));
	in_row = ADD(MUL(row, N(c, r->swizzle)), MUL(MOD(col, N(c, r->panel_cols)), N(c, bytes)));
	return ADD(ADD(slot, panel), NUM2(XOR, in_row, swizzle_pattern(c, r, row)));
}

const struct num *ring_address(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape)
{
	return ring_element_address(c, r, flatten(c, s, r, r->shape.row, r->shape.nrow, shape),
		flatten(c, s, r, r->shape.col, r->shape.ncol, shape));
}

/* walks over rings ------------------------------------------------------------------ */

struct shape2 unshared_shape(const struct lowering *c, const struct stask *s, const struct ring *r)
{
	struct shape2 v = { .full_axes = r->shape.full_axes, .rows = 1, .cols = 1 };

	for (int i = 0; i < shape_rank(&r->shape); i++)
		shape_add_axis(&v, i < r->shape.nrow, shape_axis(&r->shape, i), ring_value_extent(c, s, r, shape_axis(
			&r->shape, i)));
	return v;
}

const struct num *walk_ring(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape, struct role_op *o)
{
	bool is_shared = shape->rows != r->shape.rows || shape->cols != r->shape.cols;
	struct ring walked = *r;
	struct frag f;

	walked.shape = *shape;
	walked.full_rows += shape->rows - r->shape.rows;
	walked.full_cols += shape->cols - r->shape.cols;
	f = lower_ring_slice(s, &walked);

	o->u.move.elements = f.rows * f.cols;
	o->u.move.cols = f.cols;
	c->walks_ring = true;
	o->u.move.address = !is_shared && f.rows == r->full_rows && f.cols == r->full_cols ?
		ring_element_address(c, r, V(c, VAR_ROW0, NONE), V(c, VAR_COL0, NONE)) :
		ring_address(c, s, r, shape);
	c->walks_ring = false;
	return inside_condition(c, s, shape, &f, ALL_AXES);
}

void add_ring_touch(struct lowering *c, const struct stask *s, int buffer)
{
	add_touch(c, TOUCH_READ, TOUCH_SLOT, buffer, 0);
	for (int i = 0; i < s->reads.n; i++) {
		int other = s->reads.v[i];

		if (other != buffer && has_ring(c, other) && ring_of(c, other)->offset == ring_of(c, buffer)->offset)
			add_touch(c, TOUCH_READ, TOUCH_SLOT, other, 0);
	}
}
