/* trace.h - the stamps that a traced kernel left, as a timeline.
 *
 * Where stamps lie, and behind which statements, lower/stamps.h says. What happened in
 * between follows from the plan: each lane's order says whose the next record is, and its
 * waits say what it knew then. Of an event
 *
 *	ready	its lane was through with the sTask before
 *	issue	the last of its waits was over; start is the same, as nobody saw when an
 *		asynchronous sEU began
 *	end	synchronous: it was through. A copy: a warp that watches its flag saw it,
 *		or the first lane's wait for it was over. A product: the first wait for its
 *		lane's groups that covers it was over. `late` if that wait took no time:
 *		then it may have ended before.
 *	cause	the longest of its waits, if it took longer than looking does
 *
 * Times are cycles of the clock of the block's SM from the moment at which the block had
 * set up its flags; on the host, which has no clock, the number of stamps since then.
 */
#ifndef RUN_TRACE_H
#define RUN_TRACE_H

#include "lower/stamps.h"
#include "sim/timeline.h"

/* What one phase left: all blocks' words. */
struct trace_input {
	const struct kernel *kernel;
	const uint32_t *words;
};

struct trace_options {
	bool logical;
	int eu;				/* whose events are shown; NONE: the one that ended last */
	double seconds;			/* that the traced kernel took */
	double overhead;		/* NAN: not known */
	const char *cache;		/* static: as in the timeline */
};

/* in[phase] for every phase of the plan, which outlives the timeline. ERR_INPUT if there
 * is no such EU, ERR_IO if stamps are missing. *out is set first, and its owner
 * frees it whatever happens. */
NODISCARD enum err_code trace_read(struct mem *mem, const struct plan *p,
	const struct trace_input *in, const struct trace_options *o, struct arena *scratch,
	struct timeline **out, struct err *e);

#endif
