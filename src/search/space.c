/* Finds what a program leaves to choose on a device: the extents of its axes, the orders of its loops, conversions that
 * can be sTasks of their own (space.h).
 *
 * dims.c finds the extents. The usual values of everything else (space_first_choice) are experience with plans made by
 * hand: they decide how long a search takes, not what is legal. */
#include "search/space.h"

#include <math.h>

#include "base/hash.h"
#include "lower/lower.h"
#include "plan/keep.h"
#include "search/axis_use.h"
#include "search/build.h"
#include "search/dims.h"
#include "search/limits.h"
#include "search/sides.h"
#include "search/starts.h"
#include "search/task_groups.h"
#include "target/target.h"

enum { BUILDS_MOST = 256 };		/* graphs that are tried until one can be built */

int space_unit(const struct space *s, const struct choice *c, const struct work *w)
{
	return w->kind == WORK_MMA && c && c->on_second ? s->second_unit : device_seu_for(s->device, w);
}

int space_load_index(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];
	int n = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *x = &g->tasks.v[i];

		n += x->kind == TASK_LOAD && x->slice == 0 && x->task < s->task;
	}
	return s->kind == TASK_LOAD && n < LOADS_MAX ? n : NONE;
}

/* Indices are those of loops, then those of phases. In a phase with loops only the orders of these are chosen. */
int space_order_index(const struct program *p, int phase, int loop)
{
	int region = loop != NONE ? loop : p->loops.n + phase;

	for (int l = 0; l < p->loops.n && loop == NONE; l++)
		if (p->loops.v[l].phase == phase)
			return NONE;
	return region < CHOICE_REGIONS ? region : NONE;
}

/* Can the choice split the product along the axis? Along the contracted axis only its operands are split. */
static bool is_split_axis(const struct program *p, const struct choice *c, const struct node *mma, int axis)
{
	if (c->tiling.extent[axis] <= 1)
		return false;
	if (c->split == SPLIT_DEPTH)
		return !node_has_axis(mma, axis);
	return node_has_axis(mma, axis) && program_axis_role(p, p->tasks.v[mma->task].phase, axis) == AXIS_GRID;
}

/* The first axis of which a tile has several elements: all that it computes may be split there. */
static int first_tile_axis(const struct program *p, const struct choice *c)
{
	for (int axis = 0; axis < p->axes.n; axis++)
		if (c->tiling.extent[axis] > 1 && axis_has_role(p, axis, AXIS_GRID) && !axis_is_reduced(p, axis))
			return axis;
	return NONE;
}

int space_split_axis(const struct program *p, const struct choice *c)
{
	if (!has_mma(p))
		return first_tile_axis(p, c);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i], *operand;

		if (n->op != OP_MMA || n->task == NONE || !p->tasks.v[n->task].nodes.n)
			continue;
		operand = &p->nodes.v[n->arg[c->split != SPLIT_ROWS]];	/* the first has the rows */
		for (int k = 0; k < operand->naxes; k++)
			if (is_split_axis(p, c, n, operand->axis[k]))
				return operand->axis[k];
	}
	return NONE;
}

/* ---- conversions ----------------------------------------------------------------------- */

static const char *conversion_name(const struct space *s, int i)
{
	const char *name = i ? arena_strf(s->a, "convert%d", i + 1) : "convert";

	while (program_find_task(s->program, name) != NONE)
		name = arena_strf(s->a, "%s_", name);
	return name;
}

/* The product of two loaded values in their own type of 16 bits is one instruction for each two elements, where the
 * target has it: what is made of them is then split off with the conversion. */
static int steps_of_conversion(const struct space *s, const struct buffer *b)
{
	const struct program *p = s->program;
	const struct node *n = &p->nodes.v[b->node], *x = &p->nodes.v[n->arg[0]];
	int uses = 0, others = 0;

	if (b->scope != SCOPE_REGISTERS || !(target_of(s->device)->pairs >> n->type & 1) || x->op != OP_MUL || x->task != n->task)
		return 1;
	for (int k = 0; k < 2; k++)
		if (p->nodes.v[x->arg[k]].op != OP_LOAD || p->nodes.v[x->arg[k]].type != n->type)
			return 1;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *o = &p->nodes.v[i];

		uses += ints_hold(o->arg, node_arity(o), n->arg[0]);
		others += o->task == n->task && o != n && o != x && o->op != OP_CONST && o->op != OP_INDEX;
	}
	return uses == 1 && others ? 2 : 1;
}

/* An sTask that ends with a conversion to a product's first operand must wait until the product of the iteration
 * before has read the operand's registers. If the conversion is split off, it alone waits. */
