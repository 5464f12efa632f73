#include "tile/meaning.h"

#include <math.h>

#include "tile/meaning_sample.h"
#include "tile/program_build.h"

/* Outcomes of a sample under two tilings, on the same inputs. */
struct pair {
	struct outcome one, other;
};

/* Do outputs under tilings of the axis (NONE: of all) differ from those of a single tile, out->one? */
static bool differs_along(struct arena *a, const struct sample *s, int axis, int inputs, struct pair *out)
{
	for (enum sample_tiles tiles = TILES_FEW; tiles <= TILES_MANY; tiles++)
		if (sample_run(a, s, axis, tiles, inputs, &out->other) && !same_outputs(s, &out->one, &out->other))
			return true;
	return false;
}

/* Find two tilings of the axis (NONE: of all) under which the outputs differ. */
static bool find_pair(struct arena *a, const struct sample *s, int axis, struct pair *out)
{
	for (int inputs = 0; inputs < INPUT_KINDS; inputs++)
		if (sample_run(a, s, NONE, TILES_ONE, inputs, &out->one) && differs_along(a, s, axis, inputs, out))
			return true;
	return false;
}

static bool differs_with(struct arena *a, const struct sample *s, int inputs)
{
	struct arena_mark mark;
	bool differs = false;
	struct pair p;

	if (!sample_run(a, s, NONE, TILES_ONE, inputs, &p.one))
		return false;
	mark = arena_mark(a);
	for (int axis = NONE; axis < s->p.axes.n && !differs; axis++) {
		if (axis == NONE || (s->varies[axis] && s->nvary > 1))
			differs = differs_along(a, s, axis, inputs, &p);
		arena_reset(a, mark);
	}
	return differs;
}

/* Do the outputs differ between tilings, of one axis at a time or of all at once? */
static bool sample_differs(struct arena *a, const struct sample *s)
{
	struct arena_mark mark = arena_mark(a);
	bool differs = false;

	for (int inputs = 0; inputs < INPUT_KINDS && !differs; inputs++) {
		differs = differs_with(a, s, inputs);
		arena_reset(a, mark);
	}
	return differs;
}

/* A loop without whose bounds the outputs agree: which iterations they leave out depends on the tiles. */
static int find_unmasked(struct arena *a, const struct sample *s)
{
	for (int i = 0; i < s->p.loops.n; i++) {
		const struct loop *l = &s->p.loops.v[i];
		struct sample all = *s;

		if (!l->has_from && !l->has_upto)
			continue;
		all.p.loops.v = arena_copy(a, s->p.loops.v, (size_t)s->p.loops.n, sizeof(*l));
		all.p.loops.v[i].has_from = all.p.loops.v[i].has_upto = false;
		if (!sample_differs(a, &all))
			return i;
	}
	return NONE;
}

/* Does the node give the carry a value, in a loop over the axis that the carry outlives? */
static bool updates(const struct program *p, int node, int carry, int axis)
{
	const struct node *n = &p->nodes.v[node];

	return (n->op == OP_SET || n->op == OP_MMA) && n->ref == carry && n->task != NONE && program_axis_bound(p,
		p->tasks.v[n->task].loop, axis) && !program_axis_bound(p, p->carries.v[carry].loop, axis);
}

/* The first update of the carry in a loop over the axis; sets before products. */
static int find_update(const struct program *p, int carry, int axis)
{
	int product = NONE;

	for (int i = 0; i < p->nodes.n; i++) {
		if (!updates(p, i, carry, axis))
			continue;
		if (p->nodes.v[i].op == OP_SET)
			return i;
		product = product == NONE ? i : product;
	}
	return product;
}

/* Mark all nodes that the marked ones are computed from, but not through carries. */
static void mark_arguments(const struct program *p, bool *mark)
{
	for (int i = p->nodes.n - 1; i >= 0; i--)
		for (int j = 0; mark[i] && j < node_arity(&p->nodes.v[i]); j++)
			mark[p->nodes.v[i].arg[j]] = true;
}

