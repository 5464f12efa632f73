#include "tile/coverage.h"

#include <string.h>

enum {
	WORD = 64,			/* bits */
	WIDTH_MAX = 1 << 26,		/* of a set, in values; wider ones are not looked at */
	SHIFTS_MAX = 1 << 26,		/* words moved for one set, likewise */
};

/* The values that an index expression takes: bit v says whether it takes lo + v. */
struct value_set {
	int64_t lo, width;
	uint64_t *bits;
};

static bool set_has(const struct value_set *s, int64_t value)
{
	int64_t at = value - s->lo;

	return at >= 0 && at < s->width && (s->bits[at / WORD] >> (at % WORD) & 1);
}

/* What the terms of one axis add up to where it stands at `at`. */
static int64_t part_of(const struct index_expr *x, int axis, int64_t at)
{
	int64_t sum = 0;

	for (int t = 0; t < x->n; t++) {
		int64_t v = at / x->term[t].div;

		if (x->term[t].axis == axis)
			sum += x->term[t].coef * (x->term[t].mod ? v % x->term[t].mod : v);
	}
	return sum;
}

/* to |= from << by */
static void or_shifted(uint64_t *to, const uint64_t *from, int64_t nwords, int64_t by)
{
	int64_t words = by / WORD;
	int bits = (int)(by % WORD);

	for (int64_t i = nwords - 1; i >= words; i--) {
		to[i] |= from[i - words] << bits;
		if (bits && i > words)
			to[i] |= from[i - words - 1] >> (WORD - bits);
	}
}

/* The least sum of the axis's terms. */
static int64_t least_part(const struct program *p, const struct index_expr *x, int axis)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX] = { 0 };
	struct index_expr part = { .n = x->n };

	most[axis] = p->axes.v[axis].size - 1;
	for (int t = 0; t < x->n; t++) {
		part.term[t] = x->term[t];
		part.term[t].coef = x->term[t].axis == axis ? x->term[t].coef : 0;
	}
	return index_bounds(&part, least, most).lo;
}

/* The axis of the expression with the most elements; NONE: it has no axis. */
static int longest_axis(const struct program *p, const struct index_expr *x)
{
	int longest = NONE;

	for (int i = 0; i < p->axes.n; i++)
		if (index_uses(x, i) && (longest == NONE || p->axes.v[i].size > p->axes.v[longest].size))
			longest = i;
	return longest;
}

/* The sums of one value for each axis. False: there are too many. */
static bool find_values(struct arena *a, const struct program *p, const struct index_expr *x, struct value_set *out)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX], nwords, shifts = 0, lo;
	int first = longest_axis(p, x);
	struct index_range range;
	uint64_t *before;

	for (int i = 0; i < p->axes.n; i++)
		most[i] = p->axes.v[i].size - 1;
	range = index_bounds(x, least, most);
	*out = (struct value_set){ .lo = range.lo, .width = range.hi - range.lo + 1 };
	nwords = ceil_div(out->width, WORD);
	for (int i = 0; i < p->axes.n; i++)
		shifts += index_uses(x, i) && i != first ? min_i64(p->axes.v[i].size, SHIFTS_MAX) * nwords : 0;
	if (out->width > WIDTH_MAX || shifts > SHIFTS_MAX || (first != NONE && p->axes.v[first].size > WIDTH_MAX))
		return false;
	out->bits = ARENA_ARRAY(a, nwords, uint64_t);
	before = ARENA_ARRAY(a, nwords, uint64_t);
	lo = first == NONE ? 0 : least_part(p, x, first);
	for (int64_t at = 0; at < (first == NONE ? 1 : p->axes.v[first].size); at++) {
		int64_t v = first == NONE ? 0 : part_of(x, first, at) - lo;

		out->bits[v / WORD] |= (uint64_t)1 << (v % WORD);
	}
	for (int i = 0; i < p->axes.n; i++) {
		if (i == first || !index_uses(x, i))
			continue;
		lo = least_part(p, x, i);
		memcpy(before, out->bits, (size_t)nwords * sizeof(*before));
		memset(out->bits, 0, (size_t)nwords * sizeof(*before));
		for (int64_t at = 0; at < p->axes.v[i].size; at++)
			or_shifted(out->bits, before, nwords, part_of(x, i, at) - lo);
	}
	return true;
}

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
		if (has_index_values(n) || is_own_axis(t, d, &n->index[d]) || !find_values(a, p, &n->index[d], &s))
			return NONE;
		VEC_PUSH(a, &written, s);
	}
	if (!find_values(a, p, &load->index[d], &read))
		return NONE;
	for (int64_t x = max_i64(read.lo, 0); x < min_i64(p->axes.v[t->dim[d]].size, read.lo + read.width); x++) {
		bool is_written = !set_has(&read, x);

		for (int i = 0; i < written.n && !is_written; i++)
			is_written = set_has(&written.v[i], x);
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
