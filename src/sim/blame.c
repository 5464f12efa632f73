/* Explains lanes' time (blame.h). explain_lane divides an interval of a lane's time into visits of sTasks,
 * explain_visit each of these into waiting and what follows the issue, and explain_event the waiting by what
 * the awaited event did: recursively, since that may wait for another lane. Every cause is added with a
 * weight, the share of the interval that it stands for. All times are cycles. */
#include "sim/blame.h"

#include <math.h>
#include <stdlib.h>

enum { DEEPEST = 8 };			/* longest chain of lanes waiting for each other that is followed */

const char *const blame_names[] = { "issue", "pipe", "dependence", "shared", "l2", "global", "slot",
	"turn", "sync", "power" };
_Static_assert(LEN(blame_names) == BLAMES, "a name for every kind");

/* A time in which a memory is at work without a pause; cycles of all such times before it. */
struct busy_period {
	double from, to, before;
};

struct memory_queue {
	VEC(struct busy_period) v;
};

/* The events of one replica of a lane, in order. */
struct lane_events {
	int lane, replica;
	VEC(int) v;
};

struct scan {
	struct arena *a;
	const struct timeline *t;
	const struct plan *plan;
	const struct phase_line *line;
	const struct task_cost *costs;	/* by sTask; NULL: not known, or not to be used */
	VEC(struct lane_events) lanes;
	int *lane_of;			/* by event: index in lanes; NONE: no valid event */
	int *position;			/* by event: index among its lane's events */
	struct ends { VEC(int) v; } *ended;	/* by sTask: events in order of their ends */
	struct memory_queue l2, global;
	double *delivered;		/* by event: when L2 and device memory have delivered */
	bool *from_global;		/* ... and device memory was the last */
	int *last_held;			/* by event: the last event of its lane, up to it, whose lane
					 * had to wait; NONE */
	struct blames *out;
	int *first;			/* by sTask: its first part in *out; NONE */
	int lane, explained, task;	/* whose time is explained: lane, index in lanes, sTask */
};

static const struct event *event_at(const struct scan *s, int i)
{
	return &s->line->events.v[i];
}

static const struct seu *seu_of(const struct scan *s, const struct event *e)
{
	return &s->plan->device->seu[e->seu];
}

/* Add cycles to the part of the current sTask with this cause; nothing if cycles is not positive. */
static void add_part(struct scan *s, enum blame why, int on, int unit, double cycles)
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

/* Work of `cycles` arrives at `now`, behind what arrived before; returns when it is finished. */
static double enqueue_work(struct arena *a, struct memory_queue *b, double now, double cycles)
{
	struct busy_period *last = b->v.n ? &b->v.v[b->v.n - 1] : NULL;
	double start = last ? fmax(now, last->to) : now;

	if (last && start == last->to)
		last->to += cycles;
	else
		VEC_PUSH(a, &b->v, ((struct busy_period){ start, start + cycles,
			last ? last->before + last->to - last->from : 0 }));
	return start + cycles;
}

/* The last busy period that begins before `then`; NULL. */
static const struct busy_period *period_before(const struct memory_queue *b, double then)
{
	int lo;

	BISECT(lo, b->v.n, b->v.v[lo].from < then);
	return lo ? &b->v.v[lo - 1] : NULL;
}

/* Cycles that the memory was busy before `then`. */
static double busy_cycles(const struct memory_queue *b, double then)
{
	const struct busy_period *x = period_before(b, then);

	return x ? x->before + fmin(then, x->to) - x->from : 0;
}

/* Replay the queues of L2 and device memory, which engine.c serves in order of issue. */
static void replay_memory(struct scan *s)
{
	for (int i = 0; i < s->line->events.n; i++) {
		const struct event *e = event_at(s, i);
		double l2 = 0, global = 0;

		if (s->lane_of[i] == NONE)
			continue;
		const struct task_cost *c = &s->costs[e->task];
		if (c->l2 > 0)
			l2 = enqueue_work(s->a, &s->l2, (double)e->start, c->l2);
		if (c->global > 0)
			global = enqueue_work(s->a, &s->global, (double)e->start, c->global);
		s->from_global[i] = global > l2;
		s->delivered[i] = fmax(l2, global);
	}
}

/* ---- what is waited for ------------------------------------------------------------------ */

static void explain_lane(struct scan *s, int lane, double from, double to, double weight, int depth);

/* The unit is at work on event i, or on earlier work in its queue. */
static void explain_unit(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	double shared = s->costs ? s->costs[e->task].shared : 0;

	if (from >= to)
		return;
	add_part(s, BLAME_SHARED, e->task, e->seu, weight * shared * (to - from));
	add_part(s, BLAME_PIPE, e->task, e->seu, weight * (1 - shared) * (to - from));
}

