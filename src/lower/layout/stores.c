/* Stores by the copy engine: which stores it can do, and the staging in shared memory for values in registers.
 *
 * The engine takes boxes, as for loads: one axis of rows, the contiguous one in panels. It leaves out what lies beyond
 * the end of the tensor, so a tile may end there, but not where an axis ends earlier than the dimension that it runs
 * along. Other stores, and those for which shared memory has no space left, are done by the lane's threads.
 *
 * Each store has a staging of its own if there is space, so that the engine reads one while the next is written. Else the stores of a
 * lane that have panels alike share one. */
#include "lower/passes.h"

enum {
	PANELS_MOST = 64,
	/* Left for the stamps of a traced kernel, which has the same stores. */
	STAMPS_LEAST = 1024,
};

static int stored_buffer(const struct kernel *k, const struct stask *s)
{
	for (int i = 0; i < s->reads.n; i++)
		if (k->plan->graph->buffers.v[s->reads.v[i]].node == last_node_of(k, s)->arg[0])
			return s->reads.v[i];
	return NONE;
}

/* The axis along which a tile has several elements in one dimension; NONE: there is none; UNFIT: the index is more than
 * that axis plus what is constant in a tile. */
enum { UNFIT = -2 };

static int moving_axis(const struct kernel *k, int loop, const struct tensor *t, int d, const struct index_expr *x,
	const struct shape2 *v)
{
	const struct program *p = k->plan->graph->program;
	const int64_t *tile = k->plan->graph->extents.tile;
	int axis = NONE;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *m = &x->term[i];
		int64_t size = p->axes.v[m->axis].size, extent = v->full_axes >> m->axis & 1 ? size : tile[m->axis];
		bool ends = x->n == 1 && !x->k && axes_end_alike(p, m->axis, t->dim[d]);

		if (extent == 1)
			continue;
		if (ends_within_tile(k->plan->graph, loop, m->axis))
			return UNFIT;
		if (axis != NONE || m->coef != 1 || m->div != 1 || m->mod ||
			(axis_divisor(&p->axes.v[m->axis]) % extent && !ends))
			return UNFIT;
		axis = m->axis;
	}
	return axis;
}

/* May the index be negative? The engine traps at boxes that begin in front of a tensor, as it stores them: those of which a dimension has
 * one element are left out there (select/store.c). */
static bool may_begin_before(const struct program *p, const struct index_expr *x)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX];

	for (int i = 0; i < p->axes.n; i++)
		most[i] = p->axes.v[i].size - 1;
	return index_bounds(x, least, most).lo < 0;
}

/* Are the value's rows one dimension's of the tensor, and the last axis of its columns the contiguous one's? Other axes of
 * columns are those of other dimensions: a panel has one element of each. */
static bool goes_in_boxes(const struct kernel *k, const struct node *n, const struct shape2 *v)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	int rows = 0, columns = 0;

	if (has_index_values(n) || v->nrow != 1 || !v->ncol || t->rank > k->target->shared.box_rank || (t->rank > 1 &&
	    axis_divisor(&p->axes.v[t->dim[t->rank - 1]]) * dtype_bits(t->type) % (8 * k->target->shared.chunk)))
		return false;
	for (int d = 0; d < t->rank; d++) {
		int axis = moving_axis(k, p->tasks.v[n->task].loop, t, d, &n->index[d], v);

		if (axis == UNFIT || (d == t->rank - 1) != (axis == v->col[v->ncol - 1]))
			return false;
		if (axis != NONE && axis != v->row[0] && !ints_hold(v->col, v->ncol, axis))
			return false;
		if ((axis == v->row[0] || d == t->rank - 1) && may_begin_before(p, &n->index[d]))
			return false;
		rows += axis == v->row[0];
		columns += axis != NONE && axis != v->row[0];
	}
	return rows == 1 && columns == v->ncol;
}

/* The shape without the axes of which it has one element: these number no rows or columns. */
static struct shape2 without_single(const struct kernel *k, const struct shape2 *v)
{
	const struct graph *g = k->plan->graph;
	struct shape2 out = { .rows = 1, .cols = 1, .full_axes = v->full_axes };

	for (int i = 0; i < shape_rank(v); i++) {
		int axis = shape_axis(v, i);
		int64_t extent = v->full_axes >> axis & 1 ? g->program->axes.v[axis].size : g->extents.tile[axis];

		if (extent > 1)
			shape_add_axis(&out, i < v->nrow, axis, extent);
	}
	return out.nrow && out.ncol ? out : *v;
}

