/* wires.h - the lines of a graph in a picture; private to src/draw.
 *
 * A line leaves a box below, runs from left to right on a track of the gap between two layers, and enters the next
 * box above, at a port of its own with the name of the buffer next to it. A line over several layers passes between
 * the boxes of each (layout.h). A value for a later iteration goes upward right of all boxes: from and to the side
 * of a box if nothing is right of that, else through the gaps; one that the same sTask reads is a small loop at its
 * box. So no line touches a box at which it does not end.
 */
#ifndef DRAW_WIRES_H
#define DRAW_WIRES_H

#include "draw/layers.h"
#include "draw/picture.h"

enum { COLUMN = 9, PORT_GAP = 10, ARROW = 9 };

/* Sizes of all parts. */
struct graph_look {
	double box;			/* height of a box */
	double name, line;		/* text in a box: its name; two more lines, 0: none */
	double edge;			/* text next to lines */
	double track;			/* between horizontal lines */
	double leave, enter;		/* below a box; above it, with a text next to the line */
	double head, pad;		/* of a frame: above its boxes, below them */
	bool labels;			/* names of buffers next to lines */
};

/* A line within a gap. */
struct wire_part {
	int from;			/* node above; NONE: from or to the channel of `back` */
	int back;			/* index into wires.backs; NONE */
	double from_x;
	int nto;
	int *to;			/* nodes below */
	double *to_x;
	double lo, hi;
	int track;			/* NONE: straight down */
};

/* What enters a box: by a link from a node above, or a value of an earlier iteration. */
struct wire_port {
	int node, link_from, back;	/* NONE */
	const char *text;
	double x;
};

struct wire_gap {
	VEC(struct wire_part) parts;
	int ntracks;
	double y;			/* of the first track */
};

/* A value that is read in a later iteration. */
struct wire_back {
	int from, to;			/* nodes */
	const char *text;
	bool from_side, to_side;	/* at the right of the box? */
	bool own;			/* of the sTask that reads it, too: a loop at its box */
	double from_x, to_x;		/* else: ports below and above it */
	double from_y, to_y;		/* of the horizontal parts */
	double x;			/* of the channel */
};

struct wires {
	struct picture *p;
	const struct graph_look *look;
	struct sketch *s;
	struct wire_gap *gap;		/* by layer: above it; and one below the last */
	VEC(struct wire_port) ports;
	VEC(struct wire_back) backs;
	double *own;			/* by sTask: wires_own */
	double x;			/* of column 0 */
	double width;			/* next to the boxes, for values of earlier iterations */
};

/* Find the lines; after sketch_init. wires_width: what a box needs at least for those that enter it. */
void wires_init(struct wires *w, struct picture *p, struct sketch *s, const struct graph_look *look);
double wires_width(const struct wires *w, int task);
/* What it needs at its right side for values of its own of earlier iterations. */
double wires_own(const struct wires *w, int task);
/* Choose ports and tracks in a finished layout, whose column 0 is at x; channels begin at `right`. */
void wires_route(struct wires *w, double x, double right);
/* Draw all; `top`: by layer, where its boxes begin. */
void wires_draw(struct wires *w, const double *top);

double wires_node_x(const struct wires *w, int node);
double wires_node_width(const struct wires *w, int node);

#endif
