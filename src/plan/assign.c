/* Assigns tiles to EUs, and finds EUs that do the same. */
#include "plan/assign.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "plan/cluster.h"
#include "plan/keep.h"
#include "plan/keys.h"

/* Tiles of a phase by how often their loops run. */
struct kinds {
	int n;
	int64_t *work;			/* by kind: iterations of all loops, and 1 for everything else */
	int32_t *of;			/* by tile; NULL: all are of kind 0 */
};

struct counter {
	const struct graph *graph;
	int64_t iterations;
	uint64_t pattern;		/* hash of the trip counts, in order of the program */
};

static void count_body(struct counter *c, const struct item *items, int n, const struct axis_ranges *at, int64_t times);

/* Count the steps [first, last) of a loop of which a loop inside keeps some, evenly spread ones, without looking at each. False,
 * and nothing is counted: that is not all that the loop has inside, or other loops have bounds there. */
static bool count_kept_steps(struct counter *c, const struct loop *outer, int64_t first, int64_t last, const struct axis_ranges *at,
	int64_t times)
{
	const struct program *p = c->graph->program;
	const struct loop *l = NULL;
	int64_t kept = last - first;

	for (int i = 0; i < outer->body.n; i++) {
		if (!outer->body.v[i].is_loop)
			continue;
		if (l || !p->loops.v[outer->body.v[i].id].keeps_steps)
			return false;
		l = &p->loops.v[outer->body.v[i].id];
	}
	for (int k = 0; k < p->loops.n; k++)
		if (l && &p->loops.v[k] != l && program_loop_within(p, k, (int)(l - p->loops.v)) &&
		    (p->loops.v[k].has_from || p->loops.v[k].has_upto || p->loops.v[k].has_length))
			return false;
	if (!l)
		return false;
	if (l->typical) {
		double share = (double)l->typical / (double)program_steps_around(p, l);

		kept = (int64_t)(floor((double)last * share) - floor((double)first * share));
	}
	c->iterations += times * kept;
	c->pattern = hash_mix(hash_mix(c->pattern, first), kept);
	count_body(c, l->body.v, l->body.n, at, times * kept);
	return true;
}

/* Count the iterations of a body that runs `times` times with these ranges of its axes. Only if a loop further inside
 * has bounds are its iterations looked at one by one. */
static void count_body(struct counter *c, const struct item *items, int n, const struct axis_ranges *at, int64_t times)
{
	for (int i = 0; i < n; i++) {
		const struct program *p = c->graph->program;
		struct axis_ranges inside;
		const struct loop *l;
		bool bounded_inside = false;
		int64_t first, last;

		if (!items[i].is_loop)
			continue;
		l = &p->loops.v[items[i].id];
		for (int k = 0; k < p->loops.n; k++)
			bounded_inside |= k != items[i].id && (p->loops.v[k].has_from || p->loops.v[k].has_upto ||
				p->loops.v[k].has_length) && program_loop_within(p, k, items[i].id);
		visited_iterations(&c->graph->extents, items[i].id, at, &first, &last);
		c->iterations += times * (last - first);
		c->pattern = hash_mix(c->pattern, last - first);
		if (!bounded_inside) {
			count_body(c, l->body.v, l->body.n, at, times * (last - first));
			continue;
		}
		if (count_kept_steps(c, l, first, last, at, times))
			continue;
		inside = *at;
		for (int64_t t = first; t < last; t++) {
			ranges_set_iteration(&c->graph->extents, items[i].id, t, &inside);
			count_body(c, l->body.v, l->body.n, &inside, times);
		}
	}
}

static struct counter count_tile(const struct graph *g, int phase, int64_t tile)
{
	const struct phase *ph = &g->program->phases.v[phase];
	struct counter c = { .graph = g };
	struct axis_ranges at;

	ranges_set_tile(&g->extents, &g->grids[phase], tile, &at);
	count_body(&c, ph->body.v, ph->body.n, &at, 1);
	return c;
}

int64_t tile_iterations(const struct graph *g, int phase, int64_t tile)
{
	return 1 + count_tile(g, phase, tile).iterations;
}

