/* interp_row.h - the arithmetic of the reference, on rows of doubles.
 *
 * Pure functions for interp.c alone: they know nothing of programs or boxes. Values of integer types are doubles that
 * hold integers in range; i32 arithmetic wraps around as on every machine.
 */
#ifndef TILE_INTERP_ROW_H
#define TILE_INTERP_ROW_H

#include "tile/program.h"

/* out[i] = op(arg[0][i * step[0]], ...) of an element-wise operation with a result
 * of type t. All three arguments can be read, whatever the arity. */
void row_apply(enum op op, enum dtype t, int64_t n, double *out, const double *const arg[3], const int64_t step[3]);

/* As a conversion instruction does: towards zero and saturating in integers, and
 * to nearest in floats, there only if `rounded`. */
double cast_value(enum dtype t, double x, bool rounded);

/* c[m][n] += a[m][k] * b[k][n], row-major and dense. */
void multiply_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c);
/* The same for integers, modulo 2^32; `row` is scratch of n. */
void multiply_i32(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c, uint32_t *row);

/* out[i] = what the reduction or scan makes of a[i] and b[i]; out may be a or b. */
void join_rows(enum op op, enum dtype t, int64_t n, double *out, const double *a, const double *b);

#endif
