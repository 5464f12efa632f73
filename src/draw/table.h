/* table.h - aligned columns that know how wide the terminal is.
 *
 * A column that is empty in every row is left out. When the rest is too wide,
 * columns are first cut down to the least they can bear, then dropped one by one;
 * the last one may wrap. What still does not fit runs over the edge.
 */
#ifndef DRAW_TABLE_H
#define DRAW_TABLE_H

#include "draw/text.h"

struct column {
	const char *title;
	enum align align;
	int least;			/* may be cut down to so many columns; 0: never */
	int drop;			/* the greatest is dropped first; 0: never */
};

struct table_cell {
	const char *text;		/* NULL: empty; borrowed until printed */
	struct style style;
};

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	struct arena *arena;		/* borrowed */
	const struct column *col;	/* borrowed */
	int ncols;
	VEC(struct table_cell *) rows;
};

void table_init(struct table *t, struct arena *a, const struct column *col, int n);
/* The cells of a new row, all empty. */
struct table_cell *table_row(struct table *t);
/* Title line and rows, `indent` columns from the left. Prints nothing if there is no
 * row. The last column wraps if it has a `least`. */
void table_print(const struct table *t, int indent, int width, unsigned flags, struct buf *out);

#endif
