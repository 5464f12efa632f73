/* Discrete-event simulation of one EU.
 *
 * Each lane stands at one instance of its order. Once the completion times of everything that the
 * instance waits for are known, so is the time at which it can issue. The next event is the earliest of
 * these issue times and of the times at which work leaves a vector or matrix unit. Simulated time
 * therefore never decreases, and copy queues can compute the completion of a copy when it is issued.
 *
 * Vector units are shared by lanes (pool.h, run_shared), asynchronous matrix units serve parts of products in order of
 * arrival (server.h, run_product), all others are queues (run_queued). All times are integer ticks (engine.h).
 *
 * Cost: a few additions per instance, a scan over the lanes per event, and the cursor's steps. */
#include "sim/engine.h"

#include "base/buf.h"
#include "sim/steps.h"

enum { POLL = 4096 };			/* events between two checks of the stop flag */

/* A later time is an error. It is found up to POLL events late. Each of them adds a few costs of at most 2^44 ticks
 * (cycles_to_ticks), so no sum overflows. */
#define LATEST ((int64_t)1 << 60)

/* The queue of a copy unit or a memory: work is served in order of issue. */
struct queue {
	int64_t free;			/* tick at which it can take the next work */
	int task;			/* sTask that occupies it until then; NONE */
};

struct engine {
	struct arena *a;
	struct eu_run *run;
	const struct walk *walk;
	const struct vdevice *device;
	struct steps steps;
	int64_t next[RUNS_MAX];		/* tick at which each lane issues; NEVER: unknown or finished */
	struct queue unit[SEU_MAX];
	int64_t under_way_until[SEU_MAX];	/* tick at which all that was issued to such a unit is complete */
	struct queue l2, global;
	struct pool pool[SEU_MAX];	/* of vector units */
	struct server server[SEU_MAX];	/* of matrix units */
	int ntimed, timed[SEU_MAX];	/* units that work leaves by an event: vector and asynchronous matrix units */
	int open_events;		/* kept events whose end is not known yet */
	int64_t ended;			/* the last completion so far */
	int64_t watched;		/* completions so far of the sTask run->watch */
	/* where lanes meet */
	const struct role_meetings *meetings;	/* NULL: they signal by flags */
	int attending, came;		/* lanes that meet, and those that have come to the next meeting */
	int64_t last_came;		/* when the last of these did ... */
	int last_lane;			/* ... and which one it is */
	int64_t meeting_cost;
	int64_t worst_delay;		/* longest delay of the current event so far: note_cause */
};

/* ---- waiting -------------------------------------------------------------------- */

/* What the step's instance `seq` awaits of the source, as an iteration of the track's region; negative: nothing, as in
 * the first iterations of a carry's life. A replica counts only every n-th tile, so order.h computes the span each time. */
static int64_t source_key(const struct engine *e, struct source *s, const struct step *step, int64_t seq)
{
	const struct walk *w = e->walk;
	const struct plan *p = e->run->plan;
	int region = s->track->region;

	if (s->by_span) {
		struct span x = s->edge ? walk_edge_span(w, p, s->edge, seq) :
			walk_span(w, p, s->wait->on, s->wait->task, region, (int)s->distance, seq);

		return x.first == x.last ? -1 : walk_outer(w, p->graph->tasks.v[s->track->on].loop, x.last - 1, region);
	}
	int64_t at = s->direct ? seq : walk_outer(w, step->loop, seq, region);
	if (s->life_region != NO_LIFE && at >= s->life_end) {
		int64_t life = walk_outer(w, region, at, s->life_region);

		s->life_first = walk_inner(w, s->life_region, life, region);
		s->life_end = walk_inner(w, s->life_region, life + 1, region);
	}
	return s->life_region != NO_LIFE && at - s->distance < s->life_first ? -1 : at - s->distance;
}

/* Has the track's sTask no instance in iteration `key` of the track's region? */
static bool is_empty(const struct engine *e, const struct track *t, int64_t key)
{
	int loop = e->run->plan->graph->tasks.v[t->on].loop;

	return loop != t->region &&
		walk_inner(e->walk, t->region, key, loop) == walk_inner(e->walk, t->region, key + 1, loop);
}

