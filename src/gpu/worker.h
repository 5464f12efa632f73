/* worker.h - how the shell and the process of worker.c find each other. */
#ifndef GPU_WORKER_H
#define GPU_WORKER_H

#include "gpu/gpu.h"

#define WORKER_ARGUMENT "--gpu-worker"
/* Set in the worker's environment: a program that does not know the argument must not
 * start workers without end. */
#define WORKER_VARIABLE "MILLRACE_GPU_WORKER"

enum {
	WORKER_SOCKET = 3,		/* descriptor of the worker's end */
	WORKER_USAGE = 2,		/* exit status: not started by us */
};

#endif
