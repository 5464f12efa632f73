/* torture.c - every request for memory of a session fails once.
 *
 * For k = 1, 2, 3, ... the k-th request fails, where every chunk that an arena hands
 * out is a request. If it is a request of Lua, which then collects its garbage and tries
 * again, the round is repeated with that attempt failing too. Every failure must end
 * as an error of the script whose message names memory, must leave a state that still works,
 * and must leave no memory allocated when the state is closed. Under the sanitizers the first
 * 500 requests are tried and then every seventh.
 *
 * The sessions are scripts in tests/lua/lib/torture. The rounds of the first one begin with a new state.
 * Instead of running it again up to the k-th request, one process runs it, and forks at each request a
 * child in which that request fails.
 */
#include <lualib.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua/lcore.h"
#include "tests/tap.h"

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
	const char *name;		/* tests/lua/lib/torture/NAME.lua */
	bool bare;			/* requests before there is a state fail, too */
	char *text;
};

static char *after;			/* the script that must work after any failure */

/* The text of tests/lua/lib/torture/NAME.lua, to be freed. */
static char *read_script(const char *name)
{
	enum { SCRIPT_MAX = 1 << 14 };
	char path[512], *text = calloc(1, SCRIPT_MAX);
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/lua/lib/torture/%s.lua", home(), name);
	file = fopen(path, "r");
	if (!file || !text || !fread(text, 1, SCRIPT_MAX - 1, file)) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	fclose(file);
	return text;
}

struct tally {
	int rounds, raised, wrong, broken, leaked;
};

/* The error on top is about memory, not about a consequence of the failed request. */
static bool names_memory(lua_State *L)
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
	t->wrong += !names_memory(L);
	lua_pop(L, 1);
}

enum outcome { ENDED, FAILED, LUA_FAILED };
enum { ROUNDS = 16 };			/* in one state, unless the session is bare */

/* A state, and how many rounds were played in it. */
struct stage {
	struct host host;
	struct watch watch;
	lua_State *L;			/* NULL: closed, or a request of host_open failed */
	lua_Alloc alloc;
	void *ud;
	int rounds;
};

static void stage_open(struct stage *st, void (*at_request)(struct mem *m))
{
	*st = (struct stage){ .host = { .home = home(), .mem = { .fine = true, .at_request = at_request } } };
	st->L = host_open(&st->host);
	if (!st->L)
		return;
	st->alloc = lua_getallocf(st->L, &st->ud);
	st->watch = (struct watch){ .host = &st->host, .alloc = st->alloc };
	lua_setallocf(st->L, alloc_watched, &st->watch);
}

/* Modules that are otherwise loaded by the first call that needs them: their requests are not to fail. */
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

/* The state still works. */
static void run_after(struct stage *st, struct tally *t)
{
	if (run(st->L, after) != LUA_OK) {
		diag("%s", lua_tostring(st->L, -1));
		t->broken++;
	}
	lua_settop(st->L, 0);
}

/* A session that is not bare, whose k-th request fails. ENDED: it made fewer. */
static enum outcome play(struct stage *st, const struct session *s, uint64_t k, bool again,
	struct tally *t)
{
	struct mem *m = &st->host.mem;
	enum outcome end = FAILED;

