/* user.h - runs code of the user so that it can neither hang nor end the shell.
 *
 * Every chunk of a user is run from here: only text is loaded, calls are protected, Ctrl-C stops the chunk wherever it
 * is (also inside coroutines and loops around pcall), and an error is reported with its line of source. A second Ctrl-C
 * within a second ends the program, for code that neither Lua nor the core can stop.
 */
#ifndef UI_USER_H
#define UI_USER_H

#include "lua/lcore.h"

/* Call it once, before any coroutine exists, because coroutines inherit the hook that stops them. */
void user_init(lua_State *L);

/* Keep the text of the chunk `name`, so that messages can show its lines. */
void user_remember(lua_State *L, const char *text, size_t len, const char *name);
/* Remember the text and load it; the result is that of luaL_loadbufferx. */
int user_load(lua_State *L, const char *text, size_t len, const char *name);

/* Like lua_pcall, but the message of an error includes the calls that led to it. */
int user_call(lua_State *L, int nargs, int nresults);

/* Print the message on top of the stack on stderr, and pop it. */
void user_report(lua_State *L, const char *prefix);

#endif
