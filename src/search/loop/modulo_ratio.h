/* modulo_ratio.h - the greatest ratio of cycles to distance over the cycles of a graph. */
#ifndef SEARCH_LOOP_MODULO_RATIO_H
#define SEARCH_LOOP_MODULO_RATIO_H

#include "search/loop/modulo_net.h"

/* Of the n arcs among ntasks tasks; `cross` is not looked at. `least` if none has more;
 * it is positive. INFINITY: a cycle takes time, or distance, and gains no iteration.
 * y, by task: starts, in units of that ratio, that satisfy all arcs (not if INFINITY).
 * cycle (room for ntasks): the arcs of a cycle with that ratio, in order; *ncycle is 0
 * if none has more than least. */
double modulo_ratio(struct arena *a, const struct modulo_arc *arcs, int n, int ntasks, double least,
	double *y, int *cycle, int *ncycle);

#endif
