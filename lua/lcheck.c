/* Checking plans: plan:check, plan.usage, and plans and problems as text. */
#include "lplan.h"

#include <stdlib.h>
#include <string.h>

#include "draw/text.h"
#include "plan/check.h"

#define PROBLEM_RECORD "millrace.problem"
#define USAGE_RECORD "millrace.usage"

static const char *const problem_fields[] = { "code", "message", "hint", "task", "other", "edge", "location", "file",
	"line", "place" /* deprecated */ };
static const char *const usage_fields[] = { "threads", "registers", "shared_bytes", "lanes" };

static void push_problem(lua_State *L, const struct plan *p, const struct problem *pr)
{
	const struct stask *tasks = p->graph->tasks.v;

	lua_createtable(L, 0, 8);
	set_text(L, "code", problem_name(pr->code));
	set_text(L, "message", pr->message);
	set_text(L, "hint", pr->hint);
	set_text(L, "task", pr->task == NONE ? NULL : tasks[pr->task].name);
	set_text(L, "other", pr->other == NONE ? NULL : tasks[pr->other].name);
	if (pr->edge != NONE) {
		push_edge(L, p->graph, &p->graph->edges.v[pr->edge]);
		lua_setfield(L, -2, "edge");
	}
	set_location(L, pr->loc);
	if (pr->loc.file) {
		set_text(L, "file", pr->loc.file);
		set_integer(L, "line", pr->loc.line);
	}
	luaL_setmetatable(L, PROBLEM_RECORD);
}

static void push_problem_list(lua_State *L, const struct plan *p, const struct problem *v, int n)
{
	PUSH_LIST(L, i, n, push_problem(L, p, &v[i]));
	luaL_setmetatable(L, PROBLEMS_CLASS);
}

void push_problems(lua_State *L, const struct plan *p, const struct problems *list)
{
	push_problem_list(L, p, list->v.v, list->v.n);
	if (!list->notes.n)
		return;
	push_problem_list(L, p, list->notes.v, list->notes.n);
	lua_setfield(L, -2, "notes");
}

/* Is there a kernel for the plan, too? Raises if there is no answer. Returns whether there is
 * none for any plan of the device. */
static bool look(lua_State *L, const struct plan *p, struct arena *a, struct problems *out, struct usage *usage)
{
	struct host *h = host_of(L);
	struct stop stop = stop_of(h);
	bool model_only;
	struct err e;

	void **held = box_new(L, LOWERED_CLASS, 0);

	enter(L);
	raise_if(L, lower_check(&h->mem, p, a, &stop, (struct kernel **)held, out, usage, &model_only, &e), &e);
	lua_pop(L, 1);
	return model_only;
}

/* The list of problems on top gets a note: no kernel is made for the device. */
static void push_note(lua_State *L, const struct plan *p)
{
	if (lua_getfield(L, -1, "notes") == LUA_TNIL) {
		lua_pop(L, 1);
		lua_createtable(L, 1, 0);
		luaL_setmetatable(L, PROBLEMS_CLASS);
	}
	lua_createtable(L, 0, 2);
	lua_pushliteral(L, "model_only");
	lua_setfield(L, -2, "code");
	lua_pushfstring(L, "kernels are printed for sm_90a and the host that plays it; plans for '%s' are "
		"checked, simulated and searched", p->device->name);
	lua_setfield(L, -2, "message");
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_setfield(L, -2, "notes");
}

/* plan:check() -> ok, list of problems */
int plan_check_l(lua_State *L)
{
	const struct plan *p = plan_present(L, "check");
	struct arena *a = scratch_push(L);
	struct problems problems;
	bool model_only;

	model_only = look(L, p, a, &problems, NULL);
	if (!problems.v.n)
		plan_note_waits(p, a, &problems);
	plan_note_lanes(p, a, &problems);
	lua_pushboolean(L, problems.v.n == 0);
	push_problems(L, p, &problems);
	if (model_only)
		push_note(L, p);
	return 2;
}

/* The text at `key` of the table on top; popped, but the table still holds it. */
static const char *text_at(lua_State *L, const char *key)
{
	const char *s;

	lua_getfield(L, -1, key);
	s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
	lua_pop(L, 1);
	return s;
}

