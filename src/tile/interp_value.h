/* interp_value.h - the values of the reference: boxes of doubles, and walks over them.
 *
 * For interp.c alone. A box is a range along each of some axes; values of different boxes are brought together by axis:
 * an operand is read where the result stands, and is spread over the axes that it lacks. Memory is the caller's.
 */
#ifndef TILE_INTERP_VALUE_H
#define TILE_INTERP_VALUE_H

#include "tile/program.h"

/* A value as it stands: elements of a box, row-major. */
struct value {
	double *v;
	int n;
	int axis[RANK_MAX];
	int64_t lo[RANK_MAX], len[RANK_MAX];
};

int64_t value_elements(const struct value *v);
void value_add_axis(struct value *v, int axis, int64_t lo, int64_t len);
/* Copy from `from` into all of `to`; on their common axes the box of `from` contains that of `to`. */
void value_copy(const struct value *to, const struct value *from);
/* Copy all of `from` into `to`, whose box contains it. */
void value_put(const struct value *to, const struct value *from);

enum { OPERANDS = 4 };			/* a result and three arguments */

/* Goes over the rows (innermost axes) of several boxes at once, by offsets. */
struct walk {
	int n;				/* axes; the last is the row */
	int64_t len[RANK_MAX], pos[RANK_MAX];
	int64_t step[OPERANDS][RANK_MAX];
	int64_t at[OPERANDS];
};

/* Operand 0 is the result: the walk covers its box. */
void walk_begin(struct walk *w, const struct value *out);
/* Operand k is an argument: its box holds that of the result on the axes it has. */
void walk_operand(struct walk *w, int k, const struct value *out, const struct value *arg);
/* After the last operand: make rows as long as they can be; those of the result are
 * dense. There is at least one axis then. */
void walk_fold(struct walk *w);
/* To the next row; false after the last. */
bool walk_next(struct walk *w);

#endif
