#include "search/build.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "plan/keep.h"
#include "plan/phases.h"
#include "search/indices.h"
#include "search/limits.h"
#include "search/rings.h"
#include "search/second_split.h"
#include "search/task_groups.h"

/* The splits of the choice: that of its lanes, and what that leaves undivided. Returns how many: 0 if there is nothing
 * to split. */
static int find_splits(const struct space *s, const struct choice *c, struct split splits[2])
{
	const struct shaping how = { .split_offs = s->conversions, .nsplit_offs = c->split_off ? s->nconversions : 0 };
	int *tasks = ARENA_ARRAY(s->a, s->program->tasks.n + how.nsplit_offs, int);

	splits[0] = (struct split){ .ways = c->ways, .axis = space_split_axis(s->program, c), .tasks = tasks };
	if (splits[0].axis == NONE)
		return 0;
	splits[0].ntasks = split_all(s->program, &how, splits[0].axis, tasks);
	if (!splits[0].ntasks)
		return 0;
	tasks = ARENA_ARRAY(s->a, s->program->tasks.n, int);
	return 1 + (c->second_split && second_split(s, c, &splits[0], tasks, &splits[1]));
}

bool build_has_second_split(const struct space *s, const struct choice *c)
{
	struct arena_mark mark = arena_mark(s->a);
	struct choice x = *c;
	struct split splits[2];
	bool has;

	x.second_split = true;
	has = c->ways > 1 && c->split != SPLIT_TASKS && find_splits(s, &x, splits) == 2;
	arena_reset(s->a, mark);
	return has;
}

/* The windows that the tile of the choice has. Returns how many. */
static int find_windows(const struct space *s, const struct choice *c, struct window *out)
{
	int n = 0;

	for (int i = 0; i < s->nwindows; i++)
		if (graph_has_window(s->a, s->program, &c->tiling, &s->windows[i]))
			out[n++] = s->windows[i];
	return n;
}

enum err_code build_graph(const struct space *s, const struct choice *c, struct graph **out, struct err *e)
{
	struct arena_mark mark = arena_mark(s->a);
	struct split splits[2];
	struct window *windows = ARENA_ARRAY(s->a, s->nwindows, struct window);
	struct shaping how = { .splits = splits, .windows = windows, .nwindows = find_windows(s, c, windows) };
	enum err_code code;

	if (c->ways > 1 && c->split != SPLIT_TASKS) {
		how.nsplits = find_splits(s, c, splits);
		if (!how.nsplits)
			return err_set(e, ERR_INPUT, NOWHERE, "there is nothing to split");
	}
	if (c->split_off) {
		how.split_offs = s->conversions;
		how.nsplit_offs = s->nconversions;
		how.aliases = s->aliases;
		how.naliases = s->naliases;
	}
	code = graph_build(s->mem, s->program, &c->tiling, &how, out, e);
	arena_reset(s->a, mark);
	return code;
}

/* ---- the plan -------------------------------------------------------------------------- */

struct builder {
	const struct space *s;
	const struct choice *c;
	struct plan *p;
	const int *part;		/* by sTask: its lane among those that compute */
	/* by sTask: its loads must wait for the kernel in front (find_late_loads); NULL if nothing is said to be ready */
	const bool *late;
	struct err *e;
};

/* The slices of a split go to a lane each, and what is not split to the first; or sTasks have lanes of their own. */
static const int *find_parts(const struct space *s, const struct choice *c, const struct graph *g)
{
	int *part = ARENA_ARRAY(s->a, g->tasks.n, int);

	if (c->split == SPLIT_TASKS)
		group_tasks(s->a, g, s->device, c->ways, part);
	for (int i = 0; i < g->tasks.n; i++)
		if (c->split != SPLIT_TASKS || part[i] == NONE)
			part[i] = g->tasks.v[i].slices > 1 ? g->tasks.v[i].slice : 0;
	return part;
}

