#include "plan/events.h"

#include <string.h>

struct arcs {
	int *head, *next, *from;	/* arcs into an event, as lists */
	int n, cap;
};

static void add_arc(struct arena *a, struct arcs *g, int from, int to)
{
	if (g->n == g->cap) {
		int cap = g->cap ? g->cap * 2 : 1024;
		int *next = ARENA_ARRAY(a, cap, int), *src = ARENA_ARRAY(a, cap, int);

		if (g->n) {
			memcpy(next, g->next, (size_t)g->n * sizeof(int));
			memcpy(src, g->from, (size_t)g->n * sizeof(int));
		}
		g->next = next;
		g->from = src;
		g->cap = cap;
	}
	g->from[g->n] = from;
	g->next[g->n] = g->head[to];
	g->head[to] = g->n++;
}

static void collect_instances(struct arena *a, struct relation *r)
{
	const struct plan *p = r->plan;
	VEC(struct node_instance) v = { 0 };
	VEC(int) first = { 0 };

	for (int lane = 0; lane < p->lanes.n; lane++) {
		for (int copy = 0; copy < p->lanes.v[lane].turns; copy++) {
			struct cursor *c = cursor_new(a, p, r->walk, lane, copy);
			struct instance i;

			VEC_PUSH(a, &first, v.n);
			for (int place = 0; cursor_next(c, &i); place++)
				VEC_PUSH(a, &v, ((struct node_instance){
					.task = p->entries.v[i.entry].task, .entry = i.entry,
					.lane = lane, .copy = copy, .seq = i.seq,
					.place = place }));
		}
	}
	r->nlanes = first.n;
	VEC_PUSH(a, &first, v.n);
	r->lane_first = first.v;
	r->inst = v.v;
	r->n = v.n;
}

static void index_instances(struct arena *a, struct relation *r)
{
	const struct graph *g = r->plan->graph;
	int total = 0;

	r->of_task = ARENA_ARRAY(a, g->tasks.n + 1, int);
	for (int t = 0; t < g->tasks.n; t++) {
		r->of_task[t] = total;
		if (g->tasks.v[t].phase == r->walk->phase)
			total += (int)walk_count(r->walk, g->tasks.v[t].loop);
	}
	r->index = ARENA_ARRAY(a, total, int);
	for (int i = 0; i < total; i++)
		r->index[i] = NONE;
	for (int i = 0; i < r->n; i++)
		r->index[r->of_task[r->inst[i].task] + r->inst[i].seq] = i;
}

static const struct seu *unit_of(const struct relation *r, int i)
{
	return &r->plan->device->seu[r->plan->entries.v[r->inst[i].entry].seu];
}

static void instance_arcs(struct arena *a, const struct relation *r, struct arcs *g, int i)
{
	const struct plan *p = r->plan;
	int prev = r->inst[i].place ? i - 1 : NONE;

	add_arc(a, g, i * 3 + AT_ISSUE, i * 3 + AT_START);
	add_arc(a, g, i * 3 + AT_START, i * 3 + AT_END);
	if (prev != NONE)
		add_arc(a, g, prev * 3 + (unit_of(r, prev)->async ? AT_ISSUE : AT_END),
			i * 3 + AT_ISSUE);
	for (int k = 0; k < p->waits.n; k++) {
		const struct wait *w = &p->waits.v[k];
		struct span spans[SPANS_MAX];
		int n;

		if (w->task != r->inst[i].task)
			continue;
		n = walk_wait_spans(r->walk, p, w, r->inst[i].seq, spans);
		for (int s = 0; s < n; s++) {
			for (int64_t x = spans[s].first; x < spans[s].last; x++) {
				int on = relation_instance(r, w->on, x);

				if (on != NONE)
					add_arc(a, g, on * 3 + (w->when == WAIT_ISSUED ? AT_ISSUE :
						AT_END), i * 3 + AT_ISSUE);
			}
		}
	}
}

