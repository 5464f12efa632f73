/* Carries in shared memory, and products whose results go there, so that several lanes can use them. The lane
 * that first touches a life of such a carry writes its initial value. */
#include "lower/pass/pass.h"

enum { PATH_MOST = LOOP_DEPTH_MAX };

/* Clears variable v if loop l, inside region `around`, has an iteration in the current iteration of that region: the
 * carry has been touched there, so a later user is not the first. */
static void clear_if_loop_runs(struct lowering *c, int l, int around, enum var v, int of)
{
	int path[PATH_MOST], n = 0;
	struct role_body *outer = c->body;

	for (int i = l; i != around && n < LEN(path); i = c->p->loops.v[i].parent)
		path[n++] = i;
	if (!n)
		add_set(c, v, of, N(c, 0));
	for (int i = n - 1; i >= 0; i--) {
		enter_body(c, &add_block(c, NULL)->u.region.body);
		add_trips(c, path[i]);
		if (!i) {
			enter_body(c, &add_if(c, NUM2(GT, V(c, VAR_TRIPS, l), N(c, 0)), NULL)->u.region.body);
			add_set(c, v, of, N(c, 0));
			break;
		}
		enter_loop(c, VAR_I, path[i], N(c, 0), V(c, VAR_TRIPS, path[i]));
		add_loop_axes(c, path[i]);
	}
	leave_body(c, outer);
}

/* May an sTask in this loop first touch a life of the carry in a later iteration of the loops around it, because the
 * loops between had no iteration before? Then no iteration number tells which touch is the first. */
static bool may_start_late(const struct lowering *c, int loop, int life)
{
	for (int l = loop; l != life && c->p->loops.v[l].parent != life; l = c->p->loops.v[l].parent)
		if (c->g->trips[l].least == 0)
			return true;
	return false;
}

/* Keeps the variable BARE of a carry, which sTasks that may start late test: it is 1 while nothing has touched the
 * life. It is set where the life begins, and cleared where a loop has run that touches the carry: before this loop
 * (it begins), or after it (it ends). */
static void track_late_start(struct lowering *c, int loop, bool ends, int mine, const struct carry_start *b)
{
	int life = c->g->buffers.v[b->buffer].loop, parent = c->p->loops.v[loop].parent;
	int n = ends ? b->loops_behind.n : b->loops_before.n;

	if (!program_loop_within(c->p, mine, loop) || !may_start_late(c, mine, life))
		return;
	if (!ends && parent == life)
		add_let(c, VAR_BARE, b->number, N(c, 1))->u.let.changes = true;
	for (int i = 0; i < n; i++) {
		int other = ends ? b->loops_behind.v[i] : b->loops_before.v[i];

		if (common_loop(c->p, mine, other) == parent)
			clear_if_loop_runs(c, other, parent, VAR_BARE, b->number);
	}
}

void add_late_carry_starts(struct lowering *c, int loop, bool ends)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *x = &c->lane->entries.v[i];

		for (int k = 0; k < x->carry_starts.n; k++)
			track_late_start(c, loop, ends, stask_of(c, x)->loop, &x->carry_starts.v[k]);
	}
}

/* Sets the variable FRESH to whether no sTask has touched the life of the carry yet. */
static void set_fresh(struct lowering *c, int mine, const struct carry_start *b)
{
	int life = c->g->buffers.v[b->buffer].loop;
	bool late = may_start_late(c, mine, life);
	const struct num *first = late ? V(c, VAR_BARE, b->number) : N(c, 1);

	for (int l = mine; l != life && !late; l = c->p->loops.v[l].parent)
		first = NUM2(BOTH, first, NUM2(EQ, V(c, VAR_I, l), N(c, 0)));
	add_let(c, VAR_FRESH, NONE, first)->u.let.changes = true;
	for (int i = 0; i < b->loops_before.n; i++) {
		int around = common_loop(c->p, mine, b->loops_before.v[i]);

		if (!late || around == mine)
			clear_if_loop_runs(c, b->loops_before.v[i], around, VAR_FRESH, NONE);
	}
	if (late)
		add_set(c, VAR_BARE, b->number, N(c, 0));
}