/* Memory, then the copy engine, is at work on event i. */
static void explain_transfer(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	double delivered = s->delivered[i];

	add_part(s, s->from_global[i] ? BLAME_GLOBAL : BLAME_L2, e->task, NONE, weight * (fmin(to, delivered) - from));
	add_part(s, BLAME_PIPE, e->task, e->seu, weight * (to - fmax(from, delivered)));
}

/* The lane of copy i had to wait before it could issue it. Without that wait the copy would have arrived
 * earlier, so the interval is shifted back to that wait and explained by what the lane did then; unless
 * memory was already busy when the lane continued, so that an earlier issue would not have helped. */
static void explain_late_copy(struct scan *s, int i, double from, double to, double weight, int depth)
{
	const struct event *e = event_at(s, i);
	const struct busy_period *x = period_before(s->from_global[i] ? &s->global : &s->l2, s->delivered[i]);
	double requested = (double)event_at(s, s->last_held[i])->issue;
	/* the start of the busy period in which memory delivers for the copy; its start if it needs no memory */
	double since = s->delivered[i] > 0 && x ? x->from : (double)e->start;
	double shift = s->plan->device->flag_latency + (since < requested ? s->costs[e->task].latency :
		(double)e->end - requested);

	from -= shift;
	to -= shift;
	if (since >= requested)
		since = to;
	explain_lane(s, s->lane_of[i], from, fmin(to, since), weight, depth);
	if (fmax(from, since) < to)
		explain_transfer(s, i, fmax(from, since), to, weight);
}

static void explain_copy(struct scan *s, int i, double from, double to, double weight, int depth)
{
	const struct event *e = event_at(s, i);
	double issue = (double)e->issue, end = (double)e->end;
	double delivered = end - s->costs[e->task].latency;

	if (s->last_held[i] != NONE && s->lane_of[i] != s->explained) {
		explain_late_copy(s, i, from, to, weight, depth);
		return;
	}
	explain_lane(s, s->lane_of[i], from, fmin(to, issue), weight, depth);
	if (fmax(from, issue) < fmin(to, delivered))
		explain_transfer(s, i, fmax(from, issue), fmin(to, delivered), weight);
	add_part(s, BLAME_DEPENDENCE, e->task, NONE, weight * (fmin(to, end) - fmax(from, fmax(issue, delivered))));
	add_part(s, BLAME_SYNC, e->task, NONE, weight * (to - fmax(from, end)));
}

/* A synchronous unit is at work for its lane. The time in which memory was at work while event i copied, for whichever
 * event, is memory's; the unit has the remainder. */
static void explain_own(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	const struct memory_queue *q = s->from_global[i] ? &s->global : &s->l2;
	const struct task_cost *c = &s->costs[e->task];
	double busy = 0;

	if (from >= to)
		return;
	if (c->l2 > 0 || c->global > 0) {
		busy = busy_cycles(q, to - c->latency) - busy_cycles(q, from - c->latency);
		add_part(s, s->from_global[i] ? BLAME_GLOBAL : BLAME_L2, e->task, NONE, weight * busy);
	}
	explain_unit(s, i, from, to, weight * (1 - fmin(busy / (to - from), 1)));
}

/* Event i is awaited in [from, to): its lane had to issue it, its unit to do it, and its lane to signal it. */
static void explain_event(struct scan *s, int i, double from, double to, double weight, int depth)
{
	const struct event *e = event_at(s, i);
	const struct task_cost *c = &s->costs[e->task];
	const struct seu *u = seu_of(s, e);
	bool is_product = u->kind == SEU_MATRIX && u->async;
	double issue = (double)e->issue, signaled = (double)e->end - c->handover;
	double done = is_product ? (double)e->end - c->latency : signaled;

	if (from >= to)
		return;
	if (u->kind == SEU_COPY) {
		explain_copy(s, i, from, to, weight, depth);
		return;
	}
	explain_lane(s, s->lane_of[i], from, fmin(to, issue), weight, depth);
	(is_product ? explain_unit : explain_own)(s, i, fmax(from, issue), fmin(to, done), weight);
	add_part(s, BLAME_DEPENDENCE, e->task, NONE, weight * (fmin(to, signaled) - fmax(from, fmax(issue, done))));
	add_part(s, BLAME_SYNC, e->task, NONE, weight * (to - fmax(from, fmax(issue, signaled))));
}

/* Do all dependences of `task` on `on` only protect a slot that is written again? */
static bool is_reuse_only(const struct graph *g, int on, int task)
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

/* Event i, of sTask `on`, still uses the slot. While its unit is at work, that work is the cause; before, and
 * until the signal, it is the slot: one more version would avoid the wait. */
