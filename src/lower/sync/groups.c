/* How many younger groups a wait for the lane's own products may leave under way (wgmma.wait_group N). Counted over the
 * plan's events for small numbers of iterations: the least for each class of iterations (kernel.h). */
#include "lower/refine.h"
#include "lower/passes.h"

#include <limits.h>
#include <string.h>

static void init_group_wait(struct kernel *k, struct group_wait *w)
{
	for (int c = 0; c < ITERATION_CLASSES; c++) {
		w->groups_left[c] = -1;
		w->instances_left[c] = ARENA_ARRAY(&k->arena, k->plan->graph->tasks.n, int);
	}
}

/* If other lanes wait for a product, its own lane needs a point in the same region where it learns that the product is
 * complete, to signal it: any wait for groups, as complete_before lowers its count. If there is none, the lane waits
 * behind the product until only this newest group is under way, and so learns that the one before is complete. */
static void find_drains(const struct kernel *k, struct klane *l)
{
	for (int i = 0; i < l->entries.n; i++) {
		struct kentry *x = &l->entries.v[i];
		bool seen = false;

		if (!is_async_product(k, x->task) || x->flag == NONE || x->result_shared)
			continue;
		for (int j = 0; j < l->entries.n; j++)
			seen |= (l->entries.v[j].waits_groups || l->entries.v[j].drains) &&
				stask_at(k, l->entries.v[j].task)->loop == stask_at(k, x->task)->loop;
		x->drains = !seen;
	}
}

/* What the count under one relation uses. */
struct counting {
	struct kernel *k;
	struct klane *l;
	const struct relation *r;
	int lane_replica;
	bool second_pass;		/* find which instances each wait leaves under way */
	int *scratch;			/* by sTask */
};

/* The last product that the waits of instance `inst` for own groups await; NONE. Indices into r->inst. */
static int last_awaited(const struct counting *c, int inst)
{
	const struct plan *p = c->k->plan;
	int last = NONE;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		struct span spans[SPANS_MAX];
		int n;

		if (w->task != c->r->inst[inst].task || !lower_awaits_own(c->k, w) ||
		    !is_async_product(c->k, w->on) || kernel_result_shared(c->k, w->on))
			continue;
		n = walk_wait_spans(c->r->walk, p, w, c->r->inst[inst].seq, spans);
		for (int s = 0; s < n; s++) {
			int on = relation_instance(c->r, w->on, spans[s].last - 1);

			if (on > last && c->r->inst[on].lane_replica == c->lane_replica)
				last = on;
		}
	}
	return last;
}

/* First pass: note a point behind which `younger` groups may be under way. Second pass: use the least of these counts
 * instead, and note how many instances of each sTask it leaves under way, back from instance `before`, exclusive. */
static void note_group_wait(const struct counting *c, struct group_wait *w, int class, int before, int younger)
{
	int first = c->r->lane_first[c->lane_replica], groups = 0;
	int ntasks = c->k->plan->graph->tasks.n;
	int *left = w->instances_left[class], *now = c->scratch;

	if (!c->second_pass) {
		if (w->groups_left[class] < 0 || younger < w->groups_left[class])
			w->groups_left[class] = younger;
		return;
	}
	younger = w->groups_left[class];
	memset(now, 0, (size_t)ntasks * sizeof(*now));
	for (int i = before - 1; i >= first && groups < younger; i--) {
		if (!is_async_product(c->k, c->r->inst[i].task))
			continue;
		groups++;
		now[c->r->inst[i].task]++;
	}
	for (int t = 0; t < ntasks; t++)
		left[t] = now[t] > left[t] ? now[t] : left[t];
}

static int instance_class(const struct counting *c, int inst)
{
	const struct node_instance *n = &c->r->inst[inst];
	int loop = stask_at(c->k, n->task)->loop, parent;
	int64_t outer, base, trips, tiles = c->r->walk->ntiles;

	if (loop == NONE)
		return iteration_class(&c->l->regions[0], n->seq / c->l->replicas -
			lower_entry_of(c->l, n->task)->at, lane_tiles(c->l, tiles));
	parent = c->k->plan->graph->program->loops.v[loop].parent;
	outer = walk_outer(c->r->walk, loop, n->seq, parent);
	base = walk_inner(c->r->walk, parent, outer, loop);
	trips = walk_inner(c->r->walk, parent, outer + 1, loop) - base;
	return iteration_class(&c->l->regions[loop + 1], n->seq - base - lower_entry_of(c->l, n->task)->at, trips);
}