struct shape2 lower_stored_shape(const struct kernel *k, int buffer)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];

	return without_single(k, b->node == NONE ? &k->carry_shape[b->carry] : &k->node_shape[b->node]);
}

/* A value's extents in the part that the sTask stores. */
static void part_extents(const struct stask *s, const struct shape2 *v, int64_t *rows, int64_t *cols)
{
	*rows = v->rows / (v->row[0] == s->split_axis ? s->slices : 1);
	*cols = v->cols / (ints_hold(v->col, v->ncol, s->split_axis) ? s->slices : 1);
}

/* Neighbours of a row that are contiguous in the tensor. */
static int64_t stored_run(const struct kernel *k, const struct stask *s, const struct shape2 *v)
{
	int axis = v->col[v->ncol - 1];
	int64_t extent = v->full_axes >> axis & 1 ? k->plan->graph->program->axes.v[axis].size :
		k->plan->graph->extents.tile[axis];

	return axis == s->split_axis ? extent / s->slices : extent;
}

/* Can the store read the ring's slot, which has panels as the engine takes them? */
static bool goes_from_ring(const struct kernel *k, const struct stask *s, int buffer, const struct shape2 *v,
	struct outbox *o)
{
	const struct ring *r = &k->rings.v[k->ring_of[buffer]];
	const struct shared_layout *l = &k->target->shared;
	int64_t rows, cols, row_bits = r->panel_cols * dtype_bits(k->plan->graph->buffers.v[buffer].type);

	if (r->shape.nrow != 1 || r->shape.ncol != 1 || v->ncol != 1)
		return false;
	if (!r->swizzle && (r->panel_cols > l->box_cols || row_bits % (8 * l->chunk) || r->panel_bytes % l->copy_align))
		return false;
	/* a ring of a value whose neighbours share elements has fewer, perhaps as many as a part of the value */
	if (!r->one_slice && (r->shape.rows != v->rows || r->shape.cols != v->cols))
		return false;
	part_extents(s, v, &rows, &cols);
	*o = (struct outbox){ .ring = k->ring_of[buffer], .rows = rows, .swizzle = r->swizzle,
		.panel_cols = r->panel_cols, .panel_bytes = r->panel_bytes };
	o->panels = o->across = o->batch = (int)(cols / r->panel_cols);
	return r->shape.row[0] == v->row[0] && r->shape.col[0] == v->col[0] && r->shape.rows == rows &&
		r->shape.cols == cols && cols % r->panel_cols == 0 && rows <= k->target->shared.box_rows;
}

/* Divides a value in registers into the widest panels, staged in so many bytes: all at once, or in two buffers of a
 * batch each. share_cols: a block of a cluster stores so many columns of a thread's rows, and no panel has those of
 * several; 0: it stores all. */
static bool goes_through_staging(const struct kernel *k, const struct stask *s, const struct shape2 *v,
	enum dtype type, const struct klane *lane, int64_t share_cols, int64_t staging_bytes, struct outbox *o)
{
	const struct target *t = k->target;
	int64_t run = v->ncol > 1 ? stored_run(k, s, v) : 0;	/* no panel has columns of two */
	int64_t rows, cols, own = t->frag.rows;	/* of a block, a warp's */
	int warps = lane->warps, parts = layout_parts(lane->layout);

	part_extents(s, v, &rows, &cols);
	if (parts > 1 && (cols % (parts * t->frag.deep) || run))
		return false;
	if (run && share_cols)
		return false;
	cols /= parts;
	if ((dtype_bits(type) != 16 && dtype_bits(type) != 32) || rows % own || own % shared_pattern_rows(&t->shared))
		return false;
	for (int wide = t->shared.widest; wide >= t->shared.narrowest; wide /= 2) {
		int64_t panel = wide * 8 / dtype_bits(type), bytes = own * wide * warps;
		int64_t n = cols / panel * ceil_div(rows, layout_block_rows(lane->layout, warps)), batch = n;
		bool two;

		if (cols % panel || n > PANELS_MOST || share_cols % panel || run % panel)
			continue;
		while (batch > 1 && (n % batch || (batch < n ? 2 : 1) * batch * bytes > staging_bytes))
			batch--;
		two = batch < n;
		if ((two ? 2 : 1) * batch * bytes > staging_bytes)
			continue;
		*o = (struct outbox){ .ring = NONE, .rows = own, .swizzle = wide,
			.panel_cols = panel, .panel_bytes = own * wide, .panels = (int)n,
			.across = (int)(cols / panel), .batch = (int)batch, .batches = two ? 2 : 1,
			.unread = { two && n / batch % 2 == 0, two } };
		return true;
	}
	return false;
}

