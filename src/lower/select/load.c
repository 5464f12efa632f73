/* Loads: by the copy engine (boxes.c), or by the lane's threads. */
#include "lower/lower.h"
#include "lower/select/lowering.h"

enum {
	SHIFTED_WORDS = 8,		/* registers of a shifted access: its words, and its address */
	SHIFTED_MOST = 8,		/* more in flight gain nothing: the L2 bandwidth is used up */
};

/* Does the lane itself read what x loads, or an alias of its buffer? */
static bool reads_own_load(const struct lowering *c, const struct kentry *x, bool aliases)
{
	int buffer = stask_of(c, x)->writes.v[0];

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		if (aliases ? graph_holds_storage(c->g, &s->reads, buffer) : stask_reads(s, buffer))
			return true;
	}
	return false;
}

bool value_uses(const struct val *v, enum var var)
{
	if (v->num && num_uses(v->num, var))
		return true;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		if (value_uses(v->arg[i], var))
			return true;
	return false;
}

const struct val *added_value(struct lowering *c, const struct stask *s, const struct shape2 *shape, int node,
	const struct num *inside, bool walks_ring)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct val *v;
	const struct ring *from;

	if (n->op == OP_CONST)
		return val_const(c, DT_I32, n->k);
	if (n->op == OP_INDEX)
		return val_num(c, ADD(axis_first(c, s, shape, n->ref), axis_local_index(c, s, shape, n->ref)));
	from = ring_of(c, buffer_of_node(c, s, node));
	c->walks_ring = walks_ring;
	v = val_shared(c, DT_I32, DT_I32, ring_address(c, s, from, shape));
	c->walks_ring = false;
	return n->naxes ? val_guard(c, inside, v, val_const(c, DT_I32, 0)) : v;
}

void add_values(struct lowering *c, const struct stask *s, const struct node *n, const struct shape2 *shape,
	const struct num *inside, bool walks_ring, struct role_op *o)
{
	for (int d = 0; d < o->u.move.rank; d++)
		if (n->index[d].value)
			o->u.move.index[d].value = added_value(c, s, shape, index_value(&n->index[d]), inside,
				walks_ring);
}

void touch_added_values(struct lowering *c, const struct stask *s, const struct node *n)
{
	for (int i = op_arity(n->op); i < node_arity(n); i++) {
		int buffer = buffer_of_node(c, s, n->arg[i]);

		if (buffer != NONE)
			add_ring_touch(c, s, buffer);
	}
}

/* Distance in memory, in elements, from a row of the ring to the next. False: it is not constant. */
static bool row_stride(const struct role_op *o, bool by_address, int64_t *out)
{
	int64_t by;

	*out = 0;
	for (int d = 0; d < o->u.move.rank; d++) {
		const struct role_index *x = &o->u.move.index[d];

		if (!num_slope(x->at, VAR_ROW0, &by) || (x->value && value_uses(x->value, VAR_ROW0)))
			return false;
		if (d && *out && x->axis != NONE)
			return false;
		if (!d && by && by_address)
			return false;
		*out = *out * (d ? x->size : 1) + by;
	}
	return true;
}

/* If one round of the lane's threads covers complete rows, each thread stays in its column and can advance its
 * addresses by constants: by a multiple of the rows after which the swizzle repeats. .rows is 0 if that is not so. */
static struct role_stride find_stride(const struct lowering *c, const struct kentry *x,
	const struct ring *r, const struct role_op *o)
{
	int64_t threads = (int64_t)c->lane->warps * c->k->target->warp;
	int64_t across = o->u.move.cols / o->u.move.run, rows = o->u.move.elements / o->u.move.cols;
	int64_t pattern = r->swizzle ? shared_pattern_rows(&c->k->target->shared) : 1;
	int64_t pitch = r->swizzle ? r->swizzle : r->panel_cols * dtype_bits(o->u.move.type) / 8;
	struct frag slice = lower_ring_slice(stask_of(c, x), r);
	struct role_stride s = { 0 };

	if (threads % across || slice.rows != r->full_rows || slice.cols != r->full_cols || 
	    !row_stride(o, c->p->tensors.v[o->u.move.tensor].by_address, &s.from))
		return s;
	s.rows = threads / across / gcd_i64(threads / across, pattern) * pattern;
	if (rows % s.rows)
		s.rows = 0;
	s.from *= s.rows;
	s.to = s.rows * pitch;
	return s;
}

