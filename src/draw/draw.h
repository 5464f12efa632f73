/* draw.h - everything as text.
 *
 * Each function appends to `out` what a person should see of a graph, a plan, a
 * timeline or a vDevice, in lines of at most `width` columns where that is possible.
 * Nothing here decides or computes anything about a plan that others would need; it
 * reads, and never fails. Working memory is taken from the arena of `out`.
 */
#ifndef DRAW_DRAW_H
#define DRAW_DRAW_H

#include "draw/cells.h"
#include "plan/check.h"
#include "sim/timeline.h"

struct draw_options {
	int width;			/* columns; 0: 80 */
	unsigned flags;			/* enum draw_flags */
};

/* Options may be NULL everywhere: 80 columns of UTF-8 without colour. */

/* Axes, sTasks, buffers and dependences as tables. */
void draw_graph_table(const struct graph *g, const struct draw_options *o, struct buf *out);
/* For Graphviz: a cluster for each phase and loop. */
void draw_graph_dot(const struct graph *g, struct buf *out);
/* A layered drawing: what flows within an iteration runs downward, loops are frames,
 * what flows to a later iteration is a dashed line upward, and reuse is listed below.
 * Where it cannot fit, a list. */
void draw_graph_layers(const struct graph *g, const struct draw_options *o, struct buf *out);

/* Each lane's order with its waits, the rings, and what plan_check found; usage and
 * problems may be NULL. */
void draw_plan(const struct plan *p, const struct usage *usage, const struct problems *problems,
	const struct draw_options *o, struct buf *out);

enum timeline_rows {
	TIMELINE_LANES,			/* a row a lane, then the asynchronous sEUs */
	TIMELINE_SEUS,			/* sEUs only */
};

/* What to show of a timeline; all zero (or NULL): the beginning of the first phase. */
struct timeline_view {
	int phase;			/* index into timeline.phases */
	enum timeline_rows by;
	int tile;			/* begin with this tile, counted from 0, ... */
	int64_t from;			/* ... or with this cycle, if it is later */
	int64_t to;			/* end before it; 0: where an sTask of the steady
					 * state is still some six columns wide */
};

/* Rows of events over a time axis, then utilisation, bounds and legend. */
void draw_timeline(const struct timeline *t, const struct timeline_view *v,
	const struct draw_options *o, struct buf *out);
/* The rows and axes alone, `width` columns wide, for any display; in `a`. */
void timeline_cells(const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a, struct cells *out);
/* How long, how fast, how near to the bounds, who waited for what: a few lines. */
void draw_timeline_summary(const struct timeline *t, const struct draw_options *o,
	struct buf *out);

void draw_device(const struct vdevice *d, const struct draw_options *o, struct buf *out);

#endif
