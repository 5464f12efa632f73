/* torture.c - too little memory, at every request of a session.
 *
 * The k-th request fails, where every allocation from an arena is a request. If it is Lua's, which then collects its garbage
 * and tries again, it is played once more with that try failing, too. Each failure must become an error of the script
 * that mentions memory, leave a state that still works, and leave no byte allocated when the state is closed. A session
 * makes some ten thousand requests. Most are repetitions: of those with the same CALLERS innermost calls, at the same line of
 * Lua, only the first one or two fail (EACH).
 *
 * The session is played once, in a process that forks at each request that shall fail. It fails in the child, which goes on
 * to the end of the script and checks what is left.
 */
#include <execinfo.h>
#include <lualib.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ADDRESS_SANITIZER
size_t __sanitizer_get_current_allocated_bytes(void);	/* gcc has no header for it */
#endif

#include "base/hash.h"
#include "lua/lcore.h"
#include "tests/unit/script.h"

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

/* Of all failures of a session. The children count, too. */
struct tally {
	int rounds, retries, raised, wrong, broken, leaked, died;
	bool tries_again;		/* Lua tried again in the last child */
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

/* Modules that are loaded on demand are not part of the test. */
static const char loaded[] = "require 'millrace' require 'millrace.search' "
	"require 'millrace.progress' require 'millrace.proof'";

/* ---- requests ----------------------------------------------------------------------------- */

enum { SEEN_MAX = 1 << 16, WRONG_MOST = 5, PLAY_AGAIN_EVERY = 16 };
/* Of the callers that are compared the innermost six are this file's and the allocator's. */
#ifdef ADDRESS_SANITIZER	/* a fork copies the page tables of its memory, too, which takes long */
enum { CALLERS = 8, EACH = 1 };
#else
enum { CALLERS = 12, EACH = 2 };
#endif

/* A request of Lua's. */
struct ask {
	void *p;
	size_t old_size, size;
};

/* The session that is played. */
struct stage {
	struct host host;
	lua_State *L;			/* NULL: it does not exist yet, or there was no memory for it */
	lua_Alloc alloc;		/* Lua's requests, which go through alloc_watched */
	struct ask failed;		/* in a child: the request before this one, if that is what failed */
	bool has_failed;		/* one of Lua's requests failed in this child */
	int seen[SEEN_MAX];		/* by hash of who makes a request: how many; hashes are open-addressed */
	uint64_t hash[SEEN_MAX];
	size_t bytes;			/* of malloc, before the session */
	struct tally *tally;		/* shared with the children */
	bool child;			/* one of its requests failed */
	uint64_t retry;			/* the request by which Lua tries again after a failure in the parent */
};
static struct stage stage;

/* Lua's requests go through here once there is a state: see host_alloc. If one has failed in a child, so does the next one
 * that asks for the same, by which Lua tries again after it has collected its garbage. Not all requests are tried again:
 * lauxlib's are not. */
static void *alloc_watched(void *ud, void *p, size_t old_size, size_t new_size)
{
	struct ask ask = { p, old_size, new_size }, failed = stage.failed;
	struct mem *m = &stage.host.mem;
	void *q;

	if (new_size && (new_size > old_size || !p))
		stage.failed.size = 0;
	if (new_size && failed.size == new_size && failed.p == p && failed.old_size == old_size) {
		stage.tally->tries_again = true;
		m->fail_at = m->calls + 1;
	}
	q = stage.alloc(ud, p, old_size, new_size);
	if (!q && new_size && stage.child && !stage.has_failed) {
		stage.failed = ask;
		stage.has_failed = true;
	}
	return q;
}

static uint64_t hash_callers(void)
{
	void *caller[CALLERS];
	int n = backtrace(caller, CALLERS);
	uint64_t h = 1;
	lua_Debug line;

	for (int i = 0; i < n; i++)
		h = hash_mix(h, (uint64_t)(uintptr_t)caller[i]);
	for (int i = 0; stage.L && i < 2 && lua_getstack(stage.L, i, &line); i++) {
		lua_getinfo(stage.L, "Sl", &line);
		h = hash_mix(h, (uint64_t)(line.currentline + 1) * 1000003 + (uint64_t)line.linedefined);
	}
	return h ? h : 1;
}

/* Whether this request is one of those that shall fail. */
static bool is_new_request(void)
{
	uint64_t h = hash_callers();
	int i = (int)(h % SEEN_MAX);

	while (stage.hash[i] && stage.hash[i] != h)
		i = (i + 1) % SEEN_MAX;
	stage.hash[i] = h;
	return stage.seen[i]++ < EACH;
}

static int wrong_things(const struct tally *t)
{
	return t->wrong + t->broken + t->leaked + t->died;
}

enum { FILES_MAX = 16 };

/* Where the open files are read next, which a child shares: note it, or go back there. */
static void keep_offsets(off_t at[FILES_MAX], bool go_back)
{
	for (int i = STDERR_FILENO + 1; i < FILES_MAX; i++)
		if (!go_back)
			at[i] = lseek(i, 0, SEEK_CUR);
		else if (at[i] >= 0)
			lseek(i, at[i], SEEK_SET);
}

/* Fork, and let the request that is being made fail in the child. In the parent this returns after the child has ended. */
static void fail_in_child(struct mem *m)
{
	struct tally *t = stage.tally;
	int status, before = wrong_things(t);
	off_t at[FILES_MAX];
	pid_t pid;

	t->rounds++;
	t->tries_again = false;
	keep_offsets(at, false);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		stage.child = true;
		m->on_request = NULL;
		m->fail_at = m->calls;
		return;
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		t->died++;
	keep_offsets(at, true);
	if (wrong_things(t) > before)
		diag("  after request %llu", (unsigned long long)m->calls);
}

/* A request that Lua tries again fails here, too, once. */
static void on_request(struct mem *m)
{
	if (m->calls == stage.retry || !is_new_request() || wrong_things(stage.tally) >= WRONG_MOST)
		return;
	fail_in_child(m);
	if (stage.child || !stage.tally->tries_again)
		return;
	stage.tally->retries++;
	stage.retry = m->calls + 1;
	m->fail_at = m->calls;
}

/* ---- a session ---------------------------------------------------------------------------- */

/* Bytes that malloc has handed out, to whomever: some are no arena's, as those of open files. A child ends without the
 * sanitizer's search for leaks, which would take longer than all else. Without a sanitizer nobody knows. */
static size_t bytes_of_malloc(void)
{
#ifdef ADDRESS_SANITIZER
	return __sanitizer_get_current_allocated_bytes();
#else
	return 0;
#endif
}

static void close_stage(void)
{
	if (stage.alloc)
		lua_setallocf(stage.L, stage.alloc, &stage.host);
	host_close(stage.L);
	stage.tally->leaked += stage.host.mem.used != 0 || bytes_of_malloc() > stage.bytes;
}

/* In the child, at the end of the script: what is left of the state must still work. */
static void check_state(const struct session *s, struct tally *t)
{
	stage.host.mem.fail_at = 0;
	if (run(stage.L, still_works) != LUA_OK || (t->rounds % PLAY_AGAIN_EVERY == 0 && run(stage.L, s->text) != LUA_OK)) {
		diag("%s", lua_tostring(stage.L, -1));
		t->broken++;
	}
	lua_settop(stage.L, 0);
}

static void open_stage(const struct session *s, struct tally *t)
{
	memset(&stage, 0, sizeof(stage));
	stage.tally = t;
	stage.bytes = bytes_of_malloc();
	stage.host = (struct host){ .home = script_home(), .mem = { .fine = true } };
	if (s->bare)
		stage.host.mem.on_request = on_request;
	stage.L = host_open(&stage.host);
	if (!stage.L)
		return;
	stage.alloc = lua_getallocf(stage.L, NULL);
	lua_setallocf(stage.L, alloc_watched, &stage.host);
	if (!s->bare)
		run(stage.L, loaded);
	stage.host.mem.on_request = stage.child ? NULL : on_request;
}

/* Play the session, here without a failure and in each child with one. */
static bool play(const struct session *s, struct tally *t)
{
	bool good;

	open_stage(s, t);
	good = stage.L && run(stage.L, s->text) == LUA_OK;
	stage.host.mem.on_request = NULL;
	if (stage.child && !good)
		t->raised++;
	if (stage.child && stage.L && !good)
		t->wrong += !mentions_memory(stage.L);
	if (stage.child && stage.L)
		check_state(s, t);
	close_stage();
	return good;
}

static void torture(const struct session *s)
{
	struct tally *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = play(s, t);

	if (stage.child) {
		fflush(stdout);
		_exit(0);
	}
	ok(good, "the session runs to its end, although Lua has to try again");
	diag("%llu requests, %d of them failed, with %d errors; Lua tried again %d times",
		(unsigned long long)stage.host.mem.calls, t->rounds, t->raised, t->retries);
	ok(t->raised > t->rounds / 3, "many rounds end the script");
	is_int(t->wrong, 0, "every error mentions memory");
	is_int(t->broken, 0, "the state still works");
	is_int(t->leaked, 0, "and leaves nothing behind");
	is_int(t->died, 0, "and no process dies");
	munmap(t, sizeof(*t));
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
	hash_callers();			/* the first call of backtrace loads a library, which is no leak */
	for (int i = 0; i < LEN(sessions); i++)
		check(&sessions[i]);
	free(still_works);
	return tap_done();
}
