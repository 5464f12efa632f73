/* worker.h - the argument, variable and descriptor by which the shell starts a worker. */
#ifndef GPU_WORKER_H
#define GPU_WORKER_H

#include "gpu/gpu.h"

#define WORKER_ARGUMENT "--gpu-worker"
/* Set in the worker's environment, so that a program whose main() does not handle the argument cannot
 * start workers endlessly. */
#define WORKER_VARIABLE "MILLRACE_GPU_WORKER"

enum {
	WORKER_SOCKET = 3,		/* descriptor of the worker's end */
	WORKER_USAGE = 2,		/* exit status if not started by a shell */
};

#endif
