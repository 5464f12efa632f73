/* Role programs and kernel texts without compiling: core.lower, core.role_text. */
#include "lkernel.h"

#include "lower/lower.h"
#include "lower/stamps.h"
#include "plan/sized.h"

BOX_GC(lowered_gc, LOWERED_CLASS, kernel_free)

static void push_list(lua_State *L, const char *key, const int64_t *v, int n)
{
	PUSH_LIST(L, i, n, lua_pushinteger(L, v[i]));
	lua_setfield(L, -2, key);
}

static void push_param(lua_State *L, const struct program *p, const struct param *of)
{
	struct param sized = built_param_at(of, p), *x = &sized;

	static const char *const kinds[] = { "pointer", "map", "order", "start", "size",
		"trace" };			/* ORDER param_kind */

	lua_createtable(L, 0, 8);
	set_text(L, "kind", kinds[x->kind]);
	if (x->tensor != NONE)
		set_text(L, "tensor", p->tensors.v[x->tensor].name);
	if (x->kind == PARAM_SIZE)
		set_integer(L, "size", p->axes.v[x->axis].size);
	if (x->kind != PARAM_MAP)
		return;
	push_list(L, "dims", x->dim, x->rank);
	push_list(L, "box", x->box, x->rank);
	push_list(L, "strides", x->stride, x->rank);
	set_integer(L, "swizzle", x->swizzle);
}

static void push_source(lua_State *L, const struct plan *p, int phase, const struct source *s)
{
	struct tile_assignment d;

	lua_createtable(L, 0, 8);
	lua_pushlstring(L, s->text.text, s->text.len);
	lua_setfield(L, -2, "text");
	set_text(L, "entry", s->entry);
	set_integer(L, "threads", s->threads);
	set_integer(L, "shared_bytes", s->shared_bytes);
	PUSH_LIST(L, i, s->params.n, push_param(L, p->graph->program, &s->params.v[i]));
	lua_setfield(L, -2, "params");
	plan_launch_tiles(s->text.arena, p, phase, &d);
	set_integer(L, "blocks", d.eus);
	push_list(L, "order", d.order, (int)d.total);
	push_list(L, "start", d.start, d.eus + 1);
}

/* core.lower(plan, target, traced[, {sizes=}]) -> list of {text=, entry=, params=, ...}, one a phase */
static int lower_l(lua_State *L)
{
	enum backend backend = check_backend(L, 2, "compile");
	bool traced = lua_toboolean(L, 3);
	struct host *h = enter(L);
	struct stop stop = stop_of(h);
	const struct plan *p = history_plan(check_plan(L, 1, "compile"));
	const struct plan *at = p;
	int64_t *sizes;
	struct source s;
	struct arena *a;
	struct err e;
	void **box;

	lua_settop(L, 4);
	hold_finalizers(L);
	check_legal(L, p, "compile");
	check_prints(L, backend, p, "compile");
	sizes = lua_newuserdatauv(L, AXES_MAX * sizeof(*sizes), 0);
	sizes_option(L, 4, "compile", p->graph->program, sizes);
	if (program_has_any(p->graph->program))
		at = plan_at_sizes(scratch_push(L), p, sizes);
	lua_createtable(L, p->graph->program->phases.n, 0);
	for (int i = 0; i < p->graph->program->phases.n; i++) {
		box = box_new(L, LOWERED_CLASS, 0);
		a = scratch_push(L);
		enter(L);
		if (lower_plan(&h->mem, p, i, &stop, (struct kernel **)box, &e) || (traced && lower_stamps(*box, &e)))
			throw_err(L, &e);
		kernel_finish(*box);
		backends[backend].emit(((struct kernel *)*box)->role, a, &s);
		push_source(L, at, i, &s);
		lua_rawseti(L, -4, i + 1);
		lua_closeslot(L, -1);
		lua_pop(L, 2);
	}
	return 1;
}

/* core.role_text(plan, after, traced) -> the dump of its role programs, phase by phase; after: number of a
 * pass, or nil: what verify and sim read */
static int role_text_l(lua_State *L)
{
	int after = (int)luaL_optinteger(L, 2, 0);
	bool traced = lua_toboolean(L, 3);
	struct host *h = enter(L);
	struct stop stop = stop_of(h);
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
		if (lower_plan(&h->mem, p, i, &stop, (struct kernel **)box, &e) || (traced && lower_stamps(*box, &e)) ||
		    (after && kernel_after(*box, (enum pass_id)(after - 1), &e)))
			throw_err(L, &e);
		role_print(((struct kernel *)*box)->role, &out);
		lua_closeslot(L, -1);
		lua_pop(L, 1);
	}
	lua_pushlstring(L, out.text, out.len);
	return 1;
}

/* core.passes() -> list of {name=, optional=, needs=, promises=, tree=}, in their order; tree: it makes the tree
 * of a lane, so that it can be looked at behind it. The number is that of its bit in `without`, from 1. */
static int passes_l(lua_State *L)
{
	lua_createtable(L, OPTION_COUNT, 0);
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct pass_info *p = &lower_passes[i];

		lua_createtable(L, 0, 5);
		set_text(L, "name", p->name);
		set_bool(L, "optional", p->optional);
		set_bool(L, "tree", i < PASS_COUNT);
		set_text(L, "needs", p->needs);
		set_text(L, "promises", p->promises);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

void lua_open_lower(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", lowered_gc_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = { { "lower", lower_l }, { "role_text", role_text_l },
		{ "passes", passes_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = LOWERED_CLASS, .meta = meta });
	luaL_setfuncs(L, functions, 0);
}
