/* operands.h - the operands of an operation, and walks over them.
 *
 * A row of ops.def lists the operands of an operation as fields of struct role_op, in the order in which
 * they are read and then written. So whoever asks which numbers, values or fragments an operation uses
 * needs no case for each operation: role_visit() calls back for each operand, role_uses() for each fragment.
 */
#ifndef ROLE_OPERANDS_H
#define ROLE_OPERANDS_H

#include "role/role.h"

enum operand_kind {
	OPERAND_END,
	OPERAND_NUM,			/* const struct num * */
	OPERAND_ADDRESS,		/* the same: an address in shared memory that the operation writes */
	OPERAND_OWN_ADDRESS,		/* ... that no other thread reads in the same operation */
	OPERAND_VALUE,			/* const struct val * */
	OPERAND_USE,			/* struct frag_at: read */
	OPERAND_DEF,			/* struct frag_at: written */
	OPERAND_SUM,			/* struct frag_at: added to; role_adds() says whether that reads it */
	OPERAND_FRAG,			/* struct frag_at: neither read nor written */
	OPERAND_USE_FRAG,		/* const struct frag *: its version 0 is read */
	OPERAND_DEF_FRAG,		/* const struct frag *: its version 0 is written */
	OPERAND_OVER,			/* const struct frag *: the operation goes through its elements */
	OPERAND_NEEDS,			/* no field: a variable that the printed text uses */
	OPERAND_COUNTER,		/* enum var of a region, and `of` behind it */
	OPERAND_FLAG,			/* int: index of role_program.flags */
	OPERAND_RING,			/* int: index of role_program.rings */
	OPERAND_INT, OPERAND_INT64, OPERAND_BOOL, OPERAND_TYPE, OPERAND_OPERATOR, OPERAND_STRING,
	/* lists */
	OPERAND_LETS,			/* u.let.v */
	OPERAND_INDICES,		/* u.move.index */
	OPERAND_BOXES,			/* u.boxes.boxes */
	OPERAND_STEPS,			/* u.map.steps: each reads a value and may write a fragment */
};

struct role_operand {
	enum operand_kind kind;
	int offset;			/* in struct role_op; NEEDS: the variable */
	const char *path;		/* "flag.n" */
};

/* What to call for operands; NULL: nothing. Operands that are NULL are passed over. */
struct role_visitor {
	void *ctx;
	void (*num)(void *ctx, const struct num *x);
	/* An address that the operation writes; NULL: `num` is called for it. */
	void (*address)(void *ctx, const struct num *x, bool own);
	void (*value)(void *ctx, const struct val *v);
	void (*use)(void *ctx, struct frag_at at);	/* not for the fragments in values */
	void (*def)(void *ctx, struct frag_at at);
	void (*sum)(void *ctx, struct frag_at at);
	void (*needs)(void *ctx, enum var v);
};
void role_visit(const struct role_op *o, const struct role_visitor *v);

/* Does a product add to what its sum holds, at least in some iterations? */
bool role_adds(const struct role_op *o);

/* Which fragments an operation writes and reads, also inside of values; NULL: nothing is called. */
struct uses {
	void (*made)(void *ctx, struct frag_at at);
	/* all: an element of the result needs more than the same element of this fragment */
	void (*used)(void *ctx, struct frag_at at, bool all);
	void *ctx;
};
/* First all that it writes, then all that it reads. A sum that it adds to is both; a pin is neither. */
void role_uses(const struct role_op *o, const struct uses *u);

#endif
