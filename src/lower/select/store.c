/* Stores: by the copy engine, or by the lane's threads, from registers or out of a ring. */
#include "lower/select/lowering.h"

enum { VECTOR_BITS = 128, WORD_BITS = 32, OF_QUAD = 8, NIBBLE_BITS = 4, ADDED_BY_SWAPS = 4 };

/* Does a thread have neighbouring columns as words of 16-bit elements, or as numbers that it can make words of? */
static bool has_words(const struct frag *f, enum dtype to)
{
	if (f->packed || dtype_bits(to) == WORD_BITS)	/* of two numbers a quad's threads would not store complete sectors */
		return f->type == to && (f->packed || f->layout->pair > 2);
	return dtype_is_float(f->type) && (to == DT_BF16 || to == DT_F16);
}

/* Does the index go up by one along the axis, from multiples of `width`? */
static bool is_aligned_along(const struct index_expr *x, int axis, int64_t width)
{
	int along = 0;

	for (int i = 0; i < x->n; i++)
		if (x->term[i].axis != axis && x->term[i].coef % width)
			return false;
		else if (x->term[i].axis == axis && (along++ || x->term[i].coef != 1 || x->term[i].div != 1 || x->term[i].mod))
			return false;
	return along && !x->value && x->k % width == 0;
}

/* Are each `width` neighbours along an axis of the shape contiguous in the tensor, aligned, and all within its ends or all
 * outside? `extent`: of the lane, along rows or columns. */
static bool are_aligned_along(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, int axis, int64_t extent, int64_t width)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct index_expr *last = &n->index[t->rank - 1];

	if (axis != NONE && ends_within_tile(c->g, s->loop, axis))
		return false;
	for (int d = 0; d < t->rank && axis != NONE; d++)
		if (index_value_has(c->p, &n->index[d], axis))
			return false;
	return axis != NONE && is_aligned_along(last, axis, width) &&
		axis_divisor(&c->p->axes.v[axis]) % width == 0 && c->g->extents.tile[axis] % width == 0 &&
		axis_extent(c, s, shape, axis) % width == 0 && extent % width == 0 &&
		axis_divisor(&c->p->axes.v[t->dim[t->rank - 1]]) % width == 0;
}

/* Are neighbouring columns? */
static bool are_aligned_neighbours(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, int64_t columns, int64_t width)
{
	int axis = shape->ncol ? shape->col[shape->ncol - 1] : NONE;

	return axis != NONE && are_aligned_along(c, s, n, shape, axis, columns, width);
}

/* Are the rows of each matrix of eight by eight, of which a thread of the warp has a word, so many neighbours in the tensor? The
 * threads can then exchange their words, so that each has a column of a matrix. */
static bool are_matrix_rows_aligned(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct frag *f)
{
	const struct frag_layout *l = f->layout, *of = &c->k->target->frag;
	int axis = shape->nrow ? shape->row[shape->nrow - 1] : NONE;

	return axis != NONE && !n->adds && f->kind == FRAG_FULL && f->packed && f->type == c->p->tensors.v[n->ref].type &&
		c->k->target->transposes && l->pair == 2 && l->cols == OF_QUAD && l->half == OF_QUAD && spread_is(&l->row, &of->row) &&
		spread_is(&l->col, &of->col) && are_aligned_along(c, s, n, shape, axis, f->height, OF_QUAD);
}

/* Can one instruction of a thread add to `width` neighbours? */
static bool can_add_vectors(const struct lowering *c, const struct frag *f, enum dtype to, int64_t width)
{
	return to == DT_F32 && f->type == to && width <= c->k->target->adds_together;
}

/* Can `width` neighbouring columns be stored, or added, as one vector? */
static bool can_store_vectors(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct frag *f, int64_t width)
{
	enum dtype to = c->p->tensors.v[n->ref].type;

	return (n->adds ? can_add_vectors(c, f, to, width) : has_words(f, to)) &&
		are_aligned_neighbours(c, s, n, shape, f->width, width);
}

