/* pictures.h - what there is to be drawn as pictures.
 *
 * Each fills a picture that picture_init has begun, in its arena, and chooses its size. They read
 * and never fail; what cannot be drawn is said in the picture.
 */
#ifndef DRAW_PICTURES_H
#define DRAW_PICTURES_H

#include "draw/draw.h"
#include "draw/picture.h"
#include "draw/progress.h"

struct picture_options {
	double width, height;		/* pixels; 0: 1280, and what the rows need */
	const char *title;		/* NULL: program and device */
	enum theme theme;		/* decides which letters are light */
	bool rings;			/* of a timeline: slots of its rings below ... */
	bool only_rings;		/* ... or nothing else */
};

enum { PICTURE_WIDTH = 1280, PICTURE_WIDTH_MIN = 320, PICTURE_WIDTH_MAX = 10000 };

/* Lanes, then units, over cycles. Shapes have their times. v and o may be NULL. */
void picture_timeline(struct picture *p, const struct timeline *t, const struct timeline_view *v,
	const struct picture_options *o);
/* Two of one program, one above the other on one axis, and how long each sTask takes in both. */
void picture_compare(struct picture *p, const struct timeline *a, const struct timeline *b,
	const struct timeline_view *v, const struct picture_options *o);
/* Each lane's entries as rows, turns as columns. */
void picture_plan(struct picture *p, const struct plan *plan, const struct picture_options *o);
/* sTasks in layers, what flows between them, loops as frames. */
void picture_graph(struct picture *p, const struct graph *g, const struct picture_options *o);

struct roof_point {
	const char *name;
	double flops, bytes, seconds;
	bool measured;
};

/* Kernels between what the device can compute and what it can move; type: of its products. */
void picture_roofline(struct picture *p, const struct vdevice *d, enum dtype type,
	const struct roof_point *v, int n, const struct picture_options *o);

enum { PROGRESS_CURVES = 12 };

/* The best so far of searches against trials, with all that they tried; n is at most PROGRESS_CURVES. */
void picture_progress(struct picture *p, const struct progress_curve *v, int n,
	const struct picture_options *o);

#endif
