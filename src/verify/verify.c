#include "verify/verify.h"

#include <string.h>

#include "base/prng.h"
#include "plan/cluster.h"
#include "plan/assign.h"
#include "verify/kept.h"
#include "verify/launch.h"
#include "verify/reached.h"
#include "verify/names.h"
#include "verify/play.h"

enum {
	PERIOD_MAX = 60,		/* with a longer one, plays would need too many actions */
	COUNTS_MAX = 64,		/* trip counts of a loop that are tried */
	TILES_MAX = 24,			/* tiles of an EU that are played */
	STEPS_MAX = 64,			/* runs of a loop with trip counts of their own; later ones repeat the last */
	RANDOM_PLAYS = 16,
	FEW_COUNTS = 4,			/* trip counts that are tried with each small number of tiles */
	INSTANCES_MOST = 1 << 18,	/* of one play, iterations of loops included */
};

struct check {
	struct arena *a;
	const struct role_program *r;
	const struct plan *plan;
	int phase;
	struct setting set;
	int period, margin;		/* find_period */
	int tiles;			/* the most that an EU gets, or TILES_MAX */
	int *ncounts, **counts;		/* by loop: trip counts to try */
	int most_counts;
	struct verified done;
	struct err *e;
};

/* checks without a play ---------------------------------------------------------- */

static enum err_code report_fault(const struct check *c, int task, const char *what, int64_t is, int64_t should)
{
	const struct stask *s = &c->plan->graph->tasks.v[task];

	return err_set(c->e, ERR_ILLEGAL, s->loc, "the kernel is wrong: %s of '%s' is %lld, not %lld",
		what, s->name, (long long)is, (long long)should);
}

static int64_t box_bytes(const struct check *c, const struct role_map *m)
{
	int64_t bytes = dtype_bits(c->r->tensors.v[m->tensor].type) / 8;

	for (int d = 0; d < m->rank; d++)
		bytes *= m->box[d];
	return bytes;
}

/* Evaluates numbers that depend only on the block's rank, and on the row where rows have boxes of their own. */
struct rank_env {
	struct num_env env;
	int64_t rank, row;
};

static int64_t rank_var(const struct num_env *env, enum var v, int of)
{
	const struct rank_env *x = (const struct rank_env *)env;

	(void)of;
	return v == VAR_RANK ? x->rank : v == VAR_ROW0 ? x->row : 0;
}

/* A load is multicast exactly if its ring is shared, which it may only be if the load is the same in all blocks. The
 * boxes of all blocks must lie in the slot, and the flag must expect their bytes. */
static enum err_code check_load(const struct check *c, const struct role_op *o)
{
	struct cluster all = plan_cluster(c->plan, c->phase);
	const struct role_flag *f = &c->r->flags.v[o->u.boxes.flag];
	const struct role_ring *r = &c->r->rings.v[o->u.boxes.ring];
	int64_t each = box_bytes(c, &c->r->maps.v[o->u.boxes.map]), bytes = 0;
	struct rank_env env = { .env.var = rank_var };

	if (o->u.boxes.multicast != r->shared || (o->u.boxes.multicast &&
	    (all.size != c->r->cluster || !cluster_shares(c->plan, &all, o->task))))
		return report_fault(c, o->task, "the multicast flag", o->u.boxes.multicast, !o->u.boxes.multicast);
	for (; env.rank < (o->u.boxes.multicast ? c->r->cluster : 1); env.rank++)
		for (env.row = 0; env.row < max_i64(o->u.boxes.rows, 1); env.row++)
			for (int i = 0; i < o->u.boxes.boxes.n; i++) {
				const struct role_box *b = &o->u.boxes.boxes.v[i];
				int64_t at = num_value(b->to, &env.env);

				if (b->when && !num_value(b->when, &env.env))
					continue;
				bytes += each;
				if (at < 0 || at + each > r->slot_bytes)
					return report_fault(c, o->task, "the offset of a box in its slot", at,
						at < 0 ? 0 : r->slot_bytes - each);
			}
	if (f->bytes != bytes || o->u.boxes.bytes != bytes)
		return report_fault(c, o->task, "the number of bytes", f->bytes, bytes);
	return OK;
}

