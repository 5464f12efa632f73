#include "search/limits.h"

#include <math.h>

#include "plan/phases.h"
#include "target/target.h"

#define STEP 1.05			/* of limit_in_steps */

/* Cycles of the busiest unit of an EU that gets the mean number of tiles of a phase. *sum: effort that every plan needs is added:
 * products, L2, and EUs that have tiles. */
static double phase_cycles(const struct space *space, const struct choice *c, const struct graph *g, int phase, struct effort *sum)
{
	const struct vdevice *d = space->device;
	double unit[SEU_MAX] = { 0 }, worst = 0;
	int eus = (int)min_i64(d->eus, g->grids[phase].total);

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *t = &g->tasks.v[i];
		int seu = space_unit(space, c, &t->work);
		double runs = (double)g->grids[phase].total / eus * graph_runs(g, t->loop, NONE);
		struct work w = t->work;
		struct effort effort;

		if (t->phase != phase || seu == NONE)
			continue;
		w.row_bytes = 0;	/* threads may copy it */
		effort = device_effort(d, seu, &w);
		sum->of[EFFORT_PRODUCT] += effort.of[EFFORT_PRODUCT] * runs * eus;
		sum->of[EFFORT_L2] += effort.of[EFFORT_L2] * runs * eus;
		if (d->seu[seu].kind == SEU_COPY)
			continue;
		unit[seu] += device_cost(d, seu, &t->work, 4, (struct pace){ .active = eus, .clock_hz = d->clock_hz }).busy * runs;
	}
	for (int u = 0; u < SEU_MAX; u++)
		worst = fmax(worst, unit[u]);
	sum->of[EFFORT_EU] += worst * eus;
	return worst;
}

double limit_in_steps(double seconds)
{
	return ceil(log(seconds) / log(STEP));
}

/* Seconds of device memory, which no plan needs less of: more reads take longer, and so do more writes. */
static double memory_seconds(const struct space *s, const struct graph *g, double rate)
{
	double bytes = graph_bytes(g);

	return bytes > 0 ? bytes * device_switching(s->device, graph_stored_bytes(g) / bytes) / rate : 0;
}

static double seconds_at_rate(const struct space *s, const struct choice *c, const struct graph *g, double rate)
{
	const struct program *p = s->program;
	const struct vdevice *d = s->device;
	struct effort sum = { 0 };
	double cycles = 0, launches = phases_launched_least(g, target_of(d)) * d->launch_seconds, watts;

	for (int ph = 0; ph < p->phases.n; ph++)
		cycles += phase_cycles(s, c, g, ph, &sum);
	return launches + fmax(cycles / device_clock(d, &sum, cycles, launches, &watts), memory_seconds(s, g, rate));
}

double limit_seconds(const struct space *s, const struct choice *c, const struct graph *g)
{
	return seconds_at_rate(s, c, g, s->device->global_rate);
}

double limit_counted_seconds(const struct space *s, const struct choice *c, const struct graph *g)
{
	return seconds_at_rate(s, c, g, s->device->global_rate * (1 + s->device->global_uneven));
}

double limit_traffic(const struct graph *g)
{
	double bytes = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *t = &g->tasks.v[i];

		bytes += t->work.global_bytes * graph_all_runs(g, t);
	}
	return bytes;
}

double limit_memory_seconds(const struct space *s, const struct graph *g)
{
	return phases_launched_least(g, target_of(s->device)) * s->device->launch_seconds + memory_seconds(s, g, s->device->global_rate);
}

/* The matrix unit of a product; NULL: the work is no product, or threads multiply. */
static const struct seu *matrix_unit(const struct space *s, const struct choice *c, const struct work *w)
{
	int unit = w->kind == WORK_MMA && !c->products_by_threads ? space_unit(s, c, w) : NONE;

	return unit == NONE || s->device->seu[unit].kind != SEU_MATRIX ? NULL : &s->device->seu[unit];
}

bool limit_has_warp_products(const struct space *s, const struct graph *g)
{
	const struct choice c = { 0 };

	for (int i = 0; i < g->tasks.n; i++) {
		const struct seu *unit = matrix_unit(s, &c, &g->tasks.v[i].work);

		if (unit && !unit->async)
			return true;
	}
	return false;
}

/* Is what a warp computes of results better in rows of its own? */
static bool needs_rows(const struct graph *g)
{
	const struct program *p = g->program;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].matrix_a && g->tasks.v[g->buffers.v[i].first].kind == TASK_COMPUTE)
			return true;
	for (int i = 0; i < p->nodes.n; i++) {
		enum op_class c = op_class(p->nodes.v[i].op);

		if (p->nodes.v[i].task != NONE && (c == CLASS_REDUCE || c == CLASS_SCAN))
			return true;
	}
	return false;
}

