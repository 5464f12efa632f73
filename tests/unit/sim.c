/* The simulator against traces worked out by hand. Traces are compared as text, a line
 * an event: lane, sTask and iteration, then ready, issue, start, end, and the cause. */
#include "sim/sim.h"

#include <math.h>

#include "base/buf.h"
#include "sim/lookup.h"
#include "sim/moments.h"
#include "sim/traffic.h"
#include "tests/unit/sim_bench.h"

static void run(struct bench *b)
{
	struct sim_options o = { .keep = -1 };

	timeline_free(b->t);
	b->t = NULL;
	must(b, sim_run(&b->mem, b->plan, &o, NULL, &b->t, &b->e));
}

/* ---- comparing ------------------------------------------------------------------- */

static const char *trace(struct bench *b)
{
	static const char *const causes[] = { "", " wait", " order", " seu", " memory",
		" drain" };
	const struct phase_line *l = &b->t->phases[0];
	struct buf out;

	buf_init(&out, &b->arena);
	for (int i = 0; i < l->events.n; i++) {
		const struct event *e = &l->events.v[i];

		buf_printf(&out, "%s", b->plan->lanes.v[e->lane].name);
		if (b->plan->lanes.v[e->lane].replicas > 1)
			buf_printf(&out, ".%d", e->replica);
		buf_printf(&out, " %s %d: %lld %lld %lld %lld%s%s%s\n",
			b->g->tasks.v[e->task].name, e->seq, (long long)e->ready,
			(long long)e->issue, (long long)e->start, (long long)e->end,
			causes[e->cause], e->cause_task == NONE ? "" : " ",
			e->cause_task == NONE ? "" : b->g->tasks.v[e->cause_task].name);
	}
	return out.text;
}

/* ---- rings ------------------------------------------------------------------------ */

