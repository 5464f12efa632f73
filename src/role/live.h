/* live.h - how many registers the values of a lane take. */
#ifndef ROLE_LIVE_H
#define ROLE_LIVE_H

#include "role/role.h"

/* Words of a fragment that a thread holds. */
int frag_words(const struct frag *f);
/* Most words of values that a thread of the lane holds at a time, and *task: the sTask where
 * that is (NONE: between sTasks). Scratch in `a`. */
int role_live_words(const struct role *l, struct arena *a, int *task);
/* Take out the pins behind waits for groups whose fragments nobody reads before they are made
 * anew: where texts meet, compilers would keep what is pinned. */
void role_drop_pins(struct role *l, struct arena *a);
/* Words of the addresses of slots that it has at hand: one for each ring. */
int role_slot_words(const struct role *l, struct arena *a);

#endif
