/* panel.h - what pictures of timelines, plans and graphs share; private to src/draw.
 *
 * A panel is a part of a picture that shows the rows of one timeline: lanes, units, rings. Which rows there are
 * and what is on them is chosen by chart.h; here they only get coordinates and shapes.
 */
#ifndef DRAW_PANEL_H
#define DRAW_PANEL_H

#include <math.h>

#include "draw/chart.h"
#include "draw/palette.h"
#include "draw/pictures.h"
#include "sim/moments.h"

enum {
	MARGIN = 24, TITLE = 24, TEXT = 15, SMALL = 12,
	ROW = 30, ROW_GAP = 5, STACK_ROW = 24, GROUP_GAP = 16,
};

struct panel_row {
	int ring, slot;			/* NONE: events are on it */
	const char *label;
	double y, h;
	double done;			/* right end of the bars drawn so far */
};

/* What panel_draw has drawn; DRAWN_CAUSE << c: the letter of cause c. */
enum drawn { DRAWN_WAIT = 1, DRAWN_LINK = 2, DRAWN_TAIL = 4, DRAWN_CAUSE = 8 };

struct panel {
	struct picture *p;
	struct chart c;
	enum theme theme;
	const uint8_t *ink;		/* by sTask */
	double x0, x1;			/* of the time axis */
	double top, bottom;		/* of the rows */
	double stretch;			/* of the heights of rows, to fill the height that was asked for; 1: none */
	bool rings, only_rings;
	bool no_seconds;		/* no axis of seconds: two clocks share the axis, or few words are wanted */
	bool brief;			/* fewer words */
	int steps;			/* iterations that the bar of II is to span; 0: as few as possible */
	unsigned drawn;			/* enum drawn: what the legend has to explain */
	struct panel *above;		/* of a comparison: the other timeline, with the same legend; NULL */
	struct moments *moments;	/* if rings are drawn */
	struct chart_layout layout;	/* without rows until panel_arrange */
	VEC(struct panel_row) rows;	/* those of the layout, then those of rings */
};

/* Choose the part of a timeline, between x0 and x1. */
void panel_init(struct panel *n, struct picture *p, const struct timeline *t,
	const struct timeline_view *v, const struct picture_options *o, double x0, double x1);
/* Width of the widest label of a row; v may be NULL. */
double panel_labels(struct picture *p, const struct timeline *t, const struct timeline_view *v, bool rings);
/* Choose the rows and their heights, from y down; returns where they end. */
double panel_arrange(struct panel *n, double y);
/* Draw the background and the labels of the rows; then, after the axis, what is on the rows. */
void panel_ground(struct panel *n);
void panel_draw(struct panel *n);
/* Draw a strip above the rows: prologue, steady state and epilogue of each tile in sight, II and its bound. Its height
 * is panel_strip_height. */
double panel_strip_height(const struct panel *n);
void panel_strip(struct panel *n, double y);
/* Let the bars of II of two panels with one axis span as many iterations, if they can: their lengths are compared. */
void panel_strips_alike(struct panel *one, struct panel *other);
/* Draw the axes of cycles and of seconds below y, and lines from there up to `grid`; returns where they end. */
double panel_axis(struct panel *n, double y, double grid);
/* Draw only the vertical lines of the axis. */
void panel_grid(struct panel *n, double top, double bottom);
/* Draw how busy each unit is, from y down; returns where that ends. */
double panel_use(struct panel *n, double x, double w, double y);
/* Draw the legend of colours, letters and marks that panel_draw has drawn; returns where it ends. Its first line is so
 * far below the axes: panel_legend_gap. */
double panel_legend(struct panel *n, double y);
static inline double panel_legend_gap(const struct panel *n)
{
	return n->brief ? 16 : 24;
}

/* The height of axes and legend, which are not drawn. Rows have to be arranged again. */
double panel_below(struct panel *n);
/* Stretch the rows of so many panels alike, so that all of them together are as high as `rows`; within limits. */
void panel_stretch(struct panel *const *v, int n, double rows);

/* When, in animations, a text in the middle of a bar that grows to the width w appears: when the bar has reached
 * the end of the text. */
double panel_appears(double text, double w, int64_t begin, int64_t end);

/* The same for rings: panel_rings.c. */
double panel_arrange_rings(struct panel *n, double y);
void panel_draw_rings(struct panel *n);
double panel_legend_rings(struct panel *n, double y);

static inline double panel_x(const struct panel *n, int64_t cycle)
{
	return n->x0 + (double)(cycle - n->c.from) * (n->x1 - n->x0) / (double)(n->c.to - n->c.from);
}

/* The options, or the usual ones for NULL; sets the picture's width. */
const struct picture_options *picture_begin(struct picture *p, const struct picture_options *o);
/* How high a brief picture may be. */
static inline double picture_most(const struct picture_options *o)
{
	return o->brief && o->height > 0 ? o->height : INFINITY;
}
/* The title that was asked for, or "gemm{m=4096, n=4096} on NVIDIA H200". */
const char *picture_title(struct picture *p, const struct plan *plan, const struct picture_options *o);
/* "tile m=128, n=256", or "untiled" */
const char *picture_tile(struct picture *p, const struct graph *g);
/* The line below the title: "sizes m=4096, n=4096" of a brief picture, "gemm{m=4096, n=4096} on NVIDIA H200" if another
 * title was asked for; "" if the title has that. `d` may be NULL. */
const char *picture_sizes(struct picture *p, const struct program *program, const struct vdevice *d,
	const struct picture_options *o);
/* Draw the title and n lines below it, within the picture's width; returns where they end. */
double picture_top(struct picture *p, const struct picture_options *o, const char *title, int n,
	const char *const *line);
/* Draw a text in lines at most `space` wide; returns the base line after the last. */
double picture_wrap(struct picture *p, double x, double y, double space, double size, int ink, const char *text);
/* "gemm{m=4096, n=4096, k=4096}" */
const char *program_text(struct arena *a, const struct program *p);

#endif
