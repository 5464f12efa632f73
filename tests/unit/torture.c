/* torture.c - want of memory, at every request of a session.
 *
 * For k = 1, 2, 3, ... the k-th request fails: once, after which Lua collects its
 * garbage and tries again, or twice in a row, so that the try fails too. Whatever it
 * hits, in Lua or in the core, must come out as an error of the script that tells of
 * memory, leave a state that still works, and leave no byte behind when the state is
 * closed. Under the sanitizers, which take five times as long, the first 500 requests
 * are tried and then every seventh.
 */
#include <lualib.h>
#include <stdlib.h>

#include "lua/lcore.h"
#include "tests/tap.h"

/* The state itself, a program, its inputs and answer, arrays, a device. Every part is
 * small, for it runs some thousand times. */
static const char language[] =
	"local mr = require 'millrace'\n"
	"local gemm = mr.program('gemm', function(p)\n"
	"  local m, n, k = p:axes('m', 'n', 'k')\n"
	"  local A, B, C = p:input('A', {m, k}), p:input('B', {n, k}), p:output('C', {m, n})\n"
	"  local c = p:carry('c', {m, n}, 0)\n"
	"  p:loop(k, {upto = m + 2}, function()\n"
	"    c:add(p:mma('mma', p:load('load_a', A, {m, k}), p:load('load_b', B)))\n"
	"  end)\n"
	"  C:store('store_c', p:task('act', function()\n"
	"    return mr.max(mr.exp2(c), 0):to 'bf16'\n"
	"  end))\n"
	"end)\n"
	"local bound = gemm:bind{m=4, n=3, k=5}\n"
	"local inputs = bound:inputs{seed=1}\n"
	"local out = bound:reference(inputs, {tile={m=2, k=2}, round=true})\n"
	"assert(out.C:copy('f32'):max_error(out.C) < 1)\n"
	"assert(#tostring(bound) > 0 and #tostring(out.C) > 0 and #tostring(mr.device()) > 0)\n"
	"local a = mr.array('i4', {3, 2}, function(i, j) return i - j end)\n"
	"assert(a:get(2, 1) == 1 and #mr.devices() > 0 and mr.examples.gemm)\n"
	"mr.program('stubborn', function(p)\n"	/* goes on after each failure */
	"  local n = p:axes 'n'\n"
	"  local v = n:index()\n"
	"  for i = 1, 20 do\n"
	"    local good, w = pcall(function() return v + i end)\n"
	"    v = good and w or v\n"
	"  end\n"
	"  p:output('Y', {n}):store(v)\n"
	"end){n=2}\n"
	"local good = pcall(gemm.bind, gemm, {m=4, n=3})\n"
	"assert(not good)\n";

/* A graph, a plan and its edits, each of which must leave the plan as it was if it
 * fails, its check, text and timeline, a search. */
static const char planning[] =
	"local mr = require 'millrace'\n"
	"local gemm = mr.program('gemm', function(p)\n"
	"  local m, n, k = p:axes('m', 'n', 'k')\n"
	"  local A, B, C = p:input('A', {m, k}), p:input('B', {n, k}), p:output('C', {m, n})\n"
	"  local c = p:carry('c', {m, n}, 0)\n"
	"  p:loop(k, function() c:add(p:mma('mma', p:load('load_a', A), p:load('load_b', B))) end)\n"
	"  C:store('store_c', p:task('out', function() return c:to 'bf16' end))\n"
	"end)\n"
	"local bound, device = gemm{m=256, n=256, k=256}, mr.device 'h200'\n"
	"local graph = bound:graph{tile={m=128, n=128, k=64}}\n"
	"assert(#graph.tasks == 5 and #graph.edges > 0 and #graph.buffers > 0)\n"
	"assert(#graph:dot() > 0 and #graph:drawing() > 0 and #tostring(graph) > 0)\n"
	"local plan = mr.plan(graph, device)\n"
	"local function edit(f, ...)\n"
	"  local before = plan:script()\n"
	"  local good, message = pcall(plan[f], plan, ...)\n"
	"  if good then return end\n"
	"  assert(plan:script() == before, 'a failed edit changed the plan')\n"
	"  while plan:redo() do end\n"
	"  assert(plan:script() == before, 'a failed edit can be redone')\n"
	"  error(message, 0)\n"
	"end\n"
	"edit('split', 'm', 2)\n"
	"edit('lane', 'p0', {warps=1})\n"
	"edit('buffers', {a=2, b=2})\n"
	"edit('append', 'load_a')\n"
	"edit('append', 'load_b')\n"
	"for i = 0, 1 do\n"
	"  for _, task in ipairs{'mma.', 'out.', 'store_c.'} do edit('append', task .. i, {lane='c' .. i}) end\n"
	"end\n"
	"edit('wait', 'mma.0', {'load_a', {'load_b', distance=0}})\n"
	"edit('unwait', 'mma.0', 'load_b')\n"
	"edit('grid', {group=2})\n"
	"edit('fill_waits')\n"
	"edit('propagate', {k=32})\n"
	"edit('remove', 'load_a')\n"
	"assert(plan:undo() and plan:undo() and plan:redo() and plan:undo())\n"
	"local ok, problems = plan:check()\n"
	"assert(ok and #tostring(problems) > 0 and plan.usage.threads > 0)\n"
	"assert(#tostring(plan) > 0 and #plan:table() > 0 and #plan.tasks == 8 and plan.rings.a == 2)\n"
	"local tl = plan:simulate()\n"
	"assert(tl.cycles > 0 and #tl.events > 0 and #tl.phases == 1 and tl.utilization.tensor)\n"
	"assert(#tostring(tl) > 0 and #tl:summary() > 0)\n"
	"edit('unwait', 'mma.0', 'load_a')\n"
	"ok, problems = plan:check()\n"
	"assert(not ok and #tostring(problems) > 0)\n"
	"local r = mr.search(bound, device, {trials=5})\n"
	"assert(r.trials == 5 and #r.why() > 0)\n";

