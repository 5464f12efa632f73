/* complete.h - the words that could stand at the cursor.
 *
 * A pure function of the text before the cursor and of the tables it names. It only
 * ever looks: no metamethod, no function and no getter of an object is called, so
 * completing can neither fail nor change anything. Needs no terminal.
 */
#ifndef UI_COMPLETE_H
#define UI_COMPLETE_H

#include <lua.h>
#include <stddef.h>

/* Push a sorted list of the words that could replace text[start..pos), and return
 * start. `text` is the unfinished chunk, so that its locals are known. Words are
 * keywords, locals and globals; fields after '.', methods after ':'; names of files
 * inside quotes. Raises only when memory is short. */
size_t complete(lua_State *L, const char *text, size_t pos);

#endif
