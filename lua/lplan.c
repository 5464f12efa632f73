/* Plans in Lua: edits, fields and texts. lcheck.c has what checks them. */
#include "lplan.h"

#include <string.h>

#include "graph/repeats.h"
#include "plan/diff.h"

struct history *check_plan(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, PLAN_CLASS, what);
}

/* First thing in every method: the plan, with the core's failures raised in L. */
static struct history *plan_arg(lua_State *L, const char *what)
{
	enter(L);
	return check_plan(L, 1, what);
}

const struct plan *plan_present(lua_State *L, const char *what)
{
	struct history *h = plan_arg(L, what);

	hold_finalizers(L);
	return history_plan(h);
}

BOX_GC(plan_gc, PLAN_CLASS, history_free)

/* core.plan(graph, device) */
static int plan_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct graph *g = check_graph(L, 1, "plan");
	const struct vdevice *d = check_device(L, 2, "plan");
	void **box = box_new(L, PLAN_CLASS, PLAN_SLOTS);
	char file[LUA_IDSIZE];

	keep(L, -1, 1, 1);
	keep(L, -1, 2, 2);
	history_new(&h->mem, g, d, (struct history **)box);
	history_made_at(*box, here_now(L, file));
	return 1;
}

/* edits ------------------------------------------------------------------- */

