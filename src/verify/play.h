/* play.h - executes the actions of a scenario and checks the rules; for use inside src/verify.
 *
 * The actions (acts.h) are executed in one order that their waits allow. The order makes no difference (verify.h),
 * because the rules are checked on vector clocks: how many events of every warp, generations of every barrier and
 * groups of products and stores of every warp come before an event in all executions.
 */
#ifndef VERIFY_PLAY_H
#define VERIFY_PLAY_H

#include "verify/acts.h"

/* A lane waits at an instance of `before`, while other lanes wait until it signals `product`. */
struct unsignalled {
	int product, before;		/* sTasks of the lane; before NONE: it waits at the end of a run of a loop */
};

/* What is known of the execution that breaks a rule; lowering makes refinements of it. */
struct counterexample {
	struct unsignalled unsignalled;	/* lanes wait for each other, one of them only because this product is not
					 * signalled; product NONE: there is no such product */
	int mistaken;			/* a flag of which a lane may take one generation for another; NONE: no flag */
	int run;			/* a flag of runs: all instances of a run are complete, but lanes wait for
					 * each other because its loop has not ended; NONE: no flag */
};
#define COUNTEREXAMPLE_NONE ((struct counterexample){ { NONE, NONE }, NONE, NONE })

/* Executes the scenario. `a` is scratch. ERR_ILLEGAL, with sTasks and iterations, at the first rule that is broken;
 * then *counterexample says what is known of it. */
NODISCARD enum err_code play_scenario(struct arena *a, const struct scenario *s,
	struct counterexample *counterexample, struct err *e);

#endif
