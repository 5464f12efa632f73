/* A lane: its registers, its tile loop, and whose turn a tile is. */
#include "lower/body/body.h"

static void tile_axes(struct body *c)
{
	const struct grid *g = &c->g->grids[c->k->phase];
	int64_t below = 1;

	for (int i = g->n - 1; i >= 0; i--) {
		body_let(c, VAR_LO, g->axis[i], MUL(MOD(DIV(V(c, VAR_TILE, NONE), N(c, below)), N(c,
			g->tiles[i])), N(c, c->g->extents.tile[g->axis[i]])));
		below *= g->tiles[i];
	}
}

/* Does the lane have registers for the buffer? What lies in another's place has that one's. */
static bool in_registers(const struct body *c, int buffer)
{
	const struct buffer *b = &c->g->buffers.v[buffer];

	return b->phase == c->k->phase && !has_ring(c, buffer) && in_lane(c, b->first) && b->place == NONE;
}

static enum err_code registers(struct body *c, struct err *e)
{
	c->words = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct frag *f;

		if (!in_registers(c, i))
			continue;
		TRY(body_buffer(c, i, &f, e));
		body_op(c, DO_FRAGMENT)->u.frag.at.frag = f;
		c->words += frag_words(f) * f->versions;
	}
	return OK;
}

/* May it hold something while the loop runs, which has sTask `any`? A carry may. */
static bool holds_in(const struct body *c, int buffer, int loop, int any)
{
	bool before = false, behind = false;

	for (int t = 0; t < c->g->tasks.n; t++) {
		const struct stask *s = &c->g->tasks.v[t];
		bool touches = false;

		for (int b = 0; b < c->g->buffers.n; b++)
			touches |= (b == buffer || c->g->buffers.v[b].place == buffer) && stask_touches(s, b);
		if (touches && program_loop_within(c->p, s->loop, loop))
			return true;
		before |= touches && s->position < c->g->tasks.v[any].position;
		behind |= touches && s->position > c->g->tasks.v[any].position;
	}
	return c->g->buffers.v[buffer].carry != NONE || (before && behind);
}

/* Words of a thread for all values that the loop holds; `widest` is for the widest that a turn makes. */
static int words_in(const struct body *c, int loop, int any, int *widest)
{
	int words = 0;

	*widest = 0;
	for (int i = 0; i < c->g->buffers.n; i++) {
		int w;

		if (!in_registers(c, i) || !holds_in(c, i, loop, any))
			continue;
		w = frag_words(c->of_buffer[i]);
		words += w * c->of_buffer[i]->versions;
		if (c->g->buffers.v[i].carry == NONE && w > *widest)
			*widest = w;
	}
	return words;
}

/* Is a product under way when a turn of the loop ends? */
static bool ends_under_way(const struct body *c, int loop)
{
	const struct kregion *v = &c->lane->regions[loop + 1];
	bool under = false;

	for (int i = 0; i < v->steps.n; i++) {
		const struct kentry *x = &c->lane->entries.v[v->steps.v[i].id];

		if (v->steps.v[i].is_loop) {
			under |= ends_under_way(c, v->steps.v[i].id);
			continue;
		}
		under &= !(x->waits_groups && x->before.younger[0] <= 0);
		under |= under_way(c, x->task);
		under &= !(x->drains && x->after.younger[0] <= 0);
	}
	return under;
}

/* Is there room in each loop for all its values beside each other, though they do not live at once,
 * and is none unrolled? Then compilers find their way even in texts that leave them more to arrange:
 * loops that follow each other, sums that nothing holds in their place. Otherwise plans of 170 words
 * of 240 spilled. Products that are under way from a turn to the next they serialize unless there is
 * more: of 75 plans with less than twice what is reserved 54 were, and of 76 with that the 18 whose
 * turns make a value of 80 words or more and had not two thirds of it beside. */
static bool has_room(const struct body *c)
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
		words = words_in(c, loop, task, &widest);
		if (ends_under_way(c, loop))
			more = widest * 2 / 3 > reserved ? widest * 2 / 3 : reserved;
		if (words + reserved + more > c->lane->given)
			return false;
	}
	return true;
}

static void turn_wait(struct body *c, int flag, const struct num *n, const char *why)
{
	struct role_op *o = body_op(c, DO_WAIT);

	o->u.flag.flag = flag;
	o->u.flag.n = n;
	o->why = why;
}

/* A copy begins with a tile when the one before has seen all flags of the tile before. */
static void await_turn(struct body *c, int flag)
{
	turn_wait(c, flag, SUB(V(c, VAR_T, NONE), N(c, 1)),
		"the copy before has seen all flags of its tile");
}

