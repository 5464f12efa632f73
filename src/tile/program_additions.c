/* What the tiles of the grid add in memory.
 *
 * Where sums over an axis of the grid are used by additions alone, each tile gives its part: a product of which each tile contracts a
 * part, the sum of a tile's rows. That is right if what is added is linear in these parts. Otherwise each tile has the sum over all of
 * the axis; and what is made of such sums alone must be added by one tile, so that the axis is not divided. */
#include "tile/extent.h"
#include "tile/program_build.h"

/* Where values go, through carries, too. */
struct uses {
	uint64_t *added;		/* the axes of the additions in memory that the value reaches */
	bool *stored;			/* does it reach a store that does not add? */
};

/* The axes of a value as a set, with those of words that hold elements of them. */
static uint64_t axis_set(const struct program *p, const struct node *n)
{
	uint64_t set = 0;

	for (int a = 0; a < p->axes.n; a++) {
		int packs = p->axes.v[a].packs;

		if (node_has_axis(n, a) || (packs != NONE && node_has_axis(n, packs)))
			set |= (uint64_t)1 << a;
	}
	return set;
}

static struct uses new_uses(struct arena *a, int n)
{
	return (struct uses){ ARENA_ARRAY(a, n, uint64_t), ARENA_ARRAY(a, n, bool) };
}

static struct uses find_uses(struct program *p)
{
	struct uses node = new_uses(&p->arena, p->nodes.n), carry = new_uses(&p->arena, p->carries.n);
	bool again = true;

	while (again) {
		again = false;
		for (int i = p->nodes.n - 1; i >= 0; i--) {
			const struct node *n = &p->nodes.v[i];

			if (n->task == NONE)
				continue;
			node.added[i] |= (n->op == OP_STORE && n->adds ? axis_set(p, n) : 0) |
				(node_sets_carry(n) ? carry.added[n->ref] : 0);
			node.stored[i] |= (n->op == OP_STORE && !n->adds) ||
				(node_sets_carry(n) && carry.stored[n->ref]);
			for (int k = 0; k < node_arity(n); k++) {
				node.added[n->arg[k]] |= node.added[i];
				node.stored[n->arg[k]] |= node.stored[i];
			}
			if (!node_gets_carry(n))
				continue;
			again |= (node.added[i] & ~carry.added[n->ref]) || (node.stored[i] && !carry.stored[n->ref]);
			carry.added[n->ref] |= node.added[i];
			carry.stored[n->ref] |= node.stored[i];
		}
	}
	return node;
}

/* ---- linear parts ---- */

/* How a value follows from the parts of sums that tiles of an axis have. */
enum linear {
	ZERO,				/* it is 0, or has no value yet */
	WITHOUT,			/* from none */
	LINEAR,				/* all tiles' values together are what one tile of all would have */
	OTHERWISE,
};

static enum linear join(enum linear a, enum linear b)
{
	return a == ZERO || a == b ? b : b == ZERO ? a : OTHERWISE;
}

static enum linear product(enum linear a, enum linear b)
{
	if (a == ZERO || b == ZERO)
		return ZERO;
	return a == WITHOUT ? b : b == WITHOUT ? a : OTHERWISE;
}

/* Does a conversion leave a sum of parts what it is, but for a rounding? */
static bool keeps_sums(const struct program *p, const struct node *n)
{
	return n->op == OP_CAST && (dtype_is_float(n->type) || n->type == p->nodes.v[n->arg[0]].type);
}

/* The result of the operation on arguments that follow so. */
static enum linear apply(const struct program *p, const struct node *n, const enum linear *x)
{
	bool any = false;

	for (int k = 0; k < node_arity(n); k++)
		any |= x[k] > WITHOUT;
	if (!any)
		return WITHOUT;
	if (n->op == OP_ADD || n->op == OP_SUB)
		return join(x[0], x[1]);
	if (n->op == OP_MUL || n->op == OP_MMA)
		return product(x[0], x[1]);
	if (n->op == OP_DIV)
		return x[1] == WITHOUT ? x[0] : OTHERWISE;
	if (n->op == OP_WHERE)
		return x[0] == WITHOUT ? join(x[1], x[2]) : OTHERWISE;
	if (n->op == OP_STORE)		/* the others are indices */
		return (node_arity(n) > 1 && x[1] > WITHOUT) || (node_arity(n) > 2 && x[2] > WITHOUT) ? OTHERWISE : x[0];
	return n->op == OP_NEG || n->op == OP_SET || n->op == OP_SUM || n->op == OP_CUMSUM || n->op == OP_AT ||
		keeps_sums(p, n) ? x[0] : OTHERWISE;
}

/* May each tile have a part of the sum over the axis, if what follows is linear? */
static bool is_candidate(const struct program *p, const struct uses *u, int node, int axis)
{
	const struct node *n = &p->nodes.v[node];
	bool sums = n->op == OP_SUM ? n->ref == axis : n->op == OP_MMA && node_has_axis(&p->nodes.v[n->arg[0]], axis);

	return sums && n->task != NONE && !node_has_axis(n, axis) && !u->stored[node] && !(u->added[node] >> axis & 1);
}

static enum linear linear_of(const struct program *p, const struct uses *u, int node, int axis, const enum linear *value,
	const enum linear *carry)
{
	const struct node *n = &p->nodes.v[node];
	enum linear x[3] = { WITHOUT, WITHOUT, WITHOUT }, out;

	if (n->op == OP_CONST)
		return n->k == 0 ? ZERO : WITHOUT;
	for (int k = 0; k < node_arity(n); k++)
		x[k] = value[n->arg[k]];
	if (n->op == OP_GET)
		return carry[n->ref];
	out = apply(p, n, x);
	if (is_candidate(p, u, node, axis))
		out = out <= WITHOUT ? LINEAR : OTHERWISE;
	return node_adds_to_carry(n) ? join(out, carry[n->ref]) : out;
}

