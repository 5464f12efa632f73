#include "sim/timeline.h"

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
	struct arena a;

	arena_init(&a, mem);
	struct timeline *t = ARENA_NEW(&a, struct timeline);
	t->arena = a;
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
	struct arena a = t->arena;			/* the timeline lies in its own arena */
	arena_release(&a);
}

const struct phase_line *timeline_longest(const struct timeline *t)
{
	const struct phase_line *best = &t->phases[0];

	for (int i = 1; i < t->nphases; i++)
		if (t->phases[i].cycles > best->cycles)
			best = &t->phases[i];
	return best;
}

int event_time_compare(const void *a, const void *b)
{
	const struct event_time *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->event - y->event;
}
