/* bounds.h - how short the initiation interval of a plan's loop could be.
 *
 * ResMII: for every sEU (and the memory share) the cycles that one iteration of the
 * loop asks of it; the greatest is a bound whatever the order (Rau, Iterative modulo
 * scheduling, MICRO-27 1994). RecMII: over every cycle of dependences, the latency
 * around it over the iterations it spans. Both hold for the costs of the model with
 * the plan's assignment of sTasks to lanes and versions to buffers.
 */
#ifndef SIM_BOUNDS_H
#define SIM_BOUNDS_H

#include "plan/plan.h"

struct bounds {
	double res_mii;
	int binding_seu;		/* SEU_MAX: memory */
	double rec_mii;
	int ncycle;			/* sTasks of a cycle that gives rec_mii, in order */
	int cycle[32];
};

/* Of loop `loop` (NONE: the tile loop of `phase`). Every task must have an entry. */
void plan_bounds(const struct plan *p, int phase, int loop, struct bounds *out);

#endif
