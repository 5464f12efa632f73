#include "sim/blame.h"

#include <math.h>
#include <stdlib.h>

enum { DEEPEST = 8 };			/* lanes that wait for each other in a row */

const char *const blame_names[] = { "issue", "pipe", "dependence", "shared", "l2", "global", "slot",
	"turn", "sync", "power" };
_Static_assert(LEN(blame_names) == BLAMES, "a name for every kind");

/* A time in which a memory is at work without a pause; cycles of those before it. */
struct stretch {
	double from, to, before;
};

struct busy {
	VEC(struct stretch) v;
};

/* One lane's way, or one copy's: its events in order. */
struct way {
	int lane, replica;
	VEC(int) v;
};

struct scan {
	struct arena *a;
	const struct timeline *t;
	const struct plan *plan;
	const struct phase_line *line;
	const struct task_cost *costs;	/* NULL: not known, or not asked */
	VEC(struct way) ways;
	int *way_of;			/* by event; NONE: unsound */
	int *at;			/* by event: its place there */
	struct ends { VEC(int) v; } *ended;	/* by sTask: events in order of their ends */
	struct busy l2, global;
	double *through;		/* by event: when memory is done with it */
	bool *by_global;		/* ... device memory last */
	int *hold;			/* by event: the last event of its way, up to it, that was held;
					 * NONE */
	struct blames *out;
	int *first;			/* by sTask: its parts; NONE */
	int lane, way, task;		/* whose time is being explained */
};

static const struct event *event_at(const struct scan *s, int i)
{
	return &s->line->events.v[i];
}

static const struct seu *seu_of(const struct scan *s, const struct event *e)
{
	return &s->plan->device->seu[e->seu];
}

static void put(struct scan *s, enum blame why, int on, int unit, double cycles)
{
	struct blames *b = s->out;

	if (!(cycles > 0))
		return;
	if (on == s->task && unit != NONE && !s->plan->device->seu[unit].async)
		on = NONE;		/* the lane itself is at work */
	for (int i = s->first[s->task]; i != NONE; i = b->v.v[i].next) {
		struct blame_part *p = &b->v.v[i];

		if (p->why == why && p->on == on && p->unit == unit && p->lane == s->lane) {
			p->cycles += cycles;
			return;
		}
	}
	VEC_PUSH(s->a, &b->v, ((struct blame_part){ .lane = s->lane, .task = s->task, .why = why,
		.on = on, .unit = unit, .cycles = cycles, .next = s->first[s->task] }));
	s->first[s->task] = b->v.n - 1;
}

/* ---- memory -------------------------------------------------------------------------- */

/* Work of so many cycles that comes at `now`, behind what came before; when it is through. */
static double work(struct arena *a, struct busy *b, double now, double cycles)
{
	struct stretch *last = b->v.n ? &b->v.v[b->v.n - 1] : NULL;
	double start = last ? fmax(now, last->to) : now;

	if (last && start == last->to)
		last->to += cycles;
	else
		VEC_PUSH(a, &b->v, ((struct stretch){ start, start + cycles,
			last ? last->before + last->to - last->from : 0 }));
	return start + cycles;
}

/* The last stretch that begins before then; NULL. */
static const struct stretch *stretch_at(const struct busy *b, double then)
{
	int lo = 0, hi = b->v.n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (b->v.v[mid].from < then)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &b->v.v[lo - 1] : NULL;
}

/* Cycles at work before then. */
static double worked(const struct busy *b, double then)
{
	const struct stretch *x = stretch_at(b, then);

	return x ? x->before + fmin(then, x->to) - x->from : 0;
}

/* The queues for L2 and device memory, as engine.c has them: in order of issue. */
static void replay_memory(struct scan *s)
{
	for (int i = 0; i < s->line->events.n; i++) {
		const struct event *e = event_at(s, i);
		const struct task_cost *c;
		double l2 = 0, global = 0;

		if (s->way_of[i] == NONE)
			continue;
		c = &s->costs[e->task];
		if (c->l2 > 0)
			l2 = work(s->a, &s->l2, (double)e->start, c->l2);
		if (c->global > 0)
			global = work(s->a, &s->global, (double)e->start, c->global);
		s->by_global[i] = global > l2;
		s->through[i] = fmax(l2, global);
	}
}

