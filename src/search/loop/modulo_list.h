/* modulo_list.h - a heuristic: a good schedule soon, without a proof.
 *
 * It dives into the tree of modulo_branch.h, with few nodes for each dive. The first dive looks for any schedule, with
 * all the time that an iteration could need. The next ones look for an interval halfway between the greatest that is
 * known to be too short and the best so far, since a tight interval decides most of an order by itself. A dive that
 * reaches its limit counts as a failure until nothing better is left to try; then decisions are randomised. */
#ifndef SEARCH_LOOP_MODULO_LIST_H
#define SEARCH_LOOP_MODULO_LIST_H

#include "search/loop/modulo_branch.h"

/* *least: a proven bound of the net, raised if a dive refutes more. *best is replaced by better schedules; *nodes is
 * increased. REFUTED: there is no schedule at any II, and memory is as of modulo_branch. LIMIT: none was found. */
enum modulo_end modulo_list(struct arena *a, const struct modulo_net *net, double *least,
	const struct stop *stop, struct modulo_found *best, int *memory, int64_t *nodes);

#endif
