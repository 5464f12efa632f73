/* operands.h - the operands of an operation, and walks over them.
 *
 * A row of ops.def lists the operands of an operation as fields of struct role_op, in the order in which
 * they are read and then written, so that a walk over numbers, values or fragments needs no case for each operation:
 * role_visit() calls back for each operand, role_uses() for each fragment.
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
	OPERAND_SUM,			/* struct frag_at: added to, which reads it unless the sum begins at zero */
	OPERAND_FRAG,			/* struct frag_at: neither read nor written */
	OPERAND_USE_FRAG,		/* const struct frag *: its version 0 is read */
	OPERAND_DEF_FRAG,		/* const struct frag *: its version 0 is written */
	OPERAND_OVER,			/* const struct frag *: the operation goes through its elements */
	OPERAND_NEEDS,			/* no field: a variable that the printed text uses */
	OPERAND_COUNTER,		/* enum var of a region, and `of` behind it */
	OPERAND_FLAG,			/* int: index of role_program.flags */
	OPERAND_RING,			/* int: index of role_program.rings */
	OPERAND_STAGING,		/* int: index of role_program.stagings */
	OPERAND_OFFSET,			/* int: offset or number that only addresses and comparisons are made of */
	OPERAND_INT, OPERAND_INT64, OPERAND_BOOL, OPERAND_TYPE, OPERAND_OPERATOR, OPERAND_STRING,
	/* lists */
	OPERAND_LETS,			/* u.let.v; as a field: const struct num *, the value of one variable */
	OPERAND_INDICES,		/* u.move.index */
	OPERAND_BOXES,			/* u.boxes.boxes */
	OPERAND_STEPS,			/* u.map.steps: each reads a value and may write a fragment */
};

/* Is the field a const struct num *? */
static inline bool operand_is_number(enum operand_kind kind)
{
	return kind == OPERAND_NUM || kind == OPERAND_ADDRESS || kind == OPERAND_OWN_ADDRESS || kind == OPERAND_LETS;
}

struct role_operand {
	enum operand_kind kind;
	int offset;			/* in struct role_op; NEEDS: the variable */
	const char *path;		/* "flag.n" */
};

static inline const void *role_field(const struct role_op *o, const struct role_operand *x)
{
	return (const char *)o + x->offset;
}

/* Calls fn for each operand with its field. The elements of a list follow each other; their fields have kinds as if
 * the row of the operation named them one by one. The field of NEEDS is the variable, as an int. */
typedef void role_field_fn(void *ctx, enum operand_kind kind, void *field);
void role_each_field(struct role_op *o, role_field_fn *fn, void *ctx);

/* The flag that the operation names. */
int role_flag(const struct role_op *o);

/* A copy whose operands can be changed: it has lists of its own. The bodies of a region are still those of o. */
struct role_op *role_copy_op(struct arena *a, const struct role_op *o);
/* Removes it from the body, if it is there, and not from those inside. */
void role_remove_op(struct role_body *b, const struct role_op *o);
/* Does the value read an element of another column than that of the result? */
bool role_reads_flipped(const struct val *v);
/* Do the operations have the same settings: everything that is neither an operand, nor a body, nor a task? A field that
 * ops.def does not name as a number, value, fragment, flag, ring, staging, offset or string counts as a setting. */
bool role_same_settings(const struct role_op *x, const struct role_op *y);

/* An operand that is a number, a value or a fragment, or a variable that the printed text uses. */
struct operand {
	enum operand_kind kind;
	union {
		const struct num *num;		/* NUM, ADDRESS, OWN_ADDRESS */
		const struct val *value;	/* VALUE */
		struct frag_at frag;		/* USE, DEF, SUM; not those in values */
		enum var var;			/* NEEDS */
	};
};

/* Call fn for each of these. Operands that are NULL are left out. */
typedef void role_operand_fn(void *ctx, const struct operand *x);
void role_visit(const struct role_op *o, role_operand_fn *fn, void *ctx);

/* Call `made` for each fragment that an operation writes, then `used` for each that it reads, also in values; NULL:
 * nothing is called. A sum that it adds to is both; a pin is neither. all: an element of the result needs more than the
 * same element of this fragment. */
typedef void role_made_fn(void *ctx, struct frag_at at);
typedef void role_used_fn(void *ctx, struct frag_at at, bool all);
void role_uses(const struct role_op *o, role_made_fn *made, role_used_fn *used, void *ctx);

#endif