/* ---- what is waited for ------------------------------------------------------------------ */

static void explain_lane(struct scan *s, int way, double from, double to, double weight, int deep);

/* The unit is at work on it, or on others before it. */
static void explain_unit(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	double shared = s->costs ? s->costs[e->task].shared : 0;

	if (from >= to)
		return;
	put(s, BLAME_SHARED, e->task, e->seu, weight * shared * (to - from));
	put(s, BLAME_PIPE, e->task, e->seu, weight * (1 - shared) * (to - from));
}

/* Since when memory has been at work when it is done with event i; when it has the event if that
 * asks nothing of it. */
static double at_work_since(const struct scan *s, int i)
{
	const struct stretch *x = stretch_at(s->by_global[i] ? &s->global : &s->l2, s->through[i]);

	return s->through[i] > 0 && x ? x->from : (double)event_at(s, i)->start;
}

/* A part of the time in which memory is at work on event i, or its engine. */
static void explain_transfer(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	double through = s->through[i];

	put(s, s->by_global[i] ? BLAME_GLOBAL : BLAME_L2, e->task, NONE,
		weight * (fmin(to, through) - from));
	put(s, BLAME_PIPE, e->task, e->seu, weight * (to - fmax(from, through)));
}

/* The lane of event i, a copy, was held before it could ask for it: so much earlier it would have been
 * there, unless memory was at work already when the lane went on. */
static void explain_late_copy(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	double asked = (double)event_at(s, s->hold[i])->issue, since = at_work_since(s, i);
	double told = s->plan->device->flag_latency;
	double shift = since < asked ? s->costs[e->task].latency : (double)e->end - asked;

	from -= shift + told;
	to -= shift + told;
	if (since >= asked)
		since = to;
	explain_lane(s, s->way_of[i], from, fmin(to, since), weight, deep);
	if (fmax(from, since) < to)
		explain_transfer(s, i, fmax(from, since), to, weight);
}

static void explain_copy(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	double issue = (double)e->issue, end = (double)e->end;
	double there = end - s->costs[e->task].latency;

	if (s->hold[i] != NONE && s->way_of[i] != s->way) {
		explain_late_copy(s, i, from, to, weight, deep);
		return;
	}
	explain_lane(s, s->way_of[i], from, fmin(to, issue), weight, deep);
	if (fmax(from, issue) < fmin(to, there))
		explain_transfer(s, i, fmax(from, issue), fmin(to, there), weight);
	put(s, BLAME_DEPENDENCE, e->task, NONE,
		weight * (fmin(to, end) - fmax(from, fmax(issue, there))));
	put(s, BLAME_SYNC, e->task, NONE, weight * (to - fmax(from, end)));
}

static void explain_product(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	const struct task_cost *c = &s->costs[e->task];
	double issue = (double)e->issue, end = (double)e->end;
	double told = end - c->handoff, done = end - c->latency;

	explain_lane(s, s->way_of[i], from, fmin(to, issue), weight, deep);
	explain_unit(s, i, fmax(from, issue), fmin(to, done), weight);
	put(s, BLAME_DEPENDENCE, e->task, NONE,
		weight * (fmin(to, told) - fmax(from, fmax(issue, done))));
	put(s, BLAME_SYNC, e->task, NONE, weight * (to - fmax(from, fmax(issue, told))));
}

/* A part of the time in which event i, of a lane's own unit, moves what it reads or writes: as far as its
 * memory was at work, on whomever. Returns the share of the rest. */
static double explain_memory(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	const struct busy *first = s->by_global[i] ? &s->global : &s->l2;
	const struct task_cost *c = &s->costs[e->task];
	double at_work = 0;

	if (!(c->l2 > 0 || c->global > 0) || from >= to)
		return 1;
	at_work = worked(first, to) - worked(first, from);
	put(s, s->by_global[i] ? BLAME_GLOBAL : BLAME_L2, e->task, NONE, weight * at_work);
	return 1 - fmin(at_work / (to - from), 1);
}

