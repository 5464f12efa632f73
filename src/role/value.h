/* value.h - elements of values, and what is computed of them.
 *
 * Fragments. A value in registers is a matrix of rows x columns spread over the lane's threads as its layout says
 * (target/target.h): block rb of rows for each warp, of which a thread has rows h, group j of columns, of which it has
 * elements e. A value without row axes (a column vector), without column axes (a row vector) or without any (a scalar)
 * is held by every thread that needs it.
 *
 * What threads have loaded but not yet written to shared memory is no matrix: FRAG_WORDS are words of memory, as many of
 * each thread, in the order in which it copies them.
 */
#ifndef ROLE_VALUE_H
#define ROLE_VALUE_H

#include "role/num.h"
#include "target/target.h"
#include "tile/program.h"

enum frag_kind { FRAG_FULL, FRAG_ROW, FRAG_COL, FRAG_SCALAR, FRAG_WORDS };

struct frag {
	const char *name;
	enum frag_kind kind;
	int64_t height, width;		/* of the part at hand */
	int64_t rows, cols;		/* ... filled up to complete blocks and groups, of all parts of the lane; WORDS: 1, and
					 * the words of a thread */
	const struct frag_layout *layout;
	int blocks;			/* of rows, of all warps */
	bool packed;			/* FULL, COL, in words as memory has them: of a 16-bit type two columns in a word */
	enum dtype type;
	int versions;			/* 0: one, of a single sTask */
	int buffer;			/* of the graph; NONE: a single sTask's own */
};

/* Groups of columns that a thread has a pair of. */
static inline int frag_groups(const struct frag *f)
{
	return (int)(f->cols / layout_group_cols(f->layout));
}

/* Columns of a part of the lane. */
static inline int64_t frag_part_cols(const struct frag *f)
{
	return f->cols / layout_parts(f->layout);
}

/* Columns in a word of a packed fragment: two, but for operands of 8 or 32 bits. */
static inline int frag_word_cols(const struct frag *f)
{
	return f->packed ? 32 / dtype_bits(f->type) : 2;
}

/* Words of a packed fragment that a thread has of one group of columns, in a row. */
static inline int frag_words_together(const struct frag *f)
{
	return f->layout->pair / frag_word_cols(f);
}

/* Words of a thread in so many groups of columns of one half of a block's rows. */
static inline int frag_half_words(const struct frag *f, int groups)
{
	return groups * f->layout->pair / (f->packed ? frag_word_cols(f) : 1);
}

/* ... and in a block of rows. */
static inline int frag_block_words(const struct frag *f)
{
	return frag_half_words(f, frag_groups(f)) * f->layout->halves;
}

/* ... and in all of it. */
static inline int frag_words(const struct frag *f)
{
	switch (f->kind) {
	case FRAG_FULL: return f->blocks * frag_block_words(f);
	case FRAG_ROW: return f->blocks * f->layout->halves;
	case FRAG_COL: return frag_half_words(f, frag_groups(f));
	case FRAG_WORDS: return (int)f->cols;
	case FRAG_SCALAR:
		break;
	}
	return 1;
}

/* Words of a step of so many columns, of a block of rows. */
static inline int frag_step_words(const struct frag *f, int depth)
{
	return frag_half_words(f, depth / f->layout->cols) * f->layout->halves;
}

/* A version of a fragment, or one without versions. */
struct frag_at {
	const struct frag *frag;
	int version;
};

enum val_kind {
	VAL_CONST,
	VAL_NUM,			/* an integer */
	VAL_FRAG,			/* the element at hand of a fragment */
	VAL_FLIPPED,			/* that of another column, in which the bits `flips` differ: all threads of the
					 * warp exchange at once, so it stands in no choice */
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
	bool unmasked;			/* OP, a `where`: its condition holds in unmasked iterations */
	double k;			/* CONST */
	int node;			/* NODE */
	int per;			/* FIELD */
	int together;			/* SHARED: so many neighbours of a thread, 1 or more, are read at once */
	int groups;			/* SHARED: ... in so many groups of columns, whose words follow each other; 0: one */
	bool same;			/* SHARED: ... which have one address */
	int rounds;			/* SHARED: ... as have so many times as many groups; 0: no more than these */
	struct frag_at frag;		/* FRAG, FLIPPED */
	int64_t flips;			/* FLIPPED */
	const struct num *num;		/* NUM, FIELD, GUARD, COLUMN; SHARED: its address */
	const struct num *less;		/* COLUMN */
	const struct val *arg[3];
};

/* Elements that one read of a SHARED value brings. */
static inline int val_at_once(const struct val *v)
{
	return v->together * (v->same || v->groups < 2 ? 1 : v->groups);
}

#endif
