/* priced.h - a plan simulated with what its kernels cost. */
#ifndef SIM_PRICED_H
#define SIM_PRICED_H

#include "sim/sim.h"

/* As sim_run, but the plan is lowered first, and plays with its kernels' own waits and price.
 * A plan that cannot be lowered plays by its entries alone; the timeline's `unpriced` says
 * why. o->price is not looked at. *k holds the kernels meanwhile: a caller whose failure
 * handler jumps out of here frees it; it is NULL when this returns. */
struct kernels;
NODISCARD enum err_code priced_run(struct mem *mem, const struct plan *p,
	const struct sim_options *o, const struct stop *stop, struct kernels **k,
	struct timeline **out, struct err *e);
void kernels_free(struct kernels *k);

#endif
