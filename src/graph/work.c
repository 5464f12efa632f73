/* What one sTask costs: bytes, flops and element operations, counted from the
 * program's nodes. No device is known here. */
#include "graph/accessed.h"
#include "graph/build.h"

#include <string.h>

#include "target/target.h"

/* How many elements of a load or store by values lie one behind the other in its tensor: along the last dimension, if its
 * index has no value. */
static int64_t gathered_run(const struct builder *b, const struct stask *s, const struct node *n, int node)
{
	const struct tensor *t = &b->p->tensors.v[n->ref];
	const struct index_expr *last = &n->index[t->rank - 1];
	int64_t run = 1;

	for (int i = 0; i < last->n && !last->value; i++)
		for (int k = 0; k < b->p->nodes.v[node].naxes; k++)
			if (b->p->nodes.v[node].axis[k] == last->term[i].axis)
				run *= slice_extent(b, s->task, node, k);
	return run;
}

/* Elements that a load brings along a dimension in which several axes of the value move, each of which has its own element for each
 * index of the others: those of a window that the plan has not made one box. */
static int64_t elements_moved(const struct builder *b, const struct stask *s, const struct index_expr *x, int node)
{
	const struct node *value = &b->p->nodes.v[node];
	int64_t n = 1;

	for (int i = 0; i < x->n; i++)
		for (int k = 0; k < value->naxes; k++)
			if (value->axis[k] == x->term[i].axis && x->term[i].div == 1)
				n *= slice_extent(b, s->task, node, k);
	return n;
}

/* Elements of a tensor that a load or store of one complete tile touches, and the number of boxes for a copy engine.
 * Where values name the elements, no two need be the same. */
static void count_region(const struct builder *b, struct stask *s, const struct node *n, int node)
{
	const struct tensor *t = &b->p->tensors.v[n->ref];
	const struct shared_layout *box = &target_usual()->shared;
	const struct node *value = &b->p->nodes.v[node];
	int64_t elements = 1, rows = 1, inner = 1;
	struct axis_ranges at;

	for (int a = 0; a < b->p->axes.n; a++) {
		at.lo[a] = 0;
		at.hi[a] = b->g->extents.tile[a] - 1;
	}
	for (int i = 0; i < value->naxes; i++)
		at.hi[value->axis[i]] = slice_extent(b, s->task, node, i) - 1;
	for (int i = 0; i < t->rank; i++) {
		struct index_range r = index_bounds(&n->index[i], at.lo, at.hi);
		int64_t len = max_i64(min_i64(r.hi - r.lo + 1, b->p->axes.v[t->dim[i]].size), elements_moved(b, s, &n->index[i], node));

		elements *= len;
		if (i < t->rank - 1)
			rows *= len;
		else
			inner = len;
	}
	if (has_index_values(n)) {
		elements = slice_elements(b, s->task, node);
		inner = gathered_run(b, s, n, node);
		rows = elements / inner;
	}
	s->work.type = t->type;
	s->work.global_bytes = (double)elements * dtype_bits(t->type) / 8;
	s->work.row_bytes = (double)(inner * dtype_bits(t->type)) / 8;
	s->work.boxes = (double)(ceil_div(inner * dtype_bits(t->type), 8 * box->widest) *
		ceil_div(rows, box->box_rows));
}

enum { POSITIONS_MOST = 1 << 16 };

/* Of all indices along dimension d that a store has, the share that is inside of the tensor; or, by tiles, of all tiles the share of
 * those that have such an index. 1 where that is not known. */
static double share_inside(const struct builder *b, const struct node *n, int d, bool by_tiles)
{
	const struct index_expr *x = &n->index[d];
	int64_t size = b->p->axes.v[b->p->tensors.v[n->ref].dim[d]].size, total = 1, inside = 0;
	struct axis_ranges at = { { 0 }, { 0 } };
	int axes[AXES_MAX], naxes = 0;

	for (int a = 0; a < b->p->axes.n; a++)
		at.hi[a] = b->p->axes.v[a].size - 1;
	struct index_range all = index_bounds(x, at.lo, at.hi);
	if (x->value || (all.lo >= 0 && all.hi < size))
		return 1;
	for (int a = 0; a < b->p->axes.n; a++)
		if (index_uses(x, a)) {
			axes[naxes++] = a;
			total *= by_tiles ? extent_tiles(&b->g->extents, a) : b->p->axes.v[a].size;
			if (b->p->axes.v[a].packs != NONE || total > POSITIONS_MOST)
				return 1;
		}
	for (int64_t i = 0, others = 0; i < total; i++) {
		struct index_range r;

		others = i;
		for (int k = 0; k < naxes; k++) {
			int64_t step = by_tiles ? b->g->extents.tile[axes[k]] : 1, length = b->p->axes.v[axes[k]].size;
			int64_t number = ceil_div(length, step);

			at.lo[axes[k]] = others % number * step;
			at.hi[axes[k]] = min_i64(at.lo[axes[k]] + step, length) - 1;
			others /= number;
		}
		r = index_bounds(x, at.lo, at.hi);
		inside += r.hi >= 0 && r.lo < size;
	}
	return (double)inside / (double)total;
}

