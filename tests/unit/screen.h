/* screen.h - a terminal that only tests see: a pty, and libvterm behind it.
 *
 * What is written on the pty is read by a thread, because a writer would wait for a reader
 * when it is full. screen_sync waits until all that was written so far has been drawn; so
 * do the functions that look. Ctrl-C and a new size come as bytes and numbers only: the pty
 * is nobody's controlling terminal, so that the signal is to be raised by the test.
 */
#ifndef SCREEN_H
#define SCREEN_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <vterm.h>

#include "base/base.h"
#include "explore/term.h"

enum { SCREEN_SIDE = 500, SCREEN_TEXT = SCREEN_SIDE * SCREEN_SIDE, SCREEN_LIMIT_MS = 20000 };

struct screen {
	int master, slave, stop[2];	/* a pipe, whose end stops the reader */
	FILE *in, *out;			/* of the slave */
	pthread_t reader;
	pthread_mutex_t lock;		/* of everything below */
	pthread_cond_t drawn;
	VTerm *vt;
	int w, h;
	int syncs;			/* answers to the question that screen_sync asks */
	bool cursor, other;		/* the cursor is shown; it is the other screen */
	int mouse;			/* VTERM_PROP_MOUSE_* */
	unsigned long bytes;		/* written so far */
	char *text;			/* what screen_text returns */
};

static int screen_prop(VTermProp prop, VTermValue *val, void *user)
{
	struct screen *s = user;

	if (prop == VTERM_PROP_CURSORVISIBLE)
		s->cursor = val->boolean;
	if (prop == VTERM_PROP_ALTSCREEN)
		s->other = val->boolean;
	if (prop == VTERM_PROP_MOUSE)
		s->mouse = val->number;
	return 1;
}

/* What the terminal says to the program; only the answer that all is well. */
static void screen_answer(const char *text, size_t len, void *user)
{
	struct screen *s = user;

	if (len == 4 && !memcmp(text, "\033[0n", 4)) {
		s->syncs++;
		pthread_cond_signal(&s->drawn);
	}
}

