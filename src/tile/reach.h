/* reach.h - which indices an expression takes, found by trying all indices of its axes.
 *
 * Bounds of the parts of j + 1 - 2 * (j % 2), which exchanges neighbours, say less: -1 to the size. Where the axes have
 * too many elements to try, the answer is the cautious one. */
#ifndef TILE_REACH_H
#define TILE_REACH_H

#include "tile/program.h"

/* Is the value at least 0 and less than `size`, wherever the axes are? */
bool index_stays_within(const struct program *p, const struct index_expr *x, int64_t size);
/* Of a read at other indices (OP_AT): do no two elements of its result come from one element of its argument? */
bool at_is_distinct(struct arena *a, const struct program *p, const struct node *n);
/* Does the expression take the indices of `axis`, and of no other axis, with some bits flipped: axis ~ mask?
 * Then *mask are these bits, not 0. */
bool index_flips_bits(const struct program *p, const struct index_expr *x, int axis, int64_t *mask);
/* Is the index that of another axis, as long as the one that is read along, so that the result is the argument under
 * another name? Then *other is that axis. */
bool at_renames(const struct program *p, const struct node *n, int *other);

#endif
