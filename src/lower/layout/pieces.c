/* Loads by threads: the width of their accesses, and whether the copies arrive at the flag themselves.
 *
 * Neighbours of a row go together, as many as may begin where they do in memory: 16 bytes at most.
 * Accesses of 4 bytes or more are copied asynchronously (cp.async); then each thread's copies arrive
 * at the load's flag when they are there (cp.async.mbarrier.arrive), and the lane goes on. Where rows
 * begin anywhere, 16 bytes are read as the words around them, and shifted in registers. */
#include "lower/passes.h"

struct frag lower_ring_slice(const struct stask *s, const struct ring *r)
{
	struct frag f = { .height = r->shape.rows, .width = r->shape.cols, .rows = r->full_rows,
		.cols = r->full_cols };
	const struct shape2 *v = &r->shape;
	bool last = s->slice == s->slices - 1;

	for (int i = 0; i < shape_rank(v) && !r->one_slice; i++) {
		bool row = i < v->nrow;
		int64_t *part = row ? &f.height : &f.width, *full = row ? &f.rows : &f.cols;
		int64_t beyond = last ? *full - *part : 0;

		if (s->slices == 1 || shape_axis(v, i) != s->split_axis)
			continue;
		*part /= s->slices;
		*full = *part + beyond;
	}
	return f;
}

/* The axis whose neighbours in the tensor are neighbours in the ring's rows; NONE: none. */
static int axis_in_row(const struct kernel *k, const struct ring *r, const struct node *n)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	const struct index_expr *last = t->rank ? &n->index[t->rank - 1] : NULL;
	int axis = r->shape.ncol == 1 ? r->shape.col[0] : NONE;

	if (!last || axis == NONE || p->axes.v[axis].packs != NONE || r->shape.col_share[0] != 1 || last->n != 1 ||
	    last->term[0].axis != axis || last->term[0].coef != 1 || last->term[0].div != 1 || last->term[0].mod)
		return NONE;
	return axis;
}

/* Do `run` of them begin at a multiple of that in the ring, and are all of the tile? */
static bool in_runs(const struct kernel *k, const struct stask *s, const struct ring *r, int axis, int64_t run)
{
	int64_t sizes[] = { r->shape.cols, lower_ring_slice(s, r).cols, r->panel_cols,
		r->shape.full_axes >> axis & 1 ? 0 : k->plan->graph->extents.tile[axis] };

	for (int i = 0; i < LEN(sizes); i++)
		if (sizes[i] % run)
			return false;
	return true;
}

/* ... and in memory, too, where all of them are there or none? */
static bool in_aligned_runs(const struct kernel *k, const struct node *n, int axis, int64_t run)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];

	return p->axes.v[axis].size % run == 0 && p->axes.v[t->dim[t->rank - 1]].size % run == 0 &&
		n->index[t->rank - 1].k % run == 0;
}

static int element_bytes(const struct kernel *k, const struct stask *s)
{
	return dtype_bits(k->plan->graph->program->tensors.v[last_node_of(k, s)->ref].type) / 8;
}

int lower_copy_width(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];
	const struct node *n = last_node_of(k, s);
	int bytes = element_bytes(k, s), axis = axis_in_row(k, r, n);

	for (int run = axis == NONE || !bytes ? 1 : k->target->shared.chunk / bytes; run > 1 && run * bytes >= 4;
	     run /= 2)
		if (in_runs(k, s, r, axis, run) && in_aligned_runs(k, n, axis, run))
			return run;
	return 1;
}

int lower_shifted_width(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];
	int bytes = element_bytes(k, s), axis = axis_in_row(k, r, last_node_of(k, s));
	int run = bytes ? k->target->shared.chunk / bytes : 1;

	return axis != NONE && run > 1 && bytes < 4 && in_runs(k, s, r, axis, run) ? run : 1;
}

bool lower_copies_arrive(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	int buffer = s->writes.v[0];

	/* a replica would wait only for copies of its own last tiles, and those of others may be in flight */
	if (!is_async_load(k, task) || k->plan->lanes.v[lane_of(k, task)].replicas > 1 ||
	    k->rings.v[k->ring_of[buffer]].engine || lower_copy_width(k, task) * element_bytes(k, s) < 4)
		return false;
	for (int t = 0; t < k->plan->graph->tasks.n; t++)	/* a lane that waits for its copies reads them itself */
		if (stask_reads(stask_at(k, t), buffer) && lane_of(k, t) == lane_of(k, task))
			return false;
	return true;
}
