/* What to do about what the check of a kernel has found. */
#include "lower/lessons.h"

#include "lower/passes.h"

bool lessons_complete_before(const struct kernel *k, int product, int before)
{
	for (int i = 0; i < k->lessons->complete.n; i++)
		if (k->lessons->complete.v[i].product == product &&
		    k->lessons->complete.v[i].before == before)
			return true;
	return false;
}

bool lessons_sees_runs(const struct kernel *k, const struct wait *w)
{
	for (int i = 0; i < k->lessons->runs.n; i++)
		if (k->lessons->runs.v[i].task == w->task && k->lessons->runs.v[i].on == w->on)
			return true;
	return false;
}

bool lessons_is_early(const struct kernel *k, const struct flag *f)
{
	for (int i = 0; i < k->lessons->early.n; i++)
		if (lower_same_flag(&k->lessons->early.v[i], f))
			return true;
	return false;
}

void lessons_set_depths(struct kernel *k)
{
	for (int i = 0; i < k->flags.n; i++)
		for (int j = 0; j < k->lessons->deep.n; j++)
			if (lower_same_flag(&k->flags.v[i], &k->lessons->deep.v[j]))
				k->flags.v[i].depth = k->lessons->deep.v[j].depth;
}

static bool complete_first(struct kernel *k, struct untold x)
{
	if (lessons_complete_before(k, x.product, x.before))
		return false;
	VEC_PUSH(&k->arena, &k->lessons->complete, ((struct complete_before){ x.product, x.before }));
	return true;
}

/* Who looks only at the last instance of each run of a loop knows little of those before. */
static bool see_runs(struct kernel *k, const struct flag *f)
{
	struct wait_part part;

	for (int i = 0; i < k->plan->waits.n && !f->runs; i++) {
		const struct wait *w = &k->plan->waits.v[i];

		if (!lower_asks(k, w, f, &part) || part.loop == stask_at(k, w->on)->loop ||
		    lessons_sees_runs(k, w))
			continue;
		VEC_PUSH(&k->arena, &k->lessons->runs, ((struct sees_runs){ w->task, w->on }));
		return true;
	}
	return false;
}

static bool tell_early(struct kernel *k, const struct flag *f)
{
	if (lessons_is_early(k, f))
		return false;
	VEC_PUSH(&k->arena, &k->lessons->early, *f);
	return true;
}

static bool deepen(struct kernel *k, const struct flag *f)
{
	struct flag deeper = *f;

	if (f->depth >= DEPTH_MAX)
		return false;
	deeper.depth = (int)min_i64(2 * f->depth, DEPTH_MAX);
	for (int i = 0; i < k->lessons->deep.n; i++) {
		if (lower_same_flag(&k->lessons->deep.v[i], f)) {
			k->lessons->deep.v[i] = deeper;
			return true;
		}
	}
	VEC_PUSH(&k->arena, &k->lessons->deep, deeper);
	return true;
}

static bool hold_back(struct kernel *k, const struct flag *f)
{
	struct wait_part part;
	bool held = false;
	int n = k->plan->waits.n;

	for (int i = 0; i < n; i++)
		if (lower_asks(k, &k->plan->waits.v[i], f, &part))
			held |= lower_hold_back(k, i);
	return held;
}

bool lessons_add(struct kernel *k, const struct counterexample *r)
{
	const struct flag *f = r->mistaken == NONE ? NULL : &k->flags.v[r->mistaken];

	if (r->untold.product != NONE)
		return complete_first(k, r->untold);
	if (r->run != NONE)
		return tell_early(k, &k->flags.v[r->run]);
	return f && (see_runs(k, f) || deepen(k, f) || hold_back(k, f));
}
