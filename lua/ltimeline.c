/* Timelines in Lua: simulation, fields, and drawings. docs/reference.md says what each field is. */
#include "lplan.h"

#include <math.h>
#include <string.h>

#include "draw/speed.h"
#include "lower/lower.h"
#include "plan/phases.h"
#include "plan/sized.h"
#include "sim/blame.h"
#include "sim/bounds.h"
#include "sim/priced.h"

/* What a timeline in Lua owns. A simulated one has a copy of its plan, which later edits do not change, and its plan
 * as uservalue 1; a traced one has the kernel as uservalue 1, whose plan it borrows. */
struct held {
	struct graph *graph;
	struct plan *plan;
	struct timeline *timeline;
	struct kernels *kernels;	/* while the plan is simulated */
};

struct timeline *check_timeline(lua_State *L, int idx, const char *what)
{
	struct held *h = luaL_testudata(L, idx, TIMELINE_CLASS);

	if (!h)
		throw_self(L, idx, what, "timeline");
	if (!h->timeline)
		throw_msg(L, "%s: this timeline was never completed", what);
	return h->timeline;
}

static int timeline_gc_l(lua_State *L)
{
	struct held *h = luaL_checkudata(L, 1, TIMELINE_CLASS);

	if (!by_collector(L))
		return 0;
	timeline_free(h->timeline);
	kernels_free(h->kernels);
	plan_free(h->plan);
	graph_free(h->graph);
	memset(h, 0, sizeof(*h));
	return 0;
}

struct timeline **timeline_box(lua_State *L, int owner)
{
	int at = lua_absindex(L, owner);
	struct held *held = lua_newuserdatauv(L, sizeof(*held), 1);

	memset(held, 0, sizeof(*held));
	luaL_setmetatable(L, TIMELINE_CLASS);
	keep(L, -1, 1, at);
	return &held->timeline;
}

/* A window is for the picture: all of the plan is simulated. */
static void refuse_window(lua_State *L)
{
	static const char *const names[] = { "from", "to" };

	for (size_t i = 0; i < LEN(names) && lua_istable(L, 2); i++) {
		lua_pushstring(L, names[i]);
		if (lua_rawget(L, 2) != LUA_TNIL)
			throw_msg(L, "simulate: unknown option '%s' (known: events); for a window of the timeline use "
				"tl:print{from=, to=}", names[i]);
		lua_pop(L, 1);
	}
}

/* The option warm= of the table at idx, a list of tensors: by tensor, is it there? NULL: it is not given. Leaves what it needs on the stack. */
static const bool *warm_option(lua_State *L, int idx, const struct program *p)
{
	bool *warm;

	if (!option_push(L, idx, "simulate", "warm", LUA_TTABLE))
		return NULL;
	warm = lua_newuserdatauv(L, (size_t)p->tensors.n * sizeof(*warm), 0);
	memset(warm, 0, (size_t)p->tensors.n * sizeof(*warm));
	for (int i = 1; i <= (int)lua_rawlen(L, -2); i++) {
		const char *name;
		int t;

		lua_rawgeti(L, -2, i);
		name = check_text(L, lua_gettop(L), "simulate", "tensor");
		FIND_FIRST(t, p->tensors.n, !strcmp(p->tensors.v[t].name, name));
		if (t == NONE)
			throw_msg(L, "simulate: warm: program '%s' has no tensor '%s'", p->name, name);
		warm[t] = true;
		lua_pop(L, 1);
	}
	return warm;
}

/* Push the timeline of the plan at 1 with the options at 2; or return why there is none. */
static enum err_code simulate(lua_State *L, struct err *e)
{
	struct host *h = enter(L);
	struct history *plan = check_plan(L, 1, "simulate");
	struct sim_options o = { .keep = -1 };
	struct stop stop = stop_of(h);
	struct held *held;
	const struct plan *at = NULL;
	int64_t *sizes;
	int box;

