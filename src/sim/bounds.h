/* bounds.h - lower bounds of the initiation interval (II) of a plan's loop.
 *
 * ResMII: the largest number of cycles that one iteration of the loop needs of a resource (Rau, Iterative
 * modulo scheduling, MICRO-27, 1994). Resources are the sEUs, the EU's share of L2 and device memory, and
 * the lanes, which are occupied by their work on synchronous sEUs and by issuing to the others. RecMII: the
 * largest ratio, over all cycles of dependences, of the latency around the cycle to the iterations that it
 * spans. Both hold for the costs of the model and the plan's lanes, units and versions, whatever its order
 * and waits. An inner loop counts with its mean trip count. */
#ifndef SIM_BOUNDS_H
#define SIM_BOUNDS_H

#include "plan/plan.h"

enum { BINDING_MEMORY = SEU_MAX, BINDING_LANE };	/* BINDING_LANE + l: lane l */

struct bounds {
	double res_mii;			/* cycles per iteration */
	int binding_seu;		/* the resource that determines it: an sEU, or BINDING_... */
	double rec_mii;			/* cycles per iteration */
	int ncycle;			/* sTasks of a cycle that determines rec_mii, in order */
	int cycle[32];
};

/* The bounds of loop `loop` (NONE: the tile loop of `phase`), without kernels' costs. An sTask without an entry
 * costs nothing. Scratch memory in `a`, released on return. */
void plan_bounds(struct arena *a, const struct plan *p, int phase, int loop, struct bounds *out);

/* The same for given costs, by entry (traffic.h). runs: by sTask, how often it runs per iteration, and then
 * rec_mii is meaningless; NULL: as the graph says. */
struct entry_cost;
void bounds_of_costs(struct arena *a, const struct plan *p, const struct entry_cost *costs,
	int phase, int loop, const double *runs, struct bounds *out);

/* Parts of a lane's products that may be at their unit at a time. */
enum { PRODUCT_PARTS_AHEAD = 3 };

/* The costs of one entry that the bounds are computed from, in cycles; search/loop.h states them as constraints.
 *
 * bounds_group: of one warpgroup, if the lane's warpgroups run separately. bounds_hold: the time that an
 * instance occupies its lane. bounds_latency: from its start to its completion. bounds_lag: from the start
 * of e->from to the earliest start of e->to; both must have entries, and be in the same region. */
struct entry_cost bounds_group(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_hold(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_latency(const struct plan *p, const struct entry_cost *costs, int entry);
double bounds_lag(const struct plan *p, const struct entry_cost *costs, const struct edge *e);

/* The name of a binding resource: of the sEU, of the lane, or "memory". Borrowed from the plan. */
const char *binding_name(const struct plan *p, int binding);

#endif
