/* emit.h - kernels as text. A target is one file here that defines one function.
 *
 * emit decides nothing: every wait, slot, layout and count comes from the kernel. Each
 * statement names its sTask and iteration. What a target cannot express is an error
 * with the user's line. */
#ifndef EMIT_EMIT_H
#define EMIT_EMIT_H

#include "lower/kernel.h"

/* One parameter of the kernel, in order. */
enum param_kind {
	PARAM_POINTER,			/* to the first element of a tensor */
	PARAM_MAP,			/* a tensor map: boxes of a tensor for the copy engine */
	PARAM_ORDER,			/* int[]: tiles in order of dealing (sim_deal) */
	PARAM_START,			/* int[]: where each block's tiles begin */
	PARAM_TRACE,			/* unsigned[]: stamps of all blocks (lower/stamps.h) */
};

struct param {
	enum param_kind kind;
	int tensor;			/* POINTER and MAP, else NONE */
	int task;			/* MAP: sTask whose boxes it describes */
	int rank;			/* MAP, dimensions innermost first */
	int64_t dim[RANK_MAX], box[RANK_MAX];
	int64_t stride[RANK_MAX];	/* bytes, of dimension 1 and up at [0] and up */
	int swizzle;			/* bytes */
};

struct source {
	struct buf text;
	const char *entry;		/* name of the kernel function */
	VEC(struct param) params;
	int threads;
	int64_t shared_bytes;		/* dynamic, with room to align it to 1024 */
};

/* CUDA C++ for sm_90a, that NVRTC and nvcc compile without headers of ours. In `a`. */
NODISCARD enum err_code emit_cuda_sm90(const struct kernel *k, struct arena *a,
	struct source *out, struct err *e);

/* The same body as C11 over "millrace_host.h" (src/host/millrace_host.h), which gives
 * each thread of a block its own thread of control. In `a`. */
NODISCARD enum err_code emit_host(const struct kernel *k, struct arena *a, struct source *out,
	struct err *e);

#endif
