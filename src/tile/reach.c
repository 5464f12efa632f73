#include "tile/reach.h"

#include "tile/index_walk.h"

enum { TRIED_MOST = 1 << 16 };

/* Of the axes that the expression uses and `with` says; with NULL: all. False: they have too many elements. */
static bool begin_walk(struct index_walk *t, const struct program *p, const struct index_expr *x, const bool *with)
{
	bool used[AXES_MAX];

	for (int i = 0; i < p->axes.n; i++)
		used[i] = index_uses(x, i) && (!with || with[i]);
	return begin_index_walk(t, p, used, TRIED_MOST);
}

static struct index_range bounds_of(const struct program *p, const struct index_expr *x)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX];

	for (int i = 0; i < p->axes.n; i++)
		most[i] = p->axes.v[i].size - 1;
	return index_bounds(x, least, most);
}

bool index_stays_within(const struct program *p, const struct index_expr *x, int64_t size)
{
	struct index_range r = bounds_of(p, x);
	struct index_walk t;

	if (r.lo >= 0 && r.hi < size)
		return true;
	if (!begin_walk(&t, p, x, NULL))
		return false;
	do {
		int64_t value = index_eval(x, t.at);

		if (value < 0 || value >= size)
			return false;
	} while (next_indices(&t));
	return true;
}

bool at_is_distinct(struct arena *a, const struct program *p, const struct node *n)
{
	const struct node *from = &p->nodes.v[n->arg[0]];
	const struct index_expr *x = &n->index[0];
	struct index_range r = bounds_of(p, x);
	struct arena_mark mark = arena_mark(a);
	bool with[AXES_MAX] = { false }, distinct = true, *taken;
	struct index_walk t;

	/* along its other axes the argument has another element for each element of the result */
	for (int i = 0; i < n->naxes; i++)
		with[n->axis[i]] = n->axis[i] == n->ref || !node_has_axis(from, n->axis[i]);
	if (!begin_walk(&t, p, x, with) || r.hi - r.lo > TRIED_MOST)
		return false;
	taken = ARENA_ARRAY(a, r.hi - r.lo + 1, bool);
	do {
		bool *at = &taken[index_eval(x, t.at) - r.lo];

		distinct &= !*at;
		*at = true;
	} while (distinct && next_indices(&t));
	arena_reset(a, mark);
	return distinct;
}

bool index_flips_bits(const struct program *p, const struct index_expr *x, int axis, int64_t *mask)
{
	struct index_walk t;

	for (int i = 0; i < x->n; i++)
		if (x->term[i].axis != axis)
			return false;
	if (!begin_walk(&t, p, x, NULL) || x->k <= 0)
		return false;
	*mask = x->k;			/* what index 0 becomes */
	do {
		if (index_eval(x, t.at) != (t.at[axis] ^ *mask))
			return false;
	} while (next_indices(&t));
	return true;
}

bool at_renames(const struct program *p, const struct node *n, int *other)
{
	const struct index_term *t = &n->index[0].term[0];

	if (n->op != OP_AT || n->index[0].n != 1 || n->index[0].k || t->coef != 1 || t->div != 1 || t->mod)
		return false;
	*other = t->axis;
	return node_has_axis(n, t->axis) && t->axis != n->ref && !node_has_axis(&p->nodes.v[n->arg[0]], t->axis) &&
		!p->axes.v[t->axis].multiple && p->axes.v[t->axis].size == p->axes.v[n->ref].size;
}
