#include "tile/program_build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct items program_body(const struct program *p, int phase, int loop)
{
	if (loop != NONE)
		return (struct items){ p->loops.v[loop].body.v, p->loops.v[loop].body.n };
	return (struct items){ p->phases.v[phase].body.v, p->phases.v[phase].body.n };
}

struct phrase axes_phrase(const struct program *p, int n, const int *axes)
{
	struct phrase x = { "{" };
	size_t len = 1;

	for (int i = 0; i <= n && len < sizeof(x.s); i++)	/* what does not fit is left out, as in any message */
		len += (size_t)snprintf(x.s + len, sizeof(x.s) - len, "%s%s", i && i < n ? ", " : "",
			i < n ? p->axes.v[axes[i]].name : "}");
	return x;
}

struct phrase loop_phrase(const struct program *p, int loop)
{
	const struct loop *l = &p->loops.v[loop];
	struct phrase x;

	snprintf(x.s, sizeof(x.s), "the loop over %.150s at line %d", axes_phrase(p, l->naxes, l->axis).s, l->loc.line);
	return x;
}

struct phrase value_phrase(const struct program *p, int node)
{
	const struct node *n = node_at(p, node);
	struct phrase x;

	if (n->op == OP_CONST)
		snprintf(x.s, sizeof(x.s), "the constant %g", n->k);
	else if (n->op == OP_LOAD || n->op == OP_MMA)
		snprintf(x.s, sizeof(x.s), "'%s'", p->tasks.v[n->task].name);
	else if (n->op == OP_GET)
		snprintf(x.s, sizeof(x.s), "carry '%s'", p->carries.v[n->ref].name);
	else if (n->op == OP_INDEX)
		snprintf(x.s, sizeof(x.s), "the index of '%s'", p->axes.v[n->ref].name);
	else
		snprintf(x.s, sizeof(x.s), "the %s in '%s'", op_name(n->op), p->tasks.v[n->task].name);
	return x;
}

bool is_i32_value(double x)
{
	return x >= INT32_MIN && x <= INT32_MAX && x == floor(x);
}

bool axis_is_batch(const struct program *p, int phase, int axis)
{
	return phase != NONE && ints_hold(p->phases.v[phase].batch, p->phases.v[phase].nbatch, axis);
}

bool axis_is_batch_in(const struct program *p, int phase, int loop, int axis)
{
	for (int l = loop; l != NONE; l = p->loops.v[l].parent)
		if (p->loops.v[l].batch && ints_hold(p->loops.v[l].axis, p->loops.v[l].naxes, axis))
			return true;
	return axis_is_batch(p, phase, axis);
}

bool axis_is_batch_here(const struct program *p, int axis)
{
	return axis_is_batch_in(p, p->cur_phase, p->cur_loop, axis);
}

bool is_packed(const struct program *p, int axis)
{
	for (int i = 0; i < p->axes.n; i++)
		if (p->axes.v[i].packs == axis)
			return true;
	return false;
}

bool program_is_pair_product(const struct program *p, int node)
{
	const struct node *n = &p->nodes.v[node], *x = n->op == OP_CAST ? &p->nodes.v[n->arg[0]] : NULL;

	if (!x || x->op != OP_MUL || x->type != DT_F32 || (n->type != DT_BF16 && n->type != DT_F16))
		return false;
	for (int k = 0; k < 2; k++)
		if (p->nodes.v[x->arg[k]].type != n->type || p->nodes.v[x->arg[k]].op == OP_CONST)
			return false;
	return true;
}

int program_find_axis(const struct program *p, const char *name)
{
	int i;

	FIND_FIRST(i, p->axes.n, !strcmp(p->axes.v[i].name, name));
	return i;
}

int program_find_task(const struct program *p, const char *name)
{
	int i;

	FIND_FIRST(i, p->tasks.n, !strcmp(p->tasks.v[i].name, name));
	return i;
}

int program_find_tensor(const struct program *p, const char *name)
{
	int i;

	FIND_FIRST(i, p->tensors.n, !strcmp(p->tensors.v[i].name, name));
	return i;
}

bool program_loop_within(const struct program *p, int loop, int outer)
{
	while (loop != outer && loop != NONE)
		loop = p->loops.v[loop].parent;
	return loop == outer;
}

bool program_axis_bound(const struct program *p, int loop, int axis)
{
	int packs = axis_at(p, axis)->packs;

	for (; loop != NONE; loop = p->loops.v[loop].parent) {
		const struct loop *l = &p->loops.v[loop];

		if (ints_hold(l->axis, l->naxes, axis) || ints_hold(l->axis, l->naxes, packs))
			return true;
	}
	return false;
}

/* Does an index that the node has, or a node that it is computed from, depend on the axis? */
static bool value_uses(const struct program *p, int node, int axis)
{
	const struct node *n = &p->nodes.v[node];

	if (n->op == OP_INDEX)
		return n->ref == axis;
	for (int d = 0; n->op == OP_LOAD && d < p->tensors.v[n->ref].rank; d++)
		if (index_uses(&n->index[d], axis))
			return true;
	for (int i = 0; i < node_arity(n); i++)
		if (value_uses(p, n->arg[i], axis))
			return true;
	return false;
}

