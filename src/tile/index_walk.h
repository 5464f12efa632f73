/* index_walk.h - all indices of some axes, one combination after the other. */
#ifndef TILE_INDEX_WALK_H
#define TILE_INDEX_WALK_H

#include <string.h>

#include "tile/program.h"

struct index_walk {
	int n;				/* axes */
	int64_t most[AXES_MAX], at[AXES_MAX];	/* by axis: last index, present one */
};

/* Of the axes that are used; those of others stay 0. False: they have more than `limit` combinations. */
static inline bool begin_index_walk(struct index_walk *t, const struct program *p, const bool *used, int64_t limit)
{
	int64_t count = 1;

	memset(t, 0, sizeof(*t));
	t->n = p->axes.n;
	for (int i = 0; i < t->n; i++) {
		t->most[i] = used[i] ? p->axes.v[i].size - 1 : 0;
		count = min_i64(limit + 1, count * min_i64(t->most[i] + 1, limit + 1));
	}
	return count <= limit;
}

/* False: there are no more. */
static inline bool next_indices(struct index_walk *t)
{
	for (int i = 0; i < t->n; i++) {
		if (++t->at[i] <= t->most[i])
			return true;
		t->at[i] = 0;
	}
	return false;
}

#endif
