/* Which axes of each value number the rows of its fragment, and which the columns.
 *
 * needs: a finished program and its extents
 * computes: k->node_shape, k->carry_shape
 *
 * The sides are fixed by the products: rows and columns of the result, and of a first
 * operand that comes from registers, and of what is fetched. A reduction's argument has the sides of the result, and
 * element-wise work keeps those of its arguments, as far as they agree: an argument with
 * an axis on the other side takes a layout_conversion (conversions.h). What no product fixes is reduced
 * along columns, and takes its first axis otherwise as rows. */
#include "lower/layout/conversions.h"
#include "lower/passes.h"
#include "tile/reach.h"

enum side { SIDE_FREE, SIDE_ROW, SIDE_COL };
enum { QUAD_COLUMNS = 8 };		/* least columns that give each of the four threads of a row its pair */

struct sides {
	const struct plan *plan;
	const struct program *p;
	const struct extents *x;
	int *parent;			/* union-find over node and carry axis positions */
	enum side *side;		/* of a root */
	int phase;
	uint64_t deep;			/* axes that a product contracts */
	uint64_t contiguous;		/* axes of which neighbours are neighbours in memory */
};

static int node_key(int node, int pos)
{
	return node * RANK_MAX + pos;
}

static int carry_key(const struct sides *s, int carry, int pos)
{
	return (s->p->nodes.n + carry) * RANK_MAX + pos;
}

static int find_root(const struct sides *s, int key)
{
	while (s->parent[key] != key)
		key = s->parent[key] = s->parent[s->parent[key]];
	return key;
}

static enum err_code fix_side(struct sides *s, int key, enum side side, const struct node *n, struct err *e)
{
	int root = find_root(s, key);

	if (s->side[root] != SIDE_FREE && s->side[root] != side)
		return err_set(e, ERR_ILLEGAL, n->loc, "%s: one use has an axis of this value as "
			"rows of a fragment, another as columns; let another lane make it, so that "
			"it lies in shared memory", op_name(n->op));
	s->side[root] = side;
	return OK;
}

static enum err_code unify_sides(struct sides *s, int a, int b, const struct node *n, struct err *e)
{
	int x = find_root(s, a), y = find_root(s, b);

	if (x == y)
		return OK;
	if (s->side[y] != SIDE_FREE)
		TRY(fix_side(s, x, s->side[y], n, e));
	s->parent[y] = x;
	return OK;
}

/* Can two axes be on one side, as far as is decided? */
static bool can_agree(const struct sides *s, int a, int b)
{
	enum side x = s->side[find_root(s, a)], y = s->side[find_root(s, b)];

	return x == SIDE_FREE || y == SIDE_FREE || x == y;
}

static int position(const int *axes, int n, int axis)
{
	for (int i = 0; i < n; i++)
		if (axes[i] == axis)
			return i;
	return NONE;
}

/* Does the value of a node, or a carry, reach its users through shared memory? Then each of them reads the elements
 * that it needs, and its fragment need not lie as theirs. The other is NONE. */
static bool is_shared(const struct sides *s, int node, int carry)
{
	const struct graph *g = s->plan->graph;
	bool any = false;

	for (int i = 0; i < g->buffers.n; i++) {
		if (g->buffers.v[i].node != node || g->buffers.v[i].carry != carry)
			continue;
		if (plan_scope(s->plan, i) != SCOPE_SHARED)
			return false;
		any = true;
	}
	return any;
}

/* Put the axes of a node on the same sides as those that another value has at `axis`, whose
 * keys are from `first` on; or, if some of them are on others, none. */
static enum err_code unify_axes(struct sides *s, int node, const int *axis, int naxes, int first, struct err *e)
{
	const struct node *n = &s->p->nodes.v[node];

	for (int i = 0; i < n->naxes && n->op != OP_MMA; i++) {
		int pos = position(axis, naxes, n->axis[i]);

		if (pos != NONE && !can_agree(s, node_key(node, i), first + pos))
			return OK;
	}
	for (int i = 0; i < n->naxes; i++) {
		int pos = position(axis, naxes, n->axis[i]);

		if (pos != NONE)
			TRY(unify_sides(s, node_key(node, i), first + pos, n, e));
	}
	return OK;
}

static enum err_code unify_with_argument(struct sides *s, int node, int arg, struct err *e)
{
	const struct node *n = &s->p->nodes.v[node], *a = &s->p->nodes.v[arg];

	if (a->task != n->task && is_shared(s, arg, NONE))
		return OK;
	return unify_axes(s, node, a->axis, a->naxes, node_key(arg, 0), e);
}

