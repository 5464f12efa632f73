/* cuda_run.h - running a job on an open device: once, as a benchmark or as a race. */
#ifndef GPU_CUDA_RUN_H
#define GPU_CUDA_RUN_H

#include "gpu/cuda_task.h"

/* `report` is called before each stage, and repeatedly in STAGE_RUNNING of a benchmark. */
struct progress {
	void (*report)(void *ud, enum stage stage);
	void *ud;
};

/* The result lies in `a`. The error is in the device's verdict. */
NODISCARD enum err_code cuda_run_job(struct cuda_device *d, const struct gpu_job *job,
	const struct progress *p, struct gpu_result *r, struct arena *a);

#endif
