/* exact.h - orders by exact schedules of a plan's loops (loop.h), as more choices. */
#ifndef SEARCH_EXACT_H
#define SEARCH_EXACT_H

#include "search/neighbours.h"

/* Solve every loop of p, the plan of choice c. Orders that come of it are the space's from then on, and
 * the same choice with them goes to *out, its lanes in turn and not. Scratch in `a`, given back.
 * ERR_INTERRUPTED. */
NODISCARD enum err_code exact_orders(struct space *s, const struct choice *c, const struct plan *p,
	struct arena *scratch, const struct stop *stop, struct choices *out, struct err *e);

#endif
