#include "plan/keep.h"

#include "plan/problem.h"

enum {
	EUS_SEEN = 4,			/* of whose tiles copies are counted */
	TILES_SEEN = 256,		/* of each */
	FEW_ITERATIONS = 8,		/* of a loop, whose bytes all slots together may have */
};

#define SHARE_WORTH 0.1			/* of the bytes of a tile: of less, nothing is gained that could be measured */

static const struct stask *stask_at(const struct plan *p, int task)
{
	return &p->graph->tasks.v[task];
}

/* Have neighbours along the axis the same value of the expression, but where a group of values ends? */
static bool is_common(const struct graph *g, int axis, const struct index_expr *x)
{
	if (x->value)
		return false;
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (g->program->axes.v[t->axis].packs != NONE || (t->axis == axis && t->div < 2 * g->extents.tile[axis]))
			return false;
	}
	return true;
}

/* Does nothing but the load write to the slots? */
static bool has_own_slots(const struct graph *g, int buffer)
{
	if (g->buffers.v[buffer].alias_of != NONE || g->buffers.v[buffer].staged)
		return false;
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].alias_of == buffer)
			return false;
	return true;
}

/* Does the load stand outside of loops, or in one whose iterations the tile alone says? */
static bool is_in_plain_loop(const struct program *g, int loop)
{
	const struct loop *l = loop == NONE ? NULL : &g->loops.v[loop];

	return !l || (l->parent == NONE && !l->has_length && !l->keeps_steps);
}

static int64_t greatest_divisor(const struct graph *g, const struct node *n, int axis)
{
	int64_t unit = 0;

	for (int d = 0; d < g->program->tensors.v[n->ref].rank; d++)
		for (int i = 0; i < n->index[d].n; i++)
			if (n->index[d].term[i].axis == axis)
				unit = unit ? gcd_i64(unit, n->index[d].term[i].div) : n->index[d].term[i].div;
	return unit % g->extents.tile[axis] ? g->extents.tile[axis] : unit;
}

int keep_parts(const struct graph *g, int task, struct keep_part *out)
{
	const struct node *n = stask_last_node(g, &g->tasks.v[task]);
	int parts = 0;

	for (int a = 0; a < g->program->axes.n; a++) {
		int64_t unit = greatest_divisor(g, n, a);

		if (unit && unit < g->program->axes.v[a].size)
			out[parts++] = (struct keep_part){ .axis = a, .unit = unit, .n = ceil_div(g->program->axes.v[a].size, unit) };
	}
	return parts;
}

int64_t keep_key(const struct keep_part *part, int parts, const int64_t *lo)
{
	int64_t key = 0;

	for (int i = 0; i < parts; i++)
		key = key * part[i].n + lo[part[i].axis] / part[i].unit;
	return key + 1;
}

/* Can a word of a slot name all that the load may bring? */
static bool has_few_parts(const struct graph *g, int task)
{
	struct keep_part part[AXES_MAX];
	int parts = keep_parts(g, task, part);
	int64_t all = 1;

	for (int i = 0; i < parts && all < INT32_MAX; i++)
		all *= part[i].n;
	return all < INT32_MAX;
}

bool keep_can(const struct graph *g, int axis, int task)
{
	const struct stask *s = &g->tasks.v[task];
	const struct node *n;

	if (s->kind != TASK_LOAD || s->slices > 1 || !is_in_plain_loop(g->program, s->loop) || !has_own_slots(g, s->writes.v[0]))
		return false;
	n = stask_last_node(g, s);
	for (int d = 0; d < g->program->tensors.v[n->ref].rank; d++)
		if (!is_common(g, axis, &n->index[d]))
			return false;
	return g->program->tensors.v[n->ref].role == TENSOR_INPUT && has_few_parts(g, task);
}

/* All bytes that the load brings to a tile. */
static double loaded_bytes(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];

	return s->kind == TASK_LOAD || s->kind == TASK_STORE ? s->work.global_bytes * graph_runs(g, s->loop, NONE) : 0;
}

static bool has_few_iterations(const struct graph *g, int loop)
{
	const struct loop *l = loop == NONE ? NULL : &g->program->loops.v[loop];

	return !l || (l->naxes == 1 && extent_tiles(&g->extents, l->axis[0]) <= FEW_ITERATIONS);
}

