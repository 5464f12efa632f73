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
int64_t find_missing_elements(const struct elements *x, int64_t by, const struct elements *y);

/* The elements of output `tensor` that the program stores whatever its inputs are. Stores that add do not count. If one
 * other store is not known (see above), all elements of the tensor: the caller must not refuse what may be right. The
 * result is in `a`. */
struct elements find_stored_elements(struct arena *a, const struct program *p, int tensor);
/* The elements of input `tensor` that the program loads whatever its inputs are; loads that are not known are left out:
 * empty if none is known. The result is in `a`. */
struct elements find_loaded_elements(struct arena *a, const struct program *p, int tensor);

#endif
