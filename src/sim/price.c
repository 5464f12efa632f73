/* Walks the role program of a kernel once and adds up the cost of each sTask and of each lane; then applies
 * that to the costs of a plan's entries (price_entry).
 *
 * An sTask may occur several times: in the prologue, in the loop, in the epilogue. Only its occurrences in
 * the deepest loop count, which are the steady state, and of these the mean. Costs outside of sTasks are
 * summed per tile, or once for the lane if they are outside of the tile loop. */
#include "sim/price.h"

#include <math.h>
#include <string.h>

enum { MASKED_SAMPLE = 8 };		/* iterations with masks in which the columns that are computed are counted */
enum { TILES_SAMPLE = 64 };		/* tiles in which the interior iterations of a loop are counted ... */
#define SCATTER INT64_C(2654435761)	/* ... so many apart: a prime (Knuth, TAOCP 3, 6.4) */
enum { GROUP_WARPS = 4 };		/* of a warpgroup */
enum { QUARTERS = 4 };			/* of an EU, each with a part of its matrix unit */
enum { SHARED_READ = 30 };		/* cycles until a word of shared memory is there */
enum { LINES = 8 };			/* cache lines that a warp reads at once: four rows that are not aligned */

/* The occurrences of an sTask: their loop depth, and how many were added. */
struct occurrences {
	int depth, n;
};

struct reader {
	struct price *x;
	struct phase_price *phase;
	const struct graph *graph;
	int number;			/* of the phase */
	struct lane_price *lane;
	struct cost_context context;
	struct occurrences *seen;	/* by sTask */
	struct nesting {
		int depth;		/* loops around */
		bool per_tile;		/* inside the tile loop */
		double runs;		/* per tile; inside an sTask: per instance of it */
		double interior;	/* share of the iterations of the loop around that are interior */
		const struct role_op *masked;	/* that loop; NULL: it is not divided */
	} in;
	struct task_price *occurrence;	/* of the current sTask; NULL: outside of sTasks */
	int task;			/* ... and which it is */
	bool multiplied;		/* its product has been issued */
	double ahead;			/* cycles of the lane for what it has read, until it waits for products: it does that
					 * while they are under way */
	bool ends;			/* threads do what the engine does otherwise (SECTION_LENGTH) */
	int handovers;			/* waits for another replica of the lane, in a tile */
	int wait, waits;		/* the current wait of the plan, and its operations so far */
	struct stages stages;		/* of the current sTask */
};

static void add_cost(struct op_cost *to, struct op_cost s)
{
	*to = op_cost_sum(*to, s);
}

/* The smaller number of products that may be in flight; NONE: no limit. */
static int fewer(int a, int b)
{
	return a == NONE || (b != NONE && b < a) ? b : a;
}

/* ---- sTasks --------------------------------------------------------------------------- */

/* Add the occurrence of the sTask if it is in the deepest loop so far. */
static void end_occurrence(struct reader *r, const struct task_price *t)
{
	struct occurrences *seen = &r->seen[r->task];
	struct task_price *sum = &r->x->tasks[r->task];

	if (seen->n && r->in.depth < seen->depth)
		return;
	if (!seen->n || r->in.depth > seen->depth) {
		*seen = (struct occurrences){ .depth = r->in.depth };
		*sum = (struct task_price){ .drain = NONE, .drain_after = NONE };
	}
	seen->n++;
	sum->drain_cost += t->drain_cost;
	add_cost(&sum->before, t->before);
	add_cost(&sum->after, t->after);
	sum->by_threads |= t->by_threads;
	sum->kept |= t->kept;
	sum->shifted |= t->shifted;
	sum->arrives |= t->arrives;
	sum->dma += t->dma;
	sum->stored_to_shared |= t->stored_to_shared;
	sum->drain = fewer(sum->drain, t->drain);
	sum->drain_after = fewer(sum->drain_after, t->drain_after);
	sum->steps += t->steps;
	sum->fetch_lane += t->fetch_lane;
	sum->fetch_latency += t->fetch_latency;
	sum->fetches |= t->fetches;
	sum->boxes += t->boxes;
	sum->issued += t->issued;
	sum->row_boxes += t->row_boxes;
	sum->copies += t->copies;
	sum->sector_ratio = fmax(sum->sector_ratio, t->sector_ratio);
}