/* The name of the vector unit that can do what an engine does by default. NULL: there is none. */
static const char *vector_unit(const struct plan *p, int task)
{
	for (int u = 0; u < p->device->nseus; u++)
		if (p->device->seu[u].kind == SEU_VECTOR && device_can(p->device, u, &p->graph->tasks.v[task].work))
			return p->device->seu[u].name;
	return NULL;
}

/* By sTask: must it wait for the kernel in front, because it loads what that may still write, or takes its indices from
 * such a load? Loads that share indices wait together: a load that gives indices is in the lane of the loads that take
 * them, as each of these must have read them before the next ones are loaded. */
static const bool *find_late_loads(struct arena *a, const struct plan *p)
{
	const struct graph *g = p->graph;
	bool *late = ARENA_ARRAY(a, g->tasks.n, bool), changed = true;

	for (int t = 0; t < g->tasks.n; t++)
		late[t] = stask_loads_late(p, t);
	while (changed) {
		changed = false;
		for (int t = 0; t < g->tasks.n; t++) {
			const struct stask *s = &g->tasks.v[t];

			for (int i = 0; i < s->reads.n && (s->kind == TASK_LOAD || computes_indices(g, t)); i++) {
				int from = g->buffers.v[s->reads.v[i]].first;
				bool both = s->kind == TASK_LOAD && g->tasks.v[from].kind == TASK_LOAD;

				if (late[from] != late[t] && (late[from] || both)) {
					late[from] |= both;
					changed = late[t] = true;
				}
			}
		}
	}
	return late;
}

/* Are some loads ready before the kernel in front has ended, and others not? A lane of their own lets those fill their
 * rings. */
static bool has_late_loads(const struct builder *m)
{
	const struct graph *g = m->p->graph;
	int n[2] = { 0 };

	for (int i = 0; i < g->tasks.n && m->p->launch.ready.n; i++)
		if (g->tasks.v[i].kind == TASK_LOAD && !loads_indices(g, i))
			n[m->late[i]]++;
	return n[false] && n[true] && m->c->load_lanes != LOADS_KEPT;
}

/* The lane that shares the loads of p0; NULL: there is none. */
static const char *second_loader(const struct builder *m)
{
	return m->c->load_lanes == LOADS_TOGETHER && !has_late_loads(m) ? NULL : has_indices(m->p->graph) ? "p2" : "p1";
}

/* Does the load go to the second lane, if there is one? */
static bool is_for_second(const struct plan *p, enum load_division how, int task)
{
	const struct graph *g = p->graph;
	const struct stask *s = &g->tasks.v[task], *x = g->tasks.v;
	bool looped = g->program->loops.n > 0, behind = false;
	int before = 0;

	if (how == LOADS_KEPT)
		return keep_can(g, p->grid.along, task);
	if (how != LOADS_ALTERNATE) {
		for (int i = 0; i < task; i++)
			behind |= x[i].phase == s->phase && x[i].loop != NONE;
		return s->loop == NONE && behind == (how == LOADS_BEHIND);
	}
	for (int i = 0; i < task; i++)
		before += x[i].kind == TASK_LOAD && x[i].phase == s->phase && (x[i].loop != NONE) == looped && !loads_indices(g, i);
	return (s->loop != NONE) == looped && before % 2;
}

static const char *lane_of(const struct builder *m, int task, char name[16])
{
	const struct graph *g = m->p->graph;
	const struct stask *s = &g->tasks.v[task];
	const char *second = s->kind == TASK_LOAD ? second_loader(m) : NULL;

	snprintf(name, 16, "c%d", m->part[task]);
	if (loads_indices(g, task))
		return "p1";
	if (computes_indices(g, task))
		return "p0";
	if (s->kind != TASK_LOAD)
		return name;
	if (has_late_loads(m))
		return m->late[task] ? second : "p0";
	return second && is_for_second(m->p, m->c->load_lanes, task) ? second : "p0";
}

