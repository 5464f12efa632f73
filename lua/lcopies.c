/* Tables that an object gives as copies, as plan.rings: they can only be read, because setting a field of a copy would be
 * without effect.
 *
 * The table that the user gets is empty, so that Lua asks its metatable for every field, also to set one that there is;
 * the metatable has the contents. */
#include "lcore.h"

#include <stdio.h>

/* In the metatable, the field of this address has the contents. */
static const char contents_key;

/* As Lua's own function of that name, which it replaces; of such a copy too, which Lua's sees as empty. */
static int next_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 2);
	copy_open(L, 1);
	return lua_next(L, 1) ? 2 : (lua_pushnil(L), 1);
}

/* __pairs. Upvalue: the contents. */
static int copy_pairs_l(lua_State *L)
{
	lua_pushcfunction(L, next_l);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushnil(L);
	return 3;
}

/* __newindex. Upvalues: what the copy is of, "plan.rings"; how it is set, before and after "NAME=VALUE"; without
 * an after, `before` is all that there is to say. */
static int copy_newindex_l(lua_State *L)
{
	char key[SHOW_MAX], value[SHOW_MAX];
	const char *before = lua_tostring(L, lua_upvalueindex(2)), *after = lua_tostring(L, lua_upvalueindex(3));
	bool is_name = lua_type(L, 2) == LUA_TSTRING;

	if (!after)
		throw_msg(L, "%s is a copy: %s cannot be set in it; %s", lua_tostring(L, lua_upvalueindex(1)), show(L,
			2, key), before);
	if (lua_isnil(L, 3) || !is_name)
		throw_msg(L, "%s is a copy: %s cannot be set in it; %s...%s does it", lua_tostring(L, lua_upvalueindex(1)),
			show(L, 2, key), before, after);
	throw_msg(L, "%s is a copy: '%.40s' cannot be set in it; %s%.40s=%s%s does it", lua_tostring(L, lua_upvalueindex(1)),
		lua_tostring(L, 2), before, lua_tostring(L, 2), show(L, 3, value), after);
}

/* __len. Upvalue: the contents. */
static int copy_len_l(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lua_rawlen(L, lua_upvalueindex(1)));
	return 1;
}

/* Contents and __newindex are on top: replace them by the copy. */
static void close_with(lua_State *L)
{
	lua_newtable(L);
	lua_newtable(L);
	/* -- contents newindex copy metatable */
	lua_pushvalue(L, -4);
	lua_setfield(L, -2, "__index");
	lua_pushvalue(L, -4);
	lua_rawsetp(L, -2, &contents_key);
	lua_pushvalue(L, -4);
	lua_pushcclosure(L, copy_pairs_l, 1);
	lua_setfield(L, -2, "__pairs");
	lua_pushvalue(L, -4);
	lua_pushcclosure(L, copy_len_l, 1);
	lua_setfield(L, -2, "__len");
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, "__newindex");
	set_bool(L, "__metatable", false);
	lua_setmetatable(L, -2);
	lua_replace(L, -3);
	lua_pop(L, 1);
}

void copy_close(lua_State *L, const char *of, const char *before, const char *after)
{
	lua_pushstring(L, of);
	lua_pushstring(L, before);
	lua_pushstring(L, after);	/* nil for NULL */
	lua_pushcclosure(L, copy_newindex_l, 3);
	close_with(L);
}

/* core.closed(table, "plan.lanes", how): such a copy with these contents. how: what to do instead of setting a field */
static int closed_l(lua_State *L)
{
	const char *of = luaL_checkstring(L, 2), *how = luaL_checkstring(L, 3);

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_pushvalue(L, 1);
	copy_close(L, of, how, NULL);
	return 1;
}

/* core.closed_as(table, copy): with these contents, and refusing as the copy does; the table itself, if the other
 * is no copy */
static int closed_as_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 2);
	lua_pushvalue(L, 1);
	if (!lua_istable(L, 2) || !lua_getmetatable(L, 2))
		return 1;
	if (lua_rawgetp(L, -1, &contents_key) != LUA_TTABLE) {
		lua_pushvalue(L, 1);
		return 1;
	}
	lua_pop(L, 1);
	lua_getfield(L, -1, "__newindex");
	lua_remove(L, -2);		/* -- table copy contents newindex */
	close_with(L);
	return 1;
}

void copy_open(lua_State *L, int idx)
{
	idx = lua_absindex(L, idx);
	if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
		return;
	if (lua_rawgetp(L, -1, &contents_key) == LUA_TTABLE) {
		lua_replace(L, idx);
		lua_pop(L, 1);
	} else {
		lua_pop(L, 2);
	}
}

/* core.contents(table): of such a copy the table behind it, of another one itself */
static int contents_l(lua_State *L)
{
	luaL_checkany(L, 1);
	lua_settop(L, 1);
	copy_open(L, 1);
	return 1;
}

void lua_open_copies(lua_State *L)
{
	lua_pushcfunction(L, contents_l);
	lua_setfield(L, -2, "contents");
	set_function(L, "closed", closed_l);
	set_function(L, "closed_as", closed_as_l);
	lua_pushcfunction(L, next_l);
	lua_setglobal(L, "next");
}