/* The kind of each tile, given the kind of each combination of tiles along the axes that bounds depend on. */
static void spread_kinds(const struct grid *grid, const int64_t *stride, const int32_t *of_combo, int32_t *of)
{
	int64_t at[2 * RANK_MAX] = { 0 }, combo = 0;

	for (int64_t t = 0; t < grid->total; t++) {
		of[t] = of_combo[combo];
		for (int i = grid->n - 1; i >= 0; i--) {
			combo += stride[i];
			if (++at[i] < grid->tiles[i])
				break;
			combo -= stride[i] * grid->tiles[i];
			at[i] = 0;
		}
	}
}

/* Only tiles along the axes that loop bounds depend on can differ, so only one tile
 * of each of their combinations is counted. */
static void find_kinds(struct arena *a, const struct graph *g, int phase, struct kinds *out)
{
	const struct grid *grid = &g->grids[phase];
	int64_t stride[2 * RANK_MAX] = { 0 }, step[2 * RANK_MAX], combos = 1, tiles = 1;
	int32_t *of_combo;
	struct keys keys;

	for (int i = grid->n - 1; i >= 0; i--) {
		bool bounds = false;

		for (int l = 0; l < g->program->loops.n; l++)
			bounds |= g->program->loops.v[l].phase == phase &&
				loop_trips_use(&g->program->loops.v[l], grid->axis[i]);
		step[i] = tiles;
		tiles *= grid->tiles[i];
		if (bounds) {
			stride[i] = combos;
			combos *= grid->tiles[i];
		}
	}
	*out = (struct kinds){ .work = ARENA_ARRAY(a, combos, int64_t) };
	of_combo = ARENA_ARRAY(a, combos, int32_t);
	keys_init(&keys, a, combos);
	for (int64_t c = 0; c < combos; c++) {
		struct counter count;
		int64_t tile = 0, *kind;
		bool is_new;

		for (int i = 0; i < grid->n; i++)
			if (stride[i])
				tile += c / stride[i] % grid->tiles[i] * step[i];
		count = count_tile(g, phase, tile);
		kind = keys_at(&keys, count.pattern, &is_new);
		if (is_new) {
			*kind = out->n++;
			out->work[*kind] = 1 + count.iterations;
		}
		of_combo[c] = (int32_t)*kind;
	}
	if (out->n == 1)
		return;
	out->of = ARENA_ARRAY(a, grid->total, int32_t);
	spread_kinds(grid, stride, of_combo, out->of);
}

static int64_t tile_work(const struct kinds *k, int64_t tile)
{
	return k->work[k->of ? k->of[tile] : 0];
}

/* The grid's tiles in the plan's raster: `group` tiles of the slower of the last two axes are walked for each step of
 * the faster one, so that tiles that run at the same time share rows and columns. Of a cluster's tiles, the first
 * stands for all; they are neighbours along one of these axes, or along one before them. */
static void raster_order(const struct grid_plan *how, const struct grid *grid, const struct cluster *c, int64_t *out)
{
	int64_t rows = grid->n > 1 ? grid->tiles[grid->n - 2] : 1;
	int64_t columns = grid->n > 0 ? grid->tiles[grid->n - 1] : 1;
	bool down = how->raster == RASTER_COLUMNS;
	int64_t slow = down ? columns : rows, fast = down ? rows : columns;
	int64_t group = max_i64(1, min_i64(how->group, slow)), n = 0;
	int64_t by_row = grid->n > 1 && c->axis == grid->axis[grid->n - 2] ? c->size : 1;
	int64_t by_column = grid->n > 0 && c->axis == grid->axis[grid->n - 1] ? c->size : 1;
	int64_t by_slow = down ? by_column : by_row, by_fast = down ? by_row : by_column;

	slow = ceil_div(slow, by_slow);
	group = ceil_div(group, by_slow);
	for (int64_t first = 0; first < grid->total; first += rows * columns) {
		if (first / c->stride % c->tiles % c->size)
			continue;	/* tiles of other members of the clusters */
		for (int64_t block = 0; block < slow; block += group)
			for (int64_t f = 0; f < fast; f += by_fast)
				for (int64_t s = block; s < min_i64(block + group, slow); s++)
					out[n++] = first + (down ? f * columns + s * by_slow :
						s * by_slow * columns + f);
	}
}

