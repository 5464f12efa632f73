/* Discrete events. At every moment each lane has come to one instance of its order.
 * If all that the instance waits for has happened, or it is known when it will, the
 * time at which it can be issued is known; the lane with the least such time is next,
 * unless something leaves a vector or matrix unit before. So time never runs back, and a
 * queue of copies serves in order of issue although its completions are worked out ahead.
 *
 * Cost: a few additions an instance, a scan over the lanes, and whatever the cursor
 * takes. */
#include "sim/engine.h"

#include "base/buf.h"
#include "sim/steps.h"

enum { POLL = 4096 };			/* instances between two looks at the stop flag */

/* Times beyond this are nonsense; POLL instances more cannot overflow. */
#define LATEST ((int64_t)1 << 60)

/* A unit's queue: work is served in order of issue. */
struct queue {
	int64_t free;			/* when it can take the next */
	int task;			/* who has it until then; NONE */
};

struct engine {
	struct arena *a;
	struct eu_run *run;
	const struct vdevice *device;
	struct steps steps;
	int64_t next[RUNS_MAX];		/* when each lane issues; NEVER: not known, or done */
	struct queue unit[SEU_MAX];
	struct queue l2, global;
	struct pool pool[SEU_MAX];
	struct server server[SEU_MAX];
	int npools, pools[SEU_MAX];	/* vector units, shared, and matrix units, which serve in turn */
	int open;			/* kept events whose end is not known */
	int64_t ended;			/* the last completion so far */
	int64_t watched;		/* completions of run->watch */
	int64_t worst;			/* the delay that the present event's cause stands for */
};

static const struct walk *walk_of(const struct engine *e)
{
	return e->run->walk;
}

/* ---- waiting -------------------------------------------------------------------- */

/* Iteration of the awaited region that the source means, negative if none. For lanes
 * with turns order.h is asked, as only every n-th tile counts. */
static int64_t source_key(const struct engine *e, struct source *s, const struct step *step,
	int64_t seq)
{
	const struct walk *w = walk_of(e);
	int region = s->track->region;
	int64_t at, first, last;

	if (s->by_span) {
		if (s->edge)
			walk_edge_span(w, e->run->plan, s->edge, seq, &first, &last);
		else
			walk_span(w, e->run->plan, s->wait->on, s->wait->task, region,
				(int)s->distance, seq, &first, &last);
		return first == last ? -1 : walk_outer(w,
			e->run->plan->graph->tasks.v[s->track->on].loop, last - 1, region);
	}
	at = s->direct ? seq : walk_outer(w, step->loop, seq, region);
	if (s->life >= NONE) {
		if (at >= s->life_end) {
			int64_t life = walk_outer(w, region, at, s->life);

			s->life_first = walk_inner(w, s->life, life, region);
			s->life_end = walk_inner(w, s->life, life + 1, region);
		}
		if (at - s->distance < s->life_first)
			return -1;
	}
	return at - s->distance;
}

/* Has the awaited sTask no instance at all in that iteration? */
static bool is_empty(const struct engine *e, const struct track *t, int64_t key)
{
	int loop = e->run->plan->graph->tasks.v[t->on].loop;

	return loop != t->region && walk_inner(walk_of(e), t->region, key, loop) ==
		walk_inner(walk_of(e), t->region, key + 1, loop);
}

/* Look at the waits of the instance that the lane has come to, from the first that
 * was not satisfied before. */
static void try_waits(struct engine *e, int who)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = l->step;

	for (; l->source < step->nsources; l->source++) {
		struct source *s = &step->sources[l->source];
		int64_t key = source_key(e, s, step, l->seq), at;

		if (key < 0)
			continue;
		if (key != s->key && l->paid != s->wait) {
			/* it asks for something that it has not seen before */
			l->asked += s->price;
			l->paid = s->wait;
		}
		s->key = key;
		at = track_get(s->track, key);
		if (at == PENDING) {
			if (is_empty(e, s->track, key))
				continue;
			s->track->blocked |= (uint64_t)1 << who;
			e->next[who] = NEVER;
			return;
		}
		if (at + s->delay > l->seen || (at + s->delay == l->seen && !l->last)) {
			l->seen = at + s->delay;
			l->last = s->wait;
		}
	}
	e->next[who] = max_i64(l->asked, l->seen);
}

/* ---- telling --------------------------------------------------------------------- */