static void make_ring(struct bench *b, int n, int64_t trips)
{
	bench_init(b);
	ring_program(b, 1, trips, 1, 1);
	put(b, "load_X", "p", 10, 0);
	put(b, "use", "c", 30, 0);
	versions(b, "X", n);
	wait_for(b, "load_X", "use", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(b, "use", "load_X", DISTANCE_AUTO, WAIT_COMPLETE);
	run(b);
}

static void test_rings(void)
{
	struct bench b;

	/* Each load waits for the use before: 60 to arrive, 3 to be seen, 30, and 3. */
	make_ring(&b, 1, 3);
	is_str(trace(&b),
		"p load_X 0: 0 0 0 60\n"
		"c use 0: 0 63 63 93 wait load_X\n"
		"p load_X 1: 2 96 96 156 wait use\n"
		"c use 1: 93 159 159 189 wait load_X\n"
		"p load_X 2: 98 192 192 252 wait use\n"
		"c use 2: 189 255 255 285 wait load_X\n", "a ring of one version");
	is_int(b.t->cycles, 285, "... takes so long");
	is_near(b.t->phases[0].ii, 96, 0, "... an iteration each 96 cycles");
	is_near(b.t->phases[0].rec_mii, 94, 1e-9, "... which is the recurrence, but for the flags");
	is_near(b.t->phases[0].seu[VECTOR].busy, 90, 0, "... the vector unit works 90 of them");
	is_near(b.t->phases[0].seu[VECTOR].share, 90.0 / 285, 1e-12, "... which is its share");
	bench_release(&b);

	/* The second load follows the first through the engine; a wait costs 1. */
	make_ring(&b, 2, 4);
	is_str(trace(&b),
		"p load_X 0: 0 0 0 60\n"
		"p load_X 1: 2 2 10 70 seu load_X\n"
		"c use 0: 0 63 63 93 wait load_X\n"
		"c use 1: 93 94 94 124\n"
		"p load_X 2: 4 96 96 156 wait use\n"
		"p load_X 3: 98 127 127 187 wait use\n"
		"c use 2: 124 159 159 189 wait load_X\n"
		"c use 3: 189 190 190 220\n", "a ring of two versions");
	is_near(b.t->phases[0].rec_mii, 47, 1e-9, "... halves the recurrence");
	bench_release(&b);

	make_ring(&b, 3, 7);
	is_str(trace(&b),
		"p load_X 0: 0 0 0 60\n"
		"p load_X 1: 2 2 10 70 seu load_X\n"
		"p load_X 2: 4 4 20 80 seu load_X\n"
		"c use 0: 0 63 63 93 wait load_X\n"
		"c use 1: 93 94 94 124\n"
		"p load_X 3: 6 96 96 156 wait use\n"
		"c use 2: 124 125 125 155\n"
		"p load_X 4: 98 127 127 187 wait use\n"
		"p load_X 5: 129 158 158 218 wait use\n"
		"c use 3: 155 159 159 189 wait load_X\n"
		"c use 4: 189 190 190 220\n"
		"p load_X 6: 160 192 192 252 wait use\n"
		"c use 5: 220 221 221 251\n"
		"c use 6: 251 255 255 285 wait load_X\n", "a ring of three versions");
	bench_release(&b);

	make_ring(&b, 4, 400);
	is_near(b.t->phases[0].ii, 31, 0, "four versions: the consumer's lane is never idle");
	is_near(b.t->phases[0].res_mii, 30, 0, "... the bound leaves out the wait");
	is_int(b.t->phases[0].binding_seu, VECTOR, "... and is the vector unit's");
	is_int(b.t->nevents, 800, "... every instance is an event");
	is_near(b.t->phases[0].seu[COPY].under_way, 1, 0.02, "transfers are under way nearly all the time");
	ok(b.t->phases[0].seu[COPY].share < 0.9, "... and issuing them takes less");
	bench_release(&b);
}

/* ---- lookup ------------------------------------------------------------------------- */

/* Are exactly the events in sight that overlap the window or touch it? */
static bool window_is_right(struct arena *a, const struct lookup *l, int64_t from, int64_t to)
{
	struct lookup_list seen = lookup_in_sight(a, l, from, to);
	int n = 0;

	for (int i = 0; i < l->line->events.n; i++) {
		const struct event *e = &l->line->events.v[i];

		if (min_i64(e->ready, e->start) <= to && e->end >= from && (n == seen.n || seen.v[n++] != i))
			return false;
	}
	return n == seen.n;
}

/* "use 2" */
static const char *event_name(struct bench *b, const struct lookup *l, int event)
{
	const struct event *e = &l->line->events.v[event < 0 ? 0 : event];

	return event < 0 ? "none" : arena_strf(&b->arena, "%s %d", b->g->tasks.v[e->task].name, (int)e->seq);
}

/* Of the traces of test_rings. */
static void test_lookup(void)
{
	int64_t begin, from, to, end;
	struct lookup l;
	struct bench b;
	bool right = true;
	int use, load;

	make_ring(&b, 2, 4);
	lookup_init(&b.arena, &l, b.t, 0);
	use = l.of_task[task(&b, "use")].v[2];
	load = l.of_task[task(&b, "load_X")].v[2];
	for (int64_t a = -10; a < 230; a++)
		for (int64_t z = a + 1; z < 230; z += 7)
			right &= window_is_right(&b.arena, &l, a, z);
	ok(right, "every window holds what can be seen in it");
	is_str(event_name(&b, &l, use), "use 2", "the third use");
	is_str(event_name(&b, &l, lookup_cause(&l, use)), "load_X 2", "... waited for the third load");
	is_str(event_name(&b, &l, lookup_cause(&l, load)), "use 0", "... and that for the first use");
	is_str(event_name(&b, &l, lookup_cause(&l, l.of_task[task(&b, "load_X")].v[0])), "none",
		"the first load for nothing");
	is_str(event_name(&b, &l, lookup_next_of_lane(&l, use, 1)), "use 3", "its lane goes on");
	is_str(event_name(&b, &l, lookup_next_of_lane(&l, use, 2)), "none", "... to its end");
	is_str(event_name(&b, &l, lookup_next_of_task(&l, load, -1)), "load_X 1", "the load before");
	is_str(event_name(&b, &l, lookup_near(&l, &l.of_task[task(&b, "use")], 130)), "use 2",
		"that which is issued nearest to 130");
	is_str(event_name(&b, &l, lookup_near(&l, &l.of_task[task(&b, "use")], -5)), "use 0", "... to -5");
	ok(lookup_steady(&l, 0, &begin, &from, &to, &end), "there is a steady state");
	is_int(begin, 0, "the first load begins");
	is_int(from, 63, "... it lasts from the first use");
	is_int(to, 187, "... to the last load's end");
	is_int(end, 220, "... and the last use ends");
	ok(!lookup_steady(&l, 1, &begin, &from, &to, &end), "no tile, no steady state");
	bench_release(&b);
}

/* Where the steady state begins if the uses of an iteration begin after these cycles, of which the last two alternate. */
static int64_t steady_after(const int *after, int n, double ii)
{
	int64_t begin, from = -1, to, end, now = 100;
	struct lookup l;
	struct bench b;
	int use, load;

	make_ring(&b, 2, 24);
	use = task(&b, "use");
	load = task(&b, "load_X");
	b.t->phases[0].ii = ii;
	for (int i = 0; i < b.t->phases[0].events.n; i++) {
		struct event *e = &b.t->phases[0].events.v[i];

		now = 100;
		for (int k = 0; k < e->seq; k++)
			now += after[k < n ? k : n - 2 + (k - n) % 2];
		e->start = e->task == use ? now : now - 30;
		e->end = e->start + 20;
		e->before = 0;
	}
	lookup_init(&b.arena, &l, b.t, 0);
	ok(use != load && lookup_steady(&l, 0, &begin, &from, &to, &end), "there is a steady state");
	bench_release(&b);
	return from;
}

/* It begins where the tile keeps an interval, be it over two iterations or not that of others. */
static void test_steady(void)
{
	static const int even[] = { 40, 70, 50, 50 }, pairs[] = { 40, 75, 30, 50 };

	is_int(steady_after(even, LEN(even), 50), 210, "from the third iteration on");
	is_int(steady_after(pairs, LEN(pairs), 40), 215, "also if iterations alternate");
	is_int(steady_after(even, LEN(even), 57), 210, "and if II is that of another tile");
	is_int(steady_after(pairs, LEN(pairs), 47), 215, "and both");
}

/* ---- moments ------------------------------------------------------------------------ */

/* What the slots of X hold at a cycle: "0 read by use, 1 filling". */
static const char *slots_at(struct bench *b, const struct moments *m, int64_t cycle)
{
	static const char *const words[] = { "empty", "filling", "full", "read", "free" };
	int buffer = graph_find_buffer(b->g, "X"), at = moments_at(m, cycle);
	struct slot slot[VERSIONS_MAX];
	struct buf out;

	moments_slots(m, at, buffer, slot);
	buf_init(&out, &b->arena);
	for (int i = 0; i < b->plan->versions[buffer]; i++) {
		buf_printf(&out, "%s%lld %s", i ? ", " : "", (long long)slot[i].life, words[slot[i].state]);
		if (slot[i].state == SLOT_READ)
			buf_printf(&out, " by %s", b->g->tasks.v[slot[i].by].name);
	}
	return out.text;
}

/* Of the traces of test_rings. */
static void test_moments(void)
{
	const struct task_sum *sum;
	struct moments m;
	struct lookup l;
	struct bench b;
	int last, next;

	make_ring(&b, 2, 4);
	lookup_init(&b.arena, &l, b.t, 0);
	moments_init(&b.arena, &m, &l);
	is_int(m.n, 2 * b.t->phases[0].events.n, "every instance is issued and completes");
	is_int(m.v[0].cycle, 0, "the first moment is the first issue");
	is_int(m.nrings, 1, "there is one ring");
	is_str(slots_at(&b, &m, 0), "0 filling, -1 empty", "the first load is issued");
	is_str(slots_at(&b, &m, 5), "0 filling, 1 filling", "... and the second");
	is_str(slots_at(&b, &m, 60), "0 full, 1 filling", "the first is complete");
	is_str(slots_at(&b, &m, 80), "0 read by use, 1 full", "it is read when the second is complete, too");
	is_str(slots_at(&b, &m, 93), "0 free, 1 full", "it has been read");
	is_str(slots_at(&b, &m, 100), "2 filling, 1 read by use", "the third load takes its slot");
	is_str(slots_at(&b, &m, 1000), "2 free, 3 free", "the end");
	moments_lane(&m, moments_at(&m, 80), plan_find_lane(b.plan, "c"), 0, &last, &next);
	is_int(b.t->phases[0].events.v[last].seq, 0, "at 80 the consumer has the first");
	is_int(b.t->phases[0].events.v[next].seq, 1, "... and comes to the second");
	sum = &phase_sums(&b.arena, b.t, 0)[task(&b, "use")];
	is_int(sum->n, 4, "four instances are added up");
	is_near(sum->duration, 4 * 30, 0, "... each of 30 cycles");
	is_near(sum->wait, 63 + 1 + 35 + 1, 0, "... that waited so long");
	is_near(sum->held, 220, 0, "... and had their lane all the time");
	bench_release(&b);
}

/* ---- sharing ---------------------------------------------------------------------- */

/* Two lanes that want the vector unit for so many cycles of it, once. */
static void share_by(struct bench *b, double by_age, double lane_share, int warps0, double cycles0,
	int warps1, double cycles1)
{
	bench_init(b);
	b->device.seu[VECTOR].lane_share = lane_share;
	b->device.seu[VECTOR].by_age = by_age;
	ring_program(b, 1, 1, 2, 2);
	lane(b, "c0", warps0, 1);
	lane(b, "c1", warps1, 1);
	put(b, "use.0", "c0", cycles0, 0);
	put(b, "use.1", "c1", cycles1, 0);
	run(b);
}

static void share(struct bench *b, double lane_share, int warps0, double cycles0, int warps1,
	double cycles1)
{
	share_by(b, 0, lane_share, warps0, cycles0, warps1, cycles1);
}

static void test_by_age(void)
{
	struct bench b;

	share_by(&b, 1, 1, 4, 100, 4, 50);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 100\nc1 use.1 0: 0 0 0 150\n",
		"the lane that came first takes all");
	bench_release(&b);
	share_by(&b, 0.5, 1, 4, 90, 4, 60);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 120\nc1 use.1 0: 0 0 0 150\n",
		"... or all of half of the cycles, and a half of the others");
	bench_release(&b);
	share_by(&b, 1, 0.75, 4, 75, 4, 50);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 100\nc1 use.1 0: 0 0 0 133\n",
		"... or what a lane can take");
	bench_release(&b);
}

static void test_sharing(void)
{
	struct bench b;

	share(&b, 1, 4, 100, 4, 50);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 150\nc1 use.1 0: 0 0 0 100\n",
		"two lanes share a unit evenly until one is done");
	bench_release(&b);
	share(&b, 0.5, 4, 100, 4, 50);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 200\nc1 use.1 0: 0 0 0 100\n",
		"lanes that can draw half of it do not disturb each other");
	bench_release(&b);
	share(&b, 0.75, 4, 125, 4, 50);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 200\nc1 use.1 0: 0 0 0 100\n",
		"one that is alone draws at most its lane's share");
	bench_release(&b);
	share(&b, 1, 4, 75, 1, 25);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 100\nc1 use.1 0: 0 0 0 100\n",
		"what one cannot draw is the other's");
	bench_release(&b);
	share(&b, 1, 4, 0, 4, 25);
	is_str(trace(&b), "c0 use.0 0: 0 0 0 0\nc1 use.1 0: 0 0 0 25\n",
		"work of no cycles takes none");
	bench_release(&b);
}

