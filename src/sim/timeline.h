/* timeline.h - what a plan did when, predicted or measured.
 *
 * For each phase of the program: the events on the lanes and sEUs of one EU, and numbers that summarise
 * them. The simulator makes a timeline (sim.h), and so does a trace read from a device (run/trace.h).
 * Times are cycles of the EU clock from the start of the phase unless stated otherwise.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include "plan/plan.h"

/* Why an instance did not start earlier: the longest of its delays. */
enum cause {
	CAUSE_NONE,			/* it started as soon as its lane reached it */
	CAUSE_WAIT,			/* it waited for the completion of `cause_task` */
	CAUSE_ISSUE_ORDER,		/* it waited for the issue of `cause_task` */
	CAUSE_SEU,			/* its sEU was busy with `cause_task` */
	CAUSE_MEMORY,			/* the EU's share of L2 or device memory was busy with it */
	CAUSE_DRAIN,			/* its lane waited for `cause_task`, a product of its own: a wait of
					 * the kernel, not of the plan */
	CAUSE_MEETING,			/* its lane met the others, of which that of `cause_task` came last after it */
	CAUSES
};

/* One instance of an sTask. */
struct event {
	int64_t ready;			/* its lane reached it */
	int64_t issue;			/* its waits were satisfied */
	int64_t start;			/* its sEU began */
	int64_t end;			/* its completion was visible to its own lane */
	int32_t seq;			/* iteration in its region's sequence */
	int32_t tile;			/* number of the tile on this EU, from 0 */
	int16_t task;
	int16_t cause_task;		/* NONE */
	uint8_t lane, replica, seu, cause;
	uint8_t late;			/* measured: observed by a lane that arrived after its end, so
					 * `end` is an upper bound */
	uint8_t held;			/* simulated: the cause of the time from `ready` to `issue`;
					 * CAUSE_NONE: only the cost of the waits themselves */
	int16_t held_task;		/* NONE */
	int32_t before;			/* if warpgroups of the lane run separately, the event is that of the
					 * last one: cycles from the earliest start of one to `start` */
	int32_t part;			/* ... and the events of the other ones are phase_line.parts[part] on, */
	uint8_t nparts;			/* so many; 0: this event is all */
	uint8_t group;			/* number of the warpgroup; 0 if they do not run separately */
};
_Static_assert(sizeof(struct event) <= 64, "there are millions of events");

struct seu_use {
	double busy;			/* cycles at work; of a copy engine, cycles that it takes to issue copies */
	double share;			/* of the phase's time, 0 to 1 */
	double under_way;		/* share of the time in which anything is under way: of a copy engine, transfers */
	bool by_threads;		/* threads copy instead: it has no work of its own */
};

/* The cost of an instance of an sTask, in cycles unless stated otherwise. */
struct task_cost {
	double lane;			/* of its lane, to issue it to an asynchronous unit */
	double shared;			/* share of its unit's cycles that wait for shared memory, 0 to 1 */
	double l2, global;		/* of the EU's shares of L2 and device memory */
	double latency;			/* from the end of the work to completion ... */
	double handover;			/* ... and of that, to hand its value to another lane */
	bool by_threads;		/* a copy by the threads of its lane, as its kernel says */
	bool shifted;			/* ... through registers, which limit how much of it is in flight */
};

struct entry_cost;			/* price.h */

/* One phase, on the EU that finishes last. */
struct phase_line {
	int phase;
	int eus;			/* that have tiles */
	int eu;				/* number of the EU whose events these are */
	int64_t tiles;			/* of the grid */
	int64_t cycles;			/* from start to the end of the last EU */
	double ii;			/* initiation interval: cycles per iteration of the innermost loop
					 * that runs most, in the steady state (measure.h) */
	int ii_loop;			/* that loop; NONE: the tile loop */
	int ii_step;			/* iterations between the completions that are compared */
	double res_mii, rec_mii;	/* lower bounds on ii, see bounds.h */
	int binding_seu;		/* the resource that determines res_mii, see binding_name (bounds.h) */
	struct seu_use seu[SEU_MAX];
	double memory_share;		/* utilization of the EU's share of L2 or device memory, whichever is
					 * higher; simulated only */
	const struct task_cost *costs;	/* by sTask of the graph; NULL: measured */
	const struct entry_cost *entry_costs;	/* by entry of the simulated plan; NULL: measured */
	VEC(struct event) events;	/* the first ones of that EU, in order of issue, as many as were kept */
	VEC(struct event) parts;	/* what other warpgroups did in these events (struct event), in their order */
};