static void finish_tasks(struct reader *r)
{
	for (int i = 0; i < r->graph->tasks.n; i++) {
		struct task_price *t = &r->x->tasks[i];
		double share = 1.0 / max_i64(r->seen[i].n, 1);

		if (!r->seen[i].n)
			continue;
		t->known = true;
		t->drain_cost *= share;
		t->before = op_cost_times(t->before, share);
		t->after = op_cost_times(t->after, share);
		t->steps *= share;
		t->dma *= share;
		t->fetch_lane *= share;
		t->fetch_latency *= share;
		t->boxes *= share;
		t->issued *= share;
		t->row_boxes *= share;
		t->copies *= share;
	}
}

static void read_inside(struct reader *r, const struct role_op *o, struct op_cost s)
{
	struct task_price *t = r->occurrence;
	double runs = r->in.runs, issued, boxes = price_boxes(&r->context, o, &issued);
	int stage = stage_of(&r->stages, o);

	if (stage) {
		memcpy(s.ops[stage], s.ops[0], sizeof(s.ops[0]));
		memset(s.ops[0], 0, sizeof(s.ops[0]));
	}
	if (r->ends) {
		add_cost(&t->before, op_cost_times(s, runs));
		return;
	}
	if (o->what == DO_GROUPS_WAIT && !r->multiplied) {
		t->drain_cost += s.lane * runs;
		t->before.lane -= r->ahead;
		r->ahead = 0;
	} else
		add_cost(r->multiplied ? &t->after : &t->before, op_cost_times(s, runs));
	r->ahead += o->what == DO_MAP || o->what == DO_FETCH || o->what == DO_FENCE ? s.lane * runs : 0;
	t->boxes += boxes * runs;
	t->issued += issued * runs;
	t->copies += boxes > 0 ? runs : 0;
	if (o->what == DO_LOAD_BOXES)
		t->row_boxes += runs * (double)o->u.boxes.rows * o->u.boxes.boxes.n;
	t->sector_ratio = fmax(t->sector_ratio, price_sector_ratio(&r->context, o));
	t->arrives |= o->what == DO_LOAD_THREADS && (o->u.move.arrives || o->u.move.dma);
	t->arrives &= o->what != DO_COPIES_WAIT;	/* within the sTask: it does not go on before */
	t->dma += o->what == DO_LOAD_THREADS && o->u.move.dma ? runs * price_dma(&r->context, o) : 0;
	t->by_threads |= o->what == DO_LOAD_THREADS || o->what == DO_LOAD_WORDS || o->what == DO_STORE_THREADS || o->what == DO_STORE_RING;
	t->kept |= o->what == DO_LOAD_BOXES && o->u.boxes.key;
	t->shifted |= o->what == DO_LOAD_THREADS && o->u.move.shifted;
	t->stored_to_shared |= r->multiplied && o->what == DO_PUT;
	if (o->what == DO_PRODUCT)
		t->steps += runs * o->u.product.steps * o->u.product.col_steps * o->u.product.sum.frag->blocks;
	r->multiplied |= o->what == DO_PRODUCT;
	if (o->what == DO_FETCH) {
		t->fetch_lane += runs * (s.lane - r->context.vector->latency);
		t->fetch_latency += runs * r->context.vector->latency;
	}
	t->fetches |= o->what == DO_FETCH;
}

/* ---- regions -------------------------------------------------------------------------- */

static void read_body(struct reader *r, const struct role_body *b);

static void read_task(struct reader *r, const struct role_op *o)
{
	struct task_price occurrence = { .drain = NONE, .drain_after = NONE };

	r->occurrence = &occurrence;
	r->task = o->task;
	r->in.runs = 1;
	r->multiplied = false;
	r->ahead = 0;
	r->wait = NONE;
	r->stages = (struct stages){ .a = r->context.a };
	read_body(r, &o->u.region.body);
	end_occurrence(r, &occurrence);
	r->occurrence = NULL;
}

static double mean_trips(const struct reader *r, int loop)
{
	return loop == NONE ? 1 : fmax(r->graph->trips[loop].mean, 1);
}

/* ---- interior iterations -------------------------------------------------------------- */

