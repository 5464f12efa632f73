#include "lower/actions.h"

static const struct stask *stask_at(const struct kernel *k, int task)
{
	return &k->plan->graph->tasks.v[task];
}

static const struct buffer *buffer_at(const struct kernel *k, int buffer)
{
	return &k->plan->graph->buffers.v[buffer];
}

struct actor {
	struct arena *a;
	struct script *s;
	const struct kernel *k;
	const struct klane *lane;
	VEC(struct act) acts;
	int64_t tile, turn;		/* at hand: of all tiles; of the lane's */
	int64_t *base, *i, *seq;	/* by loop, as the text's variables */
	int *issued, *released, *seen, *told;	/* by flag */
	int instance;			/* at work */
};

static void act(struct actor *x, enum act_kind kind, int at, int64_t n)
{
	VEC_PUSH(x->a, &x->acts, ((struct act){ .kind = kind, .instance = x->instance, .at = at,
		.n = (int)n, .want = NONE }));
}

static int64_t passed(const struct actor *x, int loop)
{
	return loop == NONE ? x->tile : x->seq[loop];
}

static void wait_for(struct actor *x, const struct flag_wait *w, int mine)
{
	int64_t n = 0;

	switch (w->which) {
	case AWAIT_BACK:
		n = passed(x, w->loop) - w->back;
		break;
	case AWAIT_WITHIN:
		n = x->i[w->loop] >= w->back ? passed(x, w->loop) - w->back : -1;
		break;
	case AWAIT_AROUND:
		n = passed(x, w->loop) - w->back;
		if (w->once && x->seen[w->flag] > n)
			n = -1;
		for (int l = mine; l != w->loop && !w->once; l = x->k->plan->graph->program->loops.v[l].parent)
			if (x->i[l])
				n = -1;
		break;
	case AWAIT_RUN:
		n = x->base[w->loop] - 1;
		break;
	}
	if (n < 0)
		return;
	act(x, ACT_WAIT, w->flag, n);
	x->seen[w->flag] = (int)n + 1;
}

static bool in_lane(const struct actor *x, int task)
{
	return x->s->set->lane[task] == x->lane - x->k->lanes.v - x->lane->copy;
}

/* Arrive for the products that are known to be complete. behind NULL: all are. */
static void release(struct actor *x, const int *behind)
{
	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];

		if (fl->issued || !in_lane(x, fl->task) || !x->s->set->matrix[fl->task])
			continue;
		if (fl->runs && behind && behind[fl->task])
			continue;
		for (; x->released[f] < x->issued[f] - (behind ? behind[fl->task] : 0); x->released[f]++)
			act(x, ACT_ARRIVE, f, x->released[f]);
	}
}

/* Run n of its loop is over for the flag's sTask. */
static void tell_run(struct actor *x, int f, int64_t n)
{
	const struct flag *fl = &x->k->flags.v[f];

	if (fl->early && x->told[f] > n)
		return;
	x->told[f] = (int)n + 1;
	if (!x->s->set->matrix[fl->task] || fl->issued) {
		act(x, ACT_ARRIVE, f, n);
		return;
	}
	x->issued[f]++;
	if (fl->ends) {
		act(x, ACT_GROUPS, NONE, 0);
		release(x, NULL);
	}
}

/* After loop `nested` in an iteration of `loop`: what its entries would have waited for
 * had it made one. */
static void wait_for_missed(struct actor *x, int loop, int nested)
{
	for (int i = 0; i < x->lane->entries.n; i++) {
		const struct kentry *e = &x->lane->entries.v[i];
		int mine = stask_at(x->k, e->task)->loop;

		for (int k = 0; k < e->waits.n; k++)
			if (e->waits.v[k].once && e->waits.v[k].loop == loop &&
			    program_loop_within(x->k->plan->graph->program, mine, nested))
				wait_for(x, &e->waits.v[k], mine);
		for (int f = 0; f < x->k->flags.n; f++)
			if (x->k->flags.v[f].early && x->k->flags.v[f].task == e->task &&
			    x->k->flags.v[f].loop == nested)
				tell_run(x, f, passed(x, loop));
	}
}

static void group_wait(struct actor *x, const struct group_wait *w, int class)
{
	int younger = w->younger[class] < 0 ? 0 : w->younger[class];

	act(x, ACT_GROUPS, NONE, younger > 7 ? 7 : younger);
	release(x, w->younger[class] < 0 ? NULL : w->behind[class]);
}

