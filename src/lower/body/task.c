/* One sTask: its iteration and slots, its waits, what it does, and whom it tells; and where
 * the carries that it touches begin. */
#include "lower/body/body.h"

static void slots(struct body *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);

	for (int i = 0; i < c->k->rings.n; i++) {
		const struct ring *r = &c->k->rings.v[i];
		struct role_op *o;

		if (!stask_touches(s, r->buffer))
			continue;
		o = body_op(c, DO_SLOT);
		o->u.slot.ring = i;
		o->u.slot.life = body_seq(c, c->g->buffers.v[r->buffer].loop);
	}
}

void body_loop_axes(struct body *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	const struct num *at = ADD(V(c, VAR_FIRST, loop), V(c, VAR_I, loop));
	int64_t below = 1;

	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t tiles = extent_tiles(&c->g->extents, l->axis[i]);

		body_let(c, VAR_LO, l->axis[i], MUL(MOD(DIV(at, N(c, below)), N(c, tiles)), N(c,
			c->g->extents.tile[l->axis[i]])));
		below *= tiles;
	}
}

static bool shares_on_lane(const struct body *c, const struct stask *s)
{
	for (int i = 0; i < s->writes.n; i++)
		if (has_ring(c, s->writes.v[i]))
			return true;
	return false;
}

static enum err_code work(struct body *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);

	switch (s->kind) {
	case TASK_LOAD:
		return body_load(c, x, e);
	case TASK_MMA:
		return on_matrix(c->k, x->task) ? body_mma(c, x, e) : body_sums(c, x, e);
	case TASK_COMPUTE:
		return body_compute(c, x, e);
	case TASK_STORE:
		break;
	}
	return body_store(c, x, e);
}

/* Does a product with nothing to add to begin each life of the carry? The matrix unit can do
 * without what is there. */
static bool begins_by_product(const struct body *c, const struct buffer *b)
{
	const struct stask *first = &c->g->tasks.v[b->first];

	for (int l = first->loop; l != b->loop; l = c->p->loops.v[l].parent)
		if (c->g->trips[l].least == 0)
			return false;
	return first->kind == TASK_MMA && on_matrix(c->k, b->first) &&
		c->p->carries.v[b->carry].init == 0;
}

static enum err_code initial(struct body *c, int buffer, int iteration, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct frag_at at;
	struct role_op *o;

	if (b->carry == NONE || b->phase != c->k->phase || has_ring(c, buffer) ||
	    !in_lane(c, b->first) || begins_by_product(c, b))
		return OK;
	TRY(body_buffer(c, buffer, &at.frag, e));
	at.version = (int)floor_mod(iteration, c->plan->versions[buffer]);
	body_touch(c, TOUCH_WRITE, TOUCH_FRAG, buffer, at.version);
	o = body_op(c, DO_INIT);
	o->touches.v[0].initial = true;
	o->u.frag.at = at;
	o->u.frag.value = val_const(c, DT_F32, c->p->carries.v[b->carry].init);
	return OK;
}

/* Carries begin each life with their initial value. Those of the tile do so at once, if that
 * is all the lane works on; those of a loop before the first to touch them, or before the
 * loop inside where it stands. */
enum err_code body_initial_tile(struct body *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].loop == NONE)
			TRY(initial(c, i, 0, e));
	return OK;
}

static enum err_code initial_of_task(struct body *c, const struct kentry *x, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].first == x->task && c->g->buffers.v[i].loop == stask_of(c, x)->loop &&
		    (c->g->buffers.v[i].loop != NONE || shifts_tiles(c->lane)))
			TRY(initial(c, i, c->turn + x->at, e));
	return OK;
}

enum err_code body_initial_nested(struct body *c, int loop, int nested, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];

		if (b->loop == loop && program_loop_within(c->p, c->g->tasks.v[b->first].loop, nested))
			TRY(initial(c, i, c->around[loop], e));
	}
	return OK;
}

