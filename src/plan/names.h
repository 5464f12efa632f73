/* names.h - sTasks and buffers by the names that users write. */
#ifndef PLAN_NAMES_H
#define PLAN_NAMES_H

#include "graph/graph.h"

/* If there is none, the message tells the name that may be meant. Scratch in `a`, as it was when they return. */
NODISCARD enum err_code named_task(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e);
NODISCARD enum err_code named_buffer(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e);

#endif
