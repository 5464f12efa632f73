/* Bounds of what sums do: products, reductions and scans (see roundings.h).
 *
 * A sum of n terms with partial sums s, in any order, is off by at most n u max |s|, u the unit of rounding. For sums
 * in another order than the reference's the partial sums are bounded by the result and by FACTOR standard deviations of
 * terms whose signs do not know of each other (N. J. Higham, T. Mary, A New Approach to Probabilistic Rounding Error
 * Analysis, 2019); few terms by all of them.
 *
 * Errors of the terms add up. Where they are of conversions of the elements alone, they do as independent numbers do:
 * by their squares. A conversion is off by at most the bound and equally likely by less, so that its standard deviation
 * is the bound over the root of 3, and FACTOR is 7 of these. But values of a row that differ by less than a rounding step,
 * because most of each is the same number, are converted with nearly the same error. So twice as much is allowed for
 * conversions, which for up to 64 terms is all of their errors. Squares of products are bounded by fourth powers of the
 * factors (Cauchy, Schwarz), which costs a sum along each row instead of one more product. */
#include "tile/roundings_build.h"

#include <math.h>

#include "tile/program_build.h"

static const double FACTOR = 4, CONVERSIONS_FACTOR = 8;

/* The tensor cores of Hopper sum up to 32 products of 8-bit floats and what they are added to at a time, in 14 bits:
 * each of these terms loses what is below 2^-13 of the greatest one (DeepSeek-V3 Technical Report, 2024, section
 * 3.5.2). What is lost has the sign of its term and is half of that on average, and terms that are equal lose the same:
 * no factor of random sign makes it less. */
static const double UNIT_F8 = 0x1p-13, TOGETHER_F8 = 16;

static int apply(struct roundings *r, enum op op, int x, int y, int z)
{
	return rounding_apply(r, op, DT_F64, x, y, z);
}

/* A reduction or scan of a value along an axis. */
static int along(struct roundings *r, enum op op, enum dtype type, int value, int axis)
{
	int id = rounding_apply(r, op, type, value, NONE, NONE), n = 0;
	struct node *x = &r->to->nodes.v[id];

	x->ref = axis;
	x->partial = r->partial;
	for (int i = 0; i < x->naxes; i++)
		if (op_class(op) == CLASS_SCAN || x->axis[i] != axis)
			x->axis[n++] = x->axis[i];
	x->naxes = n;
	return id;
}

/* Some axes, over which a sum goes. */
struct contracted {
	int n, axis[RANK_MAX];
};

static int sum_over(struct roundings *r, int value, const struct contracted *c)
{
	for (int i = 0; i < c->n; i++)
		if (node_has_axis(&r->to->nodes.v[value], c->axis[i]))
			value = along(r, OP_SUM, DT_F64, value, c->axis[i]);
		else			/* alike for all positions */
			value = apply(r, OP_MUL, value, along(r, OP_SUM, DT_F64, rounding_ones(r, c->axis[i]),
				c->axis[i]), NONE);
	return value;
}

/* The root of the sum of squares. */
static int norm(struct roundings *r, int value, const struct contracted *c)
{
	if (value == NONE)
		return NONE;
	return apply(r, OP_SQRT, sum_over(r, apply(r, OP_MUL, value, value, NONE), c), NONE, NONE);
}

/* The fourth root of the sum of fourth powers. */
static int norm4(struct roundings *r, int value, const struct contracted *c)
{
	return value == NONE ? NONE : apply(r, OP_SQRT, norm(r, apply(r, OP_MUL, value, value, NONE), c), NONE, NONE);
}

static int times(struct roundings *r, int x, int y)
{
	return x == NONE || y == NONE ? NONE : apply(r, OP_MUL, x, y, NONE);
}

/* How many terms there are, and by how much a sum of terms may be greater than the root of their squares' sum. */
static int count_terms(struct roundings *r, const struct contracted *c)
{
	return sum_over(r, rounding_const(r, 1), c);
}

static int factor_of(struct roundings *r, int count, double most)
{
	return apply(r, OP_MIN, apply(r, OP_SQRT, count, NONE, NONE), rounding_const(r, most), NONE);
}

/* The errors of the summation itself: of `count` terms, whose squares have the root `size`. Partial sums are as great
 * as the value at the ends. */
