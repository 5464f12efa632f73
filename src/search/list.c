#include "search/list.h"

#include <stdio.h>

enum { UNROLL = 6 };

/* One iteration's copy of an sTask while the list is made. */
struct job {
	int task;			/* index into region's tasks */
	int round;
	bool scheduled;
	double end;			/* completion, once scheduled */
};

struct region {
	const struct plan *p;
	int loop, phase;
	int n;				/* sTasks of one lane set: loads and part 0 of the rest */
	int *task;
	int *seu;
	struct cost *cost;
	int rounds;
	struct job *jobs;		/* round * n + i */
};

static bool on_producer(const struct plan *p, int task)
{
	return p->graph->tasks.v[task].kind == TASK_LOAD;
}

/* Parts of a split are scheduled alike, so one of them stands for all; its work on the
 * shared units counts as often. */
static void collect(struct arena *a, struct region *r)
{
	const struct graph *g = r->p->graph;

	r->task = ARENA_ARRAY(a, g->tasks.n, int);
	r->seu = ARENA_ARRAY(a, g->tasks.n, int);
	r->cost = ARENA_ARRAY(a, g->tasks.n, struct cost);
	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];

		if (s->loop != r->loop || s->phase != r->phase || s->part > 0)
			continue;
		r->seu[r->n] = device_seu_for(r->p->device, &s->work);
		if (r->seu[r->n] == NONE)
			continue;
		r->cost[r->n] = device_cost(r->p->device, r->seu[r->n], &s->work, 4,
			(struct pace){ plan_eus(r->p, r->phase), r->p->device->clock_hz });
		r->cost[r->n].busy *= s->parts;
		r->task[r->n++] = t;
	}
	r->rounds = r->loop == NONE ? 1 : UNROLL;
	r->jobs = ARENA_ARRAY(a, r->n * r->rounds, struct job);
	for (int i = 0; i < r->n * r->rounds; i++)
		r->jobs[i] = (struct job){ .task = i % r->n, .round = i / r->n };
}

static int find_local(const struct region *r, int task)
{
	const struct graph *g = r->p->graph;

	for (int i = 0; i < r->n; i++)
		if (r->task[i] == task || (g->tasks.v[r->task[i]].task == g->tasks.v[task].task &&
		    g->tasks.v[task].part == 0))
			return i;
	return NONE;
}

/* When all that a job depends on is complete; negative if some of it is not scheduled
 * yet. *open counts those. */
static double ready_time(const struct region *r, const struct job *j, int *open)
{
	const struct graph *g = r->p->graph;
	double at = 0;

	*open = 0;
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];
		int from, d = edge_distance(r->p, e);

		if (e->to != r->task[j->task] || e->loop != r->loop)
			continue;
		from = find_local(r, e->from);
		if (from == NONE || j->round < d || (d == 0 && from == j->task))
			continue;
		from += (j->round - d) * r->n;
		if (!r->jobs[from].scheduled)
			(*open)++;
		else if (r->jobs[from].end > at)
			at = r->jobs[from].end;
	}
	return *open ? -1 : at;
}

/* How many sTasks wait for this one within an iteration. */
static int unlocks(const struct region *r, int local)
{
	const struct graph *g = r->p->graph;
	int n = 0;

	for (int i = 0; i < g->edges.n; i++)
		n += g->edges.v[i].from == r->task[local] && g->edges.v[i].kind == EDGE_FLOW;
	return n;
}

static int depends(const struct region *r, int local)
{
	const struct graph *g = r->p->graph;
	int n = 0;

	for (int i = 0; i < g->edges.n; i++)
		n += g->edges.v[i].to == r->task[local] && g->edges.v[i].kind == EDGE_FLOW;
	return n;
}

static bool is_async(const struct region *r, int local)
{
	return r->p->device->seu[r->seu[local]].async;
}

/* The paper's rule: asynchronous first, fewest dependences, most unlocked; then the
 * earlier iteration, then program order. */
static bool goes_before(const struct region *r, const struct job *a, const struct job *b)
{
	int x = is_async(r, a->task), y = is_async(r, b->task);

	if (x != y)
		return x > y;
	if (a->round != b->round)
		return a->round < b->round;
	x = depends(r, a->task);
	y = depends(r, b->task);
	if (x != y)
		return x < y;
	x = unlocks(r, a->task);
	y = unlocks(r, b->task);
	return x != y ? x > y : a->task < b->task;
}

