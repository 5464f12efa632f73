/* keys.h - a table from 64-bit hashes to numbers.
 *
 * Two things are taken to be equal if their hashes are: with the few thousand that are ever compared, the chance of a
 * mistake is below 2^-40. Open addressing; the table is made for a number of keys and does not grow.
 */
#ifndef PLAN_KEYS_H
#define PLAN_KEYS_H

#include "base/arena.h"
#include "base/hash.h"

struct keys {
	size_t mask;
	uint64_t *key;			/* 0: free */
	int64_t *value;
};

static inline void keys_init(struct keys *k, struct arena *a, int64_t most)
{
	size_t size = 16;

	while (size < 2 * (size_t)most)
		size *= 2;
	k->mask = size - 1;
	k->key = ARENA_ARRAY(a, size, uint64_t);
	k->value = ARENA_ARRAY(a, size, int64_t);
}

/* Its value, 0 when it is new. */
static inline int64_t *keys_at(struct keys *k, uint64_t key, bool *is_new)
{
	size_t i;

	key += !key;
	for (i = key & k->mask; k->key[i] && k->key[i] != key; )
		i = (i + 1) & k->mask;
	*is_new = !k->key[i];
	k->key[i] = key;
	return &k->value[i];
}

#endif
