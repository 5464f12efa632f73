/* plain.h - a program as a plain kernel, straight from the program.
 *
 * The second reference, for sizes that the interpreter (tile/interp.h) is too slow for. It follows the interpreter node
 * by node: every value is an array of double, evaluated in program order, tile by tile. Graph, plan and lowering have
 * no part in it, so what it says of a kernel made from a plan is an independent opinion.
 *
 * One text serves two compilers. As CUDA C++ each block takes output tiles one after the other; its
 * threads share the elements of each value, which lies in memory of the block's own. As
 * C, over what src/host compiles with a kernel, there is one block of one thread.
 */
#ifndef REFERENCE_PLAIN_H
#define REFERENCE_PLAIN_H

#include "base/buf.h"
#include "tile/extent.h"

enum { PLAIN_THREADS = 256 };

enum plain_flags {
	PLAIN_ROUND = 1 << 0,		/* as INTERP_ROUND */
};

/* A launch for each phase, in order. */
struct plain_phase {
	const char *entry;		/* the kernel's name */
	int64_t tiles;			/* blocks beyond this many have nothing to do */
};

/* Each kernel takes a pointer for every tensor, in order, then one to scratch memory. Inputs are packed as their types
 * say; outputs and temporaries are double, zero at first. */
struct plain {
	struct buf text;
	struct plain_phase *phases;
	int nphases;
	int64_t scratch_bytes;		/* of each block */
};

/* All in `a`. ERR_LIMIT: a value of a tile is too large to be held. */
NODISCARD enum err_code plain_print(const struct extents *x, unsigned flags, struct arena *a,
	struct plain *out, struct err *e);

/* Tiles that suit it: values of moderate size, and tiles enough to go round. */
NODISCARD enum err_code plain_extents(struct arena *a, const struct program *p, struct extents *out, struct err *e);

#endif