/* One that comes later slows one that runs. */
static void test_late_comer(void)
{
	struct bench b;

	bench_init(&b);
	ring_program(&b, 1, 2, 2, 2);
	put(&b, "use.0", "c0", 60, 0);
	put(&b, "use.1", "c1", 20, 0);
	wait_for(&b, "use.1", "use.0", 0, WAIT_COMPLETE);
	run(&b);
	/* use.1 0 and use.0 1 run together from 63 on: use.0 is alone for 3 cycles */
	is_str(trace(&b),
		"c0 use.0 0: 0 0 0 60\n"
		"c0 use.0 1: 60 60 60 140\n"
		"c1 use.1 0: 0 63 63 103 wait use.0\n"
		"c1 use.1 1: 103 143 143 163 wait use.0\n", "a late-comer slows who is there");
	bench_release(&b);
}

/* ---- issue order -------------------------------------------------------------------- */

static void test_ping_pong(void)
{
	struct bench b;

	bench_init(&b);
	ping_pong_program(&b, 2);
	put(&b, "mma.0", "c0", 40, 0);
	put(&b, "soft.0", "c0", 50, 0);
	put(&b, "mma.1", "c1", 40, 0);
	put(&b, "soft.1", "c1", 50, 0);
	wait_for(&b, "soft.0", "mma.0", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "soft.1", "mma.1", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "mma.1", "mma.0", 0, WAIT_ISSUED);
	wait_for(&b, "mma.0", "mma.1", 1, WAIT_ISSUED);
	run(&b);
	/* mma.0 is issued at 4, which c1 sees at 6, but the unit is busy until 40.
	 * soft.0 is alone from 60 to 100, then the two share. */
	is_str(trace(&b),
		"c0 mma.0 0: 0 0 0 60\n"
		"c1 mma.1 0: 0 6 40 100 seu mma.0\n"
		"c0 soft.0 0: 4 60 60 120 wait mma.0\n"
		"c1 soft.1 0: 10 100 100 160 wait mma.1\n"
		"c0 mma.0 1: 120 121 121 181\n"
		"c1 mma.1 1: 160 161 161 221\n"
		"c0 soft.0 1: 125 181 181 241 wait mma.0\n"
		"c1 soft.1 1: 165 221 221 281 wait mma.1\n", "ping-pong between two lanes");
	bench_release(&b);

	/* the issue order alone: no unit has work */
	bench_init(&b);
	ping_pong_program(&b, 2);
	put(&b, "mma.0", "c0", 1, 0);
	put(&b, "mma.1", "c1", 1, 0);
	wait_for(&b, "mma.1", "mma.0", 0, WAIT_ISSUED);
	wait_for(&b, "mma.0", "mma.1", 1, WAIT_ISSUED);
	run(&b);
	is_str(trace(&b),
		"c0 mma.0 0: 0 0 0 21\n"
		"c1 mma.1 0: 0 6 6 27 order mma.0\n"
		"c0 mma.0 1: 4 12 12 33 order mma.1\n"
		"c1 mma.1 1: 10 18 18 39 order mma.0\n", "the issue order passes on at issue");
	bench_release(&b);
}

/* A lane with two replicas: one converts while the other multiplies. */
static void test_replicas(void)
{
	struct bench b;

	bench_init(&b);
	b.device.eus = 1;
	b.device.tile_overhead = 5;
	ring_program(&b, 4, 1, 1, 1);
	lane(&b, "c", 4, 2);
	put(&b, "load_X", "p", 10, 0);
	put(&b, "use", "c", 30, 0);
	put(&b, "convert", "c", 20, 0);
	versions(&b, "X", 4);
	wait_for(&b, "load_X", "use", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "use", "load_X", DISTANCE_AUTO, WAIT_COMPLETE);
	run(&b);
	/* Loads are 7 apart (2 to issue, 5 for the next tile) but pass the engine each 10.
	 * use 0 from 63, use 1 from 73: they share from 73 on. At 113 use 0 has its 30;
	 * use 1 has 20 of them, and shares with convert 0 until 133; then convert 0, which
	 * has 10, shares with convert 1 until 153; convert 1 has 10, is alone for 6 until
	 * use 2 comes, and takes 8 for the last 4. Use 2 has 4 then, 10 when use 3 comes
	 * at 173; it goes on as the first time. */
	is_str(trace(&b),
		"p load_X 0: 0 0 0 60\n"
		"p load_X 1: 7 7 10 70 seu load_X\n"
		"p load_X 2: 14 14 20 80 seu load_X\n"
		"p load_X 3: 21 21 30 90 seu load_X\n"
		"c.0 use 0: 0 63 63 113 wait load_X\n"
		"c.1 use 1: 0 73 73 133 wait load_X\n"
		"c.0 convert 0: 113 113 113 153\n"
		"c.1 convert 1: 133 133 133 167\n"
		"c.0 use 2: 158 159 159 213\n"
		"c.1 use 3: 172 173 173 233\n"
		"c.0 convert 2: 213 213 213 253\n"
		"c.1 convert 3: 233 233 233 263\n", "a lane with two replicas");
	is_int(b.t->phases[0].events.v[10].tile, 2, "... convert 2 is of the third tile");
	bench_release(&b);
}

/* ---- kernels ------------------------------------------------------------------------- */

/* Between tiles the lane drains all and takes 7 more; behind the last, 100. */
static void begin_price(struct bench *b, struct price *x)
{
	price_init(&b->arena, b->plan, x);
	x->phases[0].plan = b->plan;
	x->phases[0].wait = ARENA_ARRAY(&b->arena, b->plan->waits.n, double);
	x->phases[0].lanes[0] = (struct lane_price){ .tile = 7, .end = 100 };
}

static void run_price(struct bench *b, const struct price *x)
{
	struct sim_options o = { .keep = -1, .price = x };

	timeline_free(b->t);
	b->t = NULL;
	must(b, sim_run(&b->mem, b->plan, &o, NULL, &b->t, &b->e));
}

static void run_loop(struct bench *b, bool stored)
{
	struct price x;

	begin_price(b, &x);
	x.tasks[task(b, "mma.0")] = (struct task_price){ .known = true, .stored_to_shared = stored, .drain = NONE,
		.drain_after = NONE, .before.lane = 3, .after.lane = 6 };
	x.tasks[task(b, "soft.0")] = (struct task_price){ .known = true, .drain = stored ? NONE : 0,
		.drain_after = NONE, .before.lane = 5 };
	memcpy(x.tasks[task(b, "soft.0")].before.ops[0], b->plan->graph->tasks.v[task(b, "soft.0")].work.ops,
		sizeof(x.tasks[0].before.ops[0]));
	run_price(b, &x);
}

/* What a lane does in addition to its sTasks' work. */
static void test_kernels(void)
{
	struct price x;
	struct bench b;

	bench_init(&b);
	ping_pong_program(&b, 2);
	put(&b, "mma.0", "c", 40, 0);
	put(&b, "soft.0", "c", 30, 0);
	run_loop(&b, false);
	/* The product is given to its unit after 3, and issued 4 later; after another 6 the lane
	 * goes on, but softmax drains it. 100 behind the end. */
	is_str(trace(&b),
		"c mma.0 0: 0 0 3 63\n"
		"c soft.0 0: 13 63 63 98 drain mma.0\n"
		"c mma.0 1: 98 98 101 161\n"
		"c soft.0 1: 111 161 161 196 drain mma.0\n", "a lane drains its products");
	is_int(b.t->cycles, 296, "... and has its end");
	ok(b.t->priced, "... and the timeline knows");
	run_loop(&b, true);
	/* the lane stays, and is done 6 after the unit is */
	is_str(trace(&b),
		"c mma.0 0: 0 0 3 69\n"
		"c soft.0 0: 69 69 69 104\n"
		"c mma.0 1: 104 104 107 173\n"
		"c soft.0 1: 173 173 173 208\n", "a product that is stored to shared memory");
	bench_release(&b);

	/* two tiles of two products each */
	bench_init(&b);
	b.device.eus = 1;
	b.device.tile_overhead = 5;
	attention_program(&b, 2, false, 2);
	put(&b, "mma_qk.0", "c", 40, 0);
	begin_price(&b, &x);
	run_price(&b, &x);
	is_str(trace(&b),
		"c mma_qk.0 0: 0 0 0 60\n"
		"c mma_qk.0 1: 4 4 40 100 seu mma_qk.0\n"
		"c mma_qk.0 2: 20 100 100 160 drain mma_qk.0\n"
		"c mma_qk.0 3: 104 104 140 200 seu mma_qk.0\n", "a tile ends when its products do");
	is_int(b.t->cycles, 208, "... and the lane behind the last");
	bench_release(&b);
}

