#include "lower/protocol.h"

#include <string.h>

#include "base/prng.h"
#include "lower/play.h"
#include "plan/cluster.h"
#include "sim/sim.h"

enum {
	PERIOD_MAX = 60,
	COUNTS_MAX = 64,		/* trip counts of a loop that are played */
	TILES_MAX = 24,
	STEPS_MAX = 64,			/* iterations of a region around, with counts of their own */
	RANDOM_PLAYS = 16,
	FEW_COUNTS = 4,			/* trip counts with each small number of tiles */
};

struct check {
	struct arena *a;
	const struct kernel *k;
	struct setting set;
	int period, margin;
	int tiles;			/* most that an EU gets */
	int *ncounts, **counts;		/* by loop: trip counts to play */
	int most_counts;
	struct protocol done;
	struct err *e;
};

static const struct graph *graph_of(const struct check *c)
{
	return c->k->plan->graph;
}

/* what needs no play ---------------------------------------------------------- */

static enum err_code fault(const struct check *c, int task, const char *what, int64_t is,
	int64_t should)
{
	const struct stask *s = &graph_of(c)->tasks.v[task];

	return err_set(c->e, ERR_ILLEGAL, s->loc, "the kernel is wrong: %s of '%s' is %lld, not %lld",
		what, s->name, (long long)is, (long long)should);
}

/* Bytes of one box, as the tensor map will have it; of a box that is cut by rows, of all
 * its parts. */
static int64_t box_bytes(const struct check *c, const struct stask *s, const struct ring *r)
{
	const struct program *p = graph_of(c)->program;
	const struct task *t = &p->tasks.v[s->task];
	const struct node *n = &p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	const struct buffer *b = &graph_of(c)->buffers.v[r->buffer];
	const struct tensor *from = &p->tensors.v[n->ref];
	int64_t bytes = dtype_bits(from->type) / 8 * r->panel_cols;

	for (int d = 0; d < from->rank - 1; d++) {
		int64_t box = 1;

		for (int i = 0; i < n->index[d].n; i++)
			for (int k = 0; k < b->naxes; k++)
				if (b->axis[k] == n->index[d].term[i].axis && b->extent[k] > 1)
					box = r->shape.nrow == 1 ? r->box_rows : b->extent[k];
		bytes *= box;
	}
	return r->cut == CUT_ROWS ? bytes * c->k->cluster : bytes;
}

static enum err_code check_flag(const struct check *c, const struct flag *f)
{
	const struct stask *s = &graph_of(c)->tasks.v[f->task];
	int lane = c->set.lane[f->task];
	int64_t arrivals = lane == NONE ? 0 : c->k->lanes.v[lane].warps * (f->all ? c->k->cluster : 1);
	int64_t bytes = 0;

	if (s->kind == TASK_LOAD && !f->issued && !f->runs) {
		const struct ring *r = &c->k->rings.v[c->k->ring_of[s->writes.v[0]]];

		if (r->engine) {
			arrivals = 1;
			bytes = box_bytes(c, s, r) * r->boxes;
		}
		if (bytes > r->slot_bytes)
			return fault(c, f->task, "the size of a slot", r->slot_bytes, bytes);
	}
	if (f->depth < 1)
		return fault(c, f->task, "the depth of the flag", f->depth, 1);
	if (f->arrivals != arrivals)
		return fault(c, f->task, "the number of arrivals", f->arrivals, arrivals);
	if (f->bytes != bytes)
		return fault(c, f->task, "the number of bytes", f->bytes, bytes);
	return OK;
}

/* Warps of the lane that stores. */
static int outbox_warps(const struct kernel *k, const struct outbox *o)
{
	return lane_warps(k->plan, k->plan->entries.v[plan_entry_of(k->plan, o->task)].lane);
}

/* The n-th thing in shared memory; false: there are fewer. */
static bool thing_at(const struct kernel *k, int n, int64_t *from, int64_t *to)
{
	const struct outbox *o;

	if (n < k->rings.n) {
		*from = k->rings.v[n].offset;
		*to = *from + k->rings.v[n].versions * k->rings.v[n].slot_bytes;
		return true;
	}
	n -= k->rings.n;
	if (n < k->flags.n) {
		*from = k->flags.v[n].offset;
		*to = *from + k->flags.v[n].depth * (int64_t)8;
		return true;
	}
	n -= k->flags.n;
	if (n >= k->outboxes.n)
		return false;
	o = &k->outboxes.v[n];
	*from = o->offset;
	*to = *from + outbox_warps(k, o) * o->batches * o->batch * o->panel_bytes;
	return true;
}

/* They lie beside each other. */
static enum err_code check_memory(const struct check *c)
{
	int64_t from[2], to[2];

	for (int i = 0; thing_at(c->k, i, &from[0], &to[0]); i++) {
		for (int j = 0; j <= i; j++) {
			thing_at(c->k, j, &from[1], &to[1]);
			if ((i != j && from[0] < to[1] && from[1] < to[0]) || to[0] > c->k->shared_bytes)
				return err_set(c->e, ERR_ILLEGAL, NOWHERE, "the kernel is wrong: bytes "
					"%lld to %lld of shared memory are given away twice or not "
					"there", (long long)from[0], (long long)to[0]);
		}
	}
	return OK;
}

