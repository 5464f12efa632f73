/* The terminal that explorers draw on, looked at from the other side of a pty. */
#include "screen.h"

#include <locale.h>
#include <setjmp.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "draw/cells.h"
#include "tap.h"

static struct mem mem;
static volatile int interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* On a new screen; NULL: it failed, and says so. */
static struct term *open_on(struct screen *s, int w, int h, const char *type)
{
	struct term_setup setup;
	struct err e = { 0 };
	struct term *t;

	if (!screen_open(s, w, h)) {
		ok(false, "there is a pty");
		exit(tap_done());
	}
	setup = screen_setup(s, type);
	if (term_open(&mem, &setup, &interrupted, &t, &e)) {
		is_str(e.msg, "", type);
		exit(tap_done());
	}
	return t;
}

static void close_on(struct screen *s, struct term *t)
{
	term_close(t);
	screen_close(s);
}

/* Show lines of text, each with its style. */
struct line {
	int x, y;
	const char *text;
	struct style style;
};

static void show_lines(struct term *t, int w, int h, const struct line *lines, int n)
{
	struct arena a;
	struct cells c;

	arena_init(&a, &mem);
	cells_init(&c, &a, w, h);
	for (int i = 0; i < n; i++)
		cells_text(&c, lines[i].x, lines[i].y, w, lines[i].text, lines[i].style);
	term_show(t, &c, -1, -1);
	arena_release(&a);
}

static void show_text(struct term *t, int w, int h, const char *text)
{
	show_lines(t, w, h, &(struct line){ 0, 0, text, PLAIN }, 1);
}

/* What is where, as "fg bg", each an index or "own", and letters of attributes. */
static const char *style_at(struct screen *s, int x, int y)
{
	VTermScreenCell c = screen_cell(s, x, y);
	static char text[64];
	char fg[16] = "own", bg[16] = "own";

	if (!VTERM_COLOR_IS_DEFAULT_FG(&c.fg))
		snprintf(fg, sizeof(fg), "%d", VTERM_COLOR_IS_INDEXED(&c.fg) ? c.fg.indexed.idx : -1);
	if (!VTERM_COLOR_IS_DEFAULT_BG(&c.bg))
		snprintf(bg, sizeof(bg), "%d", VTERM_COLOR_IS_INDEXED(&c.bg) ? c.bg.indexed.idx : -1);
	snprintf(text, sizeof(text), "%s %s%s%s%s", fg, bg, c.attrs.bold ? " bold" : "",
		c.attrs.underline ? " underline" : "", c.attrs.reverse ? " reverse" : "");
	return text;
}

/* ---- what is shown ---- */

