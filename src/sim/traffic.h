/* traffic.h - what each entry of a plan costs, with the L2 in account.
 *
 * The graph knows how many bytes a load asks for; how many of them another EU has
 * just brought to L2 depends on which tiles are at work together, which is the plan's
 * doing. For use inside src/sim.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "plan/deal.h"
#include "sim/price.h"

/* Of a load's bytes, as an estimate: the share that must come from device memory, and how many times as
 * long they take because several EUs ask for them. 1 and 1 for everything else. */
struct fetched {
	double share, times;
};

/* By sTask. In `a`. */
struct fetched *traffic_fetched(struct arena *a, const struct plan *p, int phase,
	const struct dealing *d);

/* By entry; those of other phases are left zero. Every entry's sEU must be able to
 * run its sTask. f: as above; price: of the plan's kernels, NULL. In `a`. */
struct entry_cost *traffic_costs(struct arena *a, const struct plan *p, int phase,
	const struct fetched *f, const struct price *price, struct pace pace);

/* The same of a plan without kernels, at the device's full clock. */
struct entry_cost *traffic_plain(struct arena *a, const struct plan *p, int phase,
	const struct dealing *d);

/* Cycles between start and completion when nothing else wants the units. */
double traffic_latency(const struct entry_cost *c);

#endif