/* Note the issue or completion of an instance and wake who stood for it. */
static void tell(struct engine *e, struct step *step, int64_t seq, enum wait_when when,
	int64_t time)
{
	const struct walk *w = walk_of(e);

	for (int i = 0; i < step->nposts; i++) {
		struct post *post = &step->posts[i];
		struct track *t = post->track;
		uint64_t blocked;

		if (t->when != when)
			continue;
		if (post->direct) {
			post->key = seq;
		} else {
			if (seq > post->last) {
				post->key = walk_outer(w, step->loop, seq, t->region);
				post->last = walk_inner(w, t->region, post->key + 1,
					step->loop) - 1;
			}
			if (seq != post->last)
				continue;
		}
		if (step->groups == 1 || t->group != NONE)
			track_set(e->a, t, post->key, time);
		else if (!track_join(e->a, t, post->key, time, step->groups))
			continue;
		blocked = t->blocked;
		t->blocked = 0;
		for (int who = 0; blocked; who++, blocked >>= 1)
			if (blocked & 1)
				try_waits(e, who);
	}
}

static void note_end(struct engine *e, int64_t time)
{
	struct eu_run *r = e->run;

	if (e->watched++ >= r->skip && r->noted < r->nends)
		r->ends[r->noted++] = time;
}

/* What the hand-over of the instance's value to another lane adds to its end. */
static int64_t handoff_of(const struct engine *e, struct step *step, int64_t seq)
{
	if (!step->handoff)
		return 0;
	if (seq > step->handoff_last) {
		const struct walk *w = walk_of(e);
		int64_t i = walk_outer(w, step->loop, seq, step->handoff_loop);

		step->handoff_last = walk_inner(w, step->handoff_loop, i + 1, step->loop) - 1;
	}
	return seq == step->handoff_last ? step->handoff : 0;
}

static void note_complete(struct engine *e, const struct step *step, int64_t end)
{
	if (end > e->ended)
		e->ended = end;
	if (step->is_watched)
		note_end(e, end);
}

static void complete(struct engine *e, struct step *step, int64_t seq, int64_t end)
{
	note_complete(e, step, end);
	tell(e, step, seq, WAIT_COMPLETE, end);
}

/* ---- going on -------------------------------------------------------------------- */

/* The lane has nothing more to do, and so nothing to look up; nor to note, if its products are
 * complete. */
static void leave_tracks(struct lane_run *l)
{
	if (l->told < l->ngroups)
		return;
	for (int i = 0; i < l->nsteps; i++) {
		for (int k = 0; k < l->steps[i].nsources; k++)
			l->steps[i].sources[k].key = NEVER;
		for (int k = 0; k < l->steps[i].nposts; k++)
			l->steps[i].posts[k].key = NEVER;
	}
}

/* The lane waits until at most n of its products are under way; NONE: it does not. */
static void drain(struct lane_run *l, int n)
{
	if (n != NONE)
		l->owes = max_i64(l->owes, l->ngroups - 1 - n);
}

static struct group *group_at(const struct lane_run *l, int64_t i)
{
	return &l->groups[i % l->room];
}

static void enter_tile(const struct engine *e, struct lane_run *l, struct step *step)
{
	const struct walk *w = walk_of(e);

	if (l->seq >= step->tile_end) {
		step->tile = (int32_t)walk_outer(w, step->loop, l->seq, NONE);
		step->tile_end = walk_inner(w, NONE, step->tile + 1, step->loop);
	}
	if (step->tile <= l->tile)
		return;
	if (l->tile >= 0) {
		l->ready += l->tile_cost;
		drain(l, l->tile_drain);
	}
	l->tile = step->tile;
}

/* Others are told of the lane's products before `upto`. */
static void tell_groups(struct engine *e, struct lane_run *l, int64_t upto, int64_t now)
{
	while (l->told < upto) {
		struct group *g = group_at(l, l->told++);

		tell(e, g->step, g->seq, WAIT_COMPLETE, max_i64(now, g->end));
	}
}

/* It has come to an instance, and waits first for products of its own. */
static void await_groups(struct engine *e, int who)
{
	struct lane_run *l = &e->steps.lanes[who];

	l->draining = l->owes >= l->complete;
	if (l->draining) {
		e->next[who] = NEVER;
		return;
	}
	if (l->owes >= 0 && l->owes >= l->ngroups - l->room && group_at(l, l->owes)->end > l->held) {
		l->held = group_at(l, l->owes)->end;
		l->held_by = group_at(l, l->owes)->step->task;
	}
	tell_groups(e, l, l->owes + 1, max_i64(l->ready, l->held));
	l->owes = -1;
	l->seen = l->held;
	try_waits(e, who);
}

