#include "search/search.h"

#include <math.h>

#include "plan/check.h"
#include "search/list.h"
#include "search/rings.h"
#include "sim/bounds.h"
#include "sim/priced.h"
#include "target/target.h"

enum {
	CHOICES_MAX = 5,		/* extents tried for an axis */
	FREE_MAX = 4,			/* register values whose versions are tried */
	SMALL_AXIS = 16,		/* a looped axis up to this size is taken whole, or one by one */
	ROWS_MAX = 512,
	ACCUMULATORS_MAX = 65536,
	LOWER_TRIES = 8,		/* plans in a row, before that is given up for a device */
};

/* Extents to try for one tiled axis. */
struct dim {
	int axis, n;
	int64_t extent[CHOICES_MAX];
};

struct search {
	struct arena arena;
	struct mem *mem;
	const struct program *program;
	const struct vdevice *device;
	int ndims;
	struct dim *dims;
	/* where the enumeration stands: shape, then split, then versions */
	int64_t shape, nshapes;
	int split_ways;			/* index of the next lane choice; 0: shape not begun */
	int ways;			/* parts of the present graph; 0: none */
	int warps;
	uint32_t versions, nversions;	/* bits: register values with two versions */
	int split_axis;
	struct graph *graph, *best_graph;
	struct plan *plan, *best_plan;
	struct timeline *line, *best_line;
	struct kernels *kernels;	/* of the present candidate, while it is simulated */
	int lowered, tries;		/* plans that could be, and all that were to be, lowered */
	int best_ways, best_split;
	double bound;			/* of the present shape, seconds */
	struct search_result result;
};

/* The tile extents that make sense on matrix units: powers of two and the three
 * warpgroups' 192; of a short axis (an image's width), whatever divides it up. */
static void fill_choices(const struct program *p, struct dim *d, bool is_loop)
{
	static const int64_t grid[] = { 128, 256, 64, 192 }, loop[] = { 64, 128, 32 };
	static const int64_t few[] = { 1, 4, 8, 16 };
	int64_t size = p->axes.v[d->axis].size;

	d->n = 0;
	if (is_loop && size <= SMALL_AXIS) {
		d->extent[d->n++] = size <= SMALL_AXIS / 2 ? 1 : size;
		return;
	}
	for (int i = 0; is_loop && i < LEN(loop); i++)
		if (loop[i] < size * 2)
			d->extent[d->n++] = min_i64(loop[i], size);
	if (is_loop)
		return;
	for (int i = 0; size >= 64 && i < LEN(grid); i++)
		if (grid[i] < size * 2)
			d->extent[d->n++] = min_i64(grid[i], size);
	for (int i = 0; size < 64 && i < LEN(few); i++)
		if (few[i] < size)
			d->extent[d->n++] = few[i];
	if (size < 64)
		d->extent[d->n++] = size;
}

static bool is_looped(const struct program *p, int axis)
{
	for (int l = 0; l < p->loops.n; l++)
		for (int i = 0; i < p->loops.v[l].naxes; i++)
			if (p->loops.v[l].axis[i] == axis)
				return true;
	return false;
}

/* Tiled over the grid of some phase, and batch or whole in none? */
static bool is_tiled(const struct program *p, int axis)
{
	bool grid = false;

	for (int ph = 0; ph < p->phases.n; ph++) {
		enum axis_role r = program_axis_role(p, ph, axis);

		if (r == AXIS_BATCH || r == AXIS_INNER)
			return false;
		grid |= r == AXIS_GRID;
	}
	return grid;
}

static void find_dims(struct search *s)
{
	const struct program *p = s->program;

	s->dims = ARENA_ARRAY(&s->arena, p->axes.n, struct dim);
	s->nshapes = 1;
	for (int a = 0; a < p->axes.n; a++) {
		bool looped = is_looped(p, a);

		if (!looped && !is_tiled(p, a))
			continue;
		s->dims[s->ndims].axis = a;
		fill_choices(p, &s->dims[s->ndims], looped);
		s->nshapes *= s->dims[s->ndims++].n;
	}
}

enum err_code search_new(struct mem *mem, const struct program *p, const struct vdevice *d,
	struct search **out, struct err *e)
{
	struct arena a;
	struct search *s;

