#include "lplan.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "search/search.h"

#define SEARCH_CLASS "millrace.search"

/* With fewer spare registers, compilers add moves, and spill. */
#define TIGHT 64.0

BOX_GC(search_gc, SEARCH_CLASS, search_free)

/* {axis = extent or list of them} */
static void check_wanted(lua_State *L, int idx, const struct program *p, struct wanted *out)
{
	*out = (struct wanted){ 0 };
	if (lua_isnil(L, idx))
		return;
	if (lua_type(L, idx) != LUA_TTABLE)
		throw_type(L, idx, "search", "table of tile extents");
	copy_open(L, idx);
	for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
		int axis = check_axis_key(L, lua_gettop(L) - 1, "search", p), *n = &out->n[axis];
		int64_t count = lua_istable(L, -1) ? (int64_t)lua_rawlen(L, -1) : 1;

		if (count < 1 || count > EXTENTS_MAX)
			throw_msg(L, "search: 1 to %d extents of axis '%s' can be tried, not %d", EXTENTS_MAX,
				p->axes.v[axis].name, (int)count);
		for (int64_t i = 1; i <= count; i++) {
			if (lua_istable(L, -1))
				lua_rawgeti(L, -1, i);
			else
				lua_pushvalue(L, -1);
			out->extent[axis][(*n)++] = check_integer(L, -1, "search", "tile extent", 1, INT64_MAX);
			lua_pop(L, 1);
		}
	}
}

/* The inputs of a list of names, as bits. */
static uint64_t check_ready(lua_State *L, int idx, const struct program *p)
{
	uint64_t bits = 0;

	for (int i = 1; lua_istable(L, idx) && i <= (int)lua_rawlen(L, idx); i++) {
		int t;

		lua_rawgeti(L, idx, i);
		FIND_FIRST(t, p->tensors.n, !strcmp(p->tensors.v[t].name, check_text(L, -1, "search", "name of a ready input")));
		if (t == NONE || t >= 64 || p->tensors.v[t].role != TENSOR_INPUT)
			throw_msg(L, "search: '%s' has no input '%s' that could be ready", p->name, lua_tostring(L, -1));
		bits |= (uint64_t)1 << t;
		lua_pop(L, 1);
	}
	return bits;
}

/* core.search(bound, device, tile, measured, reshaped, ready). reshaped: products with their operands exchanged, or else loads with windows;
 * nil if the program has neither. ready: names of inputs, or nil. */
static int search_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct program *p = check_program(L, 1, "search");
	const struct vdevice *d = check_device(L, 2, "search");
	struct wanted want;
	void **box;
	struct err e;

	lua_settop(L, 6);
	check_wanted(L, 3, p, &want);
	want.ready = check_ready(L, 6, p);
	want.measured = lua_toboolean(L, 4);
	want.swapped = lua_toboolean(L, 5) && search_swaps(p, d);
	want.windowed = lua_toboolean(L, 5) && !want.swapped;
	box = box_new(L, SEARCH_CLASS, 2);
	keep(L, -1, 1, 1);
	keep(L, -1, 2, 2);
	raise_if(L, search_new(&h->mem, p, d, &want, (struct search **)box, &e), &e);
	return !want.windowed || search_has_windows(*(struct search **)box);
}

/* Does the function of Lua end the search? */
static bool show_progress(lua_State *L, int progress, const struct search *s)
{
	struct search_result r = search_best(s);
	bool ends;

	if (lua_isnil(L, progress))
		return false;
	lua_pushvalue(L, progress);
	lua_pushinteger(L, r.trials);
	lua_pushinteger(L, r.shapes);
	lua_pushnumber(L, r.seconds);
	lua_call(L, 3, 1);
	ends = lua_toboolean(L, -1);
	lua_pop(L, 1);
	enter(L);
	return ends;
}

/* search:run(trials, seconds, progress) -> "done", "trials", "seconds" or "interrupted": by Ctrl-C, which ends this call only
 * and not the script, or as progress(trials, shapes, seconds) returns true. Whatever ends it, the search keeps what was found,
 * and can be run further. */