/* Call history_NAME of the core with these arguments and the user's line, and raise its error. */
#define EDIT(name, ...) \
	do { \
		char file[LUA_IDSIZE]; \
		struct err error; \
		raise_if(L, history_##name(__VA_ARGS__, here_now(L, file), &error), &error); \
	} while (0)

/* A name, or a list of names, at index idx. The names are kept alive by the list, and *names by the stack. */
static int check_names(lua_State *L, int idx, const char *what, const char ***names)
{
	int n = lua_type(L, idx) == LUA_TTABLE ? (int)lua_rawlen(L, idx) : 1;

	*names = lua_newuserdatauv(L, sizeof(**names) * (size_t)(n + 1), 0);
	if (lua_type(L, idx) != LUA_TTABLE)
		**names = check_text(L, idx, what, "sTask");
	for (int i = 0; i < n && lua_type(L, idx) == LUA_TTABLE; i++) {
		lua_rawgeti(L, idx, i + 1);
		if (lua_type(L, -1) == LUA_TTABLE) {
			if (lua_getfield(L, -1, "name") == LUA_TSTRING)
				throw_msg(L, "%s: sTasks are given by their names, the first here '%.60s': task.name of each", what,
					lua_tostring(L, -1));
			lua_pop(L, 1);
		}
		(*names)[i] = check_text(L, -1, what, "sTask");
		lua_pop(L, 1);
	}
	if (!n && lua_getfield(L, idx, "name") == LUA_TSTRING)
		throw_msg(L, "%s: an sTask is given by its name, here '%.60s': task.name", what, lua_tostring(L, -1));
	if (!n)
		throw_msg(L, "%s: the list names no sTask", what);
	return n;
}

/* plan:append(task[, {eu=, seu=, lane=, at=, by_rows=}]), of one sTask or of a list, which is one edit */
static int plan_append_l(lua_State *L)
{
	static const char *const neighbours[] = { "before", "after" };
	struct history *h = plan_arg(L, "append");
	const char *seu = NULL, *lane = NULL, **tasks;
	int64_t at = 0, eu = 0;
	bool by_rows = false;
	enum err_code rc = OK;
	char file[LUA_IDSIZE];
	struct err error;
	int n, mark;

	for (int i = 0; i < LEN(neighbours) && lua_istable(L, 3); i++) {
		lua_pushstring(L, neighbours[i]);
		if (lua_rawget(L, 3) != LUA_TNIL)
			throw_msg(L,
				"append: unknown option '%s'; an appended sTask comes last: plan:insert takes before and after",
				neighbours[i]);
		lua_pop(L, 1);
	}
	if (lua_isnone(L, 2))
		check_text(L, 2, "append", "sTask");
	lua_settop(L, 3);
	n = check_names(L, 2, "append", &tasks);
	OPTIONS_CHECK(L, 3, "append", "eu", "seu", "lane", "at", "by_rows");
	option_integer(L, 3, "append", "eu", 0, history_plan(h)->device->eus - 1, &eu);
	option_integer(L, 3, "append", "at", -OFFSET_MAX, OFFSET_MAX, &at);
	option_text(L, 3, "append", "seu", &seu);
	option_text(L, 3, "append", "lane", &lane);
	option_bool(L, 3, "append", "by_rows", &by_rows);
	mark = n > 1 ? history_mark(h) : NONE;
	for (int i = 0; i < n && !rc; i++)
		rc = history_append(h, tasks[i], seu, lane, (int)at, by_rows, here_now(L, file), &error);
	if (rc && n > 1)
		history_return(h, mark);
	raise_if(L, rc, &error);
	if (n > 1)
		history_join(h, n);
	return 0;
}

/* plan:move(task, options), plan:insert(task[, options]) with {at=, before=, after=, lane=, seu=, by_rows=, repair_waits=},
 * of one sTask or of a list; settle= is deprecated for repair_waits= */
static int move_or_insert(lua_State *L, const char *what, bool insert)
{
	struct history *h = plan_arg(L, what);
	struct stop stop = stop_of(host_of(L));
	bool repair_waits = true;
	struct move m = { 0 };
	const char **tasks;
	int64_t at = 0;
	int n;

	if (lua_isnone(L, 2))
		check_text(L, 2, what, "sTask");
	lua_settop(L, 3);
	n = check_names(L, 2, what, &tasks);
	OPTIONS_CHECK(L, 3, what, "at", "before", "after", "lane", "seu", "by_rows", "repair_waits", "settle" /* deprecated */);
	m.set_at = option_integer(L, 3, what, "at", -OFFSET_MAX, OFFSET_MAX, &at);
	m.at = (int)at;
	option_text(L, 3, what, "before", &m.before);
	option_text(L, 3, what, "after", &m.after);
	option_text(L, 3, what, "lane", &m.lane);
	option_text(L, 3, what, "seu", &m.seu);
	m.set_by_rows = option_bool(L, 3, what, "by_rows", &m.by_rows);
	option_bool(L, 3, what, "settle", &repair_waits);		/* deprecated */
	option_bool(L, 3, what, "repair_waits", &repair_waits);
	if (insert)
		EDIT(insert, h, tasks, n, &m, repair_waits, &stop);
	else
		EDIT(move, h, tasks, n, &m, repair_waits, &stop);
	return 0;
}

static int plan_move_l(lua_State *L)
{
	return move_or_insert(L, "move", false);
}

static int plan_insert_l(lua_State *L)
{
	return move_or_insert(L, "insert", true);
}

/* plan:remove(task) */
static int plan_remove_l(lua_State *L)
{
	struct history *h = plan_arg(L, "remove");
	const char *task = check_text(L, 2, "remove", "sTask");

	EDIT(remove, h, task);
	return 0;
}

/* {name=, warps=, columns=, registers=, spare=, replicas=, priority=}; without registers they are what the lane needs. */
static int push_lane(lua_State *L, const struct plan *p, int lane)
{
	const struct lane *l = &p->lanes.v[lane];

	lua_createtable(L, 0, 7);
	set_text(L, "name", l->name);
	set_integer(L, "warps", lane_warps(p, lane));
	if (l->columns)
		set_integer(L, "columns", l->columns);
	if (l->registers)
		set_integer(L, "registers", l->registers);
	if (l->spare)
		set_integer(L, "spare", l->spare);
	set_integer(L, "replicas", l->replicas);
	if (l->priority)
		set_integer(L, "priority", l->priority);
	return 1;
}

/* Is the option of the table false, which leaves to the plan what an earlier call gave? */
static bool is_freed(lua_State *L, int options, const char *name)
{
	bool freed = lua_istable(L, options) && lua_getfield(L, options, name) == LUA_TBOOLEAN && !lua_toboolean(L, -1);

	lua_settop(L, options);
	return freed;
}

/* An option of a lane, as it is unless given: false is 0, which leaves it to the plan. */
static void lane_option(lua_State *L, const char *name, int64_t *out)
{
	if (is_freed(L, 3, name))
		*out = 0;
	else
		option_integer(L, 3, "lane", name, strcmp(name, "spare") ? 1 : 0, !strcmp(name, "warps") ||
			!strcmp(name, "columns") ? 32 : 1 << 20, out);
}

/* plan:lane(name[, {warps=, columns=, registers=, spare=, replicas=, priority=}]); turns= is deprecated for replicas=. Of a lane that there
 * is, what is not given stays; if nothing is given, the plan is not edited, and the call returns what the lane is. false instead
 * of the table takes out a lane without sTasks. */
static int plan_lane_l(lua_State *L)
{
	struct history *h = plan_arg(L, "lane");
	const char *name = check_text(L, 2, "lane", "name");
	int i = plan_find_lane(history_plan(h), name);
	const struct lane *now = i == NONE ? NULL : &history_plan(h)->lanes.v[i];
	int64_t warps = now ? now->warps : 0, registers = now ? now->registers : 0, spare = now ? now->spare : 0;
	int64_t replicas = now ? now->replicas : 1, columns = now ? now->columns : 0, priority = now ? now->priority : 0;
	struct lane numbers;
	bool given;

	lua_settop(L, 3);
	if (lua_isboolean(L, 3) && !lua_toboolean(L, 3)) {
		EDIT(drop_lane, h, name);
		return 0;
	}
	OPTIONS_CHECK(L, 3, "lane", "warps", "columns", "registers", "spare", "replicas", "priority", "turns" /* deprecated */);
	lane_option(L, "warps", &warps);
	lane_option(L, "columns", &columns);
	lane_option(L, "registers", &registers);
	lane_option(L, "spare", &spare);
	lane_option(L, "priority", &priority);
	option_integer(L, 3, "lane", "turns", 1, 1 << 20, &replicas);	/* deprecated */
	option_integer(L, 3, "lane", "replicas", 1, 1 << 20, &replicas);
	given = lua_istable(L, 3) && (lua_pushnil(L), lua_next(L, 3));
	lua_settop(L, 3);
	numbers = (struct lane){ .warps = (int)warps, .columns = (int)columns, .registers = (int)registers, .spare = (int)spare,
		.replicas = (int)replicas, .priority = (int)priority };
	if (!now || given)
		EDIT(lane, h, name, &numbers);
	if (now && !given)
		return push_lane(L, history_plan(h), i);
	return 0;
}

/* The table at idx has numbers for keys, and of names only these; `wrong` says so. */
static void check_keys(lua_State *L, int idx, const char *const *names, int n, const char *wrong)
{
	for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
		const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
		bool known = lua_isinteger(L, -2);

		for (int i = 0; i < n && key; i++)
			known |= strcmp(key, names[i]) == 0;
		if (!known)
			throw_msg(L, "wait: %s", wrong);
	}
}

