/* swaps.h - products whose operands a search exchanges (program_swap).
 *
 * An asynchronous product (wgmma) can read its first operand from registers, but its second only from shared memory. So if
 * a task makes the second operand of loads, as it converts weights of few bits, and the first is loaded, exchanging them
 * saves a way through shared memory, and each row is converted once for all columns of a tile.
 *
 * Of two operands that are loaded, the one whose extent fills instructions worse should be the second: wgmma has 64 rows and any
 * multiple of 8 columns. */
#ifndef SEARCH_SWAPS_H
#define SEARCH_SWAPS_H

#include "device/device.h"
#include "tile/program.h"

/* How many such products the program has; *out, all of them, is in `a`. out NULL: only how many. */
int swaps_find(struct arena *a, const struct program *p, const struct vdevice *d, struct swap **out);

#endif