/* ---- tiles over EUs --------------------------------------------------------------- */

/* Two lanes' products of eight instructions each, of which five may be under way: parts of the one
 * come between those of the other. */
static void test_parts(void)
{
	struct price x;
	struct bench b;

	bench_init(&b);
	b.device.seu[MATRIX].depth = 5;
	b.device.seu[MATRIX].step = 0;
	ping_pong_program(&b, 1);
	put(&b, "mma.0", "c0", 40, 0);
	put(&b, "soft.0", "c0", 30, 0);
	put(&b, "mma.1", "c1", 40, 0);
	put(&b, "soft.1", "c1", 30, 0);
	begin_price(&b, &x);
	for (int i = 0; i < 2; i++)
		x.tasks[task(&b, i ? "mma.1" : "mma.0")] = (struct task_price){ .known = true,
			.drain = NONE, .drain_after = NONE, .steps = 8 };
	run_price(&b, &x);
	/* Five parts of 8 cycles, of which three are there at 0: those of c0, then those of c1. c0's
	 * others come at 8 and 16, behind those of c1; then the lane goes on. c1's come at 32 and 40,
	 * from when on the two compute together. */
	is_str(trace(&b),
		"c0 mma.0 0: 0 0 0 84\n"
		"c1 mma.1 0: 0 0 24 100 seu mma.0\n"
		"c0 soft.0 0: 16 16 16 52\n"
		"c1 soft.1 0: 40 40 40 76\n", "a long product lets others in between");
	bench_release(&b);

	/* Three parts each, all that one lane may have there: the last part of mma.0 leaves when that of mma.1 comes. */
	bench_init(&b);
	b.device.seu[MATRIX].depth = 5;
	b.device.seu[MATRIX].step = 0;
	ping_pong_program(&b, 1);
	put(&b, "mma.0", "c", 40, 0);
	put(&b, "mma.1", "c", 40, 0);
	put(&b, "soft.0", "c", 30, 0);
	put(&b, "soft.1", "c", 30, 0);
	begin_price(&b, &x);
	for (int i = 0; i < 2; i++)
		x.tasks[task(&b, i ? "mma.1" : "mma.0")] = (struct task_price){ .known = true, .stored_to_shared = i,
			.drain = NONE, .drain_after = NONE, .steps = 5 };
	run_price(&b, &x);
	is_str(trace(&b),
		"c mma.0 0: 0 0 0 60\n"
		"c mma.1 0: 4 4 40 100 seu mma.0\n"
		"c soft.0 0: 100 100 100 130\n"
		"c soft.1 0: 130 130 130 160\n", "a lane waits for the product that it stores, not for the one before");
	bench_release(&b);
}

/* During a product a lane computes at half its rate; two lanes together use the full rate of the unit. */
static void test_contention(void)
{
	struct bench b;

	bench_init(&b);
	b.device.seu[VECTOR].contention = 0.5;
	ping_pong_program(&b, 1);
	put(&b, "soft.0", "c0", 30, 0);
	put(&b, "mma.1", "c1", 40, 0);
	run(&b);
	/* 20 of 30 by 40, then as fast as ever */
	is_str(trace(&b),
		"c0 soft.0 0: 0 0 0 50\n"
		"c1 mma.1 0: 0 0 0 60\n", "slower during a product");
	bench_release(&b);
	bench_init(&b);
	b.device.seu[VECTOR].contention = 0.5;
	ping_pong_program(&b, 1);
	put(&b, "soft.0", "c0", 30, 0);
	put(&b, "soft.1", "c1", 30, 0);
	put(&b, "mma.1", "c2", 100, 0);
	run(&b);
	is_str(trace(&b),
		"c0 soft.0 0: 0 0 0 60\n"
		"c1 soft.1 0: 0 0 0 60\n"
		"c2 mma.1 0: 0 0 0 127\n", "together as fast as ever");
	bench_release(&b);
}

static void test_waves(void)
{
	struct bench b;

	bench_init(&b);
	b.device.tile_overhead = 10;
	ring_program(&b, 5, 2, 1, 1);
	put(&b, "use", "c", 30, 0);
	run(&b);
	is_int(b.t->phases[0].eus, 2, "five tiles on two EUs");
	is_int(b.t->phases[0].tiles, 5, "... are five");
	is_int(b.t->cycles, 3 * 60 + 2 * 10, "... and three of them take the time");
	is_int(b.t->nevents, 6 + 4, "... both sorts of EUs are played");
	is_int(b.t->phases[0].events.n, 6, "... the slower one is shown");
	is_near(b.t->phases[0].ii, 30, 0, "... the time between tiles is no part of the II");
	is_near(b.t->seconds, 200e-9, 1e-15, "... in seconds");
	bench_release(&b);

	bench_init(&b);
	ring_program(&b, 1, 2, 1, 1);
	put(&b, "use", "c", 30, 0);
	run(&b);
	is_int(b.t->phases[0].eus, 1, "one tile makes one EU work");
	bench_release(&b);
}

/* m tiles 0, 1, 2, 3 make 1, 2, 3, 4 iterations. */
static void causal_program(struct bench *b, int64_t tiles)
{
	int m = axis(b, "m", tiles, 1), k = axis(b, "k", tiles, 1);
	int x = tensor(b, TENSOR_INPUT, "X", 2, (int[]){ m, k });
	int out = tensor(b, TENSOR_OUTPUT, "S", 1, &m), s = carry(b, "s", 1, &m), v;
	struct index_expr upto = index_axis(m);

	begin_loop(b, k, &upto);
	v = load(b, x);
	begin_task(b, "use");
	accumulate(b, s, sum(b, v, k));
	end_task(b);
	end_loop(b);
	begin_task(b, "convert");
	v = cast(b, get(b, s), DT_BF16);
	end_task(b);
	store(b, out, v);
	make_graph(b, 1);
}

static const char *assigned_tiles(struct bench *b)
{
	struct tile_assignment d;
	struct buf out;

	plan_assign_tiles(&b->arena, b->plan, 0, &d);
	buf_init(&out, &b->arena);
	for (int u = 0; u < d.eus; u++) {
		buf_puts(&out, u ? " |" : "");
		for (int64_t t = d.start[u]; t < d.start[u + 1]; t++)
			buf_printf(&out, " %lld", (long long)d.order[t]);
	}
	return out.text;
}

static void grid(struct bench *b, int eus, enum raster raster, int group, bool longest_first)
{
	struct grid_plan g = { .eus = eus, .raster = raster, .group = group,
		.longest_first = longest_first, .cluster = 1, .keep = 1, .along = NONE };

	must(b, plan_grid(b->plan, &g, NOWHERE, &b->e));
}

