/* torture.c - too little memory, at every request of a session.
 *
 * The k-th request fails, where every allocation from an arena is a request. If it is Lua's, which then collects its garbage
 * and tries again, the round is played once more with that try failing, too. Each failure must become an error of the script
 * that mentions memory, leave a state that still works, and leave no byte allocated when the state is closed. A session
 * makes some ten thousand requests. Most are repetitions: of those made by the same functions, called by the same functions
 * and so on twelve times, at the same line of Lua, the first two fail.
 */
#include <execinfo.h>
#include <lualib.h>
#include <stdlib.h>

#include "base/hash.h"
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

/* ---- requests ----------------------------------------------------------------------------- */

enum { CALLERS = 12, EACH = 2, SEEN_MAX = 1 << 16 };

/* The numbers of the requests that shall fail, found by playing the session once. */
struct requests {
	lua_State *L;			/* NULL: it does not exist yet */
	uint64_t first;			/* number of the request before the session */
	int seen[SEEN_MAX];		/* by hash of who makes a request: how many; hashes are open-addressed */
	uint64_t hash[SEEN_MAX];
	uint64_t *v;
	int n, cap;
};
static struct requests requests;

static uint64_t hash_callers(void)
{
	void *caller[CALLERS];
	int n = backtrace(caller, CALLERS);
	uint64_t h = 1;
	lua_Debug line;

	for (int i = 0; i < n; i++)
		h = hash_mix(h, (uint64_t)(uintptr_t)caller[i]);
	for (int i = 0; requests.L && i < 2 && lua_getstack(requests.L, i, &line); i++) {
		lua_getinfo(requests.L, "Sl", &line);
		h = hash_mix(h, (uint64_t)(line.currentline + 1) * 1000003 + (uint64_t)line.linedefined);
	}
	return h ? h : 1;
}

static void note_request(struct mem *m)
{
	uint64_t h = hash_callers();
	int i = (int)(h % SEEN_MAX);

	while (requests.hash[i] && requests.hash[i] != h)
		i = (i + 1) % SEEN_MAX;
	requests.hash[i] = h;
	if (requests.seen[i]++ >= EACH)
		return;
	if (requests.n == requests.cap) {
		requests.cap = requests.cap ? 2 * requests.cap : 1024;
		requests.v = realloc(requests.v, (size_t)requests.cap * sizeof(*requests.v));
	}
	requests.v[requests.n++] = m->calls - requests.first;
}

/* Plays the session without a failure and notes which requests shall fail in others. Returns how many there are. */
static uint64_t note_requests(const struct session *s)
{
	struct host h = { .home = script_home(), .mem = { .fine = true } };
	uint64_t all;

	free(requests.v);
	memset(&requests, 0, sizeof(requests));
	if (s->bare)
		h.mem.on_request = note_request;
	requests.L = host_open(&h);
	if (!s->bare)
		run(requests.L, loaded);
	requests.first = s->bare ? 0 : h.mem.calls;
	h.mem.on_request = note_request;
	run(requests.L, s->text);
	all = h.mem.calls - requests.first;
	h.mem.on_request = NULL;
	host_close(requests.L);
	return all;
}

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

static void torture(const struct session *s)
{
	struct stage st = { 0 };
	struct tally t = { 0 };
	int bad = 0, lua = 0;
	uint64_t all = note_requests(s);

	for (int i = 0; i <= requests.n && bad < 5; i++) {
		uint64_t k = i < requests.n ? requests.v[i] : 2 * all;	/* the last one meets no failure */
		int before = t.wrong + t.broken + t.leaked;
		enum outcome end = play(&st, s, k, false, &t);

		if (end == LUA_FAILED) {
			lua++;
			play(&st, s, k, true, &t);
		}
		if (t.wrong + t.broken + t.leaked > before)
			diag("  after request %llu", (unsigned long long)k);
		bad += t.wrong + t.broken + t.leaked > before;
		if (i == requests.n)
			ok(end == ENDED, "the last round meets no failure");
	}
	if (st.L)
		stage_close(&st, &t);
	diag("%d of %llu requests failed, in %d rounds, %d of them a second try of Lua's; %d errors", requests.n,
		(unsigned long long)all, t.rounds, lua, t.raised);
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
	struct session sessions[] = { { .name = "torture/language", .bare = true }, { .name = "torture/planning" },
		{ .name = "torture/searching" }, { .name = "torture/plain_kernel" } };

	still_works = script_read("torture/still_works");
	for (int i = 0; i < LEN(sessions); i++)
		check(&sessions[i]);
	free(still_works);
	return tap_done();
}