bool loop_trips_use(const struct loop *l, int axis)
{
	return (l->has_from && index_uses(&l->from, axis)) || (l->has_upto && index_uses(&l->upto, axis)) ||
		(l->has_length && index_uses(&l->length, axis));
}

bool loop_bounds_use(const struct program *p, const struct loop *l, int axis)
{
	return loop_trips_use(l, axis) || (l->has_length && value_uses(p, index_value(&l->length), axis));
}

int program_length_loop(const struct program *p, int loop, int axis)
{
	for (; loop != NONE; loop = p->loops.v[loop].parent)
		if (p->loops.v[loop].has_length && p->loops.v[loop].axis[0] == axis)
			return loop;
	return NONE;
}

/* The greatest power of two that divides the number, at most 2^31. It divides what wraps around modulo 2^32 as well. */
static int64_t power_of_two_in(int64_t x)
{
	int64_t most = (int64_t)1 << 31;

	return x == 0 ? most : min_i64(most, x & -x);
}

static int64_t value_step(const struct program *p, int node, int depth)
{
	const struct node *n = &p->nodes.v[node];

	if (n->op == OP_CONST)
		return power_of_two_in((int64_t)n->k);
	if (depth == LENGTH_DEPTH)
		return 1;
	if (n->op == OP_NEG)
		return value_step(p, n->arg[0], depth + 1);
	if (n->op == OP_MUL)
		return power_of_two_in(value_step(p, n->arg[0], depth + 1) * value_step(p, n->arg[1], depth + 1));
	if (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MIN || n->op == OP_MAX)
		return min_i64(value_step(p, n->arg[0], depth + 1), value_step(p, n->arg[1], depth + 1));
	return 1;
}

int64_t program_value_step(const struct program *p, int node)
{
	return value_step(p, node, 0);
}

bool program_length_fills_tiles(const struct program *p, int loop, int64_t tile)
{
	const struct index_expr *x = &p->loops.v[loop].length;
	int64_t step = min_i64(program_value_step(p, index_value(x)), power_of_two_in(x->k));

	for (int i = 0; i < x->n; i++)
		step = min_i64(step, power_of_two_in(x->term[i].coef));
	return step % tile == 0;
}

int loop_over(const struct program *p, int loop, int axis)
{
	while (program_axis_bound(p, p->loops.v[loop].parent, axis))
		loop = p->loops.v[loop].parent;
	return loop;
}

int64_t tensor_elements(const struct program *p, int tensor)
{
	const struct tensor *t = tensor_at(p, tensor);
	int64_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= p->axes.v[t->dim[i]].size;
	return n;
}

int64_t tensor_sorted_row(const struct program *p, int tensor)
{
	const struct tensor *t = tensor_at(p, tensor);

	return t->sorted ? p->axes.v[t->dim[t->rank - 1]].size : 0;
}

int node_index_count(const struct program *p, const struct node *n)
{
	if (n->op == OP_LOAD || n->op == OP_STORE)
		return p->tensors.v[n->ref].rank;
	return n->op == OP_AT;
}

/* An axis that the node or its indices use is full, unless a stronger role is found. */
static void use_axes(const struct program *p, enum axis_role *role, const struct node *n)
{
	for (int i = 0; i < n->naxes; i++)
		role[n->axis[i]] = AXIS_FULL;
	if (n->op == OP_INDEX)
		role[n->ref] = AXIS_FULL;
	for (int i = 0; i < node_index_count(p, n); i++) {
		for (int j = 0; j < n->index[i].n; j++)
			role[n->index[i].term[j].axis] = AXIS_FULL;
	}
}

/* ---- sums that are divided among tiles ---- */

/* Does the node sum or contract over the axis? */
static bool sums_over(const struct program *p, const struct node *n, int axis)
{
	if (n->op == OP_SUM)
		return n->ref == axis;
	return n->op == OP_MMA && !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
}

bool tensor_is_added_to(const struct program *p, int tensor)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_STORE && p->nodes.v[i].adds && p->nodes.v[i].task != NONE &&
		    p->nodes.v[i].ref == tensor)
			return true;
	return false;
}

/* Is the carry a sum that begins with 0, of products over the axis alone? */
static bool is_sum_over(const struct program *p, int carry, int axis)
{
	if (p->carries.v[carry].init != 0)
		return false;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && n->ref == carry && (n->op == OP_SET || (n->op == OP_MMA && !sums_over(p, n, axis))))
			return false;
	}
	return true;
}

/* Is it a conversion that parts of a sum can have as well as the sum? An i32 would wrap around before that to a float,
 * or behind it. */
static bool converts_parts(const struct program *p, const struct node *n)
{
	enum dtype from = n->op == OP_CAST ? p->nodes.v[n->arg[0]].type : n->type;

	return n->op == OP_CAST && (n->type == from || (n->type == DT_F32 && dtype_is_float(from)));
}

