/* lower.h - from a legal plan to kernels. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "lower/kernel.h"

/* The plan must be legal and outlives the kernel. ERR_ILLEGAL says, with the user's
 * line, what cannot be lowered. *out is set first. Free with kernel_free. */
NODISCARD enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
void kernel_free(struct kernel *k);

/* Passes of it, in order. */
NODISCARD enum err_code lower_shapes(struct kernel *k, struct err *e);
NODISCARD enum err_code lower_rings(struct kernel *k, struct err *e);
NODISCARD enum err_code lower_lanes(struct kernel *k, struct err *e);
/* A wait of the plan that is seen by flags: what entry x waits for. The flags are there. */
NODISCARD enum err_code lower_flag_waits(struct kernel *k, struct kentry *x, int wait,
	struct err *e);
/* Is a wait for an sTask of a loop inside seen by a flag of that loop's runs? Then *depth
 * is how many runs it may be behind. */
bool lower_waits_for_run(const struct kernel *k, const struct wait *w, int *depth);

#endif
