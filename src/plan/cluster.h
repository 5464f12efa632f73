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
 *
 * With grid.divided the EUs of a cluster have one tile together. Of each loop over that axis that is in no other loop, EU
 * r makes the r-th of c equal parts of the iterations; all else each EU does for itself. So carries that the loop adds
 * to are partial sums. In the one sTask behind the loop that uses such a carry, each EU adds up a share of its elements
 * over all EUs, in the order of their numbers, and only what is made of these is right: of it, that share is stored.
 * Thus everything behind the loop that uses the carry works element by element, and is stored. A phase without such a
 * loop has no clusters.
 */
#ifndef PLAN_CLUSTER_H
#define PLAN_CLUSTER_H

#include "plan/check.h"

/* The clusters of a phase. */
struct cluster {
	int size;			/* EUs; 1: there are none */
	int axis;			/* of the program, along which neighbours lie; NONE if size is 1, or a group is one
					 * tile, whose loops are divided */
	int64_t tiles;			/* along the axis */
	int64_t stride;			/* from the number of a tile to its neighbour's */
	int64_t groups;			/* in all: of tiles, or single tiles */
};
struct cluster plan_cluster(const struct plan *p, int phase);
/* Groups of so many neighbours along grid.along, or the axis that stands for it; whether they share anything is not asked. */
struct cluster cluster_along(const struct plan *p, int phase, int size);

static inline bool cluster_divides(const struct cluster *c)
{
	return c->size > 1 && c->axis == NONE;
}

/* Is the carry, which a divided loop adds to, a partial sum in each EU? */
bool cluster_sums(const struct graph *g, int carry);
/* By node: is it made, behind the loop, of such a carry, so that each EU has a share of it? In `a`. */
bool *cluster_find_shares(struct arena *a, const struct graph *g);

/* Do the EUs of a cluster load this together? */
bool cluster_shares(const struct plan *p, const struct cluster *c, int task);

/* The number of a group's tile, by that of its first. */
static inline int64_t cluster_tile(const struct cluster *c, int64_t first, int member)
{
	return first + min_i64(member, c->tiles - 1 - first / c->stride % c->tiles) * c->stride;
}

/* Add what clusters forbid: too few EUs, nothing to share, tiles of a group whose loops
 * differ. Every sTask has its entry. The second: of clusters that divide loops (divided.c). */
void cluster_check(const struct plan *p, struct arena *a, struct problems *out);
void cluster_check_divided(const struct plan *p, struct arena *a, struct problems *out);

#endif
