/* live.h - how many registers the values of a lane take. */
#ifndef ROLE_LIVE_H
#define ROLE_LIVE_H

#include "role/role.h"

/* Most words of values that a thread of the lane holds at a time, and *task: the sTask where
 * that is (NONE: between sTasks). Scratch in `a`. */
int role_live_words(const struct role *l, struct arena *a, int *task);
/* Take out the pins behind waits for groups whose fragments nobody reads before they are made
 * anew (live_pins.c). Scratch in `a`. */
void role_drop_pins(struct role *l, struct arena *a);
/* Words of the addresses of slots that it has at hand: one for each ring. Scratch in `a`. */
int role_slot_words(const struct role *l, struct arena *a);

#endif
