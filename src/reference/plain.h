/* plain.h - a program as a plain kernel, straight from the program.
 *
 * The second reference, for sizes that the interpreter (tile/interp.h) is too slow for. It follows the interpreter node
 * by node: every value is an array of double, evaluated in program order, tile by tile; one that is read once is computed
 * where it is read, and has no array. Graph, plan and lowering have no part in it, so what it says of a kernel made
 * from a plan is an independent opinion.
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

/* A sample of a phase's tiles: those at the corners of its grid, and so many that are drawn at random, one of each part of
 * the grid. */
struct plain_sample {
	int64_t tiles;			/* 0: all tiles */
	uint64_t seed;
};

/* Each kernel takes a pointer for every tensor, in order, then one to scratch memory. Inputs are packed as their types
 * say; outputs and temporaries are double, zero at first. */
struct plain {
	struct buf text;
	struct plain_phase *phases;
	int nphases;
	int64_t scratch_bytes;		/* of each block */
	bool sampled;			/* not all tiles are computed */
	bool compares;			/* the text has kernels that compare */
};

/* What a thread of a comparison found (plain_put_comparisons); zeros for what there was not. A chunk is PLAIN_CHUNK
 * elements, one behind the other. */
struct plain_found {
	double greatest;		/* difference */
	double off, size, most;		/* squares: of differences, of the reference, of what is allowed */
	double worst;			/* the greatest share of what is allowed; of two kernels: a chunk's squared
					 * difference, relative to its squares */
	double got, want, allowed;	/* of the worst one */
	double chunk;			/* the greatest squared difference of a chunk, relative to the reference's squares */
	int64_t wrong, compared, at;	/* elements; where the worst one is */
	int64_t unlimited, telling;	/* elements that may be any number; numbers other than 0 that may not */
	int64_t unwritten;		/* NaN of both kernels */
};

enum {
	PLAIN_CHUNK = 32,
	PLAIN_COMPARERS = 256 * 256,	/* threads that compare, and parts of what they find */
};

/* All in `a`. Phases whose results no phase reads, nor adds to, are sampled. sample NULL: none is. ERR_LIMIT: a value of a
 * tile is too large to be held. */
NODISCARD enum err_code plain_print(const struct extents *x, unsigned flags, const struct plain_sample *sample, struct arena *a,
	struct plain *out, struct err *e);

/* Append kernels that compare elements of a type, to be run by PLAIN_COMPARERS threads: NAME is the type's.
 * compare_NAME(got, want, allowed, n, found): with those of the reference where that allows anything;
 * agree_NAME(got, other, n, found): with those of another kernel, in chunks. */
void plain_put_comparisons(struct plain *out, enum dtype t);

/* Tiles that suit it: values of moderate size, and tiles enough to go round. */
NODISCARD enum err_code plain_extents(struct arena *a, const struct program *p, struct extents *out, struct err *e);

#endif