static void test_longest_first(void)
{
	struct bench b;

	bench_init(&b);
	causal_program(&b, 4);
	put(&b, "use", "c", 30, 0);
	is_str(assigned_tiles(&b), " 0 2 | 1 3", "tile t goes to EU t mod n");
	run(&b);
	is_int(b.t->cycles, 180, "... and the EU with tiles 1 and 3 takes six iterations");
	is_int(b.t->nevents, 4 + 6, "... both EUs are played");
	grid(&b, 0, RASTER_ROWS, 1, true);
	is_str(assigned_tiles(&b), " 3 0 | 2 1", "longest first: the next goes to the first free EU");
	run(&b);
	is_int(b.t->cycles, 150, "... and both take five");
	is_int(b.t->phases[0].events.n, 5, "... of which one is shown");
	is_int(b.t->phases[0].events.v[4].tile, 1, "... the last is of the second tile");
	b.plan->grid.section = 2;
	is_str(assigned_tiles(&b), " 1 2 | 0 3", "in sections of two: first those of the first section");
	b.plan->grid.section = 3;
	is_str(assigned_tiles(&b), " 2 3 | 1 0", "in sections of three");
	b.plan->grid.section = 5;
	is_str(assigned_tiles(&b), " 3 0 | 2 1", "a section that has all tiles is as none");
	b.plan->grid.section = 1;
	is_str(assigned_tiles(&b), " 0 2 | 1 3", "sections of one: each in order, to the EU with the least");
	b.plan->grid.section = 0;
	b.plan->grid.dynamic = true;
	is_str(assigned_tiles(&b), " 3 0 | 2 1", "by a counter, longest first: as without");
	b.plan->grid.longest_first = false;
	is_str(assigned_tiles(&b), " 0 2 | 1 3", "... in order: the EU with the shortest tile takes the next");
	is_int(plan_own_tiles(&b.arena, b.plan, 0), 1, "... each asks for its second tile");
	is_int(plan_most_tiles(&b.arena, b.plan, 0), 3, "... one may take all but the other's first");
	b.plan->grid.dynamic = false;
	bench_release(&b);

	/* 40 tiles on 40 EUs make 40 classes; not all are played, but the slowest is */
	bench_init(&b);
	b.device.eus = 40;
	causal_program(&b, 40);
	put(&b, "use", "c", 10, 0);
	run(&b);
	is_int(b.t->cycles, 400, "of many classes the slowest is played");
	ok(b.t->nevents < 40 * 41 / 2, "... and not all are");
	bench_release(&b);
}

/* The same plan, as the search simulates it. */
static void run_rough(struct bench *b, struct timeline **out)
{
	struct sim_options o = { .rough = true };

	*out = NULL;
	must(b, sim_run(&b->mem, b->plan, &o, NULL, out, &b->e));
}

/* Of very many equal tiles a rough simulation plays the first ones, and takes the others to be like them. */
static void test_samples(void)
{
	struct prng r = { 7 };
	double worst = 0;
	int64_t played = 0, all = 0;

	for (int round = 0; round < 60; round++) {
		struct timeline *rough;
		struct bench b;

		bench_init(&b);
		ring_program(&b, 400 + (int64_t)prng_below(&r, 20), 1 + (int64_t)prng_below(&r, 4), 1, 1);
		put(&b, "load_X", "p", 10 + (double)prng_below(&r, 60), 0);
		put(&b, "use", "c", 10 + (double)prng_below(&r, 60), 0);
		put(&b, "convert", "c", 10 + (double)prng_below(&r, 60), 0);
		put(&b, "store_S", "c", 10 + (double)prng_below(&r, 60), 0);
		versions(&b, "X", 1 + (int)prng_below(&r, 4));
		must(&b, plan_repair_waits(b.plan, NULL, NULL, 0, NULL, NULL, &b.e));
		b.plan->lanes.v[1].replicas = 1 + (int)prng_below(&r, 3);
		run(&b);
		run_rough(&b, &rough);
		worst = fmax(worst, fabs((double)rough->cycles / (double)b.t->cycles - 1));
		played += rough->nevents;
		all += b.t->nevents;
		timeline_free(rough);
		bench_release(&b);
	}
	diag("%g off", worst);
	ok(worst < 1e-3, "of very many equal tiles, a few tell how long all take");
	ok(played * 4 < all, "... and are played instead of all");

	struct timeline *rough;
	struct bench b;
	bench_init(&b);
	causal_program(&b, 200);
	put(&b, "use", "c", 30, 0);
	run(&b);
	run_rough(&b, &rough);
	is_int(rough->cycles, b.t->cycles, "... but not if tiles differ");
	timeline_free(rough);
	bench_release(&b);
}

static void test_raster(void)
{
	struct bench b;
	int m, n, x, out;

	bench_init(&b);
	m = axis(&b, "m", 3, 1);
	n = axis(&b, "n", 4, 1);
	x = tensor(&b, TENSOR_INPUT, "X", 2, (int[]){ m, n });
	out = tensor(&b, TENSOR_OUTPUT, "Y", 2, (int[]){ m, n });
	store(&b, out, load(&b, x));
	make_graph(&b, 1);
	grid(&b, 1, RASTER_ROWS, 1, false);
	is_str(assigned_tiles(&b), " 0 1 2 3 4 5 6 7 8 9 10 11", "by rows");
	grid(&b, 1, RASTER_COLUMNS, 1, false);
	is_str(assigned_tiles(&b), " 0 4 8 1 5 9 2 6 10 3 7 11", "by columns");
	grid(&b, 1, RASTER_ROWS, 2, false);
	is_str(assigned_tiles(&b), " 0 4 1 5 2 6 3 7 8 9 10 11", "two rows together");
	grid(&b, 1, RASTER_COLUMNS, 2, false);
	is_str(assigned_tiles(&b), " 0 1 4 5 8 9 2 3 6 7 10 11", "two columns together");
	grid(&b, 1, RASTER_COLUMNS, 100, false);
	is_str(assigned_tiles(&b), " 0 1 2 3 4 5 6 7 8 9 10 11", "more together than there are");
	grid(&b, 2, RASTER_ROWS, 2, false);
	is_str(assigned_tiles(&b), " 0 1 2 3 8 10 | 4 5 6 7 9 11", "two rows together over two EUs");
	bench_release(&b);
}

/* A 5 x 3 grid; Y needs X[m], which is the same along n, and Z[n]. */
static void grid_program(struct bench *b)
{
	int m, n, x, z, out;

	b->device.eus = 4;
	m = axis(b, "m", 5, 1);
	n = axis(b, "n", 3, 1);
	x = tensor(b, TENSOR_INPUT, "X", 1, &m);
	z = tensor(b, TENSOR_INPUT, "Z", 1, &n);
	out = tensor(b, TENSOR_OUTPUT, "Y", 2, (int[]){ m, n });
	store(b, out, add(b, load(b, x), load(b, z)));
	make_graph(b, 1);
}

static void clusters(struct bench *b, enum raster raster, int group, int size, bool longest_first)
{
	struct grid_plan g = { .raster = raster, .group = group, .cluster = size, .keep = 1, .along = NONE,
		.longest_first = longest_first };

	must(b, plan_grid(b->plan, &g, NOWHERE, &b->e));
}

static void test_clusters(void)
{
	struct bench b;
	struct tile_assignment d;

	bench_init(&b);
	grid_program(&b);
	clusters(&b, RASTER_ROWS, 2, 2, false);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	is_int(d.cluster, 1, "nothing is loaded yet, so there are no clusters");
	put(&b, "load_X", "p", 10, 0);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	is_int(d.cluster, 1, "along m, X is no tile's neighbour's");
	put(&b, "load_Z", "p", 10, 0);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	is_int(d.cluster, 2, "Z is");
	is_int(d.total, 18, "... and groups of the fifth row are filled up");
	is_str(assigned_tiles(&b), " 0 2 7 12 14 | 3 5 10 12 14 | 1 6 8 13 | 4 9 11 13",
		"groups of two rows, a row to each EU; the last alone, twice");
	clusters(&b, RASTER_ROWS, 1, 2, false);
	is_str(assigned_tiles(&b), " 0 3 6 9 12 | 1 4 7 10 13 | 2 5 8 11 14 | 2 5 8 11 14",
		"along n by rows one at a time");
	clusters(&b, RASTER_COLUMNS, 1, 4, false);
	is_str(assigned_tiles(&b), " 0 12 1 13 2 14 | 3 12 4 13 5 14 | 6 12 7 13 8 14 | 9 12 10 13 11 14",
		"four rows of a column");
	clusters(&b, RASTER_ROWS, 2, 2, true);
	is_str(assigned_tiles(&b), " 0 2 7 12 14 | 3 5 10 12 14 | 1 6 8 13 | 4 9 11 13",
		"longest first where all are equal");
	is_int(plan_eus(b.plan, 0), 4, "all EUs");
	b.device.cluster_eus = 3;
	is_int(plan_eus(b.plan, 0), 4, "pairs fit everywhere");
	clusters(&b, RASTER_ROWS, 2, 3, false);
	is_int(plan_eus(b.plan, 0), 3, "clusters of three where they fit");
	bench_release(&b);
}

