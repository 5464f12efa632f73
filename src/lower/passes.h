/* passes.h - the passes that make a kernel, and what they ask; for use inside src/lower.
 *
 * lower.c calls the passes in the order of this file. Each fills in fields of the kernel
 * that those before it do not look at. The last word has verify (verify/verify.h), which knows
 * nothing of them; what it finds is noted for another attempt (refine.h). */
#ifndef LOWER_PASSES_H
#define LOWER_PASSES_H

#include "lower/lower.h"
#include "plan/events.h"

enum { DEPTH_MAX = 16 };			/* of a flag */

/* lower_plan, and on failure *why. */
NODISCARD enum err_code lower_or_refuse(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct refusal *why, struct err *e);

/* Each pass: the fields of the kernel that it needs; that it computes; what holds then. None of
 * them changes what it needs, but where that is said. */

/* needs: the plan
 * computes: node_shape, carry_shape, deep
 * promises: operands and results of a product agree about their axes; element-wise work keeps them */
NODISCARD enum err_code lower_shapes(struct kernel *k, struct err *e);

/* needs: shapes
 * computes: rings, ring_of, shared_bytes so far
 * promises: what several lanes touch, or an engine, is in a ring, which lies beside all others */
NODISCARD enum err_code lower_rings(struct kernel *k, struct err *e);
/* Does the matrix unit read the buffer as an operand? The rings' layout follows from that;
 * a product by threads reads any. */
bool lower_is_operand(const struct kernel *k, int buffer);
/* Does it multiply the buffer at all? What is beyond the end of a contracted axis must be zero. */
bool lower_is_multiplied(const struct kernel *k, int buffer);
/* Is the node a sum of which each thread keeps its own part? Does it read a carry that such sums
 * are added to, where the parts must be joined? (layout/partial.c; needs shapes and rings.) */
bool lower_is_partial_sum(const struct kernel *k, int node);
bool lower_joins_partial_sums(const struct kernel *k, int node);

/* computes: own, a plan of the kernel's own, whose waits the two below change
 * promises: what must come before what stays as in the plan, or is more */
void lower_own_waits(struct kernel *k);
/* needs: own, rings, refinements; takes out or replaces waits of it
 * promises: a flag can show each wait that is left, or the lane knows. ERR_ILLEGAL: not so */
NODISCARD enum err_code lower_showable_waits(struct kernel *k, struct err *e);
/* Let the sTask that wait number `wait` is for wait in turn for the one that waits. Returns
 * false if it would never go on then, or there are too many waits. */
bool lower_hold_back(struct kernel *k, int wait);

/* Of a ring, the part of s, if it holds all parts: its extents, and in rows and cols what is
 * filled: beyond the value's end with the last part. */
struct frag lower_ring_slice(const struct stask *s, const struct ring *r);
/* needs: rings. Of a load by threads: elements that one copies at once, neighbours in a row. */
int lower_copy_width(const struct kernel *k, int task);
/* ... or that one reads at once, wherever they begin, through registers; 1: none. */
int lower_shifted_width(const struct kernel *k, int task);
/* ... and do the copies themselves arrive at its flag, when they are there? */
bool lower_copies_arrive(const struct kernel *k, int task);

/* needs: own, rings, refinements
 * computes: flags, but for depth and place; flag_of, issue_flag_of, handover_flag_of
 * promises: what any wait of the plan asks for, and whose turn it is, is a phase of one of them */
void lower_flags(struct kernel *k);

/* needs: rings, flags
 * computes: cluster; how rings are cut, and which flags are everybody's */
void lower_cluster(struct kernel *k);

/* needs: own, flags, refinements
 * computes: their depth and place; shared_bytes so far
 * promises: as far as the relation of the plan's events says, nobody takes a phase for another.
 * On failure *unserved is a wait, of `own`, that no depth serves, or NONE. */
NODISCARD enum err_code lower_depths(struct kernel *k, int *unserved, struct err *e);

