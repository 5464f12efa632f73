/* A search that is watched: drawn at any size, and on a terminal while it runs. */
#include "screen.h"

#include <locale.h>
#include <math.h>

#include "base/prng.h"
#include "explore/watch.h"
#include "session.h"
#include "tap.h"

/* ---- drawing -------------------------------------------------------------------- */

static void make_history(struct arena *a, struct prng *r, int n, struct progress_curve *c)
{
	struct progress_entry *v = ARENA_ARRAY(a, n + 1, struct progress_entry);

	for (int i = 0; i < n; i++) {
		v[i] = (struct progress_entry){ .trial = i + 1, .text = prng_below(r, 4) ? "m=64 n=64, 2 lanes" : "",
			.status = (enum progress_status)prng_below(r, PROGRESS_STATUSES), .device = i > n / 2 };
		v[i].predicted = prng_below(r, 9) ? (double)(1 + prng_below(r, 1000)) * 1e-6 : 0;
		v[i].measured = i > n / 2 ? (double)(1 + prng_below(r, 1000)) * 1e-6 : 0;
	}
	progress_fill(v, n);
	*c = (struct progress_curve){ "", v, n, prng_below(r, 2) ? 1e-6 : 0 };
}

/* Sizes from one cell to a wall and histories from none to long, for the sanitizers; and no letter that ASCII
 * has nothing for, but the one that stands for a time that is not known. */
static void test_sizes(void)
{
	static const int sizes[][2] = { { 1, 1 }, { 2, 2 }, { 5, 40 }, { 20, 6 }, { 24, 9 }, { 40, 12 }, { 72, 10 },
		{ 80, 24 }, { 132, 43 }, { 200, 60 }, { 300, 5 } };
	static const int counts[] = { 0, 1, 2, 30, 2000 };
	static const char *const facts[] = { "best 1.53 ms measured, the model said 1.56: m=128 n=176, 2 lanes",
		"bound 1.14 ms, the best is 34 % above it", "212 plans of 48 shapes" };
	struct prng r = { 3 };
	struct mem mem = { 0 };
	int unknown = 0, titles = 0;
	struct arena a;

	arena_init(&a, &mem);
	for (int i = 0; i < LEN(sizes); i++)
		for (int k = 0; k < LEN(counts); k++) {
			struct watched w = { .title = "gemm on h200", .phase = "device", .fact = facts,
				.nfacts = LEN(facts), .keys = "q stops it" };
			struct cells out;

			make_history(&a, &r, counts[k], &w.curve);
			cells_init(&out, &a, sizes[i][0], sizes[i][1]);
			watch_draw(&w, &out);
			for (int at = 0; at < out.w * out.h; at++)
				unknown += out.at[at].utf8[0] && out.at[at].utf8[0] != '?' &&
					glyph_ascii(out.at[at].utf8) == '?';
			titles += cells_at(&out, 0, 0)->utf8[0] == 'g' || sizes[i][0] < 2;
			arena_release(&a);
		}
	is_int(unknown, 0, "all letters have one of ASCII");
	is_int(titles, LEN(sizes) * LEN(counts), "the title is always there");
	is_int((long long)mem.used, 0, "all memory is given back");
}

/* ---- on a terminal -------------------------------------------------------------- */

struct user {
	struct screen screen;
	const char *keys[4];		/* typed one after the other, when nothing else happens */
	int next;
	char seen[SCREEN_TEXT];		/* before the first of them */
};

static bool type_next(void *arg)
{
	struct user *u = arg;
	const char *keys = u->keys[u->next];

	if (!u->next)
		snprintf(u->seen, sizeof(u->seen), "%s", screen_text(&u->screen));
	if (!keys)
		return false;
	u->next++;
	if (keys[0] == 3)
		return !raise(SIGINT);
	return screen_type(&u->screen, keys);
}

static const char script[] = "local progress, core = require 'millrace.progress', require 'millrace.core'\n"
	"local history = {}\n"
	"for i = 1, 30 do history[i] = {trial=i, predicted=(1 + 7 * i % 30) * 1e-4, text='m=' .. i} end\n"
	"local function run(state, n)\n"
	"  local w <close> = progress.watch{title='a search', show=true, columns=0}\n"
	"  local went = core.heed(function()\n"
	"    for i = 1, n do w.next = 0 w(state) end\n"
	"    for i = 1, 20000 do end\n"
	"  end)\n"
	"  return went, w:finish{ended='sure'}, w\n"
	"end\n";

static struct session session;
static struct user user;

/* Keys that are there when the search looks first ("X": the window is closed before), and those at its end. */
static void watched(const char *what, const char *first, const char *const *keys, const char *body)
{
	static char text[4096];
	struct term_setup setup;
	struct termios raw;

	memset(&user, 0, sizeof(user));
	if (!screen_open(&user.screen, 80, 24)) {
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
	if (first[0] == 'X')
		screen_hang_up(&user.screen);
	else if (first[0])
		screen_type(&user.screen, first);
	snprintf(text, sizeof(text), "%s%s", script, body);
	is_str(session_run(&session, text, "=watch", &setup), "", what);
	screen_close(&user.screen);
}

static void test_terminal(void)
{
	static const char *const enter[] = { "\r", NULL }, *const other[] = { "x", NULL }, *const escape[] = { "\003",
		NULL }, *const none[] = { NULL };

	watched("it runs to its end, and Enter opens", "", enter, "local went, ended = run({phase='model', trials=30, "
		"best=1e-4, bound=1e-4, history=history}, 3)\nassert(went and ended == 'open', tostring(ended))");
	ok(strstr(user.seen, "a search") && strstr(user.seen, "best 100 µs predicted: m=30") &&
		strstr(user.seen, "bound 100 µs, which the best reaches") && strstr(user.seen, "ended: sure"),
		"what it found is seen");
	watched("q stops it", "q", other, "local went, ended = run({phase='model', trials=30, best=1e-4, "
		"history=history}, 3)\nassert(went == false and ended == nil, tostring(went))");
	watched("other keys do not", "abc", other, "local went, ended = run({phase='model', history=history}, 3)\n"
		"assert(went and ended == nil)");
	watched("Ctrl-C leaves it at its end", "", escape, "local went, ended = run({history=history, best=1e-4}, 2)\n"
		"assert(went and ended == nil)");
	watched("Enter opens nothing where nothing was found", "", enter, "local went, ended = run({}, 2)\n"
		"assert(went and ended == nil)");
	watched("it is over when the terminal is gone", "X", none, "local went, ended = run({history=history, "
		"best=1e-4}, 3)\nassert(went == false and ended == nil)");
	watched("entries passed one by one make a history", "", enter, "local w = select(3, run({best=1e-4, "
		"last=history[30]}, 3))\nassert(#w.history == 1)");
	watched("an error closes it", "", none, "local good = pcall(function()\n"
		"  local w <close> = progress.watch{show=true}\n  error 'x'\nend)\n"
		"assert(not good)\nlocal w <close> = progress.watch{show=true}\nassert(w.screen, 'it is free again')");
	watched("what is no state is an empty one", "", enter, "run({trials='x', best=0/0, bound=-1, history={1, {}, "
		"{trial=-5, best=1/0, status=7}}}, 1)");
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	test_sizes();
	if (!session_enter(&session)) {
		ok(false, "there is a folder");
		return tap_done();
	}
	test_terminal();
	session_leave(&session);
	return tap_done();
}
