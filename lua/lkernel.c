/* The attached device, and kernels: building them for either backend, their fields, running them. */
#include "lkernel.h"

#include <math.h>
#include <stdlib.h>

#include "plan/sized.h"

#define GPU_CLASS "millrace.gpu"

/* the device --------------------------------------------------------------- */

BOX_GC(gpu_gc, GPU_CLASS, gpu_free)

void **box_single(lua_State *L, const char *class_name)
{
	void **box;

	if (lua_rawgetp(L, LUA_REGISTRYINDEX, class_name) != LUA_TUSERDATA) {
		lua_pop(L, 1);
		box_new(L, class_name, 0);
		lua_pushvalue(L, -1);
		lua_rawsetp(L, LUA_REGISTRYINDEX, class_name);
	}
	box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	return box;
}

struct gpu *gpu_of(lua_State *L)
{
	struct host *h = enter(L);
	void **box = box_single(L, GPU_CLASS);

	if (!*box)
		gpu_new(&h->mem, h->gpu_ordinal, (struct gpu **)box);
	return *box;
}

/* core.use_gpu(ordinal): run kernels on this GPU, counted from 0. An error if another one is in use already. */
static int use_gpu_l(lua_State *L)
{
	struct host *h = enter(L);
	int ordinal = (int)luaL_checkinteger(L, 1);

	if (*box_single(L, GPU_CLASS) && ordinal != h->gpu_ordinal)
		throw_msg(L, "device %d is in use already, so device %d cannot be", h->gpu_ordinal, ordinal);
	h->gpu_ordinal = ordinal;
	return 0;
}

/* Set a field, unless the text is empty. */
static void set_unless_empty(lua_State *L, const char *key, const char *text)
{
	if (text[0])
		set_text(L, key, text);
}

#define ATTACHED_RECORD "millrace.attached"

static const char *const attached_fields[] = { "name", "arch", "bus", "driver", "trouble", "sms", "memory",
	"partition", "power_limit" };

static void push_info(lua_State *L, const struct gpu_info *info)
{
	char trouble[GPU_TROUBLE_MAX];

	gpu_trouble(info, trouble);
	lua_createtable(L, 0, 9);
	set_unless_empty(L, "name", info->name);
	set_unless_empty(L, "arch", info->arch);
	set_unless_empty(L, "bus", info->bus);
	set_unless_empty(L, "driver", info->board.driver);
	set_unless_empty(L, "trouble", trouble);
	set_integer(L, "sms", info->sms);
	set_integer(L, "memory", info->memory_free);
	set_bool(L, "partition", info->board.partition);
	if (info->board.power_limit > 0)
		set_real(L, "power_limit", info->board.power_limit);
	luaL_setmetatable(L, ATTACHED_RECORD);
}

/* core.attached([target]) -> {name=, arch=, sms=, memory=, partition=, bus=, driver=, power_limit=,
 * trouble=}, the last four nil if unknown or none; or nil and why there is no device. target: one that
 * runs its kernels. */
static int attached_l(lua_State *L)
{
	static const char *const names[GPU_APIS] = { "cuda", "hip" };	/* ORDER gpu_api */
	enum gpu_api api = lua_isnoneornil(L, 1) ? GPU_APIS :
		(enum gpu_api)check_choice(L, 1, "attached", "target", names, GPU_APIS);
	struct gpu *g = gpu_of(L);
	struct stop stop = stop_of(host_of(L));
	struct gpu_info info;
	struct err e;

	if (!gpu_probe(g, api, &stop, &info, &e)) {
		push_info(L, &info);
		return 1;
	}
	if (e.code == ERR_INTERRUPTED)
		throw_err(L, &e);
	lua_pushnil(L);
	lua_pushstring(L, e.msg);
	return 2;
}

/* kernels ------------------------------------------------------------------ */

static struct built *check_kernel(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, KERNEL_CLASS, what);
}

struct built *check_built(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, luaL_testudata(L, idx, ON_HOST_CLASS) ? ON_HOST_CLASS : KERNEL_CLASS, what);
}

static int kernel_gc_l(lua_State *L)
{
	void **box = lua_touserdata(L, 1);

	built_free(*box);
	*box = NULL;
	return 0;
}

enum backend check_backend(lua_State *L, int idx, const char *what)
{
	const char *names[BACKEND_COUNT];

