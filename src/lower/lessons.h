/* lessons.h - what the check of a kernel taught, for the next attempt to make it; inside
 * src/lower.
 *
 * The passes derive flags, depths and counts from the relation of the plan's events, which says
 * for every number of iterations what must come before what. Three things it does not know, and
 * whoever asked it for them would have to play the kernel, as the check does:
 *
 *  - Lanes wait at loops that make no iteration, too, behind the loop, for what its sTasks would
 *    have waited for (lower_run_waits). There are no events there.
 *  - A product is complete before others are told of it: when its lane next counts its groups. So
 *    lanes may wait for each other although no event waits for itself.
 *  - At its end a lane waits for the last copies on each of its flags, whoever issued them.
 *
 * So where the check finds phases of a flag mistaken, or lanes that wait for each other, it says
 * which (struct counterexample), that is noted here, and the kernel made again. Nothing is noted twice
 * and each list ends (a depth grows to DEPTH_MAX, a wait is held back at so many distances), so
 * attempts do; there are ATTEMPTS_MOST. The shipped plans take one each, and of random plans
 * nearly all; the most that one took was eight.
 */
#ifndef LOWER_LESSONS_H
#define LOWER_LESSONS_H

#include "lower/kernel.h"
#include "verify/verify.h"

enum { ATTEMPTS_MOST = 64 };

/* A lane learns that its product is complete, and tells the others, before it waits at the next
 * instance of `before`, an sTask of its own. before NONE: at the end of the runs of its loops. */
struct complete_before {
	int product, before;
};

/* An sTask in a region sees another one in a loop inside by that loop's runs, not by the last
 * instance before. */
struct sees_runs {
	int task, on;
};

struct lessons {
	VEC(struct complete_before) complete;
	VEC(struct sees_runs) runs;
	VEC(struct flag) deep;		/* flags that need that depth at least */
	VEC(struct flag) early;		/* flags of runs that are over with the last instance */
};

/* Note what another attempt may do better, in the kernel's arena; false if there is nothing. */
bool lessons_add(struct kernel *k, const struct counterexample *r);

/* needs: flags, without depths; computes: the depth that each has at least. */
void lessons_set_depths(struct kernel *k);
bool lessons_complete_before(const struct kernel *k, int product, int before);
bool lessons_sees_runs(const struct kernel *k, const struct wait *w);
bool lessons_is_early(const struct kernel *k, const struct flag *f);

#endif
