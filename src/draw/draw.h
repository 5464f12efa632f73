/* draw.h - graphs, plans and timelines as text.
 *
 * Each function appends to `out` lines of at most `width` columns, where that is possible. Drawings only read;
 * they compute nothing about a plan that other code needs, and never fail. Working memory is taken from the
 * arena of `out`.
 */
#ifndef DRAW_DRAW_H
#define DRAW_DRAW_H

#include "draw/cells.h"
#include "plan/check.h"
#include "sim/blame.h"
#include "sim/lookup.h"

struct draw_options {
	int width;			/* columns; 0: 80 */
	unsigned flags;			/* enum draw_flags */
};

/* Options may be NULL: 80 columns of UTF-8 without colour. */

/* Axes, sTasks, buffers and dependences as tables. */
void draw_graph_table(const struct graph *g, const struct draw_options *o, struct buf *out);
/* For Graphviz: a cluster for each phase and loop. */
void draw_graph_dot(const struct graph *g, struct buf *out);
/* A layered drawing: flow within an iteration runs downward, loops are frames, flow to a later iteration is a dashed
 * line upward, and reuse of slots is listed below. A list, if the drawing does not fit. */
void draw_graph_layers(const struct graph *g, const struct draw_options *o, struct buf *out);
/* The same of those sTasks alone that shown[] says, and of what is between them; NULL: of all. */
void draw_graph_part(const struct graph *g, const bool *shown, const struct draw_options *o, struct buf *out);

/* Each lane's order with its waits, the rings, and the results of plan_check; usage and problems may be NULL. */
void draw_plan(const struct plan *p, const struct usage *usage, const struct problems *problems,
	const struct draw_options *o, struct buf *out);

enum timeline_rows {
	TIMELINE_LANES,			/* a row for each lane, then the asynchronous sEUs */
	TIMELINE_SEUS,			/* sEUs only */
};

/* For timeline_view.from: begin in the steady state of the first tile that has one, or at the beginning of the
 * phase, if no tile has one or all events fit. */
#define TIMELINE_STEADY ((int64_t)-1)

/* What to show of a timeline; NULL: the steady state of the first phase. */
struct timeline_view {
	int phase;			/* index into timeline.phases */
	enum timeline_rows by;
	int tile;			/* begin with this tile, counted from 0, ... */
	int64_t from;			/* ... or with this cycle, if it is later */
	int64_t to;			/* end before it; 0: where an sTask of the steady state is still about six
					 * columns wide */
	const struct lookup *lookup;	/* of the phase; NULL: the drawing makes its own */
	const int *deep;		/* by sEU: rows of an asynchronous one, at least; NULL: as many as events
					 * in sight need */
	const bool *shown;		/* by sTask: is it drawn, and its lane? NULL: all are */
	struct overview *overview;	/* of the phase and of `shown`, where events are too many to draw each;
					 * NULL: each event is drawn */
};

/* What of an event a column shows: its work, its time in the queue of a busy sEU, the waiting of its lane, its
 * issue. */
enum chart_part { PART_WORK, PART_QUEUED, PART_HELD, PART_ISSUE };

/* Where the rows of a chart are, and which event each of their columns shows; for displays with a mouse. */
struct chart_row {
	int y;				/* in the grid */
	const int *event;		/* by column: an event of the phase; NONE */
	const uint8_t *part;		/* by column: enum chart_part */
};

struct chart_map {
	int left, cols;			/* columns of the grid that are time */
	int64_t from, to;		/* cycles that they show */
	int top, bottom;		/* rows of the grid: [top, bottom) */
	int deep[SEU_MAX];		/* rows of each asynchronous sEU */
	int nrows;
	struct chart_row *row;
};

/* Rows of events over a time axis, then utilisation, bounds and legend. */
void draw_timeline(const struct timeline *t, const struct timeline_view *v,
	const struct draw_options *o, struct buf *out);
/* Only the rows and axes, `width` columns wide, in `a`. map may be NULL. */
void timeline_cells(const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a, struct cells *out, struct chart_map *map);
/* How busy each row is, and mostly with what, in steps of cycles, of twice as many, and so on, so that a million events
 * are drawn as fast as a hundred. In `a`. */
struct overview *overview_new(struct arena *a, const struct timeline *t, int phase, const bool *shown);
/* Time, speed, bounds and waits in a few lines. */
void draw_timeline_summary(const struct timeline *t, const struct draw_options *o, struct buf *out);

/* The trace-event format in JSON, for Perfetto and chrome://tracing. names: of the processes; script: stored in the
 * trace, NULL: none. */
