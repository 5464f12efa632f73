#include "run/trace_eu.h"

#include <math.h>
#include <stdlib.h>

enum {
	/* That a wait takes if there is nothing to wait for: by a flag (60 to 85 measured on an
	 * H200), for groups with what is told to others then (90 to 120). */
	FLAG_CYCLES = 100, GROUPS_CYCLES = 130,
	LOOK_STAMPS = 1,		/* on the host: no other stamp in between */
	MISSING_MAX = 2,		/* a stamp is 0 by chance once in a long while */
	OPEN = -1,			/* the end of an event that nobody has seen */
};

/* The instances of one sTask: their events by sequence number, NONE: not recorded. */
struct instances {
	int64_t n;
	int *event;
};

/* The instances of a product on one lane, in order. */
struct issued {
	int64_t done;			/* so many of them are known to be complete */
	VEC(int64_t) seq;
};

/* A lane's wait for a copy was over. */
struct seen {
	int task;
	int64_t seq, time;
	bool late;
};

struct reader {
	struct arena *a;
	const struct kernel *k;
	const struct plan *plan;
	const uint32_t *words;		/* of the block */
	const struct walk *walk;
	bool logical;
	struct phase_line *line;
	struct instances *of;		/* by sTask */
	VEC(struct seen) seen;
	int64_t cut;			/* what was issued later is not known in full */
	int missing;
};

/* A lane's way through its records. */
struct lane_reader {
	struct reader *r;
	const struct klane *l;
	const uint32_t *words;		/* of the tile at hand; NULL: none are kept */
	uint32_t clock;			/* at the last stamp ... */
	int64_t now;			/* ... which is this long after the block's start */
	bool lost;			/* instances in between left no record */
	struct issued *products;	/* by sTask */
	int64_t turn;			/* of the tile loop, from 0, counted over all copies; where
					 * that has no offsets, the tile */
};

static const struct stask *stask_at(const struct reader *r, int task)
{
	return &r->plan->graph->tasks.v[task];
}

static const struct seu *seu_at(const struct reader *r, int task)
{
	return &r->plan->device->seu[r->plan->entries.v[plan_entry_of(r->plan, task)].seu];
}

/* Of which the lane learns later that it is complete? */
static bool is_product(const struct reader *r, int task)
{
	return seu_at(r, task)->kind == SEU_MATRIX && seu_at(r, task)->async &&
		!kernel_result_shared(r->k, task);
}

static bool is_copy(const struct reader *r, int task)
{
	return stask_at(r, task)->kind == TASK_LOAD;
}

/* clocks ------------------------------------------------------------------- */

/* Stamps are read in the order in which the lane left them, so that the half that they
 * do not tell follows from the one before. */
static int64_t read_stamp(struct lane_reader *l, int64_t at)
{
	uint32_t clock = l->words[at];

	if (!clock) {
		l->r->missing++;
		return l->now;
	}
	l->now += (uint32_t)(clock - l->clock);
	l->clock = clock;
	return l->now;
}

/* When a lane ended, in cycles. Its last stamp that was kept may be long ago, but the
 * time that all share says how often the half clock went round. */
static int64_t lane_end(const struct reader *r, const struct klane *l)
{
	const uint32_t *w = r->words + l->traced.out_at;
	int64_t cycles = (uint32_t)(w[STAMP_LANE_END] - r->words[STAMP_START]);
	double ns = (double)(time_at(w + STAMP_LANE_TIME) - time_at(r->words + STAMP_TIME));
	double rounds = (ns * 1e-9 * r->plan->device->clock_hz - (double)cycles) / 0x1p32;

	return cycles + ((int64_t)fmax(round(rounds), 0) << 32);
}