	for (int i = 0; i < BACKEND_COUNT; i++)
		names[i] = backends[i].name;
	return (enum backend)check_choice(L, idx, what, "target", names, BACKEND_COUNT);
}

void check_prints(lua_State *L, enum backend backend, const struct plan *p, const char *what)
{
	enum backend its = backend_for(p->device);

	if (!backend_prints(backend, p->device))
		throw_msg(L, "%s: kernels for '%s' are %s, not %s: say target=\"%s\", or target=\"host\" to run them on the CPU",
			what, p->device->name, backends[its].language, backends[backend].language, backends[its].name);
}

/* Replace each phase's text by the result of the function at idx. */
static void edit_sources(lua_State *L, int idx, struct built *b)
{
	for (int i = 0; i < b->nphases; i++) {
		struct buf *text = &b->phases[i].source.text;
		struct buf edited;
		const char *got;
		size_t n;

		lua_pushvalue(L, idx);
		lua_pushlstring(L, text->text, text->len);
		lua_call(L, 1, 1);
		got = lua_tolstring(L, -1, &n);
		if (!got)
			throw_msg(L, "build: the edit of a source must give a text");
		enter(L);
		buf_init(&edited, &b->arena);
		buf_putn(&edited, got, n);
		*text = edited;
		b->phases[i].source.definitions.n = 0;
		lua_pop(L, 1);
	}
}

struct built *push_built(lua_State *L, const char *class_name, enum backend backend)
{
	struct host *h = enter(L);
	struct history *plan = check_plan(L, 1, "compile");
	struct stop stop = stop_of(h);
	struct built *b;
	struct err e;
	void **box;

	check_legal(L, history_plan(plan), "compile");
	check_prints(L, backend, history_plan(plan), "compile");
	box = box_new(L, class_name, 2);
	keep(L, -1, 1, 1);
	enter(L);
	built_new(&h->mem, backend, (struct built **)box);
	b = *box;
	raise_if(L, history_snapshot(plan, &b->graph, &b->plan, &e), &e);
	b->plan->without = (unsigned)lua_tointeger(L, 4);
	raise_if(L, built_emit(b, NULL, NULL, &stop, &e), &e);
	if (lua_isfunction(L, 3))
		edit_sources(L, 3, b);
	enter(L);
	return b;
}

/* core.targets() -> names of the backends */
RETURNS(targets, PUSH_LIST(L, i, BACKEND_COUNT, lua_pushstring(L, backends[i].name)))

/* core.target_for(plan) -> the one that the plan is compiled for by default */
RETURNS(target_for, lua_pushstring(L, backends[backend_for(history_plan(check_plan(L, 1, "compile"))->device)].name))

/* core.gpu_target(plan) -> the same, but cuda where that is the CPU */
RETURNS(gpu_target, lua_pushstring(L, backend_for(history_plan(check_plan(L, 1, "compile"))->device) == BACKEND_HIP ?
	"hip" : "cuda"))

/* core.target(x) -> the target of a kernel, nil of any other value */
static int target_l(lua_State *L)
{
	bool kernel = luaL_testudata(L, 1, KERNEL_CLASS) || luaL_testudata(L, 1, ON_HOST_CLASS);

	lua_pushstring(L, kernel ? backends[check_built(L, 1, "target")->backend].name : NULL);
	return 1;
}

/* core.build(plan, compile?[, edit[, without[, target]]]) -> kernel, compiled if `compile`. edit(text)
 * -> the text to compile instead: tests use it for kernels that hang or fault. without: bits of
 * core.lean_names(). target: core.target_for(plan) unless given. */
static int build_l(lua_State *L)
{
	bool compile = lua_toboolean(L, 2);
	struct stop stop = stop_of(host_of(L));
	enum backend backend;
	struct built *b;
	struct err e;

	lua_settop(L, 5);
	backend = !lua_isnil(L, 5) ? check_backend(L, 5, "compile") :
		backend_for(history_plan(check_plan(L, 1, "compile"))->device);
	hold_finalizers(L);
	b = push_built(L, backend == BACKEND_HOST ? ON_HOST_CLASS : KERNEL_CLASS, backend);
	if (compile)
		built_choose_arch(b, gpu_of(L), &stop);
	if (compile && built_compile(b, gpu_of(L), &stop, &e))
		throw_err(L, &e);
	return 1;
}

