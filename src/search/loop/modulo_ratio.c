#include "search/loop/modulo_ratio.h"

#include <math.h>

/* In iterations. Sums of some hundred numbers below some hundred are exact to 1e-13. */
static const double GAIN = 1e-11;

static double weight(const struct modulo_arc *x, double ii)
{
	return x->cycles / ii - x->distance;
}

/* Bellman-Ford: is there a cycle with a positive sum? Then a task on it is returned, and into[] (the arc by which each task
 * was reached last) contains the cycle. Otherwise y satisfies all arcs, and MODULO_NONE is returned. */
static int find_gain(const struct modulo_arc *arcs, int n, int ntasks, double ii, double *y, int *into)
{
	int last = MODULO_NONE;

	for (int i = 0; i < ntasks; i++) {
		y[i] = 0;
		into[i] = MODULO_NONE;
	}
	for (int round = 0; round <= ntasks; round++) {
		last = MODULO_NONE;
		for (int k = 0; k < n; k++) {
			double t = y[arcs[k].from] + weight(&arcs[k], ii);

			if (t > y[arcs[k].to] + GAIN) {
				y[arcs[k].to] = t;
				into[arcs[k].to] = k;
				last = arcs[k].to;
			}
		}
		if (last == MODULO_NONE)
			return MODULO_NONE;
	}
	/* if the chain ends, the gains were too small to be a cycle */
	for (int i = 0; i < ntasks && last != MODULO_NONE; i++)
		last = into[last] == MODULO_NONE ? MODULO_NONE : arcs[into[last]].from;
	return last;
}

static double take_cycle(const struct modulo_arc *arcs, const int *into, int start, int *cycle, int *ncycle)
{
	double cycles = 0;
	int distance = 0, n = 0, t = start;

	do {
		const struct modulo_arc *x = &arcs[into[t]];

		cycles += x->cycles;
		distance += x->distance;
		cycle[n++] = into[t];
		t = x->from;
	} while (t != start);
	for (int i = 0; i < n / 2; i++) {
		int x = cycle[i];

		cycle[i] = cycle[n - 1 - i];
		cycle[n - 1 - i] = x;
	}
	*ncycle = n;
	return distance > 0 ? cycles / distance : INFINITY;
}

/* Dinkelbach's method, as in sim/bounds.c: while some cycle has a greater ratio, continue with that ratio (compared with
 * others in Dasdan, TODAES 9, 2004). */
double modulo_ratio(struct arena *a, const struct modulo_arc *arcs, int n, int ntasks, double least,
	double *y, int *cycle, int *ncycle)
{
	struct arena_mark scratch = arena_mark(a);
	int *into = ARENA_ARRAY(a, ntasks, int), start;
	double ratio = least;

	*ncycle = 0;
	while (!isinf(ratio) && (start = find_gain(arcs, n, ntasks, ratio, y, into)) != MODULO_NONE) {
		double more = take_cycle(arcs, into, start, cycle, ncycle);

		if (!(more > ratio))
			break;
		ratio = more;
	}
	arena_reset(a, scratch);
	return ratio;
}
