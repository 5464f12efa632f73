/* Replicas of a lane take the tiles of an EU in round robin, but share its rings and flags. Two things follow.
 *
 * A replica counts the iterations of the tiles that the others take, as the iterations of all tiles before
 * (VAR_BASE) decide which slot of a ring and which phase of a flag an iteration uses. Loops may make another number of
 * iterations in each tile.
 *
 * A replica begins a tile only when the replica that has the tile before has seen all flags of that. An mbarrier shows
 * only the parity of its phase, so the replica could take a phase of the tile before for one of its own.
 *
 * A lane without offsets in the tile loop goes through all tiles and skips those of other replicas: build_skip_tiles.
 * In a lane with offsets, the tile loop has only the replica's own tiles, and its steps work on different tiles at a
 * time. So each step that is a loop counts on its own, with a counter of the tiles that it has counted
 * (build_other_tile_counters): up to its tile before it begins (build_count_tiles_before), and up to the EU's last tile
 * behind the tile loop (build_count_remaining_tiles). */
#include "lower/pass/build.h"

/* Waits until the replica of the tile before the current one has seen all flags of that, as `flag` shows. */
void build_handover_wait(struct lowering *c, int flag)
{
	add_flag_op(c, DO_WAIT, flag, SUB(V(c, VAR_T, NONE), N(c, 1)),
		"the replica before has seen all flags of its tile");
}

/* After other replicas' tiles: sets the counters of a flag's products to the instances or runs before this tile. */
static void set_product_counters(struct lowering *c, int f)
{
	const struct flag *fl = &c->k->flags.v[f];
	int loop = fl->runs ? c->p->loops.v[fl->loop].parent : c->g->tasks.v[fl->task].loop;
	const struct num *first = loop == NONE ? V(c, VAR_T, NONE) : V(c, VAR_BASE, loop);

	add_set(c, VAR_ISSUED, f, first);
	add_set(c, VAR_RELEASED, f, first);
}

/* At the beginning of a tile, without offsets: if it is another replica's, counts its iterations and goes on with the
 * next tile. Else sets the counters of products and waits for the handover. */
void build_skip_tiles(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];
	struct role_body *outer;
	struct role_op *skip;

	if (c->lane->replicas == 1)
		return;
	skip = add_if(c, NUM2(NE, MOD(SUB(V(c, VAR_T, NONE), N(c, c->lane->replica)), N(c,
		c->lane->replicas)), N(c, 0)), "a tile of another replica");
	skip->u.region.section = SECTION_SKIP;
	outer = enter_body(c, &skip->u.region.body);
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)
			add_skipped_loop(c, v->steps.v[i].id);
	add_op(c, DO_CONTINUE);
	leave_body(c, outer);
	for (int f = 0; f < c->k->flags.n; f++)
		if (signals_later(c, f))
			set_product_counters(c, f);
	if (c->lane->handover_flag != NONE)
		build_handover_wait(c, c->lane->handover_flag);
}

/* Counts the iterations of `loop` in the tiles that are not counted yet, before tile `end`. */
static void count_tiles_until(struct lowering *c, int loop, const struct num *end)
{
	struct role_body *outer = enter_loop(c, VAR_PASSED, loop, NULL, end);

	add_let(c, VAR_TILE, NONE, NUM2(TILE_AT, V(c, VAR_PASSED, loop), N(c, 0)));
	build_tile_axes(c);
	add_skipped_loop(c, loop);
	leave_body(c, outer);
}

/* Before step s of a tile, with offsets: counts the iterations of the tiles before, and sets the counters of the step's
 * products. No earlier product is under way, as each iteration of the tile loop ends with a wait for all of them. */
void build_count_tiles_before(struct lowering *c, const struct kstep *s)
{
	if (c->lane->replicas == 1)
		return;
	if (s->is_loop) {
		count_tiles_until(c, s->id, V(c, VAR_T, NONE));
		add_advance(c, VAR_PASSED, s->id, N(c, 1));	/* the step itself counts the current tile */
	}
	for (int f = 0; f < c->k->flags.n; f++) {
		int task = c->k->flags.v[f].task;

		if (signals_later(c, f) && (s->is_loop ? program_loop_within(c->p, c->g->tasks.v[task].loop,
		    s->id) : c->lane->entries.v[s->id].task == task))
			set_product_counters(c, f);
	}
}

/* Before the tile loop, with offsets: declares the counters of tiles whose iterations have been counted. */
void build_other_tile_counters(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];

	for (int i = 0; i < v->steps.n && c->lane->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			add_let(c, VAR_PASSED, v->steps.v[i].id, N(c, 0))->u.let.changes = true;
}

/* Behind the tile loop, with offsets: counts the tiles after the replica's last one, as build_last_copies needs. */
void build_count_remaining_tiles(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];

	for (int i = 0; i < v->steps.n && c->lane->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			count_tiles_until(c, v->steps.v[i].id, V(c, VAR_TILES, NONE));
}

/* Do asynchronous copies that this lane issues complete the flag's phases? */
static bool is_flag_of_copies(const struct lowering *c, const struct flag *f)
{
	return (f->bytes || f->copies_arrive) && in_lane(c, f->task);
}

/* Waits until the replica that has the EU's last tile has seen all its flags. Until then this replica cannot tell the
 * phases of that tile from those of earlier tiles. */
static void add_last_handover_waits(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];
	const struct num *last = SUB(V(c, VAR_ALL_TILES, NONE), N(c, 1));
	const char *why = "the replica that has the last tile has seen all flags";

	if (c->lane->handover_flag != NONE)
		add_flag_op(c, DO_WAIT, c->lane->handover_flag, last, why);
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].handover_flag != NONE)
			add_flag_op(c, DO_WAIT, v->steps.v[i].handover_flag, last, why);
}

/* At the end of the lane: waits for the last copies on each flag, as a block must not end while data is copied to its
 * shared memory. Usually readers have waited for each copy. But if a loop of readers makes no iteration, its lane may
 * skip the waits for what was loaded for it. */
void build_last_copies(struct lowering *c)
{
	bool copies = false;

	for (int i = 0; i < c->k->flags.n; i++)
		copies |= is_flag_of_copies(c, &c->k->flags.v[i]);
	if (copies && c->lane->replicas > 1)
		add_last_handover_waits(c);
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		int loop = c->g->tasks.v[f->task].loop;

		if (is_flag_of_copies(c, f))
			add_flag_op(c, DO_WAIT_LAST, i, loop == NONE ? V(c, VAR_ALL_TILES, NONE) : V(c, VAR_BASE, loop),
				"no block ends while something is copied to it");
	}
}

