/* verify.h - does a role program keep the rules? The last pass of lowering.
 *
 * The passes before it derive flags, depths and counts from the relation of the plan's
 * events. This takes the tree as it is, knows nothing of that relation nor of those passes,
 * plays the operations of its lanes (acts.h) and proves, or says what is wrong:
 *
 *  - nobody waits for ever;
 *  - a barrier tells its phases apart by their parity alone: whoever waits for a phase or
 *    arrives for it knows that the one before is over, and no phase ends before all who
 *    wait for the one before have seen it;
 *  - each phase gets the arrivals and bytes that its flag has been told of, once;
 *  - a slot of a ring and the registers of a product are touched only after the write of
 *    the very instance that the program names, and not before those who read what was
 *    there are done, by nothing but the order of each warp, phases seen, groups waited
 *    for, and the lane's own barrier;
 *  - what a warp wrote is read by an engine only after that warp's fence;
 *  - every instance is done once, and a block ends with nothing under way.
 *
 * One play decides for its trip counts. No action depends on data, and one that can go on
 * stays able to until it does, as the parity rule is proven on the way; so every order
 * comes to the same end, and all orders have the same happens-before, which the clocks
 * of play.c compute. A copy or a product is over at the latest moment that this allows.
 *
 * Few trip counts stand for all: what concerns a pair of instances is a few iterations
 * long, and everything repeats with the least common multiple of depths, versions and
 * unrolling (docs/internals/protocol.md has the argument). For a phase with one loop the
 * plays are complete in this sense as long as they stay within VERIFY_ACTIONS; beyond,
 * and for nested loops and for long sequences of unequal tiles, they are a choice, shorter
 * ones first.
 */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "verify/play.h"

enum { VERIFY_ACTIONS = 200000 };

/* What was played. */
struct verified {
	int plays;
	int64_t actions;
	int period;
	bool complete;			/* else it stopped at VERIFY_ACTIONS */
	struct counterexample counterexample;		/* on failure */
};

/* Does phase `phase` of plan p come out of r? ERR_ILLEGAL with sTasks, iterations and the
 * user's line. As the plan is legal, that is a mistake of ours. `a` is scratch; out may be
 * NULL. */
NODISCARD enum err_code verify(const struct role_program *r, const struct plan *p, int phase,
	struct arena *a, struct verified *out, struct err *e);

#endif
