#include "tile/ops.h"

#include <math.h>
#include <string.h>

/* Which types an operation takes, and the type that it gives. */
enum types {
	SPECIAL,			/* the code for the operation knows */
	ARITHMETIC,			/* any; i32 if all are i32, else f32 or f64 */
	FLOATS,				/* any; f32 or f64 */
	COMPARISON,			/* any; bool */
	CHOICE,				/* a bool and two values; their type if it is the same, else f32 or f64 */
	BITS,				/* i32 or bool, all the same; that */
	INTEGERS,			/* i32; i32 */
	FLOAT_TO_I32,			/* a float; i32 */
	I32_TO_FLOAT,			/* i32; f32 */
};

struct form {
	const char *value, *kernel;	/* see ops.def; NULL: none */
};

static const struct {
	const char *name;
	int arity;
	enum op_kind kind;
	enum op_class class;
	enum types types;
	struct form form;		/* of floats and bools */
	enum op pair;			/* of a reduction or scan */
	const char *call, *help;
} ops[OP_COUNT] = {
#define OP(id, name, arity, class) [OP_##id] = { name, arity, OP_SPECIAL, CLASS_##class, .pair = OP_COUNT },
#define ELEMENTWISE(id, name, arity, class, types, value, kernel, call, help) \
	[OP_##id] = { name, arity, OP_ELEMENTWISE, CLASS_##class, types, { #value, kernel }, OP_COUNT, call, help },
#define REDUCTION(id, name, class, pair, call, help) \
	[OP_##id] = { name, 1, OP_REDUCTION, CLASS_##class, ARITHMETIC, { 0 }, OP_##pair, call, help },
#define ERROR_BOUND(id, name, arity, value) \
	[OP_##id] = { name, arity, OP_ERROR_BOUND, CLASS_ALU, SPECIAL, { #value, NULL }, OP_COUNT, NULL, NULL },
#include "tile/ops.def"
};

static const struct form on_i32[OP_COUNT] = {
#define ON_I32(id, arity, value, kernel) [OP_##id] = { #value, kernel },
#include "tile/ops.def"
};

const char *op_name(enum op op)
{
	return ops[op].name;
}

int op_arity(enum op op)
{
	return ops[op].arity;
}

enum op_kind op_kind(enum op op)
{
	return ops[op].kind;
}

enum op_class op_class(enum op op)
{
	return ops[op].class;
}

enum op op_find(enum op_kind kind, const char *name)
{
	int i = 0;

	while (i < OP_COUNT && (ops[i].kind != kind || strcmp(name, ops[i].name) != 0))
		i++;
	return (enum op)i;
}

static bool all_are(int n, const enum dtype *t, enum dtype type)
{
	for (int i = 0; i < n; i++)
		if (t[i] != type)
			return false;
	return true;
}

/* Arithmetic is done in f64 if an argument is, else in f32. */
static enum dtype float_type(int n, const enum dtype *t)
{
	for (int i = 0; i < n; i++)
		if (t[i] == DT_F64)
			return DT_F64;
	return DT_F32;
}

bool op_result_type(enum op op, const enum dtype *t, enum dtype *out)
{
	int n = ops[op].arity;
	bool integers = all_are(n, t, DT_I32);

	switch (ops[op].types) {
	case SPECIAL:
		break;
	case ARITHMETIC:
		*out = integers ? DT_I32 : float_type(n, t);
		return true;
	case FLOATS:
		*out = float_type(n, t);
		return true;
	case COMPARISON:
		*out = DT_BOOL;
		return true;
	case CHOICE:
		*out = t[1] == t[2] ? t[1] : float_type(2, t + 1);
		return t[0] == DT_BOOL;
	case BITS:
		*out = t[0];
		return integers || all_are(n, t, DT_BOOL);
	case INTEGERS:
		*out = DT_I32;
		return integers;
	case FLOAT_TO_I32:
		*out = DT_I32;
		return dtype_is_float(t[0]);
	case I32_TO_FLOAT:
		*out = DT_F32;
		return integers;
	}
	BUG("operation %d has no type of its own", (int)op);
}

const char *op_kernel_text(enum op op, enum dtype t)
{
	return dtype_is_float(t) || t == DT_BOOL ? ops[op].form.kernel : on_i32[op].kernel;
}

const char *op_value_text(enum op op, bool integer)
{
	if (integer)
		return on_i32[op].value;
	return ops[op].form.kernel || ops[op].kind == OP_ERROR_BOUND ? ops[op].form.value : NULL;
}

enum op op_pair(enum op op)
{
	return ops[op].pair;
}

double op_identity(enum op op, enum dtype t)
{
	bool integer = t == DT_I32;

	if (ops[op].pair == OP_ADD)
		return 0;
	if (ops[op].pair == OP_MIN)
		return integer ? INT32_MAX : HUGE_VAL;
	return integer ? INT32_MIN : -HUGE_VAL;
}

const char *op_call(enum op op)
{
	return ops[op].call;
}

const char *op_help(enum op op)
{
	return ops[op].help;
}