/* One element of the list at index 3: "task" or {"task", distance=, when=}. Leaves the
 * name on the stack, which keeps it alive. */
static struct wait_on check_wait(lua_State *L, int idx)
{
	static const char *const names[] = { "distance", "when" };
	static const char *const whens[] = { "complete", "issued" };	/* ORDER wait_when */
	struct wait_on w = { .distance = DISTANCE_AUTO };
	int64_t distance = DISTANCE_AUTO;
	int when = WAIT_COMPLETE;

	if (lua_type(L, idx) == LUA_TSTRING) {
		w.task = lua_tostring(L, idx);
		return w;
	}
	if (lua_type(L, idx) != LUA_TTABLE || lua_rawgeti(L, idx, 1) != LUA_TSTRING)
		throw_msg(L, "wait: each element names an sTask, or is a table as in "
			"{\"mma_qk\", distance=1, when=\"issued\"}");
	w.task = lua_tostring(L, -1);
	check_keys(L, idx, names, LEN(names), "a table in the list has an sTask, distance= "
		"and when=, and nothing else");
	option_integer(L, idx, "wait", "distance", 0, VERSIONS_MAX, &distance);
	option_name(L, idx, "wait", "when", whens, LEN(whens), &when);
	w.distance = (int)distance;
	w.when = (enum wait_when)when;
	return w;
}

