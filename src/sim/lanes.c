/* How lanes go from instance to instance (lanes.h). A wait looks up on a track (track.h) when others have issued or
 * completed what it asks for; a lane that finds nothing there is blocked until a signal fills the track. Where lanes
 * meet instead, none goes on before all have come to the meeting. */
#include "sim/lanes.h"

#include "base/buf.h"

/* ---- waiting -------------------------------------------------------------------- */

/* What the step's instance `seq` awaits of the source, as an iteration of the track's region; negative: nothing, as
 * in the first iterations of a carry's life. A replica counts only every n-th tile, so order.h computes the span each
 * time. */
static int64_t source_key(const struct lanes *lanes, struct source *s, const struct step *step, int64_t seq)
{
	const struct walk *w = lanes->walk;
	const struct plan *p = lanes->plan;
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
static bool is_empty(const struct lanes *lanes, const struct track *t, int64_t key)
{
	int loop = lanes->plan->graph->tasks.v[t->on].loop;

	return loop != t->region &&
		walk_inner(lanes->walk, t->region, key, loop) == walk_inner(lanes->walk, t->region, key + 1, loop);
}

/* Checks the waits of the lane's current instance, from the first one that was not satisfied before. Sets the lane's
 * issue time, or blocks the lane until something is recorded on the track of an unsatisfied wait. */
static void try_waits(struct lanes *lanes, int lane)
{
	struct lane_run *l = lane_at(lanes, lane);
	struct step *step = l->step;

	for (; l->source < step->sources.n; l->source++) {
		struct source *s = &step->sources.v[l->source];
		int64_t key = source_key(lanes, s, step, l->seq);

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
			if (is_empty(lanes, s->track, key))
				continue;
			s->track->blocked |= (uint64_t)1 << lane;
			lanes->next[lane] = NEVER;
			return;
		}
		at += s->delay;
		if (at > l->seen_until || (at == l->seen_until && !l->last_wait)) {
			l->seen_until = at;
			l->last_wait = s->wait;
		}
	}
	lanes->next[lane] = max_i64(l->paid_until, l->seen_until);
}

/* ---- signals --------------------------------------------------------------------- */

void lanes_signal(struct lanes *lanes, struct step *step, int64_t seq, enum wait_when when, int64_t time)
{
	for (int i = 0; i < step->nposts; i++) {
		struct post *post = &step->posts[i];
		struct track *t = post->track;

		if (t->when != when)
			continue;
		if (post->direct)
			post->key = seq;
		else if (!is_last_in(lanes->walk, step->loop, seq, t->region, &post->key, &post->last))
			continue;
		if (step->groups == 1 || t->group != NONE)
			track_set(lanes->a, t, post->key, time);
		else if (!track_join(lanes->a, t, post->key, time, step->groups))
			continue;
		uint64_t blocked = t->blocked;
		t->blocked = 0;
		for (int lane = 0; blocked; lane++, blocked >>= 1)
			if (blocked & 1)
				try_waits(lanes, lane);
	}
}

/* ---- lanes ----------------------------------------------------------------------- */

/* Is the lane's instance the first one of a tile? */
static bool is_new_tile(const struct lanes *lanes, const struct lane_run *l, struct step *step)
{
	if (l->seq >= step->tile_end) {
		step->tile = (int32_t)walk_outer(lanes->walk, step->loop, l->seq, NONE);
		step->tile_end = walk_inner(lanes->walk, NONE, step->tile + 1, step->loop);
	}
	return step->tile > l->tile;
}

static void enter_tile(struct lane_run *l, const struct step *step)
{
	if (l->tile >= 0) {
		l->ready += l->tile_cost + (step->tile >= l->own ? l->number : 0);
		/* It waits for the number that it asked for a tile before, and asks for that of the next tile. */
		if (l->asks && step->tile >= l->own) {
			l->ready = max_i64(l->ready, l->asked + l->asks);
			l->asked = l->ready;
		}
		require_complete(l, l->tile_drain);
	}
	l->tile = step->tile;
}

void lanes_signal_products(struct lanes *lanes, struct lane_run *l, int64_t upto, int64_t now)
{
	while (l->nsignaled < upto) {
		struct product *p = product_at(l, l->nsignaled++);

		lanes_signal(lanes, p->step, p->seq, WAIT_COMPLETE, max_i64(now, p->end));
	}
}

void lanes_await_products(struct lanes *lanes, int lane)
{
	struct lane_run *l = lane_at(lanes, lane);

	l->draining = l->must_complete >= l->ncomplete;
	if (l->draining) {
		lanes->next[lane] = NEVER;
		return;
	}
	/* products that have left the ring were complete before, so they delay nothing */
	const struct product *p = product_at(l, max_i64(l->must_complete, 0));
	if (l->must_complete >= max_i64(l->nproducts - l->capacity, 0) && p->end > l->drained_at) {
		l->drained_at = p->end;
		l->drained_task = p->step->task;
	}
	lanes_signal_products(lanes, l, l->must_complete + 1, max_i64(l->ready, l->drained_at));
	l->must_complete = -1;
	l->seen_until = l->drained_at;
	try_waits(lanes, lane);
}

/* The lane is behind its last instance. */
static void end_lane(struct lanes *lanes, struct lane_run *l)
{
	lanes->next[l - lanes->steps.lanes] = NEVER;
	l->ready += l->end_cost;
	l->signals_late = false;	/* there is no later wait with which to signal */
	lanes_signal_products(lanes, l, l->ncomplete, l->ready);
	steps_release(l);
}

/* ---- meetings --------------------------------------------------------------------- */

/* At a meeting no lane goes on before all have come to it. All lanes count their meetings alike (struct
 * role_meetings), so the n-th one of each is the n-th one of every other. A lane that stands at a meeting is at its
 * next instance already, for which it may have more meetings to pass. */

