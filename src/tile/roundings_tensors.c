/* Bounds of errors of what carries and tensors hold: these have twins, which hold the bounds. */
#include <math.h>
#include <stdlib.h>

#include "tile/program_build.h"
#include "tile/roundings_build.h"

/* How far from the reference's the indices are that an error is followed to, of a store with one that may be off, or
 * two. */
enum { NEAR_INDICES = 4, NEAR_INDICES_2 = 1 };

/* What marks an element that is stored and allows no difference. */
static const double EXACT = 1e-300;

void rounding_want(struct roundings *r, struct twins_wanted *w, struct deviation d)
{
	r->more_wanted |= (d.joint != NONE && !w->joint) || (d.lone != NONE && !w->lone);
	w->joint |= d.joint != NONE;
	w->lone |= d.lone != NONE;
}

int rounding_move(struct roundings *r, const struct node *like, int twin, int value)
{
	struct node n = *like;

	n.type = DT_F64;
	n.ref = twin;
	if (n.op != OP_LOAD)		/* whose arguments are indices, the same as those of the value itself */
		n.arg[0] = value;
	return rounding_node(r, n);
}

struct deviation rounding_read(struct roundings *r, const struct node *n, const struct twins *t, bool fresh)
{
	struct deviation d = { NONE, NONE, fresh };

	if (t->joint != NONE)
		d.joint = rounding_move(r, n, t->joint, NONE);
	if (t->lone != NONE)
		d.lone = rounding_move(r, n, t->lone, NONE);
	return d;
}

/* An index that may be off, as an integer that is made of a rounded number, may name any other element. */
static void add_index_errors(struct roundings *r, const struct node *n, struct deviation *d)
{
	for (int i = op_arity(n->op); i < node_arity(n); i++) {
		int error = rounding_total(r, rounding_argument(r, n, n->arg[i]));

		if (error != NONE)
			d->joint = rounding_sum(r, d->joint,
				rounding_scaled(r, rounding_const(r, HUGE_VAL), error, NONE));
	}
}

struct deviation rounding_load(struct roundings *r, const struct node *n)
{
	struct deviation d = rounding_read(r, n, &r->tensor[n->ref], true);

	add_index_errors(r, n, &d);
	return d;
}

/* The values that a store adds to its indices and that may be off, with the bounds of their errors. */
struct unsure {
	int n, arg[2], error[2];
};

static struct unsure unsure_indices(struct roundings *r, const struct node *n)
{
	struct unsure u = { 0 };

	for (int i = op_arity(n->op); i < node_arity(n); i++) {
		int error = rounding_total(r, rounding_argument(r, n, n->arg[i]));

		if (error == NONE)
			continue;
		u.arg[u.n] = i;
		u.error[u.n++] = error;
	}
	r->more_wanted |= u.n && !r->scattered[n->ref];
	r->scattered[n->ref] |= u.n > 0;
	return u;
}

/* The store's node with an index value that is greater by `by`. */
static void move_index(struct roundings *r, struct node *n, int arg, int by)
{
	int was = n->arg[arg], dims = node_index_count(r->from, n);
	struct index_expr *index = arena_copy(r->arena, n->index, (size_t)dims, sizeof(*index));

	n->arg[arg] = rounding_apply(r, OP_ADD, DT_I32, was, rounding_const(r, by), NONE);
	for (int d = 0; d < dims; d++)
		if (index_value(&index[d]) == was)
			index[d].value = n->arg[arg] + 1;
	n->index = index;
}

/* Stores a twin's value where the indices may be instead of the reference's: up to NEAR_INDICES away, or NEAR_INDICES_2
 * for two of them. What is there is added, as other elements may be stored there. */
static void store_elsewhere(struct roundings *r, const struct node *n, const struct unsure *u, int twin, int value)
{
	int most = u->n == 1 ? NEAR_INDICES : NEAR_INDICES_2, side = 2 * most + 1;

	for (int i = 0; u->n && twin != NONE && i < (u->n == 1 ? side : side * side); i++) {
		int by[2] = { i % side - most, u->n == 1 ? 0 : i / side - most }, there = value;
		struct node moved = *n;

		moved.adds = true;
		if (!by[0] && !by[1])
			continue;
		for (int k = 0; k < u->n; k++) {
			if (!by[k])
				continue;
			there = rounding_chosen(r, rounding_apply(r, OP_LE, DT_BOOL, rounding_const(r, abs(by[k])),
				u->error[k], NONE), there, NONE);
			move_index(r, &moved, u->arg[k], by[k]);
		}
		rounding_move(r, &moved, twin, there);
	}
}

