#include "plan/cluster.h"

#include "plan/problem.h"

enum { GROUPS_MOST = 1 << 16 };		/* that are looked at one by one */

static const struct stask *stask_at(const struct plan *p, int task)
{
	return &p->graph->tasks.v[task];
}

/* Is the expression the same on all tiles of a group? */
static bool is_same(const struct plan *p, const struct cluster *c, const struct index_expr *x)
{
	/* a kernel shares the same loads at all sizes */
	const struct program *g = (p->largest ? p->largest : p)->graph->program;

	if (x->value)
		return false;
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (g->axes.v[t->axis].packs == c->axis)
			return false;
		if (t->axis == c->axis && t->div < g->axes.v[c->axis].size &&
			t->div % (c->size * p->graph->extents.tile[c->axis]))
			return false;
	}
	return true;
}

/* Does anything on the lane read what the sTask loads? */
static bool reads_own(const struct plan *p, int lane, int task)
{
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = stask_at(p, p->entries.v[i].task);

		for (int k = 0; k < s->reads.n && p->entries.v[i].lane == lane; k++)
			if (s->reads.v[k] == stask_at(p, task)->writes.v[0])
				return true;
	}
	return false;
}

/* Is it a table from which a load has its indices? The slot is free when that load has completed, which is signaled in its own
 * block alone. */
static bool holds_indices(const struct graph *g, int task)
{
	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].kind == TASK_LOAD && stask_reads(&g->tasks.v[i], g->tasks.v[task].writes.v[0]))
			return true;
	return false;
}

bool cluster_shares(const struct plan *p, const struct cluster *c, int task)
{
	const struct program *g = p->graph->program;
	const struct stask *s = stask_at(p, task);
	int entry = plan_entry_of(p, task);
	const struct node *load;
	const struct seu *u;
	int lane;

	if (c->size == 1 || cluster_divides(c) || s->kind != TASK_LOAD || entry == NONE)
		return false;
	lane = p->entries.v[entry].lane;
	u = &p->device->seu[p->entries.v[entry].seu];
	if (u->kind != SEU_COPY || !u->async || p->entries.v[entry].by_rows || p->lanes.v[lane].replicas > 1 || reads_own(p, lane, task) ||
	    holds_indices(p->graph, task))
		return false;
	load = stask_last_node(p->graph, s);
	for (int d = 0; d < g->tensors.v[load->ref].rank; d++)
		if (!is_same(p, c, &load->index[d]))
			return false;
	return true;
}

/* The position in the grid of the axis that the plan names, if that has several tiles there; else NONE. */
static int named_axis(const struct plan *p, const struct grid *g)
{
	const struct axis *axes = p->graph->program->axes.v;
	int along = p->grid.along;

	/* an axis and its twin have one name, so a script means both */
	if (along != NONE && axes[along].is_twin)
		along = axes[along].twin_of;
	for (int i = 0; i < g->n; i++)
		if ((axes[g->axis[i]].is_twin ? axes[g->axis[i]].twin_of : g->axis[i]) == along && g->tiles[i] > 1)
			return i;
	return NONE;
}

/* The position in the grid of the axis along which the raster goes first; NONE: neither of
 * the last two has several tiles. */
static int first_axis(const struct plan *p, const struct grid *g)
{
	bool down = p->grid.raster == RASTER_COLUMNS;
	int last = g->n - 1, before = g->n - 2;
	int slow = down ? last : before, fast = down ? before : last;
	int first = p->grid.group > 1 ? slow : fast, then = p->grid.group > 1 ? fast : slow;

	if (first >= 0 && g->tiles[first] > 1)
		return first;
	return then >= 0 && g->tiles[then] > 1 ? then : NONE;
}

static struct cluster no_cluster(const struct plan *p, int phase)
{
	return (struct cluster){ .size = 1, .axis = NONE, .tiles = 1, .stride = 1,
		.groups = p->graph->grids[phase].total };
}

struct cluster cluster_along(const struct plan *p, int phase, int size)
{
	const struct grid *g = &p->graph->grids[phase];
	/* a kernel has clusters along the same axis at all sizes */
	const struct grid *most = &(p->largest ? p->largest : p)->graph->grids[phase];
	struct cluster c = no_cluster(p, phase);
	int at = p->grid.along == NONE ? first_axis(p, most) : named_axis(p, most);

	if (size == 1 || at == NONE)
		return c;
	c.size = size;
	c.axis = g->axis[at];
	c.tiles = g->tiles[at];
	for (int i = at + 1; i < g->n; i++)
		c.stride *= g->tiles[i];
	c.groups = g->total / c.tiles * ceil_div(c.tiles, c.size);
	return c;
}

/* The clusters that the phase would have; whether they have anything to share is for plan_cluster. */
static struct cluster possible_cluster(const struct plan *p, int phase)
{
	return cluster_along(p, phase, p->grid.cluster);
}

/* The clusters of a phase whose loops are divided: a group is a tile. */
static struct cluster divided_cluster(const struct plan *p, int phase)
{
	struct cluster c = no_cluster(p, phase);

