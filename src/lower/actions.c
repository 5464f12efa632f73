/* Loops, turns and tiles of a lane, as text_loop.c and text_lane.c have them, and the lists of
 * all lanes. */
#include "lower/actor.h"

/* A run of loop `nested` is over. */
static void end_run(struct actor *x, int loop, const struct kstep *s)
{
	int nested = s->id;

	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];

		if (fl->runs && !fl->early && fl->loop == nested && in_lane(x, fl->task))
			actor_tell_run(x, f, passed(x, loop));
	}
	if (s->younger == NONE)
		return;
	act(x, ACT_GROUPS, NONE, s->younger > 7 ? 7 : s->younger);
	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];

		if (fl->runs && fl->loop == nested && in_lane(x, fl->task) &&
		    x->s->set->matrix[fl->task] && !fl->issued)
			for (; x->released[f] < x->issued[f]; x->released[f]++)
				act(x, ACT_ARRIVE, f, x->released[f]);
	}
}

static void play_region(struct actor *x, int loop)
{
	const struct kregion *v = &x->lane->regions[loop + 1];
	int parent = x->k->plan->graph->program->loops.v[loop].parent;
	const int64_t *cum = &x->s->walk->cum[loop][passed(x, parent)];
	int64_t trips = cum[1] - cum[0];

	for (int64_t turn = -v->most; turn < trips; turn++) {
		for (int i = 0; i < v->steps.n; i++) {
			const struct kstep *s = &v->steps.v[i];
			const struct kentry *e = s->is_loop ? NULL : &x->lane->entries.v[s->id];
			int64_t iteration = turn + s->at;

			if (iteration < 0 || iteration >= trips)
				continue;
			x->i[loop] = iteration;
			x->seq[loop] = x->base[loop] + iteration;
			if (e) {
				actor_entry(x, e, turn_class(v, turn, trips), iteration);
				continue;
			}
			actor_begin_lives(x, loop, NONE, s->id);
			play_region(x, s->id);
			x->instance = NONE;
			actor_wait_missed(x, loop, s->id);
			end_run(x, loop, s);
		}
	}
	x->base[loop] += trips;
}

/* Of a tile that another copy takes only the iterations are counted. */
static bool is_others(struct actor *x)
{
	const struct graph *g = x->k->plan->graph;

	if (x->tile % x->lane->copies != x->lane->copy) {
		for (int l = 0; l < g->program->loops.n; l++)
			if (g->program->loops.v[l].phase == x->k->phase)
				x->base[l] = walk_inner(x->s->walk, NONE, x->tile + 1, l);
		return true;
	}
	for (int f = 0; f < x->k->flags.n; f++) {
		int loop = flag_loop(x->k, f);

		x->issued[f] = x->released[f] = (int)(loop == NONE ? x->tile : x->base[loop]);
	}
	x->instance = NONE;
	if (x->lane->turn != NONE && x->tile)
		act(x, ACT_WAIT, x->lane->turn, x->tile - 1);
	return false;
}

/* Wait for all products of the lane. */
static void wait_for_products(struct actor *x)
{
	bool multiplies = false;

	x->instance = NONE;
	for (int i = 0; i < x->lane->entries.n; i++)
		multiplies |= x->s->set->matrix[x->lane->entries.v[i].task];
	if (!multiplies)
		return;
	act(x, ACT_GROUPS, NONE, 0);
	actor_release(x, NULL);
}

static void play_tile_step(struct actor *x, const struct kstep *s, int class)
{
	if (!s->is_loop) {
		actor_entry(x, &x->lane->entries.v[s->id], class, x->tile);
		return;
	}
	play_region(x, s->id);
	x->instance = NONE;
	actor_wait_missed(x, NONE, s->id);
	end_run(x, NONE, s);
}

static void play_tile(struct actor *x)
{
	const struct kregion *v = &x->lane->regions[0];

	if (x->lane->copies > 1 && is_others(x))
		return;
	actor_begin_lives(x, NONE, NONE, NONE);
	for (int i = 0; i < v->steps.n; i++)
		play_tile_step(x, &v->steps.v[i], 0);
	wait_for_products(x);
}

/* A copy passes over the tiles of the others, and has told all of its products. */
static void pass_others(struct actor *x, const struct kstep *s)
{
	const struct program *p = x->k->plan->graph->program;

	for (int l = 0; l < p->loops.n && s->is_loop; l++)
		if (program_loop_within(p, l, s->id))
			x->base[l] = walk_inner(x->s->walk, NONE, x->tile, l);
	for (int f = 0; f < x->k->flags.n; f++) {
		int task = x->k->flags.v[f].task, loop = flag_loop(x->k, f);

		if (in_lane(x, task) && (s->is_loop ? program_loop_within(p,
		    stask_at(x->k, task)->loop, s->id) : x->lane->entries.v[s->id].task == task))
			x->issued[f] = x->released[f] = (int)(loop == NONE ? x->tile :
				x->base[loop]);
	}
}