/* The lane comes to its next instance. */
static void come_to_next(struct engine *e, int who)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct instance i;

	if (!cursor_next(l->cursor, &i)) {
		l->step = NULL;
		l->ready += l->end_cost;
		e->next[who] = NEVER;
		l->late = false;
		tell_groups(e, l, l->complete, l->ready);
		leave_tracks(l);
		return;
	}
	l->step = l->step_of[i.entry];
	l->seq = i.seq;
	enter_tile(e, l, l->step);
	drain(l, l->step->drain);
	l->asked = l->ready + l->step->asking;
	l->last = l->paid = NULL;
	l->source = 0;
	l->given = false;
	await_groups(e, who);
}

/* ---- executing ------------------------------------------------------------------- */

static int64_t to_cycles(int64_t ticks)
{
	return (ticks + TICKS / 2) / TICKS;
}

/* Of the delays of an event, the longest is its cause; of equal ones the last. */
static void blame(struct engine *e, struct event *ev, int64_t delay, enum cause cause, int task)
{
	if (!ev || delay <= 0 || delay < e->worst)
		return;
	e->worst = delay;
	ev->cause = (uint8_t)cause;
	ev->cause_task = (int16_t)task;
}

/* What held the lane from `ready` to `issue`. */
static void note_held(struct engine *e, const struct lane_run *l, struct event *ev)
{
	if (l->seen <= l->asked || (!l->last && l->held_by == NONE))
		return;
	ev->held = !l->last ? CAUSE_DRAIN : l->last->when == WAIT_ISSUED ? CAUSE_ISSUE_ORDER : CAUSE_WAIT;
	ev->held_task = (int16_t)(l->last ? l->last->on : l->held_by);
	blame(e, ev, l->seen - l->asked, (enum cause)ev->held, ev->held_task);
}

/* Keep the event, but for what is not known yet. Returns NULL if there is no room. */
static struct event *keep_event(struct engine *e, const struct lane_run *l, int64_t issue)
{
	struct eu_run *r = e->run;
	const struct step *step = l->step;
	struct event *ev;

	if (step->group < step->groups - 1)
		return NULL;		/* the last group's stand for all: then they are complete */
	r->nevents++;
	if (r->nkept == r->keep)
		return NULL;
	ev = &r->events[r->nkept++];
	*ev = (struct event){ .ready = to_cycles(l->ready), .issue = to_cycles(issue),
		.start = to_cycles(issue), .seq = (int32_t)l->seq, .tile = step->tile,
		.task = (int16_t)step->task, .cause_task = NONE, .held_task = NONE, .lane = (uint8_t)l->lane,
		.copy = (uint8_t)l->copy, .seu = (uint8_t)step->seu, .cause = CAUSE_NONE };
	e->worst = 0;
	note_held(e, l, ev);
	return ev;
}

static int64_t use_queue(struct engine *e, struct queue *q, const struct step *step, int64_t cycles,
	int64_t now, struct event *ev)
{
	int64_t start = max_i64(now, q->free);

	if (!cycles)
		return now;
	blame(e, ev, start - now, CAUSE_MEMORY, q->task);
	*q = (struct queue){ .free = start + cycles, .task = step->task };
	return q->free;
}

/* Queue for the EU's share of L2, and for that of device memory, which work at the same time;
 * returns when it is through. */
static int64_t use_memory(struct engine *e, const struct step *step, int64_t now,
	struct event *ev)
{
	return max_i64(use_queue(e, &e->l2, step, step->l2, now, ev),
		use_queue(e, &e->global, step, step->global, now, ev));
}

/* A queue takes the work; its end is known at once. */
static void run_queued(struct engine *e, int who, int64_t issue)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = l->step;
	struct queue *q = &e->unit[step->seu];
	struct event *ev = keep_event(e, l, issue);
	int64_t seq = l->seq, given = issue + step->before;
	int64_t start = max_i64(given, max_i64(q->free, l->unit_free[step->seu])), end;

	blame(e, ev, start - given, CAUSE_SEU, q->free >= start ? q->task : step->task);
	q->free = start + step->busy;
	q->task = step->task;
	l->unit_free[step->seu] = start + step->alone;
	end = max_i64(start + step->alone, use_memory(e, step, start, ev)) + step->latency;
	if (e->device->seu[step->seu].ordered)
		end = max_i64(end, l->unit_end[step->seu]);
	l->unit_end[step->seu] = end;
	if (ev) {
		ev->start = to_cycles(start);
		ev->end = to_cycles(end);
	}
	l->ready = step->is_async ? given + step->issue + step->after : end;
	tell(e, step, seq, WAIT_ISSUED, given + step->issue);
	complete(e, step, seq, end);
	come_to_next(e, who);
}