static int of_summation(struct roundings *r, int count, int size, int ends, double unit, int error)
{
	bool f8 = unit == UNIT_F8;
	int terms = f8 ? apply(r, OP_MUL, count, rounding_const(r, 1 + 1 / TOGETHER_F8), NONE) : count;
	int more = apply(r, OP_ADD, terms, rounding_const(r, 1), NONE);
	int steps = apply(r, OP_MUL, more, rounding_const(r, unit), NONE);
	int most = apply(r, OP_ADD, ends, apply(r, OP_MUL, factor_of(r, count, f8 ? 1 : FACTOR), size, NONE), NONE);

	return apply(r, OP_ROUNDED, most, steps,
		error == NONE ? rounding_const(r, 0) : error);
}

/* products -------------------------------------------------------------------- */

static bool is_f8(const struct roundings *r, int node)
{
	enum dtype t = r->from->nodes.v[node].type;

	return t == DT_E4M3 || t == DT_E5M2;
}

/* An operand's bound; errors of sums, which elements have in common, count as such. */
static struct deviation operand(struct roundings *r, int arg)
{
	struct deviation d = rounding_argument(r, &r->from->nodes.v[arg], arg);

	if (!d.fresh)
		d = (struct deviation){ rounding_total(r, d), NONE, true };
	return d;
}

/* How many products a sum has at most: those of the instance, and if it is a carry's those of all iterations. */
static double terms_at_most(const struct roundings *r, const struct node *n, const struct contracted *c)
{
	const struct program *p = r->from;
	double terms = 1;

	for (int i = 0; i < c->n; i++)
		terms *= (double)p->axes.v[c->axis[i]].size;
	for (int l = n->ref == NONE ? NONE : p->tasks.v[n->task].loop; l != NONE; l = p->loops.v[l].parent)
		for (int i = 0; i < p->loops.v[l].naxes; i++)
			if (!ints_hold(c->axis, c->n, p->loops.v[l].axis[i]))
				terms *= (double)p->axes.v[p->loops.v[l].axis[i]].size;
	return terms;
}

/* What the errors of the operands do: what is in common adds up, what is not does by the squares. */
static struct deviation of_operands(struct roundings *r, const struct node *n, const struct contracted *c)
{
	struct deviation x = operand(r, n->arg[0]), y = operand(r, n->arg[1]), d = { NONE, NONE, false };
	double errors = terms_at_most(r, n, c);
	int a = r->value[n->arg[0]], b = r->value[n->arg[1]], lone_a, lone_b;

	if (y.joint != NONE)
		d.joint = rounding_sum(r, d.joint, times(r, norm(r, a, c), norm(r, y.joint, c)));
	if (x.joint != NONE)
		d.joint = rounding_sum(r, d.joint, times(r, norm(r, x.joint, c), norm(r, b, c)));
	d.joint = rounding_sum(r, d.joint, times(r, norm(r, rounding_total(r, x), c),
		norm(r, rounding_total(r, y), c)));
	lone_a = x.lone == NONE ? NONE : times(r, norm4(r, x.lone, c), norm4(r, b, c));
	lone_b = y.lone == NONE ? NONE : times(r, norm4(r, a, c), norm4(r, y.lone, c));
	d.lone = lone_a == NONE || lone_b == NONE ? rounding_sum(r, lone_a, lone_b) :
		apply(r, OP_HYPOT, lone_a, lone_b, NONE);
	if (lone_a != NONE && lone_b != NONE)	/* two errors in each term */
		errors *= 2;
	d.lone = times(r, d.lone, rounding_const(r, fmin(sqrt(errors), CONVERSIONS_FACTOR)));
	return d;
}

/* A twin of a carry takes what it held and what comes to it. */
static int accumulate(struct roundings *r, const struct node *n, int twin, enum op op, int more)
{
	struct node get = *n, set = *n;
	int value;

	if (twin == NONE)
		return NONE;
	get.op = OP_GET;
	set.op = OP_SET;
	get.arg[1] = set.arg[1] = NONE;
	value = rounding_move(r, &get, twin, NONE);
	if (more == NONE)
		return value;
	value = apply(r, op, value, more, NONE);
	rounding_move(r, &set, twin, value);
	return value;
}