static int by_falling_work(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return (a < b) - (a > b);
}

/* Sort tiles of several kinds by decreasing work, those of each section of so many; equal ones stay in order. Two counting sorts,
 * of all tiles by work and then by section, take as long for short sections as for long ones. */
static void sort_longest_first(struct arena *a, const struct kinds *k, int64_t section, int64_t *tiles, int64_t n)
{
	int64_t *level = ARENA_ARRAY(a, k->n, int64_t), *by_work = ARENA_ARRAY(a, n, int64_t);
	int64_t *next = ARENA_ARRAY(a, max_i64(k->n + 1, ceil_div(n, section)), int64_t), *sorted = ARENA_ARRAY(a, n, int64_t);
	int *rank = ARENA_ARRAY(a, k->n, int), levels = 0;

	for (int i = 0; i < k->n; i++)
		level[i] = k->work[i];
	qsort(level, (size_t)k->n, sizeof(*level), by_falling_work);
	for (int i = 0; i < k->n; i++)
		if (!i || level[i] != level[levels - 1])
			level[levels++] = level[i];
	for (int i = 0; i < k->n; i++)
		rank[i] = (int)((int64_t *)bsearch(&k->work[i], level, (size_t)levels,
			sizeof(*level), by_falling_work) - level);
	for (int64_t t = 0; t < n; t++)
		next[rank[k->of[tiles[t]]] + 1]++;
	for (int i = 0; i < levels; i++)
		next[i + 1] += next[i];
	for (int64_t t = 0; t < n; t++)
		by_work[next[rank[k->of[tiles[t]]]]++] = t;
	for (int64_t s = 0; s * section < n; s++)
		next[s] = s * section;
	for (int64_t i = 0; i < n; i++)
		sorted[next[by_work[i] / section]++] = tiles[by_work[i]];
	for (int64_t t = 0; t < n; t++)
		tiles[t] = sorted[t];
}

/* EUs by the work they have so far: a heap with the least on top, of equal ones the first. */
struct load {
	int64_t work;
	int eu;
};

static bool load_less(const struct load *x, const struct load *y)
{
	return x->work < y->work || (x->work == y->work && x->eu < y->eu);
}

static void sift_down(struct load *heap, int n, int i)
{
	for (;;) {
		int child = 2 * i + 1;
		struct load x = heap[i];

		if (child + 1 < n && load_less(&heap[child + 1], &heap[child]))
			child++;
		if (child >= n || !load_less(&heap[child], &x))
			return;
		heap[i] = heap[child];
		heap[child] = x;
		i = child;
	}
}

/* The unit (an EU or a cluster) of each group of tiles, if the first ones go round the units so many times, and then each group
 * goes to the unit that is free first. */
static void assign_to_free(struct arena *a, const struct kinds *k, int units, int rounds, const int64_t *groups,
	int64_t n, int32_t *unit_of)
{
	struct load *heap = ARENA_ARRAY(a, units, struct load);
	int64_t first = min_i64((int64_t)rounds * units, n);

	for (int u = 0; u < units; u++)
		heap[u].eu = u;		/* a heap as it stands */
	for (int64_t t = 0; t < first; t++) {
		unit_of[t] = (int32_t)(t % units);
		heap[t % units].work += tile_work(k, groups[t]);
	}
	for (int i = units / 2; first && i-- > 0;)
		sift_down(heap, units, i);
	for (int64_t t = first; t < n; t++) {
		unit_of[t] = heap[0].eu;
		heap[0].work += tile_work(k, groups[t]);
		sift_down(heap, units, 0);
	}
}

/* The unit of the t-th of so many groups. Blocks go round the chiplets, and so do groups that are assigned to one unit after the
 * other. For a chiplet to get consecutive ones, groups of a round, which are taken at the same time, go to the units of the
 * first chiplet, then to those of the next: the round's groups are divided evenly, also those of the last round, which is
 * not full. */
