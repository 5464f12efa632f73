/* Fences between what threads have read of a slot by ordinary loads and the copy engine's next write to it.
 *
 * The engine writes through another proxy than threads read, so on the path of signals and waits from a read to the write there
 * must be a fence of the proxy (PTX ISA, "Async proxy"). Each thread that reads may fence before it signals; or the thread that
 * has the engine write fences once it has seen the signals. The second takes none of the time of lanes that compute. A fence takes
 * some, as in machine code it waits for all of the thread's accesses: RMSNorm and product took 6 % longer. The second is possible
 * where a lane does nothing but have the engine load, into its own block. */
#include "lower/lower.h"
#include "lower/select/lowering.h"

/* Does the copy engine alone load for the entry, from coordinates that no thread has to read? */
static bool is_boxes_alone(const struct kernel *k, const struct kentry *x)
{
	const struct stask *s = stask_at(k, x->task);
	const struct ring *r;

	if (s->kind != TASK_LOAD || k->plan->graph->buffers.v[s->writes.v[0]].staged)
		return false;
	r = &k->rings.v[k->ring_of[s->writes.v[0]]];
	return r->engine && !r->by_rows && !r->ends_by_threads && !has_index_values(last_node_of(k, s));
}

/* Does the lane fence for the readers of what it loads to slots at the offset? */
static bool lane_fences(const struct kernel *k, const struct klane *l, int64_t offset)
{
	bool loads = false, alone = true;

	for (int i = 0; i < l->entries.n; i++) {
		const struct kentry *x = &l->entries.v[i];
		int buffer = stask_at(k, x->task)->writes.n ? stask_at(k, x->task)->writes.v[0] : NONE;
		bool boxes = is_boxes_alone(k, x);

		alone &= boxes;
		if (buffer == NONE || k->ring_of[buffer] == NONE || k->rings.v[k->ring_of[buffer]].offset != offset ||
		    stask_at(k, x->task)->kind != TASK_LOAD)
			continue;
		loads = true;
		alone &= k->rings.v[k->ring_of[buffer]].share == SHARE_NONE;
	}
	return !loads || alone;
}

/* Do all lanes that load to slots at the offset fence for those who have read them? */
static bool loads_fence(const struct kernel *k, int64_t offset)
{
	bool fence = lower_does(k, LOAD_FENCES);

	for (int i = 0; i < k->lanes.n && fence; i++)
		fence = lane_fences(k, &k->lanes.v[i], offset);
	return fence;
}

bool readers_fence(const struct lowering *c, int buffer)
{
	int64_t offset = ring_of(c, buffer)->offset;
	bool filled = false;

	for (int i = 0; i < c->k->rings.n; i++)
		filled |= c->k->rings.v[i].engine && c->k->rings.v[i].offset == offset;
	return filled && !loads_fence(c->k, offset);
}

bool reads_by_threads(const struct role_op *o, const struct touch *t)
{
	bool is_async = o->what == DO_STORE_BOXES || o->what == DO_LOAD_BOXES ||
		(o->what == DO_PRODUCT && o->u.product.form.by->async);

	return !is_async && t->how == TOUCH_READ && t->what == TOUCH_SLOT;
}

/* Do threads read slots at the offset in the body? */
static bool is_read_in(const struct lowering *c, const struct role_body *b, int64_t offset)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		for (int k = 0; k < o->touches.n; k++)
			if (reads_by_threads(o, &o->touches.v[k]) && ring_of(c, o->touches.v[k].of)->offset == offset)
				return true;
		if (role_is_region(o->what) && (is_read_in(c, &o->u.region.body, offset) ||
		    is_read_in(c, &o->u.region.other, offset)))
			return true;
	}
	return false;
}

static bool needs_fence(const struct lowering *c, const struct role_op *o)
{
	int64_t offset = o->what == DO_LOAD_BOXES ? c->k->rings.v[o->u.boxes.ring].offset : 0;

	if (o->what != DO_LOAD_BOXES || !loads_fence(c->k, offset))
		return false;
	for (int i = 0; i < c->r->roles.n; i++)
		if (is_read_in(c, &c->r->roles.v[i].body, offset))
			return true;
	return false;
}

/* Adds fences before the loads of a body. fenced: the lane has waited for nothing since a fence. */
static void add_fences(struct lowering *c, struct role_body *b, bool *fenced)
{
	struct role_body old = *b;

	*b = (struct role_body){ 0 };
	for (int i = 0; i < old.v.n; i++) {
		struct role_op *o = old.v.v[i], *fence;
		bool once = o->what == DO_TASK || o->what == DO_BLOCK;

		if (needs_fence(c, o) && !*fenced) {
			fence = ARENA_NEW(c->a, struct role_op);
			*fence = (struct role_op){ .what = DO_FENCE, .task = o->task, .wait = NONE, .point = o->point,
				.why = "threads have read what the copy engine fills again" };
			VEC_PUSH(c->a, &b->v, fence);
			*fenced = true;
		}
		VEC_PUSH(c->a, &b->v, o);
		if (o->what == DO_WAIT || o->what == DO_WAIT_LAST || o->what == DO_LANE_SYNC || o->what == DO_BLOCK_SYNC)
			*fenced = false;
		if (!role_is_region(o->what))
			continue;
		*fenced &= once;
		add_fences(c, &o->u.region.body, fenced);
		*fenced &= once;
		add_fences(c, &o->u.region.other, fenced);
		*fenced &= once;
	}
}

void fence_loads(struct lowering *c)
{
	for (int i = 0; i < c->r->roles.n; i++) {
		bool fenced = false;

		add_fences(c, &c->r->roles.v[i].body, &fenced);
	}
}
