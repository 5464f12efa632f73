/* orders.h - the orders in which a lane can perform the body of a loop.
 *
 * Software pipelining by hand lets a part of the body run an iteration ahead: the scores of the next block are computed
 * while those of this one are used. What runs ahead must not depend, within the iteration, on what does not. So it is a
 * set of sTasks that is closed under dependences, and each such set gives one order. Within an iteration products come
 * first (their unit works while the lane does something else), then what belongs to the older iteration, then the
 * program's order. A product that something waits for may also come before those that nothing waits for: products retire
 * in order. Exact schedules (loop/modulo.h) are added as they are found. */
#ifndef SEARCH_ORDERS_H
#define SEARCH_ORDERS_H

#include "plan/plan.h"

enum { ORDER_TASKS = 24, ORDERS_MAX = 32 };

struct order {
	unsigned versions;		/* bits, by order_value: values that are computed ahead of their readers */
	int n;
	struct {
		int task;		/* of the program with conversions split off; all its slices */
		int at;
	} v[ORDER_TASKS];
};

/* The first is the program's. */
struct orders {
	int n;
	int most;			/* index of the order in which most runs ahead */
	struct order v[ORDERS_MAX];
};

/* Find the orders of a region, without its loads, of a graph without splits: of a loop's body; or (loop NONE) of a tile in a
 * phase without loops, where what runs ahead belongs to the next tile. */
void orders_find(const struct graph *g, const struct vdevice *d, int phase, int loop, struct orders *out);

/* The index of an order among them; a new one is added. NONE: there are ORDERS_MAX already. */
int orders_add(struct orders *o, const struct order *x);

/* Number the values that sTasks of a graph compute in each iteration of a loop, or in each tile of a program without loops; slices of
 * a value have one number, so it is the same for all splits. NONE: the buffer is no such value. */
int order_value(const struct graph *g, int buffer);

#endif
