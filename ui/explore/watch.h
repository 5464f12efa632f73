/* watch.h - a search as one watches it: what it has found, its curve, its candidates.
 *
 * Drawn anew from what is told each time; keeps nothing. lwatch.c shows it on the terminal
 * while the search runs.
 */
#ifndef UI_EXPLORE_WATCH_H
#define UI_EXPLORE_WATCH_H

#include <lua.h>

#include "draw/progress.h"

struct watched {
	const char *title, *phase;	/* "gemm on h200", "device" */
	const char *const *fact;	/* lines: the best, the bound, what it took so far */
	int nfacts;
	const char *keys;		/* what can be done: the last line */
	struct progress_curve curve;	/* all that was tried */
};

/* Onto the whole grid, which is blank and may be of any size. */
void watch_draw(const struct watched *s, struct cells *out);
/* Add core.search_screen, for lua/std: the table of core's functions is on top. May raise. */
void lua_open_watch(lua_State *L);

#endif