/* The first sTask to touch a life of the carry gives it its initial value. */
static void add_carry_start(struct lowering *c, const struct kentry *x, const struct carry_start *b)
{
	const struct buffer *buf = &c->g->buffers.v[b->buffer];
	const struct ring *r = ring_of(c, b->buffer);
	const struct num *at = V(c, VAR_EACH, NONE), *cols = N(c, r->full_cols);
	struct role_body *outer;
	struct role_op *o;

	outer = enter_body(c, &add_block(c, arena_strf(c->a, "%s begins", buf->name))->u.region.body);
	set_fresh(c, stask_of(c, x)->loop, b);
	enter_body(c, &add_if(c, V(c, VAR_FRESH, NONE), NULL)->u.region.body);
	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, b->buffer, 0);
	o = add_op(c, DO_FILL);
	o->touches.v[0].initial = true;
	o->u.fill.ring = c->k->ring_of[b->buffer];
	o->u.fill.elements = r->full_rows * r->full_cols;
	o->u.fill.address = ring_element_address(c, r, DIV(at, cols), MOD(at, cols));
	o->u.fill.value = val_const(c, dtype_is_float(buf->type) ? DT_F32 : DT_I32, c->p->carries.v[buf->carry].init);
	o->u.fill.type = buf->type;
	add_op(c, DO_FENCE)->why = "engines may read the carry";
	add_lane_sync(c, "all of the initial value is there");
	leave_body(c, outer);
}

void add_carry_starts(struct lowering *c, const struct kentry *x)
{
	for (int i = 0; i < x->carry_starts.n; i++)
		add_carry_start(c, x, &x->carry_starts.v[i]);
}

/* Writes `value`, for each element of fragment `over` with the shape of `node`, to the buffer's ring. */
static void store_elements(struct lowering *c, const struct kentry *x, int node, int buffer,
	const struct frag *over, const struct val *value)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = &c->k->node_shape[node];

	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, buffer, 0);
	add_put(c, over, owner_condition(c, s, shape, over), ring_address(c, s, ring_of(c, buffer), shape), value,
		c->g->buffers.v[buffer].type);
}

/* Does one of the task's nodes [from, to) read the carry, or, if `sets`, write it? */
static bool is_touched(const struct lowering *c, const struct task *t, int carry, int from, int to, bool sets)
{
	for (int i = from; i < to; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		if ((n->op == OP_GET || (sets && n->op == OP_SET)) && n->ref == carry)
			return true;
	}
	return false;
}

/* A thread may write elements that another one reads, so reads and writes are separated by a barrier. */
enum err_code set_shared_carry(struct lowering *c, const struct kentry *x, int node, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[node];
	struct frag *over = ARENA_NEW(c->a, struct frag);
	const struct val *value;
	int at = 0;

	while (t->nodes.v[at] != node)
		at++;
	TRY(lay_out_node(c, s, node, over, e));
	if (is_touched(c, t, n->ref, 0, at, true))
		add_lane_sync(c, "all have read what is set");
	TRY(operand_value(c, x, node, n->arg[0], &value, e));
	store_elements(c, x, node, buffer_of_carry(c, s, n->ref), over, value);
	add_op(c, DO_FENCE)->why = "engines may read the carry";
	if (is_touched(c, t, n->ref, at + 1, t->nodes.n, false))
		add_lane_sync(c, "all of the new value is there");
	return OK;
}

enum err_code stored_result_frag(struct lowering *c, const struct kentry *x, const struct frag **f, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct frag *acc = ARENA_NEW(c->a, struct frag);

	*f = c->stored_result;
	if (*f)
		return OK;
	TRY(lay_out_node(c, s, last_node(c->g, s), acc, e));
	acc->name = c_identifier(c, "acc_", c->g->buffers.v[product_buffer(c, s)].name);
	*f = c->stored_result = acc;
	return OK;
}

enum err_code load_accumulator(struct lowering *c, const struct kentry *x, int node, int buffer,
	const struct frag *acc, struct err *e)
{
	const struct val *value;

	add_op(c, DO_FRAGMENT)->u.frag.at.frag = acc;
	if (c->p->nodes.v[node].ref == NONE)
		return OK;
	TRY(ring_value_of_node(c, x, ring_of(c, buffer), node, &value, e));
	add_map(c, (struct frag_at){ acc, 0 }, node, value);
	add_lane_sync(c, "all have read what the product adds to");
	return OK;
}

enum err_code store_result(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct frag *acc;

	TRY(stored_result_frag(c, x, &acc, e));
	if (is_async_product(c->k, x->task)) {
		add_groups_wait_op(c, 0, "its result goes to shared memory");
		add_pin(c, acc, 0, frag_block_words(acc));
		TRY(add_pins(c, c->point, e));
	}
	store_elements(c, x, last_node(c->g, s), product_buffer(c, s), acc, val_frag(c, (struct frag_at){ acc, 0 }));
	add_op(c, DO_FENCE)->why = "engines may read the result";
	add_lane_sync(c, "all of the result is there");
	return OK;
}
