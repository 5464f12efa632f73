/* A kernel's tree, gone through once: what each sTask and each lane pays, and what that makes
 * of the costs of a plan's entries. */
#include "sim/price.h"

#include <math.h>
#include <string.h>

enum { TILES_SAMPLE = 64 };		/* of which a loop's turns are looked at ... */
#define SCATTER INT64_C(2654435761)	/* ... so many apart: a prime (Knuth, TAOCP 3, 6.4) */
enum { GROUP_WARPS = 4 };		/* of a warpgroup, that multiplies by itself */
enum { LINES = 8 };			/* that a warp reads at once: four rows, which begin anywhere */

/* Texts of an sTask differ: in the turns before and behind a loop it stands elsewhere. Those
 * deepest in loops are the steady state, and of them the mean counts. */
struct texts {
	int depth, n;
};

struct reader {
	struct price *x;
	struct phase_price *phase;
	const struct graph *graph;
	int number;			/* of the phase */
	struct lane_price *lane;
	struct payer payer;
	struct texts *texts;		/* by sTask */
	int depth;			/* loops around */
	bool per_tile;			/* inside the tile loop */
	double often;			/* ... times a tile; of what is inside an sTask: a time */
	struct task_price *text;	/* of the sTask at hand; NULL: outside of any */
	int task;
	bool multiplied;		/* and its product is behind */
	int wait, waits;		/* operations for one wait of it, one after the other */
	double clear;			/* share of the turns that are, of the loop around */
	struct stages stages;		/* of the sTask at hand */
};

static void add(struct spent *to, struct spent s)
{
	*to = spent_sum(*to, &s);
}

static int fewer(int a, int b)
{
	return a == NONE || (b != NONE && b < a) ? b : a;
}

/* sTasks ----------------------------------------------------------------------- */

static void add_task(struct task_price *to, const struct task_price *t)
{
	to->drain_cost += t->drain_cost;
	add(&to->before, t->before);
	add(&to->after, t->after);
	to->by_threads |= t->by_threads;
	to->arrives |= t->arrives;
	to->stored_to_shared |= t->stored_to_shared;
	to->drain = fewer(to->drain, t->drain);
	to->drain_after = fewer(to->drain_after, t->drain_after);
	to->steps += t->steps;
	to->boxes += t->boxes;
	to->issued += t->issued;
	to->pieces += t->pieces;
	to->spread = fmax(to->spread, t->spread);
}

static void end_text(struct reader *r)
{
	struct texts *seen = &r->texts[r->task];
	struct task_price *sum = &r->x->tasks[r->task];

	if (seen->n && r->depth < seen->depth)
		return;
	if (!seen->n || r->depth > seen->depth) {
		*seen = (struct texts){ .depth = r->depth };
		*sum = (struct task_price){ .drain = NONE, .drain_after = NONE };
	}
	add_task(sum, r->text);
	seen->n++;
}

static void finish_tasks(struct reader *r)
{
	for (int i = 0; i < r->graph->tasks.n; i++) {
		struct task_price *t = &r->x->tasks[i];
		double share = 1.0 / max_i64(r->texts[i].n, 1);

		if (!r->texts[i].n)
			continue;
		t->known = true;
		t->drain_cost *= share;
		t->before = spent_times(t->before, share);
		t->after = spent_times(t->after, share);
		t->steps *= share;
		t->boxes *= share;
		t->issued *= share;
		t->pieces *= share;
	}
}

/* A wait of the plan costs when it asks for something new: the simulator knows when. */
static void read_wait(struct reader *r, const struct role_op *o)
{
	double *cost = &r->phase->wait[o->wait];

	r->waits = o->wait == r->wait ? r->waits + 1 : 1;
	r->wait = o->wait;
	*cost = fmax(*cost, r->waits * r->payer.device->wait_cost);
}

static void read_drain(struct reader *r, const struct role_op *o)
{
	int *drain = r->text ? (r->multiplied ? &r->text->drain_after : &r->text->drain) :
		&r->lane->drain;

	if (r->often == 1 && (r->text || r->per_tile))
		*drain = fewer(*drain, o->u.count);
}

