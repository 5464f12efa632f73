/* draw.h - everything as text.
 *
 * Each function appends to `out` what a person should see of a graph, a plan, a
 * timeline or a vDevice, in lines of at most `width` columns where that is possible.
 * Nothing here decides or computes anything about a plan that others would need; it
 * reads, and never fails. Working memory is taken from the arena of `out`.
 */
#ifndef DRAW_DRAW_H
#define DRAW_DRAW_H

#include "draw/cells.h"
#include "plan/check.h"
#include "sim/blame.h"
#include "sim/timeline.h"

struct draw_options {
	int width;			/* columns; 0: 80 */
	unsigned flags;			/* enum draw_flags */
};

/* Options may be NULL everywhere: 80 columns of UTF-8 without colour. */

/* Axes, sTasks, buffers and dependences as tables. */
void draw_graph_table(const struct graph *g, const struct draw_options *o, struct buf *out);
/* For Graphviz: a cluster for each phase and loop. */
void draw_graph_dot(const struct graph *g, struct buf *out);
/* A layered drawing: what flows within an iteration runs downward, loops are frames,
 * what flows to a later iteration is a dashed line upward, and reuse is listed below.
 * Where it cannot fit, a list. */
void draw_graph_layers(const struct graph *g, const struct draw_options *o, struct buf *out);

/* Each lane's order with its waits, the rings, and what plan_check found; usage and
 * problems may be NULL. */
void draw_plan(const struct plan *p, const struct usage *usage, const struct problems *problems,
	const struct draw_options *o, struct buf *out);

/* Parts of that: one lane's order with its waits; the rings, and how much of an EU is in use. */
void draw_lane(const struct plan *p, int lane, const struct usage *usage,
	const struct draw_options *o, struct buf *out);
void draw_usage(const struct plan *p, const struct usage *usage, const struct draw_options *o,
	struct buf *out);

enum timeline_rows {
	TIMELINE_LANES,			/* a row a lane, then the asynchronous sEUs */
	TIMELINE_SEUS,			/* sEUs only */
};

/* What to show of a timeline; all zero (or NULL): the beginning of the first phase. */
struct timeline_view {
	int phase;			/* index into timeline.phases */
	enum timeline_rows by;
	int tile;			/* begin with this tile, counted from 0, ... */
	int64_t from;			/* ... or with this cycle, if it is later */
	int64_t to;			/* end before it; 0: where an sTask of the steady
					 * state is still some six columns wide */
	int first, events;		/* look at these of the phase's events only: who knows that no
					 * other is in sight need not ask all; 0, 0: at all */
	const int *deep;		/* by sEU: rows of an asynchronous one, at least; NULL: what is
					 * in sight needs */
	struct overview *overview;	/* of the phase: drawn where events are too many to be told
					 * apart; NULL: they are drawn one by one however many */
};

enum chart_part { PART_WORK, PART_QUEUED, PART_HELD, PART_ISSUE };

/* Where a chart's rows are, and what stands in each of their columns: for displays that
 * one can point at. */
struct chart_row {
	int y;				/* in the grid */
	const int *event;		/* by column: of the phase's events; NONE */
	const uint8_t *part;		/* by column: enum chart_part */
};

struct chart_map {
	int left, cols;			/* columns of the grid that are time */
	int64_t from, to;		/* that they show */
	int top, bottom;		/* rows of the grid, to the one below */
	int deep[SEU_MAX];		/* rows that each asynchronous sEU has */
	int nrows;
	struct chart_row *row;
};

/* Rows of events over a time axis, then utilisation, bounds and legend. */
void draw_timeline(const struct timeline *t, const struct timeline_view *v,
	const struct draw_options *o, struct buf *out);
/* The rows and axes alone, `width` columns wide, for any display; in `a`. map may be NULL. */
void timeline_cells(const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a, struct cells *out, struct chart_map *map);
/* How much of each moment a row is at work, and mostly at what, in steps of cycles and of twice as
 * many, so that a million events are drawn as quickly as a hundred. In `a`. */
struct overview *overview_new(struct arena *a, const struct timeline *t, int phase);
/* How long, how fast, how near to the bounds, who waited for what: a few lines. */
void draw_timeline_summary(const struct timeline *t, const struct draw_options *o,
	struct buf *out);

/* ---- for displays that put their own drawings together ---- */

/* How an sTask looks in every row. */
struct task_key {
	char letter[2];			/* unique in a phase while letters last */
	const char *brief;		/* what follows the last '_' of the name, or all of it */
	const char *fill;		/* of a bar without colour, by kind of sEU */
	struct style bar, tick;
};
/* Of all sTasks of the graph; in `a`. */
struct task_key *task_keys(struct arena *a, const struct graph *g);

/* 'w', 't', 'u', 'm', or '\0' for CAUSE_NONE. */
char cause_letter(int cause);

struct reason {
	int cause, task;		/* enum cause; NONE */
};

/* Why an event's lane was held from `ready` to `issue`, by the plan and the event's one cause, which is the last
 * one. If the event also stood in the queue of its sEU, the cause is of that; the lane then waited for one of the
 * sTask's waits, and it is known for which only if there is just one. */
struct reason event_held_for(const struct plan *p, const struct event *e);
/* The same, but as the simulation knows it, if the timeline is simulated. */
struct reason event_held_by(const struct timeline *t, const struct event *e);

/* "c0", "c0.1" of a lane with replicas; in `a`. */
const char *lane_label(struct arena *a, const struct plan *p, int lane, int replica);

/* "cycles", or what a timeline without a clock counts instead. */
const char *timeline_unit(const struct timeline *t);

/* Sentences about a timeline; in `a`, empty where there is nothing to say. */
/* "on h200, measured at 1.65 GHz; stamps cost 1.2 %" */
const char *timeline_origin(struct arena *a, const struct timeline *t);
const char *timeline_total(struct arena *a, const struct timeline *t);
/* "loop n: II 1,312, 4.1 % above the bound; ResMII 1,260 (tensor), RecMII 980" */
const char *timeline_ii(struct arena *a, const struct timeline *t, const struct phase_line *p);
/* The largest causes of waiting, as a share of their lane's time. */
const char *timeline_waits(struct arena *a, const struct timeline *t, const struct phase_line *p);

/* "softmax for products of its own (mma_qk)", "softmax on cuda", "softmax issuing"; whole: without
 * the numbers of the parts of split sTasks. */
const char *blame_text(struct arena *a, const struct plan *p, const struct blame_part *b, bool whole);
/* What is waited for there; NULL if the lane is at work itself, or kept from it by nobody. */
const char *blame_awaited(struct arena *a, const struct plan *p, const struct blame_part *b, bool whole);

/* Is any sTask of the phase on the lane? */
bool lane_has_entries(const struct plan *p, int lane, int phase);
/* "load_k, mma_pv +1, mma_qk.1 issued": what an sTask waits for, how many iterations before. */
const char *waits_text(struct arena *a, const struct plan *p, int task);

#endif
