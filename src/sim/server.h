/* server.h - a matrix unit that serves one piece of work after the other, in order of arrival.
 *
 * A piece is a part of a product of a lane. Times are ticks, see engine.h.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "base/arena.h"

struct server {
	int *who;			/* ring of the lanes whose pieces are in line, served first */
	int64_t room, first, n;
	int64_t next;			/* when the first is through; INT64_MAX if there is none */
};

static inline void server_init(struct server *s)
{
	*s = (struct server){ .next = INT64_MAX };
}

/* The piece comes last. Ring in `a`. */
static inline void server_enter(struct server *s, struct arena *a, int who)
{
	if (s->n == s->room) {
		int64_t room = s->room ? 2 * s->room : 16;
		int *more = ARENA_ARRAY(a, room, int);

		for (int64_t i = 0; i < s->n; i++)
			more[i] = s->who[(s->first + i) % s->room];
		s->who = more;
		s->room = room;
		s->first = 0;
	}
	s->who[(s->first + s->n++) % s->room] = who;
}

/* Whose piece is served; there must be one. */
static inline int server_first(const struct server *s)
{
	return s->who[s->first % s->room];
}

/* It is through. */
static inline int server_leave(struct server *s)
{
	int who = server_first(s);

	s->first = (s->first + 1) % s->room;
	s->n--;
	s->next = INT64_MAX;
	return who;
}

#endif
