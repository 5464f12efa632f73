/* build.h - a choice made into a graph, and a plan. */
#ifndef SEARCH_BUILD_H
#define SEARCH_BUILD_H

#include "search/space.h"

enum { FREE_VERSIONS = 4 };		/* register values that choice.versions is about */

/* The graph of a choice, with the space's cuts, places and the split of its rows. *out stays NULL if it
 * fails. */
NODISCARD enum err_code build_graph(const struct space *s, const struct choice *c, struct graph **out,
	struct err *e);

/* Fill p, a fresh plan of that graph: lanes, entries, rings, the grid, and the waits and versions that
 * follow. ERR_INPUT, ERR_LIMIT: nothing can come of it; ERR_INTERRUPTED. It may still be illegal. */
NODISCARD enum err_code build_plan(const struct space *s, const struct choice *c, struct plan *p,
	const struct stop *stop, struct err *e);

/* What a script of the plan has before plan_script's: what shapes the graph. */
void build_script(const struct space *s, const struct choice *c, struct buf *out);

#endif
