#include "lower/stamps.h"

#include "sim/sim.h"

enum { WORD = 4, SHARED_ALIGN = 1024 };	/* what is lost to align the block's shared memory */

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

		w[i].stamp = i + 1 < x->waits.n && is_issue(k, &w[i]) == is_issue(k, &w[i + 1]) ?
			NONE : n++;
	}
	r->groups = x->waits_groups ? n++ : NONE;
	r->body = n++;
	r->drain = x->drains ? n++ : NONE;
	r->words = n;
}

/* Lay out the records of a tile with at most `limit` iterations each. Returns the words
 * of all lanes. */
static int64_t lay_out(struct kernel *k, int64_t limit)
{
	int64_t all = 0;

	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];
		int64_t at = STAMP_TILE_HEAD;

		for (int n = 0; n < l->entries.n; n++) {
			struct kentry *x = &l->entries.v[n];

			x->stamps.at = at;
			x->stamps.keep = min_i64(limit, most_iterations(k,
				k->plan->graph->tasks.v[x->task].loop));
			at += x->stamps.keep * x->stamps.words;
		}
		l->tile_words = at;
		all += at;
	}
	return all;
}

/* Places of the lanes' words, here and there. */
static void place(struct kernel *k, int64_t tiles)
{
	int64_t out = STAMP_HEAD;

	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];

		l->stamps = k->shared_bytes;
		k->shared_bytes += l->tile_words * WORD;
		l->stamps_out = out;
		out += STAMP_LANE_HEAD + tiles * l->tile_words;
	}
	k->stamp_words = out;
	k->stamp_tiles = tiles;
}

enum err_code lower_stamps(struct kernel *k, struct err *e)
{
	struct arena_mark mark = arena_mark(&k->arena);
	int64_t tiles = 1, limit = INT32_MAX, words;
	struct dealing d;
	int64_t room;

	k->shared_bytes = ceil_div(k->shared_bytes, WORD) * WORD;
	room = k->plan->device->shared_bytes - SHARED_ALIGN - k->shared_bytes;
	sim_deal(&k->arena, k->plan, k->phase, &d);
	for (int i = 0; i < d.eus; i++)
		tiles = max_i64(tiles, d.start[i + 1] - d.start[i]);
	arena_reset(&k->arena, mark);
	for (int i = 0; i < k->lanes.n; i++)
		for (int x = 0; x < k->lanes.v[i].entries.n; x++)
			fill_record(k, &k->lanes.v[i].entries.v[x]);
	for (int loop = 0; loop < k->plan->graph->program->loops.n; loop++)
		limit = max_i64(loop ? limit : 1, most_iterations(k, loop));
	for (words = lay_out(k, limit); words * WORD > room && limit > 1; words = lay_out(k, limit))
		limit /= 2;
	if (words * WORD > room)
		return err_set(e, ERR_LIMIT, NOWHERE, "a trace takes %lld bytes of shared memory at "
			"least, and the plan leaves %lld: trace it with fewer versions of a buffer",
			(long long)(words * WORD), (long long)max_i64(room, 0));
	place(k, max_i64(1, min_i64(tiles, STAMP_WORDS_MAX / d.eus / words)));
	return OK;
}
