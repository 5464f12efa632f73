#include "tile/random.h"

#include <string.h>

#include "base/hash.h"
#include "base/prng.h"

/* About as far from the last number as from the next but one, and without a common divisor with `below`. */
static unsigned distinct_step(int64_t below)
{
	int64_t step = max_i64(1, below * 5 / 13);

	while (gcd_i64(step, below) != 1)
		step++;
	return (unsigned)step;
}

struct fill_type random_type(enum dtype t, int64_t below, bool distinct, int64_t row)
{
	static const struct fill_type types[DT_COUNT] = {
#define X(id, name, bits, e, m) { bits, e, e ? m : bits, 0, 0, 0 },
		DTYPES(X)
#undef X
	};
	struct fill_type out = types[t];

	if (t == DT_BOOL)
		out.mantissa = 1;
	if (t == DT_I32)
		out.below = (unsigned)below;
	if (out.below && distinct)
		out.step = distinct_step(below);
	if ((t == DT_U8 || t == DT_I8) && distinct)
		out.step = 1;
	if (out.below)
		out.row = (unsigned)row;
	return out;
}

uint64_t random_state(uint64_t seed, const char *tensor)
{
	struct prng r = { hash_bytes(hash_basis(0), tensor, strlen(tensor)) };

	return prng_next(&r) ^ seed;
}
