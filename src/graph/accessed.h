/* accessed.h - how much of a tensor a program accesses.
 *
 * A load or store accesses elements whose index in each dimension lies in a range, which follows from the ranges of the
 * axes that its expression uses. All ranges together are a box, which bounds from above how many different elements are
 * accessed. graph_bytes and graph_stored_bytes (declared in graph.h) are defined in accessed.c.
 */
#ifndef GRAPH_ACCESSED_H
#define GRAPH_ACCESSED_H

#include "graph/graph.h"

/* Bytes of the different elements of its tensor that a load or store accesses, at most. Where a table gives indices,
 * all of that dimension count. */
double accessed_once(const struct program *p, const struct node *n);

#endif
