/* steps.h - a plan's entries made ready to be played: what engine.c runs on.
 *
 * For each copy of a lane, each of its entries becomes a step: costs in ticks, the
 * spans that its waits ask for as places on tracks, and the tracks on which its own
 * issue and completion are noted. Everything that order.h says about waits is worked
 * out here once, so that an instance costs a few additions.
 */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "sim/bounds.h"
#include "sim/engine.h"
#include "sim/pool.h"
#include "sim/server.h"
#include "sim/track.h"

enum {
	RUNS_MAX = POOL_MAX,		/* lane copies of an EU: bits of track.blocked */
	GROUPS_KEPT = 8,		/* products of a lane that a wait for groups can tell apart, at
					 * least */
};
enum { PARTS_AHEAD = PRODUCT_PARTS_AHEAD };
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

/* When the first group's part of an instance began. */
struct first {
	int64_t seq, start;
};
enum { FIRSTS = 16 };

struct step {
	int entry, task, loop, seu;
	int groups, group;		/* of the lane, that each do a part; which one this is */
	struct first *first;		/* FIRSTS of them, that they share */
	bool is_async, is_shared, is_watched;
	int64_t issue, busy, alone, l2, global, latency;	/* ticks */
	int64_t asking, before, after;	/* see struct entry_cost */
	bool is_group, lands;		/* a product that the lane may drain */
	int parts;			/* of it, of which the lane may have PARTS_AHEAD under way; 0: all */
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

/* A product of a lane's own, from when it is issued. */
struct group {
	struct step *step;
	int64_t seq, given;
	int64_t end;			/* when it is complete; NEVER: not known yet */
	int64_t event;			/* kept; -1 */
	int64_t worst;			/* delay that its event's cause stands for */
	int parts;			/* that it is done in ... */
	int sent, done;			/* ... and that have come to the unit, and are through */
};

/* One copy of a lane. */
struct lane_run {
	int lane, copy;
	int64_t tile_cost, end_cost;	/* ticks between tiles, and behind the last */
	int tile_drain;			/* groups that may be under way when a tile begins; NONE */
	struct group *groups;		/* a ring of them, of those under way and the last that were */
	int64_t room, ngroups;		/* in the ring; issued so far */
	int64_t complete, told;		/* so many of them; that others have been told of */
	bool late;			/* those are told when the lane next waits for its products */
	int64_t owes;			/* the last that must be complete before it goes on; -1 */
	bool draining;			/* it stands until that is */
	bool sending;			/* ... until all parts of its last one have come to the unit */
	int ahead;			/* parts that have, and are not through */
	bool given;			/* what comes before its product is done */
	int64_t issued;			/* ... when that was begun */
	int64_t held;			/* end of the last that it had to see complete */
	int held_by;			/* ... its task; NONE */
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
	const struct wait *last;	/* whose instance was seen last; NULL: a product, or none */
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
