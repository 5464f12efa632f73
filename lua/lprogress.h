/* lprogress.h - reads the trials of a search from Lua tables. */
#ifndef LUA_LPROGRESS_H
#define LUA_LPROGRESS_H

#include <lua.h>

#include "base/arena.h"
#include "draw/progress.h"

/* A field of the table at idx, without metamethods: a number, or NAN; a text in `a`, or NULL. */
double raw_number(lua_State *L, int idx, const char *key);
const char *raw_text(lua_State *L, int idx, const char *key, struct arena *a);

/* Read the list at idx (nil: empty) of {trial=, predicted=, measured=, status=, best=, phase=, text=}, whose fields may
 * be missing; elements that are no tables are skipped. Needs three slots of the stack. */
void read_history(lua_State *L, int idx, struct arena *a, struct progress_curve *out);

#endif
