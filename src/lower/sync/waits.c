/* Waits on flags: which instance of the awaited sTask, or which run of its loop, each is for. */
#include "lower/refine.h"
#include "lower/passes.h"

/* The edges from the awaited sTask of a wait to the waiting one. */
#define EACH_EDGE_OF(g, w, i) \
	for (int i = 0; i < (g)->edges.n; i++) \
		if ((g)->edges.v[i].from == (w)->on && (g)->edges.v[i].to == (w)->task)

static int loop_of(const struct kernel *k, int task)
{
	return stask_at(k, task)->loop;
}

/* Greatest distance of the dependences that a wait serves. */
static int greatest_distance(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;
	int most = 0;

	if (w->distance != DISTANCE_AUTO)
		return w->distance;
	EACH_EDGE_OF(g, w, i)
		most = (int)max_i64(most, edge_distance(k->plan, &g->edges.v[i]));
	return most;
}

/* Does another lane wait for instances of the sTask inside its loop? Then there is a flag of instances. */
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

/* A lane that has sTasks in the loop itself needs no flag of runs if there is a flag of instances: the last instance so
 * far shows as much, and is seen sooner. */
bool lower_waits_for_run(const struct kernel *k, const struct wait *w, int *back)
{
	const struct graph *g = k->plan->graph;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);
	int lane = lane_of(k, w->task);

	*back = greatest_distance(k, w);
	if (theirs == NONE || g->program->loops.v[theirs].parent != mine || w->when == WAIT_ISSUED ||
	    is_async_load(k, w->on))
		return false;
	return *back > 1 || g->trips[theirs].least == 0 || !lane_has_loop(k->plan, lane, theirs) ||
		!is_awaited_inside(k, w->on);
}

/* The wait looks `back` iterations of its region back. When the waiting sTask is issued, is the run of loop `nested` in
 * that iteration the last one that its lane has passed? */
static bool is_last_passed(struct kernel *k, const struct wait *w, int nested, int back)
{
	struct arena_mark mark = arena_mark(&k->arena);
	const struct plan *p = k->plan;
	struct order_step *steps;
	int entry = plan_entry_of(p, w->task), lane = lane_of(k, w->task), at = p->entries.v[entry].at;
	int least, most, i = 0;
	bool before;

	order_steps(&k->arena, p, lane, k->phase, loop_of(k, w->task), &steps, &least, &most);
	while (steps[i].id != (steps[i].is_loop ? nested : entry))
		i++;
	before = steps[i].is_loop;
	arena_reset(&k->arena, mark);
	/* with tile offsets, a replica counts the runs of other replicas only when it comes to the loop */
	if (p->lanes.v[lane].replicas > 1 && least < most && loop_of(k, w->task) == NONE)
		return before && !at && !back;
	return at - back == (before ? 0 : -1);
}

/* The loop inside `loop` whose runs a wait counts that looks `back` iterations of `loop` back; NONE: it sees the
 * instances themselves. */
static int runs_of(struct kernel *k, const struct wait *w, int loop, int back)
{
	const struct program *p = k->plan->graph->program;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on), nested = theirs, depth;

	if (theirs == loop)
		return NONE;
	while (p->loops.v[nested].parent != loop)
		nested = p->loops.v[nested].parent;
	if (!refined_sees_runs(k, w) && mine == loop && nested == theirs && back <= 1 &&
	    !lower_waits_for_run(k, w, &depth) && lane_has_loop(k->plan, lane_of(k, w->task), theirs) &&
	    is_last_passed(k, w, theirs, back))
		return NONE;
	return nested;
}

static int replicas_of(const struct kernel *k, const struct wait *w)
{
	return k->plan->lanes.v[lane_of(k, w->task)].replicas;
}

/* The dependence is between two sTasks of a lane with replicas. Is it about reuse of a ring that the replicas share, so
 * that the life before can be another replica's? With a ring of a loop that is so where a run begins. */
static bool crosses_replicas(const struct kernel *k, const struct wait *w, const struct edge *e)
{
	return e->from == w->on && e->to == w->task && e->reuse && edge_replicas(k->plan, e) == 1 &&
		(e->loop != NONE || edge_distance(k->plan, e) % replicas_of(k, w));
}

