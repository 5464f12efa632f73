/* rings.h - extents of buffers in rings, and functions that rings.c and loads.c share; for src/lower/layout alone. */
#ifndef LOWER_RINGS_H
#define LOWER_RINGS_H

#include "lower/passes.h"

static inline int buffer_index(const struct kernel *k, const struct buffer *b)
{
	return (int)(b - k->plan->graph->buffers.v);
}

/* The axis along which the value is split; NONE: it is not split. */
static inline int buffer_split_axis(const struct kernel *k, const struct buffer *b)
{
	return b->slices > 1 ? k->plan->graph->tasks.v[b->first].split_axis : NONE;
}

/* Extent of an axis in the buffer's ring, which has all slices of the value if they are read together; 1 without the
 * axis. The second function: of the buffer's own slice in the ring. */
static inline int64_t ring_axis_extent(const struct kernel *k, const struct buffer *b, int axis)
{
	for (int i = 0; i < b->naxes; i++)
		if (b->axis[i] == axis)
			return b->extent[i] * (b->together && axis == buffer_split_axis(k, b) ? b->slices : 1);
	return 1;
}
static inline int64_t ring_slice_extent(const struct kernel *k, const struct buffer *b, int axis)
{
	return ring_axis_extent(k, b, axis) / (b->together && axis == buffer_split_axis(k, b) ? b->slices : 1);
}

/* Elements of the contracted axis that a matrix instruction takes: all instructions of a target take as many. */
static inline int64_t k_step_depth(const struct kernel *k, const struct buffer *b)
{
	return matrix_depth(&k->target->matrix[0], b->type);
}

/* The products on a matrix unit that read the buffer's ring, one after the other: *i is 0 at first. NULL: there are no
 * more. In rings.c. */
const struct stask *lower_next_product(const struct kernel *k, int buffer, int *i);
/* Changes the shape of an operand, which has the elements of the buffer's ring, to one that all products can read.
 * False: *v is such a shape already, or there is none, which product.c refuses. */
bool lower_make_readable(const struct kernel *k, int buffer, struct shape2 *v);
/* Elements of the innermost dimensions that are neighbours in a ring of this shape, which need not lie as the tensor.
 * Panels must divide them. 0: the copy engine cannot load the buffer so. In box_order.c. */
int64_t lower_box_grain(const struct kernel *k, const struct buffer *b, const struct shape2 *v);
/* Does a product that reads the buffer from shared memory contract the axis? In rings.c. */
bool lower_is_contracted(const struct kernel *k, int buffer, int axis);
/* Sets *s to the rows and columns of a loaded tile as its tensor lies in memory, and *run to the rows of a box where
 * values name rows (0: all rows of the tile). Returns whether the copy engine can load it: plain indices, strides and
 * rows of complete chunks. If not, *why says why. */
bool lower_find_load_shape(const struct kernel *k, const struct buffer *b, struct shape2 *s, int64_t *run,
	enum engine_obstacle *why);
/* Do the rows of the tensor, and all boxes in them, begin where a chunk does? The last `merged` dimensions are a row. */
bool lower_rows_aligned(const struct kernel *k, const struct buffer *b, int merged);
/* Sets in r what the load of one slice fills if the ring has all slices. ERR_ILLEGAL: that is not contiguous. */
NODISCARD enum err_code lower_find_boxes(const struct kernel *k, struct ring *r, const struct buffer *b, struct err *e);

#endif