/* Checks the waits of the lane's current instance, from the first one that was not satisfied before. Sets the lane's
 * issue time, or blocks the lane until something is recorded on the track of an unsatisfied wait. */
static void try_waits(struct engine *e, int lane)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = l->step;

	for (; l->source < step->sources.n; l->source++) {
		struct source *s = &step->sources.v[l->source];
		int64_t key = source_key(e, s, step, l->seq);

		if (key < 0)
			continue;
		if (key != s->key && l->paid_wait != s->wait) {
			/* a wait costs the lane only if it asks for a new iteration, and once */
			l->paid_until += s->cost;
			l->paid_wait = s->wait;
		}
		s->key = key;
		int64_t at = track_get(s->track, key);
		if (at == PENDING) {
			if (is_empty(e, s->track, key))
				continue;
			s->track->blocked |= (uint64_t)1 << lane;
			e->next[lane] = NEVER;
			return;
		}
		at += s->delay;
		if (at > l->seen_until || (at == l->seen_until && !l->last_wait)) {
			l->seen_until = at;
			l->last_wait = s->wait;
		}
	}
	e->next[lane] = max_i64(l->paid_until, l->seen_until);
}

/* ---- signals --------------------------------------------------------------------- */

/* Is instance `seq` of an sTask in `loop` the last one in its iteration of `region`, which is around it? *outer is
 * that iteration and *last the last instance in it; both are computed only when seq is beyond the *last known. */
static bool is_last_in(const struct walk *w, int loop, int64_t seq, int region, int64_t *outer, int64_t *last)
{
	if (seq > *last) {
		*outer = walk_outer(w, loop, seq, region);
		*last = walk_inner(w, region, *outer + 1, loop) - 1;
	}
	return seq == *last;
}

/* Records the issue or completion of an instance on its tracks, and retries lanes that are blocked on them. */
static void signal_instance(struct engine *e, struct step *step, int64_t seq, enum wait_when when, int64_t time)
{
	for (int i = 0; i < step->nposts; i++) {
		struct post *post = &step->posts[i];
		struct track *t = post->track;

		if (t->when != when)
			continue;
		if (post->direct)
			post->key = seq;
		else if (!is_last_in(e->walk, step->loop, seq, t->region, &post->key, &post->last))
			continue;
		if (step->groups == 1 || t->group != NONE)
			track_set(e->a, t, post->key, time);
		else if (!track_join(e->a, t, post->key, time, step->groups))
			continue;
		uint64_t blocked = t->blocked;
		t->blocked = 0;
		for (int lane = 0; blocked; lane++, blocked >>= 1)
			if (blocked & 1)
				try_waits(e, lane);
	}
}

/* Ticks by which the handover of its value to another lane delays the instance's completion. run_queued leaves it out, also
 * for the products of a synchronous matrix unit: a simplification. */
static int64_t handover_ticks(const struct engine *e, struct step *step, int64_t seq)
{
	int64_t outer;

	return step->handover && is_last_in(e->walk, step->loop, seq, step->handover_loop, &outer,
		&step->handover_last) ? step->handover : 0;
}

/* The instance is complete at `end`. */
static void note_complete(struct engine *e, const struct step *step, int64_t end)
{
	struct eu_run *r = e->run;

	e->ended = max_i64(e->ended, end);
	if (step->is_watched && e->watched++ >= r->skip && r->noted < r->nends)
		r->ends[r->noted++] = end;
}

/* ---- lanes ----------------------------------------------------------------------- */

/* Makes the lane wait until at most n of its products are in flight; NONE: no such wait. */
static void require_complete(struct lane_run *l, int n)
{
	if (n != NONE)
		l->must_complete = max_i64(l->must_complete, l->nproducts - 1 - n);
}

static struct product *product_at(const struct lane_run *l, int64_t i)
{
	return &l->products[i % l->capacity];
}

/* Is the lane's instance the first one of a tile? */
static bool is_new_tile(const struct engine *e, const struct lane_run *l, struct step *step)
{
	if (l->seq >= step->tile_end) {
		step->tile = (int32_t)walk_outer(e->walk, step->loop, l->seq, NONE);
		step->tile_end = walk_inner(e->walk, NONE, step->tile + 1, step->loop);
	}
	return step->tile > l->tile;
}

