/* reference.h - the results that kernels are compared with, at sizes too large for the interpreter.
 *
 * Runs the plain kernel of a program (reference/plain.h) on the attached device or on the CPU.
 */
#ifndef RUN_REFERENCE_H
#define RUN_REFERENCE_H

#include "reference/plain.h"
#include "gpu/gpu.h"
#include "host/host.h"
#include "run/fill.h"

struct reference {
	struct arena arena;
	const struct program *program;	/* borrowed */
	struct plain plain;
	struct host_kernel *object;
};

/* *out is set first. `p` is borrowed until reference_free. */
void reference_new(struct mem *mem, const struct program *p, struct reference **out);
void reference_free(struct reference *r);

/* Print the plain kernel. t: its tile; NULL: the default one. sample: NULL: all tiles. */
NODISCARD enum err_code reference_emit(struct reference *r, const struct tiling *t, unsigned flags,
	const struct plain_sample *sample, struct err *e);

/* What compiles it. Lies in r. */
struct compile_job reference_job(struct reference *r, const struct gpu_info *on);
/* Its parts in a job: the binary, compiled unless the cache has it; doubles that its blocks need, and a launch of each
 * phase. buffers[t] is the one of tensor t; the last one, behind the tensors, has the blocks' doubles. */
NODISCARD enum err_code reference_binary(struct reference *r, struct gpu *g, const struct gpu_info *on,
	const struct stop *stop, struct gpu_binary *out, struct err *e);
int64_t reference_blocks(const struct reference *r, const struct gpu_info *on);
int64_t reference_steps(const struct reference *r, int64_t blocks, int binary, const int *buffers, struct arena *a,
	struct gpu_step *out);

/* After reference_emit. data[t]: packed elements of inputs; of outputs zeros, which the results replace, all as
 * double; NULL for temporaries. limit: seconds. Random inputs are made on the device (fill.h). */
NODISCARD enum err_code reference_on_device(struct reference *r, struct gpu *g, const struct feed *in,
	double limit, const struct stop *stop, struct err *e);
NODISCARD enum err_code reference_on_host(struct reference *r, void *const *data, double limit,
	const struct stop *stop, struct err *e);

#endif