static void test_text(void)
{
	const struct line lines[] = {
		{ 0, 0, "plain ─│┌┐ µ × …", PLAIN }, { 0, 1, "a 漢字 b", PLAIN },
		{ 0, 2, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", PLAIN }, { 2, 3, "\033[31m\a\xff", PLAIN },
		{ 18, 4, "corner", PLAIN }, { 19, 1, "漢", PLAIN },
	};
	struct screen s;
	struct term *t = open_on(&s, 20, 5, "xterm-256color");
	int w, h;

	term_size(t, &w, &h);
	is_int(w * 100 + h, 2005, "the size is the terminal's");
	is_int(term_flags(t), DRAW_COLOUR, "it has colours and line-drawing characters");
	show_lines(t, 24, 6, lines, LEN(lines));
	is_str(screen_text(&s), "plain ─│┌┐ µ × …\na 漢字 b           ?\naaaaaaaaaaaaaaaaaaaa\n"
		"  ?[31m??\n                  co\n", "what is outside is left out, and a half character too");
	is_int(screen_cell(&s, 2, 1).width, 2, "a wide character is wide");
	show_text(t, 3, 1, "new");
	is_str(screen_text(&s), "new\n\n\n\n\n", "a smaller grid leaves nothing of a larger one");
	close_on(&s, t);
}

/* What we and the C library do not agree on, and halves of wide characters. */
static void test_odd_widths(void)
{
	struct screen s;
	struct term *t = open_on(&s, 20, 3, "xterm-256color");
	struct arena a;
	struct cells c;

	arena_init(&a, &mem);
	cells_init(&c, &a, 20, 3);
	cells_text(&c, 0, 0, 20, "漢字|", PLAIN);
	cells_put(&c, 1, 0, "x", PLAIN);
	cells_put(&c, 0, 1, "\xe2\x9a\xa1", PLAIN);	/* wide to the C library only */
	cells_put(&c, 1, 1, "|", PLAIN);
	cells_put(&c, 2, 1, "\xcc\x81", PLAIN);		/* of no width */
	cells_put(&c, 3, 1, "|", PLAIN);
	for (int x = 0; x < 20; x++)
		cells_put(&c, x, 2, x % 2 ? "\xe6" : "\xcc\x81", PLAIN);
	term_show(t, &c, -1, -1);
	is_str(screen_text(&s), "?x字|\n?|?|\n????????????????????\n",
		"no character moves its neighbours");
	arena_release(&a);
	close_on(&s, t);
}

static void test_styles(void)
{
	const struct line lines[] = {
		{ 0, 0, "a", { .fg = 203 } }, { 1, 0, "b", { .bg = 17 } },
		{ 2, 0, "c", { .fg = 245, .bg = 255, .attr = STYLE_BOLD } },
		{ 3, 0, "d", { .attr = STYLE_UNDERLINE } }, { 4, 0, "e", { .attr = STYLE_REVERSE } },
		{ 5, 0, "f", { .fg = 9, .attr = STYLE_BOLD | STYLE_UNDERLINE | STYLE_REVERSE } },
		{ 6, 0, "g", PLAIN },
	};
	struct screen s;
	struct term *t = open_on(&s, 20, 2, "xterm-256color");

	show_lines(t, 20, 2, lines, LEN(lines));
	is_str(style_at(&s, 0, 0), "203 own", "a colour of the palette");
	is_str(style_at(&s, 1, 0), "own 17", "a background");
	is_str(style_at(&s, 2, 0), "245 255 bold", "all at once");
	is_str(style_at(&s, 3, 0), "own own underline", "underlined");
	is_str(style_at(&s, 4, 0), "own own reverse", "reversed");
	is_str(style_at(&s, 5, 0), "9 own bold underline reverse", "attributes add up");
	is_str(style_at(&s, 6, 0), "own own", "nothing is left over");
	close_on(&s, t);
}

/* Each pair of colours once: more than a terminal of 8 colours can hold. */
static void test_many_pairs(const char *type)
{
	struct screen s;
	struct term *t = open_on(&s, 256, 20, type);
	struct arena a;
	struct cells c;
	int wrong = 0;

	arena_init(&a, &mem);
	cells_init(&c, &a, 256, 20);
	for (int i = 0; i < 256 * 20; i++)
		cells_put(&c, i % 256, i / 256, "x", (struct style){ .fg = (uint8_t)(i % 256),
			.bg = (uint8_t)(i / 256 * 12) });
	term_show(t, &c, -1, -1);
	for (int i = 0; i < 256 * 20; i += 7) {
		char want[32];

		snprintf(want, sizeof(want), "%d %d", i % 256, i / 256 * 12);
		if (i % 256 && i / 256)	/* not the terminal's own */
			wrong += strcmp(style_at(&s, i % 256, i / 256), want) != 0;
	}
	is_int(wrong, 0, "thousands of pairs of colours");
	arena_release(&a);
	close_on(&s, t);
}

static void test_few_colours(void)
{
	const struct line lines[] = {
		{ 0, 0, "a", { .fg = 203 } }, { 1, 0, "b", { .fg = 2 } },
		{ 2, 0, "c", { .bg = 255 } }, { 3, 0, "d", { .bg = 17 } },
		{ 4, 0, "e", { .fg = 196, .bg = 160 } }, { 5, 0, "f", { .fg = 232 } },
		{ 6, 0, "g", PLAIN },
	};
	struct screen s;
	struct term *t = open_on(&s, 20, 2, "xterm");

	is_int(term_flags(t), DRAW_COLOUR, "8 colours are colours");
	show_lines(t, 20, 2, lines, LEN(lines));
	is_str(style_at(&s, 0, 0), "1 own", "the nearest");
	is_str(style_at(&s, 1, 0), "2 own", "one of the 8 stays what it is");
	is_str(style_at(&s, 2, 0), "0 7", "black on a light background");
	is_str(style_at(&s, 3, 0), "7 0", "white on a dark one");
	is_str(style_at(&s, 4, 0), "7 1", "two that become one can be read");
	is_str(style_at(&s, 5, 0), "own own", "nearly black may be the terminal's own background");
	is_str(style_at(&s, 6, 0), "own own", "plain");
	close_on(&s, t);
}

static void test_no_colours(void)
{
	const struct line lines[] = {
		{ 0, 0, "a", { .fg = 203, .bg = 17 } }, { 1, 0, "b", { .fg = 3, .attr = STYLE_REVERSE } },
	};
	struct screen s;
	struct term *t = open_on(&s, 20, 3, "vt100");

	is_int(term_flags(t), 0, "a terminal without colours");
	show_lines(t, 20, 2, lines, LEN(lines));
	is_str(style_at(&s, 0, 0), "own own", "no colour");
	is_str(style_at(&s, 1, 0), "own own reverse", "but attributes");
	close_on(&s, t);
	setenv("NO_COLOR", "1", 1);
	t = open_on(&s, 20, 3, "xterm-256color");
	is_int(term_flags(t), 0, "NO_COLOR");
	show_lines(t, 20, 2, lines, LEN(lines));
	is_str(style_at(&s, 0, 0), "own own", "no colour");
	close_on(&s, t);
	setenv("NO_COLOR", "", 1);
	t = open_on(&s, 20, 3, "xterm-256color");
	is_int(term_flags(t), DRAW_COLOUR, "an empty NO_COLOR is none");
	close_on(&s, t);
	unsetenv("NO_COLOR");
}

static void test_ascii(void)
{
	struct screen s;
	struct term *t;

	setlocale(LC_ALL, "C");
	t = open_on(&s, 20, 2, "xterm-256color");
	is_int(term_flags(t), DRAW_COLOUR | DRAW_ASCII, "a locale that is not UTF-8");
	show_text(t, 20, 2, "├─ 漢 ▼ µs…");
	is_str(screen_text(&s), "+- ?  v us~\n\n", "characters of ASCII, as wide as the others");
	close_on(&s, t);
	setlocale(LC_ALL, "C.UTF-8");
}

static void test_cursor(void)
{
	struct screen s;
	struct term *t = open_on(&s, 20, 4, "xterm-256color");
	struct arena a;
	struct cells c;
	VTermPos at;

	arena_init(&a, &mem);
	cells_init(&c, &a, 20, 4);
	screen_sync(&s);
	is_int(s.cursor, false, "no cursor at first");
	term_show(t, &c, 5, 2);
	at = screen_cursor(&s);
	ok(at.col == 5 && at.row == 2 && s.cursor, "it is where it is asked for");
	term_show(t, &c, -1, -1);
	screen_sync(&s);
	is_int(s.cursor, false, "and hidden again");
	term_show(t, &c, 99, 2);
	screen_sync(&s);
	is_int(s.cursor, false, "there is none outside");
	arena_release(&a);
	close_on(&s, t);
}

static void test_differences(void)
{
	struct screen s;
	struct term *t = open_on(&s, 80, 24, "xterm-256color");
	unsigned long before;

	show_text(t, 80, 24, "the quick brown fox");
	before = screen_bytes(&s);
	show_text(t, 80, 24, "the quick brown fox");
	is_int((long long)(screen_bytes(&s) - before), 0, "what is there already is not written");
	show_text(t, 80, 24, "the quick brawn fox");
	ok(screen_bytes(&s) - before < 20, "a letter costs a few bytes");
	is_int(write(s.slave, "\033[2Jspoilt", 10), 10, "something else writes on the terminal");
	screen_type(&s, "\f");
	is_int(term_key(t, false).code, 12, "Ctrl-L is a key");
	show_text(t, 80, 24, "the quick brawn fox");
	is_int(strncmp(screen_text(&s), "the quick brawn fox\n\n\n", 22), 0,
		"and makes the next picture complete");
	close_on(&s, t);
}

/* ---- keys ---- */

/* The keys that these bytes are, as "code" or "code@x,y" in hexadecimal. */
static const char *keys_of(struct screen *s, struct term *t, const char *bytes)
{
	static char text[512];
	size_t n = 0;
	struct key k;

	if (!screen_type(s, bytes))
		return "(cannot be typed)";
	text[0] = '\0';
	while ((k = term_key(t, false)).code && n < sizeof(text) - 40) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%x", n ? " " : "", k.code);
		if (k.code >= KEY_CODE_CLICK && k.code <= KEY_CODE_WHEEL_DOWN)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%d,%d", k.x, k.y);
	}
	return text;
}

static const char *code_text(int code)
{
	static char text[16];

	snprintf(text, sizeof(text), "%x", (unsigned)code);
	return text;
}

static void test_keys(void)
{
	static const struct {
		const char *bytes;
		int code;
	} keys[] = {
		{ "\033OA", KEY_CODE_UP }, { "\033OB", KEY_CODE_DOWN }, { "\033OC", KEY_CODE_RIGHT },
		{ "\033OD", KEY_CODE_LEFT }, { "\033OH", KEY_CODE_HOME }, { "\033OF", KEY_CODE_END },
		{ "\033[5~", KEY_CODE_PAGE_UP }, { "\033[6~", KEY_CODE_PAGE_DOWN },
		{ "\033[3~", KEY_CODE_DELETE }, { "\033[Z", KEY_CODE_BACKTAB },
		{ "\033[1;2D", KEY_CODE_SHIFT_LEFT }, { "\033[1;2C", KEY_CODE_SHIFT_RIGHT },
		{ "\033OP", KEY_CODE_F1 }, { "\177", KEY_CODE_BACKSPACE }, { "\b", KEY_CODE_BACKSPACE },
		{ "\r", 13 }, { "\n", 13 }, { "\t", 9 }, { "\033", 27 }, { "a", 'a' }, { " ", ' ' },
		{ "\001", 1 }, { "\021", 17 }, { "\023", 19 }, { "\026", 22 }, { "\017", 15 },
		{ "é", 0xe9 }, { "漢", 0x6f22 }, { "\xf0\x9f\x9a\x80", 0x1f680 },
	};
	struct screen s;
	struct term *t = open_on(&s, 40, 10, "xterm-256color");
	int wrong = 0;

	for (int i = 0; i < LEN(keys); i++) {
		const char *got = keys_of(&s, t, keys[i].bytes);

		if (strcmp(got, code_text(keys[i].code))) {
			diag("key %d: got %s, want %x", i, got, (unsigned)keys[i].code);
			wrong++;
		}
	}
	is_int(wrong, 0, "keys that have a name, and characters");
	is_str(keys_of(&s, t, ""), "", "no key is at once no key");
	is_str(keys_of(&s, t, "jk\033OAq"), "6a 6b 110000 71", "several at once");
	is_str(keys_of(&s, t, "\033[1;5D\033[99~\033OR\033[24~x"), "78", "those without a name are left out");
	is_str(keys_of(&s, t, "\033x"), "1b 78", "Alt is Escape");
	is_str(keys_of(&s, t, "\xff" "a\xe6" "b\xe6\xbc"), "61 62", "bytes that are no character");
	is_str(keys_of(&s, t, "\xa2"), "6f22", "a character may come byte by byte");
	close_on(&s, t);
}

static void test_mouse(void)
{
	struct screen s;
	struct term *t = open_on(&s, 300, 10, "xterm-256color");

	screen_sync(&s);
	is_int(s.mouse, VTERM_PROP_MOUSE_CLICK, "the mouse is asked for");
	is_str(keys_of(&s, t, "\033[<0;5;2M"), "11000e@4,1", "the left button");
	is_str(keys_of(&s, t, "\033[<0;5;2m"), "", "is released in the same cell");
	is_str(keys_of(&s, t, "\033[<0;5;2M\033[<0;290;3m"), "11000e@4,1 11000f@289,2", "or elsewhere");
	is_str(keys_of(&s, t, "\033[<0;7;2m"), "", "without having been pressed");
	is_str(keys_of(&s, t, "\033[<2;1;1M\033[<2;1;1m"), "110010@0,0", "the right button");
	is_str(keys_of(&s, t, "\033[<1;1;1M\033[<1;1;1m"), "", "not the one between");
	is_str(keys_of(&s, t, "\033[<64;9;9M\033[<65;9;9M"), "110011@8,8 110012@8,8", "the wheel");
	is_str(keys_of(&s, t, "\033[<16;9;9M"), "11000e@8,8", "with Ctrl");
	is_str(keys_of(&s, t, "\033[<0;999;9M\033[<0;0;9M"), "", "outside");
	is_str(keys_of(&s, t, "\033[M\x20\x25\x22\033[M\x23\x26\x22"), "11000e@4,1 11000f@5,1",
		"as an old terminal tells it");
	is_str(keys_of(&s, t, "\033[M`%\""), "110011@4,1", "and the wheel");
	is_str(keys_of(&s, t, "\033[<0;5q"), "", "half a report");
	close_on(&s, t);
	t = open_on(&s, 80, 10, "vt100");
	screen_sync(&s);
	is_int(s.mouse, 0, "a terminal that has none is not asked");
	close_on(&s, t);
}

static void test_resize(void)
{
	struct screen s;
	struct term *t = open_on(&s, 40, 4, "xterm-256color");
	int w, h;

	show_text(t, 40, 4, "as it was");
	screen_resize(&s, 60, 5);
	is_int(term_key(t, true).code, KEY_CODE_RESIZE, "a new size ends the waiting");
	term_size(t, &w, &h);
	is_int(w * 100 + h, 6005, "and is known");
	show_lines(t, 60, 5, &(struct line){ 55, 4, "below", PLAIN }, 1);
	is_str(screen_text(&s), "\n\n\n\n                                                       below\n",
		"the new corner");
	screen_resize(&s, 1, 1);
	is_int(term_key(t, true).code, KEY_CODE_RESIZE, "one cell");
	show_text(t, 60, 5, "漢");
	is_str(screen_text(&s), "?\n", "is a cell");
	raise(SIGWINCH);
	is_int(term_key(t, false).code, KEY_CODE_NONE, "the same size is not news");
	close_on(&s, t);
}

/* ---- interrupts, ends ---- */

static int idle_calls;

static bool idle_twice(void *arg)
{
	screen_type(arg, idle_calls ? "q" : "");
	return ++idle_calls < 3;
}

static void test_idle(void)
{
	struct screen s;
	struct term_setup setup;
	struct err e;
	struct term *t;

	screen_open(&s, 40, 4);
	setup = screen_setup(&s, "xterm-256color");
	setup.idle = idle_twice;
	setup.arg = &s;
	if (!ok(!term_open(&mem, &setup, &interrupted, &t, &e), "a test instead of a user"))
		return;
	is_int(term_key(t, false).code, KEY_CODE_NONE, "nobody waits");
	is_int(idle_calls, 0, "so that it is not called");
	is_int(term_key(t, true).code, 'q', "it is called until there is a key");
	is_int(idle_calls, 2, "each time that there is none");
	is_int(term_key(t, true).code, KEY_CODE_CLOSED, "it ends the input");
	is_int(term_key(t, true).code, KEY_CODE_CLOSED, "for ever");
	close_on(&s, t);
}

static void *send_interrupt(void *arg)
{
	(void)arg;
	kill(getpid(), SIGINT);
	return NULL;
}

static void test_interrupt(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt }, now;
	struct screen s;
	struct term *t;
	pthread_t other;

	sigaction(SIGINT, &sa, NULL);
	t = open_on(&s, 40, 4, "xterm-256color");
	screen_type(&s, "x");
	raise(SIGINT);
	is_int(interrupted, 1, "the program's handler sets its flag");
	is_int(term_key(t, true).code, KEY_CODE_INTERRUPT, "Ctrl-C is a key");
	is_int(interrupted, 0, "and reported once");
	is_int(term_key(t, true).code, 'x', "what was typed before is there still");
	for (int i = 0; i < 200; i++) {
		pthread_create(&other, NULL, send_interrupt, NULL);
		idle_calls = term_key(t, true).code;
		pthread_join(other, NULL);
		if (idle_calls != KEY_CODE_INTERRUPT)
			break;
	}
	is_int(idle_calls, KEY_CODE_INTERRUPT, "none is lost, whenever it comes");
	close_on(&s, t);
	sigaction(SIGINT, NULL, &now);
	ok(now.sa_handler == on_interrupt, "the handler is the program's again");
}

