/* cuda_task.h - a job on the device: its memory, its binaries, its launches.
 *
 * Set up once, then run as often as wanted. Run number i uses copy i % copies of each
 * buffer that rotates; parameters are made for every copy beforehand, so that a run is
 * nothing but its launches.
 */
#ifndef GPU_CUDA_TASK_H
#define GPU_CUDA_TASK_H

#include "gpu/cuda_device.h"

struct cuda_launch {
	struct CUfunc_st *function;
	struct cuda_launch_config config;
	struct cuda_launch_attribute attributes[3];
	void ***params;			/* [copy][parameter] */
	const char *what;		/* "of 'gemm'", for messages */
	const char *after;		/* "after 'gemm'" */
};

struct cuda_task {
	struct cuda_device *d;		/* borrowed, like the job */
	const struct gpu_job *job;
	struct arena *arena;
	struct CUmod_st **modules;	/* by binary; NULL: none */
	struct cuda_launch *launches;	/* by step; those of fills are empty */
	cuda_ptr *memory;		/* [buffer * copies + copy]; 0: none */
	int copies;
	enum gpu_cache cache;		/* that runs find, which take the copies in turn */
};

/* Everything is set first: after a failure cuda_task_release frees what there is. */
NODISCARD enum err_code cuda_task_init(struct cuda_task *t, struct cuda_device *d,
	const struct gpu_job *job, struct arena *a);
void cuda_task_release(struct cuda_task *t);

/* Of a copy that a run uses. */
cuda_ptr cuda_task_memory(const struct cuda_task *t, int buffer, int copy);

/* The steps that come once, before all runs. */
NODISCARD enum err_code cuda_task_begin(struct cuda_task *t);

/* Put one step, or a whole run, on the stream; of a race, a run of the contestant, from 1. */
NODISCARD enum err_code cuda_task_step(struct cuda_task *t, int step, int copy);
NODISCARD enum err_code cuda_task_run(struct cuda_task *t, int contestant, int copy);

/* Has something written beyond the end of a buffer? `what` did it. */
NODISCARD enum err_code cuda_task_check_ends(struct cuda_task *t, const char *what);

/* Copy what the job wants back, of this copy. */
NODISCARD enum err_code cuda_task_return(struct cuda_task *t, int copy);

#endif
