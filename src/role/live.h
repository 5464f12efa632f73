/* live.h - how many registers the values of a lane take. */
#ifndef ROLE_LIVE_H
#define ROLE_LIVE_H

#include "role/role.h"

/* Follows the values of a lane whose tree is done: sets its `words` and `words_in`, and takes out pins that would only
 * keep registers from others (live.c), which changes neither. Scratch in `a`. */
void role_find_live(struct role *l, struct arena *a);
/* Words of the addresses that it has at hand: one for each ring, and those of operands, fetched by other sTasks than the one
 * with most values, that differ by no constants. Needs words_in. Scratch in `a`. */
int role_slot_words(const struct role *l, struct arena *a);
/* ... and those of operands that the sTask with most values fetches itself. */
int role_most_fetch_words(const struct role *l, struct arena *a);

#endif
