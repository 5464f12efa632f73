/* raster.h - the order of the tiles of a grid as a formula: which tile is at a position, without a table.
 *
 * Planes of tiles follow each other. In a plane `group` tiles of the slow axis are walked for each step of the fast one; the last group
 * of a plane may have fewer. Each position of this order is a group of `size` neighbours (the tiles of a cluster), which are
 * positions of their own. Strides are differences of tiles' numbers.
 */
#ifndef TILE_RASTER_H
#define TILE_RASTER_H

#include <stdbool.h>
#include <stdint.h>

struct tile_raster {
	int64_t positions;		/* in all, members of clusters counted */
	int64_t size;			/* members of a cluster; 1: there are no clusters */
	int64_t slow, fast, group;	/* clusters along the axes of a plane; 1 <= group <= slow */
	int64_t plane_stride, slow_stride, fast_stride, member_stride;
};

/* The number of the tile at a position. */
static inline int64_t raster_tile(const struct tile_raster *r, int64_t at)
{
	int64_t cluster = at / r->size, in_plane = cluster % (r->slow * r->fast);
	int64_t first = in_plane / (r->group * r->fast) * r->group, x = in_plane % (r->group * r->fast);
	int64_t n = first + r->group <= r->slow ? r->group : r->slow % r->group;

	return cluster / (r->slow * r->fast) * r->plane_stride + (first + x % n) * r->slow_stride +
		x / n * r->fast_stride + at % r->size * r->member_stride;
}

/* Is the tile at each position the one of that number? */
static inline bool raster_is_identity(const struct tile_raster *r)
{
	return r->size == 1 && r->fast_stride == (r->slow == 1 ? r->fast_stride : 1) &&
		(r->group == 1 || r->fast == 1 || r->slow == 1);
}

#endif
