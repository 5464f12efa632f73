#include "explore/term_guard.h"

#include <errno.h>
#include <unistd.h>

enum { SPARE_STACK = 1 << 16 };

/* Signals that end the program, first those that come from a faulting instruction. */
static const int fatal_signals[TERM_FATAL_SIGNALS] = {
	SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGHUP, SIGQUIT,
};
enum { FAULTS = 4 };

static struct term_guard *volatile current;	/* the one that is on */

void term_write(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void give_back(struct term_guard *g)
{
	if (!g->taken)
		return;
	g->taken = 0;
	term_write(g->fd, g->give_codes.text, g->give_codes.len);
	if (g->knows_modes)
		tcsetattr(g->fd, TCSANOW, &g->shell_modes);
}

void term_guard_take(struct term_guard *g)
{
	if (g->taken)
		return;
	if (g->knows_modes) {
		tcgetattr(g->fd, &g->shell_modes);
		tcsetattr(g->fd, TCSANOW, &g->own_modes);
	}
	term_write(g->fd, g->take_codes.text, g->take_codes.len);
	g->taken = g->stale = g->resized = 1;
}

/* Hand the signal on to the handler before ours. A faulting instruction runs again by itself and faults again;
 * every other signal is raised again and is delivered when this returns. */
static void on_fatal(int sig, siginfo_t *info, void *context)
{
	struct term_guard *g = current;
	int saved = errno;

	(void)context;
	for (int i = 0; i < TERM_FATAL_SIGNALS; i++) {
		if (fatal_signals[i] != sig)
			continue;
		if (g) {
			give_back(g);
			sigaction(sig, &g->was_fatal[i], NULL);
		} else {
			signal(sig, SIG_DFL);
		}
		if (i >= FAULTS || info->si_code <= 0)
			raise(sig);
	}
	errno = saved;
}

/* Call the program's own handler. It may end the program when a second Ctrl-C finds it busy; then the terminal is
 * given back first. */
static void on_interrupt(int sig)
{
	struct term_guard *g = current;
	struct sigaction now;

	if (!g)
		return;
	if (g->was_int.sa_handler == SIG_DFL) {
		signal(sig, SIG_DFL);
		raise(sig);
	} else if (g->was_int.sa_handler != SIG_IGN) {
		g->was_int.sa_handler(sig);
	}
	if (!sigaction(sig, NULL, &now) && now.sa_handler == SIG_DFL)
		give_back(g);
}

/* Ctrl-Z: the program stops in the middle of this function and continues there. */
static void on_stop(int sig)
{
	struct sigaction stop = { .sa_handler = SIG_DFL }, ours;
	struct term_guard *g = current;
	sigset_t set, before;
	int saved = errno;

	if (!g)
		return;
	give_back(g);
	sigaction(sig, &stop, &ours);
	raise(sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sigaction(sig, &ours, NULL);
	term_guard_take(g);
	errno = saved;
}

/* SIGWINCH, and SIGCONT after a SIGSTOP, which cannot be handled. */
static void on_change(int sig)
{
	struct term_guard *g = current;

	if (!g)
		return;
	g->resized = 1;
	if (sig == SIGCONT) {
		int saved = errno;

		if (g->taken && g->knows_modes)
			tcsetattr(g->fd, TCSANOW, &g->own_modes);
		g->stale = 1;
		errno = saved;
	}
}

static bool is_ignored(int sig)
{
	struct sigaction now;

	return !sigaction(sig, NULL, &now) && now.sa_handler == SIG_IGN;
}

/* After a stack overflow, a handler needs another stack to run on. */
static void spare_stack(struct term_guard *g)
{
	static char memory[SPARE_STACK];
	stack_t spare = { .ss_sp = memory, .ss_size = sizeof(memory) }, now;

	if (!sigaltstack(NULL, &now) && (now.ss_flags & SS_DISABLE))
		g->has_spare_stack = !sigaltstack(&spare, NULL);
}

void term_guard_begin(struct term_guard *g)
{
	struct sigaction fatal = { .sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction interrupt = { .sa_handler = on_interrupt };
	struct sigaction change = { .sa_handler = on_change }, stop = { .sa_handler = on_stop };

	sigemptyset(&interrupt.sa_mask);
	sigemptyset(&change.sa_mask);
	sigemptyset(&stop.sa_mask);
	sigfillset(&fatal.sa_mask);
	current = g;
	spare_stack(g);
	for (int i = 0; i < TERM_FATAL_SIGNALS; i++) {
		sigaction(fatal_signals[i], NULL, &g->was_fatal[i]);
		if (!is_ignored(fatal_signals[i]))
			sigaction(fatal_signals[i], &fatal, NULL);
	}
	sigaction(SIGINT, &interrupt, &g->was_int);
	sigaction(SIGWINCH, &change, &g->was_winch);
	sigaction(SIGCONT, &change, &g->was_cont);
	sigaction(SIGTSTP, NULL, &g->was_tstp);
	if (!is_ignored(SIGTSTP))
		sigaction(SIGTSTP, &stop, NULL);
}

void term_guard_end(struct term_guard *g)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	if (current != g)
		return;
	if (g->taken && g->knows_modes)
		tcsetattr(g->fd, TCSADRAIN, &g->shell_modes);
	for (int i = 0; i < TERM_FATAL_SIGNALS; i++)
		sigaction(fatal_signals[i], &g->was_fatal[i], NULL);
	sigaction(SIGINT, &g->was_int, NULL);
	sigaction(SIGWINCH, &g->was_winch, NULL);
	sigaction(SIGCONT, &g->was_cont, NULL);
	sigaction(SIGTSTP, &g->was_tstp, NULL);
	if (g->has_spare_stack)
		sigaltstack(&none, NULL);
	current = NULL;
}
