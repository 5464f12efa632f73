/* modulo_net.h - a problem as arcs and pairs, which is what all solvers work on.
 *
 * An arc says y[to] >= y[from] + cycles / II - distance. A pair says that two tasks exclude each other: for some
 * integer, one starts after the other. A net states one of two programs: the exclusive one, in which a unit does one
 * task at a time, or the relaxed one, in which units may mix work.
 *
 * Parts. Tasks that depend on each other both ways, through cycles of arcs, form a part (a strongly connected
 * component). Between parts arcs go one way only. So a later part can always be delayed by complete iterations, which
 * changes no phase. Such arcs bound no II and are left out (`within` false), and a search may assume that the first
 * tasks of all parts start within one interval. modulo_choice_ii delays parts as necessary.
 *
 * Lanes. The lanes that a task may have are a set that shrinks. Two tasks exclude each other on a lane once both sets
 * are that lane alone. */
#ifndef SEARCH_LOOP_MODULO_NET_H
#define SEARCH_LOOP_MODULO_NET_H

#include "search/loop/modulo.h"

struct modulo_arc {
	int from, to;
	double cycles, cross;		/* cross: added if the tasks are on different lanes */
	int distance;			/* iterations; of a value: without its versions */
	enum modulo_arc_kind kind;
	int index;			/* of the dependence, value, pin or pair */
	bool within;			/* both tasks are in one part */
};

/* Modulo II, j starts at least [0] cycles after i, and i at least [1] cycles after j. */
struct modulo_pair {
	int i, j;
	double apart[2];		/* always */
	double together[2];		/* if both are on one lane of `held`; not less than apart */
	uint32_t held;
	bool ordered;			/* an order needs its integer, even if nothing is excluded */
};

struct modulo_net {
	const struct modulo_problem *p;
	bool exclusive;
	VEC(struct modulo_arc) arcs;
	VEC(struct modulo_pair) pairs;
	int *part;			/* by task */
	int *anchor;			/* by task: the first task of its part */
	uint32_t *lanes;		/* by task: those of the problem */
	int *most;			/* versions by value; at most MODULO_VERSIONS_MAX */
	int twin[MODULO_LANES_MAX];	/* by lane: the first lane that is like it in everything */
	double total;			/* cycles; an iteration never needs more */
};

void modulo_net_make(struct arena *a, const struct modulo_problem *p, bool exclusive, struct modulo_net *out);

/* The memory of a value whose task has these lanes; MODULO_NONE: none, or not known. */
int modulo_memory_of(const struct modulo_problem *p, const struct modulo_value *v, uint32_t lanes);

/* The bytes that values take of each memory. lanes: by task; versions, by value. */
void modulo_memory_loads(const struct modulo_problem *p, const uint32_t *lanes, const int *versions, double *load);

/* The capacity, with an allowance for rounding of sums. */
static inline double modulo_memory_limit(const struct modulo_memory *m)
{
	return m->capacity * (1 + 1e-12);
}

/* Sets of lanes: is it decided, and are both the same lane, or different ones? */
static inline bool lane_known(uint32_t lanes)
{
	return lanes && !(lanes & (lanes - 1));
}

static inline bool lane_shared(uint32_t x, uint32_t y)
{
	return x == y && lane_known(x);
}

static inline bool lane_crossed(uint32_t x, uint32_t y)
{
	return lane_known(x) && lane_known(y) && x != y;
}

/* The cycles of an arc for these lanes, by task. */
static inline double arc_cycles(const struct modulo_arc *x, const uint32_t *lanes)
{
	return x->cycles + (lane_crossed(lanes[x->from], lanes[x->to]) ? x->cross : 0);
}

/* The pair of two tasks; MODULO_NONE: there is none. */
int modulo_net_pair(const struct modulo_net *net, int i, int j);

/* The gaps of a pair in cycles, for these lanes: gap[0] from i to j, gap[1] from j to i. False: nothing is excluded, and no
 * order needs the pair. */
bool modulo_pair_gaps(const struct modulo_pair *x, const uint32_t *lanes, double gap[2]);

/* The cycles for which a task needs its unit or its lane: no interval is shorter. */
double modulo_task_least(const struct modulo_problem *p, int task);

/* All decisions but the starts: lanes, versions, and an integer for every pair. */
struct modulo_choice {
	const uint32_t *lanes;
	int *versions;			/* by value; changed by modulo_choice_ii */
	const int *integers;		/* by pair */
};

/* The least II for a choice, exactly: the greatest ratio of cycles to distance over all cycles of arcs. y: by task, the least
 * in [0, 1). links and nlinks (may be NULL): a cycle with that ratio, at most MODULO_TASKS_MAX links. Versions of values on
 * that cycle are raised as long as the memories hold them; in the end all are lowered to what y needs. */
double modulo_choice_ii(struct arena *a, const struct modulo_net *net, const struct modulo_choice *c,
	double *y, struct modulo_link *links, int *nlinks);

/* The versions of a value that a schedule needs. */
int modulo_versions_needed(const struct modulo_problem *p, int value, const uint32_t *lanes,
	const double *y, double ii);

/* RecMII: the greatest ratio over the arcs that hold for every choice. */
double modulo_net_recurrence(struct arena *a, const struct modulo_net *net, struct modulo_link *links, int *nlinks);

#endif
