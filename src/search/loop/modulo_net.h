/* modulo_net.h - a problem as arcs and pairs: what its two programs have in common.
 *
 * An arc says y[to] >= y[from] + cycles / II - distance; a pair says that two tasks
 * exclude each other, for some integer. A net is of one program: `exclusive`, in which a
 * unit does one task at a time, or the relaxation in which work may mix.
 *
 * Parts. Tasks that are bound to each other both ways, by cycles of arcs, are a part
 * (a strongly connected component). Between parts arcs go one way only, so a later
 * part can always be put off by exclusive iterations, which changes no phase: such arcs
 * bind no II and are left out (`within` false), and a search may assume that the
 * first tasks of all parts start within one interval. modulo_choice_ii puts them back.
 *
 * Lanes. A task's lanes are a set that shrinks; two tasks exclude each other on a lane
 * once both sets are the same single one.
 */
#ifndef SEARCH_LOOP_MODULO_NET_H
#define SEARCH_LOOP_MODULO_NET_H

#include "search/loop/modulo.h"

struct modulo_arc {
	int from, to;
	double cycles, cross;		/* cross: added if the lanes differ */
	int distance;			/* of a value: without its versions */
	enum modulo_arc_kind kind;
	int index;			/* of the dependence, value, pin or pair */
	bool within;			/* both ends in one part */
};

/* j starts [0] cycles after i or later, modulo II, and i [1] cycles after j. */
struct modulo_pair {
	int i, j;
	double apart[2];		/* always */
	double together[2];		/* on one lane of `held`; not less than apart */
	uint32_t held;
	bool ordered;			/* an order asks for its integer even where it excludes nothing */
};

struct modulo_net {
	const struct modulo_problem *p;
	bool exclusive;
	VEC(struct modulo_arc) arcs;
	VEC(struct modulo_pair) pairs;
	int *part;			/* by task */
	int *anchor;			/* by task: the first task of its part */
	int *most;			/* by value; MODULO_VERSIONS_MAX or less */
	int twin[MODULO_LANES_MAX];	/* the first lane that nothing distinguishes from this one */
	double total;			/* cycles that are certainly enough for an iteration */
};

void modulo_net_make(struct arena *a, const struct modulo_problem *p, bool exclusive,
	struct modulo_net *out);

/* Where a value is kept if its maker's lanes are `lanes`; MODULO_NONE: nowhere, or not known. */
int modulo_memory_of(const struct modulo_problem *p, const struct modulo_value *v, uint32_t lanes);

/* Is it one lane? Both the same one? */
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

/* What excludes the pair under these lanes, in cycles: [0] j after i, [1] i after j.
 * False: nothing does, and no order asks. */
bool modulo_pair_gaps(const struct modulo_pair *x, const uint32_t *lanes, double gap[2]);

/* No interval is shorter than the time for which a task wants its unit or lane. */
double modulo_task_least(const struct modulo_problem *p, int task);

/* A choice of all that is not y: lanes, versions, and an integer for every pair that
 * counts. */
struct modulo_choice {
	const uint32_t *lanes;
	int *versions;			/* by value; may be raised and lowered */
	const int *integers;		/* by pair */
};

/* The least II for a choice, exactly: the greatest ratio over cycles. y, by task, has
 * the least in [0, 1); links and nlinks (may be NULL) are a cycle that gives it, at most
 * MODULO_TASKS_MAX of them. Versions are raised as long as one is on that cycle and
 * there is room, and then lowered to what y needs. */
double modulo_choice_ii(struct arena *a, const struct modulo_net *net, const struct modulo_choice *c,
	double *y, struct modulo_link *links, int *nlinks);

/* How many versions y needs of a value. */
int modulo_versions_needed(const struct modulo_problem *p, int value, const uint32_t *lanes,
	const double *y, double ii);

/* RecMII: the greatest ratio of cycles that hold whatever is chosen. */
double modulo_net_recurrence(struct arena *a, const struct modulo_net *net,
	struct modulo_link *links, int *nlinks);

#endif
