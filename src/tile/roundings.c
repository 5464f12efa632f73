#include "tile/roundings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tile/program_build.h"
#include "tile/reach.h"
#include "tile/roundings_build.h"

/* Relative errors of functions as the GPUs have them: ex2.approx, lg2.approx, rsqrt.approx and __fdividef are within
 * 2^-22 (CUDA C++ Programming Guide, intrinsic functions; PTX ISA), and erff, sqrtf and those of the host within less.
 * tanh is made of exp2 and a division by about 1: its error does not get less near zero. That of lg2.approx does not,
 * either, where the result is near zero. */
static const double FUNCTION_F32 = 0x1p-22, FUNCTION_F64 = 0x1p-50, TANH_F32 = 0x1p-20, LOG2_F32 = 0x1p-22;

/* Up to this angle kernels have sines and cosines of that error. */
static const double ANGLE_F32 = 0x1p20;

/* nodes ----------------------------------------------------------------------- */

int rounding_const(struct roundings *r, double k)
{
	struct node n = blank_node(OP_CONST, DT_F64, r->loc);

	n.k = k;
	VEC_PUSH(r->arena, &r->to->nodes, n);
	return r->to->nodes.n - 1;
}

int rounding_node(struct roundings *r, struct node n)
{
	n.task = r->task;
	n.loc = r->loc;
	VEC_PUSH(r->arena, &r->to->nodes, n);
	VEC_PUSH(r->arena, &r->to->tasks.v[r->task].nodes, r->to->nodes.n - 1);
	return r->to->nodes.n - 1;
}

int rounding_apply(struct roundings *r, enum op op, enum dtype type, int x, int y, int z)
{
	struct node n = blank_node(op, type, r->loc);
	int arg[3] = { x, y, z };

	for (int i = 0; i < op_arity(op); i++) {
		const struct node *a = &r->to->nodes.v[arg[i]];

		n.arg[i] = arg[i];
		for (int j = 0; j < a->naxes; j++)
			if (!node_has_axis(&n, a->axis[j]))
				n.axis[n.naxes++] = a->axis[j];
	}
	return rounding_node(r, n);
}

static int apply(struct roundings *r, enum op op, int x, int y, int z)
{
	return rounding_apply(r, op, DT_F64, x, y, z);
}

int rounding_ones(struct roundings *r, int axis)
{
	struct node n = blank_node(OP_INDEX, DT_I32, r->loc);
	int index;

	n.ref = n.axis[0] = axis;
	n.naxes = 1;
	index = rounding_node(r, n);
	return rounding_apply(r, OP_EQ, DT_BOOL, index, index, NONE);
}

int rounding_sum(struct roundings *r, int x, int y)
{
	if (x == NONE || y == NONE)
		return x == NONE ? y : x;
	return apply(r, OP_ADD, x, y, NONE);
}

int rounding_or_zero(struct roundings *r, int x)
{
	return x == NONE ? rounding_const(r, 0) : x;
}

/* deviations -------------------------------------------------------------------- */

int rounding_total(struct roundings *r, struct deviation d)
{
	return rounding_sum(r, d.joint, d.lone);
}

static struct deviation exactly(void)
{
	return (struct deviation){ NONE, NONE, true };
}

static bool is_exact(struct deviation d)
{
	return d.joint == NONE && d.lone == NONE;
}

int rounding_converted(struct roundings *r, int value, int error)
{
	return apply(r, OP_FROM_I32, value, rounding_or_zero(r, error), NONE);
}

/* Is the i32 argument of an element-wise operation made an f32 first? It is where another argument or the result is. */
static bool converts(const struct roundings *r, const struct node *n, int arg)
{
	bool single = n->type == DT_F32;

	if (op_kind(n->op) != OP_ELEMENTWISE || r->from->nodes.v[arg].type != DT_I32)
		return false;
	for (int i = 0; i < op_arity(n->op); i++) {
		single |= r->from->nodes.v[n->arg[i]].type != DT_I32 && n->type == DT_BOOL;
		if (r->from->nodes.v[n->arg[i]].type == DT_F64)
			return false;
	}
	return single;
}

