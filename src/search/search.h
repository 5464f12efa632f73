/* search.h - find a plan: PipeThreader's two-level policy on the simulator.
 *
 * Inter-EU (Cheng et al., OSDI 2025, Fig. 9): tile shapes, lanes, how tiles go over the
 * EUs. Intra-EU: what of a loop runs ahead of the rest, and how deep rings are. All of it
 * is one choice (space.h), and a plan is made of a choice by rule (build.h).
 *
 * First the usual choices are tried, roughly: each by its plan's entries alone, on the EU
 * that has most to do. From the best of them it goes along one coordinate at a time to
 * whatever is faster, as long as anything is. A shape whose analytic bound (limits.h) is
 * no better than the best plan is not tried. What puts itself before the best is lowered,
 * and its time is that with what its kernels cost.
 *
 * The search is a sequence of steps, so that a caller can stop it, show progress and
 * keep what was found. The same program and device give the same steps everywhere.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "search/space.h"
#include "sim/sim.h"

struct search;

struct search_result {
	int found;			/* legal plans, that search_ranked knows */
	double seconds;			/* of the best; 0: nothing legal found */
	int trials;			/* plans simulated */
	int shapes;			/* tile shapes looked at */
	int pruned;			/* candidates cut off by their shape's bound */
	double bound_seconds;		/* least of all shapes' analytic bounds */
};

/* program and device are borrowed and outlive the search. want: NULL, or extents to try. *out is set first, so that a
 * caller whose failure handler jumps out of here can free what there is. */
NODISCARD enum err_code search_new(struct mem *mem, const struct program *p,
	const struct vdevice *d, const struct wanted *want, struct search **out, struct err *e);
void search_free(struct search *s);

/* Try the next candidate. *more is false when there is none left. Candidates that do
 * not work are no error; ERR_INTERRUPTED when `stop` asks. */
NODISCARD enum err_code search_step(struct search *s, const struct stop *stop, bool *more,
	struct err *e);
/* When there is nothing left: further candidates are those beside the one that was tried as number `trial`
 * (search_found), along each coordinate, whether the model likes it or not. */
void search_neighbours(struct search *s, int trial);
struct search_result search_best(const struct search *s);
const struct program *search_program(const struct search *s);

/* What was found, by rank: 0 is the best. */
struct search_found {
	const struct choice *choice;
	double seconds;			/* predicted ... */
	bool priced;			/* ... with what its kernel costs; false: none was tried, or comes of it */
	int spare;			/* registers of a thread that the kernel leaves, if priced */
	int trial;			/* its number among those that were tried, from 0 */
};
struct search_found search_ranked(struct search *s, int rank);
/* Was something tried as number `trial`, and is it a legal plan? */
bool search_is_plan(const struct search *s, int trial);
/* That plan as statements on a fresh plan of its tile shape (plan_script with what shapes the graph
 * before it). *tile: that shape. Failures as of search_step. */
NODISCARD enum err_code search_script(struct search *s, int trial, const struct stop *stop,
	struct buf *out, struct tiling *tile, struct err *e);
/* Predicted seconds of candidate i, in the order in which they were tried; INFINITY: it was not legal, or
 * cut off. False: there is none. */
bool search_tried(const struct search *s, int i, double *seconds);

/* The same of the candidate that came nearest to a plan, if none was found; *tile has no extents if there is none. */
NODISCARD enum err_code search_nearest(struct search *s, const struct stop *stop, struct buf *out,
	struct tiling *tile, struct err *e);

/* What kept candidates from being legal, the most frequent first, as a sentence each; nothing if
 * all were. */
void search_refusals(const struct search *s, struct buf *out);

#endif
