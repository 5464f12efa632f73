/* Estimates which bytes of loads come from device memory, and computes the costs of entries.
 *
 * If all tensors of a phase fit into the usable part of L2, each byte is fetched once. Else loads are
 * examined wave by wave: a wave is the w-th tile of every EU. What several tiles of a wave load is fetched
 * once; a later wave finds nothing in L2. A request for bytes that n other EUs have requested in the same
 * wave takes again^n of a fetch's time, where `again` is the device's memory.l2.again.
 *
 * Loads of one region that read a tensor at constant distances from each other, as the taps of a stencil, read the same
 * elements, in tiles near each other; and so do the boxes of neighbouring tiles at their edges, where each is read with what is around
 * it. If all that is read in between stays in L2, each byte is fetched once for all of them.
 *
 * Additions in memory are examined in the same way, whatever fits into L2: how many EUs of a wave add to the same
 * elements, and how many bytes all of them add to.
 *
 * An index that is a value names the same elements in two tiles if the axes from which the value was loaded and computed, and
 * those that are added to it, have the same coordinates in both, or neighbouring ones in a sorted tensor of few numbers. Other
 * tiles are taken to read other elements, as far as the tensor has so many. */
#include "sim/traffic.h"

#include <math.h>

#include "plan/cluster.h"
#include "plan/keep.h"
#include "plan/keys.h"
#include "tile/index_values.h"

enum {
	WAVES_MAX = 8,			/* waves that are examined; others are similar */
	REQUESTS_MAX = 16,		/* of a box that count; further ones take no time */
	SECTOR_BYTES = 32,		/* of L2, of which an addition moves all */
};

/* A load of the program, or an addition: what it addresses and how many bytes it requests. */
struct load {
	int loop;			/* its region */
	const struct tensor *tensor;
	const struct index_expr *index;
	double bytes;			/* a time, all parts */
	double requested, unique, fetched;	/* bytes in the waves examined: requested, fetched, and fetched with
						 * the time of repeated requests */
	int64_t chooses[AXES_MAX];	/* index_value_axes */
};

/* The elements of a tensor that an access covers, as a range for each dimension; it may extend beyond the tensor. A
 * value may name any index. */
struct box {
	struct index_range of[RANK_MAX];
};

static void box_at(const struct tensor *t, const struct index_expr *index, const struct axis_ranges *at,
	struct box *out)
{
	for (int i = 0; i < t->rank; i++)
		out->of[i] = index[i].value ? (struct index_range){ 0, INT64_MAX } :
			index_bounds(&index[i], at->lo, at->hi);
}

/* Bytes of the tensor that are in the box. */
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

/* How often a region runs in a tile. A loop bound that depends on an outer loop is taken over all of that loop. */
static double tile_runs(const struct graph *g, int loop, const struct axis_ranges *at)
{
	double n = 1;

	for (; loop != NONE; loop = g->program->loops.v[loop].parent) {
		int64_t first, last;

		const struct loop *l = &g->program->loops.v[loop];

		visited_iterations(&g->extents, loop, at, &first, &last);
		n *= (double)(last - first);
		if (l->keeps_steps && l->typical)
			n *= (double)l->typical / (double)program_steps_around(g->program, l);
	}
	return n;
}

/* Bytes that an access covers over all values of its axes. */
static double all_bytes(const struct program *p, const struct tensor *t, const struct index_expr *index)
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

/* Bytes of all tensors that the phase loads or stores. */
static double footprint(struct arena *a, const struct graph *g, int phase)
{
	double *most = ARENA_ARRAY(a, g->program->tensors.n, double), sum = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const struct node *n = stask_last_node(g, s);

		if (s->phase == phase && (s->kind == TASK_LOAD || s->kind == TASK_STORE))
			most[n->ref] = fmax(most[n->ref], all_bytes(g->program,
				&g->program->tensors.v[n->ref], n->index));
	}
	for (int i = 0; i < g->program->tensors.n; i++)
		sum += most[i];
	return sum;
}

/* The time of a repeated request, over that of the fetch, after so many `others`. Bytes that several EUs request
 * before they arrive come from device memory once, but cross between the partitions of L2 for each. */
static double repeat_time(double repeat, double others)
{
	return others < REQUESTS_MAX ? pow(repeat, others) : 0;
}

/* The use of a box: the most bytes that one EU loads of it, and the number of EUs that do. */
struct box_use {
	int64_t most, requests;
};

