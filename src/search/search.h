/* search.h - find a fast plan: PipeThreader's two-level policy on the simulator.
 *
 * Between EUs (Cheng et al., OSDI 2025, Fig. 9) the policy chooses tile shapes, lanes, and how tiles are assigned to
 * EUs; within an EU, what of a loop runs ahead, and how deep rings are. A choice (space.h) holds both.
 *
 * The search evaluates usual choices first. If none of them has a plan, it goes on with smaller and smaller shapes, and
 * with products by threads, until some have. Then it climbs from the best of these: along one coordinate at a time it
 * moves to the best neighbour, until no coordinate has a better one (coordinate descent). Shapes whose analytic bound
 * (limits.h) is no better than the best plan are pruned. evaluate.h says what a candidate's time is.
 *
 * The search is a sequence of steps, so a caller can show progress, stop, and keep what was found. The same program and
 * device give the same steps on every machine. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "search/space.h"
#include "sim/sim.h"

enum { SEARCH_TRIALS_MAX = 900 };	/* after so many on a matrix unit the search ends (go_on of search.c) */

struct search;

struct search_result {
	int found;			/* legal plans: ranks of search_ranked */
	double seconds;			/* predicted, of the best plan; 0: none is legal */
	int trials;			/* plans that were tried: legal ones, simulated, each counted once */
	int shapes;			/* tile shapes looked at */
	int pruned;			/* candidates whose shape's bound is no better than the best plan */
	double bound_seconds;		/* the least analytic bound of all shapes; 0: none may have a plan */
	double counted_seconds;		/* ... also of plans with tiles by a counter, which the search does not make */
	bool at_memory;			/* the best plan takes hardly more time than memory does, which no unit changes, as far as
					 * the model can tell two plans apart */
	bool at_limit;			/* as many plans were simulated as may be */
};

/* program and device are borrowed and outlive the search. want: NULL, or extents to try. *out is set before anything
 * can fail, so that the caller can free it. ERR_INPUT: the program has nothing to schedule, or as of space_init. */
NODISCARD enum err_code search_new(struct mem *mem, const struct program *p,
	const struct vdevice *d, const struct wanted *want, struct search **out, struct err *e);
/* Is there something to exchange (wanted.swapped)? */
bool search_swaps(const struct program *p, const struct vdevice *d);
/* Has the program loads with windows, as wanted.windowed asks for? Else the search has nothing to try. */
bool search_has_windows(const struct search *s);
void search_free(struct search *s);

/* Try the next candidate. *more is false when there is none left. A candidate that is not legal is no error.
 * ERR_INTERRUPTED when `stop` asks. */
NODISCARD enum err_code search_step(struct search *s, const struct stop *stop, bool *more, struct err *e);
/* When no candidates are left: add all neighbours of candidate `trial` (search_found), even those of which the model
 * expects nothing. */
void search_neighbours(struct search *s, int trial);
/* A tile that the search starts from, of which the registers and the shared memory of an EU may hold everything once. */
struct search_tile {
	struct tiling tiling;
	double seconds;			/* no plan is faster: a bound of units, device memory, and L2 */
	double bytes;			/* that all tiles load and store */
};
/* All of them, best first: *out has *n and belongs to the search. Before the first step. */
NODISCARD enum err_code search_tiles(struct search *s, const struct stop *stop, struct search_tile **out, int *n,
	struct err *e);
struct search_result search_best(const struct search *s);
const struct program *search_program(const struct search *s);

/* A legal plan. */
struct search_found {
	const struct choice *choice;
	double seconds;			/* predicted */
	bool priced;			/* seconds counts the costs of the kernels; false: no kernel was made, or can be */
	int spare;			/* registers of a thread that the kernel leaves, if priced */
	int trial;			/* the candidate's number, in the order in which they were tried, from 0 */
};
/* The plan of that rank; 0 is the best. */
struct search_found search_ranked(struct search *s, int rank);
/* Was there a candidate of that number, and is it a legal plan? */
bool search_is_plan(const struct search *s, int trial);
/* Append to *out the statements that make this plan on a graph of *tile, with those that shape the graph first. Errors
 * as of search_step. */
NODISCARD enum err_code search_script(struct search *s, int trial, const struct stop *stop,
	struct buf *out, struct tiling *tile, struct err *e);
/* Goes over the plans that were tried, in order: *at is 0 for the first one, and moved on. Their predicted seconds;
 * INFINITY: the plan has no kernel. False: there is no further one. */
bool search_next_tried(const struct search *s, int *at, double *seconds);

/* If nothing was found: the statements of the candidate with the fewest problems. *tile has no extents if there is no
 * candidate. */
NODISCARD enum err_code search_nearest(struct search *s, const struct stop *stop, struct buf *out,
	struct tiling *tile, struct err *e);

/* Why candidates were refused, the most frequent reason first, a line each; nothing if all were legal. */
void search_refusals(const struct search *s, struct buf *out);

#endif
