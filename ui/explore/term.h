/* term.h - a terminal as a grid of cells, and the keys that are pressed in it.
 *
 * Between term_open and term_close the program has the terminal: the alternate screen, single keys without
 * echo, the mouse. It is given back as it was by term_close, when the program is stopped by Ctrl-Z (and taken
 * again when it continues), and by every signal that ends the program. Only one terminal is open at a time.
 */
#ifndef UI_EXPLORE_TERM_H
#define UI_EXPLORE_TERM_H

#include <stdio.h>

#include "base/err.h"
#include "draw/cells.h"

struct term;

/* What a test uses instead of the terminal; all zero: standard input and output, $TERM, and the size that the
 * terminal reports. */
struct term_setup {
	FILE *in, *out;			/* borrowed */
	const char *type;		/* entry of terminfo */
	int w, h;			/* size, if `out` has none */
	/* Called instead of waiting for input. True: there may be some now; false: there will be no more, as if the
	 * terminal were closed. NULL: wait. */
	bool (*idle)(void *arg);
	void *arg;
};

/* Keys that are no characters. Characters are Unicode: Ctrl-A is 1, Enter 13, Escape 27, Tab 9. Keys without a
 * name here are ignored. */
enum key_code {
	KEY_CODE_NONE = 0,
	KEY_CODE_UP = 0x110000, KEY_CODE_DOWN, KEY_CODE_LEFT, KEY_CODE_RIGHT,
	KEY_CODE_HOME, KEY_CODE_END, KEY_CODE_PAGE_UP, KEY_CODE_PAGE_DOWN,
	KEY_CODE_BACKSPACE, KEY_CODE_DELETE, KEY_CODE_BACKTAB,
	KEY_CODE_SHIFT_LEFT, KEY_CODE_SHIFT_RIGHT,
	KEY_CODE_F1,
	KEY_CODE_CLICK,			/* left button, at x, y */
	KEY_CODE_DRAG,			/* the left button was released at x, y, which is not where it was pressed */
	KEY_CODE_MENU,			/* right button */
	KEY_CODE_WHEEL_UP, KEY_CODE_WHEEL_DOWN,
	KEY_CODE_RESIZE,		/* term_size has changed */
	KEY_CODE_INTERRUPT,		/* Ctrl-C: *interrupted was set, and is 0 again */
	KEY_CODE_CLOSED,		/* the terminal is gone; every further key is this one */
};

struct key {
	int code;			/* a character or enum key_code */
	int x, y;			/* of the mouse */
};

/* Take the terminal. If it is none, or its cursor cannot be moved: ERR_IO with a sentence for the user, and *out is
 * NULL. setup NULL: all zero. `interrupted` is the flag that the program's handler of SIGINT sets; borrowed. All
 * memory of `mem` is taken before the terminal is. */
NODISCARD enum err_code term_open(struct mem *mem, const struct term_setup *setup,
	volatile int *interrupted, struct term **out, struct err *e);
/* Give the terminal back and free t; NULL is fine. */
void term_close(struct term *t);

/* enum draw_flags of the terminal: DRAW_COLOUR with 8 colours or more, unless NO_COLOR is set; DRAW_ASCII unless the
 * locale is UTF-8. */
unsigned term_flags(const struct term *t);
void term_size(const struct term *t, int *w, int *h);
/* Show the grid, as much of it as fits; the cursor is at x, y, or hidden if x < 0. Writes only what has changed since
 * the last call, or everything after Ctrl-L. */
void term_show(struct term *t, const struct cells *c, int x, int y);
/* Forget the keys that were pressed and not yet read, Ctrl-C among them: after a long computation they were meant for what
 * was shown before it. */
void term_drop_keys(struct term *t);
/* The next key; if there is none, wait for one, or return KEY_CODE_NONE if !wait. */
struct key term_key(struct term *t, bool wait);

#endif