	lua_settop(L, 2);
	refuse_window(L);
	OPTIONS_CHECK(L, 2, "simulate", "events", "sizes", "warm");
	option_integer(L, 2, "simulate", "events", 0, 1 << 30, &o.keep);
	o.warm = warm_option(L, 2, history_plan(plan)->graph->program);
	hold_finalizers(L);
	check_legal(L, history_plan(plan), "simulate");
	timeline_box(L, 1);
	held = lua_touserdata(L, -1);
	enter(L);
	box = lua_gettop(L);
	sizes = lua_newuserdatauv(L, AXES_MAX * sizeof(*sizes), 0);
	sizes_option(L, 2, "simulate", history_plan(plan)->graph->program, sizes);
	enter(L);
	TRY(history_snapshot(plan, &held->graph, &held->plan, e));
	if (program_has_any(held->plan->graph->program))
		at = plan_at_sizes(&held->plan->arena, held->plan, sizes);
	TRY(priced_run(&h->mem, held->plan, at, &o, &stop, &held->kernels, &held->timeline, e));
	lua_settop(L, box);
	return OK;
}

/* plan:simulate([{events=, sizes=}]) */
int plan_simulate_l(lua_State *L)
{
	struct err e;

	raise_if(L, simulate(L, &e), &e);
	return 1;
}

/* core.simulated(plan) -> timeline; nil and why if it would be longer than what is simulated */
static int simulated_l(lua_State *L)
{
	struct err e;
	enum err_code code = simulate(L, &e);

	if (code != ERR_LIMIT) {
		raise_if(L, code, &e);
		return 1;
	}
	lua_pushnil(L);
	lua_pushstring(L, e.msg);
	return 2;
}

/* fields ------------------------------------------------------------------ */

/* A number that depends on a clock; nil if the timeline has none. */
static void push_timed(lua_State *L, const struct timeline *t, double x)
{
	if (t->logical)
		lua_pushnil(L);
	else
		lua_pushnumber(L, x);
}

/* A number that is 0 where it is not known. */
static void push_known(lua_State *L, double x)
{
	if (x > 0)
		lua_pushnumber(L, x);
	else
		lua_pushnil(L);
}

#define FIELD(name, push) GETTER(timeline_##name, const struct timeline *, check_timeline(L, 1, #name), push)

FIELD(cycles, lua_pushinteger(L, o->cycles))
FIELD(seconds, push_timed(L, o, o->seconds))
FIELD(tflops, push_timed(L, o, o->flops / o->seconds / 1e12))
FIELD(gbps, push_timed(L, o, graph_bytes(o->plan->graph) / o->seconds / 1e9))
FIELD(bandwidth_share, push_timed(L, o, bandwidth_share(o->plan->graph, o->plan->device, o->seconds)))
FIELD(ii, lua_pushnumber(L, timeline_longest(o)->ii))
FIELD(res_mii, push_timed(L, o, timeline_longest(o)->res_mii))
FIELD(rec_mii, push_timed(L, o, timeline_longest(o)->rec_mii))
FIELD(bound, push_timed(L, o, fmax(timeline_longest(o)->res_mii, timeline_longest(o)->rec_mii)))
FIELD(played, lua_pushinteger(L, o->nevents))		/* on all simulated EUs, kept or not */
FIELD(unpriced, lua_pushstring(L, o->unpriced))		/* why there is no kernel; nil: there is */
FIELD(measured, lua_pushboolean(L, o->measured))
FIELD(cache, lua_pushstring(L, o->cache))		/* what reads find in L2; nil: not known */
FIELD(unit, lua_pushstring(L, o->logical ? "stamps" : "cycles"))
FIELD(overhead, isnan(o->overhead) ? lua_pushnil(L) : lua_pushnumber(L, o->overhead))
FIELD(clock_hz, push_known(L, o->clock_hz))
/* the clock without a limit of power */
FIELD(full_clock_hz, push_known(L, o->measured ? 0 : device_full_clock(o->plan->device, &o->effort)))
FIELD(power, push_known(L, o->watts))			/* W */
FIELD(uncertainty, push_known(L, o->uncertainty))	/* share of `seconds` */
/* the share by which predictions must differ to be in the right order */
FIELD(uncertainty_least, push_known(L, o->uncertainty_least))
FIELD(noise, push_known(L, o->measured ? 0 : o->plan->device->uncertainty_order))

