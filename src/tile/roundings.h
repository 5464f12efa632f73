/* roundings.h - how far a right kernel's results may be from the reference.
 *
 * The reference computes in double precision and rounds nothing. A kernel computes in f32, sums in an order of its
 * own, and rounds where the program converts. This file makes of a program another one that computes the same values,
 * and next to each value a bound of what these roundings can have done to it: a running error analysis (N. J. Higham,
 * Accuracy and Stability of Numerical Algorithms, section 3.3). As it is a program, the interpreter and the plain
 * kernel evaluate it like any other, on the same tiles. docs/internals/reference.md has the formulas and their sources.
 */
#ifndef TILE_ROUNDINGS_H
#define TILE_ROUNDINGS_H

#include "tile/program.h"

/* The program *out, in `a`, borrows from p. Nodes, tensors and carries of p keep their ids. Values that are greater
 * than their type allows become what the type makes of them, and constants are those of f32. For each output t of p,
 * allowance[t] is another output, of f64: the greatest difference of an element that roundings explain. Where it is 0
 * the program has stored nothing; of what is exact it is a number below all others. NONE for other tensors. */
void program_with_roundings(struct arena *a, const struct program *p, const struct program **out, int **allowance);

#endif
