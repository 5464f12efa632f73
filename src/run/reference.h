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

/* Print the plain kernel. t: its tile; NULL: the default one. */
NODISCARD enum err_code reference_emit(struct reference *r, const struct tiling *t, unsigned flags, struct err *e);

/* After reference_emit. data[t]: packed elements of inputs; of outputs zeros, which the results replace, all as
 * double; NULL for temporaries. limit: seconds. Random inputs are made on the device (fill.h). */
NODISCARD enum err_code reference_on_device(struct reference *r, struct gpu *g, const struct feed *in,
	double limit, const struct stop *stop, struct err *e);
NODISCARD enum err_code reference_on_host(struct reference *r, void *const *data, double limit,
	const struct stop *stop, struct err *e);

#endif
