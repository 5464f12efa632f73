/* user.h - user code, run so that it can neither hang the shell nor end it.
 *
 * Every chunk of a user goes through here: text only, called protected, stopped by
 * Ctrl-C wherever it is (also inside coroutines and loops around pcall), and its
 * error reported with the line of the script it stands on. A second Ctrl-C within a
 * second ends the program, for code that neither Lua nor the core can stop.
 */
#ifndef UI_USER_H
#define UI_USER_H

#include "lua/lcore.h"

/* Once, before any coroutine exists: coroutines inherit the hook that stops them. */
void user_init(lua_State *L);

/* Keep the text of a chunk called NAME, so that a message can show its lines. */
void user_remember(lua_State *L, const char *text, size_t len, const char *name);
/* Remember the text and load it. As luaL_loadbufferx: on failure the message is on
 * the stack. */
int user_load(lua_State *L, const char *text, size_t len, const char *name);

/* As lua_pcall, but an error leaves a complete text, with the calls that led to it. */
int user_call(lua_State *L, int nargs, int nresults);

/* Print the message on top of the stack on stderr and pop it. */
void user_report(lua_State *L, const char *prefix);

#endif
