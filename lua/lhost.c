/* Kernels on the CPU. */
#include "lkernel.h"

static int on_host_gc_l(lua_State *L)
{
	on_host_free(box_take(L, ON_HOST_CLASS));
	return 0;
}

static int on_host_source_l(lua_State *L)
{
	const struct on_host *k = box_get(L, 1, ON_HOST_CLASS, "source");
	luaL_Buffer text;

	luaL_buffinit(L, &text);
	for (int i = 0; i < k->nphases; i++)
		luaL_addlstring(&text, k->sources[i].text.text, k->sources[i].text.len);
	luaL_pushresult(&text);
	return 1;
}

/* core.host_build(plan, without) -> the plan's kernels, compiled for the CPU */
static int host_build_l(lua_State *L)
{
	struct host *h = enter(L);
	struct history *plan = check_plan(L, 1, "compile");
	struct stop stop = stop_of(h);
	struct on_host *k;
	struct err e;
	void **box;

	hold_finalizers(L);
	check_legal(L, history_plan(plan), "compile");
	box = box_new(L, ON_HOST_CLASS, 1);
	keep(L, -1, 1, 1);
	enter(L);
	on_host_new(&h->mem, (struct on_host **)box);
	k = *box;
	if (history_snapshot(plan, &k->graph, &k->plan, &e))
		throw_err(L, &e);
	k->plan->without = (unsigned)lua_tointeger(L, 2);
	if (on_host_compile(k, &stop, &e))
		throw_err(L, &e);
	return 1;
}

/* core.host_run(kernels, inputs, {seed=, race=, limit=}) -> outputs, nil or a report */
static int host_run_l(lua_State *L)
{
	static const char *const names[] = { "seed", "race", "limit" };
	struct host *h = enter(L);
	struct on_host *k = box_get(L, 1, ON_HOST_CLASS, "run");
	const struct program *p = k->plan->graph->program;
	struct on_host_options o = { .limit = 60 };
	struct stop stop = stop_of(h);
	const char *report;
	int64_t seed = 1;
	struct arena *a;
	void **data;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "run", p);
	options_check(L, 3, "run", names, LEN(names));
	option_integer(L, 3, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_bool(L, 3, "run", "race", &o.race);
	option_real(L, 3, "run", "limit", &o.limit);
	o.seed = (uint64_t)seed;
	lua_newtable(L);
	a = scratch_push(L);
	enter(L);
	data = tensor_pointers(L, p, 2, 4, a);
	enter(L);
	if (on_host_run(k, data, &o, &stop, a, &report, &e))
		throw_err(L, &e);
	lua_pushvalue(L, 4);
	lua_pushstring(L, report);
	return 2;
}

static int on_host_target_l(lua_State *L)
{
	lua_pushliteral(L, "host");
	return 1;
}

static int on_host_plan_l(lua_State *L)
{
	box_get(L, 1, ON_HOST_CLASS, "plan");
	lua_getiuservalue(L, 1, 1);
	return 1;
}

void lua_open_host(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", on_host_gc_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = { { "source", on_host_source_l },
		{ "target", on_host_target_l }, { "plan", on_host_plan_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "host_build", host_build_l }, { "host_run", host_run_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ ON_HOST_CLASS, NULL, fields, meta });
	luaL_setfuncs(L, functions, 0);
}