static void enter_tile(struct lane_run *l, const struct step *step)
{
	if (l->tile >= 0) {
		l->ready += l->tile_cost + (step->tile >= l->own ? l->number : 0);
		if (l->asks && step->tile >= l->own) {	/* at the end of a tile for the number that it hands on at the end of the next one */
			l->ready = max_i64(l->ready, l->asked + l->asks);
			l->asked = l->ready;
		}
		require_complete(l, l->tile_drain);
	}
	l->tile = step->tile;
}

/* Signals to other lanes that the lane's products before number `upto` are complete. */
static void signal_products(struct engine *e, struct lane_run *l, int64_t upto, int64_t now)
{
	while (l->nsignaled < upto) {
		struct product *p = product_at(l, l->nsignaled++);

		signal_instance(e, p->step, p->seq, WAIT_COMPLETE, max_i64(now, p->end));
	}
}

/* Before the waits of the instance: wait for products of the lane itself (wgmma.wait_group). */
static void await_products(struct engine *e, int lane)
{
	struct lane_run *l = &e->steps.lanes[lane];

	l->draining = l->must_complete >= l->ncomplete;
	if (l->draining) {
		e->next[lane] = NEVER;
		return;
	}
	/* products that have left the ring were complete before, so they delay nothing */
	const struct product *p = product_at(l, max_i64(l->must_complete, 0));
	if (l->must_complete >= max_i64(l->nproducts - l->capacity, 0) && p->end > l->drained_at) {
		l->drained_at = p->end;
		l->drained_task = p->step->task;
	}
	signal_products(e, l, l->must_complete + 1, max_i64(l->ready, l->drained_at));
	l->must_complete = -1;
	l->seen_until = l->drained_at;
	try_waits(e, lane);
}

/* The lane is behind its last instance. */
static void end_lane(struct engine *e, struct lane_run *l)
{
	e->next[l - e->steps.lanes] = NEVER;
	l->ready += l->end_cost;
	l->signals_late = false;	/* there is no later wait with which to signal */
	signal_products(e, l, l->ncomplete, l->ready);
	steps_release(l);
}

/* ---- meetings --------------------------------------------------------------------- */

/* At a meeting no lane goes on before all have come to it. All lanes count their meetings alike (struct
 * role_meetings), so the n-th one of each is the n-th one of every other. A lane that stands at a meeting is at its
 * next instance already, for which it may have more meetings to pass. */

/* How many meetings are before an instance in the tile (struct role_meetings). */
static int64_t meetings_before(const struct engine *e, int64_t tile, enum loop_part part, int64_t seq, int offset)
{
	const struct role_meetings *m = e->meetings;
	int64_t i = part == PART_LOOP ? seq : walk_inner(e->walk, NONE, tile + (part == PART_BEHIND), m->loop);

	return m->tile * tile + m->interval * i + offset;
}

/* Before its instance the lane waits so long. The longest such wait is kept. */
static void note_met_wait(struct lane_run *l, int64_t ticks, enum cause cause, int task)
{
	if (ticks <= l->met_wait)
		return;
	l->met_wait = ticks;
	l->met_cause = cause;
	l->met_task = task;
}

/* The lane comes to its next meeting at tick `now`, or later if it must wait for a load before. */
static void come_to_meeting(struct engine *e, int lane, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[lane];
	int n = 0;

	l->met++;
	l->came = now;
	l->came_from = l->done;
	for (int i = 0; i < l->loads.n; i++) {
		const struct counted_load *x = &l->loads.v[i];

		if (x->meeting > l->met) {
			l->loads.v[n++] = *x;
		} else if (x->end > l->came) {
			l->came = x->end;
			l->came_from = x->task;
		}
	}
	l->loads.n = n;
	note_met_wait(l, l->came - now, CAUSE_WAIT, l->came_from);
	if (!e->came++ || l->came > e->last_came) {
		e->last_came = l->came;
		e->last_lane = lane;
	}
}

