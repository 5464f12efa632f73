/* modulo_branch.h - is there a schedule with an interval of at most II?
 *
 * Branch and bound over orders, which needs no linear programs. For a fixed II all that
 * was decided so far is a set of bounds y[j] - y[i] >= w; closed under addition (all
 * longest paths), they leave a window for every difference. Two tasks that exclude each
 * other forbid an open interval of their difference around every integer: a window's
 * end that lies in one moves out of it, which may empty the window, and so on until
 * nothing moves. If the earliest starts then still violate a pair, the pair with the least
 * slack is decided, first the way that leaves more: precedence constraint posting (Smith
 * and Cheng, Slack-based heuristics for constraint satisfaction scheduling, AAAI 1993),
 * here modulo II. Lanes and versions are decided alike. What was refuted to the end is
 * proven: no schedule of the net has this interval or less.
 *
 * Sums carry errors of about 1e-14; a window is empty if it lacks more than 1e-11
 * iterations. Errors of all arcs of a cycle are less than the 5e-10 of an interval by
 * which a schedule must be better to count as better.
 */
#ifndef SEARCH_LOOP_MODULO_BRANCH_H
#define SEARCH_LOOP_MODULO_BRANCH_H

#include "search/loop/modulo_net.h"

enum modulo_end {
	MODULO_END_FOUND,
	MODULO_END_REFUTED,		/* there is none; proven */
	MODULO_END_LIMIT,		/* of nodes */
	MODULO_END_STOPPED,
};

/* A schedule; arrays by task, task and value. */
struct modulo_found {
	double ii;			/* INFINITY: none yet */
	double *y;
	uint32_t *lanes;		/* sets of one lane, or of none */
	int *versions;
	struct modulo_link links[MODULO_TASKS_MAX];	/* why no less with these orders */
	int nlinks;
};

void modulo_found_init(struct arena *a, const struct modulo_problem *p, struct modulo_found *out);
void modulo_found_copy(const struct modulo_problem *p, struct modulo_found *to,
	const struct modulo_found *from);

struct modulo_try {
	double ii;			/* cycles */
	int64_t nodes;			/* at most; what was used is taken off */
	uint64_t seed;			/* 0: no choice is random */
	const struct stop *stop;
};

/* On success *best gets the schedule, with the least interval of its orders, which may
 * be far below what was asked, if that is less than what *best had. Scratch in `a`,
 * given back. memory (may be NULL): of a refutation without any decision, the memory that
 * was too small, or MODULO_NONE. */
enum modulo_end modulo_branch(struct arena *a, const struct modulo_net *net, struct modulo_try *t,
	struct modulo_found *best, int *memory);

/* What holds for every schedule with an interval of at most ii: windows without any
 * decision. */
struct modulo_windows {
	double *least;			/* [i * ntasks + j]: of y[j] - y[i], within an interval of all first tasks */
	int *low, *most;		/* versions, by value */
};

/* False: there is none. */
bool modulo_windows(struct arena *a, const struct modulo_net *net, double ii,
	struct modulo_windows *out);

/* The integers that the difference d of a pair may have with these gaps (in intervals),
 * if lo <= d <= hi: *first to *last. */
void modulo_integers(const double gap[2], double lo, double hi, int *first, int *last);

#endif
