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

/* Seconds that a worker may take to start, and to compile. */
#define HELLO_SECONDS 30.0
#define COMPILE_SECONDS 600.0

#define WORKER_ARGUMENT "--gpu-worker"
/* Set in the worker's environment, so that a program whose main() does not handle the argument cannot start workers
 * endlessly. */
#define WORKER_VARIABLE "MILLRACE_GPU_WORKER"
enum { WORKER_SOCKET = 3 };		/* descriptor of the worker's end */

/* How AMD's runtime begins the line after which it ends a process whose kernel touched memory that is not its own. */
#define PROCESS_GPU_FAULT "Memory access fault by GPU"

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

/* After a failed exchange: end the process, and set *e. closed: it closed its connection, so the message says how it
 * ended ("was killed by signal 9 (Killed)") and has the last line of its stderr, or that of a fault; else it sent a
 * malformed message.
 * doing, what: "running", "'gemm'"; `what` may be "". */
enum err_code process_failed(struct process *p, bool closed, const char *doing, const char *what, struct err *e);

/* Empty the file with its stderr. */
void process_forget_output(struct process *p);

#endif