/* The panels of a batch must fit in the slot or the staging. */
static enum err_code check_panels(const struct check *c, const struct role_op *o)
{
	int64_t bytes = box_bytes(c, &c->r->maps.v[o->u.boxes.map]);
	int64_t capacity = o->u.boxes.ring != NONE ? c->r->rings.v[o->u.boxes.ring].slot_bytes :
		c->r->stagings.v[o->u.boxes.outbox].bytes;

	if (o->u.boxes.panels * bytes > capacity)
		return report_fault(c, o->task, "the size of the panels", o->u.boxes.panels * bytes, capacity);
	return OK;
}

/* At a flag for copies by threads only such copies arrive: each access has at least 4 bytes, as cp.async requires. */
static enum err_code check_arrivals(const struct check *c, const struct role_op *o)
{
	bool loads = o->what == DO_LOAD_THREADS;
	int flag = loads ? o->u.move.flag : o->u.flag.flag;
	int bytes = loads ? o->u.move.run * dtype_bits(o->u.move.type) / 8 : 0;

	if (loads && !o->u.move.arrives)
		return OK;
	if (c->r->flags.v[flag].copies != loads)
		return report_fault(c, o->task, "whether its copies arrive at the flag", loads, !loads);
	return loads && bytes < 4 ? report_fault(c, o->task, "the bytes of an access", bytes, 4) : OK;
}

static enum err_code check_ops(const struct check *c, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_LOAD_BOXES)
			TRY(check_load(c, o));
		else if (o->what == DO_LOAD_THREADS || o->what == DO_ARRIVE || o->what == DO_RELEASE)
			TRY(check_arrivals(c, o));
		else if (o->what == DO_STORE_BOXES)
			TRY(check_panels(c, o));
		else if (role_is_region(o->what))
			TRY(check_ops(c, &o->u.region.body));
		if (o->what == DO_IF)
			TRY(check_ops(c, &o->u.region.other));
	}
	return OK;
}

/* For a copy by the engine one thread arrives, or if rows have boxes of their own one of each warp; for copies by threads each thread of the lane, else each of its warps;
 * at a flag of all blocks those of each block. */
static enum err_code check_flag(const struct check *c, const struct role_flag *f)
{
	int lane = c->set.lane[f->task];
	int64_t warps = lane == NONE ? 0 : c->r->roles.v[lane].warps * (f->all ? c->r->cluster : 1);
	int64_t arrivals = f->bytes && !f->each_warp ? 1 : f->copies ? warps * c->r->target->warp : warps;

	if (f->depth < 1)
		return report_fault(c, f->task, "the depth of the flag", f->depth, 1);
	if (f->arrivals != arrivals)
		return report_fault(c, f->task, "the number of arrivals", f->arrivals, arrivals);
	return OK;
}

/* The n-th range of shared memory in use: rings, then words of their slots, then flags, then stagings, then numbers of tiles, then counters; false: there are fewer. */
static bool range_at(const struct role_program *r, int n, int64_t *from, int64_t *to)
{
	if (n < r->rings.n) {
		*from = r->rings.v[n].offset;
		*to = *from + r->rings.v[n].versions * r->rings.v[n].slot_bytes;
		return true;
	}
	n -= r->rings.n;
	if (n < r->rings.n) {
		*from = r->rings.v[n].words;
		*to = *from + (*from ? r->rings.v[n].versions * (int64_t)4 : 0);
		return true;
	}
	n -= r->rings.n;
	if (n < r->flags.n) {
		*from = r->flags.v[n].offset;
		*to = *from + r->flags.v[n].depth * (int64_t)8;
		return true;
	}
	n -= r->flags.n;
	if (n < r->stagings.n) {
		*from = r->stagings.v[n].offset;
		*to = *from + r->stagings.v[n].warps * r->stagings.v[n].batches * r->stagings.v[n].bytes;
		return true;
	}
	n -= r->stagings.n;
	if (r->taken.lane != NONE && n-- == 0) {	/* of each slot two barriers and a number */
		*from = r->taken.offset;
		*to = *from + r->taken.slots * (int64_t)(8 + 8 + 4);
		return true;
	}
	*from = r->counters;
	*to = *from + r->ncounters * ROLE_COUNTER_BYTES;
	return n == 0 && r->ncounters;
}