/* Elements per store of a tensor of 4-bit elements, of `most` neighbours at most: two or more are complete bytes. */
static enum err_code choose_nibbles(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, int64_t columns, int64_t most, struct role_op *o, struct err *e)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];

	o->u.move.width = WORD_BITS / NIBBLE_BITS;
	while (o->u.move.width > 1 && (most % o->u.move.width ||
	       !are_aligned_neighbours(c, s, n, shape, columns, o->u.move.width)))
		o->u.move.width /= 2;
	return o->u.move.width > 1 ? OK : err_set(e, ERR_ILLEGAL, n->loc,
		"'%s' stores %s, two to a byte, so the last index of "
		"'%s' must be an axis of which each tile has an even number, plus even multiples of others",
		s->name, dtype_name(t->type), t->name);
}

/* Elements per store: one; several that a thread holds as neighbours; or eight of a packed fragment, after the threads
 * of a quad have exchanged theirs. */
static void choose_width(const struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct frag *f, struct role_op *o)
{
	const struct frag_layout *l = f->layout;
	int bits = dtype_bits(c->p->tensors.v[n->ref].type);

	o->u.move.quads = l->col.div == 1 && l->col.mod == 4 && l->pair == 2 && f->packed && f->cols > l->cols &&
		can_store_vectors(c, s, n, shape, f, OF_QUAD);
	o->u.move.down = are_matrix_rows_aligned(c, s, n, shape, f);
	o->u.move.width = o->u.move.quads || o->u.move.down ? OF_QUAD : l->pair;
	while (o->u.move.width > 1 && !o->u.move.quads && !o->u.move.down && (o->u.move.width * bits > VECTOR_BITS ||
	       o->u.move.width * bits % WORD_BITS || !can_store_vectors(c, s, n, shape, f, o->u.move.width)))
		o->u.move.width /= 2;
	/* what an instruction of the warp adds is then contiguous */
	o->u.move.swaps = n->adds && o->u.move.width == ADDED_BY_SWAPS && l->pair == 2 * ADDED_BY_SWAPS &&
		l->col.div == 1 && l->col.mod % 2 == 0 && !f->packed;
}

/* The value converted to the tensor's type; NULL: it has that type already. */
static const struct val *as_tensor_type(struct lowering *c, const struct node *n, int buffer, const struct val *x)
{
	enum dtype to = c->p->tensors.v[n->ref].type, from = c->g->buffers.v[buffer].type;

	return to == from ? NULL : val_cast(c, to, from, x);
}

/* The value of which the bits of a 4-bit element are made. Those of e2m1 are made of any float; what is kept of an
 * i4 is in its range. */
static const struct val *as_nibble(struct lowering *c, const struct node *n, int buffer, const struct val *x)
{
	enum dtype to = c->p->tensors.v[n->ref].type, from = c->g->buffers.v[buffer].type;

	if (dtype_is_float(to))
		return dtype_is_float(from) ? x : val_cast(c, DT_F32, from, x);
	return c->p->nodes.v[n->arg[0]].type == to ? x : val_cast(c, to, from, x);
}

static bool stores_nibbles(const struct lowering *c, const struct node *n)
{
	return dtype_bits(c->p->tensors.v[n->ref].type) == NIBBLE_BITS;
}

/* A sum over the blocks of a cluster is a copy, of no buffer. */
static void touch_stored(struct lowering *c, int buffer, struct frag_at from)
{
	if (from.frag->buffer != NONE)
		add_touch(c, TOUCH_READ, TOUCH_FRAG, buffer, from.version);
}

