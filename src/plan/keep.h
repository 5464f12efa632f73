/* keep.h - tiles that an EU takes one after the other, since they load the same bytes.
 *
 * With grid.keep = r > 1, groups of r tiles that are neighbours along one axis of the grid are assigned to EUs, each of
 * which takes the tiles of its groups one after the other; the last group of a line may have fewer. The axis is grid.along,
 * or that along which the raster goes first (cluster.h).
 *
 * A load is kept if a copy engine brings it and neighbours along the axis load the same bytes: heads with common keys,
 * or matrices that are multiplied by the same one. Each slot of its ring has a word that says what was copied to it last, and
 * where that is what the next life of the slot is to have, the copy is left out. That needs no proof about the order of
 * tiles: in any order a slot has the bytes that its word names, as nothing but this load writes to the ring. How often
 * a copy is left out does depend on the order: a ring that a loop fills has the bytes of the same iteration of the tile before
 * if its versions are a multiple of the iterations.
 *
 * A phase in which no load is kept has tiles one by one. */
#ifndef PLAN_KEEP_H
#define PLAN_KEEP_H

#include "plan/assign.h"
#include "plan/cluster.h"

/* The groups of a phase; the size is 1 if there are none. */
struct cluster plan_keep(const struct plan *p, int phase);

/* Can it be kept where neighbours are along the axis: do they load the same bytes, and does nothing else write to its slots? */
bool keep_can(const struct graph *g, int axis, int task);
/* Bit a: tiles that are neighbours along axis a load a share of bytes, more than a few, that could be kept: of loops with few iterations
 * as these tiles have them, or outside of loops. */
uint64_t keep_axes(const struct graph *g);
/* Does the plan ask for that? Kernels keep the load if it is the copy engine that brings it, box by box. */
bool keep_holds(const struct plan *p, const struct cluster *c, int task);

/* What of a tile, and of an iteration, says which bytes the load brings: the first index along the axis, divided by `unit`, is one of
 * `n` numbers. Two loads with the same numbers bring the same bytes. */
struct keep_part {
	int axis;
	int64_t unit, n;
};
/* Returns how many there are, at most AXES_MAX; their combinations are fewer than INT32_MAX if the load is kept. */
int keep_parts(const struct graph *g, int task, struct keep_part *out);
/* The word of a slot that has what the load brings where the tile, and the iteration, begin at lo[axis]; at least 1, as
 * words are 0 first. */
int64_t keep_key(const struct keep_part *part, int parts, const int64_t *lo);

/* The share of the load's copies that are made, by the tiles of some EUs. */
double keep_copied(struct arena *a, const struct plan *p, int phase, int task, const struct tile_assignment *d);

/* Adds what is wrong with grid.keep: nothing is kept. Every sTask has its entry. */
void keep_check(const struct plan *p, struct arena *a, struct problems *out);

#endif
