/* Selection: the operations of each sTask, instead of WORK. Which they are follows from what the sTask is and where
 * its values lie; registers are those of the versions that the current iteration uses. */
#include "lower/pass/pass.h"
#include "role/operands.h"

#include <string.h>

bool writes_ring(const struct lowering *c, const struct stask *s)
{
	for (int i = 0; i < s->writes.n; i++)
		if (has_ring(c, s->writes.v[i]))
			return true;
	return false;
}

static enum err_code select_operations(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);

	switch (s->kind) {
	case TASK_LOAD:
		return select_load(c, x, e);
	case TASK_MMA:
		return is_async_product(c->k, x->task) ?
			select_matrix_product(c, x, e) : select_thread_product(c, x, e);
	case TASK_COMPUTE:
		if (lower_puts(c->k, s))
			return select_put(c, x, e);
		return fetches_steps(c, s) ? select_fetch(c, x, e) : makes_steps(c, s) ? select_made(c, x, e) :
			select_compute(c, x, e);
	case TASK_STORE:
		break;
	}
	return select_store(c, x, e);
}

/* Do threads read, in the body's operations from that one on, a slot that the copy engine fills, and are to fence? Asynchronous
 * products and stores by the copy engine read through the async proxy, and need no fence; a copy by the engine whose coordinates
 * are values has one inside (emit/print_boxes.c). */
static bool reads_filled_slot(const struct lowering *c, const struct role_body *b, int from)
{
	for (int i = from; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		for (int k = 0; k < o->touches.n; k++)
			if (reads_by_threads(o, &o->touches.v[k]) && readers_fence(c, o->touches.v[k].of))
				return true;
		if (role_is_region(o->what) && (reads_filled_slot(c, &o->u.region.body, 0) ||
		    reads_filled_slot(c, &o->u.region.other, 0)))
			return true;
	}
	return false;
}

/* May another lane, or the lane's own copies, act on what the lane has done before the operation? */
static bool releases(const struct role_op *o)
{
	return o->what == DO_ARRIVE || o->what == DO_RELEASE || o->what == DO_LANE_SYNC || o->what == DO_BLOCK_SYNC ||
		o->what == DO_LOAD_BOXES ||
		o->what == DO_LOAD_THREADS;
}

static bool release_in(const struct role_body *b, int from)
{
	for (int i = from; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (releases(o) || (role_is_region(o->what) && (release_in(&o->u.region.body, 0) ||
		    release_in(&o->u.region.other, 0))))
			return true;
	}
	return false;
}

/* The copy engine may fill a slot again once the sTask is signaled. Unless the lane that has it do so fences (fences.c), each
 * thread fences behind what it reads by ordinary loads. If the lane has signaled nothing since the fence of an earlier sTask,
 * that one is deleted: this one covers its reads, too. */
static bool fence_reads(struct lowering *c, int from)
{
	struct role_body *b = c->body;
	struct role_op *fence;

	if (release_in(b, from))
		c->fence_body = NULL;
	if (!reads_filled_slot(c, b, from))
		return false;
	if (c->fence_body)
		role_remove_op(c->fence_body, c->fence);
	c->fence_body = NULL;
	if (b->v.v[b->v.n - 1]->what == DO_FENCE)
		return true;
	fence = add_op(c, DO_FENCE);
	fence->why = "the copy engine may fill again what has been read";
	c->fence = fence;
	c->fence_body = b;
	return true;
}

/* The same for reads that read_ahead has moved: the fence stands right behind them. */
static void fence_moved(struct lowering *c, int at, int moved)
{
	struct role_body *b = c->body, reads = { 0 };
	struct role_op *fence;

	for (int i = at; i < at + moved; i++)
		VEC_PUSH(c->a, &reads.v, b->v.v[i]);
	if (!reads_filled_slot(c, &reads, 0))
		return;
	fence = add_op(c, DO_FENCE);
	fence->why = "the copy engine may fill again what has been read";
	memmove(&b->v.v[at + moved + 1], &b->v.v[at + moved], (size_t)(b->v.n - 1 - at - moved) * sizeof(fence));
	b->v.v[at + moved] = fence;
	c->fence_body = NULL;
}

/* Does the lane itself execute the sTask to its end? Then issue order asks only that it has begun, and is signaled before
 * its operations; else, of a store or of asynchronous work, once they are issued. */
static bool is_synchronous(const struct lowering *c, const struct kentry *x)
{
	return stask_of(c, x)->kind != TASK_STORE && !seu_of(c->k, x->task)->async;
}

/* Is the value made of what is in shared memory, and of fragments from number `from` on of the body's operations? Not if the
 * text may branch, as ptxas must not see branches join while a product is under way. */
static bool needs_no_registers(const struct role_body *b, int from, int end, const struct val *v)
{
	bool made_here = false;

	if (v->kind == VAL_FLIPPED || v->kind == VAL_GUARD || v->kind == VAL_NODE)
		return false;
	for (int i = from; i < end && v->kind == VAL_FRAG; i++)
		made_here |= b->v.v[i]->what == DO_FRAGMENT && b->v.v[i]->u.frag.at.frag == v->frag.frag;
	if (v->kind == VAL_FRAG && !made_here)
		return false;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		if (!needs_no_registers(b, from, end, v->arg[i]))
			return false;
	return true;
}

/* Does the operation make elements of rows, or one, of shared memory alone, or bring words of it to registers? Operations from
 * `from` to `end` do, too, and stand before it. */
