#include "search/loop/modulo_list.h"

#include <math.h>

enum {
	ANY_NODES = 20000,		/* for any schedule */
	ANY_TRIES = 8,
	DIVES = 10,			/* per seed */
	SEEDS = 2,
};

static const double CLOSE = 2e-3;	/* relative: schedules so near to the bound are left to the exact solvers */

struct lister {
	struct arena *arena;
	const struct modulo_net *net;
	const struct stop *stop;
	struct modulo_found *best;
	int64_t *used;
};

static enum modulo_end dive(struct lister *l, double ii, int64_t nodes, uint64_t seed, int *memory)
{
	struct modulo_try t = { ii, nodes, seed, l->stop };
	enum modulo_end end = modulo_branch(l->arena, l->net, &t, l->best, memory);

	*l->used += nodes - t.nodes;
	return end;
}

/* With so long an interval only distances matter: what is refuted here has no schedule at any interval. */
static enum modulo_end find_any(struct lister *l, int *memory)
{
	enum modulo_end end = MODULO_END_LIMIT;

	for (int i = 0; i < ANY_TRIES && end == MODULO_END_LIMIT; i++)
		end = dive(l, l->net->total * 1.01, ANY_NODES, (uint64_t)i, memory);
	return end;
}

/* Bisect between `low` and the best. */
static enum modulo_end improve(struct lister *l, double *least, uint64_t seed)
{
	int64_t nodes = 20 + l->net->pairs.n + l->net->p->ntasks;
	double low = *least;

	for (int i = 0; i < DIVES && l->best->ii > low * (1 + CLOSE); i++) {
		double ii = i || seed ? (low + l->best->ii) / 2 : *least * (1 + 1e-9);
		enum modulo_end end = dive(l, ii, nodes, seed, NULL);

		if (end == MODULO_END_STOPPED)
			return end;
		if (end == MODULO_END_REFUTED)
			*least = fmax(*least, fmin(ii, l->best->ii));
		if (end != MODULO_END_FOUND)
			low = ii;
	}
	return MODULO_END_FOUND;
}

enum modulo_end modulo_list(struct arena *a, const struct modulo_net *net, double *least,
	const struct stop *stop, struct modulo_found *best, int *memory, int64_t *nodes)
{
	struct lister l = { a, net, stop, best, nodes };

	if (isinf(best->ii)) {
		enum modulo_end end = find_any(&l, memory);

		if (end != MODULO_END_FOUND)
			return end;
	}
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		if (improve(&l, least, seed) == MODULO_END_STOPPED)
			return MODULO_END_STOPPED;
	return MODULO_END_FOUND;
}
