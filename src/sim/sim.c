/* Simulates the phases of a plan, one after the other.
 *
 * Of each phase the EUs are divided into classes whose tiles have the same trip counts; one EU of each class is played
 * (eu_run_play), and the slowest gives the phase's time and numbers. Costs of memory in EU cycles depend on the clock,
 * and the clock on power, thus on the time: sim_run repeats until both agree. Seconds are cycles / clock + launches. */
#include "sim/sim.h"

#include <math.h>
#include <string.h>

#include "plan/assign.h"
#include "plan/cluster.h"
#include "plan/phases.h"
#include "sim/bounds.h"
#include "sim/engine.h"
#include "sim/measure.h"

enum {
	KEEP = 1 << 16,			/* default number of events kept per phase */
	MAX_EVENTS = 200000000,		/* default limit of simulated events: about twenty seconds */
	MAX_TILES = 1 << 24,		/* of a grid: assigning tiles takes 20 bytes for each */
	MAX_ENDS = 1 << 16,		/* completions that the initiation interval is computed from */
	/* If there are many classes, those with most work are simulated, and a sample of the others. */
	CLASSES_MOST = 16,
	CLASSES_SAMPLE = 8,
	ROUNDS_MAX = 2,			/* further simulations in search of the clock */
	/* Of very many equal tiles a rough simulation plays the first SAMPLE_TILES or a few more, and leaves out a
	 * multiple of SAMPLE_PERIOD, which usual numbers of replicas and versions divide. Those take as long as so
	 * many in the middle. */
	SAMPLE_TILES = 48,
	SAMPLE_SKIP = 12,
	SAMPLE_STEADY = 24,
	SAMPLE_PERIOD = 12,
	SAMPLE_LEAST = 96,		/* fewer tiles are all played */
};

/* Shares of the time: products (or memory) bind if they are at work for more than this. */
#define PRODUCTS_BIND 0.6
#define MEMORY_BINDS 0.85
#define CLOCK_TOLERANCE 0.01		/* relative difference of clocks that is neglected */
#define TYPICAL_SLOWDOWN 1.15		/* a kernel's time over that of its busiest unit, typically */

/* The simulation of one phase. */
struct job {
	struct arena *a;		/* scratch */
	struct timeline *t;
	const struct plan *plan;	/* with the kernel's own waits, if there is a kernel */
	const struct price *price;
	int phase;
	int64_t keep, max_events;
	bool rough;
	double clock;			/* of the EUs, Hz; 0: to be estimated */
	const struct stop *stop;
	struct tile_assignment assignment;
	struct assignment_cache *assignments;		/* or NULL */
	const bool *warm;
	struct kept_assignment *known;	/* the assignment in it; NULL: there is no cache */
	const struct entry_cost *costs;
	struct phase_line *line;
	const struct eu_class *slowest;
	const struct eu_class *kept;	/* the class whose events are in line->events; NULL: none yet */
	int64_t ticks;
};

static const struct stask *task_of(const struct job *j, int entry)
{
	return &j->plan->graph->tasks.v[j->plan->entries.v[entry].task];
}

/* For each entry i of the phase. */
#define EACH_ENTRY(j, i) \
	for (int i = 0; i < (j)->plan->entries.n; i++) \
		if (task_of((j), i)->phase == (j)->phase)

/* ---- results of one EU's run ------------------------------------------------------ */

static void measure_interval(const struct job *j, const struct eu_run *r, int64_t count)
{
	struct phase_line *line = j->line;

	line->ii_step = r->watch == NONE ? 1 : interval_step(j->plan, r->watch, r->noted);
	line->ii = NAN;
	if (r->watch != NONE && interval_is_steady(j->plan, r->watch, r->noted))
		line->ii = interval_median(r->ends, r->noted, line->ii_step) / TICKS;
	if (isnan(line->ii))
		line->ii = (double)r->ticks / TICKS / (double)max_i64(count, 1);
}

