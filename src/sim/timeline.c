#include "sim/timeline.h"

#include <string.h>

static bool is_cycle(int64_t t)
{
	return t >= -CYCLES_MAX && t <= CYCLES_MAX;
}

bool event_is_sound(const struct plan *p, const struct event *e)
{
	return e->task >= 0 && e->task < p->graph->tasks.n && e->lane < p->lanes.n &&
		e->seu < p->device->nseus && e->start <= e->end && is_cycle(e->ready) &&
		is_cycle(e->issue) && is_cycle(e->start) && is_cycle(e->end);
}

void timeline_new(struct mem *mem, const struct plan *p, struct timeline **out)
{
	struct timeline *t = ARENA_OWNER(mem, struct timeline);
	*out = t;
	t->plan = p;
	t->nphases = p->graph->program->phases.n;
	t->phases = ARENA_ARRAY(&t->arena, t->nphases, struct phase_line);
	t->flops = graph_flops(p->graph);
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	arena_release(&t->arena);
}

const struct phase_line *timeline_longest(const struct timeline *t)
{
	const struct phase_line *best = &t->phases[0];

	for (int i = 1; i < t->nphases; i++)
		if (t->phases[i].cycles > best->cycles)
			best = &t->phases[i];
	return best;
}

bool phases_iterate_alike(const struct timeline *a, const struct phase_line *x, const struct timeline *b,
	const struct phase_line *y)
{
	return x->phase == y->phase && x->ii_loop == y->ii_loop &&
		!memcmp(&a->plan->graph->tiling, &b->plan->graph->tiling, sizeof(struct tiling));
}

int event_time_compare(const void *a, const void *b)
{
	const struct event_time *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->event - y->event;
}

enum { COPIES = 256 };			/* of a lane, as events can name them */

struct task_sum *phase_sums(struct arena *a, const struct timeline *t, int phase)
{
	const struct phase_line *p = &t->phases[phase];
	struct task_sum *sum = ARENA_ARRAY(a, t->plan->graph->tasks.n, struct task_sum);
	/* the last event of each lane: its time ends when the lane reaches the next one */
	const struct event **last = ARENA_ARRAY(a, LANES_MAX * COPIES, const struct event *);

	for (int i = 0; i < p->events.n; i++) {
		const struct event *e = &p->events.v[i];
		const struct event **before = &last[e->lane % LANES_MAX * COPIES + e->replica];

		if (!event_is_sound(t->plan, e))
			continue;
		struct task_sum *s = &sum[e->task];
		s->n++;
		s->duration += (double)(e->end - e->issue);
		s->wait += (double)(e->issue - e->ready);
		s->late += e->late;
		s->lane = e->lane;
		if (*before)
			sum[(*before)->task].held += (double)(e->ready - (*before)->ready);
		*before = e;
	}
	for (int i = 0; i < LANES_MAX * COPIES; i++)
		if (last[i])
			sum[last[i]->task].held += (double)max_i64(last[i]->end - last[i]->ready, 0);
	return sum;
}
