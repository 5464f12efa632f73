#include "lcore.h"

#include <stdio.h>
#include <string.h>

enum { LISTED_MOST = 16 };		/* names that a message lists */

/* unknown names ---------------------------------------------------------- */

/* The option that other tools call `name`; NULL. */
static const char *option_called(const char *name, const char *const *names, int n)
{
	static const char *const words[][2] = { { "num_warps", "warps" }, { "maxnreg", "registers" },
		{ "offset", "at" }, { "stage", "at" }, { "unit", "seu" }, { "num_ctas", "cluster" },
		{ "swizzle", "group" }, { "force", "overwrite" } };

	for (int i = 0; i < (int)LEN(words); i++)
		for (int j = 0; strcmp(name, words[i][0]) == 0 && j < n; j++)
			if (strcmp(words[i][1], names[j]) == 0)
				return names[j];
	return NULL;
}

const char *name_meant(const char *name, const char *const *names, int n)
{
	const char *option = option_called(name, names, n);

	return option ? option : nearest_name(name, names, n);
}

/* Push "m, n, k". */
static const char *push_list(lua_State *L, const char *const *names, int n)
{
	luaL_Buffer b;

	luaL_buffinit(L, &b);
	for (int i = 0; i < n; i++) {
		luaL_addstring(&b, i ? ", " : "");
		luaL_addstring(&b, names[i]);
	}
	luaL_pushresult(&b);
	return lua_tostring(L, -1);
}

void throw_unknown(lua_State *L, const char *what, const char *kind, const char *name, const char *const *names, int n)
{
	const char *near = name_meant(name, names, n);

	if (near)
		throw_msg(L, "%s: unknown %s '%.60s'; did you mean '%s'?", what, kind, name, near);
	if (n > 0 && n <= LISTED_MOST)
		throw_msg(L, "%s: unknown %s '%.60s' (known: %s)", what, kind, name, push_list(L, names, n));
	throw_msg(L, "%s: unknown %s '%.60s'", what, kind, name);
}

/* arguments -------------------------------------------------------------- */

bool is_integer(lua_State *L, int idx, int64_t *out)
{
	int exact = 0;

	*out = 0;
	if (lua_type(L, idx) == LUA_TNUMBER)
		*out = lua_tointegerx(L, idx, &exact);
	return exact;
}

int64_t check_integer(lua_State *L, int idx, const char *what, const char *name, int64_t lo, int64_t hi)
{
	char got[SHOW_MAX];
	int64_t v;

	if (is_integer(L, idx, &v) && v >= lo && v <= hi)
		return v;
	show(L, idx, got);
	if (lo == INT64_MIN && hi == INT64_MAX)
		throw_msg(L, "%s: %s must be an integer, got %s", what, name, got);
	if (hi == INT64_MAX)
		throw_msg(L, "%s: %s must be an integer of at least %lld, got %s", what, name, (long long)lo, got);
	throw_msg(L, "%s: %s must be an integer from %lld to %lld, got %s", what, name,
		(long long)lo, (long long)hi, got);
}

double check_real(lua_State *L, int idx, const char *what, const char *name)
{
	char got[SHOW_MAX];

	if (lua_type(L, idx) != LUA_TNUMBER)
		throw_msg(L, "%s: %s must be a number, got %s", what, name, show(L, idx, got));
	return lua_tonumber(L, idx);
}

const char *check_text(lua_State *L, int idx, const char *what, const char *name)
{
	char got[SHOW_MAX];
	const char *s;
	size_t len;

	if (lua_type(L, idx) != LUA_TSTRING)
		throw_msg(L, "%s: %s must be a string, got %s", what, name, show(L, idx, got));
	s = lua_tolstring(L, idx, &len);
	if (strlen(s) != len)
		throw_msg(L, "%s: %s has no zero bytes, and '%.40s...' has", what, name, s);
	return s;
}

int check_choice(lua_State *L, int idx, const char *what, const char *kind, const char *const *names, int n)
{
	const char *s = check_text(L, idx, what, kind);

	for (int i = 0; i < n; i++)
		if (strcmp(s, names[i]) == 0)
			return i;
	throw_unknown(L, what, kind, s, names, n);
}

enum dtype check_dtype(lua_State *L, int idx, const char *what)
{
	const char *names[DT_COUNT];
	const char *s = check_text(L, idx, what, "dtype");
	enum dtype t;

	if (dtype_parse(s, &t))
		return t;
	for (int i = 0; i < DT_COUNT; i++)
		names[i] = dtype_name((enum dtype)i);
	throw_unknown(L, what, "dtype", s, names, DT_COUNT);
}

