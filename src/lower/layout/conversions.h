/* conversions.h - layout conversions of values in registers.
 *
 * Element-wise work uses its arguments in their own layout if their axes are on the same sides (rows, columns) as in
 * the result, and at their own indices (not OP_AT). If not, the lane writes the argument to a scratch in shared memory, row-major, and reads it in the other
 * layout. The scratch has space for all conversions of a task, 4 bytes an element; the tasks of a lane share it. */
#ifndef LOWER_CONVERSIONS_H
#define LOWER_CONVERSIONS_H

#include "lower/kernel.h"

struct layout_conversion {
	int arg, carry;			/* the value: of a node, or a carry; the other is NONE */
	const struct shape2 *from, *to;	/* its layout, and the one in which the node takes it */
	/* If not 0, the node reads the elements in columns with these bits flipped, which the same warp has in registers: it
	 * gets them by shuffles, not through the scratch. */
	int64_t flips;
};

/* Can a value of shape `from` be used in the layout of `to` without a conversion? Of an axis with one tile, all of it
 * and a tile of it are the same. */
bool has_same_layout(const struct kernel *k, const struct shape2 *to, const struct shape2 *from);
/* Iterates over the conversions that node `node` of sTask s needs: *i is 0 at first. False: there are no more. */
bool conversion_next(const struct kernel *k, const struct stask *s, int node, int *i, struct layout_conversion *out);
/* Three ways to read at other indices (OP_AT) of a value in registers. Without a move: each thread has the elements that the
 * result has there, as the value has another name alone. By flips: see above. From afar, all others: through the scratch,
 * or out of the value's ring. One that reads the result of another one of its sTask from afar reads what that one reads
 * (at_source, a node), which is then not computed unless something else uses it (at_is_skipped). */
bool at_moves_nothing(const struct kernel *k, const struct stask *s, int node);
bool at_is_far(const struct kernel *k, const struct stask *s, int node);
int at_source(const struct program *p, int node);
/* Is the node, which reads out of a ring from afar, read where another one of its sTask uses it: in the layout of that
 * one, instead of being converted to it; or as it is the only one? */
bool at_is_read_at_use(const struct kernel *k, const struct stask *s, int node, int user);
bool at_is_skipped(const struct kernel *k, const struct stask *s, int node);
/* Is the node's value, or the carry, in a ring for the sTask? The other is NONE. */
bool conversion_in_ring(const struct kernel *k, const struct stask *s, int node, int carry);
/* Bytes of scratch for the slice that s has of a value of shape `from`. */
int64_t scratch_bytes(const struct stask *s, const struct shape2 *from);

#endif