static void find_conversions(struct space *s, const struct graph *g)
{
	const struct program *p = s->program;

	for (int b = 0; b < g->buffers.n && s->nconversions < CONVERSIONS_MAX; b++) {
		const struct buffer *x = &g->buffers.v[b];

		if (x->node == NONE || !x->matrix_a || x->loop == NONE || x->slice || p->nodes.v[x->node].op != OP_CAST)
			continue;
		s->conversions[s->nconversions] = (struct split_off){ .node = x->node,
			.value = arena_strf(s->a, "%s", x->name), .name = conversion_name(s, s->nconversions),
			.loc = NOWHERE, .steps = steps_of_conversion(s, x) };
		s->nconversions++;
	}
}

/* Conversions that are split off read values that would otherwise never leave their sTask. So that these take no more
 * registers, each becomes an alias of a value of the same size and type that its sTask reads.
 *
 * *graph is the graph of choice c without aliases. These are tried one by one, and kept if a graph can be built with
 * them. Afterwards it is the last graph that was tried, or NULL if that one could not be built. */
static void find_aliases(struct space *s, struct graph **graph, const struct choice *c)
{
	const struct graph *without = *graph;
	struct alias found[CONVERSIONS_MAX];
	int n = 0;

	for (int b = 0; b < without->buffers.n; b++) {
		const struct buffer *x = &without->buffers.v[b];
		const struct stask *maker = &without->tasks.v[x->first];

		if (x->node == NONE || x->loop == NONE || x->scope != SCOPE_REGISTERS)
			continue;
		for (int k = 0; k < maker->reads.n && n < CONVERSIONS_MAX; k++) {
			const struct buffer *y = &without->buffers.v[maker->reads.v[k]];

			if (y->node != NONE && y->loop == x->loop && y->scope == SCOPE_REGISTERS &&
			    y->bytes == x->bytes && y->type == x->type)
				found[n++] = (struct alias){ arena_strf(s->a, "%s", x->name),
					arena_strf(s->a, "%s", y->name), NOWHERE };
		}
	}
	for (int i = 0; i < n; i++) {
		struct err e;

		graph_free(*graph);
		*graph = NULL;
		s->aliases[s->naliases++] = found[i];
		if (build_graph(s, c, graph, &e))
			s->naliases--;
	}
}

static void find_orders(struct space *s, const struct graph *g, struct variant *v)
{
	v->exists = true;
	for (int ph = 0; ph < s->program->phases.n; ph++)
		for (int l = NONE; l < s->program->loops.n; l++) {
			int region = space_order_index(s->program, ph, l);

			if (region != NONE && (l == NONE || s->program->loops.v[l].phase == ph))
				orders_find(g, s->device, ph, l, &v->orders[region]);
		}
}

struct choice space_first_choice(const struct space *s)
{
	/* one lane of a warpgroup computes; rings as deep as usual plans have them; the next tile's loads run ahead */
	struct choice c = { .ways = 1, .warps = 4, .replicas = 1, .load_lanes = LOADS_TOGETHER, .on_second = s->on_second,
		.ring_depth = s->program->loops.n ? 6 : 4, .tile_versions = 2 };

	for (int i = 0; i < s->ndims; i++)
		for (int k = 0; k < s->dims[i].n && !c.tiling.extent[s->dims[i].axis]; k++)
			if (s->dims[i].starts >> k & 1)
				c.tiling.extent[s->dims[i].axis] = s->dims[i].extent[k];
	for (int i = 0; i < s->nsides; i++)
		sides_set(s, &s->sides[i], 0, &c.tiling);
	/* Groups of tiles of a product share what they read of both operands in L2. Of uneven tiles, an EU gets a few
	 * of a section: enough to end together with others, few enough for L2 to hold what all of them read. */
	c.grid = (struct grid_plan){ .raster = RASTER_ROWS, .group = s->has_products ? 8 : 1,
		.longest_first = s->uneven, .section = s->uneven ? SECTION_TILES * s->device->eus : 0, .cluster = 1,
		.keep = 1, .along = NONE, .chiplets = s->device->chiplets };
	return c;
}

/* ---- smaller shapes ---------------------------------------------------------------------- */

/* The least start of the dimension, halved so many times. The search starts without tiles of an axis that has none. */
static int64_t halved_extent(const struct space *s, const struct dim *d, int times)
{
	int64_t size = s->program->axes.v[d->axis].size, extent = d->starts ? d->extent[__builtin_ctz(d->starts)] : size;

	if (d->side)
		extent = d->side->least[d->at];
	return min_i64(round_up(max_i64(extent >> times, 1), d->multiple), size);
}

