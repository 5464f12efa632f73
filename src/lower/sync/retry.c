/* What the check of a kernel teaches about the plan's waits. The passes before reason with
 * the relation of the plan's events, which knows nothing of loops without iterations, whose
 * lanes wait all the same, nor of when a lane tells others of its products. */
#include "lower/passes.h"

static bool complete_first(struct kernel *k, struct held x)
{
	for (int i = 0; i < k->completes_before.n; i++)
		if (k->completes_before.v[i].product == x.product && k->completes_before.v[i].before == x.before)
			return false;
	VEC_PUSH(&k->arena, &k->completes_before, ((struct complete_before){ x.product, x.before }));
	return true;
}

/* Who looks only at the last instance of each run of a loop knows little of those before. */
static bool count_runs(struct kernel *k, const struct flag *f)
{
	struct wait_part part;

	for (int i = 0; i < k->plan->waits.n && !f->runs; i++) {
		const struct wait *w = &k->plan->waits.v[i];

		if (!lower_asks(k, w, f, &part) || part.loop == stask_at(k, w->on)->loop)
			continue;
		VEC_PUSH(&k->arena, &k->runs_only, ((struct run_only){ w->task, w->on }));
		return true;
	}
	return false;
}

static bool tell_early(struct kernel *k, const struct flag *f)
{
	for (int i = 0; i < k->early.n; i++)
		if (lower_same_flag(&k->early.v[i], f))
			return false;
	VEC_PUSH(&k->arena, &k->early, *f);
	return true;
}

static bool deepen(struct kernel *k, const struct flag *f)
{
	struct flag deeper = *f;

	if (f->depth >= DEPTH_MAX)
		return false;
	deeper.depth = (int)min_i64(2 * f->depth, DEPTH_MAX);
	for (int i = k->deeper.n - 1; i >= 0; i--)
		if (lower_same_flag(&k->deeper.v[i], f))
			k->deeper.v[i] = k->deeper.v[--k->deeper.n];
	VEC_PUSH(&k->arena, &k->deeper, deeper);
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

bool lower_retry(struct kernel *k, const struct remedy *r)
{
	const struct flag *f = r->flag == NONE ? NULL : &k->flags.v[r->flag];

	if (r->held.product != NONE)
		return complete_first(k, r->held);
	if (r->late != NONE)
		return tell_early(k, &k->flags.v[r->late]);
	return f && (count_runs(k, f) || deepen(k, f) || hold_back(k, f));
}