/* plan:wait(task, {task, ...}), or plan:wait(task, other) */
static int plan_wait_l(lua_State *L)
{
	struct history *h = plan_arg(L, "wait");
	const char *task = check_text(L, 2, "wait", "sTask");
	struct wait_on *on;
	int n = 1;

	lua_settop(L, 3);
	if (lua_type(L, 3) != LUA_TTABLE && lua_type(L, 3) != LUA_TSTRING)
		throw_type(L, 3, "wait", "list of sTasks");
	if (lua_type(L, 3) == LUA_TTABLE) {
		check_keys(L, 3, NULL, 0, "distance= and when= stand in a table of their own, as in "
			"{{\"mma_qk\", distance=1}}");
		n = (int)lua_rawlen(L, 3);
	}
	on = lua_newuserdatauv(L, sizeof(*on) * (size_t)(n + 1), 0);
	if (!lua_checkstack(L, 2 * n + LUA_MINSTACK))
		throw_msg(L, "wait: %d sTasks are too many", n);
	for (int i = 0; i < n; i++) {
		if (lua_type(L, 3) == LUA_TTABLE)
			lua_rawgeti(L, 3, i + 1);
		else
			lua_pushvalue(L, 3);
		on[i] = check_wait(L, lua_gettop(L));
	}
	EDIT(wait, h, task, on, n);
	return 0;
}

/* plan:unwait(task, on), of one sTask or of a list, which is one edit */
static int plan_unwait_l(lua_State *L)
{
	struct history *h = plan_arg(L, "unwait");
	const char *task = check_text(L, 2, "unwait", "sTask");
	enum err_code rc = OK;
	char file[LUA_IDSIZE];
	struct err error;
	const char **on;
	int n, mark;

	if (lua_type(L, 3) != LUA_TTABLE)
		check_text(L, 3, "unwait", "sTask");
	lua_settop(L, 3);
	n = check_names(L, 3, "unwait", &on);
	mark = n > 1 ? history_mark(h) : NONE;
	for (int i = 0; i < n && !rc; i++)
		rc = history_unwait(h, task, on[i], here_now(L, file), &error);
	if (rc && n > 1)
		history_return(h, mark);
	raise_if(L, rc, &error);
	if (n > 1)
		history_join(h, n);
	return 0;
}

/* plan:fill_waits() -> how many were added */
static int plan_fill_waits_l(lua_State *L)
{
	struct history *h = plan_arg(L, "fill_waits");
	struct stop stop = stop_of(host_of(L));
	char file[LUA_IDSIZE];
	struct err e;
	int added;

	raise_if(L, history_fill_waits(h, &stop, here_now(L, file), &added, &e), &e);
	lua_pushinteger(L, added);
	return 1;
}

/* Push memory for an element of each key of the table at 2, and count the keys. */
static void *push_elements(lua_State *L, const char *what, const char *expected, size_t size, int *n)
{
	*n = 0;
	lua_settop(L, 2);
	if (lua_type(L, 2) != LUA_TTABLE)
		throw_type(L, 2, what, expected);
	copy_open(L, 2);
	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1))
		++*n;
	return lua_newuserdatauv(L, size * (size_t)(*n + 1), 0);
}

/* A finalizer may have added keys since they were counted. */
static void check_count(lua_State *L, const char *what, int64_t read, int counted)
{
	if (read == counted)
		throw_msg(L, "%s: the table changes while it is read", what);
}

/* plan:buffers{name=versions, ...} */
static int plan_buffers_l(lua_State *L)
{
	struct history *h = plan_arg(L, "buffers");
	int n;
	struct versions_of *all = push_elements(L, "buffers", "table of versions by buffer", sizeof(*all), &n), *v = all;

	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1), v++) {
		if (lua_type(L, -2) != LUA_TSTRING)
			throw_msg(L, "buffers: versions are given by name, as in {k=3}");
		check_count(L, "buffers", v - all, n);
		v->buffer = lua_tostring(L, -2);
		v->versions = (int)check_integer(L, -1, "buffers", v->buffer, 1, VERSIONS_MAX);
	}
	EDIT(versions, h, all, (int)(v - all));
	return 0;
}

