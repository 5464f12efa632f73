/* milp.h - a mixed integer linear program, and its solver.
 *
 * maximise sum(objective * x), with lo <= x <= hi for every column and for the sum of every row's terms; some columns are
 * integers. A program is built in an arena row by row; terms belong to the row that was added last.
 *
 * CBC, a solver of COIN-OR, solves it, if its library is on this machine: the library is opened at the first use.
 * $MILLRACE_LIBCBC names another file; "none": CBC is not used. It runs on one thread, reads no clock and prints nothing. Its
 * numbers are exact to about 1e-7: for more, take the integers from a solution and compute everything else from them.
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

/* Add a column; returns its index. */
int milp_column(struct arena *a, struct milp *m, double lo, double hi, bool integer, double objective);
/* Add a row, and terms to the last row. Terms of one column add up. */
void milp_row(struct arena *a, struct milp *m, double lo, double hi);
void milp_term(struct arena *a, struct milp *m, int column, double factor);

/* Can CBC be used? */
bool milp_available(void);

/* Solve a program; results in `a`. ERR_IO: CBC cannot be used. ERR_LIMIT: the program is too large. ERR_INPUT: a number is not
 * finite, or a lower bound is above its upper bound. */
NODISCARD enum err_code milp_solve(struct arena *a, const struct milp *m, int nodes,
	struct milp_result *out, struct err *e);

#endif
