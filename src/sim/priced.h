/* priced.h - simulates a plan with the costs of its kernels. */
#ifndef SIM_PRICED_H
#define SIM_PRICED_H

#include "sim/sim.h"

/* at: that plan at the sizes that the timeline is for (plan/sized.h); NULL: the largest. Lower the plan, and
 * simulate it as sim_run does, with its kernels' own waits and their price (price.h); o->price is ignored. A plan
 * that cannot be lowered is simulated by its entries alone, and the timeline's `unpriced` says why. *k owns the
 * kernels meanwhile and is NULL on return: a caller whose failure handler jumps out of this call must free it. */
struct kernels;
NODISCARD enum err_code priced_run(struct mem *mem, const struct plan *p, const struct plan *at,
	const struct sim_options *o, const struct stop *stop, struct kernels **k, struct timeline **out, struct err *e);
void kernels_free(struct kernels *k);

#endif
