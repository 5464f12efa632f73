/* folds.h - how a lane reduces and scans.
 *
 * If the axis is the only one of a side of the fragment, and the result has the layout of the other side, threads
 * combine registers: along columns by shuffles in a quad, along rows also across the lane's warps. Otherwise the value
 * is written to the lane's scratch in shared memory, unless it is in a ring. If each element of the result is held by one
 * thread, that goes over the element's line. Else, and in scans, one thread processes each line along the axis, and the
 * threads read the results from the scratch. */
#ifndef LOWER_FOLDS_H
#define LOWER_FOLDS_H

#include "lower/layout/conversions.h"

/* UNIT: the axis has one element, and the others lie as in the result: each element is its own result. OWN: each element of
 * the result is held by one thread, which goes over its line in shared memory. */
enum fold_way { FOLD_COLUMNS, FOLD_ROWS, FOLD_LINES, FOLD_UNIT, FOLD_OWN };

struct fold {
	enum fold_way way;
	bool shared;			/* the argument is found in shared memory */
	bool full;			/* along the full axis, not the tile of an iteration */
	/* COLUMNS, ROWS, UNIT: the argument's shape. LINES, OWN: the result's shape, whose full_axes say whether the
	 * full axis is processed. */
	struct shape2 over;
};

/* How node `node`, a reduction or scan of sTask s, is done. */
void fold_of(const struct kernel *k, const struct stask *s, int node, struct fold *out);
/* LINES, OWN: the shape of what is in the scratch. Results replace the argument, or are alone there if the argument is in a
 * ring. */
const struct shape2 *fold_scratch_shape(const struct kernel *k, int node, const struct fold *f);
/* Bytes that it needs of the lane's scratch. */
int64_t fold_bytes(const struct kernel *k, const struct stask *s, int node, const struct frag_layout *l, int warps);

#endif
