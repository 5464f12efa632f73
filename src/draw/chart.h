/* chart.h - what the parts of draw_timeline share; nobody else includes it. */
#ifndef DRAW_CHART_H
#define DRAW_CHART_H

#include "draw/draw.h"

/* How an sTask looks in every row. */
struct task_key {
	char letter[2];			/* unique in a phase while letters last */
	const char *brief;		/* what follows the last '_' of the name, or all of it */
	const char *fill;		/* of a bar without colour, by kind of sEU */
	struct style bar, tick;
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
	const struct task_key *key;	/* by sTask */
};

/* What is to be shown, with everything left open chosen; width of the whole. */
void chart_init(struct chart *c, const struct timeline *t, const struct timeline_view *v, int width,
	unsigned flags, struct arena *a);
/* Keys of all sTasks of the graph; in `a`. */
struct task_key *task_keys(struct arena *a, const struct graph *g);

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
int chart_rows(const struct chart *c, struct cells *out, int y);
/* 'w', 't', 'u', 'm', or '\0' for CAUSE_NONE. */
char cause_letter(int cause);

struct reason {
	int cause, task;		/* enum cause; NONE */
};

/* An event has one cause, the last one. Why its lane was held from `ready` to `issue`
 * is known if that is a wait; if it then stood in the queue of its sEU too, it is one
 * of the sTask's waits, and which one only if there is one. */
struct reason event_held_for(const struct plan *p, const struct event *e);

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
/* That a simulation knows no kernel, and why. */
const char *timeline_unpriced(struct arena *a, const struct timeline *t);

#endif
