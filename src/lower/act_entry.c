/* What a lane does for one sTask: what it waits for, places that it touches, copies, and whom
 * it tells; as text_entry.c, text_wait.c, text_copy.c, text_store.c and text_carry.c have it. */
#include "lower/actor.h"

static const struct buffer *buffer_at(const struct kernel *k, int buffer)
{
	return &k->plan->graph->buffers.v[buffer];
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

void actor_release(struct actor *x, const int *behind)
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

void actor_tell_run(struct actor *x, int f, int64_t n)
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
		actor_release(x, NULL);
	}
}

void actor_wait_missed(struct actor *x, int loop, int nested)
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
				actor_tell_run(x, f, passed(x, loop));
	}
}

static void group_wait(struct actor *x, const struct group_wait *w, int class)
{
	int younger = w->younger[class] < 0 ? 0 : w->younger[class];

	act(x, ACT_GROUPS, NONE, younger > 7 ? 7 : younger);
	actor_release(x, w->younger[class] < 0 ? NULL : w->behind[class]);
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

void actor_begin_lives(struct actor *x, int loop, int task, int nested)
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
			actor_tell_run(x, f, passed(x, p->loops.v[fl->loop].parent));
	}
}

void actor_entry(struct actor *x, const struct kentry *e, int class, int64_t iteration)
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
		actor_begin_lives(x, s->loop, e->task, NONE);
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
