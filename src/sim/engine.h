/* engine.h - the lanes of one EU played against its sEUs; for use inside src/sim.
 *
 * Time is counted in ticks, 1/1024 cycle: as integers, so that equal costs add up to
 * equal times whatever their order, and ties are broken by rule and not by rounding.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "plan/order.h"
#include "sim/timeline.h"
#include "sim/traffic.h"

enum { TICKS = 1024 };

/* One EU's run, asked and answered. */
struct eu_run {
	/* asked */
	const struct plan *plan;
	const struct walk *walk;
	const struct entry_cost *costs;	/* by entry */
	const struct phase_price *price; /* of the kernel whose plan it is; NULL: there is none */
	struct event *events;		/* room for the first `keep` */
	int64_t keep;
	bool only_kept;			/* stop when those are complete */
	int watch;			/* sTask whose ends are noted; NONE */
	int64_t *ends;			/* room for `nends` of them, in ticks ... */
	int64_t nends, skip;		/* ... after the first `skip` */
	const struct stop *stop;
	/* answered */
	int64_t nevents, nkept, noted;
	int64_t ticks;			/* from the start to the last completion */
};

/* Scratch in `a`. ERR_ILLEGAL if the lanes come to stand, ERR_INTERRUPTED. */
NODISCARD enum err_code eu_run_play(struct arena *a, struct eu_run *r, struct err *e);

#endif
