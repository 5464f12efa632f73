/* lanes.h - where the lanes of one EU stand: what each waits for, when it can issue, and what it signals to others. For
 * engine.c, which says when work is complete.
 *
 * A lane stands at one instance of its order, or at its end. As soon as all is known that the instance waits for,
 * next[lane] is the tick at which it issues. All times are ticks (engine.h). */
#ifndef SIM_LANES_H
#define SIM_LANES_H

#include "sim/steps.h"

struct lanes {
	struct arena *a;
	const struct plan *plan;
	const struct walk *walk;
	struct steps steps;
	int64_t next[RUNS_MAX];		/* tick at which each lane issues; NEVER: unknown or finished */
	/* where lanes meet */
	const struct role_meetings *meetings;	/* NULL: they signal by flags */
	int attending, came;		/* lanes that meet, and those that have come to the next meeting */
	int64_t last_came;		/* when the last of these did ... */
	int last_lane;			/* ... and which one it is */
	int64_t meeting_cost;
};

/* Prepare the lanes of a run, all before their first instance. *lanes is zero before. ERR_LIMIT as of steps_build. */
NODISCARD enum err_code lanes_init(struct lanes *lanes, struct arena *a, const struct eu_run *r, struct err *err);

static inline struct lane_run *lane_at(const struct lanes *lanes, int lane)
{
	return &lanes->steps.lanes[lane];
}

/* Moves the lane to the next instance of its order, or to its end. */
void lanes_advance(struct lanes *lanes, int lane);
/* Before the waits of the instance: waits for products of the lane itself (wgmma.wait_group). */
void lanes_await_products(struct lanes *lanes, int lane);
/* Records the issue or completion of an instance on its tracks, and retries lanes that are blocked on them. */
void lanes_signal(struct lanes *lanes, struct step *step, int64_t seq, enum wait_when when, int64_t time);
/* Signals to other lanes that the lane's products before number `upto` are complete, at tick `now` or later. */
void lanes_signal_products(struct lanes *lanes, struct lane_run *l, int64_t upto, int64_t now);

/* When no lane can go on: signals complete products for which their own lane has not waited. A kernel waits for them
 * in its prologues and epilogues, which the price leaves out. Returns whether there were such products. */
bool lanes_signal_unawaited(struct lanes *lanes);
/* When no event is left: ERR_ILLEGAL, which says where lanes stand, unless all are at their end. */
NODISCARD enum err_code lanes_check_finished(const struct lanes *lanes, struct err *err);

/* Is instance `seq` of an sTask in `loop` the last one in its iteration of `region`, which is around it? *outer is
 * that iteration and *last the last instance in it; both are computed only when seq is beyond the *last known. */
static inline bool is_last_in(const struct walk *w, int loop, int64_t seq, int region, int64_t *outer, int64_t *last)
{
	if (seq > *last) {
		*outer = walk_outer(w, loop, seq, region);
		*last = walk_inner(w, region, *outer + 1, loop) - 1;
	}
	return seq == *last;
}

/* Ticks by which the handover of its value to another lane delays the instance's completion. run_queued leaves it
 * out, also for the products of a synchronous matrix unit: a simplification. */
static inline int64_t handover_ticks(const struct lanes *lanes, struct step *step, int64_t seq)
{
	int64_t outer;

	return step->handover && is_last_in(lanes->walk, step->loop, seq, step->handover_loop, &outer,
		&step->handover_last) ? step->handover : 0;
}

/* Makes the lane wait until at most n of its products are in flight; NONE: no such wait. */
static inline void require_complete(struct lane_run *l, int n)
{
	if (n != NONE)
		l->must_complete = max_i64(l->must_complete, l->nproducts - 1 - n);
}

static inline struct product *product_at(const struct lane_run *l, int64_t i)
{
	return &l->products[i % l->capacity];
}

#endif