/* plan:grid{raster=, group=, eus=, longest_first=, section=, dynamic=, cluster=, keep=, along=, divide=, chiplets=} */
static int plan_grid_l(lua_State *L)
{
	static const char *const rasters[] = { "rows", "columns" };	/* ORDER raster */
	struct history *h = plan_arg(L, "grid");
	struct grid_plan g = history_plan(h)->grid;
	int64_t group = g.group, eus = g.eus, section = g.section, cluster = g.cluster, keep = g.keep, chiplets = g.chiplets;
	const __typeof__(history_plan(h)->graph->program->axes) *axes = &history_plan(h)->graph->program->axes;
	const char *names[AXES_MAX];
	int raster = g.raster, divided = g.divided - 1;
	char file[LUA_IDSIZE];
	struct err e;

	for (int i = 0; i < axes->n; i++)
		names[i] = axes->v[i].name;
	OPTIONS_CHECK(L, 2, "grid", "raster", "group", "eus", "longest_first", "section", "dynamic", "cluster", "keep",
		"along", "divide", "chiplets");
	option_name(L, 2, "grid", "raster", rasters, LEN(rasters), &raster);
	option_integer(L, 2, "grid", "group", 1, 65536, &group);
	option_integer(L, 2, "grid", "eus", 1, history_plan(h)->device->eus, &eus);
	option_bool(L, 2, "grid", "longest_first", &g.longest_first);
	if (!g.longest_first)
		section = 0;
	option_integer(L, 2, "grid", "section", 0, SECTION_MOST, &section);
	option_bool(L, 2, "grid", "dynamic", &g.dynamic);
	option_integer(L, 2, "grid", "cluster", 1, 64, &cluster);
	option_integer(L, 2, "grid", "keep", 1, KEEP_MOST, &keep);
	if (is_freed(L, 2, "along") || (!option_name(L, 2, "grid", "along", names, axes->n, &g.along) && cluster == 1 && keep == 1))
		g.along = NONE;
	if (is_freed(L, 2, "divide") ||
	    (!option_name(L, 2, "grid", "divide", names, axes->n, &divided) && cluster == 1))
		divided = NONE;
	option_integer(L, 2, "grid", "chiplets", 1, 1024, &chiplets);
	g.raster = (enum raster)raster;
	g.group = (int)group;
	g.eus = (int)eus;
	g.section = (int)section;
	g.cluster = (int)cluster;
	g.keep = (int)keep;
	g.divided = divided + 1;
	g.chiplets = (int)chiplets;
	raise_if(L, history_grid(h, &g, here_now(L, file), &e), &e);
	return 0;
}

/* Pushes the names of the list at the index, which are valid while they are on the stack. Returns how many there are. */
static int push_names(lua_State *L, int at, const char *method, const char *what, const char ***names)
{
	int n = (int)lua_rawlen(L, at);

	*names = lua_newuserdatauv(L, sizeof(**names) * (size_t)(n + 1), 0);
	if (!lua_checkstack(L, n + LUA_MINSTACK))
		throw_msg(L, "%s: %d %ss are too many", method, n, what);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, at, i + 1);
		(*names)[i] = check_text(L, -1, method, what);
	}
	return n;
}

/* plan:launch{ready=, next=} */
static int plan_launch_l(lua_State *L)
{
	struct history *h = plan_arg(L, "launch");
	int next = (int)history_plan(h)->launch.next, n = -1;
	const char **ready = NULL;

	OPTIONS_CHECK(L, 2, "launch", "ready", "next");
	option_name(L, 2, "launch", "next", launch_next_names, NEXT_END + 1, &next);
	lua_settop(L, 2);
	lua_getfield(L, 2, "ready");
	if (lua_type(L, 3) == LUA_TTABLE)
		n = push_names(L, 3, "launch", "tensor", &ready);
	else if (!lua_isnil(L, 3))
		throw_type(L, 3, "launch", "list of tensors");
	EDIT(launch, h, (enum launch_next)next, ready, n);
	return 0;
}

/* plan:split(axis, ways[, {task, ...}]) */
static int plan_split_l(lua_State *L)
{
	struct history *h = plan_arg(L, "split");
	const char *axis = check_text(L, 2, "split", "axis");
	int ways = (int)check_integer(L, 3, "split", "ways", 1, INT32_MAX);
	const char **tasks = NULL;
	int n = 0;

	lua_settop(L, 4);
	if (lua_type(L, 4) == LUA_TTABLE)
		n = push_names(L, 4, "split", "task", &tasks);
	else if (!lua_isnil(L, 4))
		throw_type(L, 4, "split", "list of tasks");
	EDIT(split, h, axis, ways, tasks, n);
	return 0;
}

/* The names of a list of values, the last argument, at this index. */
static int push_values(lua_State *L, int index, const char *method, const char ***values)
{
	lua_settop(L, index);
	if (lua_type(L, index) != LUA_TTABLE)
		throw_type(L, index, method, "list of values");
	return push_names(L, index, method, "value", values);
}

