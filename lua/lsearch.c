#include "lplan.h"

#include <time.h>

#include "search/search.h"

#define SEARCH_CLASS "millrace.search"

static int search_gc_l(lua_State *L)
{
	search_free(box_take(L, SEARCH_CLASS));
	return 0;
}

/* core.search(bound, device) */
static int search_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct program *p = check_program(L, 1, "search");
	const struct vdevice *d = check_device(L, 2, "search");
	void **box = box_new(L, SEARCH_CLASS, 2);
	struct err e;

	keep(L, -1, 1, 1);
	keep(L, -1, 2, 2);
	if (search_new(&h->mem, p, d, (struct search **)box, &e))
		throw_err(L, &e);
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show_progress(lua_State *L, int progress, const struct search *s)
{
	struct search_result r = search_best(s);

	if (lua_isnil(L, progress))
		return;
	lua_pushvalue(L, progress);
	lua_pushinteger(L, r.trials);
	lua_pushinteger(L, r.shapes);
	lua_pushnumber(L, r.timeline ? r.timeline->seconds : 0);
	lua_call(L, 3, 0);
	enter(L);
}

/* search:run(trials, seconds, progress) -> "done", "trials", "seconds" or
 * "interrupted". What was found stays in the search whatever ends it; Ctrl-C is
 * taken as the answer to this call and does not go on to the script. */
static int search_run_l(lua_State *L)
{
	struct host *h = enter(L);
	struct search *s = box_get(L, 1, SEARCH_CLASS, "run");
	int64_t trials = check_whole(L, 2, "search", "trials", 0, INT64_MAX);
	double until = now() + check_real(L, 3, "search", "seconds"), shown = now();
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
			h->interrupted = 0;
			end = "interrupted";
			break;
		}
		if (!more)
			break;
		if (search_best(s).trials >= trials) {
			end = "trials";
			break;
		}
		if (now() >= until) {
			end = "seconds";
			break;
		}
		if (now() - shown > 0.2) {
			shown = now();
			show_progress(L, 4, s);
		}
	}
	lua_pushstring(L, end);
	return 1;
}

/* search:found() -> statements, tile, {trials=, ...}; statements nil if nothing was */
static int search_found_l(lua_State *L)
{
	struct search *s = box_get(L, 1, SEARCH_CLASS, "found");
	struct search_result r = search_best(s);
	struct buf text;

	enter(L);
	buf_init(&text, scratch_push(L));
	search_script(s, &text);
	if (r.plan)
		push_buf(L, &text);
	else
		lua_pushnil(L);
	if (r.plan)
		push_tile(L, r.plan->graph);
	else
		lua_pushnil(L);
	lua_createtable(L, 0, 4);
	lua_pushinteger(L, r.trials);
	lua_setfield(L, -2, "trials");
	lua_pushinteger(L, r.shapes);
	lua_setfield(L, -2, "shapes");
	lua_pushinteger(L, r.pruned);
	lua_setfield(L, -2, "pruned");
	lua_pushnumber(L, r.bound_seconds);
	lua_setfield(L, -2, "bound_seconds");
	return 3;
}

void lua_open_search(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{ "run", search_run_l }, { "found", search_found_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", search_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ SEARCH_CLASS, methods, NULL, meta });
	lua_pushcfunction(L, search_new_l);
	lua_setfield(L, -2, "search");
}
