/* sums.h - a phase's events added up by sTask: what two timelines are compared by. */
#ifndef SIM_SUMS_H
#define SIM_SUMS_H

#include "sim/timeline.h"

struct task_sum {
	int64_t n;			/* instances that were kept */
	double duration;		/* from issue to completion, of all of them */
	double wait;			/* from when the lane came to it until its issue */
	double held;			/* of the lane, until it came to the next one */
	int64_t late;			/* seen by one who came later, so that they may be shorter */
	int lane;
};

/* By sTask of the graph; in `a`. */
struct task_sum *phase_sums(struct arena *a, const struct timeline *t, int phase);

#endif