/* One iteration of a loop in a tile: the variables of the loop's `unmasked` condition. */
struct loop_iteration {
	struct num_env env;
	const struct program *program;
	const struct axis_ranges *at;
	int loop;
	int64_t first, end, trips, iteration;
	int64_t row0, col0, block, group;	/* of a thread, and of the elements that it has at hand */
};

static int64_t iteration_var(const struct num_env *env, enum var v, int of)
{
	const struct loop_iteration *t = (const struct loop_iteration *)env;

	if (v == VAR_LO)
		return t->at->lo[of];
	if (v == VAR_SIZE)
		return t->program->axes.v[of].size;
	if (v == VAR_ROW0 || v == VAR_COL0)
		return v == VAR_ROW0 ? t->row0 : t->col0;
	if (v == VAR_RB || v == VAR_COL_GROUP)
		return v == VAR_RB ? t->block : t->group;
	if (of != t->loop)
		return v == VAR_TRIPS || v == VAR_STEADY ? 1 : 0;
	return v == VAR_FIRST ? t->first : v == VAR_END ? t->end : v == VAR_TRIPS || v == VAR_STEADY ? t->trips :
		v == VAR_J || v == VAR_I ? t->iteration : 0;
}

/* The number of iterations that fulfil the condition `unmasked`, which are the first ones: bisection. */
static int64_t interior_iterations(struct loop_iteration *t, const struct role_op *o)
{
	int64_t least = 0, most = t->trips;

	while (least < most) {
		t->iteration = least + (most - least) / 2;
		if (num_value(o->u.region.unmasked, &t->env))
			least = t->iteration + 1;
		else
			most = t->iteration;
	}
	return least;
}

/* Of a sample of tiles that is spread over all axes: the iterations of a loop for which count(t, o) counts some, as a share of all.
 * `count` finds what is known of the loop in a tile in *t. */
static double iterations_share(const struct reader *r, const struct role_op *o, int loop,
	int64_t (*count)(struct loop_iteration *t, const struct role_op *o))
{
	const struct grid *grid = &r->graph->grids[r->number];
	int64_t n = min_i64(grid->total, TILES_SAMPLE), counted = 0, all = 0;
	struct axis_ranges at;
	struct loop_iteration t = { .env.var = iteration_var, .program = r->graph->program, .at = &at, .loop = loop };

	for (int64_t i = 0; i < n; i++) {
		int64_t last, tile = n < grid->total ? i * SCATTER % grid->total : i;

		ranges_set_tile(&r->graph->extents, grid, tile, &at);
		visited_iterations(&r->graph->extents, t.loop, &at, &t.first, &last);
		t.end = typical_end(&r->graph->extents, t.loop, &at);
		t.trips = max_i64(last - t.first, 0);
		counted += count(&t, o);
		all += t.trips;
	}
	return all > 0 ? (double)counted / (double)all : 0;
}

/* The share of the loop's iterations that are interior. */
static double interior_share(const struct reader *r, const struct role_op *o)
{
	return o->u.region.of == NONE ? 0 : iterations_share(r, o, o->u.region.of, interior_iterations);
}

/* Is the last iteration the one in which a length ends within a tile? A length that is a multiple of the tile has none. */
static int64_t ending_iterations(struct loop_iteration *t, const struct role_op *o)
{
	t->iteration = t->trips - 1;
	return t->trips > 0 && num_value(o->u.region.when, &t->env) ? 1 : 0;
}

/* Does a warp compute the columns from the group on? The comparison is of a column with a row, so it is one of the threads with the
 * first and the last ones of its rows and columns for which it holds first. */
static bool computes_chunk(struct loop_iteration *t, const struct role_op *o, int warp)
{
	const struct frag_layout *l = o->u.map.over->layout;

	for (int i = 0; i < 2; i++) {
		t->row0 = (int64_t)warp * l->rows + (i ? (l->row.mod - 1) * l->row.step : 0);
		t->col0 = i ? 0 : (l->col.mod - 1) * l->col.step;
		if (num_value(o->u.map.some, &t->env))
			return true;
	}
	return false;
}