/* Cycles a second of the block's SM; 0: there is no clock. */
static double clock_of(const struct reader *r)
{
	double cycles = 0, ns = 0;

	for (int i = 0; i < r->k->lanes.n; i++) {
		const uint32_t *w = r->words + r->k->lanes.v[i].traced.out_at;

		cycles += (double)lane_end(r, &r->k->lanes.v[i]);
		ns += (double)(time_at(w + STAMP_LANE_TIME) - time_at(r->words + STAMP_TIME));
	}
	return ns > 0 ? cycles / (ns * 1e-9) : 0;
}

/* events ------------------------------------------------------------------- */

static void set_end(struct reader *r, int task, int64_t seq, int64_t time, bool late)
{
	const struct instances *of = &r->of[task];
	struct event *ev;

	if (seq < 0 || seq >= of->n || of->event[seq] == NONE)
		return;
	ev = &r->line->events.v[of->event[seq]];
	if (ev->end != OPEN && ev->end <= time)
		return;
	ev->end = max_i64(time, ev->start);
	ev->late = late;
}

/* All products of the lane but the last behind[t] of sTask t are complete. */
static void see_products(struct lane_reader *l, const int *behind, int64_t time, bool late)
{
	for (int i = 0; i < l->l->entries.n; i++) {
		int task = l->l->entries.v[i].task;
		struct issued *p = &l->products[task];
		int64_t n = p->seq.n - (behind ? behind[task] : 0);

		for (; p->done < n; p->done++)
			set_end(l->r, task, p->seq.v[p->done], time, late);
	}
}

static void see_groups(struct lane_reader *l, const struct group_wait *w, int class, int64_t time,
	bool late)
{
	see_products(l, w->younger[class] < 0 ? NULL : w->behind[class], time, late);
}

/* The region's turn that the instance was executed in, as kernel.h numbers classes. */
static int class_of(const struct lane_reader *l, const struct kentry *x, int64_t seq)
{
	const struct walk *w = l->r->walk;
	int loop = stask_at(l->r, x->task)->loop, parent;
	int64_t outer, first, trips;

	if (loop == NONE)
		return turn_class(&l->l->regions[0], seq / l->l->replicas - x->at,
			lane_tiles(l->l, w->ntiles));
	parent = l->r->plan->graph->program->loops.v[loop].parent;
	outer = walk_outer(w, loop, seq, parent);
	first = walk_inner(w, parent, outer, loop);
	trips = walk_inner(w, parent, outer + 1, loop) - first;
	return turn_class(&l->l->regions[loop + 1], seq - first - x->at, trips);
}

/* The instance that a wait was for; negative: none. */
static int64_t awaited(const struct lane_reader *l, const struct kentry *x,
	const struct flag_wait *f, int64_t seq)
{
	const struct walk *w = l->r->walk;
	int mine = stask_at(l->r, x->task)->loop;
	int parent = mine == NONE ? NONE : l->r->plan->graph->program->loops.v[mine].parent;
	int64_t outer, first;

	switch (f->which) {
	case AWAIT_BACK:
		return seq - f->back;
	case AWAIT_WITHIN:
	case AWAIT_BEFORE:
		outer = walk_outer(w, mine, seq, parent);
		first = walk_inner(w, parent, outer, mine);
		return (seq - f->back < first) == (f->which == AWAIT_BEFORE) ? seq - f->back : -1;
	case AWAIT_AROUND:
		outer = walk_outer(w, mine, seq, f->loop);
		return seq == walk_inner(w, f->loop, outer, mine) ? outer - f->back : -1;
	case AWAIT_RUN:
		break;
	}
	return walk_inner(w, mine, seq + 1 - f->back, f->loop) - 1;
}

/* Did a wait that took so long wait for nothing? flags: behind so many; 0: for groups. */
static bool only_looked(const struct reader *r, int64_t took, int flags)
{
	return took <= (r->logical ? LOOK_STAMPS : flags ? flags * FLAG_CYCLES : GROUPS_CYCLES);
}

/* The longest wait is the cause. */
static void blame(struct event *ev, int64_t *worst, int64_t took, enum cause cause, int task)
{
	if (took <= *worst)
		return;
	*worst = took;
	ev->cause = (uint8_t)cause;
	ev->cause_task = (int16_t)task;
}

