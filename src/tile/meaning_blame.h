/* meaning_blame.h - what in a program makes its result depend on the tiles.
 *
 * For meaning.c alone: it found that a sample's outputs differ between tilings.
 */
#ifndef TILE_MEANING_BLAME_H
#define TILE_MEANING_BLAME_H

#include "tile/meaning_sample.h"

/* Fill *e at the line of the statement, with what to do about it. Memory is taken from `a` and kept. */
NODISCARD enum err_code meaning_blame(struct arena *a, const struct sample *s, struct err *e);

/* Do the outputs differ between tilings, of one axis at a time or of all at once? Scratch
 * memory comes from `a` and is given back. */
bool sample_differs(struct arena *a, const struct sample *s);

#endif
