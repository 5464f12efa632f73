/* view.h - a view: one way to show the model.
 *
 * A view is a file, view_NAME.c, that defines a struct view_ops, and an entry in VIEWS. The model, with plan,
 * timelines and selection, is shared by all views. A view has only its own state, such as how far it is
 * scrolled, and is notified by `changed` when the plan or the selection has changed.
 */
#ifndef UI_EXPLORE_VIEW_H
#define UI_EXPLORE_VIEW_H

#include "explore/actions.h"
#include "explore/model.h"
#include "explore/term.h"

struct view {
	const struct view_ops *ops;
	struct model *m;
	void *own;			/* ops->size bytes */
};

struct view_ops {
	const char *name;		/* of its tab: "timeline" */
	unsigned groups;		/* enum action_group, in addition to GROUP_ANY */
	size_t size;			/* of its own state, which begins as zero */
	/* Why the view cannot show the model ("there is no timeline"); NULL if it can. */
	const char *(*lacks)(const struct model *m);
	/* Draw onto all of the grid, which is blank and of any size, down to 1 x 1. Memory is taken from m->frame. */
	void (*draw)(struct view *v, struct cells *out);
	/* Perform an action; false if it is not one of the view's. k: the key; for the mouse, `a` is ACT_NONE and k has
	 * the coordinates in the view's grid. */
	bool (*act)(struct view *v, enum action a, const struct key *k);
	/* What Esc removes in the view before the selection, as a verb for the bar of keys: "remove marks". `act` does it.
	 * NULL, or it returns NULL: nothing. */
	const char *(*cancels)(const struct view *v);
	void (*changed)(struct view *v);	/* may be NULL */
	/* Find a text (ACT_SEARCH): direction 1 or -1 searches from the next or previous line on, 0 from the cursor's line.
	 * False if it is not found. NULL: model_find_task is used. */
	bool (*find)(struct view *v, const char *text, int direction);
	bool picks;			/* sTasks can be picked up here, where GROUP_EDIT is */
};

/* -1 or 1 if the wheel was turned up or down, else 0. */
static inline int wheel_step(const struct key *k)
{
	return (k->code == KEY_CODE_WHEEL_DOWN) - (k->code == KEY_CODE_WHEEL_UP);
}

#define VIEWS(X) \
	X(timeline) X(plan) X(graph) X(kernel) X(grid) X(step) X(compare) X(problems)

enum view_id {
#define X(name) VIEW_##name,
	VIEWS(X)
#undef X
	VIEW_COUNT
};
extern const struct view_ops
#define X(name) view_##name,
	VIEWS(X)
#undef X
	view_help, view_changes;	/* stand in for any of the others */

#endif
