/* steps.h - a plan's entries made ready to be played: what engine.c runs on.
 *
 * For each copy of a lane, each of its entries becomes a step: costs in ticks, the
 * spans that its waits ask for as places on tracks, and the tracks on which its own
 * issue and completion are noted. Everything that order.h says about waits is worked
 * out here once, so that an instance costs a few additions.
 */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "sim/engine.h"
#include "sim/pool.h"
#include "sim/track.h"

enum {
	RUNS_MAX = POOL_MAX,		/* lane copies of an EU: bits of track.blocked */
	GROUPS_KEPT = 8,		/* products of a lane that a wait for groups can tell apart */
};
#define NEVER INT64_MAX

/* One span that a wait asks for: the awaited sTask's instances in one iteration of a
 * region, `distance` iterations before the waiting one's. */
struct source {
	struct track *track;
	int64_t key;			/* the last iteration asked for; -1 at first */
	int64_t distance;
	bool direct;			/* the waiting sTask stands in that region itself */
	bool by_span;			/* lanes with turns: ask order.h each time */
	/* Of an edge within a life: nothing is owed to iterations before the life's
	 * first; life NONE - 1: the edge or wait is not of this sort. */
	int life;
	int64_t life_first, life_end;
	const struct edge *edge;	/* what it serves; NULL: the wait's own distance */
	const struct wait *wait;
	int64_t delay;			/* ticks until the waiting lane sees it */
	int64_t price;			/* ticks of the lane to ask */
};

/* A track on which the step's instances are noted: each one, or the last of each
 * iteration of a region further out. */
struct post {
	struct track *track;
	int64_t key;			/* the last iteration noted; 0 at first */
	int64_t last;			/* the last instance in it; -1 at first */
	bool direct;
};

struct step {
	int entry, task, loop, seu;
	bool is_async, is_shared, is_watched;
	int64_t issue, busy, alone, memory, latency;	/* ticks */
	int64_t asking, before, after;	/* see struct entry_cost */
	bool is_group, lands;		/* a product that the lane may drain */
	int drain, drain_after;
	int64_t handoff;
	int handoff_loop;
	int64_t handoff_last;		/* next instance that is handed over */
	int32_t tile;			/* of the instances before tile_end */
	int64_t tile_end;
	int nsources, nposts;
	struct source *sources;
	struct post *posts;
};

/* A product of a lane's own. */
struct group {
	int task;
	int64_t end;			/* when it is complete */
};

/* One copy of a lane. */
struct lane_run {
	int lane, copy;
	int64_t tile_cost, end_cost;	/* ticks between tiles, and behind the last */
	int tile_drain;			/* groups that may be under way when a tile begins; NONE */
	struct group groups[GROUPS_KEPT];	/* ring of the last */
	int64_t ngroups;
	struct group held;		/* that it must have seen the end of before it goes on */
	struct cursor *cursor;
	struct step **step_of;		/* by entry; NULL: another lane's */
	int nsteps;
	struct step *steps;
	/* the instance that it has come to */
	struct step *step;		/* NULL at the end of the order */
	int64_t seq;
	int64_t ready;
	int64_t asked;			/* ready, and the price of its waits so far */
	int64_t seen;			/* when the last awaited instance was seen */
	int source;			/* the first not yet satisfied */
	const struct wait *paid;	/* the last wait whose price was paid */
	const struct wait *last;	/* whose instance was seen last; NULL: held's, or none */
	int32_t tile;			/* the last it came to; -1 at first */
	/* while it is held by a shared sEU */
	int64_t event;			/* kept; -1 */
	int64_t memory_end;
	int64_t unit_free[SEU_MAX];	/* when its own work on a unit is through ... */
	int64_t unit_end[SEU_MAX];	/* ... and complete */
};

struct steps {
	struct arena *a;
	const struct eu_run *run;
	int nlanes;
	struct lane_run *lanes;
	VEC(struct track *) tracks;
};

int64_t cycles_to_ticks(double cycles);
/* All in `a`. ERR_LIMIT if there are more than RUNS_MAX lane copies. */
NODISCARD enum err_code steps_build(struct arena *a, const struct eu_run *r, struct steps *out,
	struct err *e);

#endif
