#include "search/tried.h"

#include <math.h>
#include <stdlib.h>

static int *slot_of(const struct tried_list *l, uint64_t hash)
{
	int i = (int)(hash % (uint64_t)l->nslots);

	while (l->slots[i] != NONE && l->v.v[l->slots[i]].hash != hash)
		i = (i + 1) % l->nslots;
	return &l->slots[i];
}

static void grow(struct tried_list *l)
{
	l->nslots = l->nslots ? 2 * l->nslots : 1024;
	l->slots = ARENA_ARRAY(l->a, l->nslots, int);
	for (int i = 0; i < l->nslots; i++)
		l->slots[i] = NONE;
	for (int i = 0; i < l->v.n; i++)
		*slot_of(l, l->v.v[i].hash) = i;
}

int tried_add(struct tried_list *l, const struct choice *c, bool *known)
{
	uint64_t hash = choice_hash(c);
	int *slot;

	if (2 * l->v.n >= l->nslots)
		grow(l);
	slot = slot_of(l, hash);
	*known = *slot != NONE;
	if (!*known) {
		*slot = l->v.n;
		VEC_PUSH(l->a, &l->v, ((struct tried){ .hash = hash, .choice = *c, .seconds = INFINITY }));
	}
	return *slot;
}

bool tried_is_plan(const struct tried *x)
{
	return isfinite(x->seconds) && !x->duplicate;
}

bool tried_is_better(const struct tried *x, const struct tried *y)
{
	return x->priced != y->priced ? x->priced : x->seconds < y->seconds;
}

static int compare(const void *a, const void *b)
{
	const struct tried *const *x = a, *const *y = b;

	if (tried_is_better(*x, *y) || tried_is_better(*y, *x))
		return tried_is_better(*x, *y) ? -1 : 1;
	return *x < *y ? -1 : 1;
}

const struct tried *tried_ranked(struct tried_list *l, int rank)
{
	int n = 0;

	if (!l->sorted) {
		l->ranks = ARENA_ARRAY(l->a, l->v.n, const struct tried *);
		for (int i = 0; i < l->v.n; i++)
			if (tried_is_plan(&l->v.v[i]))
				l->ranks[n++] = &l->v.v[i];
		qsort(l->ranks, (size_t)n, sizeof(*l->ranks), compare);
		l->sorted = true;
	}
	return l->ranks[rank];
}