static bool is_read_ahead(const struct role_body *b, int from, int end, const struct role_op *o)
{
	const struct frag *f = o->what == DO_MAP ? o->u.map.over : NULL;

	if ((o->what != DO_FETCH || !num_is(o->u.fetch.inside, 1)) && (!f || (f->kind != FRAG_ROW && f->kind != FRAG_SCALAR)))
		return false;
	if (!o->touches.n)
		return false;
	for (int i = 0; i < o->touches.n; i++)
		if (o->touches.v[i].what != TOUCH_SLOT || o->touches.v[i].how != TOUCH_READ)
			return false;
	for (int i = 0; f && i < o->u.map.steps.n; i++)
		if (!needs_no_registers(b, from, end, o->u.map.steps.v[i].value))
			return false;
	return true;
}

static bool makes_fragment(const struct role_op *o, const struct frag *f)
{
	bool makes = o->what == DO_FETCH ? o->u.fetch.to.frag == f : o->u.map.to.frag == f;

	for (int i = 0; o->what == DO_MAP && i < o->u.map.steps.n; i++)
		makes |= o->u.map.steps.v[i].to == f;
	return makes;
}

static void move_op(struct role_body *b, int from, int to)
{
	struct role_op *o = b->v.v[from];

	memmove(&b->v.v[to + 1], &b->v.v[to], (size_t)(from - to) * sizeof(o));
	b->v.v[to] = o;
}

/* Where the sTask waits for products of its own lane, from the operation before `begin` on; NONE: it does not, or its warps
 * meet behind that. */
static int find_groups_wait(const struct role_body *b, int begin)
{
	for (int i = begin - 1; i >= 0; i--) {
		enum role_do what = b->v.v[i]->what;

		if (what == DO_GROUPS_WAIT)
			return i;
		if (what != DO_PIN && what != DO_WARP_SYNC && what != DO_RELEASE && what != DO_ARRIVE)
			break;
	}
	return NONE;
}

/* Moves reads of an sTask ahead of its wait for products of the lane: what it reads of each row, such as a scale, and
 * what it fetches to registers. Then neither the reads nor the fence behind them are between a product and its use.
 * Returns how many operations were moved, and where. */
static int read_ahead(struct lowering *c, int begin, int *at)
{
	struct role_body *b = c->body;
	int moved = 0;

	*at = find_groups_wait(b, begin);
	for (int i = begin; *at != NONE && i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (o->what != DO_FRAGMENT && o->what != DO_MAP && o->what != DO_FETCH)
			break;
		if (!is_read_ahead(b, *at, *at + moved, o))
			continue;
		for (int k = begin + moved; k < i; k++)
			if (b->v.v[k]->what == DO_FRAGMENT && makes_fragment(o, b->v.v[k]->u.frag.at.frag))
				move_op(b, k, *at + moved++);
		move_op(b, i, *at + moved++);
	}
	return moved;
}

static enum err_code select_task(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct num *seq = instance_number(c, s->loop);
	bool shares = s->kind == TASK_COMPUTE && writes_ring(c, s);
	bool meets_before = shares, meets_behind = shares;
	int begin = c->body->v.n, moved, at;

	c->stored_result = NULL;
	memset(c->summed, 0, (size_t)c->g->buffers.n * sizeof(*c->summed));
	if (shares && lower_puts(c->k, s))
		find_put_meets(c, x, &meets_before, &meets_behind);
	if (meets_before || x->result_shared || x->carry_starts.n)
		add_lane_sync(c, "its warps read and write what others of them have");
	TRY(add_initial_of_task(c, x, e));
	add_carry_starts(c, x);
	if (x->issue_flag != NONE && is_synchronous(c, x))
		add_arrive(c, x->issue_flag, seq, "the next in issue order may start");
	TRY(select_operations(c, x, e));
	moved = read_ahead(c, begin, &at);
	if (!fence_reads(c, begin + moved) && moved)
		fence_moved(c, at, moved);
	begin = c->body->v.n;
	if (meets_behind)
		add_lane_sync(c, "all of the result is there");
	if (x->issue_flag != NONE && !is_synchronous(c, x))
		add_arrive(c, x->issue_flag, seq, "the next in issue order may start");
	if (x->result_shared)
		TRY(store_result(c, x, e));
	if (release_in(c->body, begin))
		c->fence_body = NULL;
	return OK;
}

static enum err_code select_op(struct lowering *c, struct role_op *o, struct err *e)
{
	bool inside = o->what == DO_TASK || o->what == DO_BLOCK;	/* it is executed once, behind what precedes it */

	if (o->what == DO_WORK)
		return select_task(c, c->point->entry, e);
	if (releases(o) || (role_is_region(o->what) && !inside))
		c->fence_body = NULL;
	append_op(c, o);
	if (o->what == DO_TASK) {
		c->task = o->task;
		c->point = point_new(c, o->point);
		o->point = c->point;
	}
	TRY(rewrite_inside(c, o, select_op, e));
	if (role_is_region(o->what) && !inside)
		c->fence_body = NULL;
	return OK;
}

enum err_code pass_select(struct lowering *c, struct err *e)
{
	enum err_code code;

	c->task = NONE;
	c->fence_body = NULL;
	code = rewrite_body(c, &c->role->body, select_op, e);
	if (!code)			/* else it says which sTask it was */
		c->task = NONE;
	return code;
}