/* What must still work after any failure, in the same state. */
static const char after[] =
	"local mr = require 'millrace'\n"
	"local id = mr.program('id', function(p)\n"
	"  local n = p:axes 'n'\n"
	"  local X, Y = p:input('X', {n}, 'f64'), p:output('Y', {n}, 'f64')\n"
	"  Y:store(p:load(X) + 0)\n"
	"end)\n"
	"local bound = id{n=3}\n"
	"local inputs = bound:inputs()\n"
	"assert(bound:reference(inputs).Y:max_error(inputs.X) == 0)\n";

/* Lua's requests go through here to fail twice: see host_alloc. */
struct twice {
	struct host *host;
	lua_Alloc alloc;
	bool armed;
};

static void *alloc_twice(void *ud, void *p, size_t old_size, size_t new_size)
{
	struct twice *t = ud;
	void *q = t->alloc(t->host, p, old_size, new_size);

	if (!q && new_size > 0 && t->armed) {
		t->armed = false;
		t->host->mem.fail_at = t->host->mem.calls + 1;
	}
	return q;
}

static int run(lua_State *L, const char *code)
{
	int status = luaL_loadbufferx(L, code, strlen(code), "=session", "t");

	return status == LUA_OK ? lua_pcall(L, 0, 0, 0) : status;
}

static const char *home(void)
{
	const char *given = getenv("MILLRACE_HOME");

	return given ? given : ".";
}

struct tally {
	int rounds, raised, broken, leaked;
	bool passed;			/* the last round met no failure */
};

/* A session whose k-th request fails. The standard libraries are part of it. */
static void play(uint64_t k, bool twice, struct tally *t)
{
	struct host h = { .mem = { .fail_at = k }, .home = home() };
	struct twice ud = { .host = &h, .armed = twice };
	lua_State *L = host_open(&h);
	void *host_ud;

	t->rounds++;
	if (L) {
		ud.alloc = lua_getallocf(L, &host_ud);
		lua_setallocf(L, alloc_twice, &ud);
		if (run(L, session) != LUA_OK) {
			t->raised++;
			lua_pop(L, 1);
		}
		t->passed = h.mem.calls < k;
		h.mem.fail_at = 0;
		ud.armed = false;
		if (run(L, after) != LUA_OK) {
			diag("request %llu: %s", (unsigned long long)k, lua_tostring(L, -1));
			t->broken++;
		}
		lua_setallocf(L, ud.alloc, host_ud);
		host_close(L);
	}
	t->leaked += h.mem.used != 0;
}

static struct tally torture(bool twice)
{
	struct tally t = { 0 };

	for (uint64_t k = 1; !t.passed && t.broken + t.leaked < 5; k++)
		play(k, twice, &t);
	return t;
}

int main(void)
{
	struct host h = { .home = home() };
	lua_State *L = host_open(&h);
	struct tally t;

	if (run(L, session) != LUA_OK)
		diag("%s", lua_tostring(L, -1));
	ok(lua_gettop(L) == 0, "the session runs with memory enough");
	host_close(L);
	is_int((long long)h.mem.used, 0, "and leaves none behind");

	t = torture(false);
	diag("%d requests, %d errors", t.rounds, t.raised);
	ok(t.passed && t.raised > 0 && t.raised < t.rounds,
		"each request once: Lua's are tried again");
	is_int(t.broken, 0, "the state still works");
	is_int(t.leaked, 0, "and leaves nothing behind");

	t = torture(true);
	diag("%d requests, %d errors", t.rounds, t.raised);
	ok(t.passed && t.raised > t.rounds / 2, "each request twice: most end the script");
	is_int(t.broken, 0, "the state still works");
	is_int(t.leaked, 0, "and leaves nothing behind");
	return tap_done();
}
