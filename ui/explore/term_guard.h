/* term_guard.h - gives the terminal back whatever ends or stops the program.
 *
 * While a guard is on, its signal handlers restore the terminal before the program dies by a
 * signal or is stopped by Ctrl-Z, and take it again when the program goes on. The handlers may run at
 * any point, also within ncurses, and therefore call nothing of it: they write bytes that were
 * collected before.
 */
#ifndef UI_EXPLORE_TERM_GUARD_H
#define UI_EXPLORE_TERM_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum { TERM_CODES_MAX = 256, TERM_DEADLY = 8 };

/* Bytes to be written by a signal handler. */
struct term_codes {
	char text[TERM_CODES_MAX];
	size_t len;
};

struct term_guard {
	int fd;				/* of the terminal's output */
	bool has_modes;			/* the two below are filled in */
	struct termios theirs, ours;	/* modes as they were, and as we need them */
	struct term_codes take, give;
	volatile sig_atomic_t taken;	/* the terminal is ours */
	volatile sig_atomic_t stale;	/* something else may have written on it */
	volatile sig_atomic_t resized;
	struct sigaction was_deadly[TERM_DEADLY], was_int, was_winch, was_tstp, was_cont;
	bool own_stack;			/* the alternate stack is ours */
};

/* Install the handlers, before ncurses does, which leaves alone a signal that has one. `fd`, modes and codes are
 * filled in. One guard at a time. */
void term_guard_begin(struct term_guard *g);
/* Restore modes and handlers; nothing if the guard is not on. */
void term_guard_end(struct term_guard *g);
/* Take the terminal, unless it is ours already. */
void term_guard_take(struct term_guard *g);
/* Write all of it, whatever signals come. */
void term_write(int fd, const char *text, size_t len);

#endif