	for (int l = 0; l < p->graph->program->loops.n; l++)
		if (p->graph->program->loops.v[l].phase == phase && loop_parts(&p->graph->extents, l) > 1)
			c.size = p->graph->extents.parts;
	return c;
}

struct cluster plan_cluster(const struct plan *p, int phase)
{
	struct cluster c = possible_cluster(p, phase);

	if (p->grid.divided)
		return divided_cluster(p, phase);

	for (int i = 0; i < p->graph->tasks.n && c.size > 1; i++)
		if (p->graph->tasks.v[i].phase == phase && cluster_shares(p, &c, i))
			return c;
	return no_cluster(p, phase);
}

/* ---- what they forbid --------------------------------------------------------------- */

/* Does the loop, directly in the phase, run over the same tiles in all of a group? */
static bool group_agrees(const struct plan *p, const struct cluster *c, int phase, int loop, int64_t first)
{
	int64_t from[2], end[2];

	for (int i = 0; i < c->size; i++) {
		struct axis_ranges at;

		ranges_set_tile(&p->graph->extents, &p->graph->grids[phase], cluster_tile(c, first, i), &at);
		visited_iterations(&p->graph->extents, loop, &at, &from[i > 0], &end[i > 0]);
		if (i && (from[0] != from[1] || end[0] != end[1]))
			return false;
	}
	return true;
}

static bool loop_agrees(const struct plan *p, const struct cluster *c, int phase, int loop)
{
	const struct grid *g = &p->graph->grids[phase];
	const struct loop *l = &p->graph->program->loops.v[loop];

	if (!loop_bounds_use(p->graph->program, l, c->axis))
		return true;
	if (l->has_length || l->parent != NONE || c->groups > GROUPS_MOST ||
		p->graph->program->axes.v[c->axis].multiple)
		return false;
	for (int64_t t = 0; t < g->total; t++)
		if (t / c->stride % c->tiles % c->size == 0 && !group_agrees(p, c, phase, loop, t))
			return false;
	return true;
}

/* A tile that several EUs have would be added to memory several times. */
static void check_additions(const struct plan *p, const struct cluster *c, int phase, struct arena *a,
	struct problems *out)
{
	const struct program *g = p->graph->program;
	const char *known = g->axes.v[c->axis].multiple ? "may not divide" : "do not divide";

	for (int i = 0; i < g->nodes.n && (c->tiles % c->size || g->axes.v[c->axis].multiple); i++) {
		const struct node *n = &g->nodes.v[i];

		if (n->adds && g->tasks.v[n->task].phase == phase)
			problem_add(a, out, PROBLEM_CLUSTER, p->grid_loc, "plan:grid{cluster=1}", "clusters of %d %s "
				"the %lld tiles along '%s', so that several EUs have the last one, and '%s' would add it several "
				"times", c->size, known, (long long)c->tiles, g->axes.v[c->axis].name,
					g->tasks.v[n->task].name);
	}
}

void cluster_check(const struct plan *p, struct arena *a, struct problems *out)
{
	static const char hint[] = "plan:grid{cluster=1}";
	int eus = p->grid.eus ? p->grid.eus : (int)min_i64(p->device->eus, p->device->cluster_eus);
	int size = p->grid.cluster;
	const struct program *g = p->graph->program;
	struct srcloc loc = p->grid_loc;
	struct cluster first = { .size = 1 };	/* that there could be */
	bool any = false;

	cluster_check_divided(p, a, out);
	if (size == 1 || p->grid.divided)
		return;
	if (eus < size) {
		problem_add(a, out, PROBLEM_CLUSTER, loc, arena_strf(a, "plan:grid{eus=%d}", size),
			"a cluster of %d takes as many EUs, the plan uses %d", size, eus);
		return;
	}
	for (int phase = 0; phase < g->phases.n; phase++) {
		struct cluster c = plan_cluster(p, phase);

		any |= c.size > 1;
		first = first.size > 1 ? first : possible_cluster(p, phase);
		if (c.size > 1)
			check_additions(p, &c, phase, a, out);
		for (int l = 0; l < g->loops.n && c.size > 1; l++)
			if (g->loops.v[l].phase == phase && !loop_agrees(p, &c, phase, l))
				problem_add(a, out, PROBLEM_CLUSTER, loc, hint, "clusters of %d take "
					"neighbours along '%s' together, but a loop over '%s' does not run over the "
					"same tiles in all of them", c.size, g->axes.v[c.axis].name,
					g->axes.v[g->loops.v[l].axis[0]].name);
	}
	if (any)
		return;
	if (first.size == 1 && p->grid.along != NONE)
		problem_add(a, out, PROBLEM_CLUSTER, loc, hint, "there are no neighbouring tiles along '%s' for "
			"clusters of %d", g->axes.v[p->grid.along].name, size);
	else if (first.size == 1)
		problem_add(a, out, PROBLEM_CLUSTER, loc, hint, "there are no neighbouring tiles for clusters of %d",
			size);
	else
		problem_add(a, out, PROBLEM_CLUSTER, loc, hint, "clusters of %d along '%s' have nothing to share: no "
			"copy engine brings neighbours the same tile on a lane of which nobody reads it", first.size,
			g->axes.v[first.axis].name);
}