bool lower_awaits_replicas(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;

	if (!on_same_lane(k, w) || replicas_of(k, w) == 1 || w->distance != DISTANCE_AUTO)
		return false;
	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i])
		if (crosses_replicas(k, w, &g->edges.v[i]))
			return true;
	return false;
}

bool lower_awaits_own(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;

	if (!lower_awaits_replicas(k, w))
		return on_same_lane(k, w);
	EACH_EDGE_OF(g, w, i)
		if (g->edges.v[i].loop != NONE || !crosses_replicas(k, w, &g->edges.v[i]))
			return true;
	return false;
}

/* Does an edge before the nth connect the same sTasks? */
static bool is_served(const struct kernel *k, const struct wait *w, int n)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < n; i++)
		if (g->edges.v[i].from == w->on && g->edges.v[i].to == w->task)
			return true;
	return false;
}

/* Does the nth edge make a demand of the wait on a flag? An output dependence of reuse adds nothing to an earlier edge,
 * as later instances imply earlier ones; except across the replicas of a lane. */
static bool makes_demand(const struct kernel *k, const struct wait *w, int n)
{
	const struct edge *e = &k->plan->graph->edges.v[n];

	if (e->from != w->on || e->to != w->task)
		return false;
	if (on_same_lane(k, w) && !awaits_own_load(k, w))
		return crosses_replicas(k, w, e);
	return !e->reuse || e->kind != EDGE_OUTPUT || !is_served(k, w, n) ||
		(on_same_lane(k, w) && replicas_of(k, w) > 1);
}

bool lower_awaits_last_tile(const struct kernel *k, const struct wait *w)
{
	return awaits_own_load(k, w) && replicas_of(k, w) > 1 && w->distance > 0 &&
		graph_common_loop(k->plan->graph, w->on, w->task) != NONE;
}

/* The demand of a wait that serves no dependence. Within one lane only tiles of the same replica count; that the last
 * tile is complete, lower_remove_hidden_waits has checked. */
static struct flag_demand demand_without_edge(const struct kernel *k, const struct wait *w)
{
	struct flag_demand part = { .loop = graph_common_loop(k->plan->graph, w->on, w->task),
		.back = w->distance == DISTANCE_AUTO ? 0 : w->distance,
		.within_run = lower_awaits_last_tile(k, w) };

	if (on_same_lane(k, w) && part.loop == NONE)
		part.back *= replicas_of(k, w);
	return part;
}

bool lower_next_demand(struct kernel *k, const struct wait *w, int *i, struct flag_demand *out)
{
	const struct graph *g = k->plan->graph;
	const struct edge *d = NULL;

	for (; !d && *i < g->edges.n && w->distance == DISTANCE_AUTO; ++*i)
		if (makes_demand(k, w, *i))
			d = &g->edges.v[*i];
	if (d)
		*out = (struct flag_demand){ .loop = d->loop, .back = edge_distance(k->plan, d),
			.within_run = !d->reuse, .before_run = on_same_lane(k, w) && !awaits_own_load(k, w) };
	else if (*i > g->edges.n || (w->distance == DISTANCE_AUTO && is_served(k, w, *i)))
		return false;
	else
		*out = demand_without_edge(k, w);
	if (!d)
		*i = g->edges.n + 1;
	out->runs = runs_of(k, w, out->loop, out->back);
	return true;
}

bool lower_shown_by_flag(const struct kernel *k, const struct wait *w, const struct relation *r, int i, int on)
{
	return awaits_own_load(k, w) || r->inst[i].lane_replica != r->inst[on].lane_replica;
}

int lower_run_flag(const struct kernel *k, int task, int loop)
{
	for (int i = 0; i < k->flags.n; i++)
		if (k->flags.v[i].runs && !k->flags.v[i].issued && k->flags.v[i].task == task &&
		    k->flags.v[i].loop == loop)
			return i;
	return NONE;
}

int lower_demand_flag(const struct kernel *k, const struct wait *w, const struct flag_demand *demand)
{
	if (demand->runs != NONE)
		return lower_run_flag(k, w->on, demand->runs);
	return w->when == WAIT_ISSUED ? k->issue_flag_of[w->on] : k->flag_of[w->on];
}