/* Utilization: the work of each unit, from the costs, over the time. */
static void measure_use(const struct job *j, const struct walk *w, const struct eu_run *r)
{
	struct phase_line *line = j->line;
	double cycles = fmax((double)r->ticks / TICKS, 1), l2 = 0, global = 0;
	bool by_engine[SEU_MAX] = { 0 };

	for (int i = 0; i < SEU_MAX; i++)
		line->seu[i] = (struct seu_use){ 0 };
	EACH_ENTRY(j, i) {
		double times = (double)walk_count(w, task_of(j, i)->loop);
		int task = j->plan->entries.v[i].task, seu = j->plan->entries.v[i].seu;

		line->seu[seu].busy += times * j->costs[i].cost.busy;
		if (j->price && j->price->tasks[task].known && j->price->tasks[task].by_threads)
			line->seu[seu].by_threads = true;
		else
			by_engine[seu] = true;
		l2 += times * j->costs[i].cost.l2;
		global += times * j->costs[i].cost.global;
	}
	for (int i = 0; i < SEU_MAX; i++) {
		line->seu[i].share = line->seu[i].busy / cycles;
		line->seu[i].under_way = fmax(line->seu[i].share, (double)r->under_way[i] / TICKS / cycles);
		line->seu[i].by_threads &= !by_engine[i];
	}
	line->memory_share = fmax(l2, global) / cycles;
}

/* ---- the EUs of a phase ------------------------------------------------------------ */

static enum err_code too_many(const struct job *j, struct err *e)
{
	const struct phase *ph = &j->plan->graph->program->phases.v[j->phase];

	return err_set(e, ERR_LIMIT, ph->loc, "phase '%s' takes more than %lld events to simulate; choose larger tiles "
		"or a smaller problem", ph->name, (long long)j->max_events);
}

/* A lower bound on the events of the EU with the most: checked before memory of that size is allocated. */
static double fewest_events(const struct job *j)
{
	const struct graph *g = j->plan->graph;
	double total = (double)g->grids[j->phase].total, eus = plan_eus(j->plan, j->phase), sum = 0;

	EACH_ENTRY(j, i) {
		double tiles = ceil(total / eus), all = total / eus;

		for (int l = task_of(j, i)->loop; l != NONE; l = g->program->loops.v[l].parent) {
			bool outer = g->program->loops.v[l].parent == NONE;

			tiles *= (double)g->trips[l].least;
			all *= outer ? g->trips[l].mean : (double)g->trips[l].least;
		}
		sum += fmax(tiles, all);
	}
	return sum;
}

/* Other warpgroups than the last one of a lane. */
static int other_groups(const struct job *j, int lane)
{
	return price_knows(j->price, j->phase) ? (int)max_i64(j->price->phases[j->phase].lanes[lane].groups, 1) - 1 : 0;
}

/* Order what the other warpgroups did by the events that it is a part of. Where the simulation ended before such a part,
 * it is taken to be like the last warpgroup's. */
static void link_parts(struct job *j, const struct event *v, int64_t n)
{
	struct phase_line *line = j->line;
	int ntasks = j->plan->graph->tasks.n;
	int64_t *first = ARENA_ARRAY(j->a, ntasks + 1, int64_t);	/* by sTask: its instances in `of` */

	line->parts.n = 0;
	for (int i = 0; i < line->events.n; i++) {
		struct event *e = &line->events.v[i];

		first[e->task + 1] = max_i64(first[e->task + 1], e->seq + 1);
		e->nparts = (uint8_t)other_groups(j, e->lane);
		e->part = line->parts.n;
		for (int g = 0; g < e->nparts; g++) {
			struct event *part = &line->parts.v[line->parts.n++];

			*part = *e;
			part->group = (uint8_t)g;
			part->nparts = 0;
		}
	}
	for (int t = 0; t < ntasks; t++)
		first[t + 1] += first[t];
	int *of = ARENA_ARRAY(j->a, first[ntasks], int);	/* 1 + index of the event; 0: not kept */
	for (int i = 0; i < line->events.n; i++)
		of[first[line->events.v[i].task] + line->events.v[i].seq] = i + 1;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = first[v[i].task] + v[i].seq;
		struct event *e = at < first[v[i].task + 1] && of[at] ? &line->events.v[of[at] - 1] : NULL;

		if (e && v[i].end > 0)
			line->parts.v[e->part + v[i].group] = v[i];
		if (e && v[i].end > 0)
			e->before = (int32_t)max_i64(e->before, min_i64(e->start - v[i].start, INT32_MAX));
	}
}