/* plan:fetch(product, {value, ...}) */
static int plan_fetch_l(lua_State *L)
{
	struct history *h = plan_arg(L, "fetch");
	const char *product = check_text(L, 2, "fetch", "product");
	const char **values;
	int n = push_values(L, 3, "fetch", &values);

	EDIT(fetch, h, product, values, n);
	return 0;
}

typedef enum err_code names_edit(struct history *h, const char *const *names, int n, struct srcloc loc, struct err *e);

/* plan:NAME{value or load, ...} */
static int edit_names(lua_State *L, const char *name, names_edit *edit)
{
	struct history *h = plan_arg(L, name);
	const char **names;
	int n = push_values(L, 2, name, &names);
	char file[LUA_IDSIZE];
	struct err e;

	raise_if(L, edit(h, names, n, here_now(L, file), &e), &e);
	return 0;
}

static int plan_direct_l(lua_State *L) { return edit_names(L, "direct", history_direct); }
static int plan_window_l(lua_State *L) { return edit_names(L, "window", history_window); }

/* plan:swap(product) */
static int plan_swap_l(lua_State *L)
{
	struct history *h = plan_arg(L, "swap");
	const char *product = check_text(L, 2, "swap", "product");

	EDIT(swap, h, product);
	return 0;
}

/* plan:split_off(value, task[, steps]); plan:cut is its deprecated name */
static int plan_split_off_l(lua_State *L)
{
	struct history *h = plan_arg(L, "split_off");
	const char *value = check_text(L, 2, "split_off", "value"), *task = check_text(L, 3, "split_off", "sTask");
	int steps = lua_isnoneornil(L, 4) ? 1 : (int)check_integer(L, 4, "split_off", "steps", 1, SPLIT_OFF_STEPS_MOST);

	EDIT(split_off, h, value, task, steps);
	return 0;
}

/* plan:alias{value=other, ...}; plan:place is its deprecated name */
static int plan_alias_l(lua_State *L)
{
	struct history *h = plan_arg(L, "alias");
	int n;
	struct alias *all = push_elements(L, "alias", "table of values by value", sizeof(*all), &n), *v = all;

	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1), v++) {
		if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
			throw_msg(L, "alias: values are named, as in {softmax_3=\"mma_qk\"}");
		check_count(L, "alias", v - all, n);
		v->what = lua_tostring(L, -2);
		v->of = lua_tostring(L, -1);
	}
	EDIT(alias, h, all, (int)(v - all));
	return 0;
}

/* plan:propagate{m=, n=, k=} */
static int plan_propagate_l(lua_State *L)
{
	struct history *h = plan_arg(L, "propagate");
	struct tiling t = { 0 };

	check_tiling(L, 2, "propagate", history_plan(h)->graph->program, &t);
	EDIT(propagate, h, &t);
	return 0;
}

/* plan:undo() -> true; or false and why */
static int plan_undo_l(lua_State *L)
{
	struct history *h = plan_arg(L, "undo");
	bool done = history_undo(h);

	lua_pushboolean(L, done);
	if (!done)
		lua_pushstring(L, history_is_loaded(h) ? "nothing to undo since this was loaded" : "nothing to undo");
	return done ? 1 : 2;
}

static int plan_redo_l(lua_State *L)
{
	bool done = history_redo(plan_arg(L, "redo"));

	lua_pushboolean(L, done);
	if (!done)
		lua_pushliteral(L, "nothing to redo");
	return done ? 1 : 2;
}

/* core.set_loaded(plan): what is in it is not undone from now on */
static int set_loaded_l(lua_State *L)
{
	history_loaded(plan_arg(L, "set_loaded"));
	return 0;
}

/* core.mark(plan): a number for core.back and core.is_at */
RETURNS(plan_mark, lua_pushinteger(L, history_mark(plan_arg(L, "mark"))))

/* core.back(plan, mark) */
static int plan_back_l(lua_State *L)
{
	history_return(plan_arg(L, "back"), (int)luaL_checkinteger(L, 2));
	return 0;
}

/* core.is_at(plan, mark) */
RETURNS(plan_is_at, lua_pushboolean(L, history_is_at(plan_arg(L, "is_at"), (int)luaL_checkinteger(L, 2))))

