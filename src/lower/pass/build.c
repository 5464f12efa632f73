/* The plain tree of a lane: its registers and counters, the tile loop, in it the loops of the program, and in
 * those a TASK for each entry. No loop is divided yet, and entries have their offsets: peel.c divides loops.
 * Waits are in waits.c, signals of runs in runs.c. */
#include "lower/pass/build.h"

#include "plan/phases.h"

/* A point between entries, in the steady state of `region`. */
static struct point *point_in_region(struct lowering *c, int region)
{
	struct point like = *c->point, *p;

	if (like.region != region)
		like = (struct point){ .around = c->point->around };
	p = point_new(c, &like);
	p->region = region;
	p->entry = NULL;
	p->iteration = NULL;
	p->kind = ITERATION_STEADY;
	p->number = 0;
	p->last = INT32_MAX;
	p->run_of = NONE;
	return p;
}

/* tiles ------------------------------------------------------------------------ */

void build_tile_axes(struct lowering *c)
{
	const struct grid *g = &c->g->grids[c->k->phase];
	int64_t below = 1;

	for (int i = g->n - 1; i >= 0; i--) {
		add_let(c, VAR_LO, g->axis[i], MUL(MOD(DIV(V(c, VAR_TILE, NONE), N(c, below)), N(c,
			g->tiles[i])), N(c, c->g->extents.tile[g->axis[i]])));
		below *= g->tiles[i];
	}
}

/* sTasks ----------------------------------------------------------------------- */

static void add_slots(struct lowering *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);

	for (int i = 0; i < c->k->rings.n; i++) {
		const struct ring *r = &c->k->rings.v[i];
		struct role_op *o;

		if (!stask_touches(s, r->buffer))
			continue;
		o = add_op(c, DO_SLOT);
		o->u.slot.ring = i;
		o->u.slot.life = instance_number(c, c->g->buffers.v[r->buffer].loop);
	}
}

/* Has the lane loops that run while the sTask waits for its next iteration? Compilers would keep its
 * addresses in registers all the while. */
static bool is_around_loop(const struct lowering *c, const struct stask *s)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		int loop = c->g->tasks.v[c->lane->entries.v[i].task].loop;

		if (loop != s->loop && program_loop_within(c->p, loop, s->loop))
			return true;
	}
	return false;
}

/* Does the sTask find elements in shared memory by addresses, for which the lane's values leave few registers? */
static bool is_short_of_registers(const struct lowering *c, const struct stask *s)
{
	bool addresses = writes_ring(c, s);

	for (int i = 0; i < s->reads.n; i++)
		addresses |= has_ring(c, s->reads.v[i]);
	return addresses && s->kind == TASK_COMPUTE && 2 * c->live_words > lane_usable_registers(c->lane);
}

/* A wait for the lane's own products, with the point of the TASK around it. */
static void add_own_wait(struct lowering *c, const struct point *at, const struct group_wait *w, bool issued,
	const char *why)
{
	struct point *p = add_groups_wait(c, 0, at, why);

	p->iteration = NULL;
	p->wait = w;
	p->pins = true;
	p->signals = SIGNAL_COMPLETE;
	p->issued = issued;
	group_wait_set_class(c->body->v.v[c->body->v.n - 1], p, 0);
}

/* Do lanes wait by themselves for what is in front of the kernel? Else all threads have waited. */
static bool lanes_wait(const struct lowering *c)
{
	return c->k->phase > 0 || !plan_waits_first(c->plan);
}

/* Does the lane take tiles by the counter? */
static bool asks_for_tiles(const struct lowering *c)
{
	return c->k->taken.lane == (int)(c->lane - c->k->lanes.v);
}

/* Does the lane load what the plan says is ready? It issues such loads without a wait, and each sTask behind them waits for itself. */
static bool loads_ready(const struct lowering *c)
{
	bool loads = false;

	for (int i = 0; i < c->lane->entries.n && c->plan->launch.ready.n; i++) {
		int task = c->lane->entries.v[i].task;

		loads |= c->g->tasks.v[task].kind == TASK_LOAD && !stask_loads_late(c->plan, task);
	}
	return loads;
}

/* Does the lane wait for what is in front of the kernel as soon as it begins? Launches that may overlap have one counter of tiles. */
static bool waits_for_phase_at_once(const struct lowering *c)
{
	bool waits = asks_for_tiles(c) && !plan_waits_first(c->plan), mixed = loads_ready(c);

	for (int i = 0; i < c->lane->entries.n; i++) {
		int task = c->lane->entries.v[i].task;

		waits |= mixed && c->g->tasks.v[task].kind == TASK_LOAD ? phase_is_bound_late(c->plan, c->k->phase) :
			stask_waits_early(c->plan, task);
	}
	return waits && lanes_wait(c);
}

