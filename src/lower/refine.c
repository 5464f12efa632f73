/* Lowering as counterexample-guided refinement: one loop of attempts.
 *
 * Flags, depths and counts are derived from the relation of the plan's events, which says for every number of
 * iterations what must come before what. It does not know four things:
 *
 *  - Whether a flag of bounded depth can serve a wait at all. If lower_depths finds none that does, a wait is added
 *    that holds back the lane that runs ahead. As that changes the relation, everything is derived again.
 *  - Behind a loop that made no iteration, a lane waits for what the sTasks of the loop would have waited for
 *    (lower_run_waits). The relation has no events for that.
 *  - A lane signals a product only when it next counts its groups, later than the product is complete. So lanes may
 *    wait for each other although the relation has no cycle.
 *  - At its end a lane waits for the last copies on each of its flags, whichever lane issued them.
 *
 * To know the last three, one would have to play the kernel, as verify does. So where verify finds that phases of a
 * flag can be mistaken, or that lanes wait for each other, it returns that counterexample, a refinement is noted, and
 * the kernel is made again. The loop ends, as no refinement is noted twice and each list is bounded: a depth grows to
 * DEPTH_MAX, and a kernel has a limited number of waits (WAITS_MOST in own_waits.c). But that may be after many attempts,
 * so ATTEMPTS_MOST ends it first. The shipped plans take one attempt each, and of random plans nearly all; the most that
 * one took was eight. */
#include "lower/refine.h"

#include "lower/passes.h"
#include "plan/assign.h"

enum { ATTEMPTS_MOST = 64 };

/* The result of an attempt that did not end in an error. */
struct outcome {
	int unserved;			/* a wait for which no flag can be deep enough; lowering stopped at it; NONE */
	enum err_code wrong;		/* what check_bytes or verify says; OK: nothing, or the kernel was not to be proven */
	struct counterexample counterexample;
};

/* queries of the passes ---------------------------------------------------------- */

bool refined_complete_before(const struct kernel *k, int product, int before)
{
	for (int i = 0; i < k->refinements->complete.n; i++)
		if (k->refinements->complete.v[i].product == product && k->refinements->complete.v[i].before == before)
			return true;
	return false;
}

bool refined_sees_runs(const struct kernel *k, const struct wait *w)
{
	for (int i = 0; i < k->refinements->runs.n; i++)
		if (k->refinements->runs.v[i].task == w->task && k->refinements->runs.v[i].on == w->on)
			return true;
	return false;
}

bool refined_signals_in_loop(const struct kernel *k, const struct flag *f)
{
	for (int i = 0; i < k->refinements->in_loop.n; i++)
		if (lower_same_flag(&k->refinements->in_loop.v[i], f))
			return true;
	return false;
}

void refined_set_depths(struct kernel *k)
{
	for (int i = 0; i < k->flags.n; i++)
		for (int j = 0; j < k->refinements->depths.n; j++)
			if (lower_same_flag(&k->flags.v[i], &k->refinements->depths.v[j]))
				k->flags.v[i].depth = k->refinements->depths.v[j].depth;
}

/* refinements -------------------------------------------------------------------- */

/* A waiter that looks at the flag once in each run, of which each has several generations, may mistake one of them for
 * another. With a flag of runs it cannot: that has one generation for each. */
static bool see_runs(struct kernel *k, const struct flag *f)
{
	struct flag_demand demand;

	for (int i = 0; i < k->plan->waits.n && !f->runs; i++) {
		const struct wait *w = &k->plan->waits.v[i];

		if (!lower_has_demand(k, w, f, &demand) || demand.loop == stask_at(k, w->on)->loop ||
		    refined_sees_runs(k, w))
			continue;
		VEC_PUSH(&k->arena, &k->refinements->runs, ((struct sees_runs){ w->task, w->on }));
		return true;
	}
	return false;
}

static bool deepen(struct kernel *k, const struct flag *f)
{
	struct flag deeper = *f;

	if (f->depth >= DEPTH_MAX)
		return false;
	deeper.depth = (int)min_i64(2 * f->depth, DEPTH_MAX);
	for (int i = 0; i < k->refinements->depths.n; i++) {
		if (lower_same_flag(&k->refinements->depths.v[i], f)) {
			k->refinements->depths.v[i] = deeper;
			return true;
		}
	}
	VEC_PUSH(&k->arena, &k->refinements->depths, deeper);
	return true;
}

static bool hold_back(struct kernel *k, const struct flag *f)
{
	struct flag_demand demand;
	bool held = false;
	int n = k->plan->waits.n;

	for (int i = 0; i < n; i++)
		if (lower_has_demand(k, &k->plan->waits.v[i], f, &demand))
			held |= lower_hold_back(k, i);
	return held;
}

/* What the next attempt does otherwise; false if nothing is left to try. If lanes wait for each other: signal the product
 * sooner, or signal the end of a run inside its loop. If generations of a flag can be mistaken: see_runs and so on. */
static bool refine_by(struct kernel *k, const struct counterexample *r)
{
	const struct flag *f = r->mistaken == NONE ? NULL : &k->flags.v[r->mistaken];
	struct complete_before first = { r->unsignalled.product, r->unsignalled.before };
	bool known;

	if (first.product != NONE) {
		known = refined_complete_before(k, first.product, first.before);
		if (!known)
			VEC_PUSH(&k->arena, &k->refinements->complete, first);
		return !known;
	}
	if (r->run != NONE) {
		known = refined_signals_in_loop(k, &k->flags.v[r->run]);
		if (!known)
			VEC_PUSH(&k->arena, &k->refinements->in_loop, k->flags.v[r->run]);
		return !known;
	}
	return f && (see_runs(k, f) || deepen(k, f) || hold_back(k, f));
}

