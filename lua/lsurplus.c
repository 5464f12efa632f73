/* Calls with more arguments than they take are errors, so that nothing which a user says is without effect. Functions in Lua
 * that users call are entries (entry_l), and say by themselves how many they take; for methods in C it stands here.
 *
 * For the same reason nil is no way to leave an argument out, other than a table of options: it is what a misspelt name
 * gives. */
#include "lplan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The function that the user's code has called, and by which name. */
static void called_by_user(lua_State *L, lua_Debug *ar)
{
	lua_Debug outer;
	int level = 0;

	while (lua_getstack(L, level, ar) && lua_getstack(L, level + 1, &outer)) {
		lua_getinfo(L, "Sl", &outer);
		if (outer.currentline > 0 && strncmp(outer.source, OUR_CHUNKS, strlen(OUR_CHUNKS)) != 0)
			break;
		level++;
	}
	lua_getinfo(L, "n", ar);
}

/* "copy", or "plan:copy" of a method of an object of ours; in `name`. "": it is not known. */
static void called_name(lua_State *L, const lua_Debug *ar, char *name, size_t size)
{
	char kind[SHOW_MAX] = "";

	name[0] = '\0';
	if (luaL_getmetafield(L, 1, "__name") == LUA_TSTRING) {
		const char *dot = strchr(lua_tostring(L, -1), '.');

		snprintf(kind, sizeof(kind), "%s:", !dot ? lua_tostring(L, -1) : strcmp(dot, ".on_host") ? dot + 1 : "kernel");
		lua_pop(L, 1);
	}
	if (ar->name && strcmp(ar->namewhat, "method") == 0)
		snprintf(name, size, "%s%s", kind, ar->name);
	else if (ar->name)
		snprintf(name, size, "%s", ar->name);
}

#define SIGNATURE "millrace.signature"

int describe_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, SIGNATURE);
	return 0;
}

/* Is it the call of an object, which then is the first argument, as of mr.examples.gemm{...}? */
static bool is_called_object(lua_State *L)
{
	lua_Debug ar;
	bool is;

	if (luaL_getmetafield(L, 1, "__call") == LUA_TNIL)
		return false;
	lua_getstack(L, 0, &ar);
	lua_getinfo(L, "f", &ar);
	is = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return is;
}

static const char *count_text(int n, char text[32])
{
	if (n)
		snprintf(text, 32, "at most %d", n);
	return n ? text : "no";
}

/* Push how the call of that name is written, "plan:save([path])"; NULL, and something is pushed, if it is not known. */
static const char *push_call(lua_State *L, const char *name)
{
	if (!name[0] || lua_getfield(L, LUA_REGISTRYINDEX, SIGNATURE) != LUA_TFUNCTION)
		return NULL;
	lua_pushstring(L, name);
	lua_call(L, 1, 1);
	return lua_tostring(L, -1);
}

/* Can the argument be left out, counted from 1 without the object of a method, and is it no table of options? In `call` it
 * then stands in brackets. In "[name,] value" the first can be the value. Options may be nil: functions of users pass
 * those on that they were given, or none. */
static bool is_optional(const char *call, int argument)
{
	const char *s = strchr(call, '(');
	int depth = 0, brackets = 0, at = 1;

	for (s = s ? s + 1 : ""; *s && depth >= 0; s++) {
		if (at == argument && *s != ' ' && *s != ']')
			return *s == '[' ? s[1] != '{' && strcspn(s, ",") > strcspn(s, "]") : brackets > 0 && *s != '{';
		if (*s == '(' || *s == '{')
			depth++;
		else if (*s == ')' || *s == '}')
			depth--;
		else if (*s == '[' || *s == ']')
			brackets += *s == '[' ? 1 : -1;
		else if (*s == ',' && depth == 0)
			at++;
	}
	return false;
}

/* Does code of the user call the running C function, if only through Lua's own functions? */
static bool is_called_by_user(lua_State *L)
{
	lua_Debug ar;

	for (int level = 1; lua_getstack(L, level, &ar); level++) {
		lua_getinfo(L, "Sl", &ar);
		if (ar.currentline > 0)
			return strncmp(ar.source, OUR_CHUNKS, strlen(OUR_CHUNKS)) != 0;
	}
	return false;
}

/* Raise an error if one of the first n arguments is nil that could have been left out. */
static void refuse_nil(lua_State *L, int n)
{
	char name[2 * SHOW_MAX];
	lua_Debug ar;
	int at = 1, self, top = lua_gettop(L);

	while (at <= n && !lua_isnil(L, at))
		at++;
	if (at > n || !is_called_by_user(L))
		return;
	called_by_user(L, &ar);
	if (strcmp(ar.namewhat, "metamethod") == 0)
		return;
	called_name(L, &ar, name, sizeof(name));
	self = strchr(name, ':') ? 1 : 0;
	const char *call = push_call(L, name);

	for (; call && at <= n; at++)
		if (lua_isnil(L, at) && is_optional(call, at - self))
			throw_msg(L, "%s: argument %d is nil; is a name misspelt? What is not given is left out: %s",
				self ? strchr(name, ':') + 1 : name, at - self, call);
	lua_settop(L, top);
}

