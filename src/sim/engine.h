/* engine.h - simulates the lanes of one EU on its sEUs, event by event; for use inside src/sim.
 *
 * Time is counted in ticks of 1/1024 cycle. Ticks are integers, so equal costs add up to equal times in
 * any order, and simultaneous events are ordered by rule, not by rounding. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "plan/order.h"
#include "sim/timeline.h"
#include "sim/traffic.h"

enum { TICKS = 1024 };

/* One EU's run: inputs, and results. All pointers are borrowed. */
struct eu_run {
	/* inputs */
	const struct plan *plan;
	const struct walk *walk;
	const struct entry_cost *costs;	/* by entry */
	const struct phase_price *price; /* of the kernel made of the plan; NULL: none */
	struct event *events;		/* capacity for the first `keep` events, in cycles */
	int64_t keep;
	struct event *parts;		/* capacity for `keep_parts` events of warpgroups but the last of a lane */
	int64_t keep_parts;
	bool only_kept;			/* stop when these are complete */
	int watch;			/* sTask whose completions are recorded; NONE */
	int64_t *ends;			/* capacity for `nends` of them, in ticks ... */
	int64_t nends, skip;		/* ... after the first `skip` */
	const struct stop *stop;
	/* results */
	int64_t nevents, nkept;		/* events simulated, and kept in `events` */
	int64_t nparts;			/* kept in `parts`; those that are not complete have no end */
	int64_t noted;			/* completions recorded in `ends` */
	int64_t under_way[SEU_MAX];	/* ticks in which anything was under way, of units that are queues */
	int64_t ticks;			/* from the start to the last completion */
};

/* Play the run. Scratch memory in `a`. ERR_ILLEGAL: deadlock; ERR_INTERRUPTED: r->stop asked for it; ERR_LIMIT:
 * too many lanes, or a time beyond what can be counted. */
NODISCARD enum err_code eu_run_play(struct arena *a, struct eu_run *r, struct err *e);

#endif
