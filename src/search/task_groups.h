/* task_groups.h - the sTasks of a phase divided among lanes by what they compute, not by rows: where one lane has too few
 * registers for all sums of an iteration (the gradients of keys and values and the state of a recurrence), each of several
 * lanes takes some of them. */
#ifndef SEARCH_TASK_GROUPS_H
#define SEARCH_TASK_GROUPS_H

#include "graph/graph.h"

/* Sets group[t], from 0 to lanes - 1, of each sTask t of the graph that is no load. sTasks that pass a value in registers
 * stay together: a lane cannot read another one's. Operands of products leave their lane, in shared memory, and what is
 * there anyway, as loaded values are, any lane reads. What
 * stays together is a component; components go to lanes by decreasing time on their units, each to the lane with the least
 * so far. Returns how many lanes the phase that uses most of them uses: fewer than `lanes` if it has fewer components
 * that take time. */
int group_tasks(struct arena *a, const struct graph *g, const struct vdevice *d, int lanes, int *group);

#endif
