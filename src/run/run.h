/* run.h - a plan's kernels on the attached device.
 *
 * Joins what emit wrote with what gpu can run: one launch a phase, tensors in device
 * memory, the order of tiles as the plan deals them.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "emit/emit.h"
#include "plan/plan.h"
#include "gpu/pool.h"
#include "run/fill.h"

struct built_phase {
	struct source source;
	struct compile_result binary;
	struct pool_job *compiling;	/* between built_begin and built_end; else NULL */
	/* of a traced one */
	struct kernel *kernel;
	uint32_t *stamps;		/* that the last run left */
};

/* A plan compiled for the device. All of it lies in `arena`; graph and plan are its
 * own (history_snapshot), so later edits do not touch it. */
struct built {
	struct arena arena;
	struct graph *graph;
	struct plan *plan;
	struct kernel *kernel;		/* under construction */
	bool traced;			/* its kernels leave stamps (lower/stamps.h), and its
					 * graph is another's */
	int nphases;
	struct built_phase *phases;
};

/* *out is set first. b->graph and b->plan are filled by the caller before build. */
void built_new(struct mem *mem, struct built **out);
void built_free(struct built *b);
/* The same plan, to be built with stamps; `of` outlives it. *out is set first. */
void built_new_traced(struct mem *mem, const struct built *of, struct built **out);

/* Text only: sources of all phases. */
NODISCARD enum err_code built_emit(struct built *b, struct err *e);
/* ... and binaries, by NVRTC, in the worker of g. */
NODISCARD enum err_code built_compile(struct built *b, struct gpu *g, const struct stop *stop,
	struct err *e);

/* The same by a pool, after built_emit: begin, call pool_step until it is ready, end. */
void built_begin(struct built *b, struct pool *p);
bool built_ready(const struct built *b);
NODISCARD enum err_code built_end(struct built *b, struct err *e);

/* Inputs are read or made (fill.h), outputs written to in->data; temporaries are NULL there. Outputs
 * are poisoned before. bench NULL: one run. Times in `a`. */
NODISCARD enum err_code built_run(struct built *b, struct gpu *g, const struct feed *in, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a,
	struct gpu_result *r, struct err *e);

/* A kernel in a race, and what messages call it. */
struct racer {
	const struct built *built;
	const char *name;
};

/* The same inputs and outputs: then the kernels can be compared. */
bool built_same_tensors(const struct built *a, const struct built *b);

/* Their times in turns, on the same inputs, each with outputs of its own; of same tensors all.
 * `race` without its contestants. in->data of outputs is not looked at. Times in `a`. */
NODISCARD enum err_code built_race(const struct racer *racers, int n, struct gpu *g,
	const struct feed *in, double limit, const struct gpu_race *race, const struct stop *stop,
	struct arena *a, struct gpu_result *r, struct err *e);

/* What L2 fetches for a piece of a box. Rows of tiles come once, in order, whatever it is;
 * 256 bytes cost a stream from device memory 6 % on an H200: 4.17 TB/s against 4.45. */
enum { MAP_PROMOTION = GPU_PROMOTE_128 };

/* A PARAM_MAP as the driver takes it. In `a`. */
const struct gpu_tensor *built_map(struct arena *a, const struct program *p,
	const struct param *x);

#endif
