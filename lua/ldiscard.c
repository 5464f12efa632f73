/* Lua's functions that write files, where the files of a script are discarded (base/files.h). They succeed, and what is
 * written can be read back as far as the file is still open. Commands that only write are not run; those whose output a
 * script reads are. */
#include "lcore.h"
#include "lfarm.h"

#include <errno.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

/* ---- files ---- */

static int close_file_l(lua_State *L)
{
	luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);

	return luaL_fileresult(L, fclose(s->f) == 0, NULL);
}

/* As the end of a command. */
static int close_command_l(lua_State *L)
{
	luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);

	fclose(s->f);
	return luaL_execresult(L, 0);
}

static luaL_Stream *push_stream(lua_State *L)
{
	luaL_Stream *s = lua_newuserdatauv(L, sizeof(*s), 0);

	s->f = NULL;
	s->closef = NULL;		/* as of a closed file, until there is one */
	luaL_setmetatable(L, LUA_FILEHANDLE);
	return s;
}

/* As Lua's io library accepts them. */
static bool is_mode(const char *mode)
{
	if (!*mode || !strchr("rwa", *mode++))
		return false;
	mode += *mode == '+';
	return strspn(mode, "b") == strlen(mode);
}

static bool writes(const char *mode)
{
	return *mode != 'r' || mode[1] == '+';
}

/* A file without a name that has what the file has, for a script that reads and writes it. NULL: errno says why. */
static FILE *open_copy(const char *path, const char *mode)
{
	FILE *from = *mode == 'w' ? NULL : fopen(path, "rb"), *to;
	char part[BUFSIZ];
	size_t n;

	if (!from && *mode == 'r')
		return NULL;
	to = tmpfile();
	while (from && to && (n = fread(part, 1, sizeof(part), from)) > 0)
		fwrite(part, 1, n, to);
	if (from)
		fclose(from);
	if (to && *mode == 'r')
		rewind(to);
	return to;
}

/* Call Lua's function, upvalue 1, with the same arguments. */
static int call_original(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

/* Push the file; false: it cannot be opened. */
static bool push_file(lua_State *L, const char *path, const char *mode)
{
	luaL_Stream *s = push_stream(L);

	s->f = strchr(mode, '+') ? open_copy(path, mode) : fopen("/dev/null", "w");
	s->closef = s->f ? close_file_l : NULL;
	return s->f != NULL;
}

/* io.open(path[, mode]) */
static int open_l(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1), *mode = luaL_optstring(L, 2, "r");

	if (!is_mode(mode) || !writes(mode))
		return call_original(L);
	return push_file(L, path, mode) ? 1 : luaL_fileresult(L, 0, path);
}

/* io.output([file or path]) */
static int output_l(lua_State *L)
{
	if (lua_type(L, 1) == LUA_TSTRING) {
		if (!push_file(L, lua_tostring(L, 1), "w"))
			return luaL_error(L, "cannot open file '%s' (%s)", lua_tostring(L, 1), strerror(errno));
		lua_replace(L, 1);
	}
	return call_original(L);
}

/* io.popen(command[, mode]) */
static int popen_l(lua_State *L)
{
	const char *mode = luaL_optstring(L, 2, "r");
	luaL_Stream *s;

	luaL_checkstring(L, 1);
	if (strcmp(mode, "w"))
		return call_original(L);
	s = push_stream(L);
	s->f = fopen("/dev/null", "w");
	s->closef = s->f ? close_command_l : NULL;
	return s->f ? 1 : luaL_fileresult(L, 0, lua_tostring(L, 1));
}

/* ---- the system ---- */

/* os.remove(path), os.rename(path, path) */
static int done_l(lua_State *L)
{
	for (int i = 1; i <= lua_tointeger(L, lua_upvalueindex(2)); i++)
		luaL_checkstring(L, i);
	lua_pushboolean(L, true);
	return 1;
}

/* os.execute([command]) */
static int execute_l(lua_State *L)
{
	return luaL_optstring(L, 1, NULL) ? luaL_execresult(L, 0) : call_original(L);
}

/* os.tmpname(): Lua's makes the file, too. */
static int tmpname_l(lua_State *L)
{
	call_original(L);
	remove(lua_tostring(L, 1));
	return 1;
}

/* In the table on top. The replacement gets the original and how many arguments it takes. */
static void replace(lua_State *L, const char *name, lua_CFunction f, int narguments)
{
	lua_getfield(L, -1, name);
	lua_pushinteger(L, narguments);
	lua_pushcclosure(L, f, 2);
	lua_setfield(L, -2, name);
}

void lua_discard_files(lua_State *L)
{
	lua_getglobal(L, LUA_IOLIBNAME);
	replace(L, "open", open_l, 2);
	replace(L, "output", output_l, 1);
	replace(L, "popen", popen_l, 2);
	lua_getglobal(L, LUA_OSLIBNAME);
	replace(L, "remove", done_l, 1);
	replace(L, "rename", done_l, 2);
	replace(L, "execute", execute_l, 1);
	replace(L, "tmpname", tmpname_l, 0);
	lua_pop(L, 2);
}
