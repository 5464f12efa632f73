/* orders.h - in which order a lane can go through the body of a loop.
 *
 * Software pipelining by hand is to let a part of the body run an iteration ahead: the
 * scores of the next block while this one's are used. What runs ahead must not need what
 * does not, so it is a set that holds, with an sTask, all it depends on within the
 * iteration; each such set gives an order. Within a turn, products go first (their unit
 * then works while the lane does), then what belongs to the older iteration, then the
 * program's order. Exact schedules (loop/modulo.h) are added as they are found.
 */
#ifndef SEARCH_ORDERS_H
#define SEARCH_ORDERS_H

#include "plan/plan.h"

enum { ORDER_TASKS = 24, ORDERS_MAX = 32 };

struct order {
	unsigned versions;		/* bits, by order_value: made ahead of who reads it */
	int n;
	struct {
		int task;		/* of the program as it is cut; all its parts */
		int at;
	} v[ORDER_TASKS];
};

/* The first is the program's. */
struct orders {
	int n;
	int most;			/* the one of which most runs ahead */
	struct order v[ORDERS_MAX];
};

/* Of the region's own sTasks that are no loads, in a graph without splits: a loop's, or, of a phase that has
 * none (loop NONE), those of a tile; then what runs ahead is of the next tile. */
void orders_find(const struct graph *g, const struct vdevice *d, int phase, int loop, struct orders *out);

/* The number of an order among them, where it is added if it is new; NONE: there is no room. */
int orders_add(struct orders *o, const struct order *x);

/* The number of a buffer among the values that a graph's sTasks make anew in each iteration of a loop, where
 * parts of one value count as one, so that it is the same for all splits; NONE: it is none of them. */
int order_value(const struct graph *g, int buffer);

#endif
