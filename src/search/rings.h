/* rings.h - the versions of rings that loads fill. */
#ifndef SEARCH_RINGS_H
#define SEARCH_RINGS_H

#include "plan/plan.h"

/* Set the versions of all buffers in shared memory that loads fill. Rings of loops get equally many, as many as fit,
 * up to `depth`, and those of indices of loads one more; so do buffers that are loaded once a tile, if EUs have several tiles and
 * no load is in a loop. Then those whose bits are in `deeper` get one more, whether it fits or not. Other buffers that are loaded once a tile
 * then get as many as fit: up to `tiles` if a loop reads them, else up to 4. What fits takes no more than so many
 * bytes of shared memory. */
void search_rings(struct plan *p, int depth, unsigned deeper, int tiles, int64_t bytes);

/* The most bytes that the plan takes of shared memory in a phase, as search_rings counts them. */
int64_t search_rings_bytes(const struct plan *p);

#endif
