/* repl.h - the shell: reads a line, runs it, shows its values.
 *
 * On a terminal, lines are edited with libedit, with history and completion. Otherwise they are read from standard
 * input, and each is printed after its prompt, so that the output looks like a session.
 */
#ifndef UI_REPL_H
#define UI_REPL_H

#include <lua.h>

/* Runs until quit(), exit() or the end of input. Raises only when memory is short. */
void repl(lua_State *L);

#endif
