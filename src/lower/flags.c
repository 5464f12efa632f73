/* Which sTasks others see by a flag, and whose instance says whose turn it is. */
#include "lower/passes.h"

static int add_flag(struct kernel *k, int task, bool issued)
{
	int *slot = issued ? &k->issue_flag_of[task] : &k->flag_of[task];
	struct flag f = { .task = task, .issued = issued, .depth = 1 };

	if (*slot != NONE)
		return *slot;
	if (is_load(k, task) && !issued) {
		const struct stask *s = stask_at(k, task);
		const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];

		f.arrivals = r->engine ? 1 : lane_warps(k->plan, lane_of(k, task));
		f.bytes = r->engine ? r->boxes * r->box_bytes : 0;
		f.depth = r->versions;
	} else {
		f.arrivals = lane_warps(k->plan, lane_of(k, task));
	}
	*slot = k->flags.n;
	VEC_PUSH(&k->arena, &k->flags, f);
	return *slot;
}

/* Who waits for a run does so in each iteration, and the run after the ones it may be
 * behind waits for it. */
static void add_run_flag(struct kernel *k, int task, int depth)
{
	struct flag f = { .task = task, .runs = true, .depth = depth > 1 ? depth : 1,
		.arrivals = lane_warps(k->plan, lane_of(k, task)) };

	if (k->run_flag_of[task] == NONE) {
		k->run_flag_of[task] = k->flags.n;
		VEC_PUSH(&k->arena, &k->flags, f);
	}
	if (k->flags.v[k->run_flag_of[task]].depth < depth)
		k->flags.v[k->run_flag_of[task]].depth = depth;
}

/* The sTask that says that a copy of the lane has seen all flags of its tile: the first
 * that is on its own behind those that wait for any. */
static int turn_task(struct kernel *k, int lane)
{
	const struct plan *p = k->plan;
	struct order_step *steps;
	int least, most, after = NONE;
	int n = order_steps(&k->arena, p, lane, k->phase, NONE, &steps, &least, &most);

	for (int i = 0; i < n; i++) {
		int task = steps[i].is_loop ? NONE : p->entries.v[steps[i].id].task;
		bool waits = steps[i].is_loop;

		for (int w = 0; w < p->waits.n; w++)
			waits |= task == p->waits.v[w].task && by_flag(k, &p->waits.v[w]);
		if (waits)
			after = NONE;
		else if (after == NONE)
			after = task;
	}
	return after;
}

static enum err_code find_turn(struct kernel *k, int lane, struct err *e)
{
	const struct lane *l = &k->plan->lanes.v[lane];
	int task;

	k->turn_of[lane] = NONE;
	if (l->turns == 1)
		return OK;
	task = turn_task(k, lane);
	if (task == NONE)
		return err_set(e, ERR_ILLEGAL, l->loc, "lane '%s' takes tiles in turn, but does "
			"nothing in a tile after it has waited for other lanes: a copy cannot tell "
			"when it is its turn", l->name);
	k->turn_of[lane] = add_flag(k, task, true);
	return OK;
}

enum err_code lower_flags(struct kernel *k, struct err *e)
{
	const struct plan *p = k->plan;
	int n = p->graph->tasks.n, depth;

	k->flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->issue_flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->run_flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->turn_of = ARENA_ARRAY(&k->arena, p->lanes.n, int);
	for (int i = 0; i < n; i++)
		k->flag_of[i] = k->issue_flag_of[i] = k->run_flag_of[i] = NONE;
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];

		if (stask_at(k, w->task)->phase != k->phase || !by_flag(k, w))
			continue;
		if (lane_of(k, w->task) == lane_of(k, w->on) &&
		    p->lanes.v[lane_of(k, w->task)].turns > 1)
			return err_set(e, ERR_ILLEGAL, w->loc, "'%s' and '%s', which it waits for, "
				"are on lane '%s', which takes tiles in turn: let another lane load",
				stask_at(k, w->task)->name, stask_at(k, w->on)->name,
				p->lanes.v[lane_of(k, w->task)].name);
		if (stask_at(k, w->on)->kind == TASK_STORE)
			return err_set(e, ERR_ILLEGAL, w->loc, "'%s' waits for '%s' of another "
				"lane: only the lane that stores can see that it is done",
				stask_at(k, w->task)->name, stask_at(k, w->on)->name);
		if (lower_waits_for_run(k, w, &depth))
			add_run_flag(k, w->on, depth);
		else
			add_flag(k, w->on, w->when == WAIT_ISSUED);
		if (lower_keeps_step(k, w))
			add_run_flag(k, w->task, k->flags.v[k->flag_of[w->on]].depth);
	}
	for (int l = 0; l < p->lanes.n; l++)
		TRY(find_turn(k, l, e));
	return OK;
}