/* option tables ---------------------------------------------------------- */

void options_check(lua_State *L, int idx, const char *what, const char *const *names, int n)
{
	if (lua_isnoneornil(L, idx))
		return;
	if (lua_type(L, idx) != LUA_TTABLE)
		throw_type(L, idx, what, "table of options");
	copy_open(L, idx);
	lua_pushnil(L);
	while (lua_next(L, idx)) {
		lua_pop(L, 1);
		if (lua_type(L, -1) != LUA_TSTRING)
			throw_msg(L, "%s: options are given by name: %s{%s=...}", what, what, names[0]);
		check_choice(L, lua_gettop(L), what, "option", names, n);
	}
}

/* Push the option if it is there. */
static bool option_get(lua_State *L, int idx, const char *name)
{
	if (lua_isnoneornil(L, idx))
		return false;
	lua_pushstring(L, name);
	if (lua_rawget(L, idx) != LUA_TNIL)
		return true;
	lua_pop(L, 1);
	return false;
}

bool option_integer(lua_State *L, int idx, const char *what, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
	if (!option_get(L, idx, name))
		return false;
	*out = check_integer(L, -1, what, name, lo, hi);
	lua_pop(L, 1);
	return true;
}

bool option_real(lua_State *L, int idx, const char *what, const char *name, double *out)
{
	if (!option_get(L, idx, name))
		return false;
	*out = check_real(L, -1, what, name);
	lua_pop(L, 1);
	return true;
}

bool option_bool(lua_State *L, int idx, const char *what, const char *name, bool *out)
{
	char got[SHOW_MAX];

	if (!option_get(L, idx, name))
		return false;
	if (lua_type(L, -1) != LUA_TBOOLEAN)
		throw_msg(L, "%s: %s must be true or false, got %s", what, name, show(L, -1, got));
	*out = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return true;
}

bool option_name(lua_State *L, int idx, const char *what, const char *name, const char *const *names, int n, int *out)
{
	if (!option_get(L, idx, name))
		return false;
	*out = check_choice(L, -1, what, name, names, n);
	lua_pop(L, 1);
	return true;
}

bool option_text(lua_State *L, int idx, const char *what, const char *name, const char **out)
{
	if (!option_get(L, idx, name))
		return false;
	*out = check_text(L, -1, what, name);
	return true;
}

bool option_push(lua_State *L, int idx, const char *what, const char *name, int type)
{
	char got[SHOW_MAX];

	if (!option_get(L, idx, name))
		return false;
	if (lua_type(L, -1) != type)
		throw_msg(L, "%s: %s must be a %s, got %s", what, name, lua_typename(L, type), show(L, -1, got));
	return true;
}

void set_text(lua_State *L, const char *key, const char *v)
{
	lua_pushstring(L, v);
	lua_setfield(L, -2, key);
}

void set_integer(lua_State *L, const char *key, int64_t v)
{
	lua_pushinteger(L, v);
	lua_setfield(L, -2, key);
}

void set_real(lua_State *L, const char *key, double v)
{
	lua_pushnumber(L, v);
	lua_setfield(L, -2, key);
}

void set_bool(lua_State *L, const char *key, bool v)
{
	lua_pushboolean(L, v);
	lua_setfield(L, -2, key);
}

void set_function(lua_State *L, const char *key, lua_CFunction f)
{
	lua_pushcfunction(L, f);
	lua_setfield(L, -2, key);
}

int check_axis_key(lua_State *L, int key, const char *what, const struct program *p)
{
	const char *names[AXES_MAX];
	int n = 0;

	if (lua_type(L, key) != LUA_TSTRING)
		throw_msg(L, "%s: tile extents are given by axis name: {m=128, n=128}", what);
	for (; n < p->axes.n; n++)
		names[n] = p->axes.v[n].name;
	return check_choice(L, key, what, "axis", names, n);
}

void check_tiling(lua_State *L, int idx, const char *what, const struct program *p, struct tiling *out)
{
	char name[SHOW_MAX];

	*out = (struct tiling){ 0 };
	if (lua_type(L, idx) != LUA_TTABLE)
		throw_type(L, idx, what, "table of tile extents");
	idx = lua_absindex(L, idx);
	copy_open(L, idx);
	lua_pushnil(L);
	while (lua_next(L, idx)) {
		int axis = check_axis_key(L, lua_gettop(L) - 1, what, p);

		snprintf(name, sizeof(name), "tile extent of axis '%.30s'", p->axes.v[axis].name);
		out->extent[axis] = check_integer(L, -1, what, name, 1, INT64_MAX);
		lua_pop(L, 1);
	}
}
