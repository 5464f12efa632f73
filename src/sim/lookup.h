/* lookup.h - finds events of a timeline by time, lane, sTask or cause. An event is one instance of an sTask
 * (timeline.h), and is named by its index in the events of the phase. A timeline keeps only the first events of each
 * phase; the others cannot be found. Times are cycles. */
#ifndef SIM_LOOKUP_H
#define SIM_LOOKUP_H

#include "sim/timeline.h"

struct lookup_list {
	int *v, n, cap;			/* VEC(int): events, sorted by issue */
};

struct lookup {
	const struct plan *plan;
	const struct phase_line *line;	/* borrowed */
	struct lookup_list *of_task;	/* by sTask of the graph */
	struct lookup_list of_lane[LANES_MAX][REPLICAS_MAX];
	bool sorted;			/* all events of the phase are sorted by issue */
	int64_t most_before;		/* the most cycles from the beginning of an event to its issue, of all events:
					 * it begins when its lane is ready for it, or its first warpgroup starts */
	int64_t most_after;		/* the most cycles from an event's issue to its end */
	int64_t last;			/* end of the last event */
};

/* Index one phase of a timeline, which is borrowed; allocated in `a`. A trace may hold events that cannot be: those are
 * left out (event_is_placed). */
void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase);
/* A range of events, [*first, *first + *n), that contains all that overlap the cycles [from, to]. It contains
 * others, too: as events are sorted by issue alone, it reaches as far as the longest event could. */
void lookup_window(const struct lookup *l, int64_t from, int64_t to, int *first, int *n);
/* The event that delayed this one longest; NONE if it was not delayed, or that event is not among those of the
 * timeline. */
int lookup_cause(const struct lookup *l, int event);
/* The n-th event after this one (n < 0: before it) on the same replica of its lane, or of the same sTask; NONE if
 * there is none. */
int lookup_next_of_lane(const struct lookup *l, int event, int n);
int lookup_next_of_task(const struct lookup *l, int event, int n);
/* The event of a list whose issue is nearest to a cycle; NONE if the list is empty. */
int lookup_near(const struct lookup *l, const struct lookup_list *list, int64_t cycle);

/* The steady state of the busiest loop (ii_loop) in one tile: [*from, *to) begins when each sTask of the loop has
 * started its first instance, and ends when one has ended its last; [*begin, *end) is all of the loop. False if
 * there is no such time, or the timeline has no event of the tile. */
bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to, int64_t *end);

#endif