static void test_end_of_input(void)
{
	struct screen s;
	struct term *t = open_on(&s, 40, 4, "xterm-256color");

	screen_type(&s, "x");
	is_int(term_key(t, true).code, 'x', "a key");
	screen_hang_up(&s);
	is_int(term_key(t, true).code, KEY_CODE_CLOSED, "the window is closed");
	show_text(t, 40, 4, "nobody sees this");
	is_int(term_key(t, false).code, KEY_CODE_CLOSED, "which does not change");
	close_on(&s, t);
}

/* A file of keys, and one that takes what is drawn. */
static void test_files(void)
{
	struct term_setup setup = { .type = "xterm-256color", .w = 31, .h = 7 };
	struct err e;
	struct term *t;
	int w, h;

	setup.in = fopen("/dev/null", "r");
	setup.out = fopen("/dev/null", "w");
	if (ok(!term_open(&mem, &setup, &interrupted, &t, &e), "no terminal at all")) {
		term_size(t, &w, &h);
		is_int(w * 100 + h, 3107, "the size is as was said");
		show_text(t, 40, 4, "text");
		is_int(term_key(t, true).code, KEY_CODE_CLOSED, "there are no keys");
		term_close(t);
	}
	fclose(setup.in);
	fclose(setup.out);
}

static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
		a->c_lflag == b->c_lflag && !memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc));
}

