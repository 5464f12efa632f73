/* palette.h - the colours of sTasks, the same in pictures and on terminals; private to src/draw. */
#ifndef DRAW_PALETTE_H
#define DRAW_PALETTE_H

#include "draw/picture.h"
#include "graph/graph.h"

/* 0xrrggbb of the inks from INK_TASK on. */
uint32_t task_colour(int nth);
/* Ink of each sTask of a graph; in `a`. sTasks of one phase have a hue each, as long as there are hues of their
 * kind; the slices of one sTask are shades of its hue. */
const uint8_t *task_inks(struct arena *a, const struct graph *g);

#endif
