/* sized.h - a plan at sizes that are known at launch.
 *
 * A program may leave sizes to the launch (struct axis). Its plan is made for the largest ones, and its kernels
 * serve all. What depends on the sizes is how many tiles the grid has, how many iterations loops make, and where
 * tensors end; the plan at sizes is the same plan over a graph that has these numbers.
 */
#ifndef PLAN_SIZED_H
#define PLAN_SIZED_H

#include "plan/assign.h"

/* The plan at sizes[a] of each axis a, which program_check_sizes accepts. In `a`; it borrows from p and is not to be
 * freed. */
const struct plan *plan_at_sizes(struct arena *a, const struct plan *p, const int64_t *sizes);

/* The plan at the sizes of another one of its program. */
const struct plan *plan_at_same_sizes(struct arena *a, const struct plan *p, const struct plan *at);

/* The tiles of a launch: those that plan_assign_tiles assigns. The kernel knows them by the numbers that they have
 * in the grid of the largest sizes. In `a`. */
void plan_launch_tiles(struct arena *a, const struct plan *p, int phase, struct tile_assignment *out);

#endif