	arena_init(&a, mem);
	s = *out = ARENA_NEW(&a, struct search);
	s->arena = a;
	s->mem = mem;
	s->program = p;
	s->device = d;
	s->result.bound_seconds = INFINITY;
	find_dims(s);
	if (!p->phases.n)
		return err_set(e, ERR_INPUT, NOWHERE, "program '%s' has nothing to schedule",
			p->name);
	return OK;
}

static void drop_candidate(struct search *s)
{
	timeline_free(s->line);
	s->line = NULL;
	kernels_free(s->kernels);
	s->kernels = NULL;
	plan_free(s->plan);
	s->plan = NULL;
}

static void drop_best(struct search *s)
{
	timeline_free(s->best_line);
	plan_free(s->best_plan);
	graph_free(s->best_graph);
	s->best_line = NULL;
	s->best_plan = NULL;
	s->best_graph = NULL;
}

void search_free(struct search *s)
{
	struct arena a;

	if (!s)
		return;
	drop_candidate(s);
	drop_best(s);
	graph_free(s->graph);
	a = s->arena;
	arena_release(&a);
}

static void shape_tiling(const struct search *s, int64_t shape, struct tiling *t)
{
	*t = (struct tiling){ 0 };
	for (int i = s->ndims - 1; i >= 0; i--) {
		t->extent[s->dims[i].axis] = s->dims[i].extent[shape % s->dims[i].n];
		shape /= s->dims[i].n;
	}
}

/* The rows of the products: the tiled output axis that only first operands have; of
 * several the outermost, since the rows of a part must lie together. */
static int row_axis(const struct search *s, const struct tiling *t)
{
	const struct program *p = s->program;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_MMA || n->task == NONE || !p->tasks.v[n->task].nodes.n)
			continue;
		for (int k = 0; k < p->nodes.v[n->arg[0]].naxes; k++) {
			int axis = p->nodes.v[n->arg[0]].axis[k];
			bool kept = false;

			for (int x = 0; x < n->naxes; x++)
				kept |= n->axis[x] == axis;
			if (kept && t->extent[axis] > 1 &&
			    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
				return axis;
		}
	}
	return NONE;
}

static int row_tasks(const struct search *s, int axis, int *out)
{
	const struct program *p = s->program;
	int n = 0;

	for (int t = 0; t < p->tasks.n; t++) {
		bool has = false;

		for (int i = 0; i < p->tasks.v[t].nodes.n; i++) {
			const struct node *nd = &p->nodes.v[p->tasks.v[t].nodes.v[i]];

			for (int k = 0; k < nd->naxes; k++)
				has |= nd->axis[k] == axis;
		}
		if (has && p->tasks.v[t].kind != TASK_LOAD)
			out[n++] = t;
	}
	return n;
}

/* Seconds that the busiest unit needs for all its work, without any waiting: no plan
 * of this shape is faster in the model. */
static double shape_bound(const struct search *s, const struct graph *g)
{
	struct effort sum = { 0 };
	double cycles = 0;

	for (int ph = 0; ph < s->program->phases.n; ph++) {
		double unit[SEU_MAX] = { 0 }, worst = 0;
		int eus = (int)min_i64(s->device->eus, g->grids[ph].total);

		for (int i = 0; i < g->tasks.n; i++) {
			const struct stask *t = &g->tasks.v[i];
			int seu = device_seu_for(s->device, &t->work);
			double runs = (double)g->grids[ph].total / eus * graph_runs(g, t->loop, NONE);
			struct cost c;

			if (t->phase != ph || seu == NONE)
				continue;
			c = device_cost(s->device, seu, &t->work, 4,
				(struct pace){ eus, s->device->clock_hz });
			unit[seu] += c.busy * runs;
			sum.of[EFFORT_PRODUCT] += device_effort(s->device, seu, &t->work).of[EFFORT_PRODUCT];
		}
		for (int u = 0; u < SEU_MAX; u++)
			worst = fmax(worst, unit[u]);
		cycles += worst;
	}
	return cycles / device_full_clock(s->device, &sum);
}

/* Rows of the products must fill a few warpgroups' instructions, and no more than the
 * registers of an EU can accumulate. */