/* The tile loop of a lane; NULL: it has offsets, and a loop of another kind. */
static const struct role_op *tile_loop(const struct role *l)
{
	for (int i = 0; i < l->body.v.n; i++)
		if (l->body.v.v[i]->what == DO_TILES)
			return l->body.v.v[i];
	return NULL;
}

static enum err_code report_tiles(const struct check *c, const char *what, int64_t is, int64_t should)
{
	return err_set(c->e, ERR_ILLEGAL, c->plan->grid_loc, "the kernel is wrong: %s: %lld, not %lld", what, (long long)is,
		(long long)should);
}

/* Tiles by a counter: all lanes read their numbers, and one that has each tile asks for them, a tile ahead. Its ring then
 * holds back nothing but that lane, by lanes that are behind it (lower/sync/taken.c): where the lanes cannot wait for each other
 * without the ring, they cannot with it. */
static enum err_code check_taken(const struct check *c)
{
	const struct role_taken *x = &c->r->taken;
	bool by_counter = c->plan->grid.dynamic;
	int asking = 0, warps = 0;

	if (by_counter != (x->lane != NONE))
		return report_tiles(c, "whether tiles are by a counter", x->lane != NONE, by_counter);
	for (int i = 0; i < c->r->roles.n; i++) {
		const struct role *l = &c->r->roles.v[i];
		const struct role_op *o = tile_loop(l);
		bool reads = o && o->u.region.taken;

		if (reads != by_counter)
			return report_tiles(c, "whether the lane takes tiles by a counter", reads, by_counter);
		asking += reads && o->u.region.asks && l->replicas == 1;
		warps += l->warps;
	}
	if (!by_counter)
		return OK;
	if (asking != 1)
		return report_tiles(c, "the lanes that ask for tiles", asking, 1);
	if (x->warps != warps)
		return report_tiles(c, "the warps that read the number of a tile", x->warps, warps);
	if (x->tiles != c->plan->graph->grids[c->phase].total || x->blocks != plan_eus(c->plan, c->phase))
		return report_tiles(c, "the tiles of the phase", x->tiles, c->plan->graph->grids[c->phase].total);
	if (x->own < 1 || x->slots < 2)
		return report_tiles(c, "the slots of the numbers of tiles", x->slots, 2);
	return OK;
}

/* Is x's buffer an alias of y's, or of what that is an alias of, in the same slots? Plays treat both as one memory. */
static bool is_alias_of(const struct check *c, const struct role_ring *x, const struct role_ring *y)
{
	const struct buffer *p = &c->plan->graph->buffers.v[x->buffer], *q = &c->plan->graph->buffers.v[y->buffer];

	return p->alias_of == (q->alias_of == NONE ? y->buffer : q->alias_of) && x->offset == y->offset &&
		x->slot_bytes <= y->slot_bytes && x->versions == y->versions;
}

/* May the two rings have the same memory, as aliases or as slices of one value that are stored together? */
static bool can_overlap(const struct check *c, const struct role_ring *x, const struct role_ring *y)
{
	const struct buffer *p = &c->plan->graph->buffers.v[x->buffer], *q = &c->plan->graph->buffers.v[y->buffer];

	return is_alias_of(c, x, y) || is_alias_of(c, y, x) || (p->together && q->together && p->node != NONE &&
		p->node == q->node && x->offset == y->offset && x->slot_bytes == y->slot_bytes &&
		x->versions == y->versions);
}

/* No ranges overlap, unless the plan says so, and each ends (j == i) within the memory of the kernel. */
static enum err_code check_memory(const struct check *c)
{
	const struct role_ring *rings = c->r->rings.v;
	int64_t from[2], to[2];

	for (int i = 0; range_at(c->r, i, &from[0], &to[0]); i++) {
		for (int j = 0; j <= i; j++) {
			range_at(c->r, j, &from[1], &to[1]);
			if (i != j && i < c->r->rings.n && can_overlap(c, &rings[i], &rings[j]))
				continue;
			if ((i != j && from[0] < to[1] && from[1] < to[0] && from[0] < to[0] && from[1] < to[1]) || to[0] > c->r->shared_bytes)
				return err_set(c->e, ERR_ILLEGAL, NOWHERE, "the kernel is wrong: bytes %lld to %lld of "
					"shared memory are used twice, or beyond the end", (long long)from[0],
					(long long)to[0]);
		}
	}
	return OK;
}

