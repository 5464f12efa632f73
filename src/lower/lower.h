/* lower.h - from a legal plan to kernels. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "lower/kernel.h"

/* The plan must be legal and outlives the kernel. ERR_ILLEGAL says, with the user's
 * line, what cannot be lowered. *out is set first. Free with kernel_free. */
NODISCARD enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
/* The same without a look at what came of it: for tests of plans that are not legal. */
NODISCARD enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
void kernel_free(struct kernel *k);

#endif
