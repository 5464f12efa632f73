/* job.h - the description of work for a device, as plain values.
 *
 * A job has binaries, buffers, and steps that run in order on one stream. A step launches a kernel of one of the
 * binaries, or fills a buffer. One pass over the steps is a run; steps marked `once` are done before the first run
 * instead. A race has several contestants, whose runs are timed alternately; a step or buffer belongs to one contestant
 * or to all. Nothing here is owned: arrays, names and host memory are borrowed until gpu_run returns.
 */
#ifndef GPU_JOB_H
#define GPU_JOB_H

#include "base/err.h"

enum {
	GPU_RANK_MAX = 5,		/* of a tensor map */
	GPU_RUNS_MAX = 100000,		/* run times that one job may record */
	GPU_COPIES_MAX = 256,		/* of a buffer that rotates */
	GPU_CONTESTANTS_MAX = 64,	/* of a race */
	GPU_ROUNDS_MIN = 3,		/* of a race that does not say */
	GPU_STREAMS_MAX = 16,		/* of a job */
};

/* Whose functions start the kernels. */
enum gpu_api {
	GPU_CUDA,
	GPU_HIP,			/* AMD's; has no tensor maps, clusters, cooperative or early launches */
	GPU_APIS,
};

/* ---- buffers ---- */

enum gpu_init {
	GPU_INIT_NONE,			/* whatever the memory holds */
	GPU_INIT_HOST,			/* copied from `from` */
	GPU_INIT_WORD,			/* filled with `word`: zeros, or a poison value */
};

struct gpu_buffer {
	const char *name;		/* for messages; NULL: its number */
	size_t bytes;			/* > 0 */
	enum gpu_init init;
	const void *from;
	uint32_t word;			/* repeated from the start; the last one may be truncated */
	void *to;			/* gets the contents after the last run; NULL: not wanted */
	bool rotate;			/* successive runs of a benchmark use different copies */
	int contestant;			/* of a race: only of this one, from 1; 0: of all */
};

/* ---- parameters of a kernel ---- */

/* As CUtensorMapDataType. U8 stands for fp8, too. */
enum gpu_element {
	GPU_U8 = 0, GPU_U16 = 1, GPU_U32 = 2, GPU_I32 = 3, GPU_U64 = 4, GPU_I64 = 5,
	GPU_F16 = 6, GPU_F32 = 7, GPU_F64 = 8, GPU_BF16 = 9, GPU_TF32 = 11,
};

/* As CUtensorMapSwizzle: the bytes after which the pattern of 16-byte atoms repeats. */
enum gpu_swizzle { GPU_SWIZZLE_NONE, GPU_SWIZZLE_32, GPU_SWIZZLE_64, GPU_SWIZZLE_128 };

/* As CUtensorMapL2promotion. */
enum gpu_promotion { GPU_PROMOTE_NONE, GPU_PROMOTE_64, GPU_PROMOTE_128, GPU_PROMOTE_256 };

/* A tensor in a buffer, for a tensor map of the copy engine. Dimension 0 is the contiguous one.
 * Elements outside are read as zero and not written. */
struct gpu_tensor {
	enum gpu_element element;
	int rank;
	uint64_t dims[GPU_RANK_MAX];	/* elements */
	uint64_t strides[GPU_RANK_MAX];	/* bytes, multiples of 16; [0] is ignored */
	uint32_t box[GPU_RANK_MAX];	/* elements, at most 256 each */
	uint32_t step[GPU_RANK_MAX];	/* elements from one taken to the next; 0: 1 */
	enum gpu_swizzle swizzle;
	enum gpu_promotion promotion;
};

enum gpu_param_kind {
	GPU_PARAM_POINTER,		/* into a buffer */
	GPU_PARAM_BITS32,		/* int, unsigned, float */
	GPU_PARAM_BITS64,		/* long, double */
	GPU_PARAM_TENSOR,		/* const __grid_constant__ CUtensorMap */
};

