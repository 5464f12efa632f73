/* rings.h - the versions of rings that loads fill. */
#ifndef SEARCH_RINGS_H
#define SEARCH_RINGS_H

#include "plan/plan.h"

/* Set the versions of all buffers in shared memory that loads fill. Rings of loops get equally many, as many as fit, up
 * to `depth`; then those whose bits are in `deeper` get one more, whether it fits or not. If EUs have several tiles, buffers
 * that are loaded once a tile then get as many as fit: up to `tiles` if a loop reads them, else up to 4. */
void search_rings(struct plan *p, int depth, unsigned deeper, int tiles);

#endif
