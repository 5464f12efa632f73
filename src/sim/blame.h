/* blame.h - where the time of each lane goes: a timeline's events, explained.
 *
 * A lane's time, from its first event to its last, is divided among its sTasks: of each, from when
 * the lane came to it until it came to the next. What the lane does there itself is its own; what it
 * waits for is asked of the awaited sTask: did its unit work then, or the memory that it came from,
 * or had it not been issued yet, and what did its lane wait for? A copy takes its latency whenever
 * it is asked for, so what counts of it is what happened so much earlier: if memory was at work then
 * it is memory that is waited for; if nothing was asked of it because the ring had no free slot, that.
 */
#ifndef SIM_BLAME_H
#define SIM_BLAME_H

#include "sim/timeline.h"

enum blame {				/* ORDER blame_names */
	BLAME_ISSUE,			/* the lane's own: asking, issuing, telling, between tiles */
	BLAME_PIPE,			/* a unit at work, for the lane itself or for whom it waits */
	BLAME_DEPENDENCE,		/* latency, or what is not known, of the sTask waited for */
	BLAME_SHARED,			/* a unit that waits for its operands from shared memory */
	BLAME_L2, BLAME_GLOBAL,		/* the EU's share of them at work */
	BLAME_SLOT,			/* a value that is still read where another is to be written */
	BLAME_ISSUE_ORDER,			/* the issue of another lane's sTask */
	BLAME_SYNC,			/* completion that is told, or handed over, later */
	BLAME_POWER,			/* time at a lower clock than the device's */
	BLAMES
};
extern const char *const blame_names[];	/* BLAMES of them */

struct blame_part {
	int lane, task;
	enum blame why;
	int on;				/* sTask whose unit, copy or slot it is; NONE: the lane itself
					 * is at work */
	int unit;			/* that is at work; NONE */
	double cycles;			/* of all copies of the lane */
	double share;			/* of the lane's time; over a lane these add up to 1 */
	int next;			/* of the same sTask; NONE */
};

struct blames {
	VEC(struct blame_part) v;	/* by sTask in the order of the program, the greatest first */
	double lane_cycles[LANES_MAX];	/* of a copy of it, on average */
};

/* Of the events that were kept. plainly: as if measured, by what events alone say. In `a`. */
void timeline_blame(struct arena *a, const struct timeline *t, bool plainly, struct blames *out);

/* A lane that only feeds a copy engine is there to wait. */
bool lane_only_feeds(const struct plan *p, int lane);

#endif
