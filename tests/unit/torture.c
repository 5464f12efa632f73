/* torture.c - want of memory, at every request of a session.
 *
 * For k = 1, 2, 3, ... the k-th request fails, where every allocation from an arena
 * is a request. If it is Lua's, which then collects its garbage and tries again,
 * the round is played once more with the try failing too. Whatever it hits must come
 * out as an error of the script that tells of memory, leave a state that still works,
 * and leave no byte behind when the state is closed. Under the sanitizers the first
 * 500 requests are tried and then every seventh.
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
	"    local a = p:load('load_a', A, {m, k})\n"
	"    local left = mr.where(k:index():le(m:index() + 2), a, 0)\n"
	"    c:add(p:mma('mma', left:to 'bf16', p:load('load_b', B)))\n"
	"  end)\n"
	"  C:store('store_c', p:task('act', function()\n"
	"    return mr.max(mr.exp2(c), 0):to 'bf16'\n"
	"  end))\n"
	"end)\n"
	"local bound = gemm:bind{m=4, n=3, k=2}\n"
	"local inputs = bound:inputs{seed=1}\n"
	"local out = bound:reference(inputs, {tile={m=2, k=1}, round=true})\n"
	"assert(out.C:copy('f32'):max_error(out.C) < 1)\n"
	"assert(#tostring(bound) > 0 and #tostring(out.C) > 0 and #tostring(mr.device 'h200') > 0)\n"
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

#define GEMM \
	"local mr = require 'millrace'\n" \
	"local gemm = mr.program('gemm', function(p)\n" \
	"  local m, n, k = p:axes('m', 'n', 'k')\n" \
	"  local A, B, C = p:input('A', {m, k}), p:input('B', {n, k}), p:output('C', {m, n})\n" \
	"  local c = p:carry('c', {m, n}, 0)\n" \
	"  p:loop(k, function() c:add(p:mma('mma', p:load('load_a', A), p:load('load_b', B))) end)\n" \
	"  C:store('store_c', p:task('out', function() return c:to 'bf16' end))\n" \
	"end)\n"

/* A graph, a plan and its edits, each of which must leave the plan as it was if it
 * fails, its check, text and timeline. */
static const char planning[] =
	GEMM
	"local bound, device = gemm{m=256, n=256, k=256}, mr.device 'h200'\n"
	"local graph = bound:graph{tile={m=128, n=128, k=64}}\n"
	"assert(#graph.tasks == 5 and #graph.edges > 0 and #graph.buffers > 0)\n"
	"assert(#graph:dot() > 0 and #graph:drawing() > 0 and #tostring(graph) > 0)\n"
	"local plan, text = mr.plan(graph, device), require 'millrace.core'.statements\n"
	"local function edit(f, ...)\n"
	"  local before = text(plan)\n"
	"  local good, message = pcall(plan[f], plan, ...)\n"
	"  if good then return end\n"
	"  assert(text(plan) == before, 'a failed edit changed the plan')\n"
	"  assert(not plan:redo(), 'a failed edit can be redone')\n"
	"  assert(not plan:undo() or plan:redo() and text(plan) == before, 'the log is lost')\n"
	"  error(message, 0)\n"
	"end\n"
	"edit('split', 'm', 2)\n"
	"edit('lane', 'p0', {warps=1})\n"
	"edit('buffers', {a=2, b=2})\n"
	"edit('append', 'load_a')\n"
	"edit('append', 'load_b')\n"
	"for i = 0, 1 do\n"
	"  for _, task in ipairs{'mma.', 'out.', 'store_c.'} do\n"
	"    edit('append', task .. i, {lane='c' .. i})\n"
	"  end\n"
	"end\n"
	"edit('wait', 'mma.0', {'load_a', {'load_b', distance=0}})\n"
	"edit('unwait', 'mma.0', 'load_b')\n"
	"edit('grid', {group=2})\n"
	"edit('fill_waits')\n"
	"edit('move', 'load_b', {before='load_a', at=1})\n"
	"edit('propagate', {k=32})\n"
	"edit('remove', 'load_a')\n"
	"local removed = text(plan)\n"
	"assert(plan:undo())\n"
	"local good, message = pcall(plan.buffers, plan, {a=3, b=3})\n"
	"if not good then\n"
	"  assert(plan:redo() and text(plan) == removed, 'a failed edit took what was undone')\n"
	"  error(message, 0)\n"
	"end\n"
	"local ok, problems = plan:check()\n"
	"assert(ok and #tostring(problems) > 0 and plan.usage.threads > 0 and #plan:script() > 0)\n"
	"assert(#tostring(plan) > 0 and #plan:table() > 0 and #plan.tasks == 8 and plan.rings.a == 3)\n"
	"local tl = plan:simulate()\n"
	"assert(tl.cycles > 0 and #tl.events > 0 and #tl.phases == 1 and tl.utilization.tensor)\n"
	"assert(#tostring(tl) > 0 and #tl:summary() > 0)\n"
	"local copy = plan:copy()\n"
	"assert(text(copy) == text(plan) and #plan:diff(copy) == 0)\n"
	"edit('unwait', 'mma.0', 'load_a')\n"
	"ok, problems = plan:check()\n"
	"assert(not ok and #tostring(problems) > 0)\n";