/* Elements that a warp multiplies and fetches in so many columns of warps, for all products. false: some product has no columns
 * for complete instructions of each, or its unit is asynchronous. */
static bool cost_of_columns(const struct space *s, const struct graph *g, const struct choice *c, int columns, double cost[2])
{
	const struct target *t = target_of(s->device);

	cost[0] = cost[1] = 0;
	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;
		const struct seu *unit = matrix_unit(s, c, w);
		const struct matrix_instruction *x = unit ? target_matrix(t, unit->async, w->sparse, w->type) : NULL;
		double rows, cols;

		if (!x)
			continue;
		if (unit->async || w->n % ((int64_t)columns * x->cols_most))
			return false;
		rows = (double)round_up(ceil_div(w->m, c->warps / columns), x->rows);
		cols = (double)w->n / columns;
		cost[0] += rows * cols * (double)w->k;
		cost[1] += (rows + cols) * (double)w->k;
	}
	return cost[0] > 0;
}

int limit_columns(const struct space *s, const struct graph *g, const struct choice *c)
{
	double least[2] = { INFINITY, INFINITY }, cost[2];
	int best = 0;

	if (!s->has_warp_products || c->products_by_threads)
		return 0;
	if (c->columns)
		return c->columns > 1 ? c->columns : 0;
	if (needs_rows(g))
		return 0;
	for (int n = 1; n <= c->warps; n *= 2) {
		if (c->warps % n || !cost_of_columns(s, g, c, n, cost))
			continue;
		if (cost[0] < least[0] || (cost[0] == least[0] && cost[1] < least[1])) {
			least[0] = cost[0];
			least[1] = cost[1];
			best = n;
		}
	}
	return best > 1 ? best : 0;
}

/* Rows of a product for the warps of a lane that has all products. */
static int64_t lane_rows(const struct space *s, const struct graph *g, const struct choice *c)
{
	const struct target *t = target_of(s->device);
	int parts = 0, columns = limit_columns(s, g, c);

	if (columns)
		return (int64_t)t->frag.rows * c->warps / columns;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;
		const struct seu *unit = matrix_unit(s, c, w);
		const struct matrix_instruction *x = unit ? target_matrix(t, unit->async, w->sparse, w->type) : NULL;

		if (x)
			parts = (int)gcd_i64(parts, plan_product_parts(t, x, w->m, w->n, c->warps));
	}
	return (int64_t)t->frag.rows * c->warps / max_i64(parts, 1);
}

bool limit_suits(const struct space *s, const struct graph *g, const struct choice *c, int *task)
{
	int64_t rows = lane_rows(s, g, c);
	double cost[2];
	bool divides = c->columns <= 1 || !s->has_warp_products || (c->warps % c->columns == 0 && cost_of_columns(s, g, c, c->columns, cost));

	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;

		if (w->kind != WORK_MMA)
			continue;
		*task = i;
		if (!matrix_unit(s, c, w))
			continue;
		if (!divides)
			return false;
		/* warps without rows would idle, and a remainder of rows would waste an instruction, which pays where
		 * the caller wants such rows; a slice must begin where the swizzle's pattern of rows begins */
		if ((w->m % rows && !(c->warps == 4 && (s->wants_rows || w->m < rows))) ||
		    (g->tasks.v[i].slices > 1 && w->m % shared_pattern_rows(&target_of(s->device)->shared)))
			return false;
	}
	return true;
}

int64_t limit_shared(const struct graph *g)
{
	int64_t most = 0;

	for (int ph = 0; ph < g->program->phases.n; ph++) {
		int64_t bytes = 0;

		for (int i = 0; i < g->buffers.n; i++)
			if (g->buffers.v[i].phase == ph && g->buffers.v[i].scope == SCOPE_SHARED &&
			    g->buffers.v[i].alias_of == NONE && g->buffers.v[i].carry == NONE)
				bytes += g->buffers.v[i].bytes;
		most = max_i64(most, bytes);
	}
	return most;
}

int64_t limit_sums(const struct graph *g)
{
	int64_t most = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;

		if (w->kind == WORK_MMA)
			most = max_i64(most, w->m * g->tasks.v[i].slices * w->n);
	}
	return most > ACCUMULATORS_MAX ? most : 0;
}
