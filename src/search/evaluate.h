/* evaluate.h - from a choice to its predicted time.
 *
 * The graph and the plan of a choice are built (build.h), waits are repaired, the plan is checked and simulated. First
 * the simulation is rough: by the plan's entries alone, on the EU that has most to do. If that is faster than the best
 * candidate so far, the plan is lowered and simulated again with the costs of its kernels. These only add to the time,
 * with few exceptions, so a plan that is slower without them need not be lowered.
 *
 * Candidates share work. Plans with the same order have the same repaired waits, whatever the size of their tiles,
 * and if they differ only in the order of tiles the same problems; equal plans have the same time; the assignment
 * of tiles to EUs is cached. */
#ifndef SEARCH_EVALUATE_H
#define SEARCH_EVALUATE_H

#include "plan/assign.h"
#include "search/tried.h"

enum { REFUSAL_KINDS = 32 };		/* problem codes; greater ones count as code 0 */

struct refusal_count {
	int count;
	const char *message;		/* of the first candidate that was refused for this reason */
};

struct repaired;
struct legal;

struct evaluator {
	struct arena *a;		/* borrowed, as all up to `tried` */
	struct mem *mem;
	const struct space *space;
	struct tried_list *tried;
	bool has_target;		/* kernels can be made for the device */
	struct graph *graph;		/* of the candidate at hand, as the next three */
	struct plan *plan;
	struct timeline *line;
	struct kernels *kernels;
	struct assignment_cache assignments;
	VEC(struct repaired) repaired;	/* waits of plans, by their order */
	VEC(struct legal) legal;	/* which of these legal plans have */
	int simulated, pruned;		/* plans, each counted once; candidates that were pruned by their shape's bound */
	double overestimate;		/* by how much the time of a plan alone may be above that with its kernel's price */
	double bound_seconds;		/* the least analytic bound of all shapes */
	double counted_seconds;		/* ... also of plans with tiles by a counter */
	double memory_seconds;		/* ... the part of it that device memory has */
	struct refusal_count refusals[REFUSAL_KINDS];
	int nearest;			/* index of the illegal candidate with the fewest problems; NONE */
	double nearest_problems;	/* 0: only its kernel is refused */
};

/* s, of device d, may be filled later. */
void evaluator_init(struct evaluator *ev, struct arena *a, struct mem *mem, const struct vdevice *d,
	const struct space *s, struct tried_list *tried);
void evaluator_free(struct evaluator *ev);

/* Evaluate candidate i of the list. best: predicted seconds of the best one so far, or INFINITY. price: lower it however
 * slow it is, and even if another candidate has the same plan. Its seconds stay INFINITY if it is refused. *full: shared
 * memory does not hold the plan, or holds only one version of what its loops load. Errors other than ERR_INTERRUPTED
 * mean that the candidate cannot be built. */
NODISCARD enum err_code evaluate(struct evaluator *ev, int i, double best, bool price, const struct stop *stop,
	bool *full, struct err *e);

/* Build ev->graph and ev->plan, with repaired waits, of a choice. evaluator_release frees them; so does whatever comes
 * next, if a failure leaves them. */
NODISCARD enum err_code evaluator_build(struct evaluator *ev, const struct choice *c, const struct stop *stop,
	struct err *e);
void evaluator_release(struct evaluator *ev);

/* Why candidates were refused, the most frequent reason first, a line each: "COUNT: CODE: MESSAGE". */
void evaluator_refusals(const struct evaluator *ev, struct buf *out);

#endif
