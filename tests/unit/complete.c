#include "ui/complete.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

/* The words for a text with the cursor at its end, as "START: word word". */
static const char *words(lua_State *L, const char *text)
{
	static char out[4096];
	int top = lua_gettop(L);
	size_t n = (size_t)snprintf(out, sizeof(out), "%zu:", complete(L, text, strlen(text)));

	for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TSTRING; i++, lua_pop(L, 1))
		n += (size_t)snprintf(out + n, sizeof(out) - n, " %s", lua_tostring(L, -1));
	lua_settop(L, top);
	return out;
}

static void run(lua_State *L, const char *code)
{
	if (luaL_dostring(L, code))
		ok(false, lua_tostring(L, -1));
}

static void test_globals(lua_State *L)
{
	is_str(words(L, "wh"), "0: while", "a keyword");
	is_str(words(L, "x = tostr"), "4: tostring", "a global");
	is_str(words(L, "re"), "0: repeat require return", "both, sorted");
	is_str(words(L, "print(un"), "6: until", "in a call");
	is_str(words(L, "zzz"), "0:", "nothing");
	is_str(words(L, "_VE"), "0: _VERSION", "names with _ when asked for");
	ok(!strstr(words(L, ""), "_G"), "and not otherwise");
	is_str(words(L, "12"), "0:", "a number has no names");
	is_str(words(L, "a .. tos"), "5: tostring", "after ..");
	is_str(words(L, "a ..tos"), "4: tostring", "right after ..");
	is_int((long long)complete(L, "tos = 1", 3), 0, "the cursor may be within the text");
	lua_settop(L, 0);
}

static void test_fields(lua_State *L)
{
	is_str(words(L, "string.rep"), "7: rep", "a field");
	is_str(words(L, "math.m"), "5: max maxinteger min mininteger modf", "fields, sorted");
	is_str(words(L, "math:ma"), "5: max", "after : functions only");
	is_str(words(L, "none.x"), "5:", "of nothing");
	is_str(words(L, "math.pi.x"), "8:", "of a number");
	is_str(words(L, "print.x"), "6:", "of a function");
	run(L, "a = {b = {c = {deep = 1}}, [2] = {second = 1}, ['two words'] = 1, s = 'text'}");
	is_str(words(L, "f(a.b.c."), "8: deep", "a path");
	is_str(words(L, "a[2]."), "5: second", "with a number in it");
	is_str(words(L, "a[3]."), "5:", "which may be missing");
	is_str(words(L, "a[i]."), "5:", "or a variable");
	is_str(words(L, "a."), "2: b s", "no keys that are no names");
	is_str(words(L, "a.s:up"), "4: upper", "methods of strings");
	is_str(words(L, "f()."), "4:", "a call is never made");
	is_str(words(L, "io.stdout:se"), "10: seek setvbuf", "methods of a userdata");
}

/* Whatever a table does when it is touched, it is not touched. */
static void test_hostile(lua_State *L)
{
	run(L, "touched = 0 "
	       "local function touch() touched = touched + 1 error 'touched' end "
	       "wild = setmetatable({field = 1}, {__index = touch, __pairs = touch, "
	       "  __len = touch, __call = touch, __eq = touch, __tostring = touch}) "
	       "setmetatable(_G, {__index = touch})");
	is_str(words(L, "wild.f"), "5: field", "own fields only");
	is_str(words(L, "wild.none.x"), "10:", "a field that only __index could give");
	is_str(words(L, "nothing.x"), "8:", "a global that only __index could give");
	run(L, "setmetatable(_G, nil)");
	lua_getglobal(L, "touched");
	is_int(lua_tointeger(L, -1), 0, "no metamethod was called");
	lua_pop(L, 1);

	run(L, "base = {inherited = print} child = setmetatable({own = 1}, {__index = base}) "
	       "ring = {} setmetatable(ring, {__index = ring})");
	is_str(words(L, "child."), "6: inherited own", "a table as __index is followed");
	is_str(words(L, "child:"), "6: inherited", "also for methods");
	is_str(words(L, "ring."), "5:", "even if it is a ring");
	run(L, "class = setmetatable({}, {__index = error, "
	       "  methods = {append = print, _hidden = print}, fields = {ii = true}})");
	is_str(words(L, "class."), "6: append ii", "our objects: methods and fields");
	is_str(words(L, "class:"), "6: append", "after : methods");
}