/* core.edits(plan): how many there are; core.join(plan, n): the last n are one from now on */
RETURNS(plan_edits, lua_pushinteger(L, history_edits(plan_arg(L, "edits"))))

static int plan_join_l(lua_State *L)
{
	history_join(plan_arg(L, "join"), (int)luaL_checkinteger(L, 2));
	return 0;
}

/* core.become(plan, other) */
static int plan_become_l(lua_State *L)
{
	struct history *h = plan_arg(L, "become");

	EDIT(become, h, check_plan(L, 2, "become"));
	return 0;
}

/* plan:copy() */
static int plan_copy_l(lua_State *L)
{
	struct history *h = plan_arg(L, "copy");
	void **box = box_new(L, PLAN_CLASS, PLAN_SLOTS);

	for (int i = 1; i <= PLAN_SLOTS; i++) {
		lua_getiuservalue(L, 1, i);
		keep(L, -2, i, -1);
		lua_pop(L, 1);
	}
	history_copy(h, (struct history **)box);
	return 1;
}

/* fields and text --------------------------------------------------------- */

#define FIELD(name, push) GETTER(plan_##name, const struct plan *, plan_present(L, #name), push)

FIELD(tasks, push_tasks(L, o->graph))
FIELD(edges, push_edges(L, o->graph))
FIELD(tile, (push_tile(L, o->graph->program, &o->graph->tiling), copy_close(L, "plan.tile", "plan:propagate{", "}")))

/* plan.graph: that with which plan:script() begins, so it has the tile of the plan, but no splits: the one given to
 * mr.plan as long as the tile is the same, else another one, made when it is first asked for. */
static int plan_graph_l(lua_State *L)
{
	struct tiling t = plan_present(L, "graph")->graph->tiling;
	static const int slots[] = { 1, PLAN_GRAPH };

	for (int i = 0; i < LEN(slots); i++) {
		lua_getiuservalue(L, 1, slots[i]);
		if (!lua_isnil(L, -1) && !memcmp(&check_graph(L, -1, "graph")->tiling, &t, sizeof(t)))
			return 1;
	}
	lua_getiuservalue(L, 1, 1);
	lua_getiuservalue(L, -1, 1);
	push_graph(L, -1, &t);
	keep(L, 1, PLAN_GRAPH, -1);
	return 1;
}

FIELD(device, ((void)o, lua_getiuservalue(L, 1, 2)))
FIELD(path, ((void)o, lua_getiuservalue(L, 1, PLAN_PATH)))

FIELD(made_for, ((void)o, lua_getiuservalue(L, 1, PLAN_MADE_FOR)))

/* core.set_path(plan, path, hash of the file's text) */
static int set_path_l(lua_State *L)
{
	plan_arg(L, "set_path");
	lua_settop(L, 3);
	keep(L, 1, PLAN_PATH, 2);
	keep(L, 1, PLAN_HASH, 3);
	return 0;
}

/* core.hash_of_file(plan) -> what set_path was given, or nil */
RETURNS(hash_of_file, (plan_arg(L, "hash_of_file"), lua_getiuservalue(L, 1, PLAN_HASH)))

/* core.set_made_for(plan, text) */
static int set_made_for_l(lua_State *L)
{
	plan_arg(L, "set_made_for");
	lua_settop(L, 2);
	keep(L, 1, PLAN_MADE_FOR, 2);
	return 0;
}

static int plan_rings_l(lua_State *L)
{
	const struct plan *p = plan_present(L, "rings");

	lua_newtable(L);
	for (int i = 0; i < p->graph->buffers.n; i++)
		set_integer(L, p->graph->buffers.v[i].name, p->versions[i]);
	copy_close(L, "plan.rings", "plan:buffers{", "}");
	return 1;
}

/* core.statements(plan); lua/std/plan.lua puts the program and the device before. */
static int plan_statements_l(lua_State *L)
{
	struct history *h = plan_arg(L, "script");
	struct buf text;

	buf_init(&text, scratch_push(L));
	plan_script(history_plan(h), &text);
	return push_buf(L, &text);
}