/* Does the lane go on only when all is done? Then whose turn is next need not wait for that. */
static bool ends_as_issued(const struct body *c, const struct kentry *x)
{
	return stask_of(c, x)->kind != TASK_STORE && !seu_of(c->k, x->task)->async;
}

/* What stands between its waits and the end. */
static enum err_code inner(struct body *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct num *seq = body_seq(c, s->loop);
	bool shares = s->kind == TASK_COMPUTE && shares_on_lane(c, s);

	if (shares || x->result_shared || x->begins.n)
		body_lane_sync(c, "its warps read and write what others of them have");
	TRY(initial_of_task(c, x, e));
	body_begins(c, x);
	if (x->issue_flag != NONE && ends_as_issued(c, x))
		body_arrive(c, x->issue_flag, seq, "whose turn is next may begin");
	TRY(work(c, x, e));
	if (shares)
		body_lane_sync(c, "all of the result is there");
	if (x->issue_flag != NONE && !ends_as_issued(c, x))
		body_arrive(c, x->issue_flag, seq, "whose turn is next may begin");
	if (x->result_shared)
		TRY(body_landing(c, x, e));
	if (x->flag != NONE && s->kind == TASK_MMA && under_way(c, x->task))
		body_advance(c, VAR_ISSUED, x->flag, N(c, 1));
	else if (x->flag != NONE && s->kind != TASK_LOAD)
		body_arrive(c, x->flag, seq, "others wait for it");
	return body_early_runs(c, x, e);
}

/* Has the lane loops that go on while the sTask waits for its next turn? Compilers would keep
 * its addresses in registers all the while. */
static bool is_around_loop(const struct body *c, const struct stask *s)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		int loop = c->g->tasks.v[c->lane->entries.v[i].task].loop;

		if (loop != s->loop && program_loop_within(c->p, loop, s->loop))
			return true;
	}
	return false;
}

/* Does the sTask find elements in shared memory by addresses, for which the lane's values leave
 * little room? */
static bool is_short_of_registers(const struct body *c, const struct stask *s)
{
	bool addresses = shares_on_lane(c, s);

	for (int i = 0; i < s->reads.n; i++)
		addresses |= has_ring(c, s->reads.v[i]);
	return addresses && s->kind == TASK_COMPUTE && 2 * c->words > c->lane->given;
}

enum err_code body_task(struct body *c, const struct kentry *x, int class,
	const struct num *iteration, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct role_op *task, *let;
	struct role_body *outer;

	c->task = x->task;
	c->iteration = iteration;
	c->landing = NULL;
	c->done = false;
	task = body_op(c, DO_TASK);
	task->u.region.iteration = s->loop != NONE || shifts_tiles(c->lane) ? iteration : NULL;
	task->u.region.of = s->loop;
	task->u.region.seq = body_seq(c, s->loop);
	outer = body_enter(c, &task->u.region.body);
	if (s->loop != NONE) {
		let = body_let(c, VAR_I, s->loop, iteration);
		body_let_more(c, let, VAR_SEQ, s->loop, ADD(V(c, VAR_BASE, s->loop), V(c, VAR_I, s->loop)));
		body_loop_axes(c, s->loop);
	}
	task = body_op(c, DO_AT);
	VEC_PUSH(c->a, &task->u.let.v, ((struct role_let){ s->loop == NONE ? VAR_T : VAR_I, s->loop,
		NULL }));
	if (is_around_loop(c, s) || is_short_of_registers(c, s))
		body_op(c, DO_OPAQUE);
	slots(c, x);
	body_flag_waits(c, x);
	if (x->waits_groups) {
		TRY(body_group_wait(c, x, &x->before, class, body_awaited_products(c, x), e));
		body_stamp(c, x, x->stamps.groups);
	}
	TRY(body_read_pins(c, x, e));
	TRY(inner(c, x, e));
	c->done = true;
	body_stamp(c, x, x->stamps.body);
	if (x->drains) {
		TRY(body_group_wait(c, x, &x->after, class, "others are told of the one before", e));
		body_stamp(c, x, x->stamps.drain);
	}
	body_leave(c, outer);
	c->task = NONE;
	return OK;
}
