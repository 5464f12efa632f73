/* events.h - the partial order of a plan's events over a few tiles.
 *
 * Inside check.c's reach only. An instance has three events: issue, start and
 * completion; on a unit that does not keep the order of issue, start is issue. The
 * relation has an edge for every constraint that plan.h's rules put on them, and
 * `before` is its transitive closure.
 */
#ifndef PLAN_EVENTS_H
#define PLAN_EVENTS_H

#include "plan/order.h"

enum event_of { AT_ISSUE, AT_START, AT_END };

struct node_instance {
	int task, entry, lane, copy;
	int64_t seq;
	int place;			/* in the lane copy's order */
};

struct relation {
	const struct plan *plan;
	const struct walk *walk;
	int n;				/* instances */
	struct node_instance *inst;
	int *of_task;			/* first index into `index` of each task */
	int *index;			/* instance of (task, seq): index[of_task[task] + seq] */
	int nlanes;			/* lane copies */
	int *lane_first;		/* instances of a lane copy lie together, in its order;
					 * nlanes + 1 */
	int ncycle;			/* > 0: instances on a cycle, in order of waiting */
	int *cycle;
	size_t words;			/* of a row of bits */
	uint64_t *before;		/* 3n rows of 3n bits */
};

/* All in `a`. If the relation has a cycle, ncycle > 0 and `before` is not there. */
void relation_build(struct arena *a, const struct plan *p, const struct walk *w,
	struct relation *out);

static inline int relation_instance(const struct relation *r, int task, int64_t seq)
{
	return r->index[r->of_task[task] + seq];
}

/* Does event x of instance i come before event y of instance j in every execution? */
static inline bool relation_before(const struct relation *r, int i, enum event_of x, int j,
	enum event_of y)
{
	size_t from = (size_t)i * 3 + x, to = (size_t)j * 3 + y;

	return r->before[to * r->words + from / 64] >> (from % 64) & 1;
}

#endif
