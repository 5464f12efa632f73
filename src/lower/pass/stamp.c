/* Stamps of a traced kernel, see lower/stamps.h: all by which its tree differs from that of another. */
#include "lower/pass/build.h"

#include "lower/stamps.h"

enum { WORD = 4 };

static struct role_op *add_stamp(struct lowering *c, int64_t at)
{
	struct role_op *o = add_op(c, DO_STAMP);

	o->u.stamp.at = (int)(WORD * at);
	return o;
}

/* Stamp n of the entry's record. */
static void add_task_stamp(struct lowering *c, const struct kentry *x, int n)
{
	const struct record *r = &x->stamps;
	int loop = c->g->tasks.v[x->task].loop;
	struct role_op *o;

	if (n == NONE)
		return;
	o = add_stamp(c, r->at + n);
	if (loop == NONE)
		return;
	o->u.stamp.step = WORD * r->words;
	o->u.stamp.iteration = c->p->loops.v[loop].parent == NONE ? V(c, VAR_I, loop) :
		SUB(V(c, VAR_SEQ, loop), V(c, VAR_TILE_BASE, loop));
	if (r->keep < c->g->trips[loop].most || c->p->loops.v[loop].parent != NONE)
		o->u.stamp.when = NUM2(LT, o->u.stamp.iteration, N(c, r->keep));
}

/* The warps of the lane that do nothing else watch the flags of its loads. */
static void add_watches(struct lowering *c, enum role_do what)
{
	for (int i = 0; i < c->k->traced.watches.n; i++) {
		const struct watch *w = &c->k->traced.watches.v[i];
		struct role_op *o;

		if (!in_lane(c, c->k->flags.v[w->flag].task))
			continue;
		o = add_op(c, what);
		o->u.watch.flag = w->flag;
		o->u.watch.warp = w->warp;
		o->u.watch.ended = w->ended;
		o->u.watch.at = w->at;
		o->u.watch.keep = w->keep;
	}
}

static void stamp_task(struct lowering *c, struct role_op *task)
{
	const struct kentry *x = task->point->entry;
	struct role_body old = task->u.region.body, *outer;

	task->u.region.body = (struct role_body){ 0 };
	outer = enter_body(c, &task->u.region.body);
	c->task = task->task;
	for (int i = 0; i < old.v.n; i++) {
		struct role_op *o = old.v.v[i];
		const struct point *p = o->point;

		append_op(c, o);
		if (p && p->flag_wait) {
			if (c->k->flags.v[p->flag_wait->flag].copies_arrive)	/* the fence belongs to it */
				append_op(c, old.v.v[++i]);
			add_task_stamp(c, x, p->flag_wait->stamp);
		} else if (p && p->wait) {
			add_task_stamp(c, x, p->issued ? x->stamps.drain : x->stamps.groups);
		}
		/* signals belong to the sTask, so its stamp follows them */
		if (i + 1 == old.v.n || (old.v.v[i + 1]->point && old.v.v[i + 1]->point->issued))
			if (!(p && p->issued))
				add_task_stamp(c, x, x->stamps.body);
	}
	c->task = NONE;
	leave_body(c, outer);
}

static void stamp_body(struct lowering *c, struct role_body *b, bool tile, bool step);

static void stamp_op(struct lowering *c, struct role_op *o)
{
	bool tile_loop = is_section(o, SECTION_LOOP) && o->u.region.of == NONE;
	bool step = o->what == DO_BLOCK && o->point && o->point->region == NONE && o->point->iteration;

	if (o->what == DO_TASK)
		stamp_task(c, o);
	else if (role_is_region(o->what))
		stamp_body(c, &o->u.region.body, o->what == DO_TILES || tile_loop, step || o->what == DO_TILES);
}

/* tile: of a tile; bases: a tile begins, and iterations of loops within loops are counted from there. A step of the tile
 * loop that is an sTask alone has none. */
static void stamp_body(struct lowering *c, struct role_body *b, bool tile, bool bases)
{
	struct role_body *outer, old = reopen_body(c, b, &outer);
	bool begun = false;

	for (int i = 0; i < old.v.n; i++) {
		enum role_do what = old.v.v[i]->what;

		if (!begun && (what == DO_INIT || what == DO_BLOCK || what == DO_TASK)) {
			begun = true;
			if (tile)
				add_op(c, DO_STAMPS_TILE);
			for (int l = 0; l < c->p->loops.n && bases && (tile || what != DO_TASK); l++)
				if (c->p->loops.v[l].phase == c->k->phase && c->p->loops.v[l].parent != NONE)
					add_let(c, VAR_TILE_BASE, l, V(c, VAR_BASE, l));
		}
		stamp_op(c, old.v.v[i]);
		append_op(c, old.v.v[i]);
	}
	if (tile)
		add_stamp(c, STAMP_TILE_END);
	leave_body(c, outer);
}

enum err_code pass_stamp(struct lowering *c, struct err *e)
{
	struct role_body *b = &c->role->body, old = *b;

	(void)e;
	if (!c->k->traced.words)
		return OK;
	*b = (struct role_body){ 0 };
	c->body = b;
	for (int i = 0; i < old.v.n; i++) {
		struct role_op *o = old.v.v[i];

		if (o->what == DO_LEAVE)
			add_watches(c, DO_WATCH);
		stamp_op(c, o);
		append_op(c, o);
		if (o->what == DO_LANE)
			add_op(c, DO_STAMPS_BEGIN);
	}
	add_watches(c, DO_WATCH_ENDS);
	add_op(c, DO_STAMPS_END);
	return OK;
}