/* ---- products ------------------------------------------------------------------- */

/* Products come to a matrix unit in parts, of which a lane may have only so many there: of a long
 * one, those of another lane come between. */

/* Lanes compute slower beside matrix units at work. */
static void set_beside(struct engine *e, int64_t now)
{
	bool works = false;

	for (int i = 0; i < e->npools; i++)
		works |= e->server[e->pools[i]].n > 0;
	for (int i = 0; i < e->npools; i++) {
		struct pool *p = &e->pool[e->pools[i]];
		const struct seu *s = &e->device->seu[e->pools[i]];
		double pace = works ? s->contention : 1;

		if (s->kind == SEU_VECTOR && pace != p->pace)
			pool_set_pace(p, now, pace);
	}
}

/* Of so many parts the i-th. */
static int64_t part_of(int64_t all, int parts, int i)
{
	return all * (i + 1) / parts - all * i / parts;
}

/* Of the groups that do parts of an instance, when the first began. */
static int64_t first_start(struct step *step, int64_t seq, int64_t start)
{
	struct first *f = &step->first[seq % FIRSTS];

	if (f->seq != seq)
		*f = (struct first){ seq, start };
	return f->start;
}

/* The unit begins with the first part in line. */
static void serve(struct engine *e, int unit, int64_t now)
{
	struct server *s = &e->server[unit];
	struct lane_run *l = &e->steps.lanes[server_first(s)];
	struct group *g = group_at(l, l->complete);
	const struct step *step = g->step;
	int64_t start = max_i64(now, l->unit_free[unit]), first = start;

	if (!g->done && step->groups > 1)
		first = first_start(g->step, g->seq, start);
	if (!g->done && g->event >= 0) {
		struct event *ev = &e->run->events[g->event];

		ev->before = (int32_t)min_i64(to_cycles(start) - to_cycles(first), INT32_MAX);
		e->worst = g->worst;
		ev->start = to_cycles(start);
		blame(e, ev, start - g->given, CAUSE_SEU, e->unit[unit].task == NONE ? step->task :
			e->unit[unit].task);
	}
	s->next = start + part_of(step->busy, g->parts, g->done);
	l->unit_free[unit] = start + part_of(step->alone, g->parts, g->done);
	e->unit[unit].task = step->task;
}

/* Parts of the lane's last product come to the unit, as many as may. */
static void send_parts(struct engine *e, int who, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct group *g = group_at(l, l->ngroups - 1);
	int unit = g->step->seu;

	while (g->sent < g->parts && (!g->step->parts || l->ahead < PARTS_AHEAD)) {
		server_enter(&e->server[unit], e->a, who);
		g->sent++;
		l->ahead++;
		if (e->server[unit].n == 1)
			serve(e, unit, now);
	}
	l->sending = g->sent < g->parts;
}

static struct group *push_group(struct engine *e, struct lane_run *l)
{
	if (l->ngroups - l->told == l->room) {
		struct group *more = ARENA_ARRAY(e->a, 2 * l->room, struct group);

		for (int64_t i = l->told; i < l->ngroups; i++)
			more[i % (2 * l->room)] = *group_at(l, i);
		l->groups = more;
		l->room *= 2;
	}
	return group_at(l, l->ngroups++);
}

/* The lane issues a product. */
static void run_product(struct engine *e, int who, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = l->step;
	struct event *ev;

	if (!l->given) {
		l->issued = now;
		l->given = true;
		if (step->before) {
			e->next[who] = now + step->before;
			return;
		}
	}
	ev = keep_event(e, l, l->issued);
	if (ev)
		e->open++;
	*push_group(e, l) = (struct group){ .step = step, .seq = l->seq, .given = now, .end = NEVER,
		.event = ev ? ev - e->run->events : -1, .worst = e->worst,
		.parts = step->parts ? step->parts : 1 };
	l->ready = now + step->issue + step->after;
	drain(l, step->drain_after);
	e->next[who] = NEVER;
	tell(e, step, l->seq, WAIT_ISSUED, now + step->issue);
	send_parts(e, who, now);
	set_beside(e, now);
	if (!l->sending && !step->lands)
		come_to_next(e, who);
}

