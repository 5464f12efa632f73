/* folds.h - the ways in which a lane reduces and scans.
 *
 * Where the axis is all that one side of the fragment has, and what comes out lies as the
 * rest of it, threads join what they have in registers: along columns over a quad, along rows
 * over the lane's warps. Any other goes line by line through the lane's scratch in shared
 * memory: a value in registers is written there as it lies, each line along the axis is gone
 * through by one thread, and the threads take what came out as they hold it. */
#ifndef LOWER_FOLDS_H
#define LOWER_FOLDS_H

#include "lower/layout/conversions.h"

enum fold_way { FOLD_COLUMNS, FOLD_ROWS, FOLD_LINES };

struct fold {
	enum fold_way way;
	bool shared;			/* the argument is found in shared memory */
	bool whole;			/* along all of the axis, not the tile where a loop stands */
	/* COLUMNS, ROWS: how the argument is spread over the lane. LINES: the result, and what
	 * part of the axis is gone along. */
	struct shape2 over;
};

/* Of node `node`, a reduction or scan of sTask s. */
void fold_of(const struct kernel *k, const struct stask *s, int node, struct fold *out);
/* LINES: how what is in the scratch lies there. Results are where the argument was, if that
 * is not in shared memory already. */
const struct shape2 *fold_scratch_shape(const struct kernel *k, int node, const struct fold *f);
/* Of the lane's scratch. */
int64_t fold_bytes(const struct kernel *k, const struct stask *s, int node, int warps);

#endif