void trace_json(const struct timeline *const *t, const char *const *names, int n, const char *script, struct buf *out);

/* ---- parts of drawings, for other displays ---- */

/* How an sTask looks in all rows. */
struct task_key {
	char letter[2];			/* unique in a phase, as long as there are letters */
	const char *brief;		/* what follows the last '_' of the name, or the name; of one letter: `letter` */
	const char *fill;		/* of a bar without colour, by kind of sEU */
	struct style bar, tick;
};
/* By sTask of the graph; in `a`. */
struct task_key *task_keys(struct arena *a, const struct graph *g);

/* "w", "o", "u", "mem", "d", or "" for CAUSE_NONE; what each means is in the legends. No sTask has one as its
 * letter. */
const char *cause_mark(int cause);

struct reason {
	int cause, task;		/* enum cause; NONE */
};

/* Why an event's lane was held from `ready` to `issue`, by the plan and the event's one cause, which is the last
 * one. If the event also stood in the queue of its sEU, the cause is of that; the lane then waited for one of the
 * sTask's waits, and it is known for which only if there is just one. */
struct reason event_held_for(const struct plan *p, const struct event *e);
/* The same, but as the simulation knows it, if the timeline is simulated; of several waits, the one that ended last. */
struct reason event_held_by(const struct timeline *t, const struct event *e);

/* "for mma_qk", "for its sEU, busy with softmax": what is waited for; in `a`, "" for CAUSE_NONE. */
const char *reason_text(struct arena *a, const struct plan *p, struct reason r);
/* What is waited for: "mma_qk", at a barrier the lane "c1". Borrowed; NULL: it is not known. */
const char *reason_on(const struct plan *p, struct reason r);

/* "c0", "c0.1" of a lane with replicas; in `a`. */
const char *lane_label(struct arena *a, const struct plan *p, int lane, int replica);
/* "c0 wg1": one of several warpgroups of a lane that drift apart. */
const char *warpgroup_label(struct arena *a, const struct plan *p, int lane, int group);

/* "tma", or "threads (tma)" if threads copy instead; in `a`. */
/* Do threads copy what the unit, a copy engine, would? */
bool unit_is_replaced(const struct phase_line *p, const struct vdevice *d, int seu);
const char *unit_label(struct arena *a, const struct phase_line *p, const struct vdevice *d, int seu);
/* The share of the time in which the row of the unit shows anything: of a copy engine, transfers under way. */
double unit_share(const struct phase_line *p, const struct vdevice *d, int seu);
/* "issuing 2.7 %": how much of the time a copy engine takes to issue what is under way; "" if nothing differs. */
const char *unit_issue(struct arena *a, const struct phase_line *p, const struct vdevice *d, int seu);

/* "cycles", or "stamps" of a timeline without a clock. */
const char *timeline_unit(const struct timeline *t);

/* Sentences about a timeline, in `a`; "" if there is nothing to say. */
/* "on h200, measured at 1.65 GHz; stamps cost 1.2 %" */
const char *timeline_origin(struct arena *a, const struct timeline *t);
/* What stands behind a predicted time: " +- 6.6 %", or that it is not known, and why. */
const char *uncertainty_text(struct arena *a, const struct timeline *t);
const char *timeline_total(struct arena *a, const struct timeline *t);
/* Where power would limit the clock of a prediction, but the device has no numbers of power: that this was left
 * out; else "". */
const char *timeline_no_power(const struct timeline *t);
/* "loop n: II 1,312, 4.1 % above the bound; ResMII 1,260 (tensor), RecMII 980" */
const char *timeline_ii(struct arena *a, const struct timeline *t, const struct phase_line *p);
/* The main causes of waiting, as shares of the time of their lanes. */
const char *timeline_waits(struct arena *a, const struct timeline *t, const struct phase_line *p);

/* "softmax for products of its own (mma_qk)", "softmax on cuda", "softmax issuing"; no_slices: without the numbers of
 * slices of split sTasks. */
const char *blame_text(struct arena *a, const struct plan *p, const struct blame_part *b, bool no_slices);
/* What is waited for there; NULL if the lane does not wait. */
const char *blame_awaited(struct arena *a, const struct plan *p, const struct blame_part *b, bool no_slices);

/* Is any sTask of the phase on the lane? */
bool lane_has_entries(const struct plan *p, int lane, int phase);
/* "load_k, mma_pv +1, mma_qk.1 issued": what an sTask waits for, and of how many iterations before. */
const char *waits_text(struct arena *a, const struct plan *p, int task);

#endif