/* The use of all boxes that differ in nothing but values, which together have no more than `all` bytes. */
struct range_use {
	double all, unique, requested;
};

static uint64_t box_key(const struct box *b, int rank)
{
	uint64_t key = 0;	/* a hash of the box, which stands for the box */

	for (int i = 0; i < rank; i++)
		key = hash_mix(hash_mix(key, b->of[i].lo), b->of[i].hi);
	return key;
}

/* The same, for boxes at the same coordinates of the axes that determine the values, and of those that are added to values. */
static uint64_t chosen_key(const struct program *p, const struct load *r, const struct axis_ranges *at, uint64_t key)
{
	for (int d = 0; d < r->tensor->rank; d++) {
		struct index_range added = index_bounds(&r->index[d], at->lo, at->hi);

		if (r->index[d].value)
			key = hash_mix(hash_mix(key, added.lo), added.hi);
	}
	for (int a = 0; a < p->axes.n; a++)
		if (r->chooses[a])
			key = hash_mix(hash_mix(key, at->lo[a] / r->chooses[a]), at->hi[a] / r->chooses[a]);
	return key;
}

/* The part that an EU of a cluster makes of a divided loop. */
static void set_part(const struct graph *g, int loop, int member, struct axis_ranges *at)
{
	while (loop != NONE && loop_parts(&g->extents, loop) == 1)
		loop = g->program->loops.v[loop].parent;
	if (loop == NONE)
		return;
	int axis = g->program->loops.v[loop].axis[0], parts = loop_parts(&g->extents, loop);
	int64_t part = extent_tiles(&g->extents, axis) / parts * g->extents.tile[axis];

	at->lo[axis] = member * part;
	at->hi[axis] = min_i64(at->lo[axis] + part, g->program->axes.v[axis].size) - 1;
}

/* Add one wave: the w-th tile of each EU. The EUs run the same loops at the same pace, so what several of them
 * load is fetched for all. If loop bounds make one EU load more of a box than another, the most counts. */
static void count_wave(struct arena *a, const struct graph *g, int phase,
	const struct tile_assignment *d, double repeat, int64_t w, struct load *r)
{
	struct box_use *uses = ARENA_ARRAY(a, d->eus, struct box_use);
	struct range_use *ranges = ARENA_ARRAY(a, d->eus, struct range_use);
	struct keys seen, seen_ranges;
	struct box hull;
	double unique = 0, fetched = 0;
	int n = 0, nranges = 0;

	keys_init(&seen, a, d->eus);
	keys_init(&seen_ranges, a, d->eus);
	for (int u = 0; u < d->eus; u++) {
		struct axis_ranges at;
		struct box box;
		bool is_new;

		if (d->start[u] + w >= d->start[u + 1])
			continue;
		ranges_set_tile(&g->extents, &g->grids[phase], d->order[d->start[u] + w], &at);
		set_part(g, r->loop, u % d->cluster, &at);
		double requested = r->bytes * tile_runs(g, r->loop, &at);
		box_at(r->tensor, r->index, &at, &box);
		int64_t bytes = (int64_t)fmin(requested, box_bytes(g->program, r->tensor, &box));
		if (!n)
			hull = box;
		for (int i = 0; i < r->tensor->rank; i++) {
			hull.of[i].lo = min_i64(hull.of[i].lo, box.of[i].lo);
			hull.of[i].hi = max_i64(hull.of[i].hi, box.of[i].hi);
		}
		uint64_t key = box_key(&box, r->tensor->rank);
		int64_t *at_range = keys_at(&seen_ranges, key, &is_new);
		if (is_new) {
			ranges[nranges].all = box_bytes(g->program, r->tensor, &box);
			*at_range = nranges++;
		}
		struct range_use *range = &ranges[*at_range];
		int64_t *at_use = keys_at(&seen, chosen_key(g->program, r, &at, key), &is_new);
		if (is_new)
			*at_use = n++;
		struct box_use *use = &uses[*at_use];
		int64_t old = min_i64(bytes, use->most);
		/* of what no box before has named, as much is new as is left in the tensor */
		double fresh = fmin((double)(bytes - old), range->all - range->unique);
		double others = fmax((double)use->requests, range->all > 0 ? floor(range->requested / range->all) : 0);
		r->requested += requested;
		unique += fresh;
		fetched += fresh + ((double)bytes - fresh) * repeat_time(repeat, others);
		range->unique += fresh;
		range->requested += (double)bytes;
		use->most = max_i64(bytes, use->most);
		use->requests++;
	}
	if (!n)
		return;
	/* Boxes overlap if an index is a sum, as that of a convolution: together they have at most the bytes of
	 * their hull. */
	r->unique += fmin(unique, box_bytes(g->program, r->tensor, &hull));
	r->fetched += fmin(fetched, box_bytes(g->program, r->tensor, &hull) / (1 - repeat));
}