struct deviation rounding_mma(struct roundings *r, int node, int before)
{
	const struct node *n = &r->from->nodes.v[node], *a = &r->from->nodes.v[n->arg[0]];
	double unit = is_f8(r, n->arg[0]) || is_f8(r, n->arg[1]) ? UNIT_F8 : rounding_unit(n->type);
	struct contracted c = { 0 };
	struct deviation d;
	int count, ends;

	for (int i = 0; i < a->naxes; i++)
		if (!node_has_axis(n, a->axis[i]))
			c.axis[c.n++] = a->axis[i];
	count = count_terms(r, &c);
	d = of_operands(r, n, &c);
	if (n->type != DT_I32) {
		ends = apply(r, OP_ABS, node, NONE, NONE);
		if (before != NONE)
			ends = apply(r, OP_MAX, ends, apply(r, OP_ABS, before, NONE, NONE), NONE);
		d.joint = of_summation(r, count, times(r, norm4(r, r->value[n->arg[0]], &c),
			norm4(r, r->value[n->arg[1]], &c)), ends, unit, d.joint);
	}
	if (n->ref == NONE)
		return d;
	rounding_want(r, &r->carry_wanted[n->ref], d);
	d.joint = accumulate(r, n, r->carry[n->ref].joint, OP_ADD, d.joint);
	d.lone = accumulate(r, n, r->carry[n->ref].lone, OP_HYPOT, d.lone);
	return d;
}

/* reductions and scans ---------------------------------------------------------- */

/* Errors of terms of a plain sum all add up: numbers of few values, such as of 4 bits, are converted with errors of
 * few values, which no factor of random sign makes independent. */
static struct deviation of_sum(struct roundings *r, const struct node *n, int node, int error)
{
	struct contracted c = { 1, { n->ref } };
	int value = r->value[n->arg[0]];

	error = error == NONE ? NONE : sum_over(r, error, &c);
	if (dtype_is_float(n->type))
		error = of_summation(r, count_terms(r, &c), norm(r, value, &c), apply(r, OP_ABS, node, NONE, NONE),
			rounding_unit(n->type), error);
	return (struct deviation){ error, NONE, true };
}

/* The greatest and least of values that are off: joined by the same operation. */
static struct deviation of_extremes(struct roundings *r, const struct node *n, int node, int error)
{
	int value = r->value[n->arg[0]], up, down;

	if (error == NONE)
		return (struct deviation){ NONE, NONE, true };
	up = along(r, n->op, n->type, apply(r, OP_ADD, value, error, NONE), n->ref);
	down = along(r, n->op, n->type, apply(r, OP_SUB, value, error, NONE), n->ref);
	return (struct deviation){ apply(r, OP_SPREAD, up, down, node), NONE, true };
}

/* A bound that the elements along the axis have in common has not the axis; that of the argument has. */
static int error_along(struct roundings *r, const struct node *n)
{
	int error = rounding_total(r, r->of[n->arg[0]]);

	if (error != NONE && !node_has_axis(&r->to->nodes.v[error], n->ref))
		error = apply(r, OP_MUL, error, rounding_ones(r, n->ref), NONE);
	return error;
}

struct deviation rounding_reduce(struct roundings *r, int node)
{
	const struct node *n = &r->from->nodes.v[node];
	int error = error_along(r, n);

	return n->op == OP_SUM ? of_sum(r, n, node, error) : of_extremes(r, n, node, error);
}

struct deviation rounding_scan(struct roundings *r, int node)
{
	const struct node *n = &r->from->nodes.v[node];
	int error = error_along(r, n), steps;

	if (n->op != OP_CUMSUM)
		return of_extremes(r, n, node, error);
	error = error == NONE ? NONE : along(r, OP_CUMSUM, DT_F64, error, n->ref);
	if (dtype_is_float(n->type)) {
		/* In any order there are partial sums that are differences of two of these. */
		steps = along(r, OP_CUMSUM, DT_F64, apply(r, OP_ABS, node, NONE, NONE), n->ref);
		error = apply(r, OP_ROUNDED, steps, rounding_const(r, 4 * rounding_unit(n->type)),
			error == NONE ? rounding_const(r, 0) : error);
	}
	return (struct deviation){ error, NONE, true };
}
