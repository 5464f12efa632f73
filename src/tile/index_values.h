/* index_values.h - on which axes the values depend that are indices of a load. */
#ifndef TILE_INDEX_VALUES_H
#define TILE_INDEX_VALUES_H

#include "tile/program.h"

/* Sets run[a], for each axis of the program: 0 if no value that is an index of the load depends on the axis; else how many
 * indices along it in a row have about the same value. That is more than 1 if the value is loaded from a tensor that is
 * sorted along the axis. If a value depends on more than axes, on what a loop has left in a carry, all have 1. */
void index_value_axes(const struct program *p, const struct node *load, int64_t run[AXES_MAX]);

#endif