/* Where the sTask at work finds a buffer. */
static int place_of(const struct actor *x, int buffer)
{
	const struct buffer *b = buffer_at(x->k, buffer);
	int first = x->s->set->first[buffer];

	if (x->k->ring_of[buffer] != NONE)
		return first + (int)(passed(x, b->loop) %
			x->k->rings.v[x->k->ring_of[buffer]].versions);
	first += x->lane->copy * x->s->set->versions[buffer];
	if (b->loop == NONE)
		return first + (int)(x->turn % x->k->plan->versions[buffer]);
	return first + (int)(x->i[b->loop] % x->k->plan->versions[buffer]);
}

/* Does a product with nothing to add to begin each life of the carry? */
static bool begins_by_product(const struct kernel *k, const struct buffer *b)
{
	const struct graph *g = k->plan->graph;
	const struct stask *first = stask_at(k, b->first);

	for (int l = first->loop; l != b->loop; l = g->program->loops.v[l].parent)
		if (g->trips[l].least == 0)
			return false;
	return first->kind == TASK_MMA && g->program->carries.v[b->carry].init == 0;
}

static bool has_initial(const struct kernel *k, int buffer)
{
	const struct buffer *b = buffer_at(k, buffer);

	return b->carry != NONE && b->phase == k->phase && (k->ring_of[buffer] != NONE ||
		!begins_by_product(k, b));
}

/* Give carries their initial value whose lives are iterations of `loop` and begin with
 * `task`, or with any sTask inside loop `nested`; all of them if both are NONE. */
static void begin_lives(struct actor *x, int loop, int task, int nested)
{
	const struct graph *g = x->k->plan->graph;
	int instance = x->instance;

	x->instance = NONE;
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];

		if (b->loop != loop || (task != NONE && b->first != task) || (nested != NONE &&
		    !program_loop_within(g->program, stask_at(x->k, b->first)->loop, nested)))
			continue;
		if (has_initial(x->k, i) && x->k->ring_of[i] == NONE && in_lane(x, b->first))
			act(x, ACT_WRITE, place_of(x, i), 0);
	}
	x->instance = instance;
}

/* Is the sTask at work, of region `mine`, the first to touch the carry's life? */
static bool is_first(const struct actor *x, const struct begins *b, int mine)
{
	const struct program *p = x->k->plan->graph->program;
	int loop = buffer_at(x->k, b->buffer)->loop;

	for (int l = mine; l != loop; l = p->loops.v[l].parent)
		if (x->i[l])
			return false;
	for (int i = 0; i < b->empty.n; i++) {
		int l = b->empty.v[i], around = kernel_common_loop(p, mine, l);
		int64_t n = passed(x, around);

		if (walk_inner(x->s->walk, around, n, l) != walk_inner(x->s->walk, around, n + 1, l))
			return false;
	}
	return true;
}

/* Lives of carries in shared memory that begin with the sTask at work. */
static void begin_shared(struct actor *x, const struct kentry *e, int mine)
{
	for (int i = 0; i < e->begins.n; i++) {
		if (!is_first(x, &e->begins.v[i], mine))
			continue;
		act(x, ACT_WRITE, place_of(x, e->begins.v[i].buffer), 0);
		x->acts.v[x->acts.n - 1].initial = true;
		act(x, ACT_FENCE, NONE, 0);
		act(x, ACT_SYNC, NONE, 0);
	}
}

