/* modulo_ratio.h - the greatest ratio of clock cycles to distance, over closed paths of arcs: a bound of the II. */
#ifndef SEARCH_LOOP_MODULO_RATIO_H
#define SEARCH_LOOP_MODULO_RATIO_H

#include "search/loop/modulo_net.h"

/* The ratio, of the n arcs among ntasks tasks; at least `least`, which is positive. `cross` of arcs is ignored.
 * INFINITY: a closed path takes time, but its distance is 0 or negative. y: by task, starts in units of the ratio that
 * satisfy all arcs (not if INFINITY). cycle: indices of the arcs of a closed path with that ratio, in order, at most
 * ntasks; *ncycle is 0 if no path has more than least. Scratch memory in `a`, released on return. */
double modulo_ratio(struct arena *a, const struct modulo_arc *arcs, int n, int ntasks, double least,
	double *y, int *cycle, int *ncycle);

#endif
