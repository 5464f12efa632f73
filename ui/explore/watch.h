/* watch.h - the screen that shows a running search: its best plan so far, its curve, its candidates.
 *
 * Drawn from a struct watched each time; keeps no state. lwatch.c shows it on the terminal.
 */
#ifndef UI_EXPLORE_WATCH_H
#define UI_EXPLORE_WATCH_H

#include <lua.h>

#include "draw/progress.h"

struct watched {
	const char *title, *phase;	/* "gemm on h200", "device" */
	const char *const *fact;	/* lines: the best plan, the bound, the effort so far */
	int nfacts;
	const char *keys;		/* the last line: which keys there are */
	struct progress_curve curve;	/* all trials */
};

/* Draw onto all of the grid, which is blank and of any size. */
void watch_draw(const struct watched *s, struct cells *out);
/* Add core.search_screen to the table on top of the stack. May raise. */
void lua_open_watch(lua_State *L);

#endif
