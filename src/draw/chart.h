/* chart.h - what drawings of timelines share, as text and as pictures; nobody else includes it. */
#ifndef DRAW_CHART_H
#define DRAW_CHART_H

#include "draw/draw.h"

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
	int first, end;			/* of the events: those looked at */
	const int *deep;		/* as in timeline_view */
	const struct overview *overview;	/* NULL: events one by one */
	const struct task_key *key;	/* by sTask */
};

/* What is to be shown, with everything left open chosen; width of the whole. */
void chart_init(struct chart *c, const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a);

/* Does its lane go on while the sEU works? */
bool event_is_async(const struct chart *c, const struct event *e);
/* Until when it holds a row of its sEU: a matrix unit takes the next sTask while the
 * result of this one still travels. */
int64_t event_seu_end(const struct chart *c, const struct event *e);
static inline int64_t event_seu_begin(const struct event *e)
{
	return e->start - e->before;
}
/* The column of a cycle; may lie outside. */
int64_t chart_column(const struct chart *c, int64_t cycle);

/* Widest row label, then the rows themselves from row y on; returns the next row. */
int chart_label_width(const struct chart *c);
int chart_rows(const struct chart *c, struct cells *out, int y, struct chart_map *map);
/* The same from an overview: chart_many.c. */
int chart_many(const struct chart *c, struct cells *out, int y, struct chart_map *map);
/* Which copies of lanes do something in this phase, on an sEU or (-1) on any: as the events
 * say, or the plan if not all are looked at. */
void chart_used(const struct chart *c, int seu, bool used[LANES_MAX][COPIES_MAX]);
/* "c0", "c0.1" */
const char *chart_lane_label(const struct chart *c, int lane, int copy);

/* The least of 1, 2, 5 times a power of ten that is at least v. */
double nice_step(double v);

/* That a simulation knows no kernel, and why. */
const char *timeline_unpriced(struct arena *a, const struct timeline *t);

#endif
