/* Waits that are seen by flags: which instance of the awaited sTask each is for. */
#include "lower/passes.h"

static int loop_of(const struct kernel *k, int task)
{
	return stask_at(k, task)->loop;
}

static bool enters(const struct kernel *k, int lane, int loop)
{
	const struct plan *p = k->plan;

	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane && program_loop_within(p->graph->program,
		    loop_of(k, p->entries.v[i].task), loop))
			return true;
	return false;
}

/* Greatest distance of the dependences that a wait serves. */
static int farthest(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;
	int most = 0;

	for (int i = 0; i < g->edges.n && w->distance == DISTANCE_AUTO; i++)
		if (g->edges.v[i].from == w->on && g->edges.v[i].to == w->task &&
		    edge_distance(k->plan, &g->edges.v[i]) > most)
			most = edge_distance(k->plan, &g->edges.v[i]);
	return w->distance == DISTANCE_AUTO ? most : w->distance;
}

/* Does another lane wait for instances of an sTask as its loop goes on? */
static bool is_awaited_inside(const struct kernel *k, int task)
{
	const struct plan *p = k->plan;

	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].on == task && p->waits.v[i].when == WAIT_COMPLETE &&
		    program_loop_within(p->graph->program, loop_of(k, p->waits.v[i].task),
		    loop_of(k, task)) && lane_of(k, p->waits.v[i].task) != lane_of(k, task))
			return true;
	return false;
}

/* The last instance before tells as much as a flag of runs, and is known sooner, to a lane
 * that keeps step with the loop because it has sTasks there itself; if there is a flag of
 * instances at all. */
bool lower_waits_for_run(const struct kernel *k, const struct wait *w, int *depth)
{
	const struct graph *g = k->plan->graph;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);
	int lane = lane_of(k, w->task);

	*depth = farthest(k, w);
	if (theirs == NONE || g->program->loops.v[theirs].parent != mine ||
	    w->when == WAIT_ISSUED || g->tasks.v[w->on].kind == TASK_LOAD)
		return false;
	return *depth > 1 || g->trips[theirs].least == 0 || !enters(k, lane, theirs) ||
		!is_awaited_inside(k, w->on);
}

/* `d` iterations of region `loop` back. life: only within a run of that region. */
static enum err_code add_wait(struct kernel *k, struct kentry *x, int wait, int loop, int d,
	bool life, struct err *e)
{
	const struct wait *w = &k->plan->waits.v[wait];
	const struct graph *g = k->plan->graph;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);
	struct flag_wait f = { .wait = wait, .loop = loop, .back = d,
		.flag = w->when == WAIT_ISSUED ? k->issue_flag_of[w->on] : k->flag_of[w->on] };

	int behind;

	if (lower_waits_for_run(k, w, &behind)) {
		f.flag = k->run_flag_of[w->on];
		f.which = life && d > 0 && loop != NONE ? AWAIT_WITHIN : AWAIT_BACK;
	} else if (mine == loop && theirs == loop) {
		f.which = life && d > 0 && loop != NONE ? AWAIT_WITHIN : AWAIT_BACK;
	} else if (theirs == loop && (!life || d == 0 || loop == NONE)) {
		f.which = AWAIT_AROUND;
		for (int l = mine; l != loop; l = g->program->loops.v[l].parent)
			f.once |= g->trips[l].least == 0;
	} else if (mine == loop && d <= 1 && g->program->loops.v[theirs].parent == loop) {
		f.which = AWAIT_RUN;
		f.loop = theirs;
	} else {
		return err_set(e, ERR_ILLEGAL, w->loc, "'%s' waits for '%s' over loops in a way that "
			"is not lowered yet", g->tasks.v[w->task].name, g->tasks.v[w->on].name);
	}
	VEC_PUSH(&k->arena, &x->waits, f);
	return OK;
}

enum err_code lower_flag_waits(struct kernel *k, struct kentry *x, int wait, struct err *e)
{
	const struct wait *w = &k->plan->waits.v[wait];
	const struct graph *g = k->plan->graph;
	bool served = false;

	for (int i = 0; i < g->edges.n && w->distance == DISTANCE_AUTO; i++) {
		const struct edge *d = &g->edges.v[i];

		if (d->from != w->on || d->to != w->task)
			continue;
		if (d->reuse && d->kind == EDGE_OUTPUT && served)
			continue;	/* the edge beside it says as much */
		served = true;
		TRY(add_wait(k, x, wait, d->loop, edge_distance(k->plan, d), !d->reuse, e));
	}
	if (served)
		return OK;
	return add_wait(k, x, wait, graph_common_loop(g, w->on, w->task),
		w->distance == DISTANCE_AUTO ? 0 : w->distance, false, e);
}

/* Does somebody inside a loop that may make no iteration wait for a load outside? Where it
 * makes one, what the plan has of waits keeps the two in step, and where it makes none,
 * nothing does: then the load must wait for the run, and the lane for the load. */
bool lower_keeps_step(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;
	const struct plan *p = k->plan;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);

	return mine != NONE && g->program->loops.v[mine].parent == theirs &&
		g->trips[mine].least == 0 && w->when == WAIT_COMPLETE &&
		g->tasks.v[w->on].kind == TASK_LOAD && g->tasks.v[w->task].kind != TASK_LOAD &&
		p->entries.v[plan_entry_of(p, w->task)].lane !=
		p->entries.v[plan_entry_of(p, w->on)].lane;
}

static void add_new(struct kernel *k, struct kentry *x, struct flag_wait f)
{
	if (f.flag == NONE)
		return;
	for (int i = 0; i < x->waits.n; i++)
		if (x->waits.v[i].flag == f.flag)
			return;
	VEC_PUSH(&k->arena, &x->waits, f);
}

void lower_run_waits(struct kernel *k, struct kentry *x)
{
	const struct graph *g = k->plan->graph;
	int depth;

	for (int i = 0; i < k->plan->waits.n; i++) {
		const struct wait *w = &k->plan->waits.v[i];
		int loop = loop_of(k, w->on);

		if (w->on == x->task && lower_keeps_step(k, w))
			add_new(k, x, (struct flag_wait){ .wait = i, .which = AWAIT_BACK, .loop = loop,
				.flag = k->run_flag_of[w->task],
				.back = k->flags.v[k->flag_of[w->on]].depth });
		if (w->on == x->task && lower_waits_for_run(k, w, &depth) && g->trips[loop].least == 0)
			add_new(k, x, (struct flag_wait){ .wait = i, .which = AWAIT_AROUND, .once = true,
				.flag = k->flag_of[w->task], .loop = loop_of(k, w->task) });
	}
}
