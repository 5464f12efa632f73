/* modulo_milp.h - a net as a linear program with integers, for those who solve such.
 *
 * Columns: alpha, scaled by a proven bound so that it is at most 1; y of each task
 * within the window that every better schedule keeps; for each pair whose window
 * leaves a choice, its integer; the versions of each value; for a task whose lane is
 * open, whether it is on each. What is maximised is alpha. The formulas are in
 * modulo.h, and what differs with open lanes in docs/internals/modulo.md.
 */
#ifndef SEARCH_LOOP_MODULO_MILP_H
#define SEARCH_LOOP_MODULO_MILP_H

#include "search/loop/modulo_branch.h"

/* Look for a schedule that is better than *best, which is replaced by it, and raise
 * *least, a positive proven bound of the net. From the solution only integers and lanes
 * are taken: the interval is that of modulo_choice_ii. The solver's own bound is taken
 * as exact if that agrees with it to 1e-6, the solver's tolerance, and lowered by as
 * much if not. REFUTED: there is no schedule at all. LIMIT: not known, or no solver. */
enum modulo_end modulo_milp(struct arena *a, const struct modulo_net *net, int nodes,
	struct modulo_found *best, double *least);

#endif
