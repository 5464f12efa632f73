/* The number of operations on elements that an arithmetic operation of a kernel executes, by cost class. A
 * multiplication that only additions use is free, as each becomes an FMA; in a sum of two products both are free,
 * although a kernel fuses one. Masks are not counted in interior iterations. An operation of an sTask is one stage
 * after the row reductions whose results it needs, directly or through other fragments. */
#include <math.h>

#include "role/operands.h"
#include "sim/price.h"

enum {
	GUARD = 2,			/* a compare and a select; the compared index advances with the loop */
	BY_RECIPROCAL = 2,		/* a division whose divisor's reciprocal is there: it scales, then multiplies */
	FIELD = 2,			/* of a packed word: a shift left, a shift right */
	INTEGER_PAIR = 3,		/* two integers in one word: a selection of bytes, a shift, a combination of bits */
	E2M1_PAIR = 5,			/* ... with a shift and a combination more for sign and exponent */
	QUAD_FOLDS = 2,			/* shuffles in which the four threads of a row combine their results */
};

/* Is `factor` a floating-point multiplication that becomes an FMA with the addition `sum`? */
static bool is_fused(const struct val *sum, const struct val *factor)
{
	return sum->kind == VAL_OP && (sum->op == OP_ADD || sum->op == OP_SUB) &&
		factor->kind == VAL_OP && factor->op == OP_MUL && dtype_is_float(factor->type);
}

/* Is the value of all elements of a row that a thread has the same? Then what depends on it alone is computed once. */
static bool is_same_in_row(const struct val *v)
{
	return v->kind == VAL_CONST ||
		(v->kind == VAL_FRAG && (v->frag.frag->kind == FRAG_ROW || v->frag.frag->kind == FRAG_SCALAR));
}

/* Operations to compute v for n elements. */
static void count_operations(const struct cost_context *x, const struct val *v, double n, struct op_cost *s)
{
	switch (v->kind) {
	case VAL_CONST: case VAL_FRAG: case VAL_NODE:
	case VAL_SHARED:		/* reads are counted in price_op.c */
		return;
	case VAL_FLIPPED:		/* shuffles take the slots of shared memory's accesses */
		if (spread_bits(v->frag.frag->layout, v->flips))
			s->ops[0][CLASS_MOVE] += n;
		return;
	case VAL_NUM: case VAL_COLUMN:
		s->ops[0][CLASS_ALU] += n;
		return;
	case VAL_FIELD:
		s->ops[0][CLASS_ALU] += FIELD * n;
		break;
	case VAL_CAST:			/* of the conversions only those to few bits: a simplification */
		if (v->from != v->type)
			s->ops[0][dtype_is_float(v->type) && dtype_bits(v->type) < 32 ? CLASS_CVT : CLASS_ALU] += n;
		break;
	case VAL_GUARD:
		/* is there still a guard in the present kind of iteration? */
		if (v->num && !num_is(x->unmasked ? num_assume_interior(x->a, v->num) : v->num, 1))
			s->ops[0][CLASS_ALU] += GUARD * n;
		count_operations(x, v->arg[0], n, s);
		return;
	case VAL_OP:
		if (x->unmasked && v->unmasked) {
			count_operations(x, v->arg[1], n, s);
			return;
		}
		if (v->op == OP_DIV && dtype_is_float(v->type) && is_same_in_row(v->arg[1]))
			s->ops[0][CLASS_FMA] += BY_RECIPROCAL * n;
		else
			s->ops[0][op_class(v->op)] += n;
		break;
	}
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++) {
		count_operations(x, v->arg[i], n, s);
		if (is_fused(v, v->arg[i]))
			s->ops[0][CLASS_FMA] -= n;
	}
}

/* Operations to compute n pairs of v. What is the same in both elements is computed once for many. */
static void count_pairs(const struct val *v, double n, struct op_cost *s)
{
	if (v->kind == VAL_OP)
		s->ops[0][CLASS_FMA] += n;
	if (v->kind == VAL_FIELD || (v->kind == VAL_SHARED && v->from == DT_I8 && v->together > 1)) {
		s->ops[0][CLASS_ALU] += (v->type == DT_E2M1 ? E2M1_PAIR : INTEGER_PAIR) * n;
		s->ops[0][CLASS_FMA] += n;
		return;
	}
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		count_pairs(v->arg[i], n, s);
}

/* Does the step need no instruction of its own? If all its uses are additions that it fuses with, or selects that are
 * left out in interior iterations. A value has earlier steps (VAL_NODE) only as direct arguments. */
static bool is_free(const struct cost_context *x, const struct role_op *o, int step)
{
	const struct role_step *s = &o->u.map.steps.v[step];
	bool used = false;

	if (s->to)
		return false;
	for (int i = step + 1; i < o->u.map.steps.n; i++) {
		const struct val *v = o->u.map.steps.v[i].value;

		for (int k = 0; k < LEN(v->arg) && v->arg[k]; k++) {
			if (v->arg[k]->kind != VAL_NODE || v->arg[k]->node != s->node)
				continue;
			if (!is_fused(v, s->value) && !(x->unmasked && v->unmasked && k != 1))
				return false;
			used = true;
		}
	}
	return used;
}

/* A scan of rows that a warp or more has: each thread joins its neighbours one after the other, then what is before them.
 * The threads of a warp join their parts of a group of columns in steps of a shuffle, a join and a choice, and shuffle
 * twice more. Shuffles take the slots of shared memory's accesses. */
