/* build.h - from a choice to its graph and its plan. */
#ifndef SEARCH_BUILD_H
#define SEARCH_BUILD_H

#include "search/space.h"

/* The graph of a choice: tiled, split over lanes, with the space's conversions split off and its aliases if
 * the choice says so (split_off). *out stays NULL on failure. */
NODISCARD enum err_code build_graph(const struct space *s, const struct choice *c, struct graph **out, struct err *e);

/* Does the choice's split leave anything undivided that another axis can split (second_split.h)? */
bool build_has_second_split(const struct space *s, const struct choice *c);

/* Fill p, an empty plan of that graph: lanes, entries, rings, the grid. Waits, and the versions that the
 * order needs, the caller adds by plan_repair_waits. ERR_INPUT, ERR_LIMIT: there is no plan. It need not be legal. */
NODISCARD enum err_code build_plan(const struct space *s, const struct choice *c, struct plan *p, struct err *e);

/* Equal if choices have the same plan, and hardly ever otherwise. p: before plan_repair_waits. c adds the tile and
 * how it is split over lanes, which only p's graph says, and warps and replicas, as of p's lanes nothing is hashed. */
uint64_t build_hash(const struct choice *c, const struct plan *p);
/* Equal, too, if the plans differ only in the order of tiles: they have the same waits and problems. Of plans with clusters the axis
 * that neighbours in a cluster lie along must be the same, as loads may be shared only there. */
uint64_t build_hash_without_raster(const struct choice *c, const struct plan *p);
/* Equal if plan_repair_waits finds the same waits and versions, and hardly ever otherwise. That depends on which
 * sTasks are where and when and on their dependences, but not on how large tiles are, nor, beyond a few, on how
 * many iterations a loop has. *reach: up to how many versions the repaired plan may have for that to hold. */
uint64_t build_hash_order(const struct plan *p, int *reach);

#endif
