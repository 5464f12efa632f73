/* Which sTasks other lanes see through a flag, and which flag hands over from a replica of a lane to the next. */
#include "lower/refine.h"
#include "lower/passes.h"

static int add_flag(struct kernel *k, int task, bool issued)
{
	int *slot = issued ? &k->issue_flag_of[task] : &k->flag_of[task];
	struct flag f = { .task = task, .issued = issued, .depth = 1 };

	if (*slot != NONE)
		return *slot;
	if (is_async_load(k, task) && !issued) {
		const struct stask *s = stask_at(k, task);
		const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];

		f.copies_arrive = lower_copies_arrive(k, task);
		f.each_warp = r->by_rows;
		f.arrivals = r->by_rows ? lane_warps(k->plan, lane_of(k, task)) : r->engine ?
			1 : lane_warps(k->plan, lane_of(k, task)) * (f.copies_arrive ? k->target->warp : 1);
		f.bytes = r->engine ? r->boxes * r->box_bytes : 0;
		f.depth = r->versions;
	} else {
		f.arrivals = lane_warps(k->plan, lane_of(k, task));
	}
	*slot = k->flags.n;
	VEC_PUSH(&k->arena, &k->flags, f);
	return *slot;
}

/* The flag of the runs of a loop, at least `depth` deep. A waiter waits in each iteration of the region around, and a
 * run waits for a waiter that is `depth` runs behind (lower_run_waits). */
static int add_run_flag(struct kernel *k, int task, int loop, int depth)
{
	int flag = lower_run_flag(k, task, loop);
	struct flag f = { .task = task, .runs = true, .loop = loop, .depth = 1,
		.arrivals = lane_warps(k->plan, lane_of(k, task)) };

	if (flag == NONE) {
		flag = k->flags.n;
		f.ends_complete = refined_complete_before(k, task, NONE);
		f.in_loop = refined_signals_in_loop(k, &f);
		VEC_PUSH(&k->arena, &k->flags, f);
	}
	if (k->flags.v[flag].depth < depth)
		k->flags.v[flag].depth = depth;
	return flag;
}

static void add_wait_flags(struct kernel *k, const struct wait *w)
{
	struct flag_demand part;
	bool now = false;		/* the wait has a demand on the current run, too */

	for (int i = 0; lower_next_demand(k, w, &i, &part);)
		now |= part.runs != NONE && !part.back;
	for (int i = 0; lower_next_demand(k, w, &i, &part);)
		if (part.runs != NONE)	/* one deeper if a run could otherwise need a waiter that waits for it */
			add_run_flag(k, w->on, part.runs, part.back + (part.back && (now ||
				k->plan->graph->trips[part.runs].least == 0)));
		else
			add_flag(k, w->on, w->when == WAIT_ISSUED);
}

/* Is the sTask issued, for others, when it has made its waits, before its own work? */
static bool begins_by_issue(const struct kernel *k, int task)
{
	return stask_at(k, task)->kind == TASK_COMPUTE && !seu_of(k, task)->async;
}

/* The sTask whose issue tells the next replica that this one has seen all flags of its tile: the last that waits for a
 * flag, if that is issued before its own work, which the next replica's can overlap; or else the first behind all steps
 * that wait, or the last of them. NONE: the last step that waits is a loop, *loop, and no sTask stands behind it. */
static int handover_task(struct kernel *k, int lane, int *loop)
{
	const struct plan *p = k->plan;
	struct order_step *steps;
	int least, most, after = NONE, last = NONE;
	int n = order_steps(&k->arena, p, lane, k->phase, NONE, &steps, &least, &most);

	for (int i = 0; i < n; i++) {
		int task = steps[i].is_loop ? NONE : p->entries.v[steps[i].id].task;
		bool waits = steps[i].is_loop;

		for (int w = 0; w < p->waits.n; w++)
			waits |= task == p->waits.v[w].task && needs_flag(k, &p->waits.v[w]);
		if (waits) {
			after = NONE;
			last = task;
			*loop = steps[i].is_loop ? steps[i].id : NONE;
		} else if (after == NONE) {
			after = task;
		}
	}
	return after == NONE || (last != NONE && begins_by_issue(k, last)) ? last : after;
}

static int task_within(const struct kernel *k, int lane, int loop)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < k->plan->entries.n; i++) {
		int task = k->plan->entries.v[i].task;

		if (k->plan->entries.v[i].lane == lane && program_loop_within(g->program, g->tasks.v[task].loop, loop))
			return task;
	}
	BUG("lane %d has nothing in loop %d", lane, loop);
}