/* scenarios ---------------------------------------------------------------- */

/* Something is used again every n iterations. If the period would be too long, the plays are only a sample. */
static void add_period(struct check *c, int n)
{
	int lcm = n;

	while (lcm % c->period)
		lcm += n;
	if (lcm <= PERIOD_MAX)
		c->period = lcm;
	else
		c->done.complete = false;
	c->margin = c->margin > n ? c->margin : n;
}

/* After `period` iterations all rings, flags and unrolled registers are in the same state again. Two instances that a
 * rule is about, and the events that order them, are at most `margin` iterations apart. */
static void find_period(struct check *c)
{
	int spread = 0;

	c->period = c->margin = 1;
	for (int i = 0; i < c->r->flags.n; i++)
		add_period(c, c->r->flags.v[i].depth);
	for (int i = 0; i < c->r->rings.n; i++)
		add_period(c, c->r->rings.v[i].versions);
	for (int i = 0; i < c->r->roles.n; i++) {
		const struct role *l = &c->r->roles.v[i];
		int most = 0;

		add_period(c, l->replicas);
		for (int v = 0; v < l->regions.n; v++) {
			add_period(c, l->regions.v[v].unroll);
			most = l->regions.v[v].prologue > most ? l->regions.v[v].prologue : most;
		}
		spread += most;
	}
	c->margin += spread;
}

/* The trip counts up to the margin and two periods. A greater one is like the greatest of them that differs from it by a
 * multiple of the period. If they are more than COUNTS_MAX, the plays are only a sample: the least and the greatest. */
static void find_counts(struct check *c, int loop)
{
	int64_t least = c->plan->graph->trips[loop].least, most = c->plan->graph->trips[loop].most;
	int64_t bound = c->margin + 2 * c->period;
	int n = 0, *v = ARENA_ARRAY(c->a, COUNTS_MAX, int);

	for (int64_t t = least; t <= most && t <= max_i64(least, bound) + c->period; t++) {
		int like = (int)(t <= bound ? t : bound - floor_mod(bound - t, c->period));

		if (ints_hold(v, n, like))
			continue;
		if (n == COUNTS_MAX) {
			c->done.complete = false;
			v[n - 1] = like > v[n - 1] ? like : v[n - 1];
			continue;
		}
		v[n++] = like;
	}
	c->counts[loop] = v;
	c->ncounts[loop] = n;
	c->most_counts = n > c->most_counts ? n : c->most_counts;
}

/* A kernel that computes its tiles has those that the plan assigns. */
static enum err_code check_raster(const struct check *c, const struct tile_assignment *d)
{
	const struct tile_raster *r = &c->r->raster;
	const int64_t *order = c->plan->grid.dynamic ? plan_order_tiles(c->a, c->plan, c->phase) : d->order;

	if (!c->r->names.tiles)
		return OK;
	if (c->r->names.tiles != d->total || r->positions != d->total || c->r->names.blocks != d->eus)
		return report_tiles(c, "the tiles of the phase", r->positions, d->total);
	for (int64_t t = 0; t < d->total && c->plan->grid.dynamic; t++)
		if (raster_tile(r, t) != order[t])
			return report_tiles(c, "a tile by its position", raster_tile(r, t), order[t]);
	for (int u = 0; u < d->eus && !c->plan->grid.dynamic; u++)
		for (int64_t t = d->start[u], at = u; t < d->start[u + 1]; t++, at += d->eus)
			if (raster_tile(r, at) != order[t])
				return report_tiles(c, "a tile by its position", raster_tile(r, at), order[t]);
	if (!c->r->names.tile_at && !raster_is_identity(r))
		return report_tiles(c, "whether positions are numbers of tiles", 1, 0);
	return OK;
}

static enum err_code find_plays(struct check *c)
{
	int loops = c->plan->graph->program->loops.n;
	struct tile_assignment d;