/* How many of the EU's tiles are played. */
static int64_t tiles_played(const struct job *j, const struct eu_class *c, int64_t tiles)
{
	return j->rough && c->alike && tiles >= SAMPLE_LEAST ?
		SAMPLE_TILES + (tiles - SAMPLE_TILES) % SAMPLE_PERIOD : tiles;
}

/* Ticks that the tiles take which were not played. Completions were recorded of the steady tiles, and the one
 * before. */
static int64_t ticks_left_out(const struct eu_run *r, int64_t left_out)
{
	return left_out ? (r->ends[r->nends - 1] - r->ends[0]) * left_out / SAMPLE_STEADY : 0;
}

/* Play one EU of a class; if it is the slowest so far, its numbers become those of the phase. keep: keep its
 * first events. */
static enum err_code play_class(struct job *j, const struct eu_class *c, bool keep, struct err *e)
{
	struct arena_mark scratch = arena_mark(j->a);
	const int64_t *start = &j->assignment.start[c->eu];
	bool again = c == j->slowest;	/* played before: only its events are missing */
	int64_t tiles = start[1] - start[0], played = tiles_played(j, c, tiles), nevents = 0;
	struct walk w;

	walk_init(j->a, &w, j->plan->graph, j->phase, (int)played, j->assignment.order + start[0]);
	int loop = interval_loop(j->plan, j->phase, &w), watch = interval_task(j->plan, j->phase, loop);
	if (played < tiles && (watch == NONE || walk_count(&w, loop) < played)) {	/* nothing ends in each tile */
		played = tiles;
		walk_init(j->a, &w, j->plan->graph, j->phase, (int)played, j->assignment.order + start[0]);
	}
	EACH_ENTRY(j, i)
		nevents += walk_count(&w, task_of(j, i)->loop);
	if (!again && nevents > j->max_events - j->t->nevents)
		return too_many(j, e);
	/* record the middle half of the completions, or all if they are few */
	int64_t count = walk_count(&w, loop), nends = min_i64(count < 8 ? count : count / 2, MAX_ENDS);
	int64_t skip = (count - nends) / 2;
	if (played < tiles) {
		nends = count / played * SAMPLE_STEADY + 1;
		skip = count / played * SAMPLE_SKIP - 1;
	}
	struct eu_run r = { .plan = j->plan, .walk = &w, .costs = j->costs, .stop = j->stop, .only_kept = again,
		.price = price_knows(j->price, j->phase) ? &j->price->phases[j->phase] : NULL,
		.events = j->line->events.v, .keep = keep ? j->line->events.cap : 0,
		.parts = ARENA_ARRAY(j->a, keep ? j->line->parts.cap : 0, struct event), .keep_parts = j->line->parts.cap,
		.watch = watch, .ends = ARENA_ARRAY(j->a, nends, int64_t),
		.nends = nends, .skip = skip };
	TRY(eu_run_play(j->a, &r, e));
	int64_t ticks = r.ticks + ticks_left_out(&r, tiles - played);
	if (keep) {
		j->line->events.n = (int)r.nkept;
		link_parts(j, r.parts, r.nparts);
		j->kept = c;
	}
	if (!again) {
		j->t->nevents += r.nevents;
		if (!j->slowest || ticks > j->ticks) {
			j->slowest = c;
			j->ticks = ticks;
			j->line->ii_loop = loop;
			measure_interval(j, &r, count);
			measure_use(j, &w, &r);
		}
	}
	arena_reset(j->a, scratch);
	return OK;
}

