#include "lkernel.h"

#include "emit/emit.h"
#include "lower/lower.h"
#include "lower/stamps.h"
#include "plan/deal.h"

#define GPU_CLASS "millrace.gpu"

/* the device --------------------------------------------------------------- */

static int gpu_gc_l(lua_State *L)
{
	gpu_free(box_take(L, GPU_CLASS));
	return 0;
}

struct gpu *gpu_of(lua_State *L)
{
	static const char key;
	struct host *h = enter(L);
	struct gpu *g;
	void **box;

	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TUSERDATA) {
		g = *(void **)lua_touserdata(L, -1);
		lua_pop(L, 1);
		return g;
	}
	lua_pop(L, 1);
	box = box_new(L, GPU_CLASS, 0);
	gpu_new(&h->mem, 0, (struct gpu **)box);
	g = *box;
	lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
	return g;
}

/* Nothing if it is empty. */
static void set_known(lua_State *L, const char *key, const char *text)
{
	if (text[0])
		set_text(L, key, text);
}

#define ATTACHED_RECORD "millrace.attached"

static const char *const attached_fields[] = { "name", "arch", "driver", "trouble", "sms", "memory",
	"partition", "power_limit" };

static void push_info(lua_State *L, const struct gpu_info *info)
{
	char trouble[GPU_TROUBLE_MAX];

	gpu_trouble(info, trouble);
	lua_createtable(L, 0, 8);
	set_known(L, "name", info->name);
	set_known(L, "arch", info->arch);
	set_known(L, "driver", info->board.driver);
	set_known(L, "trouble", trouble);
	lua_pushinteger(L, info->sms);
	lua_setfield(L, -2, "sms");
	lua_pushinteger(L, info->memory_free);
	lua_setfield(L, -2, "memory");
	lua_pushboolean(L, info->board.partition);
	lua_setfield(L, -2, "partition");
	if (info->board.power_limit > 0) {
		lua_pushnumber(L, info->board.power_limit);
		lua_setfield(L, -2, "power_limit");
	}
	luaL_setmetatable(L, ATTACHED_RECORD);
}

/* core.attached() -> {name=, arch=, sms=, memory=, partition=, driver=, power_limit=,
 * trouble=}, the last three nil if unknown or none; or nil and why there is no device */
static int attached_l(lua_State *L)
{
	struct gpu *g = gpu_of(L);
	struct stop stop = stop_of(host_of(L));
	struct gpu_info info;
	struct err e;

	if (!gpu_probe(g, &stop, &info, &e)) {
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

static int kernel_gc_l(lua_State *L)
{
	built_free(box_take(L, KERNEL_CLASS));
	return 0;
}

/* Each phase's text is what the function at idx makes of it. */
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
		lua_pop(L, 1);
	}
}

struct built *push_text(lua_State *L, const char *class_name)
{
	struct host *h = enter(L);
	struct history *plan = check_plan(L, 1, "compile");
	struct built *b;
	struct err e;
	void **box;

	check_legal(L, history_plan(plan), "compile");
	box = box_new(L, class_name, 2);
	keep(L, -1, 1, 1);
	enter(L);
	built_new(&h->mem, (struct built **)box);
	b = *box;
	if (history_snapshot(plan, &b->graph, &b->plan, &e))
		throw_err(L, &e);
	b->plan->without = (unsigned)lua_tointeger(L, 4);
	if (built_emit(b, &e))
		throw_err(L, &e);
	if (lua_isfunction(L, 3))
		edit_sources(L, 3, b);
	enter(L);
	return b;
}

/* core.build(plan, compile?[, edit[, without]]) -> kernel: text, and binaries if asked for.
 * edit(text) -> the text to compile in its stead: a kernel that no plan gives, for the
 * tests of those that hang or fault. */
static int build_l(lua_State *L)
{
	bool compile = lua_toboolean(L, 2);
	struct stop stop = stop_of(host_of(L));
	struct built *b;
	struct err e;

	lua_settop(L, 4);
	hold_finalizers(L);
	b = push_text(L, KERNEL_CLASS);
	if (compile && built_compile(b, gpu_of(L), &stop, &e))
		throw_err(L, &e);
	return 1;
}

static int kernel_source_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "source");
	luaL_Buffer text;

	luaL_buffinit(L, &text);
	for (int i = 0; i < b->nphases; i++)
		luaL_addlstring(&text, b->phases[i].source.text.text, b->phases[i].source.text.len);
	luaL_pushresult(&text);
	return 1;
}

