/* torture.c - too little memory, at every request of a session.
 *
 * For k = 1, 2, 3, ... the k-th request fails, where every allocation from an arena
 * is a request. If it is Lua's, which then collects its garbage and tries again,
 * the round is played once more with that try failing, too. Each failure must become
 * an error of the script that mentions memory, leave a state that still works,
 * and leave no byte allocated when the state is closed. Under the sanitizers the first
 * 500 requests are tried and then every seventh.
 */
#include <lualib.h>
#include <stdlib.h>

#include "lua/lcore.h"
#include "tests/unit/script.h"

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

/* A script of tests/unit/torture. */
struct session {
	const char *name;
	bool bare;			/* begins before there is a state */
	char *text;
};

static char *still_works;		/* a script that must run in the same state after any failure */

struct tally {
	int rounds, raised, wrong, broken, leaked;
};

/* Does the error on top mention memory, and not a consequence of the failure? */
static bool mentions_memory(lua_State *L)
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
	t->wrong += !mentions_memory(L);
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
	*st = (struct stage){ .host = { .home = script_home(), .mem = { .fail_at = fail_at,
		.fine = true } } };
	st->L = host_open(&st->host);
	if (!st->L)
		return;
	st->alloc = lua_getallocf(st->L, &st->ud);
	st->watch = (struct watch){ .host = &st->host, .alloc = st->alloc };
	lua_setallocf(st->L, alloc_watched, &st->watch);
}

/* Modules that are loaded on demand are not part of the test. */
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
		if (run(st->L, still_works) != LUA_OK) {
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
	is_int(t.wrong, 0, "every error mentions memory");
	is_int(t.broken, 0, "the state still works");
	is_int(t.leaked, 0, "and leaves nothing behind");
}

static void check(struct session *s)
{
	struct host h = { .home = script_home() };
	lua_State *L = host_open(&h);

	diag("%s", s->name);
	s->text = script_read(s->name);
	if (run(L, s->text) != LUA_OK)
		diag("%s", lua_tostring(L, -1));
	ok(lua_gettop(L) == 0, "the session runs with memory enough");
	host_close(L);
	is_int((long long)h.mem.used, 0, "and leaves none behind");
	torture(s);
	free(s->text);
}

int main(void)
{
	struct session sessions[] = { { .name = "language", .bare = true }, { .name = "planning" },
		{ .name = "searching" }, { .name = "plain_kernel" } };

	still_works = script_read("torture/still_works");
	for (int i = 0; i < LEN(sessions); i++)
		check(&sessions[i]);
	free(still_works);
	return tap_done();
}