/* What a cluster shares leaves L2 once. */
static void test_shared_loads(void)
{
	const struct entry_cost *own, *both;
	struct bench b;
	struct tile_assignment d;

	bench_init(&b);
	grid_program(&b);
	b.device.l2_rate = 64;		/* 16 bytes a cycle and EU */
	b.device.l2_eu_rate = 24;
	put(&b, "load_X", "p", 10, 0);
	put(&b, "load_Z", "p", 10, 0);
	b.g->tasks.v[task(&b, "load_X")].work.global_bytes = 960;
	b.g->tasks.v[task(&b, "load_Z")].work.global_bytes = 960;
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	own = traffic_plain(&b.arena, b.plan, 0, &d);
	is_near(own[0].cost.memory, 60, 1e-9, "an EU alone draws its share of L2");
	clusters(&b, RASTER_ROWS, 2, 2, false);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	both = traffic_plain(&b.arena, b.plan, 0, &d);
	is_near(both[0].cost.memory, 60, 1e-9, "so it does of what is its own");
	is_near(both[1].cost.memory, 40, 1e-9, "what two share comes as fast as one can take it");
	b.device.l2_eu_rate = 64;
	both = traffic_plain(&b.arena, b.plan, 0, &d);
	is_near(both[1].cost.memory, 30, 1e-9, "... in half the time at most");
	bench_release(&b);
}

/* ---- loops ------------------------------------------------------------------------ */

/* For each j: load a row's factor, sum over k, then add to the total. */
static void test_nested(void)
{
	struct bench b;
	int m, j, k, x, y, out, s, t, u, v;

	bench_init(&b);
	m = axis(&b, "m", 1, 1);
	j = axis(&b, "j", 2, 1);
	k = axis(&b, "k", 2, 1);
	x = tensor(&b, TENSOR_INPUT, "X", 2, (int[]){ m, j });
	y = tensor(&b, TENSOR_INPUT, "Y", 3, (int[]){ m, j, k });
	out = tensor(&b, TENSOR_OUTPUT, "S", 1, &m);
	t = carry(&b, "t", 1, &m);
	begin_loop(&b, j, NULL);
	u = load(&b, x);
	s = carry(&b, "s", 1, &m);
	begin_loop(&b, k, NULL);
	v = load(&b, y);
	begin_task(&b, "inner");
	accumulate(&b, s, sum(&b, sum(&b, v, k), j));
	end_task(&b);
	end_loop(&b);
	begin_task(&b, "outer");
	accumulate(&b, t, add(&b, get(&b, s), sum(&b, u, j)));
	end_task(&b);
	end_loop(&b);
	begin_task(&b, "convert");
	v = cast(&b, get(&b, t), DT_BF16);
	end_task(&b);
	store(&b, out, v);
	make_graph(&b, 1);
	put(&b, "load_X", "p", 10, 0);
	put(&b, "load_Y", "p", 10, 0);
	put(&b, "inner", "c", 30, 0);
	put(&b, "outer", "d", 5, 0);
	put(&b, "convert", "d", 1, 0);
	versions(&b, "Y", 2);
	versions(&b, "s", 2);
	wait_for(&b, "load_X", "outer", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "load_Y", "inner", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "inner", "load_Y", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "inner", "outer", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "outer", "load_X", DISTANCE_AUTO, WAIT_COMPLETE);
	wait_for(&b, "outer", "inner", DISTANCE_AUTO, WAIT_COMPLETE);
	run(&b);
	/* The sum s crosses from c to d in registers: the last of each pair of "inner"
	 * takes 7 more to be handed over. load_X 1 waits for "outer" 0. */
	is_str(trace(&b),
		"p load_X 0: 0 0 0 60\n"
		"p load_Y 0: 2 2 10 70 seu load_X\n"
		"p load_Y 1: 4 4 20 80 seu load_Y\n"
		"c inner 0: 0 73 73 103 wait load_Y\n"
		"c inner 1: 103 104 104 141\n"
		"d outer 0: 0 144 144 149 wait inner\n"
		"p load_X 1: 6 152 152 212 wait outer\n"
		"p load_Y 2: 154 155 162 222 seu load_X\n"
		"p load_Y 3: 157 158 172 232 seu load_Y\n"
		"c inner 2: 141 225 225 255 wait load_Y\n"
		"c inner 3: 255 256 256 293\n"
		"d outer 1: 149 296 296 301 wait inner\n"
		"d convert 0: 301 301 301 302\n", "a loop in a loop");
	is_int(b.t->phases[0].ii_loop, 1, "... the inner one is the busiest");
	bench_release(&b);
}

/* Two loads ahead by offset instead of on a lane of their own. */
static void test_offsets(void)
{
	struct bench b;

	bench_init(&b);
	ring_program(&b, 1, 4, 1, 1);
	put(&b, "load_X", "c", 10, 2);
	put(&b, "use", "c", 30, 0);
	versions(&b, "X", 3);
	wait_for(&b, "use", "load_X", DISTANCE_AUTO, WAIT_COMPLETE);
	run(&b);
	is_str(trace(&b),
		"c load_X 0: 0 0 0 60\n"
		"c load_X 1: 2 2 10 70 seu load_X\n"
		"c load_X 2: 4 4 20 80 seu load_X\n"
		"c use 0: 6 60 60 90 wait load_X\n"
		"c load_X 3: 90 90 90 150\n"
		"c use 1: 92 93 93 123\n"
		"c use 2: 123 124 124 154\n"
		"c use 3: 154 155 155 185\n", "loads two iterations ahead on the same lane");
	bench_release(&b);
}

/* ---- other costs ------------------------------------------------------------------ */

static void test_memory(void)
{
	struct bench b;
	struct work *w;

	bench_init(&b);
	b.device.l2_eu_rate = 2;
	b.device.global_latency = 40;
	ring_program(&b, 1, 3, 1, 1);
	put(&b, "load_X", "p", 10, 0);
	w = &b.g->tasks.v[task(&b, "load_X")].work;
	w->global_bytes = 60;
	run(&b);
	is_str(trace(&b),
		"p load_X 0: 0 0 0 120\n"
		"p load_X 1: 2 2 10 150 memory load_X\n"
		"p load_X 2: 4 4 20 180 memory load_X\n", "copies queue for the memory share");
	is_near(b.t->phases[0].memory_share, 0.5, 1e-9, "... which is at work half of the time");
	is_int(b.t->phases[0].binding_seu, SEU_MAX, "... and bounds the interval");
	is_near(b.t->phases[0].res_mii, 30, 1e-9, "... at 30 cycles");
	bench_release(&b);
}

static void test_synchronous_matrix(void)
{
	struct bench b;

	bench_init(&b);
	b.device.seu[MATRIX].async = false;
	ping_pong_program(&b, 1);
	lane(&b, "c0", 4, 1);
	lane(&b, "c1", 1, 1);
	put(&b, "mma.0", "c0", 40, 0);
	put(&b, "soft.0", "c0", 50, 0);
	put(&b, "mma.1", "c1", 40, 0);
	put(&b, "soft.1", "c1", 10, 0);
	run(&b);
	/* a lane of one warp reaches a quarter of the unit: 160 cycles instead of 40 */
	is_str(trace(&b),
		"c0 mma.0 0: 0 0 0 60\n"
		"c1 mma.1 0: 0 0 40 220 seu mma.0\n"
		"c0 soft.0 0: 60 60 60 110\n"
		"c1 soft.1 0: 220 220 220 260\n", "a synchronous unit holds the lane");
	bench_release(&b);
}

/* What may run ahead does, however far: the ring of times grows. */
static void test_run_ahead(void)
{
	struct bench b;

	bench_init(&b);
	ring_program(&b, 1, 1000, 1, 1);
	put(&b, "load_X", "p", 10, 0);
	put(&b, "use", "c", 30, 0);
	wait_for(&b, "use", "load_X", DISTANCE_AUTO, WAIT_COMPLETE);
	run(&b);
	is_int(b.t->cycles, 63 + 30 + 999 * 31, "a producer that nobody holds back");
	bench_release(&b);
}