/* The share of its columns that a map computes in iterations that are not interior, in a sample of them. */
static double needed_share(const struct reader *r, const struct role_op *o)
{
	const struct grid *grid = &r->graph->grids[r->number];
	const struct frag *f = o->u.map.over;
	int64_t n = min_i64(grid->total, TILES_SAMPLE), needed = 0, all = 0;
	struct axis_ranges at, inside;
	struct loop_iteration t = { .env.var = iteration_var, .program = r->graph->program };

	if (!r->in.masked)
		return 1;
	t.loop = r->in.masked->u.region.of;
	for (int64_t i = 0, masked = 0; i < n && masked < MASKED_SAMPLE; i++) {
		int64_t last, tile = n < grid->total ? i * SCATTER % grid->total : i;

		ranges_set_tile(&r->graph->extents, grid, tile, &at);
		visited_iterations(&r->graph->extents, t.loop, &at, &t.first, &last);
		t.at = &at;
		t.end = typical_end(&r->graph->extents, t.loop, &at);
		t.trips = max_i64(last - t.first, 0);
		for (int64_t k = interior_iterations(&t, r->in.masked); k < t.trips; k++, masked++) {
			inside = at;
			ranges_set_iteration(&r->graph->extents, t.loop, t.first + k, &inside);
			t.at = &inside;
			t.iteration = k;
			for (int w = 0; w < r->context.warps; w++)
				for (t.block = 0; t.block < f->blocks; t.block++)
					for (t.group = 0; t.group < frag_groups(f); t.group += o->u.map.chunk, all++)
						needed += computes_chunk(&t, o, w);
			t.at = &at;
		}
	}
	return all ? (double)needed / (double)all : 1;
}

/* A condition inside an sTask holds once per run of its loop: at the beginning or at the end. Outside of
 * sTasks it is the end of a steady state, which comes once, or the case of few iterations (the other branch),
 * which counts nothing. */
static void read_if(struct reader *r, const struct role_op *o)
{
	int depth = r->in.depth;

	if (o->u.region.section == SECTION_SKIP)
		return;
	if (o->u.region.section == SECTION_REACHED) {
		r->in.runs *= r->graph->tasks.v[r->task].work.reached;
		read_body(r, &o->u.region.body);
		return;
	}
	if (o->u.region.section == SECTION_LENGTH) {	/* in such iterations threads do the work of the engine */
		double runs = r->in.runs, once = runs * iterations_share(r, o, r->graph->tasks.v[r->task].loop, ending_iterations);

		r->in.runs = once;
		r->ends = true;
		read_body(r, &o->u.region.body);
		r->ends = false;
		r->in.runs = runs - once;
		read_body(r, &o->u.region.other);
		return;
	}
	if (r->occurrence) {
		r->in.runs /= mean_trips(r, r->graph->tasks.v[r->task].loop);
	} else if (o->u.region.section == SECTION_EPILOGUE) {
		r->in.depth--;
		r->in.per_tile = r->in.depth > 0;
		r->in.runs = r->in.per_tile ? 0 : 1;
	}
	read_body(r, &o->u.region.body);
	r->in.depth = depth - 1;
	r->in.runs = r->occurrence ? r->in.runs : 0;
	read_body(r, &o->u.region.other);
}

/* Is it the wait of a replica for the one that has the tile before (handover_task in lower/sync/flags.c)? Replicas that
 * wait several times a tile, as where steps are of different tiles, are taken not to wait. */
static void read_handover(struct reader *r, const struct role_op *o)
{
	const struct role_flag *f = &r->context.program->flags.v[o->u.flag.flag];
	const struct plan *p = r->phase->plan;
	int lane = (int)(r->lane - r->phase->lanes), entry = plan_entry_of(p, f->task);

	if (p->lanes.v[lane].replicas < 2 || entry == NONE || p->entries.v[entry].lane != lane || !f->issued)
		return;
	r->lane->handover = r->handovers++ ? NONE : f->task;
}