static void play_step_of_turn(struct actor *x, const struct kstep *s, int class)
{
	x->tile = x->turn * x->lane->copies + x->lane->copy;
	x->instance = NONE;
	if (s->turn != NONE && x->tile)
		act(x, ACT_WAIT, s->turn, x->tile - 1);
	if (x->lane->copies > 1)
		pass_others(x, s);
	if (s->is_loop)
		actor_begin_lives(x, NONE, NONE, s->id);
	play_tile_step(x, s, class);
}

/* The tile loop in turns, of which each is about several tiles. */
static void play_tile_turns(struct actor *x)
{
	const struct kregion *v = &x->lane->regions[0];
	int64_t trips = lane_tiles(x->lane, x->s->walk->ntiles);

	for (int64_t turn = -v->most; turn < trips; turn++) {
		for (int i = 0; i < v->steps.n; i++) {
			const struct kstep *s = &v->steps.v[i];

			x->turn = turn + s->at;
			if (x->turn >= 0 && x->turn < trips)
				play_step_of_turn(x, s, turn_class(v, turn, trips));
		}
		if (turn == trips - 1 || x->lane->copies > 1)
			wait_for_products(x);
	}
	for (int l = 0; l < x->k->plan->graph->program->loops.n; l++)
		if (x->lane->copies > 1 && x->k->plan->graph->program->loops.v[l].phase == x->k->phase)
			x->base[l] = walk_count(x->s->walk, l);
}

/* A block may not end while something is copied to its memory. */
static void wait_last_copies(struct actor *x)
{
	for (int i = 0; i < x->k->flags.n; i++) {
		const struct flag *f = &x->k->flags.v[i];
		int loop = stask_at(x->k, f->task)->loop;
		int64_t end = loop == NONE ? x->s->walk->ntiles : x->base[loop];

		if (!f->bytes || !in_lane(x, f->task))
			continue;
		for (int64_t n = max_i64(0, end - f->depth); n < end; n++)
			act(x, ACT_WAIT, i, n);
	}
}

static void play_lane(struct arena *a, struct script *s, int lane)
{
	const struct kernel *k = s->set->k;
	int loops = k->plan->graph->program->loops.n;
	struct actor x = { .a = a, .s = s, .k = k, .lane = &k->lanes.v[lane],
		.base = ARENA_ARRAY(a, loops, int64_t), .i = ARENA_ARRAY(a, loops, int64_t),
		.seq = ARENA_ARRAY(a, loops, int64_t), .issued = ARENA_ARRAY(a, k->flags.n, int),
		.released = ARENA_ARRAY(a, k->flags.n, int),
		.seen = ARENA_ARRAY(a, k->flags.n, int), .told = ARENA_ARRAY(a, k->flags.n, int) };
	bool stores = false;

	if (shifts_tiles(x.lane))
		play_tile_turns(&x);
	for (x.tile = 0; x.tile < s->walk->ntiles && !shifts_tiles(x.lane); x.tile++)
		play_tile(&x);
	wait_last_copies(&x);
	x.instance = NONE;
	for (int i = 0; i < x.lane->entries.n; i++)
		stores |= x.lane->entries.v[i].outbox != NONE;
	if (stores)
		act(&x, ACT_STORES, NONE, 0);
	if (k->cluster > 1)
		act(&x, ACT_CLUSTER, NONE, 0);
	s->acts[lane] = x.acts.v;
	s->nacts[lane] = x.acts.n;
}

int script_lane(const struct script *s, int flag, int n)
{
	const struct kernel *k = s->set->k;
	int loop = flag_loop(k, flag), lane = s->set->lane[k->flags.v[flag].task];

	return lane + (int)(walk_outer(s->walk, loop, n, NONE) % k->lanes.v[lane].copies);
}

static void number_instances(struct arena *a, struct script *s)
{
	const struct kernel *k = s->set->k;
	const struct graph *g = k->plan->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		int64_t count = g->tasks.v[t].phase == k->phase ?
			walk_count(s->walk, g->tasks.v[t].loop) : 0;

		s->first[t] = s->ninstances;
		s->ninstances += (int)count;
		s->want[t] = ARENA_ARRAY(a, count * g->tasks.v[t].reads.n, int);
	}
	s->first[g->tasks.n] = s->ninstances;
	s->task = ARENA_ARRAY(a, s->ninstances, int);
	s->ran = ARENA_ARRAY(a, s->ninstances, int);
	for (int t = 0; t < g->tasks.n; t++)
		for (int i = s->first[t]; i < s->first[t + 1]; i++)
			s->task[i] = t;
}

void script_init(struct arena *a, const struct setting *set, const struct walk *w,
	struct script *s)
{
	int ntasks = set->k->plan->graph->tasks.n, nlanes = set->k->lanes.n;

	*s = (struct script){ .set = set, .walk = w, .first = ARENA_ARRAY(a, ntasks + 1, int),
		.want = ARENA_ARRAY(a, ntasks, int *), .acts = ARENA_ARRAY(a, nlanes, struct act *),
		.nacts = ARENA_ARRAY(a, nlanes, int) };
	number_instances(a, s);
	script_writers(a, s);
	for (int i = 0; i < nlanes; i++)
		play_lane(a, s, i);
}