	find_period(c);
	c->counts = ARENA_ARRAY(c->a, loops, int *);
	c->ncounts = ARENA_ARRAY(c->a, loops, int);
	c->most_counts = 1;
	for (int l = 0; l < loops; l++)
		if (c->plan->graph->program->loops.v[l].phase == c->phase)
			find_counts(c, l);
	plan_assign_tiles(c->a, c->plan, c->phase, &d);
	c->tiles = 1;
	for (int i = 0; i < d.eus; i++)
		c->tiles = (int)max_i64(c->tiles, min_i64(d.start[i + 1] - d.start[i], TILES_MAX));
	if (program_has_any(c->plan->graph->program) || c->plan->grid.dynamic)
		c->tiles = (int)max_i64(c->tiles, min_i64(plan_most_tiles(c->a, c->plan, c->phase), TILES_MAX));
	return check_raster(c, &d);
}

/* Iterations of all loops and instances of all sTasks in a scenario, INSTANCES_MOST + 1 at most. Parents come before the
 * loops inside. */
static int64_t scenario_size(const struct check *c, int ntiles, const int16_t *trips)
{
	const struct graph *g = c->plan->graph;
	int64_t *count = ARENA_ARRAY(c->a, g->program->loops.n, int64_t), sum = 0;

	for (int l = 0; l < g->program->loops.n; l++) {
		int parent = g->program->loops.v[l].parent;
		int64_t runs = g->program->loops.v[l].phase != c->phase ? 0 : parent == NONE ? ntiles : count[parent];

		for (int s = 0; s < STEPS_MAX && s < runs; s++)
			count[l] += trips[l * STEPS_MAX + s];
		if (runs > STEPS_MAX)
			count[l] += (runs - STEPS_MAX) * trips[l * STEPS_MAX + STEPS_MAX - 1];
		count[l] = min_i64(count[l], INSTANCES_MOST + 1);
		sum += count[l];
	}
	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == c->phase)
			sum += g->tasks.v[t].loop == NONE ? ntiles : count[g->tasks.v[t].loop];
	return min_i64(sum, INSTANCES_MOST + 1);
}

static bool has_lengths(const struct check *c)
{
	const struct program *p = c->plan->graph->program;

	for (int l = 0; l < p->loops.n; l++)
		if (p->loops.v[l].has_length && p->loops.v[l].phase == c->phase)
			return true;
	return false;
}

/* Plays one scenario. trips: by loop, the trip counts in STEPS_MAX iterations of the region around it. */
static enum err_code play_once(struct check *c, int ntiles, const int16_t *trips)
{
	struct arena_mark mark = arena_mark(c->a);
	struct scenario s;
	struct walk w;

	if (scenario_size(c, ntiles, trips) > INSTANCES_MOST) {
		arena_reset(c->a, mark);
		c->done.complete = false;
		return c->done.plays ? OK : err_set(c->e, ERR_LIMIT, NOWHERE, "checking the kernel takes more than %d "
			"instances of sTasks; put fewer loops in one another, or use fewer versions and smaller "
			"offsets", INSTANCES_MOST);
	}
	walk_init_trips(c->a, &w, c->plan->graph, c->phase, ntiles, STEPS_MAX, trips);
	enum err_code code = OK;

	/* A single run must be played both ways: ending within its last tile, and with it. */
	for (int even = 0; even < (ntiles == 1 && has_lengths(c) ? 2 : 1) && !code; even++) {
		c->set.even_ends = even;
		code = scenario_init(c->a, &c->set, &w, &s, c->e);
		for (int i = 0; i < c->r->roles.n && !code; i++)
			c->done.actions += s.nacts[i] * c->r->cluster;
		c->done.plays++;
		code = code ? code : play_scenario(c->a, &s, &c->done.counterexample, c->e);
	}
	arena_reset(c->a, mark);
	return code;
}

/* Successive runs of each loop have its trip counts number u and v in the order u v v u ... */
static enum err_code play_pair(struct check *c, int u, int v, int16_t *trips)
{
	int loops = c->plan->graph->program->loops.n, least = INT16_MAX;

	for (int l = 0; l < loops; l++) {
		for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++) {
			int which = (s + 1) / 2 % 2 ? v : u;

			trips[l * STEPS_MAX + s] = (int16_t)c->counts[l][which % c->ncounts[l]];
			least = (int)min_i64(least, trips[l * STEPS_MAX + s]);
		}
	}
	/* in so many tiles each ring of a loop, and each of the tile loop, goes round twice */
	least = least < 1 || least > 2 * c->period ? 1 : least;	/* 1 also if there is no loop */
	int tiles = (int)max_i64((2 * c->period + least - 1) / least, c->margin) + 2;
	return play_once(c, tiles < c->tiles ? tiles : c->tiles, trips);
}