/* Where EUs take groups of tiles, one may have more tiles than that with most work, and end later. */
static int class_of_most_tiles(const struct job *j, const struct eu_class *v, int n)
{
	const int64_t *start = j->assignment.start;
	int most = 0;

	for (int i = 1; i < n; i++)
		if (start[v[i].eu + 1] - start[v[i].eu] > start[v[most].eu + 1] - start[v[most].eu])
			most = i;
	return most;
}

/* Play every class if they are few. Else play those with most work, and an even sample of the others, in case
 * the order of tiles matters more than their number. */
static enum err_code play_classes(struct job *j, const struct eu_class *v, int n, struct err *e)
{
	int most = n <= CLASSES_MOST + CLASSES_SAMPLE ? n : CLASSES_MOST;
	int others = n - most;

	if (j->rough) {
		TRY(play_class(j, &v[0], j->line->events.cap, e));
		most = class_of_most_tiles(j, v, n);
		return most && j->plan->grid.keep > 1 ? play_class(j, &v[most], false, e) : OK;
	}
	for (int i = 0; i < most; i++)
		TRY(play_class(j, &v[i], i == 0 && j->line->events.cap, e));
	for (int i = 0; others && i < CLASSES_SAMPLE; i++)
		TRY(play_class(j, &v[most + (int64_t)i * others / CLASSES_SAMPLE], false, e));
	if (j->line->events.cap && j->kept != j->slowest)
		TRY(play_class(j, j->slowest, true, e));
	return OK;
}

static enum err_code check_units(const struct job *j, struct err *e)
{
	EACH_ENTRY(j, i) {
		const struct entry *en = &j->plan->entries.v[i];

		if (!device_can(j->plan->device, en->seu, &task_of(j, i)->work))
			return err_set(e, ERR_ILLEGAL, en->loc, "sEU '%s' cannot run '%s'",
				j->plan->device->seu[en->seu].name, task_of(j, i)->name);
	}
	return OK;
}

/* An upper bound on the events of an EU; exact if every tile has the same trip counts. */
static double most_events(struct job *j)
{
	const struct graph *g = j->plan->graph;
	const int64_t *start = j->assignment.start;
	int64_t tiles = 0;
	double most = 0;

	for (int u = 0; u < j->assignment.eus; u++)
		tiles = max_i64(tiles, start[u + 1] - start[u]);
	EACH_ENTRY(j, i) {
		double times = (double)tiles;

		for (int l = task_of(j, i)->loop; l != NONE; l = g->program->loops.v[l].parent)
			times *= (double)g->trips[l].most;
		most += times;
	}
	return most;
}

/* Record what blame.h needs to explain the events that are kept. */
static void note_costs(const struct job *j, struct task_cost *costs)
{
	EACH_ENTRY(j, i) {
		const struct entry_cost *c = &j->costs[i];
		double stored = c->stored_to_shared ? c->after : 0;
		int task = j->plan->entries.v[i].task;
		const struct task_price *t = price_knows(j->price, j->phase) ? &j->price->tasks[task] : NULL;

		costs[task] = (struct task_cost){
			.by_threads = t && t->by_threads, .shifted = t && t->shifted,
			.lane = c->cost.issue + c->before + (c->stored_to_shared ? 0 : c->after),
			.shared = c->cost.busy > 0 ? c->cost.shared / c->cost.busy : 0,
			.l2 = c->cost.l2, .global = c->cost.global, .handover = c->handover + stored,
			.latency = c->cost.latency + c->handover + stored };
	}
}

/* ---- power -------------------------------------------------------------------------- */

/* Instances of an entry, over all EUs. */
static double runs_of(const struct job *j, int entry)
{
	return (double)j->assignment.total * graph_runs(j->plan->graph, task_of(j, entry)->loop, NONE);
}

