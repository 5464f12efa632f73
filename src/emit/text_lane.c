/* A lane: its registers, its tile loop, and whose turn a tile is. */
#include "emit/gpu_text.h"

enum { WARP_THREADS = 32, LEAST_REGISTERS = 24, PRODUCER_REGISTERS = 40, CONSUMER_MOST = 240 };

/* setmaxnreg for each lane: what the plan says, or the producers little and the others an
 * equal share of the rest; 0 where there is only one warpgroup. What there is to share is
 * what the launch gave to all threads alike: whoever asks for more waits for ever. */
static int lane_registers(const struct text *c, const struct klane *l)
{
	int groups = c->k->threads / (GROUP_WARPS * WARP_THREADS), given = 0, small = 0, large = 0;
	int pool = c->plan->device->registers / c->k->threads / 8 * 8 * groups, little;

	for (int i = 0; i < c->k->lanes.n; i++) {
		const struct klane *x = &c->k->lanes.v[i];
		int n = (int)ceil_div(x->warps, GROUP_WARPS);

		given += n * x->registers;
		if (!x->registers)
			*(x->warps < GROUP_WARPS ? &small : &large) += n;
	}
	if (groups < 2)
		return 0;
	if (l->registers)
		return l->registers;
	little = given + small * PRODUCER_REGISTERS + large * CONSUMER_MOST > pool ?
		LEAST_REGISTERS : PRODUCER_REGISTERS;
	if (l->warps < GROUP_WARPS)
		return little;
	return (int)min_i64((pool - given - small * little) / large / 8 * 8, CONSUMER_MOST);
}

void put_tile_axes(struct text *c)
{
	const struct grid *g = &c->g->grids[c->k->phase];
	int64_t below = 1;

	for (int i = g->n - 1; i >= 0; i--) {
		put(c, "const int lo_%s = tile / %lld %% %lld * %lld;", c->p->axes.v[g->axis[i]].name,
			(long long)below, (long long)g->tiles[i],
			(long long)c->g->extents.tile[g->axis[i]]);
		below *= g->tiles[i];
	}
}

static enum err_code put_registers(struct text *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];
		struct view v;

		if (b->phase != c->k->phase || c->k->ring_of[i] != NONE || !in_lane(c, b->first))
			continue;
		TRY(buffer_view(c, i, &v, e));
		put(c, "%s %s[%d]%s;", v.packed ? "u32" : dtype_is_float(b->type) ? "float" : "int",
			c_name(c, "r_", b->name), c->plan->versions[i],
			v.kind == FRAG_FULL ? arena_strf(c->a, "[%d][%lld]", v.blocks,
			(long long)(v.packed ? v.cols / 4 : v.cols / 2)) : v.kind == FRAG_ROW ?
			arena_strf(c->a, "[%d][2]", v.blocks) : v.kind == FRAG_COL ?
			arena_strf(c->a, "[%lld]", (long long)(v.cols / 4)) : "[1]");
	}
	return OK;
}

static void put_turn_wait(struct text *c, const struct flag *f)
{
	put(c, "if (t > 0) flag_wait(shared + %lld + 8 * ((t - 1) %% %d), (t - 1) / %d);",
		(long long)f->offset, f->depth, f->depth);
}

static void put_turn(struct text *c)
{
	const struct kregion *v = &c->lane->regions[0];

	if (c->lane->copies == 1)
		return;
	put(c, "if ((t - %d) %% %d) {\t/* another's turn */", c->lane->copy, c->lane->copies);
	c->indent++;
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)
			put_passed(c, v->steps.v[i].id);
	put(c, "continue;");
	c->indent--;
	put(c, "}");
	for (int f = 0; f < c->k->flags.n; f++) {
		int task = c->k->flags.v[f].task, loop = c->g->tasks.v[task].loop;

		if (c->k->flags.v[f].runs)
			loop = c->p->loops.v[c->k->flags.v[f].loop].parent;
		if (!c->k->flags.v[f].issued && in_lane(c, task) && on_matrix(c, task))
			put(c, "issued_%d = released_%d = %s;", f, f, loop == NONE ? "t" :
				arena_strf(c->a, "base_%d", loop));
	}
	put_turn_wait(c, &c->k->flags.v[c->lane->turn]);
}

