/* What an sTask must do, and how a lane must begin. */
#include "verify/names_state.h"

static const struct stask *stask_of(const struct names *c, const struct role_op *task)
{
	return &c->set->plan->graph->tasks.v[task->task];
}

/* sTasks ----------------------------------------------------------------------- */

void names_begin_task(struct names *c)
{
	c->task_began = c->now;
	c->product = c->fenced = 0;
	c->sum = NULL;
	c->multiplied = 0;
	c->stores = false;
	c->scratch.n = 0;
	c->scratch_read = true;		/* perhaps by the sTask before */
	c->wrote.n = 0;
	c->depth = 0;
}

static bool is_store(enum role_do what)
{
	return what == DO_STORE_BOXES || what == DO_STORE_THREADS || what == DO_STORE_RING;
}

static bool has_written(const struct names *c, int buffer)
{
	for (int i = 0; i < c->wrote.n; i++)
		if (c->wrote.v[i] == buffer)
			return true;
	return false;
}

/* An sTask may read what the graph says, or what it has written itself. */
static void check_read(struct names *c, const struct role_op *o, int buffer)
{
	const struct graph *g = c->set->plan->graph;

	if (o->task != NONE && !stask_reads(&g->tasks.v[o->task], buffer) && !has_written(c, buffer))
		names_fail(c, "reads '%s', which nothing has written", g->buffers.v[buffer].name);
}

void names_note_work(struct names *c, const struct role_op *o)
{
	if (o->touches.n && !role_may_touch(o->what))
		names_fail(c, "touches a buffer, which it cannot");
	if (c->depth)
		return;
	c->stores |= is_store(o->what);
	for (int i = 0; i < o->touches.n; i++) {
		const struct touch *t = &o->touches.v[i];

		if (t->how == TOUCH_READ && t->what == TOUCH_FRAG)
			check_read(c, o, t->of);
		if (t->how == TOUCH_WRITE && !t->initial && t->what != TOUCH_STAGING)
			VEC_PUSH(c->a, &c->wrote, t->of);
	}
}

void names_end_task(struct names *c, const struct role_op *task)
{
	const struct stask *s = stask_of(c, task);

	c->op = task;
	if (s->kind == TASK_STORE && !c->stores)
		names_fail(c, "does not store");
	if (s->kind == TASK_MMA && !c->product)
		names_fail(c, "does not multiply");
	if (c->sum && c->multiplied < c->sum->cols)
		names_fail(c, "leaves out columns of '%s'", c->sum->name);
	for (int i = 0; i < s->writes.n; i++)
		if (!has_written(c, s->writes.v[i]))
			names_fail(c, "does not write '%s'", c->set->plan->graph->buffers.v[s->writes.v[i]].name);
}

/* lanes ------------------------------------------------------------------------ */

/* All warps of a group change their registers together, before some of them end. */
static bool may_precede(enum role_do what)
{
	return what == DO_REGISTERS || what == DO_WATCH || what == DO_WATCH_ENDS ||
		what == DO_STAMPS_BEGIN || what == DO_LANE;
}

void names_lane_head(struct names *c)
{
	const struct role_body *b = &c->role->body;
	const struct target *t = c->r->target;
	bool asks = t->registers.step && c->r->threads > t->group * t->warp;
	bool leaves = c->role->warps % t->group;
	int asked = 0, left = 0, n = 0;

	for (; n < b->v.n && (may_precede(b->v.v[n]->what) || b->v.v[n]->what == DO_LEAVE); n++) {
		c->op = b->v.v[n];
		if (c->op->what == DO_REGISTERS && left)
			names_fail(c, "comes when some have left");
		asked += c->op->what == DO_REGISTERS;
		left += c->op->what == DO_LEAVE;
	}
	c->op = NULL;
	if (asked != asks)
		names_fail(c, "has registers set %d times, not %d", asked, asks);
	if (leaves && !left)
		names_fail(c, "is reached by warps that are not the lane's");
}