/* J by kind of effort, and "idle"; nil if it is not known. */
static int timeline_energy_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "energy");

	if (!(t->watts > 0)) {
		lua_pushnil(L);
		return 1;
	}
	lua_newtable(L);
	for (int i = 0; i < EFFORT_KINDS; i++)
		set_real(L, effort_names[i], t->joules.of[i]);
	set_real(L, "idle", t->plan->device->power_idle * t->seconds);
	return 1;
}

/* The traced kernel; nil of a simulated timeline. */
static int timeline_kernel_l(lua_State *L)
{
	if (check_timeline(L, 1, "kernel")->measured)
		lua_getiuservalue(L, 1, 1);
	else
		lua_pushnil(L);
	return 1;
}

/* "gemm{m=64, n=64, k=128}" */
RETURNS_TEXT(timeline_program, const struct timeline *, check_timeline(L, 1, "program"),
	program_print_call(o->plan->graph->program, &text))

/* sEU -> share of the time in which anything is under way, as its row shows */
static int timeline_under_way_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "under_way");
	const struct phase_line *p = timeline_longest(t);

	lua_newtable(L);
	for (int i = 0; i < t->plan->device->nseus; i++)
		set_real(L, t->plan->device->seu[i].name, unit_share(p, t->plan->device, i));
	return 1;
}

/* sEU -> share of the time; if simulated, "memory" too */
static int timeline_utilization_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "utilization");
	const struct phase_line *p = timeline_longest(t);

	lua_newtable(L);
	for (int i = 0; i < t->plan->device->nseus; i++)
		set_real(L, t->plan->device->seu[i].name, p->seu[i].share);
	if (t->measured)
		return 1;
	set_real(L, "memory", p->memory_share);
	return 1;
}

#define EVENT_RECORD "millrace.event"
#define PHASE_RECORD "millrace.phase"

static const char *const event_fields[] = { "task", "lane", "seu", "cause", "on", "late", "iteration",
	"replica", "copy", "phase", "tile", "ready", "issue", "start", "end", "warpgroups" };
static const char *const phase_fields[] = { "name", "cycles", "tiles", "eus", "eu", "ii", "res_mii", "rec_mii" };

static void set_times(lua_State *L, const struct event *e)
{
	set_integer(L, "ready", e->ready);
	set_integer(L, "issue", e->issue);
	set_integer(L, "start", e->start);
	set_integer(L, "end", e->end);
}

/* Sets `warpgroups`, if those of the lane run separately: the times of each. */
static void set_warpgroups(lua_State *L, const struct phase_line *p, int event)
{
	int others = p->events.v[event].nparts;

	if (!others)
		return;
	lua_createtable(L, others + 1, 0);
	for (int g = 0; g <= others; g++) {
		lua_createtable(L, 0, 4);
		set_times(L, event_part(p, event, g));
		lua_rawseti(L, -2, g + 1);
	}
	lua_setfield(L, -2, "warpgroups");
}

static void push_event(lua_State *L, const struct timeline *t, const struct phase_line *p, int event)
{
	static const char *const causes[] = { NULL, "wait", "turn", "seu", "memory",
		"drain", "barrier" };	/* ORDER cause */
	const struct graph *g = t->plan->graph;
	const struct event *e = &p->events.v[event];

	lua_createtable(L, 0, 16);
	set_text(L, "task", g->tasks.v[e->task].name);
	set_text(L, "lane", t->plan->lanes.v[e->lane].name);
	set_text(L, "seu", t->plan->device->seu[e->seu].name);
	set_text(L, "cause", causes[e->cause]);
	if (e->cause_task != NONE)
		set_text(L, "on", g->tasks.v[e->cause_task].name);
	if (e->late)
		set_bool(L, "late", true);
	set_integer(L, "iteration", e->seq);
	set_integer(L, "replica", e->replica);
	set_integer(L, "copy", e->replica);	/* deprecated */
	set_integer(L, "phase", g->tasks.v[e->task].phase + 1);
	set_integer(L, "tile", e->tile);
	set_times(L, e);
	set_warpgroups(L, p, event);
	luaL_setmetatable(L, EVENT_RECORD);
}

