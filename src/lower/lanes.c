/* The lanes of the kernel: their entries and regions in order, their scratch, and which warps they are. */
#include "lower/layout/folds.h"
#include "lower/passes.h"

enum {
	COPIES_MOST = 2048,		/* sTasks in the text of all lanes: check takes 50 us and 15 KB for each */
	UNROLL_MOST = 1 << 20,		/* greater least common multiples are as good as this one */
};

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

/* May the text of the lane's loop be there once for each of the versions that buffer `b` has in registers? */
static bool is_unrolled_for(const struct kernel *k, const struct klane *l, int b)
{
	const struct buffer *x = &k->plan->graph->buffers.v[b];

	return x->phase == k->phase && k->ring_of[b] == NONE && lane_of(k, x->first) == l->lane;
}

static void find_unroll(struct kernel *k, struct klane *l)
{
	for (int i = 0; i < k->plan->graph->buffers.n; i++) {
		struct kregion *r = &l->regions[k->plan->graph->buffers.v[i].loop + 1];
		int64_t v = k->plan->versions[i];

		if (is_unrolled_for(k, l, i))
			r->unroll = (int)min_i64(r->unroll / gcd_i64(r->unroll, v) * v, UNROLL_MOST);
	}
}

/* How often the text has what stands at offset `at` of a region: in the prologue, in each copy of the steady state and
 * in the epilogue of each, and once for each iteration of runs that are too short for a steady state (peel.c,
 * unroll.c). */
static int64_t copies_at(const struct kernel *k, const struct klane *l, int loop, int at)
{
	const struct kregion *v = &l->regions[loop + 1];
	int64_t least = loop == NONE ? 1 : max_i64(k->plan->graph->trips[loop].least, 1), n = 0;
	int64_t most = loop == NONE ? INT64_MAX : k->plan->graph->trips[loop].most;

	if (loop == NONE && !shifts_tiles(l))
		return 1;
	if (most > v->max_offset)
		n = at + v->unroll * ((int64_t)v->max_offset - at + 1);
	for (int64_t trips = least; trips <= most && trips < v->max_offset + (most <= v->max_offset); trips++)
		n += trips;
	return n;
}

/* sTasks and loops in the text of a region, those of its loops included; COPIES_MOST + 1 at most. */
static int64_t count_copies(const struct kernel *k, const struct klane *l, int loop)
{
	const struct kregion *v = &l->regions[loop + 1];
	int64_t n = 0;

	for (int i = 0; i < v->steps.n; i++) {
		const struct kstep *s = &v->steps.v[i];

		n += copies_at(k, l, loop, s->at) * (1 + (s->is_loop ? count_copies(k, l, s->id) : 0));
		n = min_i64(n, COPIES_MOST + 1);
	}
	return n;
}

static int64_t count_all_copies(const struct kernel *k)
{
	int64_t n = 0;

	for (int i = 0; i < k->lanes.n; i++)
		n += count_copies(k, &k->lanes.v[i], NONE);
	return n;
}

/* With equal versions in each region, a loop is unrolled as often as the most of them. */
static void equal_versions(struct kernel *k)
{
	for (int i = 0; i < k->lanes.n; i++) {
		struct klane *l = &k->lanes.v[i];

		for (int r = 0; r <= k->plan->graph->program->loops.n; r++)
			l->regions[r].unroll = 1;
		for (int b = 0; b < k->plan->graph->buffers.n; b++) {
			struct kregion *r = &l->regions[k->plan->graph->buffers.v[b].loop + 1];

			if (is_unrolled_for(k, l, b) && r->unroll < k->plan->versions[b])
				r->unroll = k->plan->versions[b];
		}
	}
}

/* The versions in registers that multiply in region `loop` of the lane: "'s' (2), 'p' (3)". */
static const char *list_versions(struct kernel *k, const struct klane *l, int loop)
{
	const char *text = "";

	for (int b = 0; b < k->plan->graph->buffers.n; b++) {
		const struct buffer *x = &k->plan->graph->buffers.v[b];

		if (x->loop == loop && k->plan->versions[b] > 1 && is_unrolled_for(k, l, b))
			text = arena_strf(&k->arena, "%s%s'%s' (%d)", text, *text ? ", " : "", x->name,
				k->plan->versions[b]);
	}
	return text;
}

/* The entry of the lane that is farthest ahead in its region. */
static const struct kentry *farthest_ahead(const struct klane *l)
{
	const struct kentry *x = &l->entries.v[0];

	for (int i = 1; i < l->entries.n; i++)
		if (l->entries.v[i].at > x->at)
			x = &l->entries.v[i];
	return x;
}

/* Is the kernel's text short enough? Versions of values in registers multiply: a loop is unrolled as often as their
 * least common multiple says. Offsets multiply with that, and those of loops in one another with each other. */
static enum err_code check_copies(struct kernel *k, struct err *e)
{
	const struct klane *most = NULL;
	const char *name;
	int loop = NONE;

	if (count_all_copies(k) <= COPIES_MOST)
		return OK;
	for (int i = 0; i < k->lanes.n; i++)
		if (!most || count_copies(k, &k->lanes.v[i], NONE) > count_copies(k, most, NONE))
			most = &k->lanes.v[i];
	for (int r = NONE; r < k->plan->graph->program->loops.n; r++)
		if (most->regions[r + 1].unroll > most->regions[loop + 1].unroll)
			loop = r;
	name = k->plan->lanes.v[most->lane].name;
	k->refusal = (struct refusal){ .code = PROBLEM_COPIES, .task = NONE };
	if (most->regions[loop + 1].unroll > 1) {
		err_set(e, ERR_ILLEGAL, k->plan->versions_loc, "the kernel would have more than %d copies of sTasks: "
			"lane '%s' has a copy of its loop for each of the versions in registers that meet, and those of "
			"%s meet again only after %s%d iterations", COPIES_MOST, name, list_versions(k, most, loop),
			most->regions[loop + 1].unroll == UNROLL_MOST ? "more than " : "",
			most->regions[loop + 1].unroll);
		equal_versions(k);
		k->refusal.equal_versions = count_all_copies(k) <= COPIES_MOST;
		return ERR_ILLEGAL;
	}
	const struct kentry *x = farthest_ahead(most);

	k->refusal.task = x->task;
	return err_set(e, ERR_ILLEGAL, k->plan->entries.v[x->entry].loc, "the kernel would have more than %d copies of "
		"sTasks: lane '%s' needs copies for the first and last iterations, in which its offsets leave out some "
		"of them", COPIES_MOST, name);
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
	TRY(check_copies(k, e));
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