static void *screen_reader(void *arg)
{
	struct screen *s = arg;
	char text[4096];
	ssize_t n;

	for (;;) {
		struct pollfd from[2] = { { s->master, POLLIN, 0 }, { s->stop[0], POLLIN, 0 } };

		if (poll(from, 2, -1) < 0 || from[1].revents ||
		    (n = read(s->master, text, sizeof(text))) <= 0)
			break;
		pthread_mutex_lock(&s->lock);
		vterm_input_write(s->vt, text, (size_t)n);
		s->bytes += (size_t)n;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static inline bool screen_open(struct screen *s, int w, int h)
{
	static const VTermScreenCallbacks calls = { .settermprop = screen_prop };
	struct winsize size = { .ws_col = (unsigned short)w, .ws_row = (unsigned short)h };
	sigset_t all, before;
	VTermScreen *grid;

	*s = (struct screen){ .w = w, .h = h, .cursor = true };
	if (pipe(s->stop) || openpty(&s->master, &s->slave, NULL, NULL, &size))
		return false;
	s->in = fdopen(dup(s->slave), "r");
	s->out = fdopen(dup(s->slave), "w");
	s->text = malloc(SCREEN_TEXT);
	s->vt = vterm_new(h, w);
	vterm_set_utf8(s->vt, 1);
	vterm_output_set_callback(s->vt, screen_answer, s);
	grid = vterm_obtain_screen(s->vt);
	vterm_screen_set_callbacks(grid, &calls, s);
	vterm_screen_enable_altscreen(grid, 1);
	vterm_screen_reset(grid, 1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->drawn, NULL);
	sigfillset(&all);		/* signals are the test's */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_create(&s->reader, NULL, screen_reader, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return true;
}

/* As if the window were closed: the input ends. */
static inline void screen_hang_up(struct screen *s)
{
	close(s->stop[1]);
	pthread_join(s->reader, NULL);
	close(s->stop[0]);
	close(s->master);
	s->master = -1;
}

static inline void screen_close(struct screen *s)
{
	if (s->master >= 0)
		screen_hang_up(s);
	fclose(s->in);
	fclose(s->out);
	close(s->slave);
	vterm_free(s->vt);
	free(s->text);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->drawn);
}

/* What term_open needs to be on this screen. */
static inline struct term_setup screen_setup(const struct screen *s, const char *type)
{
	return (struct term_setup){ .in = s->in, .out = s->out, .type = type };
}

static inline void screen_sync(struct screen *s)
{
	int want;

	pthread_mutex_lock(&s->lock);
	want = s->syncs + 1;
	pthread_mutex_unlock(&s->lock);
	if (write(s->slave, "\033[5n", 4) != 4)
		return;
	pthread_mutex_lock(&s->lock);
	while (s->syncs < want)
		pthread_cond_wait(&s->drawn, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* Type, and return when the program can read all of it. */
static inline bool screen_type(struct screen *s, const char *keys)
{
	size_t len = strlen(keys);
	int before = 0, now = 0;

	ioctl(s->slave, FIONREAD, &before);
	if (write(s->master, keys, len) != (ssize_t)len)
		return false;
	for (int i = 0; i < SCREEN_LIMIT_MS; i++) {
		struct pollfd none = { .fd = -1 };

		if (!ioctl(s->slave, FIONREAD, &now) && now >= before + (int)len)
			return true;
		poll(&none, 1, i > 100);	/* the kernel hands it over in a thread */
	}
	return false;
}

static inline void screen_resize(struct screen *s, int w, int h)
{
	struct winsize size = { .ws_col = (unsigned short)w, .ws_row = (unsigned short)h };

	screen_sync(s);
	pthread_mutex_lock(&s->lock);
	s->w = w;
	s->h = h;
	vterm_set_size(s->vt, h, w);
	pthread_mutex_unlock(&s->lock);
	ioctl(s->master, TIOCSWINSZ, &size);
	raise(SIGWINCH);
}

static inline VTermScreenCell screen_cell(struct screen *s, int x, int y)
{
	VTermScreenCell c = { 0 };

	screen_sync(s);
	pthread_mutex_lock(&s->lock);
	vterm_screen_get_cell(vterm_obtain_screen(s->vt), (VTermPos){ .row = y, .col = x }, &c);
	pthread_mutex_unlock(&s->lock);
	return c;
}

static inline VTermPos screen_cursor(struct screen *s)
{
	VTermPos at;

	screen_sync(s);
	pthread_mutex_lock(&s->lock);
	vterm_state_get_cursorpos(vterm_obtain_state(s->vt), &at);
	pthread_mutex_unlock(&s->lock);
	return at;
}

/* Bytes written on the terminal so far, without those of screen_sync. */
static inline unsigned long screen_bytes(struct screen *s)
{
	screen_sync(s);
	return s->bytes - 4 * (unsigned long)s->syncs;
}

static inline char *screen_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 63));
		}
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

/* A row as text, blanks at its end left out; returns the end of what it wrote at `to`. */
static inline char *screen_row(struct screen *s, int y, char *to)
{
	char *end = to;

	for (int x = 0; x < s->w; x++) {
		VTermScreenCell c = { 0 };

		vterm_screen_get_cell(vterm_obtain_screen(s->vt), (VTermPos){ .row = y, .col = x }, &c);
		if (c.chars[0] == (uint32_t)-1)		/* right half of a wide one */
			continue;
		to = screen_utf8(to, c.chars[0] ? c.chars[0] : ' ');
		if (c.chars[0] && c.chars[0] != ' ')
			end = to;
	}
	*end = '\0';
	return end;
}

/* All that stands on the screen, a line a row; until the next call. */
static inline const char *screen_text(struct screen *s)
{
	char *to = s->text;

	screen_sync(s);
	pthread_mutex_lock(&s->lock);
	for (int y = 0; y < s->h; y++) {
		to = screen_row(s, y, to);
		*to++ = '\n';
	}
	*to = '\0';
	pthread_mutex_unlock(&s->lock);
	return s->text;
}

#endif
