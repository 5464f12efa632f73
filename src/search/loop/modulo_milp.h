/* modulo_milp.h - modulo scheduling as a mixed integer linear program, which CBC solves (milp.h).
 *
 * The input is a net (modulo_net.h): the constraints of a modulo scheduling problem as arcs and pairs. With the
 * initiation interval II in cycles, all constraints of modulo.h are linear in alpha = 1 / II and in y, the starts of
 * the tasks in units of II. So the program maximises alpha. Its columns:
 *  - alpha, times a proven lower bound of II, so that it is at most 1;
 *  - y of each task;
 *  - for each pair of tasks that exclude each other, k: how many complete intervals lie between their starts;
 *  - the number of versions of each value;
 *  - for a task that may be on several lanes, 0 or 1 for each of them.
 *
 * Before that, constraints are propagated: y[j] - y[i] of each two tasks lies within some bounds in every schedule that
 * is no worse than the best one so far. As y of task 0 is 0, those of y[j] - y[0] bound the column y[j]. A pair
 * with one k left needs no column. docs/internals/modulo.md has the rows for tasks whose lane is not decided. */
#ifndef SEARCH_LOOP_MODULO_MILP_H
#define SEARCH_LOOP_MODULO_MILP_H

#include "search/loop/modulo_branch.h"

/* Look for a schedule that is better than *best, which it replaces, and raise *least, a positive proven lower bound
 * of the net's II in cycles. nodes: how many CBC may visit. Scratch memory in `a`, released on return.
 *
 * CBC computes to a tolerance of 1e-6. So only the integers, versions and lanes are taken from its solution, and
 * modulo_choice_ii computes II from them. If CBC's bound agrees with that to the tolerance, *least becomes that II;
 * otherwise the bound lowered by the tolerance.
 *
 * MODULO_END_FOUND: CBC solved the program to its end: more nodes would improve neither *best nor *least.
 * MODULO_END_REFUTED: the net has no schedule; only if *best has none.
 * MODULO_END_LIMIT: there is no CBC, it visited `nodes`, or had numerical trouble; *best and *least may be better.
 * MODULO_END_STOPPED: Ctrl-C. */
enum modulo_end modulo_milp(struct arena *a, const struct modulo_net *net, int nodes,
	struct modulo_found *best, double *least);

#endif