/* Schedule every job of the region; order[] gets the consumer's jobs as issued. */
static int run_list(struct region *r, int *order)
{
	double lane = 0, producer = 0, unit[SEU_MAX] = { 0 };
	int left = r->n * r->rounds, n = 0;

	while (left > 0) {
		struct job *best = NULL;
		double best_at = 0;

		for (int i = 0; i < r->n * r->rounds; i++) {
			struct job *j = &r->jobs[i];
			double *own = on_producer(r->p, r->task[j->task]) ? &producer : &lane;
			double at;
			int open;

			if (j->scheduled || (at = ready_time(r, j, &open)) < 0)
				continue;
			if (at < *own)
				at = *own;	/* the lane is busy until then */
			if (!best || at < best_at ||
			    (at == best_at && goes_before(r, j, best))) {
				best = j;
				best_at = at;
			}
		}
		if (!best)
			return 0;	/* versions too few to go on */
		double *own = on_producer(r->p, r->task[best->task]) ? &producer : &lane;
		const struct cost *c = &r->cost[best->task];
		double start = unit[r->seu[best->task]];

		if (start < best_at)
			start = best_at;
		best->scheduled = true;
		best->end = start + (c->busy > c->memory ? c->busy : c->memory) + c->latency;
		unit[r->seu[best->task]] = start + (c->busy > c->memory ? c->busy : c->memory);
		*own = is_async(r, best->task) ? best_at + c->issue : best->end;
		if (own == &lane)
			order[n++] = (int)(best - r->jobs);
		left--;
	}
	return n;
}

/* Read one turn off the middle of the list: from one instance of the first sTask to
 * its next, each sTask once. False if that is not so. */
static bool fold(const struct region *r, const int *order, int n, int *turn, int *at, int *len)
{
	int anchor = NONE, from = NONE, to = NONE, least = 0;

	*len = 0;
	for (int i = 0; i < n; i++) {
		const struct job *j = &r->jobs[order[i]];

		if (anchor == NONE)
			anchor = j->task;
		if (j->task == anchor && j->round == r->rounds / 2)
			from = i;
		if (j->task == anchor && j->round == r->rounds / 2 + 1)
			to = i;
	}
	if (from == NONE || to == NONE)
		return false;
	for (int i = from; i < to; i++) {
		const struct job *j = &r->jobs[order[i]];

		for (int k = 0; k < *len; k++)
			if (turn[k] == j->task)
				return false;
		turn[*len] = j->task;
		at[(*len)++] = j->round - r->rounds / 2;
		least = at[*len - 1] < least ? at[*len - 1] : least;
	}
	for (int k = 0; k < *len; k++)
		at[k] -= least;
	return true;
}

static enum err_code append_parts(struct plan *p, int task, int at, int warps, struct err *e)
{
	const struct graph *g = p->graph;
	char lane[16];

	for (int t = 0; t < g->tasks.n; t++) {
		if (g->tasks.v[t].task != g->tasks.v[task].task)
			continue;
		if (on_producer(p, t)) {
			TRY(plan_append(p, t, NULL, "p0", at, NOWHERE, e));
			continue;
		}
		snprintf(lane, sizeof(lane), "c%d", g->tasks.v[t].part);
		if (plan_find_lane(p, lane) == NONE)
			TRY(plan_lane(p, lane, warps, 0, 1, NOWHERE, e));
		TRY(plan_append(p, t, NULL, lane, at, NOWHERE, e));
	}
	return OK;
}

static enum err_code schedule_region(struct plan *p, int phase, int loop, int warps,
	struct err *e)
{
	struct arena *a = &p->arena;
	struct region r = { .p = p, .loop = loop, .phase = phase };
	int *order, *turn, *at, n, len = 0, consumers = 0;
	bool folded;

	collect(a, &r);
	order = ARENA_ARRAY(a, r.n * r.rounds, int);
	turn = ARENA_ARRAY(a, r.n * r.rounds, int);
	at = ARENA_ARRAY(a, r.n * r.rounds, int);
	n = loop == NONE ? 0 : run_list(&r, order);
	folded = n && fold(&r, order, n, turn, at, &len);
	for (int i = 0; i < r.n; i++)
		consumers += !on_producer(p, r.task[i]);
	for (int i = 0; i < r.n; i++)
		if (on_producer(p, r.task[i]))
			TRY(append_parts(p, r.task[i], 0, warps, e));
	for (int i = 0; folded && len == consumers && i < len; i++)
		TRY(append_parts(p, r.task[turn[i]], at[i], warps, e));
	for (int i = 0; !(folded && len == consumers) && i < r.n; i++)
		if (!on_producer(p, r.task[i]))
			TRY(append_parts(p, r.task[i], 0, warps, e));
	return OK;
}

enum err_code list_schedule(struct plan *p, int consumer_warps, struct err *e)
{
	const struct program *prog = p->graph->program;

	for (int phase = 0; phase < prog->phases.n; phase++)
		for (int loop = NONE; loop < prog->loops.n; loop++)
			if (loop == NONE || prog->loops.v[loop].phase == phase)
				TRY(schedule_region(p, phase, loop, consumer_warps, e));
	return OK;
}