/* The lane has passed the meetings so far, the last one at tick `now`, and goes on until the next one. */
static void go_on(struct engine *e, int lane, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[lane];

	if (l->enters_tile && l->met >= l->first_meets) {
		int64_t ready = l->ready;

		l->enters_tile = false;
		enter_tile(l, l->step);
		now += l->ready - ready;
		if (l->met_wait > 0)	/* it waits since it came to the first meeting */
			l->ready = ready;
	}
	if (l->met < l->meets) {
		come_to_meeting(e, lane, now);
	} else if (l->step) {
		l->done = l->step->task;
		l->paid_until = now + l->step->drain_cost;
		await_products(e, lane);
	} else {
		l->ready = now;
		end_lane(e, l);
	}
}

/* While all lanes have come to a meeting, they pass it. */
static void hold_meetings(struct engine *e)
{
	while (e->came == e->attending) {
		const struct lane_run *last = &e->steps.lanes[e->last_lane];
		int64_t came = e->last_came, passed = came + e->meeting_cost;
		int task = last->came_from;

		e->came = 0;
		for (int i = 0; i < e->steps.nlanes; i++) {
			struct lane_run *l = &e->steps.lanes[i];

			if (!l->nsteps)
				continue;
			note_met_wait(l, came - l->came, CAUSE_MEETING, task);
			go_on(e, i, passed);
		}
	}
}

/* Where lanes meet: the lane has moved to its next instance, or to its end, and goes to the meetings before that. */
static void go_to_meetings(struct engine *e, int lane, bool enters_tile)
{
	struct lane_run *l = &e->steps.lanes[lane];

	e->next[lane] = NEVER;
	l->met_wait = 0;
	l->enters_tile = enters_tile;
	if (l->step) {
		const struct meeting_number *m = l->step->meeting;

		l->meets = meetings_before(e, l->step->tile, m->part, l->seq, m->offset);
		l->done = l->done == NONE ? l->step->task : l->done;
	} else if (l->nsteps) {
		l->meets = meetings_before(e, walk_count(e->walk, NONE), PART_BEFORE, 0, 0);
	}
	if (enters_tile)
		l->first_meets = meetings_before(e, l->step->tile, PART_BEFORE, 0, 0);
	go_on(e, lane, l->ready);
	hold_meetings(e);
}

/* Move the lane to the next instance of its order. */
static void advance_lane(struct engine *e, int lane)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct instance i;

	if (!cursor_next(l->cursor, &i)) {
		l->step = NULL;
		if (e->meetings)
			go_to_meetings(e, lane, false);
		else
			end_lane(e, l);
		return;
	}
	l->step = l->step_of[i.entry];
	l->seq = i.seq;
	bool enters_tile = is_new_tile(e, l, l->step);
	require_complete(l, l->step->drain);
	l->last_wait = l->paid_wait = NULL;
	l->source = 0;
	l->is_prepared = false;
	if (e->meetings) {
		go_to_meetings(e, lane, enters_tile);
		return;
	}
	if (enters_tile)
		enter_tile(l, l->step);
	l->paid_until = l->ready + l->step->drain_cost;
	await_products(e, lane);
}

/* ---- events and memory ----------------------------------------------------------- */

static int64_t to_cycles(int64_t ticks)
{
	return (ticks + TICKS / 2) / TICKS;
}

/* The cause of an event is its longest delay; of equal delays the one noted last. */
static void note_cause(struct engine *e, struct event *ev, int64_t delay, enum cause cause, int task)
{
	if (!ev || delay <= 0 || delay < e->worst_delay)
		return;
	e->worst_delay = delay;
	ev->cause = (uint8_t)cause;
	ev->cause_task = (int16_t)task;
}

/* Where the event of the current instance is kept; NULL: it is not. The last warpgroup's event stands for all, those of
 * the others are its parts. */
static struct event *event_slot(struct engine *e, const struct step *step)
{
	struct eu_run *r = e->run;

	if (step->group < step->groups - 1)
		return r->nkept < r->keep && r->nparts < r->keep_parts ? &r->parts[r->nparts++] : NULL;
	r->nevents++;
	return r->nkept < r->keep ? &r->events[r->nkept++] : NULL;
}

/* Keeps the event of the current instance, whose end the caller fills in. NULL if it is not kept. */
static struct event *keep_event(struct engine *e, const struct lane_run *l, int64_t issue)
{
	const struct step *step = l->step;
	struct event *ev = event_slot(e, step);
	int64_t cycle = to_cycles(issue);

