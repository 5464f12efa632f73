/* inspect.h - a Lua value as the shell shows it.
 *
 * Text that can be read back where that is short: strings in quotes, tables one
 * level deep with their array part first and their keys sorted. Objects show what
 * their __tostring says. Text of several lines is shown as it is.
 */
#ifndef UI_INSPECT_H
#define UI_INSPECT_H

#include <lua.h>

/* Lua function: (value, width) -> text of lines no longer than width, where it can.
 * Raises what the value's __tostring raises. */
int inspect_l(lua_State *L);

#endif
