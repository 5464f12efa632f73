/* Sorts the issues and completions of a phase into moments, and derives the states of slots after each (moments.h).
 *
 * A life of a buffer is one value that it holds, from the first write to the last read. It is named by the iteration
 * that makes it, counted over all tiles of the EU; life s is in slot s mod versions (plan/plan.h). The slots after a
 * moment are computed from all events, not from the moment before, so a viewer can jump to any. */
#include "sim/moments.h"

#include <stdlib.h>

#include "plan/assign.h"

/* In the same cycle completions come before issues: an instance can be issued in the cycle in which what it awaits is
 * complete, and a slot must be free before it is filled again. */
static int compare_moments(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	if (a->cycle != b->cycle)
		return a->cycle < b->cycle ? -1 : 1;
	if (a->end != b->end)
		return a->end ? -1 : 1;
	return a->event - b->event;
}

/* Are the slots of the buffer shown? Those in shared memory are. Those in registers are if there are several and the
 * lane has no replicas: each replica has registers of its own and counts only the lives of its own tiles, but here
 * lives are counted over all tiles. */
static bool has_slots_to_show(const struct plan *p, int buffer)
{
	const struct buffer *b = &p->graph->buffers.v[buffer];

	if (plan_scope(p, buffer) == SCOPE_SHARED)
		return true;
	int entry = b->first == NONE ? NONE : plan_entry_of(p, b->first);
	return p->versions[buffer] > 1 && entry != NONE && p->lanes.v[p->entries.v[entry].lane].replicas == 1;
}

void moments_init(struct arena *a, struct moments *m, const struct lookup *l)
{
	const struct phase_line *line = l->line;
	const struct graph *g = l->plan->graph;
	struct tile_assignment d;
	int n = line->events.n;

	*m = (struct moments){ .lookup = l, .v = ARENA_ARRAY(a, 2 * (int64_t)n, struct moment),
		.issue = ARENA_ARRAY(a, n, int), .end = ARENA_ARRAY(a, n, int),
		.ring = ARENA_ARRAY(a, g->buffers.n, int) };
	for (int i = 0; i < n; i++) {
		const struct event *e = &line->events.v[i];

		if (!event_is_sound(l->plan, e))
			continue;
		m->v[m->n++] = (struct moment){ e->issue, i, false };
		/* at least a cycle later, or the order within a cycle would complete the event before its issue */
		m->v[m->n++] = (struct moment){ max_i64(e->end, e->issue + 1), i, true };
	}
	qsort(m->v, (size_t)m->n, sizeof(*m->v), compare_moments);
	for (int i = 0; i < n; i++)
		m->issue[i] = m->end[i] = m->n;	/* an event that is not sound happens at no moment */
	for (int i = 0; i < m->n; i++)
		*(m->v[i].end ? &m->end[m->v[i].event] : &m->issue[m->v[i].event]) = i;
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].phase == line->phase && has_slots_to_show(l->plan, i))
			m->ring[m->nrings++] = i;
	plan_assign_tiles(a, l->plan, line->phase, &d);
	/* an EU that is not known, or has no tiles, counts as the first */
	const int64_t *start = &d.start[line->eu < 0 || line->eu >= d.eus ? 0 : line->eu];
	walk_init(a, &m->walk, g, line->phase, (int)(start[1] - start[0]), d.order + start[0]);
}

int moments_at(const struct moments *m, int64_t cycle)
{
	int lo;

	BISECT(lo, m->n, m->v[lo].cycle <= cycle);
	return lo ? lo - 1 : 0;
}

void moments_lane(const struct moments *m, int at, int lane, int replica, int *last, int *next)
{
	const struct lookup_list *list = &m->lookup->of_lane[lane][replica];
	int lo;

	BISECT(lo, list->n, m->issue[list->v[lo]] <= at);
	*last = lo ? list->v[lo - 1] : NONE;
	*next = lo < list->n ? list->v[lo] : NONE;
}

int64_t moments_life(const struct moments *m, const struct event *e, int buffer)
{
	const struct graph *g = m->lookup->plan->graph;
	int loop = g->tasks.v[e->task].loop, region = g->buffers.v[buffer].loop;

	if (region == NONE)
		return e->tile;
	if (loop == region)
		return e->seq;
	if (!program_loop_within(g->program, loop, region) || e->seq < 0 || e->seq >= walk_count(&m->walk, loop))
		return NONE;
	return walk_outer(&m->walk, loop, e->seq, region);
}

/* Adds an event that accesses the slot's life to the slot's state after moment `at`. *unfinished counts the events
 * that are not complete by then, issued or not. If a reader and a writer are in flight, the reader determines it.
 * An sTask that reads and writes the buffer counts as a writer. */
static void update_slot(const struct moments *m, int at, int buffer, int event, struct slot *s, int *unfinished)
{
	const struct event *e = &m->lookup->line->events.v[event];
	const struct stask *t = &m->lookup->plan->graph->tasks.v[e->task];
	bool writes = ints_hold(t->writes.v, t->writes.n, buffer);
	bool in_flight = m->issue[event] <= at && m->end[event] > at;

	if (writes && in_flight && s->state != SLOT_READ)
		s->state = SLOT_FILLING;
	if (stask_reads(t, buffer) && in_flight && !writes)
		s->state = SLOT_READ;
	if (in_flight)
		s->by = e->task;
	*unfinished += m->end[event] > at;
}

/* Finds the last life of each slot that has begun by moment `at`, which is when the buffer's first writer is issued. A
 * writer in a loop inside the buffer's region has several instances in a life; only the first counts as a fill. */
static void find_lives(const struct moments *m, int at, int buffer, struct slot *out)
{
	const struct plan *p = m->lookup->plan;
	const struct lookup_list *list = &m->lookup->of_task[p->graph->buffers.v[buffer].first];

	for (int i = 0; i < list->n && m->issue[list->v[i]] <= at; i++) {
		int64_t life = moments_life(m, &m->lookup->line->events.v[list->v[i]], buffer);

		if (life < 0)
			continue;
		struct slot *s = &out[life % p->versions[buffer]];
		s->fills += m->end[list->v[i]] <= at && life != s->life;
		if (life >= s->life) {
			s->life = life;
			s->state = SLOT_FULL;
		}
	}
}

void moments_slots(const struct moments *m, int at, int buffer, struct slot *out)
{
	const struct plan *p = m->lookup->plan;
	const struct graph *g = p->graph;
	int versions = p->versions[buffer], unfinished[VERSIONS_MAX] = { 0 };

	for (int k = 0; k < versions; k++)
		out[k] = (struct slot){ .state = SLOT_EMPTY, .life = NONE, .by = NONE };
	if (g->buffers.v[buffer].first != NONE)
		find_lives(m, at, buffer, out);
	for (int t = 0; t < g->tasks.n; t++) {
		const struct lookup_list *list = &m->lookup->of_task[t];

		if (!stask_touches(&g->tasks.v[t], buffer))
			continue;
		for (int i = 0; i < list->n; i++) {
			int64_t life = moments_life(m, &m->lookup->line->events.v[list->v[i]], buffer);
			int k = life < 0 ? 0 : (int)(life % versions);

			if (life >= 0 && out[k].life == life)
				update_slot(m, at, buffer, list->v[i], &out[k], &unfinished[k]);
		}
	}
	for (int k = 0; k < versions; k++)
		if (out[k].state == SLOT_FULL && !unfinished[k])
			out[k].state = SLOT_FREE;
}