/* What a store drops, as it is outside of the tensor, is not moved. */
static void leave_out_dropped(const struct builder *b, struct stask *s, const struct node *n)
{
	s->work.reached = 1;
	for (int d = 0; d < b->p->tensors.v[n->ref].rank; d++) {
		double elements = share_inside(b, n, d, false);

		s->work.global_bytes *= elements;
		s->work.boxes *= elements;
		s->work.reached *= share_inside(b, n, d, true);
	}
}

/* Share of the bytes that device memory must deliver at least: each element once. */
static double compulsory_share(const struct graph *g, const struct stask *s, const struct node *n)
{
	double once = accessed_once(g->program, n);
	double all = s->work.global_bytes * graph_all_runs(g, s);

	return all > once && all > 0 ? once / all : 1;
}

/* Elements that are multiplied for one of the result: of an axis of which the operand may have
 * more than the tile at hand, those of the tile. */
static int64_t contracted(const struct builder *b, const struct stask *s, const struct node *node)
{
	const struct node *x = &b->p->nodes.v[node->arg[0]];
	int64_t k = 1;

	for (int i = 0; i < x->naxes; i++)
		if (!node_has_axis(node, x->axis[i]))
			k *= program_reduces_tile(b->p, node, x->axis[i]) ? b->g->extents.tile[x->axis[i]] /
				(x->axis[i] == b->split_axis[s->task] ? b->slices[s->task] : 1) :
				slice_extent(b, s->task, node->arg[0], i);
	return k;
}

/* The type as which a product reads an operand: integers of 4 bits are kept in bytes, for which matrix units have
 * instructions with sums in i32. */
static enum dtype operand_type(const struct node *x)
{
	return x->type == DT_I4 ? DT_I8 : x->type;
}

/* Bytes of shared memory that a product reads of an operand. The rows are done by instructions, each of which reads the
 * second operand again. */
static double operand_bytes(const struct work *w, int arg, double size)
{
	int rows = target_usual()->matrix[0].rows;

	return size * (double)(arg ? ceil_div(w->m, rows) * w->n * w->k : w->m * w->k);
}

/* Is the operand in the registers of the instruction's? */
static bool is_fetched(const struct builder *b, const struct node *operand)
{
	return operand->task != NONE && (b->p->tasks.v[operand->task].fetches || b->p->tasks.v[operand->task].direct);
}

/* A product m x n x k, which reads its operands from shared memory unless they come from registers. */
static void mma_work(const struct builder *b, struct stask *s, const struct node *node)
{
	const struct node *x = &b->p->nodes.v[node->arg[0]], *y = &b->p->nodes.v[node->arg[1]];
	int first = b->node_buffer[product_operand(b->p, node, 0)], indices = product_indices(b->p, node);
	double size, kept = indices == NONE ? 1 : 1.0 / EXPANDED_BY_VALUE;

	s->work.kind = WORK_MMA;
	s->work.operand[0] = operand_type(x);
	s->work.operand[1] = operand_type(y);
	s->work.type = s->work.operand[dtype_bits(s->work.operand[0]) < dtype_bits(s->work.operand[1])];
	s->work.mixed = s->work.operand[0] != s->work.operand[1];
	s->work.m = s->work.n = 1;
	s->work.k = contracted(b, s, node);
	for (int i = 0; i < node->naxes; i++)
		*(node_has_axis(x, node->axis[i]) ? &s->work.m : &s->work.n) *= slice_extent(b, s->task,
			(int)(node - b->p->nodes.v), i);
	s->work.sparse = indices != NONE;
	s->work.flops = 2.0 * (double)s->work.m * (double)s->work.n * (double)s->work.k * kept;
	s->work.a_in_registers = first != NONE && b->g->buffers.v[first].scope == SCOPE_REGISTERS;
	size = dtype_bits(s->work.type) / 8.0;
	if (!is_fetched(b, y))
		s->work.shared_bytes = operand_bytes(&s->work, 1, size);
	if (!s->work.a_in_registers)
		s->work.shared_bytes += operand_bytes(&s->work, 0, size) * kept;
	if (s->work.sparse)
		s->work.shared_bytes += (double)(s->work.m * s->work.k) / EXPANDED_BY_BYTE;
}

