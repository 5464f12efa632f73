/* parts.h - parts of the screen that several views draw. */
#ifndef UI_EXPLORE_PARTS_H
#define UI_EXPLORE_PARTS_H

#include "explore/model.h"

/* Copy w by h cells from (src_x, src_y) of a grid to (x, y) of another, as far as both have them. */
void cells_blit(struct cells *dst, int x, int y, int w, int h, const struct cells *src, int src_x, int src_y);
/* A line across the grid: upright in column `at`, or in row `at`. */
void draw_separator(struct cells *out, bool upright, int at);
/* "attention.lua:12", "explorer", or "" if there is no location; in `a`. Without folders, which differ from machine
 * to machine. */
const char *loc_text(struct arena *a, struct srcloc loc);
/* Details of the selected event and sTask, from row y to the end of the grid. */
void details_draw(struct model *m, struct cells *out, int y);
/* positions_draw.c: the table of positions of an sTask that is picked up, from row y on. */
void positions_draw(struct model *m, struct cells *out, int y);

#endif
