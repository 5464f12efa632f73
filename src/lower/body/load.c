/* Loads: by the copy engine (boxes.c), or by the lane's threads. */
#include "lower/body/body.h"

bool body_reads_own(const struct body *c, const struct kentry *x)
{
	int buffer = stask_of(c, x)->writes.v[0];

	for (int i = 0; i < c->lane->entries.n; i++)
		if (stask_reads(stask_of(c, &c->lane->entries.v[i]), buffer))
			return true;
	return false;
}

/* Must the lane's warps meet behind a load that they have done themselves? They, or who waits
 * for a copy that one of them issues next, take all of it to be there. */
static bool meet_behind(const struct body *c, const struct kentry *x)
{
	bool copies = false;

	for (int i = 0; i < c->lane->entries.n; i++)
		copies |= is_copy(c->k, c->lane->entries.v[i].task);
	return !is_copy(c->k, x->task) && (copies || x->flag == NONE || body_reads_own(c, x));
}

/* Do neighbouring columns of the ring come from neighbours in the tensor, so that `run` of them
 * begin at a multiple of that in both, and are all there or none? */
static bool in_runs(const struct body *c, const struct stask *s, const struct ring *r,
	const struct node *n, int64_t run)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct index_expr *last = t->rank ? &n->index[t->rank - 1] : NULL;
	int axis = r->shape.ncol == 1 ? r->shape.col[0] : NONE;
	const struct axis *a = axis == NONE ? NULL : &c->p->axes.v[axis];
	int64_t sizes[] = { r->shape.cols, body_ring_part(s, r).cols, r->panel_cols, a ? a->size : 1,
		last ? c->p->axes.v[t->dim[t->rank - 1]].size : 1, last ? last->k : 1,
		a && !(r->shape.whole >> axis & 1) ? c->g->extents.tile[axis] : 0 };

	if (!last || !a || a->packs != NONE || r->shape.col_share[0] != 1 || last->n != 1 ||
	    last->term[0].axis != axis || last->term[0].coef != 1 || last->term[0].div != 1 ||
	    last->term[0].mod)
		return false;
	for (int i = 0; i < LEN(sizes); i++)
		if (sizes[i] % run)
			return false;
	return true;
}

/* Most elements at once, of at most a chunk, as these are exchanged in a row. */
static int run_of(const struct body *c, const struct stask *s, const struct ring *r,
	const struct node *n)
{
	int bytes = dtype_bits(c->p->tensors.v[n->ref].type) / 8;

	for (int run = c->k->target->shared.chunk / bytes; run > 1 && run * bytes >= 4; run /= 2)
		if (in_runs(c, s, r, n, run))
			return run;
	return 1;
}

/* Where the copy engine cannot go, or the plan has another unit, the lane's threads copy. If
 * that unit is synchronous the lane itself waits for nothing: its warps meet. */
static void load_elements(struct body *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	const struct stask *s = stask_of(c, x);
	struct role_op *o;

	if (body_reads_own(c, x))
		body_lane_sync(c, "all are done with the slot");
	body_touch(c, TOUCH_WRITE, TOUCH_SLOT, r->buffer, 0);
	o = body_op(c, DO_LOAD_THREADS);
	o->u.move.tensor = n->ref;
	o->u.move.rank = c->p->tensors.v[n->ref].rank;
	o->u.move.type = c->p->tensors.v[n->ref].type;
	o->u.move.run = run_of(c, s, r, n);
	o->u.move.inside = body_walk(c, s, r, o);
	body_indices(c, s, n, &r->shape, o->u.move.index, &o->u.move.inside);
	body_fence(c, "engines may read it");
	if (meet_behind(c, x))
		body_lane_sync(c, "all of the load is there");
	if (x->flag != NONE)
		body_arrive(c, x->flag, body_seq(c, s->loop), "its part of the load is there");
}

enum err_code body_load(struct body *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	const struct ring *r = ring_of(c, s->writes.v[0]);

	if (x->flag == NONE && is_copy(c->k, x->task))
		return err_set(e, ERR_ILLEGAL, s->loc, "nobody waits for '%s'", s->name);
	if (r->engine)
		body_boxes(c, x, r, n);
	else
		load_elements(c, x, r, n);
	return OK;
}
