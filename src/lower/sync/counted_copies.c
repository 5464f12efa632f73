/* How many of its own copies a lane may leave under way before each meeting, where loads are made of copies without registers
 * (lower_dma_copies), which complete in order and which their lane counts.
 *
 * A lane publishes such a load by a meeting, for which it must first wait until its copies are there: just before the last
 * meeting that is in front of all that waits for the load. Then the lane's younger copies remain under way. How many these are is
 * counted by following the lane's order through loops of few iterations, and the least for each class of iterations is taken. */
#include "lower/passes.h"

#include <limits.h>

/* A load that a lane has issued. It may be one by way of registers, which is complete, on the same unit: who waits for it knows
 * that those before it are complete, too. */
struct issued {
	int meeting;			/* it must be there before this one */
	int64_t end;			/* the lane's copies up to its last one */
};

struct count {
	struct kernel *k;
	int lane, nsteps;
	const struct order_step *steps;
	int least;			/* of the lane's offsets in the loop */
	const int *within;
	int meeting;
	int64_t copies, complete;	/* issued; known to be there */
	VEC(struct issued) issued;
};

static bool is_on_counted_unit(const struct kernel *k, int entry)
{
	const struct entry *e = &k->plan->entries.v[entry];
	const struct stask *s = stask_at(k, e->task);

	return s->kind == TASK_LOAD && target_seen(k->target, &k->plan->device->seu[e->seu], true) == SEEN_COUNTED;
}

static struct copies_wait *new_waits(struct kernel *k, int n)
{
	struct copies_wait *w = ARENA_ARRAY(&k->arena, n, struct copies_wait);

	for (int i = 0; i < n; i++)
		for (int c = 0; c < ITERATION_CLASSES; c++)
			w[i].left[c] = -1;
	return w;
}

static void meet(struct count *x, struct copies_wait *w, int class)
{
	int64_t needed = 0;
	int left;

	for (int i = 0; i < x->issued.n; i++)
		if (x->issued.v[i].meeting <= x->meeting)
			needed = max_i64(needed, x->issued.v[i].end);
	x->meeting++;
	if (needed <= x->complete)
		return;
	left = (int)min_i64(x->copies - needed, x->k->target->dma_most);
	if (w->left[class] < 0 || left < w->left[class])
		w->left[class] = left;
	x->complete = needed;
}

static void issue(struct count *x, const struct entry *e, int entry)
{
	x->copies += lower_dma_copies(x->k, e->task);
	VEC_PUSH(&x->k->arena, &x->issued, ((struct issued){ x->within[entry] == INT_MAX ? INT_MAX :
		x->meeting + x->within[entry] - 1, x->copies }));
}

/* Follows the lane through a loop of so many iterations. */
static void follow(struct count *x, int64_t trips, int most)
{
	const struct meetings *m = &x->k->meetings;
	const struct kregion region = { .max_offset = most };

	x->meeting = 0;
	x->copies = x->complete = 0;
	x->issued.n = 0;
	for (int64_t j = -most; j < trips; j++) {
		int class = iteration_class(&region, j, trips);

		for (int i = 0; i < x->nsteps; i++) {
			int entry = x->steps[i].id;
			const struct entry *e = &x->k->plan->entries.v[entry];
			int64_t n = j + e->at - x->least;

			for (int b = 0; b < m->before[entry]; b++)
				meet(x, &m->before_wait[entry][b], class);
			if (n >= 0 && n < trips && is_on_counted_unit(x->k, entry))
				issue(x, e, entry);
		}
		for (int b = 0; b < m->end[x->lane]; b++)
			meet(x, &m->end_wait[x->lane][b], class);
	}
}

/* The greatest number of meetings that a load of the lane may be under way; 0: it has no counted load. */
static int longest(const struct count *x)
{
	int most = 1, counted = 0;

	for (int i = 0; i < x->nsteps; i++) {
		int entry = x->steps[i].id;

		counted |= lower_dma_copies(x->k, x->k->plan->entries.v[entry].task) > 0;
		if (is_on_counted_unit(x->k, entry) && x->within[entry] < INT_MAX)
			most = (int)max_i64(most, x->within[entry]);
	}
	return counted ? most : 0;
}

void lower_count_copies(struct kernel *k, int loop, const int *within)
{
	struct meetings *m = &k->meetings;
	const struct trips *trips = &k->plan->graph->trips[loop];

	m->before_wait = ARENA_ARRAY(&k->arena, k->plan->entries.n, struct copies_wait *);
	m->end_wait = ARENA_ARRAY(&k->arena, k->plan->lanes.n, struct copies_wait *);
	for (int lane = 0; lane < k->plan->lanes.n; lane++) {
		struct count x = { .k = k, .lane = lane, .within = within };
		struct order_step *steps;
		int most, far;

		if (!lower_has_work(k, lane))
			continue;
		x.nsteps = order_steps(&k->arena, k->plan, lane, k->phase, loop, &steps, &x.least, &most);
		x.steps = steps;
		most -= x.least;
		far = longest(&x);
		if (!far)
			continue;
		m->end_wait[lane] = new_waits(k, m->end[lane]);
		for (int i = 0; i < x.nsteps; i++)
			m->before_wait[steps[i].id] = new_waits(k, m->before[steps[i].id]);
		/* behind so many iterations everything repeats */
		far = 2 * most + far / m->interval + 3;
		for (int64_t n = min_i64(trips->least, far); n <= min_i64(trips->most, far); n++)
			follow(&x, n, most);
	}
}