/* ---- the L2 ----------------------------------------------------------------------- */

static void test_traffic(void)
{
	struct bench b;
	struct tile_assignment d;
	const struct fetched *share;
	int m, n, k, x, y, out, acc, v;

	bench_init(&b);
	b.device.eus = 4;
	m = axis(&b, "m", 64, 16);
	n = axis(&b, "n", 64, 16);
	k = axis(&b, "k", 64, 16);
	x = tensor(&b, TENSOR_INPUT, "A", 2, (int[]){ m, k });
	y = tensor(&b, TENSOR_INPUT, "B", 2, (int[]){ n, k });
	out = tensor(&b, TENSOR_OUTPUT, "C", 2, (int[]){ m, n });
	acc = carry(&b, "acc", 2, (int[]){ m, n });
	begin_loop(&b, k, NULL);
	v = product(&b, "mma", load(&b, x), load(&b, y));
	must(&b, program_accumulate(b.p, acc, v, NOWHERE, &b.e));
	end_loop(&b);
	begin_task(&b, "convert");
	v = cast(&b, get(&b, acc), DT_BF16);
	end_task(&b);
	store(&b, out, v);
	make_graph(&b, 1);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	share = traffic_fetched(&b.arena, b.plan, 0, &d, NULL);
	is_near(share[task(&b, "load_A")].share, 0.25, 1e-9, "all in L2: each row of A once for 4 tiles");
	is_near(share[task(&b, "load_B")].share, 0.25, 1e-9, "... and each of B");
	is_near(share[task(&b, "store_C")].share, 1, 0, "... what is stored goes all the way");
	b.device.l2_bytes = 2 * (3 * 64 * 64 * 2) - 1;
	share = traffic_fetched(&b.arena, b.plan, 0, &d, NULL);
	is_near(share[task(&b, "load_A")].share, 0.25, 1e-9, "a byte too small: a wave has one row");
	is_near(share[task(&b, "load_B")].share, 1, 1e-9, "... and four columns");
	grid(&b, 0, RASTER_ROWS, 2, false);
	plan_assign_tiles(&b.arena, b.plan, 0, &d);
	share = traffic_fetched(&b.arena, b.plan, 0, &d, NULL);
	is_near(share[task(&b, "load_A")].share, 0.5, 1e-9, "two rows together: two rows");
	is_near(share[task(&b, "load_B")].share, 0.5, 1e-9, "... and two columns");
	is_near(share[task(&b, "load_A")].times, 1, 1e-9, "... each once");
	b.device.l2_again = 0.5;
	share = traffic_fetched(&b.arena, b.plan, 0, &d, NULL);
	is_near(share[task(&b, "load_A")].share, 0.5, 1e-9, "as many bytes");
	is_near(share[task(&b, "load_A")].times, 1.5, 1e-9,
		"... that take longer, as two EUs ask for them");
	bench_release(&b);
}

/* Tiles that differ in m add to the same elements of T. */
static void test_additions(void)
{
	struct bench b;
	struct tile_assignment d;
	const struct fetched *of;
	int m, n, t, u;

	bench_init(&b);
	b.device.eus = 4;
	m = axis(&b, "m", 8, 1);
	n = axis(&b, "n", 64, 32);
	t = tensor(&b, TENSOR_OUTPUT, "T", 1, &n);
	u = tensor(&b, TENSOR_OUTPUT, "U", 2, (int[]){ m, n });
	b.p->tensors.v[t].type = b.p->tensors.v[u].type = DT_F32;
	must(&b, program_phase_begin(b.p, "zero", NOWHERE, &b.e));
	begin_task(&b, "zeros");
	int zeros = cast(&b, make_op(b.p, OP_MUL, make_index(b.p, n), make_const(b.p, 0), NONE), DT_F32);
	int all = cast(&b, make_op(b.p, OP_ADD, make_index(b.p, m), make_index(b.p, n), NONE), DT_F32);
	end_task(&b);
	store(&b, t, zeros);
	store(&b, u, all);
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	must(&b, program_phase_begin(b.p, "add", NOWHERE, &b.e));
	must(&b, program_batch(b.p, m, NOWHERE, &b.e));
	begin_task(&b, "ones");
	int ones = cast(&b, make_index(b.p, n), DT_F32);
	end_task(&b);
	struct index_expr to_t = index_axis(n), to_u[2] = { index_axis(m), index_axis(n) };
	must(&b, program_add(b.p, "add_t", t, &to_t, ones, NOWHERE, &b.e));
	must(&b, program_add(b.p, "add_u", u, to_u, ones, NOWHERE, &b.e));
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	make_graph(&b, 1);
	plan_assign_tiles(&b.arena, b.plan, 1, &d);
	of = traffic_fetched(&b.arena, b.plan, 1, &d, NULL);
	is_near(of[task(&b, "add_t")].region, 64 * 4 + 4 * 32 * 4, 1e-9, "EUs add to all of T, and each to its own part of U");
	is_near(of[task(&b, "add_u")].region, of[task(&b, "add_t")].region, 0, "... one after the other");
	is_near(of[task(&b, "add_t")].share, 1 / 8.0, 1e-9, "T stays in L2, and is written back once");
	is_near(of[task(&b, "add_u")].share, 1, 1e-9, "... as all of U");
	b.device.l2_bytes = 64;
	of = traffic_fetched(&b.arena, b.plan, 1, &d, NULL);
	is_near(of[task(&b, "add_t")].share, 0.5, 1e-9, "T does not stay there: two EUs add to each half of it at the same time");
	bench_release(&b);
}

/* A temporary that one phase leaves in L2 for the next. */
static void test_phases(void)
{
	struct bench b;
	struct tile_assignment d;
	int m, x, t, y;

	bench_init(&b);
	m = axis(&b, "m", 4, 1);
	x = tensor(&b, TENSOR_INPUT, "X", 1, &m);
	t = tensor(&b, TENSOR_TEMP, "T", 1, &m);
	y = tensor(&b, TENSOR_OUTPUT, "Y", 1, &m);
	must(&b, program_phase_begin(b.p, "first", NOWHERE, &b.e));
	store(&b, t, load(&b, x));
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	must(&b, program_phase_begin(b.p, "second", NOWHERE, &b.e));
	store(&b, y, load(&b, t));
	must(&b, program_phase_end(b.p, NOWHERE, &b.e));
	make_graph(&b, 1);
	plan_assign_tiles(&b.arena, b.plan, 1, &d);
	is_near(traffic_fetched(&b.arena, b.plan, 0, &d, NULL)[task(&b, "load_X")].share, 1, 0,
		"an input comes from device memory");
	is_near(traffic_fetched(&b.arena, b.plan, 1, &d, NULL)[task(&b, "load_T")].share, 0, 0,
		"... a temporary that fits does not");
	put(&b, "load_X", "p", 10, 0);
	put(&b, "store_Y", "p", 20, 0);
	run(&b);
	is_int(b.t->nphases, 2, "two phases");
	is_int(b.t->phases[0].cycles, 70, "... two tiles' loads for each EU");
	is_int(b.t->phases[1].cycles, 90, "... then two tiles' stores");
	is_int(b.t->cycles, 160, "... one after the other");
	is_int(b.t->phases[1].ii_loop, NONE, "... without a loop");
	is_near(b.t->phases[1].ii, 20, 0, "... the interval is that of tiles");
	bench_release(&b);
}

/* ---- refusals --------------------------------------------------------------------- */