static enum err_code unify_with_carry(struct sides *s, int node, int carry, struct err *e)
{
	const struct carry *c = &s->p->carries.v[carry];

	if (is_shared(s, NONE, carry))
		return OK;
	return unify_axes(s, node, c->axis, c->naxes, carry_key(s, carry, 0), e);
}

/* Is the value in registers as the operand of a product? */
static bool is_fetched(const struct sides *s, int node)
{
	int task = s->p->nodes.v[node].task;

	return task != NONE && (s->p->tasks.v[task].fetches || s->p->tasks.v[task].direct) && !is_shared(s, node, NONE);
}

static enum err_code fix_product(struct sides *s, int node, struct err *e)
{
	const struct node *n = &s->p->nodes.v[node];
	int first = product_operand(s->p, n, 0);
	const struct node *a = &s->p->nodes.v[first];
	bool in_registers[] = { !is_shared(s, first, NONE), is_fetched(s, n->arg[1]) };

	for (int i = 0; i < 2; i++)
		for (int x = 0; x < s->p->nodes.v[product_operand(s->p, n, i)].naxes; x++) {
			int axis = s->p->nodes.v[product_operand(s->p, n, i)].axis[x];

			if (position(n->axis, n->naxes, axis) == NONE)
				s->deep |= (uint64_t)1 << axis;
		}
	for (int i = 0; i < n->naxes; i++)
		TRY(fix_side(s, node_key(node, i), position(a->axis, a->naxes, n->axis[i]) != NONE ?
			SIDE_ROW : SIDE_COL, n, e));
	for (int k = 0; k < 2; k++) {
		int operand = k ? n->arg[1] : first;

		a = &s->p->nodes.v[operand];
		for (int i = 0; in_registers[k] && i < a->naxes; i++)
			TRY(fix_side(s, node_key(operand, i), position(n->axis, n->naxes, a->axis[i]) != NONE ?
				SIDE_ROW : SIDE_COL, n, e));
	}
	return n->ref == NONE ? OK : unify_with_carry(s, node, n->ref, e);
}

/* What is read at other indices has the sides of what it comes from, and so has an axis that is renamed. */
static enum err_code connect_at(struct sides *s, int node, struct err *e)
{
	const struct node *n = &s->p->nodes.v[node], *a = &s->p->nodes.v[n->arg[0]];
	int from, to, other;

	if (a->task == n->task && a->op == OP_AT && !at_renames(s->p, n, &other))
		return unify_with_argument(s, node, at_source(s->p, node), e);
	TRY(unify_with_argument(s, node, n->arg[0], e));
	if (!at_renames(s->p, n, &other) || (a->task != n->task && is_shared(s, n->arg[0], NONE)))
		return OK;
	from = node_key(n->arg[0], position(a->axis, a->naxes, n->ref));
	to = node_key(node, position(n->axis, n->naxes, other));
	return can_agree(s, from, to) ? unify_sides(s, to, from, n, e) : OK;
}

static enum err_code connect_node(struct sides *s, int node, struct err *e)
{
	const struct node *n = &s->p->nodes.v[node];

	if (n->op == OP_MMA)
		return fix_product(s, node, e);
	if (n->op == OP_GET)
		return unify_with_carry(s, node, n->ref, e);
	if (n->op == OP_SET)
		TRY(unify_with_carry(s, n->arg[0], n->ref, e));
	if (n->op == OP_AT)
		return connect_at(s, node, e);
	for (int i = 0; i < op_arity(n->op); i++)
		TRY(unify_with_argument(s, node, n->arg[i], e));
	return OK;
}

/* Nodes with the strictest constraints are connected first: products, reductions, others. */
static int connect_priority(enum op op)
{
	enum op_class c = op_class(op);

	return c == CLASS_MMA ? 0 : c == CLASS_REDUCE || c == CLASS_SCAN ? 1 : 2;
}

/* The other axes of what a long reduction along columns reads are rows: as columns they would divide its elements
 * among the threads of several warps. */
static void make_others_rows(struct sides *s, int node, int pos)
{
	for (int i = 0; i < s->p->nodes.v[node].naxes && extent_of_node(s->x, node, pos) >= QUAD_COLUMNS; i++) {
		enum side *side = &s->side[find_root(s, node_key(node, i))];

		if (i != pos && *side == SIDE_FREE && extent_of_node(s->x, node, i) > 1)
			*side = SIDE_ROW;
	}
}