void refuse_surplus(lua_State *L, int most)
{
	char name[2 * SHOW_MAX], count[32];
	lua_Debug ar;
	int n = lua_gettop(L);

	while (n > most && lua_isnil(L, n))
		n--;
	if (n <= most) {
		if (most < INT_MAX)
			refuse_nil(L, n);
		return;
	}
	called_by_user(L, &ar);
	if (strcmp(ar.namewhat, "metamethod") == 0)
		return;		/* Lua itself gives it more: both operands, or the object twice */
	called_name(L, &ar, name, sizeof(name));
	const char *call = push_call(L, name);
	const char *bare = strchr(name, ':') ? strchr(name, ':') + 1 : name;
	int self = strchr(name, ':') || is_called_object(L);
	throw_msg(L, "%s%s%s argument%s, got %d%s%s", bare, bare[0] ? " takes " : "at most ", count_text(most - self, count),
		most - self == 1 ? "" : "s", n - self, call ? ": " : "", call ? call : "");
}

int at_most_l(lua_State *L)
{
	int most = (int)luaL_checkinteger(L, 1);

	lua_remove(L, 1);
	refuse_surplus(L, most);
	return 0;
}

int most_arguments(lua_State *L, int idx)
{
	lua_Debug ar;

	lua_pushvalue(L, idx);
	lua_getinfo(L, ">u", &ar);
	return ar.isvararg ? INT_MAX : ar.nparams;
}

/* How many arguments the methods written in C take, with the object; those of arrays that take one for each dimension,
 * and what users do not see, are not in it. */
static const struct arity {
	const char *class_name, *method;
	int most;
} arities[] = {
	{ PLAN_CLASS, "append", 3 }, { PLAN_CLASS, "remove", 2 }, { PLAN_CLASS, "move", 3 }, { PLAN_CLASS, "insert", 3 },
	{ PLAN_CLASS, "lane", 3 }, { PLAN_CLASS, "wait", 3 }, { PLAN_CLASS, "unwait", 3 }, { PLAN_CLASS, "buffers", 2 },
	{ PLAN_CLASS, "fill_waits", 1 }, { PLAN_CLASS, "grid", 2 }, { PLAN_CLASS, "launch", 2 }, { PLAN_CLASS, "split", 4 },
	{ PLAN_CLASS, "split_off", 4 },
	{ PLAN_CLASS, "fetch", 3 }, { PLAN_CLASS, "direct", 2 }, { PLAN_CLASS, "swap", 2 }, { PLAN_CLASS, "window", 2 },
	{ PLAN_CLASS, "alias", 2 }, { PLAN_CLASS, "propagate", 2 },
	{ PLAN_CLASS, "cut", 4 }, { PLAN_CLASS, "place", 2 },	/* deprecated names */
	{ PLAN_CLASS, "undo", 1 }, { PLAN_CLASS, "redo", 1 }, { PLAN_CLASS, "copy", 1 }, { PLAN_CLASS, "check", 1 },
	{ PLAN_CLASS, "table", 2 }, { PLAN_CLASS, "simulate", 2 },
	{ GRAPH_CLASS, "table", 2 }, { GRAPH_CLASS, "drawing", 2 }, { GRAPH_CLASS, "dot", 1 },
	{ TIMELINE_CLASS, "text", 2 }, { TIMELINE_CLASS, "summary", 2 },
	{ PROGRAM_CLASS, "inputs", 2 }, { PROGRAM_CLASS, "graph", 2 }, { PROGRAM_CLASS, "reference", 3 }, { DEVICE_CLASS, "number", 2 },
	{ ARRAY_CLASS, "shape", 1 }, { ARRAY_CLASS, "copy", 2 }, { ARRAY_CLASS, "fill", 2 }, { ARRAY_CLASS, "max_error", 2 },
};

/* A method in C. Upvalues: the function and how many arguments it takes. */
static int guarded_call_l(lua_State *L)
{
	refuse_surplus(L, (int)lua_tointeger(L, lua_upvalueindex(2)));
	return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void push_method(lua_State *L, const char *class_name, const char *method, lua_CFunction f)
{
	lua_pushcfunction(L, f);
	for (int i = 0; i < (int)LEN(arities); i++) {
		if (strcmp(arities[i].class_name, class_name) != 0 || strcmp(arities[i].method, method) != 0)
			continue;
		lua_pushinteger(L, arities[i].most);
		lua_pushcclosure(L, guarded_call_l, 2);
		return;
	}
}
