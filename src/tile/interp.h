/* interp.h - the reference answer: a bound program on the CPU in float64.
 *
 * Plain and slow on purpose. Every tile of every phase is evaluated in program order, each value as an array of double.
 * Casts to float types do nothing unless INTERP_ROUND is given, so that the result is the mathematical answer on the
 * given inputs; integers and packed words are exact.
 */
#ifndef TILE_INTERP_H
#define TILE_INTERP_H

#include "tile/extent.h"

enum interp_flags {
	INTERP_ROUND = 1 << 0,		/* round at every cast, load and store as stored */
};

/* data[t]: row-major elements of tensor t as double: inputs are read, outputs and
 * temporaries (sized by tensor_elements) written; all are the caller's. Scratch
 * memory comes from `a` and is given back. ERR_INTERRUPTED when `stop` asks. */
NODISCARD enum err_code interp_run(struct arena *a, const struct extents *x, double *const *data,
	unsigned flags, const struct stop *stop, struct err *e);

/* For a program with shortened axes, see meaning_sample.h. */
struct interp_sample {
	/* Of each axis in the program itself. A load gives zero outside what its tensor has
	 * there, and within wraps around what the tensor has here. */
	const int64_t *size;
	/* carry[c], row-major over the carry's axes, takes what carry c holds whenever the
	 * region of its declaration ends an iteration, where its tile stands. */
	double *const *carry;
};
NODISCARD enum err_code interp_sample(struct arena *a, const struct extents *x,
	double *const *data, const struct interp_sample *sample, struct err *e);

/* The extents that the reference uses when the caller has none: tiles of at most 128 along grid and loop axes. */
NODISCARD enum err_code interp_extents(struct arena *a, const struct program *p, struct extents *out, struct err *e);

#endif
