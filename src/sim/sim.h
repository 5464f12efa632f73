/* sim.h - a plan on a vDevice, as discrete events.
 *
 * Each lane of an EU walks its order (plan/order.h). An entry is issued when the
 * lane has come to it and its waits are satisfied; a copy engine is a queue with an
 * issue interval and a latency, served in order of issue; a matrix sEU serves parts of
 * products in order of arrival; a vector sEU is shared by the lanes that want it, each
 * drawing at most its lane's share; copies also queue for the EU's shares of L2 and
 * device memory. What all of it takes decides the clock (device_clock). All costs are
 * device_cost's, with the share of a load's bytes that L2 does not have estimated from
 * the order of tiles (traffic.h); and with the plan's kernels at hand, what those do beside
 * (price.h). EUs differ only in the tiles they get (plan/deal.h), and
 * those whose tiles have the same trip counts are simulated once. If there are many sorts
 * of EUs, those with most iterations and a sample of the others are.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/price.h"
#include "sim/timeline.h"

struct sim_options {
	int64_t keep;			/* most events kept a phase; 0: none, < 0: a default */
	int64_t max_events;		/* give up beyond this many; 0: a default */
	const struct price *price;	/* of its kernels; NULL: the plan's entries are all there is */
	struct deals *deals;		/* dealings at hand, of plans of the program; NULL: none */
	bool rough;			/* of EUs that differ, only the one with most to do is played, and
					 * its kernel is not proven */
};

/* The plan must be legal (plan_check); one that deadlocks gives ERR_ILLEGAL naming
 * the lanes and what each waits for. */
NODISCARD enum err_code sim_run(struct mem *mem, const struct plan *p,
	const struct sim_options *o, const struct stop *stop, struct timeline **out,
	struct err *e);

/* What the entries of a phase cost there, by entry; every one's sEU must be able to run its sTask. price
 * as above. In `a`, with scratch. */
const struct entry_cost *sim_costs(struct arena *a, const struct plan *p, int phase,
	const struct price *price);

#endif
