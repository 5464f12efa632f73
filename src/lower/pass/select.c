/* Selection: the operations of each sTask, instead of WORK. Which they are follows from what the sTask is and where
 * its values lie; registers are those of the versions that the current iteration uses. */
#include "lower/pass/pass.h"

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
		return select_compute(c, x, e);
	case TASK_STORE:
		break;
	}
	return select_store(c, x, e);
}

/* Does the copy engine fill the buffer's slots, or those of a buffer that it is an alias of? */
static bool is_filled_by_engine(const struct lowering *c, int buffer)
{
	for (int i = 0; i < c->k->rings.n; i++)
		if (c->k->rings.v[i].engine && c->k->rings.v[i].offset == ring_of(c, buffer)->offset)
			return true;
	return false;
}

/* Do threads read, in the body's operations from that one on, a slot that the copy engine fills? Asynchronous products
 * and stores by the copy engine read as engines; copies by indices that are values have a fence of their own. */
static bool reads_filled_slot(const struct lowering *c, const struct role_body *b, int from)
{
	for (int i = from; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		bool engine = o->what == DO_STORE_BOXES || o->what == DO_LOAD_BOXES || (o->what == DO_PRODUCT && o->u.product.form.by->async);

		for (int k = 0; k < o->touches.n && !engine; k++)
			if (o->touches.v[k].how == TOUCH_READ && o->touches.v[k].what == TOUCH_SLOT &&
			    is_filled_by_engine(c, o->touches.v[k].of))
				return true;
		if (role_is_region(o->what) && (reads_filled_slot(c, &o->u.region.body, 0) ||
		    reads_filled_slot(c, &o->u.region.other, 0)))
			return true;
	}
	return false;
}

/* The copy engine may fill a slot again once the sTask is signaled. Only a fence by each thread orders what it reads by
 * ordinary loads before what the engine writes: when a thread signals, its loads may still be under way (PTX ISA,
 * "Async proxy"). */
static void fence_reads(struct lowering *c, int from)
{
	const struct role_body *b = c->body;

	if (reads_filled_slot(c, b, from) && b->v.v[b->v.n - 1]->what != DO_FENCE)
		add_op(c, DO_FENCE)->why = "the copy engine may fill again what has been read";
}

/* Is the sTask complete when the lane goes on? Then the next sTask in issue order need not wait for that. */
static bool completes_at_issue(const struct lowering *c, const struct kentry *x)
{
	return stask_of(c, x)->kind != TASK_STORE && !seu_of(c->k, x->task)->async;
}

static enum err_code select_task(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct num *seq = instance_number(c, s->loop);
	bool shares = s->kind == TASK_COMPUTE && writes_ring(c, s);
	int begin;

	c->stored_result = NULL;
	if (shares || x->result_shared || x->carry_starts.n)
		add_lane_sync(c, "its warps read and write what others of them have");
	TRY(add_initial_of_task(c, x, e));
	add_carry_starts(c, x);
	if (x->issue_flag != NONE && completes_at_issue(c, x))
		add_arrive(c, x->issue_flag, seq, "the next in issue order may start");
	begin = c->body->v.n;
	TRY(select_operations(c, x, e));
	fence_reads(c, begin);
	if (shares)
		add_lane_sync(c, "all of the result is there");
	if (x->issue_flag != NONE && !completes_at_issue(c, x))
		add_arrive(c, x->issue_flag, seq, "the next in issue order may start");
	return x->result_shared ? store_result(c, x, e) : OK;
}

static enum err_code select_op(struct lowering *c, struct role_op *o, struct err *e)
{
	if (o->what == DO_WORK)
		return select_task(c, c->point->entry, e);
	append_op(c, o);
	if (o->what == DO_TASK) {
		c->task = o->task;
		c->point = point_new(c, o->point);
		o->point = c->point;
	}
	return rewrite_inside(c, o, select_op, e);
}

enum err_code pass_select(struct lowering *c, struct err *e)
{
	enum err_code code;

	c->task = NONE;
	code = rewrite_body(c, &c->role->body, select_op, e);
	if (!code)			/* else it says which sTask it was */
		c->task = NONE;
	return code;
}
