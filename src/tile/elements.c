#include "tile/elements.h"

#include "tile/index_walk.h"
#include "tile/value_set.h"

enum {
	RUNS_MAX = 1 << 20,		/* of a set; what has more is not known */
	TRIED_MOST = 1 << 22,		/* indices of axes that are tried one by one, likewise */
	ELEMENTS_MOST = 1 << 24,	/* of the dimensions that are tried together */
};

/* ---- sets ---- */

/* Add a run that begins at the end of the set, or behind it. */
static void add_run(struct arena *a, struct elements *x, int64_t from, int64_t to)
{
	if (from >= to)
		return;
	if (x->v.n && x->v.v[x->v.n - 1].to >= from)
		x->v.v[x->v.n - 1].to = max_i64(x->v.v[x->v.n - 1].to, to);
	else
		VEC_PUSH(a, &x->v, ((struct element_run){ from, to }));
}

struct elements elements_all(struct arena *a, int64_t n)
{
	struct elements x = { 0 };

	add_run(a, &x, 0, n);
	return x;
}

struct elements elements_join(struct arena *a, const struct elements *x, const struct elements *y, int64_t by)
{
	struct elements out = { 0 };
	int i = 0, k = 0;

	while (i < x->v.n || k < y->v.n) {
		if (k == y->v.n || (i < x->v.n && x->v.v[i].from <= y->v.v[k].from + by)) {
			add_run(a, &out, x->v.v[i].from, x->v.v[i].to);
			i++;
		} else {
			add_run(a, &out, y->v.v[k].from + by, y->v.v[k].to + by);
			k++;
		}
	}
	return out;
}

int64_t find_missing_elements(const struct elements *x, int64_t by, const struct elements *y)
{
	int k = 0;

	for (int i = 0; i < x->v.n; i++) {
		int64_t from = x->v.v[i].from + by;

		while (k < y->v.n && y->v.v[k].to <= from)
			k++;
		if (k == y->v.n || y->v.v[k].from > from)
			return from;
		if (y->v.v[k].to < x->v.v[i].to + by)
			return y->v.v[k].to;	/* no run begins there */
	}
	return NONE;
}

/* ---- an access ---- */

/* A load or store, the sizes of the tensor's dimensions, and the loops around it that leave out some of its
 * iterations. */
struct access {
	const struct program *p;
	const struct node *n;
	int rank;
	int64_t dim[RANK_MAX];
	struct ints loops;
};

/* Do the indices and iterations of the access depend on indices of axes only? False also of packed words. */
static bool depends_on_axes_only(const struct access *x)
{
	if (has_index_values(x->n) || x->p->tensors.v[x->n->ref].unpacked != NONE)
		return false;
	for (int l = x->p->tasks.v[x->n->task].loop; l != NONE; l = x->p->loops.v[l].parent)
		if (x->p->loops.v[l].has_length || x->p->loops.v[l].keeps_steps || x->p->loops.v[l].from.value ||
		    x->p->loops.v[l].upto.value)
			return false;
	for (int d = 0; d < x->rank; d++)
		for (int i = 0; i < x->n->index[d].n; i++)
			if (x->p->axes.v[x->n->index[d].term[i].axis].packs != NONE)
				return false;
	return true;
}

/* ---- loops with bounds ---- */

static void mark_index(const struct index_expr *x, bool *used)
{
	for (int i = 0; i < x->n; i++)
		used[x->term[i].axis] = true;
}

static void mark_bounds(const struct loop *l, bool *used)
{
	if (l->has_from)
		mark_index(&l->from, used);
	if (l->has_upto)
		mark_index(&l->upto, used);
}

/* Is the iteration inside the bounds of the loop? A tile that is partly inside may be visited completely; only
 * iterations inside the bounds are sure. */
static bool is_inside(const struct loop *l, const int64_t *at)
{
	int64_t i = at[l->axis[0]];

	return (!l->has_from || i >= index_eval(&l->from, at)) && (!l->has_upto || i <= index_eval(&l->upto, at));
}