/* How many meetings are before an instance in the tile (struct role_meetings). */
static int64_t meetings_before(const struct lanes *lanes, int64_t tile, enum loop_part part, int64_t seq, int offset)
{
	const struct role_meetings *m = lanes->meetings;
	int64_t i = part == PART_LOOP ? seq : walk_inner(lanes->walk, NONE, tile + (part == PART_BEHIND), m->loop);

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
static void come_to_meeting(struct lanes *lanes, int lane, int64_t now)
{
	struct lane_run *l = lane_at(lanes, lane);
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
	if (!lanes->came++ || l->came > lanes->last_came) {
		lanes->last_came = l->came;
		lanes->last_lane = lane;
	}
}

/* The lane has passed the meetings so far, the last one at tick `now`, and goes on until the next one. */
static void go_on(struct lanes *lanes, int lane, int64_t now)
{
	struct lane_run *l = lane_at(lanes, lane);

	if (l->enters_tile && l->met >= l->first_meets) {
		int64_t ready = l->ready;

		l->enters_tile = false;
		enter_tile(l, l->step);
		now += l->ready - ready;
		if (l->met_wait > 0)	/* it waits since it came to the first meeting */
			l->ready = ready;
	}
	if (l->met < l->meets) {
		come_to_meeting(lanes, lane, now);
	} else if (l->step) {
		l->done = l->step->task;
		l->paid_until = now + l->step->drain_cost;
		lanes_await_products(lanes, lane);
	} else {
		l->ready = now;
		end_lane(lanes, l);
	}
}

/* While all lanes have come to a meeting, they pass it. */
static void hold_meetings(struct lanes *lanes)
{
	while (lanes->came == lanes->attending) {
		const struct lane_run *last = &lanes->steps.lanes[lanes->last_lane];
		int64_t came = lanes->last_came, passed = came + lanes->meeting_cost;
		int task = last->came_from;

		lanes->came = 0;
		for (int i = 0; i < lanes->steps.nlanes; i++) {
			struct lane_run *l = lane_at(lanes, i);

			if (!l->nsteps)
				continue;
			note_met_wait(l, came - l->came, CAUSE_MEETING, task);
			go_on(lanes, i, passed);
		}
	}
}

/* Where lanes meet: the lane has moved to its next instance, or to its end, and goes to the meetings before that. */
static void go_to_meetings(struct lanes *lanes, int lane, bool enters_tile)
{
	struct lane_run *l = lane_at(lanes, lane);

	lanes->next[lane] = NEVER;
	l->met_wait = 0;
	l->enters_tile = enters_tile;
	if (l->step) {
		const struct meeting_number *m = l->step->meeting;

		l->meets = meetings_before(lanes, l->step->tile, m->part, l->seq, m->offset);
		l->done = l->done == NONE ? l->step->task : l->done;
	} else if (l->nsteps) {
		l->meets = meetings_before(lanes, walk_count(lanes->walk, NONE), PART_BEFORE, 0, 0);
	}
	if (enters_tile)
		l->first_meets = meetings_before(lanes, l->step->tile, PART_BEFORE, 0, 0);
	go_on(lanes, lane, l->ready);
	hold_meetings(lanes);
}

void lanes_advance(struct lanes *lanes, int lane)
{
	struct lane_run *l = lane_at(lanes, lane);
	struct instance i;

	if (!cursor_next(l->cursor, &i)) {
		l->step = NULL;
		if (lanes->meetings)
			go_to_meetings(lanes, lane, false);
		else
			end_lane(lanes, l);
		return;
	}
	l->step = l->step_of[i.entry];
	l->seq = i.seq;
	bool enters_tile = is_new_tile(lanes, l, l->step);
	require_complete(l, l->step->drain);
	l->last_wait = l->paid_wait = NULL;
	l->source = 0;
	l->is_prepared = false;
	if (lanes->meetings) {
		go_to_meetings(lanes, lane, enters_tile);
		return;
	}
	if (enters_tile)
		enter_tile(l, l->step);
	l->paid_until = l->ready + l->step->drain_cost;
	lanes_await_products(lanes, lane);
}

/* ---- the run --------------------------------------------------------------------- */

enum err_code lanes_check_finished(const struct lanes *lanes, struct err *err)
{
	const struct plan *p = lanes->plan;
	struct srcloc loc = NOWHERE;
	struct buf b;

	buf_init(&b, lanes->a);
	for (int i = 0; i < lanes->steps.nlanes; i++) {
		const struct lane_run *l = lane_at(lanes, i);

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
	if (!b.len && lanes->came)
		BUG("lanes do not meet equally often");
	return b.len ? err_set(err, ERR_ILLEGAL, loc, "the plan comes to a standstill%s", b.text) : OK;
}

bool lanes_signal_unawaited(struct lanes *lanes)
{
	bool any = false;

	for (int i = 0; i < lanes->steps.nlanes; i++) {
		struct lane_run *l = lane_at(lanes, i);

		any |= l->nsignaled < l->ncomplete;
		lanes_signal_products(lanes, l, l->ncomplete, 0);
	}
	return any;
}

enum err_code lanes_init(struct lanes *lanes, struct arena *a, const struct eu_run *r, struct err *err)
{
	lanes->a = a;
	lanes->plan = r->plan;
	lanes->walk = r->walk;
	TRY(steps_build(a, r, &lanes->steps, err));
	if (r->price && r->price->meetings) {
		lanes->meetings = r->price->meetings;
		lanes->meeting_cost = cycles_to_ticks(r->price->meeting);
		for (int i = 0; i < lanes->steps.nlanes; i++)
			lanes->attending += lane_at(lanes, i)->nsteps > 0;
	}
	return OK;
}