/* May the sTask wait for a flag, by a wait of the plan or one that keeps step with it? */
static bool may_wait(const struct kernel *k, int task)
{
	for (int i = 0; i < k->plan->waits.n; i++) {
		const struct wait *w = &k->plan->waits.v[i];

		if ((w->task == task || w->on == task) && needs_flag(k, w))
			return true;
	}
	return false;
}

int lower_step_handover(const struct kernel *k, int lane, const struct order_step *s)
{
	int task = s->is_loop ? NONE : k->plan->entries.v[s->id].task;

	for (int i = 0; i < k->flags.n && s->is_loop; i++)
		if (k->flags.v[i].runs && k->flags.v[i].issued && k->flags.v[i].loop == s->id &&
		    lane_of(k, k->flags.v[i].task) == lane)
			return i;
	return task != NONE && may_wait(k, task) ? k->issue_flag_of[task] : NONE;
}

/* The handover of a lane with offsets in the tile loop. There an iteration is about several tiles, and a replica has
 * seen the flags of a tile in one step but not yet in another; so each step is handed over by itself. */
static void add_step_handovers(struct kernel *k, int lane)
{
	const struct program *p = k->plan->graph->program;
	struct order_step *steps;
	int least, most, n, replicas = k->plan->lanes.v[lane].replicas;

	n = order_steps(&k->arena, k->plan, lane, k->phase, NONE, &steps, &least, &most);
	for (int i = 0; i < n; i++) {
		struct flag f = { .issued = true, .runs = true, .loop = steps[i].id, .depth = 1,
			.arrivals = lane_warps(k->plan, lane) };
		bool waits = false;

		for (int t = 0; t < k->plan->graph->tasks.n && steps[i].is_loop; t++)
			waits |= plan_entry_of(k->plan, t) != NONE && lane_of(k, t) == lane &&
				program_loop_within(p, stask_at(k, t)->loop, f.loop) && may_wait(k, t);
		if (waits) {
			f.task = task_within(k, lane, f.loop);
			VEC_PUSH(&k->arena, &k->flags, f);
		} else if (!steps[i].is_loop && may_wait(k, k->plan->entries.v[steps[i].id].task)) {
			add_flag(k, k->plan->entries.v[steps[i].id].task, true);
		}
	}
	for (int i = 0; i < n; i++) {
		int flag = lower_step_handover(k, lane, &steps[i]);

		if (flag != NONE)
			k->flags.v[flag].depth = replicas;
	}
}

static void find_handover(struct kernel *k, int lane)
{
	const struct lane *l = &k->plan->lanes.v[lane];
	int task, loop = NONE, least;

	k->handover_flag_of[lane] = NONE;
	if (l->replicas == 1)
		return;
	if (lower_tile_offsets(k, lane, &least)) {
		add_step_handovers(k, lane);
		return;
	}
	task = handover_task(k, lane, &loop);
	if (task != NONE)
		k->handover_flag_of[lane] = add_flag(k, task, true);
	else if (loop != NONE)
		k->handover_flag_of[lane] = add_run_flag(k, task_within(k, lane, loop), loop, 1);
}

/* Add the flags that loads wait for, or those of all other waits. */
static void add_flags(struct kernel *k, bool loads)
{
	for (int i = 0; i < k->plan->waits.n; i++) {
		const struct wait *w = &k->plan->waits.v[i];

		if (stask_at(k, w->task)->phase != k->phase || (stask_at(k, w->task)->kind == TASK_LOAD) != loads ||
		    !needs_flag(k, w))
			continue;
		add_wait_flags(k, w);
		if (lower_keeps_lockstep(k, w))
			add_run_flag(k, w->task, stask_at(k, w->task)->loop, k->flags.v[k->flag_of[w->on]].depth);
	}
}

/* Flags get their addresses in this order. It depends on nothing but the plan, whose waits are sorted. */
void lower_flags(struct kernel *k)
{
	const struct plan *p = k->plan;
	int n = p->graph->tasks.n;

	k->flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->issue_flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->handover_flag_of = ARENA_ARRAY(&k->arena, p->lanes.n, int);
	for (int i = 0; i < n; i++)
		k->flag_of[i] = k->issue_flag_of[i] = NONE;
	add_flags(k, false);
	add_flags(k, true);
	for (int l = 0; l < p->lanes.n; l++)
		if (lower_has_work(k, l))
			find_handover(k, l);
}
