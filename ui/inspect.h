/* inspect.h - a Lua value as text, as the shell shows it.
 *
 * Short values are shown so that Lua can read them: strings in quotes, tables one level deep, with the array part
 * first and sorted keys. Objects are shown by their __tostring. A text of several lines is shown as it is.
 */
#ifndef UI_INSPECT_H
#define UI_INSPECT_H

#include <lua.h>

/* Lua function: (value, width) -> text, in lines not longer than width where that is possible.
 * Raises what the value's __tostring raises. */
int inspect_l(lua_State *L);

#endif
