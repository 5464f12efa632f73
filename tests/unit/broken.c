/* Plans from which a wait is taken (tests/lua/lib/broken_plans.lua), and the one thing for
 * this that Lua cannot do: to compile, for the CPU, what the checks refuse. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "lower/passes.h"
#include "verify/verify.h"
#include "lua/lplan.h"
#include "run/built.h"

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

/* What is taken from the kernels, and found wrong with them. */
struct breaking {
	const char *task, *on;		/* its wait for that; NULL: none */
	char wrong[sizeof(((struct err *)NULL)->msg)];	/* "": nothing */
};

static enum err_code lower_broken(struct mem *mem, const struct plan *p, int phase, void *ud,
	struct kernel **out, struct err *e)
{
	struct breaking *x = ud;

	TRY(lower_unchecked(mem, p, phase, out, e));
	if (x->task) {
		drop_wait(*out, x->task, x->on);
		TRY(lower_body(*out, e));
	}
	if (verify((*out)->role, (*out)->plan, phase, &(*out)->arena, NULL, e))
		snprintf(x->wrong, sizeof(x->wrong), "%s", e->msg);
	return OK;
}

/* force(plan[, task, on]) -> its kernels, without the wait of `task` for `on` if these are
 * given, and what the protocol check finds wrong with them; or nil and why they cannot even
 * be lowered */
static int force_l(lua_State *L)
{
	struct host *host = enter(L);
	struct history *plan = check_plan(L, 1, "force");
	struct breaking x = { luaL_optstring(L, 2, NULL), luaL_optstring(L, 3, NULL), "" };
	struct built *h;
	struct err e;
	void **box;

	hold_finalizers(L);
	box = box_new(L, "millrace.on_host", 1);
	keep(L, -1, 1, 1);
	enter(L);
	built_new(&host->mem, BACKEND_HOST, (struct built **)box);
	h = *box;
	if (!history_snapshot(plan, &h->graph, &h->plan, &e) &&
	    !built_emit(h, lower_broken, &x, NULL, &e) && !built_compile(h, NULL, NULL, &e)) {
		lua_pushstring(L, *x.wrong ? x.wrong : NULL);
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
