/* table.h - tables that fit into a width.
 *
 * A column that is empty in every row is left out. If the others are too wide, columns are first made narrower, down
 * to `least`, then dropped one by one; the last column may wrap. What still does not fit runs over the edge.
 */
#ifndef DRAW_TABLE_H
#define DRAW_TABLE_H

#include "draw/text.h"

struct column {
	const char *title;
	enum align align;
	int least;			/* it may be narrowed to so many columns; 0: not at all */
	int drop;			/* columns with greater numbers are dropped first; 0: never dropped */
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

struct table table_new(struct arena *a, const struct column *col, int n);
/* The cells of a new row, all empty. */
struct table_cell *table_row(struct table *t);
/* The same with texts in its first cells. */
struct table_cell *table_add(struct table *t, const char *const text[TABLE_COLUMNS_MAX]);
#define TABLE_ROW(t, ...) table_add((t), (const char *const [TABLE_COLUMNS_MAX]){ __VA_ARGS__ })
/* Print a title line and the rows, indented by `indent` columns; nothing if there are no rows. The last column wraps if
 * it has a `least`. */
void table_print(const struct table *t, int indent, int width, unsigned flags, struct buf *out);

#endif
