/* Measuring many kernels: compiling them in the background, timing them alternately, and calling
 * functions that an error or Ctrl-C may end. */
#include "lkernel.h"

#define POOL_CLASS "millrace.pool"

/* compiling ---------------------------------------------------------------- */

BOX_GC(pool_gc, POOL_CLASS, pool_free)

struct pool *pool_of(lua_State *L)
{
	struct host *h = enter(L);
	void **box = box_single(L, POOL_CLASS);

	if (!*box)
		pool_new(&h->mem, 0, (struct pool **)box);
	return *box;
}

BOX_GC(compiling_gc, COMPILING_CLASS, built_free)

static void step(lua_State *L, double seconds)
{
	struct pool *p = pool_of(L);
	struct stop stop = stop_of(enter(L));
	struct err e;

	raise_if(L, pool_step(p, seconds, &stop, &e), &e);
}

enum { COMPILING_PLAN = 1, COMPILING_KERNEL };	/* uservalues */

/* core.compile_begin(plan[, edit[, without[, only_cached]]]) -> compiling: as core.build, but in the background.
 * only_cached: phases that are not in the cache on disk wait for core.compile_give */
static int compile_begin_l(lua_State *L)
{
	struct pool *p = pool_of(L);
	struct stop stop = stop_of(host_of(L));
	struct built *b;

	lua_settop(L, 4);
	lua_pushboolean(L, true);
	lua_insert(L, 2);		/* -- plan true edit without only_cached */
	hold_finalizers(L);
	b = push_built(L, COMPILING_CLASS, backend_for(history_plan(check_plan(L, 1, "compile"))->device));
	built_choose_arch(b, gpu_of(L), &stop);
	built_begin(b, p, lua_toboolean(L, 5));
	step(L, 0);
	return 1;
}

/* The compiling object at index 1; NULL if it has become a kernel or was dropped. */
static struct built *check_compiling(lua_State *L)
{
	return *(void **)luaL_checkudata(L, 1, COMPILING_CLASS);
}

/* compiling:done(): never waits */
static int compiling_done_l(lua_State *L)
{
	const struct built *b = check_compiling(L);

	if (b)
		step(L, 0);
	lua_pushboolean(L, !b || built_ready(b));
	return 1;
}

/* compiling:kernel(): waits for the compiler; raises its error */
static int compiling_kernel_l(lua_State *L)
{
	struct built *b = check_compiling(L);
	struct err e;
	void **box;

	if (lua_getiuservalue(L, 1, COMPILING_KERNEL) == LUA_TUSERDATA)
		return 1;
	if (!b)
		throw_msg(L, "compile: this compilation was dropped");
	while (!built_ready(b))
		step(L, 1);
	enter(L);
	raise_if(L, built_end(b, &e), &e);
	lua_getiuservalue(L, 1, COMPILING_PLAN);
	box = box_new(L, KERNEL_CLASS, 2);
	keep(L, -1, 1, -2);
	*box = b;
	*(void **)lua_touserdata(L, 1) = NULL;
	keep(L, 1, COMPILING_KERNEL, -1);
	return 1;
}

/* compiling:drop(): stop compiling it */
static int compiling_drop_l(lua_State *L)
{
	struct built *b = check_compiling(L);

	*(void **)lua_touserdata(L, 1) = NULL;
	built_free(b);
	return 0;
}

/* core.compile_wait(seconds): wait until another kernel is compiled, for `seconds` at most */
static int compile_wait_l(lua_State *L)
{
	step(L, check_real(L, 1, "compile_wait", "seconds"));
	return 0;
}

/* core.compile_end_idle(): end the workers without a job */
static int compile_end_idle_l(lua_State *L)
{
	pool_end_idle(pool_of(L));
	return 0;
}

/* core.compile_state() -> the most workers, the present workers, the sources not compiled yet */
static int compile_state_l(lua_State *L)
{
	const struct pool *p = pool_of(L);

	lua_pushinteger(L, pool_workers(p));
	lua_pushinteger(L, pool_running(p));
	lua_pushinteger(L, pool_waiting(p));
	return 3;
}

/* races -------------------------------------------------------------------- */

/* The kernels at 1 under the names at 2, lists of the same length. */
static struct racer *check_racers(lua_State *L, int n, struct arena *a)
{
	struct racer *out;

	enter(L);
	out = ARENA_ARRAY(a, n, struct racer);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, 2, i + 1);
		out[i].name = arena_strdup(a, check_text(L, -1, "race", "name"));
		lua_rawgeti(L, 1, i + 1);
		out[i].built = box_get(L, -1, KERNEL_CLASS, "race");
		if (!built_same_tensors(out[0].built, out[i].built))
			throw_msg(L, "race: '%.40s' and '%.40s' do not compute the same", out[0].name, out[i].name);
		if (out[i].built->backend != out[0].built->backend)
			throw_msg(L, "race: '%.40s' and '%.40s' are kernels for different devices", out[0].name, out[i].name);
		lua_pop(L, 2);		/* the list keeps the kernel alive */
	}
	return out;
}

