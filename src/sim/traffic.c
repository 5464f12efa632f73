#include "sim/traffic.h"

#include <math.h>

#include "plan/cluster.h"
#include "plan/keys.h"

/* Half of L2 can be counted on. On NVIDIA's GPUs it is two halves, and a line that
 * SMs on both sides read stands in both (NVIDIA A100 white paper, "L2 cache"; H100
 * likewise); elsewhere the outputs that pass through take their part. */
#define L2_USABLE 0.5

enum {
	WAVES_MAX = 8,			/* waves looked at; the others are much alike */
	ASKERS_MAX = 16,		/* of a box; further ones make no difference */
};

/* A load: what it addresses and how much it asks for. */
struct reader {
	int task, loop;			/* program task (its parts read alike) and its region */
	const struct tensor *tensor;
	const struct index_expr *index;
	double bytes;			/* a time, all parts */
	double asked, unique, fetched;	/* in the waves looked at */
};

/* Where an access touches its tensor, by dimension; it may reach beyond. */
struct box {
	struct index_range of[RANK_MAX];
};

static void box_at(const struct tensor *t, const struct index_expr *index, const struct axis_ranges *at,
	struct box *out)
{
	for (int i = 0; i < t->rank; i++)
		out->of[i] = index_bounds(&index[i], at->lo, at->hi);
}

/* Bytes of the tensor in it. */
static double box_bytes(const struct program *p, const struct tensor *t, const struct box *b)
{
	double elements = 1;

	for (int i = 0; i < t->rank; i++) {
		int64_t lo = max_i64(b->of[i].lo, 0);
		int64_t hi = min_i64(b->of[i].hi, p->axes.v[t->dim[i]].size - 1);

		elements *= hi < lo ? 0 : (double)(hi - lo + 1);
	}
	return elements * dtype_bits(t->type) / 8;
}

/* Which box that is, as a hash. */
static uint64_t box_key(const struct tensor *t, const struct box *b)
{
	uint64_t h = 0;

	for (int i = 0; i < t->rank; i++)
		h = keys_mix(keys_mix(h, b->of[i].lo), b->of[i].hi);
	return h;
}

static void box_add(const struct tensor *t, struct box *hull, const struct box *b)
{
	for (int i = 0; i < t->rank; i++) {
		hull->of[i].lo = min_i64(hull->of[i].lo, b->of[i].lo);
		hull->of[i].hi = max_i64(hull->of[i].hi, b->of[i].hi);
	}
}

/* How often a region runs in the tile at this place. A bound that depends on a loop
 * further out is taken over all of that loop. */
static double tile_runs(const struct graph *g, int loop, const struct axis_ranges *at)
{
	double n = 1;

	for (; loop != NONE; loop = g->program->loops.v[loop].parent) {
		int64_t first, last;

		visited_iterations(&g->extents, loop, at, &first, &last);
		n *= (double)(last - first);
	}
	return n;
}

static const struct node *access_of(const struct graph *g, const struct stask *s)
{
	const struct task *t = &g->program->tasks.v[s->task];

	return &g->program->nodes.v[t->nodes.v[t->nodes.n - 1]];
}

static bool touches_memory(const struct stask *s)
{
	return s->kind == TASK_LOAD || s->kind == TASK_STORE;
}

static int find_readers(const struct graph *g, int phase, struct reader *out)
{
	int n = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const struct node *node;

		if (s->phase != phase || s->kind != TASK_LOAD || s->part)
			continue;
		node = access_of(g, s);
		out[n++] = (struct reader){ .task = s->task, .loop = s->loop,
			.index = node->index, .tensor = &g->program->tensors.v[node->ref],
			.bytes = s->work.global_bytes * s->parts };
	}
	return n;
}

/* Bytes that an access touches over all of its axes. */
static double all_bytes(const struct program *p, const struct tensor *t,
	const struct index_expr *index)
{
	struct axis_ranges at;
	struct box box;

	for (int i = 0; i < p->axes.n; i++) {
		at.lo[i] = 0;
		at.hi[i] = p->axes.v[i].size - 1;
	}
	box_at(t, index, &at, &box);
	return box_bytes(p, t, &box);
}