/* Is this the lane with the kernel's last loads, the last one of those that copy? */
static bool lets_next_begin(const struct lowering *c)
{
	int last = NONE;

	if (c->plan->launch.next != NEXT_LOADED)
		return false;
	for (int i = 0; i < c->plan->entries.n; i++) {
		const struct entry *x = &c->plan->entries.v[i];

		if (c->g->tasks.v[x->task].phase == c->k->phase && c->g->tasks.v[x->task].kind == TASK_LOAD)
			last = last == NONE || x->task > c->plan->entries.v[last].task ? i : last;
	}
	return last != NONE && c->plan->entries.v[last].lane == c->lane->lane && c->lane->replica + 1 == c->lane->replicas;
}

/* Signals the sTask's flag: counted if it is in flight now, else at once. */
static void add_signals(struct lowering *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);

	if (x->flag != NONE && s->kind == TASK_MMA && is_in_flight(c, x->task))
		add_advance(c, VAR_ISSUED, x->flag, N(c, 1));
	else if (x->flag != NONE && s->kind != TASK_LOAD)
		add_arrive(c, x->flag, instance_number(c, s->loop), "others wait for it");
	build_early_runs(c, x);
}

/* An iteration begins: its number, and where its axes stand. */
static void add_iteration(struct lowering *c, int loop, const struct num *iteration)
{
	add_let_more(c,
		add_let(c, VAR_I, loop, iteration), VAR_SEQ, loop, ADD(V(c, VAR_BASE, loop), V(c, VAR_I, loop)));
	add_loop_axes(c, loop);
}

static enum err_code add_task(struct lowering *c, const struct kentry *x, const struct num *iteration, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct point *around = c->point;
	struct point *p = point_in_region(c, s->loop);
	struct role_op *task, *at;
	struct role_body *outer;
	bool slots_late;

	p->entry = x;
	p->at = x->at;
	p->iteration = iteration;
	if (!shifts_tiles(c->lane) && s->loop == NONE)
		p->kind = ITERATION_KNOWN;
	c->task = x->task;
	c->point = p;
	task = add_op(c, DO_TASK);
	task->point = p;
	task->u.region.iteration = s->loop != NONE || shifts_tiles(c->lane) ? iteration : NULL;
	task->u.region.of = s->loop;
	task->u.region.seq = instance_number(c, s->loop);
	outer = enter_body(c, &task->u.region.body);
	if (s->loop != NONE)
		add_iteration(c, s->loop, iteration);
	at = add_op(c, DO_AT);
	VEC_PUSH(c->a, &at->u.let.v, ((struct role_let){ s->loop == NONE ? VAR_T : VAR_I, s->loop, NULL }));
	if (is_around_loop(c, s) || is_short_of_registers(c, s))
		add_op(c, DO_OPAQUE);
	/* A synchronous product fills the registers with operands that threads fetch. Compilers keep addresses that are
	 * computed before a wait in registers while they wait, and store them to memory there. */
	slots_late = s->kind == TASK_MMA && !seu_of(c->k, x->task)->async;
	if (!slots_late)
		add_slots(c, x);
	build_flag_waits(c, x);
	if (slots_late)
		add_slots(c, x);
	if (x->waits_groups)
		add_own_wait(c, p, &x->before, false, build_awaited_products(c, x));
	TRY(build_read_pins(c, x, e));
	if ((s->kind == TASK_STORE || stask_loads_late(c->plan, x->task)) && lanes_wait(c) && !waits_for_phase_at_once(c))
		add_op(c, DO_PHASE_WAIT)->why = c->k->phase ? "phases before may still use the tensor" :
			"kernels in front may still use the tensor";
	add_op(c, DO_WORK);
	add_signals(c, x);
	if (x->drains)
		add_own_wait(c, p, &x->after, true, "the product before is signaled");
	leave_body(c, outer);
	c->task = NONE;
	c->point = around;
	return OK;
}

/* loops ------------------------------------------------------------------------ */

static enum err_code add_loop(struct lowering *c, int loop, struct err *e);

/* Before a meeting the lane waits for copies of its own. In a loop, how many it leaves under way follows from the class of
 * the iteration. */
static void add_copies_wait(struct lowering *c, const struct copies_wait *w, const struct point *at)
{
	struct role_op *o = add_op(c, DO_COPIES_WAIT);
	struct point *p;

	o->why = "all threads may read what it has copied";
	if (!w)
		return;
	p = point_new(c, at);
	p->copies = w;
	o->point = p;
}

/* All lanes meet, so many times. Unlike an sTask, a meeting in a loop is in all iterations of the pipelined loop, also in
 * those in which some sTasks have nothing to do. waits: of the lane before each of them, or NULL. */