static void push_reals(lua_State *L, const char *key, const double *v, int n)
{
	PUSH_LIST(L, i, n, lua_pushnumber(L, v[i]));
	lua_setfield(L, -2, key);
}

static void push_race(lua_State *L, const struct gpu_result *r)
{
	int rounds = r->runs / r->contestants;

	lua_createtable(L, rounds, 5);
	for (int i = 0; i < rounds; i++) {
		PUSH_LIST(L, c, r->contestants, lua_pushnumber(L, r->ms[i * r->contestants + c]));
		lua_rawseti(L, -2, i + 1);
	}
	push_reals(L, "min", r->min_ms, r->contestants);
	push_reals(L, "max", r->max_ms, r->contestants);
	PUSH_LIST(L, c, r->contestants, lua_pushinteger(L, r->sample_runs[c]));
	lua_setfield(L, -2, "runs");
	set_text(L, "cache", gpu_cache_name(r->cache));
}

/* core.race(kernels, names, {seconds=, sample=, warmup=, rounds=, rounds_max=, seed=, limit=}) -> list of
 * rounds, each a list of milliseconds in the order of the kernels, with the lists min=, max= and runs=
 * (of a sample), and cache=. On random inputs of the seed. See struct gpu_race. */
static int race_l(lua_State *L)
{
	struct gpu_race race = { .seconds = 0.3, .sample_seconds = 0.02, .warmup = 0.02 };
	struct stop stop = stop_of(enter(L));
	int64_t seed = 1, rounds = 0, rounds_max = 0;
	struct racer *racers;
	struct gpu_result r;
	struct feed in;
	struct arena *a;
	double limit = 10;
	struct err e;
	int n;

	lua_settop(L, 3);
	luaL_checktype(L, 1, LUA_TTABLE);
	luaL_checktype(L, 2, LUA_TTABLE);
	n = (int)lua_rawlen(L, 1);
	if (n < 1 || n > GPU_CONTESTANTS_MAX)
		throw_msg(L, "race: 1 to %d kernels, not %d", GPU_CONTESTANTS_MAX, n);
	OPTIONS_CHECK(L, 3, "race", "seconds", "sample", "warmup", "rounds", "rounds_max", "seed", "limit");
	option_real(L, 3, "race", "seconds", &race.seconds);
	option_real(L, 3, "race", "sample", &race.sample_seconds);
	option_real(L, 3, "race", "warmup", &race.warmup);
	option_real(L, 3, "race", "limit", &limit);
	option_integer(L, 3, "race", "rounds", 0, GPU_RUNS_MAX / n, &rounds);
	option_integer(L, 3, "race", "rounds_max", 0, GPU_RUNS_MAX / n, &rounds_max);
	option_integer(L, 3, "race", "seed", INT64_MIN, INT64_MAX, &seed);
	race.rounds_min = (int)rounds;
	race.rounds_max = (int)rounds_max;
	a = scratch_push(L);
	racers = check_racers(L, n, a);
	enter(L);
	in = (struct feed){ ARENA_ARRAY(a, racers[0].built->graph->program->tensors.n, void *), (uint64_t)seed };
	raise_if(L, built_race(racers, n, gpu_of(L), &in, limit, &race, &stop, a, &r, &e), &e);
	push_race(L, &r);
	return 1;
}

/* work while the device measures ------------------------------------------- */

/* The registry's fields of these addresses: the function of core.meanwhile, and its error. */
static const char meanwhile_key, meanwhile_error_key;

static void set_meanwhile(lua_State *L, const char *key, int idx)
{
	lua_pushvalue(L, idx);
	lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* Called while the device works, in the thread that waits for it. It must not raise. An error is kept, and ends these calls. */
static void call_meanwhile(void *ud)
{
	struct host *h = ud;
	lua_State *L = h->L;
	int top = lua_gettop(L);

	if (!lua_checkstack(L, 4))
		return;
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &meanwhile_key) == LUA_TFUNCTION && lua_pcall(L, 0, 0, 0) != LUA_OK) {
		if (!lua_toboolean(L, -1))
			lua_pushboolean(L, true);
		lua_rawsetp(L, LUA_REGISTRYINDEX, &meanwhile_error_key);	/* the fields are there: it needs no memory */
		lua_pushboolean(L, false);
		lua_rawsetp(L, LUA_REGISTRYINDEX, &meanwhile_key);
	}
	lua_settop(L, top);
	enter(L);
}

/* core.meanwhile(f, g, ...) -> what g(...) returns. While the device works for g, f() is called now and then; it cannot use the
 * device. An error of f is raised when g has ended. */
