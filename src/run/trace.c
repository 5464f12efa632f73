#include "run/trace.h"

#include <math.h>
#include <stdlib.h>

#include "lower/stamps.h"
#include "plan/assign.h"
#include "plan/order.h"
#include "sim/measure.h"

enum {
	/* The most that a wait takes if there is nothing to wait for: for a flag (60 to 85 measured on an
	 * H200), for groups together with the signals after it (90 to 120). */
	FLAG_CYCLES = 100, GROUPS_CYCLES = 130,
	POLL_STAMPS = 1,		/* on the host: no other stamp in between */
	MISSING_MAX = 2,		/* on rare occasions a stamp is 0 by chance */
	OPEN = -1,			/* the end of an event is not known yet */
};

/* The instances of one sTask: their events by sequence number, NONE: not recorded. */
struct instances {
	int64_t n;
	int *event;
};

/* The instances of a product on one lane, in order. */
struct issued {
	int64_t done;			/* how many are known to be complete */
	VEC(int64_t) seq;
};

/* The end of a lane's wait for a copy. */
struct copy_end {
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
	VEC(struct copy_end) copy_ends;
	int64_t known_until;		/* events issued later are not all known */
	int missing;
};

/* The reading of a lane's records. */
struct lane_reader {
	struct reader *r;
	const struct klane *l;
	const uint32_t *words;		/* of the current tile; NULL: none are kept */
	uint32_t clock;			/* the last stamp ... */
	int64_t now;			/* ... and its time after the block's start */
	bool has_gap;			/* the previous instances left no record */
	struct issued *products;	/* by sTask */
	int64_t iteration;		/* of the tile loop, from 0, counted over all replicas; without
					 * offsets it is the tile */
};

static const struct stask *stask_at(const struct reader *r, int task)
{
	return &r->plan->graph->tasks.v[task];
}

static const struct seu *seu_at(const struct reader *r, int task)
{
	return &r->plan->device->seu[r->plan->entries.v[plan_entry_of(r->plan, task)].seu];
}

/* Is it asynchronous, so that the lane learns of its completion by a later wait? */
static bool is_product(const struct reader *r, int task)
{
	return seu_at(r, task)->kind == SEU_MATRIX && seu_at(r, task)->async && !kernel_result_shared(r->k, task);
}

static bool is_copy(const struct reader *r, int task)
{
	return stask_at(r, task)->kind == TASK_LOAD;
}

/* clocks ------------------------------------------------------------------- */

/* The 64-bit time at w. */
static uint64_t time_at(const uint32_t *w)
{
	return (uint64_t)w[1] << 32 | w[0];
}

/* Stamps are the low half of a clock. They are read in the lane's order, so the high half follows from the
 * stamp before. */
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

/* When a lane ended, in cycles. The last kept stamp may be long before, but the global time in nanoseconds tells
 * how often the low half of the clock wrapped around. */
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

/* All products of the lane are complete, except the last behind[t] of each sTask t. */
static void complete_products(struct lane_reader *l, const int *behind, int64_t time, bool late)
{
	for (int i = 0; i < l->l->entries.n; i++) {
		int task = l->l->entries.v[i].task;
		struct issued *p = &l->products[task];
		int64_t n = p->seq.n - (behind ? behind[task] : 0);

		for (; p->done < n; p->done++)
			set_end(l->r, task, p->seq.v[p->done], time, late);
	}
}

static void complete_groups(struct lane_reader *l, const struct group_wait *w, int class, int64_t time, bool late)
{
	complete_products(l, w->groups_left[class] < 0 ? NULL : w->instances_left[class], time, late);
}

