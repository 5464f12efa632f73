/* traffic.h - the costs of a plan's entries, with an estimate of what L2 saves.
 *
 * The graph knows how many bytes a load requests. How many of them another EU has just fetched to L2 depends
 * on which tiles run at the same time, and that is decided by the plan: the order of tiles, and which EU
 * gets which. For use inside src/sim. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "plan/assign.h"
#include "sim/price.h"

/* The usable share of L2. On NVIDIA's GPUs L2 has two partitions, and a line that SMs of both read is in both
 * (NVIDIA A100 white paper, "L2 cache"; H100 likewise); elsewhere outputs take a part of it. */
#define L2_USABLE 0.5

/* An estimate for a load: the share of its bytes that comes from device memory, and the factor by which they take
 * longer because several EUs request them at the same time. 1 and 1 for all other sTasks. For an addition in memory:
 * the share that device memory has, and the bytes that all EUs add to at the same time; 0 for others. */
struct fetched {
	double share, times;
	double region;
};

/* The estimate, by sTask of the graph; allocated in `a`. d: the tiles of each EU. warm: by tensor, is it in L2 when the program begins?
 * NULL: none is. */
struct fetched *traffic_fetched(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d, const bool *warm);

/* The share of its copies that each load makes, by sTask of the graph: of a kept load (plan/keep.h), those that its slots
 * do not have already. NULL: all make all. Allocated in `a`. */
double *traffic_copied(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d);

/* Costs by entry, in cycles at the given pace (device.h); 0 for entries of other phases. Each entry's sEU must be
 * able to run its sTask. f: from traffic_fetched; copied: from traffic_copied; price: of the plan's kernels, or NULL.
 * Allocated in `a`. */
struct entry_cost *traffic_costs(struct arena *a, const struct plan *p, int phase,
	const struct fetched *f, const double *copied, const struct price *price, struct pace pace);

/* Both steps, for a plan without kernels at the device's full clock. Allocated in `a`. */
struct entry_cost *traffic_plain(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d);

/* Cycles from start to completion if no other lane uses the units. */
double traffic_latency(const struct entry_cost *c);

#endif