/* Do threads copy any of the lane's loads? A warp is enough to issue to an engine, and more would take registers. */
static bool has_copies(const struct builder *m, const char *lane)
{
	const struct graph *g = m->p->graph;
	char name[16];

	for (int i = 0; i < g->tasks.n; i++) {
		int load = space_load_index(g, i);

		if (g->tasks.v[i].kind == TASK_LOAD && strcmp(lane_of(m, i, name), lane) == 0 &&
		    (load == NONE || (m->c->copied_loads | m->c->loads_by_threads) >> load & 1))
			return true;
	}
	return false;
}

/* A warp is enough for what is computed of tables, too, of which a plan gives a lane four. */
static enum err_code add_loader(const struct builder *m, const char *lane)
{
	bool copies = has_copies(m, lane);

	return plan_lane(m->p, &(struct lane){ .name = lane, .warps = copies ? m->c->load_warps : 1,
		.registers = copies ? m->c->load_registers : 0, .replicas = 1 }, m->e);
}

static enum err_code add_lanes(const struct builder *m)
{
	const char *second = second_loader(m);
	int columns = limit_columns(m->s, m->p->graph, m->c);
	char name[16];

	TRY(add_loader(m, "p0"));
	if (has_indices(m->p->graph))
		TRY(plan_lane(m->p, &(struct lane){ .name = "p1", .replicas = 1 }, m->e));
	if (second)
		TRY(add_loader(m, second));
	for (int i = 0; i < m->c->ways; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		TRY(plan_lane(m->p, &(struct lane){ .name = name, .warps = m->c->warps, .columns = columns,
			.replicas = m->c->replicas }, m->e));
	}
	return OK;
}

static enum err_code append(const struct builder *m, int task, int at)
{
	const struct stask *s = &m->p->graph->tasks.v[task];
	char name[16];
	const char *unit;

	int load = space_load_index(m->p->graph, task);
	bool by_threads = (s->kind == TASK_STORE && m->c->stores_by_threads) ||
		(load != NONE && m->c->loads_by_threads >> load & 1) ||
		(s->kind == TASK_MMA && m->c->products_by_threads);

	unit = by_threads ? vector_unit(m->p, task) : s->kind == TASK_MMA && m->c->on_second ?
		m->p->device->seu[m->s->second_unit].name : s->kind == TASK_LOAD && m->c->loads_by_dma ?
		m->p->device->seu[m->s->dma_unit].name : NULL;
	TRY(plan_append(m->p, task, unit, lane_of(m, task, name), at, NOWHERE, m->e));
	m->p->entries.v[m->p->entries.n - 1].by_rows = !by_threads && load != NONE && m->c->loads_by_rows >> load & 1;
	return OK;
}

/* Append the entries of a slice in a region, in the chosen order, or the program's. */
static enum err_code append_region(const struct builder *m, int phase, int loop, int part)
{
	const struct graph *g = m->p->graph;
	int region = space_order_index(m->s->program, phase, loop);
	const struct orders *all = region != NONE ? &m->s->variants[m->c->split_off].orders[region] : NULL;
	const struct order *o = all && all->n > m->c->order[region] ? &all->v[m->c->order[region]] : NULL;

	for (int i = 0; i < (o ? o->n : g->tasks.n); i++)
		for (int t = 0; t < g->tasks.n; t++) {
			const struct stask *s = &g->tasks.v[t];

			if ((o ? s->task == o->v[i].task : t == i) && s->loop == loop &&
			    s->phase == phase && m->part[t] == part && s->kind != TASK_LOAD && !computes_indices(g, t))
				TRY(append(m, t, o ? o->v[i].at : 0));
		}
	return OK;
}

/* As people write it: loads and their indices, then lane by lane; of a lane, loops first, then what surrounds them. */
static enum err_code append_phase(const struct builder *m, int phase)
{
	const struct program *prog = m->p->graph->program;
	const struct graph *g = m->p->graph;

	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == phase && (g->tasks.v[t].kind == TASK_LOAD || computes_indices(g, t)))
			TRY(append(m, t, 0));
	for (int part = 0; part < m->c->ways; part++) {
		for (int loop = 0; loop < prog->loops.n; loop++)
			TRY(append_region(m, phase, loop, part));
		TRY(append_region(m, phase, NONE, part));
	}
	return OK;
}

