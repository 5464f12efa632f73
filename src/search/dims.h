/* dims.h - the dimensions of the space: the axes that are tiled, with the extents that each may have.
 *
 * Of the extents of an axis some are starts: the search begins with all combinations of them, and reaches the others
 * step by step (neighbours.c). */
#ifndef SEARCH_DIMS_H
#define SEARCH_DIMS_H

#include "search/space.h"

/* Find s->dims, and what else the extents decide: has_products and wants_rows. want: NULL, or what the caller asks for.
 * ERR_INPUT if extents are wanted of an axis that is not tiled. */
NODISCARD enum err_code dims_find(struct space *s, const struct wanted *want, struct err *e);

/* Add an extent at its position of the list, of which it is no start. It stays out if it is there already, or if the
 * list is full. */
void dims_insert(struct dim *d, int64_t extent);

#endif
