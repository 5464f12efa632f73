/* live.h - how many registers the values of a lane take. */
#ifndef ROLE_LIVE_H
#define ROLE_LIVE_H

#include "role/role.h"

/* Follows the values of a lane whose tree is done: sets its `words` and `words_in`, and takes out pins that would only
 * keep registers from others (live.c), which changes neither. Scratch in `a`. */
void role_find_live(struct role *l, struct arena *a);
/* Fragments to which products add. */
struct role_sums {
	VEC(struct frag_at) v;
};

bool role_reads_shared(const struct val *v);
/* Words as compilers see them: a sum that the first product of a loop overwrites keeps its registers from the tile before, as they cannot
 * know that the matrix unit ignores what these hold. Adds such sums to `sums`, unless NULL. `fetches`: a computation that reads shared memory
 * takes the registers of its operands, too. Scratch in `a`. */
int role_kept_words(const struct role *l, struct arena *a, bool fetches, struct role_sums *sums);
/* Words of the addresses that it has at hand: one for each ring, and those of operands, fetched by other sTasks than the one
 * with most values, that differ by no constants. Needs words_in. Scratch in `a`. */
int role_slot_words(const struct role *l, struct arena *a);
/* ... and those of operands that the sTask with most values fetches itself. */
int role_most_fetch_words(const struct role *l, struct arena *a);

#endif
