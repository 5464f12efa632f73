/* script.h - Lua of unit tests, which is in .lua files below tests/unit. */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static inline const char *script_home(void)
{
	const char *home = getenv("MILLRACE_HOME");

	return home ? home : ".";
}

static inline void script_stop(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

/* The path of tests/unit/NAME.lua, until the next call. */
static inline const char *script_path(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/tests/unit/%s.lua", script_home(), name);
	return path;
}

/* The text of tests/unit/NAME.lua; free() it. */
static inline char *script_read(const char *name)
{
	FILE *f = fopen(script_path(name), "r");
	char *text = calloc(1, 1 << 16);

	if (!f || !text || fread(text, 1, (1 << 16) - 1, f) == 0)
		script_stop(script_path(name));
	fclose(f);
	return text;
}

/* Run a script whose globals include the fields of the table that tests/unit/NAME.lua returns. Its result is left on
 * the stack; an error ends the test. */
static inline void script_run(lua_State *L, const char *name, const char *script)
{
	if (luaL_loadfile(L, script_path(name)) || lua_pcall(L, 0, 1, 0))
		script_stop(lua_tostring(L, -1));
	lua_createtable(L, 0, 1);
	lua_pushglobaltable(L);
	lua_setfield(L, -2, "__index");
	lua_setmetatable(L, -2);
	if (luaL_loadstring(L, script))
		script_stop(lua_tostring(L, -1));
	lua_insert(L, -2);
	lua_setupvalue(L, -2, 1);
	if (lua_pcall(L, 0, 1, 0))
		script_stop(lua_tostring(L, -1));
}

#endif
