/* index.h - quasi-affine index expressions over axes.
 *
 * k + sum of coef * ((axis / div) mod mod): what a load may use to address a dimension of a tensor, and a loop as a
 * bound. Enough for strides, padding and offsets (convolution), grouped heads (h / group) and chunks; div and mod round
 * towards minus infinity. In a load the element of an i32 value may be added: rows that a table names (paged caches).
 */
#ifndef TILE_INDEX_H
#define TILE_INDEX_H

#include "base/buf.h"
#include "base/err.h"

enum { INDEX_TERMS = 8 };

struct index_term {
	int axis;
	int64_t coef, div, mod;		/* div >= 1; mod 0: none */
};

struct index_expr {
	int64_t k;
	int n;
	struct index_term term[INDEX_TERMS];
	/* 1 + the node of the program whose element is added to this sum; 0: none. The functions below that evaluate or
	 * bound an expression leave it out. */
	int value;
};

/* Inclusive range of an expression when each axis runs over a box. */
struct index_range {
	int64_t lo, hi;
};

struct index_expr index_const(int64_t k);
struct index_expr index_axis(int axis);
/* The element of a node's value. */
struct index_expr index_of_value(int node);
/* The node whose element is added; NONE (-1): there is none. */
static inline int index_value(const struct index_expr *x)
{
	return x->value - 1;
}
/* Sum with like terms merged; ERR_LIMIT if there are too many terms, or values. */
NODISCARD enum err_code index_add(const struct index_expr *a, const struct index_expr *b,
	struct index_expr *out, struct err *e);
NODISCARD enum err_code index_scale(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e);
/* Floor division and modulo by a positive constant, of a single plain term (axis,
 * or axis / d) or where every part divides evenly; otherwise ERR_INPUT, as for products with a value. */
NODISCARD enum err_code index_div(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e);
NODISCARD enum err_code index_mod(const struct index_expr *a, int64_t by, struct index_expr *out, struct err *e);

/* Value where axis a stands at pos[a]. */
int64_t index_eval(const struct index_expr *x, const int64_t *pos);
/* Range where axis a runs over [lo[a], hi[a]]. */
struct index_range index_bounds(const struct index_expr *x, const int64_t *lo, const int64_t *hi);
bool index_uses(const struct index_expr *x, int axis);
/* As the user would write it, without the value; names[a] is the name of axis a. */
void index_print(const struct index_expr *x, const char *const *names, struct buf *out);

#endif