static void explain_slot(struct scan *s, int i, int on, double from, double to, double weight, int depth)
{
	const struct event *e = i == NONE ? NULL : event_at(s, i);
	bool is_known = e && seu_of(s, e)->kind != SEU_COPY;
	double issue = is_known ? (double)e->issue : to, end = is_known ? fmax((double)e->end, issue) : to;

	add_part(s, BLAME_SLOT, on, NONE, weight * (fmin(to, issue) - from));
	if (fmax(from, issue) < fmin(to, end))
		explain_event(s, i, fmax(from, issue), fmin(to, end), weight, depth + 1);
	add_part(s, BLAME_SLOT, on, NONE, weight * (to - fmax(from, end)));
}

/* The lane waits for event i to be issuable, in an interval of that wait. */
static void explain_wait(struct scan *s, int i, double from, double to, double weight, int depth)
{
	const struct event *e = event_at(s, i);
	int held = e->held ? e->held : s->t->measured ? e->cause : CAUSE_NONE;
	int on = e->held ? e->held_task : e->cause_task, last = NONE;

	if (from >= to)
		return;
	if (on < 0 || on >= s->plan->graph->tasks.n || held == CAUSE_NONE) {
		add_part(s, BLAME_ISSUE, NONE, NONE, weight * (to - from));
		return;
	}
	if (held == CAUSE_ISSUE_ORDER) {
		add_part(s, BLAME_ISSUE_ORDER, on, NONE, weight * (to - from));
		return;
	}
	if (s->costs && depth < DEEPEST) {	/* the last event of that sTask which was complete at the issue */
		const struct ends *list = &s->ended[on];
		int n;

		BISECT(n, list->v.n, event_at(s, list->v.v[n])->end <= e->issue);
		last = n ? list->v.v[n - 1] : NONE;
	}
	if (held != CAUSE_MEETING && is_reuse_only(s->plan->graph, on, e->task))
		explain_slot(s, last, on, from, to, weight, depth);
	else if (last == NONE || last == i)
		add_part(s, BLAME_DEPENDENCE, on, NONE, weight * (to - from));
	else
		explain_event(s, last, from, to, weight, depth + 1);
}

/* ---- a lane ----------------------------------------------------------------------------- */

/* When the lane reaches its next event; after the last one, the end of that. */
static double next_ready(const struct scan *s, int i)
{
	const struct lane_events *l = &s->lanes.v[s->lane_of[i]];
	const struct event *e = event_at(s, i);

	if (s->position[i] + 1 < l->v.n)
		return fmax((double)event_at(s, l->v.v[s->position[i] + 1])->ready, (double)e->issue);
	return fmax((double)e->end, (double)e->issue);
}

/* An interval between the issue of event i and the lane's next event. */
static void explain_issued(struct scan *s, int i, double from, double to, double weight)
{
	const struct event *e = event_at(s, i);
	const struct seu *u = seu_of(s, e);
	double issue = (double)e->issue, end = (double)e->end;

	if (!u->async) {
		if (s->costs)
			explain_own(s, i, from, fmin(to, end), weight);
		else
			add_part(s, BLAME_PIPE, e->task, e->seu, weight * (fmin(to, end) - from));
		add_part(s, BLAME_ISSUE, NONE, NONE, weight * (to - fmax(from, end)));
		return;
	}
	double lane = issue + (s->costs ? s->costs[e->task].lane : to - issue);
	add_part(s, BLAME_ISSUE, NONE, NONE, weight * (fmin(to, lane) - from));
	from = fmax(from, lane);
	if (from < to && (u->kind == SEU_MATRIX || s->position[i] + 1 == s->lanes.v[s->lane_of[i]].v.n))
		explain_event(s, i, from, to, weight, DEEPEST);
	else
		add_part(s, BLAME_ISSUE, NONE, NONE, weight * (to - from));
}

/* The part of [from, to) in which the lane was at event i. */
static void explain_visit(struct scan *s, int i, double from, double to, double weight, int depth)
{
	const struct event *e = event_at(s, i);
	double ready = (double)e->ready, issue = (double)e->issue;

	explain_wait(s, i, fmax(from, ready), fmin(to, issue), weight, depth);
	from = fmax(from, issue);
	to = fmin(to, next_ready(s, i));
	if (from < to)
		explain_issued(s, i, from, to, weight);
}

