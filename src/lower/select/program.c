/* The role program of a kernel: tables that all lanes share, then one role for each lane, made by the passes. */
#include "plan/assign.h"
#include "plan/phases.h"
#include "lower/pass/pass.h"
#include "verify/verify.h"
#include "role/live.h"

#define LOADED_AGAIN 2.0		/* how often the least are loaded */

/* Does the phase add to the tensor? */
static bool is_added_to(const struct lowering *c, int tensor)
{
	for (int i = 0; i < c->p->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[i];

		if (n->adds && n->ref == tensor && c->p->tasks.v[n->task].phase == c->k->phase)
			return true;
	}
	return false;
}

static void list_tensors(struct lowering *c)
{
	for (int t = 0; t < c->p->tensors.n; t++) {
		const struct tensor *x = &c->p->tensors.v[t];

		VEC_PUSH(c->a, &c->r->tensors, ((struct role_tensor){ x->name, x->type, x->role == TENSOR_INPUT,
			is_added_to(c, t), x->by_address }));
	}
}

static void list_names(struct lowering *c)
{
	const char **axes = ARENA_ARRAY(c->a, c->p->axes.n, const char *);
	const char **rings = ARENA_ARRAY(c->a, c->k->rings.n, const char *);
	const char **tensors = ARENA_ARRAY(c->a, c->p->tensors.n, const char *);
	const char **tasks = ARENA_ARRAY(c->a, c->g->tasks.n, const char *);

	for (int i = 0; i < c->p->axes.n; i++) {
		axes[i] = c->p->axes.v[i].name;
		if (c->p->axes.v[i].multiple)
			VEC_PUSH(c->a, &c->r->sizes, i);
	}
	for (int i = 0; i < c->p->tensors.n; i++)
		tensors[i] = c->p->tensors.v[i].name;
	for (int i = 0; i < c->g->tasks.n; i++)
		tasks[i] = c->g->tasks.v[i].name;
	for (int i = 0; i < c->k->rings.n; i++) {
		const struct ring *r = &c->k->rings.v[i];
		int slices = 0;

		for (int b = 0; b < c->g->buffers.n && !r->one_slice; b++)
			slices += c->g->buffers.v[b].node == c->g->buffers.v[r->buffer].node;
		rings[i] = c_identifier(c, "", c->g->buffers.v[r->buffer].name);
		VEC_PUSH(c->a, &c->r->rings, ((struct role_ring){ rings[i], r->buffer, r->offset,
			r->slot_bytes, r->versions, r->share != SHARE_NONE, slices > 1, r->kept ? r->words : 0 }));
	}
	c->r->names = (struct num_names){ .axes = axes, .rings = rings, .tensors = tensors, .taken = c->k->taken.lane != NONE,
		.blocks = plan_eus(c->plan, c->k->phase) };
	if (plan_raster(c->a, c->plan, c->k->phase, &c->r->raster)) {
		c->r->names.tiles = c->r->raster.positions;
		if (!raster_is_identity(&c->r->raster))
			c->r->names.tile_at = arena_strf(c->a, "tile_at_%s", c->r->phase);
	}
	c->r->tasks = tasks;
}

static void list_flags(struct lowering *c)
{
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		const struct stask *s = &c->g->tasks.v[f->task];

		VEC_PUSH(c->a, &c->r->flags, ((struct role_flag){ .name = arena_strf(c->a,
			"%s %s", s->name, f->parts ? "parts" : f->issued ? "issued" : f->runs ? "run" : "complete"), .task = f->task,
			.issued = f->issued, .runs = f->runs, .run_of = f->loop, .early = f->in_loop, .depth = f->depth,
			.loop = f->runs ? c->p->loops.v[f->loop].parent : s->loop, .arrivals = f->arrivals,
			.all = f->all_blocks, .parts = f->parts, .copies = f->copies_arrive, .each_warp = f->each_warp, .bytes = f->bytes,
			.offset = f->offset }));
	}
}

static enum err_code check_types(const struct lowering *c, struct err *e)
{
	for (int i = 0; i < c->g->tasks.n; i++) {
		const struct task *t = &c->p->tasks.v[c->g->tasks.v[i].task];

		for (int k = 0; k < t->nodes.n && t->phase == c->k->phase; k++) {
			const struct node *n = &c->p->nodes.v[t->nodes.v[k]];

			if (!has_lowering(c->p, n))
				return err_set(e, ERR_ILLEGAL, n->loc, "'%s' works on %s, which is not lowered%s", t->name,
					dtype_name(type_lowered(c->p, n)), n->op == OP_LOAD || n->op == OP_STORE ? " as the type of a "
					"tensor" : n->op == OP_CAST ? " as the result of a conversion" : "");
		}
	}
	return OK;
}