/* The axis of which neighbours are neighbours in the tensor of a load or store; NONE: of none. */
static int contiguous_axis(const struct program *p, const struct node *n)
{
	const struct index_expr *last;

	if (!p->tensors.v[n->ref].rank)
		return NONE;
	last = &n->index[p->tensors.v[n->ref].rank - 1];
	for (int t = 0; t < last->n; t++)
		if (last->term[t].coef == 1 && last->term[t].div == 1)
			return last->term[t].axis;
	return NONE;
}

/* Has the value the axis, or something that is read out of it at other indices? */
static bool gives_axis(const struct sides *s, int value, int axis)
{
	bool gives = position(s->p->nodes.v[value].axis, s->p->nodes.v[value].naxes, axis) != NONE;

	for (int i = 0; i < s->p->nodes.n && !gives; i++) {
		const struct node *n = &s->p->nodes.v[i];

		gives = n->op == OP_AT && n->task != NONE && position(n->axis, n->naxes, axis) != NONE && at_source(s->p, i) == value;
	}
	return gives;
}

/* Bits of the tile that a load or store moves, if it has the axis and its neighbours in memory are those of one of a's axes:
 * negative if of that axis. */
static double bits_as_neighbours(const struct sides *s, int move, const struct node *a, int axis)
{
	int along = contiguous_axis(s->p, &s->p->nodes.v[move]);
	int value = s->p->nodes.v[move].op == OP_LOAD ? move : s->p->nodes.v[move].arg[0];
	const struct node *v = &s->p->nodes.v[value];
	double bits = dtype_bits(s->p->tensors.v[s->p->nodes.v[move].ref].type);

	if (along == NONE || !gives_axis(s, value, axis) || position(a->axis, a->naxes, along) == NONE)
		return 0;
	for (int i = 0; i < v->naxes; i++)
		bits *= (double)extent_of_node(s->x, value, i);
	return along == axis ? -bits : bits;
}

/* Does a reduction of `arg` along its axis at `pos` go along rows, as neighbours in memory are those of another axis? Each
 * thread then adds up its columns, whose elements it reads several at a time. Where there are products, threads
 * have no more than two neighbours, and columns are exchanged by shuffles: nothing is gained. */
static bool goes_along_rows(const struct sides *s, int arg, int pos)
{
	const struct node *a = &s->p->nodes.v[arg];
	double others = 1, bits = 0;

	for (int i = 0; i < a->naxes; i++) {
		enum side side = s->side[find_root(s, node_key(arg, i))];

		others *= i == pos || side == SIDE_ROW ? 1 : (double)extent_of_node(s->x, arg, i);
	}
	if (s->deep || others < QUAD_COLUMNS)
		return false;
	for (int i = 0; i < s->p->nodes.n; i++) {
		const struct node *n = &s->p->nodes.v[i];

		if ((n->op == OP_LOAD || n->op == OP_STORE) && n->task != NONE && s->p->tasks.v[n->task].phase == s->phase &&
		    (a->op != OP_LOAD || i == arg))
			bits += bits_as_neighbours(s, i, a, a->axis[pos]);
	}
	return bits > 0;
}

/* Does a reduction of the phase go along the axis? */
static bool is_reduced(const struct sides *s, int axis)
{
	for (int i = 0; i < s->p->nodes.n; i++) {
		const struct node *n = &s->p->nodes.v[i];

		if (op_class(n->op) == CLASS_REDUCE && n->ref == axis && n->task != NONE && s->p->tasks.v[n->task].phase == s->phase)
			return true;
	}
	return false;
}

/* The axes of the value that nothing has decided are columns, but for those that other reductions go along. */
static void make_columns(struct sides *s, int node)
{
	const struct node *n = &s->p->nodes.v[node];

	for (int i = 0; i < n->naxes; i++) {
		enum side *side = &s->side[find_root(s, node_key(node, i))];

		if (*side == SIDE_FREE && extent_of_node(s->x, node, i) > 1 && !is_reduced(s, n->axis[i]))
			*side = SIDE_COL;
	}
}

/* The axes of a reduction's result that nothing has decided are on the sides that they have in the argument. It says nothing
 * of them itself if it is read from shared memory. */
static void inherit_sides(struct sides *s, int node)
{
	const struct node *n = &s->p->nodes.v[node], *a = &s->p->nodes.v[n->arg[0]];

	for (int i = 0; i < n->naxes; i++) {
		int pos = position(a->axis, a->naxes, n->axis[i]);
		enum side *side = &s->side[find_root(s, node_key(node, i))];

		if (*side == SIDE_FREE && pos != NONE && extent_of_node(s->x, node, i) > 1)
			*side = s->side[find_root(s, node_key(n->arg[0], pos))];
	}
}

