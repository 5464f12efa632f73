/* compile.h - compiling CUDA sources with NVRTC, and HIP with clang or hiprtc.
 *
 * Needs no device and no driver. gpu_compile (gpu.h) compiles in the worker process, which can be
 * interrupted and may crash; compile_here compiles in this process.
 *
 * Binaries are kept under $XDG_CACHE_HOME/millrace/cubin, by source, options and version of the compiler (of clang its
 * file, with its size and time).
 *
 * What another process has compiled can be given with a job: it is then used, and kept in the cache here, unless another
 * version of the compiler made it.
 */
#ifndef GPU_COMPILE_H
#define GPU_COMPILE_H

#include "base/arena.h"
#include "base/err.h"
#include "gpu/job.h"

struct compile_given {
	const char *tool;		/* the compiler; NULL: nothing is given */
	const char *log;
	const void *cubin;
	size_t cubin_bytes;
};

struct compile_job {
	enum gpu_api api;
	const char *name;		/* of the source in messages, HIP: of the kernel; NULL: "kernel.cu" */
	const char *source;
	const char *arch;		/* "sm_90a" */
	bool fast_math;			/* of CUDA */
	bool no_cache;			/* neither look the binary up nor keep it */
	bool only_cached;		/* look it up, and compile nothing: an ERR_INPUT with `missing` if it is not there */
	struct compile_given given;
	const char *const *options;	/* more of them, in the words of that compiler */
	int noptions;
};

/* What ptxas reports about one kernel, or a code object of HIP. */
struct compile_use {
	const char *entry;
	int registers;			/* a thread */
	int spill_stores, spill_loads;	/* bytes a thread, counted once for each instruction */
	int stack;			/* bytes a thread */
	int smem;			/* static, bytes a block */
	int barriers;			/* named barriers, including that of __syncthreads */
};

enum compile_severity { COMPILE_NOTE, COMPILE_WARNING, COMPILE_ERROR };

struct compile_diag {
	enum compile_severity severity;
	const char *file;		/* as given by #line; "" if unknown */
	int line;			/* 0 if unknown */
	int ptx_line;			/* of the PTX, if ptxas names it; or 0 */
	const char *text;		/* one line */
	bool serialized;		/* ptxas made asynchronous wgmma wait for each other */
	bool ungranted;			/* ptxas ignored setmaxnreg: warps keep the registers of the launch */
};

/* After an ERR_INPUT of the source, log and diags are set. */
struct compile_result {
	const void *cubin;
	size_t cubin_bytes;
	struct compile_use *uses;
	int nuses;
	struct compile_diag *diags;	/* in the order of the log */
	int ndiags;
	const char *log;		/* all of the compiler's output */
	int major, minor;		/* of NVRTC or hiprtc; 0: clang */
	const char *tool;		/* the compiler, with its version; NULL: none was found */
	bool no_compiler;		/* there is none on this machine */
	bool cached;
	bool missing;			/* of a job that compiles nothing */
};

/* ERR_INPUT: the job has no source or no architecture. */
NODISCARD enum err_code compile_check(const struct compile_job *job, struct err *e);

/* The result lies in `a`, whose failure handler must not jump, as NVRTC has memory of its own. */
NODISCARD enum err_code compile_here(const struct compile_job *job, struct arena *a,
	struct compile_result *r, struct err *e);

/* The error that a compiler has refused a text. */
enum err_code compile_refused(const char *compiler, const char *log, struct err *e);

/* Read r->log into r->uses and r->diags. */
void compile_parse_log(struct compile_result *r, struct arena *a);

/* Set file and line of diags that have only a line of the PTX, by the .loc directives of the PTX. */
void compile_map_ptx(struct compile_result *r, const char *ptx, struct arena *a);

#endif