static void count_scan(const struct cost_context *x, const struct role_op *o, double n, struct op_cost *s)
{
	double parts = n / o->u.reduce.over->layout->pair, steps = log2(x->program->target->warp);
	enum op_class join = o->u.reduce.op == OP_CUMSUM ? CLASS_FMA : CLASS_ALU;

	s->ops[0][join] += 2 * n + steps * parts;
	s->ops[0][CLASS_ALU] += steps * parts;
	s->ops[0][CLASS_MOVE] += (steps + 2) * parts;
}

/* Each result takes a shuffle and a join for each bit of the number of threads that have parts of it. Those of quads are few, as
 * a thread has many elements for each: only their latency counts. */
static void count_exchange(const struct cost_context *x, const struct role_op *o, struct op_cost *s)
{
	const struct frag *f = o->u.reduce.over;
	const struct spread *across = o->u.reduce.along_rows ? &f->layout->row : &f->layout->col;
	double threads = fmin(across->mod, x->program->target->warp), folds = log2(threads);
	double results = o->u.reduce.along_rows ? (f->kind == FRAG_FULL ? (double)frag_groups(f) * f->layout->pair : 1) :
		f->kind == FRAG_FULL || f->kind == FRAG_ROW ? (double)f->blocks * f->layout->halves : 1;

	if (o->u.reduce.partial)
		return;
	s->lane += folds * (x->vector->latency + x->vector->chain);
	if (folds <= QUAD_FOLDS)
		return;
	results *= folds * x->warps * x->program->target->warp;
	s->ops[0][CLASS_MOVE] += results;
	s->ops[0][o->u.reduce.op == OP_SUM ? CLASS_FMA : CLASS_ALU] += results;
}

void price_arithmetic(const struct cost_context *x, const struct role_op *o, double n, struct op_cost *s)
{
	double *ops = s->ops[0];
	const struct frag *f;

	switch ((int)o->what) {
	case DO_MAP:
		for (int i = 0; i < o->u.map.steps.n; i++)
			if (!is_free(x, o, i))
				count_operations(x, o->u.map.steps.v[i].value, n, s);
		break;
	case DO_PACK:
		if (o->u.pack.pairs) {
			count_pairs(o->u.pack.value, n / 2, s);
			break;
		}
		count_operations(x, o->u.pack.value, n, s);
		if (dtype_bits(o->u.pack.to.frag->type) < 32 && o->u.pack.value->kind != VAL_CAST)
			ops[CLASS_CVT] += n;
		break;
	case DO_SUM_PRODUCT:
		f = o->u.sum_product.sum.frag;
		ops[CLASS_FMA] += n;
		/* A thread computes `a` once for each of its rows, and `b` once for each of its columns. */
		count_operations(x, o->u.sum_product.a, f->cols > 0 ? n / (double)f->cols : n, s);
		count_operations(x, o->u.sum_product.b, f->blocks > 0 ? n / f->blocks / f->layout->halves : n, s);
		break;
	case DO_REDUCE_SHARED:
		count_operations(x, o->u.reduce.value, n, s);
		ops[o->u.reduce.op == OP_SUM ? CLASS_FMA : CLASS_ALU] += n;
		break;
	case DO_REDUCE: case DO_SCAN:
		/* Each thread reduces its own elements of a row, then the threads of the row combine their results by
		 * shuffles. If the operand is a row vector only the latter is left. */
		count_operations(x, o->u.reduce.value, n, s);
		if (o->what == DO_SCAN && o->u.reduce.over->layout->col.mod >= x->program->target->warp)
			count_scan(x, o, n, s);
		else if (o->what == DO_SCAN)
			ops[CLASS_SCAN] += n;
		else if (o->u.reduce.over->kind == FRAG_FULL)
			ops[o->u.reduce.op == OP_SUM ? CLASS_FMA : CLASS_ALU] += n;
		if (o->what == DO_REDUCE)
			count_exchange(x, o, s);
		break;
	}
}

/* ---- stages -------------------------------------------------------------------------- */

/* A walk over the fragments of an operation. */
struct stage_walk {
	struct stages *known;
	int stage;			/* the latest of those read so far; then that of the results */
};

static void note_operand(void *ctx, struct frag_at at, bool all)
{
	struct stage_walk *w = ctx;

	(void)all;
	for (int i = w->known->v.n - 1; i >= 0; i--) {
		const struct frag_stage *f = &w->known->v.v[i];

		if (f->frag == at.frag) {
			w->stage = f->stage > w->stage ? f->stage : w->stage;
			return;
		}
	}
}

static void note_result(void *ctx, struct frag_at at)
{
	struct stage_walk *w = ctx;

	VEC_PUSH(w->known->a, &w->known->v, ((struct frag_stage){ at.frag, w->stage }));
}

int stage_of(struct stages *t, const struct role_op *o)
{
	struct stage_walk w = { t, 0 };

	if (role_op_info[o->what].cost != COST_STAGED)
		return 0;
	role_uses(o, NULL, note_operand, &w);
	int stage = w.stage;
	/* the result of a row reduction is known only after all of the row was read: one stage later */
	if ((o->what == DO_REDUCE || o->what == DO_SCAN) && o->u.reduce.over->kind == FRAG_FULL)
		w.stage++;
	role_uses(o, note_result, NULL, &w);
	return stage < STAGES ? stage : STAGES - 1;
}
