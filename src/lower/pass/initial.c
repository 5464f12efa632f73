/* Initial values of carries in registers. */
#include "lower/pass/build.h"
#include "role/live.h"

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

/* The most registers of a value that an sTask behind the lane's loops computes and reads again once a reduction has gone over it: no
 * buffer holds it. */
static int words_around_folds(struct lowering *c)
{
	int most = 0;

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = &c->g->tasks.v[c->lane->entries.v[i].task];
		const struct task *t = &c->p->tasks.v[s->task];
		int widest = 0;
		bool folds = false;

		if (s->kind != TASK_COMPUTE || s->loop != NONE)
			continue;
		for (int k = 0; k < t->nodes.n; k++) {
			struct frag f;
			struct err e;

			folds |= op_class(c->p->nodes.v[t->nodes.v[k]].op) == CLASS_REDUCE;
			if (buffer_of_node(c, s, t->nodes.v[k]) == NONE && !lay_out_node(c, s, t->nodes.v[k], &f, &e))
				widest = frag_words(&f) > widest ? frag_words(&f) : widest;
		}
		most = folds && widest > most ? widest : most;
	}
	return most;
}

/* Must registers of a tile's sum be set although the first product ignores what they hold? Compilers only see that it takes
 * them, and so keep what they held in the tile before, from its last use on, and what the lane computes then cannot have
 * them. Where it needs them, the sum is set where a tile begins. */
static bool lacks_registers(struct lowering *c, const struct buffer *b)
{
	return b->loop == NONE && !shifts_tiles(c->lane) &&
		words_of_all(c) + words_around_folds(c) + c->plan->device->reserved_registers >= lane_usable_registers(c->lane);
}

/* Do products add to the carry, while others of the lane may be under way before the first of them? Compilers would set it as late as
 * possible, which is behind the issue of these, and ptxas takes registers that are set then for those of a product under way. */
static bool is_set_early(const struct lowering *c, int buffer)
{
	bool adds = false, others = false;

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		if (!is_in_flight(c, c->lane->entries.v[i].task))
			continue;
		*(ints_hold(s->writes.v, s->writes.n, buffer) ? &adds : &others) = true;
	}
	return adds && others;
}

static int buffer_of_frag(const struct lowering *c, const struct frag *f)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->buffer_frags[i] == f)
			return i;
	return NONE;
}

/* f32 whatever the type: the kernel converts it where it sets the fragment's elements. */
static void add_init(struct lowering *c, const struct frag_at *at, int buffer, double init)
{
	struct role_op *o;

	add_touch(c, TOUCH_WRITE, TOUCH_FRAG, buffer, at->version);
	o = add_op(c, DO_INIT);
	o->touches.v[0].initial = true;
	o->u.frag.at = *at;
	o->u.frag.value = val_const(c, DT_F32, init);
}

/* Does the map read shared memory for elements of which a thread has many? */
static bool may_be_apart(const struct role_op *o)
{
	bool reads = false;

	for (int i = 0; o->what == DO_MAP && i < o->u.map.steps.n; i++)
		reads |= role_reads_shared(o->u.map.steps.v[i].value);
	return reads && o->u.map.over->kind == FRAG_FULL;
}

static void set_maps_apart(const struct role_body *b, int64_t free)
{
	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];
		int words, groups, apart = 1;

		if (role_is_region(o->what)) {
			set_maps_apart(&o->u.region.body, free);
			set_maps_apart(&o->u.region.other, free);
		}
		if (!may_be_apart(o))
			continue;
		words = frag_words(o->u.map.over);
		groups = frag_groups(o->u.map.over);
		while (apart * 2 <= groups && apart * 2 * (words / groups) <= free)
			apart *= 2;
		if (words > free)
			o->u.map.apart = apart;
	}
}

static void set_sums_of_tiles(struct lowering *c, struct role_op *tiles, const struct role_sums *sums)
{
	const struct role_body old = tiles->u.region.body;
	struct role_body *outer;

	tiles->u.region.body = (struct role_body){ 0 };
	outer = enter_body(c, &tiles->u.region.body);
	for (int k = 0; k < sums->v.n; k++) {
		int buffer = buffer_of_frag(c, sums->v.v[k].frag);

		if (buffer != NONE && c->g->buffers.v[buffer].loop == NONE)
			add_init(c, &sums->v.v[k], buffer, 0);
	}
	for (int k = 0; k < old.v.n; k++)
		append_op(c, old.v.v[k]);
	leave_body(c, outer);
}

/* Compilers keep what the sums of a tile's products held in the tile before. If the lane has no registers for that, the sums are set where a
 * tile begins. If it has none for what is computed behind the loop, with operands in shared memory, this is done a part at a time: compilers
 * would begin with as many elements as they can, and spill. */
void spare_kept_sums(struct lowering *c)
{
	struct role_sums sums = { 0 };
	int64_t other = role_slot_words(c->role, c->a) + c->plan->device->reserved_registers;
	int64_t free = lane_usable_registers(c->lane) - other - role_kept_words(c->role, c->a, true, &sums);

	if (!sums.v.n || shifts_tiles(c->lane))
		return;
	for (int i = 0; i < c->role->body.v.n && free < 0; i++)
		if (c->role->body.v.v[i]->what == DO_TILES)
			set_sums_of_tiles(c, c->role->body.v.v[i], &sums);
	if (free > 0 && role_kept_words(c->role, c->a, false, NULL) + other > lane_usable_registers(c->lane))
		set_maps_apart(&c->role->body, free);
}

enum err_code add_initial(struct lowering *c, int buffer, int iteration, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct frag_at at;

	if (b->carry == NONE || b->phase != c->k->phase || has_ring(c, buffer) ||
	    !in_lane(c, b->first) || (begins_by_product(c, b) && !lacks_registers(c, b)))
		return OK;
	TRY(find_buffer_frag(c, buffer, &at.frag, e));
	at.version = (int)floor_mod(iteration, c->plan->versions[buffer]);
	add_init(c, &at, buffer, c->p->carries.v[b->carry].init);
	if (!begins_by_product(c, b) && is_set_early(c, buffer))
		add_pin(c, at.frag, at.version, frag_block_words(at.frag));
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