/* EUs that have a tile together: each requests what it needs of it, of a divided loop a part. */
static double tile_requests(const struct graph *g, int phase, const struct load *r)
{
	bool divided = false;

	for (int l = 0; l < g->program->loops.n; l++)
		divided |= g->program->loops.v[l].phase == phase && loop_parts(&g->extents, l) > 1;
	return r->bytes * (double)g->grids[phase].total * graph_runs(g, r->loop, NONE) *
		(divided ? g->extents.parts : 1);
}

/* Everything fits into L2: each byte comes from device memory once per phase. What an earlier phase has stored is
 * in L2 already. */
static struct fetched fetched_once(const struct graph *g, int phase, double repeat, const struct load *r)
{
	if (r->tensor->role != TENSOR_INPUT)
		return (struct fetched){ .times = 1 };
	double once = all_bytes(g->program, r->tensor, r->index);
	double requested = tile_requests(g, phase, r);
	if (requested <= once)
		return (struct fetched){ .share = 1, .times = 1 };
	return (struct fetched){ .share = once / requested,
		.times = (1 - repeat_time(repeat, requested / once)) / (1 - repeat) };
}

/* Sums that fit into L2 stay there, and are written back once. Of others, each wave reads and writes back its own. */
static struct fetched added(const struct graph *g, int phase, const struct load *r, double waves,
	const struct vdevice *d)
{
	double all = all_bytes(g->program, r->tensor, r->index);
	double requested = tile_requests(g, phase, r);
	double share = all <= L2_USABLE * (double)d->l2_bytes ? all / fmax(requested, 1) :
		r->unique / fmax(r->requested, 1);

	return (struct fetched){ .share = fmin(share, 1), .times = 1,
		.region = waves > 0 ? fmax(r->unique / waves, SECTOR_BYTES) : 0 };
}

/* What the additions of a loop add to, one after the other, EUs add to at the same time. */
static void join_regions(struct arena *a, const struct graph *g, int phase, struct fetched *of)
{
	double *region = ARENA_ARRAY(a, g->program->loops.n + 1, double);	/* by loop + 1 */

	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].phase == phase && g->tasks.v[i].work.adds && !g->tasks.v[i].slice)
			region[g->tasks.v[i].loop + 1] += of[i].region;
	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].phase == phase && g->tasks.v[i].work.adds)
			of[i].region = region[g->tasks.v[i].loop + 1];
}

/* Do two loads of a tensor differ in nothing but the constants of their indices? */
static bool differ_in_constants(const struct tensor *t, const struct index_expr *x, const struct index_expr *y)
{
	for (int d = 0; d < t->rank; d++) {
		if (x[d].value || y[d].value || x[d].n != y[d].n)
			return false;
		for (int i = 0; i < x[d].n; i++) {
			const struct index_term *v = &x[d].term[i], *w = &y[d].term[i];

			if (v->axis != w->axis || v->coef != w->coef || v->div != w->div || v->mod != w->mod)
				return false;
		}
	}
	return true;
}

/* The number of tiles, in the plan's order, from one to its neighbour along axis i of the grid, at most. */
static double tiles_between(const struct plan *p, const struct grid *grid, int i)
{
	double n = 1;

	if (i >= grid->n - 2 && grid->n > 1) {		/* raster_order in plan/assign.c walks these */
		bool slow = (i == grid->n - 2) != (p->grid.raster == RASTER_COLUMNS);

		n = (double)max_i64(p->grid.group, 1);
		return slow ? n * (double)grid->tiles[i == grid->n - 2 ? i + 1 : i - 1] : n;
	}
	for (i++; i < grid->n; i++)
		n *= (double)grid->tiles[i];
	return n;
}