/* The events that were kept, of all phases; `end` is a keyword in Lua, so e["end"]. */
static int timeline_events_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "events");
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < t->nphases; i++) {
		for (int k = 0; k < t->phases[i].events.n; k++) {
			push_event(L, t, &t->phases[i], k);
			lua_rawseti(L, -2, ++n);
		}
	}
	return 1;
}

static int timeline_phases_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "phases");

	lua_createtable(L, t->nphases, 0);
	for (int i = 0; i < t->nphases; i++) {
		const struct phase_line *p = &t->phases[i];

		lua_createtable(L, 0, 8);
		set_text(L, "name", t->plan->graph->program->phases.v[p->phase].name);
		set_integer(L, "cycles", p->cycles);
		set_integer(L, "tiles", p->tiles);
		set_integer(L, "eus", p->eus);
		set_integer(L, "eu", p->eu + 1);
		set_real(L, "ii", p->ii);
		set_real(L, "res_mii", p->res_mii);
		set_real(L, "rec_mii", p->rec_mii);
		luaL_setmetatable(L, PHASE_RECORD);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

static void push_part(lua_State *L, struct arena *a, const struct timeline *t, const struct blames *b,
	const struct blame_part *p)
{
	const struct plan *plan = t->plan;

	lua_createtable(L, 0, 11);
	set_text(L, "text", blame_text(a, plan, p, true));
	set_text(L, "awaited", blame_awaited(a, plan, p, false));
	set_text(L, "lane", plan->lanes.v[p->lane].name);
	set_text(L, "task", plan->graph->tasks.v[p->task].name);
	set_text(L, "cause", blame_names[p->why]);
	set_text(L, "on", p->on == NONE ? NULL : plan->graph->tasks.v[p->on].name);
	set_text(L, "unit", p->unit == NONE ? NULL : plan->device->seu[p->unit].name);
	set_real(L, "share", p->share);
	set_real(L, "lane_cycles", b->lane_cycles[p->lane]);
	set_bool(L, "feeds", lane_only_feeds(plan, p->lane));
}

/* core.blame(timeline, events_only) -> list of parts with a description, by sTask, the largest first; list of the
 * causes' names. lua/std/blame.lua makes tl.blame of it. */
static int timeline_blame_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "blame");
	struct blames b;
	struct arena *a;

	lua_settop(L, 2);
	a = scratch_push(L);
	timeline_blame(a, t, lua_toboolean(L, 2), &b);
	PUSH_LIST(L, i, b.v.n, push_part(L, a, t, &b, &b.v.v[i]));
	PUSH_LIST(L, i, BLAMES, lua_pushstring(L, blame_names[i]));
	return 2;
}

/* core.copies(timeline) -> by name of each sTask that threads copy though its unit is a copy engine: the registers that their lane
 * needs to have all accesses in flight; 0: the copies are asynchronous and take none */
static int timeline_copies_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "copies");
	const struct plan *p = t->plan;

	lua_newtable(L);
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		const struct phase_line *line = &t->phases[s->phase];
		const struct task_cost *c = line->costs ? &line->costs[p->entries.v[i].task] : NULL;

		if (c && c->by_threads && p->device->seu[p->entries.v[i].seu].kind == SEU_COPY)
			set_integer(L, s->name, c->shifted ? lower_copy_registers(p->device) : 0);
	}
	return 1;
}

