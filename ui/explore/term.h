/* term.h - a terminal as a grid of cells, and the keys that come from it.
 *
 * Between term_open and term_close the terminal is ours: another screen, keys as they are
 * typed, the mouse. Whatever ends that, it is given back as it was: term_close, the
 * program stopped by Ctrl-Z (and taken again when it goes on), a signal that kills it.
 * Only one terminal is open at a time.
 */
#ifndef UI_EXPLORE_TERM_H
#define UI_EXPLORE_TERM_H

#include <stdio.h>

#include "base/err.h"
#include "draw/cells.h"

struct term;

/* What a test puts in place of the terminal; all zero: standard input and output, TERM, and
 * the size that the terminal says. */
struct term_setup {
	FILE *in, *out;			/* borrowed */
	const char *type;		/* entry of terminfo */
	int w, h;			/* of a `out` that has no size */
	/* Called when there is nothing to read and nothing to do; true: there may be
	 * something to read now; false: there will be nothing any more, as if the
	 * terminal were closed. Without it, reading waits. */
	bool (*idle)(void *arg);
	void *arg;
};

/* Beside characters (Unicode, so that Ctrl-A is 1, Enter 13, Escape 27, Tab 9). Keys that
 * have no name here are left out. */
enum key_code {
	KEY_CODE_NONE = 0,
	KEY_CODE_UP = 0x110000, KEY_CODE_DOWN, KEY_CODE_LEFT, KEY_CODE_RIGHT,
	KEY_CODE_HOME, KEY_CODE_END, KEY_CODE_PAGE_UP, KEY_CODE_PAGE_DOWN,
	KEY_CODE_BACKSPACE, KEY_CODE_DELETE, KEY_CODE_BACKTAB,
	KEY_CODE_SHIFT_LEFT, KEY_CODE_SHIFT_RIGHT,
	KEY_CODE_F1,
	KEY_CODE_CLICK,			/* left button, at x, y */
	KEY_CODE_DRAG,			/* it was released elsewhere, at x, y */
	KEY_CODE_MENU,			/* right button */
	KEY_CODE_WHEEL_UP, KEY_CODE_WHEEL_DOWN,
	KEY_CODE_RESIZE,		/* term_size says something else now */
	KEY_CODE_INTERRUPT,		/* Ctrl-C, which term_open's `interrupted` told; it is 0 again */
	KEY_CODE_CLOSED,		/* there is no terminal any more; from now on always */
};

struct key {
	int code;			/* a character or enum key_code */
	int x, y;			/* of the mouse */
};

/* Take the terminal. Fails with ERR_IO and a sentence for the user if it is none,
 * or cannot be written on at any place; *out is NULL then. `setup` NULL: all zero.
 * `interrupted` is what the program's handler of SIGINT sets; borrowed. No memory of `mem`
 * is asked for once the terminal is taken, nor by the functions below. */
NODISCARD enum err_code term_open(struct mem *mem, const struct term_setup *setup,
	volatile int *interrupted, struct term **out, struct err *e);
/* Give it back and free; NULL is fine. */
void term_close(struct term *t);

/* enum draw_flags for what is drawn: DRAW_COLOUR if it has 8 colours or more and NO_COLOR is
 * not set; DRAW_ASCII unless the locale is UTF-8. */
unsigned term_flags(const struct term *t);
void term_size(const struct term *t, int *w, int *h);
/* Show the grid; what is outside the terminal is cut off. The cursor stands at x, y; none if
 * x < 0. Only what differs from what is there is written; after a Ctrl-L, everything. */
void term_show(struct term *t, const struct cells *c, int x, int y);
/* The next key. Without one: KEY_CODE_NONE at once if !wait, else sleep until there is. */
struct key term_key(struct term *t, bool wait);

#endif