/* A search, whose candidates fail by want of memory in every part of the planning. */
static const char searching[] =
	GEMM
	"local found = mr.search(gemm{m=256, n=64, k=64}, mr.device 'h200', {trials=3, measure=false, tile={m={64, 128}, n=64, k=64}})\n"
	"assert(found.trials == 3 and #found.why() > 0 and #found.plan:script() > 0)\n";

/* The text of a plain kernel, with its search for tiles. */
static const char plainly[] =
	"local mr, core = require 'millrace', require 'millrace.core'\n"
	"local rows = mr.program('rows', function(p)\n"
	"  local m, n = p:axes('m', 'n')\n"
	"  local X, Y = p:input('X', {m, n}), p:output('Y', {m})\n"
	"  Y:store(mr.rowmax(p:load(X), n))\n"
	"end)\n"
	"assert(#core.plain(rows{m=200, n=9}) > 0)\n";

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

/* Lua's requests go through here to be seen failing, and to fail twice: see
 * host_alloc. */
struct watch {
	struct host *host;
	lua_Alloc alloc;
	bool again;			/* the try after a failure is to fail too */
	bool failed;
};

static void *alloc_watched(void *ud, void *p, size_t old_size, size_t new_size)
{
	struct watch *w = ud;
	void *q = w->alloc(w->host, p, old_size, new_size);

	if (!q && new_size > 0 && !w->failed) {
		w->failed = true;
		if (w->again)
			w->host->mem.fail_at = w->host->mem.calls + 1;
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

struct session {
	const char *name, *text;
	bool bare;			/* begins before there is a state */
};

struct tally {
	int rounds, raised, wrong, broken, leaked;
};

/* The error on top tells of memory, not of what its want has brought about. */
static bool tells_of_memory(lua_State *L)
{
	const char *message = lua_tostring(L, -1);

	if (message && strstr(message, "memory"))
		return true;
	diag("%s", message ? message : "no message");
	return false;
}

static void run_failing(lua_State *L, const struct session *s, struct tally *t)
{
	if (run(L, s->text) == LUA_OK)
		return;
	t->raised++;
	t->wrong += !tells_of_memory(L);
	lua_pop(L, 1);
}

enum outcome { ENDED, FAILED, LUA_FAILED };
enum { ROUNDS = 16 };			/* in one state, unless the session is bare */

/* A state and what was played in it. */
struct stage {
	struct host host;
	struct watch watch;
	lua_State *L;			/* NULL: closed, or there was no memory for it */
	lua_Alloc alloc;
	void *ud;
	int rounds;
};

static void stage_open(struct stage *st, uint64_t fail_at)
{
	*st = (struct stage){ .host = { .home = home(), .mem = { .fail_at = fail_at,
		.fine = true } } };
	st->L = host_open(&st->host);
	if (!st->L)
		return;
	st->alloc = lua_getallocf(st->L, &st->ud);
	st->watch = (struct watch){ .host = &st->host, .alloc = st->alloc };
	lua_setallocf(st->L, alloc_watched, &st->watch);
}

/* What is loaded by the first call that needs it is no part of what is tried. */
static const char loaded[] = "require 'millrace' require 'millrace.search' "
	"require 'millrace.progress' require 'millrace.proof'";

static void stage_close(struct stage *st, struct tally *t)
{
	if (st->L) {
		lua_setallocf(st->L, st->alloc, st->ud);
		host_close(st->L);
	}
	st->L = NULL;
	t->leaked += st->host.mem.used != 0;
}

/* A session whose k-th request fails. ENDED: it made fewer. */
static enum outcome play(struct stage *st, const struct session *s, uint64_t k, bool again,
	struct tally *t)
{
	struct mem *m = &st->host.mem;
	enum outcome end = FAILED;

	t->rounds++;
	if (!st->L)
		stage_open(st, s->bare ? k : 0);
	if (st->L) {
		st->watch.failed = false;
		st->watch.again = again;
		if (!s->bare && run(st->L, loaded) == LUA_OK)
			m->fail_at = m->calls + k;
		run_failing(st->L, s, t);
		if (m->calls < m->fail_at)
			end = ENDED;
		else if (st->watch.failed)
			end = LUA_FAILED;
		m->fail_at = 0;
		if (run(st->L, after) != LUA_OK) {
			diag("%s", lua_tostring(st->L, -1));
			t->broken++;
		}
		lua_settop(st->L, 0);
	}
	if (s->bare || ++st->rounds == ROUNDS || end == ENDED)
		stage_close(st, t);
	return end;
}

static uint64_t next_request(uint64_t k)
{
#ifdef __SANITIZE_ADDRESS__
	return k < 500 ? k + 1 : k + 7;
#else
	return k + 1;
#endif
}

static void torture(const struct session *s)
{
	struct stage st = { 0 };
	struct tally t = { 0 };
	enum outcome end = FAILED;
	int bad = 0, lua = 0;

	for (uint64_t k = 1; end != ENDED && bad < 5; k = next_request(k)) {
		int before = t.wrong + t.broken + t.leaked;

		end = play(&st, s, k, false, &t);
		if (end == LUA_FAILED) {
			lua++;
			play(&st, s, k, true, &t);
		}
		if (t.wrong + t.broken + t.leaked > before)
			diag("  after request %llu", (unsigned long long)k);
		bad += t.wrong + t.broken + t.leaked > before;
	}
	if (st.L)
		stage_close(&st, &t);
	diag("%d rounds, %d of them a second try of Lua's, %d errors", t.rounds, lua, t.raised);
	ok(end == ENDED, "the last round meets no failure");
	ok(t.raised > t.rounds / 3, "many rounds end the script");
	is_int(t.wrong, 0, "every error tells of memory");
	is_int(t.broken, 0, "the state still works");
	is_int(t.leaked, 0, "and leaves nothing behind");
}

static void check(const struct session *s)
{
	struct host h = { .home = home() };
	lua_State *L = host_open(&h);

	diag("%s", s->name);
	if (run(L, s->text) != LUA_OK)
		diag("%s", lua_tostring(L, -1));
	ok(lua_gettop(L) == 0, "the session runs with memory enough");
	host_close(L);
	is_int((long long)h.mem.used, 0, "and leaves none behind");
	torture(s);
}

int main(void)
{
	static const struct session sessions[] = {
		{ "the language", language, true }, { "planning", planning, false },
		{ "searching", searching, false }, { "a plain kernel", plainly, false } };

	for (int i = 0; i < LEN(sessions); i++)
		check(&sessions[i]);
	return tap_done();
}