static enum err_code put_tile(struct text *c, struct err *e)
{
	const struct kregion *v = &c->lane->regions[0];

	put_tile_axes(c);
	put_turn(c);
	put_tile_stamps(c);
	put_tile_bases(c);
	TRY(put_initial_tile(c, e));
	c->turn = c->around[NONE] = 0;
	for (int i = 0; i < v->steps.n; i++) {
		if (v->steps.v[i].is_loop) {
			TRY(put_region(c, v->steps.v[i].id, e));
			put_missed_waits(c, NONE, v->steps.v[i].id);
			put_run(c, &v->steps.v[i]);
		} else {
			TRY(put_entry(c, &c->lane->entries.v[v->steps.v[i].id], 0, "t", e));
		}
		c->turn = 0;
	}
	return OK;
}

/* Wait for all products of the lane. */
static void put_all_products(struct text *c)
{
	bool multiplies = false;

	for (int i = 0; i < c->lane->entries.n; i++)
		multiplies |= on_matrix(c, c->lane->entries.v[i].task);
	if (!multiplies)
		return;
	put(c, "GROUPS_WAIT(0);");
	put_releases(c, NULL);
}

/* A tile after the other. */
static enum err_code put_tiles(struct text *c, struct err *e)
{
	put(c, "LOOP (int at = start[BLOCK], t = 0; at < start[BLOCK + 1]; at++, t++) {");
	c->indent++;
	put(c, "const int tile = order[at];");
	TRY(put_tile(c, e));
	put_all_products(c);
	put_tile_end_stamp(c);
	c->indent--;
	put(c, "}");
	return OK;
}

/* Of the lane's own tiles, or turns, number n among those of all its copies. */
static const char *number_text(struct text *c, const char *n)
{
	if (c->lane->copies == 1)
		return n;
	return arena_strf(c->a, "(%s) * %d + %d", n, c->lane->copies, c->lane->copy);
}

/* A copy passes over the tiles of others up to one: their iterations are counted. */
static void put_others_until(struct text *c, int loop, const char *end)
{
	put(c, "LOOP (; passed_%d < %s; passed_%d++) {", loop, end, loop);
	c->indent++;
	put(c, "const int tile = order[start[BLOCK] + passed_%d];", loop);
	put_tile_axes(c);
	put_passed(c, loop);
	c->indent--;
	put(c, "}");
}

/* ... and has told all of its products of the tiles before, as each turn ends with that. */
static void put_others(struct text *c, const struct kstep *s)
{
	if (c->lane->copies == 1)
		return;
	if (s->is_loop) {
		put_others_until(c, s->id, "t");
		put(c, "passed_%d++;", s->id);
	}
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];
		int loop = c->g->tasks.v[fl->task].loop;

		if (!fl->issued && in_lane(c, fl->task) && on_matrix(c, fl->task) &&
		    (s->is_loop ? program_loop_within(c->p, loop, s->id) :
		     c->lane->entries.v[s->id].task == fl->task)) {
			if (fl->runs)
				loop = c->p->loops.v[fl->loop].parent;
			put(c, "issued_%d = released_%d = %s;", f, f, loop == NONE ? "t" :
				arena_strf(c->a, "base_%d", loop));
		}
	}
}

enum err_code put_tile_step(struct text *c, const struct kstep *s, int class,
	const char *iteration, struct err *e)
{
	int turn = c->turn, last = c->last;

	put(c, "{");
	c->indent++;
	put(c, "int t = %s;", number_text(c, iteration));	/* no constant, not even 0: t - 1 is one */
	put(c, "const int tile = order[start[BLOCK] + t];");
	put_tile_axes(c);
	c->around[NONE] = turn + s->at;
	if (s->turn != NONE)
		put_turn_wait(c, &c->k->flags.v[s->turn]);
	put_others(c, s);
	if (s->is_loop) {
		put_tile_bases(c);
		TRY(put_initial_nested(c, NONE, s->id, e));
		TRY(put_region(c, s->id, e));
		put_missed_waits(c, NONE, s->id);
		put_run(c, s);
	} else {
		TRY(put_entry(c, &c->lane->entries.v[s->id], class, iteration, e));
	}
	c->turn = turn;
	c->last = last;
	c->indent--;
	put(c, "}");
	return OK;
}