static void write_twins(struct roundings *r, const struct node *n, const struct twins *t, struct deviation d)
{
	struct node like = *n;

	like.adds |= n->op == OP_STORE && r->scattered[n->ref];
	if (t->joint != NONE)
		rounding_move(r, &like, t->joint, rounding_or_zero(r, d.joint));
	if (t->lone != NONE)
		rounding_move(r, &like, t->lone, rounding_or_zero(r, d.lone));
}

void rounding_set(struct roundings *r, const struct node *n)
{
	struct deviation d = rounding_argument(r, n, n->arg[0]);

	if (n->type == DT_F32 && r->from->nodes.v[n->arg[0]].type == DT_I32)
		d.joint = rounding_converted(r, r->value[n->arg[0]], d.joint);
	rounding_want(r, &r->carry_wanted[n->ref], d);
	write_twins(r, n, &r->carry[n->ref], d);
}

/* At most so many values are added to an element: one for each index of the axes that do not determine it. */
static double count_additions(const struct program *p, const struct node *n)
{
	bool determines[AXES_MAX] = { false };
	double count = 1;

	for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
		for (int i = 0; i < n->index[d].n; i++)
			determines[n->index[d].term[i].axis] |= n->index[d].term[i].div == 1 && !n->index[d].term[i].mod;
	for (int a = 0; a < p->axes.n; a++) {
		enum axis_role role = program_axis_role(p, p->tasks.v[n->task].phase, a);

		if (role != AXIS_UNUSED && role != AXIS_FULL && !determines[a])
			count *= (double)p->axes.v[a].size;
	}
	return count;
}

/* Each addition to an element in memory rounds a partial sum, which is at most the sum of all magnitudes: of what is added,
 * and of what was stored before. The errors are of mean 0 and independent, so that for many the root of their number counts,
 * as in sums (roundings_sum.c). */
static int error_of_additions(struct roundings *r, const struct node *n, int value)
{
	double count = 0;

	if (!dtype_is_float(r->from->tensors.v[n->ref].type))
		return NONE;
	for (int i = 0; i < r->from->nodes.n; i++) {
		const struct node *x = &r->from->nodes.v[i];

		if (x->op == OP_STORE && x->adds && x->task != NONE && x->ref == n->ref && (x == n || !n->adds))
			count += count_additions(r->from, x);
	}
	if (!count)
		return NONE;
	return rounding_scaled(r, value, rounding_const(r, rounding_unit(DT_F32) * fmin(count, 4 * sqrt(count))), NONE);
}

static bool is_loaded(const struct program *p, int tensor)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_LOAD && p->nodes.v[i].task != NONE && p->nodes.v[i].ref == tensor)
			return true;
	return false;
}

void rounding_store(struct roundings *r, const struct node *n, int node)
{
	const struct tensor *t = &r->from->tensors.v[n->ref];
	struct deviation d = rounding_argument(r, n, n->arg[0]);
	struct unsure u = unsure_indices(r, n);
	struct node like = *n;
	int value = r->value[n->arg[0]], elsewhere = NONE;

	like.adds |= r->scattered[n->ref];
	if (dtype_is_float(t->type))
		value = rounding_to_float(r, value, r->from->nodes.v[n->arg[0]].type, t->type, &d);
	r->to->nodes.v[node].arg[0] = value;
	VEC_PUSH(r->arena, &r->to->tasks.v[r->task].nodes, node);
	d.joint = rounding_sum(r, d.joint, error_of_additions(r, n, value));
	if (u.n) {
		elsewhere = !n->adds ? rounding_const(r, HUGE_VAL) :
			rounding_sum(r, rounding_apply(r, OP_ABS, DT_F64, value, NONE, NONE), rounding_total(r, d));
		for (int i = 0; i < u.n; i++)
			d.joint = rounding_sum(r, d.joint, rounding_chosen(r, u.error[i], elsewhere, NONE));
	}
	if (t->role == TENSOR_OUTPUT) {
		rounding_move(r, &like, r->allowed[n->ref],
			rounding_sum(r, rounding_const(r, EXACT), rounding_total(r, d)));
		store_elsewhere(r, n, &u, r->allowed[n->ref], elsewhere);
		if (!is_loaded(r->from, n->ref))
			return;
	}
	if (!d.fresh)
		d = (struct deviation){ rounding_total(r, d), NONE, true };
	rounding_want(r, &r->tensor_wanted[n->ref], d);
	write_twins(r, n, &r->tensor[n->ref], d);
	store_elsewhere(r, n, &u, r->tensor[n->ref].joint, elsewhere);
}