/* Do updates of the carry read another carry that is suspect? Then that one is to blame. */
static bool follows_another(struct arena *a, const struct program *p, const bool *suspect, int carry, int axis)
{
	bool *mark = ARENA_ARRAY(a, p->nodes.n, bool);

	for (int i = 0; i < p->nodes.n; i++)
		mark[i] = updates(p, i, carry, axis);
	mark_arguments(p, mark);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (mark[i] && n->op == OP_GET && n->ref != carry && suspect[n->ref])
			return true;
	}
	return false;
}

/* The carry that differs by itself at the end of a loop over the axis. */
static int find_carry(struct arena *a, const struct sample *s, const struct pair *pair, int axis)
{
	const struct program *p = &s->p;
	bool *suspect = ARENA_ARRAY(a, p->carries.n, bool);
	int first = NONE;

	for (int i = 0; i < p->carries.n; i++)
		suspect[i] = find_update(p, i, axis) != NONE && !same_carry(s, i, &pair->one, &pair->other);
	for (int i = 0; i < p->carries.n; i++) {
		if (!suspect[i])
			continue;
		if (!follows_another(a, p, suspect, i, axis))
			return i;
		first = first == NONE ? i : first;
	}
	return first;
}

/* The first store in a loop over the axis, or addition, of a tensor that differs. */
static int find_store(const struct sample *s, const struct pair *pair, int axis)
{
	const struct program *p = &s->p;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_STORE && (n->adds || program_axis_bound(p, p->tasks.v[n->task].loop, axis)) &&
		    !same_tensor(s, n->ref, &pair->one, &pair->other))
			return i;
	}
	return NONE;
}

/* A scan or reduction along the axis, of one tile, from which the store's value comes. */
static int find_partial(struct arena *a, const struct program *p, int store, int axis)
{
	bool *mark = ARENA_ARRAY(a, p->nodes.n, bool);

	mark[store] = true;
	mark_arguments(p, mark);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (mark[i] && node_goes_along(n, axis))
			return i;
	}
	return NONE;
}

static enum err_code blame_bound(const struct program *p, int loop, struct err *e)
{
	const struct loop *l = &p->loops.v[loop];
	const char *axis = p->axes.v[l->axis[0]].name;
	const char *what = l->has_upto ? l->has_from ? "'from' and 'upto'" : "'upto'" : "'from'";

	return err_set(e, ERR_INPUT, l->loc, "the result depends on the tile of '%s': this loop visits "
		"complete tiles, also what of them lies outside %s; mask that in the body with "
		"where(), by %s:index(), so that it counts for nothing", axis, what, axis);
}

static bool has_infinity(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_CONST && isinf(p->nodes.v[i].k))
			return true;
	return false;
}

/* A loop and one of its bounds that leaves out all of the loop's axis for some elements. For such an element the
 * program may mean something else in every tile, as it takes part in the tiles of its neighbours. */
struct emptied {
	int loop;			/* NONE: there is none */
	bool upto;
};

/* The bound that empties the loop for some elements, if the sample agrees with itself where these are left out. */
static struct emptied find_emptied(struct arena *a, const struct sample *s)
{
	for (int i = 0; i < 2 * s->p.loops.n; i++) {
		struct emptied x = { .loop = i / 2, .upto = i % 2 };
		struct sample one;

		if (sample_is_emptied(s, x.loop, x.upto) && sample_keep_one(a, s, x.loop, x.upto, &one) &&
		    !sample_differs(a, &one))
			return x;
	}
	return (struct emptied){ .loop = NONE };
}

static enum err_code blame_emptied(struct arena *a, const struct sample *s, struct emptied x, struct err *e)
{
	const struct program *p = &s->p;
	const struct loop *l = &p->loops.v[x.loop];
	const char *axis = p->axes.v[l->axis[0]].name;
	struct buf where = buf_new(a), end = buf_new(a);
	int64_t at[AXES_MAX], bound;

	if (!sample_find_empty(s, x.loop, x.upto, at, &bound))
		BUG("loop %d is emptied nowhere", x.loop);
	for (int i = 0; i < p->axes.n; i++)
		if (index_uses(x.upto ? &l->upto : &l->from, i))
			buf_printf(&where, "%s%s = %lld", where.len ? ", " : "", p->axes.v[i].name, (long long)at[i]);
	if (!x.upto)
		buf_printf(&end, ", and the last element is %lld", (long long)s->size[l->axis[0]] - 1);
	return err_set(e, ERR_INPUT, l->loc, "the result depends on the tile of '%s', but only where no element of it "
		"is inside the bounds of this loop: at %s '%s' is %lld%s; which masked elements are visited there "
		"depends on the tiles, so let masked elements count for nothing in the body (weights of 0, not only "
		"scores of -1e30), or bind sizes at which this does not occur", axis, where.text,
		x.upto ? "upto" : "from", (long long)bound, end.text);
}

