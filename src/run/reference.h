/* reference.h - the answer that kernels are compared with, at sizes beyond the interpreter.
 *
 * Runs the plain kernel of a program (reference/plain.h) on the attached device, or on this
 * machine's CPU.
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

/* The text; `t`: tiles to use, NULL for its own. */
NODISCARD enum err_code reference_emit(struct reference *r, const struct tiling *t, unsigned flags,
	struct err *e);

/* After reference_emit. data[t]: of inputs the packed elements, of outputs zeros, which
 * the answer replaces, all as double; temporaries NULL. `limit`: seconds. The device makes random
 * inputs itself (fill.h). */
NODISCARD enum err_code reference_on_device(struct reference *r, struct gpu *g, const struct feed *in,
	double limit, const struct stop *stop, struct err *e);
NODISCARD enum err_code reference_on_host(struct reference *r, void *const *data, double limit,
	const struct stop *stop, struct err *e);

#endif