/* Event `i` of a phase as warpgroup `group` of its lane did it, counted from 0; the last one's is the event itself. */
static inline const struct event *event_part(const struct phase_line *p, int i, int group)
{
	const struct event *e = &p->events.v[i];

	return group < e->nparts ? &p->parts.v[e->part + group] : e;
}

struct timeline {
	struct arena arena;
	const struct plan *plan;	/* borrowed */
	bool priced;			/* simulated with the costs of its kernels (price.h) */
	int spare_registers;		/* priced: registers of a thread that remain, in the lane with the fewest */
	const char *unpriced;		/* why there are no kernels; NULL: there are, or none were asked for */
	int64_t unpriced_bytes;		/* of shared memory that they would need, if that is why; else 0 */
	bool measured;			/* by stamps of a traced kernel (run/trace.h); else simulated */
	bool logical;			/* measured without a clock: one cycle is one stamp */
	double clock_hz;		/* of the EUs; 0: not known */
	double uncertainty;		/* simulated: relative error of `seconds` that nine of ten plans do not
					 * exceed; 0: not known */
	double uncertainty_least;	/* simulated, if that is not known: it is no smaller; 0: not known */
	bool products_busy;		/* simulated: a matrix unit works most of the time */
	const char *cache;		/* state of L2 at the start: "cold L2"; NULL: not known */
	double watts;			/* simulated: power of the device; 0: not known */
	struct effort effort, joules;	/* simulated: of all EUs and phases (device.h) */
	double overhead;		/* measured: time that the stamps add to the kernel, over its own;
					 * NAN: not known */
	int nphases;
	struct phase_line *phases;
	int64_t cycles;			/* all phases */
	double seconds;
	double flops;			/* of the program */
	int64_t nevents;		/* simulated on all EUs, kept or not */
};

/* Make an empty timeline for all phases of the plan's program; the plan is borrowed. *out is set before the
 * first allocation that can fail, so that the owner can free it with timeline_free. */
void timeline_new(struct mem *mem, const struct plan *p, struct timeline **out);
void timeline_free(struct timeline *t);
/* The largest cycle of a valid event: cycles * columns of a picture do not overflow. */
#define CYCLES_MAX ((int64_t)1 << 50)

/* Does the event name an sTask, lane and sEU of the plan, and possible times? Traces may hold anything. */
bool event_is_sound(const struct plan *p, const struct event *e);
/* ... and can it index tables by lane and replica? */
static inline bool event_is_placed(const struct plan *p, const struct event *e)
{
	return event_is_sound(p, e) && e->lane < LANES_MAX && e->replica < REPLICAS_MAX;
}

/* A time of an event, to sort events by it. */
struct event_time {
	int64_t at;
	int event;
};
/* Comparison for qsort: the earlier first; of equal times, the event with the lesser number. */
int event_time_compare(const void *a, const void *b);
/* The phase that takes longest, which numbers of the complete timeline such as II refer to. */
const struct phase_line *timeline_longest(const struct timeline *t);
/* Is an iteration of both phases as much work: the same loop of the same phase, with the same tile? Otherwise
 * their II do not compare. */
bool phases_iterate_alike(const struct timeline *a, const struct phase_line *x, const struct timeline *b,
	const struct phase_line *y);

/* ---- sums over the kept events of a phase, by which timelines are compared ---------------- */

struct task_sum {
	int64_t n;			/* events that were kept */
	double duration;		/* from issue to completion */
	double wait;			/* from when the lane reached it to its issue */
	double held;			/* of the lane: until it reached the next instance */
	int64_t late;			/* events whose end is an upper bound (struct event) */
	int lane;
};

/* By sTask of the graph; allocated in `a`. */
struct task_sum *phase_sums(struct arena *a, const struct timeline *t, int phase);

#endif