/* The class (kernel.h) of the region's iteration in which the instance was executed. */
static int class_of(const struct lane_reader *l, const struct kentry *x, int64_t seq)
{
	const struct walk *w = l->r->walk;
	int loop = stask_at(l->r, x->task)->loop, parent;
	int64_t outer, first, trips;

	if (loop == NONE)
		return iteration_class(&l->l->regions[0], seq / l->l->replicas - x->at, lane_tiles(l->l, w->ntiles));
	parent = l->r->plan->graph->program->loops.v[loop].parent;
	outer = walk_outer(w, loop, seq, parent);
	first = walk_inner(w, parent, outer, loop);
	trips = walk_inner(w, parent, outer + 1, loop) - first;
	return iteration_class(&l->l->regions[loop + 1], seq - first - x->at, trips);
}

/* The instance that a wait waits for; negative: none. */
static int64_t awaited(const struct lane_reader *l, const struct kentry *x, const struct flag_wait *f, int64_t seq)
{
	const struct walk *w = l->r->walk;
	int mine = stask_at(l->r, x->task)->loop;
	int parent = mine == NONE ? NONE : l->r->plan->graph->program->loops.v[mine].parent;
	int64_t outer, first;

	switch (f->awaited) {
	case AWAIT_BACK:
		return seq - f->back;
	case AWAIT_WITHIN:
	case AWAIT_BEFORE:
		outer = walk_outer(w, mine, seq, parent);
		first = walk_inner(w, parent, outer, mine);
		return (seq - f->back < first) == (f->awaited == AWAIT_BEFORE) ? seq - f->back : -1;
	case AWAIT_AROUND:
		outer = walk_outer(w, mine, seq, f->loop);
		return seq == walk_inner(w, f->loop, outer, mine) ? outer - f->back : -1;
	case AWAIT_RUN:
		break;
	}
	return walk_inner(w, mine, seq + 1 - f->back, f->loop) - 1;
}

/* Did a wait of this time wait for nothing? flags: how many waits for flags it has; 0: a wait for groups. */
static bool waited_for_nothing(const struct reader *r, int64_t took, int flags)
{
	return took <= (r->logical ? POLL_STAMPS : flags ? flags * FLAG_CYCLES : GROUPS_CYCLES);
}

/* The longest wait is the cause. */
static void set_cause(struct event *ev, int64_t *worst, int64_t took, enum cause cause, int task)
{
	if (took <= *worst)
		return;
	*worst = took;
	ev->cause = (uint8_t)cause;
	ev->cause_task = (int16_t)task;
}

/* The product of its own lane that an entry waits for and that was issued last. */
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

/* Read the waits for flags. Several in a row may share one stamp; then the last one that waits for an instance
 * stands for all. */
static void read_flag_waits(struct lane_reader *l, const struct kentry *x, struct event *ev, int64_t at, int64_t *worst)
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
		late = waited_for_nothing(r, l->now - before, i + 1 - first);
		if (last && !late)
			set_cause(ev, worst, l->now - before, last->when == WAIT_ISSUED ? CAUSE_ISSUE_ORDER :
				CAUSE_WAIT, last->on);
		for (; first <= i; first++) {
			int on = r->plan->waits.v[x->waits.v[first].wait].on;

			if (is_copy(r, on))
				VEC_PUSH(r->a, &r->copy_ends, ((struct copy_end){ on, awaited(l, x,
					&x->waits.v[first], ev->seq), l->now, late }));
		}
		last = NULL;
	}
}

