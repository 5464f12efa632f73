/* limits.h - what no plan of a graph can be better than, and what graphs no plan suits. */
#ifndef SEARCH_LIMITS_H
#define SEARCH_LIMITS_H

#include "search/space.h"

enum { ACCUMULATORS_MAX = 65536 };	/* of one product: the registers of an EU */

/* Seconds that the busiest unit, or device memory, needs for all the work, without any waiting: no plan
 * of the graph is faster in the model, however it goes over lanes and whatever it cuts off. */
double limit_seconds(const struct program *p, const struct vdevice *d, const struct graph *g);

/* Do the rows of its products fill the lanes' instructions? */
bool limit_suits(const struct vdevice *d, const struct graph *g, const struct choice *c);

/* What no plan of the graph can do without: bytes of shared memory, with one version of everything; and sums
 * of one product, where the registers of an EU do not hold them, else 0. */
int64_t limit_shared(const struct graph *g);
int64_t limit_sums(const struct graph *g);

#endif