/* The effort of the phase (device.h), over all EUs. */
static struct effort effort_of(const struct job *j)
{
	struct effort sum = { 0 };

	EACH_ENTRY(j, i)
		for (int k = 0; k < EFFORT_KINDS; k++)
			sum.of[k] += runs_of(j, i) * j->costs[i].effort.of[k];
	return sum;
}

/* An estimate of the clock before the simulation, from the time of the busiest unit. The costs of memory in
 * cycles depend on it. */
static double likely_clock(const struct job *j, const struct effort *e)
{
	double unit[SEU_MAX + 2] = { 0 }, most = 0, watts;
	struct effort sum = *e;

	EACH_ENTRY(j, i) {
		unit[j->plan->entries.v[i].seu] += runs_of(j, i) * j->costs[i].cost.busy;
		unit[SEU_MAX] += runs_of(j, i) * j->costs[i].cost.l2;
		unit[SEU_MAX + 1] += runs_of(j, i) * j->costs[i].cost.global;
	}
	for (int i = 0; i < LEN(unit); i++)
		most = fmax(most, unit[i] / j->assignment.eus);
	sum.of[EFFORT_EU] = TYPICAL_SLOWDOWN * most * j->assignment.eus;
	return device_clock(j->plan->device, &sum, TYPICAL_SLOWDOWN * most, j->plan->device->launch_seconds, &watts);
}

/* The classes of the job's EUs, which are kept with the assignment. Returns how many. */
static int find_classes(struct job *j, const struct eu_class **out)
{
	struct kept_assignment *k = j->known;
	struct eu_class *v;
	int n;

	if (!k) {
		n = eu_classes(j->a, j->plan, j->phase, &j->assignment, &v);
		*out = v;
		return n;
	}
	if (!k->classes) {
		k->nclasses = eu_classes(&k->arena, j->plan, j->phase, &k->of, &v);
		k->classes = v;
	}
	*out = k->classes;
	return k->nclasses;
}

/* The mean number of EUs at work: those with less to do leave their share of memory to the others. */
static int active_eus(struct job *j)
{
	const struct eu_class *v;
	int64_t most = 0, sum = 0;
	int n = find_classes(j, &v);

	for (int i = 0; i < n; i++) {
		most = max_i64(most, v[i].work);
		sum += v[i].work * v[i].members;
	}
	return most ? (int)max_i64(ceil_div(sum, most), 1) : j->assignment.eus;
}

static void assign_tiles(struct job *j)
{
	j->known = j->assignments ? assignment_of(j->assignments, j->plan, j->phase) : NULL;
	if (j->known)
		j->assignment = j->known->of;
	else
		plan_assign_tiles(j->a, j->plan, j->phase, &j->assignment);
}

/* What L2 saves depends on the assignment alone, but not on lanes or orders, so it is kept with it. */
static const struct fetched *fetched_of(struct job *j)
{
	const struct graph *g = j->plan->graph;
	struct fetched *out;

	if (!j->known || j->warm)
		return traffic_fetched(j->a, j->plan, j->phase, &j->assignment, j->warm);
	if (j->known->fetched) {
		out = ARENA_ARRAY(j->a, g->tasks.n, struct fetched);
		for (int i = 0; i < g->tasks.n; i++)
			out[i] = j->known->fetched[g->tasks.v[i].task];
		return out;
	}
	out = traffic_fetched(j->a, j->plan, j->phase, &j->assignment, NULL);
	struct fetched *by_task = ARENA_ARRAY(&j->known->arena, g->program->tasks.n, struct fetched);
	for (int i = 0; i < g->tasks.n; i++)
		by_task[g->tasks.v[i].task] = out[i];
	j->known->fetched = by_task;
	return out;
}

/* EUs that take tiles by a counter end together, and none has to wait for those that get less of device memory. That holds
 * for the tiles that they take, and not for those that they begin with. */
