/* trace_json.h - timelines for Perfetto and chrome://tracing.
 *
 * The trace-event format, as JSON: a process for each timeline, a thread for each lane and for each
 * row of an asynchronous sEU; what an instance does is a complete event, and no two of a thread
 * overlap. Flows lead from where a lane issues to the unit's work, and from what held an instance
 * up to it. Counters tell how many slots of each ring are being filled and are full.
 */
#ifndef DRAW_TRACE_JSON_H
#define DRAW_TRACE_JSON_H

#include "sim/timeline.h"

/* names: of the processes; script: kept beside, NULL: none. */
void trace_json(const struct timeline *const *t, const char *const *names, int n, const char *script,
	struct buf *out);

#endif