static bool lists(const int *v, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

/* Does the sTask read a carry in shared memory and then set it? */
static bool updates_shared(const struct actor *x, const struct stask *s)
{
	bool found = false;

	for (int i = 0; i < s->writes.n; i++)
		found |= x->k->ring_of[s->writes.v[i]] != NONE &&
			lists(s->reads.v, s->reads.n, s->writes.v[i]);
	return found;
}

static void touch(struct actor *x, const struct stask *s, int task, int64_t seq)
{
	bool product = s->kind == TASK_MMA;

	for (int i = 0; i < s->reads.n; i++) {
		bool sum = product && lists(s->writes.v, s->writes.n, s->reads.v[i]);

		act(x, sum ? ACT_GROUP_SUM : product ? ACT_GROUP_READ : ACT_READ,
			place_of(x, s->reads.v[i]), 0);
		x->acts.v[x->acts.n - 1].want = x->s->want[task][seq * s->reads.n + i];
		x->acts.v[x->acts.n - 1].initial = has_initial(x->k, s->reads.v[i]);
	}
	if (updates_shared(x, s))
		act(x, ACT_SYNC, NONE, 0);
	for (int i = 0; i < s->writes.n; i++)
		if (!product || !lists(s->reads.v, s->reads.n, s->writes.v[i]))
			act(x, product ? ACT_GROUP_SUM : ACT_WRITE, place_of(x, s->writes.v[i]), 0);
	if (product)
		act(x, ACT_COMMIT, NONE, 0);
}

/* A product whose result goes to shared memory: what it adds to is read from there, and the
 * lane waits for it. */
static void touch_landing(struct actor *x, const struct stask *s, int task, int64_t seq)
{
	for (int i = 0; i < s->reads.n; i++) {
		act(x, lists(s->writes.v, s->writes.n, s->reads.v[i]) ? ACT_READ : ACT_GROUP_READ,
			place_of(x, s->reads.v[i]), 0);
		x->acts.v[x->acts.n - 1].want = x->s->want[task][seq * s->reads.n + i];
		x->acts.v[x->acts.n - 1].initial = has_initial(x->k, s->reads.v[i]);
	}
	if (updates_shared(x, s))
		act(x, ACT_SYNC, NONE, 0);
	act(x, ACT_COMMIT, NONE, 0);
}

static void land(struct actor *x, const struct stask *s)
{
	act(x, ACT_GROUPS, NONE, 0);
	for (int i = 0; i < s->writes.n; i++)
		act(x, ACT_WRITE, place_of(x, s->writes.v[i]), 0);
	act(x, ACT_FENCE, NONE, 0);
	act(x, ACT_SYNC, NONE, 0);
}

static bool reads_own(const struct actor *x, int buffer)
{
	for (int i = 0; i < x->lane->entries.n; i++) {
		const struct stask *s = stask_at(x->k, x->lane->entries.v[i].task);

		if (lists(s->reads.v, s->reads.n, buffer))
			return true;
	}
	return false;
}

static void play_load(struct actor *x, const struct kentry *e, const struct stask *s, int64_t seq)
{
	int buffer = s->writes.v[0], place = place_of(x, buffer);

	if (e->flag == NONE)
		return;
	if (!x->k->rings.v[x->k->ring_of[buffer]].engine) {
		if (x->lane->warps > 1 && reads_own(x, buffer))
			act(x, ACT_SYNC, NONE, 0);
		act(x, ACT_WRITE, place, 0);
		act(x, ACT_FENCE, NONE, 0);
		act(x, ACT_ARRIVE, e->flag, seq);
		return;
	}
	if (x->lane->warps > 1 && (e->waits.n || e->meets || reads_own(x, buffer)))
		act(x, ACT_SYNC, NONE, 0);
	act(x, ACT_COPY, e->flag, seq);
	x->acts.v[x->acts.n - 1].to = place;
}

/* Batch by batch through the room, or what is in a ring at once. */
static void play_store(struct actor *x, const struct kentry *e, const struct stask *s, int64_t seq)
{
	const struct outbox *o = &x->k->outboxes.v[e->outbox];
	int rounds = o->panels / o->batch;

	if (o->ring != NONE) {
		act(x, ACT_STORE, place_of(x, s->reads.v[0]), 0);
		x->acts.v[x->acts.n - 1].want = x->s->want[e->task][seq * s->reads.n];
		act(x, ACT_STORES, NONE, 0);
		act(x, ACT_SYNC, NONE, 0);
		return;
	}
	touch(x, s, e->task, seq);
	for (int r = 0; r < rounds; r++) {
		int place = x->s->set->room[e->outbox] + r % o->batches;

		act(x, ACT_STORES, NONE, o->unread[r > 0]);
		act(x, ACT_WRITE, place, 0);
		act(x, ACT_FENCE, NONE, 0);
		act(x, ACT_STORE, place, 0);
		x->acts.v[x->acts.n - 1].want = x->instance;
	}
}

/* The sTask at work may be the last instance of a run. */
static void tell_early(struct actor *x, int task)
{
	const struct program *p = x->k->plan->graph->program;

	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];
		bool last = fl->early && fl->task == task;

		for (int l = stask_at(x->k, task)->loop; last; l = p->loops.v[l].parent) {
			int64_t at = passed(x, p->loops.v[l].parent);

			last = x->i[l] == x->s->walk->cum[l][at + 1] - x->s->walk->cum[l][at] - 1;
			if (l == fl->loop)
				break;
		}
		if (last)
			tell_run(x, f, passed(x, p->loops.v[fl->loop].parent));
	}
}