static void read_inside(struct reader *r, const struct role_op *o, struct spent s)
{
	struct task_price *t = r->text;
	double issued, boxes = price_boxes(&r->payer, o, &issued);
	int stage = stage_of(&r->stages, o);

	if (stage) {
		memcpy(s.ops[stage], s.ops[0], sizeof(s.ops[0]));
		memset(s.ops[0], 0, sizeof(s.ops[0]));
	}
	if (o->what == DO_GROUPS_WAIT && !r->multiplied)
		t->drain_cost += s.lane * r->often;
	else
		add(r->multiplied ? &t->after : &t->before, spent_times(s, r->often));
	t->boxes += boxes * r->often;
	t->issued += issued * r->often;
	t->pieces += boxes > 0 ? r->often : 0;
	t->spread = fmax(t->spread, price_spread(&r->payer, o));
	t->arrives |= o->what == DO_LOAD_THREADS && o->u.move.arrives;
	t->by_threads |= o->what == DO_LOAD_THREADS || o->what == DO_STORE_THREADS ||
		o->what == DO_STORE_RING;
	t->stored_to_shared |= r->multiplied && o->what == DO_PUT;
	if (o->what == DO_PRODUCT)
		t->steps += r->often * o->u.product.steps * o->u.product.pieces *
			o->u.product.sum.frag->blocks;
	r->multiplied |= o->what == DO_PRODUCT;
}

static void read_outside(struct reader *r, const struct role_op *o, struct spent s)
{
	if (o->what == DO_WAIT)
		s.lane = r->payer.device->wait_cost;
	if (r->per_tile)
		r->lane->tile += s.lane * r->often;
	else
		r->lane->end += s.lane * r->often;
}

/* regions ---------------------------------------------------------------------- */

static void read_body(struct reader *r, const struct role_body *b);

static void read_task(struct reader *r, const struct role_op *o)
{
	struct task_price text = { .drain = NONE, .drain_after = NONE };
	double often = r->often;

	r->text = &text;
	r->task = o->task;
	r->often = 1;
	r->multiplied = false;
	r->wait = NONE;
	r->stages = (struct stages){ .a = r->payer.a };
	read_body(r, &o->u.region.body);
	end_text(r);
	r->text = NULL;
	r->often = often;
}

static double trips(const struct reader *r, int loop)
{
	return loop == NONE ? 1 : fmax(r->graph->trips[loop].mean, 1);
}

/* ---- turns that nothing cuts --------------------------------------------------------- */

/* A turn of a loop in a tile, for what its condition asks. */
struct turn {
	struct num_env env;
	const struct axis_ranges *at;
	int loop;
	int64_t first, trips, turn;
};

static int64_t turn_var(const struct num_env *env, enum var v, int of)
{
	const struct turn *t = (const struct turn *)env;

	if (v == VAR_LO)
		return t->at->lo[of];
	if (of != t->loop)
		return v == VAR_TRIPS || v == VAR_STEADY ? 1 : 0;
	return v == VAR_FIRST ? t->first : v == VAR_TRIPS || v == VAR_STEADY ? t->trips :
		v == VAR_J || v == VAR_I ? t->turn : 0;
}

/* The first ones are clear, up to some turn. */
static int64_t clear_turns(struct turn *t, const struct num *clear)
{
	int64_t least = 0, most = t->trips;

	while (least < most) {
		t->turn = least + (most - least) / 2;
		if (num_value(clear, &t->env))
			least = t->turn + 1;
		else
			most = t->turn;
	}
	return least;
}

/* Of all turns of the loop, in a sample of the tiles, which are those of no single axis. */
static double clear_share(const struct reader *r, const struct role_op *o)
{
	const struct grid *grid = &r->graph->grids[r->number];
	int64_t n = min_i64(grid->total, TILES_SAMPLE), clear = 0, all = 0;
	struct axis_ranges at;
	struct turn t = { .env.var = turn_var, .at = &at, .loop = o->u.region.of };

	if (t.loop == NONE)
		return 0;
	for (int64_t i = 0; i < n; i++) {
		int64_t last, tile = n < grid->total ? i * SCATTER % grid->total : i;

		ranges_set_tile(&r->graph->extents, grid, tile, &at);
		visited_iterations(&r->graph->extents, t.loop, &at, &t.first, &last);
		t.trips = max_i64(last - t.first, 0);
		clear += clear_turns(&t, o->u.region.unmasked);
		all += t.trips;
	}
	return all > 0 ? (double)clear / (double)all : 0;
}

