/* Replicas of a lane, which take the tiles of an EU in round robin: a replica passes over the tiles of the others,
 * of which it only counts the iterations, and waits until the one before has seen all flags of its tile. */
#include "lower/pass/build.h"

/* A replica starts a tile when the one before has seen all flags of the tile before. */
void build_handover_wait(struct lowering *c, int flag)
{
	add_flag_op(c,
		DO_WAIT, flag, SUB(V(c, VAR_T, NONE), N(c, 1)), "the replica before has seen all flags of its tile");
}

/* Number of instances of the flag's products where a tile's begin. */
static void restart_flag(struct lowering *c, int f)
{
	const struct flag *fl = &c->k->flags.v[f];
	int loop = fl->runs ? c->p->loops.v[fl->loop].parent : c->g->tasks.v[fl->task].loop;
	const struct num *first = loop == NONE ? V(c, VAR_T, NONE) : V(c, VAR_BASE, loop);

	add_set(c, VAR_ISSUED, f, first);
	add_set(c, VAR_RELEASED, f, first);
}

/* Passes over a tile of another replica: its iterations are counted. */
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
			restart_flag(c, f);
	if (c->lane->handover_flag != NONE)
		build_handover_wait(c, c->lane->handover_flag);
}

/* Counts the iterations of the other replicas' tiles, up to tile `end`. */
static void count_tiles_until(struct lowering *c, int loop, const struct num *end)
{
	struct role_body *outer = enter_loop(c, VAR_PASSED, loop, NULL, end);

	add_let(c, VAR_TILE, NONE, NUM2(TILE_AT, V(c, VAR_PASSED, loop), N(c, 0)));
	build_tile_axes(c);
	add_skipped_loop(c, loop);
	leave_body(c, outer);
}

/* Counts the tiles before the current one. All products of earlier tiles have been signaled: each iteration ends so. */
void build_count_tiles_before(struct lowering *c, const struct kstep *s)
{
	if (c->lane->replicas == 1)
		return;
	if (s->is_loop) {
		count_tiles_until(c, s->id, V(c, VAR_T, NONE));
		add_advance(c, VAR_PASSED, s->id, N(c, 1));
	}
	for (int f = 0; f < c->k->flags.n; f++) {
		int task = c->k->flags.v[f].task;

		if (signals_later(c, f) && (s->is_loop ? program_loop_within(c->p, c->g->tasks.v[task].loop,
		    s->id) : c->lane->entries.v[s->id].task == task))
			restart_flag(c, f);
	}
}

/* Tiles of which a replica has counted the iterations, by the steps of the tile loop that are loops. */
void build_other_tile_counters(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];

	for (int i = 0; i < v->steps.n && c->lane->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			add_let(c, VAR_PASSED, v->steps.v[i].id, N(c, 0))->u.let.changes = true;
}

void build_count_remaining_tiles(struct lowering *c)
{
	const struct kregion *v = &c->lane->regions[0];

	for (int i = 0; i < v->steps.n && c->lane->replicas > 1; i++)
		if (v->steps.v[i].is_loop)
			count_tiles_until(c, v->steps.v[i].id, V(c, VAR_TILES, NONE));
}

static bool is_copied(const struct lowering *c, const struct flag *f)
{
	return (f->bytes || f->copies_arrive) && in_lane(c, f->task);
}

/* Waits until the replica with the last tile has seen all flags: only then can this one tell the phases of that tile
 * from earlier ones. */
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

/* A block must not end while data is copied to its memory. A loop without iterations may not have waited for its
 * loads. */
void build_last_copies(struct lowering *c)
{
	bool any = false;

	for (int i = 0; i < c->k->flags.n; i++)
		any |= is_copied(c, &c->k->flags.v[i]);
	if (any && c->lane->replicas > 1)
		add_last_handover_waits(c);
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		int loop = c->g->tasks.v[f->task].loop;

		if (is_copied(c, f))
			add_flag_op(c, DO_WAIT_LAST, i, loop == NONE ? V(c, VAR_ALL_TILES, NONE) : V(c, VAR_BASE, loop),
				"no block ends while something is copied to it");
	}
}

