/* Loads: by the copy engine (body_boxes.c), or element by element. */
#include "lower/body/body.h"

bool body_reads_own(const struct body *c, const struct kentry *x)
{
	int buffer = stask_of(c, x)->writes.v[0];

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = &c->g->tasks.v[c->lane->entries.v[i].task];

		for (int k = 0; k < s->reads.n; k++)
			if (s->reads.v[k] == buffer)
				return true;
	}
	return false;
}

/* Where the copy engine cannot go, the lane's threads copy element by element. */
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
	o->u.move.inside = body_walk(c, s, r, o);
	body_indices(c, s, n, &r->shape, o->u.move.index, &o->u.move.inside);
	body_fence(c, "engines may read it");
	body_arrive(c, x->flag, body_seq(c, s->loop), "its part of the load is there");
}

enum err_code body_load(struct body *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	const struct ring *r = ring_of(c, s->writes.v[0]);

	if (x->flag == NONE)
		return err_set(e, ERR_ILLEGAL, s->loc, "nobody waits for '%s'", s->name);
	if (r->engine)
		body_boxes(c, x, r, n);
	else
		load_elements(c, x, r, n);
	return OK;
}
