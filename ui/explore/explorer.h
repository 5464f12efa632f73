/* explorer.h - one explorer that is open; for explore.c and its binding to Lua. */
#ifndef UI_EXPLORE_EXPLORER_H
#define UI_EXPLORE_EXPLORER_H

#include "explore/view.h"

struct explorer {
	struct model m;
	struct term *term;
	struct view views[VIEW_COUNT], helper;
	struct view *view;		/* shown, unless the help is */
	bool help;
	bool done;
	bool cut_short;			/* by Ctrl-C, or as the terminal is gone */
	struct lua_State *L;		/* that it was called from, and where in its stack the table */
	int options;			/* of what is shown is: for lexplore.c */
};

/* The model is complete, and the terminal open. */
void explorer_open_views(struct explorer *x, int first);
/* Until the user leaves. Draws into m.frame. */
void explorer_run(struct explorer *x);
/* Give back terminal and memory; idempotent. */
void explorer_close(struct explorer *x);

#endif