/* Each problem of the list at idx as a paragraph, `what` first. */
static void put_problems(lua_State *L, int idx, const char *what, const struct draw_options *o, struct buf *b)
{
	for (int i = 1; i <= (int)lua_rawlen(L, idx); i++) {
		const char *location, *hint;

		if (lua_rawgeti(L, idx, i) != LUA_TTABLE)
			throw_msg(L, "tostring: list of problems expected");
		location = text_at(L, "location");
		buf_puts(b, b->len ? "\n" : "");
		text_wrap(b, arena_strf(b->arena, "%s%s%s%s: %s", location, *location ? ": " : "", what,
			text_at(L, "code"), text_at(L, "message")), 0, 4, o->width, o->flags);
		hint = text_at(L, "hint");
		if (*hint) {
			buf_puts(b, "\n    try: ");
			text_wrap(b, hint, 9, 9, o->width, o->flags);
		}
		lua_pop(L, 1);
	}
}

/* core.problems_text(list, {width=} or nil, notes or nil): as people read them */
static int problems_text_l(lua_State *L)
{
	struct draw_options o;
	struct buf b;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 3);
	check_drawing(L, 2, "tostring", &o);
	buf_init(&b, scratch_push(L));
	enter(L);
	put_problems(L, 1, "", &o, &b);
	if (lua_rawlen(L, 1) == 0)
		buf_puts(&b, "no problems");
	if (lua_istable(L, 3))
		put_problems(L, 3, "note: ", &o, &b);
	return push_buf(L, &b);
}

/* The registry's field of this address has the function of core.illegal. */
static const char illegal_key;

/* core.illegal(f): f(plan) -> how many problems a plan that is not legal has as they are shown, and the first one */
static int illegal_l(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &illegal_key);
	return 0;
}

void sizes_option(lua_State *L, int idx, const char *what, const struct program *g, int64_t sizes[AXES_MAX])
{
	const char *names[AXES_MAX];
	struct err e;

	for (int i = 0; i < g->axes.n; i++) {
		sizes[i] = g->axes.v[i].size;
		names[i] = g->axes.v[i].name;
	}
	if (!option_push(L, idx, what, "sizes", LUA_TTABLE))
		return;
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		int axis;

		if (lua_type(L, -2) != LUA_TSTRING)
			throw_msg(L, "%s: sizes are given by axis name: sizes={m=512}", what);
		axis = check_choice(L, lua_gettop(L) - 1, what, "axis", names, g->axes.n);
		if (!lua_isinteger(L, -1))
			throw_msg(L, "%s: the size of axis '%s' must be an integer", what, names[axis]);
		sizes[axis] = lua_tointeger(L, -1);
	}
	lua_pop(L, 1);
	raise_if(L, program_check_sizes(g, sizes, what, &e), &e);
}

void check_legal(lua_State *L, const struct plan *p, const char *what)
{
	struct stop stop = stop_of(host_of(L));
	struct arena *a = scratch_push(L);
	struct problems problems;
	struct usage usage;
	struct err e;

	enter(L);
	raise_if(L, lower_check_plan(p, a, &stop, &problems, &usage, &e), &e);
	if (problems.v.n) {
		int n;

		lua_rawgetp(L, LUA_REGISTRYINDEX, &illegal_key);
		lua_pushvalue(L, 1);
		lua_call(L, 1, 2);
		n = (int)luaL_checkinteger(L, -2);
		throw_msg(L, "%s: the plan is not legal (%d problem%s; plan:check() lists them): %s: %s; try %s", what, n,
			n == 1 ? "" : "s", text_at(L, "code"), text_at(L, "message"), text_at(L, "hint"));
	}
	lua_closeslot(L, -1);
	lua_pop(L, 1);
}

/* The problems in the table at idx, as they are to be shown. Texts are kept alive by the table. */
static struct problems shown_problems(lua_State *L, int idx, struct arena *a)
{
	struct problems out = { 0 };

	for (int i = 1; i <= (int)lua_rawlen(L, idx); i++) {
		const char *location, *code, *line;
		struct problem *x = VEC_ADD(a, &out.v);
		int c;

		lua_rawgeti(L, idx, i);
		location = text_at(L, "location");
		code = text_at(L, "code");
		line = strrchr(location, ':');
		FIND_FIRST(c, NOTE_BY_THREADS, !strcmp(problem_name((enum problem_code)c), code));
		*x = (struct problem){ .code = (enum problem_code)(c == NONE ? 0 : c), .message = text_at(L, "message"),
			.hint = text_at(L, "hint") };
		if (line)
			x->loc = (struct srcloc){ arena_strf(a, "%.*s", (int)(line - location), location),
				atoi(line + 1) };
		lua_pop(L, 1);
	}
	return out;
}

