/* picture.h - a drawing as a list of shapes, which svg.c and cairo.c write to files.
 *
 * Who draws says what a colour means (enum ink), not what it looks like: themes do. Lengths are
 * pixels, 96 an inch. How wide a text is comes from a table, not from a font, so that every
 * writer leaves room alike; a font that is wider is narrowed. Shapes may have a time, in the
 * cycles of the timeline that they are of: a still shows those that there are at one moment,
 * an animation lets them come and go.
 */
#ifndef DRAW_PICTURE_H
#define DRAW_PICTURE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

enum theme { THEME_LIGHT, THEME_DARK, THEMES };

enum { INK_KINDS = 4, INK_SHADES = 4 };	/* of sTasks: ORDER task_kind */

/* What a colour stands for. */
enum ink {
	INK_NONE,
	INK_PAPER, INK_TEXT, INK_FAINT,	/* texts, and texts that explain */
	INK_LINE, INK_GRID, INK_PANEL,	/* axes, what lies behind, ground of rows */
	INK_WAIT,			/* a lane that waits */
	INK_BOUND,			/* limits and intervals */
	INK_PROLOGUE, INK_STEADY, INK_EPILOGUE,
	INK_FILLING, INK_FULL, INK_READ, INK_FREE,	/* slots of rings */
	INK_FIRST, INK_SECOND,		/* of two that are compared */
	INK_BLACK, INK_WHITE,		/* on a fill */
	INK_TASK,			/* first of INK_KINDS * INK_SHADES */
	INKS = INK_TASK + INK_KINDS * INK_SHADES
};

enum shape_kind { SHAPE_RECT, SHAPE_LINE, SHAPE_PATH, SHAPE_TEXT };
enum anchor { ANCHOR_LEFT, ANCHOR_MIDDLE, ANCHOR_RIGHT };

/* What time does to a shape. */
enum motion {
	MOTION_NONE,			/* it is always there */
	MOTION_GROW,			/* a rectangle grows from its left side from `begin` to `end` */
	MOTION_APPEAR,			/* there from `begin` on */
	MOTION_WHILE,			/* there from `begin` to `end` */
	MOTION_SWEEP,			/* moves by `w` to the right with time */
};

struct point {
	double x, y;
};

struct shape {
	enum shape_kind kind;
	uint8_t fill, stroke;		/* enum ink */
	uint8_t anchor, bold, closed, hatched;
	uint8_t motion;
	double x, y, w, h;		/* RECT; a LINE goes from (x, y) to (w, h); of a TEXT x is what
					 * its anchor says and y its base line */
	double width;			/* of the stroke */
	double dash;			/* 0: none */
	double round;			/* of corners */
	double size;			/* of a text */
	double room;			/* a text is narrowed to that; 0: to what the table says */
	const char *text;
	const struct point *point;	/* PATH */
	int npoints;
	const char *tip;		/* what pointing at it tells; NULL */
	double begin, end;
};

struct picture {
	struct arena *arena;		/* borrowed: of all texts and points */
	double width, height;
	const char *title, *about;	/* texts of the file, beside what is drawn */
	const char *script;		/* that makes it; "" if that is not known */
	VEC(struct shape) shapes;
	double from, to;		/* cycles that an animation runs through */
};

void picture_init(struct picture *p, struct arena *a, const char *title);

/* Each returns the new shape, until the next one is added. */
struct shape *picture_rect(struct picture *p, double x, double y, double w, double h, int fill,
	int stroke);
struct shape *picture_line(struct picture *p, double x1, double y1, double x2, double y2, int stroke,
	double width);
/* Copies the points. */
struct shape *picture_path(struct picture *p, const struct point *v, int n, bool closed, int fill,
	int stroke);
/* The text lives as long as the arena. */
struct shape *picture_text(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text);
struct shape *picture_bold(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text);
/* A line's arrow head at (x, y), which points along (dx, dy). */
void picture_head(struct picture *p, double x, double y, double dx, double dy, double size, int ink);

/* How wide a text is, and as much of it as fits into `room`, with an ellipsis; "" if that is
 * nothing that one could read. */
double picture_width(const char *s, double size, bool bold);
const char *picture_fit(struct picture *p, const char *s, double size, double room);
/* Ink of texts on a fill. */
int picture_on(enum theme theme, int fill);

/* 0xrrggbb */
uint32_t ink_colour(enum theme theme, int ink);

/* ---- writing -------------------------------------------------------------------- */

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_PDF };

struct picture_how {
	enum picture_format format;
	enum theme theme;
	double scale;			/* PNG: pixels of the file for one of the picture; 0: 2 */
	bool animate;			/* SVG: in so many seconds */
	double seconds;			/* 0: 12 */
	bool still;			/* at this cycle */
	double at;
};

/* ERR_IO says in one sentence what is wrong with the file. The signal that a closed pipe would
 * raise is held back. A file that was begun and could not be finished is removed. */
NODISCARD enum err_code picture_save(const struct picture *p, const struct picture_how *how,
	const char *path, struct err *e);
/* Any bytes, by the same rules. */
NODISCARD enum err_code picture_save_bytes(const char *bytes, size_t n, const char *path,
	struct err *e);
/* Show it on a terminal of so many columns, whose characters are cell_w by cell_h pixels, by the
 * protocol of kitty or as sixels, through libchafa, which is opened if it is there. NULL, or why
 * it cannot be shown. */
const char *picture_show(const struct picture *p, const struct picture_how *how, int columns,
	int cell_w, int cell_h, FILE *f);
/* The picture as text of an SVG file. */
void picture_svg(const struct picture *p, const struct picture_how *how, struct buf *out);

/* ---- for the writers: cairo.c --------------------------------------------------- */

/* Is there a font at all? Without one cairo draws texts with strokes of its own. */
bool cairo_has_font(void);
/* At a cycle, is the shape there, and how much of it? */
bool shape_at(const struct shape *s, const struct picture_how *how, double *w);
/* NULL, or what is wrong. `metadata`: chunks of a PNG file. */
const char *cairo_write(const struct picture *p, const struct picture_how *how,
	const char *metadata, size_t nmetadata, FILE *f);
/* Rows of 4 bytes a pixel, blue first and 255 last; *error as above. Free with free(). */
unsigned char *cairo_pixels(const struct picture *p, const struct picture_how *how, int *w, int *h,
	const char **error);

#endif