/* The sTasks that hold a lane in the loop that the interval is of: {{task=, hold= cycles an iteration, by_threads=}, ...} */
static void push_holds(lua_State *L, const struct timeline *t, const struct phase_line *line, int lane)
{
	const struct plan *p = t->plan;
	const struct graph *g = p->graph;
	int n = 0;

	lua_newtable(L);
	for (int i = 0; i < p->entries.n; i++) {
		int task = p->entries.v[i].task, loop = g->tasks.v[task].loop;

		if (p->entries.v[i].lane != lane || g->tasks.v[task].phase != line->phase ||
		    !program_loop_within(g->program, loop, line->ii_loop))
			continue;
		lua_createtable(L, 0, 3);
		set_text(L, "task", g->tasks.v[task].name);
		set_real(L, "hold", bounds_hold(p, line->entry_costs, i) * graph_runs(g, loop, line->ii_loop));
		set_bool(L, "by_threads", line->costs[task].by_threads);
		lua_rawseti(L, -2, ++n);
	}
}

/* core.binding(timeline) -> what determines timeline.res_mii: "lane", "unit" or "memory", its name, and of a lane what holds it;
 * nothing if the timeline is measured */
static int timeline_binding_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "binding");
	const struct phase_line *line = timeline_longest(t);
	int binding = line->binding_seu;

	if (t->measured || !line->entry_costs)
		return 0;
	lua_pushstring(L, binding >= BINDING_LANE ? "lane" : binding < t->plan->device->nseus ? "unit" : "memory");
	lua_pushstring(L, binding_name(t->plan, binding));
	if (binding < BINDING_LANE)
		return 2;
	push_holds(L, t, line, binding - BINDING_LANE);
	return 3;
}

/* core.iterates_alike(timeline, other): is what their II are of the same loop with the same tile? */
static int timeline_iterates_alike_l(lua_State *L)
{
	const struct timeline *a = check_timeline(L, 1, "iterates_alike"), *b = check_timeline(L, 2, "iterates_alike");

	lua_pushboolean(L, phases_iterate_alike(a, timeline_longest(a), b, timeline_longest(b)));
	return 1;
}

/* core.seconds_at(timeline, cycles) -> the time of the same work in so many cycles, at the clock that power allows then */
static int timeline_seconds_at_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "seconds_at");
	double cycles = check_real(L, 2, "seconds_at", "cycles"), watts;
	double waits = phases_launched(t->plan, target_of(t->plan->device)) * t->plan->device->launch_seconds;
	struct effort effort = t->effort;

	effort.of[EFFORT_EU] *= cycles / fmax((double)t->cycles, 1);
	lua_pushnumber(L, cycles / device_clock(t->plan->device, &effort, cycles, waits, &watts) + waits);
	return 1;
}

void check_from(lua_State *L, const char *what, const struct timeline *t, int phase, int64_t from)
{
	if (phase < t->nphases && from > 0 && from >= t->phases[phase].cycles)
		throw_msg(L, "%s: `from` is %lld, and the %s ends at %lld", what, (long long)from,
			t->nphases > 1 ? "phase" : "timeline", (long long)t->phases[phase].cycles);
}

/* drawings ---------------------------------------------------------------- */

int option_phase(lua_State *L, int idx, const char *what, const struct timeline *t)
{
	const struct program *p = t->plan->graph->program;
	int phase = t->nphases ? (int)(timeline_longest(t) - t->phases) : 0, n = 0;
	int64_t number = phase + 1;
	const char *name, **names;

	if (lua_type(L, idx) != LUA_TTABLE || lua_getfield(L, idx, "phase") != LUA_TSTRING) {
		option_integer(L, idx, what, "phase", 1, t->nphases, &number);
		return (int)number - 1;
	}
	name = lua_tostring(L, -1);
	names = lua_newuserdatauv(L, ((size_t)t->nphases + 1) * sizeof(*names), 0);
	for (int i = 0; i < t->nphases; i++) {
		const char *here = p->phases.v[t->phases[i].phase].name;

		if (here && strcmp(here, name) == 0)
			return i;
		if (here)
			names[n++] = here;
	}
	throw_unknown(L, what, "phase", name, names, n);
}

