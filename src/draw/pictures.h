/* pictures.h - pictures of timelines, plans, graphs, rooflines and searches.
 *
 * Each function fills a picture that picture_init has begun, in its arena, and sets its size. Options may be NULL.
 * They never fail; if something cannot be drawn, the picture says why.
 */
#ifndef DRAW_PICTURES_H
#define DRAW_PICTURES_H

#include "draw/draw.h"
#include "draw/picture.h"
#include "draw/progress.h"

struct picture_options {
	double width, height;		/* pixels; 0: 1280, and as high as needed */
	const char *title;		/* NULL: program and device */
	enum theme theme;		/* some texts are light or dark by theme */
	const char *names[2];		/* of a comparison: what the timelines are called */
	const struct timeline *predicted;	/* of a plan: its simulation, for the head; NULL: not legal */
	bool brief;			/* fewer words, for slides */
	bool shorten;			/* a brief table may leave out entries to be no higher than `height` */
	bool rings;			/* timelines: slots of rings below the rows */
	bool only_rings;		/* timelines: slots of rings, no rows */
};

enum { PICTURE_WIDTH = 1280, PICTURE_WIDTH_MIN = 320, PICTURE_WIDTH_MAX = 10000 };

/* Lanes, then units, over cycles; shapes have times. v may be NULL. */
void picture_timeline(struct picture *p, const struct timeline *t, const struct timeline_view *v,
	const struct picture_options *o);
/* Two timelines of one program over one axis, and how long each sTask takes in both. */
void picture_compare(struct picture *p, const struct timeline *a, const struct timeline *b,
	const struct timeline_view *v, const struct picture_options *o);
/* A table for each lane: a row for each entry, a column for each iteration of the pipelined loop. */
void picture_plan(struct picture *p, const struct plan *plan, const struct picture_options *o);
/* sTasks in layers, the flow between them, loops as frames. */
void picture_graph(struct picture *p, const struct graph *g, const struct picture_options *o);

struct roof_point {
	const char *name;
	double flops, bytes, seconds;
	bool measured;
};

/* A roofline: kernels below what the device can compute and move. type: of the products. */
void picture_roofline(struct picture *p, const struct vdevice *d, enum dtype type,
	const struct roof_point *v, int n, const struct picture_options *o);

enum { PROGRESS_CURVES = 12 };

/* The best time of searches over their trials, with all trials; n is at most PROGRESS_CURVES. */
void picture_progress(struct picture *p, const struct progress_curve *v, int n, const struct picture_options *o);

typedef void picture_function(struct picture *p, const void *what, const struct picture_options *o);

/* Draw `what` with exactly the width and the height of the options, both above 0. What needs more space is drawn on a
 * larger sheet of the same shape, and made smaller. */
void picture_on_screen(struct picture *p, picture_function *draw, const void *what, const struct picture_options *o);

#endif
