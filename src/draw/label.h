/* label.h - short texts for parts of a graph, the same in every drawing. */
#ifndef DRAW_LABEL_H
#define DRAW_LABEL_H

#include "draw/text.h"
#include "graph/graph.h"

/* Texts are in `a`, or constant. */

/* "n", or "r,s,c" of a loop over several axes; "n#2" of the second loop over the same axes; "tile" for the tile loop
 * (NONE). */
const char *label_loop(struct arena *a, const struct program *p, int loop);
/* "loop n, 32 iterations", "loop n, 1 to 32 iterations" */
const char *label_loop_trips(struct arena *a, const struct graph *g, int loop);
/* What predictions assume of loops whose lengths are values: "assumed length of loop n 130"; empty: there is none. */
const char *label_lengths(struct arena *a, const struct program *p);
/* "main: 512 tiles" */
const char *label_tiles(struct arena *a, const struct graph *g, int phase);
/* "m=128 n=64"; of an empty list "scalar" */
const char *label_extents(struct arena *a, const struct program *p, int naxes, const int *axis, const int64_t *extent);
/* The extents of an sTask's result, and those that a product sums over: "m=128 n=64 ·d=128". */
const char *label_shape(struct arena *a, const struct graph *g, int task);
/* "0", "+1", or "+V" where the distance is the number of versions. */
const char *label_distance(struct arena *a, const struct edge *e);
/* Edges that differ only in the buffer are shown as one: the buffers of all of them, "mx, l", or NULL if edge i is not
 * the first of them. */
const char *label_edge_buffers(struct arena *a, const struct graph *g, int i);
/* Is the dependence within one iteration? Only then does it order the sTasks of a body. */
bool edge_is_inner(const struct edge *e);

/* The kind of sEU for such sTasks on any device: "copy", "matrix", "vector". */
const char *label_seu(enum task_kind k);
/* Style of names and boxes of that kind. */
struct style style_of_kind(enum task_kind k);

#endif