static int32_t unit_of_group(int64_t t, int64_t groups, int64_t units, int64_t chiplets)
{
	int64_t first = t - t % units, round = min_i64(units, groups - first), at = t - first;
	int64_t each = round / chiplets, more = round % chiplets, ahead = more * (each + 1);

	if (at < ahead)
		return (int32_t)(at % (each + 1) * chiplets + at / (each + 1));
	return (int32_t)((at - ahead) % each * chiplets + more + (at - ahead) / each);
}

/* Tiles that are assigned together: one to each EU of a cluster, or one after the other to one EU. */
static struct cluster plan_groups(const struct plan *p, int phase)
{
	return p->grid.keep > 1 ? plan_keep(p, phase) : plan_cluster(p, phase);
}

/* How many tiles the group has. */
static int group_tiles(const struct plan *p, const struct cluster *c, int64_t first)
{
	return p->grid.keep > 1 ? (int)min_i64(c->size, c->tiles - first / c->stride % c->tiles) : c->size;
}

/* Groups of tiles in the plan's order. */
static void order_groups(struct arena *a, const struct plan *p, const struct cluster *c, const struct grid *grid,
	const struct kinds *k, int64_t *groups)
{
	int64_t section = p->grid.section ? ceil_div(p->grid.section, c->size) : c->groups;

	raster_order(&p->grid, grid, c, groups);
	if (p->grid.longest_first && k->n > 1)
		sort_longest_first(a, k, section, groups, c->groups);
}

int plan_own_tiles(struct arena *a, const struct plan *p, int phase)
{
	struct arena_mark mark = arena_mark(a);
	int64_t versions = 1;
	struct kinds k;

	find_kinds(a, p->graph, phase, &k);
	arena_reset(a, mark);
	for (int b = 0; b < p->graph->buffers.n && k.n == 1; b++) {
		const struct buffer *x = &p->graph->buffers.v[b];

		if (x->phase == phase && x->loop == NONE && plan_scope(p, b) == SCOPE_SHARED)
			versions = max_i64(versions, p->versions[b]);
	}
	if (versions >= ceil_div(p->graph->grids[phase].total, plan_eus(p, phase)))
		versions = p->graph->grids[phase].total / plan_eus(p, phase);
	else
		versions = min_i64(versions, p->graph->grids[phase].total / (2 * plan_eus(p, phase)));
	return (int)max_i64(1, versions);
}

int64_t *plan_order_tiles(struct arena *a, const struct plan *p, int phase)
{
	struct cluster c = plan_cluster(p, phase);
	int64_t *order = ARENA_ARRAY(a, c.groups, int64_t);
	struct arena_mark mark = arena_mark(a);
	struct kinds k = { .n = 1 };

	if (p->grid.longest_first)
		find_kinds(a, p->graph, phase, &k);
	order_groups(a, p, &c, &p->graph->grids[phase], &k, order);
	arena_reset(a, mark);
	return order;
}

