/* lfarm.h - the farm for the command line: --farm.
 *
 * All ranks run the same script. Ranks other than 0 write no files that the script asks for, and os.exit ends the farm as
 * the end of the script does. */
#ifndef LUA_LFARM_H
#define LUA_LFARM_H

#include <lua.h>

#include "base/base.h"

/* Open the farm, before any other Lua code can keep functions that write files. May raise: call it protected. Returns the
 * rank. */
int farm_begin(lua_State *L);
/* How messages about errors begin: "millrace: ", or with rank and host on ranks other than 0. */
const char *farm_prefix(lua_State *L);
/* The program is about to end with this status: returns the status to end with. If it is 0, or there are no other ranks,
 * this waits for the others and closes the farm. Else it ends all processes and does not return; so it does, with status 0,
 * on rank 0 if others hang (ranks.lua), which it says. Without a farm it does nothing. */
int farm_end(lua_State *L, int status);

/* ldiscard.c: let the functions of Lua's io and os that write files and run commands succeed and leave nothing. */
void lua_discard_files(lua_State *L);
/* lstore.c: close the file of mr.store, which then cannot be used any more. */
void lua_close_store(lua_State *L);

#endif
