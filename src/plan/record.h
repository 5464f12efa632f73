/* record.h - the log of a history; for history.c and history_edit.c alone. */
#ifndef PLAN_RECORD_H
#define PLAN_RECORD_H

#include "plan/history.h"

enum edit_kind {
	EDIT_LANE, EDIT_DROP_LANE, EDIT_APPEND, EDIT_MOVE, EDIT_REMOVE, EDIT_WAIT, EDIT_UNWAIT, EDIT_DROP_WAIT,
	EDIT_VERSIONS, EDIT_GRID, EDIT_LAUNCH,
	/* edits of the graph, from here on */
	EDIT_WINDOW, EDIT_SPLIT_OFF, EDIT_FETCH, EDIT_DIRECT, EDIT_SWAP, EDIT_SPLIT, EDIT_ALIAS, EDIT_PROPAGATE, EDIT_RESTART };

/* One line of the log. Which fields mean what depends on the kind. */
struct record {
	enum edit_kind kind;
	int step;			/* records of one edit share it */
	const char *name, *other, *lane;
	int a, b, c;			/* c of EDIT_WAIT: was it added by an edit that needs it? a of EDIT_GRID: does it divide loops
					 * otherwise than before? a of EDIT_LAUNCH: enum launch_next */
	struct lane numbers;		/* of EDIT_LANE: what it says of the lane; without its name */
	struct grid_plan grid;
	const struct move *move;
	const struct tiling *tiling;
	const char *const *names;	/* b of them; fewer than none of EDIT_LAUNCH: it says nothing of tensors */
	struct srcloc loc;
};

/* A log as it was. No record of it is ever changed: history_commit. */
struct mark {
	struct record *log;
	int n, done;
};

struct history {
	struct arena arena;		/* the log */
	struct mem *mem;
	const struct graph *base;
	const struct vdevice *device;
	VEC(struct record) log;
	int done;			/* records in force; the others can be redone */
	int loaded;			/* the first so many made the plan that was loaded, and are not undone */
	int step;
	VEC(struct mark) marks;
	const char *file;		/* of the last record: most come from one file */
	struct srcloc made_at;
	/* what the log makes; next_*: under construction, so that they can be freed */
	struct plan *plan, *next_plan;
	struct graph *graph, *next_graph;	/* NULL: base */
};

/* The sTask that s is to come before or after: of a split one, the slice with the number that s has; if their numbers
 * differ, the last slice or the first. */
const char *matching_slice(struct history *h, const struct graph *g, const char *name, const struct stask *s, bool last);
/* Do to a plan what a record says, of each slice if its name means several. */
NODISCARD enum err_code record_apply(struct history *h, struct plan *p, const struct record *r, struct err *e);
/* The first of n records in force: the one after the last EDIT_RESTART. Records before it are kept for undo alone. */
int records_first(const struct record *log, int n);
/* Make next_plan a copy of the present plan; free what is under construction. */
void history_copy_to_next(struct history *h);
void history_drop_next(struct history *h);
/* Append the records of one edit to the log, forgetting what was undone, and bring the plan up to date. A single record
 * that leaves the graph as it is is applied to the present plan; all else is replayed. The old log stays until the edit
 * is good. */
NODISCARD enum err_code history_commit(struct history *h, struct record *r, int n, struct err *e);

#endif
