/* Lua's own libraries without what lets a script crash the shell.
 *
 * Lua does not check bytecode: wrong bytecode can do anything to the process. So `load`, `loadfile`, `dofile` and
 * `require` accept text only; otherwise they are Lua's (lbaselib.c, loadlib.c). `debug` loses the functions that
 * replace values that C code relies on, and its getlocal does not see the temporaries of C functions. Code that came from
 * elsewhere is run with a cap on memory of its own. */
#include "lcore.h"

#include <lualib.h>
#include <stdio.h>
#include <string.h>

/* The mode at idx as Lua knows it, but without its 'b', for bytecode. */
static const char *text_mode(lua_State *L, int idx)
{
	const char *mode = luaL_optstring(L, idx, "t");

	return strchr(mode, 't') ? "t" : "none";
}

/* What load and loadfile return. `env`: stack index of the chunk's _ENV, or 0. */
static int loaded(lua_State *L, int status, int env)
{
	if (status != LUA_OK) {
		luaL_pushfail(L);
		lua_insert(L, -2);
		return 2;
	}
	if (env) {
		lua_pushvalue(L, env);
		if (!lua_setupvalue(L, -2, 1))
			lua_pop(L, 1);
	}
	return 1;
}

enum { CHUNK = 5 };			/* where load keeps its function's last string */

static const char *read_chunk(lua_State *L, void *ud, size_t *size)
{
	(void)ud;
	luaL_checkstack(L, 2, "too many nested functions");
	lua_pushvalue(L, 1);
	lua_call(L, 0, 1);
	if (lua_isnil(L, -1)) {
		lua_pop(L, 1);
		*size = 0;
		return NULL;
	}
	if (!lua_isstring(L, -1))
		luaL_error(L, "reader function must return a string");
	lua_replace(L, CHUNK);
	return lua_tolstring(L, CHUNK, size);
}

/* load(chunk[, name[, mode[, env]]]) */
static int load_l(lua_State *L)
{
	size_t len;
	const char *text = lua_tolstring(L, 1, &len), *mode = text_mode(L, 3);
	int env = lua_isnone(L, 4) ? 0 : 4;

	if (text)
		return loaded(L, luaL_loadbufferx(L, text, len, luaL_optstring(L, 2, text), mode), env);
	luaL_checktype(L, 1, LUA_TFUNCTION);
	text = luaL_optstring(L, 2, "=(load)");
	lua_settop(L, CHUNK);
	return loaded(L, lua_load(L, read_chunk, NULL, text, mode), env);
}

/* loadfile([path[, mode[, env]]]) */
static int loadfile_l(lua_State *L)
{
	const char *path = luaL_optstring(L, 1, NULL), *mode = text_mode(L, 2);
	int env = lua_isnone(L, 3) ? 0 : 3;	/* before the chunk is there */

	return loaded(L, luaL_loadfilex(L, path, mode), env);
}

static int dofile_results(lua_State *L, int status, lua_KContext ctx)
{
	(void)status;
	(void)ctx;
	return lua_gettop(L) - 1;
}

/* dofile([path]) */
static int dofile_l(lua_State *L)
{
	const char *path = luaL_optstring(L, 1, NULL);

	lua_settop(L, 1);
	if (luaL_loadfilex(L, path, "t") != LUA_OK)
		return lua_error(L);
	lua_callk(L, 0, LUA_MULTRET, 0, dofile_results);
	return dofile_results(L, 0, 0);
}

/* How `require` finds a Lua file; upvalue 1 is the table `package`. */
static int searcher_l(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1), *path;

	lua_settop(L, 1);
	lua_getfield(L, lua_upvalueindex(1), "searchpath");
	lua_pushvalue(L, 1);
	if (lua_getfield(L, lua_upvalueindex(1), "path") != LUA_TSTRING)
		return luaL_error(L, "'package.path' must be a string");
	lua_call(L, 2, 2);
	path = lua_tostring(L, 2);
	if (!path)
		return 1;		/* where it was looked for */
	if (luaL_loadfilex(L, path, "t") != LUA_OK)
		return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s", name, path,
			lua_tostring(L, -1));
	lua_pushvalue(L, 2);
	return 2;
}

