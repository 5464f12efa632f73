#include "search/evaluate.h"

#include <math.h>
#include <string.h>

#include "graph/repeats.h"
#include "lower/lower.h"
#include "plan/check.h"
#include "search/build.h"
#include "search/limits.h"
#include "search/rings.h"
#include "sim/priced.h"

#define TOO_LARGE 1e6			/* problems of a graph that is too large for any plan: more than plans have */
#define UNSUITED 1e5			/* problems of a plan that was not tried, as it leaves warps without rows */

enum { REPEATS_MOST = 64 };

#define CONSIDERABLE 0.1		/* of the loaded bytes */
#define BUSY 0.5			/* of the time: a warp that copies as long may be what the others wait for */
/* Without products, loads and element-wise work are all there is, and only kernels say which threads do how much of it:
 * the time of the plan alone may be above theirs by so much, or by a little more than it was before. */
#define OVERESTIMATE 1.5
#define OVERESTIMATE_MORE 1.1
#define MASKED_MOST 1.1		/* ... with products, where kernels compute less than the plan says, at most so much */

/* What plan_repair_waits made of a plan, if all dependences are kept then. */
struct repaired {
	uint64_t order;			/* build_hash_order, before the repair */
	struct wait *waits;
	int nwaits, *versions;
};

/* The repaired waits of a legal plan. */
struct legal {
	uint64_t plan;			/* build_hash_without_raster, before the repair */
	int repaired;
};

void evaluator_init(struct evaluator *ev, struct arena *a, struct mem *mem, const struct vdevice *d,
	const struct space *s, struct tried_list *tried)
{
	*ev = (struct evaluator){ .a = a, .mem = mem, .space = s, .tried = tried, .has_target = lower_has_target(d),
		.bound_seconds = INFINITY, .counted_seconds = INFINITY, .memory_seconds = INFINITY, .overestimate = 1, .nearest = NONE };
	assignment_cache_init(&ev->assignments, mem);
}

void evaluator_release(struct evaluator *ev)
{
	timeline_free(ev->line);
	ev->line = NULL;
	kernels_free(ev->kernels);
	ev->kernels = NULL;
	plan_free(ev->plan);
	ev->plan = NULL;
	graph_free(ev->graph);
	ev->graph = NULL;
}