static void read_op(struct reader *r, const struct role_op *o)
{
	double wait_cost = r->context.device->wait_cost;
	bool is_wait = o->what == DO_WAIT && o->wait != NONE && r->occurrence;

	/* A wait of the plan costs the lane only if it asks for a new instance, which the simulator decides. If
	 * several operations serve it, they cost together. */
	if (is_wait) {
		r->waits = o->wait == r->wait ? r->waits + 1 : 1;
		r->wait = o->wait;
		r->phase->wait[o->wait] = fmax(r->phase->wait[o->wait], r->waits * wait_cost);
	}
	if (o->what == DO_WAIT && !r->occurrence && r->in.per_tile)
		read_handover(r, o);
	if (o->what == DO_GROUPS_WAIT && r->in.runs == 1 && (r->occurrence || r->in.per_tile)) {
		int *drain = !r->occurrence ? &r->lane->drain : r->multiplied ? &r->occurrence->drain_after :
			&r->occurrence->drain;

		*drain = fewer(*drain, o->u.count);
	}
	if (o->what == DO_MAP && o->u.map.some)
		r->context.needed = needed_share(r, o);
	struct op_cost s = price_op(&r->context, o);
	if (o->what == DO_BLOCK_SYNC) {		/* the simulator counts the meetings */
		r->phase->meeting = s.lane;
		return;
	}
	if (r->in.interior > 0) {
		s = op_cost_times(s, 1 - r->in.interior);
		r->context.unmasked = true;
		add_cost(&s, op_cost_times(price_op(&r->context, o), r->in.interior));
		r->context.unmasked = false;
	}
	if (r->in.depth > 1 && role_syncs_lane(o, r->context.warps))
		r->lane->groups = 1;
	if (r->occurrence)
		read_inside(r, o, s);
	else
		*(r->in.per_tile ? &r->lane->tile : &r->lane->end) +=
			(o->what == DO_WAIT ? wait_cost : s.lane) * r->in.runs;
}

/* The number of the next tile, if blocks take tiles by a counter: a wait for it, a read of shared memory and an arrival that says so. The
 * lane that asks also waits until there is space for the number, signals that it is there, and waits until it sees that. */
static void read_number(struct reader *r, const struct role_op *o)
{
	const struct vdevice *d = r->context.device;

	r->lane->number += d->wait_cost + d->warp_cost + d->tell_cost + SHARED_READ;
	if (!o->u.region.asks)
		return;
	r->lane->number += d->wait_cost + d->tell_cost + d->warp_cost + d->flag_latency;
	r->lane->asks = d->global_latency;
}

/* DO_LOOP is a loop within a tile, or the loop over tiles, each of whose iterations is one tile. */
static void read_region(struct reader *r, const struct role_op *o)
{
	struct nesting outer = r->in;
	int repetitions = o->what == DO_EACH ? o->u.region.step : 1;

	r->in.depth += o->what == DO_TILES || o->what == DO_LOOP;
	r->in.per_tile |= o->what == DO_TILES;
	if (o->what == DO_TILES && o->u.region.taken)
		read_number(r, o);
	if (o->what == DO_LOOP && o->u.region.unmasked) {
		r->in.interior = interior_share(r, o);
		r->in.masked = o->u.region.of == NONE ? NULL : o;
	}
	if (o->what == DO_LOOP && !r->occurrence) {
		r->in.runs *= mean_trips(r, o->u.region.of) / o->u.region.step;
		r->in.per_tile |= o->u.region.of == NONE && o->u.region.var == VAR_J;
	}
	if (o->what == DO_TASK)
		read_task(r, o);
	else if (o->what == DO_IF)
		read_if(r, o);
	else
		for (int i = 0; i < repetitions; i++) {
			r->context.repetition = o->what == DO_EACH ? i : r->context.repetition;
			read_body(r, &o->u.region.body);
		}
	if (o->what == DO_EACH)
		r->context.repetition = 0;
	r->in = outer;
}

static void read_body(struct reader *r, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		if (role_is_region(b->v.v[i]->what))
			read_region(r, b->v.v[i]);
		else
			read_op(r, b->v.v[i]);
	}
}

/* ---- a kernel ------------------------------------------------------------------------- */

void price_init(struct arena *a, const struct plan *p, struct price *out)
{
	*out = (struct price){ .a = a, .phases = ARENA_ARRAY(a, p->graph->program->phases.n, struct phase_price),
		.tasks = ARENA_ARRAY(a, p->graph->tasks.n, struct task_price) };
}

static const struct seu *vector_of(const struct vdevice *d)
{
	for (int i = 0; i < d->nseus; i++)
		if (d->seu[i].kind == SEU_VECTOR)
			return &d->seu[i];
	return NULL;
}

