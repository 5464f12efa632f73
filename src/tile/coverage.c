#include "tile/coverage.h"

#include "tile/value_set.h"

/* Does the expression take each index of the dimension, because it is the dimension's own axis? */
static bool is_own_axis(const struct tensor *t, int d, const struct index_expr *x)
{
	return x->k == 0 && x->n == 1 && x->term[0].axis == t->dim[d] && x->term[0].coef == 1 && x->term[0].div == 1 &&
		x->term[0].mod == 0;
}

/* Are all combinations of its axes' values read? Not inside a loop with bounds, and not of packed words, nor at indices
 * that only a run shows. */
static bool reads_all(const struct program *p, const struct node *load)
{
	if (has_index_values(load))
		return false;
	for (int l = p->tasks.v[load->task].loop; l != NONE; l = p->loops.v[l].parent)
		if (p->loops.v[l].has_from || p->loops.v[l].has_upto || p->loops.v[l].has_length)
			return false;
	for (int d = 0; d < p->tensors.v[load->ref].rank; d++)
		for (int i = 0; i < load->index[d].n; i++)
			if (p->axes.v[load->index[d].term[i].axis].packs != NONE)
				return false;
	return true;
}

/* Does dimension d share no axis with the others, and is what these read inside the tensor? */
static bool is_free(const struct program *p, const struct node *load, int d)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX];

	for (int i = 0; i < p->axes.n; i++)
		most[i] = p->axes.v[i].size - 1;
	for (int other = 0; other < p->tensors.v[load->ref].rank; other++) {
		struct index_range r = index_bounds(&load->index[other], least, most);

		if (other == d)
			continue;
		for (int i = 0; i < load->index[d].n; i++)
			if (index_uses(&load->index[other], load->index[d].term[i].axis))
				return false;
		if (r.lo < 0 || r.hi >= p->axes.v[p->tensors.v[load->ref].dim[other]].size)
			return false;
	}
	return true;
}

/* An index of dimension d that the load reads and no store of an earlier phase writes; NONE: there is none, or too much
 * is stored to say. */
static int64_t find_unwritten(struct arena *a, const struct program *p, const struct node *load, int d)
{
	const struct tensor *t = &p->tensors.v[load->ref];
	int phase = p->tasks.v[load->task].phase;
	VEC(struct value_set) written = { 0 };
	struct value_set read;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];
		struct value_set s;

		if (n->op != OP_STORE || n->adds || n->ref != load->ref || p->tasks.v[n->task].phase >= phase)
			continue;
		if (has_index_values(n) || is_own_axis(t, d, &n->index[d]) || !value_set_find(a, p, &n->index[d], &s))
			return NONE;
		VEC_PUSH(a, &written, s);
	}
	if (!value_set_find(a, p, &load->index[d], &read))
		return NONE;
	for (int64_t x = max_i64(read.lo, 0); x < min_i64(p->axes.v[t->dim[d]].size, read.lo + read.width); x++) {
		bool is_written = !value_set_has(&read, x);

		for (int i = 0; i < written.n && !is_written; i++)
			is_written = value_set_has(&written.v[i], x);
		if (!is_written)
			return x;
	}
	return NONE;
}

enum err_code coverage_check_load(struct arena *a, const struct program *p, const struct node *load, struct err *e)
{
	const struct tensor *t = &p->tensors.v[load->ref];

	for (int d = 0; d < t->rank && reads_all(p, load); d++) {
		struct arena_mark mark = arena_mark(a);
		int64_t at = is_free(p, load, d) ? find_unwritten(a, p, load, d) : NONE;

		arena_reset(a, mark);
		if (at != NONE)
			return err_set(e, ERR_INPUT, load->loc, "'%s' %s element %lld along '%s' of %s '%s', "
				"which no store writes; store all of it, or %s only what is stored",
				p->tasks.v[load->task].name, load->adds ? "adds to" : "reads", (long long)at,
				p->axes.v[t->dim[d]].name, t->role == TENSOR_TEMP ? "temporary" : "output", t->name,
				load->adds ? "add to" : "read");
	}
	return OK;
}

enum err_code coverage_check(struct arena *a, const struct program *p, struct err *e)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && (n->adds || (n->op == OP_LOAD && p->tensors.v[n->ref].role != TENSOR_INPUT)))
			TRY(coverage_check_load(a, p, n, e));
	}
	return OK;
}
