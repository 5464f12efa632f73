/* gpu.h - the attached device, from a process that outlives whatever a kernel does.
 *
 * A struct gpu is one worker process, started when first needed. Compiling and running
 * happen there. A kernel that hangs is killed with the worker at its time limit; one
 * that faults takes the worker's context with it; either costs one message, and the
 * next call starts a fresh worker. Several may be open, each with a worker of its own:
 * then they compile at the same time.
 *
 * The worker is this same program with "--gpu-worker" as its first argument: a main()
 * that comes to use this header begins with
 *
 *	if (gpu_worker_asked(argc, argv))
 *		return gpu_worker_main(argc, argv);
 *
 * Failures: ERR_INPUT for a job or source that is wrong, ERR_INTERRUPTED when `stop`
 * was set, ERR_LIMIT for memory and time, ERR_IO for what the device, the driver or
 * the worker did. gpu_failure() says which, for a program to decide on.
 */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "base/arena.h"
#include "base/err.h"
#include "gpu/compile.h"
#include "gpu/job.h"

struct gpu;

/* What the last failed call of a gpu failed of. */
enum gpu_failure {
	GPU_FAIL_NONE,
	GPU_FAIL_JOB,			/* the job or the source is wrong */
	GPU_FAIL_MISSING,		/* no driver, no device, no NVRTC */
	GPU_FAIL_MEMORY,		/* of the device, or of the host */
	GPU_FAIL_BINARY,		/* not for this device, no such entry */
	GPU_FAIL_LAUNCH,		/* the device refuses these grid, block, resources */
	GPU_FAIL_FAULT,			/* illegal address, trap: the context was lost */
	GPU_FAIL_OVERRUN,		/* a kernel wrote beyond the end of a buffer */
	GPU_FAIL_TIMEOUT,		/* the time limit passed */
	GPU_FAIL_WORKER,		/* the worker process died or talks nonsense */
	GPU_FAIL_STOPPED,		/* interrupted */
	GPU_FAIL_OTHER,
};

/* Why its clock is lower than it could be, the gravest first. Not that it idles, and not
 * that it keeps to its power limit, as it does under large kernels. */
enum gpu_held {
	GPU_HELD_NOT,			/* or not known */
	GPU_HELD_HOT,
	GPU_HELD_BRAKE,			/* the machine's power supply asks for it */
	GPU_HELD_HARDWARE,		/* and does not say why */
	GPU_HELD_SYNC,			/* it goes with that of other devices */
	GPU_HELD_SETTING,		/* somebody set it, perhaps no lower than it goes */
};

/* The board as the management library sees it; 0 and "" are what it does not tell. */
struct gpu_board {
	char driver[32];		/* "580.159.03" */
	double power_limit;		/* W, enforced */
	double clock;			/* Hz, now */
	enum gpu_held held;
	bool partition;			/* the device is a part of the board (MIG) */
	bool counted;			/* others is known */
	int others, other;		/* processes that compute there beside ours; one's pid */
	int use;			/* % of the last second that kernels ran, none of them ours */
};

struct gpu_info {
	char name[128];			/* "NVIDIA H200" */
	char arch[16];			/* "sm_90a" */
	int major, minor;		/* compute capability */
	int sms;
	double clock, memory_clock;	/* Hz, the highest */
	int bus_width;			/* of the memory, bits */
	int64_t memory_total, memory_free;	/* bytes */
	int64_t l2, smem_block, smem_sm;	/* bytes; smem_block with the opt-in */
	int registers_sm;
	int driver_major, driver_minor;	/* CUDA version that the driver knows */
	struct gpu_board board;
};

/* What a benchmark's runs find in the L2. */
enum gpu_cache {
	GPU_CACHE_UNKNOWN,		/* of a single run: what its preparation left */
	GPU_CACHE_WARM,			/* some of what they read: it is read again too soon */
	GPU_CACHE_COLD,			/* nothing: more than it holds comes in between */
};

struct gpu_result {
	double *ms;			/* of each run, in order, milliseconds */
	int runs;
	int copies;			/* that rotated buffers had */
	enum gpu_cache cache;
	double watts;			/* that the board drew meanwhile; 0: not known */
	/* Of a race `ms` are the medians of its turns, round by round, each in the order of the
	 * contestants. */
	int contestants;		/* 0: it was none */
	double *least, *most;		/* of all runs of each contestant */
	int *batch;			/* runs of a turn of each */
};

/* device: CUDA's number of it, 0 for the first. `m` is borrowed and outlives the gpu.
 * *out is set first, so that a caller whose failure handler jumps out of here or of
 * any call below can free what there is; nothing is started yet. */
void gpu_new(struct mem *m, int device, struct gpu **out);
void gpu_free(struct gpu *g);		/* ends the worker */
/* End the worker, so that the device's memory is free; the next call starts another. */
void gpu_close(struct gpu *g);

/* Is there a device, which, and in what state? An error says why there is none. The worker
 * does not wait for a driver longer than a minute. */
NODISCARD enum err_code gpu_probe(struct gpu *g, const struct stop *stop, struct gpu_info *info,
	struct err *e);

/* Why times that are taken on it cannot be trusted, as one clause: "another process (pid 123)
 * is on it, 40 % in use". False: nothing is known against them, and the text is "". */
enum { GPU_TROUBLE_MAX = 160 };
bool gpu_trouble(const struct gpu_info *info, char text[GPU_TROUBLE_MAX]);

/* The result is in `a`; after a compile error, r still has log and diags. */
NODISCARD enum err_code gpu_compile(struct gpu *g, const struct compile_job *job,
	const struct stop *stop, struct arena *a, struct compile_result *r, struct err *e);

/* Run the job; `limit`: seconds that the kernels may take (when benchmarking: between
 * two signs of progress, which come every fraction of a second). Copying and starting
 * up do not count against it. On success the `to` of the job's buffers is filled; on
 * failure it may be in part. */
NODISCARD enum err_code gpu_run(struct gpu *g, const struct gpu_job *job, double limit,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

enum gpu_failure gpu_failure(const struct gpu *g);

/* "cold L2", "warm L2"; NULL: unknown. */
const char *gpu_cache_name(enum gpu_cache c);

/* ---- the other side ---- */

bool gpu_worker_asked(int argc, char **argv);
int gpu_worker_main(int argc, char **argv);	/* the worker's exit status */

#endif