int lower_copy_registers(const struct vdevice *d)
{
	return target_of(d)->registers.step ? d->reserved_registers + SHIFTED_WORDS * SHIFTED_MOST : 0;
}

bool lower_has_boxes(const struct vdevice *d)
{
	return target_of(d)->shared.box_rank > 0;
}

/* Shifted accesses go through registers: as many are in flight as the lane has registers for. */
static int accesses_in_flight(const struct lowering *c)
{
	int given = c->k->shares_registers ? lane_usable_registers(c->lane) : lower_launched(c->k);
	int spare_words = given - c->k->plan->device->reserved_registers;

	return (int)max_i64(1, min_i64(spare_words / SHIFTED_WORDS, SHIFTED_MOST));
}

/* Unaligned rows: wide accesses that are shifted in registers, rather than single elements. */
static void try_shifted(const struct lowering *c, const struct kentry *x, const struct ring *r, struct role_op *o)
{
	o->u.move.run = lower_unaligned_width(c->k, x->task);
	if (o->u.move.run > 1)
		o->u.move.stride = find_stride(c, x, r, o);
	o->u.move.shifted = o->u.move.stride.rows;
	o->u.move.run = o->u.move.shifted ? o->u.move.run : 1;
	o->u.move.in_flight = accesses_in_flight(c);
}

/* Do meetings of all lanes order what the sTask writes to shared memory with what reads it? */
static bool meets_in_loop(const struct lowering *c, const struct kentry *x)
{
	return c->k->meetings.interval && stask_of(c, x)->loop != NONE && lower_meets_for(c->k, x->task);
}

/* Makes a complete load by threads visible and signals its flag. The lane synchronizes if it reads the slot itself, or
 * if another lane waits for a copy that this one issues next: both take all of the load to be complete. */
static void signal_thread_load(struct lowering *c, const struct kentry *x)
{
	bool copies = false;

	for (int i = 0; i < c->lane->entries.n; i++)
		copies |= is_async_load(c->k, c->lane->entries.v[i].task);
	add_op(c, DO_FENCE)->why = "engines may read it";
	if (meets_in_loop(c, x))
		return;
	if (!is_async_load(c->k, x->task) && (copies || x->flag == NONE || reads_own_load(c, x, false)))
		add_lane_sync(c, "all of the load is there");
	else if (x->flag != NONE && c->k->flags.v[x->flag].bytes && c->lane->warps > 1)
		add_lane_sync(c, "one warp signals for all");
	if (x->flag != NONE)
		add_arrive(c, x->flag, instance_number(c, stask_of(c, x)->loop), "its part of the load is there");
}

/* What the lane's threads copy for the load of entry x: the elements of its slice of ring r, as many at once as can be. The
 * halves of a load agree on it. */
static struct role_op *add_move(struct lowering *c, const struct kentry *x, const struct ring *r, enum role_do what)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = last_node_of(c->k, s);
	const struct num *inside;
	struct role_op *o = add_op(c, what);

	o->u.move.flag = NONE;
	o->u.move.run = lower_copy_width(c->k, x->task);
	c->element_layout = &c->k->target->frag;	/* no part of the lane has columns of its own */
	inside = walk_ring(c, s, r, &r->shape, o);
	set_move(c, o, s, n, &r->shape, inside);
	add_values(c, s, n, &r->shape, inside, true, o);
	c->element_layout = NULL;
	return o;
}

/* Copies without registers: the threads of a warp copy to contiguous bytes, and each finds by them which element it is to
 * copy. Where lanes meet in the loop, the lane goes on and waits for them before a meeting; elsewhere it waits at once. */
static void add_dma(struct lowering *c, const struct kentry *x, const struct ring *r, struct role_op *o)
{
	int bytes = dtype_bits(o->u.move.type) / 8;
	int64_t pitch = r->panel_cols * bytes;

	o->u.move.dma = true;
	o->u.move.run = c->k->target->dma_bytes / bytes;
	o->u.move.to = ADD(slot_address(c, r), N(c, r->first_row * pitch + r->first_col / r->panel_cols * r->panel_bytes));
	o->u.move.first_row = r->first_row;
	o->u.move.panel_cols = r->panel_cols;
	o->u.move.panel_bytes = r->panel_bytes;
	o->u.move.swizzle = r->swizzle;
	if (is_counted_load(c->k, x->task))
		return;
	add_op(c, DO_COPIES_WAIT)->why = "all of the load is there";
	signal_thread_load(c, x);
}

