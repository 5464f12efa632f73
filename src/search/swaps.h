/* swaps.h - products whose operands a search exchanges (program_swap).
 *
 * A product that waits for nothing takes its first operand out of registers, but not the second. So where a task makes the second one
 * of loads, as of weights of few bits, and the first is loaded, the product may be faster the other way around: what is made goes
 * to no shared memory, and each row is made once for all columns of a tile. */
#ifndef SEARCH_SWAPS_H
#define SEARCH_SWAPS_H

#include "device/device.h"
#include "tile/program.h"

/* How many such products the program has; *out, all of them, is in `a`. out NULL: only how many. */
int swaps_find(struct arena *a, const struct program *p, const struct vdevice *d, struct swap **out);

#endif