static void test_restored(void)
{
	struct termios before, during, after;
	struct screen s;
	struct term_setup setup;
	struct term *t;
	struct err e;
	VTermPos at;

	screen_open(&s, 40, 4);
	setup = screen_setup(&s, "xterm-256color");
	is_int(write(s.slave, "mr> plan\r\n", 10), 10, "a shell");
	tcgetattr(s.slave, &before);
	for (int i = 0; i < 3; i++) {
		if (term_open(&mem, &setup, &interrupted, &t, &e)) {
			is_str(e.msg, "", "it opens again and again");
			break;
		}
		tcgetattr(s.slave, &during);
		show_text(t, 40, 4, "the explorer");
		screen_sync(&s);
		ok(s.other && (during.c_lflag & ISIG) && !(during.c_lflag & (ECHO | ICANON)),
			"another screen, without echo");
		is_str(screen_text(&s), "the explorer\n\n\n\n", "with another picture");
		term_close(t);
		tcgetattr(s.slave, &after);
		is_str(screen_text(&s), "mr> plan\n\n\n\n", "then the shell is there again");
		at = screen_cursor(&s);
		ok(at.row == 1 && at.col == 0 && s.cursor && !s.other && !s.mouse, "with its cursor");
		ok(same_modes(&before, &after), "and its modes");
	}
	screen_close(&s);
}