static double regained(const struct job *j)
{
	const struct plan *p = j->plan;
	double of_eu = (double)p->graph->grids[j->phase].total / plan_eus(p, j->phase);

	if (!p->grid.dynamic || of_eu <= 0)
		return 0;
	return p->device->global_uneven * fmax(1 - plan_own_tiles(j->a, p, j->phase) / of_eu, 0);
}

/* Set the costs of entries for the clock j->clock, which is estimated if it is 0. Returns the effort. */
static struct effort price_work(struct job *j)
{
	const struct fetched *fetched = fetched_of(j);
	const double *copied = traffic_copied(j->a, j->plan, j->phase, &j->assignment);
	struct pace pace = { .active = j->clock > 0 ? active_eus(j) : j->assignment.eus,
		.clock_hz = j->plan->device->clock_hz, .regained = regained(j) };

	j->costs = traffic_costs(j->a, j->plan, j->phase, fetched, copied, j->price, pace);
	struct effort effort = effort_of(j);
	j->clock = j->clock > 0 ? j->clock : likely_clock(j, &effort);
	if (j->clock != pace.clock_hz) {
		pace.clock_hz = j->clock;
		j->costs = traffic_costs(j->a, j->plan, j->phase, fetched, copied, j->price, pace);
	}
	return effort;
}

const struct entry_cost *sim_costs(struct arena *a, const struct plan *p, int phase, const struct price *price)
{
	struct job j = { .a = a, .plan = p, .phase = phase, .price = price };

	if (price_knows(price, phase))
		j.plan = price->phases[phase].plan;
	assign_tiles(&j);
	price_work(&j);
	return j.costs;
}

static enum err_code play_phase(struct job *j, struct err *e)
{
	struct phase_line *line = j->line;
	struct task_cost *costs = ARENA_ARRAY(j->a, j->plan->graph->tasks.n, struct task_cost);
	struct entry_cost *kept = ARENA_ARRAY(j->a, j->plan->entries.n + 1, struct entry_cost);
	const struct eu_class *classes;
	struct bounds b;

	if (j->plan->graph->grids[j->phase].total > MAX_TILES)
		return too_many(j, e);
	TRY(check_units(j, e));
	if (fewest_events(j) > (double)j->max_events)
		return too_many(j, e);
	assign_tiles(j);
	if (j->keep) {			/* not in the scratch memory, because they stay */
		line->events.cap = (int)fmin(most_events(j), (double)j->keep);
		line->events.v = ARENA_ARRAY(j->a, line->events.cap, struct event);
		int others = 0;
		for (int i = 0; i < j->plan->lanes.n; i++)
			others = (int)max_i64(others, other_groups(j, i));
		line->parts.cap = (int)min_i64((int64_t)line->events.cap * others, INT32_MAX);
		line->parts.v = ARENA_ARRAY(j->a, line->parts.cap, struct event);
	}
	struct arena_mark scratch = arena_mark(j->a);
	struct effort effort = price_work(j);
	note_costs(j, costs);
	line->costs = costs;
	line->entry_costs = memcpy(kept, j->costs, (size_t)j->plan->entries.n * sizeof(*kept));
	int n = find_classes(j, &classes);
	TRY(play_classes(j, classes, n, e));
	line->phase = j->phase;
	line->eu = j->slowest->eu;
	line->eus = j->assignment.eus;
	line->tiles = j->assignment.total;
	line->cycles = ceil_div(j->ticks, TICKS);
	effort.of[EFFORT_EU] = (double)line->cycles * line->eus;
	for (int k = 0; k < EFFORT_KINDS; k++)
		j->t->effort.of[k] += effort.of[k];
	bounds_of_costs(j->a, j->plan, j->costs, j->phase, line->ii_loop, NULL, &b);
	line->res_mii = b.res_mii;
	line->rec_mii = b.rec_mii;
	line->binding_seu = b.binding_seu;
	arena_reset(j->a, scratch);
	return OK;
}

