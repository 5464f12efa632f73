/* extent.h - Propagate: from a tile shape to the extent of every value.
 *
 * The user names a tile extent for some axes. Backward from the stores it is found out for every axis of every value
 * whether only the present tile of the axis is needed or all of it, a full axis (as by a reduction over an axis that no
 * loop runs over). This is the inference of output regions that PipeThreader calls Propagate, with named axes.
 */
#ifndef TILE_EXTENT_H
#define TILE_EXTENT_H

#include "tile/program.h"

/* Tile extent of each axis; 0: not given. Loops over axis `divided` - 1, which are in no other loop, are divided among
 * `parts` EUs; 0: none are. */
struct tiling {
	int64_t extent[AXES_MAX];
	int64_t divided, parts;
};

/* Extents that hold for every tile of a bound program under one tiling. */
struct extents {
	const struct program *program;
	/* Tile of each axis where it is tiled: 1 for batch axes, at most the size, the
	 * size itself for axes of which no extent was given. */
	int64_t tile[AXES_MAX];
	uint8_t *full_axis;			/* node * RANK_MAX + position of the axis: is it a full one? */
	uint8_t *carry_full_axis;		/* carry * RANK_MAX + position */
	/* loop * AXES_MAX + axis: do its bounds go by all of the axis, as something in the loop is computed for all of it?
	 * NULL: of no loop do they. */
	uint8_t *bounded_by_all;
	int divided, parts;			/* as in struct tiling; parts is 1 if no loop is divided */
};

/* Arrays in `a`. ERR_INPUT if an extent is not positive, names an axis
 * that cannot be tiled, or all of an axis is needed of a value made in a loop over it. */
NODISCARD enum err_code extents_infer(struct arena *a, const struct program *p,
	const struct tiling *t, struct extents *out, struct err *e);

/* Do the loop's bounds go by all indices of the axis, not by those of the tile at hand? */
bool loop_bounded_by_all(const struct extents *x, int loop, int axis);

/* Does the node have the axis, and all of it? */
bool extent_is_full(const struct extents *x, int node, int axis);

/* Nominal extent of position i of a node's axes (of a ragged last tile: less). */
int64_t extent_of_node(const struct extents *x, int node, int i);
int64_t extent_of_carry(const struct extents *x, int carry, int i);
/* Product of all nominal extents of a node's value. */
int64_t extent_elements(const struct extents *x, int node);

/* Number of tiles along an axis. */
int64_t extent_tiles(const struct extents *x, int axis);

/* The grid of a phase: its batch and grid axes, the last fastest. */
struct grid {
	int n;
	int axis[2 * RANK_MAX];
	int64_t tiles[2 * RANK_MAX];
	int64_t total;
};
struct grid extents_grid(const struct extents *x, int phase);

/* The present part of each axis: axis a runs over [lo[a], hi[a]], inclusive. */
struct axis_ranges {
	int64_t lo[AXES_MAX], hi[AXES_MAX];
};
/* The ranges in tile number `tile` of the grid (row-major); axes that are not of the grid are full. */
void ranges_set_tile(const struct extents *x, const struct grid *g, int64_t tile, struct axis_ranges *out);
/* Among how many EUs are the loop's iterations divided? 1: each EU makes all. */
int loop_parts(const struct extents *x, int loop);
/* The loop visits tiles [*first, *last) of its axes (row-major) while the surrounding
 * loops and the grid have these ranges; of a divided loop the first EU does. */
void visited_iterations(const struct extents *x, int loop, const struct axis_ranges *at, int64_t *first, int64_t *last);
/* The end of the axis of a loop with a length whose value is `value`: 0 at least and the axis's size at most.
 * typical_end: of any loop, as predictions assume it. */
int64_t loop_end(const struct extents *x, int loop, const struct axis_ranges *at, int64_t value);
int64_t typical_end(const struct extents *x, int loop, const struct axis_ranges *at);
/* As visited_iterations, where the loop's axis ends at `end`; that function takes the typical end of a loop with a length. */
void visited_before(const struct extents *x, int loop, const struct axis_ranges *at, int64_t end, int64_t *first,
	int64_t *last);
/* Set the loop's axes for one of these tiles. */
void ranges_set_iteration(const struct extents *x, int loop, int64_t tile, struct axis_ranges *at);
/* Then let the loop's axis end at `end`, which is behind the beginning of the tile. */
void ranges_end(const struct extents *x, int loop, int64_t end, struct axis_ranges *at);

#endif