void plan_assign_tiles(struct arena *a, const struct plan *p, int phase, struct tile_assignment *out)
{
	const struct grid *grid = &p->graph->grids[phase];
	struct cluster c = plan_groups(p, phase);
	int each = p->grid.keep > 1 ? 1 : c.size;	/* EUs of a unit */
	int eus = plan_eus(p, phase), units = eus / each, chiplets = (int)max_i64(p->grid.chiplets, 1);
	int64_t total = p->grid.keep > 1 ? grid->total : c.groups * c.size;
	struct kinds k = { .n = 1 };
	int64_t *groups, *next;
	int32_t *unit_of;
	struct arena_mark scratch;

	*out = (struct tile_assignment){ .eus = eus, .cluster = each, .total = total,
		.order = ARENA_ARRAY(a, total, int64_t), .start = ARENA_ARRAY(a, eus + 1, int64_t) };
	scratch = arena_mark(a);
	groups = ARENA_ARRAY(a, c.groups, int64_t);
	unit_of = ARENA_ARRAY(a, c.groups, int32_t);
	next = ARENA_ARRAY(a, eus, int64_t);
	if (p->grid.longest_first || p->grid.dynamic)
		find_kinds(a, p->graph, phase, &k);
	order_groups(a, p, &c, grid, &k, groups);
	for (int64_t t = 0; t < c.groups; t++)
		unit_of[t] = p->grid.longest_first ? (int32_t)(t % units) : unit_of_group(t, c.groups, units, chiplets);
	if (k.n > 1)			/* equal tiles go round the units anyway */
		assign_to_free(a, &k, units, p->grid.dynamic, groups, c.groups, unit_of);
	if (p->grid.longest_first) {
		for (int64_t t = 0; t < c.groups; t++)	/* units have other numbers */
			unit_of[t] = unit_of_group(unit_of[t], units, units, chiplets);
	}
	for (int64_t t = 0; t < c.groups; t++)
		for (int i = 0; i < group_tiles(p, &c, groups[t]); i++)
			out->start[unit_of[t] * each + i % each + 1]++;
	for (int u = 0; u < eus; u++) {
		next[u] = out->start[u];
		out->start[u + 1] += out->start[u];
	}
	for (int64_t t = 0; t < c.groups; t++)
		for (int i = 0; i < group_tiles(p, &c, groups[t]); i++)
			out->order[next[unit_of[t] * each + i % each]++] = cluster_tile(&c, groups[t], i);
	arena_reset(a, scratch);
}

bool plan_raster(struct arena *a, const struct plan *p, int phase, struct tile_raster *out)
{
	const struct grid *grid = &p->graph->grids[phase];
	struct cluster c = plan_cluster(p, phase);
	bool by_row = grid->n > 1 && c.axis == grid->axis[grid->n - 2], by_column = grid->n > 0 && c.axis == grid->axis[grid->n - 1];
	int64_t rows = grid->n > 1 ? grid->tiles[grid->n - 2] : 1, columns = grid->n > 0 ? grid->tiles[grid->n - 1] : 1;
	int64_t row_size = by_row ? c.size : 1, column_size = by_column ? c.size : 1;
	bool down = p->grid.raster == RASTER_COLUMNS;
	int64_t of_group = down ? column_size : row_size;	/* the plan counts tiles in a group, the raster clusters */
	struct arena_mark mark = arena_mark(a);
	struct kinds k = { .n = 1 };

	if (program_has_any(p->graph->program) || p->grid.chiplets > 1 || p->grid.keep > 1)
		return false;
	if (c.axis != NONE && ((!by_row && !by_column) || c.tiles % c.size))
		return false;		/* clusters of planes, or with a tile that several EUs have */
	if (p->grid.longest_first) {	/* equal tiles go round the EUs anyway */
		find_kinds(a, p->graph, phase, &k);
		arena_reset(a, mark);
	}
	*out = (struct tile_raster){ .positions = c.groups * c.size, .size = c.size, .plane_stride = rows * columns,
		.slow = down ? columns / column_size : rows / row_size, .fast = down ? rows / row_size : columns / column_size,
		.slow_stride = down ? column_size : columns * row_size, .fast_stride = down ? columns * row_size : column_size,
		.member_stride = c.axis == NONE ? 0 : c.stride };
	out->group = ceil_div(max_i64(1, min_i64(p->grid.group, out->slow * of_group)), of_group);
	return k.n == 1;
}

int64_t plan_most_tiles(struct arena *a, const struct plan *p, int phase)
{
	struct cluster c = plan_cluster(p, phase);
	struct arena_mark mark = arena_mark(a);
	struct tile_assignment d;
	struct kinds k = { .n = 1 };
	int64_t most = 0;

	if (p->grid.dynamic)		/* one EU may take all but those that the others begin with */
		return max_i64(1, c.groups - plan_eus(p, phase) + 1);
	if (p->grid.longest_first && program_has_any(p->graph->program))
		return c.groups;	/* at other sizes other tiles may be together */
	if (p->grid.longest_first)
		find_kinds(a, p->graph, phase, &k);
	if (k.n == 1 && p->grid.keep == 1) {
		arena_reset(a, mark);
		return ceil_div(c.groups, plan_eus(p, phase) / c.size);
	}
	plan_assign_tiles(a, p, phase, &d);
	for (int i = 0; i < d.eus; i++)
		most = max_i64(most, d.start[i + 1] - d.start[i]);
	arena_reset(a, mark);
	return most;
}