static void play_entry(struct actor *x, const struct kentry *e, int class, int64_t iteration)
{
	const struct stask *s = stask_at(x->k, e->task);
	bool shares = false;
	int64_t seq;

	if (s->loop != NONE) {
		x->i[s->loop] = iteration;
		x->seq[s->loop] = x->base[s->loop] + iteration;
	}
	seq = passed(x, s->loop);
	x->instance = script_instance(x->s, e->task, seq);
	x->s->ran[x->instance]++;
	for (int i = 0; i < e->waits.n; i++)
		wait_for(x, &e->waits.v[i], s->loop);
	if (e->waits_groups)
		group_wait(x, &e->before, class);
	for (int i = 0; i < s->writes.n && s->kind == TASK_COMPUTE; i++)
		shares |= x->k->ring_of[s->writes.v[i]] != NONE;
	if (shares || e->lands || e->begins.n)
		act(x, ACT_SYNC, NONE, 0);
	if (s->loop != NONE || shifts_tiles(x->lane))
		begin_lives(x, s->loop, e->task, NONE);
	begin_shared(x, e, s->loop);
	if (e->issue_flag != NONE && s->kind == TASK_COMPUTE)
		act(x, ACT_ARRIVE, e->issue_flag, seq);
	if (s->kind == TASK_LOAD)
		play_load(x, e, s, seq);
	else if (e->lands)
		touch_landing(x, s, e->task, seq);
	else if (e->outbox != NONE)
		play_store(x, e, s, seq);
	else
		touch(x, s, e->task, seq);
	if (shares) {
		act(x, ACT_FENCE, NONE, 0);
		act(x, ACT_SYNC, NONE, 0);
	}
	if (e->issue_flag != NONE && s->kind != TASK_COMPUTE)
		act(x, ACT_ARRIVE, e->issue_flag, seq);
	if (e->lands)
		land(x, s);
	if (e->flag != NONE && s->kind == TASK_MMA && x->s->set->matrix[e->task])
		x->issued[e->flag]++;
	else if (e->flag != NONE && s->kind != TASK_LOAD)
		act(x, ACT_ARRIVE, e->flag, seq);
	tell_early(x, e->task);
	if (e->drains)
		group_wait(x, &e->after, class);
}

/* A run of loop `nested` is over. */
static void end_run(struct actor *x, int loop, const struct kstep *s)
{
	int nested = s->id;

	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];

		if (fl->runs && !fl->early && fl->loop == nested && in_lane(x, fl->task))
			tell_run(x, f, passed(x, loop));
	}
	if (s->younger == NONE)
		return;
	act(x, ACT_GROUPS, NONE, s->younger > 7 ? 7 : s->younger);
	for (int f = 0; f < x->k->flags.n; f++) {
		const struct flag *fl = &x->k->flags.v[f];

		if (fl->runs && fl->loop == nested && in_lane(x, fl->task) &&
		    x->s->set->matrix[fl->task] && !fl->issued)
			for (; x->released[f] < x->issued[f]; x->released[f]++)
				act(x, ACT_ARRIVE, f, x->released[f]);
	}
}

static void play_region(struct actor *x, int loop)
{
	const struct kregion *v = &x->lane->regions[loop + 1];
	int parent = x->k->plan->graph->program->loops.v[loop].parent;
	const int64_t *cum = &x->s->walk->cum[loop][passed(x, parent)];
	int64_t trips = cum[1] - cum[0];

	for (int64_t turn = -v->most; turn < trips; turn++) {
		for (int i = 0; i < v->steps.n; i++) {
			const struct kstep *s = &v->steps.v[i];
			const struct kentry *e = s->is_loop ? NULL : &x->lane->entries.v[s->id];
			int64_t iteration = turn + s->at;

			if (iteration < 0 || iteration >= trips)
				continue;
			x->i[loop] = iteration;
			x->seq[loop] = x->base[loop] + iteration;
			if (e) {
				play_entry(x, e, turn_class(v, turn, trips), iteration);
				continue;
			}
			begin_lives(x, loop, NONE, s->id);
			play_region(x, s->id);
			x->instance = NONE;
			wait_for_missed(x, loop, s->id);
			end_run(x, loop, s);
		}
	}
	x->base[loop] += trips;
}