struct gpu_param {
	enum gpu_param_kind kind;
	int buffer;			/* POINTER, TENSOR */
	size_t offset;			/* bytes from the start of the buffer */
	uint64_t bits;			/* BITS32 takes the low half */
	const struct gpu_tensor *tensor;
};

/* Bytes that it has in the kernel. */
size_t gpu_param_bytes(const struct gpu_param *p);

/* ---- steps ---- */

struct gpu_binary {
	const void *image;		/* a cubin, a code object */
	size_t bytes;			/* > 0 */
};

enum gpu_step_kind { GPU_STEP_KERNEL, GPU_STEP_FILL };

struct gpu_step {
	enum gpu_step_kind kind;
	bool once;			/* before the first run, for each copy of rotated buffers */
	int contestant;			/* of a race: only in its runs, from 1; 0: in all runs */

	/* KERNEL */
	int binary;			/* index of the binary with the kernel */
	const char *entry;		/* the kernel's name in the binary: extern "C" */
	unsigned grid[3], block[3];	/* 0 stands for 1 */
	unsigned cluster[3];		/* blocks; all 0 or 1: no cluster */
	unsigned smem;			/* dynamic shared memory, bytes */
	bool cooperative;		/* fail unless all blocks are resident at once */
	bool early;			/* may begin before the previous kernel has ended, and
					 * waits for that itself (griddepcontrol) */
	const struct gpu_param *params;
	int nparams;
	/* On which stream, from 0; and steps before it, of other streams, that must have ended. A run begins when the one
	 * before it has ended on all streams. */
	int stream;
	const int *after;
	int nafter;

	/* FILL: all of a buffer, in every run */
	int buffer;
	uint32_t word;
};

/* ---- the job ---- */

enum gpu_mode {
	GPU_RUN,			/* one run, which also checks for writes beyond buffers */
	GPU_BENCH,			/* many runs, each of them timed */
	GPU_RACE,			/* many runs of several contestants, in rounds */
};

struct gpu_bench {
	double warmup;			/* seconds of runs that do not count; one run at least */
	double seconds;			/* run until the times sum up to this */
	int runs_min, runs_max;		/* bounds that come before `seconds`; 0: 3, GPU_RUNS_MAX */
	int copies;			/* of rotated buffers; 0: so many that they exceed twice
					 * the L2 together; fewer if memory is short */
};

/* In a round each contestant is sampled once: several batches of runs, of which the later half counts. Every second
 * round has the reverse order, and each pair of rounds begins with the next contestant. */
struct gpu_race {
	const char *const *names;	/* of the contestants, for messages */
	int n;
	double warmup;			/* seconds of each contestant that do not count; up to twelve
					 * times as long while the runs get slower */
	double sample_seconds;		/* about how long a sample takes */
	double seconds;			/* of each contestant: run until its times sum up to this */
	int rounds_min, rounds_max;	/* bounds that come before `seconds`; 0: GPU_ROUNDS_MIN, as many as
					 * results have space for */
};

struct gpu_job {
	enum gpu_api api;
	const char *arch;		/* what the binaries are for, "gfx942"; NULL: not compared with the device's */
	const struct gpu_binary *binaries;
	int nbinaries;
	const struct gpu_buffer *buffers;
	int nbuffers;
	const struct gpu_step *steps;
	int nsteps;
	enum gpu_mode mode;
	/* RUN, BENCH: put all steps of a run on their streams at once, as a graph (CUDA graph, HIP graph). A RUN without it waits
	 * for the end of each step, so none overlaps another. */
	bool graph;
	struct gpu_bench bench;
	struct gpu_race race;
};

/* ERR_INPUT unless the description is complete and within the limits of all devices. Needs no device. */
NODISCARD enum err_code gpu_job_check(const struct gpu_job *job, struct err *e);

/* A number of blocks or threads in struct gpu_step: at least 1. */
unsigned gpu_dim(unsigned n);

#endif
