/* Files and folders, as functions for lua/std. */
#include "lcore.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"

#define DIR_CLASS "millrace.dir"

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

/* core.file_kind(path) -> "file", "folder" or "other", and a text that all paths of it have in common; nil if there is
 * nothing */
static int file_kind_l(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct stat st;

	if (stat(path, &st))
		return 0;
	lua_pushstring(L, S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "folder" : "other");
	lua_pushfstring(L, "%I %I", (LUAI_UACINT)st.st_dev, (LUAI_UACINT)st.st_ino);
	return 2;
}

/* core.replace_file(path, text) -> true, or nil and why it cannot be written. A symbolic link stays one. */
static int replace_file_l(lua_State *L)
{
	char target[PATH_MAX];
	const char *path = luaL_checkstring(L, 1);
	size_t n;
	const char *text = luaL_checklstring(L, 2, &n);

	if (replace_file(realpath(path, target) ? target : path, text, n)) {
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

	class_new(L, &(struct class_def){ .name = DIR_CLASS, .meta = meta });
	set_function(L, "list", list_l);
	set_function(L, "file_kind", file_kind_l);
	set_function(L, "replace_file", replace_file_l);
	set_function(L, "home", home_l);
}
