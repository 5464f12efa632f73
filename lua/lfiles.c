/* Files and folders, as functions for lua/std. */
#include "lcore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define DIR_CLASS "millrace.dir"
#define PIPE_CLASS "millrace.pipe"

static int dir_gc_l(lua_State *L)
{
	DIR **d = luaL_checkudata(L, 1, DIR_CLASS);

	if (*d)
		closedir(*d);
	*d = NULL;
	return 0;
}

/* core.list(folder, ".lua") -> names of its files without the ending, unordered. Without an ending: of all files, also
 * hidden ones, and of folders with a / */
static int list_l(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1), *end = luaL_optstring(L, 2, "");
	size_t nend = strlen(end);
	void **box = box_new(L, DIR_CLASS, 0);
	struct dirent *d;
	struct stat st;

	lua_toclose(L, -1);
	lua_newtable(L);
	*box = opendir(path);
	while (*box && (d = readdir(*box))) {
		size_t n = strlen(d->d_name);

		if (n <= nend || strcmp(d->d_name + n - nend, end) != 0 || (nend && d->d_name[0] == '.'))
			continue;
		lua_pushlstring(L, d->d_name, n - nend);
		if (!nend && !fstatat(dirfd(*box), d->d_name, &st, 0) && S_ISDIR(st.st_mode)) {
			lua_pushliteral(L, "/");
			lua_concat(L, 2);
		}
		lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	}
	return 1;
}

/* core.file_kind(path) -> "file", "folder", "pipe" or "other", and a text that all paths of it have in common; nil if there is
 * nothing */
static int file_kind_l(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct stat st;

	if (stat(path, &st))
		return 0;
	lua_pushstring(L, S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "folder" :
		S_ISFIFO(st.st_mode) ? "pipe" : "other");
	lua_pushfstring(L, "%I %I", (LUAI_UACINT)st.st_dev, (LUAI_UACINT)st.st_ino);
	return 2;
}

static int pipe_gc_l(lua_State *L)
{
	int *fd = luaL_checkudata(L, 1, PIPE_CLASS);

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return 1;
}

/* core.read_pipe(path, most, seconds) -> what is written to a pipe until its last writer closes it; nil and why not: it is
 * more than `most` bytes, or for so many seconds nobody writes. It does not wait for a first writer. */
static int read_pipe_l(lua_State *L)
{
	enum { STEP_MS = 50 };
	const char *path = luaL_checkstring(L, 1);
	lua_Integer most = luaL_checkinteger(L, 2), seconds = luaL_checkinteger(L, 3), got = 0, idle_ms = 0;
	int *fd = lua_newuserdatauv(L, sizeof(*fd), 0);
	struct stop stop = stop_of(host_of(L));
	const char *wrong = NULL;
	luaL_Buffer text;

	*fd = -1;
	luaL_setmetatable(L, PIPE_CLASS);
	lua_toclose(L, -1);
	*fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0) {
		luaL_pushfail(L);
		lua_pushstring(L, strerror(errno));
		return 2;
	}
	luaL_buffinit(L, &text);
	while (!wrong) {
		struct pollfd ready = { .fd = *fd, .events = POLLIN };
		ssize_t n;

		if (stop_asked(&stop))
			wrong = "interrupted";
		else if (poll(&ready, 1, STEP_MS) <= 0)
			wrong = (idle_ms += STEP_MS) > 1000 * seconds ? "nobody writes to this pipe, nor closes it" : NULL;
		else {
			n = read(*fd, luaL_prepbuffer(&text), LUAL_BUFFERSIZE);
			if (n == 0)
				break;
			if (n < 0 && errno != EAGAIN && errno != EINTR)
				wrong = strerror(errno);
			if (n > 0) {
				luaL_addsize(&text, (size_t)n);
				got += n;
				idle_ms = 0;
			}
			if (got > most)
				wrong = "too much comes through this pipe";
		}
	}
	luaL_pushresult(&text);
	if (!wrong)
		return 1;
	luaL_pushfail(L);
	lua_pushstring(L, wrong);
	return 2;
}

/* core.replace_file(path, text) -> true, or nil and why it cannot be written. A symbolic link stays one. */
static int replace_file_l(lua_State *L)
{
	char target[PATH_MAX];
	const char *path = luaL_checkstring(L, 1);
	size_t n;
	const char *text = luaL_checklstring(L, 2, &n);

	if (files_discard || replace_file(realpath(path, target) ? target : path, text, n)) {
		lua_pushboolean(L, true);
		return 1;
	}
	luaL_pushfail(L);
	lua_pushstring(L, strerror(errno));
	return 2;
}

/* core.home() */
static int home_l(lua_State *L)
{
	const char *home = host_of(L)->home;

	lua_pushstring(L, home ? home : ".");
	return 1;
}

void lua_open_files(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", dir_gc_l }, { "__close", dir_gc_l }, { NULL, NULL } };

	static const luaL_Reg pipe_meta[] = { { "__gc", pipe_gc_l }, { "__close", pipe_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = DIR_CLASS, .meta = meta });
	class_new(L, &(struct class_def){ .name = PIPE_CLASS, .meta = pipe_meta });
	set_function(L, "list", list_l);
	set_function(L, "file_kind", file_kind_l);
	set_function(L, "read_pipe", read_pipe_l);
	set_function(L, "replace_file", replace_file_l);
	set_function(L, "home", home_l);
}