struct deviation rounding_argument(struct roundings *r, const struct node *n, int arg)
{
	struct deviation d = r->of[arg];
	bool broadcast = false;

	if (converts(r, n, arg))
		d.joint = rounding_converted(r, r->value[arg], d.joint);
	for (int i = 0; i < n->naxes && d.lone != NONE; i++)
		broadcast |= !node_has_axis(&r->to->nodes.v[d.lone], n->axis[i]);
	if (broadcast)
		d = (struct deviation){ rounding_sum(r, d.joint, d.lone), NONE, true };
	return d;
}

/* What is fresh if both are. */
static struct deviation both(int joint, int lone, struct deviation x, struct deviation y)
{
	return (struct deviation){ joint, lone, x.fresh && y.fresh };
}

/* A rounding of a value by the share `unit`, next to its error. */
static int rounded(struct roundings *r, int value, double unit, int error)
{
	return apply(r, OP_ROUNDED, value, rounding_const(r, unit), rounding_or_zero(r, error));
}

double rounding_unit(enum dtype t)
{
	return t == DT_F64 ? 0x1p-52 : 0x1p-24;
}

/* element-wise operations --------------------------------------------------------- */

/* A bound of the parts of a total error that are as great as theirs is of what it came from. */
static struct deviation shared_out(struct roundings *r, int total, struct deviation from)
{
	int lone;

	if (total == NONE || from.lone == NONE)
		return (struct deviation){ total, NONE, true };
	lone = apply(r, OP_PART, total, from.lone, rounding_total(r, from));
	return (struct deviation){ apply(r, OP_REMAINDER, total, lone, NONE), lone, from.fresh };
}

/* Of any operation: how its result changes when an argument changes by its error, one argument after the other. */
static struct deviation by_changes(struct roundings *r, const struct node *n, int node)
{
	struct deviation from = exactly();
	int total = NONE;

	for (int i = 0; i < op_arity(n->op); i++) {
		struct deviation d = rounding_argument(r, n, n->arg[i]);
		int error = rounding_total(r, d), up[3], down[3];

		if (error == NONE)
			continue;
		for (int j = 0; j < 3; j++)
			up[j] = down[j] = j < op_arity(n->op) ? r->value[n->arg[j]] : NONE;
		up[i] = apply(r, OP_ADD, up[i], error, NONE);
		down[i] = apply(r, OP_SUB, down[i], error, NONE);
		up[0] = rounding_apply(r, n->op, n->type, up[0], up[1], up[2]);
		down[0] = rounding_apply(r, n->op, n->type, down[0], down[1], down[2]);
		total = rounding_sum(r, total, apply(r, OP_SPREAD, up[0], down[0], node));
		from = both(rounding_sum(r, from.joint, d.joint), rounding_sum(r, from.lone, d.lone), from, d);
	}
	return shared_out(r, total, from);
}

/* Of the greatest or least of two: both may change at once, and one that is far from the other does not matter. */
static struct deviation of_extreme(struct roundings *r, const struct node *n, int node)
{
	struct deviation x = rounding_argument(r, n, n->arg[0]), y = rounding_argument(r, n, n->arg[1]);
	int a = r->value[n->arg[0]], b = r->value[n->arg[1]], ex = rounding_total(r, x), ey = rounding_total(r, y);
	int up, down;

	if (ex == NONE && ey == NONE)
		return exactly();
	up = rounding_apply(r, n->op, n->type, rounding_sum(r, a, ex), rounding_sum(r, b, ey), NONE);
	down = rounding_apply(r, n->op, n->type, ex == NONE ? a : apply(r, OP_SUB, a, ex, NONE),
		ey == NONE ? b : apply(r, OP_SUB, b, ey, NONE), NONE);
	return shared_out(r, apply(r, OP_SPREAD, up, down, node),
		both(rounding_sum(r, x.joint, y.joint), rounding_sum(r, x.lone, y.lone), x, y));
}

static struct deviation of_add(struct roundings *r, const struct node *n, int node)
{
	struct deviation x = rounding_argument(r, n, n->arg[0]), y = rounding_argument(r, n, n->arg[1]);

