/* deal.h - tiles to EUs: which tiles each EU gets, and which EUs are alike.
 *
 * The grid's tiles are dealt in the plan's order, tile t to EU t mod n, or, longest first,
 * to the EU that has the fewest iterations so far. Where EUs form clusters (cluster.h),
 * groups of tiles are dealt to clusters in the same way, a tile of the group to each EU.
 *
 * EUs differ only in their tiles, and tiles only in how often their loops run. So
 * EUs whose tiles have the same trip counts in the same order do the same, cycle for
 * cycle, and one of them stands for all.
 */
#ifndef PLAN_DEAL_H
#define PLAN_DEAL_H

#include "plan/plan.h"

/* The order in which the grid's tiles are taken, and how many and which each EU
 * gets: tiles of EU u are order[start[u]] .. order[start[u + 1] - 1]. */
struct dealing {
	int eus, cluster;		/* EUs of one: consecutive, from a multiple on; 1 */
	int64_t total;			/* tiles, those counted twice that fill up groups */
	int64_t *order;
	int64_t *start;			/* eus + 1 */
};

/* In `a`. */
void plan_deal(struct arena *a, const struct plan *p, int phase, struct dealing *out);

/* The last few dealings, for who has many plans of one program: most differ in something else. */
enum { DEALS = 4 };
struct deals {
	struct arena arenas[DEALS];	/* of which each has one */
	uint64_t keys[DEALS];
	struct dealing v[DEALS];
	int n, next;
};
void deals_init(struct deals *d, struct mem *mem);
void deals_free(struct deals *d);
/* The same as plan_deal, for plans of one program and device. Good until DEALS others are asked for. */
const struct dealing *deals_of(struct deals *d, const struct plan *p, int phase);

/* Iterations of all loops in a tile of the grid, and 1 for the rest. */
int64_t deal_tile_work(const struct graph *g, int phase, int64_t tile);

struct eu_class {
	int eu;				/* the first of them */
	int members;
	int64_t work;			/* iterations of all its tiles */
};

/* The classes of a dealing, in `a`, by falling work. Returns how many. */
int deal_classes(struct arena *a, const struct plan *p, int phase, const struct dealing *d,
	struct eu_class **out);

#endif