/* Bytes of all tensors that the phase touches. */
static double footprint(struct arena *a, const struct graph *g, int phase)
{
	double *most = ARENA_ARRAY(a, g->program->tensors.n, double), sum = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct node *n = access_of(g, &g->tasks.v[i]);

		if (g->tasks.v[i].phase == phase && touches_memory(&g->tasks.v[i]))
			most[n->ref] = fmax(most[n->ref], all_bytes(g->program,
				&g->program->tensors.v[n->ref], n->index));
	}
	for (int i = 0; i < g->program->tensors.n; i++)
		sum += most[i];
	return sum;
}

/* What several EUs ask for before it is there comes from device memory once, but crosses between the
 * parts of L2 for each of them, which takes time: of a fetch, for the one after so many others. */
static double again_for(double again, double others)
{
	return others < ASKERS_MAX ? pow(again, others) : 0;
}

/* Who touches a box: the most that one does, and how many they are. */
struct use {
	int64_t most, askers;
};

/* One wave: the tiles that the EUs have as their w-th. They run the same loops at the
 * same pace, so what several of them touch is fetched for all; where loop bounds make
 * one tile touch more of the same box than another, the most counts. */
static void count_wave(struct arena *a, const struct graph *g, int phase,
	const struct dealing *d, double again, int64_t w, struct reader *r)
{
	struct use *uses = ARENA_ARRAY(a, d->eus, struct use);
	struct keys seen;
	struct box hull;
	double unique = 0, fetched = 0;
	int n = 0;

	keys_init(&seen, a, d->eus);
	for (int u = 0; u < d->eus; u++) {
		struct axis_ranges at;
		struct box box;
		int64_t *at_use, bytes, old;
		struct use *use;
		double asked;
		bool is_new;

		if (d->start[u] + w >= d->start[u + 1])
			continue;
		ranges_set_tile(&g->extents, &g->grids[phase], d->order[d->start[u] + w], &at);
		asked = r->bytes * tile_runs(g, r->loop, &at);
		box_at(r->tensor, r->index, &at, &box);
		bytes = (int64_t)fmin(asked, box_bytes(g->program, r->tensor, &box));
		at_use = keys_at(&seen, box_key(r->tensor, &box), &is_new);
		if (!n)
			hull = box;
		if (is_new)
			*at_use = n++;
		use = &uses[*at_use];
		old = min_i64(bytes, use->most);
		r->asked += asked;
		unique += (double)(bytes - old);
		fetched += (double)(bytes - old) + (double)old * again_for(again, (double)use->askers);
		use->most = max_i64(bytes, use->most);
		use->askers++;
		box_add(r->tensor, &hull, &box);
	}
	/* Boxes overlap where an index is a sum, as a convolution's: together they are no more than
	 * what is between the first and the last in each dimension. */
	if (!n)
		return;
	r->unique += fmin(unique, box_bytes(g->program, r->tensor, &hull));
	r->fetched += fmin(fetched, box_bytes(g->program, r->tensor, &hull) / (1 - again));
}

/* Everything fits in L2: each byte comes from device memory once in the phase, and a
 * temporary, which an earlier phase has left there, not at all. */
static struct fetched fetched_once(const struct graph *g, int phase, double again, const struct reader *r)
{
	double asked = r->bytes * (double)g->grids[phase].total, once;

	if (r->tensor->role == TENSOR_TEMP)
		return (struct fetched){ 0, 1 };
	once = all_bytes(g->program, r->tensor, r->index);
	asked *= graph_runs(g, r->loop, NONE);
	if (asked <= once)
		return (struct fetched){ 1, 1 };
	return (struct fetched){ once / asked, (1 - again_for(again, asked / once)) / (1 - again) };
}

static struct fetched fetched_in_waves(const struct reader *r)
{
	if (!(r->asked > 0) || !(r->unique > 0))
		return (struct fetched){ r->asked > 0 ? 0 : 1, 1 };
	return (struct fetched){ r->unique / r->asked, r->fetched / r->unique };
}

