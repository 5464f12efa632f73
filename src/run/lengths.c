#include "run/lengths.h"

#include "tile/length.h"

struct input_reader {
	struct length_reader reader;
	const struct program *p;
	void *const *data;
};

static double input_element(const struct length_reader *r, int tensor, int64_t at)
{
	const struct input_reader *x = (const struct input_reader *)r;

	if (x->p->tensors.v[tensor].type == DT_BOOL)
		return ((const uint8_t *)x->data[tensor])[at] != 0;
	return ((const int32_t *)x->data[tensor])[at];
}

static enum err_code check_tile(const struct graph *g, int loop, const struct axis_ranges *at, void *const *data,
	struct err *e)
{
	struct input_reader reader = { { .element = input_element }, g->program, data };
	const struct loop *l = &g->program->loops.v[loop];
	int64_t value = length_value(g->program, loop, at->lo, &reader.reader);
	int64_t end = loop_end(&g->extents, loop, at, value), typical = typical_end(&g->extents, loop, at);
	int64_t first, last, as_typical;

	visited_before(&g->extents, loop, at, end, &first, &last);
	visited_before(&g->extents, loop, at, typical, &first, &as_typical);
	if (last == as_typical)
		return OK;
	return err_set(e, ERR_INPUT, l->loc, "the length of the loop over '%s' is %lld in some tile, and timelines show "
		"runs of the length that predictions assume, %lld; give inputs of such lengths, or the loop another "
		"'typical'", g->program->axes.v[l->axis[0]].name, (long long)end, (long long)typical);
}

/* A tensor of an earlier phase that the value is computed from; NULL. Recursion is as deep as the expression. */
static const struct tensor *find_temporary(const struct program *p, int node)
{
	const struct node *n = &p->nodes.v[node];
	const struct tensor *t = n->op == OP_LOAD ? &p->tensors.v[n->ref] : NULL;

	if (t && t->role != TENSOR_INPUT)
		return t;
	t = NULL;
	for (int i = 0; i < node_arity(n) && !t; i++)
		t = find_temporary(p, n->arg[i]);
	return t;
}

/* The name of an axis of a loop around this one on which its length depends; NULL. */
static const char *find_outer_axis(const struct program *p, const struct loop *l)
{
	for (int outer = l->parent; outer != NONE; outer = p->loops.v[outer].parent)
		for (int i = 0; i < p->loops.v[outer].naxes; i++)
			if (loop_bounds_use(p, l, p->loops.v[outer].axis[i]))
				return p->axes.v[p->loops.v[outer].axis[i]].name;
	return NULL;
}

static enum err_code check_at_hand(const struct program *p, const struct loop *l, struct err *e)
{
	const struct tensor *t = find_temporary(p, index_value(&l->length));
	const char *outer = find_outer_axis(p, l);

	if (outer)
		return err_set(e, ERR_INPUT, l->loc, "where the loop over '%s' ends depends on '%s', which changes within a "
			"tile, and timelines show runs of one length", p->axes.v[l->axis[0]].name, outer);
	return !t ? OK : err_set(e, ERR_INPUT, l->loc, "the length of the loop over '%s' comes from '%s', which the "
		"program stores, and timelines show runs of a length that is known before; to see one, make '%s' an input",
		p->axes.v[l->axis[0]].name, t->name, t->name);
}

enum err_code lengths_check(const struct graph *g, void *const *data, struct err *e)
{
	for (int l = 0; l < g->program->loops.n; l++) {
		const struct loop *loop = &g->program->loops.v[l];

		if (loop->has_length && loop->body.n)
			TRY(check_at_hand(g->program, loop, e));

		for (int64_t t = 0; loop->has_length && loop->body.n && t < g->grids[loop->phase].total; t++) {
			struct axis_ranges at;

			ranges_set_tile(&g->extents, &g->grids[loop->phase], t, &at);
			TRY(check_tile(g, l, &at, data, e));
		}
	}
	return OK;
}

int64_t lengths_typical(const struct program *p, int tensor)
{
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];
		const struct node *n = l->has_length ? &p->nodes.v[index_value(&l->length)] : NULL;
		int64_t lo[AXES_MAX] = { 0 }, hi[AXES_MAX];

		if (!n || n->op != OP_LOAD || n->ref != tensor)
			continue;
		for (int a = 0; a < p->axes.n; a++)
			hi[a] = p->axes.v[a].size - 1;
		return l->typical ? l->typical : p->axes.v[l->axis[0]].size - index_bounds(&l->length, lo, hi).lo;
	}
	return 0;
}
