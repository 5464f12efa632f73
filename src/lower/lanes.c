/* The lanes of the kernel: their entries and regions in order, their scratch, and which warps they are. */
#include "lower/layout/folds.h"
#include "lower/passes.h"


struct kentry *lower_entry_of(const struct klane *l, int task)
{
	for (int i = 0; i < l->entries.n; i++)
		if (l->entries.v[i].task == task)
			return &l->entries.v[i];
	BUG("sTask %d is on another lane", task);
}

static void add_entry(struct kernel *k, struct klane *l, int entry)
{
	const struct plan *p = k->plan;
	struct kentry *x = VEC_ADD(&k->arena, &l->entries);

	*x = (struct kentry){ .task = p->entries.v[entry].task, .entry = entry,
		.at = p->entries.v[entry].at };
	x->flag = k->flag_of[x->task];
	x->issue_flag = k->issue_flag_of[x->task];
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];

		if (w->task != x->task)
			continue;
		if (needs_flag(k, w))
			lower_flag_waits(k, x, i);
		if (lower_awaits_own(k, w) && is_async_product(k, w->on) && w->when == WAIT_COMPLETE)
			x->waits_groups |= !kernel_result_shared(k, w->on);
	}
	lower_run_waits(k, x);
	lower_carry_starts(k, x);
	x->result_shared = kernel_result_shared(k, x->task);
}

/* The steps of each region in the plan's order, with offsets relative to the region's least. */
static void build_regions(struct kernel *k, struct klane *l)
{
	const struct program *p = k->plan->graph->program;

	l->regions = ARENA_ARRAY(&k->arena, p->loops.n + 1, struct kregion);
	for (int loop = NONE; loop < p->loops.n; loop++) {
		struct kregion *v = &l->regions[loop + 1];
		struct order_step *steps;
		int n, least;

		if (loop != NONE && p->loops.v[loop].phase != k->phase)
			continue;
		n = order_steps(&k->arena, k->plan, l->lane, k->phase, loop, &steps, &least, &v->max_offset);
		v->max_offset -= least;
		if (loop == NONE)	/* order_steps counts loops as offset 0, which a lane without loops may lack */
			v->max_offset = lower_tile_offsets(k, l->lane, &least);
		for (int i = 0; i < n; i++) {
			struct kstep s = { steps[i].is_loop, steps[i].id, -least, NONE, NONE };

			if (loop == NONE && k->handover_flag_of[l->lane] == NONE && l->replicas > 1)
				s.handover_flag = lower_step_handover(k, l->lane, &steps[i]);
			if (!s.is_loop) {
				add_entry(k, l, steps[i].id);
				s.id = l->entries.n - 1;
				s.at = l->entries.v[s.id].at -= least;
			}
			VEC_PUSH(&k->arena, &v->steps, s);
		}
		v->unroll = 1;
	}
}

bool lower_unrolls_for(const struct kernel *k, const struct klane *l, int b)
{
	const struct buffer *x = &k->plan->graph->buffers.v[b];

	return x->phase == k->phase && k->ring_of[b] == NONE && lane_of(k, x->first) == l->lane;
}

static void find_unroll(struct kernel *k, struct klane *l)
{
	for (int i = 0; i < k->plan->graph->buffers.n; i++) {
		struct kregion *r = &l->regions[k->plan->graph->buffers.v[i].loop + 1];
		int64_t v = k->plan->versions[i];

		if (lower_unrolls_for(k, l, i))
			r->unroll = (int)min_i64(r->unroll / gcd_i64(r->unroll, v) * v, UNROLL_MOST);
	}
}

enum { SCRATCH_ALIGNMENT = 16 };

/* Scratch of the lane: the most that an sTask's layout conversions together, or one reduction or scan, take. */
static int64_t lane_scratch(const struct kernel *k, const struct klane *l)
{
	const struct program *p = k->plan->graph->program;
	int64_t most = 0;

	for (int i = 0; i < l->entries.n; i++) {
		const struct stask *s = stask_at(k, l->entries.v[i].task);
		const struct task *t = &p->tasks.v[s->task];
		struct layout_conversion d;
		int64_t converted = 0;

		for (int j = 0; j < t->nodes.n; j++) {
			enum op_class c = op_class(p->nodes.v[t->nodes.v[j]].op);

			for (int x = 0; conversion_next(k, s, t->nodes.v[j], &x, &d);)
				converted += d.flips ? 0 : scratch_bytes(s, d.from);
			if (c == CLASS_REDUCE || c == CLASS_SCAN)
				most = max_i64(most, fold_bytes(k, s, t->nodes.v[j], l->layout, l->warps));
		}
		most = max_i64(most, converted);
	}
	return most;
}

bool lower_has_work(const struct kernel *k, int lane)
{
	for (int i = 0; i < k->plan->entries.n; i++)
		if (k->plan->entries.v[i].lane == lane && stask_at(k, k->plan->entries.v[i].task)->phase == k->phase)
			return true;
	return false;
}

/* How the lane's values lie in registers. Lanes with as many parts have one layout, so that they may share a text. */
static const struct frag_layout *lane_layout(struct kernel *k, int lane)
{
	int parts = plan_lane_parts(k->plan, lane, k->phase);
	struct frag_layout *l;

	if (parts == 1)
		return &k->target->frag;
	for (int i = 0; i < k->lanes.n - 1; i++)
		if (k->lanes.v[i].layout->parts == parts)
			return k->lanes.v[i].layout;
	l = ARENA_NEW(&k->arena, struct frag_layout);
	*l = k->target->frag;
	l->parts = parts;
	return l;
}

/* Adds one replica of a lane. */
static enum err_code add_lane(struct kernel *k, int lane, int replica, struct err *e)
{
	const struct plan *p = k->plan;
	struct klane *l = VEC_ADD(&k->arena, &k->lanes);

	*l = (struct klane){ .lane = lane, .replica = replica, .replicas = p->lanes.v[lane].replicas,
		.handover_flag = k->handover_flag_of[lane], .barrier = k->lanes.n, .warps = lane_warps(p, lane),
		.registers = p->lanes.v[lane].registers, .spare = p->lanes.v[lane].spare,
		.layout = lane_layout(k, lane) };
	if (l->barrier >= p->device->named_barriers)
		return err_set(e, ERR_ILLEGAL, p->lanes.v[lane].loc, "the lanes are more than the %d "
			"named barriers of '%s'", p->device->named_barriers - 1, p->device->name);
	build_regions(k, l);
	if (k->target->frag.pair > 2)		/* so that a thread moves its neighbours at once */
		k->shared_bytes = round_up(k->shared_bytes, SCRATCH_ALIGNMENT);
	l->scratch = k->shared_bytes;
	k->shared_bytes += lane_scratch(k, l);
	find_unroll(k, l);
	return OK;
}

enum err_code lower_lanes(struct kernel *k, struct err *e)
{
	const struct plan *p = k->plan;
	int warp = 0;

	for (int i = 0; i < p->lanes.n; i++)
		for (int replica = 0; replica < p->lanes.v[i].replicas && lower_has_work(k, i); replica++)
			TRY(add_lane(k, i, replica, e));
	TRY(lower_count_text(k, e));
	lower_groups(k);
	/* lanes of complete warpgroups first, as matrix instructions need aligned ones */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < k->lanes.n; i++) {
			struct klane *l = &k->lanes.v[i];

			if ((l->warps % k->target->group == 0) != (pass == 0))
				continue;
			l->first_warp = warp;
			warp += target_warps(k->target, l->warps);
		}
	}
	k->threads = warp * k->target->warp;
	return OK;
}