	(void)node;
	return both(rounding_sum(r, x.joint, y.joint), rounding_sum(r, x.lone, y.lone), x, y);
}

static struct deviation of_sign(struct roundings *r, const struct node *n, int node)
{
	(void)node;
	return rounding_argument(r, n, n->arg[0]);
}

/* A wave is as far off as its angle, at most 2. */
static struct deviation of_wave(struct roundings *r, const struct node *n, int node)
{
	struct deviation d = rounding_argument(r, n, n->arg[0]);

	(void)node;
	d.joint = d.joint == NONE ? NONE : apply(r, OP_MIN, d.joint, rounding_const(r, 2), NONE);
	d.lone = d.lone == NONE ? NONE : apply(r, OP_MIN, d.lone, rounding_const(r, 2), NONE);
	return d;
}

int rounding_scaled(struct roundings *r, int other, int error, int of_other)
{
	return error == NONE ? NONE : apply(r, OP_SCALED, other, error, rounding_or_zero(r, of_other));
}

static struct deviation of_multiply(struct roundings *r, const struct node *n, int node)
{
	struct deviation x = rounding_argument(r, n, n->arg[0]), y = rounding_argument(r, n, n->arg[1]);
	int a = r->value[n->arg[0]], b = r->value[n->arg[1]], ey = is_exact(x) ? NONE : rounding_total(r, y);

	(void)node;
	return both(rounding_sum(r, rounding_scaled(r, a, y.joint, NONE), rounding_scaled(r, b, x.joint, ey)),
		rounding_sum(r, rounding_scaled(r, a, y.lone, NONE), rounding_scaled(r, b, x.lone, ey)), x, y);
}

/* (x + ex) / (y + ey) is off by at most (ex + |x / y| ey) / (|y| - ey). */
static struct deviation of_divide(struct roundings *r, const struct node *n, int node)
{
	struct deviation x = rounding_argument(r, n, n->arg[0]), y = rounding_argument(r, n, n->arg[1]);
	int a = r->value[n->arg[0]], b = r->value[n->arg[1]], ey = rounding_total(r, y);
	int joint = y.joint == NONE ? x.joint : rounding_sum(r, x.joint, apply(r, OP_DIVISOR, node, y.joint, a));
	int lone = y.lone == NONE ? x.lone : rounding_sum(r, x.lone, apply(r, OP_DIVISOR, node, y.lone, a));

	joint = joint == NONE ? NONE : apply(r, OP_DIVIDED, joint, b, rounding_or_zero(r, ey));
	lone = lone == NONE ? NONE : apply(r, OP_DIVIDED, lone, b, rounding_or_zero(r, ey));
	return both(joint, lone, x, y);
}

int rounding_chosen(struct roundings *r, int condition, int x, int y)
{
	if (x == NONE && y == NONE)
		return NONE;
	return apply(r, OP_WHERE, condition, rounding_or_zero(r, x), rounding_or_zero(r, y));
}

static struct deviation of_where(struct roundings *r, const struct node *n, int node)
{
	struct deviation c = r->of[n->arg[0]], x = rounding_argument(r, n, n->arg[1]);
	struct deviation y = rounding_argument(r, n, n->arg[2]);
	int condition = r->value[n->arg[0]], unsure = rounding_total(r, c);
	struct deviation d = both(rounding_chosen(r, condition, x.joint, y.joint),
		rounding_chosen(r, condition, x.lone, y.lone), x, y);
	int other;

	if (unsure == NONE)
		return d;
	/* The condition may be the other way round. */
	other = apply(r, OP_SPREAD, r->value[n->arg[1]], r->value[n->arg[2]], node);
	other = rounding_sum(r, other, rounding_sum(r, rounding_total(r, x), rounding_total(r, y)));
	d.joint = rounding_sum(r, d.joint, apply(r, OP_WHERE, unsure, other, rounding_const(r, 0)));
	return d;
}

static struct deviation of_comparison(struct roundings *r, const struct node *n, int node)
{
	int error = rounding_sum(r, rounding_total(r, rounding_argument(r, n, n->arg[0])),
		rounding_total(r, rounding_argument(r, n, n->arg[1])));

