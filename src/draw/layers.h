/* layers.h - graphs in layers, for drawings as text and as pictures; private to src/draw. */
#ifndef DRAW_LAYERS_H
#define DRAW_LAYERS_H

#include "draw/cells.h"
#include "draw/layout.h"
#include "graph/graph.h"

/* The frame of a loop, around the layers first to last. */
struct frame {
	int loop, first, last;
	int depth;			/* 0: outermost */
};

/* A line from one node down to one or more in the next layer. */
struct wire {
	int node;			/* where it begins */
	int from_x;
	int nto;
	int *to, *to_x;			/* nodes and columns where it ends */
	int lo, hi;			/* leftmost and rightmost column */
	int track;			/* row below the upper layer; NONE: straight down */
};

struct gap {
	int nwires;
	struct wire *wires;
	int ntracks;
};

/* A phase, layer by layer. */
struct sketch {
	struct arena *arena;
	const struct graph *g;
	int phase;
	const bool *shown;		/* by sTask; NULL: all are */
	int *layer;			/* by sTask; NONE in other phases, and of those that are not shown */
	int *node;			/* by sTask: node of the layout */
	int nlayers;
	VEC(struct frame) frames;	/* outer before inner */
	int depth;			/* frames around the innermost layer */
	struct layout layout;
	struct gap *gaps;		/* below each layer */
};

/* Determine the layer of each sTask of a phase that is shown (NULL: of all) and the frame of each loop. Columns are found
 * later. */
void sketch_init(struct sketch *s, struct arena *a, const struct graph *g, int phase, const bool *shown);
/* Fill s->gaps from a finished layout. False if two lines would overlap. */
bool sketch_route(struct sketch *s);
/* Draw into a new grid at most `width` wide; false if it does not fit. */
bool sketch_draw(struct sketch *s, int width, struct cells *out);

/* Does the edge run downward in the drawing? */
bool sketch_is_flow(const struct sketch *s, const struct edge *e);

#endif
