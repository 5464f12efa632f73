/* explore.h - the explorer: a timeline, plan or graph that one can touch.
 *
 * Opened from Lua by the show methods of timelines, plans, graphs and kernels
 * (lua/std/show.lua), it takes the terminal until the user leaves it.
 */
#ifndef UI_EXPLORE_EXPLORE_H
#define UI_EXPLORE_EXPLORE_H

#include <lua.h>

#include "explore/term.h"

/* Add core.explore, core.keys and core.search_screen, for lua/std. May raise: call it protected. */
void lua_open_explore(lua_State *L);
/* Explorers opened from now on use this in place of the terminal; NULL: the terminal.
 * Borrowed. For tests. */
void explore_setup(const struct term_setup *setup);
const struct term_setup *explore_setup_now(void);

#endif