static int kernel_target_l(lua_State *L)
{
	lua_pushliteral(L, "cuda");
	return 1;
}

static int kernel_smem_l(lua_State *L)
{
	const struct built *b = check_kernel(L, 1, "smem");
	int64_t most = 0;

	for (int i = 0; i < b->nphases; i++)
		most = max_i64(most, b->phases[i].source.shared_bytes);
	lua_pushinteger(L, most);
	return 1;
}

/* What the compiler reported, the most of all phases. */
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

static int kernel_registers_l(lua_State *L)
{
	return kernel_use(L, "registers", 0);
}

static int kernel_spills_l(lua_State *L)
{
	return kernel_use(L, "spills", 1);
}

/* Warnings of the compiler, wgmma groups that it serialized above all. */
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

/* Registers in memory, products that wait for each other: as plan:check() tells problems. */
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
	check_kernel(L, 1, "plan");
	lua_getiuservalue(L, 1, 1);
	return 1;
}

void **tensor_pointers(lua_State *L, const struct program *p, int inputs, int results,
	struct arena *a)
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

			if (x->type != t->type)
				throw_msg(L, "run: input '%s' holds %s, the kernel takes %s", t->name,
					dtype_name(x->type), dtype_name(t->type));
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

static void push_circumstances(lua_State *L, const struct gpu_result *r)
{
	lua_createtable(L, 0, 2);
	lua_pushstring(L, gpu_cache_name(r->cache));
	lua_setfield(L, -2, "cache");
	if (r->watts > 0) {
		lua_pushnumber(L, r->watts);
		lua_setfield(L, -2, "watts");
	}
}

/* core.run(kernel, inputs or nil, {limit=, seconds=, seed=}) -> outputs, list of milliseconds,
 * {cache=, watts=}, each nil if unknown. Without inputs, random ones of the seed. seconds:
 * benchmark for so long; otherwise one run. */
static int run_l(lua_State *L)
{
	static const char *const names[] = { "limit", "seconds", "seed" };
	struct host *h = enter(L);
	struct built *b = check_kernel(L, 1, "run");
	const struct program *p = b->graph->program;
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
	if (!lua_isnil(L, 2))
		check_inputs(L, 2, "run", p);
	options_check(L, 3, "run", names, LEN(names));
	option_integer(L, 3, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "run", "limit", &limit);
	timed = option_real(L, 3, "run", "seconds", &bench.seconds);
	lua_newtable(L);
	a = scratch_push(L);
	enter(L);
	in = (struct feed){ tensor_pointers(L, p, 2, 4, a), (uint64_t)seed };
	enter(L);
	if (built_run(b, gpu_of(L), &in, limit, timed ? &bench : NULL, &stop, a, &r, &e))
		throw_err(L, &e);
	lua_pushvalue(L, 4);
	lua_createtable(L, r.runs, 0);
	for (int i = 0; i < r.runs; i++) {
		lua_pushnumber(L, r.ms[i]);
		lua_rawseti(L, -2, i + 1);
	}
	push_circumstances(L, &r);
	return 3;
}

/* lowering alone ------------------------------------------------------------ */

static int lowered_gc_l(lua_State *L)
{
	kernel_free(box_take(L, LOWERED_CLASS));
	return 0;
}

static void push_whole(lua_State *L, const char *key, int64_t v)
{
	lua_pushinteger(L, v);
	lua_setfield(L, -2, key);
}