/* On an ordered unit the work of one lane copy starts when the one before is done. */
static void queue_arcs(struct arena *a, const struct relation *r, struct arcs *g, int lane)
{
	int last[SEU_MAX];

	for (int u = 0; u < SEU_MAX; u++)
		last[u] = NONE;
	for (int i = r->lane_first[lane]; i < r->lane_first[lane + 1]; i++) {
		int u = r->plan->entries.v[r->inst[i].entry].seu;

		if (!unit_of(r, i)->async || !unit_of(r, i)->ordered)
			continue;
		if (last[u] != NONE)
			add_arc(a, g, last[u] * 3 + AT_END, i * 3 + AT_START);
		last[u] = i;
	}
}

/* Follow unfinished predecessors from an event that never got ready until one comes
 * again: the cycle, in order of waiting. */
static void find_cycle(struct arena *a, struct relation *r, const struct arcs *g,
	const bool *done)
{
	int *seen = ARENA_ARRAY(a, r->n * 3, int);
	int e = 0, steps = 0, start;
	VEC(int) cycle = { 0 };

	while (done[e])
		e++;
	for (; !seen[e]; steps++) {
		seen[e] = 1;
		for (int k = g->head[e]; k != NONE; k = g->next[k]) {
			if (!done[g->from[k]]) {
				e = g->from[k];
				break;
			}
		}
	}
	start = e;
	do {
		if (!cycle.n || cycle.v[cycle.n - 1] != e / 3)
			VEC_PUSH(a, &cycle, e / 3);
		for (int k = g->head[e]; k != NONE; k = g->next[k]) {
			if (!done[g->from[k]]) {
				e = g->from[k];
				break;
			}
		}
	} while (e != start);
	if (cycle.n > 1 && cycle.v[0] == cycle.v[cycle.n - 1])
		cycle.n--;
	r->cycle = cycle.v;
	r->ncycle = cycle.n;
}

/* Events in an order that respects every arc; false if there is none. */
static bool sort_events(struct arena *a, struct relation *r, const struct arcs *g, int *order)
{
	int n = r->n * 3, out = 0, *left = ARENA_ARRAY(a, n, int);
	int *succ_head = ARENA_ARRAY(a, n, int), *succ_next = ARENA_ARRAY(a, g->n, int);
	int *target = ARENA_ARRAY(a, g->n, int);
	bool *done = ARENA_ARRAY(a, n, bool);

	for (int e = 0; e < n; e++)
		succ_head[e] = NONE;
	for (int e = 0; e < n; e++) {
		for (int k = g->head[e]; k != NONE; k = g->next[k]) {
			left[e]++;
			target[k] = e;
			succ_next[k] = succ_head[g->from[k]];
			succ_head[g->from[k]] = k;
		}
	}
	for (int e = 0; e < n; e++)
		if (!left[e])
			order[out++] = e;
	for (int i = 0; i < out; i++) {
		done[order[i]] = true;
		for (int k = succ_head[order[i]]; k != NONE; k = succ_next[k])
			if (--left[target[k]] == 0)
				order[out++] = target[k];
	}
	if (out < n)
		find_cycle(a, r, g, done);
	return out == n;
}

void relation_build(struct arena *a, const struct plan *p, const struct walk *w,
	struct relation *out)
{
	struct arcs g = { 0 };
	int *order;

	*out = (struct relation){ .plan = p, .walk = w };
	collect_instances(a, out);
	index_instances(a, out);
	g.head = ARENA_ARRAY(a, out->n * 3, int);
	for (int e = 0; e < out->n * 3; e++)
		g.head[e] = NONE;
	for (int i = 0; i < out->n; i++)
		instance_arcs(a, out, &g, i);
	for (int lane = 0; lane < out->nlanes; lane++)
		queue_arcs(a, out, &g, lane);
	order = ARENA_ARRAY(a, out->n * 3, int);
	if (!sort_events(a, out, &g, order))
		return;
	out->words = ((size_t)out->n * 3 + 63) / 64;
	out->before = arena_array(a, (size_t)out->n * 3, out->words * sizeof(uint64_t));
	for (int i = 0; i < out->n * 3; i++) {
		uint64_t *row = out->before + (size_t)order[i] * out->words;

		for (int k = g.head[order[i]]; k != NONE; k = g.next[k]) {
			const uint64_t *from = out->before + (size_t)g.from[k] * out->words;

			for (size_t x = 0; x < out->words; x++)
				row[x] |= from[x];
			row[g.from[k] / 64] |= (uint64_t)1 << (g.from[k] % 64);
		}
	}
}
