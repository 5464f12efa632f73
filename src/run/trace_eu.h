/* trace_eu.h - the stamps of one EU as events; for use inside src/run. trace.h defines the times of an event. */
#ifndef RUN_TRACE_EU_H
#define RUN_TRACE_EU_H

#include "lower/stamps.h"
#include "plan/order.h"
#include "sim/timeline.h"

struct eu_stamps {
	const struct kernel *kernel;
	const uint32_t *words;		/* of the EU's block */
	const struct walk *walk;	/* of its tiles */
	bool logical;
};

/* The 64-bit time at w. */
static inline uint64_t time_at(const uint32_t *w)
{
	return (uint64_t)w[1] << 32 | w[0];
}

/* Set the line's cycles and events, which lie in `kept`, and the clock's rate in Hz, 0 if there is no clock.
 * Temporary memory comes from `a`. Returns how many stamps are missing. */
int trace_eu(struct arena *a, struct arena *kept, const struct eu_stamps *in,
	struct phase_line *line, double *clock_hz);

#endif
