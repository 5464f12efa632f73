/* exact.h - orders from exact modulo schedules of a plan's loops (loop.h), as further choices. */
#ifndef SEARCH_EXACT_H
#define SEARCH_EXACT_H

#include "search/neighbours.h"

/* Solve every loop of p, the plan of choice c. New orders are added to the space's orders, and c with the new orders, with
 * and without an issue order of its lanes, is appended to *out. Scratch memory in `scratch`, released on return.
 * ERR_INTERRUPTED. */
NODISCARD enum err_code exact_orders(struct space *s, const struct choice *c, const struct plan *p,
	struct arena *scratch, const struct stop *stop, struct choices *out, struct err *e);

#endif
