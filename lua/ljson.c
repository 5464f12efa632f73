/* Messages of other programs: a line of standard input at a time, and JSON as values of Lua. jansson reads the JSON;
 * lua/std/json.lua writes it. */
#include "lcore.h"

#include <jansson.h>
#include <stdio.h>

#define JSON_CLASS "millrace.json"

enum { DEPTH_MAX = 64 };		/* lists and objects within each other */

static int json_gc_l(lua_State *L)
{
	json_t **root = luaL_checkudata(L, 1, JSON_CLASS);

	json_decref(*root);
	*root = NULL;
	return 0;
}

/* Does the value have lists and objects at most `most` deep? */
static bool is_shallow(const json_t *value, int most)
{
	const json_t *element;
	const char *key;
	size_t i;

	if (!json_is_array(value) && !json_is_object(value))
		return true;
	if (most == 0)
		return false;
	json_array_foreach((json_t *)value, i, element)
		if (!is_shallow(element, most - 1))
			return false;
	json_object_foreach((json_t *)value, key, element)
		if (!is_shallow(element, most - 1))
			return false;
	return true;
}

enum { NULL_VALUE = 2, LIST_CLASS };	/* stack indices of json_decode's arguments */

static void push_value(lua_State *L, const json_t *value)
{
	json_t *element;
	const char *key;
	size_t i;

	luaL_checkstack(L, 3, "JSON is nested too deep");
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		lua_createtable(L, 0, (int)json_object_size(value));
		json_object_foreach((json_t *)value, key, element) {
			push_value(L, element);
			lua_setfield(L, -2, key);
		}
		break;
	case JSON_ARRAY:
		lua_createtable(L, (int)json_array_size(value), 0);
		lua_pushvalue(L, LIST_CLASS);
		lua_setmetatable(L, -2);
		json_array_foreach(value, i, element) {
			push_value(L, element);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		}
		break;
	case JSON_STRING:
		lua_pushlstring(L, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		lua_pushinteger(L, json_integer_value(value));
		break;
	case JSON_REAL:
		lua_pushnumber(L, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		lua_pushboolean(L, json_is_true(value));
		break;
	case JSON_NULL:
		lua_pushvalue(L, NULL_VALUE);
		break;
	}
}

/* core.json_decode(text, null, class) -> the value, or nil and what is wrong with the text. null: what null becomes;
 * class: the metatable of lists, which tells an empty one from an empty object. */
static int json_decode_l(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	json_error_t e;
	json_t **root;

	luaL_checkany(L, NULL_VALUE);
	luaL_checktype(L, LIST_CLASS, LUA_TTABLE);
	root = (json_t **)box_new(L, JSON_CLASS, 0);
	lua_toclose(L, -1);
	*root = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (!*root) {
		lua_pushnil(L);
		lua_pushfstring(L, "byte %d: %s", e.position, e.text);
		return 2;
	}
	if (!is_shallow(*root, DEPTH_MAX)) {
		lua_pushnil(L);
		lua_pushfstring(L, "lists and objects are nested deeper than %d", DEPTH_MAX);
		return 2;
	}
	push_value(L, *root);
	return 1;
}

/* core.read_line(most) -> the next line of standard input; nil at its end; false if the line was longer than `most`
 * bytes, and is skipped. Raises at Ctrl-C. */
static int read_line_l(lua_State *L)
{
	lua_Integer most = luaL_checkinteger(L, 1), n = 0;
	luaL_Buffer b;
	int c;

	luaL_buffinit(L, &b);
	while ((c = getc(stdin)) != EOF && c != '\n')
		if (n++ < most)
			luaL_addchar(&b, (char)c);
	check_stop(L);
	if (c == EOF && n == 0)
		lua_pushnil(L);
	else if (n > most)
		lua_pushboolean(L, false);
	else
		luaL_pushresult(&b);
	return 1;
}

void lua_open_json(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", json_gc_l }, { "__close", json_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = JSON_CLASS, .meta = meta });
	set_function(L, "json_decode", json_decode_l);
	set_function(L, "read_line", read_line_l);
}
