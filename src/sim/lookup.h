/* lookup.h - events of a timeline found by time, by lane, by sTask, by cause. */
#ifndef SIM_LOOKUP_H
#define SIM_LOOKUP_H

#include "sim/timeline.h"

struct lookup_list {
	int n;
	const int *v;			/* events, in order of issue */
};

struct lookup {
	const struct plan *plan;
	const struct phase_line *line;	/* borrowed */
	struct lookup_list *of_task;	/* by sTask of the graph */
	struct lookup_list of_lane[LANES_MAX][REPLICAS_MAX];
	bool sorted;			/* all events are in order of issue */
	int64_t before, after;		/* most cycles that an event begins before its issue, and
					 * ends after it */
	int64_t last;			/* end of the last event */
};

/* Of one phase of a timeline; in `a`. Events without a place in the plan are left out. */
void lookup_init(struct arena *a, struct lookup *l, const struct timeline *t, int phase);
/* A range of events that holds all of those that can be seen between two cycles. */
void lookup_window(const struct lookup *l, int64_t from, int64_t to, int *first, int *n);
/* The instance that the event was held up by longest; NONE if nothing held it up or that
 * instance was not kept. */
int lookup_cause(const struct lookup *l, int event);
/* The n-th next event of the same lane (and copy), or of the same sTask; NONE beyond the ends. */
int lookup_next_of_lane(const struct lookup *l, int event, int n);
int lookup_next_of_task(const struct lookup *l, int event, int n);
/* The event of a list that is nearest to a cycle; NONE of an empty one. */
int lookup_near(const struct lookup *l, const struct lookup_list *list, int64_t cycle);

/* When the busiest loop of a tile is in its steady state: every sTask of it at work, none at its
 * end. False if the tile has no such time, or was not kept. */
bool lookup_steady(const struct lookup *l, int tile, int64_t *begin, int64_t *from, int64_t *to,
	int64_t *end);

#endif
