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

/* Note how many groups may be under way behind a wait of instance `inst`, of the `pending` ones before it. Returns
 * that. */
static int note_under_way(const struct counting *c, struct group_wait *w, int inst, int pending)
{
	int class = instance_class(c, inst);

	if (w->groups_left[class] >= 0 && w->groups_left[class] < pending)
		pending = w->groups_left[class];
	if (pending > w->under_way[class])
		w->under_way[class] = pending;
	return pending;
}

static void count_under_way(const struct counting *c)
{
	int pending = 0;

	for (int i = c->r->lane_first[c->lane_replica]; i < c->r->lane_first[c->lane_replica + 1]; i++) {
		struct kentry *x = lower_entry_of(c->l, c->r->inst[i].task);

		if (x->waits_groups)
			pending = note_under_way(c, &x->before, i, pending);
		pending += is_async_product(c->k, x->task);
		if (x->drains)
			pending = note_under_way(c, &x->after, i, pending);
	}
}

/* A wait that leaves more groups under way than there can be waits for nothing. ptxas does not see that, takes the sums
 * for unfinished and serializes all products (C7514). So the wait names as many groups as there can be. */
static void cap_groups_left(struct group_wait *w)
{
	for (int c = 0; c < ITERATION_CLASSES; c++)
		if (w->groups_left[c] > w->under_way[c])
			w->groups_left[c] = w->under_way[c];
}

/* A lane whose groups are counted: in executions of `first` to `most` tiles, but only the least and the greatest of
 * these numbers, see is_extreme. */
struct counted_lane {
	struct klane *l;
	int lane_replica, first, few, most;
};
struct counted_lanes {
	VEC(struct counted_lane) v;
};

/* Of the executions with the same number of iterations, or of tiles, those in between need not be looked at. A wait
 * leaves fewest groups under way if nothing is awaited yet and few have been issued, or if it awaits an instance, which
 * are more waits the longer the execution is. Of those, one that looks back in a loop finds fewest groups in between
 * where runs are long, as these lie in fewer tiles; one that looks back over tiles where runs are short. Short runs and
 * few tiles in which the offsets leave out some entries each have counts of their own: all of these are looked at. */
static bool is_extreme(int64_t n, int64_t few, int64_t last, int64_t most)
{
	return n <= few || (n > most - last && n <= most);
}

/* The most iterations of a run in which the offsets leave out some entries, and one more. */
static int few_iterations(const struct kernel *k)
{
	int most = 0;

	for (int i = 0; i < k->lanes.n; i++)
		for (int r = 1; r <= k->plan->graph->program->loops.n; r++)
			most = (int)max_i64(most, k->lanes.v[i].regions[r].max_offset);
	return most + 1;
}

static bool is_counted(const struct counted_lane *x, int tiles)
{
	return tiles >= x->first && tiles <= x->most && is_extreme(tiles, x->few, x->l->replicas, x->most);
}

/* Count in executions of so many tiles. One with a deadlock is left out: plan_check refuses such plans. */
static void count_with_tiles(struct kernel *k, const struct counted_lanes *lanes, bool second_pass, int tiles)
{
	int64_t most = lower_fitting_trips(k, lower_window_iterations(k), tiles), few = few_iterations(k);

	for (int64_t trips = 0; trips <= most && !stop_asked(k->stop); trips++) {
		if (!is_extreme(trips, few, 1, most))
			continue;
		struct arena_mark mark = arena_mark(&k->arena);
		int *scratch = ARENA_ARRAY(&k->arena, k->plan->graph->tasks.n, int);
		int64_t *counts = ARENA_ARRAY(&k->arena, k->plan->graph->program->loops.n, int64_t);
		struct relation r;
		struct walk w;

		for (int l = 0; l < k->plan->graph->program->loops.n; l++)
			counts[l] = min_i64(trips, k->plan->graph->trips[l].most);
		lower_relation(k, &k->arena, counts, tiles, &w, &r);
		for (int n = 0; n < lanes->v.n && !r.ncycle; n++) {
			const struct counted_lane *x = &lanes->v.v[n];
			struct counting c = { k, x->l, &r, x->lane_replica, second_pass, scratch };

			if (!is_counted(x, tiles))
				continue;
			for (int i = r.lane_first[x->lane_replica]; i < r.lane_first[x->lane_replica + 1]; i++)
				count_instance(&c, i);
			if (second_pass)
				count_under_way(&c);
		}
		arena_reset(&k->arena, mark);
	}
}

/* Relations are made once for all lanes, because they take the most time by far. */
static void count_pass(struct kernel *k, const struct counted_lanes *lanes, bool second_pass)
{
	int first = INT_MAX, most = 0;

	for (int i = 0; i < lanes->v.n; i++) {
		first = lanes->v.v[i].first < first ? lanes->v.v[i].first : first;
		most = lanes->v.v[i].most > most ? lanes->v.v[i].most : most;
	}
	for (int tiles = first; tiles <= most; tiles++) {
		bool wanted = false;

		for (int i = 0; i < lanes->v.n; i++)
			wanted |= is_counted(&lanes->v.v[i], tiles);
		if (wanted)
			count_with_tiles(k, lanes, second_pass, tiles);
	}
}

/* With tile offsets, few tiles never reach the steady state. Without, two tiles of each replica show all. */
static void set_tiles(struct kernel *k, struct counted_lane *x)
{
	int spread = lower_tile_spread(k);

	x->most = 2 * x->l->replicas;
	if (shifts_tiles(x->l))
		x->most = x->l->replicas * (int)lower_window_iterations(k) + spread;
	if (spread)			/* else no lane has tile offsets, and any number of tiles is legal */
		x->most = (int)min_i64(x->most, k->most_tiles);
	x->first = shifts_tiles(x->l) ? 1 : x->most;
	x->few = x->l->replicas * (x->l->regions[0].max_offset + 1) + spread;
}

static int lane_replica_of(const struct plan *p, const struct klane *l)
{
	int n = l->replica;

	for (int i = 0; i < l->lane; i++)
		n += p->lanes.v[i].replicas;
	return n;
}

void lower_groups(struct kernel *k)
{
	struct counted_lanes lanes = { 0 };

	for (int n = 0; n < k->lanes.n; n++) {
		struct counted_lane x = { .l = &k->lanes.v[n], .lane_replica = lane_replica_of(k->plan, &k->lanes.v[n]) };
		bool multiplies = false;

		find_drains(k, x.l);
		for (int i = 0; i < x.l->entries.n; i++) {
			init_group_wait(k, &x.l->entries.v[i].before);
			init_group_wait(k, &x.l->entries.v[i].after);
			multiplies |= is_async_product(k, x.l->entries.v[i].task);
		}
		set_tiles(k, &x);
		if (multiplies)
			VEC_PUSH(&k->arena, &lanes.v, x);
	}
	count_pass(k, &lanes, false);
	for (int i = 0; i < lanes.v.n; i++)
		lower_end_stages(k, lanes.v.v[i].l);
	count_pass(k, &lanes, true);
	for (int i = 0; i < lanes.v.n; i++) {
		const struct klane *l = lanes.v.v[i].l;

		for (int n = 0; n < l->entries.n; n++) {
			cap_groups_left(&l->entries.v[n].before);
			cap_groups_left(&l->entries.v[n].after);
		}
	}
}
