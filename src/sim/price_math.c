/* Operations on elements that an arithmetic operation of a kernel takes, by what they cost. */
#include "sim/price.h"

enum {
	GUARD = 2,			/* a compare and a select; what is compared goes along with the loop */
	FIELD = 2,			/* of a packed word: a shift to the left, one to the right */
	FOLDS = 2,			/* rounds in which the threads of a row join what each has */
};

/* Is that asked, in the text at hand? */
static bool is_asked(const struct payer *x, const struct num *when)
{
	return when && !num_is(x->clear ? num_assume_interior(x->a, when) : when, 1);
}

/* Multiplies an addition that has no other use for it: one instruction. */
static bool fuses(const struct val *sum, const struct val *factor)
{
	return sum->kind == VAL_OP && (sum->op == OP_ADD || sum->op == OP_SUB) &&
		factor->kind == VAL_OP && factor->op == OP_MUL && dtype_is_float(factor->type);
}

static void count_cast(const struct val *v, double n, struct spent *s)
{
	bool narrow = dtype_is_float(v->type) && dtype_bits(v->type) < 32;

	if (v->from != v->type)
		s->ops[0][narrow ? CLASS_CVT : CLASS_ALU] += n;
}

/* A value, of n elements. */
static void count(const struct payer *x, const struct val *v, double n, struct spent *s)
{
	bool clear = x->clear && v->unmasked;

	switch (v->kind) {
	case VAL_CONST: case VAL_FRAG: case VAL_NODE:
	case VAL_SHARED:		/* price_op.c has what reading takes */
		return;
	case VAL_NUM: case VAL_COLUMN:
		s->ops[0][CLASS_ALU] += n;
		return;
	case VAL_FIELD:
		s->ops[0][CLASS_ALU] += FIELD * n;
		break;
	case VAL_CAST:
		count_cast(v, n, s);
		break;
	case VAL_GUARD:
		if (is_asked(x, v->num))
			s->ops[0][CLASS_ALU] += GUARD * n;
		count(x, v->arg[0], n, s);
		return;
	case VAL_OP:
		if (clear) {
			count(x, v->arg[1], n, s);
			return;
		}
		s->ops[0][op_class(v->op)] += n;
		break;
	}
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++) {
		count(x, v->arg[i], n, s);
		if (fuses(v, v->arg[i]))
			s->ops[0][CLASS_FMA] -= n;
	}
}

/* Is the step only there for an addition, which it is one instruction with? Or only for a choice
 * that is not made in clear turns? */
static bool is_free(const struct payer *x, const struct role_op *o, int step)
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
			if (!fuses(v, s->value) && !(x->clear && v->unmasked && k != 1))
				return false;
			used = true;
		}
	}
	return used;
}

void price_map(const struct payer *x, const struct role_op *o, double n, struct spent *s)
{
	for (int i = 0; i < o->u.map.steps.n; i++)
		if (!is_free(x, o, i))
			count(x, o->u.map.steps.v[i].value, n, s);
}

void price_pack(const struct payer *x, const struct role_op *o, double n, struct spent *s)
{
	count(x, o->u.pack.value, n, s);
	if (dtype_bits(o->u.pack.to.frag->type) < 32 && o->u.pack.value->kind != VAL_CAST)
		s->ops[0][CLASS_CVT] += n;
}

void price_sum_product(const struct payer *x, const struct role_op *o, double n, struct spent *s)
{
	const struct frag *f = o->u.sum_product.sum.frag;

	s->ops[0][CLASS_FMA] += n;
	count(x, o->u.sum_product.a, f->cols > 0 ? n / (double)f->cols : n, s);
	count(x, o->u.sum_product.b, f->blocks > 0 ? n / f->blocks / f->layout->halves : n, s);
}

/* Each thread its own part of a row, one after the other; then the threads of the row. Over a row
 * vector only that. */
void price_reduce(const struct payer *x, const struct role_op *o, double n, struct spent *s)
{
	const struct frag *f = o->u.reduce.over;

	count(x, o->u.reduce.value, n, s);
	if (o->what == DO_SCAN)
		s->ops[0][CLASS_SCAN] += n;
	else if (f->kind == FRAG_FULL)
		s->ops[0][o->u.reduce.op == OP_SUM ? CLASS_FMA : CLASS_ALU] += n;
	if (o->what == DO_REDUCE && !o->u.reduce.part && !o->u.reduce.along_rows)
		s->lane += FOLDS * (x->vector->latency + x->vector->chain);
}
