/* bounds.h - how short the initiation interval of a plan's loop could be.
 *
 * ResMII: for every resource the cycles that one iteration of the loop asks of it; the
 * greatest is a bound whatever the order (Rau, Iterative modulo scheduling, MICRO-27
 * 1994). Resources are the sEUs, the memory share, and the lanes, which are held by
 * what they execute on synchronous sEUs and by issuing the rest. RecMII: over every
 * cycle of dependences, the latency around it over the iterations it spans. Both hold
 * for the costs of the model with the plan's assignment of sTasks to lanes and
 * versions to buffers, whatever its order and waits. A loop inside counts with its
 * mean trip count.
 */
#ifndef SIM_BOUNDS_H
#define SIM_BOUNDS_H

#include "plan/plan.h"

enum { BINDING_MEMORY = SEU_MAX, BINDING_LANE };	/* BINDING_LANE + l: lane l */

struct bounds {
	double res_mii;
	int binding_seu;		/* or BINDING_... */
	double rec_mii;
	int ncycle;			/* sTasks of a cycle that gives rec_mii, in order */
	int cycle[32];
};

/* Of loop `loop` (NONE: the tile loop of `phase`). An sTask without an entry counts for
 * nothing. Scratch in `a`, given back. */
void plan_bounds(struct arena *a, const struct plan *p, int phase, int loop,
	struct bounds *out);

/* The same with costs already at hand (see traffic.h). runs: NULL, or by sTask how often it runs in an iteration;
 * what rec_mii is made of then says nothing. */
struct entry_cost;
void bounds_of_costs(struct arena *a, const struct plan *p, const struct entry_cost *costs,
	int phase, int loop, const double *runs, struct bounds *out);

/* Parts of a lane's products that may have come to their unit. */
enum { PRODUCT_PARTS_AHEAD = 3 };

/* What they are made of, for who states the same as a problem (search/loop.h). What a group of an entry's lane
 * takes, of several that go on by themselves; cycles that an instance holds its lane; cycles from its start to its completion; and from the start of the edge's `from`, whose
 * entry and that of `to` stand in the same region, to the first that `to` may have. */
struct entry_cost bounds_group(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_hold(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_latency(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_lag(const struct plan *p, const struct entry_cost *costs, const struct edge *e);

/* Name of a binding resource: the sEU's, "memory", or the lane's. */
const char *binding_name(const struct plan *p, int binding);

#endif
