/* exact.h - orders from exact modulo schedules of a plan's loops (loop.h), as further choices. */
#ifndef SEARCH_EXACT_H
#define SEARCH_EXACT_H

#include "search/neighbours.h"

/* Solve each loop of p, the plan of choice c. Add the orders to the space's. If any is not that of c, c with all of
 * them is appended to *out: without an issue order of lanes and, if split over several, with one. Scratch memory
 * in `scratch`, released unless it fails. ERR_INTERRUPTED: *out is as before. */
NODISCARD enum err_code exact_orders(struct space *s, const struct choice *c, const struct plan *p,
	struct arena *scratch, const struct stop *stop, struct choices *out, struct err *e);

#endif