/* All panels go through the room in whole batches, of which the box has a panel's rows. */
static enum err_code check_outbox(const struct check *c, const struct outbox *o)
{
	if (o->panels % o->batch)
		return fault(c, o->task, "the number of panels at once", o->batch, o->panels);
	if (o->rows * o->swizzle > o->panel_bytes)
		return fault(c, o->task, "the size of a panel", o->panel_bytes, o->rows * o->swizzle);
	return OK;
}

/* Only what is the same in all blocks may go from one to all. */
static enum err_code check_cut(const struct check *c, const struct ring *r)
{
	struct cluster all = plan_cluster(c->k->plan, c->k->phase);
	int task = graph_of(c)->buffers.v[r->buffer].first;
	int64_t parts = r->cut == CUT_ROWS ? c->k->cluster : 1;

	if (r->cut == CUT_NONE && c->k->cluster == 1)
		return OK;
	if (r->cut != CUT_NONE && (all.size != c->k->cluster || !r->engine ||
	    !cluster_shares(c->k->plan, &all, task)))
		return fault(c, task, "the number of blocks that get the load", c->k->cluster, 1);
	if (r->box_rows * parts != r->full_rows)
		return fault(c, task, "the number of rows in all parts", r->box_rows * parts,
			r->full_rows);
	return OK;
}

static enum err_code check_still(const struct check *c)
{
	for (int i = 0; i < c->k->rings.n; i++)
		TRY(check_cut(c, &c->k->rings.v[i]));
	for (int i = 0; i < c->k->flags.n; i++)
		TRY(check_flag(c, &c->k->flags.v[i]));
	for (int i = 0; i < c->k->outboxes.n; i++)
		TRY(check_outbox(c, &c->k->outboxes.v[i]));
	return check_memory(c);
}

/* what to play ---------------------------------------------------------------- */

static int gcd(int a, int b)
{
	return b ? gcd(b, a % b) : a;
}

static void add_period(struct check *c, int n)
{
	int lcm = c->period / gcd(c->period, n) * n;

	if (lcm <= PERIOD_MAX)
		c->period = lcm;
	else
		c->done.complete = false;
	c->margin = c->margin > n ? c->margin : n;
}

/* After `period` iterations all rings, flags and unrolled registers are where they were;
 * `margin` of them are between any two instances that have to do with each other. */
static void find_period(struct check *c)
{
	int spread = 0;

	c->period = c->margin = 1;
	for (int i = 0; i < c->k->flags.n; i++)
		add_period(c, c->k->flags.v[i].depth);
	for (int i = 0; i < c->k->rings.n; i++)
		add_period(c, c->k->rings.v[i].versions);
	for (int i = 0; i < c->k->lanes.n; i++) {
		const struct klane *l = &c->k->lanes.v[i];
		int most = 0;

		add_period(c, l->copies);
		for (int v = 0; v <= graph_of(c)->program->loops.n; v++) {
			if (!l->regions[v].unroll)
				continue;
			add_period(c, l->regions[v].unroll);
			most = l->regions[v].most > most ? l->regions[v].most : most;
		}
		spread += most;
	}
	c->margin += spread;
}

/* All counts up to the margin and two periods; those beyond are like the last of these
 * that differs by whole periods. */
static void find_counts(struct check *c, int loop)
{
	int64_t least = graph_of(c)->trips[loop].least, most = graph_of(c)->trips[loop].most;
	int64_t bound = c->margin + 2 * c->period;
	int n = 0, *v = ARENA_ARRAY(c->a, COUNTS_MAX, int);

	for (int64_t t = least; t <= most && t < least + COUNTS_MAX * (int64_t)c->period; t++) {
		int like = (int)(t <= bound ? t : bound - floor_mod(bound - t, c->period));
		bool is_new = true;

		for (int i = 0; i < n; i++)
			is_new &= v[i] != like;
		if (is_new && n < COUNTS_MAX)
			v[n++] = like;
	}
	c->counts[loop] = v;
	c->ncounts[loop] = n;
	if (n > c->most_counts)
		c->most_counts = n;
}

static void find_plays(struct check *c)
{
	int loops = graph_of(c)->program->loops.n;
	struct dealing d;

	find_period(c);
	c->counts = ARENA_ARRAY(c->a, loops, int *);
	c->ncounts = ARENA_ARRAY(c->a, loops, int);
	c->most_counts = 1;
	for (int l = 0; l < loops; l++)
		if (graph_of(c)->program->loops.v[l].phase == c->k->phase)
			find_counts(c, l);
	sim_deal(c->a, c->k->plan, c->k->phase, &d);
	c->tiles = 1;
	for (int i = 0; i < d.eus; i++)
		if (d.start[i + 1] - d.start[i] > c->tiles)
			c->tiles = (int)min_i64(d.start[i + 1] - d.start[i], TILES_MAX);
}