uint64_t keep_axes(const struct graph *g)
{
	uint64_t out = 0;

	for (int phase = 0; phase < g->program->phases.n; phase++)
		for (int i = 0; i < g->grids[phase].n; i++) {
			int axis = g->grids[phase].axis[i];
			double kept = 0, all = 0;

			for (int t = 0; t < g->tasks.n; t++) {
				double bytes = g->tasks.v[t].phase == phase ? loaded_bytes(g, t) : 0;

				all += bytes;
				kept += has_few_iterations(g, g->tasks.v[t].loop) && keep_can(g, axis, t) ? bytes : 0;
			}
			if (g->grids[phase].tiles[i] > 1 && kept > SHARE_WORTH * all)
				out |= UINT64_C(1) << axis;
		}
	return out;
}

bool keep_holds(const struct plan *p, const struct cluster *c, int task)
{
	int entry = plan_entry_of(p, task);
	const struct seu *u = entry == NONE ? NULL : &p->device->seu[p->entries.v[entry].seu];

	return c->size > 1 && u && u->kind == SEU_COPY && u->async && !p->entries.v[entry].by_rows &&
		p->lanes.v[p->entries.v[entry].lane].replicas == 1 && keep_can(p->graph, c->axis, task);
}

struct cluster plan_keep(const struct plan *p, int phase)
{
	struct cluster c = cluster_along(p, phase, p->grid.keep);

	for (int i = 0; i < p->graph->tasks.n && c.size > 1; i++)
		if (p->graph->tasks.v[i].phase == phase && keep_holds(p, &c, i))
			return c;
	return cluster_along(p, phase, 1);
}

/* What the words of a ring's slots say, while tiles are gone through. */
struct slots {
	int64_t word[VERSIONS_MAX];
	int64_t life, copied;
	int versions;
};

static void fill_slot(struct slots *s, const struct keep_part *part, int parts, const struct axis_ranges *at)
{
	int64_t key = keep_key(part, parts, at->lo), *word = &s->word[s->life++ % s->versions];

	s->copied += *word != key;
	*word = key;
}

double keep_copied(struct arena *a, const struct plan *p, int phase, int task, const struct tile_assignment *d)
{
	const struct stask *s = stask_at(p, task);
	const struct graph *g = p->graph;
	struct keep_part part[AXES_MAX];
	int parts = keep_parts(p->graph, task, part);
	struct arena_mark mark = arena_mark(a);
	struct axis_ranges *at = ARENA_NEW(a, struct axis_ranges);
	int64_t lives = 0, copied = 0;

	for (int k = 0; k < EUS_SEEN; k++) {
		struct slots slots = { .versions = p->versions[s->writes.v[0]] };
		int u = (int)((int64_t)k * d->eus / EUS_SEEN);

		for (int64_t t = d->start[u]; t < min_i64(d->start[u + 1], d->start[u] + TILES_SEEN); t++) {
			int64_t first = 0, last = 1;

			ranges_set_tile(&g->extents, &g->grids[phase], d->order[t], at);
			if (s->loop != NONE)
				visited_iterations(&g->extents, s->loop, at, &first, &last);
			for (int64_t i = first; i < last; i++) {
				if (s->loop != NONE)
					ranges_set_iteration(&g->extents, s->loop, i, at);
				fill_slot(&slots, part, parts, at);
			}
		}
		lives += slots.life;
		copied += slots.copied;
	}
	arena_reset(a, mark);
	return lives ? (double)copied / (double)lives : 1;
}

void keep_check(const struct plan *p, struct arena *a, struct problems *out)
{
	static const char hint[] = "plan:grid{keep=1}";

	if (p->grid.keep == 1)
		return;
	for (int phase = 0; phase < p->graph->program->phases.n; phase++)
		if (plan_keep(p, phase).size > 1)
			return;
	if (p->grid.along != NONE)
		problem_add(a, out, PROBLEM_KEEP, p->grid_loc, hint, "tiles that are neighbours along '%s' have nothing to keep: a copy "
			"engine brings them no bytes that are the same", p->graph->program->axes.v[p->grid.along].name);
	else
		problem_add(a, out, PROBLEM_KEEP, p->grid_loc, hint, "tiles that are neighbours have nothing to keep: a copy engine "
			"brings them no bytes that are the same; `along` names the axis");
}