/* How many halvings give another extent each time. */
static int halvings(const struct space *s, const struct dim *d)
{
	int n = 0;

	while (!d->wanted && halved_extent(s, d, n + 1) < halved_extent(s, d, n))
		n++;
	return n;
}

/* Goes to the next way to distribute `level` halvings over dimensions from `from` on; the first way if all are zero. */
static bool distribute(const struct space *s, int from, int level, int halved[AXES_MAX], bool begun)
{
	int most = from < s->ndims ? halvings(s, &s->dims[from]) : 0;

	if (from == s->ndims)
		return level == 0 && !begun;
	if (begun && distribute(s, from + 1, level - halved[from], halved, true))
		return true;
	for (halved[from] = begun ? halved[from] + 1 : 0; halved[from] <= most && halved[from] <= level; halved[from]++)
		if (distribute(s, from + 1, level - halved[from], halved, false))
			return true;
	return false;
}

bool space_next_smaller(const struct space *s, int level, int halved[AXES_MAX], bool *begun, struct choice *c)
{
	if (!distribute(s, 0, level, halved, *begun))
		return false;
	*begun = true;
	for (int i = 0; i < s->ndims; i++)
		c->tiling.extent[s->dims[i].axis] = halved_extent(s, &s->dims[i], halved[i]);
	return true;
}

/* With half and twice as much: what is too large for a plan in one proportion may not be in another. */
void space_add_extents(struct space *s, const struct choice *c)
{
	for (int i = 0; i < s->ndims; i++) {
		struct dim *d = &s->dims[i];
		int64_t extent = c->tiling.extent[d->axis];

		dims_insert(d, extent);
		if (!d->wanted && extent / 2 && extent / 2 % d->multiple == 0)
			dims_insert(d, extent / 2);
		if (!d->wanted && extent * 2 <= s->program->axes.v[d->axis].size)
			dims_insert(d, extent * 2);
	}
}

/* ---- variants ------------------------------------------------------------------------------ */

/* A choice whose graph can be built, in *graph: with the first extents or, if that is too large, smaller ones. */
static enum err_code build_any(struct space *s, struct graph **graph, struct choice *c, struct err *e)
{
	enum err_code code = build_graph(s, c, graph, e);

	for (int level = 1, tried = 0; code && level <= SPACE_LEVELS; level++) {
		int halved[AXES_MAX] = { 0 };
		bool begun = false;
		struct err other;

		while (code && tried++ < BUILDS_MOST && space_next_smaller(s, level, halved, &begun, c))
			code = build_graph(s, c, graph, &other);
	}
	return code;
}

/* How many lanes can have sTasks of their own: 1 for a program without products that have rows. */
static int count_groups(const struct space *s, const struct graph *g)
{
	struct arena_mark mark = arena_mark(s->a);
	int n = group_tasks(s->a, g, s->device, GROUPS_MOST, ARENA_ARRAY(s->a, g->tasks.n, int));

	arena_reset(s->a, mark);
	return s->has_products ? n : 1;
}

/* The first choice, but with the most rows of products that the search starts from. */
static struct choice choice_of_most_rows(const struct space *s)
{
	struct choice c = space_first_choice(s);

	for (int i = 0; i < s->ndims; i++) {
		const struct dim *d = &s->dims[i];

		if (d->starts && !d->side && axis_use_of(s->program, d->axis).row)
			c.tiling.extent[d->axis] = d->extent[31 - __builtin_clz(d->starts)];
	}
	return c;
}

/* Cycles of the matrix unit for all products of the graph; INFINITY: it cannot do one of them, or has no instruction
 * for it. */
static double product_cycles(const struct vdevice *d, const struct graph *g, int unit)
{
	const struct target *t = target_of(d);
	double cycles = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		if (s->work.kind != WORK_MMA)
			continue;
		if (!device_can(d, unit, &s->work) || !target_matrix(t, d->seu[unit].async, s->work.sparse, s->work.type))
			return INFINITY;
		cycles += device_cost(d, unit, &s->work, 4, (struct pace){ .active = d->eus, .clock_hz = d->clock_hz }).busy *
			graph_all_runs(g, s);
	}
	return cycles;
}

/* The instructions of a second matrix unit may have fewer rows than those of the first, which then pads the rows of a
 * tile to more. With many rows the first one is faster, or there would be no use for it. */
static int find_second_unit(const struct space *s, struct graph **graph)
{
	const struct vdevice *d = s->device;
	struct choice c = choice_of_most_rows(s);
	double cycles = INFINITY, now;
	int first = NONE, second = NONE;
	struct err e;

	for (int u = 0; u < d->nseus; u++)
		if (d->seu[u].kind == SEU_MATRIX && first == NONE)
			first = u;
		else if (d->seu[u].kind == SEU_MATRIX)
			second = u;
	if (second == NONE || !s->has_products || build_graph(s, &c, graph, &e))
		return NONE;
	cycles = product_cycles(d, *graph, first);
	now = product_cycles(d, *graph, second);
	graph_free(*graph);
	*graph = NULL;
	return now < cycles && isfinite(cycles) ? second : NONE;
}

