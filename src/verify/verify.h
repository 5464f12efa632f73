/* verify.h - proves that a role program keeps the rules of synchronisation. The last pass of lowering.
 *
 * The passes before it derive flags, depths and counts from the dependences of the plan's events. verify uses neither
 * those dependences nor those passes. It takes the finished tree, executes the synchronisation of its lanes for given
 * trip counts (a *play* of a scenario, acts.h) and proves, or says what is wrong:
 *
 *  - no lane waits for ever;
 *  - generations of a barrier, which only their parity distinguishes, are not mistaken: a warp that waits or arrives
 *    for one knows that the one before is over, and none completes before all waiters have seen the one before;
 *  - each generation gets just the arrivals and bytes that its flag expects;
 *  - a read of a slot or of registers finds the value of the instance that the program says, and a write comes after
 *    all reads of what was there. This must follow from the order of each warp, generations seen, groups waited for
 *    and the lane's own barrier alone;
 *  - an engine reads or overwrites what a warp wrote, and overwrites what it read, only after that warp's fence;
 *  - every instance is executed once, and a block ends with nothing under way.
 *
 * One play proves this for its trip counts. No action depends on data, and an action that can be executed stays so
 * until it is, because the parity rule is proven at the same time. So all orders come to the same end and have the same
 * happens-before relation, which the vector clocks of play.c compute. A copy or a product counts as over at the latest
 * moment that this relation allows.
 *
 * Few trip counts stand for all: a rule is about instances that are a few iterations apart, and everything repeats with
 * the least common multiple of depths, versions and unrolling (docs/internals/verify.md has the argument). For a phase
 * with one loop the plays are complete in this sense unless a limit is reached: VERIFY_ACTIONS, or one of verify.c.
 * Then, and for several loops or long sequences of unequal tiles, they are a sample, shorter ones first.
 */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "verify/play.h"

enum { VERIFY_ACTIONS = 200000 };	/* of all plays, which then take some 15 ms */

/* What was done. */
struct verified {
	int plays;
	int64_t actions;
	int period;			/* iterations after which everything repeats (verify.c) */
	bool complete;			/* no limit (VERIFY_ACTIONS, those of verify.c) was reached; may still be a sample */
	struct counterexample counterexample;	/* on failure */
};

/* Does r implement phase `phase` of plan p? ERR_ILLEGAL, with sTasks, iterations and the user's line, if not; because
 * the plan is legal, that is an error of lowering. ERR_LIMIT: loops in one another take too many iterations for a single
 * play. `a` is scratch; out may be NULL. */
NODISCARD enum err_code verify(const struct role_program *r, const struct plan *p, int phase,
	struct arena *a, struct verified *out, struct err *e);

#endif