void evaluator_free(struct evaluator *ev)
{
	evaluator_release(ev);
	assignment_cache_free(&ev->assignments);
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* Count a refusal. True if it is the first of its kind, whose message is kept. */
static bool count_refusal(struct evaluator *ev, enum problem_code code, struct refusal_count **out)
{
	*out = &ev->refusals[(int)code < REFUSAL_KINDS ? (int)code : 0];
	return !(*out)->count++;
}

static void refuse(struct evaluator *ev, enum problem_code code, const char *message)
{
	struct refusal_count *r;

	if (count_refusal(ev, code, &r))
		r->message = arena_strf(ev->a, "%s", message);
}

static void note_problems(struct evaluator *ev, int i, double problems)
{
	if (ev->nearest != NONE && problems >= ev->nearest_problems)
		return;
	ev->nearest = i;
	ev->nearest_problems = problems;
}

void evaluator_refusals(const struct evaluator *ev, struct buf *out)
{
	bool written[REFUSAL_KINDS] = { false };

	if (!ev->space->variants[0].exists && !ev->space->variants[1].exists)
		buf_printf(out, "%s", ev->space->unbuilt.msg);
	for (;;) {
		int most = NONE;

		for (int i = 0; i < REFUSAL_KINDS; i++)
			if (ev->refusals[i].count && !written[i] &&
			    (most == NONE || ev->refusals[i].count > ev->refusals[most].count))
				most = i;
		if (most == NONE)
			return;
		written[most] = true;
		buf_printf(out, "%s%d: %s: %s", out->len ? "\n" : "", ev->refusals[most].count,
			problem_name((enum problem_code)most), ev->refusals[most].message);
	}
}

/* ---- before a plan is built -------------------------------------------------------------- */

/* Is the bound of the candidate's shape no better than the best candidate? */
static bool is_pruned(struct evaluator *ev, int i, double best)
{
	double bound = limit_seconds(ev->space, &ev->tried->v.v[i].choice, ev->graph);

	ev->bound_seconds = fmin(ev->bound_seconds, bound);
	if (bound * (1 - ev->space->device->global_uneven) < ev->counted_seconds)	/* else it cannot be less */
		ev->counted_seconds = fmin(ev->counted_seconds,
			limit_counted_seconds(ev->space, &ev->tried->v.v[i].choice, ev->graph));
	ev->memory_seconds = fmin(ev->memory_seconds, limit_memory_seconds(ev->space, ev->graph));
	if (bound < best)
		return false;
	ev->pruned++;
	return true;
}

/* Do the registers or the shared memory of an EU forbid every plan of the graph? */
static bool is_too_large(struct evaluator *ev, int i)
{
	const struct vdevice *d = ev->space->device;
	int64_t bytes = limit_shared(ev->graph), sums = limit_sums(ev->graph);
	struct refusal_count *r;

	if (!sums && bytes <= d->shared_bytes)
		return false;
	note_problems(ev, i, TOO_LARGE + (double)bytes + (double)sums);
	if (count_refusal(ev, sums ? PROBLEM_REGISTERS : PROBLEM_SHARED_MEMORY, &r))
		r->message = sums ? arena_strf(ev->a, "a product of this tile has %lld sums, the registers of "
			"an EU of '%s' hold %d", (long long)sums, d->name, ACCUMULATORS_MAX) :
			arena_strf(ev->a, "one version of everything takes %lld bytes of shared memory, "
			"'%s' has %lld", (long long)bytes, d->name, (long long)d->shared_bytes);
	return true;
}

/* Do rows of products not fill the instructions of the candidate's lanes? */
static bool is_unsuited(struct evaluator *ev, int i)
{
	const struct choice *c = &ev->tried->v.v[i].choice;
	struct refusal_count *r;
	int task = NONE;

	if (limit_suits(ev->space, ev->graph, c, &task))
		return false;
	note_problems(ev, i, UNSUITED);
	if (count_refusal(ev, PROBLEM_PRODUCT, &r))
		r->message = arena_strf(ev->a, "the %lld rows%s of '%s' do not fill the warps of %d %s of %d warps%s",
			(long long)ev->graph->tasks.v[task].work.m, c->columns > 1 ? arena_strf(ev->a, " and %lld columns",
			(long long)ev->graph->tasks.v[task].work.n) : "", ev->graph->tasks.v[task].name, c->ways,
			c->ways > 1 ? "lanes" : "lane", c->warps, c->columns > 1 ? arena_strf(ev->a, " in %d columns", c->columns) : "");
	return true;
}

/* Do tiles that share an axis each do so often all that another one does along it that no plan of the shape is of use?
 * Smaller tiles need no less memory for that, and soon there are millions of them. Not if the caller wants the extents. */
static bool repeats_too_often(const struct evaluator *ev)
{
	for (int i = 0; i < ev->space->ndims; i++) {
		const struct dim *d = &ev->space->dims[i];

		for (int k = 0; k < ev->graph->tasks.n && !d->wanted; k++)
			if (graph_repeats(ev->graph, k, d->axis) > REPEATS_MOST)
				return true;
	}
	return false;
}

/* ---- the plan ---------------------------------------------------------------------------- */

/* Has a ring that loads fill only one version, since shared memory holds no more? */
static bool is_shallow(const struct evaluator *ev)
{
	const struct graph *g = ev->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].loop != NONE && ev->plan->versions[i] == 1 &&
		    plan_scope(ev->plan, i) == SCOPE_SHARED && g->tasks.v[g->buffers.v[i].first].kind == TASK_LOAD)
			return true;
	return false;
}

/* Has an earlier candidate the plan at hand? Then its result is copied. */
static bool is_duplicate(struct evaluator *ev, struct tried *x)
{
	uint64_t hash = build_hash(&x->choice, ev->plan);

	for (int i = 0; i < ev->tried->v.n && !x->duplicate; i++) {
		const struct tried *y = &ev->tried->v.v[i];

		x->duplicate = y->plan == hash && y != x;
		if (x->duplicate) {
			x->seconds = y->seconds;
			x->priced = y->priced;
			x->by_threads = y->by_threads;
			x->shifted = y->shifted;
			x->copied = y->copied;
		}
	}
	x->plan = hash;
	return x->duplicate;
}

static void take_repaired(struct evaluator *ev, int i)
{
	const struct repaired *x = &ev->repaired.v[i];
	struct plan *p = ev->plan;

	p->waits.v = arena_copy(&p->arena, x->waits, (size_t)x->nwaits, sizeof(*x->waits));
	p->waits.n = p->waits.cap = x->nwaits;
	memcpy(p->versions, x->versions, (size_t)p->graph->buffers.n * sizeof(*x->versions));
}

