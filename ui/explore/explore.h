/* explore.h - the explorer: an interactive screen for a timeline, plan, graph or kernel.
 *
 * The show methods (lua/std/show.lua) open it; it has the terminal until the user leaves.
 */
#ifndef UI_EXPLORE_EXPLORE_H
#define UI_EXPLORE_EXPLORE_H

#include <lua.h>

#include "explore/term.h"

/* Add core.explore, core.keys and core.search_screen, for lua/std. May raise, so call it protected. */
void lua_open_explore(lua_State *L);
/* For tests: explorers that are opened from now on use this instead of the terminal; NULL: the terminal again.
 * Borrowed. */
void explore_setup(const struct term_setup *setup);
/* Is there a terminal to open? If not, show methods print instead. */
bool explore_has_term(void);
/* Open it. If it cannot be used, push nil and the reason, the results of the function of Lua that wants it: false. */
bool explore_open_term(lua_State *L, struct term **out);

#endif
