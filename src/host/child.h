/* child.h - processes that we wait for, but not forever; for use inside src/host. */
#ifndef HOST_CHILD_H
#define HOST_CHILD_H

#include <sys/types.h>

#include "base/err.h"

struct child {
	pid_t pid;
	int alive;			/* end of a pipe whose other end dies with the child */
};

enum child_end { CHILD_EXITED, CHILD_LATE, CHILD_STOPPED };

/* As fork: -1 on failure, 0 in the child, which dies with us and has a process group of
 * its own, out of reach of the terminal. */
int child_fork(struct child *c);
/* Wait until it ends, `seconds` (if not 0) have passed or the user asks to stop; in the
 * latter cases it is killed. *status is waitpid's. */
enum child_end child_wait(struct child *c, double seconds, const struct stop *stop, int *status);

#endif
