/* proof.h - the least interval that the loop of a simulated plan could have, why it cannot be less, and what would help.
 *
 * The bound holds for every order, offset and number of versions with the plan's lanes, at the costs of the simulation. It is
 * the greater one of the bound of loop.h's problem and of the sums in sim/bounds.h, so no simulation of the plan goes below
 * it in its steady state. The reasons are an irreducible core of the problem (loop/modulo_why.h). What would help is found
 * by easing one thing and solving the problem again. Effort is counted, not timed, so results are reproducible.
 */
#ifndef SEARCH_PROOF_H
#define SEARCH_PROOF_H

#include "search/loop.h"
#include "search/loop/modulo_why.h"
#include "sim/timeline.h"

enum proof_ease_kind {
	PROOF_VERSION,			/* one more version of buffer `of` */
	PROOF_CAPACITY,			/* shared memory `times` as large */
	PROOF_UNIT,			/* sEU `of`, or memory, `times` as fast */
	PROOF_WORK,			/* sTask `of` of the program, all its slices, takes 1 - 1 / times less */
	PROOF_LANE,			/* a further lane like `of` */
};

struct proof_ease {
	enum proof_ease_kind kind;
	int of;				/* buffer, unit of the problem, sTask or lane, by kind */
	double times;
	double bound;			/* of the eased problem; at most the proof's bound */
	bool exact;			/* there is a schedule with that interval */
};

struct proof {
	struct loop_answer loop;	/* with the costs of the simulation */
	double bound;			/* cycles */
	bool tile;			/* the bound counts all work of a tile, which is more than that of the loop */
	struct modulo_core core;	/* of the loop's bound; empty if the loop is not stated */
	VEC(struct proof_ease) eases;	/* the best first */
};

/* t: a simulated timeline, borrowed. Everything is in `a`. ERR_INTERRUPTED: *out has what was found so far. */
NODISCARD enum err_code proof_make(struct arena *a, const struct timeline *t, const struct stop *stop,
	struct proof *out, struct err *e);

/* The cycles of the recurrence that gives RecMII (the floor's links), and the iterations that it spans. */
void proof_circle(const struct proof *x, double *cycles, int *iterations);

#endif
