/* view.h - one way to look at what is explored.
 *
 * A view is a file, view_NAME.c, that defines one struct view_ops, and a row in VIEWS.
 * What all views share is the model: plan, timelines, selection. A view keeps no copy of
 * that; it holds only where it has scrolled to and the like, and is told (changed) when
 * the plan or the selection is another one.
 */
#ifndef UI_EXPLORE_VIEW_H
#define UI_EXPLORE_VIEW_H

#include "explore/actions.h"
#include "explore/model.h"
#include "explore/term.h"

struct view {
	const struct view_ops *ops;
	struct model *m;
	void *own;			/* ops->size bytes, zeroed before open */
};

struct view_ops {
	const char *name;		/* "timeline": of the tab, and where a test asks for it */
	unsigned groups;		/* enum action_group, beside GROUP_ANY */
	size_t size;
	/* Why the view has nothing to show of the model ("there is no timeline"), or NULL. */
	const char *(*lacks)(const struct model *m);
	void (*open)(struct view *v);	/* once, before anything else; may be NULL */
	/* Onto the whole grid, which is blank; may be of any size, down to 1 x 1. Memory for the
	 * frame is m->frame. */
	void (*draw)(struct view *v, struct cells *out);
	/* Returns false if the action is none of the view's. k: the key, with the place in
	 * the view's grid for those of the mouse. Mouse keys come with ACT_NONE. */
	bool (*act)(struct view *v, enum action a, const struct key *k);
	void (*changed)(struct view *v);	/* may be NULL */
	/* Part of a text to look for (ACT_SEARCH); direction 1 or -1, from beyond the cursor,
	 * or with 0 from the cursor itself. False: there is none. NULL: sTasks by name, as the
	 * model finds them. */
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
	view_help;			/* stands in for any of the others */

#endif
