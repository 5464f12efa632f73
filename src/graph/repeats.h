/* repeats.h - what tiles do again, as each needs all of an axis that is divided among them.
 *
 * Every tile of a softmax of rows, say, needs all of the row for its sum. If the tile has only a part of the row's
 * results, the tiles of one row each load the row, and each compute the sum. */
#ifndef GRAPH_REPEATS_H
#define GRAPH_REPEATS_H

#include "graph/graph.h"

/* How many tiles of the grid of its phase do the same of sTask `task`, because they share the axis and it has all of
 * it; 1: none. */
int64_t graph_repeats(const struct graph *g, int task, int axis);

/* The task of the program that needs all of the axis in the phase for something which has none of it, as a sum, or goes
 * along it. NONE: there is none. */
int graph_needing_task(const struct graph *g, int phase, int axis);

/* The task of the program because of which every tile of the phase has all of an axis that could be divided among
 * tiles, as it adds up along it, say; NONE: a tile can have a part of the axis. */
int graph_needs_all(const struct graph *g, int phase, int axis);

/* A sentence about all that is repeated in a phase because of the axis, in `a`, with how often and the bytes that are
 * loaded again. NULL: nothing is. */
const char *graph_repeats_text(const struct graph *g, int phase, int axis, struct arena *a);

#endif