static void check_view(lua_State *L, int idx, const char *what, const struct timeline *t,
	struct timeline_view *v, struct draw_options *o)
{
	static const char *const names[] = { "width", "ascii", "color", "by", "phase", "tile", "from", "to" };
	static const char *const rows[] = { "lane", "seu" };	/* ORDER timeline_rows */
	struct terminal term = terminal_get();
	bool ascii = !term.utf8, color = false;
	int64_t width = term.width, tile = 0;
	int by = TIMELINE_LANES;

	*v = (struct timeline_view){ 0 };
	options_check(L, idx, what, names, LEN(names));
	option_integer(L, idx, what, "width", 20, 1000, &width);
	option_bool(L, idx, what, "ascii", &ascii);
	option_bool(L, idx, what, "color", &color);
	option_name(L, idx, what, "by", rows, LEN(rows), &by);
	option_integer(L, idx, what, "tile", 0, INT32_MAX, &tile);
	option_integer(L, idx, what, "to", 1, INT64_MAX, &v->to);
	v->from = v->to || tile ? 0 : TIMELINE_STEADY;
	option_integer(L, idx, what, "from", 0, INT64_MAX, &v->from);
	v->phase = option_phase(L, idx, what, t);
	check_from(L, what, t, v->phase, v->from);
	v->by = (enum timeline_rows)by;
	v->tile = (int)tile;
	*o = (struct draw_options){ .width = (int)width,
		.flags = (ascii ? DRAW_ASCII : 0u) | (color ? DRAW_COLOUR : 0u) };
}

/* tl:text{width=, by=, phase=, tile=, from=, to=, ascii=, color=} */
static int timeline_text_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "text");
	struct timeline_view v;
	struct draw_options o;
	struct buf text;

	lua_settop(L, 2);
	check_view(L, 2, "text", t, &v, &o);
	enter(L);
	buf_init(&text, scratch_push(L));
	draw_timeline(t, &v, &o, &text);
	return push_buf(L, &text);
}

static int timeline_summary_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "summary");
	struct draw_options o;
	struct buf text;

	lua_settop(L, 2);
	check_drawing(L, 2, "summary", &o);
	enter(L);
	buf_init(&text, scratch_push(L));
	draw_timeline_summary(t, &o, &text);
	return push_buf(L, &text);
}

static int timeline_tostring_l(lua_State *L)
{
	lua_settop(L, 1);
	return timeline_text_l(L);
}

/* Why the uncertainty of a prediction is not known; nil: it is, or it is no prediction. */
static int timeline_uncertainty_reason_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "uncertainty_reason");
	const char *device = t->plan->device->name, *power = timeline_no_power(t);

	if (t->measured || t->uncertainty > 0)
		lua_pushnil(L);
	else if (t->uncertainty_least > 0)
		lua_pushfstring(L,
			"%s is not calibrated; it is at least that of a related device, uncertainty_least%s%s", device,
			*power ? "; " : "", power);
	else
		lua_pushfstring(L,
			"%s is not calibrated, and no prediction for it was compared with a measured time%s%s", device,
			*power ? "; " : "", power);
	return 1;
}

/* core.no_power(timeline) -> that power was left out, where it would matter; nil */
static int timeline_no_power_l(lua_State *L)
{
	const char *text = timeline_no_power(check_timeline(L, 1, "no_power"));

	if (*text)
		lua_pushstring(L, text);
	else
		lua_pushnil(L);
	return 1;
}

/* core.plan_of(timeline): the plan that was simulated, in its present state. */
static int timeline_plan_l(lua_State *L)
{
	check_timeline(L, 1, "plan_of");
	lua_getiuservalue(L, 1, 1);
	return 1;
}

/* core.uncertainty_text(timeline) -> " +- 6.6 %", or why that is not known; "": measured */
static int timeline_uncertainty_text_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "uncertainty_text");

	enter(L);
	lua_pushstring(L, uncertainty_text(scratch_push(L), t));
	return 1;
}