static int search_run_l(lua_State *L)
{
	struct host *h = enter(L);
	struct search *s = box_get(L, 1, SEARCH_CLASS, "run");
	int64_t trials = check_integer(L, 2, "search", "trials", 0, INT64_MAX);
	double until = clock_seconds() + check_real(L, 3, "search", "seconds"), shown = clock_seconds();
	struct stop stop = stop_of(h);
	const char *end = "done";
	bool more = true;
	struct err e;

	lua_settop(L, 4);
	for (;;) {
		enum err_code code = search_step(s, &stop, &more, &e);

		if (code && code != ERR_INTERRUPTED)
			throw_err(L, &e);
		if (code == ERR_INTERRUPTED || h->interrupted) {
			h->heeded++;
			h->interrupted = 0;
			end = "interrupted";
			break;
		}
		if (!more) {
			if (search_best(s).at_limit)
				end = "trials";
			break;
		}
		if (search_best(s).trials >= trials) {
			end = "trials";
			break;
		}
		if (clock_seconds() >= until) {
			end = "seconds";
			break;
		}
		if (clock_seconds() - shown > 0.2) {
			shown = clock_seconds();
			if (show_progress(L, 4, s)) {
				end = "interrupted";
				break;
			}
		}
	}
	lua_pushstring(L, end);
	return 1;
}

/* search:neighbours(trial): the next run tries all neighbours of that plan */
static int search_neighbours_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "neighbours");
	int64_t trial = check_integer(L, 2, "search", "trial", 1, INT32_MAX);

	enter(L);
	if (!search_is_plan(s, (int)trial - 1))
		throw_msg(L, "search: trial %d is no plan", (int)trial);
	search_neighbours(s, (int)trial - 1);
	return 0;
}

/* Traits: a choice as numbers by name, from which lua/std/belief.lua computes how similar two choices are. The scales of the
 * numbers belong to its weights. */
static void push_traits(lua_State *L, const struct program *p, const struct choice *c, int spare)
{
	const struct { const char *name; double x; } traits[] = { { "split off", c->split_off },
		{ "unit", c->on_second ? 2 : 0 },
		{ "ways", c->ways }, { "columns", c->split == SPLIT_COLUMNS },
		{ "depth parts", c->split == SPLIT_DEPTH }, { "warps", c->warps / 4.0 }, { "replicas", c->replicas },
		{ "warp_columns", c->columns / 4.0 },
		{ "issue_order", c->issue_order }, { "versions", c->extra_versions != 0 },
		{ "depth", log2(c->ring_depth + __builtin_popcount(c->deeper_rings)) / 2 }, { "tiles", c->tile_versions / 2.0 }, { "by_threads", c->stores_by_threads },
		{ "load_warps", c->load_warps ? 1 + log2(c->load_warps) / 4 : 0 }, { "load_lanes", c->load_lanes != LOADS_TOGETHER }, { "loads_ahead", c->load_lanes == LOADS_AHEAD },
		{ "loads_behind", c->load_lanes == LOADS_BEHIND },
		{ "load_registers", c->load_registers != 0 },
		/* the model does not know that EUs of a cluster wait for each other */
		{ "cluster", c->grid.cluster > 1 ? 2 : 0 }, { "keep", log2(c->grid.keep) / 2 }, { "raster", c->grid.raster == RASTER_ROWS },
		{ "pressure", fmax(TIGHT - spare, 0) / TIGHT }, { "group", log2(c->grid.group) / 4 },
		{ "longest_first", c->grid.longest_first },
		{ "section", c->grid.section != 0 } };

	lua_newtable(L);
	for (int i = 0; i < LEN(traits); i++)
		set_real(L, traits[i].name, traits[i].x);
	for (int l = 0; l < CHOICE_REGIONS; l++)
		if (c->order[l]) {
			lua_pushfstring(L, "order %d: %d", l, c->order[l]);
			lua_pushnumber(L, 1);
			lua_rawset(L, -3);
		}
	for (int a = 0; a < p->axes.n; a++)
		if (c->tiling.extent[a]) {
			lua_pushfstring(L, "tile %s", p->axes.v[a].name);
			lua_pushnumber(L, log2((double)c->tiling.extent[a]));
			lua_rawset(L, -3);
		}
}

