/* pane.h - the pane below or next to a view: details of what is selected, or, if nothing is, a summary of the plan. */
#ifndef UI_EXPLORE_PANE_H
#define UI_EXPLORE_PANE_H

#include "draw/pen.h"
#include "explore/model.h"

/* Draw it into a part of the grid. What does not fit is scrolled into sight by pane_scroll. */
void pane_draw(struct model *m, struct cells *out, int x, int y, int w, int h);
/* By half a pane; 1: down, -1: up. */
void pane_scroll(struct model *m, int by);

/* The two contents. Details are drawn from row 0 on; returns how many rows they have, at most those of the grid. */
int details_draw(struct model *m, struct cells *out);
/* What the plan takes of an EU, its rings, what binds it, where the time of its lanes goes, and what would help. */
void summary_write(struct model *m, struct pen *pen);

#endif
