/* sides.h - rows that lie along several axes, and columns.
 *
 * A product may have rows along several long axes of the grid, as a convolution has along both of an image, or columns.
 * A tile takes the usual number of rows of all these axes together, not of each: a few dozen splits of that number
 * among them, of which the search starts from those that promise most. Short axes alone are no side: the search starts from
 * all combinations of their few extents (dims.c), or from those that promise most (starts.h). */
#ifndef SEARCH_SIDES_H
#define SEARCH_SIDES_H

#include "search/space.h"

enum { SIDE_SPLITS_MOST = 8 };

struct side {
	int n;				/* axes; innermost first */
	int dim[AXES_MAX];		/* the space's */
	bool rows;			/* else columns */
	int64_t least[AXES_MAX];	/* what each would start from by itself; smaller shapes are halves of that */
	int nsplits;			/* to start from, the fewest rows first */
	int64_t split[SIDE_SPLITS_MOST][AXES_MAX];
};

/* Find the sides of the products, and give their axes the extents that they may have. *graph is NULL before and after;
 * if memory runs out and the caller is left by a jump, it must free the graph that *graph then is. */
void sides_find(struct space *s, struct graph **graph);

/* Give the axes of the side their extents of split i. */
void sides_set(const struct space *s, const struct side *x, int i, struct tiling *out);

/* The split that has another extent of the dimension, and with it that of another of its side's axes, so that a tile
 * has as many rows as in `now`. k: which of the other axes, from 0; or, of a short axis, which of the space's dimensions, and the
 * two are short axes along which one product has rows, or columns. False if there is none. */
bool sides_exchange(const struct space *s, const struct dim *d, int64_t extent, int k,
	const struct tiling *now, struct tiling *out);

#endif
