/* sim.h - simulates a plan on a vDevice by discrete events.
 *
 * Each lane of an EU walks its order (plan/order.h). It issues an entry when it has reached it and the entry's waits
 * are satisfied. A copy engine is a queue with an issue interval and a latency; a matrix sEU serves parts of products
 * in order of arrival; a vector sEU is shared by the lanes that use it, up to each lane's share; copies also queue for
 * the EU's shares of L2 and device memory. The work decides the clock (device_clock), and so the time.
 *
 * Costs come from device_cost; traffic.h estimates which bytes of a load are not in L2; if kernels are given, price.h
 * adds what their lanes do in addition to the sTasks' work. EUs differ only in their tiles (plan/assign.h): those whose
 * tiles have the same trip counts are simulated once, and if there are many such classes, only those with most
 * iterations and a sample of the others.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/price.h"
#include "sim/timeline.h"

struct sim_options {
	int64_t keep;			/* events kept per phase, at most; 0: none, < 0: a default */
	int64_t max_events;		/* ERR_LIMIT beyond this many events; 0: a default */
	const struct price *price;	/* of the plan's kernels; NULL: simulate the plan's entries alone */
	struct assignment_cache *assignments;		/* assignments of plans of the program; NULL: none */
	const bool *warm;		/* by tensor of the program: is it in L2 when the first phase begins? NULL: none is */
	bool rough;			/* play only the EU with most work, with grid.keep also that with most tiles, and of very many equal tiles the first ones;
					 * its kernel is not verified */
};

/* Simulate a legal plan (plan_check); o NULL: defaults. *out is the caller's, to free with timeline_free; it
 * borrows p. ERR_ILLEGAL: deadlock, the message names the lanes and what each waits for; ERR_LIMIT: too many
 * events, tiles or lanes; ERR_INTERRUPTED: *stop asked for it. */
NODISCARD enum err_code sim_run(struct mem *mem, const struct plan *p,
	const struct sim_options *o, const struct stop *stop, struct timeline **out, struct err *e);

/* The costs that sim_run uses for a phase, by entry of the plan (of the kernel's plan, if price has one). Each
 * entry's sEU must be able to run its sTask. Result and scratch memory in `a`. */
const struct entry_cost *sim_costs(struct arena *a, const struct plan *p, int phase, const struct price *price);

#endif