/* Where the record of an instance begins in its tile's words; negative: there is none. */
static int64_t record_at(const struct lane_reader *l, const struct kentry *x, int64_t tile, int64_t seq)
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
	struct event ev = { .ready = l->now, .seq = (int32_t)seq, .task = (int16_t)x->task, .tile = (int32_t)tile,
		.cause_task = NONE, .held_task = NONE, .lane = (uint8_t)l->l->lane, .replica = (uint8_t)l->l->replica,
		.seu = (uint8_t)r->plan->entries.v[x->entry].seu, .end = OPEN };

	if (at < 0) {
		if (is_product(r, x->task))
			VEC_PUSH(r->a, &l->products[x->task].seq, seq);
		l->has_gap = true;
		return;
	}
	read_flag_waits(l, x, &ev, at, &worst);
	if (x->waits_groups) {
		before = l->now;
		late = waited_for_nothing(r, read_stamp(l, at + x->stamps.groups) - before, 0);
		if (!late)
			set_cause(&ev, &worst, l->now - before, CAUSE_WAIT, product_awaited(l, x));
		complete_groups(l, &x->before, class, l->now, late);
	}
	ev.issue = ev.start = l->now;
	end = read_stamp(l, at + x->stamps.body);
	if (l->has_gap) {		/* it is not known when the lane came here */
		ev.ready = ev.issue = ev.start = max_i64(ev.issue, ev.ready);
		ev.cause = CAUSE_NONE;
		ev.cause_task = NONE;
	}
	l->has_gap = false;
	if (!is_product(r, x->task) && !is_copy(r, x->task))
		ev.end = end;
	if (is_product(r, x->task))
		VEC_PUSH(r->a, &l->products[x->task].seq, seq);
	of->event[seq] = r->line->events.n;
	VEC_PUSH(r->a, &r->line->events, ev);
	if (x->drains) {
		before = l->now;
		late = waited_for_nothing(r, read_stamp(l, at + x->stamps.drain) - before, 0);
		complete_groups(l, &x->after, class, l->now, late);
	}
}

/* The offset in the tile loop of the entry, or of the loop around it. */
static int tile_offset(const struct lane_reader *l, const struct kentry *x)
{
	const struct kregion *v = &l->l->regions[0];
	int loop = stask_at(l->r, x->task)->loop;

	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop && program_loop_within(l->r->plan->graph->program, loop, v->steps.v[i].id))
			return v->steps.v[i].at;
	return x->at;
}

/* The iteration of the tile loop in which the lane performs an instance of that tile. */
static int64_t tile_iteration_of(const struct lane_reader *l, const struct kentry *x, int64_t tile)
{
	const struct klane *k = l->l;

	return tile + (int64_t)(k->regions[0].max_offset - tile_offset(l, x)) * k->replicas;
}

/* Go on to an iteration of the tile loop. Between tiles the lane waits for all of its products, unless tiles
 * overlap. False if the iteration's words were not kept. */
