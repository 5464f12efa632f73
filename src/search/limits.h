/* limits.h - bounds that hold for every plan of a graph, and graphs that have no useful plan. */
#ifndef SEARCH_LIMITS_H
#define SEARCH_LIMITS_H

#include "search/space.h"

enum { ACCUMULATORS_MAX = 65536 };	/* sums of one product: the registers of an EU */

/* A bound in seconds: the busiest unit, or device memory, does all its work without waiting. No plan of the graph with
 * products on the choice's unit is faster in the model, whatever it splits or splits off. c NULL: the usual one. */
double limit_seconds(const struct space *s, const struct choice *c, const struct graph *g);

/* ... also of plans whose EUs take tiles by a counter, which a search does not make: device memory has its greatest rate. */
double limit_counted_seconds(const struct space *s, const struct choice *c, const struct graph *g);

/* The part of it that device memory has, whatever the units do. */
double limit_memory_seconds(const struct space *s, const struct graph *g);

/* A bound in steps of 5%: bounds nearer than that are equal, as they are bounds only. */
double limit_in_steps(double seconds);

/* Bytes that all tiles load and store, each time that they do. */
double limit_traffic(const struct graph *g);

/* Do rows of products fill the instructions of the choice's lanes? If the caller has given the extents of rows, a remainder
 * that lanes of four warps pad suits, too: the search has no other rows to try. If not, *task is the first sTask whose rows do
 * not. Plans of it may be legal all the same. */
bool limit_suits(const struct space *s, const struct graph *g, const struct choice *c, int *task);

/* Does a synchronous matrix unit make products of the graph, each warp its own? */
bool limit_has_warp_products(const struct space *s, const struct graph *g);

/* Columns of the warps of the choice's lanes; 0: as the plan has them unless it says so. Unless the choice says how many, where
 * products are synchronous, as many as let a warp multiply the least padding, and of those as many as let it fetch least: where
 * its rows are about as many as its columns. But rows alone, if a product's first operand is computed, or values are reduced,
 * too: rows of one warp stay in registers. */
int limit_columns(const struct space *s, const struct graph *g, const struct choice *c);

/* Bytes of shared memory that every plan of the graph needs: one version of everything. And the sums of the largest
 * product if the registers of an EU do not hold them; otherwise 0. */
int64_t limit_shared(const struct graph *g);
int64_t limit_sums(const struct graph *g);

#endif
