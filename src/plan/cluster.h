/* cluster.h - EUs that take tiles together, and what they load once.
 *
 * With grid.cluster = c > 1, EUs form clusters of c. The tiles of a cluster are neighbours along one axis of the grid,
 * grid.along, or that along which the raster goes first: the slower of its last two axes if it walks groups of that one,
 * else the faster; the other one if that has a single tile. In each line of tiles along the axis c neighbours are a group, from
 * the line's first on; each EU of a cluster takes one of them. Where c does not divide the line, the last group has its
 * last tile several times: EUs that do the same and store the same.
 *
 * EUs of a cluster go in lockstep: iteration by iteration, no EU is further ahead than the rings allow. A load by a
 * copy engine whose box is the same for all tiles of a group, by a lane that does not read it, is shared unless it brings
 * indices of other loads: each EU brings a part of the box to all. A phase in which no load is shared has no clusters.
 */
#ifndef PLAN_CLUSTER_H
#define PLAN_CLUSTER_H

#include "plan/check.h"

/* The clusters of a phase. */
struct cluster {
	int size;			/* EUs; 1: there are none */
	int axis;			/* of the program; NONE if size is 1 */
	int64_t tiles;			/* along the axis */
	int64_t stride;			/* from the number of a tile to its neighbour's */
	int64_t groups;			/* in all: of tiles, or single tiles */
};
struct cluster plan_cluster(const struct plan *p, int phase);

/* Do the EUs of a cluster load this together? */
bool cluster_shares(const struct plan *p, const struct cluster *c, int task);

/* The number of a group's tile, by that of its first. */
static inline int64_t cluster_tile(const struct cluster *c, int64_t first, int member)
{
	return first + min_i64(member, c->tiles - 1 - first / c->stride % c->tiles) * c->stride;
}

/* Add what clusters forbid: too few EUs, nothing to share, tiles of a group whose loops
 * differ. Every sTask has its entry. */
void cluster_check(const struct plan *p, struct arena *a, struct problems *out);

#endif