/* Keep the waits of the plan at hand, for others with the same order. NONE: they may hold for this one alone. */
static int keep_repaired(struct evaluator *ev, uint64_t order, int reach)
{
	const struct plan *p = ev->plan;
	const struct repaired x = { .order = order, .nwaits = p->waits.n,
		.waits = arena_copy(ev->a, p->waits.v, (size_t)p->waits.n, sizeof(*p->waits.v)),
		.versions = arena_copy(ev->a, p->versions, (size_t)p->graph->buffers.n, sizeof(*p->versions)) };

	for (int i = 0; i < p->graph->buffers.n; i++)
		if (x.versions[i] > reach)
			return NONE;
	VEC_PUSH(ev->a, &ev->repaired, x);
	return ev->repaired.n - 1;
}

/* Find the waits of the plan at hand, or copy those of a plan with the same order. *repaired: where they are kept;
 * NONE.
 * *kept: all dependences are. */
static enum err_code repair_waits(struct evaluator *ev, int *repaired, bool *kept, const struct stop *stop,
	struct err *e)
{
	int reach;
	uint64_t order = build_hash_order(ev->plan, &reach);

	for (*repaired = 0; *repaired < ev->repaired.n; ++*repaired)
		if (ev->repaired.v[*repaired].order == order) {
			*kept = true;
			take_repaired(ev, *repaired);
			return OK;
		}
	*repaired = NONE;
	TRY(plan_repair_waits(ev->plan, NULL, NULL, 0, kept, stop, e));
	if (*kept)
		*repaired = keep_repaired(ev, order, reach);
	return OK;
}

enum err_code evaluator_build(struct evaluator *ev, const struct choice *c, const struct stop *stop, struct err *e)
{
	int repaired;
	bool kept;

	evaluator_release(ev);
	TRY(build_graph(ev->space, c, &ev->graph, e));
	ev->plan = plan_new(ev->mem, ev->graph, ev->space->device);
	TRY(build_plan(ev->space, c, ev->plan, e));
	return repair_waits(ev, &repaired, &kept, stop, e);
}

/* kept: all dependences are. */
static enum err_code check(struct evaluator *ev, int i, bool kept, const struct stop *stop, bool *legal, bool *full,
	struct err *e)
{
	struct arena_mark mark = arena_mark(&ev->plan->arena);
	struct problems problems;

	TRY((kept ? plan_check_kept : plan_check)(ev->plan, &ev->plan->arena, stop, &problems, NULL, e));
	*legal = problems.v.n == 0;
	*full = problems.v.n ? problems.v.v[0].code == PROBLEM_SHARED_MEMORY : is_shallow(ev);
	if (problems.v.n) {
		refuse(ev, problems.v.v[0].code, problems.v.v[0].message);
		note_problems(ev, i, problems.v.n);
	}
	arena_reset(&ev->plan->arena, mark);
	return OK;
}

/* ---- its time ---------------------------------------------------------------------------- */

/* Do threads copy a considerable part of what the lanes of loads bring, though the plan gives it to an engine? Or would
 * their copies, few bytes though they are, take one warp most of the time? What a warp brings on the side, as
 * lengths and scales of large tiles, does not matter.
 *
 * The time of a lane of several warps counts once for each: that they copy fast does not mean that one would. */
static void note_copies(const struct timeline *line, struct tried *x)
{
	const struct plan *p = line->plan;
	double all = 0, by_threads = 0, shifted = 0, busy[LANES_MAX] = { 0 }, busiest = 0;

	x->copied = 0;
	for (int i = 0; i < line->nphases; i++)
		for (int k = 0; k < p->entries.n; k++) {
			const struct entry *en = &p->entries.v[k];
			const struct stask *s = &p->graph->tasks.v[en->task];
			const struct phase_line *ph = &line->phases[i];
			const struct task_cost *c = &ph->costs[en->task];
			double runs = graph_runs(p->graph, s->loop, NONE), bytes = s->work.global_bytes * runs;

			if (s->phase != ph->phase || s->kind != TASK_LOAD || !p->device->seu[en->seu].async)
				continue;
			all += bytes;
			if (!c->by_threads && !en->by_rows)	/* of rows, threads issue each */
				continue;
			by_threads += bytes;
			shifted += c->shifted ? bytes : 0;
			busy[en->lane] += c->lane * lane_warps(p, en->lane) * runs * (double)ph->tiles / ph->eus /
				(double)line->cycles;
			if (space_load_index(p->graph, en->task) != NONE)
				x->copied |= 1u << space_load_index(p->graph, en->task);
		}
	for (int l = 0; l < p->lanes.n; l++)
		busiest = fmax(busiest, busy[l]);
	x->by_threads = by_threads > CONSIDERABLE * all || busiest > BUSY;
	x->shifted = shifted > CONSIDERABLE * by_threads;
}