RETURNS_TEXT(kernel_source, const struct built *, check_built(L, 1, "source"), built_print(o, &text))

RETURNS(kernel_target, lua_pushstring(L, backends[check_built(L, 1, "target")->backend].name))

static int kernel_smem_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "smem");
	int64_t most = 0;

	for (int i = 0; i < b->nphases; i++)
		most = max_i64(most, b->phases[i].source.shared_bytes);
	lua_pushinteger(L, most);
	return 1;
}

/* Registers (which 0) or spills (1) that the compiler reported, the maximum over phases. */
static int kernel_use(lua_State *L, const char *what, int which)
{
	const struct built *b = check_kernel(L, 1, what);
	int64_t most = 0;

	for (int i = 0; i < b->nphases; i++) {
		for (int k = 0; k < b->phases[i].binary.nuses; k++) {
			const struct compile_use *u = &b->phases[i].binary.uses[k];

			most = max_i64(most, which ? u->spill_stores + u->spill_loads : u->registers);
		}
	}
	lua_pushinteger(L, most);
	return 1;
}

RETURNS(kernel_registers, kernel_use(L, "registers", 0))

RETURNS(kernel_spills, kernel_use(L, "spills", 1))

/* The compiler's warnings, above all about wgmma that it serialized. */
static int kernel_warnings_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "warnings");
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < b->nphases; i++) {
		for (int k = 0; k < b->phases[i].binary.ndiags; k++) {
			const struct compile_diag *d = &b->phases[i].binary.diags[k];

			if (d->severity == COMPILE_NOTE && !d->serialized)
				continue;
			lua_pushstring(L, d->text);
			lua_rawseti(L, -2, ++n);
		}
	}
	return 1;
}

/* Spills and serialized products, as problems like those of plan:check(). */
static int kernel_problems_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "problems");
	struct problems problems;

	built_problems(b, scratch_push(L), &problems);
	push_problems(L, b->plan, &problems);
	return 1;
}

/* core.compile_log(kernel) -> what the compiler said, phase by phase */
static int compile_log_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "compile_log");
	luaL_Buffer text;

	luaL_buffinit(L, &text);
	for (int i = 0; i < b->nphases; i++)
		if (b->phases[i].binary.log)
			luaL_addstring(&text, b->phases[i].binary.log);
	luaL_pushresult(&text);
	return 1;
}

static int kernel_plan_l(lua_State *L)
{
	check_built(L, 1, "plan");
	lua_getiuservalue(L, 1, 1);
	return 1;
}

/* The plan of a kernel at the sizes that the options at idx give. */
static const struct plan *plan_of_launch(lua_State *L, int idx, const char *what, const struct built *b)
{
	int64_t *sizes = lua_newuserdatauv(L, AXES_MAX * sizeof(*sizes), 0);

	if (!program_has_any(b->graph->program))
		return b->plan;
	sizes_option(L, idx, what, b->graph->program, sizes);
	return plan_at_sizes(scratch_push(L), b->plan, sizes);
}

void **tensor_pointers(lua_State *L, const struct program *p, int inputs, int results, struct arena *a)
{
	void **data = ARENA_ARRAY(a, p->tensors.n, void *);

	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		int64_t dim[RANK_MAX];

		if (t->role == TENSOR_TEMP)
			continue;
		if (t->role == TENSOR_INPUT && lua_isnil(L, inputs))
			continue;
		if (t->role == TENSOR_INPUT) {
			struct array *x = push_input(L, inputs, "run", t->name);

			if (x->type != t->element)
				throw_msg(L, "run: input '%s' holds %s, the kernel takes %s", t->name,
					dtype_name(x->type), dtype_name(t->element));
			data[i] = x->data;
			lua_pop(L, 1);
			continue;
		}
		tensor_dims(p, i, dim);
		data[i] = array_new(L, "run", t->type, t->rank, dim)->data;
		lua_setfield(L, results, t->name);
	}
	return data;
}

/* core.run(kernel, inputs or nil, {limit=, seconds=, seed=, sizes=}) -> outputs, list of milliseconds, {cache=,
 * watts=}, each nil if unknown. inputs nil: random ones of the seed. seconds: the length of a benchmark; without
 * it one run. */
