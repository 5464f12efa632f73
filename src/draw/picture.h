/* picture.h - a drawing as a list of shapes, which svg.c and cairo.c write to files.
 *
 * Colours are given by meaning (enum ink); themes say which colours these are. Lengths are pixels, 96 to an inch.
 * Widths of texts come from a table instead of a font, so that all writers agree; a text whose font is wider is
 * narrowed. Shapes can have times, in cycles of the timeline: a still shows those that exist at one moment, an
 * animation lets them appear and disappear.
 */
#ifndef DRAW_PICTURE_H
#define DRAW_PICTURE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

enum theme { THEME_LIGHT, THEME_DARK, THEMES };

/* Of sTasks: a family of hues for each task_kind, a hue for each sTask, a shade for each of its slices. */
enum { INK_KINDS = 4, INK_HUES = 5, INK_SHADES = 3 };

/* What a colour stands for. */
enum ink {
	INK_NONE,
	INK_PAPER, INK_TEXT, INK_FAINT,	/* background; texts; less important texts */
	INK_LINE, INK_GRID, INK_PANEL,	/* axes; lines of a grid; background of rows */
	INK_WAIT,			/* a lane that waits */
	INK_BOUND,			/* limits and intervals */
	INK_PROLOGUE, INK_STEADY, INK_EPILOGUE,
	INK_FILLING, INK_FULL, INK_READ, INK_FREE,	/* slots of rings */
	INK_FIRST, INK_SECOND,		/* the first and the second of a comparison */
	INK_BLACK, INK_WHITE,		/* texts on a fill */
	INK_TASK,			/* first of INK_KINDS * INK_HUES * INK_SHADES */
	INKS = INK_TASK + INK_KINDS * INK_HUES * INK_SHADES
};

enum shape_kind { SHAPE_RECT, SHAPE_LINE, SHAPE_PATH, SHAPE_TEXT };
enum anchor { ANCHOR_LEFT, ANCHOR_MIDDLE, ANCHOR_RIGHT };

/* What time does to a shape. */
enum motion {
	MOTION_NONE,			/* always visible */
	MOTION_GROW,			/* a rectangle grows from its left side from `begin` to `end` */
	MOTION_APPEAR,			/* visible from `begin` on */
	MOTION_SWEEP,			/* moves to the right with time, by `end` pixels in all */
};

struct point {
	double x, y;
};

struct shape {
	enum shape_kind kind;
	uint8_t fill, stroke;		/* enum ink */
	uint8_t anchor, bold, closed, hatched;
	uint8_t motion;
	double x, y, w, h;		/* RECT; LINE: from (x, y) to (w, h); TEXT: anchor and base line */
	double width;			/* of the stroke */
	double dash;			/* 0: none */
	double round;			/* of corners */
	double size;			/* of a text */
	double max_width;		/* a wider text is narrowed */
	const char *text;
	const struct point *point;	/* PATH */
	int npoints;
	const char *tip;		/* text that is shown when the mouse is over it; NULL */
	double begin, end;
};

struct picture {
	struct arena *arena;		/* borrowed: of all texts and points */
	double width, height;
	const char *title, *about;	/* metadata of the file */
	const char *script;		/* a script that draws it again; "" */
	VEC(struct shape) shapes;
	double from, to;		/* cycles of an animation */
};

void picture_init(struct picture *p, struct arena *a, const char *title);

/* Each adds a shape and returns it; the pointer is valid until the next shape is added. */
struct shape *picture_rect(struct picture *p, double x, double y, double w, double h, int fill, int stroke);
struct shape *picture_line(struct picture *p, double x1, double y1, double x2, double y2, int stroke, double width);
/* Copies the points. */
struct shape *picture_path(struct picture *p, const struct point *v, int n, bool closed, int fill, int stroke);
/* The text must live as long as the arena. */
struct shape *picture_text(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text);
struct shape *picture_bold(struct picture *p, double x, double y, enum anchor anchor, double size,
	int ink, const char *text);
/* An arrow head at (x, y) that points along (dx, dy). */
void picture_head(struct picture *p, double x, double y, double dx, double dy, double size, int ink);

/* Move all shapes from number `first` on to the right. */
void picture_shift(struct picture *p, int first, double dx);
/* Make all of it larger, texts and lines too. */
void picture_enlarge(struct picture *p, double factor);

/* Let time do this to the shape; `end` is ignored by MOTION_APPEAR. */
void shape_move(struct shape *s, enum motion motion, double begin, double end);

/* Width of a text; as much of it as fits into `space`, with an ellipsis, or "" if less than three letters would. */
double picture_width(const char *s, double size, bool bold);
const char *picture_fit(struct picture *p, const char *s, double size, double space);
/* INK_BLACK or INK_WHITE, for texts on a fill: the one with more contrast. */
int picture_on(enum theme theme, int fill);

/* 0xrrggbb */
uint32_t ink_colour(enum theme theme, int ink);
/* The hue of this number of a kind of sTasks (enum task_kind), in the shade of a slice. */
int ink_of_task(int kind, int hue, int slice);
/* How light a colour is, from 0 to 1, and how much two differ in that, from 1 to 21: relative luminance and contrast
 * of WCAG 2. */
double colour_light(uint32_t rgb);
double colour_contrast(uint32_t a, uint32_t b);
/* The colour of a terminal, from 16 to 255, that is nearest to this one. */
uint8_t colour_of_256(uint32_t rgb);

/* ---- writing -------------------------------------------------------------------- */

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_PDF };

struct picture_how {
	enum picture_format format;
	enum theme theme;
	double scale;			/* PNG: pixels of the file for one of the picture; 0: 2 */
	bool animate;			/* SVG only */
	double seconds;			/* of the animation; 0: 12 */
	bool still;			/* only shapes that exist at the cycle `at` */
	double at;
};

/* Write a file. ERR_IO has a sentence that says what is wrong. SIGPIPE of a closed pipe is held back. A file that could
 * not be completed is removed. */
NODISCARD enum err_code picture_save(const struct picture *p, const struct picture_how *how,
	const char *path, struct err *e);
/* Write any bytes in the same way. */
NODISCARD enum err_code picture_save_bytes(const char *bytes, size_t n, const char *path, struct err *e);
/* Show a picture on a terminal of `columns` columns whose cells have cell_w by cell_h pixels, by the protocol of kitty
 * or as sixels, through libchafa, which is loaded if it is installed. Returns NULL, or why it cannot be shown. */
const char *picture_show(const struct picture *p, const struct picture_how *how, int columns,
	int cell_w, int cell_h, FILE *f);
/* The picture as text of an SVG file. */
void picture_svg(const struct picture *p, const struct picture_how *how, struct buf *out);

/* ---- for the writers: cairo.c --------------------------------------------------- */

/* Is any font installed? Without one, cairo draws texts with a simple built-in font. */
bool cairo_has_font(void);
/* Is the shape visible at the cycle of `how`? *w: how much of its width. */
bool shape_at(const struct shape *s, const struct picture_how *how, double *w);
/* Write a PNG or PDF; returns NULL or the error. `metadata`: chunks for a PNG file. */
const char *cairo_write(const struct picture *p, const struct picture_how *how,
	const char *metadata, size_t nmetadata, FILE *f);
/* Pixels, row by row, 4 bytes each: blue, green, red, 255. NULL and *error if that fails. Free with free(). */
unsigned char *cairo_pixels(const struct picture *p, const struct picture_how *how, int *w, int *h, const char **error);

#endif
