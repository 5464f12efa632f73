#include "lower/stamps.h"

#include "lower/passes.h"
#include "plan/assign.h"

enum {
	WORD = 4,
	WATCH_MOST = 8192,		/* instances of a copy */
};

/* Most iterations of a region in one tile. */
static int64_t most_iterations(const struct kernel *k, int loop)
{
	const struct graph *g = k->plan->graph;
	int64_t n = 1;

	for (; loop != NONE; loop = g->program->loops.v[loop].parent)
		n *= max_i64(g->trips[loop].most, 1);
	return n;
}

static bool is_issue(const struct kernel *k, const struct flag_wait *w)
{
	return k->plan->waits.v[w->wait].when == WAIT_ISSUED;
}

/* What a record of the entry holds. */
static void fill_record(const struct kernel *k, struct kentry *x)
{
	struct record *r = &x->stamps;
	int n = 0;

	for (int i = 0; i < x->waits.n; i++) {
		struct flag_wait *w = x->waits.v;

		w[i].stamp = i + 1 < x->waits.n && is_issue(k, &w[i]) == is_issue(k, &w[i + 1]) ? NONE : n++;
	}
	r->groups = x->waits_groups ? n++ : NONE;
	r->body = n++;
	r->drain = x->drains ? n++ : NONE;
	r->words = n;
}

/* Lay out the records of a tile with at most `limit` iterations each. Returns the words of all lanes. */
static int64_t lay_out(struct kernel *k, int64_t limit)
{
	int64_t all = 0;

	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];
		int64_t at = STAMP_TILE_HEAD;

		for (int n = 0; n < l->entries.n; n++) {
			struct kentry *x = &l->entries.v[n];

			x->stamps.at = at;
			x->stamps.keep = min_i64(limit, most_iterations(k, k->plan->graph->tasks.v[x->task].loop));
			at += x->stamps.keep * x->stamps.words;
		}
		l->traced.tile_words = at;
		all += at;
	}
	return all;
}

/* Assign the lanes' words in shared and in device memory; shared memory holds those of `held` tiles. */
static void assign_words(struct kernel *k, int64_t tiles, int64_t held)
{
	int64_t out = STAMP_HEAD;

	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];
		int64_t own = ceil_div(tiles, l->replicas);

		l->traced.tiles_held = min_i64(own, held);
		l->traced.tiles_out = ceil_div(own, l->traced.tiles_held) * l->traced.tiles_held;
		l->traced.held_at = k->shared_bytes;
		k->shared_bytes += l->traced.tiles_held * l->traced.tile_words * WORD;
		l->traced.out_at = out;
		out += STAMP_LANE_HEAD + l->traced.tiles_out * l->traced.tile_words;
	}
	k->traced.words = out;
	k->traced.tiles = tiles;
}

/* The lane of an sTask, if it is on one alone; NULL. */
static const struct klane *klane_of(const struct kernel *k, int task)
{
	int lane = k->plan->entries.v[plan_entry_of(k->plan, task)].lane;

	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].lane == lane)
			return k->lanes.v[i].replicas == 1 ? &k->lanes.v[i] : NULL;
	return NULL;
}

/* A warp of its own for the flag of each load, as far as they go. */
static void add_watches(struct kernel *k)
{
	int used[LANES_MAX] = { 0 };

	for (int f = 0; f < k->flags.n; f++) {
		const struct flag *flag = &k->flags.v[f];
		const struct klane *l = flag->bytes ? klane_of(k, flag->task) : NULL;
		struct watch w = { .flag = f };

		if (!l || flag->issued)
			continue;
		w.warp = l->warps + used[l->lane];
		if (w.warp >= target_warps(k->target, l->warps))
			continue;
		w.warp += l->first_warp;
		used[l->lane]++;
		w.ended = k->shared_bytes;
		k->shared_bytes += WORD;
		VEC_PUSH(&k->arena, &k->traced.watches, w);
	}
}

static void assign_watches(struct kernel *k, int64_t tiles)
{
	for (int i = 0; i < k->traced.watches.n; i++) {
		struct watch *w = &k->traced.watches.v[i];
		int loop = k->plan->graph->tasks.v[k->flags.v[w->flag].task].loop;

		w->at = k->traced.words;
		w->keep = min_i64(tiles * most_iterations(k, loop), WATCH_MOST);
		k->traced.words += w->keep;
	}
}

enum err_code lower_stamps(struct kernel *k, struct err *e)
{
	int64_t tiles = k->most_tiles, offsets = 0, limit = INT32_MAX, words;
	int64_t counters = k->role->ncounters * ROLE_COUNTER_BYTES, capacity;
	struct arena_mark mark;
	struct tile_assignment d;

	if (k->taken.lane != NONE)
		return err_set(e, ERR_INPUT, k->plan->grid_loc, "which tiles an EU takes is known only when the kernel runs, so its stamps "
			"cannot be read: trace the plan with plan:grid{dynamic=false}");
	if (counters)			/* the kernel is made again, and they are at its end */
		k->shared_bytes = k->role->counters;
	k->shared_bytes = ceil_div(k->shared_bytes, WORD) * WORD;
	add_watches(k);
	capacity = k->plan->device->shared_bytes - shared_slack(&k->target->shared) - counters - k->shared_bytes;
	mark = arena_mark(&k->arena);
	plan_assign_tiles(&k->arena, k->plan, k->phase, &d);
	arena_reset(&k->arena, mark);
	for (int i = 0; i < k->lanes.n; i++) {
		for (int x = 0; x < k->lanes.v[i].entries.n; x++)
			fill_record(k, &k->lanes.v[i].entries.v[x]);
		offsets = max_i64(offsets, k->lanes.v[i].replicas * k->lanes.v[i].regions[0].max_offset);
	}
	for (int loop = 0; loop < k->plan->graph->program->loops.n; loop++)
		limit = max_i64(loop ? limit : 1, most_iterations(k, loop));
	for (words = lay_out(k, limit); words * WORD > capacity && limit > 1; words = lay_out(k, limit))
		limit /= 2;
	if (words * WORD > capacity)
		return err_set(e, ERR_LIMIT, NOWHERE, "a trace takes %lld bytes of shared memory at "
			"least, and the plan leaves %lld: trace it with fewer versions of a buffer",
			(long long)(words * WORD), (long long)max_i64(capacity, 0));
	assign_words(k, max_i64(1, min_i64(tiles + offsets, STAMP_WORDS_MAX / d.eus / words)),
		capacity / (words * WORD));
	assign_watches(k, tiles);
	return lower_body(k, e);
}
