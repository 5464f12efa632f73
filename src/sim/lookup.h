/* lookup.h - finds events of a timeline by time, lane, sTask or cause. Events are indices into the phase's
 * events; times are cycles. */
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
	int64_t before, after;		/* the most cycles that an event begins before its issue, and ends after it */
	int64_t last;			/* end of the last event */
};

/* Index one phase of a timeline, which is borrowed; allocated in `a`. Invalid events (event_is_placed) are left out. */
void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase);
/* The range [*first, *first + *n) of events that contains all that overlap [from, to]. */
void lookup_window(const struct lookup *l, int64_t from, int64_t to, int *first, int *n);
/* The event that delayed this one longest; NONE if it was not delayed, or that event was not kept. */
int lookup_cause(const struct lookup *l, int event);
/* The n-th next event (n < 0: previous) of the same replica of a lane, or of the same sTask; NONE beyond the ends. */
int lookup_next_of_lane(const struct lookup *l, int event, int n);
int lookup_next_of_task(const struct lookup *l, int event, int n);
/* The event of a list whose issue is nearest to a cycle; NONE if the list is empty. */
int lookup_near(const struct lookup *l, const struct lookup_list *list, int64_t cycle);

/* The steady state of the busiest loop (ii_loop) in a tile: [*from, *to) is the time between the last start of the
 * first instances of its sTasks and the first end of their last ones; [*begin, *end) is all of the loop. False
 * if there is no such time, or the tile was not kept. */
bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to, int64_t *end);

#endif
