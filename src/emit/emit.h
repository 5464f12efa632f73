/* emit.h - prints kernels. A printer is one file that defines one function.
 *
 * emit decides nothing: a role program (role/role.h), which is made for the target (target/target.h) that it names, has
 * all of the kernel. Each task is printed with its sTask and iteration. */
#ifndef EMIT_EMIT_H
#define EMIT_EMIT_H

#include "role/role.h"

/* One parameter of the kernel, in order. */
enum param_kind {
	PARAM_POINTER,			/* to the first element of a tensor */
	PARAM_MAP,			/* a tensor map: boxes of a tensor for the copy engine */
	PARAM_ORDER,			/* int[]: tiles in order of assignment (plan_assign_tiles) */
	PARAM_START,			/* int[]: where each block's tiles begin; or the counter by which blocks take tiles */
	PARAM_SIZE,			/* int: the size of an axis that is known at launch */
	PARAM_TRACE,			/* unsigned[]: stamps of all blocks (lower/stamps.h) */
};

struct param {
	enum param_kind kind;
	int tensor;			/* POINTER and MAP, else NONE */
	int axis;			/* SIZE */
	int task;			/* MAP: the first sTask that goes by it */
	int rank;			/* MAP, dimensions innermost first */
	int64_t dim[RANK_MAX], box[RANK_MAX];
	int64_t stride[RANK_MAX];	/* bytes, from one element of the dimension to the next */
	unsigned dim_of[RANK_MAX], stride_of[RANK_MAX];	/* bits of the tensor's dimensions, as in struct role_map */
	int64_t dim_factor[RANK_MAX], stride_factor[RANK_MAX];
	int swizzle;			/* bytes */
};

struct source {
	struct buf text;
	VEC(size_t) definitions;	/* where in it each definition begins that other kernels may have as well, and the
					 * kernel behind them */
	const char *entry;		/* name of the kernel function */
	/* it may be launched before the kernel in front has ended: it waits for that itself */
	bool waits;
	VEC(struct param) params;
	int threads;
	int cluster;			/* blocks that must run together; 1 */
	int64_t shared_bytes;		/* dynamic, with space to align it if that is necessary */
};

/* What a target adds to the body, which all targets share: the definitions of the names in it, which
 * docs/internals/adding.md lists. */
struct printer {
	/* ONLY_SM_90 or the like (print.h): the lines behind others are left out; NULL: there are none */
	const char *machine;
	const char *const *prelude;	/* in front of all, line by line, then NULL */
	const char *const *stamps;	/* and of a traced kernel; NULL: the prelude has them */
	const char *const *cluster;	/* likewise, where blocks form clusters */
	const char *const *parts;	/* likewise, where these add up what each has */
	const char *const *additions;	/* likewise, where elements are added to in memory */
	const char *const *taken;	/* likewise, where blocks take tiles by a counter */
	const char *const *fresh;	/* likewise, where what an accumulator holds is of no use */
	const char *const *skips;	/* likewise, where warps compute only some columns */
	const char *const *recomputed;	/* likewise, where operations compute coordinates again */
	const char *const *vectors;	/* likewise, where several words are read or stored at once */
	const char *const *staged;	/* likewise, where loads leave words in registers */
	const char *const *dma;	/* likewise, where threads copy to shared memory without registers */
	const char *const *transposes;	/* likewise, where matrix_transpose is called; NULL if no target has it */
	const char *const *rare;	/* likewise, where op_sin, op_cos or op_popcount is called */
	const char *const *nibbles;	/* likewise, where elements of 4 bits are made */
	const char *const *matrices;	/* likewise, where operands are fetched in matrices */
	const char *const *pairs;	/* likewise, where two elements are computed at once */
	const char *const *ordered_pairs;	/* ... which compilers must not move */
	const char *const *priority;	/* likewise, where warps have a priority */
	bool waits;			/* LAST_PHASE_WAIT waits: source.waits */
	/* The statements of a function (float *d, u64 a, u64 b, int add): d = a b, plus d if
	 * `add`; where an operand is in registers, it is const u32 *. */
	void (*product)(struct buf *o, const struct product_form *f);
	/* Print what follows the kernel, whose text and parameters are known; NULL: nothing. */
	void (*behind)(struct buf *o, const struct source *s);
};

/* Print a kernel with this printer; allocated in `a`. emit_cuda and emit_host call it. */
void emit_text(const struct role_program *r, const struct printer *printer, struct arena *a, struct source *out);

/* Append a kernel to a text of several as one translation unit: without the definitions that one of the `n` kernels
 * before it has. */
void emit_join(struct buf *out, const struct source *const *before, int n, const struct source *s);

/* CUDA C++ for sm_90a or sm_80, as the program's target says, which NVRTC and nvcc compile without headers of
 * Millrace. In `a`. */
void emit_cuda(const struct role_program *r, struct arena *a, struct source *out);

/* The same for gfx942, which clang compiles as HIP and as C, without headers or a device library. In `a`. */
void emit_hip(const struct role_program *r, struct arena *a, struct source *out);

/* The same body as C11 over "millrace_host.h" (src/host/millrace_host.h), which gives
 * each thread of a block its own thread of control. In `a`. */
void emit_host(const struct role_program *r, struct arena *a, struct source *out);

#endif