	(void)node;
	if (error == NONE)
		return exactly();
	return (struct deviation){ apply(r, OP_NEAR, apply(r, OP_SUB, r->value[n->arg[0]], r->value[n->arg[1]], NONE),
		error, NONE), NONE, true };
}

/* Of bits: nothing is known of them once a bit may be wrong. */
static struct deviation of_bits(struct roundings *r, const struct node *n, int node)
{
	struct deviation d = exactly();

	(void)node;
	for (int i = 0; i < op_arity(n->op); i++)
		d.joint = rounding_sum(r, d.joint, rounding_total(r, rounding_argument(r, n, n->arg[i])));
	if (d.joint != NONE && n->type != DT_BOOL)
		d.joint = rounding_scaled(r, rounding_const(r, HUGE_VAL), d.joint, NONE);
	return d;
}

/* What is greater than the type's greatest value becomes infinite, or that value. An error of a value that is near it,
 * and one of the share `own`, may decide which. */
static void clamp(struct roundings *r, enum dtype t, double own, int *value, struct deviation *d)
{
	double greatest = dtype_greatest(t), beyond = dtype_round(t, HUGE_VAL);
	double limit = isinf(beyond) ? greatest * (1 + dtype_roundoff(t) / (2 - 2 * dtype_roundoff(t))) : greatest;
	int error = rounding_total(r, *d), clamped;

	if (own > 0)
		error = rounding_sum(r, error, rounding_scaled(r, *value, rounding_const(r, own), NONE));
	clamped = apply(r, OP_CLAMPED, *value, rounding_const(r, limit), rounding_const(r, beyond));
	if (isinf(beyond)) {
		d->joint = d->joint == NONE ? NONE : apply(r, OP_OF_FINITE, clamped, d->joint, NONE);
		d->lone = d->lone == NONE ? NONE : apply(r, OP_OF_FINITE, clamped, d->lone, NONE);
	}
	if (isinf(beyond) && error != NONE)
		d->joint = rounding_sum(r, d->joint, apply(r, OP_CROSSES, *value, error, rounding_const(r, limit)));
	*value = clamped;
}

/* The error of the operation itself. */
static struct deviation with_own(struct roundings *r, const struct node *n, int node, struct deviation d)
{
	bool f64 = n->type == DT_F64;
	enum op_class class = op_class(n->op);

	if (!dtype_is_float(n->type))
		return d;
	/* Kernels rely on it that exp2 becomes infinite, and 1 / (1 + exp2(x)) then zero. */
	if (n->op == OP_EXP2 && !f64)
		clamp(r, DT_F32, FUNCTION_F32, &r->value[node], &d);
	if (class == CLASS_SFU || class == CLASS_DIV)
		d.joint = rounded(r, r->value[node], f64 ? FUNCTION_F64 : FUNCTION_F32, d.joint);
	else if (class == CLASS_FMA)
		d.joint = rounded(r, node, rounding_unit(n->type), d.joint);
	if (n->op == OP_TANH && !f64)
		d.joint = rounding_sum(r, d.joint, rounding_const(r, TANH_F32));
	if ((n->op == OP_SIN || n->op == OP_COS) && !f64) {
		int angle = apply(r, OP_ABS, r->value[n->arg[0]], NONE, NONE);
		int beyond = rounding_apply(r, OP_LT, DT_BOOL, rounding_const(r, ANGLE_F32), angle, NONE);

		d.joint = rounding_sum(r, d.joint, rounding_chosen(r, beyond, rounding_const(r, HUGE_VAL), NONE));
	}
	if (n->op == OP_LOG2 && !f64)
		d.joint = rounding_sum(r, d.joint, rounding_const(r, LOG2_F32));
	return d;
}

typedef struct deviation rule(struct roundings *r, const struct node *n, int node);

