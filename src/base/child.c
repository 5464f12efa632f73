#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 50 };

int child_fork(struct child *c)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe(ends))
		return -1;
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	c->alive = ends[0];
	c->pid = fork();
	if (c->pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	if (c->pid > 0) {
		close(ends[1]);
		setpgid(c->pid, c->pid);
		return (int)c->pid;
	}
	close(ends[0]);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	return 0;
}

static int wait_for_child(struct child *c, int flags, int *status)
{
	pid_t got;

	do
		got = waitpid(c->pid, status, flags);
	while (got < 0 && errno == EINTR);
	return got != 0;
}

enum child_end child_wait(struct child *c, double seconds, const struct stop *stop, int *status)
{
	enum child_end end = CHILD_EXITED;
	double limit = clock_seconds() + seconds;
	struct pollfd p = { .fd = c->alive, .events = POLLIN };

	while (!wait_for_child(c, WNOHANG, status)) {
		if (stop_asked(stop))
			end = CHILD_STOPPED;
		else if (seconds > 0 && clock_seconds() > limit)
			end = CHILD_LATE;
		if (end != CHILD_EXITED) {
			kill(-c->pid, SIGKILL);
			kill(c->pid, SIGKILL);
			wait_for_child(c, 0, status);
			break;
		}
		if (poll(&p, 1, LOOK_EVERY_MS) > 0) {	/* it is ending */
			wait_for_child(c, 0, status);
			break;
		}
	}
	close(c->alive);
	return end;
}
