/* gpu.h - compiling and running kernels on the attached device, in a worker process.
 *
 * A struct gpu has one worker process, started when it is first needed. A kernel that hangs is
 * killed with the worker when its time limit has passed; a kernel that faults destroys the worker's
 * context, and on AMD's GPUs the worker. Either is an error of that call, and the next call starts a new worker. Several
 * struct gpu may be open at once; their workers compile at the same time.
 *
 * The worker is this same program with "--gpu-worker" as its first argument. Therefore a main()
 * that uses this header begins with
 *
 *	if (gpu_worker_asked(argc, argv))
 *		return gpu_worker_main(argc, argv);
 *
 * Errors: ERR_INPUT for a wrong job or source, ERR_INTERRUPTED when `stop` was set, ERR_LIMIT for memory and time,
 * ERR_IO for failures of the device, the driver or the worker. gpu_failure() has the kind of the failure.
 */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "base/arena.h"
#include "base/err.h"
#include "gpu/compile.h"
#include "gpu/job.h"

struct gpu;

/* Why the last call failed. */
enum gpu_failure {
	GPU_FAIL_NONE,
	GPU_FAIL_JOB,			/* the job or the source is wrong */
	GPU_FAIL_MISSING,		/* no driver, no device or no NVRTC */
	GPU_FAIL_MEMORY,		/* of the device, or of the host */
	GPU_FAIL_BINARY,		/* not for this device, or without that entry */
	GPU_FAIL_LAUNCH,		/* the device refuses this grid, block or resources */
	GPU_FAIL_FAULT,			/* illegal address, trap: the context was lost */
	GPU_FAIL_OVERRUN,		/* a kernel wrote beyond the end of a buffer */
	GPU_FAIL_TIMEOUT,		/* the time limit passed */
	GPU_FAIL_WORKER,		/* the worker process died, or sent a malformed message */
	GPU_FAIL_STOPPED,		/* interrupted */
	GPU_FAIL_OTHER,
};

/* Why the clock is lower than it could be, the most serious reason first. Idling is no reason, and
 * neither is the power limit, which large kernels reach as a rule. */
enum gpu_throttle {
	GPU_THROTTLE_NONE,			/* not throttled, or not known */
	GPU_THROTTLE_HEAT,
	GPU_THROTTLE_POWER_BRAKE,			/* requested by the machine's power supply */
	GPU_THROTTLE_HARDWARE,		/* the hardware gives no reason */
	GPU_THROTTLE_SYNC,			/* kept equal to the clocks of other devices */
	GPU_THROTTLE_SETTING,		/* set by a user, perhaps to the highest value */
};

/* The board as the management library (NVML) reports it; 0 and "" mean unknown. */
struct gpu_board {
	char driver[32];		/* "580.159.03", "HIP 6.3" */
	double power_limit;		/* W, enforced */
	double clock;			/* Hz, now */
	enum gpu_throttle throttle;
	bool partition;			/* the device is a MIG partition of the board */
	bool others_known;		/* `others` is known */
	int others, other_pid;		/* other processes that compute on it; the pid of one */
	int utilisation;		/* % of the last second in which kernels of others ran */
};

struct gpu_info {
	enum gpu_api api;
	char name[128];			/* "NVIDIA H200" */
	char arch[16];			/* "sm_90a", "gfx942" */
	char bus[32];			/* PCI address, which MIG partitions share: "0000:1B:00.0"; "": not known */
	int major, minor;		/* compute capability; CUDA alone */
	int sms;			/* SMs, CUs */
	double clock, memory_clock;	/* Hz, the highest */
	int bus_width;			/* of the memory, bits */
	int64_t memory_total, memory_free;	/* bytes */
	int64_t l2, smem_block, smem_sm;	/* bytes; smem_block with the opt-in */
	int registers_sm;
	int driver_major, driver_minor;	/* the newest CUDA version that the driver supports; of HIP */
	struct gpu_board board;
};

/* What each run of a benchmark finds in the L2. */
enum gpu_cache {
	GPU_CACHE_UNKNOWN,		/* a single run: whatever its preparation left */
	GPU_CACHE_WARM,			/* some of its inputs, which were read not long before */
	GPU_CACHE_COLD,			/* none of its inputs: the runs before it evicted them */
};

struct gpu_result {
	double *ms;			/* milliseconds of each run, in order */
	int runs;
	int copies;			/* of each buffer that rotates */
	enum gpu_cache cache;
	bool graph;			/* a run was the launch of a graph */
	double watts;			/* mean power of the board meanwhile; 0: not known */
	/* Of a race: `ms` has the medians of its samples, round by round, within a round in the order
	 * of the contestants; `runs` is their number. */
	int contestants;		/* 0: no race */
	double *min_ms, *max_ms;	/* of all runs of each contestant */
	int *sample_runs;		/* how many runs a sample of each contestant has */
};

/* device: its ordinal, from 0. `m` is borrowed and outlives the gpu. Starts no process. *out
 * is set before anything is allocated, so that a caller whose failure handler jumps out of this or
 * any other call can free the gpu. */
void gpu_new(struct mem *m, int device, struct gpu **out);
void gpu_free(struct gpu *g);		/* ends the worker */
/* End the worker, which frees the device's memory; the next call starts another worker. */
void gpu_close(struct gpu *g);

/* Look for the device and read its properties and state. GPU_APIS: for CUDA's, or else for HIP's. The error says why
 * there is none. Waits for the driver a minute at most. */
NODISCARD enum err_code gpu_probe(struct gpu *g, enum gpu_api api, const struct stop *stop, struct gpu_info *info,
	struct err *e);

/* A reason why times measured on this device are not reliable, as a clause: "another process (pid
 * 123) is on it, 40 % in use". False: no such reason is known, and the text is "". */
enum { GPU_TROUBLE_MAX = 160 };
bool gpu_trouble(const struct gpu_info *info, char text[GPU_TROUBLE_MAX]);

/* The result lies in `a`. After a compile error *r still has log and diags. */
NODISCARD enum err_code gpu_compile(struct gpu *g, const struct compile_job *job,
	const struct stop *stop, struct arena *a, struct compile_result *r, struct err *e);

/* Run the job. `limit`: seconds that the kernels may take (in a benchmark: between two reports of progress, which come
 * several times a second). Copying and starting up do not count. On success the `to` of each buffer is filled; after an
 * error it may be filled in part. The result lies in `a`. */
NODISCARD enum err_code gpu_run(struct gpu *g, const struct gpu_job *job, double limit,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e);

/* Call f(ud) about every 20 ms while a call waits for the worker, so that the caller can do something else; NULL: nothing.
 * Meanwhile gpu_probe gives what it found before, and other calls fail. */
void gpu_meanwhile(struct gpu *g, void (*f)(void *ud), void *ud);

enum gpu_failure gpu_failure(const struct gpu *g);

/* "cold L2", "warm L2"; NULL: unknown. */
const char *gpu_cache_name(enum gpu_cache c);

/* ---- the worker's side ---- */

bool gpu_worker_asked(int argc, char **argv);
int gpu_worker_main(int argc, char **argv);	/* the worker's exit status */

#endif