/* search:plan(trial) -> statements, tile; nothing if that candidate is not legal */
static int search_plan_l(lua_State *L)
{
	struct host *h = enter(L);
	struct search *s = box_get(L, 1, SEARCH_CLASS, "plan");
	int64_t trial = check_integer(L, 2, "search", "trial", 1, INT32_MAX);
	struct stop stop = stop_of(h);
	struct tiling tile;
	struct buf text;
	struct err e;

	if (!search_is_plan(s, (int)trial - 1))
		return 0;
	buf_init(&text, scratch_push(L));
	raise_if(L, search_script(s, (int)trial - 1, &stop, &text, &tile, &e), &e);
	push_buf(L, &text);
	push_tile(L, search_program(s), &tile);
	return 2;
}

/* search:nearest() -> statements, tile of the candidate with the fewest problems; nothing if there is none */
static int search_nearest_l(lua_State *L)
{
	struct host *h = enter(L);
	struct search *s = box_get(L, 1, SEARCH_CLASS, "nearest");
	struct stop stop = stop_of(h);
	struct tiling tile;
	struct buf text;
	struct err e;

	buf_init(&text, scratch_push(L));
	raise_if(L, search_nearest(s, &stop, &text, &tile, &e), &e);
	if (!text.len)
		return 0;
	push_buf(L, &text);
	push_tile(L, search_program(s), &tile);
	return 2;
}

/* search:found() -> {{seconds=, priced=, trial=, traits=}, ...}, the best first */
static int search_found_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "found");
	int n = search_best(s).found;

	enter(L);
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		struct search_found f = search_ranked(s, i);

		lua_createtable(L, 0, 4);
		set_real(L, "seconds", f.seconds);
		set_bool(L, "priced", f.priced);
		set_integer(L, "trial", f.trial + 1);
		push_traits(L, search_program(s), f.choice, f.spare);
		lua_setfield(L, -2, "traits");
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* search:tiles() -> {{tile=, seconds=, bytes=}, ...}: tiles to begin with, the best first (search.h) */
static int search_tiles_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "tiles");
	struct host *h = enter(L);
	struct stop stop = stop_of(h);
	struct search_tile *tiles;
	struct err e;
	int n;

	raise_if(L, search_tiles(s, &stop, &tiles, &n, &e), &e);
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_createtable(L, 0, 3);
		push_tile(L, search_program(s), &tiles[i].tiling);
		lua_setfield(L, -2, "tile");
		set_real(L, "seconds", tiles[i].seconds);
		set_real(L, "bytes", tiles[i].bytes);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* search:tried() -> predicted seconds of the plans that were tried, in order; false: the plan has no kernel */
static int search_tried_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "tried");
	double seconds;

	enter(L);
	lua_newtable(L);
	for (int n = 1, at = 0; search_next_tried(s, &at, &seconds); n++) {
		if (isfinite(seconds))
			lua_pushnumber(L, seconds);
		else
			lua_pushboolean(L, false);
		lua_rawseti(L, -2, n);
	}
	return 1;
}

/* search:counts() -> {trials=, shapes=, pruned=, found=, bound_seconds=, counted_seconds=, at_memory=, refusals=} */
static int search_counts_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "counts");
	struct search_result r = search_best(s);
	const struct { const char *name; int n; } counts[] = { { "trials", r.trials },
		{ "shapes", r.shapes }, { "pruned", r.pruned }, { "found", r.found } };
	struct buf text;

	enter(L);
	buf_init(&text, scratch_push(L));
	search_refusals(s, &text);
	lua_createtable(L, 0, LEN(counts) + 4);
	for (int i = 0; i < LEN(counts); i++)
		set_integer(L, counts[i].name, counts[i].n);
	set_real(L, "bound_seconds", r.bound_seconds);
	set_real(L, "counted_seconds", r.counted_seconds);
	lua_pushboolean(L, r.at_memory);
	lua_setfield(L, -2, "at_memory");
	push_buf(L, &text);
	lua_setfield(L, -2, "refusals");
	return 1;
}

void lua_open_search(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "run", search_run_l }, { "plan", search_plan_l }, { "counts", search_counts_l },
		{ "found", search_found_l }, { "tiles", search_tiles_l }, { "nearest", search_nearest_l },
		{ "neighbours", search_neighbours_l }, { "tried", search_tried_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", search_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ SEARCH_CLASS, methods, NULL, meta });
	set_function(L, "search", search_new_l);
}