/* The warpgroups of a lane cannot run separately if it has replicas, if an sTask is executed once for all of
 * them (a load, a copy by threads), if all wait for a product (stored_to_shared), or if products are
 * synchronous, since a synchronous matrix unit is not modelled as shared. */
static void join_groups(struct phase_price *ph, const struct price *x, int phase)
{
	const struct plan *p = ph->plan;

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *en = &p->entries.v[i];
		const struct task_price *t = &x->tasks[en->task];
		const struct stask *s = &p->graph->tasks.v[en->task];
		const struct seu *u = &p->device->seu[en->seu];

		if (s->phase == phase && (p->lanes.v[en->lane].replicas > 1 || t->by_threads || t->stored_to_shared ||
		    s->kind == TASK_LOAD || (u->kind == SEU_MATRIX && !u->async)))
			ph->lanes[en->lane].groups = 1;
	}
}

/* ---- fetches --------------------------------------------------------------------------- */

/* The next product of the entry's lane and loop that comes behind it, in the next iteration if there is none in this one;
 * NONE: none. *later: it is in the next one. */
static int next_product(const struct plan *p, int entry, bool *later)
{
	const struct entry *en = &p->entries.v[entry];
	int n = p->entries.n, loop = p->graph->tasks.v[en->task].loop;

	for (int i = 1; i < n; i++) {
		int k = (entry + i) % n;
		const struct stask *s = &p->graph->tasks.v[p->entries.v[k].task];

		*later = k < entry;
		if (*later && loop == NONE)
			return NONE;
		if (p->entries.v[k].lane == en->lane && s->loop == loop && s->phase == p->graph->tasks.v[en->task].phase &&
		    s->kind == TASK_MMA)
			return k;
	}
	return NONE;
}

/* The product that is under way while the entry fetches: the next one, unless it needs what is fetched. NONE: none. */
static int covering_product(const struct plan *p, int entry)
{
	const struct entry *en = &p->entries.v[entry];
	bool later;
	int next = next_product(p, entry, &later);

	if (next == NONE || (stask_reads(&p->graph->tasks.v[p->entries.v[next].task],
	    p->graph->tasks.v[en->task].writes.v[0]) && en->at == p->entries.v[next].at + later))
		return NONE;
	return next;
}

/* Divide what the waits of the sTask cost by the number of warps that share a quarter's unit, as each of them waits for itself,
 * while others multiply. */
static void share_waits(struct price *x, const struct plan *p, int phase, int task, double sharing)
{
	x->tasks[task].sharing = sharing;
	for (int w = 0; w < p->waits.n; w++)
		if (p->waits.v[w].task == task)
			x->phases[phase].wait[w] /= sharing;
}

/* A fetch of what the next product does not need is under way while that multiplies, and costs its lane only what that
 * does not cover, at least its instructions; nothing waits for its words. */
static void cover_fetches(struct price *x, const struct plan *p, int phase, const struct seu *vector)
{
	struct pace pace = { .active = p->device->eus, .clock_hz = p->device->clock_hz };

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		struct task_price *t = &x->tasks[p->entries.v[i].task];
		int product = s->phase == phase && stask_fetches(p->graph, s) ? covering_product(p, i) : NONE, others = 0;
		int warps = lane_warps(p, p->entries.v[i].lane);
		const struct entry *by;

		if (product == NONE)
			continue;
		by = &p->entries.v[product];
		for (int k = 0; k < p->entries.n; k++)
			others += p->graph->tasks.v[p->entries.v[k].task].phase == phase &&
				stask_fetches(p->graph, &p->graph->tasks.v[p->entries.v[k].task]) && covering_product(p, k) == product;
		t->before.lane = fmax(t->before.unit / fmin(1, vector->lane_share * warps / QUARTERS), t->before.lane -
			t->fetch_latency - device_cost(p->device, by->seu, &p->graph->tasks.v[by->task].work, warps, pace).alone / others);
		share_waits(x, p, phase, p->entries.v[i].task, fmax(1, warps / (double)QUARTERS));
	}
}

/* The cycles in which shared memory delivers to the lane what a product reads, and what the sTasks read that make its operands
 * where it takes them. */