/* Rules of element-wise operations. The others go by changes, which is right to first order for any smooth function. */
static rule *const rules[OP_COUNT] = {
	[OP_ADD] = of_add, [OP_SUB] = of_add, [OP_NEG] = of_sign, [OP_ABS] = of_sign, [OP_MUL] = of_multiply,
	[OP_DIV] = of_divide, [OP_MIN] = of_extreme, [OP_MAX] = of_extreme, [OP_WHERE] = of_where,
	[OP_LT] = of_comparison, [OP_LE] = of_comparison, [OP_EQ] = of_comparison, [OP_NE] = of_comparison,
	[OP_AND] = of_bits, [OP_OR] = of_bits, [OP_XOR] = of_bits, [OP_NOT] = of_bits, [OP_SHL] = of_bits,
	[OP_SHR] = of_bits, [OP_LSHR] = of_bits, [OP_POPCOUNT] = of_bits, [OP_TO_BITS] = of_bits,
	[OP_OF_BITS] = of_bits, [OP_SIN] = of_wave, [OP_COS] = of_wave,
};

static struct deviation of_elementwise(struct roundings *r, const struct node *n, int node)
{
	return with_own(r, n, node, (rules[n->op] ? rules[n->op] : by_changes)(r, n, node));
}

/* conversions ------------------------------------------------------------------- */

int rounding_to_float(struct roundings *r, int value, enum dtype from, enum dtype to, struct deviation *d)
{
	double unit = dtype_roundoff(to);

	if (!dtype_loses(from, to) || to == DT_F64)
		return value;
	if (to == DT_F32) {
		d->joint = from == DT_I32 ? rounding_converted(r, value, d->joint) : rounded(r, value, unit, d->joint);
		return value;
	}
	if (!d->fresh) {		/* older errors are not forgotten, but the new one is fresh */
		d->joint = rounding_total(r, *d);
		d->lone = NONE;
	}
	/* The rounding of a value that is off, by d: by at most unit * (|value| + d). */
	if (d->joint != NONE)
		d->joint = apply(r, OP_MUL, d->joint, rounding_const(r, 1 + unit), NONE);
	if (d->lone != NONE)
		d->lone = apply(r, OP_MUL, d->lone, rounding_const(r, 1 + unit), NONE);
	d->lone = rounded(r, value, unit, d->lone);
	if (dtype_least_half(to) > 1e-30)
		d->lone = rounding_sum(r, d->lone, rounding_const(r, dtype_least_half(to)));
	d->fresh = true;
	if (dtype_greatest(to) < 1e30)
		clamp(r, to, 0, &value, d);
	return value;
}

/* To an integer, a power of two or a bool: the result, if the argument is off, is what such arguments give. */
static struct deviation of_step(struct roundings *r, const struct node *n, int node)
{
	struct deviation d = r->of[n->arg[0]];
	int error = rounding_total(r, d), value = r->value[n->arg[0]], up, down;

	if (error == NONE)
		return exactly();
	if (n->type == DT_BOOL)
		return (struct deviation){ apply(r, OP_NEAR, value, error, NONE), NONE, true };
	up = rounding_apply(r, OP_CAST, n->type, apply(r, OP_ADD, value, error, NONE), NONE, NONE);
	down = rounding_apply(r, OP_CAST, n->type, apply(r, OP_SUB, value, error, NONE), NONE, NONE);
	return (struct deviation){ apply(r, OP_SPREAD, up, down, node), NONE, true };
}

static struct deviation of_cast(struct roundings *r, const struct node *n, int node)
{
	struct deviation d = r->of[n->arg[0]];

	if (!dtype_has_mantissa(n->type))
		return of_step(r, n, node);
	r->value[node] = rounding_to_float(r, node, r->from->nodes.v[n->arg[0]].type, n->type, &d);
	return d;
}

/* elements elsewhere ------------------------------------------------------------- */

/* The error of the elements that node n (OP_AT) reads. */
static int error_at(struct roundings *r, const struct node *n, int error)
{
	struct node at = *n;

	if (error == NONE || !node_has_axis(&r->to->nodes.v[error], n->ref))
		return error;
	at.type = DT_F64;
	at.arg[0] = error;
	at.naxes = 0;
	for (int i = 0; i < n->naxes; i++)
		if (n->axis[i] == n->ref || index_uses(&n->index[0], n->axis[i]) ||
		    node_has_axis(&r->to->nodes.v[error], n->axis[i]))
			at.axis[at.naxes++] = n->axis[i];
	return rounding_node(r, at);
}