/* The lane's first product is complete. */
static void end_product(struct engine *e, int who, struct group *g, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = g->step;
	int64_t seq = g->seq, end = max_i64(now, l->unit_free[step->seu]) + step->latency +
		handoff_of(e, step, seq);

	if (e->device->seu[step->seu].ordered)
		end = max_i64(end, l->unit_end[step->seu]);
	l->unit_end[step->seu] = end;
	if (step->lands)
		end += step->after;
	g->end = end;
	if (g->event >= 0) {
		e->run->events[g->event].end = to_cycles(end);
		e->open--;
	}
	l->complete++;
	note_complete(e, step, end);
	if (!l->late || step->lands)
		tell_groups(e, l, l->complete, end);
	if (!l->step) {
		leave_tracks(l);
	} else if (step->lands) {
		l->ready = end;
		come_to_next(e, who);
	} else if (l->draining) {
		await_groups(e, who);
	}
}

/* The part that a matrix unit had is through. */
static void leave_server(struct engine *e, int unit, int64_t now)
{
	struct server *s = &e->server[unit];
	int who = server_leave(s);
	struct lane_run *l = &e->steps.lanes[who];
	struct group *g = group_at(l, l->complete);
	const struct step *step = g->step;

	l->ahead--;
	g->done++;
	if (l->sending) {
		send_parts(e, who, now);
		if (!l->sending && !step->lands) {
			l->ready = max_i64(l->ready, now + step->after);
			come_to_next(e, who);
		}
	}
	if (g->done == g->parts)
		end_product(e, who, g, now);
	if (s->n && s->next == NEVER)
		serve(e, unit, now);
	set_beside(e, now);
}

/* ---- shared units --------------------------------------------------------------- */

/* The work on a shared unit is through, at `time`; its lane goes on. */
static void end_shared(struct engine *e, int who, int64_t time)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = l->step;
	int64_t seq = l->seq;
	int64_t end = max_i64(time, l->memory_end) + step->latency + handoff_of(e, step, seq);

	if (l->event >= 0) {
		e->run->events[l->event].end = to_cycles(end);
		l->event = -1;
		e->open--;
	}
	l->ready = end;
	complete(e, step, seq, end);
	come_to_next(e, who);
}

/* A shared unit takes the work and holds the lane; when it ends depends on who comes. */
static void run_shared(struct engine *e, int who, int64_t issue)
{
	struct lane_run *l = &e->steps.lanes[who];
	struct step *step = l->step;
	struct event *ev = keep_event(e, l, issue);

	e->next[who] = NEVER;
	l->memory_end = use_memory(e, step, issue, ev);
	if (ev) {
		l->event = ev - e->run->events;
		e->open++;
	}
	tell(e, step, l->seq, WAIT_ISSUED, issue);
	if (step->busy)
		pool_enter(&e->pool[step->seu], issue, who, step->busy, step->alone);
	else
		end_shared(e, who, issue + step->alone);
}

/* ---- the run --------------------------------------------------------------------- */

static void engine_init(struct engine *e, struct arena *a, struct eu_run *r)
{
	const struct plan *p = r->plan;

	e->a = a;
	e->run = r;
	e->device = p->device;
	e->l2.task = e->global.task = NONE;
	for (int i = 0; i < p->device->nseus; i++) {
		const struct seu *seu = &p->device->seu[i];

		e->unit[i].task = NONE;
		pool_init(&e->pool[i], seu->by_age);
		server_init(&e->server[i]);
		if ((seu->kind == SEU_VECTOR && !seu->async) || (seu->kind == SEU_MATRIX && seu->async))
			e->pools[e->npools++] = i;
	}
	r->nevents = r->nkept = r->noted = 0;
}

/* The lane that issues first, and when; of several, the first lane. */
static int64_t first_lane(const struct engine *e, int *who)
{
	int64_t best = NEVER;

	for (int i = 0; i < e->steps.nlanes; i++) {
		if (e->next[i] < best) {
			best = e->next[i];
			*who = i;
		}
	}
	return best;
}