/* needs: own, rings, flags with depths, refinements
 * computes: lanes, but for outboxes; threads; shared_bytes so far
 * promises: each entry waits for what the plan has it wait for, by flags or by a count of groups */
NODISCARD enum err_code lower_lanes(struct kernel *k, struct err *e);
/* Has the lane something to do in the phase? Otherwise it is no part of the kernel. */
bool lower_has_work(const struct kernel *k, int lane);

/* needs: lanes, threads
 * computes: what the threads of each lane are given; shares_registers
 * promises: together no more than the launch has, so nobody waits for registers for ever */
NODISCARD enum err_code lower_grant(struct kernel *k, struct err *e);
/* What the launch gives to each thread. */
int lower_launched(const struct kernel *k);
/* needs: role; computes: what each lane needs. ERR_ILLEGAL: it is given less */
NODISCARD enum err_code lower_fit_registers(struct kernel *k, struct err *e);

/* needs: all above, as it takes room that is left
 * computes: outboxes: what the copy engine stores; shared_bytes, all of it */
void lower_stores(struct kernel *k);

/* needs: all above
 * computes: role: all of it as one tree of operations (body/body.h) */
NODISCARD enum err_code lower_body(struct kernel *k, struct err *e);

/* What a wait that is seen by flags asks of one of them: what belongs to the iteration of
 * `loop` at hand, or to the one so many before it. */
struct flag_demand {
	int loop, back;
	bool life;			/* nothing if that is before this run of `loop` */
	bool replicas;			/* nothing if it is in this run: only what other replicas of the
					 * lane did is asked for */
	int runs;			/* the flag counts the runs of this loop; NONE: instances */
};
/* Of a wait for an sTask of the same lane: does it ask for what another replica of the lane did,
 * as they take tiles in turn and share a ring; for what the replica at hand did? */
bool lower_awaits_replicas(const struct kernel *k, const struct wait *w);
bool lower_awaits_own(const struct kernel *k, const struct wait *w);
/* Is a wait of a lane that takes tiles in turn for a load of its own so many iterations of a loop
 * back? In its first iterations that is one of the last tile that was the replica's. */
bool lower_awaits_last_tile(const struct kernel *k, const struct wait *w);
/* The parts of a wait, one after the other. *i: 0 before the first. */
bool lower_next_demand(struct kernel *k, const struct wait *w, int *i, struct flag_demand *out);
int lower_demand_flag(const struct kernel *k, const struct wait *w, const struct flag_demand *part);
/* Does the wait ask something of the flag? Then *part is what. */
bool lower_demands(struct kernel *k, const struct wait *w, const struct flag *f,
	struct flag_demand *part);
bool lower_same_flag(const struct flag *a, const struct flag *b);
/* The flag by which replicas of a lane with offsets in the tile loop do a step in turn; NONE. */
int lower_step_handover(const struct kernel *k, int lane, const struct order_step *s);
/* The flag of the loop's runs as an sTask within completes them; NONE. */
int lower_run_flag(const struct kernel *k, int task, int loop);
/* Does instance i of the waiting sTask see by a flag that instance `on` of the other is done? */
bool lower_by_flag_of(const struct kernel *k, const struct wait *w, const struct relation *r, int i,
	int on);
/* A wait of the plan that is seen by flags: what entry x waits for. The flags are there. */
void lower_flag_waits(struct kernel *k, struct kentry *x, int wait);
/* Is a wait for an sTask of a loop inside seen by a flag of that loop's runs? Then *depth
 * is how many runs it may be behind. */
bool lower_waits_for_run(const struct kernel *k, const struct wait *w, int *depth);
/* Must an awaited load wait in turn for the run of the loop that waits for it? */
bool lower_keeps_step(const struct kernel *k, const struct wait *w);
/* What an entry waits for beyond the plan because a loop may make no iteration. */
void lower_run_waits(struct kernel *k, struct kentry *x);
/* The carries in shared memory whose lives entry x may begin. */
void lower_begins(struct kernel *k, struct kentry *x);
/* What lane l, the kernel's `lane_replica`-th, leaves under way where it waits for its own
 * products; where its entries drain. */