/* The error of the elements that node n (OP_EXPAND) puts where they belong; what is 0 has none. */
static int error_expanded(struct roundings *r, const struct node *n, int error)
{
	const struct node *of = error == NONE ? NULL : &r->to->nodes.v[error];
	struct node expanded = *n;
	bool along = false;

	for (int i = 0; of && i < of->naxes; i++) {
		bool packs = r->to->axes.v[of->axis[i]].packs == n->ref;

		expanded.axis[i] = packs ? n->ref : of->axis[i];
		along |= packs;
	}
	if (!along)
		return error;
	expanded.type = DT_F64;
	expanded.naxes = of->naxes;
	expanded.arg[0] = error;
	return rounding_node(r, expanded);
}

static struct deviation of_expand(struct roundings *r, const struct node *n)
{
	struct deviation d = r->of[n->arg[0]];

	if (!is_exact(r->of[n->arg[1]]))
		return (struct deviation){ rounding_const(r, HUGE_VAL), NONE, true };
	return (struct deviation){ error_expanded(r, n, d.joint), error_expanded(r, n, d.lone), d.fresh };
}

/* Where several elements come from one, errors that an element has of its own become errors in common. */
static struct deviation of_at(struct roundings *r, const struct node *n)
{
	struct deviation d = r->of[n->arg[0]];

	if (d.lone == NONE || at_is_distinct(r->arena, r->from, n))
		return (struct deviation){ error_at(r, n, d.joint), error_at(r, n, d.lone), d.fresh };
	return (struct deviation){ error_at(r, n, rounding_total(r, d)), NONE, true };
}

/* the program --------------------------------------------------------------------- */

/* Node `node` of the program, and behind it the bound of its error. */
static void add_rounding(struct roundings *r, int node)
{
	const struct node *n = &r->from->nodes.v[node];
	struct node *copy = &r->to->nodes.v[node];
	struct deviation d = exactly();
	int before = NONE;

	r->value[node] = node;
	r->of[node] = d;
	if (n->op == OP_CONST && n->type == DT_F32 && !r->has_f64)
		copy->k = (float)n->k;
	if (n->task == NONE)
		return;
	r->task = n->task;
	r->loc = n->loc;
	r->partial = n->partial;
	for (int i = 0; i < node_arity(n); i++)
		copy->arg[i] = r->value[n->arg[i]];
	if (node_adds_to_carry(n)) {
		struct node get = *n;

		get.op = OP_GET;
		get.arg[0] = get.arg[1] = NONE;
		before = rounding_move(r, &get, n->ref, NONE);
	}
	if (n->op != OP_STORE)		/* what it stores comes first */
		VEC_PUSH(r->arena, &r->to->tasks.v[r->task].nodes, node);
	if (n->op == OP_MMA)
		d = rounding_mma(r, node, before);
	else if (op_class(n->op) == CLASS_REDUCE)
		d = rounding_reduce(r, node);
	else if (op_class(n->op) == CLASS_SCAN)
		d = rounding_scan(r, node);
	else if (n->op == OP_STORE)
		rounding_store(r, n, node);
	else if (n->op == OP_SET)
		rounding_set(r, n);
	else if (n->op == OP_LOAD)
		d = rounding_load(r, n);
	else if (n->op == OP_GET)
		d = rounding_read(r, n, &r->carry[n->ref], false);
	else if (n->op == OP_UNPACK && !is_exact(r->of[n->arg[0]]))
		d.joint = rounding_const(r, HUGE_VAL);
	else if (n->op == OP_EXPAND)
		d = of_expand(r, n);
	else if (n->op == OP_AT)
		d = of_at(r, n);
	else if (n->op == OP_CAST)
		d = of_cast(r, n, node);
	else if (op_kind(n->op) == OP_ELEMENTWISE)
		d = of_elementwise(r, n, node);
	r->of[node] = d;
}

static const char *twin_name(struct roundings *r, const char *of, const char *kind)
{
	const char *name = arena_strf(r->arena, "%s_%s", of, kind);
	bool taken = true;

	while (taken) {
		taken = program_find_tensor(r->to, name) != NONE;
		for (int i = 0; i < r->to->carries.n; i++)
			taken |= !strcmp(r->to->carries.v[i].name, name);
		name = taken ? arena_strf(r->arena, "%s_", name) : name;
	}
	return name;
}

