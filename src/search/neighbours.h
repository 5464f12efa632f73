/* neighbours.h - where a search starts in the space, and the neighbours of a choice.
 *
 * A choice has one coordinate for each decision that it holds. Its neighbours along a coordinate are all choices that
 * differ from it in this decision alone; or, where decisions only make sense together, in few that belong to it. */
#ifndef SEARCH_NEIGHBOURS_H
#define SEARCH_NEIGHBOURS_H

#include "search/space.h"

struct choices {
	VEC(struct choice) v;
};

/* Choices to start from, in `a`: all usual extents with all usual lanes, loops in the program's order. */
void space_starts(const struct space *s, struct arena *a, struct choices *out);
/* Choices of smaller shapes (space_next_smaller) with one lane, and of each one that takes as little shared memory as
 * possible, too. by_threads: threads compute the products. */
void space_smaller(const struct space *s, int level, bool by_threads, struct arena *a, struct choices *out);
/* *out: c, but in each loop as much as possible runs ahead, with the versions for it. False if nothing can. */
bool space_ahead(const struct space *s, const struct choice *c, struct choice *out);

/* The number of coordinates, and the neighbours of c along one of them, appended to *out in `a`. */
int space_coordinates(const struct space *s);
void space_neighbours(const struct space *s, const struct choice *c, int coordinate, struct arena *a,
	struct choices *out);

#endif
