/* events.h - the partial order of a plan's events over a few tiles.
 *
 * Inside check.c's reach only. An instance has three events: issue, start and completion; on a unit that does not keep
 * the order of issue, start is issue. The relation has an arc for every constraint that plan.h's rules put on them, and
 * one event is before another if arcs lead there.
 *
 * That closure is kept as clocks (Fidge, Mattern 1988). Most events stand in chains, each event of which is before the
 * next: the issues of a lane replica, with the completions on synchronous units among them; the completions of a lane
 * replica on an ordered unit. So an event needs only one number for each chain: how far along it the events are that
 * come before. What completes in no order on an asynchronous unit is in no chain; all that follows from it goes through
 * the instances that wait for it, of which the first on each lane replica is noted.
 */
#ifndef PLAN_EVENTS_H
#define PLAN_EVENTS_H

#include "plan/order.h"

enum event_of { AT_ISSUE, AT_START, AT_END };

struct node_instance {
	int task, entry, lane, replica;
	int lane_replica;			/* copies of all lanes, counted through */
	int64_t seq;
	int position;			/* in the lane replica's order */
	int chain, link;		/* where its completion stands; chain NONE: in none */
	int known;			/* then: first of those that wait for it, or NONE */
};

/* The first instance of a lane replica that waits for an unordered one's completion. */
struct first_observer {
	int instance, next;
};

struct relation {
	const struct plan *plan;
	const struct walk *walk;
	int n;				/* instances */
	struct node_instance *inst;
	int *of_task;			/* first index into `index` of each task */
	int *index;			/* instance of (task, seq): index[of_task[task] + seq] */
	int nlanes;			/* lane replicas */
	int *lane_first;		/* instances of a lane replica lie together, in its order; nlanes + 1 */
	int ncycle;			/* > 0: instances on a cycle, in order of waiting */
	int *cycle;
	int nchains;			/* lane replicas first */
	int *issue, *start;		/* clocks, [instance * nchains + chain]: up to its issue, up to its start */
	VEC(struct first_observer) first_observers;
};

/* All in `a`. If the relation has a cycle, ncycle > 0 and there are no clocks. needed: NULL, or by wait: set
 * to true, never to false, if some completion that the wait asks for would come before it in no other way. */
void relation_build(struct arena *a, const struct plan *p, const struct walk *w, bool *needed, struct relation *out);

static inline int relation_instance(const struct relation *r, int task, int64_t seq)
{
	return r->index[r->of_task[task] + seq];
}

/* Does event x of instance i come before event y of instance j in every execution? */
bool relation_before(const struct relation *r, int i, enum event_of x, int j, enum event_of y);

#endif
