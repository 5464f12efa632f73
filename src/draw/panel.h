/* panel.h - what pictures of timelines share; nobody else includes it.
 *
 * A panel is the rows of one timeline between two heights of a picture: lanes, units, rings.
 */
#ifndef DRAW_PANEL_H
#define DRAW_PANEL_H

#include "draw/chart.h"
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
	double done;			/* right end of what is drawn already */
};

struct panel {
	struct picture *p;
	struct chart c;
	struct lookup lookup;
	enum theme theme;
	const uint8_t *ink;		/* by sTask */
	double x0, x1;			/* of time */
	double top, bottom;		/* of the rows */
	double stretch;			/* of rows: 1, or what fills the height that was asked for */
	bool rings, only_rings;
	bool no_seconds;		/* two clocks share the axis */
	struct moments *moments;	/* if rings */
	struct chart_layout layout;
	VEC(struct panel_row) rows;	/* those of the layout, then those of rings */
};

/* Which part of a timeline, on how many pixels; rows are laid out by panel_place. */
void panel_init(struct panel *n, struct picture *p, const struct timeline *t,
	const struct timeline_view *v, const struct picture_options *o, double x0, double x1);
/* Room for the widest label of a row; v may be NULL. */
double panel_labels(const struct timeline *t, const struct timeline_view *v, bool rings);
/* Choose rows, the first at height y; returns where they end. */
double panel_place(struct panel *n, double y);
/* What lies behind, and the names of the rows; then, after the axis, what is on them. */
void panel_ground(struct panel *n);
void panel_draw(struct panel *n);
/* Prologue, steady state and epilogue of each tile in sight, II and its bound; panel_strip_height
 * of room above y. */
double panel_strip_height(const struct panel *n);
void panel_strip(struct panel *n, double y);
/* Cycles and microseconds below y; returns where they end. grid: up to that height. */
double panel_axis(struct panel *n, double y, double grid);
/* The axis' lines alone, behind other rows. */
void panel_grid(struct panel *n, double top, double bottom);
/* How busy each unit is, from y on; returns where that ends. */
double panel_use(struct panel *n, double x, double w, double y);
/* What colours, letters and marks mean. */
double panel_legend(struct panel *n, double y);

/* A text in the middle of a bar that grows is there when the bar has reached its end. */
void panel_appear(struct shape *s, double x, double w, int64_t begin, int64_t end);

/* The rings' part of all that: panel_rings.c. */
double panel_place_rings(struct panel *n, double y);
void panel_draw_rings(struct panel *n);
double panel_legend_rings(struct panel *n, double y);

static inline double panel_x(const struct panel *n, int64_t cycle)
{
	return n->x0 + (double)(cycle - n->c.from) * (n->x1 - n->x0) / (double)(n->c.to - n->c.from);
}

/* Ink of each sTask of a graph; in `a`. */
const uint8_t *task_inks(struct arena *a, const struct graph *g);
/* The options, or the usual ones for NULL; sets the picture's width. */
const struct picture_options *picture_begin(struct picture *p, const struct picture_options *o);
/* The title that was asked for, or "gemm{m=4096, n=4096} on NVIDIA H200". */
const char *picture_title(struct picture *p, const struct plan *plan, const struct picture_options *o);
/* Draw the title and n lines below it, within the picture's width; returns where they end. */
double picture_top(struct picture *p, const char *title, int n, const char *const *line);
/* Words in lines at most `room` wide; returns the base line after the last. */
double picture_wrap(struct picture *p, double x, double y, double room, double size, int ink,
	const char *text);
/* "gemm{m=4096, n=4096, k=4096}" */
const char *program_text(struct arena *a, const struct program *p);

#endif