static void test_refusals(void)
{
	struct bench b;
	struct sim_options o = { .max_events = 5 };
	volatile int flag = 1;
	struct stop stop = { &flag };
	struct timeline *t;

	bench_init(&b);
	ring_program(&b, 1, 5000, 1, 1);
	put(&b, "load_X", "p", 10, 0);
	put(&b, "use", "c", 30, 0);
	wait_for(&b, "load_X", "use", 0, WAIT_COMPLETE);
	wait_for(&b, "use", "load_X", 0, WAIT_COMPLETE);
	is_int(sim_run(&b.mem, b.plan, NULL, NULL, &t, &b.e), ERR_ILLEGAL, "a standstill is found");
	is_str(b.e.msg, "the plan comes to a standstill; lane 'p' stands at 'load_X' 0 and waits "
		"for 'use' 0 to be complete; lane 'c' stands at 'use' 0 and waits for 'load_X' 0 "
		"to be complete", "... and named");
	ok(t == NULL, "... without a timeline");
	must(&b, plan_unwait(b.plan, task(&b, "load_X"), task(&b, "use"), NOWHERE, &b.e));
	wait_for(&b, "load_X", "convert", 0, WAIT_ISSUED);
	is_int(sim_run(&b.mem, b.plan, NULL, NULL, &t, &b.e), ERR_ILLEGAL, "so is a wait for what "
		"is on no lane");
	is_str(b.e.msg, "the plan comes to a standstill; lane 'p' stands at 'load_X' 0 and waits "
		"for 'convert' 0 to be issued, which no lane runs; lane 'c' stands at 'use' 0 and "
		"waits for 'load_X' 0 to be complete", "... and named");
	must(&b, plan_unwait(b.plan, task(&b, "load_X"), task(&b, "convert"), NOWHERE, &b.e));
	is_int(sim_run(&b.mem, b.plan, &o, NULL, &t, &b.e), ERR_LIMIT, "too many events");
	is_str(b.e.msg, "phase 'main' takes more than 5 events to simulate; choose larger tiles "
		"or a smaller problem", "... is suggested");
	is_int(sim_run(&b.mem, b.plan, NULL, &stop, &t, &b.e), ERR_INTERRUPTED, "a stop is heard");
	o = (struct sim_options){ .max_events = 10000, .keep = 3 };
	is_int(sim_run(&b.mem, b.plan, &o, NULL, &b.t, &b.e), OK, "just enough events");
	is_int(b.t->phases[0].events.n, 3, "... of which three are kept");
	timeline_free(b.t);
	o.keep = 0;
	is_int(sim_run(&b.mem, b.plan, &o, NULL, &b.t, &b.e), OK, "again");
	is_int(b.t->phases[0].events.n, 0, "... keeping none");
	bench_release(&b);
}

/* ---- random plans ----------------------------------------------------------------- */

/* Event of each instance: at[first[task] + seq]. */
struct played {
	const struct event **at;
	int *first;
	struct walk walk;
};

static void index_events(struct bench *b, struct played *x)
{
	const struct phase_line *l = &b->t->phases[0];
	struct tile_assignment d;
	int total = 0;

	plan_assign_tiles(&b->arena, b->plan, 0, &d);
	walk_init(&b->arena, &x->walk, b->g, 0, (int)d.total, d.order);
	x->first = ARENA_ARRAY(&b->arena, b->g->tasks.n, int);
	for (int i = 0; i < b->g->tasks.n; i++) {
		x->first[i] = total;
		total += (int)walk_count(&x->walk, b->g->tasks.v[i].loop);
	}
	x->at = ARENA_ARRAY(&b->arena, total, const struct event *);
	for (int i = 0; i < l->events.n; i++)
		x->at[x->first[l->events.v[i].task] + l->events.v[i].seq] = &l->events.v[i];
}

/* Waits that an event did not keep, by order.h's own reading of them. */
static int broken_waits(const struct bench *b, const struct played *x, const struct event *e)
{
	int broken = 0;

	for (int i = 0; i < b->plan->waits.n; i++) {
		const struct wait *w = &b->plan->waits.v[i];
		struct span spans[SPANS_MAX];
		int n = 0;

		if (w->task == e->task)
			n = walk_wait_spans(&x->walk, b->plan, w, e->seq, spans);
		for (int k = 0; k < n; k++) {
			for (int64_t s = spans[k].first; s < spans[k].last; s++) {
				const struct event *on = x->at[x->first[w->on] + s];
				int64_t seen = on->lane == e->lane ? 0 : 3;

				broken += w->when == WAIT_ISSUED ? on->issue > e->issue :
					on->end + seen > e->issue;
			}
		}
	}
	return broken;
}

/* Dependences that an event did not keep. */
static int broken_edges(const struct bench *b, const struct played *x, const struct event *e)
{
	int broken = 0;

	for (int i = 0; i < b->g->edges.n; i++) {
		const struct edge *d = &b->g->edges.v[i];
		struct span span = { 0 };

		if (d->to == e->task)
			span = walk_edge_span(&x->walk, b->plan, d, e->seq);
		for (int64_t k = span.first; k < span.last; k++) {
			const struct event *from = x->at[x->first[d->from] + k];
			bool queue = d->chain || (from->seu == e->seu && from->lane == e->lane &&
				b->device.seu[e->seu].ordered && b->device.seu[e->seu].async);

			broken += queue ? from->start > e->start : from->end > e->start;
		}
	}
	return broken;
}

/* Events that are not in the order of their lane, and those that are missing. */
static int broken_order(struct bench *b, const struct played *x)
{
	int broken = 0;

	for (int l = 0; l < b->plan->lanes.n; l++) {
		for (int copy = 0; copy < b->plan->lanes.v[l].replicas; copy++) {
			struct cursor *c = cursor_new(&b->arena, b->plan, &x->walk, l, copy);
			struct instance i;
			int64_t time = 0;

			while (cursor_next(c, &i)) {
				int t = b->plan->entries.v[i.entry].task;
				const struct event *e = x->at[x->first[t] + i.seq];

				broken += !e || e->ready < time || e->issue < e->ready ||
					e->start < e->issue || e->end < e->start ||
					e->lane != l || e->replica != copy;
				time = b->device.seu[e->seu].async ? e->issue : e->end;
			}
		}
	}
	return broken;
}

static bool has(const struct problems *p, enum problem_code code)
{
	for (int i = 0; i < p->v.n; i++)
		if (p->v.v[i].code == code)
			return true;
	return false;
}

static void test_random_plans(void)
{
	struct prng r = { 1 };
	int legal = 0, stuck = 0, waits = 0, edges = 0, order = 0;

	for (int round = 0; round < 1000; round++) {
		struct problems problems = { 0 };
		struct usage usage;
		struct played x;
		struct bench b;
		const struct phase_line *l;
		bool causal;

		bench_init(&b);
		b.device.eus = 1;
		causal = prng_below(&r, 2);
		attention_program(&b, 3, causal, 1 + (int)prng_below(&r, 2));
		random_plan(&b, &r);
		must(&b, plan_check(b.plan, &b.arena, NULL, &problems, &usage, &b.e));
		if (problems.v.n) {
			stuck += has(&problems, PROBLEM_DEADLOCK) ==
				!sim_run(&b.mem, b.plan, NULL, NULL, &b.t, &b.e);
			bench_release(&b);
			continue;
		}
		legal++;
		run(&b);
		index_events(&b, &x);
		l = &b.t->phases[0];
		for (int i = 0; i < l->events.n; i++) {
			waits += broken_waits(&b, &x, &l->events.v[i]);
			edges += broken_edges(&b, &x, &l->events.v[i]);
		}
		order += broken_order(&b, &x);
		bench_release(&b);
	}
	diag("%d legal plans", legal);
	ok(legal > 100, "of random plans, some are legal");
	is_int(stuck, 0, "... those come to a standstill that the checker says it of");
	is_int(waits, 0, "... in a legal one every wait is kept");
	is_int(edges, 0, "... and every dependence");
	is_int(order, 0, "... and every lane's order");
}

int main(void)
{
	test_rings();
	test_lookup();
	test_steady();
	test_moments();
	test_sharing();
	test_by_age();
	test_late_comer();
	test_ping_pong();
	test_replicas();
	test_kernels();
	test_parts();
	test_contention();
	test_waves();
	test_longest_first();
	test_samples();
	test_raster();
	test_clusters();
	test_shared_loads();
	test_nested();
	test_offsets();
	test_memory();
	test_synchronous_matrix();
	test_run_ahead();
	test_traffic();
	test_additions();
	test_phases();
	test_refusals();
	test_random_plans();
	return tap_done();
}