/* From registers to global memory, by the lane's threads. */
static enum err_code store_fragment(struct lowering *c, const struct kentry *x, const struct node *n,
	int buffer, struct frag_at from, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = buffer_shape(c, &c->g->buffers.v[buffer]);
	const struct frag *f = from.frag;
	const struct num *inside = NUM2(BOTH, one_holder_condition(c, f->kind), inside_condition(c, s, shape, f, ALL_AXES));
	const struct num *share = is_in_share(c, s, V(c, VAR_RB, NONE), V(c, VAR_COL_GROUP, NONE));
	struct role_op *o;

	if (share)
		inside = NUM2(BOTH, share, inside);
	touch_stored(c, buffer, from);
	touch_added_values(c, s, n);
	o = add_op(c, DO_STORE_THREADS);
	set_move(c, o, s, n, shape, inside);
	add_values(c, s, n, shape, inside, false, o);
	o->u.move.from = from;
	if (stores_nibbles(c, n)) {
		o->u.move.value = as_nibble(c, n, buffer, val_frag(c, from));
		return choose_nibbles(c, s, n, shape, f->width, f->layout->pair, o, e);
	}
	choose_width(c, s, n, shape, f, o);
	o->u.move.value = o->u.move.width == 1 ? as_tensor_type(c, n, buffer, val_frag(c, from)) : NULL;
	return OK;
}

/* How many neighbours of a row one access moves from the ring to the tensor: they are contiguous and aligned in both. */
static int ring_width(const struct lowering *c, const struct stask *s, const struct node *n, const struct ring *r,
	const struct shape2 *shape, const struct role_op *o)
{
	enum dtype to = c->p->tensors.v[n->ref].type;
	int bits = dtype_bits(to), width = bits >= 8 ? VECTOR_BITS / bits : 1;

	if (to != c->g->buffers.v[r->buffer].type || n->adds || s->slices > 1 || o->u.move.down ||
	    shape->rows != r->shape.rows || shape->cols != r->shape.cols)
		return 1;
	while (width > 1 && (width * bits < WORD_BITS || r->panel_cols % width ||
	       !are_aligned_neighbours(c, s, n, shape, o->u.move.cols, width)))
		width /= 2;
	return width;
}

/* Are neighbours of a column of the ring, and not those of a row, contiguous in global memory? */
static bool is_transposed(const struct role_op *o)
{
	const struct num *last = o->u.move.rank ? o->u.move.index[o->u.move.rank - 1].at : NULL;
	int64_t by;

	return !num_uses(last, VAR_COL0) && last && num_slope(last, VAR_ROW0, &by) && by == 1;
}

/* From a ring, where another lane has left the value, by the lane's threads. Where neighbours share an element of the
 * ring, they walk over the value's elements, which are more. */
static enum err_code store_ring(struct lowering *c, const struct kentry *x, const struct node *n, int buffer,
	struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct ring *r = ring_of(c, buffer);
	enum dtype t = c->g->buffers.v[buffer].type;
	struct shape2 shape = unshared_shape(c, s, r);
	const struct num *inside;
	struct role_op *o;

	add_ring_touch(c, s, buffer);
	touch_added_values(c, s, n);
	o = add_op(c, DO_STORE_RING);
	c->element_layout = &c->k->target->frag;	/* no part of the lane has columns of its own */
	inside = walk_ring(c, s, r, &shape, o);
	set_move(c, o, s, n, &shape, inside);
	add_values(c, s, n, &shape, inside, true, o);
	c->element_layout = NULL;
	if (stores_nibbles(c, n)) {
		o->u.move.value = as_nibble(c, n, buffer, val_shared(c, t, t, o->u.move.address));
		return choose_nibbles(c, s, n, &shape, o->u.move.cols, o->u.move.cols, o, e);
	}
	o->u.move.down = is_transposed(o);
	o->u.move.width = ring_width(c, s, n, r, &shape, o);
	o->u.move.value = as_tensor_type(c, n, buffer, val_shared(c, t, t, o->u.move.address));
	return OK;
}

/* ---- by the copy engine ---------------------------------------------------------------- */

/* Number of the current panel, PANEL of batch ROUND; its column of panels and its block of rows. */
static const struct num *current_panel(struct lowering *c, const struct outbox *o)
{
	const struct num *first = MUL(V(c, VAR_ROUND, NONE), N(c, o->batch));

	if (o->batch == 1)
		return o->panels == 1 ? N(c, 0) : first;
	return o->panels == o->batch ? V(c, VAR_PANEL, NONE) : ADD(first, V(c, VAR_PANEL, NONE));
}