/* Which of the own products that it waits for was issued last. */
static int product_awaited(const struct lane_reader *l, const struct kentry *x)
{
	const struct reader *r = l->r;
	int best = NONE, last = NONE;

	for (int i = 0; i < r->plan->waits.n; i++) {
		const struct wait *w = &r->plan->waits.v[i];
		const struct issued *p = &l->products[w->on];
		int event;

		if (w->task != x->task || w->when != WAIT_COMPLETE || !p->seq.n)
			continue;
		event = r->of[w->on].event[p->seq.v[p->seq.n - 1]];
		if (event <= last)
			continue;
		best = w->on;
		last = event;
	}
	return best;
}

/* The waits by flags. Several in a row may have one stamp behind them, and then the last
 * that was for anything stands for all. */
static void read_flag_waits(struct lane_reader *l, const struct kentry *x, struct event *ev,
	int64_t at, int64_t *worst)
{
	struct reader *r = l->r;
	const struct wait *last = NULL;

	for (int i = 0, first = 0; i < x->waits.n; i++) {
		int64_t seq = awaited(l, x, &x->waits.v[i], ev->seq), before = l->now;
		bool late;

		if (seq >= 0)
			last = &r->plan->waits.v[x->waits.v[i].wait];
		if (x->waits.v[i].stamp == NONE)
			continue;
		read_stamp(l, at + x->waits.v[i].stamp);
		late = only_looked(r, l->now - before, i + 1 - first);
		if (last && !late)
			blame(ev, worst, l->now - before, last->when == WAIT_ISSUED ? CAUSE_ISSUE_ORDER :
				CAUSE_WAIT, last->on);
		for (; first <= i; first++) {
			int on = r->plan->waits.v[x->waits.v[first].wait].on;

			if (is_copy(r, on))
				VEC_PUSH(r->a, &r->seen, ((struct seen){ on, awaited(l, x,
					&x->waits.v[first], ev->seq), l->now, late }));
		}
		last = NULL;
	}
}

/* Where the record of an instance begins in its tile's words; negative: there is none. */
static int64_t record_at(const struct lane_reader *l, const struct kentry *x, int64_t tile,
	int64_t seq)
{
	int64_t i = seq - walk_inner(l->r->walk, NONE, tile, stask_at(l->r, x->task)->loop);

	return i < x->stamps.keep ? x->stamps.at + i * x->stamps.words : -1;
}

static void read_instance(struct lane_reader *l, const struct kentry *x, int64_t tile, int64_t seq)
{
	struct reader *r = l->r;
	struct instances *of = &r->of[x->task];
	int64_t at = record_at(l, x, tile, seq), worst = 0, before, end;
	int class = class_of(l, x, seq);
	bool late;
	struct event ev = { .ready = l->now, .seq = (int32_t)seq, .task = (int16_t)x->task,
		.tile = (int32_t)tile, .cause_task = NONE, .held_task = NONE, .lane = (uint8_t)l->l->lane,
		.replica = (uint8_t)l->l->replica, .seu = (uint8_t)r->plan->entries.v[x->entry].seu,
		.end = OPEN };

	if (at < 0) {
		if (is_product(r, x->task))
			VEC_PUSH(r->a, &l->products[x->task].seq, seq);
		l->lost = true;
		return;
	}
	read_flag_waits(l, x, &ev, at, &worst);
	if (x->waits_groups) {
		before = l->now;
		late = only_looked(r, read_stamp(l, at + x->stamps.groups) - before, 0);
		if (!late)
			blame(&ev, &worst, l->now - before, CAUSE_WAIT, product_awaited(l, x));
		see_groups(l, &x->before, class, l->now, late);
	}
	ev.issue = ev.start = l->now;
	end = read_stamp(l, at + x->stamps.body);
	if (l->lost) {			/* when it came here is not known */
		ev.ready = ev.issue = ev.start = max_i64(ev.issue, ev.ready);
		ev.cause = CAUSE_NONE;
		ev.cause_task = NONE;
	}
	l->lost = false;
	if (!is_product(r, x->task) && !is_copy(r, x->task))
		ev.end = end;
	if (is_product(r, x->task))
		VEC_PUSH(r->a, &l->products[x->task].seq, seq);
	of->event[seq] = r->line->events.n;
	VEC_PUSH(r->a, &r->line->events, ev);
	if (x->drains) {
		before = l->now;
		late = only_looked(r, read_stamp(l, at + x->stamps.drain) - before, 0);
		see_groups(l, &x->after, class, l->now, late);
	}
}

