/* play.h - executes the actions of a scenario and checks the rules; for use inside src/verify.
 *
 * The actions (acts.h) are executed in one order that their waits allow. The order makes no difference (verify.h),
 * because each event carries a vector clock: how many events of every warp, phases of every barrier and groups of
 * every warp come before it in all executions.
 */
#ifndef VERIFY_PLAY_H
#define VERIFY_PLAY_H

#include "verify/acts.h"

/* A lane waits at an instance of its sTask `before`, while others wait until it signals its product; before NONE: it
 * waits at the end of the runs of its loops. */
struct unsignalled {
	int product, before;
};

/* What is known of the execution that breaks a rule; lowering makes refinements of it. */
struct counterexample {
	struct unsignalled unsignalled;	/* lanes wait for each other, one of them only because this product is not
					 * signalled; NONE */
	int mistaken;			/* a flag two of whose phases may be taken for each other; NONE */
	int run;			/* a flag of runs: all instances of a run are complete, but lanes wait for
					 * each other because its loop has not ended; NONE */
};
#define COUNTEREXAMPLE_NONE ((struct counterexample){ { NONE, NONE }, NONE, NONE })

/* Executes the scenario. `a` is scratch. ERR_ILLEGAL, with sTasks and iterations, at the first rule that is broken;
 * then *counterexample says what is known of it. */
NODISCARD enum err_code play_scenario(struct arena *a, const struct scenario *s,
	struct counterexample *counterexample, struct err *e);

#endif