static bool rows_fit(const struct graph *g)
{
	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;

		if (w->kind == WORK_MMA && (w->m > ROWS_MAX || w->m * w->n > ACCUMULATORS_MAX))
			return false;
	}
	return true;
}

/* A lane's warps each take a block of rows of a product: more warps than there are rows for
 * would idle, and rows that do not divide are wasted. A part begins where the swizzle's
 * pattern of rows does. */
static bool rows_suit(const struct search *s, const struct graph *g, int warps)
{
	const struct target *t = target_of(s->device);
	int64_t rows = (int64_t)t->frag.rows * warps;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;
		int unit = device_seu_for(s->device, w);

		if (w->kind != WORK_MMA || unit == NONE || s->device->seu[unit].kind != SEU_MATRIX)
			continue;
		if ((w->m % rows && !(warps == 4 && w->m < rows)) ||
		    (g->tasks.v[i].parts > 1 && w->m % shared_pattern_rows(&t->shared)))
			return false;
	}
	return true;
}

/* Begin the present shape with `ways` parts; false if it cannot be. */
static bool begin_split(struct search *s, int ways)
{
	struct tiling t;
	struct split split = { .ways = ways };
	int *tasks = ARENA_ARRAY(&s->arena, s->program->tasks.n, int);
	struct err e;

	graph_free(s->graph);
	s->graph = NULL;
	shape_tiling(s, s->shape, &t);
	split.axis = s->split_axis;
	if (ways > 1)
		split.ntasks = row_tasks(s, split.axis, tasks);
	split.tasks = tasks;
	if (graph_build(s->mem, s->program, &t, &(struct shaping){ .splits = &split, .nsplits = ways > 1 },
	    &s->graph, &e))
		return false;
	s->versions = 0;
	s->nversions = 1;
	for (int i = 0, n = 0; i < s->graph->buffers.n && n < FREE_MAX; i++) {
		const struct buffer *b = &s->graph->buffers.v[i];

		if (b->scope == SCOPE_REGISTERS && b->carry == NONE && b->loop != NONE &&
		    b->part == 0) {
			s->nversions *= 2;
			n++;
		}
	}
	return true;
}

/* Rows that one lane takes, by how many parts and warps. */
static const struct { int ways, warps; } lane_choices[] = { { 1, 4 }, { 2, 4 }, { 1, 8 }, { 3, 4 } };

/* The next choice of versions of the same graph. */
static bool next_versions(struct search *s)
{
	uint32_t versions = s->versions + 1;

	if (versions >= s->nversions || (!s->graph && !begin_split(s, s->ways)))
		return false;
	s->versions = versions;
	return true;
}

/* Go to the next shape, split or choice of versions that can be built. */
static bool advance(struct search *s)
{
	if (s->ways && next_versions(s))
		return true;
	s->ways = 0;
	for (;;) {
		if (s->split_ways == LEN(lane_choices) || s->split_ways == 0) {
			struct tiling t;

			if (s->split_ways)
				s->shape++;
			if (s->shape >= s->nshapes)
				return false;
			s->split_ways = 0;
			shape_tiling(s, s->shape, &t);
			s->split_axis = row_axis(s, &t);
			s->result.shapes++;
			if (!begin_split(s, 1) || !rows_fit(s->graph)) {
				s->split_ways = LEN(lane_choices);
				continue;
			}
			s->bound = shape_bound(s, s->graph);
			s->result.bound_seconds = fmin(s->result.bound_seconds, s->bound);
			if (s->best_line && s->bound >= s->best_line->seconds) {
				s->result.pruned++;
				s->split_ways = LEN(lane_choices);
				continue;
			}
		}
		s->warps = lane_choices[s->split_ways].warps;
		if (lane_choices[s->split_ways].ways > 1 && s->split_axis == NONE) {
			s->split_ways++;
			continue;
		}
		s->ways = lane_choices[s->split_ways++].ways;
		if (begin_split(s, s->ways) && rows_suit(s, s->graph, s->warps))
			return true;
	}
}

/* Give the register values chosen by the bits of `versions` two versions each. */
static void set_register_versions(const struct search *s, struct plan *p)
{
	int bit = 0;

	for (int i = 0; i < p->graph->buffers.n; i++) {
		const struct buffer *b = &p->graph->buffers.v[i];

		if (b->scope != SCOPE_REGISTERS || b->carry != NONE || b->loop == NONE)
			continue;
		if (b->part == 0)
			bit++;
		if (bit <= FREE_MAX && s->versions >> (bit - 1) & 1)
			p->versions[i] = 2;
	}
}

