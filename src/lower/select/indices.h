/* indices.h - what indices.c and ring_addresses.c share: the layout of the element at hand, and sums taken apart. */
#ifndef LOWER_SELECT_INDICES_H
#define LOWER_SELECT_INDICES_H

#include "lower/select/lowering.h"

/* The layout of the element that the operation in the making is about. */
const struct frag_layout *current_layout(const struct lowering *c);

/* The terms of a sum that are multiples of a unit, and the other terms; NULL: there are none. */
struct split_sum {
	const struct num *multiple, *others;
};

struct split_sum split_multiples(struct lowering *c, const struct num *x, int64_t unit);
/* x / by, where each term of x is a multiple of `by`. */
const struct num *divide_terms(struct lowering *c, const struct num *x, int64_t by);
/* x / by, where what is known of the element at hand leaves less to divide. */
const struct num *quotient(struct lowering *c, const struct num *x, int64_t by);
/* Is x a fragment element's column within its group, COL0 + E? NULL is not. */
bool is_column_in_group(const struct num *x);

/* Has the shape all of the axis, whatever tile it is of? NULL: no. */
bool has_full_axis(const struct shape2 *shape, int axis);
/* How many neighbours along the axis share one element of the shape: 32 if the tensor's index is x // 32. */
int64_t axis_share(const struct shape2 *shape, int axis);

#endif
