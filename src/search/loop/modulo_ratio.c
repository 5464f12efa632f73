/* The least II of a modulo schedule as its arcs bound it. Along a cycle (a closed path) of arcs the clock cycles of all
 * arcs must pass within the iterations of all distances: II >= clock cycles / distance. The greatest such ratio is the
 * least II for which start times exist (modulo_net.h has the inequality of an arc).
 *
 * Dinkelbach's method, as in sim/bounds.c: while some cycle of arcs needs more than the present ratio, continue with
 * the ratio of that cycle (compared with others in Dasdan, TODAES 9, 2004). */
#include "search/loop/modulo_ratio.h"

#include <math.h>

/* In iterations: a start time that must be later by less is taken for satisfied. It may be rounding: a path of 100 arcs
 * with numbers below 512 is exact to 9e-12. Greater errors only cost rounds: modulo_ratio ends if the ratio stays. */
static const double DELAY_LEAST = 1e-11;

/* Bellman-Ford: is there a cycle of arcs with a positive sum of delays, so that no start times satisfy it? Then returns
 * a task on it, and into[] (by task: the arc that delayed it last) has its arcs. Else returns MODULO_NONE, and y
 * satisfies all arcs, or fails some by hardly more than rounding. */
static int find_positive_cycle(const struct modulo_arc *arcs, int n, int ntasks, double ii, double *y, int *into)
{
	int last = MODULO_NONE;

	for (int i = 0; i < ntasks; i++) {
		y[i] = 0;
		into[i] = MODULO_NONE;
	}
	for (int round = 0; round <= ntasks; round++) {
		last = MODULO_NONE;
		for (int k = 0; k < n; k++) {
			double t = y[arcs[k].from] + (arcs[k].cycles / ii - arcs[k].distance);

			if (t > y[arcs[k].to] + DELAY_LEAST) {
				y[arcs[k].to] = t;
				into[arcs[k].to] = k;
				last = arcs[k].to;
			}
		}
		if (last == MODULO_NONE)
			return MODULO_NONE;
	}
	/* The task delayed last may only depend on the cycle, but ntasks arcs back from it is a task on it. If the way
	 * back ends before, there is no cycle: delays hardly greater than rounding took many rounds. */
	for (int i = 0; i < ntasks && last != MODULO_NONE; i++)
		last = into[last] == MODULO_NONE ? MODULO_NONE : arcs[into[last]].from;
	return last;
}

/* Fills in cycle[], the arcs in the order of the path, and returns its ratio. */
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

double modulo_ratio(struct arena *a, const struct modulo_arc *arcs, int n, int ntasks, double least,
	double *y, int *cycle, int *ncycle)
{
	struct arena_mark scratch = arena_mark(a);
	int *into = ARENA_ARRAY(a, ntasks, int), start;
	double ratio = least;

	*ncycle = 0;
	while (!isinf(ratio) && (start = find_positive_cycle(arcs, n, ntasks, ratio, y, into)) != MODULO_NONE) {
		double greater = take_cycle(arcs, into, start, cycle, ncycle);

		if (!(greater > ratio))
			break;
		ratio = greater;
	}
	arena_reset(a, scratch);
	return ratio;
}