/* attempts --------------------------------------------------------------------- */

static enum err_code check_threads(struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;

	k->refusal.code = PROBLEM_THREADS;
	if (k->threads <= d->max_threads)
		return OK;
	return err_set(e, ERR_ILLEGAL, NOWHERE, "the lanes, each padded to complete groups of %d warps, "
		"have %d threads; an EU of '%s' takes %d", k->target->group, k->threads, d->name, d->max_threads);
}

/* More than the rings take, which print(plan) shows: a message that says what for. counters: bytes of those at which lanes
 * synchronize, as far as that is known. */
static enum err_code check_bytes(struct kernel *k, int64_t counters, struct err *e)
{
	const struct vdevice *d = k->plan->device;
	int64_t slack = shared_slack(&k->target->shared), bytes = k->shared_bytes + slack, rings = 0, flags = 0;

	k->refusal.code = PROBLEM_SHARED_MEMORY;
	k->refusal.shared_bytes = 0;
	if (bytes <= d->shared_bytes)
		return OK;
	k->refusal.shared_bytes = bytes;
	for (int i = 0; i < k->rings.n; i++)
		if (k->plan->graph->buffers.v[k->rings.v[i].buffer].alias_of == NONE)
			rings += k->rings.v[i].slot_bytes * k->rings.v[i].versions;
	for (int i = 0; i < k->flags.n; i++)
		flags += (int64_t)k->flags.v[i].depth * k->target->shared.flag;
	return err_set(e, ERR_ILLEGAL, NOWHERE, "the kernel needs %lld bytes of shared memory, '%s' "
		"has %lld: %lld for rings, %lld for %ss, %lld to stage stores and to exchange values between the threads "
		"of a lane%s%s", (long long)bytes, d->name, (long long)d->shared_bytes, (long long)rings,
		(long long)flags, target_flag_name(k->target), (long long)(bytes - slack - counters - rings - flags),
		k->taken.lane != NONE ? ", and for numbers of tiles" : "",
		slack ? arena_strf(&k->arena, ", %lld to align all of it", (long long)slack) : counters ?
		arena_strf(&k->arena, ", %lld for counters at which lanes synchronize", (long long)counters) : "");
}

static enum err_code attempt(struct kernel *k, struct outcome *out, struct err *e)
{
	struct verified v;

	*out = (struct outcome){ .unserved = NONE, .counterexample = COUNTEREXAMPLE_NONE };
	k->flags.n = k->lanes.n = k->outboxes.n = k->parts.n = k->ncarry_starts = 0;
	k->refusal.code = PROBLEM_WAITS;
	k->meetings.interval = 0;
	TRY(lower_remove_hidden_waits(k, e));
	lower_meetings(k);
	lower_flags(k);
	lower_cluster(k);
	TRY(lower_depths(k, &out->unserved, e));
	lower_kept(k);
	k->refusal.code = PROBLEM_BARRIERS;
	TRY(lower_lanes(k, e));
	TRY(check_threads(k, e));
	k->refusal.code = PROBLEM_DYNAMIC;
	TRY(lower_taken(k, e));
	k->refusal.code = PROBLEM_CLUSTER;
	TRY(lower_cluster_sums(k, e));
	lower_stores(k);
	k->refusal.code = PROBLEM_REGISTERS;
	TRY(lower_grant(k, e));
	out->wrong = check_bytes(k, 0, e);
	if (out->wrong)
		return OK;		/* not an error here: the bytes and the lanes of such a kernel can be shown */
	k->refusal.code = PROBLEM_LAYOUT;
	TRY(lower_body(k, e));
	out->wrong = check_bytes(k, k->role->ncounters * ROLE_COUNTER_BYTES, e);
	if (out->wrong)
		return OK;
	k->refusal.code = PROBLEM_KERNEL;
	if (k->unproven)
		return OK;
	out->wrong = verify(k->role, k->plan, k->phase, &k->arena, &v, e);
	out->counterexample = v.counterexample;
	return OK;
}

/* Attempt until nothing is wrong, or no refinement helps. bytes: of shared memory, before each attempt. */
static enum err_code refine(struct kernel *k, int64_t bytes, struct outcome *out, struct err *e)
{
	for (int attempts = 0;;) {
		enum err_code code;

		k->shared_bytes = bytes;
		code = attempt(k, out, e);
		if (stop_asked(k->stop))
			return OK;
		if (out->unserved != NONE && lower_hold_back(k, out->unserved))
			continue;
		if (code)
			return code;
		if (!out->wrong || ++attempts == ATTEMPTS_MOST || !refine_by(k, &out->counterexample))
			return OK;
	}
}

enum err_code lower_refined(struct kernel *k, enum err_code *wrong, struct err *e)
{
	struct outcome out;
	int64_t bytes;

	k->most_tiles = (int)max_i64(1, plan_most_tiles(&k->arena, k->plan, k->phase));
	k->refinements = ARENA_NEW(&k->arena, struct refinements);
	k->refusal = (struct refusal){ .code = PROBLEM_LAYOUT, .task = NONE };
	TRY(lower_shapes(k, e));
	TRY(lower_rings(k, e));
	bytes = k->shared_bytes;
	lower_copy_waits(k);
	for (;;) {
		TRY(refine(k, bytes, &out, e));
		*wrong = out.wrong;
		if (*wrong || stop_asked(k->stop))
			return OK;
		k->refusal.code = PROBLEM_REGISTERS;
		*wrong = lower_fit_registers(k, e);
		if (!*wrong)
			lower_grant_more(k);
		if (!*wrong || !lower_share_by_need(k))
			return OK;
	}
}
