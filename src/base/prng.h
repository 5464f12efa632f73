/* prng.h - random numbers that are the same on every machine.
 *
 * splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014). Seeds are explicit; nothing here reads a clock.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include "base/base.h"

struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in [0, n); n > 0. The bias is below 2^-32 for the n we use. */
static inline uint32_t prng_below(struct prng *r, uint32_t n)
{
	return (uint32_t)(((prng_next(r) >> 32) * n) >> 32);
}

/* Uniform in [0, 1). */
static inline double prng_unit(struct prng *r)
{
	return (double)(prng_next(r) >> 11) * 0x1p-53;
}

#endif
