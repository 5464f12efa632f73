/* Indices of a phase's events by sTask and by lane, sorted by issue, and binary searches in them (lookup.h). */
#include "sim/lookup.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum {
	STEPS = 4,			/* iterations after which a steady state repeats, at most */
	DRIFT_LEAST = 32,		/* cycles by which warpgroups drift apart, at least, ... */
	DRIFT_SHARE = 16,		/* ... and this part of an iteration */
};

static const double UNEQUAL = 0.02;	/* intervals that differ by more are not the same */

/* Of all warpgroups. */
static int64_t begin_of(const struct phase_line *line, int event)
{
	const struct event *e = &line->events.v[event];
	int64_t begin = min_i64(e->ready, e->start - e->before);

	for (int g = 0; g < e->nparts; g++)
		begin = min_i64(begin, event_part(line, event, g)->ready);
	return begin;
}

static int64_t end_of(const struct phase_line *line, int event)
{
	int64_t end = line->events.v[event].end;

	for (int g = 0; g < line->events.v[event].nparts; g++)
		end = max_i64(end, event_part(line, event, g)->end);
	return end;
}

bool lookup_drifts(const struct phase_line *line, int event)
{
	int groups = line->events.v[event].nparts + 1;
	bool apart = false;

	for (int i = 0; i < groups; i++)
		for (int k = 0; k < groups; k++) {
			const struct event *x = event_part(line, event, i), *y = event_part(line, event, k);

			apart |= y->start > x->end &&
				(double)(y->issue - x->issue) > fmax(DRIFT_LEAST, line->ii / DRIFT_SHARE);
		}
	return apart;
}

/* Sort the valid events by issue; returns their number. */
static int order_events(struct arena *a, struct lookup *l, struct event_time **out)
{
	const struct phase_line *line = l->line;
	struct event_time *v = ARENA_ARRAY(a, line->events.n, struct event_time);
	bool sorted = true;
	int n = 0;

	l->span = ARENA_ARRAY(a, line->events.n / LOOKUP_BLOCK + 1, struct lookup_span);
	for (int i = 0; i <= line->events.n / LOOKUP_BLOCK; i++)
		l->span[i] = (struct lookup_span){ INT64_MAX, INT64_MIN };
	for (int i = 0; i < line->events.n; i++) {
		const struct event *e = &line->events.v[i];
		struct lookup_span *span = &l->span[i / LOOKUP_BLOCK];

		if (!event_is_placed(l->plan, e))
			continue;
		sorted &= !n || v[n - 1].at <= e->issue;
		v[n++] = (struct event_time){ e->issue, i };
		span->begin = min_i64(span->begin, begin_of(line, i));
		span->end = max_i64(span->end, end_of(line, i));
		l->last = max_i64(l->last, end_of(line, i));
		if (!l->drifts[e->lane] && lookup_drifts(line, i))
			l->drifts[e->lane] = (uint8_t)(e->nparts + 1);
	}
	if (!sorted)
		qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	*out = v;
	return n;
}

void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase)
{
	struct event_time *v;

	*l = (struct lookup){ .plan = t->plan, .line = &t->phases[phase],
		.of_task = ARENA_ARRAY(a, t->plan->graph->tasks.n, struct lookup_list) };
	int n = order_events(a, l, &v);
	for (int i = 0; i < n; i++) {
		const struct event *e = &l->line->events.v[v[i].event];

		VEC_PUSH(a, &l->of_task[e->task], v[i].event);
		VEC_PUSH(a, &l->of_lane[e->lane][e->replica], v[i].event);
	}
}

struct lookup_list lookup_in_sight(struct arena *a, const struct lookup *l, int64_t from, int64_t to)
{
	const struct phase_line *line = l->line;
	struct lookup_list out = { 0 };

	for (int b = 0; b <= line->events.n / LOOKUP_BLOCK; b++) {
		int end = (int)min_i64(line->events.n, (int64_t)(b + 1) * LOOKUP_BLOCK);

		if (l->span[b].begin > to || l->span[b].end < from)
			continue;
		for (int i = b * LOOKUP_BLOCK; i < end; i++) {
			if (event_is_placed(l->plan, &line->events.v[i]) && begin_of(line, i) <= to &&
			    end_of(line, i) >= from)
				VEC_PUSH(a, &out, i);
		}
	}
	return out;
}