/* Is each index of the loop's axis inside the bounds for some index of the axes that these use? */
static bool visits_all(struct arena *a, const struct program *p, const struct loop *l)
{
	int64_t size = p->axes.v[l->axis[0]].size, open = 0;
	bool used[AXES_MAX] = { false };
	int *begins, *ends;			/* by index: how many of the ranges do so there */
	struct index_walk t;

	mark_bounds(l, used);
	if (used[l->axis[0]] || !begin_index_walk(&t, p, used, TRIED_MOST) || size > TRIED_MOST)
		return false;
	begins = ARENA_ARRAY(a, size, int);
	ends = ARENA_ARRAY(a, size, int);
	do {
		int64_t from = l->has_from ? max_i64(index_eval(&l->from, t.at), 0) : 0;
		int64_t upto = l->has_upto ? min_i64(index_eval(&l->upto, t.at), size - 1) : size - 1;

		if (from <= upto) {
			begins[from]++;
			ends[upto]++;
		}
	} while (next_indices(&t));
	for (int64_t i = 0; i < size; i++) {
		open += begins[i];
		if (!open)
			return false;
		open -= ends[i];
	}
	return true;
}

/* Collect the loops with bounds. If there is one only, its bounds use no axis of the access, and it visits every index
 * for some tile, it is left out. */
static void find_loops(struct arena *a, struct access *x)
{
	bool used[AXES_MAX] = { false }, by[AXES_MAX] = { false }, depends = false;
	const struct loop *only;

	for (int l = x->p->tasks.v[x->n->task].loop; l != NONE; l = x->p->loops.v[l].parent)
		if (x->p->loops.v[l].has_from || x->p->loops.v[l].has_upto)
			VEC_PUSH(a, &x->loops, l);
	if (x->loops.n != 1)
		return;
	only = &x->p->loops.v[x->loops.v[0]];
	for (int d = 0; d < x->rank; d++)
		mark_index(&x->n->index[d], used);
	mark_bounds(only, by);
	for (int i = 0; i < x->p->axes.n; i++)
		depends |= used[i] && by[i];
	if (!depends && visits_all(a, x->p, only))
		x->loops.n = 0;
}

/* The axes that decide which iterations are visited. */
static void mark_loops(const struct access *x, bool *used)
{
	for (int i = 0; i < x->loops.n; i++) {
		const struct loop *l = &x->p->loops.v[x->loops.v[i]];

		mark_bounds(l, used);
		used[l->axis[0]] = true;
	}
}

/* ---- dimensions ---- */

/* Does dimension d share an axis with another one, or with the bounds of a loop? */
static bool shares_axis(const struct access *x, int d)
{
	bool used[AXES_MAX] = { false };

	mark_loops(x, used);
	for (int other = 0; other < x->rank; other++)
		if (other != d)
			mark_index(&x->n->index[other], used);
	for (int i = 0; i < x->n->index[d].n; i++)
		if (used[x->n->index[d].term[i].axis])
			return true;
	return false;
}

/* Is the index that of an axis as long as the dimension? */
static bool is_full_axis(const struct access *x, int d)
{
	const struct index_expr *e = &x->n->index[d];

	return e->k == 0 && e->n == 1 && e->term[0].coef == 1 && e->term[0].div == 1 && e->term[0].mod == 0 &&
		x->p->axes.v[e->term[0].axis].size == x->dim[d];
}

/* The indices of dimension d that are accessed. False: too many to try. */
static bool find_indices(struct arena *a, const struct access *x, int d, struct elements *out)
{
	struct value_set s;

	if (is_full_axis(x, d)) {
		*out = elements_all(a, x->dim[d]);
		return true;
	}
	*out = (struct elements){ 0 };
	if (!value_set_find(a, x->p, &x->n->index[d], &s))
		return false;
	for (int64_t i = max_i64(s.lo, 0); i < min_i64(s.lo + s.width, x->dim[d]) && out->v.n <= RUNS_MAX; i++)
		if (value_set_has(&s, i))
			add_run(a, out, i, i + 1);
	return out->v.n <= RUNS_MAX;
}

/* The elements of which the index in one dimension is in `outer`, and the position in the dimensions behind it, which
 * have `size` elements, is in `inner`. False: too many runs. */
