#include "sim/sums.h"

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
