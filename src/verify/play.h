/* play.h - one play of a kernel's lanes, and whether it goes well; inside src/verify.
 *
 * The actions of acts.h are done in some order that they allow. Which order makes no
 * difference (verify.h), as each event carries a clock: how many events of every warp,
 * phases of every barrier and groups of every warp come before it in all executions.
 */
#ifndef VERIFY_PLAY_H
#define VERIFY_PLAY_H

#include "verify/acts.h"

/* A lane waits at an instance of sTask `before` of its own, and others wait to be told by it of its
 * product; before NONE: at the end of the runs of its loops. */
struct untold {
	int product, before;
};

/* What may mend a kernel that does not go well. */
struct counterexample {
	struct untold untold;		/* lanes wait for each other, and one of them only because
					 * nobody has told it of this product; NONE */
	int mistaken;			/* a flag whose phases may be, for each other; NONE */
	int run;			/* a flag of runs: one has had its last instance, and nobody
					 * can go on because its loop has not ended; NONE */
};
#define COUNTEREXAMPLE_NONE ((struct counterexample){ { NONE, NONE }, NONE, NONE })

/* `a` is scratch. The error tells what goes wrong first, with sTasks and iterations. */
NODISCARD enum err_code play_script(struct arena *a, const struct script *s,
	struct counterexample *counterexample, struct err *e);

#endif
