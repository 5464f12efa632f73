/* Reading a missing global or field is an error where that helps.
 *
 * Lua gives nil for a misspelt name, and a line with a typing error prints nothing. It is an error in chunks typed
 * at the prompt unless that is switched off, and in scripts that ask for it (mr.strict); never in lua/std and in C. */
#include "lcore.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1024 };

bool is_strict(lua_State *L)
{
	enum strict strict = host_of(L)->strict;
	lua_Debug ar;

	if (strict == STRICT_OFF || !lua_getstack(L, 1, &ar) || !lua_getinfo(L, "S", &ar))
		return false;
	if (*ar.what == 'C' || !strncmp(ar.source, OUR_CHUNKS, strlen(OUR_CHUNKS)))
		return false;
	return strict == STRICT_ALL || (ar.source[0] == '=' && ar.source[1] == '[' &&
		isdigit((unsigned char)ar.source[2]));
}

/* Add the keys of the table at idx to names[], which the table keeps alive. */
static int add_names(lua_State *L, int idx, const char **names, int n)
{
	if (!lua_istable(L, idx))
		return n;
	lua_pushnil(L);
	while (lua_next(L, idx)) {
		if (n < NAMES_MAX && lua_type(L, -2) == LUA_TSTRING)
			names[n++] = lua_tostring(L, -2);
		lua_pop(L, 1);
	}
	return n;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The nearest of the keys of the tables at one and two and of more[0..n), or NULL. Leaves something on the stack. */
static const char *near_key(lua_State *L, const char *name, int one, int two, const char *const *more, int n)
{
	const char **names;

	luaL_checkstack(L, 6, "names");
	names = lua_newuserdatauv(L, (NAMES_MAX + (size_t)n) * sizeof(*names), 0);
	for (int i = 0; i < n; i++)
		names[i] = more[i];
	n = add_names(L, one, names, n);
	n = add_names(L, two, names, n);
	qsort(names, (size_t)n, sizeof(*names), by_text);	/* of equals, always the same one */
	return nearest_name(name, names, n);
}

/* What users of other tools look for by a name that nothing has here, by the kind of what they look in. */
static const struct word { const char *kind, *name, *instead; } words[] = {
	{ "mr", "relu", "mr.max(x, 0)" }, { "mr", "square", "x * x" }, { "mr", "sum", "mr.rowsum(x, axis)" },
	{ "mr", "reduce_max", "mr.rowmax(x, axis)" }, { "mr", "reduce_sum", "mr.rowsum(x, axis)" },
	{ "mr", "softmax", "mr.exp(x - mr.rowmax(x, n)) and its mr.rowsum" },
	{ "program under construction", "dot", "p:mma(a, b)" },
	{ "program under construction", "matmul", "p:mma(a, b)" },
	{ "plan", "remove_wait", "plan:unwait(task, other)" }, { "plan", "timeline", "plan:simulate()" },
	{ "kernel", "save", "k:export(folder)" }, { "on_host", "save", "k:export(folder)" },
	{ "kernel for the CPU", "save", "k:export(folder)" },
};

static const char *other_words(const char *kind, const char *name)
{
	for (int i = 0; i < LEN(words); i++)
		if (!strcmp(words[i].kind, kind) && !strcmp(words[i].name, name))
			return words[i].instead;
	return NULL;
}

int missing_field(lua_State *L, const char *kind, int one, int two)
{
	const char *name, *near;

	if (lua_type(L, 2) == LUA_TSTRING && is_strict(L)) {
		name = lua_tostring(L, 2);
		near = other_words(kind, name);
		if (near)
			throw_msg(L, "%s has no '%.60s'; did you mean %s?", kind, name, near);
		near = near_key(L, name, one, two, NULL, 0);
		if (near)
			throw_msg(L, "%s has no '%.60s'; did you mean '%s'?", kind, name, near);
		throw_msg(L, "%s has no '%.60s'", kind, name);
	}
	lua_pushnil(L);
	return 1;
}

/* __index of records. Upvalues: kind, table of names, getter or nil. */
static int known_index_l(lua_State *L)
{
	lua_settop(L, 2);
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(2)) == LUA_TNIL)
		return missing_field(L, lua_tostring(L, lua_upvalueindex(1)), lua_upvalueindex(2), 0);
	if (lua_isnil(L, lua_upvalueindex(3)))
		return 0;
	lua_pushvalue(L, lua_upvalueindex(3));
	lua_pushvalue(L, 1);
	lua_pushvalue(L, 2);
	lua_call(L, 2, 1);
	return 1;
}

/* core.known(kind, {name = true}[, getter]) -> an __index: for other names, what a missing one
 * gives; for these, getter(table, name), or nil: the field is just not set. */
static int known_l(lua_State *L)
{
	luaL_checkstring(L, 1);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 3);
	lua_pushcclosure(L, known_index_l, 3);
	return 1;
}