/* Of a tile that another copy takes only the iterations are counted. */
static bool is_others(struct actor *x)
{
	const struct graph *g = x->k->plan->graph;

	if (x->tile % x->lane->copies != x->lane->copy) {
		for (int l = 0; l < g->program->loops.n; l++)
			if (g->program->loops.v[l].phase == x->k->phase)
				x->base[l] = walk_inner(x->s->walk, NONE, x->tile + 1, l);
		return true;
	}
	for (int f = 0; f < x->k->flags.n; f++) {
		int loop = flag_loop(x->k, f);

		x->issued[f] = x->released[f] = (int)(loop == NONE ? x->tile : x->base[loop]);
	}
	x->instance = NONE;
	if (x->lane->turn != NONE && x->tile)
		act(x, ACT_WAIT, x->lane->turn, x->tile - 1);
	return false;
}

/* Wait for all products of the lane. */
static void wait_for_products(struct actor *x)
{
	bool multiplies = false;

	x->instance = NONE;
	for (int i = 0; i < x->lane->entries.n; i++)
		multiplies |= x->s->set->matrix[x->lane->entries.v[i].task];
	if (!multiplies)
		return;
	act(x, ACT_GROUPS, NONE, 0);
	release(x, NULL);
}

static void play_tile_step(struct actor *x, const struct kstep *s, int class)
{
	if (!s->is_loop) {
		play_entry(x, &x->lane->entries.v[s->id], class, x->tile);
		return;
	}
	play_region(x, s->id);
	x->instance = NONE;
	wait_for_missed(x, NONE, s->id);
	end_run(x, NONE, s);
}

static void play_tile(struct actor *x)
{
	const struct kregion *v = &x->lane->regions[0];

	if (x->lane->copies > 1 && is_others(x))
		return;
	begin_lives(x, NONE, NONE, NONE);
	for (int i = 0; i < v->steps.n; i++)
		play_tile_step(x, &v->steps.v[i], 0);
	wait_for_products(x);
}

/* A copy passes over the tiles of the others, and has told all of its products. */
static void pass_others(struct actor *x, const struct kstep *s)
{
	const struct program *p = x->k->plan->graph->program;

	for (int l = 0; l < p->loops.n && s->is_loop; l++)
		if (program_loop_within(p, l, s->id))
			x->base[l] = walk_inner(x->s->walk, NONE, x->tile, l);
	for (int f = 0; f < x->k->flags.n; f++) {
		int task = x->k->flags.v[f].task, loop = flag_loop(x->k, f);

		if (in_lane(x, task) && (s->is_loop ? program_loop_within(p,
		    stask_at(x->k, task)->loop, s->id) : x->lane->entries.v[s->id].task == task))
			x->issued[f] = x->released[f] = (int)(loop == NONE ? x->tile :
				x->base[loop]);
	}
}

static void play_step_of_turn(struct actor *x, const struct kstep *s, int class)
{
	x->tile = x->turn * x->lane->copies + x->lane->copy;
	x->instance = NONE;
	if (s->turn != NONE && x->tile)
		act(x, ACT_WAIT, s->turn, x->tile - 1);
	if (x->lane->copies > 1)
		pass_others(x, s);
	if (s->is_loop)
		begin_lives(x, NONE, NONE, s->id);
	play_tile_step(x, s, class);
}

