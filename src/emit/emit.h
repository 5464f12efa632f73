/* emit.h - kernels as text. A target is one file that defines one function.
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
	int task;			/* MAP: the first sTask that goes by it */
	int rank;			/* MAP, dimensions innermost first */
	int64_t dim[RANK_MAX], box[RANK_MAX];
	int64_t stride[RANK_MAX];	/* bytes, from one element of the dimension to the next */
	int swizzle;			/* bytes */
};

struct source {
	struct buf text;
	const char *entry;		/* name of the kernel function */
	VEC(struct param) params;
	int threads;
	int cluster;			/* blocks that must run together; 1 */
	int64_t shared_bytes;		/* dynamic, with room to align it to 1024 */
};

/* A matrix product of one instruction's size, on the threads of a warpgroup: d is 64 x
 * cols, as fragments are (lower/kernel.h), and 32 bytes of the contracted axis deep. Its
 * operands are descriptors of swizzled shared memory as the PTX ISA has them for wgmma. */
struct product_form {
	bool registers;			/* a: four words of each thread instead */
	bool a_rows, b_rows;		/* the contracted axis goes along rows, not columns */
	int cols;			/* 8 to 256 */
	enum dtype type;		/* of both operands */
};

/* What a target gives to the text that all share: a body in C over some names, which
 * docs/internals/adding.md lists, and what these names mean. */
struct target {
	const char *const *prelude;	/* in front of all, line by line, then NULL */
	const char *const *stamps;	/* and of a traced kernel; NULL: the prelude has them */
	const char *const *cluster;	/* likewise, where blocks form clusters */
	/* The statements of a function (float *d, u64 a, u64 b, int add): d = a b, plus d if
	 * `add`; where a is in registers, it is const u32 *a. */
	void (*product)(struct buf *o, const struct product_form *f);
	/* What follows the kernel, whose text and parameters are there; NULL: nothing. */
	void (*behind)(struct buf *o, const struct source *s);
};

/* What emit_cuda_sm90 and emit_host are made of. In `a`. */
NODISCARD enum err_code emit_text(const struct kernel *k, const struct target *target,
	struct arena *a, struct source *out, struct err *e);

/* CUDA C++ for sm_90a, that NVRTC and nvcc compile without headers of ours. In `a`. */
NODISCARD enum err_code emit_cuda_sm90(const struct kernel *k, struct arena *a,
	struct source *out, struct err *e);

/* The same body as C11 over "millrace_host.h" (src/host/millrace_host.h), which gives
 * each thread of a block its own thread of control. In `a`. */
NODISCARD enum err_code emit_host(const struct kernel *k, struct arena *a, struct source *out,
	struct err *e);

#endif
