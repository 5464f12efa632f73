/* The kernels of a sequence as a list on a terminal: at any size, with its keys, and a kernel in the explorer and back. */
#include "screen.h"

#include <locale.h>

#include "session.h"
#include "tap.h"

enum { KEYS = 16 };

struct user {
	struct screen screen;
	const char *keys[KEYS];		/* typed one after the other, when nothing else happens */
	int next;
	char *seen[KEYS];		/* before each of them */
};

static struct session session;
static struct user user;

static bool type_next(void *arg)
{
	struct user *u = arg;
	const char *keys = u->keys[u->next];

	if (!keys)
		return false;
	free(u->seen[u->next]);
	u->seen[u->next] = strdup(screen_text(&u->screen));
	u->next++;
	return screen_type(&u->screen, keys);
}

static const char script[] = "local gemm = mr.examples.gemm\n"
	"local mlp = mr.sequence('mlp', function(s)\n"
	"  local x, w, h, y = s:input('x', {64, 64}), s:input('w', {64, 64}), s:temp('h', {64, 64}), s:output('y', {64, 64})\n"
	"  s:call('up', gemm{m=64, n=64, k=64}, {A=x, B=w, C=h})\n"
	"  s:call('down', gemm{m=64, n=64, k=64}, {A=h, B=w, C=y})\n"
	"end)\n"
	"local sp = mlp{}:plan('h200', {trials=20, measure=false})\n"
	"local before = sp:script()\n";

/* Run the body on a terminal of this size, with these keys. */
static void shown(const char *what, int w, int h, const char *const *keys, const char *body)
{
	static char text[4096];
	struct term_setup setup;
	struct termios raw;

	user.next = 0;
	memset(user.keys, 0, sizeof(user.keys));
	if (!screen_open(&user.screen, w, h)) {
		ok(false, "there is a pty");
		exit(tap_done());
	}
	for (int i = 0; keys[i]; i++)
		user.keys[i] = keys[i];
	setup = screen_setup(&user.screen, "xterm-256color");
	setup.idle = type_next;
	setup.arg = &user;
	tcgetattr(user.screen.slave, &raw);
	cfmakeraw(&raw);
	tcsetattr(user.screen.slave, TCSANOW, &raw);
	snprintf(text, sizeof(text), "%s%s", script, body);
	is_str(session_run(&session, text, "=layer", &setup), "", what);
	screen_close(&user.screen);
}

static bool saw(int key, const char *text)
{
	return user.seen[key] && strstr(user.seen[key], text);
}

static void test_keys(void)
{
	static const char *const list[] = { "j", "+", "0", "k", "?", "?", "q", NULL };
	static const char *const open[] = { "j", "\r", "q", "2", "q", "q", NULL };
	static const char *const edit[] = { "2", "}", "q", "q", NULL };

	shown("the list", 100, 30, list, "sp:simulate():show()");
	ok(saw(0, "mlp on h200, predicted") && saw(0, "stream 0") && saw(0, "bound by") && saw(0, "Enter open"), "is seen");
	ok(saw(0, "▸ up") && saw(1, "▸ down") && saw(4, "▸ up"), "keys select a kernel");
	ok(user.seen[1] && user.seen[2] && user.seen[3] && strcmp(user.seen[1], user.seen[2]) != 0 &&
		!strcmp(user.seen[1], user.seen[3]), "zoom in, and all again");
	ok(saw(5, "open the kernel's timeline") && saw(6, "bound by"), "help, and back");
	shown("a kernel in the explorer", 100, 30, open, "sp:show() assert(sp:script() == before)");
	ok(saw(2, "1 timeline") && saw(2, "gemm on h200"), "Enter opens its timeline");
	ok(saw(3, "▸ down") && saw(4, "2 plan") && saw(4, "1 warp"), "q comes back to it, and 2 opens its plan");
	ok(saw(5, "▸ down"), "and back");
	shown("an edit of a kernel", 100, 30, edit, "sp:show()\nassert(sp:check())");
}

static void test_sizes(void)
{
	static const int sizes[][2] = { { 1, 1 }, { 2, 2 }, { 5, 40 }, { 20, 6 }, { 24, 13 }, { 40, 12 }, { 80, 24 }, { 250, 60 } };
	static const char *const keys[] = { "j", "+", "+", "]", "-", "?", "q", "q", NULL };

	for (int i = 0; i < LEN(sizes); i++) {
		char what[64];

		snprintf(what, sizeof(what), "%d columns, %d rows", sizes[i][0], sizes[i][1]);
		shown(what, sizes[i][0], sizes[i][1], keys, "sp:simulate():show()");
		is_int(user.next, 8, "to its end");
	}
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	if (!session_enter(&session)) {
		ok(false, "there is a folder");
		return tap_done();
	}
	test_keys();
	test_sizes();
	for (int i = 0; i < KEYS; i++)
		free(user.seen[i]);
	session_leave(&session);
	return tap_done();
}