/* The most tiles that run between two that read the same elements by loads whose index of dimension d differs by up to shift[d]. */
static double tiles_apart(const struct plan *p, int phase, const struct tensor *t, const struct index_expr *index,
	const int64_t *shift)
{
	const struct graph *g = p->graph;
	const struct grid *grid = &g->grids[phase];
	double tiles = 0;

	for (int i = 0; i < grid->n; i++) {
		double most = 0;

		for (int d = 0; d < t->rank; d++)
			for (int k = 0; k < index[d].n; k++) {
				const struct index_term *x = &index[d].term[k];

				if (x->axis == grid->axis[i] && shift[d])
					most = fmax(most, ceil((double)shift[d] * (double)x->div / (fabs((double)x->coef) *
						(double)g->extents.tile[x->axis])));
			}
		tiles += fmin(most, (double)grid->tiles[i]) * tiles_between(p, grid, i);
	}
	return tiles;
}

/* Bytes that a tile loads and stores. */
static double tile_traffic(const struct graph *g, int phase)
{
	double sum = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		if (s->phase == phase && (s->kind == TASK_LOAD || s->kind == TASK_STORE))
			sum += s->work.global_bytes * graph_runs(g, s->loop, NONE);
	}
	return sum;
}

/* Is sTask i a load of the region and tensor of sTask t, at a constant distance from it? */
static bool is_shifted(const struct graph *g, int t, int i)
{
	const struct stask *x = &g->tasks.v[t], *y = &g->tasks.v[i];
	const struct node *n, *m;

	if (y->kind != TASK_LOAD || y->phase != x->phase || y->loop != x->loop)
		return false;
	n = stask_last_node(g, x);
	m = stask_last_node(g, y);
	return n->ref == m->ref && differ_in_constants(&g->program->tensors.v[n->ref], n->index, m->index);
}

/* What loads at constant distances share, of which sTask t is the first. */
static void share_shifted(const struct plan *p, int phase, int t, int eus, struct fetched *of)
{
	const struct graph *g = p->graph;
	const struct node *first = stask_last_node(g, &g->tasks.v[t]);
	const struct tensor *tensor = &g->program->tensors.v[first->ref];
	int64_t shift[RANK_MAX] = { 0 };
	struct axis_ranges at;
	double sum = 0, together, others;
	struct box all, box;
	int n = 0;

	for (int i = 0; i < g->program->axes.n; i++) {
		at.lo[i] = 0;
		at.hi[i] = g->program->axes.v[i].size - 1;
	}
	box_at(tensor, first->index, &at, &all);
	for (int i = t; i < g->tasks.n; i++) {
		if (!is_shifted(g, t, i) || g->tasks.v[i].slice)
			continue;
		box_at(tensor, stask_last_node(g, &g->tasks.v[i])->index, &at, &box);
		for (int d = 0; d < tensor->rank; d++) {
			all.of[d].lo = min_i64(all.of[d].lo, box.of[d].lo);
			all.of[d].hi = max_i64(all.of[d].hi, box.of[d].hi);
			shift[d] = all.of[d].hi - all.of[d].lo - (box.of[d].hi - box.of[d].lo);
		}
		sum += box_bytes(g->program, tensor, &box);
		n++;
	}
	together = box_bytes(g->program, tensor, &all);
	if (n < 2 || together >= sum || (tiles_apart(p, phase, tensor, first->index, shift) + eus) * tile_traffic(g, phase) >
	    L2_USABLE * (double)p->device->l2_bytes)
		return;
	others = sum / together;
	for (int i = t; i < g->tasks.n; i++)
		if (is_shifted(g, t, i)) {
			of[i].share /= others;
			of[i].times = fmax(of[i].times, (1 - repeat_time(p->device->l2_again, others)) / (1 - p->device->l2_again));
		}
}

/* How far the index of a dimension goes on from a tile to the next one along an axis of the grid; 0: it has no such axis, or neighbours
 * do not read one behind the other. */
static int64_t step_along(const struct graph *g, const struct index_expr *x, int axis)
{
	int64_t step = 0;

	for (int i = 0; i < x->n; i++)
		if (x->term[i].axis == axis)
			step += x->term[i].mod || g->extents.tile[axis] % x->term[i].div ? 0 :
				x->term[i].coef * (g->extents.tile[axis] / x->term[i].div);
	return step;
}

/* What the boxes of neighbouring tiles have in common, as windows have: of the load of sTask t, if what is read between two neighbours
 * stays in L2. */