/* A load by the lane's threads: the plan asks for it, or the copy engine cannot bring the tile. */
static void load_elements(struct lowering *c, const struct kentry *x, const struct ring *r, const struct node *n)
{
	const struct stask *s = stask_of(c, x);
	struct role_op *o;

	if (!meets_in_loop(c, x) && reads_own_load(c, x, true))	/* its threads may still read the slot */
		add_lane_sync(c, "all are done with the slot");
	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, r->buffer, 0);	/* the first one: verify/run.c */
	touch_added_values(c, s, n);
	o = add_move(c, x, r, DO_LOAD_THREADS);
	if (lower_dma_copies(c->k, x->task)) {
		add_dma(c, x, r, o);
		return;
	}
	if (o->u.move.run * dtype_bits(o->u.move.type) >= 32)
		o->u.move.stride = find_stride(c, x, r, o);
	else
		try_shifted(c, x, r, o);
	if (x->flag == NONE || !c->k->flags.v[x->flag].copies_arrive) {
		signal_thread_load(c, x);
		return;
	}
	o->u.move.arrives = true;
	o->u.move.flag = x->flag;
	o->u.move.n = instance_number(c, s->loop);
	add_op(c, DO_WARP_SYNC)->why = "all of its threads copy";
}

/* A half of the load of entry x. All accesses of a thread are unrolled, so it may advance its addresses where one round of
 * the threads goes on by complete rows, as many as the pattern of addresses has. */
static struct role_op *add_half(struct lowering *c, const struct kentry *x, const struct ring *r, enum role_do what)
{
	struct role_op *o = add_move(c, x, r, what);
	int64_t threads = (int64_t)c->lane->warps * c->k->target->warp;

	o->u.move.stride = find_stride(c, x, r, o);
	if (o->u.move.stride.rows != threads * o->u.move.run / o->u.move.cols)
		o->u.move.stride.rows = 0;
	return o;
}

/* A load to registers: each thread keeps what it is to write to shared memory. */
static enum err_code load_words(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct frag_at to;
	struct role_op *o;

	TRY(use_registers(c, x, s->writes.v[0], TOUCH_WRITE, &to, e));
	touch_added_values(c, s, last_node_of(c->k, s));
	o = add_half(c, x, lower_loaded_ring(c->k, x->task), DO_LOAD_WORDS);
	o->u.move.staged = to;
	o->u.move.by_offset = c->k->target->loads_by_offset && !c->p->tensors.v[o->u.move.tensor].by_address &&
		tensor_elements(c->p, o->u.move.tensor) <= INT32_MAX * 8LL / dtype_bits(o->u.move.type);
	return OK;
}

/* Step i of a region is to write to shared memory what a load has left in registers; in the iteration at offset `at`. */
static bool is_put_at(const struct lowering *c, const struct kregion *v, int i, int at)
{
	const struct kstep *s = i >= 0 && i < v->steps.n ? &v->steps.v[i] : NULL;

	return s && !s->is_loop && s->at == at && lower_puts(c->k, stask_of(c, &c->lane->entries.v[s->id]));
}

/* Puts that stand one behind the other in a loop, for the same iteration: the lane's threads meet behind the last of them,
 * and before the first one unless have_read shows that their slots are free. Nothing between them reads what they write. */
struct puts {
	const struct kregion *region;
	int first, last;		/* steps of the region */
};

static struct puts puts_with(const struct lowering *c, const struct kentry *x)
{
	struct puts p = { .region = &c->lane->regions[stask_of(c, x)->loop + 1] };

	while (p.region->steps.v[p.first].is_loop || &c->lane->entries.v[p.region->steps.v[p.first].id] != x)
		p.first++;
	p.last = p.first;
	while (is_put_at(c, p.region, p.first - 1, x->at))
		p.first--;
	while (is_put_at(c, p.region, p.last + 1, x->at))
		p.last++;
	return p;
}

static bool has_alias(const struct lowering *c, int buffer)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].alias_of == buffer)
			return true;
	return c->g->buffers.v[buffer].alias_of != NONE;
}

