/* session.h - a script that opens explorers, run as the shell runs it, on a terminal that
 * the test gives. */
#ifndef SESSION_H
#define SESSION_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "explore/explore.h"
#include "lua/lcore.h"
#include "ui/user.h"

/* An empty current folder, so that saved files are found and removed. */
struct session {
	char home[4096];		/* the checkout */
	char dir[32];
};

static inline bool session_enter(struct session *p)
{
	const char *home = getenv("MILLRACE_HOME");

	strcpy(p->dir, "/tmp/explorerXXXXXX");
	return realpath(home ? home : ".", p->home) && mkdtemp(p->dir) && !chdir(p->dir) &&
		!setenv("XDG_CONFIG_HOME", p->dir, 1);	/* not the settings of whoever tests */
}

static inline void session_leave(struct session *p)
{
	DIR *d = opendir(".");

	for (struct dirent *e; d && (e = readdir(d)); )
		unlink(e->d_name);
	if (d)
		closedir(d);
	if (!chdir("/"))
		rmdir(p->dir);
}

/* May raise: protected by session_run. */
static inline int session_open_l(lua_State *L)
{
	user_init(L);
	host_set_mr(L);
	lua_open_explore(L);
	return 0;
}

/* The request for memory that fails from now on, once; 0: none. How many there were, of the last run. */
static uint64_t session_fail_at, session_calls;

/* Run a chunk in a new state. "" if all went well, else what is wrong, until the next call. */
static inline const char *session_run(const struct session *p, const char *chunk,
	const char *name, const struct term_setup *setup)
{
	static char message[4096];
	/* with a cap, as main() sets one: Ctrl-C ends Lua code by asking for more than there can be */
	struct host h = { .home = p->home, .mem.cap = (size_t)1 << 34 };
	lua_State *L = host_open(&h);

	h.mem.fail_at = session_fail_at;
	h.mem.fine = session_fail_at != 0;

	message[0] = '\0';
	explore_setup(setup);
	lua_pushcfunction(L, session_open_l);
	if (lua_pcall(L, 0, 0, 0) != LUA_OK || user_load(L, chunk, strlen(chunk), name) != LUA_OK ||
	    user_call(L, 0, 0) != LUA_OK)
		snprintf(message, sizeof(message), "%s", lua_tostring(L, -1));
	session_calls = h.mem.calls;
	host_close(L);
	explore_setup(NULL);
	if (h.mem.used) {
		size_t n = strlen(message);

		snprintf(message + n, sizeof(message) - n, "%s%zu bytes are left over", n ? "; " : "",
			h.mem.used);
	}
	return message;
}

#endif
