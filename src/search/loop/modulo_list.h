/* modulo_list.h - a good schedule soon, without a proof.
 *
 * Dives into the tree of modulo_branch.h with few nodes each. The first asks for no
 * more than some schedule at all, with all the time that an iteration could want; the
 * next ones for an interval halfway between what is known to be too little and the
 * best so far, since a tight interval decides most of an order by itself. A dive that
 * does not end counts as a failure until nothing better is left to try, then chance is
 * let into the decisions.
 */
#ifndef SEARCH_LOOP_MODULO_LIST_H
#define SEARCH_LOOP_MODULO_LIST_H

#include "search/loop/modulo_branch.h"

/* *least: a proven bound of the net, raised where a dive refutes more. *nodes is
 * counted up. *best is replaced by what is better. REFUTED: there is no schedule at any
 * II; memory as in modulo_branch. LIMIT: none was found. */
enum modulo_end modulo_list(struct arena *a, const struct modulo_net *net, double *least,
	const struct stop *stop, struct modulo_found *best, int *memory, int64_t *nodes);

#endif
