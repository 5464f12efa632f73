/* child.h - child processes with a time limit. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <sys/types.h>

#include "base/err.h"

struct child {
	pid_t pid;
	int alive;			/* end of a pipe whose other end is closed when the child ends */
};

enum child_end { CHILD_EXITED, CHILD_LATE, CHILD_STOPPED };

/* As fork: -1 after an error, 0 in the child. The child is killed when this process ends, and has a process
 * group of its own, so that the terminal does not signal it. */
int child_fork(struct child *c);
/* Wait until the child ends. It is killed when `seconds` have passed (0: no limit) or `stop` is set. *status
 * is that of waitpid. */
enum child_end child_wait(struct child *c, double seconds, const struct stop *stop, int *status);

#endif