static void list_stagings(struct lowering *c)
{
	for (int i = 0; i < c->k->outboxes.n; i++) {
		const struct outbox *o = &c->k->outboxes.v[i];
		int lane = c->plan->entries.v[plan_entry_of(c->plan, o->task)].lane;

		VEC_PUSH(c->a, &c->r->stagings, ((struct role_staging){ o->task, o->offset, o->ring == NONE && o->staging == i ?
			o->batch * o->panel_bytes : 0, lane_warps(c->plan, lane), o->batches }));
	}
}

/* Behind those of stores. */
static void list_parts(struct lowering *c)
{
	for (int i = 0; i < c->k->parts.n; i++) {
		const struct parts_sum *x = &c->k->parts.v[i];
		int lane = c->plan->entries.v[plan_entry_of(c->plan, x->task)].lane;

		VEC_PUSH(c->a, &c->r->stagings, ((struct role_staging){ x->task, x->offset, x->bytes, lane_warps(c->plan, lane), 1 }));
	}
}

static void list_regions(struct lowering *c, const struct klane *l)
{
	for (int i = 0; i <= c->p->loops.n; i++)
		if (l->regions[i].unroll)
			VEC_PUSH(c->a, &c->role->regions, ((struct role_region){ l->regions[i].max_offset,
				l->regions[i].unroll }));
}

/* Builds with MODE=debug or asan check after each pass what it promises. */
#ifndef CHECK_PASSES
#define CHECK_PASSES 0
#endif

static enum err_code run_pass(struct lowering *c, enum pass_id pass, struct err *e)
{
	static pass_run *const passes[PASS_COUNT] = {
#define PASS(id, name, optional, needs, promises) pass_##name,
#include "lower/passes.def"
#undef PASS
	};

	c->task = c->wait = NONE;
	return lower_passes[pass].optional && !lower_does(c->k, pass) ? OK : passes[pass](c, e);
}

static enum err_code run_passes(struct lowering *c, struct err *e)
{
	int n = c->k->passes && c->k->passes < PASSES_PROVEN ? c->k->passes : PASSES_PROVEN;

	c->role->body = (struct role_body){ 0 };
	for (int i = 0; i < n; i++) {
		c->body = &c->role->body;
		if (stop_asked(c->k->stop))
			return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
		TRY(run_pass(c, (enum pass_id)i, e));
		if (CHECK_PASSES)
			check_promises(c, &c->role->body, (enum pass_id)i);
	}
	return OK;
}

static enum err_code add_role(struct lowering *c, const struct klane *l, struct err *e)
{
	c->lane = l;
	c->role = VEC_ADD(c->a, &c->r->roles);
	*c->role = (struct role){ .name = c->plan->lanes.v[l->lane].name, .lane = l->lane, .nmerged = 1,
		.replica = l->replica, .replicas = l->replicas, .warps = l->warps, .first_warp = l->first_warp,
		.priority = c->plan->lanes.v[l->lane].priority,
		.layout = l->layout, .barrier = l->barrier, .stamps = l->traced.held_at,
		.stamps_out = l->traced.out_at, .tile_words = l->traced.tile_words,
		.tiles_held = l->traced.tiles_held, .tiles_out = l->traced.tiles_out };
	list_regions(c, l);
	c->summed = ARENA_ARRAY(c->a, c->g->buffers.n, const struct frag *);
	c->buffer_frags = ARENA_ARRAY(c->a, c->g->buffers.n, const struct frag *);
	c->node_frags = ARENA_ARRAY(c->a, c->p->nodes.n, struct frag *);
	TRY(run_passes(c, e));
	if (!c->k->passes || c->k->passes >= PASSES_PROVEN) {
		role_find_live(c->role, c->a);
		spare_kept_sums(c);
		hide_addresses(c);
		pack_truths(c);
	}
	return OK;
}

static bool syncs_lane(const struct role_body *b, int warps)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (role_syncs_lane(o, warps) || (role_is_region(o->what) && (syncs_lane(&o->u.region.body, warps) ||
		    syncs_lane(&o->u.region.other, warps))))
			return true;
	}
	return false;
}

/* Counters for lanes that synchronize at such, behind all else that is in shared memory. Only the operations say whether there
 * are any: a kernel in which all lanes meet at the block's barrier needs none. */
static void add_counters(struct kernel *k, struct role_program *r)
{
	r->ncounters = 0;
	for (int i = 0; i < r->roles.n; i++)
		if (role_meets_at_counter(r, &r->roles.v[i]) && syncs_lane(&r->roles.v[i].body, r->roles.v[i].warps))
			r->ncounters = (int)max_i64(r->ncounters, r->roles.v[i].barrier + 1);
	if (!r->ncounters)
		return;
	r->counters = round_up(k->shared_bytes, ROLE_COUNTER_BYTES);
	k->shared_bytes = r->shared_bytes = r->counters + r->ncounters * ROLE_COUNTER_BYTES;
}