static void test_locals(lua_State *L)
{
	is_str(words(L, "local plan_a, plan_b = 1, 2\npl"), "28: plan_a plan_b", "locals");
	is_str(words(L, "local value <const> = 1 val"), "24: value", "with attributes");
	is_str(words(L, "local value <const>, valley = 1 val"), "32: valley value",
	       "and after them");
	is_str(words(L, "for index, item in pairs(t) do it"), "31: item", "of a for");
	is_str(words(L, "function f(left, right) le"), "24: left", "parameters");
	is_str(words(L, "local function f(left, ...) le"), "28: left", "of a local function");
	is_str(words(L, "p:loop(n, function(inner) inn"), "26: inner", "of a function value");
	is_str(words(L, "function a.b:c(left) le"), "21: left", "of a method");
	is_str(words(L, "-- local commented = 1\ncomm"), "23:", "not in comments");
	is_str(words(L, "x = 'local quoted = 1' quo"), "23:", "nor in strings");
	run(L, "shadow = {global = 1}");
	is_str(words(L, "shadow."), "7: global", "a global's fields");
	is_str(words(L, "local shadow = f() shadow."), "26:", "but not if a local hides it");
	is_str(words(L, "local unfinis"), "6:", "the word itself is no candidate");
}

static void test_places(lua_State *L)
{
	is_str(words(L, "x = 1 -- pri"), "9:", "a comment");
	is_str(words(L, "x = 1 -- a\npri"), "11: print", "the line after it");
	is_str(words(L, "x = 1 --[[ a\npri"), "13:", "a long comment");
	is_str(words(L, "x = 1 --[==[ a ]] ]==] pri"), "23: print", "after it");
	is_str(words(L, "x = [[ pri"), "7:", "a long string");
	is_str(words(L, "x = [=[ ]] ]=] .. pri"), "18: print", "after it");
	is_str(words(L, "x = 'it\\'s' .. pri"), "15: print", "after a quote with a quote in it");
	is_str(words(L, "x = 'open\npri"), "10: print", "a string ends with its line");
	is_str(words(L, "t[[pri"), "3:", "no end of a bracket");
}

static void test_files(lua_State *L)
{
	char dir[] = "/tmp/completeXXXXXX", path[100], text[100], want[200];
	FILE *f;

	if (!mkdtemp(dir)) {
		skip("no folder for files");
		return;
	}
	snprintf(path, sizeof(path), "%s/plan.lua", dir);
	if ((f = fopen(path, "w")))
		fclose(f);
	snprintf(path, sizeof(path), "%s/plans", dir);
	mkdir(path, 0700);
	snprintf(text, sizeof(text), "dofile \"%s/pl", dir);
	snprintf(want, sizeof(want), "%zu: plan.lua plans/", strlen(text) - 2);
	is_str(words(L, text), want, "files and folders inside quotes");
	snprintf(text, sizeof(text), "dofile '%s/none/", dir);
	snprintf(want, sizeof(want), "%zu:", strlen(text));
	is_str(words(L, text), want, "a folder that is not there");
	rmdir(path);
	snprintf(path, sizeof(path), "%s/plan.lua", dir);
	unlink(path);
	rmdir(dir);
}

/* Every beginning of a hard text, and bytes of all kinds: no crash, no error. */
static void test_any_text(lua_State *L)
{
	static const char hard[] =
		"local function f(a, b) --[==[ x ]=] ]==] return 'q\\'' .. \"\\\"\" [[ long ]] "
		"0x1p-2 1e5..'' a.b:c[1].d[\"e\"] ~= nil :: lbl :: <const> \\ \xff\xfe for in local";
	unsigned seed = 1;
	char text[64];

	for (size_t n = 0; n < sizeof(hard); n++) {
		complete(L, hard, n);
		lua_settop(L, 0);
	}
	for (int i = 0; i < 20000; i++) {
		size_t n = 0;

		while (n < sizeof(text) - 1) {
			seed = seed * 1103515245 + 12345;
			text[n++] = " \n.:-[]='\"\\(),<>aflocn_1"[seed / 65536 % 24];
		}
		text[n] = '\0';
		complete(L, text, seed / 65536 % sizeof(text));
		lua_settop(L, 0);
	}
	ok(true, "any text can be completed");
}

int main(void)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	test_globals(L);
	test_fields(L);
	test_hostile(L);
	test_locals(L);
	test_places(L);
	test_files(L);
	test_any_text(L);
	lua_close(L);
	return tap_done();
}
