/* trace.h - a timeline from the stamps that a traced kernel left.
 *
 * lower/stamps.h says where stamps lie and after which statements they are taken. The plan says what
 * happened in between: each lane's order tells which instance the next record is of, and its waits
 * tell what it knew by then. The times of an event:
 *
 *	ready	its lane had finished the previous sTask
 *	issue	the last of its waits had ended; start is the same, as nothing shows when an
 *		asynchronous sEU begins
 *	end	synchronous: its lane had finished it. A copy: a warp that watches its flag saw it,
 *		or the first lane's wait for it had ended. A product: the first wait for its lane's
 *		groups that covers it had ended. `late` if that wait took no time: then the end may
 *		have been earlier.
 *	cause	the longest of its waits, if it took longer than a look at the flag
 *
 * Times are cycles of the clock of the block's SM from the moment at which the block had
 * set up its flags; on the host, which has no clock, the number of stamps since then.
 */
#ifndef RUN_TRACE_H
#define RUN_TRACE_H

#include "run/built.h"
#include "sim/timeline.h"

struct trace_options {
	bool logical;
	int eu;				/* the EU to show; NONE: the one that ended last */
	double seconds;			/* time of the traced kernel */
	double overhead;		/* of tracing, as a share; NAN: not known */
	const char *cache;		/* static: as in the timeline */
};

/* The stamps that the last run of a traced plan left. The plan must outlive the timeline. ERR_INPUT if there is no such
 * EU, ERR_IO if stamps are missing. *out is set first, and the caller frees it also after an error. */
NODISCARD enum err_code trace_read(struct mem *mem, const struct built *traced,
	const struct trace_options *o, struct arena *scratch, struct timeline **out, struct err *e);

/* When the last run of it began and ended, by its stamps, in nanoseconds that all kernels of a device share: when its first block had set
 * up its flags, before it waits for what is in front of it, and when its last lane had ended. */
struct trace_span {
	uint64_t begin, end;
};
struct trace_span trace_span(const struct built *traced);

#endif