/* Number of instances of the flag's products where a tile's begin. */
static void restart_flag(struct body *c, int f)
{
	const struct flag *fl = &c->k->flags.v[f];
	int loop = fl->runs ? c->p->loops.v[fl->loop].parent : c->g->tasks.v[fl->task].loop;
	const struct num *first = loop == NONE ? V(c, VAR_T, NONE) : V(c, VAR_BASE, loop);

	body_set(c, VAR_ISSUED, f, first);
	body_set(c, VAR_RELEASED, f, first);
}

/* Products of a flag that the lane issues before it knows them to be complete. */
static bool counts(const struct body *c, int f)
{
	return body_tells_later(c, f);
}

static void take_turn(struct body *c)
{
	const struct kregion *v = &c->lane->regions[0];
	struct role_body *outer;

	if (c->lane->replicas == 1)
		return;
	outer = body_enter(c, &body_if(c, NUM2(NE, MOD(SUB(V(c, VAR_T, NONE), N(c, c->lane->replica)), N(c,
		c->lane->replicas)), N(c, 0)), "another's turn")->u.region.body);
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)
			body_passed(c, v->steps.v[i].id);
	body_op(c, DO_CONTINUE);
	body_leave(c, outer);
	for (int f = 0; f < c->k->flags.n; f++)
		if (counts(c, f))
			restart_flag(c, f);
	if (c->lane->turn != NONE)
		await_turn(c, c->lane->turn);
}

static enum err_code tile(struct body *c, struct err *e)
{
	const struct kregion *v = &c->lane->regions[0];

	tile_axes(c);
	take_turn(c);
	body_tile_stamps(c);
	body_tile_bases(c);
	TRY(body_initial_tile(c, e));
	c->turn = c->around[NONE] = 0;
	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];

		if (s->is_loop) {
			TRY(body_region(c, s->id, e));
			TRY(body_missed(c, NONE, s->id, e));
			TRY(body_run(c, s, e));
		} else {
			TRY(body_task(c, &c->lane->entries.v[s->id], 0, NULL, e));
		}
		c->turn = 0;
	}
	return OK;
}

/* Wait for all products of the lane. */
static void all_products(struct body *c)
{
	bool multiplies = false;

	for (int i = 0; i < c->lane->entries.n; i++)
		multiplies |= under_way(c, c->lane->entries.v[i].task);
	if (!multiplies)
		return;
	body_groups_wait(c, 0, "the tile ends");
	body_releases(c, NULL, NULL);
}

/* A tile after the other. */
static enum err_code tiles(struct body *c, struct err *e)
{
	struct role_body *outer = body_enter(c, &body_op(c, DO_TILES)->u.region.body);

	TRY(tile(c, e));
	all_products(c);
	body_tile_end_stamp(c);
	body_leave(c, outer);
	return OK;
}

/* A copy passes over the tiles of others up to one: their iterations are counted. */
static void others_until(struct body *c, int loop, const struct num *end)
{
	struct role_op *o = body_op(c, DO_LOOP);
	struct role_body *outer = body_enter(c, &o->u.region.body);

	o->u.region.var = VAR_PASSED;
	o->u.region.of = loop;
	o->u.region.end = end;
	o->u.region.step = 1;
	body_let(c, VAR_TILE, NONE, NUM2(TILE_AT, V(c, VAR_PASSED, loop), N(c, 0)));
	tile_axes(c);
	body_passed(c, loop);
	body_leave(c, outer);
}

/* ... and has told all of its products of the tiles before, as each turn ends with that. */
static void pass_others(struct body *c, const struct kstep *s)
{
	if (c->lane->replicas == 1)
		return;
	if (s->is_loop) {
		others_until(c, s->id, V(c, VAR_T, NONE));
		body_advance(c, VAR_PASSED, s->id, N(c, 1));
	}
	for (int f = 0; f < c->k->flags.n; f++) {
		int task = c->k->flags.v[f].task;

		if (counts(c, f) && (s->is_loop ? program_loop_within(c->p, c->g->tasks.v[task].loop,
		    s->id) : c->lane->entries.v[s->id].task == task))
			restart_flag(c, f);
	}
}

/* Of the lane's own tiles, or turns, number n among those of all its copies. */
static const struct num *number_of(struct body *c, const struct num *n)
{
	if (c->lane->replicas == 1)
		return n;
	return num_plus(c->a, MUL(n, N(c, c->lane->replicas)), c->lane->replica);
}

enum err_code body_tile_step(struct body *c, const struct kstep *s, int class,
	const struct num *iteration, struct err *e)
{
	int turn = c->turn, last = c->last;
	struct role_body *outer = body_enter(c, &body_block(c, NULL)->u.region.body);

	/* no constant, not even 0: t - 1 is one */
	body_let(c, VAR_T, NONE, number_of(c, iteration))->u.let.changes = true;
	body_let(c, VAR_TILE, NONE, NUM2(TILE_AT, V(c, VAR_T, NONE), N(c, 0)));
	tile_axes(c);
	c->around[NONE] = turn + s->at;
	if (s->turn != NONE)
		await_turn(c, s->turn);
	pass_others(c, s);
	if (s->is_loop) {
		body_tile_bases(c);
		TRY(body_initial_nested(c, NONE, s->id, e));
		TRY(body_region(c, s->id, e));
		TRY(body_missed(c, NONE, s->id, e));
		TRY(body_run(c, s, e));
	} else {
		TRY(body_task(c, &c->lane->entries.v[s->id], class, iteration, e));
	}
	c->turn = turn;
	c->last = last;
	body_leave(c, outer);
	return OK;
}

