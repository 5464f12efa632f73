/* rings.h - extents of a buffer's ring, and what rings.c and loads.c ask of each other; inside src/lower/layout. */
#ifndef LOWER_RINGS_H
#define LOWER_RINGS_H

#include "lower/passes.h"

static inline int buffer_index(const struct kernel *k, const struct buffer *b)
{
	return (int)(b - k->plan->graph->buffers.v);
}

/* The axis along which the value is split; NONE. */
static inline int buffer_split_axis(const struct kernel *k, const struct buffer *b)
{
	return b->slices > 1 ? k->plan->graph->tasks.v[b->first].split_axis : NONE;
}

/* Extent in the buffer's ring, which may hold all slices of the value; and of the buffer's own slice in it. */
static inline int64_t ring_axis_extent(const struct kernel *k, const struct buffer *b, int axis)
{
	for (int i = 0; i < b->naxes; i++)
		if (b->axis[i] == axis)
			return b->extent[i] * (b->together && axis == buffer_split_axis(k, b) ? b->slices : 1);
	return 1;
}
static inline int64_t ring_part_extent(const struct kernel *k, const struct buffer *b, int axis)
{
	return ring_axis_extent(k, b, axis) / (b->together && axis == buffer_split_axis(k, b) ? b->slices : 1);
}

/* Elements of the contracted axis that a matrix instruction takes. */
static inline int64_t k_step_depth(const struct kernel *k, const struct buffer *b)
{
	return matrix_depth(&k->target->matrix[0], b->type);
}

/* Does a product that reads the buffer from shared memory contract the axis? */
bool lower_contracts(const struct kernel *k, int buffer, int axis);
/* Finds the rows and columns of a loaded tile. Returns whether the copy engine can load it. */
bool lower_load_shape(const struct kernel *k, const struct buffer *b, struct shape2 *s);
/* Finds the rows or columns that a split load fills in the slot of all slices. ERR_ILLEGAL: they are not contiguous. */
NODISCARD enum err_code lower_fill_slice(const struct kernel *k, struct ring *r, const struct buffer *b, struct err *e);

#endif