/* Make lanes issue products one after another: the first product of a lane waits until the lane before it has issued
 * its last product of the iteration; that of the first lane, until the last lane has in the iteration before. */
static enum err_code add_issue_order(const struct builder *m, int loop)
{
	const struct plan *p = m->p;
	int first[8], last[8];

	for (int part = 0; part < m->c->ways && part < LEN(first); part++) {
		first[part] = last[part] = NONE;
		for (int i = 0; i < p->entries.n; i++) {
			const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];

			if (s->loop == loop && s->slice == part && s->slices > 1 &&
			    p->device->seu[p->entries.v[i].seu].kind == SEU_MATRIX) {
				first[part] = first[part] == NONE ? i : first[part];
				last[part] = i;
			}
		}
		if (first[part] == NONE)
			return OK;
	}
	for (int part = 0; part < m->c->ways; part++) {
		int before = part ? part - 1 : m->c->ways - 1;
		const struct entry *x = &p->entries.v[first[part]], *y = &p->entries.v[last[before]];
		int distance = x->at - y->at + !part;

		if (distance < 0)
			return OK;
		TRY(plan_wait(m->p, x->task, y->task, distance, WAIT_ISSUED, NOWHERE, m->e));
	}
	return OK;
}

static void add_extra_versions(const struct builder *m)
{
	struct plan *p = m->p;

	for (int i = 0; i < p->graph->buffers.n; i++) {
		int value = order_value(p->graph, i);

		if (value != NONE && value < 32 && m->c->extra_versions >> value & 1)
			p->versions[i] = 2;
	}
}

static enum err_code add_launch(const struct builder *m)
{
	const struct program *g = m->p->graph->program;
	const char *names[64];
	int n = 0;

	for (int t = 0; t < g->tensors.n && t < LEN(names); t++)
		if (m->s->ready >> t & 1)
			names[n++] = g->tensors.v[t].name;
	return n ? plan_launch(m->p, NEXT_AUTO, names, n, NOWHERE, m->e) : OK;
}

enum err_code build_plan(const struct space *s, const struct choice *c, struct plan *p, struct err *e)
{
	struct builder m = { s, c, p, find_parts(s, c, p->graph), NULL, e };
	const struct program *prog = p->graph->program;
	struct grid_plan grid = c->grid;
	int64_t most = 0;

	for (int i = 0; i < prog->phases.n; i++)
		most = max_i64(most, p->graph->grids[i].total);
	if (grid.section >= most)
		grid.section = 0;	/* all are in one, which is the same plan */
	TRY(plan_grid(p, &grid, NOWHERE, e));
	TRY(add_launch(&m));
	m.late = p->launch.ready.n ? find_late_loads(s->a, p) : NULL;
	TRY(add_lanes(&m));
	for (int phase = 0; phase < prog->phases.n; phase++)
		TRY(append_phase(&m, phase));
	for (int loop = NONE; c->issue_order && loop < prog->loops.n; loop++)
		TRY(add_issue_order(&m, loop));
	add_extra_versions(&m);
	search_rings(p, c->ring_depth, c->deeper_rings, c->tile_versions,
		c->ring_bytes ? c->ring_bytes : p->device->shared_bytes);
	return OK;
}

static uint64_t hash_entries(uint64_t h, const struct plan *p)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *x = &p->entries.v[i];
		const int one[] = { x->task, x->lane, x->seu, x->at };

		h = hash_bytes(h, one, sizeof(one));
	}
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		const int one[] = { w->task, w->on, w->distance, (int)w->when };

		h = hash_bytes(h, one, sizeof(one));
	}
	return h;
}

uint64_t build_hash(const struct choice *c, const struct plan *p)
{
	/* chiplets: all have the same */
	const int64_t tiles[] = { p->grid.raster, p->grid.group, p->grid.longest_first, p->grid.section,
		p->grid.dynamic, p->grid.keep };

	return hash_bytes(build_hash_without_raster(c, p), tiles, sizeof(tiles));
}