/* What a lane does itself, and what it asks of memory at the same time. */
static void explain_own(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	double latency = s->costs[e->task].latency;
	double idle = explain_memory(s, i, from - latency, to - latency, weight);

	explain_unit(s, i, from, to, weight * idle);
}

static void explain_vector(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	double issue = (double)e->issue, told = (double)e->end - s->costs[e->task].handoff;

	explain_lane(s, s->way_of[i], from, fmin(to, issue), weight, deep);
	explain_own(s, i, fmax(from, issue), fmin(to, told), weight);
	put(s, BLAME_SYNC, e->task, NONE, weight * (to - fmax(from, fmax(issue, told))));
}

static void explain_event(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	const struct seu *u = seu_of(s, e);

	if (from >= to)
		return;
	if (u->kind == SEU_COPY)
		explain_copy(s, i, from, to, weight, deep);
	else if (u->kind == SEU_MATRIX && u->async)
		explain_product(s, i, from, to, weight, deep);
	else
		explain_vector(s, i, from, to, weight, deep);
}

/* The last event in the list that was complete then; NONE. */
static int last_ended(const struct scan *s, const struct ends *list, int64_t then)
{
	int lo = 0, hi = list->v.n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (event_at(s, list->v.v[mid])->end <= then)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? list->v.v[lo - 1] : NONE;
}

