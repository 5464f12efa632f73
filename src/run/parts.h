/* parts.h - a job of the device that is being made of built plans; for use inside src/run. */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include "run/run.h"

/* The job and its arrays, which are large enough for all of it. */
struct parts {
	struct gpu_job job;
	struct gpu_buffer *buffers;
	struct gpu_binary *binaries;
	struct gpu_step *steps;
};

/* Add the launch of a phase, with its binary, and the phase's own buffers (PHASE_BUFFERS). Tensor t is buffer tensors[t], from byte
 * offsets[t] on; offsets NULL: 0. early: it may begin while what is in front of it runs. */
void parts_add_phase(struct parts *x, const struct built *b, const struct plan *at, int phase, int contestant,
	const int *tensors, const size_t *offsets, bool early, struct arena *a);

#endif
