/* Discrete-event simulation of one EU.
 *
 * Each lane stands at one instance of its order (lanes.h). Once the completion times of everything that the instance
 * waits for are known, so is the time at which it can issue. The next event is the earliest of these issue times and
 * of the times at which work leaves a vector or matrix unit. Simulated time therefore never decreases, and copy
 * queues can compute the completion of a copy when it is issued.
 *
 * This file has the units and the memory. Vector units are shared by lanes (pool.h, run_shared), asynchronous matrix
 * units serve parts of products in order of arrival (server.h, run_product), all others are queues (run_queued). All
 * times are integer ticks (engine.h).
 *
 * Cost: a few additions per instance, a scan over the lanes per event, and the cursor's steps. */
#include "sim/engine.h"

#include "sim/lanes.h"

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
	const struct vdevice *device;
	struct lanes lanes;
	struct queue unit[SEU_MAX];
	int64_t under_way_until[SEU_MAX];	/* tick at which all that was issued to such a unit is complete */
	struct queue l2, global;
	struct pool pool[SEU_MAX];	/* of vector units */
	struct server server[SEU_MAX];	/* of matrix units */
	int ntimed, timed[SEU_MAX];	/* units that work leaves by an event: vector and asynchronous matrix units */
	int open_events;		/* kept events whose end is not known yet */
	int64_t ended;			/* the last completion so far */
	int64_t watched;		/* completions so far of the sTask run->watch */
	int64_t worst_delay;		/* longest delay of the current event so far: note_cause */
};

/* ---- events and memory ----------------------------------------------------------- */

/* The instance is complete at `end`. */
static void note_complete(struct engine *e, const struct step *step, int64_t end)
{
	struct eu_run *r = e->run;

	e->ended = max_i64(e->ended, end);
	if (step->is_watched && e->watched++ >= r->skip && r->noted < r->nends)
		r->ends[r->noted++] = end;
}

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
	struct lane_run *l = lane_at(&e->lanes, lane);
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
	lanes_signal(&e->lanes, step, l->seq, WAIT_ISSUED, given + step->issue);
	note_complete(e, step, end);
	lanes_signal(&e->lanes, step, l->seq, WAIT_COMPLETE, end);
	lanes_advance(&e->lanes, lane);
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
	struct lane_run *l = lane_at(&e->lanes, server_first(s));
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
	struct lane_run *l = lane_at(&e->lanes, lane);
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
	struct lane_run *l = lane_at(&e->lanes, lane);
	struct step *step = l->step;

	if (!l->is_prepared) {
		l->preparing_since = now;
		l->is_prepared = true;
		if (step->before) {
			e->lanes.next[lane] = now + step->before;
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
	e->lanes.next[lane] = NEVER;
	lanes_signal(&e->lanes, step, l->seq, WAIT_ISSUED, now + step->issue);
	send_parts(e, lane, now);
	set_contention(e, now);
	if (!l->sending && !step->stored_to_shared)	/* a lane that stores the result waits for it: end_product */
		lanes_advance(&e->lanes, lane);
}

/* The lane's oldest product in flight is complete. */
static void end_product(struct engine *e, int lane, struct product *p, int64_t now)
{
	struct lane_run *l = lane_at(&e->lanes, lane);
	struct step *step = p->step;
	int64_t end = max_i64(now, l->unit_free[step->seu]) + step->latency + handover_ticks(&e->lanes, step, p->seq);

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
		lanes_signal_products(&e->lanes, l, l->ncomplete, end);
	if (!l->step) {
		steps_release(l);
	} else if (step->stored_to_shared) {
		l->ready = end;
		lanes_advance(&e->lanes, lane);
	} else if (l->draining) {
		lanes_await_products(&e->lanes, lane);
	}
}

/* The matrix unit has finished the part that it was working on. */
static void leave_server(struct engine *e, int unit, int64_t now)
{
	struct server *s = &e->server[unit];
	int lane = server_leave(s);
	struct lane_run *l = lane_at(&e->lanes, lane);
	struct product *p = product_at(l, l->ncomplete);
	const struct step *sent = l->step;	/* maybe later than p: a lane sends one product while another is served */

	l->parts_in_unit--;
	p->done++;
	if (l->sending) {
		send_parts(e, lane, now);
		if (!l->sending && !sent->stored_to_shared) {
			l->ready = max_i64(l->ready, now + sent->after);
			lanes_advance(&e->lanes, lane);
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
	struct lane_run *l = lane_at(&e->lanes, lane);
	struct step *step = l->step;
	int64_t end = max_i64(time, l->memory_end) + step->latency + handover_ticks(&e->lanes, step, l->seq);

	if (l->event) {
		l->event->end = to_cycles(end);
		l->event = NULL;
		e->open_events--;
	}
	l->ready = end;
	note_complete(e, step, end);
	lanes_signal(&e->lanes, step, l->seq, WAIT_COMPLETE, end);
	lanes_advance(&e->lanes, lane);
}

/* Issues work to a vector unit, which holds the lane. When it ends depends on the lanes that share it. */
static void run_shared(struct engine *e, int lane, int64_t issue)
{
	struct lane_run *l = lane_at(&e->lanes, lane);
	struct step *step = l->step;
	struct event *ev = keep_event(e, l, issue);

	e->lanes.next[lane] = NEVER;
	l->memory_end = use_memory(e, step, issue, ev);
	if (ev) {
		l->event = ev;
		e->open_events++;
	}
	lanes_signal(&e->lanes, step, l->seq, WAIT_ISSUED, issue);
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

	for (int i = 0; i < e->lanes.steps.nlanes; i++)
		if (e->lanes.next[i] < best) {
			best = e->lanes.next[i];
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

static enum err_code play_events(struct engine *e, struct err *err)
{
	const struct eu_run *r = e->run;

	for (int i = 0; i < e->lanes.steps.nlanes; i++)
		lanes_advance(&e->lanes, i);
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
		else if (lane == NONE && !lanes_signal_unawaited(&e->lanes))
			return lanes_check_finished(&e->lanes, err);
		else if (lane == NONE)
			continue;
		else if (lane_at(&e->lanes, lane)->step->is_shared)
			run_shared(e, lane, issue);
		else if (lane_at(&e->lanes, lane)->step->is_product)
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
	TRY(lanes_init(&e->lanes, a, r, err));
	TRY(play_events(e, err));
	r->ticks = e->ended;
	for (int i = 0; i < e->lanes.steps.nlanes; i++)
		r->ticks = max_i64(r->ticks, lane_at(&e->lanes, i)->ready);
	return OK;
}
