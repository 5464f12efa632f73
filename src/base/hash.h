/* hash.h - numbers that stand for texts and for other numbers, the same on every machine.
 *
 * Bytes are hashed by FNV-1a (Fowler, Noll, Vo), numbers by the last steps of splitmix64 (prng.h). Both continue from
 * a hash h, so that several things have one hash. Good against chance, not against malice.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdio.h>

#include "base/prng.h"

/* Where a hash starts; from different starts come different hashes of the same bytes. */
static inline uint64_t hash_basis(int which)
{
	return 0xcbf29ce484222325u + (uint64_t)which * 0x9e3779b97f4a7c15u;
}

static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static inline uint64_t hash_mix(uint64_t h, uint64_t x)
{
	struct prng r = { h ^ x };

	return prng_next(&r);
}

/* 128 bits in hexadecimal, with the final NUL. */
enum { HASH_TEXT = 33 };

static inline void hash_text(const void *data, size_t n, char out[HASH_TEXT])
{
	snprintf(out, HASH_TEXT, "%016llx%016llx", (unsigned long long)hash_bytes(hash_basis(1), data, n),
		(unsigned long long)hash_bytes(hash_basis(2), data, n));
}

#endif
