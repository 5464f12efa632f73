/* names.h - sTasks and buffers by the names that users write. */
#ifndef PLAN_NAMES_H
#define PLAN_NAMES_H

#include "graph/graph.h"

/* If there is none, the message tells the name that may be meant. Scratch in `a`, as it was when they return. */

/* The sTasks that a name means: *n from *first on. "mma" means all slices of a split task, mma.0, mma.1, ... */
NODISCARD enum err_code named_tasks(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *first, int *n, struct err *e);
/* The one sTask of that name; of a split task, the name must say which slice. */
NODISCARD enum err_code named_task(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e);
NODISCARD enum err_code named_buffer(struct arena *a, const struct graph *g, const char *name,
	struct srcloc loc, int *out, struct err *e);
/* The name of slice i of what is called `name`: "mma.1" of "mma". In `a`. */
const char *name_of_slice(struct arena *a, const char *name, int i);

#endif