static bool multiply(struct arena *a, const struct elements *outer, const struct elements *inner, int64_t size,
	struct elements *out)
{
	bool all = inner->v.n == 1 && inner->v.v[0].from == 0 && inner->v.v[0].to == size;

	*out = (struct elements){ 0 };
	for (int i = 0; i < outer->v.n; i++) {
		if (all)
			add_run(a, out, outer->v.v[i].from * size, outer->v.v[i].to * size);
		for (int64_t at = outer->v.v[i].from; !all && at < outer->v.v[i].to; at++)
			for (int k = 0; k < inner->v.n; k++) {
				add_run(a, out, at * size + inner->v.v[k].from, at * size + inner->v.v[k].to);
				if (out->v.n > RUNS_MAX)
					return false;
			}
	}
	return true;
}

/* The elements in the first `rank` dimensions, by trying all indices of their axes; with rank 0 one, if any
 * iteration is visited. False: too many. */
static bool try_all(struct arena *a, const struct access *x, int rank, struct elements *out)
{
	bool used[AXES_MAX] = { false }, *taken;
	int64_t total = 1;
	struct index_walk t;

	mark_loops(x, used);
	for (int d = 0; d < rank; d++) {
		mark_index(&x->n->index[d], used);
		total = min_i64(ELEMENTS_MOST + 1, total * min_i64(x->dim[d], ELEMENTS_MOST + 1));
	}
	if (!begin_index_walk(&t, x->p, used, TRIED_MOST) || total > ELEMENTS_MOST)
		return false;
	taken = ARENA_ARRAY(a, total, bool);
	do {
		int64_t element = 0;
		bool inside = true;

		for (int i = 0; i < x->loops.n; i++)
			inside &= is_inside(&x->p->loops.v[x->loops.v[i]], t.at);
		for (int d = 0; d < rank && inside; d++) {
			int64_t i = index_eval(&x->n->index[d], t.at);

			inside = i >= 0 && i < x->dim[d];
			element = element * x->dim[d] + i;
		}
		if (inside)
			taken[element] = true;
	} while (next_indices(&t));
	*out = (struct elements){ 0 };
	for (int64_t i = 0; i < total && out->v.n <= RUNS_MAX; i++)
		if (taken[i])
			add_run(a, out, i, i + 1);
	return out->v.n <= RUNS_MAX;
}

/* ---- programs ---- */

/* The elements that are surely accessed. False: it is not known which. */
static bool find_accessed(struct arena *a, const struct program *p, const struct node *n, struct elements *out)
{
	struct access x = { .p = p, .n = n, .rank = p->tensors.v[n->ref].rank };
	struct elements indices, inner;
	int64_t size = 1;
	int d = x.rank;

	for (int i = 0; i < x.rank; i++)
		x.dim[i] = p->axes.v[p->tensors.v[n->ref].dim[i]].size;
	if (!depends_on_axes_only(&x))
		return false;
	find_loops(a, &x);
	*out = elements_all(a, 1);
	while (d > 0 && !shares_axis(&x, d - 1)) {
		inner = *out;
		d--;
		if (!find_indices(a, &x, d, &indices) || !multiply(a, &indices, &inner, size, out))
			return false;
		size *= x.dim[d];
	}
	if (d == 0 && !x.loops.n)
		return true;
	inner = *out;
	return try_all(a, &x, d, &indices) && multiply(a, &indices, &inner, size, out);
}

struct elements find_stored_elements(struct arena *a, const struct program *p, int tensor)
{
	struct elements all = { 0 }, one;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_STORE || n->ref != tensor || n->task == NONE || n->adds)
			continue;
		if (!find_accessed(a, p, n, &one))
			return elements_all(a, tensor_elements(p, tensor));
		all = elements_join(a, &all, &one, 0);
	}
	return all;
}

struct elements find_loaded_elements(struct arena *a, const struct program *p, int tensor)
{
	struct elements all = { 0 }, one;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_LOAD && n->ref == tensor && n->task != NONE && find_accessed(a, p, n, &one))
			all = elements_join(a, &all, &one, 0);
	}
	return all;
}
