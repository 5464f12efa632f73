/* job.h - what a device is asked to do, as plain values.
 *
 * A job is some binaries, some buffers, and steps that run in order on one stream: the
 * launch of a kernel of one of the binaries, or a fill of a buffer. One pass over the
 * steps is a run, but for those that come once, before all runs. A race has several contestants
 * whose runs are timed in turns; each has steps and buffers of its own, beside those of all.
 * Nothing here is owned: arrays, names and host memory are borrowed until gpu_run returns.
 */
#ifndef GPU_JOB_H
#define GPU_JOB_H

#include "base/err.h"

enum {
	GPU_RANK_MAX = 5,		/* of a tensor map */
	GPU_RUNS_MAX = 100000,		/* times that one job may record */
	GPU_COPIES_MAX = 256,		/* of rotated buffers */
	GPU_CONTESTANTS_MAX = 64,	/* of a race */
};

/* ---- buffers ---- */

enum gpu_init {
	GPU_INIT_NONE,			/* whatever the memory holds */
	GPU_INIT_HOST,			/* copied from `from` */
	GPU_INIT_WORD,			/* filled with `word`: zeros, or a poison */
};

struct gpu_buffer {
	const char *name;		/* for messages; NULL: its number */
	size_t bytes;			/* > 0 */
	enum gpu_init init;
	const void *from;
	uint32_t word;			/* repeated from the start; the last may be cut */
	void *to;			/* its contents after the last run; NULL: not wanted */
	bool rotate;			/* when benchmarking, runs take turns on copies of it */
	int contestant;			/* of a race, from 1: of this one alone; 0: of all */
};

/* ---- parameters of a kernel ---- */

/* As CUtensorMapDataType. For fp8 take U8. */
enum gpu_element {
	GPU_U8 = 0, GPU_U16 = 1, GPU_U32 = 2, GPU_I32 = 3, GPU_U64 = 4, GPU_I64 = 5,
	GPU_F16 = 6, GPU_F32 = 7, GPU_F64 = 8, GPU_BF16 = 9, GPU_TF32 = 11,
};

/* As CUtensorMapSwizzle: atoms of 16 bytes, repeating over so many bytes. */
enum gpu_swizzle { GPU_SWIZZLE_NONE, GPU_SWIZZLE_32, GPU_SWIZZLE_64, GPU_SWIZZLE_128 };

/* As CUtensorMapL2promotion. */
enum gpu_promotion { GPU_PROMOTE_NONE, GPU_PROMOTE_64, GPU_PROMOTE_128, GPU_PROMOTE_256 };

/* A tensor in a buffer as the copy engine sees it. Dimension 0 is the contiguous one.
 * What lies outside is read as zero and not written. */
struct gpu_tensor {
	enum gpu_element element;
	int rank;
	uint64_t dims[GPU_RANK_MAX];	/* elements */
	uint64_t strides[GPU_RANK_MAX];	/* bytes, multiples of 16; [0] is not looked at */
	uint32_t box[GPU_RANK_MAX];	/* elements, at most 256 each */
	uint32_t step[GPU_RANK_MAX];	/* taken of every so many; 0: 1 */
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

/* The bits of a value that is no integer. */
uint64_t gpu_bits_float(float x);
uint64_t gpu_bits_double(double x);

/* ---- steps ---- */

struct gpu_binary {
	const void *image;		/* a cubin */
	size_t bytes;			/* > 0 */
};

enum gpu_step_kind { GPU_STEP_KERNEL, GPU_STEP_FILL };

struct gpu_step {
	enum gpu_step_kind kind;
	bool once;			/* before all runs, for each copy of rotated buffers */
	int contestant;			/* of a race, from 1: in its runs alone; 0: in all */

	/* KERNEL */
	int binary;			/* that has the kernel: index into the job's */
	const char *entry;		/* as the binary names it: extern "C" */
	unsigned grid[3], block[3];	/* 0 stands for 1 */
	unsigned cluster[3];		/* blocks; all 0 or 1: no cluster */
	unsigned smem;			/* dynamic shared memory, bytes */
	bool cooperative;		/* every block resident at once, or a refusal */
	bool early;			/* may begin before the kernel before it has ended: it
					 * waits for that itself (griddepcontrol) */
	const struct gpu_param *params;
	int nparams;

	/* FILL: of a whole buffer, at every run */
	int buffer;
	uint32_t word;
};

/* ---- the job ---- */

enum gpu_mode {
	GPU_RUN,			/* once; the buffers' ends are watched for overruns */
	GPU_BENCH,			/* many times, for the times */
	GPU_RACE,			/* likewise, contestant by contestant, round by round */
};

struct gpu_bench {
	double warmup;			/* seconds of runs that do not count; one at least */
	double seconds;			/* sum of the times to reach */
	int runs_min, runs_max;		/* whatever `seconds` says; 0: 3, GPU_RUNS_MAX */
	int copies;			/* of rotated buffers; 0: so many that together they
					 * exceed twice the L2; fewer if memory is short */
};

/* In a round each contestant has one turn: batches of runs, of about so many seconds together, of which the later
 * half counts. In every second round the order is reversed, and after that the next one begins. */
struct gpu_race {
	const char *const *names;	/* of the contestants, for messages */
	int n;
	double warmup;			/* seconds of turns that do not count, each contestant; longer, up
					 * to twelve times, while they get slower */
	double turn;			/* seconds of one */
	double seconds;			/* of each contestant, to reach */
	int rounds_min;			/* whatever `seconds` says; 0: 3 */
	double lost;			/* of the first's time: it ends after two rounds if all others take more; 0:
					 * it does not */
};

struct gpu_job {
	const struct gpu_binary *binaries;
	int nbinaries;
	const struct gpu_buffer *buffers;
	int nbuffers;
	const struct gpu_step *steps;
	int nsteps;
	enum gpu_mode mode;
	struct gpu_bench bench;
	struct gpu_race race;
};

/* Is the description complete and within what any device takes? Needs no device. */
NODISCARD enum err_code gpu_job_check(const struct gpu_job *job, struct err *e);

/* Bytes of one element; 0: no such type. */
size_t gpu_element_bytes(enum gpu_element t);

#endif