	if (!ev)
		return NULL;
	*ev = (struct event){ .ready = to_cycles(l->ready), .issue = cycle, .start = cycle, .seq = (int32_t)l->seq,
		.tile = step->tile, .task = (int16_t)step->task, .cause_task = NONE, .held_task = NONE,
		.lane = (uint8_t)l->lane, .replica = (uint8_t)l->replica, .seu = (uint8_t)step->seu,
		.group = (uint8_t)step->group };
	e->worst_delay = 0;
	if (l->met_wait > 0 && l->met_wait >= l->seen_until - l->paid_until) {
		ev->held = (uint8_t)l->met_cause;
		ev->held_task = (int16_t)l->met_task;
		note_cause(e, ev, l->met_wait, l->met_cause, l->met_task);
		return ev;
	}
	if (l->seen_until <= l->paid_until || (!l->last_wait && l->drained_task == NONE))
		return ev;
	ev->held = !l->last_wait ? CAUSE_DRAIN : l->last_wait->when == WAIT_ISSUED ? CAUSE_ISSUE_ORDER : CAUSE_WAIT;
	ev->held_task = (int16_t)(l->last_wait ? l->last_wait->on : l->drained_task);
	note_cause(e, ev, l->seen_until - l->paid_until, (enum cause)ev->held, ev->held_task);
	return ev;
}

/* Occupies a memory for `ticks` and returns the tick at which it has delivered. */
static int64_t use_queue(struct engine *e, struct queue *q, const struct step *step, int64_t ticks, int64_t now,
	struct event *ev)
{
	if (!ticks)
		return now;
	int64_t start = max_i64(now, q->free);
	note_cause(e, ev, start - now, CAUSE_MEMORY, q->task);
	*q = (struct queue){ .free = start + ticks, .task = step->task };
	return q->free;
}

/* Occupies the EU's shares of L2 and of device memory, which work in parallel. Returns when both have delivered. */
static int64_t use_memory(struct engine *e, const struct step *step, int64_t now, struct event *ev)
{
	int64_t l2 = use_queue(e, &e->l2, step, step->l2, now, ev);	/* first: note_cause depends on the order */

	return max_i64(l2, use_queue(e, &e->global, step, step->global, now, ev));
}

/* Notes when a load of the lane is complete, if the lane goes on while it is under way. */
static void count_load(struct engine *e, struct lane_run *l, const struct step *step, int64_t end)
{
	if (!step->meeting->within)
		l->ready = max_i64(l->ready, end);
	else if (step->meeting->within != NONE)
		VEC_PUSH(e->a, &l->loads, ((struct counted_load){ l->met + step->meeting->within, end, step->task }));
}

/* Issues work to a unit that is a queue: its end is known at once. */
static void run_queued(struct engine *e, int lane, int64_t issue)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = l->step;
	struct queue *q = &e->unit[step->seu];
	struct event *ev = keep_event(e, l, issue);
	int64_t given = issue + step->before, start = max_i64(given, max_i64(q->free, l->unit_free[step->seu]));

	note_cause(e, ev, start - given, CAUSE_SEU, q->free >= start ? q->task : step->task);
	*q = (struct queue){ .free = start + step->busy, .task = step->task };
	l->unit_free[step->seu] = start + step->alone;
	int64_t end = max_i64(start + step->alone, use_memory(e, step, start, ev)) + step->latency;
	if (e->device->seu[step->seu].ordered)
		end = max_i64(end, l->unit_end[step->seu]);
	l->unit_end[step->seu] = end;
	e->run->under_way[step->seu] += max_i64(0, end - max_i64(start, e->under_way_until[step->seu]));
	e->under_way_until[step->seu] = max_i64(end, e->under_way_until[step->seu]);
	if (ev) {
		ev->start = to_cycles(start);
		ev->end = to_cycles(end);
	}
	l->ready = step->is_async ? given + step->issue + step->after : end;
	if (step->counted)
		count_load(e, l, step, end);
	signal_instance(e, step, l->seq, WAIT_ISSUED, given + step->issue);
	note_complete(e, step, end);
	signal_instance(e, step, l->seq, WAIT_COMPLETE, end);
	advance_lane(e, lane);
}

/* ---- products ------------------------------------------------------------------- */

