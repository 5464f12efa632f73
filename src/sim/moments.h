/* moments.h - steps through a phase of a timeline, one issue or completion at a time, and tells what each slot of a
 * ring holds in between.
 *
 * After a moment, an instance is in flight if its issue is not later and its completion is. The life of a
 * buffer that an instance accesses is the iteration of the buffer's region, counted over all tiles, that
 * the instance is in; life s is in slot s mod versions (plan/plan.h). */
#ifndef SIM_MOMENTS_H
#define SIM_MOMENTS_H

#include "plan/order.h"
#include "sim/lookup.h"

struct moment {
	int64_t cycle;
	int event;			/* index in the phase's events */
	bool end;			/* the event completes; else it is issued */
};

struct moments {
	const struct lookup *lookup;	/* borrowed */
	int n;
	struct moment *v;		/* sorted by cycle, completions before issues */
	int *issue, *end;		/* by event: index of its moments; n if it has none */
	struct walk walk;		/* over the EU's tiles */
	int nrings, *ring;		/* buffers of the phase in shared memory, or with several versions in
					 * a lane without replicas */
};

/* The moments of l's phase; l is borrowed. Allocated in `a`. */
void moments_init(struct arena *a, struct moments *m, const struct lookup *l);
/* The last moment not after a cycle; 0 if there is none. */
int moments_at(const struct moments *m, int64_t cycle);
/* The last event that the replica of the lane has issued by moment `at`, and the next one; NONE if there is none. */
void moments_lane(const struct moments *m, int at, int lane, int replica, int *last, int *next);

enum slot_state {
	SLOT_EMPTY,			/* nothing was written yet */
	SLOT_FILLING,			/* its writer is in flight */
	SLOT_FULL,			/* written; some readers are still to come */
	SLOT_READ,			/* written, and a reader is in flight */
	SLOT_FREE,			/* all readers are complete */
};

struct slot {
	enum slot_state state;
	int64_t life;			/* the life that it holds, or held last; NONE */
	int64_t fills;			/* lives whose first write is complete, so far */
	int by;				/* an sTask in flight that accesses it, the last of the graph; NONE */
};

/* The slots of a buffer after moment `at`, as many as it has versions. */
void moments_slots(const struct moments *m, int at, int buffer, struct slot *out);
/* The life of the buffer that an event belongs to; NONE if none. */
int64_t moments_life(const struct moments *m, const struct event *e, int buffer);

#endif
