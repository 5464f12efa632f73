/* meaning.h - does a program say what it computes, or does that depend on its tiles?
 *
 * A loop handles a tile in each iteration, so a program can be written whose result is another one for every tile that
 * a plan takes: a carry that is halved in each iteration, a running maximum without the rescaling that belongs to it.
 * No reference could say what such a program means.
 *
 * The decision is by evaluation, because what is invariant is so by algebra, not by form: a sample of the program
 * (meaning_sample.h) is evaluated in float64 on a few random inputs, with its loops taken in one tile, in some and in
 * many, and the outputs must agree. The numbers are the same on every machine. A program that is refused does differ;
 * one that differs only at sizes or inputs that no sample has is accepted.
 */
#ifndef TILE_MEANING_H
#define TILE_MEANING_H

#include "tile/program.h"

/* ERR_INPUT, at the line that makes it so, if the results of the (finished) program depend
 * on the tiles of its loops. Scratch memory comes from `a` and is given back. */
NODISCARD enum err_code meaning_check(struct arena *a, const struct program *p, struct err *e);

#endif
