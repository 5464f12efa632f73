/* refine.h - lowering by attempts, refined by the counterexamples that verify found in earlier ones (refine.c); inside
 * src/lower. */
#ifndef LOWER_REFINE_H
#define LOWER_REFINE_H

#include "lower/kernel.h"
#include "verify/verify.h"

/* A lane waits for its product and signals it before it waits at the next instance of `before`, an sTask of its own.
 * before NONE: at the end of the runs of its loops. */
struct complete_before {
	int product, before;
};

/* A wait of sTask `task` for sTask `on` in a loop inside counts the loop's runs, instead of the last instance so
 * far. */
struct sees_runs {
	int task, on;
};

struct refinements {
	VEC(struct complete_before) complete;
	VEC(struct sees_runs) runs;
	VEC(struct flag) depths;	/* flags with the depth that each needs at least */
	VEC(struct flag) in_loop;	/* flags of runs that are signaled with the last instance */
};

/* Makes the kernel of k->plan: all of it, as lower.h says. If the user interrupts (k->stop), it returns early. *wrong: what is wrong with the kernel in the end, as verify
 * or the account of registers says; then `e` says it, too, and the kernel is there to be looked at. */
NODISCARD enum err_code lower_refined(struct kernel *k, enum err_code *wrong, struct err *e);

/* What the refinements ask of the passes. refined_set_depths needs the flags, and sets the least depth of each. */
void refined_set_depths(struct kernel *k);
bool refined_complete_before(const struct kernel *k, int product, int before);
bool refined_sees_runs(const struct kernel *k, const struct wait *w);
bool refined_signals_in_loop(const struct kernel *k, const struct flag *f);

#endif