/* The index of an event in a list; if it is not in it, of the first one that is issued no earlier. */
static int position_in(const struct lookup *l, const struct lookup_list *list, int event)
{
	const struct event *all = l->line->events.v;
	int64_t issue = all[event].issue;
	int lo;

	BISECT(lo, list->n, all[list->v[lo]].issue < issue || (all[list->v[lo]].issue == issue && list->v[lo] < event));
	return lo;
}

int lookup_cause(const struct lookup *l, int event)
{
	enum { NEAR = 64 };
	const struct event *all = l->line->events.v, *e = &all[event];
	/* the longest delay: its cause, the awaited sTask, and when it ended */
	bool held = e->held != CAUSE_NONE && e->held_task != NONE && e->issue - e->ready >= e->start - e->issue;
	int cause = held ? e->held : e->cause, task = held ? e->held_task : e->cause_task, best = NONE;
	int64_t when = held || cause == CAUSE_WAIT || cause == CAUSE_ISSUE_ORDER || cause == CAUSE_MEETING ? e->issue : e->start;
	int64_t most = INT64_MIN;

	if (cause == CAUSE_NONE || task < 0 || task >= l->plan->graph->tasks.n)
		return NONE;
	const struct lookup_list *list = &l->of_task[task];
	for (int i = position_in(l, list, event) - 1, n = 0; i >= 0 && n < NEAR; i--, n++) {
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

static int step_in(const struct lookup *l, const struct lookup_list *list, int event, int n)
{
	int at = position_in(l, list, event) + n;

	return at >= 0 && at < list->n ? list->v[at] : NONE;
}

int lookup_next_of_lane(const struct lookup *l, int event, int n)
{
	const struct event *e = &l->line->events.v[event];

	return step_in(l, &l->of_lane[e->lane][e->replica], event, n);
}

int lookup_next_of_task(const struct lookup *l, int event, int n)
{
	return step_in(l, &l->of_task[l->line->events.v[event].task], event, n);
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

/* The n-th event of an sTask in one tile, counted from 0, or for n < 0 from the end, where the last is -1; NULL if there
 * are too few. Events come tile by tile, except those of replicas. */
static const struct event *event_of_tile(const struct lookup *l, const struct entry *e, int tile, int n)
{
	const struct lookup_list *list = &l->of_task[e->task];
	const struct event *all = l->line->events.v;
	bool mixed = l->plan->lanes.v[e->lane].replicas > 1;
	int step = n < 0 ? -1 : 1, i;

	BISECT(i, list->n, all[list->v[i]].tile < tile + (n < 0));
	i -= n < 0;
	if (mixed)
		i = n < 0 ? list->n - 1 : 0;
	for (n = n < 0 ? -1 - n : n; i >= 0 && i < list->n; i += step) {
		const struct event *x = &all[list->v[i]];

		if (x->tile == tile && !n--)
			return x;
		if (x->tile != tile && !mixed)
			return NULL;
	}
	return NULL;
}

/* Offsets of a lane's entries in the busiest loop; false if it has none. */
static bool offsets_of(const struct lookup *l, int lane, int *least, int *most)
{
	const struct plan *p = l->plan;

	*least = INT_MAX;
	*most = INT_MIN;
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		if (e->lane != lane || p->graph->tasks.v[e->task].loop != l->line->ii_loop)
			continue;
		*least = (int)min_i64(*least, e->at);
		*most = (int)max_i64(*most, e->at);
	}
	return *least <= *most;
}

/* Of the events [first, end) of a list, how many come before those whose starts are `want` cycles apart every `step`
 * events, for half of all; a loop may end otherwise. -1: there are none. */
static int first_apart(const struct lookup *l, const struct lookup_list *list, int first, int end, int step,
	double want)
{
	const struct event *all = l->line->events.v;
	int run = 0;

	for (int i = first; i + step < end; i++) {
		double took = (double)(all[list->v[i + step]].start - all[list->v[i]].start);

		run = fabs(took - want) <= UNEQUAL * want ? run + 1 : 0;
		if (run > 0 && 2 * run >= end - first - step)
			return i - run + 1 - first;
	}
	return -1;
}

/* The first event of the entry in the tile from which on its starts keep the interval: II, or else one of the tile's
 * own, which may have the memory for itself. -1: there is none. */
static int first_regular(const struct lookup *l, const struct entry *e, int tile, int step)
{
	const struct lookup_list *list = &l->of_task[e->task];
	const struct event *all = l->line->events.v;
	int first, end, at, mid;

	BISECT(first, list->n, all[list->v[first]].tile < tile);
	BISECT(end, list->n, all[list->v[end]].tile <= tile);
	at = first_apart(l, list, first, end, step, l->line->ii * step);
	mid = first + (end - first - step) / 2;
	if (at >= 0 || end - first <= step)
		return at;
	return first_apart(l, list, first, end, step,
		(double)(all[list->v[mid + step]].start - all[list->v[mid]].start));
}

/* How many iterations it takes in the tile until the products and the element-wise work of the lane keep the interval: the
 * first iterations wait for the first tiles, or find all of them there. Over one iteration or a few, whichever takes least: offsets
 * and rings can make iterations alternate. 0 if they never do, as may be in what was measured. Copies are made ahead, in
 * their own time. */
static int regular_from(const struct lookup *l, int lane, int tile, int least)
{
	const struct plan *p = l->plan;
	int best = INT_MAX;

	for (int step = 1; step <= STEPS && l->line->ii > 0 && p->lanes.v[lane].replicas == 1; step++) {
		bool all = true;
		int from = 0;

		for (int i = 0; i < p->entries.n && all; i++) {
			const struct entry *e = &p->entries.v[i];
			const struct stask *s = &p->graph->tasks.v[e->task];
			int first = 0;

			if (e->lane != lane || s->loop != l->line->ii_loop || s->kind == TASK_LOAD)
				continue;
			first = first_regular(l, e, tile, step);
			all = first >= 0;
			from = (int)max_i64(from, first - (e->at - least));
		}
		if (all)
			best = (int)min_i64(best, from);
	}
	return best == INT_MAX ? 0 : best;
}

/* In iteration j of its loop, an entry performs j + `at`. So all entries of a lane have something to do from iteration
 * -least to the one that performs the last instance of the entry with the highest offset. */
static bool steady_of_lane(const struct lookup *l, int lane, int tile, struct lookup_span *all, struct lookup_span *steady)
{
	const struct plan *p = l->plan;
	int least, most, skip;

	*all = *steady = (struct lookup_span){ INT64_MAX, 0 };
	if (!offsets_of(l, lane, &least, &most))
		return false;
	skip = regular_from(l, lane, tile, least);
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];
		const struct event *x;

		if (e->lane != lane || p->graph->tasks.v[e->task].loop != l->line->ii_loop || !(x = event_of_tile(l, e, tile, 0)))
			continue;
		all->begin = min_i64(all->begin, x->start - x->before);
		all->end = max_i64(all->end, event_of_tile(l, e, tile, -1)->end);
		/* with too few iterations, there is no steady state: *steady stays empty */
		x = event_of_tile(l, e, tile, e->at - least + skip);
		steady->begin = x ? min_i64(steady->begin, x->start - x->before) : steady->begin;
		x = event_of_tile(l, e, tile, -1 - (most - e->at));
		steady->end = x ? max_i64(steady->end, x->end) : steady->end;
	}
	return all->begin != INT64_MAX;
}

bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to, int64_t *end)
{
	bool any = false;

	*begin = *to = INT64_MAX;
	*from = *end = 0;
	for (int lane = 0; lane < l->plan->lanes.n && l->line->ii_loop != NONE; lane++) {
		struct lookup_span all, steady;

		if (!steady_of_lane(l, lane, tile, &all, &steady))
			continue;
		any = true;
		*begin = min_i64(*begin, all.begin);
		*from = max_i64(*from, steady.begin);
		*to = min_i64(*to, steady.end);
		*end = max_i64(*end, all.end);
	}
	return any && *from < *to;
}