/* Is the value a sum over the axis, perhaps summed over others, too, and converted? */
static bool is_sum(const struct program *p, int node, int axis)
{
	const struct node *n = &p->nodes.v[node];

	if (n->op == OP_GET)
		return is_sum_over(p, n->ref, axis);
	if (sums_over(p, n, axis))
		return n->op == OP_SUM || n->ref == NONE || is_sum_over(p, n->ref, axis);
	return (n->op == OP_SUM || converts_parts(p, n)) && is_sum(p, n->arg[0], axis);
}

/* Is the node's value only added in memory, perhaps after further sums, or converted? */
static bool is_only_added(const struct program *p, int phase, int node)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task == NONE || p->tasks.v[n->task].phase != phase || !ints_hold(n->arg, node_arity(n), node))
			continue;
		if (n->op == OP_SUM || converts_parts(p, n)) {
			if (!is_only_added(p, phase, i))
				return false;
		} else if (n->op != OP_STORE || !n->adds || n->arg[0] != node) {
			return false;
		}
	}
	return true;
}

/* Can each tile of the phase have a part of the axis, although no store has it? Yes if every store adds, at indices that
 * are no values, a sum over the axis, and nothing but such stores, further sums and conversions uses these sums. */
static bool adds_over(const struct program *p, int phase, int axis)
{
	bool any = false;		/* addition */

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		bool over = sums_over(p, n, axis);

		if (n->task == NONE || p->tasks.v[n->task].phase != phase)
			continue;
		if (n->op == OP_STORE && (!n->adds || has_index_values(n) || !is_sum(p, n->arg[0], axis)))
			return false;
		if (!over && node_goes_along(n, axis))
			return false;
		if ((over && (n->op == OP_SUM || n->ref == NONE)) || (n->op == OP_GET && !node_has_axis(n, axis)))
			if (!is_only_added(p, phase, i))
				return false;
		any |= n->op == OP_STORE;
	}
	return any;
}

/* Roles are set from the weakest to the strongest. */
void axis_roles(const struct program *p, int phase, enum axis_role role[AXES_MAX])
{
	bool stored[AXES_MAX] = { false };

	for (int a = 0; a < AXES_MAX; a++)
		role[a] = AXIS_UNUSED;
	for (int i = 0; i < p->tasks.n; i++) {
		const struct task *t = &p->tasks.v[i];

		for (int j = 0; j < t->nodes.n && t->phase == phase; j++) {
			const struct node *n = &p->nodes.v[t->nodes.v[j]];

			use_axes(p, role, n);
			for (int k = 0; n->op == OP_STORE && k < n->naxes; k++)
				stored[n->axis[k]] = true;
		}
	}
	for (int a = 0; a < AXES_MAX; a++)
		if ((stored[a] && !(p->phases.v[phase].undivided >> a & 1)) || (role[a] == AXIS_FULL && p->axes.v[a].packs == NONE && adds_over(p, phase, a)))
			role[a] = AXIS_GRID;
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];

		for (int j = 0; j < l->naxes && l->phase == phase && l->body.n; j++)
			role[l->axis[j]] = AXIS_LOOP;
	}
	for (int i = 0; i < p->phases.v[phase].nbatch; i++)
		role[p->phases.v[phase].batch[i]] = AXIS_BATCH;
	for (int a = 0; a < p->axes.n; a++) {
		int packs = p->axes.v[a].packs;

		if (role[a] == AXIS_FULL && packs != NONE && role[packs] != AXIS_UNUSED)
			role[a] = role[packs];
	}
}

enum axis_role program_axis_role(const struct program *p, int phase, int axis)
{
	enum axis_role role[AXES_MAX];

	axis_at(p, axis);
	if (phase < 0 || phase >= p->phases.n)
		BUG("no phase %d", phase);
	axis_roles(p, phase, role);
	return role[axis];
}

bool program_reduces_tile(const struct program *p, const struct node *n, int axis)
{
	const struct task *t = &p->tasks.v[n->task];

	return program_axis_bound(p, t->loop, axis) || ((n->partial >> axis & 1) && !node_has_axis(n, axis) &&
		program_axis_role(p, t->phase, axis) == AXIS_GRID);
}

bool program_has_any(const struct program *p)
{
	for (int i = 0; i < p->axes.n; i++)
		if (p->axes.v[i].multiple)
			return true;
	return false;
}

bool axes_end_alike(const struct program *p, int a, int b)
{
	const struct axis *x = &p->axes.v[a], *y = &p->axes.v[b];

	return a == b || x->like == b || y->like == a || (x->like != NONE && x->like == y->like) ||
		(x->size == y->size && !x->multiple && !y->multiple);
}

const struct program *program_at_sizes(struct arena *a, const struct program *p, const int64_t *sizes)
{
	struct program *q = arena_copy(a, p, 1, sizeof(*p));

	q->axes.v = arena_copy(a, p->axes.v, (size_t)p->axes.n, sizeof(*p->axes.v));
	for (int i = 0; i < q->axes.n; i++) {
		q->axes.v[i].size = sizes[i];
		q->axes.v[i].multiple = 0;
		q->axes.v[i].like = NONE;
	}
	return q;
}
