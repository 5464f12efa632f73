/* timeline.h - what happened when, predicted or measured.
 *
 * A list of events on the lanes and sEUs of one EU, with the numbers that sum them
 * up. The simulator makes one; so does a trace read from a device. Times are cycles
 * of the EU clock from the start of the phase.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include "plan/plan.h"

/* Why an instance did not start earlier: the longest of what held it up. */
enum cause {
	CAUSE_NONE,			/* it started as soon as its lane came to it */
	CAUSE_WAIT,			/* for the completion of `cause_task` */
	CAUSE_ISSUE_ORDER,			/* for the issue of `cause_task` */
	CAUSE_SEU,			/* its sEU was busy with `cause_task` */
	CAUSE_MEMORY,			/* its EU's share of L2 or device memory was, likewise */
	CAUSE_DRAIN,			/* its lane waited for `cause_task`, a product of its own, as
					 * the kernel has it and the plan does not */
	CAUSES
};

struct event {
	int64_t ready;			/* the lane came to it */
	int64_t issue;			/* its waits were satisfied */
	int64_t start;			/* its sEU began */
	int64_t end;			/* its completion could be seen */
	int32_t seq;			/* iteration in its region's sequence */
	int32_t tile;			/* of the EU, counted from 0 */
	int16_t task;
	int16_t cause_task;		/* NONE */
	uint8_t lane, replica, seu, cause;
	uint8_t late;			/* measured: it was seen by one who came later, so
					 * `end` is the latest that it can have been */
	uint8_t held;			/* simulated: of its causes, the one from `ready` to `issue`;
					 * CAUSE_NONE: its lane only asked */
	int16_t held_task;		/* NONE */
	int32_t before;			/* cycles from when its sEU began with the parts of other groups of
					 * the lane to `start`; the event is the last group's */
};
_Static_assert(sizeof(struct event) <= 64, "events are held by the million");

struct seu_use {
	double busy;			/* cycles */
	double share;			/* of the time, 0 to 1 */
};

/* What an instance of an sTask takes, in cycles. */
struct task_cost {
	double lane;			/* of its lane, which gives it to an asynchronous unit */
	double shared;			/* of its unit's cycles, the share in which it waits for shared
					 * memory */
	double l2, global;		/* of the EU's shares of these */
	double latency;			/* from the end of the work to completion ... */
	double handoff;			/* ... of which its value is brought to another lane */
};

struct entry_cost;			/* price.h */

/* One phase on the EU that finishes last. */
struct phase_line {
	int phase;
	int eus;			/* that worked */
	int eu;				/* the one whose events these are */
	int64_t tiles;			/* of the grid */
	int64_t cycles;			/* from start to the end of the last EU */
	double ii;			/* cycles an iteration of the innermost busiest loop, steady
					 * state: the median distance of its last task's ends */
	int ii_loop;			/* that loop; NONE: the tile loop */
	int ii_step;			/* iterations over which a distance is taken */
	double res_mii, rec_mii;	/* lower bounds on ii, see bounds.h */
	int binding_seu;		/* what res_mii comes from, see bounds.h's binding_name */
	struct seu_use seu[SEU_MAX];
	double memory_share;		/* of the EU's share of L2 and device memory bandwidth;
					 * not measured */
	const struct task_cost *costs;	/* by sTask of the graph; NULL: measured */
	const struct entry_cost *entry_costs;	/* by entry, those that were played; NULL: measured */
	VEC(struct event) events;	/* the first ones of that EU, in order of issue */
};

struct timeline {
	struct arena arena;
	const struct plan *plan;	/* borrowed */
	bool priced;			/* simulated with what its kernels cost beside the work */
	int spare_registers;		/* priced: of a thread's, in the lane that has fewest left */
	const char *unpriced;		/* why not, if that was asked for; else NULL */
	bool measured;			/* by stamps: see run/trace.h for what they mean */
	bool logical;			/* and there was no clock: a cycle is one stamp */
	double clock_hz;		/* of the EU; 0: not known */
	double uncertainty;			/* simulated: share of `seconds` that it is off, in nine of ten
					 * cases at most; 0: not known */
	const char *cache;		/* what its reads find in L2: "cold L2"; NULL: not known */
	double watts;			/* simulated: that the device draws at it; 0: not known */
	struct effort effort, joules;	/* simulated: of all EUs, all phases */
	double overhead;		/* measured: by which share the stamps lengthen the
					 * kernel; NAN: not known */
	int nphases;
	struct phase_line *phases;
	int64_t cycles;			/* all phases */
	double seconds;
	double flops;			/* of the program, for TFLOP/s */
	int64_t nevents;		/* simulated in all, kept or not */
};

/* An empty one for all phases of the plan's program; *out is set before anything that
 * can fail, so that the owner can free it. Free with timeline_free. */
void timeline_new(struct mem *mem, const struct plan *p, struct timeline **out);
void timeline_free(struct timeline *t);
/* Of what can be drawn: keeps cycles * columns far from overflow. */
#define CYCLES_MAX ((int64_t)1 << 50)

/* Has it a place in the plan, and a time? A trace from a device may hold anything. */
bool event_is_sound(const struct plan *p, const struct event *e);
/* ... and in a table by lane and replica? */
static inline bool event_is_placed(const struct plan *p, const struct event *e)
{
	return event_is_sound(p, e) && e->lane < LANES_MAX && e->replica < REPLICAS_MAX;
}

/* An event by one of its times, to be sorted: the earlier one first, of several the lesser number. */
struct event_time {
	int64_t at;
	int event;
};
int event_time_compare(const void *a, const void *b);
/* The phase that takes longest: what single numbers are about. */
const struct phase_line *timeline_longest(const struct timeline *t);

#endif
