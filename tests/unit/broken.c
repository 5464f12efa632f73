/* Plans from which a wait is taken (tests/lua/lib/broken_plans.lua), and the one thing for
 * this that Lua cannot do: to compile, for the CPU, what the checks refuse. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "lower/protocol.h"
#include "lua/lplan.h"
#include "run/on_host.h"

/* Let the sTask no longer wait for the other. A wait for own products is a count; then the
 * lane waits for none. */
static void drop_wait(struct kernel *k, const char *task, const char *on)
{
	const struct plan *p = k->plan;

	for (int l = 0; l < k->lanes.n; l++) {
		for (int i = 0; i < k->lanes.v[l].entries.n; i++) {
			struct kentry *x = &k->lanes.v[l].entries.v[i];
			int n = 0;

			if (strcmp(p->graph->tasks.v[x->task].name, task) != 0)
				continue;
			for (int w = 0; w < x->waits.n; w++)
				if (strcmp(p->graph->tasks.v[p->waits.v[x->waits.v[w].wait].on].name, on) != 0)
					x->waits.v[n++] = x->waits.v[w];
			if (n == x->waits.n)
				x->waits_groups = false;
			x->waits.n = n;
		}
	}
}

/* *wrong: what the protocol check has to say about the kernels, in h's arena; NULL: nothing. */
static enum err_code compile(struct on_host *h, const char *task, const char *on,
	const char **wrong, struct err *e)
{
	int n = h->plan->graph->program->phases.n;

	h->sources = ARENA_ARRAY(&h->arena, n, struct source);
	h->kernels = ARENA_ARRAY(&h->arena, n, struct host_kernel *);
	h->lowered = ARENA_ARRAY(&h->arena, n, struct kernel *);
	h->stamps = ARENA_ARRAY(&h->arena, n, uint32_t *);
	h->nphases = n;
	for (int i = 0; i < n; i++) {
		struct source *s = &h->sources[i];

		TRY(lower_unchecked(h->arena.mem, h->plan, i, &h->kernel, e));
		if (task)
			drop_wait(h->kernel, task, on);
		if (protocol_check(h->kernel, NULL, e))
			*wrong = arena_strf(&h->arena, "%s", e->msg);
		TRY(emit_host(h->kernel, &h->arena, s, e));
		kernel_free(h->kernel);
		h->kernel = NULL;
		TRY(host_compile(h->arena.mem, s->text.text, s->text.len, NULL, &h->kernels[i], e));
	}
	return OK;
}

/* force(plan[, task, on]) -> its kernels, without the wait of `task` for `on` if these are
 * given, and what the protocol check finds wrong with them; or nil and why they cannot even
 * be lowered */
static int force_l(lua_State *L)
{
	struct host *host = enter(L);
	struct history *plan = check_plan(L, 1, "force");
	const char *task = luaL_optstring(L, 2, NULL), *on = luaL_optstring(L, 3, NULL);
	const char *wrong = NULL;
	struct on_host *h;
	struct err e;
	void **box;

	hold_finalizers(L);
	box = box_new(L, "millrace.on_host", 1);
	keep(L, -1, 1, 1);
	enter(L);
	on_host_new(&host->mem, (struct on_host **)box);
	h = *box;
	if (!history_snapshot(plan, &h->graph, &h->plan, &e) && !compile(h, task, on, &wrong, &e)) {
		lua_pushstring(L, wrong);
		return 2;
	}
	lua_pushnil(L);
	lua_pushstring(L, e.msg);
	return 2;
}

int main(void)
{
	const char *home = getenv("MILLRACE_HOME");
	struct host h = { .home = home ? home : "." };
	lua_State *L = host_open(&h);
	int failed;

	lua_register(L, "force", force_l);
	lua_pushfstring(L, "%s/tests/lua/lib/broken_plans.lua", h.home);
	failed = luaL_dofile(L, lua_tostring(L, -1));
	if (failed)
		printf("# %s\n", lua_tostring(L, -1));
	host_close(L);
	return failed;
}