/* Does instance j wait on a flag for an event that can only come after product i is complete? */
static bool needs_end(const struct counting *c, int i, int j)
{
	const struct plan *p = c->k->plan;

	for (int k = 0; k < p->waits.n; k++) {
		const struct wait *w = &p->waits.v[k];
		struct span spans[SPANS_MAX];
		int n;

		if (w->task != c->r->inst[j].task || !needs_flag(c->k, w))
			continue;
		n = walk_wait_spans(c->r->walk, p, w, c->r->inst[j].seq, spans);
		for (int s = 0; s < n; s++) {
			int on = relation_instance(c->r, w->on, spans[s].last - 1);

			if (lower_shown_by_flag(c->k, w, c->r, j, on) && relation_before(c->r, i, AT_END,
			    on, w->when == WAIT_ISSUED ? AT_ISSUE : AT_END))
				return true;
		}
	}
	return false;
}

static int products_between(const struct counting *c, int first, int end)
{
	int n = 0;

	for (int i = first; i < end; i++)
		n += is_async_product(c->k, c->r->inst[i].task);
	return n;
}

/* Instance j waits for lanes that go on only after product i is signaled: so the lane must wait for i somewhere
 * between, or it would be a deadlock. */
static void complete_before(const struct counting *c, int i, int j)
{
	for (int p = j - 1; p >= i; p--) {
		struct kentry *x = lower_entry_of(c->l, c->r->inst[p].task);

		if (x->drains)
			note_group_wait(c, &x->after, instance_class(c, p), p + 1, products_between(c, i + 1, p + 1));
		else if (x->waits_groups && p > i)
			note_group_wait(c, &x->before, instance_class(c, p), p, products_between(c, i + 1, p));
		else
			continue;
		return;
	}
	/* Instances counted before had no need of this wait: a class that has no count does not make it. */
	lower_entry_of(c->l, c->r->inst[i].task)->drains = true;
	complete_before(c, i, j);
}

/* Make the lane wait for product i before the first of its instances that cannot go on until i is complete. Others see
 * i only by a flag, or as a refinement says; a shared result is complete when the lane goes on. */
static void count_dependents(const struct counting *c, int i)
{
	int end = c->r->lane_first[c->lane_replica + 1];

	if (!is_async_product(c->k, c->r->inst[i].task) || (c->k->flag_of[c->r->inst[i].task] == NONE &&
	    !c->k->refinements->complete.n) || kernel_result_shared(c->k, c->r->inst[i].task))
		return;
	for (int j = i + 1; j < end; j++) {
		if (!needs_end(c, i, j) && !refined_complete_before(c->k, c->r->inst[i].task, c->r->inst[j].task))
			continue;
		complete_before(c, i, j);
		return;			/* instances after j know it then, too */
	}
}

static int parent_of(const struct counting *c, int loop)
{
	return c->k->plan->graph->program->loops.v[loop].parent;
}

static struct kstep *step_of_loop(const struct counting *c, int loop)
{
	struct kregion *v = &c->l->regions[parent_of(c, loop) + 1];

	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop && v->steps.v[i].id == loop)
			return &v->steps.v[i];
	BUG("loop %d is not a step of the lane", loop);
}

/* Make the lane wait for product i where its run of the loop ends. */
static void complete_with_run(const struct counting *c, int i, int loop)
{
	const struct walk *w = c->r->walk;
	int parent = parent_of(c, loop), n = 0;
	int64_t run = walk_outer(w, stask_at(c->k, c->r->inst[i].task)->loop, c->r->inst[i].seq, parent);
	struct kstep *s = step_of_loop(c, loop);

	for (int k = i + 1; k < c->r->lane_first[c->lane_replica + 1]; k++) {
		const struct node_instance *x = &c->r->inst[k];
		int mine = stask_at(c->k, x->task)->loop;

		if (!program_loop_within(c->k->plan->graph->program, mine, loop) ||
		    walk_outer(w, mine, x->seq, parent) != run)
			break;
		n += is_async_product(c->k, x->task);
	}
	s->groups_left = s->groups_left == NONE || n < s->groups_left ? n : s->groups_left;
}

/* If other lanes wait for the run that product instance i ends, make the lane wait for i at the end of the run. Not
 * without tile offsets, because the end of each tile waits for all products; and not for runs of inner loops, where a
 * refinement asks for it (flag.ends_complete). */
static void count_runs(const struct counting *c, int i)
{
	int task = c->r->inst[i].task, own = stask_at(c->k, task)->loop;
	const struct walk *w = c->r->walk;

	if (!shifts_tiles(c->l) || !is_async_product(c->k, task) || kernel_result_shared(c->k, task))
		return;
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (fl->runs && !fl->issued && fl->task == task && parent_of(c, fl->loop) == NONE &&
		    c->r->inst[i].seq + 1 == walk_inner(w, NONE, walk_outer(w, own, c->r->inst[i].seq, NONE) + 1, own))
			complete_with_run(c, i, fl->loop);
	}
}

/* The last product of an earlier run that reads the registers which instance j overwrites; NONE: there is none.
 * Versions are counted from the beginning of a run. */
