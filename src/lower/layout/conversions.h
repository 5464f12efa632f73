/* conversions.h - values in registers that are needed in another layout.
 *
 * Element-wise work takes its arguments as they lie, if their axes are on the sides where the
 * result has them. If they are not, the value takes a layout_conversion: its lane writes it to a scratch
 * in shared memory, in rows and columns as it lies, and reads it from there. Each task has room
 * for all of its conversions, 4 bytes an element; the tasks of a lane share it. */
#ifndef LOWER_CONVERSIONS_H
#define LOWER_CONVERSIONS_H

#include "lower/kernel.h"

struct layout_conversion {
	int arg, carry;			/* what: the value of a node, or a carry; the other NONE */
	const struct shape2 *from, *to;	/* how it lies, and how the node takes it */
};

/* Does a value of the one shape have its elements where one of the other takes them? */
bool has_same_layout(const struct shape2 *to, const struct shape2 *from);
/* The conversions of what node `node` of sTask s takes, one after the other: *i is 0 at first.
 * False: there are no more. */
bool conversion_next(const struct kernel *k, const struct stask *s, int node, int *i,
	struct layout_conversion *out);
/* Does the sTask find the node's value, or the carry, in shared memory? The other is NONE. */
bool conversion_in_ring(const struct kernel *k, const struct stask *s, int node, int carry);
/* Of the scratch, for the part of the value that s has. */
int64_t conversion_bytes(const struct stask *s, const struct layout_conversion *d);

#endif
