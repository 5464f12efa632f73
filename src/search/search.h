/* search.h - find a plan: PipeThreader's two-level policy on the simulator.
 *
 * Inter-EU (Cheng et al., OSDI 2025, Fig. 9): enumerate tile shapes of the output and
 * the loops, Propagate each, deal the tiles over the EUs. Intra-EU: greedy list
 * scheduling in simulated time, asynchronous sTasks first, then those with fewest
 * unscheduled dependences, then those that unlock most; a candidate that does not fit
 * is passed over. Where the paper runs each candidate on the device, this first
 * search asks the simulator.
 *
 * Two deviations. The list is scheduled over a few unrolled iterations and folded
 * back into one turn with iteration offsets, which is the plan's canonical form; and
 * how many versions register values have is part of the enumeration, since it decides
 * what may overlap. A shape whose analytic bound (work of the busiest unit over all
 * iterations, without any waiting) is no better than the best plan is not tried.
 *
 * The search is a sequence of steps, so that a caller can stop it, show progress and
 * keep what was found. The same program and device give the same steps everywhere.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "sim/sim.h"

struct search;

struct search_result {
	const struct plan *plan;	/* NULL: nothing legal found; owned by the search */
	const struct timeline *timeline;
	int trials;			/* plans simulated */
	int shapes;			/* tile shapes looked at */
	int pruned;			/* shapes cut off by their bound */
	double bound_seconds;		/* least of all shapes' analytic bounds */
};

/* program and device are borrowed and outlive the search. *out is set first, so that a
 * caller whose failure handler jumps out of here can free what there is. */
NODISCARD enum err_code search_new(struct mem *mem, const struct program *p,
	const struct vdevice *d, struct search **out, struct err *e);
void search_free(struct search *s);

/* Try the next candidate. *more is false when there is none left. Candidates that do
 * not work are no error; ERR_INTERRUPTED when `stop` asks. */
NODISCARD enum err_code search_step(struct search *s, const struct stop *stop, bool *more,
	struct err *e);
struct search_result search_best(const struct search *s);

/* The best plan as statements on a fresh plan of its tile shape (plan_script with the
 * split before it); nothing if there is none. */
void search_script(const struct search *s, struct buf *out);

#endif
