/* Kernels that other ranks of a farm compile: what is sent there and what comes back (lua/std/helpers.lua). */
#include "lkernel.h"

#include <string.h>

#include "base/base64.h"

#define SOURCE_CLASS "millrace.compile_source"

enum { OPTIONS_MOST = 64 };

static const char *const apis[GPU_APIS] = { "cuda", "hip" };	/* ORDER gpu_api */

/* on the rank that wants the binary ------------------------------------------------ */

/* The object of core.compile_begin at 1; raises if it has become a kernel or was dropped. */
static struct built *check_looking(lua_State *L)
{
	return box_get(L, 1, COMPILING_CLASS, "compile");
}

/* The job of a phase that was looked up and is not there; NULL: none. */
static const struct compile_job *missing(const struct built *b, int phase, const char **tool)
{
	struct pool_job *j = b->phases[phase].compiling;

	return j ? pool_missing(j, tool) : NULL;
}

/* core.compile_missing(compiling) -> the phases, counted from 1, that wait for core.compile_give */
static int missing_l(lua_State *L)
{
	const struct built *b = check_looking(L);
	const char *tool;
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < b->nphases; i++) {
		if (!missing(b, i, &tool))
			continue;
		lua_pushinteger(L, i + 1);
		lua_rawseti(L, -2, ++n);
	}
	return 1;
}

/* The number of such a phase at index 2, from 0. */
static int check_phase(lua_State *L, const struct built *b)
{
	int phase = (int)check_integer(L, 2, "compile", "phase", 1, b->nphases) - 1;
	const char *tool;

	if (!missing(b, phase, &tool))
		throw_msg(L, "compile: phase %d waits for no binary", phase + 1);
	return phase;
}

/* core.compile_wanted(compiling, phase) -> what core.compile_source takes, with tool=, the compiler that it must be */
static int wanted_l(lua_State *L)
{
	const struct built *b = check_looking(L);
	int phase = check_phase(L, b);
	const char *tool;
	const struct compile_job *job = missing(b, phase, &tool);

	lua_createtable(L, 0, 7);
	set_text(L, "api", apis[job->api]);
	set_text(L, "name", job->name);
	set_text(L, "source", job->source);
	set_text(L, "arch", job->arch);
	set_bool(L, "fast_math", job->fast_math);
	PUSH_LIST(L, i, job->noptions, lua_pushstring(L, job->options[i]));
	lua_setfield(L, -2, "options");
	set_text(L, "tool", tool);
	return 1;
}

/* core.compile_give(compiling, phase[, tool, log, binary]): what another process compiled; without it, the phase is
 * compiled here */
static int give_l(lua_State *L)
{
	struct built *b = check_looking(L);
	int phase = check_phase(L, b);
	struct compile_given given = { 0 };

	if (!lua_isnoneornil(L, 3)) {
		given.tool = check_text(L, 3, "compile", "tool");
		given.log = check_text(L, 4, "compile", "log");
		given.cubin = luaL_checklstring(L, 5, &given.cubin_bytes);
	}
	enter(L);
	pool_again(b->phases[phase].compiling, &given);
	return 0;
}

/* on the rank that compiles ---------------------------------------------------------- */

BOX_GC(source, SOURCE_CLASS, pool_drop)

/* The list of texts at the top into job->options, which are in `a` and as long-lived as the list. */
static void read_options(lua_State *L, struct compile_job *job, struct arena *a)
{
	const char **options;
	int n = (int)lua_rawlen(L, -1);

	if (n > OPTIONS_MOST)
		throw_msg(L, "compile: %d options are more than %d", n, OPTIONS_MOST);
	enter(L);
	options = ARENA_ARRAY(a, n, const char *);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, -1, i + 1);
		options[i] = arena_strdup(a, check_text(L, -1, "compile", "option"));
		lua_pop(L, 1);
	}
	job->options = options;
	job->noptions = n;
}

/* core.compile_source{api=, name=, source=, arch=, fast_math=, options=} -> source, which is compiled in the background */
static int compile_source_l(lua_State *L)
{
	struct pool *p = pool_of(L);
	struct compile_job job = { 0 };
	struct arena *a;
	void **box;
	int api = GPU_CUDA;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	OPTIONS_CHECK(L, 1, "compile", "api", "name", "source", "arch", "fast_math", "options");
	a = scratch_push(L);
	option_name(L, 1, "compile", "api", apis, GPU_APIS, &api);
	job.api = (enum gpu_api)api;
	option_text(L, 1, "compile", "name", &job.name);
	option_text(L, 1, "compile", "source", &job.source);
	option_text(L, 1, "compile", "arch", &job.arch);
	option_bool(L, 1, "compile", "fast_math", &job.fast_math);
	if (option_push(L, 1, "compile", "options", LUA_TTABLE))
		read_options(L, &job, a);
	box = box_new(L, SOURCE_CLASS, 0);
	enter(L);
	pool_begin(p, &job, (struct pool_job **)box);
	return 1;
}

static struct pool_job *check_source(lua_State *L)
{
	return box_get(L, 1, SOURCE_CLASS, "compile");
}

RETURNS(source_done, lua_pushboolean(L, pool_done(check_source(L))))

/* source:result() -> tool, log, binary of one that is done; nil and the compiler's error */
static int source_result_l(lua_State *L)
{
	struct pool_job *j = check_source(L);
	struct arena *a = scratch_push(L);
	struct compile_result r;
	struct err e;

	if (!pool_done(j))
		throw_msg(L, "compile: it is not compiled yet");
	enter(L);
	if (pool_result(j, a, &r, &e)) {
		lua_pushnil(L);
		lua_pushstring(L, e.msg);
		return 2;
	}
	lua_pushstring(L, r.tool);
	lua_pushstring(L, r.log);
	lua_pushlstring(L, r.cubin, r.cubin_bytes);
	return 3;
}

/* source:drop(): stop compiling it */
static int source_drop_l(lua_State *L)
{
	void **box = luaL_checkudata(L, 1, SOURCE_CLASS);

	pool_drop(*box);
	*box = NULL;
	return 0;
}

/* bytes as text -------------------------------------------------------------------- */

/* core.base64(bytes) -> text */
static int base64_l(lua_State *L)
{
	size_t n, len;
	const char *data = luaL_checklstring(L, 1, &n);
	luaL_Buffer b;

	len = base64_length(n);
	base64_encode(data, n, luaL_buffinitsize(L, &b, len));
	luaL_pushresultsize(&b, len);
	return 1;
}

/* core.base64_bytes(text) -> bytes, or nil if it is no such text */
static int base64_bytes_l(lua_State *L)
{
	size_t n, len;
	const char *text = luaL_checklstring(L, 1, &n);
	luaL_Buffer b;

	if (base64_decode(text, n, luaL_buffinitsize(L, &b, n), &len))
		luaL_pushresultsize(&b, len);
	else
		lua_pushnil(L);
	return 1;
}

void lua_open_compile(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", source_l }, { NULL, NULL } };
	static const luaL_Reg methods[] = { { "done", source_done_l }, { "result", source_result_l }, { "drop", source_drop_l },
		{ NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "compile_missing", missing_l }, { "compile_wanted", wanted_l }, { "compile_give", give_l },
		{ "compile_source", compile_source_l }, { "base64", base64_l }, { "base64_bytes", base64_bytes_l },
		{ NULL, NULL } };

	class_new(L, &(struct class_def){ .name = SOURCE_CLASS, .methods = methods, .meta = meta });
	luaL_setfuncs(L, functions, 0);
}
