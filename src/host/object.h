/* object.h - a compiled kernel, and child processes with a time limit; for use inside src/host. */
#ifndef HOST_OBJECT_H
#define HOST_OBJECT_H

#include <sys/types.h>

#include "host/host.h"

struct host_kernel {
	struct mem *mem;		/* borrowed */
	int object;			/* open file of the shared object, which has no name */
};

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

/* The headers that a kernel's text includes, as text made by the Makefile. */
struct runtime_file {
	const char *name;		/* "rt_sync.h"; NULL after the last */
	const char *text;
	size_t len;
};
extern const struct runtime_file runtime_files[];

#endif