static const struct num *panel_column(struct lowering *c, const struct outbox *o)
{
	return o->across == o->panels ? current_panel(c, o) : MOD(current_panel(c, o), N(c, o->across));
}

static const struct num *panel_row_block(struct lowering *c, const struct outbox *o)
{
	return o->across == o->panels ? N(c, 0) : DIV(current_panel(c, o), N(c, o->across));
}

/* First row of the warp in the current block. */
static const struct num *warp_row(struct lowering *c, const struct outbox *o)
{
	int warps = layout_row_warps(c->lane->layout, c->lane->warps);
	const struct num *warp = DIV(V(c, VAR_THREAD, NONE), N(c, c->k->target->warp));

	if (warps < c->lane->warps)
		warp = MOD(warp, N(c, warps));
	return MUL(ADD(MUL(panel_row_block(c, o), N(c, warps)), warp), N(c, o->rows));
}

/* Where the current panel begins in the tile along an axis of its columns. */
static const struct num *panel_along(struct lowering *c, const struct stask *s, const struct shape2 *v,
	const struct outbox *o, int axis)
{
	const struct num *at = MUL(panel_column(c, o), N(c, o->panel_cols));
	int64_t below = 1;
	int i = v->ncol - 1;

	for (; v->col[i] != axis; i--)
		below *= axis_extent(c, s, v, v->col[i]);
	if (below > 1)
		at = DIV(at, N(c, below));
	return i ? MOD(at, N(c, axis_extent(c, s, v, axis))) : at;
}

/* Finds the panel's corner in the tensor, innermost dimension first. */
static void find_corner(struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o, struct role_box *b)
{
	int rank = c->p->tensors.v[n->ref].rank;

	for (int d = rank - 1; d >= 0; d--) {
		const struct index_expr *x = &n->index[d];
		const struct num *at = tensor_index(c, s, x, v, false);

		for (int i = 0; i < x->n && s->slices > 1; i++)
			if (x->term[i].axis == s->split_axis)
				at = ADD(at, N(c, s->slice * (c->g->extents.tile[s->split_axis] / s->slices)));
		for (int i = 0; i < x->n && o->across > 1; i++)
			if (ints_hold(v->col, v->ncol, x->term[i].axis))
				at = ADD(at, panel_along(c, s, v, o, x->term[i].axis));
		if (d == rank - 1 && o->ring == NONE && layout_parts(c->lane->layout) > 1)
			at = ADD(at, part_first_col(c, s, v));
		for (int i = 0; i < x->n && o->ring == NONE; i++)
			if (x->term[i].axis == v->row[0])
				at = ADD(at, warp_row(c, o));
		b->corner[rank - 1 - d] = at;
	}
}

/* Is the box inside of the tensor in the dimensions of which it has one element? Of all indices of these the engine must be given none in
 * front of a tensor. NULL: always. */
static const struct num *is_box_inside(struct lowering *c, const struct node *n, const struct shape2 *v, const struct role_box *b)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct num *all = NULL;

	for (int d = 0; d < t->rank - 1; d++) {
		const struct num *at = b->corner[t->rank - 1 - d], *within;

		if (index_uses(&n->index[d], v->row[0]) || !index_may_leave(c, &n->index[d], t->dim[d]))
			continue;
		within = NUM2(BOTH, NUM2(GE, at, N(c, 0)), NUM2(LT, at, axis_size(c, t->dim[d])));
		all = all ? NUM2(BOTH, all, within) : within;
	}
	return all;
}

