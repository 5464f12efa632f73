/* lcorelib.c - the module millrace.core: the functions that lua/std is written with. Those that need no other header
 * are here; each binding adds its own. */
#include "lcore.h"
#include "lplan.h"

#include <string.h>

static int entry_end(lua_State *L, int status, lua_KContext ctx)
{
	(void)status;
	(void)ctx;
	return lua_gettop(L);
}

static int entry_call_l(lua_State *L)
{
	if (lua_gettop(L) > 0)
		refuse_surplus(L, lua_isinteger(L, lua_upvalueindex(2)) ? (int)lua_tointeger(L, lua_upvalueindex(2)) :
			most_arguments(L, lua_upvalueindex(1)));
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, entry_end);
	return lua_gettop(L);
}

int entry_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 2);
	lua_pushcclosure(L, entry_call_l, 2);
	return 1;
}

/* core.location() -> "FILE:LINE" of the user's code, or nil */
static int location_l(lua_State *L)
{
	char file[LUA_IDSIZE];
	struct srcloc loc = here_now(L, file);

	if (loc.file)
		lua_pushfstring(L, "%s:%d", loc.file, loc.line);
	else
		lua_pushnil(L);
	return 1;
}

/* core.raise(message[, location]) */
static int raise_l(lua_State *L)
{
	const char *msg = luaL_checkstring(L, 1);
	const char *location = luaL_optstring(L, 2, NULL);

	if (!location)
		throw_msg(L, "%s", msg);
	lua_pushfstring(L, "%s: %s", location, msg);
	return lua_error(L);
}

/* core.show(value) -> as messages show it */
static int show_l(lua_State *L)
{
	char buf[SHOW_MAX];

	luaL_checkany(L, 1);
	lua_pushstring(L, show(L, 1, buf));
	return 1;
}

/* core.expect(good, what, expected, x): raise an error about an argument or option x, unless it is as expected. */
static int expect_l(lua_State *L)
{
	if (lua_toboolean(L, 1))
		return 0;
	throw_type(L, 4, luaL_checkstring(L, 2), luaL_checkstring(L, 3));
}

/* core.hint(name, {names}) -> "; did you mean 'x'?" or "" */
static int hint_l(lua_State *L)
{
	const char **names, *near;
	const char *name = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
	int n = 0, most;

	luaL_checktype(L, 2, LUA_TTABLE);
	most = (int)lua_rawlen(L, 2);
	names = lua_newuserdatauv(L, ((size_t)most + 1) * sizeof(*names), 0);
	while (n < most && lua_rawgeti(L, 2, n + 1) == LUA_TSTRING) {
		names[n++] = lua_tostring(L, -1);	/* kept alive by the table */
		lua_pop(L, 1);
	}
	near = name_meant(name, names, n);
	if (near)
		lua_pushfstring(L, "; did you mean '%s'?", near);
	else
		lua_pushliteral(L, "");
	return 1;
}

/* core.integer(value) -> integer, or nil */
static int integer_l(lua_State *L)
{
	int64_t v;

	if (is_integer(L, 1, &v))
		lua_pushinteger(L, v);
	else
		lua_pushnil(L);
	return 1;
}

/* core.dtype(name) -> its usual name, or nil if there is no such type */
static int dtype_l(lua_State *L)
{
	enum dtype t;

	if (dtype_parse(luaL_checkstring(L, 1), &t))
		lua_pushstring(L, dtype_name(t));
	else
		lua_pushnil(L);
	return 1;
}

/* core.dtypes() -> list of names */
RETURNS(dtypes, PUSH_LIST(L, i, DT_COUNT, lua_pushstring(L, dtype_name((enum dtype)i))))

/* core.clock() -> seconds of a clock that only goes forward */
RETURNS(clock, lua_pushnumber(L, clock_seconds()))

/* core.is(x, class) */
RETURNS(is, lua_pushboolean(L, luaL_testudata(L, 1, luaL_checkstring(L, 2)) != NULL))

/* Set a key of the metatable of the class at 1, or with `table` of that table in it, to the function at the top. */
static int extend_class(lua_State *L, const char *table, const char *key)
{
	luaL_checktype(L, -1, LUA_TFUNCTION);
	if (luaL_getmetatable(L, luaL_checkstring(L, 1)) != LUA_TTABLE ||
	    (table && lua_getfield(L, -1, table) != LUA_TTABLE))
		return luaL_error(L, "no class '%s'", lua_tostring(L, 1));
	lua_pushvalue(L, table ? -3 : -2);
	lua_setfield(L, -2, key);
	return 0;
}

/* A method written in Lua. Upvalues: the function, what its objects are called, its name. */
static int method_call_l(lua_State *L)
{
	const char *kind = lua_tostring(L, lua_upvalueindex(2));

	if (lua_isnone(L, 1) || (!is_object(L, 1) && strcmp(kind, "store") != 0))	/* which says more by itself */
		throw_self(L, 1, lua_tostring(L, lua_upvalueindex(3)), kind);
	return entry_call_l(L);
}

/* core.method(class, name, f): a method written in Lua */
static int method_l(lua_State *L)
{
	const char *class_name = luaL_checkstring(L, 1), *kind = strchr(class_name, '.');

	luaL_checktype(L, 3, LUA_TFUNCTION);
	lua_settop(L, 3);
	kind = !kind ? class_name : !strcmp(kind, ".on_host") ? "kernel" : kind + 1;
	lua_pushstring(L, kind);
	lua_pushvalue(L, 2);
	lua_pushcclosure(L, method_call_l, 3);
	return extend_class(L, "methods", luaL_checkstring(L, 2));
}

/* core.field(class, name, f): a field, which f(object) gives */
static int field_l(lua_State *L)
{
	return extend_class(L, "fields", luaL_checkstring(L, 2));
}

/* core.methods() -> by class, its methods by name: those of all classes that have some */
static int methods_l(lua_State *L)
{
	lua_settop(L, 0);
	lua_newtable(L);
	lua_pushnil(L);
	while (lua_next(L, LUA_REGISTRYINDEX)) {
		if (lua_type(L, 2) == LUA_TSTRING && !strncmp(lua_tostring(L, 2), "millrace.", 9) && lua_istable(L, 3) &&
		    lua_getfield(L, 3, "methods") == LUA_TTABLE) {
			lua_pushvalue(L, 2);
			lua_insert(L, -2);
			lua_rawset(L, 1);
		}
		lua_settop(L, 2);
	}
	return 1;
}

/* core.shown(class, f): its __tostring */
static int shown_l(lua_State *L)
{
	return extend_class(L, NULL, "__tostring");
}

/* core.sized(class, f): what # of it is */
static int sized_l(lua_State *L)
{
	return extend_class(L, NULL, "__len");
}

#define OPEN_BINDING(name) lua_open_##name(L);

int luaopen_millrace_core(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "entry", entry_l }, { "describe", describe_l }, { "at_most", at_most_l }, { "location", location_l }, { "raise", raise_l }, { "show", show_l },
		{ "hint", hint_l }, { "expect", expect_l }, { "integer", integer_l }, { "dtype", dtype_l }, { "dtypes", dtypes_l },
		{ "clock", clock_l }, { "is", is_l }, { "method", method_l }, { "methods", methods_l }, { "field", field_l },
		{ "shown", shown_l }, { "sized", sized_l }, { NULL, NULL } };

	luaL_newlib(L, functions);
	open_core_classes(L);
	BINDINGS(OPEN_BINDING)
	return 1;
}