static void test_refused(void)
{
	struct screen s;
	struct term_setup setup;
	struct err e = { 0 };
	struct term *t;
	unsigned long calls = mem.used;

	screen_open(&s, 40, 4);
	setup = screen_setup(&s, "no-such-terminal");
	is_int(term_open(&mem, &setup, &interrupted, &t, &e), ERR_IO, "a type that is unknown");
	is_str(e.msg, "terminfo has no description of 'no-such-terminal', the terminal type in TERM", "says so");
	setup.type = "dumb";
	is_int(term_open(&mem, &setup, &interrupted, &t, &e), ERR_IO, "one whose cursor cannot be moved");
	is_str(e.msg, "the explorer cannot use a terminal of the type 'dumb' (TERM), whose cursor cannot be moved",
		"says so");
	setup.type = NULL;
	unsetenv("TERM");
	is_int(term_open(&mem, &setup, &interrupted, &t, &e), ERR_IO, "none");
	is_str(e.msg, "TERM is not set, so the type of this terminal is unknown", "says so");
	ok(t == NULL && mem.used == calls, "and nothing is left");
	is_int((long long)screen_bytes(&s), 0, "nor was anything written");
	screen_close(&s);
}

/* ---- signals ---- */

static sigjmp_buf back;

static void jump_back(int sig)
{
	siglongjmp(back, sig);
}

