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

/* Does the value, or one that it is computed from, read shared memory? */
bool role_reads_shared(const struct val *v);
/* The words that values take as compilers count them: a sum that the first product of a loop overwrites is live from
 * the tile before on, as compilers do not know that the matrix unit ignores its old value. Adds such sums to `sums`,
 * unless that is NULL. `fetches`: a computation that reads shared memory takes the registers of its operands, too.
 * Scratch in `a`. */
int role_kept_words(const struct role *l, struct arena *a, bool fetches, struct role_sums *sums);
/* The words of addresses that a thread keeps: one for the slot of each ring, and, of operands that other sTasks than
 * `words_in` fetch, one for each address that is no other plus a constant. Needs words_in. Scratch in `a`. */
int role_slot_words(const struct role *l, struct arena *a);
/* The words of addresses of the operands that `words_in` itself fetches. */
int role_most_fetch_words(const struct role *l, struct arena *a);

#endif
