/* hash.h - a number that stands for a text, the same on every machine.
 *
 * FNV-1a (Fowler, Noll, Vo), from a basis that is chosen: from different ones come
 * different numbers of the same text. Good against chance, not against malice.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdio.h>

#include "base/base.h"

static inline uint64_t hash_basis(int which)
{
	return 0xcbf29ce484222325u + (uint64_t)which * 0x9e3779b97f4a7c15u;
}

/* Goes on from h. */
static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

/* 128 bits in hexadecimal. */
enum { HASH_TEXT = 33 };

static inline void hash_text(const void *data, size_t n, char out[HASH_TEXT])
{
	snprintf(out, HASH_TEXT, "%016llx%016llx",
		(unsigned long long)hash_bytes(hash_basis(1), data, n),
		(unsigned long long)hash_bytes(hash_basis(2), data, n));
}

#endif