/* A child that takes the terminal and dies of a signal. */
static int die_of(struct screen *s, int sig)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct term_setup setup = screen_setup(s, "xterm-256color");
		struct term *t;
		struct err e;

		signal(sig, SIG_DFL);
		if (term_open(&mem, &setup, &interrupted, &t, &e))
			_exit(99);
		show_text(t, 40, 4, "the explorer");
		raise(sig);
		_exit(98);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void test_deaths(void)
{
	static const int sigs[] = {
		SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGINT,
	};
	struct termios before, after;
	struct screen s;
	int wrong = 0;

	screen_open(&s, 40, 4);
	is_int(write(s.slave, "mr> ", 4), 4, "a shell");
	screen_sync(&s);
	tcgetattr(s.slave, &before);
	fflush(stdout);
	for (int i = 0; i < LEN(sigs); i++) {
		int got = die_of(&s, sigs[i]);

		tcgetattr(s.slave, &after);
		screen_sync(&s);
		if (got != sigs[i] || s.other || !s.cursor || s.mouse ||
		    !same_modes(&before, &after) ||
		    strcmp(screen_text(&s), "mr>\n\n\n\n")) {
			diag("signal %d: ended with %d, other screen %d, cursor %d, mouse %d",
				sigs[i], got, s.other, s.cursor, s.mouse);
			wrong++;
		}
	}
	is_int(wrong, 0, "whatever signal ends the program, the terminal is as it was");
	screen_close(&s);
}