/* Have all of the lane's threads read the slot that put x of `p` writes, before they met behind the puts of the iteration
 * before, as they do in any case? Life n of a value with V versions takes the slot of life n - V. The lane executes instance i of an sTask at
 * offset `at` in step i - at, in the order of the steps, so the reader of that life comes before that meeting if it
 * belongs to an earlier step, or to the same one and stands before the puts. */
static bool have_read(const struct lowering *c, const struct puts *p, const struct kentry *x)
{
	int buffer = stask_of(c, x)->writes.v[0], loop = stask_of(c, x)->loop, versions = c->plan->versions[buffer];

	if (loop == NONE || c->lane->replicas > 1 || has_alias(c, buffer))
		return false;
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *y = &c->lane->entries.v[i];
		int earlier = versions - 1 + y->at - x->at;	/* steps from the reader to the meeting */
		bool before = false;

		if (!stask_reads(stask_of(c, y), buffer))
			continue;
		for (int k = 0; k < p->first; k++)
			before |= !p->region->steps.v[k].is_loop && p->region->steps.v[k].id == i;
		if (stask_of(c, y)->loop != loop || is_async_product(c->k, y->task) || earlier < 0 || (earlier == 0 && !before))
			return false;
	}
	return true;
}

void find_put_meets(const struct lowering *c, const struct kentry *x, bool *before, bool *behind)
{
	struct puts p = puts_with(c, x);
	bool all = true;

	*before = *behind = false;
	if (meets_in_loop(c, x))
		return;
	for (int i = p.first; i <= p.last; i++)
		all &= have_read(c, &p, &c->lane->entries.v[p.region->steps.v[i].id]);
	*before = !all && &c->lane->entries.v[p.region->steps.v[p.first].id] == x;
	*behind = &c->lane->entries.v[p.region->steps.v[p.last].id] == x;
}

enum err_code select_put(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	int buffer = s->writes.v[0], staged = lower_staged_in(c->k, buffer);
	const struct kentry *load = lower_entry_of(c->lane, c->g->buffers.v[staged].first);
	struct frag_at from;
	struct role_op *o;

	TRY(use_registers(c, x, staged, TOUCH_READ, &from, e));
	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, buffer, 0);
	o = add_half(c, load, ring_of(c, buffer), DO_PUT_WORDS);
	o->u.move.staged = from;
	add_op(c, DO_FENCE)->why = "engines may read it";
	return OK;
}

/* The copy engine fills with zeros behind the end of a tensor alone. So where the length of the loop ends within the tile,
 * the threads of the lane copy, and one of its warps arrives at the flag instead of the engine. */
static void load_to_length(struct lowering *c, const struct kentry *x, const struct ring *r, const struct node *n)
{
	const struct stask *s = stask_of(c, x);
	const struct num *next = ADD(ADD(V(c, VAR_FIRST, s->loop), V(c, VAR_I, s->loop)), N(c, 1));
	const struct num *tile = N(c, c->g->extents.tile[c->p->loops.v[s->loop].axis[0]]);
	struct role_op *o = add_if(c, NUM2(GT, MUL(next, tile), V(c, VAR_END, s->loop)), "the length ends here");
	struct role_body *outer;

	o->u.region.section = SECTION_LENGTH;
	outer = enter_body(c, &o->u.region.body);
	c->keeps_conditions = true;
	add_op(c, DO_OPAQUE);		/* else compilers keep its addresses in registers from tile to tile */
	load_elements(c, x, r, n);
	c->keeps_conditions = false;
	enter_body(c, &o->u.region.other);
	select_boxes(c, x, r, n);
	leave_body(c, outer);
}

enum err_code select_load(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = last_node_of(c->k, s);
	const struct ring *r;

	if (c->g->buffers.v[s->writes.v[0]].staged)
		return load_words(c, x, e);
	r = ring_of(c, s->writes.v[0]);
	if (x->flag == NONE && is_async_load(c->k, x->task))
		return err_set(e, ERR_ILLEGAL, s->loc, "nobody waits for '%s'", s->name);
	if (r->ends_by_threads)
		load_to_length(c, x, r, n);
	else if (r->engine)
		select_boxes(c, x, r, n);
	else
		load_elements(c, x, r, n);
	return OK;
}