static int meanwhile_l(lua_State *L)
{
	struct gpu *g = gpu_of(L);
	int status;

	luaL_checktype(L, 1, LUA_TFUNCTION);
	luaL_checktype(L, 2, LUA_TFUNCTION);
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &meanwhile_key) == LUA_TFUNCTION)
		throw_msg(L, "meanwhile: another function is called meanwhile");
	lua_pop(L, 1);
	lua_pushboolean(L, false);
	set_meanwhile(L, &meanwhile_error_key, -1);
	set_meanwhile(L, &meanwhile_key, 1);
	lua_pop(L, 1);
	gpu_meanwhile(g, call_meanwhile, host_of(L));
	status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
	gpu_meanwhile(g, NULL, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &meanwhile_error_key);
	lua_pushboolean(L, false);
	set_meanwhile(L, &meanwhile_error_key, -1);
	set_meanwhile(L, &meanwhile_key, -1);
	lua_pop(L, 1);
	if (lua_toboolean(L, -1))
		return lua_error(L);
	lua_pop(L, 1);
	if (status != LUA_OK)
		return lua_error(L);
	return lua_gettop(L) - 1;
}

/* Ctrl-C ------------------------------------------------------------------- */

/* Call the function at 1 with the arguments behind it: true and its results. Otherwise, if Ctrl-C ended
 * it exactly when `interrupts`: false and the error; other errors are raised. */
static int protected_call(lua_State *L, bool interrupts)
{
	struct host *h = host_of(L);

	luaL_checktype(L, 1, LUA_TFUNCTION);
	if (lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == LUA_OK) {
		lua_pushboolean(L, true);
		lua_insert(L, 1);
		return lua_gettop(L);
	}
	if ((h->interrupted != 0) != interrupts)
		return lua_error(L);
	if (interrupts)
		h->heeded++;
	h->interrupted = 0;
	lua_pushboolean(L, false);
	lua_insert(L, -2);
	return 2;
}

/* core.heed(f, ...) -> true and the results of f, or false and an error if Ctrl-C ended it. Raises errors of f. */
static int heed_l(lua_State *L)
{
	return protected_call(L, true);
}

/* core.try(f, ...) -> true and the results of f, or false and its error. Raises at Ctrl-C. */
static int try_l(lua_State *L)
{
	return protected_call(L, false);
}

static int call_uninterrupted_l(lua_State *L)
{
	struct host *h = host_of(L);
	int interrupted = h->interrupted, status;

	h->interrupted = 0;		/* the core does not see it either */
	h->uninterrupted++;
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
	h->uninterrupted--;
	if (interrupted)
		h->interrupted = interrupted;
	return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

bool is_uninterrupted_call(lua_State *L, lua_Debug *ar)
{
	bool is;

	lua_getinfo(L, "f", ar);
	is = lua_tocfunction(L, -1) == call_uninterrupted_l;
	lua_pop(L, 1);
	return is;
}

/* core.uninterrupted(f) -> a function that calls f, which Ctrl-C does not end: for the __close metamethod of a class; core.at_close is
 * simpler for a single block. f puts right what a function that was interrupted has left; it must end soon, and not yield. */
static int uninterrupted_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 1);
	lua_pushcclosure(L, call_uninterrupted_l, 1);
	return 1;
}

/* core.at_close(f) -> a value to declare <close>: f is called when the block ends, also by an error or Ctrl-C, and Ctrl-C does not end f */
static int at_close_l(lua_State *L)
{
	uninterrupted_l(L);
	lua_newtable(L);
	lua_createtable(L, 0, 1);
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, "__close");
	lua_setmetatable(L, -2);
	return 1;
}

/* core.heeded() -> how often Ctrl-C was caught, by core.heed or by search:run, so that the script goes on; who runs several of
 * these looks whether it has grown, and stops. */
RETURNS(heeded, lua_pushinteger(L, host_of(L)->heeded))

void lua_open_race(lua_State *L)
{
	static const luaL_Reg pool[] = { { "__gc", pool_gc_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", compiling_gc_l }, { NULL, NULL } };
	static const luaL_Reg methods[] = {
		{ "done", compiling_done_l }, { "kernel", compiling_kernel_l },
		{ "drop", compiling_drop_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "compile_begin", compile_begin_l }, { "compile_wait", compile_wait_l },
		{ "compile_end_idle", compile_end_idle_l }, { "compile_state", compile_state_l }, { "race", race_l },
		{ "meanwhile", meanwhile_l }, { "heed", heed_l }, { "heeded", heeded_l }, { "try", try_l },
		{ "uninterrupted", uninterrupted_l }, { "at_close", at_close_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = POOL_CLASS, .meta = pool });
	class_new(L, &(struct class_def){ .name = COMPILING_CLASS, .methods = methods, .meta = meta });
	luaL_setfuncs(L, functions, 0);
}