static void push_list(lua_State *L, const char *key, const int64_t *v, int n)
{
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushinteger(L, v[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -2, key);
}

static void push_param(lua_State *L, const struct program *p, const struct param *x)
{
	static const char *const kinds[] = { "pointer", "map", "order", "start",
		"trace" };			/* ORDER param_kind */

	lua_createtable(L, 0, 8);
	lua_pushstring(L, kinds[x->kind]);
	lua_setfield(L, -2, "kind");
	if (x->tensor != NONE) {
		lua_pushstring(L, p->tensors.v[x->tensor].name);
		lua_setfield(L, -2, "tensor");
	}
	if (x->kind != PARAM_MAP)
		return;
	push_list(L, "dims", x->dim, x->rank);
	push_list(L, "box", x->box, x->rank);
	push_list(L, "strides", x->stride, x->rank);
	push_whole(L, "swizzle", x->swizzle);
}

static void push_source(lua_State *L, const struct plan *p, int phase, const struct source *s)
{
	struct dealing d;

	lua_createtable(L, 0, 8);
	lua_pushlstring(L, s->text.text, s->text.len);
	lua_setfield(L, -2, "text");
	lua_pushstring(L, s->entry);
	lua_setfield(L, -2, "entry");
	push_whole(L, "threads", s->threads);
	push_whole(L, "shared_bytes", s->shared_bytes);
	lua_createtable(L, s->params.n, 0);
	for (int i = 0; i < s->params.n; i++) {
		push_param(L, p->graph->program, &s->params.v[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -2, "params");
	plan_deal(s->text.arena, p, phase, &d);
	push_whole(L, "blocks", d.eus);
	push_list(L, "order", d.order, (int)d.total);
	push_list(L, "start", d.start, d.eus + 1);
}

/* core.lower(plan, target, traced) -> list of {text=, entry=, params=, ...}, one a phase */
static int lower_l(lua_State *L)
{
	static const char *const targets[] = { "cuda", "host" };
	bool host = check_choice(L, 2, "compile", "target", targets, LEN(targets)) == 1;
	bool traced = lua_toboolean(L, 3);
	struct host *h = enter(L);
	const struct plan *p = history_plan(check_plan(L, 1, "compile"));
	struct source s;
	struct arena *a;
	struct err e;
	void **box;

	hold_finalizers(L);
	check_legal(L, p, "compile");
	lua_createtable(L, p->graph->program->phases.n, 0);
	for (int i = 0; i < p->graph->program->phases.n; i++) {
		box = box_new(L, LOWERED_CLASS, 0);
		a = scratch_push(L);
		enter(L);
		if (lower_plan(&h->mem, p, i, (struct kernel **)box, &e) ||
		    (traced && lower_stamps(*box, &e)))
			throw_err(L, &e);
		(host ? emit_host : emit_cuda_sm90)(((struct kernel *)*box)->role, a, &s);
		push_source(L, p, i, &s);
		lua_rawseti(L, -4, i + 1);
		lua_closeslot(L, -1);
		lua_pop(L, 2);
	}
	return 1;
}

/* core.role_text(plan) -> the dump of its role programs, phase by phase */
static int role_text_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct plan *p = history_plan(check_plan(L, 1, "kernel"));
	struct buf out;
	struct err e;
	void **box;

	hold_finalizers(L);
	check_legal(L, p, "kernel");
	buf_init(&out, scratch_push(L));
	for (int i = 0; i < p->graph->program->phases.n; i++) {
		box = box_new(L, LOWERED_CLASS, 0);
		enter(L);
		if (lower_plan(&h->mem, p, i, (struct kernel **)box, &e))
			throw_err(L, &e);
		role_print(((struct kernel *)*box)->role, &out);
		lua_closeslot(L, -1);
		lua_pop(L, 1);
	}
	lua_pushlstring(L, out.text, out.len);
	return 1;
}

/* core.lean_names() -> the passes that can be left out */
static int lean_names_l(lua_State *L)
{
	lua_createtable(L, LEAN_COUNT, 0);
	for (int i = 0; i < LEAN_COUNT; i++) {
		lua_pushstring(L, lean_names[i]);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

void lua_open_kernel(lua_State *L)
{
	static const luaL_Reg lowered[] = { { "__gc", lowered_gc_l }, { NULL, NULL } };
	static const luaL_Reg gpu[] = { { "__gc", gpu_gc_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", kernel_gc_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "source", kernel_source_l }, { "target", kernel_target_l },
		{ "smem", kernel_smem_l },
		{ "registers", kernel_registers_l }, { "spills", kernel_spills_l },
		{ "warnings", kernel_warnings_l }, { "problems", kernel_problems_l }, { "plan", kernel_plan_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "lower", lower_l }, { "role_text", role_text_l },
		{ "lean_names", lean_names_l },
		{ "build", build_l }, { "run", run_l },
		{ "compile_log", compile_log_l },
		{ "attached", attached_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = LOWERED_CLASS, .meta = lowered });
	class_new(L, &(struct class_def){ .name = GPU_CLASS, .meta = gpu });
	class_new(L, &(struct class_def){ KERNEL_CLASS, NULL, fields, meta });
	record_class(L, ATTACHED_RECORD, "what is attached", attached_fields, LEN(attached_fields));
	luaL_setfuncs(L, functions, 0);
}
