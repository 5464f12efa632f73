/* term_curses.c - term.h on ncurses, which no other file includes.
 *
 * ncurses does what needs terminfo: which bytes change one screen into another, and which bytes
 * are which key. Signals are ours (term_guard.h), and so is waiting (input.h): the handlers of
 * ncurses would end the program with exit(), and could not make a key of Ctrl-C.
 */
#include "explore/term.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>
#include <wchar.h>

#include "explore/term_guard.h"
#include "input.h"

#define NCURSES_NOMACROS
#define term curses_term		/* they have a struct term too */
#include <curses.h>
#include <term.h>
#undef term
#undef OK				/* ours is an err_code, and 0 like theirs */

enum {
	ESCAPE = 27,
	CTRL_L = 12,
	ESCAPE_MS = 25,			/* bytes of one key come within that time after Escape */
	LOOK_MS = 500,			/* look at the flags that often: a signal may interrupt another thread */
	SIDE_MAX = 10000,		/* columns or rows */
	RUN = 128,			/* cells handed to ncurses at once */
};

/* Our own keys: the beginnings of mouse reports. ncurses would merge a press and a release that come together into
 * one click, although the mouse moved between them. */
enum { KEY_MOUSE_SGR = KEY_MAX + 1, KEY_MOUSE_OLD };
static const char mouse_on[] = "\033[?1000h\033[?1006h", mouse_off[] = "\033[?1006l\033[?1000l";

struct term {
	struct mem *mem;		/* borrowed */
	struct term_setup setup;	/* in, out and type filled in */
	SCREEN *screen;
	unsigned flags;
	int colours;			/* of its palette: 256, 88, 16, 8, or 0 */
	int own_fg, own_bg;		/* for colour 0 of a style */
	volatile int *interrupted;	/* borrowed */
	bool mouse;			/* it reports the mouse */
	bool closed;			/* the input has ended */

	struct key pressed;		/* where the left button was pressed; code 0: it is not */
	mbstate_t partial;		/* of a multibyte character that is not complete */
	bool cursor;			/* the cursor is shown */
	struct term_guard guard;	/* gives the terminal back in time, and takes it again */
};

/* ---- taking the terminal ---- */

static struct term_codes *collected;		/* what put_code adds to */

static int put_code(int c)
{
	if (collected->len < sizeof(collected->text))
		collected->text[collected->len++] = (char)c;
	return c;
}

static const char *capability(const char *name)
{
	const char *s = tigetstr(name);

	return s == (char *)-1 ? NULL : s;
}

static void add_code(struct term_codes *c, const char *code)
{
	collected = c;
	if (code)
		tputs(code, 1, put_code);
}

/* Collect the bytes that a signal handler writes: the same as ncurses writes. */
static void collect_codes(struct term *t)
{
	static const char *const give[] = { "rmkx", "sgr0", "op", "cnorm", "rmcup" };

	add_code(&t->guard.take_codes, capability("smcup"));
	add_code(&t->guard.take_codes, capability("smkx"));
	t->mouse = capability("kmous") != NULL;
	if (t->mouse) {
		add_code(&t->guard.take_codes, mouse_on);
		add_code(&t->guard.give_codes, mouse_off);
	}
	for (int i = 0; i < LEN(give); i++)
		add_code(&t->guard.give_codes, capability(give[i]));
}

/* Check that terminfo has what newterm needs, because newterm does not say why it fails. */
static enum err_code check_type(struct term *t, struct err *e)
{
	const char *type = t->setup.type;
	bool moves;
	int found;

	if (!type || !*type)
		return err_set(e, ERR_IO, NOWHERE, "TERM is not set, so the type of this terminal is unknown");
	if (setupterm((char *)(uintptr_t)type, t->guard.fd, &found) != OK)
		return err_set(e, ERR_IO, NOWHERE, found < 0 ? "no description of any terminal "
			"(terminfo) is installed; TERM is '%s'" :
			"terminfo has no description of '%s', the terminal type in TERM", type);
	moves = capability("cup") != NULL;
	if (moves)
		collect_codes(t);
	del_curterm(cur_term);
	if (!moves)
		return err_set(e, ERR_IO, NOWHERE, "the explorer cannot use a terminal "
			"of the type '%s' (TERM), whose cursor cannot be moved", type);
	return OK;
}