void body_tile_turn_end(struct body *c, bool last)
{
	if (last || c->lane->replicas > 1)
		all_products(c);
	body_tile_end_stamp(c);
}

/* In turns, of which each is about several tiles. */
static enum err_code tile_turns(struct body *c, struct err *e)
{
	const struct klane *l = c->lane;
	const struct kregion *v = &l->regions[0];
	const struct num *tiles = V(c, VAR_TILES, NONE);

	body_op(c, DO_COUNT_TILES);
	body_let(c, VAR_TRIPS, NONE, DIV(ADD(tiles, N(c, l->replicas - 1 - l->replica)), N(c, l->replicas)));
	for (int i = 0; i < v->steps.n && l->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			body_let(c, VAR_PASSED, v->steps.v[i].id, N(c, 0))->u.let.changes = true;
	TRY(body_region(c, NONE, e));
	for (int i = 0; i < v->steps.n && l->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			others_until(c, v->steps.v[i].id, tiles);
	return OK;
}

static bool is_copied(const struct body *c, const struct flag *f)
{
	return (f->bytes || f->copies) && in_lane(c, f->task);
}

/* A copy of a lane knows what the one that has the last tile has seen: only then it can tell the
 * phases of that tile from those before. */
static void last_turns(struct body *c)
{
	const struct kregion *v = &c->lane->regions[0];
	const struct num *last = SUB(V(c, VAR_ALL_TILES, NONE), N(c, 1));
	const char *why = "the copy that has the last tile has seen all flags";

	if (c->lane->turn != NONE)
		turn_wait(c, c->lane->turn, last, why);
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].turn != NONE)
			turn_wait(c, v->steps.v[i].turn, last, why);
}

/* A block may not end while something is copied to its memory, and nobody need have
 * waited for what a loop without iterations would have read. */
static void last_copies(struct body *c)
{
	bool any = false;

	for (int i = 0; i < c->k->flags.n; i++)
		any |= is_copied(c, &c->k->flags.v[i]);
	if (any && c->lane->replicas > 1)
		last_turns(c);
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		int loop = c->g->tasks.v[f->task].loop;
		struct role_op *o;

		if (!is_copied(c, f))
			continue;
		o = body_op(c, DO_WAIT_LAST);
		o->u.flag.flag = i;
		o->why = "no block ends while something is copied to it";
		o->u.flag.n = loop == NONE ? V(c, VAR_ALL_TILES, NONE) : V(c, VAR_BASE, loop);
	}
}

static bool stores_by_engine(const struct body *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (c->lane->entries.v[i].outbox != NONE)
			return true;
	return false;
}

static void counter(struct body *c, enum var v, int of)
{
	body_let(c, v, of, N(c, 0))->u.let.changes = true;
}

static void counters(struct body *c)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		if (!counts(c, f))
			continue;
		counter(c, VAR_ISSUED, f);
		counter(c, VAR_RELEASED, f);
	}
	for (int f = 0; f < c->k->flags.n; f++)
		if (body_waits_once(c, f))
			counter(c, VAR_SEEN, f);
	for (int f = 0; f < c->k->flags.n; f++)
		if (c->k->flags.v[f].early && in_lane(c, c->k->flags.v[f].task))
			counter(c, VAR_TOLD, f);
	for (int i = 0; i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase)
			counter(c, VAR_BASE, i);
}

enum err_code body_lane(struct body *c, struct err *e)
{
	const struct klane *l = c->lane;
	struct role_op *o;

	if (c->k->shares_registers) {
		o = body_op(c, DO_REGISTERS);
		o->u.registers.n = l->given;
		o->u.registers.more = l->given > lower_launched(c->k);
	}
	if (l->warps % c->k->target->group) {
		body_watches(c);
		body_op(c, DO_LEAVE)->u.lane.warp = l->first_warp + l->warps;
	}
	o = body_op(c, DO_LANE);
	o->u.lane.warp = l->first_warp;
	o->u.lane.stores = stores_by_engine(c);
	body_lane_stamps(c);
	counters(c);
	TRY(registers(c, e));
	c->has_room = has_room(c);
	TRY(shifts_tiles(l) ? tile_turns(c, e) : tiles(c, e));
	last_copies(c);
	if (stores_by_engine(c))	/* nor while something is copied out of it */
		body_op(c, DO_STORES_WAIT)->u.stores.elected = true;
	body_end_stamp(c);
	return OK;
}
