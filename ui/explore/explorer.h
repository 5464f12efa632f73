/* explorer.h - the state of an open explorer; for explore.c and its binding to Lua. */
#ifndef UI_EXPLORE_EXPLORER_H
#define UI_EXPLORE_EXPLORER_H

#include "explore/view.h"

struct explorer {
	struct model m;
	struct term *term;
	struct view views[VIEW_COUNT], helper, changes;
	struct view *view;		/* that is shown, or that `over` hides */
	struct view *over;		/* helper or changes; NULL */
	bool done;
	bool leaving;			/* once the plan is saved */
	char path[256], question[512];	/* where to save it, if the file may be replaced, and how that is asked */
	bool interrupted;		/* it ended by Ctrl-C, or because the terminal is gone */
	struct lua_State *L;		/* for lexplore.c: the caller, */
	int options;			/* and the stack index of its table of options */
};

/* Create the views; the model is filled in and the terminal open before. first: enum view_id. */
void explorer_open_views(struct explorer *x, int first);
/* What Esc does now, as a verb for the bar of keys: "show all". It does one thing at a time: what hides the view or asks
 * for a position goes first, then the filter, then marks, then the selection. NULL: there is nothing to cancel. */
const char *explorer_cancels(const struct explorer *x);
/* Draw and take keys until the user leaves. */
void explorer_run(struct explorer *x);
/* Give back the terminal and all memory; idempotent. */
void explorer_close(struct explorer *x);

#endif
