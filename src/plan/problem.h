/* problem.h - the problems of a plan in words: what is wrong, and what would repair it.
 *
 * Inside check.c's reach only. Messages are complete sentences with the names of the user's
 * sTasks and buffers; hints are statements that can be typed, where there are such. All
 * text is in `a`. What does not fit is reported where it is counted: fit.c, cluster.c.
 */
#ifndef PLAN_PROBLEM_H
#define PLAN_PROBLEM_H

#include "plan/findings.h"

/* Add a problem of no sTask or edge; the caller may set those. It is good until the next one is added. */
struct problem *problem_add(struct arena *a, struct problems *out, enum problem_code code, struct srcloc loc,
	const char *hint, const char *fmt, ...) PRINTF(6, 7);

/* Is there one of that kind? What is appended twice on two lanes seems to need memory that it does not: what the plan takes is
 * not known then. */
bool problems_have(const struct problems *list, enum problem_code code);

/* Every sTask must be there once, on a unit that can run it: then a plan has an order that can be looked at. */
void problem_add_entries(const struct plan *p, struct arena *a, struct problems *out);
/* Aliases must be in registers of one lane, in one version, or in shared memory with as many versions. */
void problem_add_aliases(const struct plan *p, struct arena *a, struct problems *out);
/* What is fetched for a product is in registers of its lane, for a unit that takes it from there; and an asynchronous product has all
 * that its tile contracts. */
void problem_add_products(const struct plan *p, struct arena *a, struct problems *out);
/* Columns of a lane's warps must divide these, and each have columns for instructions of all the lane's products. */
void problem_add_columns(const struct plan *p, struct arena *a, struct problems *out);
/* The deadlock that was found; the dependence that is not kept. */
void problem_add_deadlock(const struct findings *f, struct arena *a, struct problems *out);
void problem_add_breach(const struct findings *f, int edge, struct arena *a, struct problems *out);

#endif