void record_class(lua_State *L, const char *name, const char *kind, const char *const *names, int n)
{
	lua_newtable(L);
	lua_createtable(L, 0, n);
	for (int i = 0; i < n; i++)
		set_bool(L, names[i], true);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "fields");
	lua_pushstring(L, kind);
	lua_insert(L, -2);
	lua_pushnil(L);
	lua_pushcclosure(L, known_index_l, 3);
	lua_setfield(L, -2, "__index");
	lua_setfield(L, LUA_REGISTRYINDEX, name);
}

/* ---- globals ---- */

/* Is a name of mr meant by a global of about that name? Not if it begins otherwise: 'found' is no 'bound'. */
static const char *near_in_mr(lua_State *L, const char *name)
{
	const char *near;

	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_getfield(L, -1, "millrace");
	near = near_key(L, name, lua_gettop(L), 0, NULL, 0);
	return near && (near[0] == name[0] || (near[0] == name[1] && near[1] == name[0])) ? near : NULL;
}

/* __index of _G. Upvalue: the names that were assigned once. */
static int global_index_l(lua_State *L)
{
	static const char *const values[] = { "true", "false", "nil" };
	const char *name, *near = NULL, *of = "";

	lua_settop(L, 2);
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL || lua_type(L, 2) != LUA_TSTRING || !is_strict(L))
		return 0;
	name = lua_tostring(L, 2);
	if (strlen(name) > 1)		/* one letter is near to every other one */
		near = near_key(L, name, 1, 0, values, LEN(values));
	if (!near && strlen(name) > 1) {
		near = near_in_mr(L, name);
		of = "mr.";
	}
	if (near)
		throw_msg(L, "no global '%.60s'; did you mean '%s%s'?", name, of, near);
	throw_msg(L, "no global '%.60s'", name);
}

/* __newindex of _G: a name that was assigned may be nil from then on. */
static int global_newindex_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 3);
	lua_pushvalue(L, 2);
	lua_pushboolean(L, true);
	lua_rawset(L, lua_upvalueindex(1));
	lua_rawset(L, 1);
	return 0;
}

static void set_unless(lua_State *L, const char *key, lua_CFunction f, int seen)
{
	lua_pushstring(L, key);
	if (lua_rawget(L, -2) == LUA_TNIL) {
		lua_pushvalue(L, seen);
		lua_pushcclosure(L, f, 1);
		lua_setfield(L, -3, key);
	}
	lua_pop(L, 1);
}

/* ---- messages of Lua about nil ---- */

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* In a line of source, the variable of which the field or method `name` is read, "plan" of plan.name or
 * plan:name(); false if it is no variable. */
static bool receiver_in(const char *line, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);

	for (const char *at = strstr(line, name); at; at = strstr(at + 1, name)) {
		const char *end = at - 1, *begin = end;

		if (at == line || (*end != '.' && *end != ':') || in_name(at[len]))
			continue;
		while (begin > line && in_name(begin[-1]))
			begin--;
		if (begin == end || isdigit((unsigned char)*begin) || (begin > line && strchr(".:", begin[-1])))
			continue;
		snprintf(out, size, "%.*s", (int)(end - begin), begin);
		return true;
	}
	return false;
}

/* Push the value that a variable has in the function that raised the error, of whose handler this is called; or nil. */
static void push_variable(lua_State *L, const char *name)
{
	const char *s;
	lua_Debug ar;

	lua_pushnil(L);
	if (!lua_getstack(L, 1, &ar))
		return;
	for (int i = 1; (s = lua_getlocal(L, &ar, i)) != NULL; i++) {
		if (!strcmp(s, name))
			lua_replace(L, -2);	/* of several the innermost, which is the last */
		else
			lua_pop(L, 1);
	}
	if (!lua_isnil(L, -1) || !lua_getinfo(L, "f", &ar))
		return;
	for (int i = 1; (s = lua_getupvalue(L, -1, i)) != NULL; i++) {
		if (!strcmp(s, name)) {
			lua_replace(L, -3);
			lua_pop(L, 1);
			return;
		}
		lua_pop(L, 1);
	}
	lua_pop(L, 2);
	lua_pushglobaltable(L);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	lua_remove(L, -2);
}

/* Push what was perhaps meant by a field or method of mr or of one of our objects, as "'gelu'" or
 * "plan:simulate()"; NULL. "": name is a field of the object, and is nil. */
static const char *push_near_member(lua_State *L, const char *line, const char *name)
{
	char variable[64];
	const char *near;
	int object;

	if (!receiver_in(line, name, variable, sizeof(variable)))
		return NULL;
	luaL_checkstack(L, 12, "names");
	push_variable(L, variable);
	object = lua_gettop(L);
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_getfield(L, -1, "millrace");
	if (lua_rawequal(L, object, -1)) {
		near = other_words("mr", name);
		if (near)
			return near;
		near = near_key(L, name, lua_gettop(L), 0, NULL, 0);
		return near ? lua_pushfstring(L, "'%s'", near) : NULL;
	}
	if (luaL_getmetafield(L, object, "__name") != LUA_TSTRING)
		return NULL;
	near = strchr(lua_tostring(L, -1), '.');
	near = other_words(near ? near + 1 : lua_tostring(L, -1), name);
	if (!near)
		near = push_way_to(L, lua_tostring(L, -1), name);
	if (near)
		return near;
	if (luaL_getmetafield(L, object, "methods") == LUA_TNIL)
		lua_pushnil(L);
	if (luaL_getmetafield(L, object, "fields") == LUA_TNIL)
		lua_pushnil(L);
	near = near_key(L, name, lua_gettop(L) - 1, lua_gettop(L), NULL, 0);
	if (near && !strcmp(near, name))
		return lua_pushliteral(L, "");
	return near ? lua_pushfstring(L, "'%s'", near) : NULL;
}