/* The store of an entry, if the engine can do it with `staging_bytes` bytes of staging. */
static bool find_outbox(const struct kernel *k, const struct klane *l, const struct kentry *x,
	int64_t staging_bytes, struct outbox *o)
{
	const struct stask *s = stask_at(k, x->task);
	const struct parts_sum *parts;
	const struct node *n;
	struct shape2 v;
	int buffer;
	bool fits;

	if (s->kind != TASK_STORE || seu_of(k, x->task)->kind != SEU_COPY || !seu_of(k, x->task)->async)
		return false;
	n = last_node_of(k, s);
	buffer = stored_buffer(k, s);
	if (buffer == NONE || k->plan->graph->buffers.v[buffer].type != k->plan->graph->program->tensors.v[n->ref].type)
		return false;
	v = lower_stored_shape(k, buffer);
	if (!goes_in_boxes(k, n, &v))
		return false;
	parts = lower_stored_parts(k, s);
	if (k->ring_of[buffer] != NONE)
		fits = !lower_stores_share(k, s) && goes_from_ring(k, s, buffer, &v, o);
	else
		fits = (parts || !lower_stores_share(k, s)) && goes_through_staging(k, s, &v,
			k->plan->graph->buffers.v[buffer].type, l, parts ? (int64_t)parts->chunks * l->layout->cols : 0,
			staging_bytes, o);
	o->task = x->task;
	return fits;
}

/* The staging that is to be had: so much for each store in a loop, and for each other one. */
struct budget {
	int64_t in_loop, other;
	bool shared;			/* `other` is what the stores of a lane have together */
};

static int64_t staging_bytes(const struct klane *l, const struct outbox *o)
{
	return l->warps * o->batches * o->batch * o->panel_bytes;
}

static bool is_staged(const struct kernel *k, const struct klane *l, const struct kentry *x, int64_t bytes,
	struct outbox *o)
{
	return find_outbox(k, l, x, bytes, o) && o->ring == NONE;
}

/* The bytes with which the engine can do the store at all, or `most`. */
static int64_t least_staging(const struct kernel *k, const struct klane *l, const struct kentry *x, int64_t most)
{
	int64_t bytes = k->target->shared.align;
	struct outbox o;

	while (bytes < most && !is_staged(k, l, x, bytes, &o))
		bytes += k->target->shared.align;
	return bytes;
}

/* Can stores of a lane share a staging? Those in loops have their own. */
static bool is_shareable(const struct kernel *k, int task)
{
	return stask_at(k, task)->loop == NONE;
}

/* Is the space too small for stagings of their own: does some store get narrower panels than the engine could have, or none? */
static bool is_scarce(const struct kernel *k, const struct budget *b)
{
	struct outbox o, widest;

	for (int i = 0; i < k->lanes.n; i++)
		for (int j = 0; j < k->lanes.v[i].entries.n; j++) {
			const struct kentry *x = &k->lanes.v[i].entries.v[j];

			if (is_staged(k, &k->lanes.v[i], x, INT64_MAX, &widest) && is_shareable(k, x->task) &&
			    (!is_staged(k, &k->lanes.v[i], x, b->other, &o) || o.swizzle < widest.swizzle))
				return true;
		}
	return false;
}

/* What a store of each lane gets if they share it. Nothing unless some lane has several, and none is in a loop. */
static int64_t shared_budget(const struct kernel *k, int64_t total)
{
	int lanes = 0, most = 0;
	struct outbox o;

	for (int i = 0; i < k->lanes.n; i++) {
		int n = 0;

		for (int j = 0; j < k->lanes.v[i].entries.n; j++)
			if (is_staged(k, &k->lanes.v[i], &k->lanes.v[i].entries.v[j], INT64_MAX, &o)) {
				if (!is_shareable(k, o.task))
					return 0;
				n++;
			}
		lanes += n > 0;
		most = n > most ? n : most;
	}
	return most > 1 ? total / lanes / k->target->shared.align * k->target->shared.align : 0;
}