static void add_meetings(struct lowering *c, int n, const struct copies_wait *waits, const struct point *at, const char *why)
{
	for (int i = 0; i < n; i++) {
		if (waits)
			add_copies_wait(c, &waits[i], at);
		add_op(c, DO_BLOCK_SYNC)->why = why;
	}
}

/* Has the lane loads in its loop that it counts? */
static bool counts_copies(const struct lowering *c)
{
	const struct meetings *m = &c->k->meetings;

	return m->end_wait && m->end_wait[c->lane->lane];
}

/* A run of a nested loop, in the current iteration of the region around it. */
static enum err_code add_run(struct lowering *c, int region, const struct kstep *s, struct err *e)
{
	struct point *p;
	struct role_op *run = add_block(c, NULL);
	struct role_body *outer = enter_body(c, &run->u.region.body);
	struct point *around = c->point;

	p = point_in_region(c, s->id);
	p->run_of = s->id;
	run->point = p;
	add_trips(c, s->id);
	add_late_carry_starts(c, s->id, false);
	c->point = p;
	add_meetings(c, c->k->meetings.interval ? 1 + c->k->meetings.first[c->lane->lane] : 0, NULL, NULL, "the loop begins");
	TRY(add_loop(c, s->id, e));
	if (counts_copies(c))
		add_copies_wait(c, NULL, NULL);
	add_meetings(c, c->k->meetings.interval ? 1 + c->k->meetings.last[c->lane->lane] : 0, NULL, NULL, "the loop ends");
	c->point = around;
	add_late_carry_starts(c, s->id, true);
	add_advance(c, VAR_BASE, s->id, V(c, VAR_TRIPS, s->id));
	leave_body(c, outer);
	build_skipped_loop(c, region, s->id);
	build_run_end(c, s);
	return OK;
}

/* A step of an iteration: an sTask or a nested loop. With offsets in the tile loop, each step of an iteration of that
 * is about a tile of its own. */
static enum err_code add_step(struct lowering *c, int loop, const struct kstep *s, struct err *e)
{
	const struct num *iteration = num_offset(c, V(c, VAR_J, loop), s->at);
	struct point *around = c->point;
	struct role_body *outer;
	struct role_op *step;
	struct point *p;

	if (loop != NONE && !s->is_loop)
		return add_task(c, &c->lane->entries.v[s->id], iteration, e);
	step = add_block(c, NULL);
	outer = enter_body(c, &step->u.region.body);
	p = point_in_region(c, loop);
	p->at = s->at;
	p->iteration = iteration;
	step->point = p;
	if (loop != NONE) {
		add_iteration(c, loop, iteration);
	} else {			/* T is no constant, not even 0: t - 1 is one */
		add_let(c, VAR_T, NONE, tile_number(c, iteration))->u.let.changes = true;
		add_let(c, VAR_TILE, NONE, NUM2(TILE_AT, V(c, VAR_T, NONE), N(c, 0)));
		build_tile_axes(c);
		if (s->handover_flag != NONE)
			build_handover_wait(c, s->handover_flag);
		build_count_tiles_before(c, s);
	}
	c->point = p = point_new(c, p);
	p->iteration = NULL;
	p->around[loop] = s->at;
	if (s->is_loop) {
		TRY(build_initial_nested(c, loop, s->id, e));
		TRY(add_run(c, loop, s, e));
	} else {
		TRY(add_task(c, &c->lane->entries.v[s->id], iteration, e));
	}
	c->point = around;
	leave_body(c, outer);
	return OK;
}

/* All iterations of a loop: in iteration j, an entry at offset `at` performs iteration j + at, if there is one. */
static enum err_code add_loop(struct lowering *c, int loop, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];
	const struct meetings *m = &c->k->meetings;
	bool meets = m->interval && loop != NONE;
	struct role_body *outer = enter_loop(c, VAR_J, loop, N(c, -v->max_offset), V(c, VAR_TRIPS, loop));
	struct role_op *o = outer->v.v[outer->v.n - 1];

	o->point = point_in_region(c, loop);
	o->u.region.section = SECTION_LOOP;
	o->u.region.note = "all iterations; an sTask performs those that there are";
	for (int i = 0; i < v->steps.n; i++) {
		if (meets && !v->steps.v[i].is_loop) {
			int entry = c->lane->entries.v[v->steps.v[i].id].entry;

			add_meetings(c, m->before[entry], counts_copies(c) ? m->before_wait[entry] : NULL, o->point,
				"lanes go on together");
		}
		TRY(add_step(c, loop, &v->steps.v[i], e));
	}
	if (meets)
		add_meetings(c, m->end[c->lane->lane], counts_copies(c) ? m->end_wait[c->lane->lane] : NULL, o->point,
			"lanes go on together");
	if (loop == NONE)
		build_all_products(c, c->lane->replicas == 1);
	leave_body(c, outer);
	return OK;
}

