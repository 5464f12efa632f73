/* starts.h - of all combinations of extents to start from, those that promise most. */
#ifndef SEARCH_STARTS_H
#define SEARCH_STARTS_H

#include "search/neighbours.h"

/* Put choices of the most promising tile shapes first, and leave out all but the first few dozen shapes: those come first that
 * load and compute least again in several tiles, and of equal ones those whose tiles have a usual size. So for programs without
 * products, where many axes have many extents each. For those with products only if there are thousands of choices, as of a
 * convolution by images, pixels and filters; of equal shapes those come first whose tiles all load least, and all choices are left out
 * but the first few thousand. Choices of one shape stand together and stay in their order. *graph is
 * NULL before and after; if memory runs out and the caller is left by a jump, it must free the graph that *graph then is. */
void starts_choose(const struct space *s, struct arena *a, struct graph **graph, struct choices *starts);

/* Let the search start from one extent of each axis that is tiled only in phases without products, though the program
 * has some: which tiles are good there does not depend on those of other phases, so the search need not try all
 * combinations. *graph as above. */
void starts_choose_elsewhere(struct space *s, struct graph **graph);

#endif
