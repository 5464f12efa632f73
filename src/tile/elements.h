/* elements.h - sets of elements of a tensor, and which ones a program surely stores and loads.
 *
 * Elements are counted in the tensor's row-major order, as it is declared. An access that happens at indices or in
 * iterations that only a run shows (indices that values are added to, loops that end at a length or leave out
 * steps), of packed words, or that is too large to be looked at, is not known here.
 */
#ifndef TILE_ELEMENTS_H
#define TILE_ELEMENTS_H

#include "tile/program.h"

/* From `from` to the one before `to`. */
struct element_run {
	int64_t from, to;
};

/* Disjoint runs in ascending order; none begins where another one ends. */
struct elements {
	VEC(struct element_run) v;
};

/* All of n elements, in `a`. */
struct elements elements_all(struct arena *a, int64_t n);
/* What is in x or, `by` elements further, in y; in `a`. */
struct elements elements_join(struct arena *a, const struct elements *x, const struct elements *y, int64_t by);
/* The first element of x, `by` elements further, that is not in y; NONE. */
int64_t elements_missing(const struct elements *x, int64_t by, const struct elements *y);

/* The elements of an output that the program stores whatever its inputs are; of one that has a store that is not
 * known, all: what such a store leaves out is its user's concern. In `a`. */
struct elements elements_stored(struct arena *a, const struct program *p, int tensor);
/* The elements of an input that loads read whatever the inputs are, those of loads that are known. In `a`. */
struct elements elements_loaded(struct arena *a, const struct program *p, int tensor);

#endif