void assignment_cache_init(struct assignment_cache *d, struct mem *mem)
{
	*d = (struct assignment_cache){ 0 };
	for (int i = 0; i < ASSIGNMENTS_KEPT; i++)
		arena_init(&d->v[i].arena, mem);
}

void assignment_cache_free(struct assignment_cache *d)
{
	for (int i = 0; i < ASSIGNMENTS_KEPT; i++)
		arena_release(&d->v[i].arena);
}

static void drop_oldest(struct assignment_cache *d)
{
	struct kept_assignment *x = &d->v[d->oldest];

	d->tiles -= x->of.total;
	x->key = 0;
	x->classes = NULL;
	x->fetched = NULL;
	x->of.total = 0;
	arena_reset(&x->arena, (struct arena_mark){ 0 });
	d->oldest = (d->oldest + 1) % ASSIGNMENTS_KEPT;
	d->n--;
}

struct kept_assignment *assignment_of(struct assignment_cache *d, const struct plan *p, int phase)
{
	const struct tiling *t = &p->graph->tiling;
	struct cluster c = plan_groups(p, phase);
	const int64_t others[] = { phase, p->grid.keep, plan_eus(p, phase), p->grid.raster, p->grid.group, p->grid.longest_first,
		p->grid.section, p->grid.dynamic, p->grid.chiplets, c.size, c.axis, c.groups, p->graph->program->tasks.n };
	uint64_t key = hash_bytes(hash_bytes(hash_basis(0), t, sizeof(*t)), others, sizeof(others));
	struct kept_assignment *x;

	for (int k = 0; k < d->n; k++) {
		x = &d->v[(d->oldest + k) % ASSIGNMENTS_KEPT];
		if (x->key == key)
			return x;
	}
	while (d->n == ASSIGNMENTS_KEPT || (d->n && d->tiles + c.groups * c.size > TILES_KEPT))
		drop_oldest(d);
	x = &d->v[(d->oldest + d->n) % ASSIGNMENTS_KEPT];
	arena_reset(&x->arena, (struct arena_mark){ 0 });	/* of a call that ran out of memory */
	plan_assign_tiles(&x->arena, p, phase, &x->of);
	x->key = key;
	d->tiles += x->of.total;
	d->n++;
	return x;
}

static int by_class_work(const void *x, const void *y)
{
	const struct eu_class *a = x, *b = y;

	if (a->work != b->work)
		return a->work < b->work ? 1 : -1;
	return (a->eu > b->eu) - (a->eu < b->eu);
}

int eu_classes(struct arena *a, const struct plan *p, int phase, const struct tile_assignment *d, struct eu_class **out)
{
	struct eu_class *v = ARENA_ARRAY(a, d->eus, struct eu_class);
	struct arena_mark scratch = arena_mark(a);
	struct kinds kinds;
	struct keys keys;
	int n = 0;

	find_kinds(a, p->graph, phase, &kinds);
	keys_init(&keys, a, d->eus);
	for (int u = 0; u < d->eus; u++) {
		uint64_t hash = hash_mix(0, d->start[u + 1] - d->start[u]);
		int64_t work = 0, *class;
		bool is_new;

		for (int64_t t = d->start[u]; t < d->start[u + 1]; t++) {
			work += tile_work(&kinds, d->order[t]);
			if (kinds.of)
				hash = hash_mix(hash, kinds.of[d->order[t]]);
		}
		class = keys_at(&keys, hash, &is_new);
		if (is_new) {
			*class = n;
			v[n++] = (struct eu_class){ .eu = u, .work = work, .alike = kinds.n == 1 };
		}
		v[*class].members++;
	}
	arena_reset(a, scratch);
	qsort(v, (size_t)n, sizeof(*v), by_class_work);
	*out = v;
	return n;
}
