/* deal.h - which EUs are alike; for use inside src/sim.
 *
 * EUs differ only in their tiles, and tiles only in how often their loops run. So
 * EUs whose tiles have the same trip counts in the same order do the same, cycle for
 * cycle, and one of them stands for all.
 */
#ifndef SIM_DEAL_H
#define SIM_DEAL_H

#include "sim/sim.h"

struct eu_class {
	int eu;				/* the first of them */
	int members;
	int64_t work;			/* iterations of all its tiles */
};

/* The classes of a dealing, in `a`, by falling work. Returns how many. */
int deal_classes(struct arena *a, const struct plan *p, int phase, const struct dealing *d,
	struct eu_class **out);

#endif
