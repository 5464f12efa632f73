/* modulo_why.h - why is there no shorter interval?
 *
 * The reason is a core: requirements of the problem that together refute every interval shorter than the answer's, of which
 * none can be left out. A deletion filter finds it (Chinneck and Dravnieks, Locating minimal infeasible constraint sets in
 * linear programs, ORSA J. Computing 3, 1991): it leaves out one requirement after the other, and takes back those without
 * which there is a schedule. The sum of one resource, or one recurrence, is recognised first.
 */
#ifndef SEARCH_LOOP_MODULO_WHY_H
#define SEARCH_LOOP_MODULO_WHY_H

#include "search/loop/modulo.h"

enum modulo_need_kind {
	MODULO_NEED_DEP,		/* the dependence */
	MODULO_NEED_PIN,
	MODULO_NEED_ORDER,
	MODULO_NEED_VERSIONS,		/* the value's greatest number of versions */
	MODULO_NEED_CAPACITY,		/* the capacity of a memory */
	MODULO_NEED_LANE,		/* that tasks hold it and exclude each other */
	MODULO_NEED_UNIT,		/* that tasks share it, exclusively or mixed */
};

struct modulo_need {
	enum modulo_need_kind kind;
	int index;			/* of the dependence, pin, order, value, memory, lane or unit */
};

struct modulo_core {
	double ii;			/* cycles; less by 1e-6 is refuted. INFINITY: every interval is */
	bool exclusive;			/* refuted for the exclusive program only; else for both */
	bool irreducible;		/* each requirement is known to be needed; else the effort did not suffice */
	const struct modulo_need *needs;
	int nneeds;
};

/* Why `x`, an answer for p, is no less: its interval if that is proven or best, otherwise its greater bound. The core lives
 * in `a`. ERR_INTERRUPTED: the filter was not finished; the core is refuted nevertheless. */
NODISCARD enum err_code modulo_why(struct arena *a, const struct modulo_problem *p,
	const struct modulo_answer *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_core *out, struct err *e);

/* The problem with these requirements and no others, in `a`. */
struct modulo_problem *modulo_only(struct arena *a, const struct modulo_problem *p,
	const struct modulo_need *needs, int n);

#endif