static double from_shared(const struct price *x, const struct plan *p, int product)
{
	const struct graph *g = p->graph;
	double cycles = x->tasks[product].before.shared + x->tasks[product].after.shared;

	for (int i = 0; i < g->tasks.n; i++)
		if (stask_is_direct(g, &g->tasks.v[i]) && g->tasks.v[i].writes.n &&
		    stask_reads(&g->tasks.v[product], g->tasks.v[i].writes.v[0]))
			cycles += x->tasks[i].before.shared + x->tasks[i].after.shared;
	return cycles;
}

/* A synchronous product fetches the operands of a step while it multiplies those of the step before, as compilers unroll its
 * steps and order their instructions so: it takes the longer of both, and the shorter one once, for the first step. The latency
 * of the first fetch is in the unit's `issue`. Where several warps share a quarter's unit, each waits for flags and for its first
 * fetch while others multiply. Where operands are converted between their fetch and their product, these instructions are
 * what the lane waits for. */
static void cover_own_fetches(struct price *x, const struct plan *p, int phase)
{
	struct pace pace = { .active = p->device->eus, .clock_hz = p->device->clock_hz };

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *en = &p->entries.v[i];
		const struct stask *s = &p->graph->tasks.v[en->task];
		struct task_price *t = &x->tasks[en->task];
		const struct seu *u = &p->device->seu[en->seu];
		const struct matrix_instruction *by = s->phase == phase && s->kind == TASK_MMA && u->kind == SEU_MATRIX && !u->async ?
			target_matrix(target_of(p->device), false, false, s->work.type) : NULL;
		int warps = lane_warps(p, en->lane);
		double product, steps, sharing = fmax(1, warps / (double)QUARTERS);

		if (!by || (by->fnuz | by->as_f16) & (1u << s->work.operand[0] | 1u << s->work.operand[1]))
			continue;
		product = device_cost(p->device, en->seu, &s->work, warps, pace).alone;
		steps = fmax(1, (double)s->work.k / matrix_depth(by, s->work.type)) * sharing;
		t->before.lane -= t->fetch_latency + fmin(t->fetch_lane, product) * (1 - 1 / steps);
		t->from_shared = from_shared(x, p, en->task);
		share_waits(x, p, phase, en->task, sharing);
	}
}

/* Replicas of a lane have the same operations, so the last one stands for all. */
void price_add(struct price *x, const struct plan *own, int phase, const struct role_program *p)
{
	struct phase_price *ph = &x->phases[phase];
	struct reader r = { .x = x, .phase = ph, .number = phase, .graph = own->graph,
		.seen = ARENA_ARRAY(x->a, own->graph->tasks.n, struct occurrences) };

	r.context = (struct cost_context){ .device = own->device, .vector = vector_of(own->device),
		.program = p, .source = own->graph->program, .a = x->a };
	if (!r.context.vector)
		return;			/* nothing could execute the lane's own instructions */
	ph->plan = own;
	ph->meetings = p->meetings.interval ? &p->meetings : NULL;
	ph->ends_apart = p->ends_apart;
	ph->wait = ARENA_ARRAY(x->a, own->waits.n, double);
	for (int i = 0; i < p->roles.n; i++) {
		const struct role *role = &p->roles.v[i];

		r.context.warps = role->warps;
		r.lane = &ph->lanes[role->lane];
		*r.lane = (struct lane_price){ .drain = NONE, .handover = NONE, .own = p->taken.own,
			.groups = role->warps % GROUP_WARPS ? 1 : role->warps / GROUP_WARPS };
		r.in = (struct nesting){ .runs = 1 };
		r.handovers = 0;
		read_body(&r, &role->body);
	}
	finish_tasks(&r);
	cover_fetches(x, own, phase, r.context.vector);
	cover_own_fetches(x, own, phase);
	join_groups(ph, x, phase);
}

/* ---- one entry ------------------------------------------------------------------------- */

/* Cycles of the lane, with the reads of global memory that it waits for. A warp waits for the slowest of LINES
 * lines, each of which comes from device memory with probability `share`. */
static double lane_cycles(const struct vdevice *d, const struct op_cost *s, double share)
{
	double slow = 1 - pow(1 - fmin(share, 1), LINES);

	return s->lane + s->global_reads * (slow * d->global_latency + (1 - slow) * d->l2_latency);
}