/* Lanes draw less from vector units while a matrix unit is busy (struct seu's `contention`). */
static void set_contention(struct engine *e, int64_t now)
{
	bool is_busy = false;

	for (int i = 0; i < e->ntimed; i++)
		is_busy |= e->server[e->timed[i]].n > 0;
	for (int i = 0; i < e->ntimed; i++) {
		struct pool *p = &e->pool[e->timed[i]];
		const struct seu *s = &e->device->seu[e->timed[i]];
		double pace = is_busy ? s->contention : 1;

		if (s->kind == SEU_VECTOR && pace != p->pace)
			pool_set_pace(p, now, pace);
	}
}

/* Ticks of part i of `parts`, into which `all` ticks are divided; together they make `all` in spite of rounding. */
static int64_t part_ticks(int64_t all, int parts, int i)
{
	return all * (i + 1) / parts - all * i / parts;
}

/* The matrix unit begins with the first part in its queue. */
static void start_part(struct engine *e, int unit, int64_t now)
{
	struct server *s = &e->server[unit];
	struct lane_run *l = &e->steps.lanes[server_first(s)];
	struct product *p = product_at(l, l->ncomplete);
	const struct step *step = p->step;
	int64_t start = max_i64(now, l->unit_free[unit]);

	if (!p->done && p->event) {
		p->event->start = to_cycles(start);
		e->worst_delay = p->worst;
		note_cause(e, p->event, start - p->given, CAUSE_SEU, e->unit[unit].task == NONE ? step->task :
			e->unit[unit].task);
	}
	s->next = start + part_ticks(step->busy, p->parts, p->done);
	l->unit_free[unit] = start + part_ticks(step->alone, p->parts, p->done);
	e->unit[unit].task = step->task;
}

/* Sends parts of the lane's last product to the unit. A lane may have only PARTS_AHEAD parts there, so that parts of
 * another lane's product are served between those of a long one. */
static void send_parts(struct engine *e, int lane, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct product *p = product_at(l, l->nproducts - 1);
	int unit = p->step->seu;

	while (p->sent < p->parts && (!p->step->parts || l->parts_in_unit < PARTS_AHEAD)) {
		server_enter(&e->server[unit], e->a, lane);
		p->sent++;
		l->parts_in_unit++;
		if (e->server[unit].n == 1)
			start_part(e, unit, now);
	}
	l->sending = p->sent < p->parts;
}

/* Memory for one more product, in a ring that grows as needed. */
static struct product *push_product(struct engine *e, struct lane_run *l)
{
	if (l->nproducts - l->nsignaled == l->capacity) {
		struct product *more = ARENA_ARRAY(e->a, 2 * l->capacity, struct product);

		for (int64_t i = l->nsignaled; i < l->nproducts; i++)
			more[i % (2 * l->capacity)] = *product_at(l, i);
		l->products = more;
		l->capacity *= 2;
	}
	return product_at(l, l->nproducts++);
}

/* The lane issues a product. If that needs preparation (step->before), the first call only starts it. */
static void run_product(struct engine *e, int lane, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = l->step;

	if (!l->is_prepared) {
		l->preparing_since = now;
		l->is_prepared = true;
		if (step->before) {
			e->next[lane] = now + step->before;
			return;
		}
	}
	struct event *ev = keep_event(e, l, l->preparing_since);
	if (ev)
		e->open_events++;
	*push_product(e, l) = (struct product){ .step = step, .seq = l->seq, .given = now, .end = NEVER, .event = ev,
		.worst = e->worst_delay, .parts = step->parts ? step->parts : 1 };
	l->ready = now + step->issue + step->after;
	require_complete(l, step->drain_after);
	e->next[lane] = NEVER;
	signal_instance(e, step, l->seq, WAIT_ISSUED, now + step->issue);
	send_parts(e, lane, now);
	set_contention(e, now);
	if (!l->sending && !step->stored_to_shared)	/* a lane that stores the result waits for it: end_product */
		advance_lane(e, lane);
}