/* What the lane did in [from, to). */
static void explain_lane(struct scan *s, int lane, double from, double to, double weight, int depth)
{
	const struct lane_events *l = &s->lanes.v[lane];
	int lo;

	if (from >= to || !(weight > 0))
		return;
	BISECT(lo, l->v.n, (double)event_at(s, l->v.v[lo])->ready <= from);
	if (!lo)			/* before it began */
		add_part(s, BLAME_ISSUE, NONE, NONE, weight * (fmin(to, l->v.n ?
			(double)event_at(s, l->v.v[0])->ready : to) - from));
	for (int k = lo ? lo - 1 : 0; k < l->v.n && (double)event_at(s, l->v.v[k])->ready < to; k++)
		explain_visit(s, l->v.v[k], from, to, weight, depth);
	if (l->v.n && to > next_ready(s, l->v.v[l->v.n - 1]))
		add_part(s, BLAME_ISSUE, NONE, NONE, weight * (to - fmax(from, next_ready(s, l->v.v[l->v.n - 1]))));
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int lane_of(struct scan *s, const struct event *e)
{
	for (int i = 0; i < s->lanes.n; i++)
		if (s->lanes.v[i].lane == e->lane && s->lanes.v[i].replica == e->replica)
			return i;
	VEC_PUSH(s->a, &s->lanes, ((struct lane_events){ .lane = e->lane, .replica = e->replica }));
	return s->lanes.n - 1;
}

/* Sort the events of each sTask by their ends. */
static void sort_ends(struct scan *s)
{
	int n = s->line->events.n, found = 0;
	struct event_time *w = ARENA_ARRAY(s->a, n, struct event_time);

	for (int i = 0; i < n; i++)
		if (s->lane_of[i] != NONE)
			w[found++] = (struct event_time){ event_at(s, i)->end, i };
	qsort(w, (size_t)found, sizeof(*w), event_time_compare);
	for (int i = 0; i < found; i++)
		VEC_PUSH(s->a, &s->ended[event_at(s, w[i].event)->task].v, w[i].event);
}

static void scan_init(struct scan *s, struct arena *a, const struct timeline *t,
	const struct phase_line *line, bool events_only)
{
	int n = line->events.n;

	s->line = line;
	s->costs = events_only ? NULL : line->costs;
	s->lanes.n = s->lanes.cap = 0;
	s->lane_of = ARENA_ARRAY(a, n, int);
	s->position = ARENA_ARRAY(a, n, int);
	s->ended = ARENA_ARRAY(a, t->plan->graph->tasks.n, struct ends);
	s->from_global = ARENA_ARRAY(a, n, bool);
	s->delivered = ARENA_ARRAY(a, n, double);
	s->last_held = ARENA_ARRAY(a, n, int);
	s->l2 = s->global = (struct memory_queue){ 0 };
	for (int i = 0; i < n; i++) {
		const struct event *e = event_at(s, i);

		s->lane_of[i] = NONE;
		if (!event_is_sound(t->plan, e) || e->lane >= LANES_MAX)
			continue;
		s->lane_of[i] = lane_of(s, e);
		struct lane_events *l = &s->lanes.v[s->lane_of[i]];
		s->position[i] = l->v.n;
		s->last_held[i] = e->held ? i : l->v.n ? s->last_held[l->v.v[l->v.n - 1]] : NONE;
		VEC_PUSH(a, &l->v, i);
	}
	if (!s->costs)
		return;
	sort_ends(s);
	replay_memory(s);
}

static void explain_phase(struct scan *s, int *replicas)
{
	for (int i = 0; i < s->lanes.n; i++) {
		const struct lane_events *l = &s->lanes.v[i];

		replicas[l->lane] = (int)max_i64(replicas[l->lane], l->replica + 1);
		s->lane = l->lane;
		s->explained = i;
		for (int k = 0; k < l->v.n; k++) {
			const struct event *e = event_at(s, l->v.v[k]);

			s->task = e->task;
			explain_visit(s, l->v.v[k], (double)e->ready, next_ready(s, l->v.v[k]), 1, 0);
		}
	}
}

/* Move the share of the time that the full clock would save to BLAME_POWER. */
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

		/* memory has clocks of its own: a lower clock of the EUs does not make it slower */
		if (p->why == BLAME_L2 || p->why == BLAME_GLOBAL)
			continue;
		p->cycles -= part;
		s->lane = p->lane;
		s->task = p->task;
		add_part(s, BLAME_POWER, NONE, NONE, part);
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

static void compute_shares(struct blames *b, const int *replicas)
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

void timeline_blame(struct arena *a, const struct timeline *t, bool events_only, struct blames *out)
{
	struct scan s = { .a = a, .t = t, .plan = t->plan, .out = out };
	int replicas[LANES_MAX] = { 0 };

	*out = (struct blames){ 0 };
	s.first = ARENA_ARRAY(a, t->plan->graph->tasks.n, int);
	for (int i = 0; i < t->plan->graph->tasks.n; i++)
		s.first[i] = NONE;
	for (int i = 0; i < t->nphases; i++) {
		scan_init(&s, a, t, &t->phases[i], events_only);
		explain_phase(&s, replicas);
	}
	if (!events_only)
		blame_power(&s);
	compute_shares(out, replicas);
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