/* The offset at which the lane's turn of the tile loop has the entry, or the loop around it. */
static int offset_in_turn(const struct lane_reader *l, const struct kentry *x)
{
	const struct kregion *v = &l->l->regions[0];
	int loop = stask_at(l->r, x->task)->loop;

	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop && program_loop_within(l->r->plan->graph->program, loop,
		    v->steps.v[i].id))
			return v->steps.v[i].at;
	return x->at;
}

/* The turn of the tile loop in which the lane does an instance of that tile. */
static int64_t turn_of(const struct lane_reader *l, const struct kentry *x, int64_t tile)
{
	const struct klane *k = l->l;

	return tile + (int64_t)(k->regions[0].most - offset_in_turn(l, x)) * k->replicas;
}

/* Between tiles the lane waits for all of its products, unless they overlap. False if the
 * words of the turn are not there. */
static bool enter_turn(struct lane_reader *l, int64_t turn)
{
	const struct klane *k = l->l;

	for (; l->turn < turn; l->turn++) {
		int64_t before = l->now;

		if (l->turn >= 0 && l->turn % k->replicas == k->replica) {
			bool late = only_looked(l->r, read_stamp(l, STAMP_TILE_END) - before, 0);

			if (!shifts_tiles(k) || k->replicas > 1)
				see_products(l, NULL, l->now, late);
		}
		if (l->turn + 1 >= l->r->k->traced.tiles)
			return false;
		l->words = l->r->words + k->traced.out_at + STAMP_LANE_HEAD +
			(l->turn + 1) / k->replicas * k->traced.tile_words;
	}
	return true;
}

static struct kentry *entry_at(const struct klane *l, int entry)
{
	for (int i = 0; i < l->entries.n; i++)
		if (l->entries.v[i].entry == entry)
			return &l->entries.v[i];
	BUG("entry %d is on another lane", entry);
}

static void read_lane(struct reader *r, const struct klane *l)
{
	struct lane_reader lane = { .r = r, .l = l, .clock = r->words[STAMP_START], .turn = NONE,
		.products = ARENA_ARRAY(r->a, r->plan->graph->tasks.n, struct issued) };
	struct cursor *c = cursor_new(r->a, r->plan, r->walk, l->lane, l->replica);
	struct instance i;

	while (cursor_next(c, &i)) {
		const struct kentry *x = entry_at(l, i.entry);

		int64_t tile = walk_outer(r->walk, stask_at(r, x->task)->loop, i.seq, NONE);

		if (!enter_turn(&lane, turn_of(&lane, x, tile))) {
			r->cut = min_i64(r->cut, lane.now);
			return;
		}
		read_instance(&lane, x, tile, i.seq);
	}
	if (lane.turn >= 0)
		see_products(&lane, NULL, read_stamp(&lane, STAMP_TILE_END), false);
}

/* By the time at which each was issued; on one lane no two are equal. */
static int by_issue(const void *x, const void *y)
{
	const struct event *a = x, *b = y;

	if (a->issue != b->issue)
		return a->issue < b->issue ? -1 : 1;
	if (a->lane != b->lane)
		return a->lane - b->lane;
	if (a->replica != b->replica)
		return a->replica - b->replica;
	return (a->ready > b->ready) - (a->ready < b->ready);
}

