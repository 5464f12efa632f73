/* axis_use.h - how a program uses its axes: what the space of a search depends on, rather than on names.
 *
 * Everything here follows from the program alone, whatever the device and the tile are. */
#ifndef SEARCH_AXIS_USE_H
#define SEARCH_AXIS_USE_H

#include "tile/program.h"

struct axis_use {
	bool row, column, contracted;	/* by products */
	bool looped;
	bool contiguous;		/* the last dimension of the largest tensor that has it */
};

struct axis_use axis_use_of(const struct program *p, int axis);

/* Has the axis the role in any phase? */
bool axis_has_role(const struct program *p, int axis, enum axis_role role);
/* Does every tile need all of the axis, as a reduction goes along it? A tile of a part loads and computes again what
 * others do. */
bool axis_is_reduced(const struct program *p, int axis);
/* Does a product contract all of the axis in every tile, whatever part of it the tile has? Tiles of few elements would
 * each compute the product again. */
bool axis_is_contracted_again(const struct program *p, int axis);

/* Has the program any product? */
bool has_mma(const struct program *p);

#endif
