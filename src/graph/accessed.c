#include "graph/accessed.h"

#include <math.h>

#include "tile/index_values.h"

/* What one load or store accesses of its tensor. */
struct region {
	struct index_range at[RANK_MAX];	/* inside of the tensor, by dimension */
	double bytes;				/* of different elements, at most */
};

/* The different indices of one dimension: those in their range, and no more than the axes of the expression have
 * positions. */
static double count_indices(const struct program *p, const struct index_expr *x, int64_t size, struct index_range *at)
{
	struct axis_ranges all = { { 0 }, { 0 } };
	double positions = 1;
	bool packed = false;

	*at = (struct index_range){ 0, size - 1 };
	for (int a = 0; a < p->axes.n; a++) {
		all.hi[a] = p->axes.v[a].size - 1;
		if (index_uses(x, a)) {
			positions *= (double)p->axes.v[a].size;
			packed |= p->axes.v[a].packs != NONE;
		}
	}
	if (x->value || packed)
		return (double)size;
	*at = index_bounds(x, all.lo, all.hi);
	at->lo = max_i64(at->lo, 0);
	at->hi = min_i64(at->hi, size - 1);
	return fmin(positions, (double)max_i64(at->hi - at->lo + 1, 0));
}

static struct region find_region(const struct program *p, const struct node *n)
{
	const struct tensor *t = &p->tensors.v[n->ref];
	struct region r = { .bytes = dtype_bits(t->type) / 8.0 };

	for (int d = 0; d < t->rank; d++)
		r.bytes *= count_indices(p, &n->index[d], p->axes.v[t->dim[d]].size, &r.at[d]);
	return r;
}

double accessed_once(const struct program *p, const struct node *n)
{
	return find_region(p, n).bytes;
}

static bool is_inside(const struct region *a, const struct region *b, int rank)
{
	for (int d = 0; d < rank; d++)
		if (a->at[d].lo < b->at[d].lo || a->at[d].hi > b->at[d].hi)
			return false;
	return true;
}

/* The bytes that a load by values names: those of different indices, as many as the axes on which the values depend
 * have. */
static double named_bytes(const struct program *p, const struct node *load)
{
	const struct tensor *t = &p->tensors.v[load->ref];
	int64_t run[AXES_MAX];
	double elements = 1;

	index_value_axes(p, load, run);
	for (int a = 0; a < p->axes.n; a++) {
		bool used = false;

		for (int d = 0; d < t->rank; d++)
			used |= index_uses(&load->index[d], a);
		if (used || run[a])
			elements *= (double)ceil_div(p->axes.v[a].size, used ? 1 : run[a]);
	}
	return elements * dtype_bits(t->type) / 8;
}

/* What a node accesses of a tensor in all its sTasks, of which each has a slice; false: nothing. */
static bool node_region(const struct graph *g, int node, int tensor, struct region *out)
{
	const struct node *n = &g->program->nodes.v[node];
	double moved = 0;
	bool runs = false;

	if ((n->op != OP_LOAD && n->op != OP_STORE) || n->ref != tensor)
		return false;
	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		if ((s->kind == TASK_LOAD || s->kind == TASK_STORE) && stask_last_node(g, s) == n) {
			runs = true;
			moved += s->work.global_bytes * graph_all_runs(g, s);
		}
	}
	*out = find_region(g->program, n);
	out->bytes = fmin(out->bytes, moved);
	if (n->op == OP_LOAD && has_index_values(n))
		out->bytes = fmin(out->bytes, named_bytes(g->program, n));
	return runs;
}

/* Does the box of another node contain this one's, with more bytes, or with as many if that node comes first? Then this
 * one is taken to access nothing more, which is an estimate if their strides differ. */
static bool is_counted_elsewhere(const struct graph *g, int node, const struct region *r, int tensor)
{
	int rank = g->program->tensors.v[tensor].rank;
	struct region other;

	for (int k = 0; k < g->program->nodes.n; k++)
		if (k != node && node_region(g, k, tensor, &other) && is_inside(r, &other, rank) &&
		    (other.bytes > r->bytes || (other.bytes == r->bytes && k < node)))
			return true;
	return false;
}

/* An estimate of the bytes of a tensor that the program accesses; never more than the tensor. If no sTask accesses it,
 * but a load does of which only lengths of loops are made: the complete tensor. If no node accesses it: 0; but in a
 * program without nodes, the complete tensor. */
static double accessed_bytes(const struct graph *g, int tensor)
{
	const struct program *p = g->program;
	double all = (double)dtype_bytes(p->tensors.v[tensor].type, (size_t)tensor_elements(p, tensor)), sum = 0;
	bool runs = false, has_node = p->nodes.n == 0;
	struct region r;

	for (int i = 0; i < p->nodes.n; i++) {
		has_node |= (p->nodes.v[i].op == OP_LOAD || p->nodes.v[i].op == OP_STORE) && p->nodes.v[i].ref == tensor;
		if (!node_region(g, i, tensor, &r))
			continue;
		runs = true;
		if (!is_counted_elsewhere(g, i, &r, tensor))
			sum += r.bytes;
	}
	return !has_node ? 0 : runs ? fmin(all, sum) : all;
}

double graph_bytes(const struct graph *g)
{
	double sum = 0;

	for (int i = 0; i < g->program->tensors.n; i++)
		sum += accessed_bytes(g, i);
	return sum;
}

double graph_stored_bytes(const struct graph *g)
{
	const struct program *p = g->program;
	double sum = 0;

	for (int t = 0; t < p->tensors.n; t++) {
		double all = (double)dtype_bytes(p->tensors.v[t].type, (size_t)tensor_elements(p, t)), stored = 0;

		for (int i = 0; i < g->tasks.n; i++) {
			const struct stask *s = &g->tasks.v[i];

			if (s->kind == TASK_STORE && stask_last_node(g, s)->ref == t && !s->work.adds)
				stored += s->work.global_bytes * graph_all_runs(g, s);
		}
		sum += fmin(all, stored);
	}
	return sum;
}