static enum err_code blame_carry(const struct sample *s, int carry, int axis, const struct pair *pair, struct err *e)
{
	const struct program *p = &s->p;
	const struct node *n = &p->nodes.v[find_update(p, carry, axis)];
	const char *name = p->axes.v[axis].name, *leaves;
	struct phrase loop = loop_phrase(p, loop_over(p, p->tasks.v[n->task].loop, axis));

	if (!nan_differs(s, carry, &pair->one, &pair->other))
		leaves = "another value in it for every tile";
	else if (!has_infinity(p))
		leaves = "a NaN in it for some tiles";
	else
		return err_set(e, ERR_INPUT, n->loc, "the result depends on the tile of '%s': carry '%s' is updated "
			"once a tile, and %s leaves a NaN in it for some tiles, as -inf - -inf is NaN; where a "
			"complete tile may be masked, mask with a large finite number such as -1e30", name,
			p->carries.v[carry].name, loop.s);
	return err_set(e, ERR_INPUT, n->loc, "the result depends on the tile of '%s': carry '%s' is updated once a "
		"tile, and %s leaves %s; write an update that gives the same whether '%s' is taken in one tile or in "
		"several, or take one index after the other, with batch=true of the loop", name,
		p->carries.v[carry].name, loop.s, leaves, name);
}

static enum err_code blame_addition(const struct program *p, int store, int axis, struct err *e)
{
	const struct node *n = &p->nodes.v[store];
	const char *name = p->axes.v[axis].name;

	return err_set(e, ERR_INPUT, n->loc, "the result depends on the tile of '%s': each of its tiles adds to "
		"'%s' what does not come from this tile alone; add the part of one tile, or take '%s' in a loop "
		"and add behind it", name, p->tensors.v[n->ref].name, name);
}

static enum err_code blame_store(struct arena *a, const struct program *p, int store, int axis, struct err *e)
{
	const struct node *n = &p->nodes.v[store];
	const char *name = p->axes.v[axis].name, *tensor = p->tensors.v[n->ref].name;
	int partial = find_partial(a, p, store, axis);

	if (n->adds)
		return blame_addition(p, store, axis, e);
	if (partial != NONE)
		return err_set(e, ERR_INPUT, p->nodes.v[partial].loc, "the result depends on the tile "
			"of '%s': inside a loop over '%s' this %s goes along one tile, and '%s' is "
			"stored from it; join it with a carry that holds what the tiles before "
			"come to", name, name, op_name(p->nodes.v[partial].op), tensor);
	return err_set(e, ERR_INPUT, n->loc, "the result depends on the tile of '%s': what is stored to "
		"'%s' is another value for every tile; store what is the same whether '%s' is "
		"taken in one tile or in several", name, tensor, name);
}

static enum err_code blame_axis(struct arena *a, const struct sample *s, int axis,
				const struct pair *pair, struct err *e)
{
	int carry = find_carry(a, s, pair, axis), store = find_store(s, pair, axis);

	if (carry != NONE)
		return blame_carry(s, carry, axis, pair, e);
	if (store != NONE)
		return blame_store(a, &s->p, store, axis, e);
	for (int i = 0; i < s->p.loops.n; i++) {
		const struct loop *l = &s->p.loops.v[i];

		if (ints_hold(l->axis, l->naxes, axis))
			return err_set(e, ERR_INPUT, l->loc, "the result depends on the tile of '%s'; write the loop "
				"so that it gives the same whether '%s' is taken in one tile or in several",
				s->p.axes.v[axis].name, s->p.axes.v[axis].name);
	}
	BUG("axis %d is in no loop", axis);
}

/* Fill *e at the line of the statement that makes a sample differ, with what to do about it. */
static enum err_code blame(struct arena *a, const struct sample *s, struct err *e)
{
	struct emptied emptied = find_emptied(a, s);
	int loop = find_unmasked(a, s), first = NONE;
	struct pair pair;