static bool enter_iteration(struct lane_reader *l, int64_t iteration)
{
	const struct klane *k = l->l;

	for (; l->iteration < iteration; l->iteration++) {
		int64_t before = l->now;

		if (l->iteration >= 0 && l->iteration % k->replicas == k->replica) {
			bool late = waited_for_nothing(l->r, read_stamp(l, STAMP_TILE_END) - before, 0);

			if (!shifts_tiles(k) || k->replicas > 1)
				complete_products(l, NULL, l->now, late);
		}
		if (l->iteration + 1 >= l->r->k->traced.tiles)
			return false;
		l->words = l->r->words + k->traced.out_at + STAMP_LANE_HEAD +
			(l->iteration + 1) / k->replicas * k->traced.tile_words;
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
	struct lane_reader lane = { .r = r, .l = l, .clock = r->words[STAMP_START], .iteration = NONE,
		.products = ARENA_ARRAY(r->a, r->plan->graph->tasks.n, struct issued) };
	struct cursor *c = cursor_new(r->a, r->plan, r->walk, l->lane, l->replica);
	struct instance i;

	while (cursor_next(c, &i)) {
		const struct kentry *x = entry_at(l, i.entry);

		int64_t tile = walk_outer(r->walk, stask_at(r, x->task)->loop, i.seq, NONE);

		if (!enter_iteration(&lane, tile_iteration_of(&lane, x, tile))) {
			r->known_until = min_i64(r->known_until, lane.now);
			return;
		}
		read_instance(&lane, x, tile, i.seq);
	}
	if (lane.iteration >= 0)
		complete_products(&lane, NULL, read_stamp(&lane, STAMP_TILE_END), false);
}

/* By the time of issue; on one lane no two are equal. */
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

/* The ends of copies that a warp recorded by watching their flag. It may have been too late to tell two phases
 * apart; then its time is later than the end that another lane saw, and is ignored. */
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

/* Set the ends of copies, and of events that nothing waited for. */
static void close_events(struct reader *r)
{
	struct phase_line *line = r->line;
	int n = 0;

	for (int i = 0; i < r->copy_ends.n; i++)
		set_end(r, r->copy_ends.v[i].task, r->copy_ends.v[i].seq, r->copy_ends.v[i].time,
			r->copy_ends.v[i].late);
	for (int i = 0; i < r->k->traced.watches.n; i++)
		read_watch(r, &r->k->traced.watches.v[i]);
	for (int i = 0; i < line->events.n; i++) {
		struct event *ev = &line->events.v[i];

		if (ev->end == OPEN && r->known_until == INT64_MAX) {
			ev->end = max_i64(line->cycles, ev->start);
			ev->late = true;
		}
		/* the watching warp may see the last copy after all lanes have ended */
		line->cycles = max_i64(line->cycles, ev->end);
		if (ev->end != OPEN && ev->issue <= r->known_until)
			line->events.v[n++] = *ev;
	}
	line->events.n = n;
	if (n)
		qsort(line->events.v, (size_t)n, sizeof(*line->events.v), by_issue);
}

/* Reserve memory for the events of all lanes. */
static void reserve_events(struct reader *r, struct arena *a)
{
	int64_t n = 0;

	for (int i = 0; i < r->k->lanes.n; i++) {
		const struct klane *l = &r->k->lanes.v[i];

		for (int x = 0; x < l->entries.n; x++)
			n += min_i64(l->entries.v[x].stamps.keep * min_i64(r->walk->ntiles, r->k->traced.tiles),
				walk_count(r->walk, stask_at(r, l->entries.v[x].task)->loop));
	}
	r->line->events.v = ARENA_ARRAY(a, n, struct event);
	r->line->events.cap = (int)n;
}

/* phases ------------------------------------------------------------------- */

static struct instances no_events(struct arena *a, int64_t n)
{
	struct instances of = { n, ARENA_ARRAY(a, n, int) };

	for (int64_t i = 0; i < n; i++)
		of.event[i] = NONE;
	return of;
}

/* The EU that ended last. */
static int last_eu(const struct kernel *k, const uint32_t *words, int eus, bool logical)
{
	uint64_t latest = 0;
	int best = 0;

	for (int u = 0; u < eus; u++) {
		const uint32_t *block = words + u * k->traced.words;

		for (int i = 0; i < k->lanes.n; i++) {
			const uint32_t *lane = block + k->lanes.v[i].traced.out_at;
			uint64_t end = logical ? lane[STAMP_LANE_END] - block[STAMP_START] :
				time_at(lane + STAMP_LANE_TIME);

			best = end > latest ? u : best;
			latest = end > latest ? end : latest;
		}
	}
	return best;
}

/* Which sTasks does the kernel copy by threads instead of an engine? */
static void find_threads(const struct role_body *b, bool *by_threads)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (role_is_region(o->what)) {
			if (o->u.region.section != SECTION_LENGTH)	/* the engine copies all but one tile of a run */
				find_threads(&o->u.region.body, by_threads);
			find_threads(&o->u.region.other, by_threads);
		} else if (o->task != NONE && (o->what == DO_LOAD_THREADS || o->what == DO_LOAD_WORDS ||
				o->what == DO_STORE_THREADS || o->what == DO_STORE_RING)) {
			by_threads[o->task] = true;
		}
	}
}

/* The row of a copy engine says whether threads copy instead, as that of a simulated timeline does. */
static void name_units(const struct kernel *k, struct phase_line *line, struct arena *a)
{
	const struct plan *p = k->plan;
	bool *by_threads = ARENA_ARRAY(a, p->graph->tasks.n, bool), by_engine[SEU_MAX] = { 0 };

	for (int i = 0; i < k->role->roles.n; i++)
		find_threads(&k->role->roles.v[i].body, by_threads);
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		if (p->graph->tasks.v[e->task].phase != line->phase)
			continue;
		line->seu[e->seu].by_threads |= by_threads[e->task];
		by_engine[e->seu] |= !by_threads[e->task];
	}
	for (int i = 0; i < SEU_MAX; i++)
		line->seu[i].by_threads &= !by_engine[i];
}