uint64_t build_hash_without_raster(const struct choice *c, const struct plan *p)
{
	/* the axis along which a cluster's tiles lie */
	int along = p->grid.along != NONE ? 8 + p->grid.along : p->grid.cluster > 1 ?
		1 + 2 * (int)p->grid.raster + (p->grid.group > 1) : 0;
	const int64_t numbers[] = { c->split_off, c->ways, c->split, c->warps, c->replicas, c->load_warps, c->load_registers,
		c->copied_loads, p->grid.eus, p->grid.cluster, p->grid.divided, along };
	int columns = 0;		/* of the computing lanes, which have as many */
	uint64_t h = hash_bytes(hash_basis(0), c->tiling.extent, sizeof(c->tiling.extent));

	h = hash_bytes(h, numbers, sizeof(numbers));
	for (int i = 0; i < p->lanes.n; i++)
		columns += p->lanes.v[i].columns;
	if (columns)
		h = hash_bytes(h, &columns, sizeof(columns));
	h = hash_bytes(h, p->versions, (size_t)p->graph->buffers.n * sizeof(*p->versions));
	return hash_entries(h, p);
}

/* More iterations of a loop, or more tiles, than any of the lists has on which a plan of at most that many
 * versions is checked: a few more than offsets, versions and distances reach, in all tiles of which replicas
 * alternate (plan/lists.c). */
static int64_t most_that_matter(const struct plan *p, int versions)
{
	int64_t reach = versions, replicas = 1;

	for (int i = 0; i < p->entries.n; i++)
		reach += p->entries.v[i].at > 0 ? p->entries.v[i].at : -p->entries.v[i].at;
	for (int i = 0; i < p->waits.n; i++)
		reach += max_i64(p->waits.v[i].distance, 0);
	for (int i = 0; i < p->lanes.n; i++)
		replicas = max_i64(replicas, p->lanes.v[i].replicas);
	return replicas * (2 * reach + 8);
}

static uint64_t hash_ints(uint64_t h, const struct ints *v)
{
	return hash_bytes(hash_mix(h, (uint64_t)v->n), v->v, (size_t)v->n * sizeof(*v->v));
}

static uint64_t hash_graph(uint64_t h, const struct graph *g)
{
	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const int one[] = { s->phase, s->loop, (int)s->kind, s->position };

		h = hash_ints(hash_ints(hash_bytes(h, one, sizeof(one)), &s->reads), &s->writes);
	}
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *x = &g->edges.v[i];
		const int one[] = { x->from, x->to, (int)x->kind, x->loop, x->distance, x->reuse, x->chain, x->buffer };

		h = hash_bytes(h, one, sizeof(one));
	}
	return h;
}

uint64_t build_hash_order(const struct plan *p, int *reach)
{
	const struct graph *g = p->graph;
	uint64_t h = hash_graph(hash_basis(0), g);
	int64_t most;

	*reach = 2;			/* the order may need some more than the plan has */
	for (int i = 0; i < g->buffers.n; i++)
		*reach = p->versions[i] + 2 > *reach ? p->versions[i] + 2 : *reach;
	most = most_that_matter(p, *reach);
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		const int one[] = { b->phase, b->loop, b->first, b->alias_of, (int)plan_scope(p, i), p->versions[i] };

		h = hash_bytes(h, one, sizeof(one));
	}
	for (int i = 0; i < g->program->loops.n; i++)
		h = hash_mix(hash_mix(h, (uint64_t)min_i64(g->trips[i].least, most)),
			(uint64_t)min_i64(g->trips[i].most, most));
	for (int i = 0; i < g->program->phases.n; i++)
		h = hash_mix(h, (uint64_t)min_i64(g->grids[i].total, most));
	for (int i = 0; i < p->lanes.n; i++)
		h = hash_mix(h, (uint64_t)p->lanes.v[i].replicas);
	return hash_entries(h, p);
}
