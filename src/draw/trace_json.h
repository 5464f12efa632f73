/* trace_json.h - timelines for Perfetto and chrome://tracing.
 *
 * The trace-event format in JSON: a process for each timeline, a thread for each lane and for each row of an
 * asynchronous sEU. Instances are complete events, and those of a thread do not overlap. Flows go from an issue to
 * the work that it starts, and from a cause to the instance that waited for it. Counters say how many slots of each
 * ring are being filled and are full.
 */
#ifndef DRAW_TRACE_JSON_H
#define DRAW_TRACE_JSON_H

#include "sim/timeline.h"

/* names: of the processes; script: stored in the trace, NULL: none. */
void trace_json(const struct timeline *const *t, const char *const *names, int n, const char *script, struct buf *out);

#endif
