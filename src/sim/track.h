/* track.h - when things happened that somebody may wait for.
 *
 * A track holds the times of one sTask's issues or completions by iteration of a
 * region. It is a ring: what no party can come back to is overwritten, and it grows
 * when that is not enough, so its size is the farthest that lanes run apart, not the
 * length of the run. A party is whoever looks times up or sets them, known by the
 * least iteration that it may still touch. Times are ticks, see engine.h.
 *
 * What several groups of a lane each do a part of has happened when the last has: until then
 * the slot holds how many have come, and the latest time.
 */
#ifndef SIM_TRACK_H
#define SIM_TRACK_H

#include "base/arena.h"
#include "plan/plan.h"

enum { PENDING = -1 };			/* it has not happened yet */

#ifndef TRACK_MIN
#define TRACK_MIN 16			/* slots to begin with; a power of two */
#endif

struct track {
	int on;				/* sTask */
	int region;			/* whose iterations are counted */
	int group;			/* of the lane, whose own it is; NONE: all of them together */
	enum wait_when when;
	int64_t *at;			/* time of iteration i in slot i & mask, or PENDING */
	int64_t mask;
	int64_t head;			/* one more than the last iteration set */
	int64_t low;			/* no party touches what is before */
	uint64_t blocked;		/* lanes that stand until something is set, as bits */
	VEC(const int64_t *) parties;
};

/* All iterations of a region before `low` may be forgotten. */
static inline int64_t track_low(const struct track *t)
{
	int64_t low = INT64_MAX;

	for (int i = 0; i < t->parties.n; i++)
		low = min_i64(low, *t->parties.v[i]);
	return max_i64(low, 0);
}

static inline void track_grow(struct arena *a, struct track *t, int64_t room)
{
	int64_t size = t->at ? (t->mask + 1) * 2 : TRACK_MIN;
	int64_t *at;

	while (size < room)
		size *= 2;
	at = ARENA_ARRAY(a, size, int64_t);
	for (int64_t i = max_i64(t->low, t->head - t->mask - 1); t->at && i < t->head; i++)
		at[i & (size - 1)] = t->at[i & t->mask];
	t->at = at;
	t->mask = size - 1;
}

/* Time of an iteration, or PENDING. */
static inline int64_t track_get(const struct track *t, int64_t i)
{
	int64_t at = i < t->head ? t->at[i & t->mask] : PENDING;

	return at < 0 ? PENDING : at;
}

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

/* One of so many groups has come; have they all? */
static inline bool track_join(struct arena *a, struct track *t, int64_t i, int64_t time, int groups)
{
	enum { MOST = 16 };		/* groups, and more than threads allow */
	int64_t come = 1, at = i < t->head ? t->at[i & t->mask] : PENDING;

	if (at < PENDING) {
		come = (PENDING - 1 - at) % MOST + 1;
		time = max_i64(time, (PENDING - 1 - at) / MOST);
	}
	track_set(a, t, i, come == groups ? time : PENDING - 1 - (time * MOST + come));
	return come == groups;
}

#endif
