/* term_guard.h - gives the terminal back whatever ends or stops the program.
 *
 * While a guard is on, its signal handlers restore the terminal before a signal ends the program or Ctrl-Z stops it,
 * and take it again when the program goes on. A handler may interrupt ncurses, so it must not call ncurses: it writes
 * bytes that term_curses.c has collected from terminfo before.
 */
#ifndef UI_EXPLORE_TERM_GUARD_H
#define UI_EXPLORE_TERM_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum { TERM_CODES_MAX = 256, TERM_FATAL_SIGNALS = 8 };

/* Bytes to be written by a signal handler. */
struct term_codes {
	char text[TERM_CODES_MAX];
	size_t len;
};

struct term_guard {
	int fd;				/* of the terminal's output */
	bool knows_modes;		/* shell_modes and own_modes are valid */
	struct termios shell_modes, own_modes;	/* while the terminal is given back, and while it is taken */
	struct term_codes take_codes, give_codes;	/* written when it is taken, and when it is given back */
	volatile sig_atomic_t taken;	/* the program has the terminal */
	volatile sig_atomic_t stale;	/* all must be drawn again; the caller clears it and `resized` */
	volatile sig_atomic_t resized;	/* its size may have changed */
	/* actions before term_guard_begin, which term_guard_end restores */
	struct sigaction was_fatal[TERM_FATAL_SIGNALS], was_int, was_winch, was_tstp, was_cont;
	bool has_spare_stack;		/* term_guard_begin has set the stack for signals; end removes it */
};

/* Install the handlers. The caller has set fd, modes and codes, and begins ncurses later, which installs no handler for
 * a signal that has one. Only one guard can be on at a time. */
void term_guard_begin(struct term_guard *g);
/* Restore modes and handlers; does nothing if the guard is not on. */
void term_guard_end(struct term_guard *g);
/* Take the terminal, unless it is ours already. */
void term_guard_take(struct term_guard *g);
/* Write all bytes, also if signals interrupt it; stops at an error. */
void term_write(int fd, const char *text, size_t len);

#endif