/* The arithmetic of the entry's threads: cycles, stage by stage, and the number of operations. */
static struct cost price_operations(const struct plan *p, int entry, const struct task_price *t, double *operations)
{
	const struct seu *s = vector_of(p->device);
	struct op_cost all = op_cost_sum(t->before, t->after);
	struct cost sum = { 0 };

	*operations = all.unit * s->slots;
	for (int i = 0; i < STAGES; i++) {
		struct cost c = device_vector(s, all.ops[i], lane_warps(p, p->entries.v[entry].lane));

		sum.busy += c.busy;
		sum.alone += c.alone;
		for (int k = 0; k < CLASS_COUNT; k++)
			*operations += all.ops[i][k];
	}
	return sum;
}

struct entry_cost price_group(const struct entry_cost *c, const struct seu *seu)
{
	struct entry_cost part = *c;
	double pace = seu->kind == SEU_VECTOR ? fmin(1, seu->lane_share * fmax(c->groups, 1)) / seu->lane_share : 1;

	if (c->groups <= 1)
		return part;
	part.cost.busy /= c->groups;
	part.cost.alone = (c->cost.alone - c->fixed) * pace / c->groups + c->fixed;
	part.cost.l2 /= c->groups;
	part.cost.global /= c->groups;
	part.cost.memory /= c->groups;
	part.steps /= c->groups;
	return part;
}

void price_entry(const struct price *x, const struct plan *p, int entry, double share, struct entry_cost *c)
{
	const struct entry *en = &p->entries.v[entry];
	const struct seu *s = &p->device->seu[en->seu];
	const struct task_price *t = &x->tasks[en->task];
	double interval = p->graph->tasks.v[en->task].work.adds ? s->add_interval : s->box_interval;

	c->groups = x->phases[p->graph->tasks.v[en->task].phase].lanes[en->lane].groups;
	if (!t->known)
		return;
	double before = lane_cycles(p->device, &t->before, share);
	double after = lane_cycles(p->device, &t->after, share), lane;
	struct cost work = price_operations(p, entry, t, &c->effort.of[EFFORT_VECTOR]);
	before += s->kind == SEU_VECTOR ? 0 : work.alone;
	c->drain_cost = t->drain_cost;
	c->drain = t->drain;
	c->drain_after = t->drain_after;
	lane = before + after;
	if (t->by_threads) {
		/* it is complete when the lane continues, unless the copies signal their arrival themselves (cp.async
		 * with an mbarrier), or the lane waits for them later by a count */
		c->cost.busy = s->kind == SEU_VECTOR ? t->before.unit : t->dma * s->box_interval;
		c->cost.alone = s->async ? 0 : lane;
		c->cost.issue = s->async ? lane : 0;
		c->cost.latency = t->arrives ? lane_cycles(p->device, &(struct op_cost){ .global_reads = 1 }, share) :
			s->async ? fmax(lane - c->cost.memory, 0) : 0;
	} else if (s->kind == SEU_COPY) {
		c->cost.busy = t->boxes * interval + t->row_boxes * s->row_interval;
		c->cost.alone = c->cost.busy + (s->async ? 0 : lane);
		c->cost.issue = t->copies * s->issue + fmax(t->issued - t->copies, 0) * interval + lane;
	} else if (s->kind == SEU_MATRIX && s->async) {
		c->before = before;
		c->after = after;
		c->steps = t->steps;
		c->cost.issue += fmax(t->steps - 1, 0) * s->step;
		c->stored_to_shared = t->stored_to_shared;
	} else {
		if (s->kind == SEU_VECTOR) {
			c->cost.busy = work.busy + t->before.unit + t->after.unit;
			c->cost.alone = work.alone;
			if (t->fetches)
				c->cost.latency /= fmax(1, t->sharing);
			c->fixed = lane;
		} else if (s->kind == SEU_MATRIX && t->steps > 0 && !t->fetches) {
			c->cost.latency = 0;	/* nothing that the lane does next is for the sum */
		}
		if (s->kind == SEU_MATRIX)	/* the products of all lanes get their operands from one memory */
			c->cost.busy = fmax(c->cost.busy, t->from_shared);
		c->cost.alone += lane;
	}
}