static int64_t first_pool(const struct engine *e, int *pool)
{
	int64_t best = NEVER;

	for (int i = 0; i < e->npools; i++) {
		int unit = e->pools[i];
		int64_t next = min_i64(e->pool[unit].next, e->server[unit].next);

		if (next < best) {
			best = next;
			*pool = unit;
		}
	}
	return best;
}

static void print_lane(const struct engine *e, const struct lane_run *l, struct buf *b)
{
	const struct plan *p = e->run->plan;
	const struct track *t = l->step->sources[l->source].track;
	int64_t key = l->step->sources[l->source].key;

	buf_printf(b, "; lane '%s", p->lanes.v[l->lane].name);
	if (p->lanes.v[l->lane].turns > 1)
		buf_printf(b, ".%d", l->copy);
	buf_printf(b, "' stands at '%s' %lld and waits for '%s' %lld to be %s",
		p->graph->tasks.v[l->step->task].name, (long long)l->seq,
		p->graph->tasks.v[t->on].name, (long long)key,
		t->when == WAIT_ISSUED ? "issued" : "complete");
	if (plan_entry_of(p, t->on) == NONE)
		buf_printf(b, ", which no lane runs");
}

/* Nothing can happen any more. Good, if all lanes are at their end. */
static enum err_code check_finished(const struct engine *e, struct err *err)
{
	struct srcloc loc = NOWHERE;
	struct buf b;

	buf_init(&b, e->a);
	for (int i = 0; i < e->steps.nlanes; i++) {
		const struct lane_run *l = &e->steps.lanes[i];

		if (!l->step)
			continue;
		if (!b.len)
			loc = l->step->sources[l->source].wait->loc;
		print_lane(e, l, &b);
	}
	if (!b.len)
		return OK;
	return err_set(err, ERR_ILLEGAL, loc, "the plan comes to a standstill%s", b.text);
}

static enum err_code look_up(const struct engine *e, int64_t now, struct err *err)
{
	if (stop_asked(e->run->stop))
		return err_set(err, ERR_INTERRUPTED, NOWHERE, "the simulation was interrupted");
	if (now > LATEST)
		return err_set(err, ERR_LIMIT, NOWHERE, "the simulated time is beyond 2^50 cycles: "
			"is a rate of device '%s' near 0?", e->device->name);
	return OK;
}

/* Nothing can happen before others are told of products that lanes have not waited for: they do
 * where the price, which is about the steady state, has not seen it. */
static bool tell_late(struct engine *e)
{
	bool any = false;

	for (int i = 0; i < e->steps.nlanes; i++) {
		struct lane_run *l = &e->steps.lanes[i];

		any |= l->told < l->complete;
		tell_groups(e, l, l->complete, 0);
	}
	return any;
}

static void leave_unit(struct engine *e, int unit, int64_t now)
{
	if (e->device->seu[unit].kind == SEU_MATRIX)
		leave_server(e, unit, now);
	else
		end_shared(e, pool_leave(&e->pool[unit]), now);
}

static enum err_code play(struct engine *e, struct err *err)
{
	const struct eu_run *r = e->run;

	for (int i = 0; i < e->steps.nlanes; i++)
		come_to_next(e, i);
	for (int64_t n = 1; ; n++) {
		int who = NONE, pool = NONE;
		int64_t issue = first_lane(e, &who), leave = first_pool(e, &pool);

		if (n % POLL == 0 && (who != NONE || pool != NONE))
			TRY(look_up(e, min_i64(issue, leave), err));
		if (pool != NONE && leave <= issue)
			leave_unit(e, pool, leave);
		else if (who == NONE && !tell_late(e))
			return check_finished(e, err);
		else if (who == NONE)
			continue;
		else if (e->steps.lanes[who].step->is_shared)
			run_shared(e, who, issue);
		else if (e->steps.lanes[who].step->is_group)
			run_product(e, who, issue);
		else
			run_queued(e, who, issue);
		if (r->only_kept && r->nkept == r->keep && !e->open)
			return OK;
	}
}

enum err_code eu_run_play(struct arena *a, struct eu_run *r, struct err *err)
{
	struct engine *e = ARENA_NEW(a, struct engine);

	engine_init(e, a, r);
	TRY(steps_build(a, r, &e->steps, err));
	TRY(play(e, err));
	r->ticks = e->ended;
	for (int i = 0; i < e->steps.nlanes; i++)
		r->ticks = max_i64(r->ticks, e->steps.lanes[i].ready);
	return OK;
}
