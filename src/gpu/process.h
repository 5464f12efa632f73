/* process.h - starting and ending a worker process.
 *
 * Only process_start allocates, and it does so before it opens anything; so the struct is valid
 * when a failure handler jumps.
 */
#ifndef GPU_PROCESS_H
#define GPU_PROCESS_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"

struct process {
	pid_t pid;			/* 0: none */
	int socket;			/* the shell's end; -1: none */
	int errors;			/* file with the worker's stderr; -1: none */
};

#define PROCESS_NONE ((struct process){ .socket = -1, .errors = -1 })

/* Start this program again as a worker. Temporary memory comes from `scratch`. */
NODISCARD enum err_code process_start(struct process *p, struct arena *scratch, struct err *e);

/* Kill the process and wait for its end, some seconds at most: a process may hang in the kernel. Does
 * nothing if there is none. */
void process_end(struct process *p);

/* Is it alive and has it sent nothing? Before a request anything else is an error. */
bool process_is_quiet(const struct process *p);

/* Of a process that closed its connection: how it ended and the last line of its stderr, as text
 * ("was killed by signal 9 (Killed)"). Then as process_end. */
void process_end_reason(struct process *p, char *text, size_t size);

/* Empty the file with its stderr. */
void process_forget_output(struct process *p);

#endif