/* core.diff(one, other): lines of both texts, {sign, line}: " " what both have, "-" what is gone, "+" what is new */
static int diff_l(lua_State *L)
{
	static const char *const signs[] = { " ", "-", "+" };	/* ORDER diff_kind */
	const char *one = luaL_checkstring(L, 1), *other = luaL_checkstring(L, 2);
	struct arena *a = scratch_push(L);
	struct diff d;

	enter(L);
	script_diff(a, one, other, &d);
	lua_createtable(L, d.v.n, 0);
	for (int i = 0; i < d.v.n; i++) {
		lua_createtable(L, 2, 0);
		lua_pushstring(L, signs[d.v.v[i].kind]);
		lua_rawseti(L, -2, 1);
		lua_pushstring(L, d.v.v[i].text);
		lua_rawseti(L, -2, 2);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* core.repeats(plan) -> {{axis=, tiles=, text=}, ...}: what several tiles do alike, because they share the axis */
static int repeats_l(lua_State *L)
{
	const struct graph *g = plan_present(L, "repeats")->graph;
	struct arena *a = scratch_push(L);
	int n = 0;

	enter(L);
	lua_newtable(L);
	for (int phase = 0; phase < g->program->phases.n; phase++)
		for (int i = 0; i < g->program->axes.n; i++) {
			const char *text = graph_repeats_text(g, phase, i, a);

			if (text) {
				lua_createtable(L, 0, 3);
				set_integer(L, "tiles", extent_tiles(&g->extents, i));
				set_text(L, "axis", g->program->axes.v[i].name);
				set_text(L, "text", text);
				lua_rawseti(L, -2, ++n);
			}
		}
	return 1;
}

/* core.windows(plan) -> {{load, ...}, ...}: windows that its loads may have (program_find_windows), with its tile */
static int windows_l(lua_State *L)
{
	const struct graph *g = plan_present(L, "windows")->graph;
	struct arena *a = scratch_push(L);
	struct window *windows;
	int count = program_find_windows(a, g->program, &windows), n = 0;

	enter(L);
	lua_newtable(L);
	for (int i = 0; i < count; i++) {
		if (!graph_has_window(a, g->program, &g->tiling, &windows[i]))
			continue;
		lua_createtable(L, windows[i].n, 0);
		for (int k = 0; k < windows[i].n; k++) {
			lua_pushstring(L, windows[i].names[k]);
			lua_rawseti(L, -2, k + 1);
		}
		lua_rawseti(L, -2, ++n);
	}
	return 1;
}

void lua_open_plan(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "append", plan_append_l }, { "remove", plan_remove_l }, { "move", plan_move_l }, { "insert", plan_insert_l },
		{ "lane", plan_lane_l }, { "wait", plan_wait_l }, { "unwait", plan_unwait_l }, { "buffers", plan_buffers_l },
		{ "fill_waits", plan_fill_waits_l }, { "grid", plan_grid_l }, { "launch", plan_launch_l }, { "split", plan_split_l },
		{ "split_off", plan_split_off_l }, { "fetch", plan_fetch_l }, { "direct", plan_direct_l }, { "swap", plan_swap_l },
		{ "window", plan_window_l },
		{ "alias", plan_alias_l }, { "propagate", plan_propagate_l },
		{ "cut", plan_split_off_l }, { "place", plan_alias_l },	/* deprecated names */
		{ "undo", plan_undo_l }, { "redo", plan_redo_l }, { "copy", plan_copy_l }, { "check", plan_check_l },
		{ "table", plan_table_l }, { "simulate", plan_simulate_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = { { "tasks", plan_tasks_l }, { "edges", plan_edges_l }, { "rings", plan_rings_l },
		{ "tile", plan_tile_l }, { "graph", plan_graph_l }, { "device", plan_device_l }, { "path", plan_path_l },
		{ "made_for", plan_made_for_l }, { "usage", plan_usage_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", plan_gc_l }, { "__tostring", plan_tostring_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = {
		{ "plan", plan_new_l }, { "diff", diff_l }, { "statements", plan_statements_l }, { "mark", plan_mark_l },
		{ "back", plan_back_l }, { "is_at", plan_is_at_l }, { "set_path", set_path_l }, { "set_made_for", set_made_for_l },
		{ "hash_of_file", hash_of_file_l }, { "set_loaded", set_loaded_l },
		{ "become", plan_become_l }, { "edits", plan_edits_l }, { "join", plan_join_l },
		{ "split", plan_split_l }, { "repeats", repeats_l }, { "windows", windows_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ PLAN_CLASS, methods, fields, meta });
	luaL_setfuncs(L, functions, 0);
}
