/* parts.h - pieces that several views draw. */
#ifndef UI_EXPLORE_PARTS_H
#define UI_EXPLORE_PARTS_H

#include "explore/model.h"

/* Put src onto dst, its upper left corner at x, y. */
void cells_blit(struct cells *dst, int x, int y, const struct cells *src);
/* "attention.lua:12", "explorer", or "" of no place; in `a`. Folders differ from machine to machine. */
const char *loc_text(struct arena *a, struct srcloc loc);
/* What is known of the selected event and sTask, from row y on to the end of the grid. */
void details_draw(struct model *m, struct cells *out, int y);
/* places_draw.c: the table of an sTask that is picked up, from row y on. */
void places_draw(struct model *m, struct cells *out, int y);

#endif