/* What finds a name that is wrong, of a message about a value that is nil: of a field of the user's own tables, nothing. */
static const char *way_to_find(const char *msg, const char *name)
{
	if (strstr(msg, "attempt to call a nil value ("))
		return "; millrace -s says which name is wrong";
	return isalpha((unsigned char)name[0]) && !strchr(name, ' ') ? "; millrace -s finds misspelt names of Millrace" : "";
}

/* Of a field that is called as if it were a method, an element of an array that is indexed again, and a list of
 * suggestions that is empty. */
static bool push_hint_of_value(lua_State *L, const char *msg, const char *line)
{
	static const char *const kinds[] = { "string", "table", "number", "boolean" };

	for (int i = 0; i < LEN(kinds); i++) {
		const char *what = lua_pushfstring(L, "attempt to call a %s value (method '", kinds[i]);
		const char *at = strstr(msg, what);

		lua_pop(L, 1);
		if (!at)
			continue;
		at = strchr(at, '\'') + 1;
		lua_pushlstring(L, at, strcspn(at, "'"));
		lua_pushfstring(L, "; that is a field: .%s, without ()", lua_tostring(L, -1));
		return true;
	}
	if (strstr(msg, "attempt to index a number value (field 'integer index')")) {
		lua_pushliteral(L, "; of an array, a:get(i, j) is the element of row i and column j, and a[i] the i-th of all");
		return true;
	}
	if (!strstr(msg, "attempt to index a nil value (field '") || !strstr(line, ":suggest("))
		return false;
	lua_pushliteral(L,
		"; plan:suggest() has no such suggestion: printed, it says what there is, or what was tried");
	return true;
}

void push_name_hint(lua_State *L, const char *msg, const char *line)
{
	const char *at = strstr(msg, "a nil value ("), *near = NULL, *of = "", *end;
	char name[64];

	lua_pushliteral(L, "");
	if (push_hint_of_value(L, msg, line))
		return;
	if (!at || host_of(L)->strict != STRICT_OFF)
		return;
	if (strstr(msg, "a nil value (global 'help')")) {
		lua_pushliteral(L, "; help is a word of the shell: type it there (millrace -i opens it after a script), or "
			"millrace -e 'help \"plan\"'");
		return;
	}
	at += strlen("a nil value (");
	end = strchr(at, '\'');
	snprintf(name, sizeof(name), "%.*s", end ? (int)strcspn(end + 1, "'") : 0, end ? end + 1 : "");
	if (!strncmp(at, "local '", 7) || !strncmp(at, "upvalue '", 9) || !strncmp(at, "constant '", 10))
		name[0] = '\0';
	if (!strncmp(at, "global '", 8) && strlen(name) > 1) {
		lua_pushglobaltable(L);
		near = near_key(L, name, lua_gettop(L), 0, NULL, 0);
		if (!near) {
			near = near_in_mr(L, name);
			of = "mr.";
		}
		if (near) {
			lua_pushfstring(L, "; did you mean '%s%s'?", of, near);
			return;
		}
	} else if (!strncmp(at, "method '", 8) || !strncmp(at, "field '", 7)) {
		near = push_near_member(L, line, name);
		if (!near && *at == 'm')
			near = push_way_to(L, NULL, name);
		if (near) {
			if (*near)
				lua_pushfstring(L, "; did you mean %s?", near);
			return;
		}
	}
	lua_pushstring(L, way_to_find(msg, name));
}

void strict_set(lua_State *L, enum strict strict)
{
	int seen;

	host_of(L)->strict = strict;
	if (strict == STRICT_OFF)
		return;
	lua_newtable(L);
	seen = lua_gettop(L);
	lua_pushboolean(L, true);
	lua_setfield(L, seen, "_");	/* which the shell sets */
	lua_pushglobaltable(L);
	if (!lua_getmetatable(L, -1)) {
		lua_newtable(L);
		lua_pushvalue(L, -1);
		lua_setmetatable(L, -3);
	}
	set_unless(L, "__index", global_index_l, seen);
	set_unless(L, "__newindex", global_newindex_l, seen);
	lua_settop(L, seen - 1);
}

/* core.strict([on]) */
static int strict_l(lua_State *L)
{
	if (!lua_isnoneornil(L, 1) && !lua_isboolean(L, 1))
		throw_type(L, 1, "strict", "true or false");
	strict_set(L, lua_isboolean(L, 1) && !lua_toboolean(L, 1) ? STRICT_OFF : STRICT_ALL);
	return 0;
}

void lua_open_strict(lua_State *L)
{
	static const luaL_Reg functions[] = { { "known", known_l }, { "strict", strict_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