/* One play: counts by loop and iteration of the region around, from the choice of each. */
static enum err_code play(struct check *c, int ntiles, const int16_t *trips)
{
	struct arena_mark mark = arena_mark(c->a);
	struct script s;
	struct walk w;
	enum err_code code;

	walk_init_trips(c->a, &w, graph_of(c), c->k->phase, ntiles, STEPS_MAX, trips);
	script_init(c->a, &c->set, &w, &s);
	for (int i = 0; i < c->k->lanes.n; i++)
		c->done.actions += s.nacts[i] * c->k->cluster;
	c->done.plays++;
	code = play_script(c->a, &s, &c->done.remedy, c->e);
	arena_reset(c->a, mark);
	return code;
}

/* Iterations in a row go through counts number u and v of each loop in turn: u v v u ... */
static enum err_code play_pair(struct check *c, int u, int v, int16_t *trips)
{
	int loops = graph_of(c)->program->loops.n, least = INT16_MAX, tiles;

	for (int l = 0; l < loops; l++) {
		for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++) {
			int which = (s + 1) / 2 % 2 ? v : u;

			trips[l * STEPS_MAX + s] = (int16_t)c->counts[l][which % c->ncounts[l]];
			if (trips[l * STEPS_MAX + s] < least)
				least = trips[l * STEPS_MAX + s];
		}
	}
	/* all rings of loops go around twice, and those of tiles */
	least = least < 1 || least > 2 * c->period ? 1 : least;
	tiles = (2 * c->period + least - 1) / least + 2;
	tiles = tiles < c->margin + 2 ? c->margin + 2 : tiles;
	return play(c, tiles < c->tiles ? tiles : c->tiles, trips);
}

static enum err_code play_random(struct check *c, struct prng *r, int16_t *trips)
{
	int loops = graph_of(c)->program->loops.n;

	for (int l = 0; l < loops; l++)
		for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++)
			trips[l * STEPS_MAX + s] = (int16_t)c->counts[l][prng_below(r,
				(uint32_t)c->ncounts[l])];
	return play(c, c->tiles, trips);
}

static bool enough(struct check *c)
{
	if (c->done.actions > PROTOCOL_ACTIONS)
		c->done.complete = false;
	return c->done.actions > PROTOCOL_ACTIONS;
}

/* Where turns of the tile loop are about several tiles, it makes a difference how many there
 * are: to the lanes' prologues and epilogues. */
static enum err_code play_few_tiles(struct check *c, int16_t *trips)
{
	int loops = graph_of(c)->program->loops.n, most = 0;

	for (int i = 0; i < c->k->lanes.n; i++) {
		const struct klane *l = &c->k->lanes.v[i];
		int n = l->copies * (2 * l->regions[0].most + 2 * l->regions[0].unroll);

		most = shifts_tiles(l) && n > most ? n : most;
	}
	most = most < c->tiles ? most : c->tiles;
	for (int tiles = 1; tiles <= most; tiles++) {
		for (int u = 0; u < c->most_counts && u < FEW_COUNTS && !enough(c); u++) {
			for (int l = 0; l < loops; l++)
				for (int s = 0; s < STEPS_MAX && c->ncounts[l]; s++)
					trips[l * STEPS_MAX + s] = (int16_t)c->counts[l][(u + s) %
						c->ncounts[l]];
			TRY(play(c, tiles, trips));
		}
	}
	return OK;
}

static enum err_code play_all(struct check *c)
{
	int16_t *trips = ARENA_ARRAY(c->a, graph_of(c)->program->loops.n * STEPS_MAX, int16_t);
	struct prng r = { 1 };

	TRY(play_few_tiles(c, trips));
	for (int u = 0; u < c->most_counts && !enough(c); u++)
		TRY(play_pair(c, u, u, trips));
	if (c->most_counts == 1 || c->tiles == 1)
		return OK;
	for (int u = 0; u < c->most_counts; u++)
		for (int v = 0; v < c->most_counts && !enough(c); v++)
			if (u != v)
				TRY(play_pair(c, u, v, trips));
	for (int i = 0; i < RANDOM_PLAYS && !enough(c); i++)
		TRY(play_random(c, &r, trips));
	return OK;
}

static enum err_code check_kernel(struct check *c)
{
	setting_init(c->a, c->k, &c->set);
	TRY(check_still(c));
	find_plays(c);
	return play_all(c);
}

enum err_code protocol_check(struct kernel *k, struct protocol *out, struct err *e)
{
	struct arena_mark mark = arena_mark(&k->arena);
	struct check c = { .a = &k->arena, .k = k, .done = { .remedy = { { NONE, NONE }, NONE, NONE }, .complete = true }, .e = e };
	enum err_code code = check_kernel(&c);

	arena_reset(&k->arena, mark);
	c.done.period = c.period;
	if (out)
		*out = c.done;
	return code;
}