/* What a product would read of the operand itself. */
static void fetch_work(const struct builder *b, struct stask *s)
{
	struct stask reads;
	int arg;
	const struct node *product = graph_fetched_for(b->g, s, &arg);

	reads = (struct stask){ .task = product->task };
	mma_work(b, &reads, product);
	s->work.kind = WORK_COMPUTE;
	s->work.type = DT_F32;
	s->work.shared_bytes = operand_bytes(&reads.work, arg, dtype_bits(reads.work.operand[arg]) / 8.0);
}

/* A multiplication whose only use is an addition of the same sTask costs nothing: the
 * two are one fused multiply-add. */
static bool is_fused(const struct builder *b, const struct task *t, int node)
{
	int uses = 0;
	bool add = false;

	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &b->p->nodes.v[t->nodes.v[i]];

		for (int j = 0; j < node_arity(n); j++) {
			if (n->arg[j] != node)
				continue;
			uses++;
			add = n->op == OP_ADD || n->op == OP_SUB;
		}
	}
	return uses == 1 && add;
}

/* Where several elements are divided by the same one its reciprocal is computed once; then each division scales and
 * multiplies. */
static void share_reciprocals(const struct builder *b, struct stask *s, const struct node *n, int64_t elements)
{
	int64_t divisors = slice_elements(b, s->task, n->arg[1]);

	if (divisors >= elements)
		return;
	s->work.ops[CLASS_DIV] -= (double)(elements - divisors);
	s->work.ops[CLASS_FMA] += 2.0 * (double)elements;
}

/* Is the node a product of pairs, of which nothing else of the task uses the product before its conversion? */
static bool is_pair_product(const struct builder *b, const struct task *t, int node)
{
	const struct node *n = &b->p->nodes.v[node];
	int uses = 0;

	if (!program_is_pair_product(b->p, node) || !ints_hold(t->nodes.v, t->nodes.n, n->arg[0]))
		return false;
	for (int i = 0; i < t->nodes.n; i++)
		uses += ints_hold(b->p->nodes.v[t->nodes.v[i]].arg, node_arity(&b->p->nodes.v[t->nodes.v[i]]), n->arg[0]);
	return uses == 1;
}

static void compute_work(const struct builder *b, struct stask *s)
{
	const struct task *t = &b->p->tasks.v[s->task];

	s->work.kind = WORK_COMPUTE;
	s->work.type = DT_F32;
	for (int i = 0; i < t->nodes.n; i++) {
		int id = t->nodes.v[i];
		const struct node *n = &b->p->nodes.v[id];
		enum op_class c = op_class(n->op);
		int64_t elements = c == CLASS_REDUCE || c == CLASS_SCAN ?
			slice_elements(b, s->task, n->arg[0]) : slice_elements(b, s->task, id);

		if (n->op == OP_MUL && is_fused(b, t, id))
			continue;
		if (is_pair_product(b, t, id))
			s->work.ops[CLASS_FMA] -= (double)elements / 2;		/* of what its factors' product counts */
		else
			s->work.ops[c] += (double)elements;
		if (n->op == OP_DIV && dtype_is_float(n->type))
			share_reciprocals(b, s, n, elements);
		if (c != CLASS_FREE)
			s->work.flops += (double)elements;
	}
	s->work.ops[CLASS_FREE] = 0;
	for (int i = 0; i < s->reads.n; i++)
		if (b->g->buffers.v[s->reads.v[i]].scope == SCOPE_SHARED)
			s->work.shared_bytes += (double)b->g->buffers.v[s->reads.v[i]].bytes;
	for (int i = 0; i < s->writes.n; i++)
		if (b->g->buffers.v[s->writes.v[i]].scope == SCOPE_SHARED)
			s->work.shared_bytes += (double)b->g->buffers.v[s->writes.v[i]].bytes;
}

void build_work(const struct builder *b, struct stask *s)
{
	const struct task *t = &b->p->tasks.v[s->task];
	int last = t->nodes.v[t->nodes.n - 1];
	const struct node *n = &b->p->nodes.v[last];

	switch (t->kind) {
	case TASK_LOAD:
		s->work.kind = WORK_LOAD;
		count_region(b, s, n, last);
		s->work.unique_share = compulsory_share(b->g, s, n);
		s->work.shared_bytes = (double)slice_elements(b, s->task, last) * dtype_bits(n->type) / 8;
		break;
	case TASK_STORE:
		s->work.kind = WORK_STORE;
		count_region(b, s, n, n->arg[0]);
		leave_out_dropped(b, s, n);
		s->work.unique_share = 1;
		s->work.adds = n->adds;
		s->work.shared_bytes = s->work.global_bytes;
		break;
	case TASK_MMA:
		mma_work(b, s, n);
		break;
	case TASK_COMPUTE:
		(t->fetches ? fetch_work : compute_work)(b, s);
		break;
	}
}

