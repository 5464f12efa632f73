/* lookup.h - finds events of a timeline by time, lane, sTask or cause. An event is one instance of an sTask
 * (timeline.h), and is named by its index in the events of the phase. A timeline keeps only the first events of each
 * phase; the others cannot be found. Times are cycles. */
#ifndef SIM_LOOKUP_H
#define SIM_LOOKUP_H

#include "sim/timeline.h"

struct lookup_list {
	int *v, n, cap;			/* VEC(int): events, sorted by issue */
};

/* When the first of some events begins and the last one ends. */
struct lookup_span {
	int64_t begin, end;
};

enum { LOOKUP_BLOCK = 256 };

struct lookup {
	const struct plan *plan;
	const struct phase_line *line;	/* borrowed */
	struct lookup_list *of_task;	/* by sTask of the graph */
	struct lookup_list of_lane[LANES_MAX][REPLICAS_MAX];
	struct lookup_span *span;	/* of each LOOKUP_BLOCK consecutive events */
	int64_t last;			/* end of the last event */
	uint8_t drifts[LANES_MAX];	/* warpgroups of the lane, if they do any event apart (lookup_drifts); else 0 */
};

/* Index one phase of a timeline, which is borrowed; allocated in `a`. A trace may hold events that cannot be: those are
 * left out (event_is_placed). */
void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase);
/* The events that overlap the cycles [from, to], in their order; in `a`. An event begins when its lane is ready for it,
 * or its first warpgroup is. */
struct lookup_list lookup_in_sight(struct arena *a, const struct lookup *l, int64_t from, int64_t to);
/* Do warpgroups do their parts of the event apart: one much later than another, which is complete before? */
bool lookup_drifts(const struct phase_line *line, int event);
/* The event that delayed this one longest; NONE if it was not delayed, or that event is not among those of the
 * timeline. */
int lookup_cause(const struct lookup *l, int event);
/* The n-th event after this one (n < 0: before it) on the same replica of its lane, or of the same sTask; NONE if
 * there is none. */
int lookup_next_of_lane(const struct lookup *l, int event, int n);
int lookup_next_of_task(const struct lookup *l, int event, int n);
/* The event of a list whose issue is nearest to a cycle; NONE if the list is empty. */
int lookup_near(const struct lookup *l, const struct lookup_list *list, int64_t cycle);

/* The steady state of the busiest loop (ii_loop) in one tile: [*from, *to) begins when every lane has begun the first
 * iteration in which all its entries have something to do and from which on they keep the interval, if they do, and ends
 * when a lane has completed its last such iteration; [*begin, *end) is all of the loop. False if there is no such time, or the timeline has no event of the tile. */
bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to, int64_t *end);

#endif