static void share_edges(const struct plan *p, int phase, int t, int eus, struct fetched *of)
{
	const struct graph *g = p->graph;
	const struct grid *grid = &g->grids[phase];
	const struct node *n = stask_last_node(g, &g->tasks.v[t]);
	const struct tensor *tensor = &g->program->tensors.v[n->ref];
	int64_t shift[RANK_MAX] = { 0 };
	struct axis_ranges at;
	double share = 1;
	struct box box;

	ranges_set_tile(&g->extents, grid, 0, &at);
	box_at(tensor, n->index, &at, &box);
	for (int d = 0; d < tensor->rank; d++)
		for (int i = 0; i < grid->n; i++) {
			int64_t step = step_along(g, &n->index[d], grid->axis[i]), all;

			if (n->index[d].value || step <= 0 || grid->tiles[i] < 2)
				continue;
			all = box.of[d].hi - box.of[d].lo + 1;		/* of an index that has a value, the range has no end */
			if (all <= step)
				continue;
			shift[d] = all - step;
			share *= (double)step / (double)all;
		}
	if (share == 1 || (tiles_apart(p, phase, tensor, n->index, shift) + eus) * tile_traffic(g, phase) >
	    L2_USABLE * (double)p->device->l2_bytes)
		return;
	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].task == g->tasks.v[t].task && of[i].share > share) {
			of[i].times = (1 - repeat_time(p->device->l2_again, of[i].share / share)) / (1 - p->device->l2_again);
			of[i].share = share;
		}
}

/* ... of all loads of the phase. */
static void share_between_loads(const struct plan *p, int phase, int eus, struct fetched *of)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].kind == TASK_LOAD && g->tasks.v[t].phase == phase && !g->tasks.v[t].slice)
			share_edges(p, phase, t, eus, of);
	for (int t = 0; t < g->tasks.n; t++) {
		bool is_first = g->tasks.v[t].kind == TASK_LOAD && g->tasks.v[t].phase == phase && !g->tasks.v[t].slice;

		for (int i = 0; i < t && is_first; i++)
			is_first = !is_shifted(g, t, i);
		if (is_first)
			share_shifted(p, phase, t, eus, of);
	}
}

struct fetched *traffic_fetched(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d, const bool *warm)
{
	const struct graph *g = p->graph;
	struct fetched *out = ARENA_ARRAY(a, g->tasks.n, struct fetched);
	struct arena_mark scratch = arena_mark(a);
	bool fits = footprint(a, g, phase) <= L2_USABLE * (double)p->device->l2_bytes;
	int64_t waves = 0;

	for (int u = 0; u < d->eus; u++)
		waves = max_i64(waves, d->start[u + 1] - d->start[u]);
	for (int i = 0; i < g->tasks.n; i++)
		out[i] = (struct fetched){ .share = 1, .times = 1 };
	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		int64_t look = fits && !s->work.adds ? 0 : min_i64(waves, WAVES_MAX);

		if (s->phase != phase || (s->kind != TASK_LOAD && !s->work.adds) || s->slice)
			continue;
		const struct node *node = stask_last_node(g, s);
		struct load r = { .loop = s->loop, .index = node->index, .bytes = s->work.global_bytes * s->slices,
			.tensor = &g->program->tensors.v[node->ref] };
		struct fetched f = { .share = 1, .times = 1 };
		index_value_axes(g->program, node, r.chooses);
		for (int64_t i = 0; i < look; i++)
			count_wave(a, g, phase, d, p->device->l2_again, i * waves / look, &r);
		if (warm && warm[node->ref] && !s->work.adds)
			f = (struct fetched){ .times = 1 };
		else if (s->work.adds)
			f = added(g, phase, &r, (double)look, p->device);
		else if (fits)
			f = fetched_once(g, phase, p->device->l2_again, &r);
		else if (r.requested > 0)
			f = r.unique > 0 ? (struct fetched){ .share = r.unique / r.requested,
				.times = r.fetched / r.unique } :
				(struct fetched){ .times = 1 };
		for (int i = 0; i < g->tasks.n; i++)	/* its slices read alike */
			if (g->tasks.v[i].task == s->task)
				out[i] = f;
	}
	share_between_loads(p, phase, d->eus, out);
	join_regions(a, g, phase, out);
	arena_reset(a, scratch);
	return out;
}