/* A reduction or scan in which no product has a say goes along columns: the elements of a row lie in four threads of
 * one warp. Where the axes that are left are columns, or hold the neighbours in memory, a reduction goes along rows. */
static void choose_side_of_fold(struct sides *s, int node)
{
	const struct node *n = &s->p->nodes.v[node], *a;
	bool scans = op_class(n->op) == CLASS_SCAN;
	enum side *result, *side;
	int pos;

	if (op_class(n->op) != CLASS_REDUCE && !scans)
		return;
	a = &s->p->nodes.v[n->arg[0]];
	pos = position(a->axis, a->naxes, n->ref);
	side = &s->side[find_root(s, node_key(n->arg[0], pos))];
	if (scans) {			/* of a value in shared memory, which does not constrain the result */
		result = &s->side[find_root(s, node_key(node, position(n->axis, n->naxes, n->ref)))];
		*result = *result == SIDE_FREE ? SIDE_COL : *result;
	}
	if (*side != SIDE_FREE)
		return;
	*side = SIDE_COL;
	for (int i = 0; i < a->naxes && !scans; i++)
		if (i != pos && s->side[find_root(s, node_key(n->arg[0], i))] == SIDE_COL)
			*side = SIDE_ROW;
	if (!scans && *side == SIDE_COL && goes_along_rows(s, n->arg[0], pos)) {
		*side = SIDE_ROW;
		make_columns(s, n->arg[0]);
	} else if (!scans && *side == SIDE_COL) {
		make_others_rows(s, n->arg[0], pos);
	}
}

static void prefer_columns(struct sides *s, int node)
{
	choose_side_of_fold(s, node);
	if (op_class(s->p->nodes.v[node].op) == CLASS_REDUCE)
		inherit_sides(s, node);
}

static bool in_phase(const struct kernel *k, int node)
{
	const struct program *p = k->plan->graph->program;
	int task = p->nodes.v[node].task;

	return task != NONE && p->tasks.v[task].nodes.n && p->tasks.v[task].phase == k->phase;
}

static int64_t extent_of_value(const struct sides *s, int value, int pos)
{
	int carry = value - s->p->nodes.n;

	return carry < 0 ? extent_of_node(s->x, value, pos) : extent_of_carry(s->x, carry, pos);
}

/* Of a value, which are the nodes and then the carries: the first axis with more than one element of which nothing has
 * decided is rows, unless there are rows. But if it is the only such axis, and contiguous in memory, it is columns:
 * each thread then has neighbours. */
static void choose_sides_of(struct sides *s, int value, int naxes)
{
	const int *axis = value < s->p->nodes.n ? s->p->nodes.v[value].axis : s->p->carries.v[value - s->p->nodes.n].axis;
	bool has_row = false;
	int longer = 0;

	for (int k = 0; k < naxes; k++) {
		has_row |= s->side[find_root(s, node_key(value, k))] == SIDE_ROW;
		longer += extent_of_value(s, value, k) > 1;
	}
	for (int k = 0; k < naxes; k++) {
		int root = find_root(s, node_key(value, k));

		if (s->side[root] != SIDE_FREE || extent_of_value(s, value, k) == 1)
			continue;
		s->side[root] = has_row || (longer == 1 && s->contiguous >> axis[k] & 1) ? SIDE_COL : SIDE_ROW;
		has_row = true;
	}
}

/* The result of a reduction along columns has one number a row, so an axis of it is rows. That must be said here, because
 * an argument that is read from shared memory does not decide it. */
static void keep_rows_of_sums(struct sides *s, int node)
{
	const struct node *n = &s->p->nodes.v[node], *a;

	if (op_class(n->op) != CLASS_REDUCE)
		return;
	a = &s->p->nodes.v[n->arg[0]];
	if (s->side[find_root(s, node_key(n->arg[0], position(a->axis, a->naxes, n->ref)))] != SIDE_COL)
		return;
	for (int i = 0; i < n->naxes; i++)
		if (s->side[find_root(s, node_key(node, i))] == SIDE_ROW)
			return;
	for (int i = 0; i < n->naxes; i++) {
		enum side *side = &s->side[find_root(s, node_key(node, i))];

		if (*side == SIDE_FREE && extent_of_node(s->x, node, i) > 1) {
			*side = SIDE_ROW;
			return;
		}
	}
}