/* May the loop have runs without an iteration, and others with some? An always empty loop makes no waits. */
static bool may_be_empty(const struct graph *g, int loop)
{
	return g->trips[loop].least == 0 && g->trips[loop].most > 0;
}

static void add_wait(struct kernel *k, struct kentry *x, int wait, const struct flag_demand *part)
{
	const struct wait *w = &k->plan->waits.v[wait];
	const struct graph *g = k->plan->graph;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);
	struct flag_wait f = { .wait = wait, .loop = part->loop, .back = part->back,
		.flag = lower_demand_flag(k, w, part) };

	if (theirs != part->loop && part->runs == NONE) {
		f.awaited = AWAIT_RUN;
		f.loop = theirs;
	} else if (mine == part->loop) {
		f.awaited = mine == NONE || part->back == 0 ? AWAIT_BACK : part->within_run ? AWAIT_WITHIN :
			part->before_run ? AWAIT_BEFORE : AWAIT_BACK;
	} else {
		f.awaited = AWAIT_AROUND;
		for (int l = mine; l != part->loop; l = g->program->loops.v[l].parent)
			f.even_if_empty |= may_be_empty(g, l);
	}
	VEC_PUSH(&k->arena, &x->waits, f);
}

void lower_flag_waits(struct kernel *k, struct kentry *x, int wait)
{
	struct flag_demand part;

	for (int i = 0; lower_next_demand(k, &k->plan->waits.v[wait], &i, &part);)
		add_wait(k, x, wait, &part);
}

/* Does an sTask in a loop that may be empty wait for a load outside? In a run with iterations the plan's waits keep the
 * two lanes in step; in an empty run nothing does, so the load must wait for the run, and the lane for the load. */
bool lower_keeps_lockstep(const struct kernel *k, const struct wait *w)
{
	const struct graph *g = k->plan->graph;
	const struct plan *p = k->plan;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);

	return mine != NONE && g->program->loops.v[mine].parent == theirs && may_be_empty(g, mine) &&
		w->when == WAIT_COMPLETE && g->tasks.v[w->on].kind == TASK_LOAD && g->tasks.v[w->task].kind != TASK_LOAD
		&& p->entries.v[plan_entry_of(p, w->task)].lane != p->entries.v[plan_entry_of(p, w->on)].lane;
}

static void add_wait_once(struct kernel *k, struct kentry *x, struct flag_wait f)
{
	if (f.flag == NONE)
		return;
	for (int i = 0; i < x->waits.n; i++)
		if (x->waits.v[i].flag == f.flag)
			return;
	VEC_PUSH(&k->arena, &x->waits, f);
}

/* Greatest number of runs that the wait looks back. */
static int runs_back(struct kernel *k, const struct wait *w)
{
	struct flag_demand part;
	int most = 0;

	for (int i = 0; lower_next_demand(k, w, &i, &part);)
		if (part.runs != NONE && part.back > most)
			most = part.back;
	return most;
}

void lower_run_waits(struct kernel *k, struct kentry *x)
{
	const struct graph *g = k->plan->graph;
	int depth;

	for (int i = 0; i < k->plan->waits.n; i++) {
		const struct wait *w = &k->plan->waits.v[i];
		int loop = loop_of(k, w->on);

		if (w->on != x->task || !needs_flag(k, w))
			continue;
		if (lower_keeps_lockstep(k, w))
			add_wait_once(k, x, (struct flag_wait){ .wait = i, .awaited = AWAIT_BACK, .loop = loop,
				.flag = lower_run_flag(k, w->task, loop_of(k, w->task)),
				.back = k->flags.v[k->flag_of[w->on]].depth });
		if (lower_waits_for_run(k, w, &depth) && may_be_empty(g, loop) &&
		    lower_run_flag(k, w->on, loop) != NONE)
			add_wait_once(k, x, (struct flag_wait){ .wait = i, .awaited = AWAIT_AROUND,
				.even_if_empty = true, .flag = k->flag_of[w->task], .loop = loop_of(k, w->task),
				.back = k->flags.v[lower_run_flag(k, w->on, loop)].depth - runs_back(k, w) });
	}
}
