/* build.h - a choice made into a graph, and a plan. */
#ifndef SEARCH_BUILD_H
#define SEARCH_BUILD_H

#include "search/space.h"

/* The graph of a choice, with the space's cuts, places and the split of its rows. *out stays NULL if it
 * fails. */
NODISCARD enum err_code build_graph(const struct space *s, const struct choice *c, struct graph **out,
	struct err *e);

/* Fill p, a fresh plan of that graph: lanes, entries, rings, the grid. Waits and the versions that an order
 * needs are for plan_settle to add. ERR_INPUT, ERR_LIMIT: nothing can come of it. It may still be illegal. */
NODISCARD enum err_code build_plan(const struct space *s, const struct choice *c, struct plan *p,
	struct err *e);

/* Equal for choices of which the same plan comes, and hardly ever for others. p: before it is settled. */
uint64_t build_hash(const struct choice *c, const struct plan *p);
/* Equal for choices whose plans differ in nothing but which tile comes when, too: plan_settle and plan_check say the same
 * of these. */
uint64_t build_order_hash(const struct choice *c, const struct plan *p);

/* What a script of the plan has before plan_script's: what shapes the graph. */
void build_script(const struct space *s, const struct choice *c, struct buf *out);

#endif
