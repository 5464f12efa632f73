/* repl.h - the shell: read a line, run it, show what it gave.
 *
 * With a terminal, lines are edited by libedit, with history and completion. Without
 * one, lines are read as they come, and each is printed after its prompt, so that
 * what comes out reads like a session.
 */
#ifndef UI_REPL_H
#define UI_REPL_H

#include <lua.h>

/* Until quit(), exit, or the end of the input. Raises only when memory is short. */
void repl(lua_State *L);

#endif
