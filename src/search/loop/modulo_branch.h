/* modulo_branch.h - is there a schedule with an interval of at most II?
 *
 * Branch and bound over orders of tasks; it needs no linear programs. What follows from decisions is propagated
 * (modulo_propagate.h). If the earliest starts then still violate a pair, the pair with the least slack is decided: one
 * of its tasks comes first, modulo II. The decision that leaves more slack is tried first. This is precedence
 * constraint posting (Smith and Cheng, Slack-based heuristics for constraint satisfaction scheduling, AAAI 1993), here
 * modulo II. Lanes and versions are decided in the same way. If the complete tree is refuted, it is proven that no
 * schedule of the net has this interval or a shorter one. */
#ifndef SEARCH_LOOP_MODULO_BRANCH_H
#define SEARCH_LOOP_MODULO_BRANCH_H

#include "search/loop/modulo_net.h"

enum modulo_end {
	MODULO_END_FOUND,
	MODULO_END_REFUTED,		/* there is no schedule; proven */
	MODULO_END_LIMIT,		/* the limit of nodes was reached */
	MODULO_END_STOPPED,
};

/* The best schedule so far. */
struct modulo_found {
	double ii;			/* INFINITY: none was found yet */
	double *y;			/* by task */
	uint32_t *lanes;		/* by task: one bit, or none */
	int *versions;			/* by value */
	struct modulo_link links[MODULO_TASKS_MAX];	/* a cycle that forbids less with these orders */
	int nlinks;
};

void modulo_found_init(struct arena *a, const struct modulo_problem *p, struct modulo_found *out);
void modulo_found_copy(const struct modulo_problem *p, struct modulo_found *to, const struct modulo_found *from);

struct modulo_try {
	double ii;			/* cycles */
	int64_t nodes;			/* the limit; nodes that were used are subtracted */
	uint64_t seed;			/* 0: no decision is random */
	const struct stop *stop;
};

/* If a schedule is found, it replaces *best unless that is better. Its interval is the least one for its orders, which may
 * be far below t->ii. memory (may be NULL): if the problem is refuted without any decision, the memory that is too small, or
 * MODULO_NONE. Scratch memory in `a`, released on return. */
enum modulo_end modulo_branch(struct arena *a, const struct modulo_net *net, struct modulo_try *t,
	struct modulo_found *best, int *memory);

#endif