/* Is it only there because a place is to be written again? */
static bool is_slot(const struct graph *g, int on, int task)
{
	bool any = false;

	for (int i = g->first_in[task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *x = &g->edges.v[i];

		if (x->from != on)
			continue;
		if (!x->reuse)
			return false;
		any = true;
	}
	return any;
}

/* Event i, of sTask `on`, has the slot. While its unit is at work it is a matter of how long that takes;
 * before, and until it is told, another slot would do. */
static void explain_slot(struct scan *s, int i, int on, double from, double to, double weight,
	int deep)
{
	double issue = to, end = to;

	if (i != NONE && seu_of(s, event_at(s, i))->kind != SEU_COPY) {
		issue = (double)event_at(s, i)->issue;
		end = fmax((double)event_at(s, i)->end, issue);
	}
	put(s, BLAME_SLOT, on, NONE, weight * (fmin(to, issue) - from));
	if (fmax(from, issue) < fmin(to, end))
		explain_event(s, i, fmax(from, issue), fmin(to, end), weight, deep + 1);
	put(s, BLAME_SLOT, on, NONE, weight * (to - fmax(from, end)));
}

/* The lane of event i waits from `from` to `to`, a part of what it waits in all. */
static void explain_wait(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	int held = e->held ? e->held : s->t->measured ? e->cause : CAUSE_NONE;
	int on = e->held ? e->held_task : e->cause_task, x = NONE;

	if (from >= to)
		return;
	if (on < 0 || on >= s->plan->graph->tasks.n || held == CAUSE_NONE) {
		put(s, BLAME_ISSUE, NONE, NONE, weight * (to - from));
		return;
	}
	if (held == CAUSE_ISSUE_ORDER) {
		put(s, BLAME_ISSUE_ORDER, on, NONE, weight * (to - from));
		return;
	}
	if (s->costs && deep < DEEPEST)
		x = last_ended(s, &s->ended[on], e->issue);
	if (is_slot(s->plan->graph, on, e->task))
		explain_slot(s, x, on, from, to, weight, deep);
	else if (x == NONE || x == i)
		put(s, BLAME_DEPENDENCE, on, NONE, weight * (to - from));
	else
		explain_event(s, x, from, to, weight, deep + 1);
}

/* ---- a lane ----------------------------------------------------------------------------- */

/* When the lane comes to its next event; behind the last one, its end. */
static double next_ready(const struct scan *s, int i)
{
	const struct way *w = &s->ways.v[s->way_of[i]];
	const struct event *e = event_at(s, i);

	if (s->at[i] + 1 < w->v.n)
		return fmax((double)event_at(s, w->v.v[s->at[i] + 1])->ready, (double)e->issue);
	return fmax((double)e->end, (double)e->issue);
}

/* From its issue on: a part of that. */
static void explain_issued(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	const struct seu *u = seu_of(s, e);
	double issue = (double)e->issue, end = (double)e->end, lane;

	if (!u->async) {
		if (s->costs)
			explain_own(s, i, from, fmin(to, end), weight);
		else
			put(s, BLAME_PIPE, e->task, e->seu, weight * (fmin(to, end) - from));
		put(s, BLAME_ISSUE, NONE, NONE, weight * (to - fmax(from, end)));
		return;
	}
	lane = issue + (s->costs ? s->costs[e->task].lane : to - issue);
	put(s, BLAME_ISSUE, NONE, NONE, weight * (fmin(to, lane) - from));
	from = fmax(from, lane);
	if (from < to && (u->kind == SEU_MATRIX || s->at[i] + 1 == s->ways.v[s->way_of[i]].v.n))
		explain_event(s, i, from, to, weight, DEEPEST);
	else
		put(s, BLAME_ISSUE, NONE, NONE, weight * (to - from));
}

static void explain_stretch(struct scan *s, int i, double from, double to, double weight, int deep)
{
	const struct event *e = event_at(s, i);
	double ready = (double)e->ready, issue = (double)e->issue;

	explain_wait(s, i, fmax(from, ready), fmin(to, issue), weight, deep);
	from = fmax(from, issue);
	to = fmin(to, next_ready(s, i));
	if (from < to)
		explain_issued(s, i, from, to, weight);
}

/* What the lane was about meanwhile. */
static void explain_lane(struct scan *s, int way, double from, double to, double weight, int deep)
{
	const struct way *w = &s->ways.v[way];
	int lo = 0, hi = w->v.n;

	if (from >= to || !(weight > 0))
		return;
	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if ((double)event_at(s, w->v.v[mid])->ready <= from)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)			/* before it began */
		put(s, BLAME_ISSUE, NONE, NONE, weight * (fmin(to, w->v.n ?
			(double)event_at(s, w->v.v[0])->ready : to) - from));
	for (int k = lo ? lo - 1 : 0; k < w->v.n && (double)event_at(s, w->v.v[k])->ready < to; k++)
		explain_stretch(s, w->v.v[k], from, to, weight, deep);
	if (w->v.n && to > next_ready(s, w->v.v[w->v.n - 1]))
		put(s, BLAME_ISSUE, NONE, NONE, weight *
			(to - fmax(from, next_ready(s, w->v.v[w->v.n - 1]))));
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int way_of(struct scan *s, const struct event *e)
{
	for (int i = 0; i < s->ways.n; i++)
		if (s->ways.v[i].lane == e->lane && s->ways.v[i].replica == e->replica)
			return i;
	VEC_PUSH(s->a, &s->ways, ((struct way){ .lane = e->lane, .replica = e->replica }));
	return s->ways.n - 1;
}

/* Events of each sTask in order of their ends. */
static void sort_ends(struct scan *s)
{
	int n = s->line->events.n, found = 0;
	struct event_time *w = ARENA_ARRAY(s->a, n, struct event_time);

	for (int i = 0; i < n; i++)
		if (s->way_of[i] != NONE)
			w[found++] = (struct event_time){ event_at(s, i)->end, i };
	qsort(w, (size_t)found, sizeof(*w), event_time_compare);
	for (int i = 0; i < found; i++)
		VEC_PUSH(s->a, &s->ended[event_at(s, w[i].event)->task].v, w[i].event);
}

static void scan_init(struct scan *s, struct arena *a, const struct timeline *t,
	const struct phase_line *line, bool plainly)
{
	int n = line->events.n;

	s->line = line;
	s->costs = plainly ? NULL : line->costs;
	s->ways.n = s->ways.cap = 0;
	s->way_of = ARENA_ARRAY(a, n, int);
	s->at = ARENA_ARRAY(a, n, int);
	s->ended = ARENA_ARRAY(a, t->plan->graph->tasks.n, struct ends);
	s->by_global = ARENA_ARRAY(a, n, bool);
	s->through = ARENA_ARRAY(a, n, double);
	s->hold = ARENA_ARRAY(a, n, int);
	s->l2 = s->global = (struct busy){ 0 };
	for (int i = 0; i < n; i++) {
		const struct event *e = event_at(s, i);
		struct way *w;

		s->way_of[i] = NONE;
		if (!event_is_sound(t->plan, e) || e->lane >= LANES_MAX)
			continue;
		s->way_of[i] = way_of(s, e);
		w = &s->ways.v[s->way_of[i]];
		s->at[i] = w->v.n;
		s->hold[i] = e->held ? i : w->v.n ? s->hold[w->v.v[w->v.n - 1]] : NONE;
		VEC_PUSH(a, &w->v, i);
	}
	if (!s->costs)
		return;
	sort_ends(s);
	replay_memory(s);
}

static void explain_phase(struct scan *s, int *replicas)
{
	for (int i = 0; i < s->ways.n; i++) {
		const struct way *w = &s->ways.v[i];

		replicas[w->lane] = (int)max_i64(replicas[w->lane], w->replica + 1);
		s->lane = w->lane;
		s->way = i;
		for (int k = 0; k < w->v.n; k++) {
			const struct event *e = event_at(s, w->v.v[k]);

			s->task = e->task;
			explain_stretch(s, w->v.v[k], (double)e->ready, next_ready(s, w->v.v[k]), 1, 0);
		}
	}
}

/* What has clocks of its own does not wait for the EU's. */
static bool at_own_clock(enum blame why)
{
	return why == BLAME_L2 || why == BLAME_GLOBAL;
}

/* All else would take less at the full clock. */
static void blame_power(struct scan *s)
{
	const struct timeline *t = s->t;
	double less = 1 - t->clock_hz / device_full_clock(t->plan->device, &t->effort);
	int n = s->out->v.n;

	if (t->measured || !(t->clock_hz > 0) || !(less > 0))
		return;
	for (int i = 0; i < n; i++) {
		struct blame_part *p = &s->out->v.v[i];
		double part = p->cycles * less;

		if (at_own_clock(p->why))
			continue;
		p->cycles -= part;
		s->lane = p->lane;
		s->task = p->task;
		put(s, BLAME_POWER, NONE, NONE, part);
	}
}

static int compare_parts(const void *a, const void *b)
{
	const struct blame_part *x = a, *y = b;

	if (x->task != y->task)
		return x->task - y->task;
	if (x->cycles != y->cycles)
		return x->cycles < y->cycles ? 1 : -1;
	if (x->why != y->why)
		return (int)x->why - (int)y->why;
	return x->on != y->on ? x->on - y->on : x->unit - y->unit;
}

static void finish(struct blames *b, const int *replicas)
{
	for (int i = 0; i < b->v.n; i++)
		b->lane_cycles[b->v.v[i].lane] += b->v.v[i].cycles;
	for (int i = 0; i < b->v.n; i++)
		b->v.v[i].share = b->v.v[i].cycles / b->lane_cycles[b->v.v[i].lane];
	for (int i = 0; i < LANES_MAX; i++)
		b->lane_cycles[i] /= (double)max_i64(replicas[i], 1);
	if (b->v.n)
		qsort(b->v.v, (size_t)b->v.n, sizeof(*b->v.v), compare_parts);
}

void timeline_blame(struct arena *a, const struct timeline *t, bool plainly, struct blames *out)
{
	struct scan s = { .a = a, .t = t, .plan = t->plan, .out = out };
	int replicas[LANES_MAX] = { 0 };

	*out = (struct blames){ 0 };
	s.first = ARENA_ARRAY(a, t->plan->graph->tasks.n, int);
	for (int i = 0; i < t->plan->graph->tasks.n; i++)
		s.first[i] = NONE;
	for (int i = 0; i < t->nphases; i++) {
		scan_init(&s, a, t, &t->phases[i], plainly);
		explain_phase(&s, replicas);
	}
	if (!plainly)
		blame_power(&s);
	finish(out, replicas);
}

bool lane_only_feeds(const struct plan *p, int lane)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct seu *s = &p->device->seu[p->entries.v[i].seu];

		if (p->entries.v[i].lane == lane && (s->kind != SEU_COPY || !s->async))
			return false;
	}
	return true;
}