/* Does each block have one tile, and L2 bring each byte to several of them? Then blocks that begin together load the same at the same
 * time from near each other. Those of a next launch that may begin would begin one by one, wherever an EU comes free: 333 x 4096 x 4096
 * takes 5 % longer so on an H200, where products of more tiles gain 5 %. */
static bool is_placed(const struct kernel *k)
{
	const struct graph *g = k->plan->graph;
	double tiles = (double)g->grids[k->phase].total, bytes = 0;

	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].phase == k->phase && g->tasks.v[i].kind == TASK_LOAD)
			bytes += g->tasks.v[i].work.global_bytes * graph_runs(g, g->tasks.v[i].loop, NONE);
	return tiles <= plan_eus(k->plan, k->phase) && bytes * tiles > LOADED_AGAIN * graph_bytes(g);
}

static bool lets_next_begin_at_start(const struct kernel *k, bool last)
{
	enum launch_next next = k->plan->launch.next;

	return next == NEXT_AUTO ? !last || k->plan->launch.ready.n || !is_placed(k) : next == NEXT_START;
}

enum err_code lower_body(struct kernel *k, struct err *e)
{
	struct lowering c = { .k = k, .plan = k->plan, .g = k->plan->graph, .p = k->plan->graph->program,
		.a = &k->arena };

	c.fused = ARENA_ARRAY(c.a, c.p->nodes.n, bool);
	c.inline_depth = ARENA_ARRAY(c.a, c.p->nodes.n, int);
	c.r = ARENA_NEW(c.a, struct role_program);
	c.r->program = c.p->name;
	c.r->phase = c.p->phases.v[k->phase].name;
	c.r->device = k->plan->device->name;
	c.r->target = k->target;
	c.r->threads = k->threads;
	c.r->cluster = k->cluster;
	c.r->ends_apart = k->cluster > 1 && lower_ends_apart(k);
	c.r->shared_bytes = k->shared_bytes;
	c.r->first = k->phase == 0;
	c.r->last = k->phase + 1 == c.p->phases.n;
	c.r->waits_first = c.r->first && plan_waits_first(k->plan);
	c.r->next_at_start = lets_next_begin_at_start(k, c.r->last);
	c.r->taken = k->taken;
	c.r->begins = k->ncarry_starts;
	c.r->stamp_words = k->traced.words;
	TRY(check_types(&c, e));
	list_tensors(&c);
	list_names(&c);
	list_flags(&c);
	list_stagings(&c);
	list_parts(&c);
	for (int i = 0; i < k->traced.watches.n; i++)
		VEC_PUSH(c.a, &c.r->watched, k->traced.watches.v[i].ended);
	for (int i = 0; i < k->lanes.n; i++) {
		enum err_code code = add_role(&c, &k->lanes.v[i], e);

		if (code && c.task != NONE) {
			k->refusal.task = c.task;
			if (c.g->tasks.v[c.task].kind == TASK_MMA)
				k->refusal.code = PROBLEM_PRODUCT;
		}
		TRY(code);
	}
	if (!k->passes || k->passes > PASS_SELECT)
		fence_loads(&c);
	add_counters(k, c.r);
	c.r->meetings = k->meetings.numbers;
	c.r->why_flags = k->meetings.why_not;
	k->role = c.r;
	return OK;
}

static bool is_right(struct kernel *k)
{
	struct verified v;
	struct err e;

	return !verify(k->role, k->plan, k->phase, &k->arena, &v, &e);
}

static void finish(struct kernel *k, int npasses)
{
	struct lowering c = { .k = k, .plan = k->plan, .g = k->plan->graph, .p = k->plan->graph->program,
		.a = &k->arena, .r = k->role };
	bool checks = CHECK_PASSES && is_right(k);
	struct err e;

	for (int i = 0; i < k->role->roles.n && npasses > PASS_SPECIALIZE; i++) {
		c.lane = &k->lanes.v[i];
		c.role = &k->role->roles.v[i];
		(void)run_pass(&c, PASS_SPECIALIZE, &e);
	}
	if (checks && !is_right(k))
		BUG("specialize has changed what the lanes do");
	if (npasses > PASS_MERGE)
		(void)run_pass(&c, PASS_MERGE, &e);
}

void kernel_finish(struct kernel *k)
{
	finish(k, PASS_COUNT);
}

enum err_code kernel_after(struct kernel *k, enum pass_id pass, struct err *e)
{
	k->passes = (int)pass + 1;
	TRY(lower_body(k, e));
	finish(k, k->passes);
	return OK;
}
