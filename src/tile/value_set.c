#include "tile/value_set.h"

#include <string.h>

enum {
	WIDTH_MAX = 1 << 26,		/* of a set, in values; wider ones are not looked at */
	SHIFTS_MAX = 1 << 26,		/* words moved for one set, likewise */
};

/* What the terms of one axis add up to where it stands at `at`. */
static int64_t part_of(const struct index_expr *x, int axis, int64_t at)
{
	int64_t sum = 0;

	for (int t = 0; t < x->n; t++) {
		int64_t v = at / x->term[t].div;

		if (x->term[t].axis == axis)
			sum += x->term[t].coef * (x->term[t].mod ? v % x->term[t].mod : v);
	}
	return sum;
}

/* to |= from << by */
static void or_shifted(uint64_t *to, const uint64_t *from, int64_t nwords, int64_t by)
{
	int64_t words = by / VALUE_WORD;
	int bits = (int)(by % VALUE_WORD);

	for (int64_t i = nwords - 1; i >= words; i--) {
		to[i] |= from[i - words] << bits;
		if (bits && i > words)
			to[i] |= from[i - words - 1] >> (VALUE_WORD - bits);
	}
}

/* The least sum of the axis's terms. */
static int64_t least_part(const struct program *p, const struct index_expr *x, int axis)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX] = { 0 };
	struct index_expr part = { .n = x->n };

	most[axis] = p->axes.v[axis].size - 1;
	for (int t = 0; t < x->n; t++) {
		part.term[t] = x->term[t];
		part.term[t].coef = x->term[t].axis == axis ? x->term[t].coef : 0;
	}
	return index_bounds(&part, least, most).lo;
}

/* The axis of the expression with the most elements; NONE: it has no axis. */
static int longest_axis(const struct program *p, const struct index_expr *x)
{
	int longest = NONE;

	for (int i = 0; i < p->axes.n; i++)
		if (index_uses(x, i) && (longest == NONE || p->axes.v[i].size > p->axes.v[longest].size))
			longest = i;
	return longest;
}

/* The sums of one value for each axis. */
bool value_set_find(struct arena *a, const struct program *p, const struct index_expr *x, struct value_set *out)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX], nwords, shifts = 0, lo;
	int first = longest_axis(p, x);
	struct index_range range;
	uint64_t *before;

	for (int i = 0; i < p->axes.n; i++)
		most[i] = p->axes.v[i].size - 1;
	range = index_bounds(x, least, most);
	*out = (struct value_set){ .lo = range.lo, .width = range.hi - range.lo + 1 };
	nwords = ceil_div(out->width, VALUE_WORD);
	for (int i = 0; i < p->axes.n; i++)
		shifts += index_uses(x, i) && i != first ? min_i64(p->axes.v[i].size, SHIFTS_MAX) * nwords : 0;
	if (out->width > WIDTH_MAX || shifts > SHIFTS_MAX || (first != NONE && p->axes.v[first].size > WIDTH_MAX))
		return false;
	out->bits = ARENA_ARRAY(a, nwords, uint64_t);
	before = ARENA_ARRAY(a, nwords, uint64_t);
	lo = first == NONE ? 0 : least_part(p, x, first);
	for (int64_t at = 0; at < (first == NONE ? 1 : p->axes.v[first].size); at++) {
		int64_t v = first == NONE ? 0 : part_of(x, first, at) - lo;

		out->bits[v / VALUE_WORD] |= (uint64_t)1 << (v % VALUE_WORD);
	}
	for (int i = 0; i < p->axes.n; i++) {
		if (i == first || !index_uses(x, i))
			continue;
		lo = least_part(p, x, i);
		memcpy(before, out->bits, (size_t)nwords * sizeof(*before));
		memset(out->bits, 0, (size_t)nwords * sizeof(*before));
		for (int64_t at = 0; at < p->axes.v[i].size; at++)
			or_shifted(out->bits, before, nwords, part_of(x, i, at) - lo);
	}
	return true;
}