static int pass_results(lua_State *L, int status, lua_KContext ctx)
{
	(void)status;
	(void)ctx;
	return lua_gettop(L);
}

/* ipairs(t), pairs(t): Lua's, upvalue 1, which of nil only say later that something is nil. Upvalue 2: the name. */
static int over_l(lua_State *L)
{
	if (lua_isnil(L, 1))
		throw_msg(L, "%s: table expected, got nil%s", lua_tostring(L, lua_upvalueindex(2)),
			host_of(L)->strict == STRICT_OFF ? "; millrace -s finds misspelt names of Millrace" : "");
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, pass_results);
	return lua_gettop(L);
}

/* debug.getlocal([thread,] function or level, n) */
static int getlocal_l(lua_State *L)
{
	bool other = lua_isthread(L, 1);
	int at = other ? 2 : 1;
	lua_State *of = other ? lua_tothread(L, 1) : L;
	int n = (int)luaL_checkinteger(L, at + 1);
	const char *name;
	lua_Debug ar;

	if (lua_isfunction(L, at)) {
		lua_pushvalue(L, at);
		lua_pushstring(L, lua_getlocal(L, NULL, n));
		return 1;
	}
	if (!lua_getstack(of, (int)luaL_checkinteger(L, at), &ar))
		return luaL_argerror(L, at, "level out of range");
	lua_getinfo(of, "S", &ar);
	if (of != L && !lua_checkstack(of, 1))
		return luaL_error(L, "stack overflow");
	name = strcmp(ar.what, "C") != 0 ? lua_getlocal(of, &ar, n) : NULL;
	if (!name) {
		luaL_pushfail(L);
		return 1;
	}
	lua_xmove(of, L, 1);
	lua_pushstring(L, name);
	lua_insert(L, -2);
	return 2;
}

void lua_guard(lua_State *L)
{
	static const luaL_Reg text_only[] = { { "load", load_l }, { "loadfile", loadfile_l },
		{ "dofile", dofile_l }, { NULL, NULL } };
	static const char *const over[] = { "ipairs", "pairs" };
	static const char *const doors[] = { "getregistry", "setlocal", "setmetatable",
		"setupvalue", "setuservalue", "upvaluejoin" };

	lua_pushglobaltable(L);
	luaL_setfuncs(L, text_only, 0);
	for (int i = 0; i < LEN(over); i++) {
		lua_getfield(L, -1, over[i]);
		lua_pushstring(L, over[i]);
		lua_pushcclosure(L, over_l, 2);
		lua_setfield(L, -2, over[i]);
	}
	lua_getfield(L, -1, LUA_LOADLIBNAME);
	lua_getfield(L, -1, "searchers");
	lua_pushvalue(L, -2);
	lua_pushcclosure(L, searcher_l, 1);
	lua_rawseti(L, -2, 2);
	lua_getfield(L, -3, LUA_DBLIBNAME);
	set_function(L, "getlocal", getlocal_l);
	for (int i = 0; i < LEN(doors); i++) {
		lua_pushnil(L);
		lua_setfield(L, -2, doors[i]);
	}
	lua_pop(L, 4);
}

/* core.cap_memory(bytes) -> the most memory that may be used, as it was, and what is used; 0: no limit */
static int cap_memory_l(lua_State *L)
{
	struct mem *m = &host_of(L)->mem;
	lua_Integer bytes = luaL_checkinteger(L, 1);

	lua_pushinteger(L, (lua_Integer)m->cap);
	lua_pushinteger(L, (lua_Integer)m->used);
	m->cap = bytes > 0 ? (size_t)bytes : 0;
	return 2;
}

void lua_open_guard(lua_State *L)
{
	set_function(L, "cap_memory", cap_memory_l);
}
