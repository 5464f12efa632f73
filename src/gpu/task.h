/* task.h - a job set up on the device: memory, modules, launches.
 *
 * It is set up once and can then be run any number of times. Run number i uses copy i % copies of each buffer that
 * rotates. Parameters are made for every copy beforehand, so a run only launches kernels.
 */
#ifndef GPU_TASK_H
#define GPU_TASK_H

#include "gpu/context.h"

struct gpu_launch {
	struct CUfunc_st *function;
	struct cuda_launch_config config;
	struct cuda_launch_attribute attributes[3];
	void ***params;			/* [copy][parameter] */
	const char *what;		/* "of 'gemm'", for messages */
	const char *after;		/* "after 'gemm'" */
};

struct gpu_task {
	struct gpu_context *d;		/* borrowed, like the job */
	const struct gpu_job *job;
	struct arena *arena;
	struct CUmod_st **modules;	/* by binary; NULL: none */
	struct gpu_launch *launches;	/* by step; those of fills are empty */
	device_ptr *memory;		/* [buffer * copies + copy]; 0: none */
	struct CUstream_st *streams[GPU_STREAMS_MAX];	/* of steps; the first is the context's; NULL: no step is on it */
	struct CUevent_st **events;	/* by step: its end, where steps of other streams wait for that; else NULL */
	struct CUevent_st *start, *ends[GPU_STREAMS_MAX];	/* of a run, if it has several streams */
	struct CUgraphExec_st **graphs;	/* by copy: a run of a job that wants graphs; NULL: each step is launched */
	int copies;
	enum gpu_cache cache;		/* what a run finds in the L2 */
};

/* *t is valid even after an error, for gpu_task_release. */
NODISCARD enum err_code gpu_task_init(struct gpu_task *t, struct gpu_context *d,
	const struct gpu_job *job, struct arena *a);
void gpu_task_release(struct gpu_task *t);

/* The address of a buffer, of the copy `copy` if it rotates. */
device_ptr gpu_task_memory(const struct gpu_task *t, int buffer, int copy);

/* Do the steps marked `once`, for all copies. Then make the graphs. */
NODISCARD enum err_code gpu_task_begin(struct gpu_task *t);

/* Put one step on the context's stream, or all steps of a run on theirs; what follows on the context's comes after all of them. contestant: of a race, from 1; else 0. */
NODISCARD enum err_code gpu_task_step(struct gpu_task *t, int step, int copy);
NODISCARD enum err_code gpu_task_run(struct gpu_task *t, int contestant, int copy);

/* An error if the guard bytes behind a buffer have changed; the message begins with `what` ("after 'gemm'"). */
NODISCARD enum err_code gpu_task_check_guards(struct gpu_task *t, const char *what);

/* Copy buffers to their `to`, from the copy `copy` of those that rotate. */
NODISCARD enum err_code gpu_task_return(struct gpu_task *t, int copy);

/* ---- task_run.c: running it once, as a benchmark or as a race ---- */

/* `report` is called before each stage, and repeatedly in STAGE_RUNNING of a benchmark. */
struct progress {
	void (*report)(void *ud, enum stage stage);
	void *ud;
};

/* The result lies in `a`. The error is in the device's verdict. */
NODISCARD enum err_code gpu_task_run_job(struct gpu_context *d, const struct gpu_job *job,
	const struct progress *p, struct gpu_result *r, struct arena *a);

#endif