void put_tile_turn_end(struct text *c, bool last)
{
	if (last || c->lane->copies > 1)
		put_all_products(c);
	put_tile_end_stamp(c);
}

/* In turns, of which each is about several tiles. */
static enum err_code put_tile_turns(struct text *c, struct err *e)
{
	const struct klane *l = c->lane;
	const struct kregion *v = &l->regions[0];

	put(c, "const int tiles = start[BLOCK + 1] - start[BLOCK];");
	if (l->copies == 1)
		put(c, "const int trips_tile = tiles;");
	else
		put(c, "const int trips_tile = (tiles + %d - %d) / %d;", l->copies - 1, l->copy,
			l->copies);
	for (int i = 0; i < v->steps.n && l->copies > 1; i++)
		if (v->steps.v[i].is_loop)
			put(c, "int passed_%d = 0;", v->steps.v[i].id);
	TRY(put_region(c, NONE, e));
	for (int i = 0; i < v->steps.n && l->copies > 1; i++)
		if (v->steps.v[i].is_loop)
			put_others_until(c, v->steps.v[i].id, "tiles");
	return OK;
}

/* A block may not end while something is copied to its memory, and nobody need have
 * waited for what a loop without iterations would have read. */
static void put_last_copies(struct text *c)
{
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		int loop = c->g->tasks.v[f->task].loop;

		if (!f->bytes || !in_lane(c, f->task))
			continue;
		put(c, "{ const int end = %s; LOOP (int n = max_of(0, end - %d); n < end; n++) "
			"flag_wait(shared + %lld + 8 * (n %% %d), n / %d); }", loop == NONE ?
			"start[BLOCK + 1] - start[BLOCK]" : arena_strf(c->a, "base_%d", loop),
			f->depth, (long long)f->offset, f->depth, f->depth);
	}
}

static bool stores_by_engine(const struct text *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (c->lane->entries.v[i].outbox != NONE)
			return true;
	return false;
}

enum err_code put_lane(struct text *c, struct err *e)
{
	const struct klane *l = c->lane;
	int groups = (int)ceil_div(l->warps, GROUP_WARPS) * GROUP_WARPS;
	int registers = lane_registers(c, l);

	c->indent++;
	if (registers)
		put(c, "SET_REGISTERS(%s, %d);",
			registers > 65536 / c->k->threads / 8 * 8 ? "inc" : "dec", registers);
	if (groups != l->warps) {
		put_watches(c);
		put(c, "if (warp >= %d) return;", l->first_warp + l->warps);
	}
	put(c, "const int thread = THREAD - %d;", l->first_warp * 32);
	put(c, "const int leader = warp == %d && elect();", l->first_warp);
	if (stores_by_engine(c))
		put(c, "const int elected = elect();\t/* of each warp: it issues its stores */");
	put(c, "const int row0 = thread / 32 * 16 + thread %% 32 / 4, col0 = 2 * (thread %% 4);");
	put(c, "const int group = UNIFORM(thread / 128);");
	put_lane_stamps(c);
	for (int f = 0; f < c->k->flags.n; f++)
		if (!c->k->flags.v[f].issued && in_lane(c, c->k->flags.v[f].task) &&
		    on_matrix(c, c->k->flags.v[f].task))
			put(c, "int issued_%d = 0, released_%d = 0;", f, f);
	for (int f = 0; f < c->k->flags.n; f++)
		if (waits_once(c, f))
			put(c, "int seen_%d = 0;", f);
	for (int f = 0; f < c->k->flags.n; f++)
		if (c->k->flags.v[f].early && in_lane(c, c->k->flags.v[f].task))
			put(c, "int told_%d = 0;", f);
	for (int i = 0; i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase)
			put(c, "int base_%d = 0;", i);
	TRY(put_registers(c, e));
	TRY(shifts_tiles(l) ? put_tile_turns(c, e) : put_tiles(c, e));
	put_last_copies(c);
	if (stores_by_engine(c))	/* nor while something is copied out of it */
		put(c, "if (elected) STORES_READ(0);");
	put_end_stamp(c);
	c->indent--;
	return OK;
}
