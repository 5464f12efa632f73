/* make_program.h - short calls that build programs in unit tests. A refusal ends the test.
 *
 * Define HERE before the include for another source location than none. */
#ifndef TESTS_MAKE_PROGRAM_H
#define TESTS_MAKE_PROGRAM_H

#include <stdlib.h>

#include "tests/tap.h"
#include "tile/program.h"

#ifndef HERE
#define HERE NOWHERE
#endif

static inline void must_make(enum err_code code, const struct err *e)
{
	if (!code)
		return;
	printf("Bail out! %s\n", e->msg);
	exit(1);
}

/* The body of a function that calls `call`, which sets id and e, and returns id; of one that returns nothing. */
#define MAKE(call) { int id = NONE; struct err e; must_make((call), &e); return id; }
#define MAKE_VOID(call) { struct err e; must_make((call), &e); }

static inline int make_axis(struct program *p, const char *name, int64_t size)
	MAKE(program_axis(p, name, size, HERE, &id, &e))
static inline int make_tensor(struct program *p, enum tensor_role role, const char *name, enum dtype t, int rank,
	const int *dims)
	MAKE(program_tensor(p, role, name, t, rank, dims, HERE, &id, &e))
static inline int make_load(struct program *p, int tensor, const struct index_expr *index)
	MAKE(program_load(p, NULL, tensor, index, HERE, &id, &e))
static inline int make_mma(struct program *p, const char *name, int a, int b)
	MAKE(program_mma(p, name, a, b, HERE, &id, &e))
static inline int make_op(struct program *p, enum op op, int x, int y, int z)
	MAKE(program_op(p, op, (int[]){ x, y, z }, HERE, &id, &e))
static inline int make_cast(struct program *p, int value, enum dtype t)
	MAKE(program_cast(p, value, t, HERE, &id, &e))
static inline int make_reduce(struct program *p, enum op op, int value, int axis)
	MAKE(program_reduce(p, op, value, axis, HERE, &id, &e))
static inline int make_carry(struct program *p, const char *name, int naxes, const int *axes, double init)
	MAKE(program_carry(p, name, naxes, axes, init, HERE, &id, &e))
static inline int make_get(struct program *p, int carry)
	MAKE(program_get(p, carry, HERE, &id, &e))
static inline int make_const(struct program *p, double k)
	MAKE(program_const(p, k, HERE, &id, &e))
static inline int make_index(struct program *p, int axis)
	MAKE(program_index(p, axis, HERE, &id, &e))
static inline void make_set(struct program *p, int carry, int value)
	MAKE_VOID(program_set(p, carry, value, HERE, &e))
static inline void make_accumulate(struct program *p, int carry, int value)
	MAKE_VOID(program_accumulate(p, carry, value, HERE, &e))
static inline void make_store(struct program *p, int tensor, int value)
	MAKE_VOID(program_store(p, NULL, tensor, NULL, value, HERE, &e))
static inline void begin_loop_over(struct program *p, int naxes, const int *axes, const struct index_expr *upto)
	MAKE_VOID(program_loop_begin(p, naxes, axes, NULL, upto, HERE, &e))
static inline void end_loop_of(struct program *p)
	MAKE_VOID(program_loop_end(p, HERE, &e))
static inline void begin_task_of(struct program *p, const char *name)
	MAKE_VOID(program_task_begin(p, name, HERE, &e))
static inline void end_task_of(struct program *p)
	MAKE_VOID(program_task_end(p, HERE, &e))

#endif
