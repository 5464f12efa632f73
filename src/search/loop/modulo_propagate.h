/* modulo_propagate.h - what follows from decisions about a schedule with an interval of at most II.
 *
 * A state is a set of bounds y[j] - y[i] >= w for all pairs of tasks, closed under addition (all longest paths); the
 * lanes that each task may still have; and the least and most versions of each value. The bounds leave a window for
 * every difference y[j] - y[i]. Two tasks that exclude each other forbid an open interval of their difference around
 * every integer. If the end of a window lies in a forbidden interval, it moves out of it, and so on until nothing
 * moves. If a window becomes empty, no schedule agrees with the state.
 *
 * Sums carry errors of about 1e-14; a window is empty if it lacks more than 1e-11 iterations. The errors of all arcs of
 * a cycle are less than the 5e-10 of an interval by which a schedule must be better to count as better. */
#ifndef SEARCH_LOOP_MODULO_PROPAGATE_H
#define SEARCH_LOOP_MODULO_PROPAGATE_H

#include "search/loop/modulo_net.h"

#define MODULO_NEAR 1e-11		/* iterations: the end of a window that is so near to an edge lies on it */

struct modulo_state {
	double *least;			/* [i * ntasks + j]: bound of y[j] - y[i]; first tasks of parts start in one interval */
	uint32_t *lanes;		/* by task: bits, the lanes that it may have */
	int *low, *most;		/* versions, by value */
};

struct modulo_propagator {
	const struct modulo_net *net;
	int n;				/* tasks */
	double ii;			/* cycles */
	double *load;			/* bytes, by memory; scratch */
	int memory;			/* the memory that was too small last; MODULO_NONE */
};

static inline double *least_of(const struct modulo_propagator *g, const struct modulo_state *s, int i, int j)
{
	return &s->least[i * g->n + j];
}

void modulo_propagator_init(struct arena *a, const struct modulo_net *net, double ii, struct modulo_propagator *out);
struct modulo_state modulo_state_new(struct arena *a, const struct modulo_problem *p);
void modulo_state_copy(const struct modulo_problem *p, struct modulo_state *to, const struct modulo_state *from);

/* All that return bool return false if no schedule agrees with the state. */

/* Set the state without any decision. */
bool modulo_root(struct modulo_propagator *g, struct modulo_state *s);
/* Add y[to] - y[from] >= w, and what follows by addition. */
bool modulo_bound(struct modulo_propagator *g, struct modulo_state *s, int from, int to, double w);
/* Add the bounds of all arcs, after lanes or versions have changed. */
bool modulo_bound_arcs(struct modulo_propagator *g, struct modulo_state *s);
/* Propagate until nothing changes. */
bool modulo_tighten(struct modulo_propagator *g, struct modulo_state *s);

/* The gaps of a pair in iterations, as of modulo_pair_gaps. */
bool modulo_gaps(const struct modulo_propagator *g, const struct modulo_state *s, int pair, double gap[2]);
/* The memory of a value; MODULO_NONE: none, or its lane is not decided. */
int modulo_state_memory(const struct modulo_propagator *g, const struct modulo_state *s, int value);

/* The integers that the difference d of a pair with these gaps (in iterations) may have if lo <= d <= hi: *first to
 * *last. */
void modulo_integers(const double gap[2], double lo, double hi, int *first, int *last);

/* The state that holds for every schedule with an interval of at most ii. False: there is no schedule. */
bool modulo_windows(struct arena *a, const struct modulo_net *net, double ii, struct modulo_state *out);

#endif