/* Add the handover of the values that the entry's sTask computes for other lanes. */
static void handover_cost(const struct plan *p, const struct entry *en, struct entry_cost *c)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[en->task];

	c->handover_loop = NONE;
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
			if (program_loop_within(g->program, e->loop, c->handover_loop))
				c->handover_loop = e->loop;
			crosses = true;
		}
		if (crosses)
			c->handover += p->device->handoff_latency + (double)b->bytes / p->device->handoff_rate;
	}
}

/* With a kernel, its own operations have the accesses to shared memory (price.h), so these are not counted here.
 * Threads load complete sectors from L2; neighbouring elements then find the remainder of a sector there. */
static void apply_kernel(const struct plan *p, const struct entry *en, const struct task_price *t, struct work *w)
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

static bool is_in_divided_loop(const struct graph *g, int loop)
{
	while (loop != NONE && loop_parts(&g->extents, loop) == 1)
		loop = g->program->loops.v[loop].parent;
	return loop != NONE;
}

double *traffic_copied(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d)
{
	struct cluster c = plan_keep(p, phase);
	double *out;

	if (c.size == 1)
		return NULL;
	out = ARENA_ARRAY(a, p->graph->tasks.n, double);
	for (int i = 0; i < p->graph->tasks.n; i++)
		out[i] = p->graph->tasks.v[i].phase == phase && keep_holds(p, &c, i) ? keep_copied(a, p, phase, i, d) : 1;
	return out;
}

/* Which share of the bytes that device memory moves in the phase is written. */
static double written_share(const struct plan *p, int phase, const struct fetched *f)
{
	double read = 0, written = 0;

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		const struct fetched *x = &f[p->entries.v[i].task];
		double bytes = s->phase == phase && s->work.global_bytes > 0 ?
			s->work.global_bytes * graph_all_runs(p->graph, s) * fmin(x->share * fmax(x->times, 1), 1) : 0;

		read += s->kind == TASK_LOAD || s->work.adds ? bytes : 0;
		written += s->kind == TASK_STORE ? bytes : 0;
	}
	return written > 0 ? written / (read + written) : 0;
}

struct entry_cost *traffic_costs(struct arena *a, const struct plan *p, int phase,
	const struct fetched *f, const double *copied, const struct price *price, struct pace pace)
{
	struct entry_cost *out = ARENA_ARRAY(a, p->entries.n, struct entry_cost);
	struct cluster c = plan_cluster(p, phase);

	pace.written = written_share(p, phase, f);
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *en = &p->entries.v[i];
		struct work work = p->graph->tasks.v[en->task].work;

		if (p->graph->tasks.v[en->task].phase != phase)
			continue;
		work.unique_share = f[en->task].share;
		work.times = f[en->task].times;
		work.region = f[en->task].region;
		if (work.kind == WORK_MMA) {
			work.parts = plan_lane_parts(p, en->lane, phase);
			work.a_in_registers &= work.parts == 1;
		}
		work.sharers = cluster_shares(p, &c, en->task) ? c.size : 0;
		work.apart = is_in_divided_loop(p->graph, p->graph->tasks.v[en->task].loop);
		double share = copied && (!price_knows(price, phase) || price->tasks[en->task].kept) ? copied[en->task] : 1;
		work.global_bytes *= share;
		if (price_knows(price, phase))
			apply_kernel(p, en, &price->tasks[en->task], &work);
		out[i].cost = device_cost(p->device, en->seu, &work, lane_warps(p, en->lane), pace);
		out[i].cost.latency *= share;	/* what is left out is there at once */
		out[i].effort = device_effort(p->device, en->seu, &work);
		out[i].drain = out[i].drain_after = out[i].handover_loop = NONE;
		if (price_knows(price, phase))
			price_entry(price, p, i, f[en->task].share, &out[i]);
		else
			handover_cost(p, en, &out[i]);
	}
	return out;
}

struct entry_cost *traffic_plain(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d)
{
	return traffic_costs(a, p, phase, traffic_fetched(a, p, phase, d, NULL), traffic_copied(a, p, phase, d), NULL,
		(struct pace){ .active = d->eus, .clock_hz = p->device->clock_hz });
}

double traffic_latency(const struct entry_cost *c)
{
	return fmax(fmax(c->cost.busy, c->cost.alone), c->cost.memory) + c->cost.latency;
}