/* When copies completed, as far as a warp watched. It may have come too late to tell two
 * phases apart, which shows in a time after somebody else saw it. */
static void read_watch(struct reader *r, const struct watch *w)
{
	const struct instances *of = &r->of[r->k->flags.v[w->flag].task];
	uint32_t clock = r->words[STAMP_START];
	int64_t now = 0;

	for (int64_t i = 0; i < w->keep && i < of->n && r->words[w->at + i]; i++) {
		struct event *ev = of->event[i] == NONE ? NULL : &r->line->events.v[of->event[i]];

		now += (uint32_t)(r->words[w->at + i] - clock);
		clock = r->words[w->at + i];
		if (!ev || (ev->end != OPEN && ev->end < now))
			continue;
		ev->end = max_i64(now, ev->start);
		ev->late = false;
	}
}

/* What others saw of copies, and what nobody needed to see. */
static void close_events(struct reader *r)
{
	struct phase_line *line = r->line;
	int n = 0;

	for (int i = 0; i < r->seen.n; i++)
		set_end(r, r->seen.v[i].task, r->seen.v[i].seq, r->seen.v[i].time,
			r->seen.v[i].late);
	for (int i = 0; i < r->k->traced.watches.n; i++)
		read_watch(r, &r->k->traced.watches.v[i]);
	for (int i = 0; i < line->events.n; i++) {
		struct event *ev = &line->events.v[i];

		if (ev->end == OPEN && r->cut == INT64_MAX) {
			ev->end = max_i64(line->cycles, ev->start);
			ev->late = true;
		}
		/* who watches copies may see the last one when all lanes have ended */
		line->cycles = max_i64(line->cycles, ev->end);
		if (ev->end != OPEN && ev->issue <= r->cut)
			line->events.v[n++] = *ev;
	}
	line->events.n = n;
	if (n)
		qsort(line->events.v, (size_t)n, sizeof(*line->events.v), by_issue);
}

/* Room for what the EU's lanes left. */
static void make_room(struct reader *r, struct arena *a)
{
	int64_t n = 0;

	for (int i = 0; i < r->k->lanes.n; i++) {
		const struct klane *l = &r->k->lanes.v[i];

		for (int x = 0; x < l->entries.n; x++)
			n += min_i64(l->entries.v[x].stamps.keep * min_i64(r->walk->ntiles,
				r->k->traced.tiles), walk_count(r->walk,
				stask_at(r, l->entries.v[x].task)->loop));
	}
	r->line->events.v = ARENA_ARRAY(a, n, struct event);
	r->line->events.cap = (int)n;
}

static void fill_none(struct arena *a, struct instances *of, int64_t n)
{
	of->n = n;
	of->event = ARENA_ARRAY(a, n, int);
	for (int64_t i = 0; i < n; i++)
		of->event[i] = NONE;
}

int trace_eu(struct arena *a, struct arena *kept, const struct eu_stamps *in,
	struct phase_line *line, double *clock_hz)
{
	const struct kernel *k = in->kernel;
	struct reader r = { .a = a, .k = k, .plan = k->plan, .line = line, .cut = INT64_MAX,
		.words = in->words, .walk = in->walk, .logical = in->logical };
	int ntasks = k->plan->graph->tasks.n;

	r.of = ARENA_ARRAY(a, ntasks, struct instances);
	for (int i = 0; i < ntasks; i++)
		if (stask_at(&r, i)->phase == k->phase)
			fill_none(a, &r.of[i], walk_count(r.walk, stask_at(&r, i)->loop));
	make_room(&r, kept);
	for (int i = 0; i < k->lanes.n; i++) {
		line->cycles = max_i64(line->cycles, lane_end(&r, &k->lanes.v[i]));
		read_lane(&r, &k->lanes.v[i]);
	}
	close_events(&r);
	*clock_hz = clock_of(&r);
	return r.missing > MISSING_MAX ? r.missing : 0;
}