void lower_groups(struct kernel *k, struct klane *l, int lane_replica);
/* More waits for groups, of which it is known how many products they may leave: what the machine's
 * compiler asks. */
void lower_stages(struct kernel *k, struct klane *l);

/* Order and events of the plan over a few tiles of which each has that many trips, as far
 * as a loop may have them. In `a`. */
void lower_relation(struct kernel *k, struct arena *a, int64_t trips, int ntiles,
	struct walk *w, struct relation *r);
/* Do all relations hold, over a few tiles, for each number of trips that may make a
 * difference? */
bool lower_all_windows(struct kernel *k, bool (*holds)(void *ctx, const struct relation *r),
	void *ctx);
/* How far a lane's offsets in the tile loop are apart; the least. */
int lower_tile_offsets(const struct kernel *k, int lane, int *least);
/* Offsets of the lanes in the tile loop summed up: that far apart may lanes be beyond waits. */
int lower_tile_spread(const struct kernel *k);
/* More trips than that show nothing new about one iteration and another. */
int64_t lower_window(const struct kernel *k);

static inline const struct stask *stask_at(const struct kernel *k, int task)
{
	return &k->plan->graph->tasks.v[task];
}

/* The matrix instruction of a unit for operands of a type; NULL. */
static inline const struct matrix_instruction *instruction_for(const struct kernel *k,
	const struct seu *unit, enum dtype type)
{
	return unit->kind == SEU_MATRIX ? target_matrix(k->target, unit->async, type) : NULL;
}

static inline const struct seu *seu_of(const struct kernel *k, int task)
{
	return &k->plan->device->seu[k->plan->entries.v[plan_entry_of(k->plan, task)].seu];
}

static inline int lane_of(const struct kernel *k, int task)
{
	return k->plan->entries.v[plan_entry_of(k->plan, task)].lane;
}

/* A product whose end the lane learns of by counting groups. Others are done when the lane
 * goes on: on a synchronous unit, or by threads. */
static inline bool on_matrix(const struct kernel *k, int task)
{
	return seu_of(k, task)->kind == SEU_MATRIX &&
		target_seen(k->target, seu_of(k, task), true) == SEEN_COUNTED;
}

/* A load that the plan's checker takes to go on behind the lane's back: all of its lane,
 * too, see by a flag that it is complete, whoever copies in the end. One on a synchronous unit
 * is done when the lane goes on, as element-wise work is. */
static inline bool is_copy(const struct kernel *k, int task)
{
	return stask_at(k, task)->kind == TASK_LOAD &&
		target_seen(k->target, seu_of(k, task), true) == SEEN_FLAGGED;
}

static inline bool on_one_lane(const struct kernel *k, const struct wait *w)
{
	return lane_of(k, w->task) == lane_of(k, w->on);
}

/* A load of the lane itself, of which only the engine knows when it is complete. */
static inline bool for_own_copy(const struct kernel *k, const struct wait *w)
{
	return on_one_lane(k, w) && is_copy(k, w->on) && w->when != WAIT_ISSUED;
}

/* Is this wait seen by a flag? What a lane has issued itself it knows, and of its products when
 * it counts its groups; but of what another replica of a lane that takes tiles in turn has done it
 * knows nothing. A wait can be about both. */
static inline bool by_flag(const struct kernel *k, const struct wait *w)
{
	if (graph_never_runs(k->plan->graph, w->on) && !is_copy(k, w->on))
		return false;
	if (!on_one_lane(k, w))
		return target_seen(k->target, seu_of(k, w->on), false) == SEEN_FLAGGED;
	return for_own_copy(k, w) || lower_awaits_replicas(k, w);
}

static inline int64_t round_up(int64_t x, int64_t unit)
{
	return ceil_div(x, unit) * unit;
}

#endif