/* A child that stops as by Ctrl-Z, goes on, and stops again so that it can be looked at. */
static void be_stopped(struct screen *s)
{
	struct term_setup setup = screen_setup(s, "xterm-256color");
	struct term *t;
	struct err e;

	setpgid(0, 0);			/* one that has no shell is not stopped */
	if (term_open(&mem, &setup, &interrupted, &t, &e))
		_exit(99);
	show_text(t, 40, 4, "the explorer");
	raise(SIGTSTP);
	if (term_key(t, false).code)
		_exit(98);
	raise(SIGSTOP);
	if (term_key(t, false).code)
		_exit(97);
	raise(SIGSTOP);
	term_close(t);
	_exit(0);
}

static void test_stopped(void)
{
	struct termios before, now;
	struct screen s;
	pid_t child;
	int status;

	screen_open(&s, 40, 4);
	is_int(write(s.slave, "mr> ", 4), 4, "a shell");
	tcgetattr(s.slave, &before);
	fflush(stdout);
	child = fork();
	if (!child)
		be_stopped(&s);
	waitpid(child, &status, WUNTRACED);
	tcgetattr(s.slave, &now);
	ok(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP, "Ctrl-Z stops the program");
	is_str(screen_text(&s), "mr>\n\n\n\n", "the shell is there");
	ok(s.cursor && !s.other && !s.mouse && same_modes(&before, &now), "as it was");
	is_int(write(s.slave, "mr> ", 4), 4, "and writes");
	kill(child, SIGCONT);
	waitpid(child, &status, WUNTRACED);
	is_str(screen_text(&s), "the explorer\n\n\n\n", "the program that goes on is as it was");
	ok(!s.cursor && s.other && s.mouse, "with all that it had asked for");
	tcsetattr(s.slave, TCSANOW, &before);
	is_int(write(s.slave, "\033[2J", 4), 4, "something spoils the screen");
	kill(child, SIGCONT);
	waitpid(child, &status, WUNTRACED);
	tcgetattr(s.slave, &now);
	is_str(screen_text(&s), "the explorer\n\n\n\n", "after SIGSTOP all is drawn again");
	ok(!(now.c_lflag & (ECHO | ICANON)), "and keys come one by one");
	kill(child, SIGCONT);
	waitpid(child, &status, 0);
	tcgetattr(s.slave, &now);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "it ends by itself");
	is_str(screen_text(&s), "mr> mr>\n\n\n\n", "and what was written in between stands");
	ok(same_modes(&before, &now), "with the modes from before");
	screen_close(&s);
}

/* A handler of the program's own, that goes on. */
static void test_survived(void)
{
	struct sigaction sa = { .sa_handler = jump_back };
	struct screen s;
	struct term *t;

	sigaction(SIGTERM, &sa, NULL);
	t = open_on(&s, 40, 4, "xterm-256color");
	show_text(t, 40, 4, "the explorer");
	if (!sigsetjmp(back, 1))
		raise(SIGTERM);
	screen_sync(&s);
	is_int(s.other, false, "an earlier handler gets the terminal as it was");
	show_text(t, 40, 4, "goes on");
	is_str(screen_text(&s), "goes on\n\n\n\n", "and if it goes on, the picture is complete");
	is_int(s.other, true, "on the other screen");
	close_on(&s, t);
	signal(SIGTERM, SIG_DFL);
}

int main(void)
{
	if (!setlocale(LC_ALL, "C.UTF-8")) {
		skip("no locale C.UTF-8");
		return tap_done();
	}
	unsetenv("NO_COLOR");
	signal(SIGINT, on_interrupt);
	test_text();
	test_odd_widths();
	test_styles();
	test_many_pairs("xterm-256color");
	test_few_colours();
	test_no_colours();
	test_ascii();
	test_cursor();
	test_differences();
	test_keys();
	test_mouse();
	test_resize();
	test_idle();
	test_interrupt();
	test_end_of_input();
	test_files();
	test_restored();
	test_refused();
	test_deaths();
	test_survived();
	test_stopped();
	return tap_done();
}
