/* rings.h - how deep a candidate's rings are. */
#ifndef SEARCH_RINGS_H
#define SEARCH_RINGS_H

#include "plan/plan.h"

/* Set the versions of what loads fill in shared memory; those of all else stay. Rings of loops get as
 * many as fit, up to `depth`, all alike; then `deeper` of them, from the first on, one more. Then those that are
 * filled once a tile: up to `tiles` if a loop reads them, as many as fit if none does. */
void search_rings(struct plan *p, int depth, int deeper, int tiles);

#endif