	t->rounds++;
	if (!st->L)
		stage_open(st, NULL);
	if (st->L) {
		st->watch.failed = false;
		st->watch.again = again;
		if (run(st->L, loaded) == LUA_OK)
			m->fail_at = m->calls + k;
		run_failing(st->L, s, t);
		if (m->calls < m->fail_at)
			end = ENDED;
		else if (st->watch.failed)
			end = LUA_FAILED;
		m->fail_at = 0;
		run_after(st, t);
	}
	if (++st->rounds == ROUNDS || end == ENDED)
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

/* The process that runs a bare session, and its children, in each of which a request fails. */
static struct {
	struct tally tally;
	uint64_t next;			/* the request that is the next to fail in a child */
	int seconds;			/* rounds in which a second attempt of Lua failed, too */
	int bad;
	bool again;			/* in a child: see struct watch */
	bool is_child;
	struct watch *watch;		/* of the state; NULL: it is not open yet */
} forks;

enum { RAISED = 1, WRONG = 2, BROKEN = 4, LEAKED = 8, LUA_TRIED = 16 };

/* Files that are open, as parent and child share their positions. */
enum { FILES_MAX = 16 };

static void keep_positions(off_t at[FILES_MAX])
{
	for (int fd = 0; fd < FILES_MAX; fd++)
		at[fd] = lseek(fd, 0, SEEK_CUR);
}

static void restore_positions(const off_t at[FILES_MAX])
{
	for (int fd = 3; fd < FILES_MAX; fd++)
		if (at[fd] >= 0)
			lseek(fd, at[fd], SEEK_SET);
}

/* In the parent: the round in which the request at hand fails; returns whether Lua tried it again. In the child:
 * does not fail it itself, but lets the caller do so, and returns false. */
static bool fork_round(struct mem *m, bool again)
{
	struct tally *t = &forks.tally;
	off_t positions[FILES_MAX];
	int status;
	pid_t pid;

	fflush(stdout);
	keep_positions(positions);
	pid = fork();
	if (pid == 0) {
		forks.is_child = true;
		forks.again = again;
		if (forks.watch)
			forks.watch->again = again;
		forks.tally = (struct tally){ 0 };
		m->fail_at = m->calls;
		m->at_request = NULL;
		return false;
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
		diag("request %llu: the child was ended by signal %d", (unsigned long long)m->calls,
			pid < 0 ? 0 : WTERMSIG(status));
		t->broken++;
		forks.bad++;
		return false;
	}
	restore_positions(positions);
	status = WEXITSTATUS(status);
	t->rounds++;
	t->raised += (status & RAISED) != 0;
	t->wrong += (status & WRONG) != 0;
	t->broken += (status & BROKEN) != 0;
	t->leaked += (status & LEAKED) != 0;
	if (status & (WRONG | BROKEN | LEAKED)) {
		diag("  after request %llu", (unsigned long long)m->calls);
		forks.bad++;
	}
	return status & LUA_TRIED;
}

static void fork_at_request(struct mem *m)
{
	if (m->calls < forks.next || forks.bad >= 5)
		return;
	if (fork_round(m, false)) {
		forks.seconds++;
		fork_round(m, true);
	}
	if (!forks.is_child)
		forks.next = next_request(m->calls);
}

/* All rounds of a bare session. */
static void torture_bare(const struct session *s)
{
	struct tally *t = &forks.tally;
	struct stage st;
	bool lua_tried = false;

	forks.next = 1;
	stage_open(&st, fork_at_request);
	if (st.L) {
		st.watch.again = forks.again;
		forks.watch = &st.watch;
		run_failing(st.L, s, t);
		lua_tried = st.watch.failed;
		st.host.mem.at_request = NULL;
		st.host.mem.fail_at = 0;
		run_after(&st, t);
	}
	stage_close(&st, t);
	if (forks.is_child) {
		fflush(stdout);
		_exit((t->raised ? RAISED : 0) | (t->wrong ? WRONG : 0) | (t->broken ? BROKEN : 0) |
			(t->leaked ? LEAKED : 0) | (lua_tried ? LUA_TRIED : 0));
	}
	t->rounds++;
	diag("%d rounds, %d of them a second attempt of Lua, %d errors", t->rounds, forks.seconds, t->raised);
	ok(st.host.mem.calls >= forks.next - 1 && forks.bad < 5, "every request failed once");
	ok(t->raised > t->rounds / 3, "many rounds end the script");
	is_int(t->wrong, 0, "every error names memory");
	is_int(t->broken, 0, "the state still works");
	is_int(t->leaked, 0, "and nothing stays allocated");
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
	diag("%d rounds, %d of them a second attempt of Lua, %d errors", t.rounds, lua, t.raised);
	ok(end == ENDED, "the last round meets no failure");
	ok(t.raised > t.rounds / 3, "many rounds end the script");
	is_int(t.wrong, 0, "every error names memory");
	is_int(t.broken, 0, "the state still works");
	is_int(t.leaked, 0, "and nothing stays allocated");
}

static void check(struct session *s)
{
	struct host h = { .home = home() };
	lua_State *L = host_open(&h);

	s->text = read_script(s->name);
	diag("%s", s->name);
	if (run(L, s->text) != LUA_OK)
		diag("%s", lua_tostring(L, -1));
	ok(lua_gettop(L) == 0, "the session runs with enough memory");
	host_close(L);
	is_int((long long)h.mem.used, 0, "and nothing stays allocated");
	if (s->bare)
		torture_bare(s);
	else
		torture(s);
	free(s->text);
}

int main(void)
{
	struct session sessions[] = { { "language", true, NULL }, { "planning", false, NULL },
		{ "searching", false, NULL }, { "plain", false, NULL } };

	after = read_script("after");
	for (int i = 0; i < LEN(sessions); i++)
		check(&sessions[i]);
	free(after);
	return tap_done();
}
