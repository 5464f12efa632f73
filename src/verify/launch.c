#include "verify/launch.h"

#include "plan/phases.h"

struct check {
	const struct role_program *r;
	const struct plan *plan;
	int phase;
	struct err *e;
};

/* What a lane does before it waits for what is in front of the kernel. */
static enum err_code check_before_wait(const struct check *c, const struct role_op *o)
{
	const char *what = c->phase ? "waits for the phase before" : "waits for the kernels in front";
	const struct stask *s = o->task != NONE ? &c->plan->graph->tasks.v[o->task] : NULL;
	bool begins = o->what == DO_REGISTERS || o->what == DO_LEAVE || o->what == DO_LANE ||
		role_op_info[o->what].group == OPS_STAMP;

	if (s && role_op_info[o->what].group == OPS_MOVE && (s->kind == TASK_STORE || stask_loads_late(c->plan, o->task)))
		return err_set(c->e, ERR_ILLEGAL, s->loc, "the kernel is wrong: '%s' accesses a tensor before its lane %s",
			s->name, what);
	if (!begins && phase_is_bound_late(c->plan, c->phase))
		return err_set(c->e, ERR_ILLEGAL, c->plan->launch_loc, "the kernel is wrong: a lane reads lengths or indices, and %s only "
			"behind that", what);
	if (o->what == DO_TILES && o->u.region.asks && !plan_waits_first(c->plan))
		return err_set(c->e, ERR_ILLEGAL, c->plan->launch_loc, "the kernel is wrong: a lane takes tiles by a counter, and %s only "
			"behind that", what);
	return OK;
}

/* The operations of a lane in order. What a loop or a branch awaits counts in it alone. */
static enum err_code check_phase_waits(const struct check *c, const struct role_body *b, bool *waited)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		bool inside = *waited, other = *waited;

		*waited |= o->what == DO_PHASE_WAIT;
		if (!*waited)
			TRY(check_before_wait(c, o));
		if (!role_is_region(o->what))
			continue;
		TRY(check_phase_waits(c, &o->u.region.body, &inside));
		TRY(check_phase_waits(c, &o->u.region.other, &other));
		if (o->what == DO_BLOCK || o->what == DO_TASK || o->what == DO_EACH)
			*waited = inside;
	}
	return OK;
}

/* Does something in the body wait that is in each tile? Waits of sTasks in loops may be in none. */
static bool waits_each_tile(const struct check *c, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_PHASE_WAIT && (o->task == NONE || c->plan->graph->tasks.v[o->task].loop == NONE))
			return true;
		if (role_is_region(o->what) && (waits_each_tile(c, &o->u.region.body) || waits_each_tile(c, &o->u.region.other)))
			return true;
	}
	return false;
}

/* No access to what kernels or phases in front may still use before a wait for their end; and as this kernel does
 * not end before it has waited, its end is also that of all in front of it, for those behind it. */
enum err_code launch_check(const struct role_program *r, const struct plan *p, int phase, struct err *e)
{
	const struct check x = { r, p, phase, e }, *c = &x;
	bool waits = c->r->waits_first;

	for (int i = 0; i < c->r->roles.n; i++) {
		bool waited = c->r->waits_first;

		TRY(check_phase_waits(c, &c->r->roles.v[i].body, &waited));
		waits |= waits_each_tile(c, &c->r->roles.v[i].body);
	}
	if (!waits)
		return err_set(c->e, ERR_ILLEGAL, c->plan->launch_loc, "the kernel is wrong: it may end before what is in front of it");
	return OK;
}