/* A loop of the tile's. One over tiles is about a tile in each of its turns. */
static void read_loop(struct reader *r, const struct role_op *o)
{
	struct reader outer = *r;

	r->depth++;
	if (o->u.region.unmasked)
		r->clear = clear_share(r, o);
	if (!r->text) {
		r->often *= trips(r, o->u.region.of) / o->u.region.step;
		r->per_tile |= o->u.region.of == NONE && o->u.region.var == VAR_J;
	}
	read_body(r, &o->u.region.body);
	r->depth = outer.depth;
	r->often = outer.often;
	r->per_tile = outer.per_tile;
	r->clear = outer.clear;
}

static void read_tiles(struct reader *r, const struct role_op *o)
{
	r->depth++;
	r->per_tile = true;
	read_body(r, &o->u.region.body);
	r->per_tile = false;
	r->depth--;
}

static bool ends_with(const struct role_body *b, enum role_do what)
{
	return b->v.n && b->v.v[b->v.n - 1]->what == what;
}

/* Inside an sTask, a condition asks whether a run begins or ends. Around them, it is the end
 * of a loop's turns, or how few there are. */
static void read_if(struct reader *r, const struct role_op *o)
{
	struct reader outer = *r;

	if (ends_with(&o->u.region.body, DO_CONTINUE))
		return;
	if (r->text) {
		r->often /= trips(r, r->graph->tasks.v[r->task].loop);
	} else if (ends_with(&o->u.region.body, DO_BREAK)) {
		r->depth--;
		r->per_tile = r->depth > 0;
		r->often = r->per_tile ? 0 : 1;
	}
	read_body(r, &o->u.region.body);
	r->depth = outer.depth - 1;
	r->often = r->text ? r->often : 0;
	read_body(r, &o->u.region.other);
	r->depth = outer.depth;
	r->often = outer.often;
	r->per_tile = outer.per_tile;
}

static void read_each(struct reader *r, const struct role_op *o)
{
	for (int i = 0; i < o->u.region.step; i++) {
		r->payer.round = i;
		read_body(r, &o->u.region.body);
	}
	r->payer.round = 0;
}

static void read_op(struct reader *r, const struct role_op *o)
{
	struct spent s;

	if (o->what == DO_WAIT && o->wait != NONE && r->text)
		read_wait(r, o);
	if (o->what == DO_GROUPS_WAIT)
		read_drain(r, o);
	s = price_op(&r->payer, o);
	if (r->clear > 0) {
		s = spent_times(s, 1 - r->clear);
		r->payer.clear = true;
		add(&s, spent_times(price_op(&r->payer, o), r->clear));
		r->payer.clear = false;
	}
	if (r->depth > 1 && (o->what == DO_LANE_SYNC || (o->what == DO_REDUCE && o->u.reduce.along_rows)))
		r->lane->groups = 1;
	if (r->text)
		read_inside(r, o, s);
	else
		read_outside(r, o, s);
}