/* Was the limit on actions reached? Then what is left is not played, and the plays are only a sample. */
static bool is_at_limit(struct check *c)
{
	c->done.complete &= c->done.actions <= VERIFY_ACTIONS;
	return c->done.actions > VERIFY_ACTIONS;
}

/* Where the tile loop itself (regions.v[0]) is pipelined, its prologues and epilogues depend on the number of tiles, so
 * small numbers are tried one by one until each kind of iteration has occurred in each replica. */
static enum err_code play_few_tiles(struct check *c, int16_t *trips)
{
	int loops = c->plan->graph->program->loops.n, most = 0;

	for (int i = 0; i < c->r->roles.n; i++) {
		const struct role *l = &c->r->roles.v[i];
		int n = l->replicas * 2 * (l->regions.v[0].prologue + l->regions.v[0].unroll);

		most = l->regions.v[0].prologue > 0 && n > most ? n : most;
	}
	most = most < c->tiles ? most : c->tiles;
	for (int tiles = 1; tiles <= most; tiles++) {
		for (int u = 0; u < c->most_counts && u < FEW_COUNTS && !is_at_limit(c); u++) {
			for (int l = 0; l < loops; l++)
				for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++)
					trips[l * STEPS_MAX + s] = (int16_t)c->counts[l][(u + s) % c->ncounts[l]];
			TRY(play_once(c, tiles, trips));
		}
	}
	return OK;
}

static enum err_code play_all(struct check *c)
{
	int16_t *trips = ARENA_ARRAY(c->a, c->plan->graph->program->loops.n * STEPS_MAX, int16_t);
	struct prng r = { 1 };

	if (c->most_counts == COUNTS_MAX)	/* in the order below the limit may come before the greatest */
		TRY(play_pair(c, COUNTS_MAX - 1, COUNTS_MAX - 1, trips));
	TRY(play_few_tiles(c, trips));
	for (int u = 0; u < c->most_counts && !is_at_limit(c); u++)
		TRY(play_pair(c, u, u, trips));
	if (c->most_counts == 1 || c->tiles == 1)	/* there are no two tiles that differ in trip counts */
		return OK;
	for (int u = 0; u < c->most_counts; u++)
		for (int v = 0; v < c->most_counts && !is_at_limit(c); v++)
			if (u != v)
				TRY(play_pair(c, u, v, trips));
	for (int i = 0; i < RANDOM_PLAYS && !is_at_limit(c); i++) {
		for (int l = 0; l < c->plan->graph->program->loops.n; l++)
			for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++)
				trips[l * STEPS_MAX + s] =
					(int16_t)c->counts[l][prng_below(&r, (uint32_t)c->ncounts[l])];
		TRY(play_once(c, c->tiles, trips));
	}
	return OK;
}

static enum err_code check_program(struct check *c)
{
	setting_init(c->a, c->r, c->plan, c->phase, &c->set);
	for (int i = 0; i < c->r->flags.n; i++)
		TRY(check_flag(c, &c->r->flags.v[i]));
	for (int i = 0; i < c->r->roles.n; i++)
		TRY(check_ops(c, &c->r->roles.v[i].body));
	TRY(names_check(c->a, &c->set, c->e));
	TRY(kept_check(c->r, c->plan, c->e));
	TRY(reached_check(c->r, c->plan, c->e));
	TRY(check_memory(c));
	TRY(check_taken(c));
	TRY(launch_check(c->r, c->plan, c->phase, c->e));
	TRY(find_plays(c));
	return play_all(c);
}

enum err_code verify(const struct role_program *r, const struct plan *p, int phase, struct arena *a,
	struct verified *out, struct err *e)
{
	struct arena_mark mark = arena_mark(a);
	struct check c = { .a = a, .r = r, .plan = p, .phase = phase, .done = { .counterexample =
		COUNTEREXAMPLE_NONE, .complete = true }, .e = e };
	enum err_code code = check_program(&c);

	arena_reset(a, mark);
	c.done.period = c.period;
	if (out)
		*out = c.done;
	return code;
}
