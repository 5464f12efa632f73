/* lengths.h - whether inputs give the lengths of loops that predictions assume. */
#ifndef RUN_LENGTHS_H
#define RUN_LENGTHS_H

#include "graph/graph.h"

/* ERR_INPUT if a loop of the graph's program makes another number of iterations in some tile than it does in the model:
 * a timeline of such a run could not be read; or if its length is not known before: it comes from a temporary, or changes
 * within a tile. data: arrays of all inputs, in the tensors' types. */
NODISCARD enum err_code lengths_check(const struct graph *g, void *const *data, struct err *e);
/* The number that each element of the tensor must be so that lengths which are its elements are what predictions assume;
 * 0: no length is one. */
int64_t lengths_typical(const struct program *p, int tensor);

#endif