/* The lane's oldest product in flight is complete. */
static void end_product(struct engine *e, int lane, struct product *p, int64_t now)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = p->step;
	int64_t end = max_i64(now, l->unit_free[step->seu]) + step->latency + handover_ticks(e, step, p->seq);

	if (e->device->seu[step->seu].ordered)
		end = max_i64(end, l->unit_end[step->seu]);
	l->unit_end[step->seu] = end;
	if (step->stored_to_shared)
		end += step->after;
	p->end = end;
	if (p->event) {
		p->event->end = to_cycles(end);
		e->open_events--;
	}
	l->ncomplete++;
	note_complete(e, step, end);
	if (!l->signals_late || step->stored_to_shared)
		signal_products(e, l, l->ncomplete, end);
	if (!l->step) {
		steps_release(l);
	} else if (step->stored_to_shared) {
		l->ready = end;
		advance_lane(e, lane);
	} else if (l->draining) {
		await_products(e, lane);
	}
}

/* The matrix unit has finished the part that it was working on. */
static void leave_server(struct engine *e, int unit, int64_t now)
{
	struct server *s = &e->server[unit];
	int lane = server_leave(s);
	struct lane_run *l = &e->steps.lanes[lane];
	struct product *p = product_at(l, l->ncomplete);
	const struct step *sent = l->step;	/* maybe later than p: a lane sends one product while another is served */

	l->parts_in_unit--;
	p->done++;
	if (l->sending) {
		send_parts(e, lane, now);
		if (!l->sending && !sent->stored_to_shared) {
			l->ready = max_i64(l->ready, now + sent->after);
			advance_lane(e, lane);
		}
	}
	if (p->done == p->parts)
		end_product(e, lane, p, now);
	if (s->n && s->next == NEVER)
		start_part(e, unit, now);
	set_contention(e, now);
}

/* ---- vector units ---------------------------------------------------------------- */

/* The work of a lane on a vector unit is finished at `time`; the lane continues. */
static void finish_shared(struct engine *e, int lane, int64_t time)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = l->step;
	int64_t end = max_i64(time, l->memory_end) + step->latency + handover_ticks(e, step, l->seq);

	if (l->event) {
		l->event->end = to_cycles(end);
		l->event = NULL;
		e->open_events--;
	}
	l->ready = end;
	note_complete(e, step, end);
	signal_instance(e, step, l->seq, WAIT_COMPLETE, end);
	advance_lane(e, lane);
}

/* Issues work to a vector unit, which holds the lane. When it ends depends on the lanes that share it. */
static void run_shared(struct engine *e, int lane, int64_t issue)
{
	struct lane_run *l = &e->steps.lanes[lane];
	struct step *step = l->step;
	struct event *ev = keep_event(e, l, issue);

	e->next[lane] = NEVER;
	l->memory_end = use_memory(e, step, issue, ev);
	if (ev) {
		l->event = ev;
		e->open_events++;
	}
	signal_instance(e, step, l->seq, WAIT_ISSUED, issue);
	if (step->busy)
		pool_enter(&e->pool[step->seu], issue, lane, step->busy, step->alone);
	else
		finish_shared(e, lane, issue + step->alone);
}

/* ---- the run --------------------------------------------------------------------- */

/* The earliest issue time and its lane; of equal times, the first lane. NEVER if no lane can issue. */
static int64_t next_lane(const struct engine *e, int *lane)
{
	int64_t best = NEVER;

	for (int i = 0; i < e->steps.nlanes; i++)
		if (e->next[i] < best) {
			best = e->next[i];
			*lane = i;
		}
	return best;
}

/* The earliest time at which work leaves a unit, and the unit. NEVER if none is at work. */
static int64_t next_unit(const struct engine *e, int *which)
{
	int64_t best = NEVER;

	for (int i = 0; i < e->ntimed; i++) {
		int unit = e->timed[i];
		int64_t next = min_i64(e->pool[unit].next, e->server[unit].next);

		if (next < best) {
			best = next;
			*which = unit;
		}
	}
	return best;
}

/* No event is left: an error unless all lanes are at their end. */
static enum err_code check_finished(const struct engine *e, struct err *err)
{
	const struct plan *p = e->run->plan;
	struct srcloc loc = NOWHERE;
	struct buf b;

