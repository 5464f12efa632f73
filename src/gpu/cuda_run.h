/* cuda_run.h - doing a job on an open device, once or as a benchmark. */
#ifndef GPU_CUDA_RUN_H
#define GPU_CUDA_RUN_H

#include "gpu/cuda_task.h"

/* Told before each stage, and at each sign of progress within STAGE_RUNNING. */
struct progress {
	void (*tell)(void *ud, enum stage stage);
	void *ud;
};

/* The device's verdict says more about a failure. The result is in `a`. */
NODISCARD enum err_code cuda_run_job(struct cuda_device *d, const struct gpu_job *job,
	const struct progress *p, struct gpu_result *r, struct arena *a);

#endif
