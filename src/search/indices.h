/* indices.h - sTasks that bring or compute the indices of loads.
 *
 * A load by a table cannot be issued before its indices are there. So the search gives the loads of tables a lane of their own,
 * which runs ahead of those that load by them. What is computed of a table, such as the first row of a block by its number, a lane
 * computes that loads by it: on a lane that computes tiles, the indices of the next loads would wait for the products of this
 * iteration, and copies to a lane that reads them itself are not asynchronous. */
#ifndef SEARCH_INDICES_H
#define SEARCH_INDICES_H

#include "graph/graph.h"

/* Does the sTask compute indices of loads, a few of them, out of nothing but what loads bring, or other sTasks of this kind compute?
 * Others may read them, too, such as a mask. */
bool computes_indices(const struct graph *g, int task);

/* Is it a load that brings indices to a load of the same loop, or to a sTask that computes indices? */
bool loads_indices(const struct graph *g, int task);

/* Does the graph have an sTask of either kind? */
bool has_indices(const struct graph *g);

#endif