/* Stores the panels of a batch, from address `from` on. The thread that issues them also waits for them. */
static void store_batch(struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o, const struct num *from, const struct num *when)
{
	struct role_op *op = add_op(c, DO_STORE_BOXES);
	struct role_box b = { .when = when };
	const struct num *inside;

	op->u.boxes.map = tensor_map(c, s, n, v, buffer_of_node(c, s, n->arg[0]), o->rows, o->panel_cols, o->swizzle);
	op->u.boxes.ring = o->ring;
	op->u.boxes.outbox = o->staging;
	op->u.boxes.elected = o->ring == NONE;
	op->u.boxes.panels = o->batch;
	op->u.boxes.adds = n->adds;
	b.to = o->batch > 1 ? ADD(from, MUL(V(c, VAR_PANEL, NONE), N(c, o->panel_bytes))) : from;
	find_corner(c, s, n, v, o, &b);
	inside = is_box_inside(c, n, v, &b);
	if (inside)
		b.when = when ? NUM2(BOTH, when, inside) : inside;
	VEC_PUSH(c->a, &op->u.boxes.boxes, b);
	add_op(c, DO_STORES_COMMIT)->u.stores.elected = op->u.boxes.elected;
}

/* Stores a slot. The lane waits until it has been read, as it is released then. */
static void store_slot(struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o)
{
	const struct ring *r = &c->k->rings.v[o->ring];

	add_ring_touch(c, s, r->buffer);
	store_batch(c, s, n, v, o, slot_address(c, r), NULL);
	add_op(c, DO_STORES_WAIT);
	if (c->lane->warps > 1)
		add_lane_sync(c, "the slot has been read");
}

/* Writes a batch of panels of the warp's rows to the staging, swizzled as the copy engine expects it. */
static void write_panels(struct lowering *c, const struct outbox *o, int buffer, struct frag_at from)
{
	struct role_op *op;

	touch_stored(c, buffer, from);
	add_touch(c, TOUCH_WRITE, TOUCH_STAGING, o->staging, o->batches);
	op = add_op(c, DO_PUT_PANELS);
	op->u.panels.from = from;
	op->u.panels.batch = o->batch;
	op->u.panels.to = V(c, VAR_TO, NONE);
	op->u.panels.panel_bytes = o->panel_bytes;
	op->u.panels.panel_cols = o->panel_cols;
	op->u.panels.swizzle = o->swizzle;
	op->u.panels.block = panel_row_block(c, o);
	op->u.panels.column = panel_column(c, o);
	op->u.panels.type = c->g->buffers.v[buffer].type;
}

/* From registers through the staging: a batch is written once the one that was there has been read. */
static void store_panels(struct lowering *c, const struct kentry *x, const struct node *n,
	const struct shape2 *shape, const struct outbox *o, int buffer, struct frag_at from)
{
	int rounds = o->panels / o->batch;
	int64_t bytes = o->batch * o->panel_bytes;
	const struct num *to = ADD(ADD(V(c, VAR_SHARED, NONE), N(c, o->offset)), MUL(DIV(V(c, VAR_THREAD,
		NONE), N(c, c->k->target->warp)), N(c, o->batches * bytes)));
	/* no panel has columns of several blocks (layout/stores.c) */
	const struct num *group = MUL(panel_column(c, o), N(c, o->panel_cols / from.frag->layout->cols));
	const struct num *when = NULL, *share = is_in_share(c, stask_of(c, x), panel_row_block(c, o), group);
	struct role_op *each = add_op(c, rounds > 1 ? DO_EACH : DO_BLOCK), *wait;
	struct role_body *outer = enter_body(c, &each->u.region.body);

	each->u.region.var = VAR_ROUND;
	each->u.region.of = NONE;
	each->u.region.step = rounds;	/* DO_EACH: how many, not a stride */
	wait = add_op(c, DO_STORES_WAIT);
	wait->u.stores.elected = true;
	wait->u.stores.first = o->unread[0];
	wait->u.stores.other = rounds > 1 ? o->unread[1] : o->unread[0];
	add_op(c, DO_WARP_SYNC)->why = "the staging is free";
	if (o->batches > 1)
		to = ADD(to, MUL(MOD(V(c, VAR_ROUND, NONE), N(c, 2)), N(c, bytes)));
	add_let(c, VAR_TO, NONE, to);
	write_panels(c, o, buffer, from);
	add_op(c, DO_FENCE)->why = "the copy engine reads it";
	add_op(c, DO_WARP_SYNC)->why = "all of the warp's rows are there";
	add_touch(c, TOUCH_READ, TOUCH_STAGING, o->staging, o->batches);
	if (from.frag->height != from.frag->rows)
		when = NUM2(LT, warp_row(c, o), N(c, from.frag->height));
	if (share)
		when = when ? NUM2(BOTH, share, when) : share;
	store_batch(c, stask_of(c, x), n, shape, o, V(c, VAR_TO, NONE), when);
	leave_body(c, outer);
}