/* The size that the terminal reports; false if it reports none. */
static bool ask_size(const struct term *t, int *w, int *h)
{
	struct winsize size;

	if (ioctl(t->guard.fd, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		return false;
	*w = size.ws_col < SIDE_MAX ? size.ws_col : SIDE_MAX;
	*h = size.ws_row < SIDE_MAX ? size.ws_row : SIDE_MAX;
	return true;
}

static void set_size(const struct term *t)
{
	int w = t->setup.w, h = t->setup.h;

	if ((ask_size(t, &w, &h) || (w > 0 && h > 0)) && (w != getmaxx(stdscr) || h != getmaxy(stdscr)))
		resize_term(h, w);
}

static void set_colours(struct term *t)
{
	const char *no_colour = getenv("NO_COLOR");
	int n;

	if (!has_colors() || (no_colour && *no_colour) || start_color() == ERR)
		return;
	n = COLORS;
	t->colours = n >= 256 ? 256 : n == 88 ? 88 : n >= 16 ? 16 : n >= 8 ? 8 : 0;
	t->own_fg = t->own_bg = -1;
	if (use_default_colors() == ERR) {
		t->own_fg = COLOR_WHITE;
		t->own_bg = COLOR_BLACK;
	}
	if (t->colours)
		t->flags |= DRAW_COLOUR;
}

/* Keys arrive one by one without echo; Ctrl-C and Ctrl-Z are signals, and the terminal handles no other keys itself
 * (Ctrl-S, Ctrl-Q, Ctrl-V, Ctrl-O). */
static void set_keys(struct term *t)
{
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	typeahead(-1);			/* keys do not interrupt the writing of a screen */
	if (t->mouse) {
		define_key(NULL, KEY_MOUSE);
		define_key("\033[<", KEY_MOUSE_SGR);
		define_key("\033[M", KEY_MOUSE_OLD);
	}
	if (!t->guard.knows_modes || tcgetattr(t->guard.fd, &t->guard.own_modes))
		return;
	t->guard.own_modes.c_iflag &= ~(tcflag_t)IXON;
	t->guard.own_modes.c_lflag &= ~(tcflag_t)IEXTEN;
	tcsetattr(t->guard.fd, TCSANOW, &t->guard.own_modes);
	def_prog_mode();
}

static enum err_code start_curses(struct term *t, struct err *e)
{
	use_env(FALSE);			/* LINES and COLUMNS may be those of another terminal */
	use_tioctl(TRUE);
	t->guard.taken = 1;
	t->screen = newterm(t->setup.type, t->setup.out, t->setup.in);
	if (!t->screen)
		return err_set(e, ERR_IO, NOWHERE, "cannot use a terminal of the type '%s', "
			"which TERM names", t->setup.type);
	set_size(t);
	set_colours(t);
	set_keys(t);
	curs_set(0);
	refresh();
	if (t->mouse)
		term_write(t->guard.fd, mouse_on, strlen(mouse_on));
	return OK;
}

enum err_code term_open(struct mem *mem, const struct term_setup *setup,
	volatile int *interrupted, struct term **out, struct err *e)
{
	struct term *t = mem_get(mem, sizeof(*t));
	enum err_code code;
	bool in;

	*t = (struct term){ .mem = mem, .interrupted = interrupted };
	*out = t;
	t->setup = setup ? *setup : (struct term_setup){ 0 };
	t->setup.in = t->setup.in ? t->setup.in : stdin;
	t->setup.out = t->setup.out ? t->setup.out : stdout;
	t->setup.type = t->setup.type ? t->setup.type : getenv("TERM");
	t->flags = strcmp(nl_langinfo(CODESET), "UTF-8") ? DRAW_ASCII : 0;
	t->guard.fd = fileno(t->setup.out);
	in = (setup && setup->in) || isatty(STDIN_FILENO);
	if (!in || !((setup && setup->out) || isatty(STDOUT_FILENO)))
		code = err_set(e, ERR_IO, NOWHERE, "the explorer needs a terminal, but standard %s is not one", in ? "output" :
			"input");
	else
		code = check_type(t, e);
	if (!code) {
		fflush(t->setup.out);
		t->guard.knows_modes = !tcgetattr(t->guard.fd, &t->guard.shell_modes);
		t->guard.own_modes = t->guard.shell_modes;
		term_guard_begin(&t->guard);
		code = start_curses(t, e);
	}
	if (code) {
		term_close(t);
		*out = NULL;
	}
	return code;
}

void term_close(struct term *t)
{
	if (!t)
		return;
	if (t->screen) {
		if (!capability("rmcup")) {	/* the drawing stays; make way for the prompt */
			move(getmaxy(stdscr) - 1, 0);
			clrtoeol();
			refresh();
		}
		if (t->mouse)
			term_write(t->guard.fd, mouse_off, strlen(mouse_off));
		endwin();
		delscreen(t->screen);
	}
	term_guard_end(&t->guard);
	mem_put(t->mem, t, sizeof(*t));
}

unsigned term_flags(const struct term *t)
{
	return t->flags;
}

void term_size(const struct term *t, int *w, int *h)
{
	(void)t;
	*w = getmaxx(stdscr);
	*h = getmaxy(stdscr);
}

/* ---- showing ---- */

struct rgb {
	int r, g, b;
};

/* The colour that xterm shows for entry i of a palette of n. */
static struct rgb rgb_of(int i, int n)
{
	static const struct rgb first[16] = { { 0, 0, 0 }, { 205, 0, 0 }, { 0, 205, 0 }, { 205, 205, 0 }, { 0, 0, 238 },
		{ 205, 0, 205 }, { 0, 205, 205 }, { 229, 229, 229 }, { 127, 127, 127 }, { 255, 0, 0 }, { 0, 255, 0 },
		{ 255, 255, 0 }, { 92, 92, 255 }, { 255, 0, 255 }, { 0, 255, 255 }, { 255, 255, 255 } };
	static const int cube256[] = { 0, 95, 135, 175, 215, 255 }, cube88[] = { 0, 139, 205, 255 };
	static const int grey88[] = { 46, 92, 115, 139, 162, 185, 208, 231 };
	const int *cube = n == 88 ? cube88 : cube256, side = n == 88 ? 4 : 6;
	int grey;

	if (i < 16)
		return first[i];
	i -= 16;
	if (i < side * side * side)
		return (struct rgb){ cube[i / side / side], cube[i / side % side], cube[i % side] };
	i -= side * side * side;
	grey = n == 88 ? grey88[i] : 8 + 10 * i;
	return (struct rgb){ grey, grey, grey };
}

/* The colour of the terminal's palette that is nearest to one of 256. */
static int nearest(const struct term *t, int colour)
{
	struct rgb want = rgb_of(colour, 256);
	int best = 0, least = INT32_MAX;

	if (colour < t->colours && (t->colours != 88 || colour < 16))
		return colour;
	for (int i = 0; i < t->colours; i++) {
		struct rgb is = rgb_of(i, t->colours);
		int r = is.r - want.r, g = is.g - want.g, b = is.b - want.b, far = r * r + g * g + b * b;

		if (far < least) {
			least = far;
			best = i;
		}
	}
	return best;
}

static int pair_of(const struct term *t, struct style style)
{
	int fg = style.fg ? nearest(t, style.fg) : t->own_fg, bg = style.bg ? nearest(t, style.bg) : t->own_bg, pair;

	/* where text and background become one colour, keep the text legible */
	if (t->colours <= 16 && style.bg && (!style.fg || fg == bg)) {
		struct rgb c = rgb_of(bg, t->colours);

		fg = 3 * c.r + 6 * c.g + c.b > 1200 ? COLOR_BLACK : COLOR_WHITE;
	} else if (t->colours <= 16 && !style.bg && fg == COLOR_BLACK) {
		fg = t->own_fg;
	}
	pair = alloc_pair(fg, bg);
	return pair > 0 ? pair : 0;
}

static attr_t attr_of(struct style style)
{
	return (style.attr & STYLE_BOLD ? A_BOLD : 0) | (style.attr & STYLE_DIM ? A_DIM : 0) |
		(style.attr & STYLE_UNDERLINE ? A_UNDERLINE : 0) | (style.attr & STYLE_REVERSE ? A_REVERSE : 0);
}

/* The character to show for the cell at x, y; '?' if the C library, which ncurses relies on, takes its width to be
 * another one than we do. Returns its columns. */
static int glyph_at(const struct term *t, const struct cells *c, int x, int y, int w, wchar_t *out)
{
	const struct cell *cell = cells_at(c, x, y), *next = cells_at(c, x + 1, y);
	mbstate_t state = { 0 };
	struct glyph g;

	*out = L' ';
	if (!cell->utf8[0])
		return 1;
	glyph_next(cell->utf8, &g);
	if (t->flags & DRAW_ASCII) {
		*out = (wchar_t)glyph_ascii(g.utf8);
		return 1;
	}
	if (mbrtowc(out, g.utf8, strlen(g.utf8), &state) > sizeof(g.utf8) || g.width < 1 ||
	    wcwidth(*out) != g.width || (g.width == 2 && (x + 1 >= w || !next || next->utf8[0]))) {
		*out = L'?';
		return 1;
	}
	return g.width;
}

static void show_row(const struct term *t, const struct cells *c, int y, int w)
{
	struct style last = PLAIN;
	cchar_t run[RUN];
	int n = 0, from = 0, x = 0, pair = 0;

	while (x < w) {
		struct style style = cells_at(c, x, y)->style;
		wchar_t text[2] = { 0 };

		if (t->colours && (style.fg != last.fg || style.bg != last.bg))
			pair = style.fg || style.bg ? pair_of(t, style) : 0;
		last = style;
		x += glyph_at(t, c, x, y, w, text);
		setcchar(&run[n++], text, attr_of(style), 0, &pair);
		if (n == RUN || x >= w) {
			mvadd_wchnstr(y, from, run, n);
			from = x;
			n = 0;
		}
	}
}

/* Write everything again, after something else wrote on the terminal. */
static void refresh_all(struct term *t)
{
	t->guard.stale = 0;
	clearok(curscr, TRUE);
	curs_set(1);			/* or ncurses would believe that nothing has to change */
	curs_set(t->cursor);
}

void term_show(struct term *t, const struct cells *c, int x, int y)
{
	int w = getmaxx(stdscr), h = getmaxy(stdscr);

	term_guard_take(&t->guard);
	erase();
	for (int row = 0; row < h && row < c->h; row++)
		show_row(t, c, row, c->w < w ? c->w : w);
	t->cursor = x >= 0 && y >= 0 && x < w && y < h;
	leaveok(stdscr, !t->cursor);
	if (t->cursor)
		move(y, x);
	curs_set(t->cursor);
	if (t->guard.stale)
		refresh_all(t);
	refresh();
}

/* ---- keys ---- */

static int code_of(int key)
{
	static const struct {
		int key, code;
	} rows[] = { { KEY_UP, KEY_CODE_UP }, { KEY_DOWN, KEY_CODE_DOWN }, { KEY_LEFT, KEY_CODE_LEFT },
		{ KEY_RIGHT, KEY_CODE_RIGHT }, { KEY_HOME, KEY_CODE_HOME }, { KEY_END, KEY_CODE_END },
		{ KEY_PPAGE, KEY_CODE_PAGE_UP }, { KEY_NPAGE, KEY_CODE_PAGE_DOWN },
		{ KEY_BACKSPACE, KEY_CODE_BACKSPACE }, { KEY_DC, KEY_CODE_DELETE }, { KEY_BTAB, KEY_CODE_BACKTAB },
		{ KEY_SLEFT, KEY_CODE_SHIFT_LEFT }, { KEY_SRIGHT, KEY_CODE_SHIFT_RIGHT }, { KEY_F(1), KEY_CODE_F1 },
		{ KEY_ENTER, '\r' }, { '\n', '\r' }, { 127, KEY_CODE_BACKSPACE }, { '\b', KEY_CODE_BACKSPACE } };

	for (int i = 0; i < LEN(rows); i++)
		if (rows[i].key == key)
			return rows[i].code;
	return key < 128 ? key : KEY_CODE_NONE;
}

/* The next byte of an escape sequence; ERR if there is none. */
static int next_byte(void)
{
	int c;

	wtimeout(stdscr, ESCAPE_MS);
	c = wgetch(stdscr);
	wtimeout(stdscr, 0);
	return c < 256 ? c : ERR;
}

/* A number; *end is the byte after it. */
static int next_number(int *end)
{
	int n = 0;

	while ((*end = next_byte()) >= '0' && *end <= '9')
		n = n < SIDE_MAX ? 10 * n + *end - '0' : n;
	return n;
}

/* Read a mouse report after its beginning: ESC [ < BUTTON ; X ; Y and M (pressed) or m (released), or the older
 * ESC [ M and three bytes. Coordinates count from 1. */
static struct key mouse_key(struct term *t, int how)
{
	struct key up = t->pressed, now = { 0 };
	int button, end;

	if (how == KEY_MOUSE_SGR) {
		button = next_number(&end);
		now.x = next_number(&end) - 1;
		now.y = next_number(&end) - 1;
	} else {
		button = next_byte() - ' ';
		now.x = next_byte() - '!';
		now.y = next_byte() - '!';
		end = (button & 67) == 3 ? 'm' : 'M';
		button &= end == 'm' ? ~3 : ~0;
	}
	button &= ~(4 | 8 | 16);	/* Shift, Alt, Ctrl */
	if (now.x < 0 || now.y < 0 || now.x >= getmaxx(stdscr) || now.y >= getmaxy(stdscr))
		return (struct key){ 0 };
	if (end == 'm' && button == 0) {
		t->pressed.code = KEY_CODE_NONE;
		if (up.code && (up.x != now.x || up.y != now.y))
			now.code = KEY_CODE_DRAG;
	} else if (end == 'M') {
		now.code = button == 0 ? KEY_CODE_CLICK : button == 2 ? KEY_CODE_MENU :
			button == 64 ? KEY_CODE_WHEEL_UP : button == 65 ? KEY_CODE_WHEEL_DOWN : 0;
		if (button == 0)
			t->pressed = now;
	}
	return now;
}

/* After Escape: skip the escape sequence of a key that has no name here, so that its bytes are not taken for
 * characters. False if there is none: the key is Escape itself. */
static bool skip_sequence(void)
{
	int c = wgetch(stdscr);

	if (c == 'O') {
		next_byte();
		return true;
	}
	if (c != '[') {
		if (c != ERR)
			ungetch(c);
		return false;
	}
	do
		c = next_byte();
	while (c != ERR && (c < '@' || c > '~'));
	return true;
}

/* The character that this byte completes, or KEY_CODE_NONE. */
static int add_byte(struct term *t, int c)
{
	char byte = (char)c;
	wchar_t wide;
	size_t n = mbrtowc(&wide, &byte, 1, &t->partial);

	if (n == (size_t)-1)
		t->partial = (mbstate_t){ 0 };
	return n == (size_t)-1 || n == (size_t)-2 ? KEY_CODE_NONE : (int)wide;
}

/* A key that was pressed and not yet read, or KEY_CODE_NONE. */
static struct key read_key(struct term *t)
{
	struct key k = { 0 };
	int c;

	while (!k.code && !*t->interrupted && (c = wgetch(stdscr)) != ERR) {
		if (c > 127 && c < 256) {
			k.code = add_byte(t, c);
			continue;
		}
		t->partial = (mbstate_t){ 0 };
		if (c == KEY_MOUSE_SGR || c == KEY_MOUSE_OLD)
			k = mouse_key(t, c);
		else if (c != ESCAPE || !skip_sequence())
			k.code = code_of(c);
	}
	if (k.code == CTRL_L)
		t->guard.stale = 1;
	return k;
}

void term_drop_keys(struct term *t)
{
	*t->interrupted = 0;
	while (!t->closed && read_key(t).code)
		*t->interrupted = 0;
}

/* Is the input at its end: readable, but without a byte? */
static bool has_ended(const struct term *t)
{
	struct timeval now = { 0 };
	int fd = fileno(t->setup.in), n = 0;
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, &now) > 0 && (ioctl(fd, FIONREAD, &n) || n == 0);
}

static bool is_pending(const void *arg)
{
	const struct term *t = arg;

	return *t->interrupted || t->guard.resized || t->guard.stale;
}

/* A key code for Ctrl-C and for a change of size; also takes the terminal again after Ctrl-Z. */
static int check_events(struct term *t)
{
	int w = getmaxx(stdscr), h = getmaxy(stdscr);

	if (*t->interrupted) {
		*t->interrupted = 0;
		return KEY_CODE_INTERRUPT;
	}
	term_guard_take(&t->guard);
	if (t->guard.resized) {
		t->guard.resized = 0;
		set_size(t);
		if (w != getmaxx(stdscr) || h != getmaxy(stdscr)) {
			t->guard.stale = 1;
			return KEY_CODE_RESIZE;
		}
	}
	if (t->guard.stale) {
		refresh_all(t);
		refresh();
	}
	return KEY_CODE_NONE;
}

struct key term_key(struct term *t, bool wait)
{
	struct key k = { 0 };

	while (!t->closed) {
		k.code = check_events(t);
		if (!k.code)
			k = read_key(t);
		if (k.code)
			return k;
		if (*t->interrupted)
			continue;
		if (has_ended(t))
			break;
		if (!wait)
			return k;
		if (!t->setup.idle)
			input_wait(fileno(t->setup.in), LOOK_MS, is_pending, t);
		else if (!t->setup.idle(t->setup.arg))
			break;
	}
	t->closed = true;
	return (struct key){ .code = KEY_CODE_CLOSED };
}
