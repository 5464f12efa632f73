/* value_set.h - the values that an index expression takes over all indices of its axes. */
#ifndef TILE_VALUE_SET_H
#define TILE_VALUE_SET_H

#include "tile/program.h"

enum { VALUE_WORD = 64 };		/* bits */

/* Bit v says whether the expression takes lo + v. */
struct value_set {
	int64_t lo, width;		/* width: number of bits */
	uint64_t *bits;
};

static inline bool value_set_has(const struct value_set *s, int64_t value)
{
	int64_t at = value - s->lo;

	return at >= 0 && at < s->width && (s->bits[at / VALUE_WORD] >> (at % VALUE_WORD) & 1);
}

/* The values, in `a`; a value that is added to the expression is left out. False: their range has more than 2^26
 * values, or they take too much work; then *out is not to be used. */
bool value_set_find(struct arena *a, const struct program *p, const struct index_expr *x, struct value_set *out);

#endif