/* Is all that the phase makes of parts of sums over the axis linear in them? */
static bool is_linear(struct program *p, const struct uses *u, int phase, int axis)
{
	enum linear *value = ARENA_ARRAY(&p->arena, p->nodes.n, enum linear);
	enum linear *carry = ARENA_ARRAY(&p->arena, p->carries.n, enum linear);
	bool again = true;

	for (int i = 0; i < p->carries.n; i++)
		carry[i] = p->carries.v[i].init == 0 ? ZERO : WITHOUT;
	while (again) {
		again = false;
		for (int i = 0; i < p->nodes.n; i++) {
			const struct node *n = &p->nodes.v[i];
			enum linear set;

			if (n->op != OP_CONST && (n->task == NONE || p->tasks.v[n->task].phase != phase))
				continue;
			value[i] = linear_of(p, u, i, axis, value, carry);
			if (value[i] == OTHERWISE)
				return false;
			set = node_sets_carry(n) ? join(value[i], carry[n->ref]) : ZERO;
			again |= node_sets_carry(n) && set != carry[n->ref];
			if (node_sets_carry(n))
				carry[n->ref] = set;
		}
	}
	return true;
}

static void mark_parts(struct program *p, int phase, int axis, const struct uses *u)
{
	bool any = false;

	for (int i = 0; i < p->nodes.n; i++)
		any |= is_candidate(p, u, i, axis) && p->tasks.v[p->nodes.v[i].task].phase == phase;
	if (!any || !is_linear(p, u, phase, axis))
		return;
	for (int i = 0; i < p->nodes.n; i++)
		if (is_candidate(p, u, i, axis) && p->tasks.v[p->nodes.v[i].task].phase == phase)
			p->nodes.v[i].partial |= (uint64_t)1 << axis;
}

/* ---- axes that are not divided ---- */

/* How values follow an axis of the grid, by node. */
struct follows {
	bool *from;			/* is it computed from something that has the axis? */
	bool *varies;			/* does it differ from tile to tile of the axis? */
};

static struct follows new_follows(struct arena *a, int n)
{
	return (struct follows){ ARENA_ARRAY(a, n, bool), ARENA_ARRAY(a, n, bool) };
}

static struct follows find_follows(struct program *p, const struct extents *x, int axis)
{
	struct follows f = new_follows(&p->arena, p->nodes.n), carry = new_follows(&p->arena, p->carries.n);
	bool again = true;

	while (again) {
		again = false;
		for (int i = 0; i < p->nodes.n; i++) {
			const struct node *n = &p->nodes.v[i];
			bool has = node_has_axis(n, axis), from = has || (node_gets_carry(n) && carry.from[n->ref]);
			bool varies = has ? !extent_is_full(x, i, axis) : node_gets_carry(n) && carry.varies[n->ref];

			if (n->task == NONE)
				continue;
			for (int k = 0; k < node_arity(n); k++) {
				from |= f.from[n->arg[k]];
				varies |= !has && f.varies[n->arg[k]];
			}
			f.from[i] = from;
			f.varies[i] = varies;
			if (!node_sets_carry(n))
				continue;
			again |= (from && !carry.from[n->ref]) || (varies && !carry.varies[n->ref]);
			carry.from[n->ref] |= from;
			carry.varies[n->ref] |= varies;
		}
	}
	return f;
}

/* Would each tile of the axis add the same, which, or where that is added, is made of all of the axis? */
static bool is_added_by_each(const struct program *p, const struct node *add, const struct extents *x,
	const struct follows *f, int axis)
{
	int value = add->arg[0];
	bool from = false;

	if (node_has_axis(&p->nodes.v[value], axis))
		return extent_is_full(x, value, axis);
	for (int k = 0; k < node_arity(add); k++) {
		if (f->varies[add->arg[k]])
			return false;
		from |= f->from[add->arg[k]];
	}
	return from;
}

/* Note the axis in the phases whose additions each tile of it would do. */
static bool note_undivided(struct program *p, const struct extents *x, int axis)
{
	struct follows f = { 0 };
	bool any = false;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		int phase = n->task == NONE ? NONE : p->tasks.v[n->task].phase;

		if (n->op != OP_STORE || !n->adds || phase == NONE || program_axis_role(p, phase, axis) != AXIS_GRID)
			continue;
		f = f.from ? f : find_follows(p, x, axis);
		if (!is_added_by_each(p, n, x, &f, axis))
			continue;
		p->phases.v[phase].undivided |= (uint64_t)1 << axis;
		any = true;
	}
	return any;
}

static bool adds_in_memory(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].adds && p->nodes.v[i].task != NONE)
			return true;
	return false;
}

void find_additions(struct program *p)
{
	struct uses u;
	struct tiling t = { 0 };
	struct extents x;
	bool again = true;
	struct err ignored;

	if (!adds_in_memory(p))
		return;
	u = find_uses(p);
	for (int phase = 0; phase < p->phases.n; phase++)
		for (int axis = 0; axis < p->axes.n; axis++)
			mark_parts(p, phase, axis, &u);
	/* Which axes are needed in full does not depend on tiles. Errors are reported where these are chosen. */
	while (again && !extents_infer(&p->arena, p, &t, &x, &ignored)) {
		again = false;
		for (int axis = 0; axis < p->axes.n; axis++)
			again |= note_undivided(p, &x, axis);
	}
}
