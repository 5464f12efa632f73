/* list.h - the intra-EU half of the search: an order for every lane. */
#ifndef SEARCH_LIST_H
#define SEARCH_LIST_H

#include "plan/plan.h"

/* Append every sTask of p's graph to p, which has its lanes' versions set but no
 * entries: loads to lane "p0", the rest to "c0", or part i of a split to "ci". The
 * order within each region is that of greedy list scheduling over unrolled
 * iterations, folded into offsets; where it does not fold, program order. */
NODISCARD enum err_code list_schedule(struct plan *p, int consumer_warps, struct err *e);

#endif
