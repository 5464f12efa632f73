/* value.h - elements of values, and what is computed of them.
 *
 * Fragments. A value in registers is a matrix of rows x columns spread over the lane's
 * threads as the accumulator of a warpgroup's matrix instruction is: block rb of
 * 16 * warps rows, warp w in it 16 rows, thread t rows t / 4 and t / 4 + 8, columns
 * 8 j + 2 (t mod 4) and the next. A value without row axes (a column vector), without
 * column axes (a row vector) or without any (a scalar) is held by every thread that
 * needs it.
 */
#ifndef ROLE_VALUE_H
#define ROLE_VALUE_H

#include "role/num.h"
#include "tile/program.h"

enum frag_kind { FRAG_FULL, FRAG_ROW, FRAG_COL, FRAG_SCALAR };

struct frag {
	const char *name;
	enum frag_kind kind;
	int64_t height, width;		/* of the part at hand */
	int64_t rows, cols;		/* ... filled up to whole blocks and eights */
	int blocks;			/* row blocks: rows / (16 * warps) */
	bool packed;			/* FULL of a 16-bit type: pairs of columns in a word */
	enum dtype type;
	int versions;			/* 0: one, of a single sTask */
	int buffer;			/* of the graph; NONE: a single sTask's own */
};

/* A version of a fragment, or one without versions. */
struct frag_at {
	const struct frag *frag;
	int version;
};

enum val_kind {
	VAL_CONST,
	VAL_NUM,			/* a whole number of places */
	VAL_FRAG,			/* the element at hand of a fragment */
	VAL_NODE,			/* of a node, computed just before in the same loop */
	VAL_SHARED,			/* in shared memory */
	VAL_OP,
	VAL_CAST,
	VAL_FIELD,			/* of a packed word: field `num` mod `per` */
	VAL_GUARD,			/* arg[0] where `num`, else arg[1] */
	VAL_COLUMN,			/* is `num` (compare) arg[0] - less? A comparison in which the
					 * compiler knows the one side */
};

struct val {
	enum val_kind kind;
	enum dtype type;		/* of the value */
	enum dtype from;		/* SHARED: what memory holds; CAST: the argument's */
	enum op op;			/* OP */
	enum num_op compare;		/* COLUMN */
	double k;			/* CONST */
	int node;			/* NODE */
	int per;			/* FIELD */
	struct frag_at frag;		/* FRAG */
	const struct num *num;		/* NUM, FIELD, GUARD, COLUMN; SHARED: its address */
	const struct num *less;		/* COLUMN */
	const struct val *arg[3];
};

#endif
