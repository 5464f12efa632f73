/* cells.h - a grid of character cells.
 *
 * Drawings are composed in a grid, in which each cell has a character and a style, and then printed as text or
 * shown on a terminal. Writing outside of the grid does nothing, so a drawing may be larger than its window.
 */
#ifndef DRAW_CELLS_H
#define DRAW_CELLS_H

#include "draw/text.h"

struct cell {
	char utf8[5];			/* "": blank, or the right half of a wide character */
	struct style style;
};
_Static_assert(sizeof(struct cell) == 8, "rows of cells are copied and compared as bytes");

struct cells {
	struct arena *arena;		/* borrowed */
	int w, h;
	struct cell *at;		/* row after row */
};

void cells_init(struct cells *c, struct arena *a, int w, int h);
/* Add rows below, up to h. */
void cells_grow(struct cells *c, int h);
/* NULL outside the grid. */
struct cell *cells_at(const struct cells *c, int x, int y);

void cells_put(struct cells *c, int x, int y, const char *utf8, struct style style);
/* Put at most `space` columns of s, with an ellipsis if it is longer; returns how many columns it takes. */
int cells_text(struct cells *c, int x, int y, int space, const char *s, struct style style);
void cells_fill(struct cells *c, int x, int y, int n, const char *utf8, struct style style);

/* Add attributes to n cells, and leave their characters. */
void cells_mark(struct cells *c, int x, int y, int n, unsigned attr);

/* Put a text with SGR codes, as drawings make it, from (x, y) on, and of that at most w columns and h rows. */
void cells_scan(struct cells *c, int x, int y, int w, int h, const char *text);
/* How many columns and rows such a text has. */
void cells_measure(const char *text, int *w, int *h);

/* Copy w by h cells from (src_x, src_y) of a grid to (x, y) of another, as far as both have them. */
void cells_blit(struct cells *dst, int x, int y, int w, int h, const struct cells *src, int src_x, int src_y);

/* Print each row as a line without blanks at its end. */
void cells_print(const struct cells *c, unsigned flags, struct buf *out);

#endif
