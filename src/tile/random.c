#include "tile/random.h"

#include "base/prng.h"

struct fill_type random_type(enum dtype t)
{
	static const struct fill_type types[DT_COUNT] = {
#define X(id, name, bits, e, m) { bits, e, e ? m : bits },
		DTYPES(X)
#undef X
	};
	struct fill_type out = types[t];

	if (t == DT_BOOL)
		out.mantissa = 1;
	return out;
}

uint64_t random_state(uint64_t seed, const char *tensor)
{
	struct prng r = { 0xcbf29ce484222325u };	/* FNV-1a */

	while (*tensor)
		r.state = (r.state ^ (unsigned char)*tensor++) * 0x100000001b3u;
	return prng_next(&r) ^ seed;
}