static void read_region(struct reader *r, const struct role_op *o)
{
	if (o->what == DO_TASK)
		read_task(r, o);
	else if (o->what == DO_TILES)
		read_tiles(r, o);
	else if (o->what == DO_LOOP)
		read_loop(r, o);
	else if (o->what == DO_IF)
		read_if(r, o);
	else if (o->what == DO_EACH)
		read_each(r, o);
	else
		read_body(r, &o->u.region.body);
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

/* ------------------------------------------------------------------------------ */

void price_init(struct arena *a, const struct plan *p, struct price *out)
{
	*out = (struct price){ .a = a,
		.phases = ARENA_ARRAY(a, p->graph->program->phases.n, struct phase_price),
		.tasks = ARENA_ARRAY(a, p->graph->tasks.n, struct task_price) };
}

static const struct seu *vector_of(const struct vdevice *d)
{
	for (int i = 0; i < d->nseus; i++)
		if (d->seu[i].kind == SEU_VECTOR)
			return &d->seu[i];
	return NULL;
}

/* What copies for all of the lane is done once, a product that lands is waited for by all, and of one that
 * the lane itself does no unit is known that groups would share. */
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

/* Copies of a lane have the same texts: what is said of the last of them holds for all. */
void price_add(struct price *x, const struct plan *own, int phase, const struct role_program *p)
{
	struct phase_price *ph = &x->phases[phase];
	struct reader r = { .x = x, .phase = ph, .number = phase, .graph = own->graph,
		.texts = ARENA_ARRAY(x->a, own->graph->tasks.n, struct texts) };

	r.payer = (struct payer){ .device = own->device, .vector = vector_of(own->device),
		.program = p, .a = x->a };
	if (!r.payer.vector)
		return;			/* nobody to do what no engine does */
	ph->plan = own;
	ph->wait = ARENA_ARRAY(x->a, own->waits.n, double);
	for (int i = 0; i < p->roles.n; i++) {
		const struct role *role = &p->roles.v[i];

		r.payer.warps = role->warps;
		r.lane = &ph->lanes[role->lane];
		*r.lane = (struct lane_price){ .drain = NONE,
			.groups = role->warps % GROUP_WARPS ? 1 : role->warps / GROUP_WARPS };
		r.depth = 0;
		r.often = 1;
		r.per_tile = false;
		read_body(&r, &role->body);
	}
	finish_tasks(&r);
	join_groups(ph, x, phase);
}

/* ---- one entry ------------------------------------------------------------------------- */

/* Reads of global memory by threads wait for it: a warp for the slowest of the lines that it reads at
 * once, a share of which come from device memory. What is waited for is there when the lane goes on. */
static double lane_cycles(const struct vdevice *d, const struct spent *s, double share)
{
	double slow = 1 - pow(1 - fmin(share, 1), LINES);

	return s->lane + s->rounds * (slow * d->global_latency + (1 - slow) * d->l2_latency);
}

/* The lane itself copies: no engine is asked, and when the lane goes on it is done, unless the copies
 * tell of themselves. */
static void price_threads(const struct vdevice *d, const struct seu *s, const struct task_price *t,
	double lane, double share, struct entry_cost *c)
{
	const struct spent trip = { .rounds = 1 };

	c->cost.busy = s->kind == SEU_VECTOR ? t->before.unit : 0;
	c->cost.alone = s->async ? 0 : lane;
	c->cost.issue = s->async ? lane : 0;
	c->cost.latency = t->arrives ? lane_cycles(d, &trip, share) : s->async ? fmax(lane -
		c->cost.memory, 0) : 0;
}

static void price_copy(const struct seu *s, const struct task_price *t, double lane,
	struct entry_cost *c)
{
	c->cost.busy = t->boxes * s->box_interval;
	c->cost.alone = c->cost.busy + (s->async ? 0 : lane);
	c->cost.issue = t->pieces * s->issue + fmax(t->issued - t->pieces, 0) * s->box_interval +
		lane;
}

/* What the threads of an entry's lane compute: cycles, and operations. */
static struct cost arithmetic(const struct plan *p, int entry, const struct task_price *t,
	double *operations)
{
	const struct seu *s = vector_of(p->device);
	struct spent all = spent_sum(t->before, &t->after);
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

struct entry_cost price_part(const struct entry_cost *c, double pace)
{
	struct entry_cost part = *c;

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

double price_pace(const struct seu *seu, int groups)
{
	return seu->kind == SEU_VECTOR ? fmin(1, seu->lane_share * fmax(groups, 1)) / seu->lane_share : 1;
}

void price_entry(const struct price *x, const struct plan *p, int entry, double share,
	struct entry_cost *c)
{
	const struct entry *en = &p->entries.v[entry];
	const struct seu *s = &p->device->seu[en->seu];
	const struct task_price *t = &x->tasks[en->task];
	double before, after;
	struct cost work;

	c->groups = x->phases[p->graph->tasks.v[en->task].phase].lanes[en->lane].groups;
	if (!t->known)
		return;
	before = lane_cycles(p->device, &t->before, share);
	after = lane_cycles(p->device, &t->after, share);
	work = arithmetic(p, entry, t, &c->effort.of[EFFORT_VECTOR]);
	before += s->kind == SEU_VECTOR ? 0 : work.alone;
	c->drain_cost = t->drain_cost;
	c->drain = t->drain;
	c->drain_after = t->drain_after;
	if (t->by_threads) {
		price_threads(p->device, s, t, before + after, share, c);
	} else if (s->kind == SEU_COPY) {
		price_copy(s, t, before + after, c);
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
			c->fixed = before + after;
		}
		c->cost.alone += before + after;
	}
}