	buf_init(&b, e->a);
	for (int i = 0; i < e->steps.nlanes; i++) {
		const struct lane_run *l = &e->steps.lanes[i];

		if (!l->step)
			continue;
		if (l->met < l->meets)
			continue;	/* at a meeting, for one that stands at a wait */
		const struct source *s = &l->step->sources.v[l->source];
		const struct track *t = s->track;
		loc = b.len ? loc : s->wait->loc;
		buf_printf(&b, "; lane '%s", p->lanes.v[l->lane].name);
		if (p->lanes.v[l->lane].replicas > 1)
			buf_printf(&b, ".%d", l->replica);
		buf_printf(&b, "' stands at '%s' %lld and waits for '%s' %lld to be %s%s",
			p->graph->tasks.v[l->step->task].name, (long long)l->seq, p->graph->tasks.v[t->on].name,
			(long long)s->key, t->when == WAIT_ISSUED ? "issued" : "complete",
			plan_entry_of(p, t->on) == NONE ? ", which no lane runs" : "");
	}
	if (!b.len && e->came)
		BUG("lanes do not meet equally often");
	return b.len ? err_set(err, ERR_ILLEGAL, loc, "the plan comes to a standstill%s", b.text) : OK;
}

/* When no lane can go on: signals complete products for which their own lane has not waited. A kernel waits for them
 * in its prologues and epilogues, which the price leaves out. Returns whether there were such products. */
static bool signal_unawaited(struct engine *e)
{
	bool any = false;

	for (int i = 0; i < e->steps.nlanes; i++) {
		struct lane_run *l = &e->steps.lanes[i];

		any |= l->nsignaled < l->ncomplete;
		signal_products(e, l, l->ncomplete, 0);
	}
	return any;
}

static enum err_code play_events(struct engine *e, struct err *err)
{
	const struct eu_run *r = e->run;

	for (int i = 0; i < e->steps.nlanes; i++)
		advance_lane(e, i);
	for (int64_t n = 1; ; n++) {
		int lane = NONE, unit = NONE;
		int64_t issue = next_lane(e, &lane), leave = next_unit(e, &unit);

		if (n % POLL == 0 && stop_asked(r->stop))
			return err_set(err, ERR_INTERRUPTED, NOWHERE, "the simulation was interrupted");
		if (n % POLL == 0 && (lane != NONE || unit != NONE) && min_i64(issue, leave) > LATEST)
			return err_set(err, ERR_LIMIT, NOWHERE, "the simulated time is beyond 2^50 cycles: "
				"is a rate of device '%s' near 0?", e->device->name);
		if (unit != NONE && leave <= issue && e->device->seu[unit].kind == SEU_MATRIX)
			leave_server(e, unit, leave);
		else if (unit != NONE && leave <= issue)
			finish_shared(e, pool_leave(&e->pool[unit]), leave);
		else if (lane == NONE && !signal_unawaited(e))
			return check_finished(e, err);
		else if (lane == NONE)
			continue;
		else if (e->steps.lanes[lane].step->is_shared)
			run_shared(e, lane, issue);
		else if (e->steps.lanes[lane].step->is_product)
			run_product(e, lane, issue);
		else
			run_queued(e, lane, issue);
		if (r->only_kept && r->nkept == r->keep && !e->open_events)
			return OK;
	}
}

enum err_code eu_run_play(struct arena *a, struct eu_run *r, struct err *err)
{
	struct engine *e = ARENA_NEW(a, struct engine);

	e->a = a;
	e->run = r;
	e->walk = r->walk;
	e->device = r->plan->device;
	e->l2.task = e->global.task = NONE;
	for (int i = 0; i < e->device->nseus; i++) {
		const struct seu *seu = &e->device->seu[i];

		e->unit[i].task = NONE;
		pool_init(&e->pool[i], seu->by_age);
		server_init(&e->server[i]);
		if ((seu->kind == SEU_VECTOR && !seu->async) || (seu->kind == SEU_MATRIX && seu->async))
			e->timed[e->ntimed++] = i;
	}
	TRY(steps_build(a, r, &e->steps, err));
	if (r->price && r->price->meetings) {
		e->meetings = r->price->meetings;
		e->meeting_cost = cycles_to_ticks(r->price->meeting);
		for (int i = 0; i < e->steps.nlanes; i++)
			e->attending += e->steps.lanes[i].nsteps > 0;
	}
	TRY(play_events(e, err));
	r->ticks = e->ended;
	for (int i = 0; i < e->steps.nlanes; i++)
		r->ticks = max_i64(r->ticks, e->steps.lanes[i].ready);
	return OK;
}