/* core.speed(timeline) -> "678 TFLOP/s", "3.41 TB/s, 71 % of the bandwidth", or both; "" without a clock */
static int timeline_speed_l(lua_State *L)
{
	const struct timeline *t = check_timeline(L, 1, "speed");

	enter(L);
	lua_pushstring(L, t->logical ? "" : speed_text(scratch_push(L), t->plan->graph, t->plan->device, t->flops,
		t->seconds));
	return 1;
}

/* core.lanes(timeline) -> list of {name=, warps=, columns=, registers=, spare=, replicas=}; registers nil: what the lane needs */
static int timeline_lanes_l(lua_State *L)
{
	const struct plan *p = check_timeline(L, 1, "lanes")->plan;

	lua_createtable(L, p->lanes.n, 0);
	for (int i = 0; i < p->lanes.n; i++) {
		const struct lane *l = &p->lanes.v[i];

		lua_createtable(L, 0, 7);
		set_text(L, "name", l->name);
		set_integer(L, "warps", l->warps);
		if (l->columns)
			set_integer(L, "columns", l->columns);
		if (l->registers)
			set_integer(L, "registers", l->registers);
		if (l->spare)
			set_integer(L, "spare", l->spare);
		set_integer(L, "replicas", l->replicas);
		set_integer(L, "turns", l->replicas);	/* deprecated */
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

void lua_open_timeline(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "text", timeline_text_l }, { "summary", timeline_summary_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = {
		{ "cycles", timeline_cycles_l }, { "seconds", timeline_seconds_l },
		{ "tflops", timeline_tflops_l }, { "gbps", timeline_gbps_l },
		{ "bandwidth_share", timeline_bandwidth_share_l }, { "ii", timeline_ii_l },
		{ "bound", timeline_bound_l }, { "res_mii", timeline_res_mii_l },
		{ "rec_mii", timeline_rec_mii_l }, { "measured", timeline_measured_l },
		{ "utilization", timeline_utilization_l }, { "under_way", timeline_under_way_l }, { "events", timeline_events_l },
		{ "phases", timeline_phases_l }, { "unit", timeline_unit_l },
		{ "overhead", timeline_overhead_l }, { "unpriced", timeline_unpriced_l },
		{ "cache", timeline_cache_l },
		{ "clock_hz", timeline_clock_hz_l }, { "full_clock_hz", timeline_full_clock_hz_l },
		{ "played", timeline_played_l },
		{ "uncertainty", timeline_uncertainty_l },
		{ "uncertainty_least", timeline_uncertainty_least_l },
		{ "uncertainty_reason", timeline_uncertainty_reason_l }, { "noise", timeline_noise_l },
		{ "doubt", timeline_uncertainty_l }, { "tie", timeline_noise_l },	/* deprecated */
		{ "power", timeline_power_l }, { "energy", timeline_energy_l },
		{ "kernel", timeline_kernel_l },
		{ "program", timeline_program_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = {
		{ "__gc", timeline_gc_l }, { "__tostring", timeline_tostring_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ TIMELINE_CLASS, methods, fields, meta });
	record_class(L, EVENT_RECORD, "event", event_fields, LEN(event_fields));
	record_class(L, PHASE_RECORD, "phase", phase_fields, LEN(phase_fields));
	set_function(L, "speed", timeline_speed_l);
	set_function(L, "uncertainty_text", timeline_uncertainty_text_l);
	set_function(L, "no_power", timeline_no_power_l);
	set_function(L, "plan_of", timeline_plan_l);
	set_function(L, "simulated", simulated_l);
	set_function(L, "blame", timeline_blame_l);
	set_function(L, "lanes", timeline_lanes_l);
	set_function(L, "copies", timeline_copies_l);
	set_function(L, "binding", timeline_binding_l);
	set_function(L, "iterates_alike", timeline_iterates_alike_l);
	set_function(L, "seconds_at", timeline_seconds_at_l);
}
