/* server.h - the queue of an asynchronous matrix unit.
 *
 * The unit works on one part of a product at a time, in order of arrival. Times are ticks (engine.h). */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "base/arena.h"

struct server {
	int *lane;			/* ring of the lanes whose parts are in the queue */
	int64_t capacity, first, n;	/* of the ring; the part that is worked on; parts in the queue */
	int64_t next;			/* tick at which the first part is done; INT64_MAX if there is none */
};

static inline void server_init(struct server *s)
{
	*s = (struct server){ .next = INT64_MAX };
}

/* Append a part of the lane. The ring is allocated in `a`. */
static inline void server_enter(struct server *s, struct arena *a, int lane)
{
	if (s->n == s->capacity) {
		int64_t capacity = s->capacity ? 2 * s->capacity : 16;
		int *more = ARENA_ARRAY(a, capacity, int);

		for (int64_t i = 0; i < s->n; i++)
			more[i] = s->lane[(s->first + i) % s->capacity];
		s->lane = more;
		s->capacity = capacity;
		s->first = 0;
	}
	s->lane[(s->first + s->n++) % s->capacity] = lane;
}

/* The lane whose part is worked on; there must be one. */
static inline int server_first(const struct server *s)
{
	return s->lane[s->first % s->capacity];
}

/* The first part is done: remove it and return its lane. */
static inline int server_leave(struct server *s)
{
	int lane = server_first(s);

	s->first = (s->first + 1) % s->capacity;
	s->n--;
	s->next = INT64_MAX;
	return lane;
}

#endif
