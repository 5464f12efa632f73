/* modulo_milp.h - a net as a mixed integer linear program.
 *
 * Columns: alpha, scaled by a proven bound so that it is at most 1; y of each task, within the window of every better
 * schedule; the integer of each pair whose window leaves a choice; the versions of each value; for a task whose lane is
 * not decided, whether it is on each lane. alpha is maximised. The constraints are those of modulo.h;
 * docs/internals/modulo.md has those of undecided lanes. */
#ifndef SEARCH_LOOP_MODULO_MILP_H
#define SEARCH_LOOP_MODULO_MILP_H

#include "search/loop/modulo_branch.h"

/* Look for a schedule that is better than *best, which it replaces, and raise *least, a positive proven bound of the net. Only
 * integers and lanes are taken from the solution: modulo_choice_ii computes the interval. If the solver's bound agrees with
 * it to the solver's tolerance of 1e-6, the bound is exact; otherwise it is lowered by the tolerance. REFUTED: there is no
 * schedule. LIMIT: not known, or there is no solver. */
enum modulo_end modulo_milp(struct arena *a, const struct modulo_net *net, int nodes,
	struct modulo_found *best, double *least);

#endif