/* Is something of the tile inside of the tensor? NULL: of each tile. So a store that splits a value among tensors costs nothing for
 * the others. */
static const struct num *is_reached(struct lowering *c, const struct stask *s, const struct node *n, const struct shape2 *shape)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct num *all = NULL;

	for (int d = 0; d < t->rank && s->work.reached < 1; d++) {
		const struct index_expr *x = &n->index[d];
		const struct num *first, *within;
		int64_t span = 0;
		bool plain = !x->value && !c->p->axes.v[t->dim[d]].multiple && index_may_leave(c, x, t->dim[d]);

		for (int i = 0; i < x->n && plain; i++) {
			int axis = x->term[i].axis;

			plain = x->term[i].div == 1 && !x->term[i].mod && x->term[i].coef > 0 && c->p->axes.v[axis].packs == NONE;
			span += x->term[i].coef * ((shape->full_axes >> axis & 1 ? c->p->axes.v[axis].size :
				c->g->extents.tile[axis]) - 1);
		}
		if (!plain)
			continue;
		first = tensor_index(c, s, x, shape, false);
		within = NUM2(BOTH, NUM2(GE, first, N(c, -span)), NUM2(LT, first, N(c, c->p->axes.v[t->dim[d]].size)));
		all = all ? NUM2(BOTH, all, within) : within;
	}
	return all;
}

/* What is in registers. */
static enum err_code store_own(struct lowering *c, const struct kentry *x, const struct node *n, const struct shape2 *shape,
	int buffer, struct frag_at from, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct num *reached = is_reached(c, s, n, shape);
	struct role_body *outer = NULL;
	enum err_code code = OK;

	if (reached) {
		struct role_op *o = add_if(c, reached, "the tensor has some of it");

		o->u.region.section = SECTION_REACHED;
		outer = enter_body(c, &o->u.region.body);
	}
	if (x->outbox == NONE)
		code = store_fragment(c, x, n, buffer, from, e);
	else
		store_panels(c, x, n, shape, &c->k->outboxes.v[x->outbox], buffer, from);
	if (reached)
		leave_body(c, outer);
	return code;
}

enum err_code select_store(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = last_node_of(c->k, s);
	int buffer = buffer_of_node(c, s, n->arg[0]);
	const struct outbox *o = x->outbox == NONE ? NULL : &c->k->outboxes.v[x->outbox];
	struct shape2 shape;
	struct frag_at from;

	if (buffer == NONE)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' must store a value that another sTask made", s->name);
	shape = lower_stored_shape(c->k, buffer);
	if (lower_stores_share(c->k, s) && (has_ring(c, buffer) || !lower_stored_parts(c->k, s)))
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' stores a share of a sum over the blocks of a cluster: it must be "
			"on the lane that adds them up, whose threads have the value in the layout of the sum", s->name);
	if (o && o->ring != NONE) {
		store_slot(c, s, n, &shape, o);
		return OK;
	}
	if (has_ring(c, buffer))
		return store_ring(c, x, n, buffer, e);
	TRY(find_buffer_frag(c, buffer, &from.frag, e));
	from.version = register_version(c, x, buffer);
	if (c->k->shared_nodes && c->k->shared_nodes[n->arg[0]] && c->g->buffers.v[buffer].carry != NONE)
		from = sum_parts(c, x, buffer, from);
	return store_own(c, x, n, &shape, buffer, from, e);
}
