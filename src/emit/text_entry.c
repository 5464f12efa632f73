/* One sTask: its iteration and slots, its waits, its body, and whom it tells; and where the
 * carries that it touches begin. */
#include "emit/gpu_text.h"

static void put_slots(struct text *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);

	for (int i = 0; i < c->k->rings.n; i++) {
		const struct ring *r = &c->k->rings.v[i];
		const struct buffer *b = &c->g->buffers.v[r->buffer];
		bool used = false;

		for (int k = 0; k < s->reads.n; k++)
			used |= s->reads.v[k] == r->buffer;
		for (int k = 0; k < s->writes.n; k++)
			used |= s->writes.v[k] == r->buffer;
		if (!used)
			continue;
		put(c, "const u32 %s = shared + %lld + %s %% %d * %lld;", c_name(c, "slot_", b->name),
			(long long)r->offset, b->loop == NONE ? "t" : arena_strf(c->a, "seq_%d",
			b->loop), r->versions, (long long)r->slot_bytes);
	}
}

void put_loop_axes(struct text *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	int64_t below = 1;

	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t tiles = extent_tiles(&c->g->extents, l->axis[i]);

		put(c, "const int lo_%s = (first_%d + i_%d) / %lld %% %lld * %lld;",
			c->p->axes.v[l->axis[i]].name, loop, loop, (long long)below, (long long)tiles,
			(long long)c->g->extents.tile[l->axis[i]]);
		below *= tiles;
	}
}

static bool shares_on_lane(const struct text *c, const struct stask *s)
{
	for (int i = 0; i < s->writes.n; i++)
		if (c->k->ring_of[s->writes.v[i]] != NONE)
			return true;
	return false;
}

static enum err_code put_body(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);

	switch (s->kind) {
	case TASK_LOAD:
		return emit_load(c, x, e);
	case TASK_MMA:
		return emit_mma(c, x, e);
	case TASK_COMPUTE:
		return emit_compute(c, x, e);
	case TASK_STORE:
		break;
	}
	return emit_store(c, x, e);
}

/* Does a product with nothing to add to begin each life of the carry? */
static bool begins_by_product(const struct text *c, const struct buffer *b)
{
	const struct stask *first = &c->g->tasks.v[b->first];

	for (int l = first->loop; l != b->loop; l = c->p->loops.v[l].parent)
		if (c->g->trips[l].least == 0)
			return false;
	return first->kind == TASK_MMA && c->p->carries.v[b->carry].init == 0;
}

static enum err_code put_initial(struct text *c, int buffer, int iteration, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct view v;

	if (b->carry == NONE || b->phase != c->k->phase || c->k->ring_of[buffer] != NONE ||
	    !in_lane(c, b->first) || begins_by_product(c, b))
		return OK;
	TRY(buffer_view(c, buffer, &v, e));
	put(c, "EACH(rb, %d) EACH(i, %lld) %s%s = %s;", v.kind == FRAG_FULL ||
		v.kind == FRAG_ROW ? v.blocks : 1, (long long)(v.kind == FRAG_FULL ?
		v.cols / 2 : v.kind == FRAG_ROW ? 2 : v.kind == FRAG_COL ? v.cols / 4 : 1),
		version_name(c, buffer, (int)floor_mod(iteration, c->plan->versions[buffer])),
		v.kind == FRAG_FULL || v.kind == FRAG_ROW ? "[rb][i]" : "[i]",
		float_text(c, c->p->carries.v[b->carry].init));
	return OK;
}

/* Carries begin each life with their initial value. Those of the tile do so at once, if that
 * is all the lane works on; those of a loop before the first to touch them, or before the
 * loop inside where it stands. */
enum err_code put_initial_tile(struct text *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].loop == NONE)
			TRY(put_initial(c, i, 0, e));
	return OK;
}

static enum err_code put_initial_entry(struct text *c, const struct kentry *x, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].first == x->task && c->g->buffers.v[i].loop == stask_of(c, x)->loop &&
		    (c->g->buffers.v[i].loop != NONE || shifts_tiles(c->lane)))
			TRY(put_initial(c, i, c->turn + x->at, e));
	return OK;
}

enum err_code put_initial_nested(struct text *c, int loop, int nested, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];

		if (b->loop == loop && program_loop_within(c->p, c->g->tasks.v[b->first].loop, nested))
			TRY(put_initial(c, i, c->around[loop], e));
	}
	return OK;
}

/* One sTask. `iteration`: C text of its iteration. */
enum err_code put_entry(struct text *c, const struct kentry *x, int class,
	const char *iteration, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const char *seq = s->loop == NONE ? "t" : arena_strf(c->a, "seq_%d", s->loop);

	put(c, "{\t/* %s, %s */", s->name, s->loop != NONE ? arena_strf(c->a, "iteration %s",
		iteration) : shifts_tiles(c->lane) ? arena_strf(c->a, "tile %s", iteration) :
		"once a tile");
	c->indent++;
	if (s->loop != NONE) {
		put(c, "const int i_%d = %s, seq_%d = base_%d + i_%d;", s->loop, iteration, s->loop,
			s->loop, s->loop);
		put_loop_axes(c, s->loop);
	}
	put(c, "AT(\"%s\", %s);", s->name, s->loop == NONE ? "t" : arena_strf(c->a, "i_%d", s->loop));
	if (s->kind == TASK_LOAD)
		put(c, "const int seq = %s;", seq);
	put_slots(c, x);
	put_flag_waits(c, x);
	if (x->waits_groups) {
		put_group_wait(c, x, &x->before, class);
		put_stamp(c, x, x->stamps.groups);
	}
	put_read_pins(c, x);
	if ((s->kind == TASK_COMPUTE && shares_on_lane(c, s)) || x->lands || x->begins.n)
		put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	TRY(put_initial_entry(c, x, e));
	put_begins(c, x);
	if (x->issue_flag != NONE && s->kind == TASK_COMPUTE)	/* which ends where it is issued */
		put_arrive(c, x->issue_flag, seq);
	TRY(put_body(c, x, e));
	if (s->kind == TASK_COMPUTE && shares_on_lane(c, s))
		put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	if (x->issue_flag != NONE && s->kind != TASK_COMPUTE)
		put_arrive(c, x->issue_flag, seq);
	if (x->lands)
		TRY(put_landing(c, x, e));
	if (x->flag != NONE && s->kind == TASK_MMA && on_matrix(c, x->task))
		put(c, "issued_%d++;", x->flag);
	else if (x->flag != NONE && s->kind != TASK_LOAD)
		put_arrive(c, x->flag, seq);
	put_early_runs(c, x);
	put_stamp(c, x, x->stamps.body);
	if (x->drains) {
		put_group_wait(c, x, &x->after, class);
		put_stamp(c, x, x->stamps.drain);
	}
	c->indent--;
	put(c, "}");
	return OK;
}
