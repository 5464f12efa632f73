/* modulo_why.h - why is there no shorter interval?
 *
 * A core: requirements of a problem that together refute every interval shorter than
 * the answer's, such that without any one of them the rest does not. It is found by a
 * deletion filter (Chinneck and Dravnieks, Locating minimal infeasible constraint sets
 * in linear programs, ORSA J. Computing 3, 1991): leave out one after the other, and
 * take back those without which there is a schedule. Sums of one resource and
 * recurrences are recognised without that search.
 */
#ifndef SEARCH_LOOP_MODULO_WHY_H
#define SEARCH_LOOP_MODULO_WHY_H

#include "search/loop/modulo.h"

enum modulo_need_kind {
	MODULO_NEED_DEP,		/* the dependence */
	MODULO_NEED_PIN,
	MODULO_NEED_ORDER,
	MODULO_NEED_VERSIONS,		/* the value's greatest number of versions */
	MODULO_NEED_CAPACITY,		/* its capacity */
	MODULO_NEED_LANE,		/* that tasks hold it */
	MODULO_NEED_UNIT,		/* that it does one task at a time, or mixes them */
};

struct modulo_need {
	enum modulo_need_kind kind;
	int index;			/* of the dependence, pin, order, value, memory, lane or unit */
};

struct modulo_core {
	double ii;			/* cycles; what is less by 1e-6 of it is refuted. INFINITY: any */
	bool exclusive;			/* for units that do one task at a time; else for mixed, too */
	bool irreducible;		/* each is known to be needed; else the effort did not do */
	const struct modulo_need *needs;
	int nneeds;
};

/* Why `x`, an answer for p, has no less than it has: its interval if that is proven or
 * best, else its greater bound. The core lives in `a`. ERR_INTERRUPTED: what is left of
 * the filter's work; all that it has is still refuted. */
NODISCARD enum err_code modulo_why(struct arena *a, const struct modulo_problem *p,
	const struct modulo_answer *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_core *out, struct err *e);

/* The problem with those requirements and no others, in `a`: what a core refutes. */
struct modulo_problem *modulo_only(struct arena *a, const struct modulo_problem *p,
	const struct modulo_need *needs, int n);

#endif
