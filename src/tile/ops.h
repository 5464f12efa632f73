/* ops.h - the operations on tiles and their properties: the table of ops.def as functions.
 *
 * There are four kinds. An element-wise operation computes each element of its result from those of its arguments;
 * a reduction or scan joins elements along an axis, pair by pair; each other operation (loads, products, casts) has
 * a meaning that the code for it knows; and steps of bounds of errors, which only roundings.h makes, are element-wise in
 * double precision. The table holds all properties of the first two kinds, so that a new
 * element-wise operation is one row (docs/internals/adding.md).
 */
#ifndef TILE_OPS_H
#define TILE_OPS_H

#include "base/base.h"
#include "tile/dtype.h"

enum op {
#define OP(id, name, arity, class) OP_##id,
#include "tile/ops.def"
	OP_COUNT
};

enum op_kind { OP_SPECIAL, OP_ELEMENTWISE, OP_REDUCTION, OP_ERROR_BOUND };

enum op_class { CLASS_FREE, CLASS_FMA, CLASS_ALU, CLASS_SFU, CLASS_CVT, CLASS_DIV, CLASS_REDUCE,
	CLASS_SCAN, CLASS_MOVE, CLASS_MMA, CLASS_COUNT };

const char *op_name(enum op op);
int op_arity(enum op op);
enum op_kind op_kind(enum op op);
enum op_class op_class(enum op op);
/* The operation of that kind and name ("add", "exp2", ...), or OP_COUNT. */
enum op op_find(enum op_kind kind, const char *name);

/* The type of an element-wise operation, reduction or scan on arguments of these types, op_arity of them; false if it
 * does not take them. */
bool op_result_type(enum op op, const enum dtype *args, enum dtype *out);
/* The text of an element-wise operation with a result of type t in a kernel, over $0, $1 and $2; NULL if there is
 * none. */
const char *op_kernel_text(enum op op, enum dtype t);
/* Its value in double precision, as C over x, y and z: of i32, or of any other type; NULL if there is none. */
const char *op_value_text(enum op op, bool integer);

/* Of a reduction or scan: the element-wise operation that joins two elements, and the value from which it starts. */
enum op op_pair(enum op op);
double op_identity(enum op op, enum dtype t);

/* How a script writes an element-wise operation, reduction or scan, and what help says of it (NULL: nothing). */
const char *op_call(enum op op);
const char *op_help(enum op op);

#endif
