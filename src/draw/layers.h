/* layers.h - what drawings of graphs in layers share, as text and as pictures; nobody else
 * includes it. */
#ifndef DRAW_LAYERS_H
#define DRAW_LAYERS_H

#include "draw/cells.h"
#include "draw/layout.h"
#include "graph/graph.h"

/* Around the layers first to last. */
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

/* One phase on its way to a drawing. */
struct sketch {
	struct arena *arena;
	const struct graph *g;
	int phase;
	int *layer;			/* by sTask; NONE in other phases */
	int *node;			/* by sTask: node of the layout */
	int nlayers;
	VEC(struct frame) frames;	/* outer before inner */
	int depth;			/* frames around the innermost layer */
	struct layout layout;
	struct gap *gaps;		/* below each layer */
};

/* Give each sTask of a phase its layer, and each loop its frame; nothing is placed yet. */
void sketch_init(struct sketch *s, struct arena *a, const struct graph *g, int phase);
/* Fill s->gaps from a placed layout. False if two lines could not be told apart. */
bool sketch_route(struct sketch *s);
/* Into a grid of its own, at most `width` wide; false if it cannot fit. */
bool sketch_draw(struct sketch *s, int width, struct cells *out);

/* Does the edge run downward in the drawing? */
bool sketch_is_flow(const struct sketch *s, const struct edge *e);

#endif
