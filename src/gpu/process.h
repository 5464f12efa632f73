/* process.h - the worker process as the shell sees it: start, end, last words.
 *
 * Nothing here allocates but process_start, which does so before it opens anything;
 * so a failure handler that jumps finds the struct as it was.
 */
#ifndef GPU_PROCESS_H
#define GPU_PROCESS_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"

struct process {
	pid_t pid;			/* 0: none */
	int socket;			/* our end; -1: none */
	int errors;			/* a file of what it wrote to stderr; -1: none */
};

#define PROCESS_NONE ((struct process){ .socket = -1, .errors = -1 })

/* Start this program again as a worker. `scratch` is for the moment. */
NODISCARD enum err_code process_start(struct process *p, struct arena *scratch, struct err *e);

/* Kill it and wait for its end, some seconds at most: a process that hangs in the
 * kernel cannot be helped. Does nothing if there is none. */
void process_end(struct process *p);

/* Did it end by itself, or send something that nobody asked for? */
bool process_is_idle(const struct process *p);

/* It was found gone: how it ended, and what it said last; then as process_end. */
void process_last_words(struct process *p, char *text, size_t size);

/* Forget what it wrote so far. */
void process_hush(struct process *p);

#endif