static int last_reader(const struct counting *c, int j, int buffer)
{
	const struct graph *g = c->k->plan->graph;
	const struct walk *w = c->r->walk;
	int loop = g->buffers.v[buffer].loop, parent = parent_of(c, loop), last = NONE;
	int versions = c->k->plan->versions[buffer];
	int64_t life = walk_outer(w, stask_at(c->k, c->r->inst[j].task)->loop, c->r->inst[j].seq, loop);
	int64_t at = life - walk_inner(w, parent, walk_outer(w, loop, life, parent), loop);

	for (int i = c->r->lane_first[c->lane_replica]; i < j; i++) {
		const struct stask *s = stask_at(c->k, c->r->inst[i].task);
		int64_t old, first;

		if (!is_async_product(c->k, c->r->inst[i].task) || !stask_reads(s, buffer))
			continue;
		old = walk_outer(w, s->loop, c->r->inst[i].seq, loop);
		first = walk_inner(w, parent, walk_outer(w, loop, old, parent), loop);
		if (first + at != life && (old - first - at) % versions == 0)
			last = i;
	}
	return last;
}

/* Register versions are counted by the iteration within a run, but the plan counts iterations over all runs. So the
 * next run may overwrite registers that a product of this run still reads; then the lane waits at the end of the run.
 * Runs of outermost loops need that only with tile offsets: else the end of each tile waits for all products. */
static void count_versions(const struct counting *c, int j)
{
	const struct graph *g = c->k->plan->graph;
	const struct stask *s = stask_at(c->k, c->r->inst[j].task);
	const struct kentry *e = lower_entry_of(c->l, c->r->inst[j].task);
	int younger = e->waits_groups ? e->before.groups_left[instance_class(c, j)] : INT_MAX;

	for (int x = 0; x < s->writes.n; x++) {
		int b = s->writes.v[x], loop = g->buffers.v[b].loop, i;

		if (loop == NONE || c->k->ring_of[b] != NONE || c->k->plan->versions[b] == 1 ||
		    (parent_of(c, loop) == NONE && !shifts_tiles(c->l)))
			continue;
		i = last_reader(c, j, b);
		if (i != NONE && younger > products_between(c, i + 1, j) &&
		    !relation_before(c->r, i, AT_END, j, AT_ISSUE))
			complete_with_run(c, i, loop);
	}
}

static void count_instance(const struct counting *c, int inst)
{
	struct kentry *x = lower_entry_of(c->l, c->r->inst[inst].task);
	int class = instance_class(c, inst);

	if (x->waits_groups) {
		int first = (int)max_i64(c->r->lane_first[c->lane_replica], last_awaited(c, inst) + 1);

		note_group_wait(c, &x->before, class, inst, products_between(c, first, inst));
	}
	if (x->drains)
		note_group_wait(c, &x->after, class, inst + 1, 1);
	if (c->second_pass) {
		count_versions(c, inst);
		return;
	}
	count_dependents(c, inst);
	count_runs(c, inst);
}

/* Count in executions of so many tiles. One with a deadlock is left out: plan_check refuses such plans. */
static void count_with_tiles(struct kernel *k, struct klane *l, int lane_replica, bool second_pass, int tiles)
{
	for (int64_t trips = 0; trips <= lower_window_iterations(k); trips++) {
		struct arena_mark mark = arena_mark(&k->arena);
		struct counting c = { .k = k, .l = l, .lane_replica = lane_replica, .second_pass = second_pass,
			.scratch = ARENA_ARRAY(&k->arena, k->plan->graph->tasks.n, int) };
		struct relation r;
		struct walk w;

		lower_relation(k, &k->arena, trips, tiles, &w, &r);
		c.r = &r;
		for (int i = r.lane_first[lane_replica]; !r.ncycle && i < r.lane_first[lane_replica + 1]; i++)
			count_instance(&c, i);
		arena_reset(&k->arena, mark);
	}
}

static void count_pass(struct kernel *k, struct klane *l, int lane_replica, bool second_pass)
{
	int spread = lower_tile_spread(k), most = 2 * l->replicas;

	if (shifts_tiles(l))
		most = l->replicas * (int)lower_window_iterations(k) + spread;
	if (spread)			/* else no lane has tile offsets, and any number of tiles is legal */
		most = (int)min_i64(most, k->most_tiles);
	/* With tile offsets, few tiles never reach the steady state. Without, two tiles of each replica show all. */
	for (int tiles = shifts_tiles(l) ? 1 : most; tiles <= most; tiles++)
		count_with_tiles(k, l, lane_replica, second_pass, tiles);
}

void lower_groups(struct kernel *k, struct klane *l, int lane_replica)
{
	bool multiplies = false;

	find_drains(k, l);
	for (int i = 0; i < l->entries.n; i++) {
		init_group_wait(k, &l->entries.v[i].before);
		init_group_wait(k, &l->entries.v[i].after);
		multiplies |= is_async_product(k, l->entries.v[i].task);
	}
	if (!multiplies)
		return;
	count_pass(k, l, lane_replica, false);
	lower_end_stages(k, l);
	count_pass(k, l, lane_replica, true);
}