/* The axes whose neighbours are neighbours in a tensor of the phase; none if it has products, whose results decide. */
static uint64_t find_contiguous(const struct kernel *k)
{
	const struct program *p = k->plan->graph->program;
	uint64_t axes = 0;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		int axis;

		if (!in_phase(k, i))
			continue;
		if (n->op == OP_MMA)
			return 0;
		axis = n->op == OP_LOAD || n->op == OP_STORE ? contiguous_axis(p, n) : NONE;
		if (axis != NONE)
			axes |= (uint64_t)1 << axis;
	}
	return axes;
}

/* Those with most axes first: a vector is a row or a column of what it is used with. */
static void choose_sides(struct sides *s)
{
	int nodes = s->p->nodes.n, carries = s->p->carries.n;

	for (int n = RANK_MAX; n > 0; n--)
		for (int i = 0; i < nodes + carries; i++)
			if ((i < nodes ? s->p->nodes.v[i].naxes : s->p->carries.v[i - nodes].naxes) == n)
				choose_sides_of(s, i, n);
}

/* Axes of one side go by their number in the program, so that all values agree. Those contiguous in memory are
 * behind the others: neighbours in registers and threads then are neighbours in memory. */
static int axis_rank(const struct sides *s, int axis)
{
	return (int)(s->contiguous >> axis & 1) * AXES_MAX + axis;
}

static void sort_axes(const struct sides *s, int *v, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && axis_rank(s, v[k]) < axis_rank(s, v[k - 1]); k--) {
			int t = v[k];

			v[k] = v[k - 1];
			v[k - 1] = t;
		}
}

/* The shape of a value, which are the nodes and then the carries. */
static struct shape2 shape_of(const struct sides *s, int value)
{
	int carry = value - s->p->nodes.n,
		naxes = carry < 0 ? s->p->nodes.v[value].naxes : s->p->carries.v[carry].naxes;
	const int *axis = carry < 0 ? s->p->nodes.v[value].axis : s->p->carries.v[carry].axis;
	const uint8_t *full = carry < 0 ? &s->x->full_axis[value * RANK_MAX] : &s->x->carry_full_axis[carry * RANK_MAX];
	struct shape2 v = { .rows = 1, .cols = 1 };

	for (int i = 0; i < naxes; i++) {
		enum side side = s->side[find_root(s, node_key(value, i))];
		int64_t extent = carry < 0 ? extent_of_node(s->x, value, i) : extent_of_carry(s->x, carry, i);

		v.full_axes |= (uint64_t)full[i] << axis[i];
		if (side != SIDE_FREE)	/* else it has one element, and no product asks for it */
			shape_add_axis(&v, side == SIDE_ROW, axis[i], extent);
	}
	sort_axes(s, v.row, v.nrow);
	sort_axes(s, v.col, v.ncol);
	return v;
}

enum err_code lower_shapes(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;
	const struct program *p = g->program;
	int keys = (p->nodes.n + p->carries.n) * RANK_MAX;
	struct sides s = { .plan = k->plan, .p = p, .x = &g->extents, .phase = k->phase, .parent = ARENA_ARRAY(&k->arena, keys, int),
		.side = ARENA_ARRAY(&k->arena, keys, enum side) };

	for (int i = 0; i < keys; i++)
		s.parent[i] = i;
	for (int priority = 0; priority < 3; priority++)
		for (int i = 0; i < p->nodes.n; i++)
			if (in_phase(k, i) && connect_priority(p->nodes.v[i].op) == priority)
				TRY(connect_node(&s, i, e));
	for (int i = 0; i < p->nodes.n; i++)
		if (in_phase(k, i))
			prefer_columns(&s, i);
	for (int i = 0; i < p->nodes.n; i++)
		if (in_phase(k, i))
			keep_rows_of_sums(&s, i);
	s.contiguous = find_contiguous(k);
	choose_sides(&s);
	k->contracted = s.deep;
	for (int i = 0; i < p->axes.n; i++)
		k->one_tile |= (uint64_t)(g->extents.tile[i] == p->axes.v[i].size && !p->axes.v[i].multiple) << i;
	k->node_shape = ARENA_ARRAY(&k->arena, p->nodes.n, struct shape2);
	k->carry_shape = ARENA_ARRAY(&k->arena, p->carries.n, struct shape2);
	for (int i = 0; i < p->nodes.n; i++)
		k->node_shape[i] = shape_of(&s, i);
	for (int i = 0; i < p->carries.n; i++)
		k->carry_shape[i] = shape_of(&s, p->nodes.n + i);
	return OK;
}
