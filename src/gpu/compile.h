/* compile.h - from CUDA source text to a binary, by NVRTC.
 *
 * Needs no device and no driver. gpu_compile (gpu.h) does this in the worker process,
 * where it can be interrupted and may crash; compile_here does it in this one.
 *
 * Binaries are kept under $XDG_CACHE_HOME/millrace/cubin, found again by source,
 * options and NVRTC's version together.
 */
#ifndef GPU_COMPILE_H
#define GPU_COMPILE_H

#include "base/arena.h"
#include "base/err.h"

struct compile_job {
	const char *name;		/* of the source in messages; NULL: "kernel.cu" */
	const char *source;
	const char *arch;		/* "sm_90a" */
	bool fast_math;
	bool no_cache;			/* neither looked up nor kept */
	const char *const *options;	/* more of them, passed on as they are */
	int noptions;
};

/* What ptxas says about one kernel. */
struct compile_use {
	const char *entry;
	int registers;			/* a thread */
	int spill_stores, spill_loads;	/* bytes a thread, in the code */
	int stack;			/* bytes a thread */
	int smem;			/* static, bytes a block */
	int barriers;			/* named ones, with that of __syncthreads */
};

enum compile_severity { COMPILE_NOTE, COMPILE_WARNING, COMPILE_ERROR };

struct compile_diag {
	enum compile_severity severity;
	const char *file;		/* "" if unknown; as #line says */
	int line;			/* 0 if unknown */
	int ptx_line;			/* of the text between, where ptxas names that; or 0 */
	const char *text;		/* one line */
	bool serialized;		/* ptxas gave up on asynchronous wgmma */
};

/* In the arena of the call; an input error leaves what the log said. */
struct compile_result {
	const void *cubin;
	size_t cubin_bytes;
	struct compile_use *uses;
	int nuses;
	struct compile_diag *diags;	/* in the order of the log */
	int ndiags;
	const char *log;		/* whole */
	int nvrtc_major, nvrtc_minor;
	bool cached;
};

/* The failure handler of a's memory must not jump: NVRTC holds memory of its own. */
NODISCARD enum err_code compile_here(const struct compile_job *job, struct arena *a,
	struct compile_result *r, struct err *e);

/* Read r->log into r->uses and r->diags. */
void compile_parse_log(struct compile_result *r, struct arena *a);

/* Give diags that know only a line of the PTX the place that this came from, as the
 * .loc directives in the PTX have it. */
void compile_map_ptx(struct compile_result *r, const char *ptx, struct arena *a);

#endif