	if (emptied.loop != NONE)
		return blame_emptied(a, s, emptied, e);
	if (loop != NONE)
		return blame_bound(&s->p, loop, e);
	for (int i = 0; i < s->p.axes.n; i++) {
		if (s->varies[i] && find_pair(a, s, i, &pair))
			return blame_axis(a, s, i, &pair, e);
		first = s->varies[i] && first == NONE ? i : first;
	}
	/* Only several together make a difference. */
	if (!find_pair(a, s, NONE, &pair))
		BUG("a sample that differed does not");
	return blame_axis(a, s, first, &pair, e);
}

/* A sample that differs may do so only because it is short. */
static enum err_code check_sample(struct arena *a, const struct sample *s, struct err *e)
{
	struct sample longer;

	if (!sample_differs(a, s))
		return OK;
	if (!sample_lengthen(a, s, &longer))
		return blame(a, s, e);
	return sample_differs(a, &longer) ? blame(a, &longer, e) : OK;
}

/* A sample has the beginning of each axis. For a loop whose bounds leave out tiles only elsewhere, samples are taken
 * there. */
static enum err_code check_samples(struct arena *a, const struct program *p, struct err *e)
{
	struct sample s;

	sample_shorten(a, p, &s);
	if (!s.nvary)
		return OK;
	TRY(check_sample(a, &s, e));
	for (int i = 0; i < 2 * p->loops.n * WHERE_COUNT; i++) {
		int where = i / (2 * p->loops.n), loop = i / 2 % p->loops.n;

		sample_shorten(a, p, &s);
		if (sample_shift(a, &s, loop, i % 2, where))
			TRY(check_sample(a, &s, e));
	}
	return OK;
}

/* Set uses of all nodes that the node is computed from, through carries, too: backward, and again while that finds another carry,
 * what is set to which may come later. */
static void mark_sources(struct arena *a, const struct program *p, int node, bool *uses)
{
	bool *carry = ARENA_ARRAY(a, p->carries.n, bool), again = true;

	uses[node] = true;
	while (again) {
		again = false;
		for (int i = p->nodes.n - 1; i >= 0; i--) {
			const struct node *n = &p->nodes.v[i];
			bool of_carry = node_gets_carry(n) || node_sets_carry(n);

			if (n->task != NONE && node_sets_carry(n) && carry[n->ref])
				uses[i] = true;
			for (int k = 0; uses[i] && k < node_arity(n); k++)
				uses[n->arg[k]] = true;
			if (uses[i] && of_carry && !carry[n->ref])
				again = carry[n->ref] = true;
		}
	}
}

/* Is any of the nodes of the tile's part of the axis? */
static bool comes_from_tile(const struct program *p, const bool *uses, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		int indices = n->op == OP_LOAD || n->op == OP_STORE ? p->tensors.v[n->ref].rank : 0;

		if (!uses[i])
			continue;
		if (node_has_axis(n, axis) || (n->op == OP_INDEX && n->ref == axis))
			return true;
		for (int d = 0; d < indices; d++)
			if (index_uses(&n->index[d], axis))
				return true;
	}
	return false;
}

/* Samples find what depends on tiles by its value. An addition that has nothing of an axis of the grid is done again by each tile of
 * the axis, which a sample does not see where it adds zeros. */
static enum err_code check_additions(struct arena *a, const struct program *p, struct err *e)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		bool *uses;

		if (n->op != OP_STORE || !n->adds || n->task == NONE)
			continue;
		uses = ARENA_ARRAY(a, p->nodes.n, bool);
		mark_sources(a, p, i, uses);
		for (int axis = 0; axis < p->axes.n; axis++)
			if (p->axes.v[axis].size > 1 && p->axes.v[axis].packs == NONE && !p->axes.v[axis].single &&
			    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID && !comes_from_tile(p, uses, axis))
				return blame_addition(p, i, axis, e);
	}
	return OK;
}

enum err_code meaning_check(struct arena *a, const struct program *p, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	enum err_code code = check_additions(a, p, e);

	code = code ? code : check_samples(a, p, e);

	arena_reset(a, mark);
	return code;
}