/* The first unit of copies that a lane counts, if loads go to another one unless a plan says so; NONE. */
static int find_dma_unit(const struct vdevice *d)
{
	const struct target *t = target_of(d);
	int first, u;

	FIND_FIRST(first, d->nseus, d->seu[first].kind == SEU_COPY);
	FIND_FIRST(u, d->nseus, d->seu[u].kind == SEU_COPY && target_seen(t, &d->seu[u], true) == SEEN_COUNTED);
	return t->dma_bytes && u != first ? u : NONE;
}

/* Find what depends on the graph: first with each conversion in its sTask, then with conversions split off. There is
 * only one graph at a time, *graph, so that the caller can free it if memory runs out (space.h). */
static void find_variants(struct space *s, struct graph **graph)
{
	struct choice c = space_first_choice(s);
	struct err e;

	s->second_unit = find_second_unit(s, graph);
	if (!build_any(s, graph, &c, &s->unbuilt)) {
		for (int l = 0; l < s->program->loops.n; l++)
			s->uneven |= (*graph)->trips[l].least != (*graph)->trips[l].most;
		find_orders(s, *graph, &s->variants[c.split_off]);
		find_conversions(s, *graph);
		s->ngroups = count_groups(s, *graph);
		for (int t = 0; t < (*graph)->tasks.n; t++)
			s->nloads = max_i64(s->nloads, space_load_index(*graph, t) + 1);
		s->kept_axes = s->has_boxes ? keep_axes(*graph) : 0;
		s->has_warp_products = limit_has_warp_products(s, *graph);
	}
	graph_free(*graph);
	*graph = NULL;
	c.split_off = true;
	if (s->nconversions && !build_graph(s, &c, graph, &e)) {
		find_aliases(s, graph, &c);
		if (*graph || !build_graph(s, &c, graph, &e))
			find_orders(s, *graph, &s->variants[c.split_off]);
	}
	graph_free(*graph);
	*graph = NULL;
}

enum err_code space_init(struct space *s, struct arena *a, struct mem *mem, const struct program *p,
	const struct vdevice *d, const struct wanted *want, struct window *windows, int nwindows, struct graph **graph, struct err *e)
{
	*s = (struct space){ .a = a, .mem = mem, .program = p, .device = d, .second_unit = NONE, .windows = windows, .nwindows = nwindows,
		.dma_unit = find_dma_unit(d), .copy_registers = lower_has_target(d) ? lower_copy_registers(d) : 0,
		.has_boxes = lower_has_target(d) && lower_has_boxes(d), .ready = want ? want->ready : 0 };
	TRY(dims_find(s, want, e));
	sides_find(s, graph);
	starts_choose_elsewhere(s, graph);
	find_variants(s, graph);
	return OK;
}

bool space_has_tile_loads(const struct program *p, bool behind)
{
	for (int i = 0; i < p->tasks.n; i++) {
		bool looped = false, before = false;

		for (int k = 0; k < p->tasks.n; k++)
			if (p->tasks.v[k].phase == p->tasks.v[i].phase && p->tasks.v[k].loop != NONE) {
				looped = true;
				before |= k < i;
			}
		if (p->tasks.v[i].kind == TASK_LOAD && p->tasks.v[i].loop == NONE && looped && before == behind)
			return true;
	}
	return false;
}

uint64_t choice_hash(const struct choice *c)
{
	const int64_t v[] = { c->split_off, c->ways, c->warps, c->columns, c->replicas, c->split, c->second_split, c->load_lanes, c->load_warps,
		c->load_registers, c->copied_loads, c->loads_by_threads, c->loads_by_rows, c->loads_by_dma, c->issue_order, c->extra_versions,
		c->ring_bytes, c->ring_depth, c->deeper_rings, c->tile_versions, c->stores_by_threads,
		c->products_by_threads, c->on_second, c->grid.eus, c->grid.raster,
		c->grid.group, c->grid.longest_first, c->grid.section, c->grid.cluster, c->grid.keep, c->grid.along, c->grid.divided,
		c->grid.dynamic };
	uint64_t h = hash_bytes(hash_basis(0), c->tiling.extent, sizeof(c->tiling.extent));

	return hash_bytes(hash_bytes(h, c->order, sizeof(c->order)), v, sizeof(v));
}
