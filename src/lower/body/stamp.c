/* The stamps of a traced kernel, see lower/stamps.h: nothing else tells it from the one
 * that is not. */
#include "lower/body/body.h"

#include "lower/stamps.h"

enum { WORD = 4 };

static bool is_traced(const struct body *c)
{
	return c->k->traced.words > 0;
}

static struct role_op *stamp(struct body *c, int64_t at)
{
	struct role_op *o = body_op(c, DO_STAMP);

	o->u.stamp.at = (int)(WORD * at);
	return o;
}

void body_stamp(struct body *c, const struct kentry *x, int n)
{
	const struct record *r = &x->stamps;
	int loop = c->g->tasks.v[x->task].loop;
	struct role_op *o;

	if (!is_traced(c) || n == NONE)
		return;
	o = stamp(c, r->at + n);
	if (loop == NONE)
		return;
	o->u.stamp.step = WORD * r->words;
	o->u.stamp.iteration = c->p->loops.v[loop].parent == NONE ? V(c, VAR_I, loop) :
		SUB(V(c, VAR_SEQ, loop), V(c, VAR_TILE_BASE, loop));
	if (r->keep < c->g->trips[loop].most || c->p->loops.v[loop].parent != NONE)
		o->u.stamp.when = NUM2(LT, o->u.stamp.iteration, N(c, r->keep));
}

static bool is_ours(const struct body *c, const struct watch *w)
{
	return in_lane(c, c->k->flags.v[w->flag].task);
}

static void watch(struct body *c, enum role_do what, const struct watch *w)
{
	struct role_op *o = body_op(c, what);

	o->u.watch.flag = w->flag;
	o->u.watch.warp = w->warp;
	o->u.watch.ended = w->ended;
	o->u.watch.at = w->at;
	o->u.watch.keep = w->keep;
}

void body_watches(struct body *c)
{
	for (int i = 0; i < c->k->traced.watches.n; i++)
		if (is_ours(c, &c->k->traced.watches.v[i]))
			watch(c, DO_WATCH, &c->k->traced.watches.v[i]);
}

void body_lane_stamps(struct body *c)
{
	if (is_traced(c))
		body_op(c, DO_STAMPS_BEGIN);
}

void body_tile_stamps(struct body *c)
{
	if (is_traced(c))
		body_op(c, DO_STAMPS_TILE);
}

/* Iterations of a loop within a loop are counted from the tile's first. */
void body_tile_bases(struct body *c)
{
	for (int i = 0; is_traced(c) && i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase && c->p->loops.v[i].parent != NONE)
			body_let(c, VAR_TILE_BASE, i, V(c, VAR_BASE, i));
}

void body_tile_end_stamp(struct body *c)
{
	if (is_traced(c))
		stamp(c, STAMP_TILE_END);
}

void body_end_stamp(struct body *c)
{
	for (int i = 0; i < c->k->traced.watches.n; i++)
		if (is_ours(c, &c->k->traced.watches.v[i]))
			watch(c, DO_WATCH_ENDS, &c->k->traced.watches.v[i]);
	if (is_traced(c))
		body_op(c, DO_STAMPS_END);
}
