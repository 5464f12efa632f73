/* Initial values of carries in registers. */
#include "lower/pass/build.h"

/* Does each life of the carry begin with a product that adds to zero? Then the matrix unit ignores what the registers
 * hold, and no initial value is needed. A loop around that product that may be empty would leave them unset. */
static bool begins_by_product(const struct lowering *c, const struct buffer *b)
{
	const struct stask *first = &c->g->tasks.v[b->first];

	for (int l = first->loop; l != b->loop; l = c->p->loops.v[l].parent)
		if (c->g->trips[l].least == 0)
			return false;
	return first->kind == TASK_MMA && is_async_product(c->k, b->first) && c->p->carries.v[b->carry].init == 0;
}

/* The registers that all values and carries of the lane take together, if none takes those of another one. */
static int words_of_all(const struct lowering *c)
{
	int words = 0;

	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];

		if (b->phase == c->k->phase && !has_ring(c, i) && in_lane(c, b->first) && b->alias_of == NONE)
			words += frag_words(c->buffer_frags[i]) * c->buffer_frags[i]->versions;
	}
	return words;
}

/* Must registers of a tile's sum be set although the first product ignores what they hold? Compilers only see that it takes
 * them, and so keep what they held in the tile before, from its last use on, and what the lane computes then cannot have
 * them. Where it needs them, the sum is set where a tile begins. */
static bool lacks_registers(const struct lowering *c, const struct buffer *b)
{
	return b->loop == NONE && !shifts_tiles(c->lane) && words_of_all(c) + c->plan->device->reserved_registers >= c->lane->given;
}

enum err_code add_initial(struct lowering *c, int buffer, int iteration, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct frag_at at;
	struct role_op *o;

	if (b->carry == NONE || b->phase != c->k->phase || has_ring(c, buffer) ||
	    !in_lane(c, b->first) || (begins_by_product(c, b) && !lacks_registers(c, b)))
		return OK;
	TRY(find_buffer_frag(c, buffer, &at.frag, e));
	at.version = (int)floor_mod(iteration, c->plan->versions[buffer]);
	add_touch(c, TOUCH_WRITE, TOUCH_FRAG, buffer, at.version);
	o = add_op(c, DO_INIT);
	o->touches.v[0].initial = true;
	o->u.frag.at = at;
	/* f32 whatever the carry's type: the kernel converts it where it sets the fragment's elements */
	o->u.frag.value = val_const(c, DT_F32, c->p->carries.v[b->carry].init);
	return OK;
}

/* Carries begin each life with their initial value. For carries of the tile it is written where the tile starts, if the
 * lane works on one tile at a time; else before the carry's first sTask, or before the inner loop of that sTask. */
enum err_code build_initial_tile(struct lowering *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].loop == NONE)
			TRY(add_initial(c, i, 0, e));
	return OK;
}

enum err_code add_initial_of_task(struct lowering *c, const struct kentry *x, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].first == x->task && c->g->buffers.v[i].loop == stask_of(c, x)->loop &&
		    (c->g->buffers.v[i].loop != NONE || shifts_tiles(c->lane)))
			TRY(add_initial(c, i, c->point->number + x->at, e));
	return OK;
}

enum err_code build_initial_nested(struct lowering *c, int loop, int nested, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];

		if (b->loop == loop && program_loop_within(c->p, c->g->tasks.v[b->first].loop, nested))
			TRY(add_initial(c, i, c->point->around[loop], e));
	}
	return OK;
}
