/* bars.h - what stands around the view: tabs and title above it, a message or question and keys below; for explore.c. */
#ifndef UI_EXPLORE_BARS_H
#define UI_EXPLORE_BARS_H

#include "explore/explorer.h"

enum { BAR_ROWS = 3 };			/* in all, where the message has one row */

/* The groups of actions that are active. */
unsigned groups_of(const struct explorer *x);
/* Why the view cannot show the model; NULL if it can. */
const char *lack_of(const struct explorer *x, const struct view_ops *ops);
/* Columns of the tab of a view. */
int tab_width(struct explorer *x, int i, int width);
void draw_tabs(struct explorer *x, struct cells *out);
void draw_keys(struct explorer *x, struct cells *out);
/* Rows of the message or question; and draw it, or the state of the plan where there is none, into so many rows above the
 * keys. *cursor, *row: where the cursor is; *cursor -1: it is hidden. */
int message_rows(struct explorer *x, int w, int h);
void draw_message(struct explorer *x, struct cells *out, int rows, int *cursor, int *row);

#endif
