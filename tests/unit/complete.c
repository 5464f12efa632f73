#include <lauxlib.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lua/lcore.h"
#include "tap.h"

/* Push the words for the first n bytes of a text; returns where they would stand. */
static size_t complete(lua_State *L, const char *text, size_t n)
{
	size_t typed;

	lua_getfield(L, LUA_REGISTRYINDEX, "complete");
	lua_pushlstring(L, text, n);
	if (lua_pcall(L, 1, 2, 0)) {
		ok(false, lua_tostring(L, -1));
		lua_newtable(L);
		return 0;
	}
	typed = (size_t)lua_tointeger(L, -1);
	lua_pop(L, 1);
	return n - typed;
}

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

static int host_set_mr_l(lua_State *L)
{
	host_set_mr(L);
	return 0;
}

/* Load the module before anything of Lua is changed, as the shell does. */
static void load_module(lua_State *L)
{
	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace.complete");
	if (lua_pcall(L, 1, 1, 0))
		ok(false, lua_tostring(L, -1));
	lua_setfield(L, LUA_REGISTRYINDEX, "complete");
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

static void test_calls(lua_State *L)
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

/* Inside calls of ours: what has to be offered, and one word that may not; NULL: any. */
static const struct offer {
	const char *text, *words, *not;
} offers[] = {
	{ "plan:append(\"", "load_a load_b mma mma.0 mma.1 store_c.0", "plan.lua" },
	{ "plan:append('mm", "mma mma.0 mma.1", "load_a" },
	{ "plan:append \"", "load_a mma.0", NULL },
	{ "plan:append(\"mma.0\", {lane=\"", "p0 c0 c1", "mma" },
	{ "plan:append(\"mma.0\", {seu=\"", "tma tensor cuda mma_sync", "c0" },
	{ "plan:append(\"mma.0\", {seu = 't", "tma tensor", "cuda" },
	{ "plan:append(\"mma.0\", {", "seu= lane= at=", "warps=" },
	{ "plan:append(\"mma.0\", {at=1, l", "lane=", "load" },
	{ "plan:append(\"mma.0\", {", "seu=", "and" },
	{ "plan:append(\"mma.0\", {", "seu=", "print" },
	{ "plan:append(\"mma.0\", {at=1; ", "lane=", "plan" },
	{ "plan:append(\"mma.0\", {at=1, pri", "print", "lane=" },
	{ "plan:append(\"mma.0\", ", "print", "lane=" },
	{ "plan:suggest{", "trials=", "print" },
	{ "plan:buffers{ep", "epilogue=", "epilogue.0=" },
	{ "plan:move({\"mma.1\", \"", "mma.0 store_c", "c0" },
	{ "plan:append(\"mma.0\", {at=", "math", "lane=" },
	{ "plan:move(\"mm", "mma mma.1", NULL },
	{ "plan:move(\"mma\", {", "at= before= after= lane= seu= repair_waits=", "warps=" },
	{ "plan:move(\"mma\", {after=\"", "load_a mma.0", "c0" },
	{ "plan:move(\"mma\", {at=1, before=\"lo", "load_a load_b", "mma" },
	{ "plan:insert(\"mma\", {lane=\"", "c0 p0", NULL },
	{ "plan:remove(\"", "load_a", NULL },
	{ "plan:wait(\"", "load_a mma", NULL },
	{ "plan:wait(\"mma.0\", {\"", "load_a load_b", "complete" },
	{ "plan:wait(\"mma.0\", {\"load_a\", \"load", "load_a load_b", NULL },
	{ "plan:wait(\"mma.0\", {{\"load", "load_a load_b", NULL },
	{ "plan:wait(\"mma.0\", {{\"load_a\", when=\"", "complete issued", "load_b" },
	{ "plan:wait(\"mma.0\", {{\"load_a\", ", "distance= when=", NULL },
	{ "plan:unwait(\"mma.0\", \"", "load_a", NULL },
	{ "plan:lane(\"", "c0 c1 p0", "mma" },
	{ "plan:lane(\"c0\", {", "warps= registers= replicas=", "at=" },
	{ "plan:buffers{", "a= b=", "load_a=" },
	{ "plan:buffers{a=3, ", "b=", NULL },
	{ "plan:alias{a=\"", "a b", "load_a" },
	{ "plan:split(\"", "m n k", "mma" },
	{ "plan:split(\"m\", 2, {\"", "mma load_a", "m" },
	{ "plan:split_off(\"", "a b", NULL },
	{ "plan:grid{", "raster= group= eus= chiplets= cluster= dynamic= keep= longest_first= section=", NULL },
	{ "plan:grid{raster=\"", "rows columns", "group" },
	{ "plan:propagate{", "m= n= k=", NULL },
	{ "plan:compile{", "target= text= without=", NULL },
	{ "plan:compile{target=\"", "cuda hip host", NULL },
	{ "plan:compile{without={\"", "hoist unmask partial_sums", NULL },
	{ "plan:kernel{after=\"", "peel hoist unroll", "partial_sums" },
	{ "plan:kernel{target='h", "host", "cuda" },
	{ "plan:simulate{", "events=", NULL },
	{ "plan:simulate():print{", "width= by= phase= from=", "warps=" },
	{ "tl:print{by=\"", "lane seu", NULL },
	{ "tl:text{by='", "lane seu", NULL },
	{ "bound:graph{", "tile=", NULL },
	{ "bound:graph{tile={", "m= n= k=", "tile=" },
	{ "bound:graph{tile={m=128, ", "n= k=", NULL },
	{ "bound:reference(x, {on=\"", "host device", NULL },
	{ "bound:inputs{", "seed=", NULL },
	{ "k:check{reference=\"", "interpreter host device", NULL },
	{ "k:check{", "seed= reference=", NULL },
	{ "k:bench{", "seconds=", NULL },
	{ "mr.device \"", "h200 h100 a100 mi300x", NULL },
	{ "mr.device(\"h", "h100 h200", "a100" },
	{ "mr.device(\"src/", "plan/", "h200" },
	{ "mr.load_plan \"att", "attention_pingpong attention_serial", "gemm" },
	{ "mr.load_plan(\"", "gemm_cooperative Makefile", "h200" },
	{ "mr.examples[\"fl", "flash_attention flash_decoding", "gemm" },
	{ "mr.examples.fl", "flash_attention flash_decoding", NULL },
	{ "mr.examples.gemm{", "m= n= k= bias=", "h=" },
	{ "mr.examples.flash_attention{causal=true, ", "b= h= m= d= hkv=", NULL },
	{ "mr.examples.gemm{dtype=\"", "bf16 f16 e4m3", NULL },
	{ "mr.search(bound, nil, {", "seconds= trials= tile=", NULL },
	{ "plan:improve{", "pin= tasks= trials= seconds=", "on=" },
	{ "mr.array(\"b", "bf16 bool", "f16" },
	{ "p:input(\"A\", {m, k}, \"", "bf16 f32", NULL },
	{ "help \"plan:m", "plan:move", "plan" },
	{ "help(\"dead", "deadlock", NULL },
	{ "plan:stri", "", NULL },
	{ "dofile \"src/pl", "plan/", NULL },
	{ "io.open(\"REA", "README.md", NULL },
	{ "require \"", "millrace", "Makefile" },
	{ "unheard_of(\"READ", "README.md", NULL },
	{ "local plan = f() plan:append(\"", "", "load_a" },
	{ "print{", "math", "width=" },
	{ "x = {", "math", "at=" },
};

static bool has_word(const char *list, const char *word, size_t n)
{
	for (const char *s = list; (s = strstr(s, word)); s++)
		if (s[-1] == ' ' && (s[n] == ' ' || !s[n]))
			return true;
	return false;
}

static void test_offer(lua_State *L, const struct offer *o)
{
	char out[4096], word[64];
	const char *s = o->words;

	snprintf(out, sizeof(out), "%s", words(L, o->text));
	while (*s) {
		size_t n = strcspn(s, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (!has_word(out, word, n)) {
			is_str(out, word, o->text);
			return;
		}
		s += n + (s[n] == ' ');
	}
	if (o->not && has_word(out, o->not, strlen(o->not)))
		is_str(out, o->not, o->text);
	else
		ok(true, o->text);
}

static void test_offers(void)
{
	struct host h = { .home = getenv("MILLRACE_HOME") ? getenv("MILLRACE_HOME") : "." };
	lua_State *L = host_open(&h);

	if (!L || (lua_pushcfunction(L, host_set_mr_l), lua_pcall(L, 0, 0, 0))) {
		ok(false, "a state with mr");
		return;
	}
	load_module(L);
	run(L, "plan = mr.load_plan 'gemm_cooperative' bound = plan.graph.program "
	       "tl = plan:simulate() k = plan:compile{text=true}");
	/* whatever the user has done to Lua, and to what ours might touch */
	run(L, "touched = 0 local function touch() touched = touched + 1 error 'touched' end "
	       "string.match, string.find, string.gmatch, string.sub, pairs, ipairs, next = touch, touch, touch, "
	       "touch, touch, touch, touch io.open, require, mr.devices = touch, touch, touch "
	       "plan2 = setmetatable({}, {__index = touch, __pairs = touch, __name = 'millrace.plan'})");
	for (int i = 0; i < LEN(offers); i++)
		test_offer(L, &offers[i]);
	words(L, "plan2:append(\"");
	words(L, "plan2:append(\"x\", {lane=\"");
	words(L, "plan2.x.y{");
	lua_getglobal(L, "touched");
	is_int(lua_tointeger(L, -1), 0, "nothing of the user's was called");
	host_close(L);
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
	struct host h = { .home = getenv("MILLRACE_HOME") ? getenv("MILLRACE_HOME") : "." };
	lua_State *L = host_open(&h);

	load_module(L);
	test_globals(L);
	test_fields(L);
	test_hostile(L);
	test_locals(L);
	test_calls(L);
	test_files(L);
	test_any_text(L);
	host_close(L);
	test_offers();
	return tap_done();
}
