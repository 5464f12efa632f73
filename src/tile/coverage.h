/* coverage.h - do stores reach what is read of a temporary?
 *
 * What no store writes keeps what was there. In an output of the user's that is the user's own data; in a temporary it
 * is nothing, so a program that reads it has no meaning.
 *
 * Each dimension is taken by itself: a load reads the indices that its expression takes over all values of its axes,
 * and those must be among the indices that the earlier phases' stores take. This refuses only programs that do read
 * such elements; one that leaves out only combinations of indices (a diagonal) is accepted.
 */
#ifndef TILE_COVERAGE_H
#define TILE_COVERAGE_H

#include "tile/program.h"

/* ERR_INPUT at the line of the load. Scratch memory comes from `a` and is given back. */
NODISCARD enum err_code coverage_check(struct arena *a, const struct program *p, struct err *e);
/* The same for one load, or one addition. Its task is at hand. */
NODISCARD enum err_code coverage_check_load(struct arena *a, const struct program *p, const struct node *load,
	struct err *e);

#endif
