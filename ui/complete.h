/* complete.h - the words that could stand at the cursor.
 *
 * A pure function of the text before the cursor and of the tables it names. It only
 * ever looks: no metamethod and no function of the user's is called, so completing can
 * neither fail nor change anything. Inside calls of ours, lua/std/words.lua, if it is
 * loaded, looks at objects of ours. Needs no terminal.
 */
#ifndef UI_COMPLETE_H
#define UI_COMPLETE_H

#include <lua.h>
#include <stddef.h>

/* Push a sorted list of the words that could replace text[start..pos), and return
 * start. `text` is the unfinished chunk, so that its locals are known. Words are
 * keywords, locals and globals; fields after '.', methods after ':'; "option=" in the table
 * of a call; inside quotes what the call wants there, sTasks, say, or names of files. Raises only when memory is short. */
size_t complete(lua_State *L, const char *text, size_t pos);

#endif
