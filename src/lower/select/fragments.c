/* The registers of a lane: fragments that live beyond an sTask, and whether the lane has registers to spare. */
#include "lower/select/lowering.h"

/* Does the lane have registers for the buffer? An alias uses those of the other buffer. */
static bool has_own_registers(const struct lowering *c, int buffer)
{
	const struct buffer *b = &c->g->buffers.v[buffer];

	return b->phase == c->k->phase && !has_ring(c, buffer) && in_lane(c, b->first) && b->alias_of == NONE;
}

/* May the buffer be live while the loop runs? `any`: an sTask of the loop. A carry is taken to be. */
static bool may_be_live_in(const struct lowering *c, int buffer, int loop, int any)
{
	bool before = false, behind = false;

	for (int t = 0; t < c->g->tasks.n; t++) {
		const struct stask *s = &c->g->tasks.v[t];
		bool touches = false;

		for (int b = 0; b < c->g->buffers.n; b++)
			touches |= (b == buffer || c->g->buffers.v[b].alias_of == buffer) && stask_touches(s, b);
		if (touches && program_loop_within(c->p, s->loop, loop))
			return true;
		before |= touches && s->position < c->g->tasks.v[any].position;
		behind |= touches && s->position > c->g->tasks.v[any].position;
	}
	return c->g->buffers.v[buffer].carry != NONE || (before && behind);
}

/* Words a thread needs for all values that may be live in the loop. *widest: words of the largest value that one
 * iteration makes. */
static int live_words(const struct lowering *c, int loop, int any, int *widest)
{
	int words = 0;

	*widest = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		int w;

		if (!has_own_registers(c, i) || !may_be_live_in(c, i, loop, any))
			continue;
		w = frag_words(c->buffer_frags[i]);
		words += w * c->buffer_frags[i]->versions;
		if (c->g->buffers.v[i].carry == NONE && w > *widest)
			*widest = w;
	}
	return words;
}

/* Is a product in flight when an iteration of the loop ends? */
static bool ends_in_flight(const struct lowering *c, int loop)
{
	const struct kregion *v = &c->lane->regions[loop + 1];
	bool under = false;

	for (int i = 0; i < v->steps.n; i++) {
		const struct kentry *x = &c->lane->entries.v[v->steps.v[i].id];

		if (v->steps.v[i].is_loop) {
			under |= ends_in_flight(c, v->steps.v[i].id);
			continue;
		}
		under &= !(x->waits_groups && x->before.groups_left[0] <= 0);
		under |= is_in_flight(c, x->task);
		under &= !(x->drains && x->after.groups_left[0] <= 0);
	}
	return under;
}

/* Does each loop have registers for all its values at once, although they are not live at once, and is no loop
 * unrolled? Only then may a kernel have several versions of a loop, or partial sums that nothing pins, which make
 * register allocation harder: without this test plans with 170 of 240 words spilled. If products are in flight across
 * iterations the compiler serializes them unless more is free: 54 of 75 plans with less than twice the reserve were
 * serialized, and of 76 with at least that, the 18 that make a value of 80 words or more per iteration and had less
 * than two thirds of it free. */
static bool has_spare_registers(const struct lowering *c)
{
	int reserved = c->plan->device->reserved_registers;

	for (int l = 0; l <= c->p->loops.n; l++)
		if (c->lane->regions[l].unroll > 1)
			return false;
	for (int i = 0; i < c->lane->entries.n; i++) {
		int task = c->lane->entries.v[i].task, loop = c->g->tasks.v[task].loop;
		int words, widest, more = 0;

		if (loop == NONE)
			continue;
		words = live_words(c, loop, task, &widest);
		if (ends_in_flight(c, loop))
			more = widest * 2 / 3 > reserved ? widest * 2 / 3 : reserved;
		if (words + reserved + more > c->lane->given)
			return false;
	}
	return true;
}

enum err_code add_fragments(struct lowering *c, struct err *e)
{
	c->live_words = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct frag *f;

		if (!has_own_registers(c, i))
			continue;
		TRY(find_buffer_frag(c, i, &f, e));
		add_op(c, DO_FRAGMENT)->u.frag.at.frag = f;
		c->live_words += frag_words(f) * f->versions;
	}
	c->has_spare_registers = has_spare_registers(c);
	return OK;
}
