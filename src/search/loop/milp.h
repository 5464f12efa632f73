/* milp.h - a linear program with integers, and who solves it.
 *
 * maximise sum(objective * x), with lo <= x <= hi for every column and for the sum of
 * every row's terms; some columns are integers. A program is built in an arena row by
 * row; terms belong to the row that was added last.
 *
 * It is solved by CBC (COIN-OR branch and cut), if its library is on this machine: it
 * is opened when first asked for. $MILLRACE_LIBCBC names another file; "none" is none.
 * One thread, no clock, nothing printed. CBC's numbers are good to about 1e-7: who
 * wants more takes the integers from the solution and computes the rest from them.
 */
#ifndef SEARCH_LOOP_MILP_H
#define SEARCH_LOOP_MILP_H

#include "base/arena.h"
#include "base/err.h"

struct milp_column {
	double lo, hi;			/* finite */
	bool integer;
	double objective;
};

struct milp_row {
	double lo, hi;			/* -INFINITY, INFINITY: no bound */
	int first;			/* of its terms, which end where the next row's begin */
};

struct milp_term {
	int column;
	double factor;
};

struct milp {
	VEC(struct milp_column) columns;
	VEC(struct milp_row) rows;
	VEC(struct milp_term) terms;
};

enum milp_status {
	MILP_OPTIMAL,
	MILP_INFEASIBLE,
	MILP_LIMIT,			/* of nodes; x may be NULL */
	MILP_INTERRUPTED,		/* by Ctrl-C */
	MILP_FAILED,			/* numerical trouble: nothing is known */
};

struct milp_result {
	enum milp_status status;
	double bound;			/* the objective is at most this; INFINITY: not known */
	double objective;		/* of x */
	double *x;			/* by column, in the arena; NULL: none was found */
};

/* The number of the column. */
int milp_column(struct arena *a, struct milp *m, double lo, double hi, bool integer, double objective);
/* A row without terms; those that follow are added to it. Terms of one column add up. */
void milp_row(struct arena *a, struct milp *m, double lo, double hi);
void milp_term(struct arena *a, struct milp *m, int column, double factor);

/* Is there a solver? */
bool milp_available(void);

/* ERR_IO: no solver, or $MILLRACE_LIBCBC names none. ERR_LIMIT: larger than is sent to
 * one. ERR_INPUT: a number is not finite, or a bound is above its other. */
NODISCARD enum err_code milp_solve(struct arena *a, const struct milp *m, int nodes,
	struct milp_result *out, struct err *e);

#endif
