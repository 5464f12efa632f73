/* cells.h - a grid of character cells.
 *
 * What a drawing puts together before it becomes text: each cell holds one
 * character and its style. Whoever shows a grid (as text here, on a terminal, as an
 * image) reads `at` and needs to know nothing about what was drawn. Writing outside
 * the grid does nothing, so that a drawing may be larger than its window.
 */
#ifndef DRAW_CELLS_H
#define DRAW_CELLS_H

#include "draw/text.h"

struct cell {
	char utf8[5];			/* "": blank, or the right half of a wide character */
	struct style style;
};
_Static_assert(sizeof(struct cell) == 8, "grids are copied as a whole");

struct cells {
	struct arena *arena;		/* borrowed */
	int w, h;
	struct cell *at;		/* row after row */
};

void cells_init(struct cells *c, struct arena *a, int w, int h);
/* More rows below; what is there stays. */
void cells_grow(struct cells *c, int h);
/* NULL outside the grid. */
struct cell *cells_at(const struct cells *c, int x, int y);

void cells_put(struct cells *c, int x, int y, const char *utf8, struct style style);
/* At most `room` columns of s, cut with an ellipsis; returns how many it took. */
int cells_text(struct cells *c, int x, int y, int room, const char *s, struct style style);
void cells_fill(struct cells *c, int x, int y, int n, const char *utf8, struct style style);

/* Put the style's attributes on n cells that there are, and leave their characters. */
void cells_mark(struct cells *c, int x, int y, int n, unsigned attr);

/* Text as the drawings make it, with their codes, from x, y on, cut at w columns and h rows. */
void cells_scan(struct cells *c, int x, int y, int w, int h, const char *text);
/* How many columns and rows that would take. */
void cells_measure(const char *text, int *w, int *h);

/* One line of text a row, blanks at its end left out. */
void cells_print(const struct cells *c, unsigned flags, struct buf *out);

#endif