struct fetched *traffic_fetched(struct arena *a, const struct plan *p, int phase,
	const struct dealing *d)
{
	const struct graph *g = p->graph;
	struct fetched *out = ARENA_ARRAY(a, g->tasks.n, struct fetched);
	struct arena_mark scratch = arena_mark(a);
	struct reader *readers = ARENA_ARRAY(a, g->tasks.n, struct reader);
	int n = find_readers(g, phase, readers);
	bool fits = footprint(a, g, phase) <= L2_USABLE * (double)p->device->l2_bytes;
	int64_t waves = 0;

	for (int u = 0; u < d->eus; u++)
		waves = max_i64(waves, d->start[u + 1] - d->start[u]);
	for (int i = 0; i < g->tasks.n; i++)
		out[i] = (struct fetched){ 1, 1 };
	for (int r = 0; r < n; r++) {
		int64_t look = fits ? 0 : min_i64(waves, WAVES_MAX);
		struct fetched f;

		for (int64_t i = 0; i < look; i++)
			count_wave(a, g, phase, d, p->device->l2_again, i * waves / look, &readers[r]);
		f = fits ? fetched_once(g, phase, p->device->l2_again, &readers[r]) :
			fetched_in_waves(&readers[r]);
		for (int i = 0; i < g->tasks.n; i++)
			if (g->tasks.v[i].task == readers[r].task)
				out[i] = f;
	}
	arena_reset(a, scratch);
	return out;
}

/* The hand-over of the values that the entry's sTask makes for other lanes. */
static void handoff_cost(const struct plan *p, const struct entry *en, struct entry_cost *c)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[en->task];

	c->handoff_loop = NONE;
	for (int i = 0; i < s->writes.n; i++) {
		const struct buffer *b = &g->buffers.v[s->writes.v[i]];
		bool crosses = false;

		if (b->scope != SCOPE_REGISTERS || plan_scope(p, s->writes.v[i]) != SCOPE_SHARED)
			continue;
		for (int k = 0; k < g->edges.n; k++) {
			const struct edge *e = &g->edges.v[k];
			int to = e->kind == EDGE_FLOW && e->from == en->task &&
				e->buffer == s->writes.v[i] ? plan_entry_of(p, e->to) : NONE;

			if (to == NONE || p->entries.v[to].lane == en->lane)
				continue;
			if (program_loop_within(g->program, e->loop, c->handoff_loop))
				c->handoff_loop = e->loop;
			crosses = true;
		}
		if (crosses)
			c->handoff += p->device->handoff_latency +
				(double)b->bytes / p->device->handoff_rate;
	}
}

/* A kernel says itself what its lanes write to shared memory and get from there; and threads
 * have L2 bring whole sectors, of which neighbours then find the rest there. */
static void read_kernel(const struct plan *p, const struct entry *en, const struct task_price *t,
	struct work *w)
{
	const struct seu *s = &p->device->seu[en->seu];

	if (s->kind != SEU_MATRIX || !s->async)
		w->shared_bytes = 0;
	if (!t->by_threads)
		return;
	w->by_threads = w->kind == WORK_LOAD;
	w->global_bytes *= fmax(t->sector_ratio, 1);
	w->unique_share /= fmax(t->sector_ratio, 1);
}

struct entry_cost *traffic_costs(struct arena *a, const struct plan *p, int phase,
	const struct fetched *f, const struct price *price, struct pace pace)
{
	struct entry_cost *out = ARENA_ARRAY(a, p->entries.n, struct entry_cost);
	struct cluster c = plan_cluster(p, phase);

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *en = &p->entries.v[i];
		struct work work = p->graph->tasks.v[en->task].work;

		if (p->graph->tasks.v[en->task].phase != phase)
			continue;
		work.unique_share = f[en->task].share;
		work.times = f[en->task].times;
		work.sharers = cluster_shares(p, &c, en->task) ? c.size : 0;
		if (price_knows(price, phase))
			read_kernel(p, en, &price->tasks[en->task], &work);
		out[i].cost = device_cost(p->device, en->seu, &work, lane_warps(p, en->lane),
			pace);
		out[i].effort = device_effort(p->device, en->seu, &work);
		out[i].drain = out[i].drain_after = out[i].handoff_loop = NONE;
		if (price_knows(price, phase))
			price_entry(price, p, i, f[en->task].share, &out[i]);
		else
			handoff_cost(p, en, &out[i]);
	}
	return out;
}

struct entry_cost *traffic_plain(struct arena *a, const struct plan *p, int phase,
	const struct dealing *d)
{
	return traffic_costs(a, p, phase, traffic_fetched(a, p, phase, d), NULL,
		(struct pace){ d->eus, p->device->clock_hz });
}

double traffic_latency(const struct entry_cost *c)
{
	return fmax(fmax(c->cost.busy, c->cost.alone), c->cost.memory) + c->cost.latency;
}
