/* steps.h - a plan's entries, prepared for the simulation in lanes.c and engine.c.
 *
 * Each entry becomes a step in each replica of its lane (and in each warpgroup, if these run separately): its costs in
 * ticks, the track entries that its waits read, and the tracks on which its own issue and completion are recorded. The
 * rules of plan/order.h about waits are evaluated here once, so that each simulated instance costs a few additions. */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "sim/bounds.h"
#include "sim/engine.h"
#include "sim/pool.h"
#include "sim/server.h"
#include "sim/track.h"

enum {
	RUNS_MAX = POOL_MAX,		/* replicas (and warpgroups) of lanes on an EU: bits of track.blocked */
	PRODUCTS_KEPT = 8,		/* initial capacity for products of a lane */
};
enum { PARTS_AHEAD = PRODUCT_PARTS_AHEAD, NO_LIFE = NONE - 1 };
#define NEVER INT64_MAX

/* One span of instances that a wait reads: those of the awaited sTask in one iteration of a region,
 * `distance` iterations before that of the waiting instance. */
struct source {
	struct track *track;
	int64_t key;			/* the last iteration read; -1 at first */
	int64_t distance;
	bool direct;			/* the waiting sTask is in that region itself */
	bool by_span;			/* lane with replicas: order.h computes the span each time */
	/* A carried value is initialised in each iteration of the region `life_region`, so instances before that
	 * iteration are not waited for; NO_LIFE: it is no carried value. */
	int life_region;
	int64_t life_first, life_end;
	const struct edge *edge;	/* the dependence it is for; NULL: the wait has a distance of its own */
	const struct wait *wait;
	int64_t delay;			/* ticks until the waiting lane sees it */
	int64_t cost;			/* ticks of the lane for the wait itself */
};

/* A track on which the step's instances are recorded: each one, or the last one in each iteration of an
 * outer region. */
struct post {
	struct track *track;
	int64_t key;			/* the last iteration recorded; 0 at first */
	int64_t last;			/* the last instance in it; -1 at first */
	bool direct;
};

struct step {
	int task, loop, seu;
	int groups, group;		/* warpgroups of the lane that each do a part; which one this is */
	bool is_async;
	bool is_shared;			/* on a vector unit that lanes share (pool.h) */
	bool is_watched;		/* its completions are recorded in eu_run.ends */
	int64_t issue, busy, alone, l2, global, latency;	/* ticks */
	int64_t drain_cost, before, after;	/* see struct entry_cost, likewise the next ones */
	int drain, drain_after;
	bool stored_to_shared;
	bool counted;			/* an asynchronous load where lanes meet, for which they do so (role_meetings) */
	bool is_product;		/* on an asynchronous matrix unit (server.h) */
	int parts;			/* of it, of which PARTS_AHEAD may be at the unit; 0: no limit */
	int64_t handover;
	int handover_loop;
	int64_t handover_last;		/* the next instance whose value is handed to another lane */
	int32_t tile;			/* of all instances before tile_end */
	int64_t tile_end;
	const struct meeting_number *meeting;	/* NULL: lanes signal by flags */
	VEC(struct source) sources;
	int nposts;
	struct post *posts;
};

/* A load that is under way while its lane goes on. */
struct counted_load {
	int64_t meeting;		/* it must be complete before the lane comes to this one */
	int64_t end;
	int task;
};

/* A product of a lane on an asynchronous matrix unit, from its issue on. */
struct product {
	struct step *step;
	int64_t seq, given;		/* iteration; tick of the issue */
	int64_t end;			/* of its completion; NEVER: not known yet */
	struct event *event;		/* NULL: not kept */
	int64_t worst;			/* delay behind its event's cause */
	int parts;			/* that it consists of ... */
	int sent, done;			/* ... of which so many were sent to the unit, and are done */
};

/* One replica of a lane, or one warpgroup of it if these run separately. */
struct lane_run {
	int lane, replica;
	int64_t tile_cost, end_cost;	/* ticks between tiles, and after the last one */
	int64_t number, own;		/* ticks for the number of a tile, from tile `own` on */
	int64_t asks, asked;		/* ticks that the number takes to come, 0: it does not ask; when it asked */
	int tile_drain;			/* products that may be in flight when a tile begins; NONE: any */
	struct product *products;	/* ring of the last products, at least those not signaled */
	int64_t capacity;		/* of the ring */
	int64_t nproducts, ncomplete, nsignaled;	/* issued, complete, and signaled to other lanes so far */
	bool signals_late;		/* products are signaled when the lane next waits for its own */
	int64_t must_complete;		/* the last product to wait for before it continues; -1 */
	bool draining;			/* it waits for that */
	bool sending;			/* it waits to send the remaining parts of its last product */
	int parts_in_unit;		/* parts that were sent and are not done */
	bool is_prepared;		/* step->before has passed for the current product */
	int64_t preparing_since;	/* ... and when it began */
	int64_t drained_at;		/* completion of the last product that it waited for */
	int drained_task;		/* ... and its sTask; NONE */
	struct cursor *cursor;
	struct step **step_of;		/* by entry; NULL: an entry of another lane */
	int nsteps;
	struct step *steps;
	/* the instance that it stands at */
	struct step *step;		/* NULL at the end of the order */
	int64_t seq;
	int64_t ready;			/* tick at which it reached the instance */
	int64_t paid_until;		/* `ready`, and the cost of its waits so far */
	/* where lanes meet */
	int64_t met, meets;		/* meetings that it has come to, and that it must pass before the instance */
	int64_t first_meets;		/* ... before it begins the tile, ... */
	bool enters_tile;		/* ... which it has yet to do */
	int64_t came;			/* tick at which it came to the last one, ... */
	int came_from;			/* ... and the sTask that it did before, or waited for */
	int done;			/* the last sTask that it did; NONE */
	int64_t met_wait;		/* before the instance: its longest wait at a meeting or for a load, 0: none ... */
	enum cause met_cause;		/* ... which of these, ... */
	int met_task;			/* ... and the load, or came_from of the lane that came last */
	VEC(struct counted_load) loads;	/* for which it has not waited */
	int64_t seen_until;		/* tick at which the latest awaited instance was visible */
	int source;			/* the first one not satisfied yet */
	const struct wait *paid_wait;	/* the last wait that the lane has paid for */
	const struct wait *last_wait;	/* the one that was visible latest; NULL: a product, or none */
	int32_t tile;			/* the last one it reached; -1 at first */
	/* while its work is on a vector unit */
	struct event *event;		/* NULL: not kept */
	int64_t memory_end;		/* tick at which L2 and device memory have delivered */
	int64_t unit_free[SEU_MAX];	/* when its own work on a unit is finished ... */
	int64_t unit_end[SEU_MAX];	/* ... and complete */
};

struct steps {
	struct arena *a;
	const struct eu_run *run;
	int nlanes;
	struct lane_run *lanes;
	VEC(struct track *) tracks;
};

/* Rounded; negative and NaN give 0, and too large ones a limit that sums cannot overflow with. */
int64_t cycles_to_ticks(double cycles);
/* Prepare a run; everything is allocated in `a`. ERR_LIMIT if there are more than RUNS_MAX lane replicas. */
NODISCARD enum err_code steps_build(struct arena *a, const struct eu_run *r, struct steps *out, struct err *e);
/* If all products of a lane that is at its end are complete, it will neither read nor write its tracks again: they need
 * not keep anything for it. */
void steps_release(struct lane_run *l);

#endif
