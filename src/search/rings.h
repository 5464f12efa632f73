/* rings.h - how deep a candidate's rings are. */
#ifndef SEARCH_RINGS_H
#define SEARCH_RINGS_H

#include "plan/plan.h"

/* Set the versions of what loads fill in shared memory; those of all else stay. */
void search_rings(struct plan *p);

#endif
