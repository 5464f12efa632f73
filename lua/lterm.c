/* Properties of the terminal, and single keys. */
#include "lplan.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
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

/* Columns of standard error; 0: it is not a terminal. */
static int columns_of_errors(void)
{
	struct winsize size;

	if (!isatty(STDERR_FILENO))
		return 0;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 1 ? 80 : size.ws_col;
}

/* core.terminal() -> {width=, utf8=, color=, both=, errors=, unicode=}
 * width, utf8, color: of standard output; both: input and output are terminals; errors: columns of standard error, 0 if
 * it is not a terminal; unicode: the locale is UTF-8, whether there is a terminal or not */
static int terminal_l(lua_State *L)
{
	struct terminal t = terminal_get();

	lua_createtable(L, 0, 6);
	set_bool(L, "unicode", is_utf8());
	set_integer(L, "errors", columns_of_errors());
	set_bool(L, "both", isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
	set_integer(L, "width", t.width);
	set_bool(L, "utf8", t.utf8);
	set_bool(L, "color", t.color);
	return 1;
}

enum { KEY_MAX = 8, LOOK_MS = 200, ESCAPE_MS = 20 };

/* Wait for input for so many milliseconds; -1: until there is some or Ctrl-C is pressed. */
static bool has_input(const struct host *h, int ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!h->interrupted) {
		if (poll(&in, 1, ms < 0 ? LOOK_MS : ms) > 0)
			return true;
		if (ms >= 0)
			return false;
	}
	return false;
}

/* Read a key, with all bytes of an escape sequence; returns how many bytes. */
static size_t read_key(const struct host *h, char key[KEY_MAX])
{
	size_t n = 0;

	while (n < KEY_MAX && (n == 0 ? has_input(h, -1) : key[0] == '\33' && has_input(h, ESCAPE_MS))) {
		if (read(STDIN_FILENO, key + n, 1) != 1)
			break;
		n++;
	}
	return n;
}

/* core.key() -> the bytes of a key, without waiting for Enter; nil at the end of input */
static int key_l(lua_State *L)
{
	struct host *h = host_of(L);
	struct termios before, now;
	char key[KEY_MAX];
	size_t n = 0;

	if (tcgetattr(STDIN_FILENO, &before) == 0) {
		now = before;
		now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		now.c_cc[VMIN] = 1;
		now.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &now);
		n = read_key(h, key);
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	}
	check_stop(L);
	if (n > 0)
		lua_pushlstring(L, key, n);
	else
		lua_pushnil(L);
	return 1;
}

void lua_open_terminal(lua_State *L)
{
	set_function(L, "key", key_l);
	set_function(L, "terminal", terminal_l);
}
