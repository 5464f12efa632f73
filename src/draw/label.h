/* label.h - short names for the parts of a graph, the same in every drawing. */
#ifndef DRAW_LABEL_H
#define DRAW_LABEL_H

#include "draw/text.h"
#include "graph/graph.h"

/* Texts in `a` or constant. */

/* "n", or "r,s,c" of a loop over several axes; "n#2" if it is the second over the
 * same axes; "tile" for the tile loop (NONE). */
const char *label_loop(struct arena *a, const struct program *p, int loop);
/* "loop n, 32 iterations", "loop n, 1 to 32 iterations" */
const char *label_loop_trips(struct arena *a, const struct graph *g, int loop);
/* "m=128 n=64"; of an empty list "scalar" */
const char *label_extents(struct arena *a, const struct program *p, int naxes, const int *axis,
	const int64_t *extent);
/* The extents of an sTask's result, and what a product sums over: "m=128 n=64
 * ·d=128". */
const char *label_shape(struct arena *a, const struct graph *g, int task);
/* "0", "+1", or "+V" where the plan's versions count. */
const char *label_distance(struct arena *a, const struct edge *e);
/* Edges that differ only in the buffer are shown as one: the buffers of edge i and those
 * like it, "mx, l", or NULL if an earlier one of them stands for it. */
const char *label_edge_buffers(struct arena *a, const struct graph *g, int i);
/* Does the dependence stay within one iteration? Only then does it order the sTasks
 * of a body. */
bool edge_is_inner(const struct edge *e);

/* Which kind of sEU takes such sTasks, whatever the device: "copy" "matrix" "vector" */
const char *label_seu(enum task_kind k);
/* Of the kind, for names and boxes. */
struct style style_of_kind(enum task_kind k);

#endif