/* A plan that makes a kernel is better than one that does not, and a faster one is better. */
static bool is_better(const struct timeline *line, const struct timeline *best)
{
	if (!best || line->priced != best->priced)
		return !best || line->priced;
	return line->seconds < best->seconds;
}

/* Is the candidate worth a look at its kernel? That takes longer than to simulate it, and
 * makes few plans faster than its entries alone would be. */
static bool may_be_best(const struct search *s)
{
	return !s->best_line || !s->best_line->priced || s->line->seconds < s->best_line->seconds;
}

/* Simulate it: by its entries, and if that puts it before the best, with its kernel. */
static enum err_code play(struct search *s, const struct stop *stop, struct err *e)
{
	struct sim_options few = { .keep = 0 }, all = { .keep = -1 };
	enum err_code code = sim_run(s->mem, s->plan, &few, stop, &s->line, e);

	if (code || !may_be_best(s))
		return code;
	timeline_free(s->line);
	s->line = NULL;
	if (!s->lowered && s->tries == LOWER_TRIES)
		return sim_run(s->mem, s->plan, &all, stop, &s->line, e);
	code = priced_run(s->mem, s->plan, &all, stop, &s->kernels, &s->line, e);
	s->tries++;
	s->lowered += !code && s->line->priced;
	return code;
}

/* Build, check and simulate the present candidate; s->line stays NULL if it fails. */
static enum err_code try_candidate(struct search *s, const struct stop *stop, struct err *e)
{
	struct problems problems;
	struct arena_mark mark;
	enum err_code code;
	int added;

	drop_candidate(s);		/* of a step that memory ended */
	s->plan = plan_new(s->mem, s->graph, s->device);
	set_register_versions(s, s->plan);
	search_rings(s->plan);
	if (list_schedule(s->plan, s->warps, e))
		return OK;
	code = plan_fill_waits(s->plan, stop, &added, e);
	if (code)
		return code == ERR_INTERRUPTED ? code : OK;
	mark = arena_mark(&s->plan->arena);
	code = plan_check(s->plan, &s->plan->arena, stop, &problems, NULL, e);
	arena_reset(&s->plan->arena, mark);
	if (code == ERR_INTERRUPTED)
		return code;
	if (code || problems.v.n)
		return OK;
	if (play(s, stop, e) == ERR_INTERRUPTED)
		return ERR_INTERRUPTED;
	if (s->line)
		s->result.trials++;
	return OK;
}

enum err_code search_step(struct search *s, const struct stop *stop, bool *more, struct err *e)
{
	*more = advance(s);
	if (!*more)
		return OK;
	if (stop_asked(stop))
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	TRY(try_candidate(s, stop, e));
	if (s->line && may_be_best(s) && is_better(s->line, s->best_line)) {
		drop_best(s);
		s->best_graph = s->graph;	/* advance builds it again if need be */
		s->best_ways = s->ways;
		s->best_split = s->split_axis;
		s->best_plan = s->plan;
		s->best_line = s->line;
		s->graph = NULL;
		s->plan = NULL;
		s->line = NULL;
	}
	drop_candidate(s);
	return OK;
}

struct search_result search_best(const struct search *s)
{
	struct search_result r = s->result;

	r.plan = s->best_plan;
	r.timeline = s->best_line;
	return r;
}

void search_script(const struct search *s, struct buf *out)
{
	const struct program *p = s->program;
	int *tasks, n;

	if (!s->best_plan)
		return;
	if (s->best_ways > 1) {
		tasks = ARENA_ARRAY(out->arena, p->tasks.n, int);
		n = row_tasks(s, s->best_split, tasks);
		buf_printf(out, "plan:split(\"%s\", %d, {", p->axes.v[s->best_split].name,
			s->best_ways);
		for (int i = 0; i < n; i++)
			buf_printf(out, "%s\"%s\"", i ? ", " : "", p->tasks.v[tasks[i]].name);
		buf_puts(out, "})\n");
	}
	plan_script(s->best_plan, out);
}