/* plan, options, problems to be shown instead of its own or nil */
static int plan_text(lua_State *L, const char *what)
{
	struct history *h = check_plan(L, 1, what);
	struct stop stop = stop_of(host_of(L));
	struct draw_options o;
	struct problems problems;
	struct usage usage;
	struct kernel **held;
	bool model_only;
	struct arena *a;
	struct buf text;
	struct err e;
	enum err_code code;

	lua_settop(L, 3);
	check_drawing(L, 2, what, &o);
	held = (struct kernel **)box_new(L, LOWERED_CLASS, 0);
	a = scratch_push(L);
	enter(L);
	buf_init(&text, a);
	code = lower_check(&host_of(L)->mem, history_plan(h), a, &stop, held, &problems, &usage, &model_only, &e);
	if (code == ERR_INTERRUPTED)
		throw_err(L, &e);
	if (lua_istable(L, 3))
		problems.v = shown_problems(L, 3, a).v;
	draw_plan(history_plan(h), code ? NULL : &usage, code ? NULL : &problems, &o, &text);
	if (code)
		buf_printf(&text, "not checked: %s\n", e.msg);
	if (lua_getiuservalue(L, 1, PLAN_MADE_FOR) == LUA_TSTRING)
		buf_printf(&text, "its file is for other sizes or options: %s\n", lua_tostring(L, -1));
	return push_buf(L, &text);
}

int plan_table_l(lua_State *L)
{
	return plan_text(L, "table");
}

int plan_tostring_l(lua_State *L)
{
	lua_settop(L, 3);
	lua_pushnil(L);
	lua_replace(L, 2);
	return plan_text(L, "tostring");
}

/* core.units_for(plan, sTask) -> {{name=, seconds=, alike=}, ...}: the units that can run it, that which such work goes to first;
 * the seconds that all its work takes there at full speed, and whether it is of the first one's kind */
static int units_for_l(lua_State *L)
{
	const struct plan *p = plan_present(L, "units_for");
	const struct graph *g = p->graph;
	const struct vdevice *d = p->device;
	const char *name = luaL_checkstring(L, 2);
	const struct stask *s;
	int t, first, eus, n = 0;

	FIND_FIRST(t, g->tasks.n, !strcmp(g->tasks.v[t].name, name));
	if (t == NONE)
		throw_msg(L, "units_for: no sTask '%s'", name);
	s = &g->tasks.v[t];
	first = device_seu_for(d, &s->work);
	eus = (int)min_i64(d->eus, g->grids[s->phase].total);
	lua_newtable(L);
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < d->nseus; i++) {
			double runs = (double)g->grids[s->phase].total / eus * graph_runs(g, s->loop, NONE);

			if ((i == first) == again || !device_can(d, i, &s->work))
				continue;
			lua_createtable(L, 0, 3);
			set_text(L, "name", d->seu[i].name);
			set_bool(L, "alike", d->seu[i].kind == d->seu[first].kind);
			set_real(L, "seconds", runs / d->clock_hz *
				device_cost(d, i, &s->work, 4, (struct pace){ .active = eus, .clock_hz = d->clock_hz }).busy);
			lua_rawseti(L, -2, ++n);
		}
	return 1;
}

/* {threads=, registers=, shared_bytes=, lanes={name=registers}} */
int plan_usage_l(lua_State *L)
{
	const struct plan *p = plan_present(L, "usage");
	struct problems problems;
	struct usage u;

	look(L, p, scratch_push(L), &problems, &u);
	lua_createtable(L, 0, 5);
	set_integer(L, "threads", u.threads);
	set_integer(L, "registers", u.registers);
	set_integer(L, "shared_bytes", u.shared_bytes);
	lua_newtable(L);
	for (int i = 0; i < p->lanes.n; i++)
		set_integer(L, p->lanes.v[i].name, u.lane_registers[i]);
	copy_close(L, "plan.usage.lanes", "plan:lane(name, {warps=, registers=}) changes what a lane uses", NULL);
	lua_setfield(L, -2, "lanes");
	luaL_setmetatable(L, USAGE_RECORD);
	copy_close(L, "plan.usage", "it follows from the plan, which plan:lane, plan:buffers and others change", NULL);
	return 1;
}

void lua_open_check(lua_State *L)
{
	record_class(L, PROBLEM_RECORD, "problem", problem_fields, LEN(problem_fields));
	record_class(L, USAGE_RECORD, "usage", usage_fields, LEN(usage_fields));
	set_function(L, "units_for", units_for_l);
	set_function(L, "plan_table", plan_table_l);	/* core.plan_table(plan, options, problems to be shown) */
	set_function(L, "plan_tostring", plan_tostring_l);
	set_function(L, "problems_text", problems_text_l);
	set_function(L, "illegal", illegal_l);
	set_function(L, "check", plan_check_l);
	luaL_newmetatable(L, PROBLEMS_CLASS);
	lua_newtable(L);		/* for core.method */
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "methods");
	lua_setfield(L, -2, "__index");
	set_bool(L, "__metatable", false);
	lua_pop(L, 1);
}