static enum err_code read_phase(struct timeline *t, const struct built_phase *in, int phase,
	const struct trace_options *o, struct arena *a, struct err *e)
{
	struct phase_line *line = &t->phases[phase];
	const struct kernel *k = in->kernel;
	int ntasks = t->plan->graph->tasks.n;
	struct walk walk;
	struct reader r = { .a = a, .k = k, .plan = k->plan, .line = line, .known_until = INT64_MAX, .walk = &walk,
		.logical = o->logical, .of = ARENA_ARRAY(a, ntasks, struct instances) };
	struct tile_assignment d;

	plan_assign_tiles(a, t->plan, phase, &d);
	if (o->eu != NONE && (o->eu < 0 || o->eu >= d.eus))
		return err_set(e, ERR_INPUT, NOWHERE, "there is no EU %d: %d EU%s at work", o->eu + 1,
			d.eus, d.eus == 1 ? " is" : "s are");
	line->phase = phase;
	line->eu = o->eu == NONE ? last_eu(k, in->stamps, d.eus, o->logical) : o->eu;
	walk_init(a, &walk, t->plan->graph, phase, (int)(d.start[line->eu + 1] - d.start[line->eu]),
		d.order + d.start[line->eu]);
	r.words = in->stamps + line->eu * k->traced.words;
	for (int i = 0; i < ntasks; i++)
		if (stask_at(&r, i)->phase == phase)
			r.of[i] = no_events(a, walk_count(&walk, stask_at(&r, i)->loop));
	reserve_events(&r, &t->arena);
	for (int i = 0; i < k->lanes.n; i++) {
		line->cycles = max_i64(line->cycles, lane_end(&r, &k->lanes.v[i]));
		read_lane(&r, &k->lanes.v[i]);
	}
	close_events(&r);
	t->clock_hz = clock_of(&r);
	if (r.missing > MISSING_MAX)
		return err_set(e, ERR_IO, NOWHERE, "the traced kernel left %d stamps fewer than it should on EU %d",
			r.missing, line->eu + 1);
	t->nevents += line->events.n;
	t->cycles += line->cycles;
	measure_line(a, t->plan, &walk, line);
	name_units(k, line, a);
	return OK;
}

enum err_code trace_read(struct mem *mem, const struct built *traced, const struct trace_options *o,
	 struct arena *scratch, struct timeline **out, struct err *e)
{
	struct timeline *t;

	timeline_new(mem, traced->plan, out);
	t = *out;
	t->measured = true;
	t->logical = o->logical;
	t->seconds = o->seconds;
	t->overhead = o->overhead;
	t->cache = o->cache;
	for (int i = 0; i < t->nphases; i++)
		TRY(read_phase(t, &traced->phases[i], i, o, scratch, e));
	return OK;
}

struct trace_span trace_span(const struct built *traced)
{
	struct trace_span s = { UINT64_MAX, 0 };

	for (int i = 0; i < traced->nphases; i++) {
		const struct built_phase *p = &traced->phases[i];

		for (int u = 0; u < plan_eus(traced->plan, i); u++) {
			const uint32_t *block = p->stamps + u * p->kernel->traced.words;

			s.begin = time_at(block + STAMP_TIME) < s.begin ? time_at(block + STAMP_TIME) : s.begin;
			for (int l = 0; l < p->kernel->lanes.n; l++) {
				uint64_t end = time_at(block + p->kernel->lanes.v[l].traced.out_at + STAMP_LANE_TIME);

				s.end = end > s.end ? end : s.end;
			}
		}
	}
	return s;
}
