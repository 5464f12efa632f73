/* history.h - a plan under editing, with undo and redo.
 *
 * Keeps the log of edits, by name, and the plan (and, after split_off, split, alias or Propagate, the
 * graph) that they make. An edit that fails leaves everything as it was. Undo plays
 * the log again without its last edit, so what comes back is exact.
 */
#ifndef PLAN_HISTORY_H
#define PLAN_HISTORY_H

#include "plan/plan.h"

struct history;

/* What one element of plan:wait's list says. */
struct wait_on {
	const char *task;
	int distance;			/* or DISTANCE_AUTO */
	enum wait_when when;
};

struct versions_of {
	const char *buffer;
	int versions;
};

/* graph and device are borrowed and outlive the history. *out is set first, so that the caller can free it if memory
 * runs out in here. */
void history_new(struct mem *mem, const struct graph *g, const struct vdevice *d, struct history **out);
/* The source location at which the user made the plan, for problems that are of no statement. */
void history_made_at(struct history *h, struct srcloc loc);
void history_free(struct history *h);
/* Of which the plan was made, before any edit. */
const struct program *history_program(const struct history *h);
/* The present plan, until the next edit. It is sorted. */
struct plan *history_plan(struct history *h);

NODISCARD enum err_code history_drop_lane(struct history *h, const char *name, struct srcloc loc, struct err *e);
/* numbers: all of the lane but its name and location. */
NODISCARD enum err_code history_lane(struct history *h, const char *name, const struct lane *numbers, struct srcloc loc,
	struct err *e);
NODISCARD enum err_code history_append(struct history *h, const char *task, const char *seu,
	const char *lane, int at, bool by_rows, struct srcloc loc, struct err *e);
/* Change the entries of the named sTasks (plan_move), as one edit. The name of a split task means all its slices; then
 * before= and after= may name another split task, and mean its slice with the same number. repair_waits: also adapt
 * waits and versions (plan_repair_waits). If that fails or is interrupted by *stop, nothing changes. */
NODISCARD enum err_code history_move(struct history *h, const char *const *tasks, int n, const struct move *m,
	bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e);
/* The same for sTasks that are not in the plan: append each, by default on the lane of the sTask that it comes before
 * or after. */
NODISCARD enum err_code history_insert(struct history *h, const char *const *tasks, int n, const struct move *m,
	bool repair_waits, const struct stop *stop, struct srcloc loc, struct err *e);
NODISCARD enum err_code history_remove(struct history *h, const char *task, struct srcloc loc, struct err *e);
NODISCARD enum err_code history_wait(struct history *h, const char *task, const struct wait_on *on,
	int n, struct srcloc loc, struct err *e);
NODISCARD enum err_code history_unwait(struct history *h, const char *task, const char *on,
	struct srcloc loc, struct err *e);
/* Waits that are necessary then come with it, if none was missing before. */
NODISCARD enum err_code history_versions(struct history *h, const struct versions_of *v, int n,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code history_grid(struct history *h, const struct grid_plan *g, struct srcloc loc, struct err *e);
/* ready: n names, or n < 0 (plan_launch). */
NODISCARD enum err_code history_launch(struct history *h, enum launch_next next, const char *const *ready, int n, struct srcloc loc,
	struct err *e);
/* Let the last steps to a value be an sTask of its own. Before any split. */
NODISCARD enum err_code history_split_off(struct history *h, const char *value, const char *task, int steps,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code history_fetch(struct history *h, const char *product, const char *const *values, int n,
	struct srcloc loc, struct err *e);
/* Let one load bring what these load of one tensor, a constant apart. */
NODISCARD enum err_code history_window(struct history *h, const char *const *loads, int n, struct srcloc loc, struct err *e);
/* Exchange the operands of a product. */
NODISCARD enum err_code history_swap(struct history *h, const char *product, struct srcloc loc, struct err *e);
/* Let tasks make values where products take them. */
NODISCARD enum err_code history_direct(struct history *h, const char *const *values, int n, struct srcloc loc,
	struct err *e);
/* Let values share registers or memory of others: graph.h. One edit. */
NODISCARD enum err_code history_alias(struct history *h, const struct alias *v, int n,
	struct srcloc loc, struct err *e);
/* Split the named tasks of the program; ntasks 0: every one but loads that has the axis. Before these are appended. */
NODISCARD enum err_code history_split(struct history *h, const char *axis, int ways,
	const char *const *tasks, int ntasks, struct srcloc loc, struct err *e);
/* Change tile extents; what is appended stays. */
NODISCARD enum err_code history_propagate(struct history *h, const struct tiling *t, struct srcloc loc, struct err *e);
/* Add the waits that are needed (plan_fill_waits) as one edit; *added may be 0. */
NODISCARD enum err_code history_fill_waits(struct history *h, const struct stop *stop,
	struct srcloc loc, int *added, struct err *e);

/* The present plan is what was loaded, which is no edit: undo does not go behind it. */
void history_loaded(struct history *h);
bool history_is_loaded(const struct history *h);
/* False if there is nothing to undo or redo. */
bool history_undo(struct history *h);
bool history_redo(struct history *h);
int history_edits(const struct history *h);

/* Become the plan that another history has, of the same program on the same device, with a tile of the same
 * axes; as one edit, each statement of which stands at `loc`. */
NODISCARD enum err_code history_become(struct history *h, const struct history *other,
	struct srcloc loc, struct err *e);
/* The last n edits are one from now on: they are undone and redone together. */
void history_join(struct history *h, int n);
/* Remember the present state: the plan, and what can be undone and redone. A mark is valid as long as the history,
 * whatever was undone in between. */
int history_mark(struct history *h);
void history_return(struct history *h, int mark);
/* Is the plan made by the same edits as at the mark? */
bool history_is_at(const struct history *h, int mark);

/* A new history of the same edits, with their source locations, that can be undone; edits that are undone here are not
 * in it. Both outlive what history_new was given. *out is set as by history_new. */
void history_copy(struct history *h, struct history **out);

/* A copy of the present plan with a graph of its own, which later edits do not touch.
 * Both are set as soon as they exist, like history_new's; free the plan first. */
NODISCARD enum err_code history_snapshot(struct history *h, struct graph **g, struct plan **p, struct err *e);

#endif
