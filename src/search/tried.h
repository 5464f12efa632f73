/* tried.h - the candidates of a search: what was tried, what came of it, and their ranks.
 *
 * A candidate is found again by its choice (a hash table with open addressing), so that no choice is tried twice. */
#ifndef SEARCH_TRIED_H
#define SEARCH_TRIED_H

#include "search/space.h"

struct tried {
	uint64_t hash;			/* choice_hash */
	struct choice choice;
	double seconds;			/* predicted; INFINITY: not legal, pruned, or without a kernel. That of a plan whose
					 * clusters divide a loop is longer than the simulator says (evaluate.c) */
	bool priced;			/* seconds counts the costs of the kernels */
	bool by_threads, shifted;	/* priced: threads load something; through registers (struct task_cost) */
	unsigned copied;		/* priced: bits, by space_load_index: the loads that threads copy */
	int64_t ring_bytes;		/* choice.ring_bytes with which the kernel may fit; 0: none, or it does */
	int spare;			/* registers of a thread that the kernel leaves, if priced */
	uint64_t plan;			/* build_hash; 0: no plan was built */
	bool too_large;			/* one version of everything, or a product's sums, fit in no EU */
	bool simulated;			/* it was tried: it is a legal plan, and its time was predicted */
	bool duplicate;			/* an earlier candidate has the same plan, whose time is copied */
};

struct tried_list {
	struct arena *a;		/* borrowed */
	VEC(struct tried) v;
	int *slots, nslots;		/* hash table of indices into v; NONE: free */
	const struct tried **ranks;	/* legal plans, the best first; valid if `sorted` */
	bool sorted;
};

/* The index of the candidate with this choice, which is added if there is none. *known: it was there. */
int tried_add(struct tried_list *l, const struct choice *c, bool *known);

/* Is x a legal plan that no earlier candidate has? */
bool tried_is_plan(const struct tried *x);

/* A plan with a kernel is better than one without; of two alike, the faster one is. */
bool tried_is_better(const struct tried *x, const struct tried *y);

/* The legal plan of that rank, 0 is the best; valid until one is added. After any change set `sorted` to false. */
const struct tried *tried_ranked(struct tried_list *l, int rank);

#endif
