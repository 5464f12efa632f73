/* second_split.h - what a split over lanes leaves undivided gets a split of its own.
 *
 * A product that contracts the axis of the split adds up what all lanes have made, so it is in no slice, and with all that
 * uses its result it would be the first lane's alone: of the gradients of attention, whose lanes divide the keys, that of
 * queries. Along another axis each lane can have a part of it. */
#ifndef SEARCH_SECOND_SPLIT_H
#define SEARCH_SECOND_SPLIT_H

#include "search/space.h"

/* The split of what `first` leaves undivided, into as many slices. tasks: space for all tasks of the program. Of the axes of
 * such a product's result that is the first one whose slices are complete matrix instructions. False: there is no such
 * product or axis. */
bool second_split(const struct space *s, const struct choice *c, const struct split *first, int *tasks, struct split *out);

#endif