/* the tile loop ---------------------------------------------------------------- */

void build_all_products(struct lowering *c, bool last_only)
{
	struct point *p;
	bool multiplies = false;

	for (int i = 0; i < c->lane->entries.n; i++)
		multiplies |= is_in_flight(c, c->lane->entries.v[i].task);
	if (!multiplies)
		return;
	p = add_groups_wait(c, 0, point_in_region(c, NONE), "the tile ends");
	p->signals = SIGNAL_COMPLETE;
	p->last_only = last_only;
}

/* One tile after the other: none begins before the one before it is complete. */
static enum err_code add_tiles(struct lowering *c, struct err *e)
{
	struct role_op *tiles = add_op(c, DO_TILES);
	struct role_body *outer = enter_body(c, &tiles->u.region.body);
	const struct kregion *v = &c->lane->regions[0];

	tiles->u.region.taken = c->k->taken.lane != NONE;
	tiles->u.region.asks = asks_for_tiles(c);

	build_tile_axes(c);
	build_skip_tiles(c);
	TRY(build_initial_tile(c, e));
	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];

		TRY(s->is_loop ? add_run(c, NONE, s, e) : add_task(c, &c->lane->entries.v[s->id], N(c, 0), e));
	}
	build_all_products(c, false);
	add_meetings(c, c->k->meetings.interval && c->k->meetings.tile_end, NULL, NULL, "the tile ends");
	leave_body(c, outer);
	return OK;
}

/* The tile loop as a pipelined loop. */
static enum err_code add_tile_loop(struct lowering *c, struct err *e)
{
	const struct klane *l = c->lane;

	add_op(c, DO_COUNT_TILES);
	add_let(c, VAR_TRIPS, NONE, DIV(ADD(V(c, VAR_TILES, NONE), N(c, l->replicas - 1 - l->replica)), N(c,
		l->replicas)));
	build_other_tile_counters(c);
	TRY(add_loop(c, NONE, e));
	build_count_remaining_tiles(c);
	return OK;
}

/* the lane --------------------------------------------------------------------- */

static bool stores_by_engine(const struct lowering *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (c->lane->entries.v[i].outbox != NONE)
			return true;
	return false;
}

static void add_counter(struct lowering *c, enum var v, int of)
{
	add_let(c, v, of, N(c, 0))->u.let.changes = true;
}

static void add_counters(struct lowering *c)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		if (!signals_later(c, f))
			continue;
		add_counter(c, VAR_ISSUED, f);
		add_counter(c, VAR_RELEASED, f);
	}
	for (int f = 0; f < c->k->flags.n; f++)
		if (build_waits_once(c, f))
			add_counter(c, VAR_SEEN, f);
	for (int f = 0; f < c->k->flags.n; f++)
		if (c->k->flags.v[f].in_loop && in_lane(c, c->k->flags.v[f].task))
			add_counter(c, VAR_SIGNALLED, f);
	for (int i = 0; i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase)
			add_counter(c, VAR_BASE, i);
}

enum err_code pass_build(struct lowering *c, struct err *e)
{
	const struct klane *l = c->lane;
	struct point at = { .region = NONE, .run_of = NONE, .last = INT32_MAX };
	struct role_op *o;

	c->point = point_new(c, &at);
	if (c->k->shares_registers) {
		o = add_op(c, DO_REGISTERS);
		o->u.registers.n = l->granted;
		o->u.registers.more = l->granted > lower_launched(c->k);
	}
	if (l->warps % c->k->target->group)
		add_op(c, DO_LEAVE)->u.lane.warp = l->first_warp + l->warps;
	o = add_op(c, DO_LANE);
	o->u.lane.warp = l->first_warp;
	o->u.lane.stores = stores_by_engine(c);
	if (waits_for_phase_at_once(c))
		add_op(c, DO_PHASE_WAIT)->why = c->k->phase ? "it uses what the phase before stores" :
			"it uses what kernels in front may store";
	add_counters(c);
	TRY(add_fragments(c, e));
	TRY(shifts_tiles(l) ? add_tile_loop(c, e) : add_tiles(c, e));
	if (lets_next_begin(c))
		add_op(c, DO_NEXT_BEGINS)->why = "the block has issued its last loads";
	build_last_copies(c);
	if (stores_by_engine(c))	/* no block ends while something is copied out of it */
		add_op(c, DO_STORES_WAIT)->u.stores.elected = true;
	return OK;
}