enum { TRIPS_SAMPLES = 1 << 16 };

/* Trip counts of a bounded loop over all combinations of tiles of the axes that its bounds use (evenly spaced ones, if
 * there are very many). shortest: extents where each size that is known at launch is the least one. */
static void count_trips(const struct graph *g, int loop, const struct extents *shortest, struct trips *t)
{
	const struct loop *l = &g->program->loops.v[loop];
	int axes[AXES_MAX], n = 0;
	int64_t total = 1, step, seen = 0;
	struct axis_ranges at;
	double sum = 0;

	for (int a = 0; a < g->program->axes.n; a++)
		if (loop_trips_use(l, a)) {
			axes[n++] = a;
			total *= extent_tiles(&g->extents, a);
		}
	step = max_i64(1, total / TRIPS_SAMPLES);
	for (int a = 0; a < g->program->axes.n; a++) {
		at.lo[a] = 0;
		at.hi[a] = g->program->axes.v[a].size - 1;
	}
	t->least = INT64_MAX;
	for (int64_t c = 0; c < total; c += step, seen++) {
		int64_t others = c, first, last;

		for (int i = 0; i < n; i++) {
			int64_t tiles = extent_tiles(&g->extents, axes[i]);
			int64_t tile = g->extents.tile[axes[i]];

			at.lo[axes[i]] = others % tiles * tile;
			at.hi[axes[i]] = min_i64(at.lo[axes[i]] + tile, g->program->axes.v[axes[i]].size) - 1;
			others /= tiles;
		}
		visited_iterations(&g->extents, loop, &at, &first, &last);
		sum += (double)(last - first);
		if (l->has_length)	/* of any length */
			visited_before(&g->extents, loop, &at, g->program->axes.v[l->axis[0]].size, &first, &last);
		t->least = l->has_length ? 0 : min_i64(t->least, last - first);
		t->most = max_i64(t->most, last - first);
		/* of any size that is known at launch, of which the tile may be the last */
		for (int i = 0; i < n; i++)
			if (g->program->axes.v[axes[i]].multiple)
				at.hi[axes[i]] = at.lo[axes[i]];
		visited_iterations(shortest, loop, &at, &first, &last);
		t->least = min_i64(t->least, last - first);
	}
	t->mean = sum / (double)seen;
	if (l->keeps_steps && l->typical)	/* which samples may all meet, or none */
		t->mean = (double)l->typical / (double)program_steps_around(g->program, l);
}

static void find_trips(struct arena *a, struct graph *g)
{
	struct extents shortest = g->extents;
	int64_t sizes[AXES_MAX];

	for (int i = 0; i < g->program->axes.n; i++)
		sizes[i] = axis_divisor(&g->program->axes.v[i]);
	if (program_has_any(g->program))
		shortest.program = program_at_sizes(a, g->program, sizes);
	g->trips = ARENA_ARRAY(a, g->program->loops.n, struct trips);
	g->grids = ARENA_ARRAY(a, g->program->phases.n, struct grid);
	for (int i = 0; i < g->program->loops.n; i++)
		count_trips(g, i, &shortest, &g->trips[i]);
	for (int i = 0; i < g->program->phases.n; i++)
		g->grids[i] = extents_grid(&g->extents, i);
}

const struct graph *graph_at_sizes(struct arena *a, const struct graph *g, const int64_t *sizes)
{
	struct graph *s = arena_copy(a, g, 1, sizeof(*g));

	s->program = s->extents.program = program_at_sizes(a, g->program, sizes);
	s->source = g->source == g->program ? s->program : program_at_sizes(a, g->source, sizes);
	find_trips(a, s);
	return s;
}

enum err_code build_trips(struct graph *g, struct err *e)
{
	const struct program *p = g->program;

	find_trips(&g->arena, g);
	for (int i = 0; i < p->phases.n; i++) {
		if (g->grids[i].total <= 0 || g->grids[i].total > INT32_MAX)
			return err_set(e, ERR_LIMIT, p->phases.v[i].loc, "the grid of phase '%s' has too many tiles; "
				"choose larger ones", p->phases.v[i].name);
	}
	return OK;
}
