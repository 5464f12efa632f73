/* chart.h - what drawings of timelines share, as text and as pictures; private to src/draw.
 *
 * chart_init chooses which cycles of a phase are shown; chart_lay_out, which rows there are and which event is on
 * which of them; chart_axis, where the axis has its numbers. chart_rows.c, chart_many.c and panel.c only draw that.
 */
#ifndef DRAW_CHART_H
#define DRAW_CHART_H

#include "draw/draw.h"

/* What is drawn of an event: all of it, or what one warpgroup of its lane did. */
struct seen {
	struct event e;			/* .replica: the row of its lane, of a warpgroup that has one of its own */
	int event;			/* index in the events of the phase */
	bool joined;			/* the work on the unit is drawn with that of another warpgroup */
};

struct chart {
	const struct timeline *t;
	const struct phase_line *line;
	const struct graph *g;
	const struct vdevice *d;
	struct arena *arena;
	unsigned flags;
	enum timeline_rows by;
	int64_t from, to;		/* cycles shown; from < to */
	int left;			/* first column of time */
	int cols;			/* columns of time, at least 1 */
	const struct lookup *lookup;
	const bool *shown;		/* as in timeline_view */
	bool steady;			/* it was left open where to begin, and a steady state is what was chosen */
	VEC(struct seen) seen;		/* events in sight, and a few at the edges; where warpgroups of a lane drift
					 * apart in sight, one for each */
	uint8_t split[LANES_MAX];	/* rows of warpgroups that such a lane has; 0: it has one row, or its replicas */
	const int *deep;		/* as in timeline_view */
	const struct overview *overview;	/* NULL: events one by one */
	const struct task_key *key;	/* by sTask */
};

/* Choose what is shown, where the view leaves it open; `width`: columns of the chart with its labels. */
void chart_init(struct chart *c, const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a);
/* Show other cycles. */
void chart_set_window(struct chart *c, int64_t from, int64_t to);
/* Does any lane have rows for its warpgroups? */
bool chart_is_split(const struct chart *c);
/* The i-th event in sight. */
static inline const struct event *chart_seen(const struct chart *c, int i)
{
	return &c->seen.v[i].e;
}

/* Does its lane go on while the sEU works? */
bool event_is_async(const struct chart *c, const struct event *e);
/* The cycles in which an event holds a row of its sEU. It may end before the event does: a matrix unit takes the
 * next sTask while the result of this one is still on its way. */
int64_t event_seu_end(const struct chart *c, const struct event *e);
static inline int64_t event_seu_begin(const struct event *e)
{
	return e->start - e->before;
}
/* Is any of [begin, end) in sight? */
bool chart_shows(const struct chart *c, int64_t begin, int64_t end);

/* ---- rows ---- */

enum { CHART_DEPTH_MAX = 16 };

/* What is drawn on one row: a replica of a lane, or a warpgroup of it (seu is NONE), its use of a synchronous sEU, or some of the events
 * of an asynchronous sEU (lane is NONE). */
struct layout_row {
	int lane, replica, seu;
	const char *label;
};

struct chart_layout {
	VEC(struct layout_row) rows;
	int nlanes;			/* rows of lanes, which come first */
	int lane_row[LANES_MAX][REPLICAS_MAX], seu_row[SEU_MAX][LANES_MAX][REPLICAS_MAX];	/* NONE */
	int queue_row[SEU_MAX], queue_depth[SEU_MAX];	/* first row of an asynchronous sEU, and how many it has */
	uint8_t *depth;			/* by index in chart.seen: which of the rows of its sEU */
};

/* In the arena of the chart. `most`: rows of one asynchronous sEU, at most CHART_DEPTH_MAX; 0: one each, without
 * looking at events. `slack`: cycles by which two events of one row may overlap. */
void chart_lay_out(const struct chart *c, int most, int64_t slack, struct chart_layout *out);
/* The row on which a unit works on an event, given by its index in chart.seen; the row of the event's lane, NONE if
 * rows are by sEU. */
int layout_row_of(const struct chart *c, const struct chart_layout *l, int seen);
int layout_lane_row_of(const struct chart *c, const struct chart_layout *l, const struct event *e);

/* Columns of the widest label of a row. */
int chart_label_width(const struct chart *c);
/* Draw the rows from row y of the grid on; returns the next row. The same from an overview: chart_many.c. */
int chart_rows(const struct chart *c, struct cells *out, int y, struct chart_map *map);
int chart_many(const struct chart *c, struct cells *out, int y, struct chart_map *map);

/* ---- axes ---- */

struct chart_tick {
	double at;			/* share of the axis: 0 is its left end, 1 its right end */
	const char *text;
};

struct chart_axis {
	const char *unit;		/* "cycles", "µs"; NULL: the timeline has no clock */
	VEC(struct chart_tick) ticks;
};

/* Round numbers of cycles, or of seconds, that are at least `gap` (a share of the axis) apart. */
struct chart_axis chart_axis(const struct chart *c, bool seconds, double gap);

/* Why the simulation had to go by the plan instead of a kernel; "" if it did not. */
const char *timeline_unpriced(struct arena *a, const struct timeline *t);

#endif
