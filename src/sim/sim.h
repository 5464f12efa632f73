/* sim.h - a plan on a vDevice, as discrete events.
 *
 * Each lane of an EU walks its order (plan/order.h). An entry is issued when the
 * lane has come to it and its waits are satisfied; an asynchronous sEU is a queue
 * with an issue interval and a latency, served in order of issue; a vector sEU is
 * shared by the lanes that want it, each drawing at most its lane's share; copies
 * also queue for the EU's share of L2 and device memory. All costs are
 * device_cost's, with the share of a load's bytes that L2 does not have estimated from
 * the order of tiles (traffic.h). EUs differ only in the tiles they get: the grid's
 * tiles are dealt in the plan's order, tile t to EU t mod n (or, longest first, to the
 * EU that has the fewest iterations so far), and EUs whose tiles have the same trip
 * counts are simulated once. If there are many sorts of EUs, those with most
 * iterations and a sample of the others are. Where EUs form clusters (plan/cluster.h),
 * groups of tiles are dealt to clusters in the same way, a tile of the group to each EU.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/timeline.h"

struct sim_options {
	int64_t keep;			/* most events kept a phase; 0: none, < 0: a default */
	int64_t max_events;		/* give up beyond this many; 0: a default */
};

/* The plan must be legal (plan_check); one that deadlocks gives ERR_ILLEGAL naming
 * the lanes and what each waits for. */
NODISCARD enum err_code sim_run(struct mem *mem, const struct plan *p,
	const struct sim_options *o, const struct stop *stop, struct timeline **out,
	struct err *e);

/* The order in which the grid's tiles are taken, and how many and which each EU
 * gets: tiles of EU u are order[start[u]] .. order[start[u + 1] - 1]. */
struct dealing {
	int eus, cluster;		/* EUs of one: consecutive, from a multiple on; 1 */
	int64_t total;			/* tiles, those counted twice that fill up groups */
	int64_t *order;
	int64_t *start;			/* eus + 1 */
};
void sim_deal(struct arena *a, const struct plan *p, int phase, struct dealing *out);

#endif
