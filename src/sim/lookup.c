/* Indices of a phase's events by sTask and by lane, sorted by issue, and binary searches in them (lookup.h). */
#include "sim/lookup.h"

#include <stdlib.h>

/* Sort the valid events by issue; returns their number. */
static int order_events(struct arena *a, struct lookup *l, struct event_time **out)
{
	const struct phase_line *line = l->line;
	struct event_time *v = ARENA_ARRAY(a, line->events.n, struct event_time);
	int n = 0;

	l->sorted = true;
	for (int i = 0; i < line->events.n; i++) {
		const struct event *e = &line->events.v[i];

		if (!event_is_placed(l->plan, e))
			continue;
		l->sorted &= !n || v[n - 1].at <= e->issue;
		v[n++] = (struct event_time){ e->issue, i };
		l->before = max_i64(l->before, e->issue - min_i64(e->ready, e->start - e->before));
		l->after = max_i64(l->after, e->end - e->issue);
		l->last = max_i64(l->last, e->end);
	}
	if (!l->sorted)
		qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	*out = v;
	return n;
}

/* Allocate a list for the n events that were counted. */
static void allocate_list(struct arena *a, struct lookup_list *list)
{
	list->v = ARENA_ARRAY(a, list->n, int);
	list->n = 0;
}

static void append(struct lookup_list *list, int event)
{
	((int *)list->v)[list->n++] = event;
}

void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase)
{
	int tasks = t->plan->graph->tasks.n, n;
	struct event_time *v;

	*l = (struct lookup){ .plan = t->plan, .line = &t->phases[phase] };
	l->of_task = ARENA_ARRAY(a, tasks, struct lookup_list);
	n = order_events(a, l, &v);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < n; i++) {
			const struct event *e = &l->line->events.v[v[i].event];
			struct lookup_list *task = &l->of_task[e->task];
			struct lookup_list *lane = &l->of_lane[e->lane][e->replica];

			if (pass) {
				append(task, v[i].event);
				append(lane, v[i].event);
			} else {
				task->n++;
				lane->n++;
			}
		}
		for (int i = 0; i < tasks && !pass; i++)
			allocate_list(a, &l->of_task[i]);
		for (int i = 0; i < LANES_MAX && !pass; i++)
			for (int k = 0; k < REPLICAS_MAX; k++)
				allocate_list(a, &l->of_lane[i][k]);
	}
}

/* The number of events issued before a cycle; events are sorted. */
static int issued_before(const struct lookup *l, int64_t cycle)
{
	int lo;

	BISECT(lo, l->line->events.n, l->line->events.v[lo].issue < cycle);
	return lo;
}

void lookup_window(const struct lookup *l, int64_t from, int64_t to, int *first, int *n)
{
	*first = 0;
	*n = l->line->events.n;
	if (!l->sorted)
		return;
	*first = issued_before(l, from - l->after);
	*n = issued_before(l, to + l->before + 1) - *first;
}

/* The index of an event in a list; if it is not in it, of the first one that is issued no earlier. */
static int position(const struct lookup *l, const struct lookup_list *list, int event)
{
	const struct event *all = l->line->events.v;
	int64_t issue = all[event].issue;
	int lo;

	BISECT(lo, list->n, all[list->v[lo]].issue < issue || (all[list->v[lo]].issue == issue && list->v[lo] < event));
	return lo;
}

/* The longest delay of the event: its cause, the awaited sTask, and when it ended. */
static void longest_cause(const struct event *e, int *cause, int *task, int64_t *when)
{
	bool held = e->held != CAUSE_NONE && e->held_task != NONE && e->issue - e->ready >= e->start - e->issue;

	*cause = held ? e->held : e->cause;
	*task = held ? e->held_task : e->cause_task;
	*when = held || e->cause == CAUSE_WAIT || e->cause == CAUSE_ISSUE_ORDER ? e->issue : e->start;
}

int lookup_cause(const struct lookup *l, int event)
{
	enum { NEAR = 64 };
	const struct event *all = l->line->events.v, *e = &all[event];
	int cause, task, best = NONE;
	int64_t when, most = INT64_MIN;

	longest_cause(e, &cause, &task, &when);
	if (cause == CAUSE_NONE || task < 0 || task >= l->plan->graph->tasks.n)
		return NONE;
	const struct lookup_list *list = &l->of_task[task];
	for (int i = position(l, list, event) - 1, n = 0; i >= 0 && n < NEAR; i--, n++) {
		const struct event *c = &all[list->v[i]];
		int64_t at = cause == CAUSE_ISSUE_ORDER ? c->issue : c->end;

		if (list->v[i] == event || (at > when && cause != CAUSE_SEU && cause != CAUSE_MEMORY))
			continue;
		if (at > most) {
			most = at;
			best = list->v[i];
		}
	}
	return best;
}

static int step(const struct lookup *l, const struct lookup_list *list, int event, int n)
{
	int at = position(l, list, event) + n;

	return at >= 0 && at < list->n ? list->v[at] : NONE;
}

int lookup_next_of_lane(const struct lookup *l, int event, int n)
{
	const struct event *e = &l->line->events.v[event];

	return step(l, &l->of_lane[e->lane][e->replica], event, n);
}

int lookup_next_of_task(const struct lookup *l, int event, int n)
{
	return step(l, &l->of_task[l->line->events.v[event].task], event, n);
}

int lookup_near(const struct lookup *l, const struct lookup_list *list, int64_t cycle)
{
	const struct event *all = l->line->events.v;
	int lo;

	BISECT(lo, list->n, all[list->v[lo]].issue < cycle);
	if (!list->n)
		return NONE;
	if (lo == list->n || (lo > 0 && cycle - all[list->v[lo - 1]].issue <= all[list->v[lo]].issue - cycle))
		lo--;
	return list->v[lo];
}

bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to, int64_t *end)
{
	const struct graph *g = l->plan->graph;
	const struct event *all = l->line->events.v;
	bool any = false;

	*begin = *to = INT64_MAX;
	*from = *end = 0;
	for (int t = 0; t < g->tasks.n && l->line->ii_loop != NONE; t++) {
		const struct lookup_list *list = &l->of_task[t];
		int first = NONE, last = NONE, lo;

		if (g->tasks.v[t].loop != l->line->ii_loop)
			continue;
		BISECT(lo, list->n, all[list->v[lo]].tile < tile);	/* events of a task come tile by tile */
		for (; lo < list->n && all[list->v[lo]].tile == tile; lo++) {
			first = first == NONE ? list->v[lo] : first;
			last = list->v[lo];
		}
		if (first == NONE)
			continue;
		any = true;
		*begin = min_i64(*begin, all[first].start);
		*from = max_i64(*from, all[first].start);
		*to = min_i64(*to, all[last].end);
		*end = max_i64(*end, all[last].end);
	}
	return any && *from < *to;
}