/* All stores get the same, unless those in loops have wider panels if the others get the least that they need: they are
 * done more often, and each panel of a batch costs the engine the same. */
static struct budget share_staging(const struct kernel *k)
{
	int64_t align = k->target->shared.align, total, in_loop;
	int64_t least = 0;		/* that all stores outside of loops can do with */
	int64_t end = k->plan->device->shared_bytes - align - STAMPS_LEAST;
	int n = 0, loops = 0;
	bool wider = false;
	struct outbox o, w;

	for (int i = 0; i < k->lanes.n; i++)
		for (int j = 0; j < k->lanes.v[i].entries.n; j++)
			if (is_staged(k, &k->lanes.v[i], &k->lanes.v[i].entries.v[j], INT64_MAX, &o)) {
				n++;
				loops += stask_at(k, o.task)->loop != NONE;
			}
	if (!n)
		return (struct budget){ 0 };
	total = end - round_up(k->shared_bytes, align);
	struct budget same = { total / n / align * align, total / n / align * align, false };
	struct budget shared = { 0, shared_budget(k, total), true };
	if (shared.other > 0 && is_scarce(k, &same))
		return shared;
	if (!loops || loops == n || same.other <= 0)
		return same;
	for (int i = 0; i < k->lanes.n; i++)
		for (int j = 0; j < k->lanes.v[i].entries.n; j++) {
			const struct kentry *x = &k->lanes.v[i].entries.v[j];

			if (is_staged(k, &k->lanes.v[i], x, same.other, &o) && stask_at(k, o.task)->loop == NONE)
				least = max_i64(least, least_staging(k, &k->lanes.v[i], x, same.other));
		}
	in_loop = (total - (n - loops) * least) / loops / align * align;
	for (int i = 0; i < k->lanes.n; i++)
		for (int j = 0; j < k->lanes.v[i].entries.n; j++) {
			const struct kentry *x = &k->lanes.v[i].entries.v[j];

			if (!is_staged(k, &k->lanes.v[i], x, in_loop, &w) || stask_at(k, w.task)->loop == NONE)
				continue;
			wider |= !is_staged(k, &k->lanes.v[i], x, same.in_loop, &o) || w.swizzle > o.swizzle;
			total -= round_up(staging_bytes(&k->lanes.v[i], &w), align);
		}
	return wider ? (struct budget){ in_loop, total / (n - loops) / align * align, false } : same;
}

/* An earlier store of the lane, from number `first` on, whose staging this one can have, too: warps have the same parts of it, and
 * batches change in the same way. NONE: there is none. */
static int find_staging(const struct kernel *k, int first, const struct outbox *o)
{
	for (int i = first; i < k->outboxes.n; i++) {
		const struct outbox *x = &k->outboxes.v[i];

		if (x->ring == NONE && x->staging == i && x->panels == o->panels && x->batch == o->batch && x->batches == o->batches &&
		    x->panel_bytes == o->panel_bytes)
			return i;
	}
	return NONE;
}

void lower_stores(struct kernel *k)
{
	int align = k->target->shared.align;
	int64_t end = k->plan->device->shared_bytes - align - STAMPS_LEAST;
	struct budget b;
	struct outbox o;

	k->outboxes.n = 0;
	b = share_staging(k);
	for (int i = 0; i < k->lanes.n; i++) {
		int first = k->outboxes.n;

		for (int j = 0; j < k->lanes.v[i].entries.n; j++) {
			struct kentry *x = &k->lanes.v[i].entries.v[j];
			bool in_loop = stask_at(k, x->task)->loop != NONE;
			int other;

			x->outbox = NONE;
			if (!find_outbox(k, &k->lanes.v[i], x, in_loop ? b.in_loop : b.other, &o))
				continue;
			o.staging = k->outboxes.n;
			other = o.ring == NONE && b.shared ? find_staging(k, first, &o) : NONE;
			if (other != NONE) {
				o.staging = other;
				o.offset = k->outboxes.v[other].offset;
			} else if (o.ring == NONE) {
				o.offset = round_up(k->shared_bytes, align);
				if (b.shared && o.offset + staging_bytes(&k->lanes.v[i], &o) > end)
					continue;
				k->shared_bytes = o.offset + staging_bytes(&k->lanes.v[i], &o);
			}
			x->outbox = k->outboxes.n;
			VEC_PUSH(&k->arena, &k->outboxes, o);
		}
	}
}