static bool are_products_busy(const struct timeline *t)
{
	const struct vdevice *d = t->plan->device;
	const struct phase_line *longest = timeline_longest(t);

	for (int i = 0; i < d->nseus; i++)
		if (d->seu[i].kind == SEU_MATRIX && longest->seu[i].share > PRODUCTS_BIND)
			return true;
	return false;
}

/* The stated uncertainty of the device, which is smaller if products bind; and what it is at least, where it is
 * not known. */
static double uncertainty_of(const struct timeline *t, double *least)
{
	const struct vdevice *d = t->plan->device;
	bool products = t->products_busy && timeline_longest(t)->memory_share <= MEMORY_BINDS;

	*least = products ? d->least_products : d->least_other;
	if (products ? d->uncertainty_products > 0 : d->uncertainty_other > 0)
		*least = 0;
	return products ? d->uncertainty_products : d->uncertainty_other;
}

/* Do EUs form clusters that meet before they end? That is nearly all that a cluster costs. */
static bool meets_at_end(const struct job *j, int phase)
{
	return plan_cluster(j->plan, phase).size > 1 && !(price_knows(j->price, phase) && j->price->phases[phase].ends_apart);
}

/* Simulate all phases. *clock: the clock that memory's costs are computed for, 0 if unknown; set to the one that
 * was used in the longest phase. */
static enum err_code play_all(struct timeline *t, const struct sim_options *o, double *clock,
	const struct stop *stop, struct err *e)
{
	const struct vdevice *d = t->plan->device;
	double *used = ARENA_ARRAY(&t->arena, t->nphases, double), launches = 0;

	for (int i = 0; i < t->nphases; i++) {
		struct job j = { .a = &t->arena, .t = t, .plan = t->plan, .phase = i, .line = &t->phases[i],
			.stop = stop, .keep = o->keep < 0 ? KEEP : min_i64(o->keep, INT32_MAX),
			.max_events = o->max_events > 0 ? o->max_events : MAX_EVENTS, .price = o->price,
			.assignments = o->assignments, .warm = o->warm, .rough = o->rough, .clock = *clock };

		if (price_knows(j.price, i))
			j.plan = j.price->phases[i].plan;
		t->priced = price_knows(j.price, i) && (!i || t->priced);
		TRY(play_phase(&j, e));
		used[i] = j.clock;
		if (!phase_begins_early(j.plan, i, target_of(d)))
			launches += d->launch_seconds + (meets_at_end(&j, i) ? d->cluster_seconds : 0);
		t->cycles += t->phases[i].cycles;
	}
	t->clock_hz = device_clock(d, &t->effort, (double)t->cycles, launches, &t->watts);
	t->joules = device_energy(d, &t->effort, t->clock_hz);
	t->seconds = (double)t->cycles / t->clock_hz + launches;
	t->products_busy = are_products_busy(t);
	t->uncertainty = uncertainty_of(t, &t->uncertainty_least);
	t->cache = o->warm ? NULL : "cold L2";	/* the simulation begins with an empty L2, but for what is said to be there */
	*clock = used[timeline_longest(t) - t->phases];
	return OK;
}

/* If memory binds, its cycles depend on the clock, and the clock on the total time: repeat until both agree. */
enum err_code sim_run(struct mem *mem, const struct plan *p, const struct sim_options *o,
	const struct stop *stop, struct timeline **out, struct err *e)
{
	static const struct sim_options defaults = { .keep = -1 };
	double clock = 0;

	for (int round = 0;; round++) {
		timeline_new(mem, p, out);
		enum err_code code = play_all(*out, o ? o : &defaults, &clock, stop, e);
		if (!code && (round == ROUNDS_MAX || (round ? fabs((*out)->clock_hz / clock - 1) < CLOCK_TOLERANCE :
		    timeline_longest(*out)->memory_share <= MEMORY_BINDS)))
			return OK;
		clock = (*out)->clock_hz;
		timeline_free(*out);
		*out = NULL;
		if (code)
			return code;
	}
}
