/* length.h - the values of lengths of loops, where the tensors that they come from are at hand.
 *
 * A length is computed from elements of inputs and of temporaries of earlier phases, at indices that are the same for
 * all of a tile (program_loop_length), so that it needs no task: the interpreter, and whoever wants to know how long the
 * runs of a kernel were, compute it here.
 */
#ifndef TILE_LENGTH_H
#define TILE_LENGTH_H

#include "tile/program.h"

/* Reads tensors; part of a struct of the caller's. */
struct length_reader {
	double (*element)(const struct length_reader *r, int tensor, int64_t at);
	bool wraps;			/* indices wrap around (samples of a program); else what is outside is 0 */
};

/* The value of the loop's length, without its expression, where axis a stands at pos[a]. */
int64_t length_value(const struct program *p, int loop, const int64_t *pos, const struct length_reader *r);

#endif