static int twin_carry(struct roundings *r, int of, const char *kind)
{
	struct carry c = r->from->carries.v[of];

	c.name = twin_name(r, c.name, kind);
	c.type = DT_F64;
	c.init = 0;
	VEC_PUSH(r->arena, &r->to->carries, c);
	return r->to->carries.n - 1;
}

static int twin_tensor(struct roundings *r, int of, const char *kind)
{
	struct tensor t = r->from->tensors.v[of];

	t.name = twin_name(r, t.name, kind);
	t.type = DT_F64;
	VEC_PUSH(r->arena, &r->to->tensors, t);
	return r->to->tensors.n - 1;
}

/* A twin that later phases load, as they load the tensor. */
static int stored_twin(struct roundings *r, int of, const char *kind)
{
	int twin = twin_tensor(r, of, kind);

	r->to->tensors.v[twin].role = TENSOR_TEMP;
	return twin;
}

static void add_twins(struct roundings *r)
{
	for (int i = 0; i < r->from->carries.n; i++)
		r->carry[i] = (struct twins){ r->carry_wanted[i].joint ? twin_carry(r, i, "joint") : NONE,
			r->carry_wanted[i].lone ? twin_carry(r, i, "lone") : NONE };
	for (int i = 0; i < r->from->tensors.n; i++) {
		r->allowed[i] = r->from->tensors.v[i].role == TENSOR_OUTPUT ? twin_tensor(r, i, "allowed") : NONE;
		r->tensor[i] = (struct twins){ r->tensor_wanted[i].joint ? stored_twin(r, i, "joint") : NONE,
			r->tensor_wanted[i].lone ? stored_twin(r, i, "lone") : NONE };
	}
}

#define COPIED(a, x) do { \
	(x)->v = arena_copy((a), (x)->v, (size_t)(x)->n, sizeof(*(x)->v)); \
	(x)->cap = (x)->n; \
} while (0)

/* The program as it was, with lists of its own. */
static struct program *begin(struct arena *a, const struct program *p)
{
	struct program *q = arena_copy(a, p, 1, sizeof(*p));

	COPIED(a, &q->nodes);
	COPIED(a, &q->carries);
	COPIED(a, &q->tensors);
	COPIED(a, &q->tasks);
	for (int i = 0; i < q->tasks.n; i++) {
		q->tasks.v[i].nodes.v = NULL;
		q->tasks.v[i].nodes.n = q->tasks.v[i].nodes.cap = 0;
	}
	return q;
}

void program_with_roundings(struct arena *a, const struct program *p, const struct program **out, int **allowance)
{
	struct roundings r = { .arena = a, .from = p, .more_wanted = true,
		.of = ARENA_ARRAY(a, p->nodes.n, struct deviation), .value = arena_ints(a, p->nodes.n, NONE),
		.carry = ARENA_ARRAY(a, p->carries.n, struct twins),
		.tensor = ARENA_ARRAY(a, p->tensors.n, struct twins), .allowed = ARENA_ARRAY(a, p->tensors.n, int),
		.carry_wanted = ARENA_ARRAY(a, p->carries.n, struct twins_wanted),
		.scattered = ARENA_ARRAY(a, p->tensors.n, bool),
		.tensor_wanted = ARENA_ARRAY(a, p->tensors.n, struct twins_wanted) };

	for (int i = 0; i < p->nodes.n; i++)
		r.has_f64 |= p->nodes.v[i].type == DT_F64;
	while (r.more_wanted) {
		r.more_wanted = false;
		r.to = begin(a, p);
		add_twins(&r);
		for (int i = 0; i < p->nodes.n; i++)
			add_rounding(&r, i);
	}
	*allowance = arena_ints(a, p->tensors.n, NONE);
	for (int i = 0; i < p->tensors.n; i++)
		if (p->tensors.v[i].role == TENSOR_OUTPUT)
			(*allowance)[i] = r.allowed[i];
	*out = r.to;
}
