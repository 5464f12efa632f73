/* blame.h - where the time of each lane goes: an explanation of a timeline's events.
 *
 * The time of a lane, from its first event to its last, is divided among its sTasks: each has the time
 * from when the lane reached it until the lane reached the next one. That time is divided by cause. The
 * lane's own work is one cause. For the time it waits, the awaited sTask is examined over the same time:
 * was its unit at work, or the memory it copies from? Had it not been issued yet, and what did its lane
 * wait for then? A copy has its latency whenever it is issued, so the cause is what happened that much
 * earlier: memory if that was at work, or the ring if it had no free slot.
 */
#ifndef SIM_BLAME_H
#define SIM_BLAME_H

#include "sim/timeline.h"

enum blame {				/* ORDER blame_names */
	BLAME_ISSUE,			/* the lane's own time: waits, issue, signals, between tiles */
	BLAME_PIPE,			/* a unit is at work, for the lane or for the awaited sTask */
	BLAME_DEPENDENCE,		/* latency of the awaited sTask, or an unknown part of its time */
	BLAME_SHARED,			/* a unit waits for operands from shared memory */
	BLAME_L2, BLAME_GLOBAL,		/* the EU's share of L2, or of device memory, is at work */
	BLAME_SLOT,			/* the slot to be written still has a value that is read */
	BLAME_ISSUE_ORDER,		/* the issue of another lane's sTask */
	BLAME_SYNC,			/* from completion to the signal, or the handover of the value */
	BLAME_POWER,			/* time at a lower clock than the device's */
	BLAMES
};
extern const char *const blame_names[];	/* BLAMES of them */

struct blame_part {
	int lane, task;
	enum blame why;
	int on;				/* the awaited sTask; NONE: the lane itself is at work */
	int unit;			/* sEU at work; NONE */
	double cycles;			/* of all copies of the lane */
	double share;			/* of the lane's time; the shares of a lane sum to 1 */
	int next;			/* of the same sTask; NONE */
};

struct blames {
	VEC(struct blame_part) v;	/* by sTask in the order of the program, of each the largest first */
	double lane_cycles[LANES_MAX];	/* by lane: of a replica, on average */
};

/* Explain the events that were kept. events_only: use no costs of the model, as if the timeline were
 * measured. *out is allocated in `a`. */
void timeline_blame(struct arena *a, const struct timeline *t, bool events_only, struct blames *out);

/* Does the lane only issue asynchronous copies? Such a lane is expected to wait. */
bool lane_only_feeds(const struct plan *p, int lane);

#endif
