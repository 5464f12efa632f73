/* proof.h - how short the interval of a simulated plan's loop could be, why not shorter, and what would help.
 *
 * The bound is one on every order, offset and number of versions with the plan's lanes, at the costs that
 * were played. It is the greater of what loop.h's problem has and of what bounds.h counts, so that no
 * simulation of the plan goes below it in its steady state. Its reasons are a core (loop/modulo_why.h); what
 * would help is solved again with that made easier.
 *
 * No clock is read: effort is counted.
 */
#ifndef SEARCH_PROOF_H
#define SEARCH_PROOF_H

#include "search/loop.h"
#include "search/loop/modulo_why.h"
#include "sim/timeline.h"

enum proof_ease_kind {
	PROOF_VERSION,			/* one more of buffer `of` */
	PROOF_CAPACITY,			/* shared memory `times` as large */
	PROOF_UNIT,			/* sEU `of`, or memory, `times` as fast */
	PROOF_WORK,			/* sTask `of` of the program, all its parts, takes 1 - 1 / times less */
	PROOF_LANE,			/* a further lane like `of` */
};

struct proof_ease {
	enum proof_ease_kind kind;
	int of;				/* PROOF_UNIT: of the problem's units */
	double times;
	double bound;			/* then; never more than the proof's */
	bool exact;			/* a schedule has it: what it brings is no less */
};

struct proof {
	struct loop_answer loop;	/* as the plan's costs are */
	double bound;			/* cycles */
	bool tile;			/* that of the loop alone is less: all that a tile asks for counts */
	struct modulo_core core;	/* of the loop's bound; empty if it is not stated */
	VEC(struct proof_ease) eases;	/* that which brings most first */
};

/* t: simulated. Everything in `a`, which borrows t. ERR_INTERRUPTED: what there is so far. */
NODISCARD enum err_code proof_make(struct arena *a, const struct timeline *t, const struct stop *stop,
	struct proof *out, struct err *e);

/* Cycles around the circle of the floor's links, and iterations that it spans. */
void proof_circle(const struct proof *x, double *cycles, int *iterations);

#endif
