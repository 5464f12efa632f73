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

	c->stored_result = NULL;
	if (shares || x->result_shared || x->carry_starts.n)
		add_lane_sync(c, "its warps read and write what others of them have");
	TRY(add_initial_of_task(c, x, e));
	add_carry_starts(c, x);
	if (x->issue_flag != NONE && completes_at_issue(c, x))
		add_arrive(c, x->issue_flag, seq, "the next in issue order may start");
	TRY(select_operations(c, x, e));
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
