/* track.h - times of issues and completions that lanes wait for.
 *
 * A track holds, for one sTask, the time of its issue or completion in each iteration of a region. It is
 * a ring that grows: entries that no user can access again are overwritten, so its size is the largest
 * distance between lanes, not the length of the run. A user is a wait that reads the track or a step
 * that writes it, represented by the least iteration that it may still access. Times are ticks (engine.h).
 *
 * If several warpgroups of a lane each do a part of the sTask, the time is that of the last one. Until
 * all have arrived, the entry encodes how many have, and the latest time, as a number below PENDING. */
#ifndef SIM_TRACK_H
#define SIM_TRACK_H

#include "base/arena.h"
#include "plan/plan.h"

enum { PENDING = -1 };			/* not happened yet */

#ifndef TRACK_MIN
#define TRACK_MIN 16			/* initial entries; a power of two */
#endif

struct track {
	int on;				/* sTask */
	int region;			/* whose iterations are counted */
	int group;			/* the warpgroup whose part it is about; NONE: all of them */
	enum wait_when when;
	int64_t *at;			/* entry i & mask is the time of iteration i, or PENDING */
	int64_t mask;
	int64_t head;			/* one more than the last iteration set */
	int64_t low;			/* no user accesses an iteration before this */
	uint64_t blocked;		/* lanes that wait for the next entry, as bits */
	VEC(const int64_t *) users;
};

/* The least iteration that a user may still access. */
static inline int64_t track_low(const struct track *t)
{
	int64_t low = INT64_MAX;

	for (int i = 0; i < t->users.n; i++)
		low = min_i64(low, *t->users.v[i]);
	return max_i64(low, 0);
}

static inline void track_grow(struct arena *a, struct track *t, int64_t capacity)
{
	int64_t size = t->at ? (t->mask + 1) * 2 : TRACK_MIN;

	while (size < capacity)
		size *= 2;
	int64_t *at = ARENA_ARRAY(a, size, int64_t);
	for (int64_t i = max_i64(t->low, t->head - t->mask - 1); t->at && i < t->head; i++)
		at[i & (size - 1)] = t->at[i & t->mask];
	t->at = at;
	t->mask = size - 1;
}

/* Time of iteration i, in ticks, or PENDING. */
static inline int64_t track_get(const struct track *t, int64_t i)
{
	int64_t at = i < t->head ? t->at[i & t->mask] : PENDING;

	return at < 0 ? PENDING : at;
}

/* Set the time of iteration i, in ticks. A larger ring is allocated in `a`. */
static inline void track_set(struct arena *a, struct track *t, int64_t i, int64_t time)
{
	if (i >= t->head) {
		if (!t->at || i - t->low > t->mask) {
			t->low = min_i64(track_low(t), i);
			if (!t->at || i - t->low > t->mask)
				track_grow(a, t, i - t->low + 1);
		}
		for (; t->head <= i; t->head++)
			t->at[t->head & t->mask] = PENDING;
	}
	t->at[i & t->mask] = time;
}

/* One of `groups` warpgroups has completed its part of iteration i at `time`. Returns whether all have;
 * then the entry is the latest of their times. */
static inline bool track_join(struct arena *a, struct track *t, int64_t i, int64_t time, int groups)
{
	enum { MOST = 16 };		/* more warpgroups than a block can have */
	int64_t arrived = 1, at = i < t->head ? t->at[i & t->mask] : PENDING;

	if (at < PENDING) {
		arrived = (PENDING - 1 - at) % MOST + 1;
		time = max_i64(time, (PENDING - 1 - at) / MOST);
	}
	track_set(a, t, i, arrived == groups ? time : PENDING - 1 - (time * MOST + arrived));
	return arrived == groups;
}

#endif
