/* moments.h - a phase of a timeline one issue or one completion at a time, and what each slot of a
 * ring holds in between.
 *
 * After a moment an instance is under way if its issue is not later and its completion is. The
 * life of a buffer that an instance touches is the iteration of the buffer's region, numbered
 * through over tiles, that it belongs to; life s is in slot s mod versions (plan/plan.h).
 */
#ifndef SIM_MOMENTS_H
#define SIM_MOMENTS_H

#include "plan/order.h"
#include "sim/lookup.h"

struct moment {
	int64_t cycle;
	int event;			/* of the phase's events */
	bool end;			/* it is complete; else it is issued */
};

struct moments {
	const struct lookup *lookup;	/* borrowed */
	int n;
	struct moment *v;		/* by cycle; completions before issues */
	int *issue, *end;		/* by event: its moments; n for those that have none */
	struct walk walk;		/* of the EU's tiles */
	int nrings, *ring;		/* buffers of the phase in shared memory or of several versions,
					 * whose lives are those of one lane, or of all tiles */
};

/* In `a`. */
void moments_init(struct arena *a, struct moments *m, const struct lookup *l);
/* The last moment that is not after a cycle; 0 if there is none. */
int moments_at(const struct moments *m, int64_t cycle);
/* The instance that the lane was given last, and the one that comes next; NONE. */
void moments_lane(const struct moments *m, int at, int lane, int replica, int *last, int *next);

enum slot_state {
	SLOT_EMPTY,			/* nothing was there yet */
	SLOT_FILLING,			/* what fills it is issued, and not complete */
	SLOT_FULL,			/* complete; some who read it are still to come */
	SLOT_READ,			/* ... and somebody is at it */
	SLOT_FREE,			/* all who read it are done */
};

struct slot {
	enum slot_state state;
	int64_t life;			/* that it holds, or held; NONE */
	int64_t fills;			/* how often it was filled, to the end */
	int by;				/* who is at it; NONE */
};

/* Of a buffer, after a moment: as many slots as it has versions. */
void moments_slots(const struct moments *m, int at, int buffer, struct slot *out);
/* Life of the buffer that an instance belongs to; NONE if it is in none. */
int64_t moments_life(const struct moments *m, const struct event *e, int buffer);

#endif