/* The tile loop in turns, of which each is about several tiles. */
static void play_tile_turns(struct actor *x)
{
	const struct kregion *v = &x->lane->regions[0];
	int64_t trips = lane_tiles(x->lane, x->s->walk->ntiles);

	for (int64_t turn = -v->most; turn < trips; turn++) {
		for (int i = 0; i < v->steps.n; i++) {
			const struct kstep *s = &v->steps.v[i];

			x->turn = turn + s->at;
			if (x->turn >= 0 && x->turn < trips)
				play_step_of_turn(x, s, turn_class(v, turn, trips));
		}
		if (turn == trips - 1 || x->lane->copies > 1)
			wait_for_products(x);
	}
	for (int l = 0; l < x->k->plan->graph->program->loops.n; l++)
		if (x->lane->copies > 1 && x->k->plan->graph->program->loops.v[l].phase == x->k->phase)
			x->base[l] = walk_count(x->s->walk, l);
}

/* A block may not end while something is copied to its memory. */
static void wait_last_copies(struct actor *x)
{
	for (int i = 0; i < x->k->flags.n; i++) {
		const struct flag *f = &x->k->flags.v[i];
		int loop = stask_at(x->k, f->task)->loop;
		int64_t end = loop == NONE ? x->s->walk->ntiles : x->base[loop];

		if (!f->bytes || !in_lane(x, f->task))
			continue;
		for (int64_t n = max_i64(0, end - f->depth); n < end; n++)
			act(x, ACT_WAIT, i, n);
	}
}

static void play_lane(struct arena *a, struct script *s, int lane)
{
	const struct kernel *k = s->set->k;
	int loops = k->plan->graph->program->loops.n;
	struct actor x = { .a = a, .s = s, .k = k, .lane = &k->lanes.v[lane],
		.base = ARENA_ARRAY(a, loops, int64_t), .i = ARENA_ARRAY(a, loops, int64_t),
		.seq = ARENA_ARRAY(a, loops, int64_t), .issued = ARENA_ARRAY(a, k->flags.n, int),
		.released = ARENA_ARRAY(a, k->flags.n, int),
		.seen = ARENA_ARRAY(a, k->flags.n, int), .told = ARENA_ARRAY(a, k->flags.n, int) };
	bool stores = false;

	if (shifts_tiles(x.lane))
		play_tile_turns(&x);
	for (x.tile = 0; x.tile < s->walk->ntiles && !shifts_tiles(x.lane); x.tile++)
		play_tile(&x);
	wait_last_copies(&x);
	x.instance = NONE;
	for (int i = 0; i < x.lane->entries.n; i++)
		stores |= x.lane->entries.v[i].outbox != NONE;
	if (stores)
		act(&x, ACT_STORES, NONE, 0);
	if (k->cluster > 1)
		act(&x, ACT_CLUSTER, NONE, 0);
	s->acts[lane] = x.acts.v;
	s->nacts[lane] = x.acts.n;
}

int script_lane(const struct script *s, int flag, int n)
{
	const struct kernel *k = s->set->k;
	int loop = flag_loop(k, flag), lane = s->set->lane[k->flags.v[flag].task];

	return lane + (int)(walk_outer(s->walk, loop, n, NONE) % k->lanes.v[lane].copies);
}

static void number_instances(struct arena *a, struct script *s)
{
	const struct kernel *k = s->set->k;
	const struct graph *g = k->plan->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		int64_t count = g->tasks.v[t].phase == k->phase ?
			walk_count(s->walk, g->tasks.v[t].loop) : 0;

		s->first[t] = s->ninstances;
		s->ninstances += (int)count;
		s->want[t] = ARENA_ARRAY(a, count * g->tasks.v[t].reads.n, int);
	}
	s->first[g->tasks.n] = s->ninstances;
	s->task = ARENA_ARRAY(a, s->ninstances, int);
	s->ran = ARENA_ARRAY(a, s->ninstances, int);
	for (int t = 0; t < g->tasks.n; t++)
		for (int i = s->first[t]; i < s->first[t + 1]; i++)
			s->task[i] = t;
}

void script_init(struct arena *a, const struct setting *set, const struct walk *w,
	struct script *s)
{
	int ntasks = set->k->plan->graph->tasks.n, nlanes = set->k->lanes.n;

	*s = (struct script){ .set = set, .walk = w, .first = ARENA_ARRAY(a, ntasks + 1, int),
		.want = ARENA_ARRAY(a, ntasks, int *), .acts = ARENA_ARRAY(a, nlanes, struct act *),
		.nacts = ARENA_ARRAY(a, nlanes, int) };
	number_instances(a, s);
	script_writers(a, s);
	for (int i = 0; i < nlanes; i++)
		play_lane(a, s, i);
}
