/* lprogress.h - what a search has tried, read from tables. */
#ifndef LUA_LPROGRESS_H
#define LUA_LPROGRESS_H

#include <lua.h>

#include "base/arena.h"
#include "draw/progress.h"

/* A field of the table at idx, without its metatable: a number (NAN: it is none), a text in `a` (NULL). */
double raw_number(lua_State *L, int idx, const char *key);
const char *raw_text(lua_State *L, int idx, const char *key, struct arena *a);

/* The list at idx (nil: it is empty) of {trial=, predicted=, measured=, status=, best=, phase=, text=}; what
 * is no table is left out. Each field may be missing. Needs three places of the stack. */
void read_history(lua_State *L, int idx, struct arena *a, struct progress_curve *out);

#endif