/* An H200 confirms what the model says of clusters that divide loops to 15 % only (tests/perf/divided.lua): such a plan has to be clearly
 * faster than others. */
#define DIVIDED_UNCERTAINTY 0.05

static enum err_code simulate(struct evaluator *ev, int i, double best, bool price, const struct stop *stop,
	struct err *e)
{
	struct tried *x = &ev->tried->v.v[i];
	double uncertainty = x->choice.grid.divided ? 1 + DIVIDED_UNCERTAINTY : 1;
	struct sim_options rough = { .keep = 0, .rough = true, .assignments = &ev->assignments };

	double alone;

	TRY(sim_run(ev->mem, ev->plan, &rough, stop, &ev->line, e));
	x->seconds = alone = ev->line->seconds * uncertainty;
	if ((alone >= best * fmax(ev->overestimate, ev->space->has_products ? 1 : OVERESTIMATE) && !price) || !ev->has_target)
		return OK;
	timeline_free(ev->line);
	ev->line = NULL;
	TRY(priced_run(ev->mem, ev->plan, NULL, &rough, stop, &ev->kernels, &ev->line, e));
	x->priced = ev->line->priced;
	x->seconds = x->priced ? ev->line->seconds * uncertainty : INFINITY;
	x->spare = ev->line->spare_registers;
	if (x->priced)
		note_copies(ev->line, x);
	/* a kernel leaves out columns of which a mask leaves nothing */
	if (x->priced && ev->space->has_products && ev->space->uneven)
		ev->overestimate = fmax(ev->overestimate, fmin(alone / x->seconds, MASKED_MOST));
	if (x->priced && !ev->space->has_products)
		ev->overestimate = fmax(ev->overestimate, OVERESTIMATE_MORE * alone / x->seconds);
	if (x->priced && x->spare < 0) {
		x->seconds = INFINITY;
		refuse(ev, PROBLEM_REGISTERS, "operands of products under way have no registers apart from the sums "
			"that they are made of");
		note_problems(ev, i, 0);
	}
	if (!x->priced) {
		/* as much less as it is too much; with that, rings are shallower */
		if (ev->line->unpriced_bytes)
			x->ring_bytes = search_rings_bytes(ev->plan) + ev->plan->device->shared_bytes -
				ev->line->unpriced_bytes;
		refuse(ev, PROBLEM_KERNEL, ev->line->unpriced);
		note_problems(ev, i, 0);
	}
	return OK;
}

static enum err_code evaluate_plan(struct evaluator *ev, int i, double best, bool price, const struct stop *stop,
	bool *full, struct err *e)
{
	struct tried *x = &ev->tried->v.v[i];
	bool known = false, kept, legal;
	enum err_code code;
	uint64_t hash;
	int repaired;

	TRY(build_graph(ev->space, &x->choice, &ev->graph, e));
	x->too_large = is_too_large(ev, i);
	if (x->too_large || repeats_too_often(ev) || is_unsuited(ev, i) || is_pruned(ev, i, best))
		return OK;
	ev->plan = plan_new(ev->mem, ev->graph, ev->space->device);
	TRY(build_plan(ev->space, &x->choice, ev->plan, e));
	if (!price && is_duplicate(ev, x))
		return OK;
	hash = build_hash_without_raster(&x->choice, ev->plan);
	for (int k = 0; k < ev->legal.n && !known; k++)
		if (ev->legal.v[k].plan == hash) {
			known = true;
			take_repaired(ev, ev->legal.v[k].repaired);
			*full = is_shallow(ev);
		}
	if (!known) {
		TRY(repair_waits(ev, &repaired, &kept, stop, e));
		TRY(check(ev, i, kept, stop, &legal, full, e));
		if (!legal)
			return OK;
		if (repaired != NONE)
			VEC_PUSH(ev->a, &ev->legal, ((struct legal){ hash, repaired }));
	}
	code = simulate(ev, i, best, price, stop, e);
	if (code == ERR_LIMIT) {		/* of events: other candidates may have larger tiles */
		refuse(ev, PROBLEM_EVENTS, e->msg);
		note_problems(ev, i, 0);
		return OK;
	}
	TRY(code);
	ev->simulated += !x->simulated;		/* not again if it is priced now */
	x->simulated = true;
	return OK;
}

enum err_code evaluate(struct evaluator *ev, int i, double best, bool price, const struct stop *stop, bool *full,
	struct err *e)
{
	enum err_code code;

	*full = false;
	evaluator_release(ev);		/* of a step that ran out of memory */
	code = evaluate_plan(ev, i, best, price, stop, full, e);
	evaluator_release(ev);
	return code;
}
