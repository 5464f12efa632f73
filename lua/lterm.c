/* What the standard output can show. */
#include "lplan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_utf8(void)
{
	const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (int i = 0; i < LEN(names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8");
	}
	return false;
}

struct terminal terminal_get(void)
{
	struct terminal t = { .width = 80 };
	const char *no_color = getenv("NO_COLOR");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return t;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		t.width = size.ws_col < 1000 ? size.ws_col : 1000;
	t.utf8 = is_utf8();
	t.color = !no_color || !*no_color;
	return t;
}

/* core.terminal() -> {width=, utf8=, color=} */
static int terminal_l(lua_State *L)
{
	struct terminal t = terminal_get();

	lua_createtable(L, 0, 3);
	lua_pushinteger(L, t.width);
	lua_setfield(L, -2, "width");
	lua_pushboolean(L, t.utf8);
	lua_setfield(L, -2, "utf8");
	lua_pushboolean(L, t.color);
	lua_setfield(L, -2, "color");
	return 1;
}

void lua_open_terminal(lua_State *L)
{
	lua_pushcfunction(L, terminal_l);
	lua_setfield(L, -2, "terminal");
}