static int run_l(lua_State *L)
{
	struct host *h = enter(L);
	struct built *b = check_kernel(L, 1, "run");
	const struct program *p;
	const struct plan *at;
	struct gpu_bench bench = { .warmup = 0.05 };
	struct stop stop = stop_of(h);
	struct gpu_result r;
	double limit = 10;
	int64_t seed = 1;
	struct feed in;
	struct arena *a;
	struct err e;
	bool timed;

	lua_settop(L, 3);
	OPTIONS_CHECK(L, 3, "run", "limit", "seconds", "seed", "sizes");
	lua_newtable(L);
	arrays_describe(L);
	at = plan_of_launch(L, 3, "run", b);
	p = at->graph->program;
	if (!lua_isnil(L, 2))
		check_inputs(L, 2, "run", p);
	option_integer(L, 3, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "run", "limit", &limit);
	timed = option_real(L, 3, "run", "seconds", &bench.seconds);
	a = scratch_push(L);
	enter(L);
	in = (struct feed){ tensor_pointers(L, p, 2, 4, a), (uint64_t)seed };
	enter(L);
	raise_if(L, built_run(b, at, gpu_of(L), &in, limit, timed ? &bench : NULL, &stop, a, &r, &e), &e);
	lua_pushvalue(L, 4);
	PUSH_LIST(L, i, r.runs, lua_pushnumber(L, r.ms[i]));
	lua_createtable(L, 0, 2);
	set_text(L, "cache", gpu_cache_name(r.cache));
	if (r.watts > 0)
		set_real(L, "watts", r.watts);
	return 3;
}

/* core.host_run(kernel, inputs, {seed=, race=, limit=, sizes=}) -> outputs, and nil or a report of what the kernel
 * did wrong */
static int host_run_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct built *b = box_get(L, 1, ON_HOST_CLASS, "run");
	const struct program *p;
	const struct plan *at;
	struct on_host_options o = { .limit = 60 };
	struct stop stop = stop_of(h);
	const char *report;
	int64_t seed = 1;
	struct arena *a;
	void **data;
	struct err e;

	lua_settop(L, 3);
	OPTIONS_CHECK(L, 3, "run", "seed", "race", "limit", "sizes");
	lua_newtable(L);
	arrays_describe(L);
	at = plan_of_launch(L, 3, "run", b);
	p = at->graph->program;
	check_inputs(L, 2, "run", p);
	option_integer(L, 3, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_bool(L, 3, "run", "race", &o.race);
	option_real(L, 3, "run", "limit", &o.limit);
	o.seed = (uint64_t)seed;
	a = scratch_push(L);
	enter(L);
	data = tensor_pointers(L, p, 2, 4, a);
	enter(L);
	raise_if(L, on_host_run(b, at, data, &o, &stop, a, &report, &e), &e);
	lua_pushvalue(L, 4);
	lua_pushstring(L, report);
	return 2;
}

void lua_open_kernel(lua_State *L)
{
	static const luaL_Reg gpu[] = { { "__gc", gpu_gc_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", kernel_gc_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "source", kernel_source_l }, { "target", kernel_target_l }, { "smem", kernel_smem_l },
		{ "registers", kernel_registers_l }, { "spills", kernel_spills_l },
		{ "warnings", kernel_warnings_l }, { "problems", kernel_problems_l }, { "plan", kernel_plan_l },
		{ NULL, NULL } };
	static const luaL_Reg on_host[] = { { "source", kernel_source_l }, { "target", kernel_target_l },
		{ "plan", kernel_plan_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "build", build_l }, { "run", run_l }, { "host_run", host_run_l }, { "targets", targets_l }, { "target_for", target_for_l },
		{ "gpu_target", gpu_target_l },
		{ "target", target_l }, { "compile_log", compile_log_l }, { "attached", attached_l },
		{ "use_gpu", use_gpu_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = GPU_CLASS, .meta = gpu });
	class_new(L, &(struct class_def){ KERNEL_CLASS, NULL, fields, meta });
	class_new(L, &(struct class_def){ ON_HOST_CLASS, NULL, on_host, meta });
	record_class(L, ATTACHED_RECORD, "what is attached", attached_fields, LEN(attached_fields));
	luaL_setfuncs(L, functions, 0);
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

double median_ms(struct gpu_result *r)
{
	qsort(r->ms, (size_t)r->runs, sizeof(*r->ms), by_value);
	return r->runs ? r->ms[(r->runs - 1) / 2] : NAN;
}
