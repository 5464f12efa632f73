/* complete.h - completion of Lua code.
 *
 * The result depends only on the text before the cursor and on the tables that it names. No metamethod and no
 * function of the user is called, so that completion cannot fail or change anything. Inside calls of our functions,
 * lua/std/words.lua, if it is loaded, gives words for each argument. Needs no terminal.
 */
#ifndef UI_COMPLETE_H
#define UI_COMPLETE_H

#include <lua.h>
#include <stddef.h>

/* Push a sorted list of the words that could replace text[start..pos), and return start. `text` is the unfinished
 * chunk, so that its locals are known. Words are keywords, locals and globals; fields after '.', methods after ':';
 * "option=" in the table of a call; inside quotes what the call expects there, such as sTasks, or names of files.
 * Raises only when memory is short. */
size_t complete(lua_State *L, const char *text, size_t pos);

#endif
