#include "input.h"

#include <signal.h>
#include <sys/select.h>
#include <time.h>

void input_wait(int fd, int ms, bool (*is_pending)(const void *arg), const void *arg)
{
	struct timespec most = { ms / 1000, ms % 1000 * 1000000L };
	sigset_t ours, before;
	fd_set in;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGWINCH);
	sigaddset(&ours, SIGCONT);
	sigaddset(&ours, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &ours, &before);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	if (!is_pending(arg))
		pselect(fd + 1, &in, NULL, NULL, ms < 0 ? NULL : &most, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
