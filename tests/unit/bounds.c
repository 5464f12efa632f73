/* Lower bounds of small loops, worked out by hand, and of random ones against what
 * the simulator makes of them. */
#include "sim/bounds.h"

#include "tests/unit/sim_bench.h"

static void bound(struct bench *b, int loop, struct bounds *out)
{
	plan_bounds(&b->arena, b->plan, 0, loop, out);
}

static const char *cycle_names(struct bench *b, const struct bounds *x)
{
	struct buf out;

	buf_init(&out, &b->arena);
	for (int i = 0; i < x->ncycle; i++)
		buf_printf(&out, "%s%s", i ? " " : "", b->g->tasks.v[x->cycle[i]].name);
	return out.len ? out.text : "";
}

static void make_ring(struct bench *b, double load_cycles, double use_cycles)
{
	bench_init(b);
	ring_program(b, 2, 10, 1, 1);
	put(b, "load_X", "p", load_cycles, 0);
	put(b, "use", "c", use_cycles, 0);
}

static void test_ring(void)
{
	struct bounds x;
	struct bench b;

	/* 10 and 50 for the load, 30 for the use, and each is seen after 2 at least */
	make_ring(&b, 10, 30);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 94, 1e-9, "a ring of one version is a recurrence");
	ok(!strcmp(cycle_names(&b, &x), "load_X use") || !strcmp(cycle_names(&b, &x),
		"use load_X"), "... of the load and the use");
	is_near(x.res_mii, 30, 1e-9, "... the use is the busiest");
	is_str(binding_name(b.plan, x.binding_seu), "vector", "... on its unit");
	versions(&b, "X", 2);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 47, 1e-9, "two versions halve it");
	versions(&b, "X", 4);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 30, 1e-9, "with four it is the sum that goes from use to use");
	is_str(cycle_names(&b, &x), "use", "... alone");
	bench_release(&b);

	/* on one lane there is nobody to tell */
	bench_init(&b);
	ring_program(&b, 2, 10, 1, 1);
	put(&b, "load_X", "c", 10, 0);
	put(&b, "use", "c", 30, 0);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 90, 1e-9, "a ring on one lane");
	is_near(x.res_mii, 32, 1e-9, "... which issues the load and is held by the use");
	is_str(binding_name(b.plan, x.binding_seu), "c", "... so the lane bounds it");
	bench_release(&b);
}

static void test_resources(void)
{
	struct bounds x;
	struct bench b;

	make_ring(&b, 40, 30);
	bound(&b, 0, &x);
	is_near(x.res_mii, 40, 1e-9, "four boxes of ten cycles");
	is_str(binding_name(b.plan, x.binding_seu), "copy", "... of the copy engine");
	b.device.l2_eu_rate = 2;
	b.g->tasks.v[task(&b, "load_X")].work.global_bytes = 100;
	bound(&b, 0, &x);
	is_near(x.res_mii, 50, 1e-9, "a hundred bytes at two a cycle");
	is_int(x.binding_seu, BINDING_MEMORY, "... of the memory share");
	is_str(binding_name(b.plan, x.binding_seu), "memory", "... by name");
	b.device.seu[VECTOR].lane_share = 0.5;
	bound(&b, 0, &x);
	is_near(x.res_mii, 60, 1e-9, "a lane that draws half of the vector unit");
	is_int(x.binding_seu, BINDING_LANE + plan_find_lane(b.plan, "c"), "... is held longest");
	lane(&b, "c", 4, 2);
	bound(&b, 0, &x);
	is_near(x.res_mii, 50, 1e-9, "two copies of it share that");
	bench_release(&b);

	make_ring(&b, 10, 30);
	b.device.tile_overhead = 13;
	bound(&b, NONE, &x);
	is_near(x.res_mii, 10 * 30 + 13, 1e-9, "a tile is ten iterations and the way to the next");
	is_str(binding_name(b.plan, x.binding_seu), "c", "... of the lane");
	bench_release(&b);
}

/* A product that accumulates follows itself without waiting for its end. */
static void test_chain(void)
{
	int m, k, x, y, out, acc, v;
	struct bounds bd;
	struct bench b;

	bench_init(&b);
	m = axis(&b, "m", 2, 1);
	k = axis(&b, "k", 4, 2);
	x = tensor(&b, TENSOR_INPUT, "A", 2, (int[]){ m, k });
	y = tensor(&b, TENSOR_INPUT, "B", 1, &k);
	out = tensor(&b, TENSOR_OUTPUT, "C", 1, &m);
	acc = carry(&b, "acc", 1, &m);
	begin_loop(&b, k, NULL);
	v = product(&b, "mma", load(&b, x), load(&b, y));
	must(&b, program_accumulate(b.p, acc, v, NOWHERE, &b.e));
	end_loop(&b);
	begin_task(&b, "convert");
	v = cast(&b, get(&b, acc), DT_BF16);
	end_task(&b);
	store(&b, out, v);
	make_graph(&b, 1);
	put(&b, "mma", "c", 40, 0);
	put(&b, "convert", "c", 9, 0);
	bound(&b, 0, &bd);
	is_near(bd.rec_mii, 40, 1e-9, "a chain of products");
	is_str(cycle_names(&b, &bd), "mma", "... is one product");
	/* the accumulator has one version: two products, 20 to arrive, then converted */
	bound(&b, NONE, &bd);
	is_near(bd.rec_mii, 40 + 40 + 20 + 9, 1e-9, "a tile waits for the accumulator");
	versions(&b, "acc", 2);
	bound(&b, NONE, &bd);
	is_near(bd.rec_mii, 109.0 / 2, 1e-9, "... or for one of two");
	bench_release(&b);
}

static void test_two_lanes(void)
{
	struct bounds x;
	struct bench b;

	/* the running sum is each lane's own; mma waits for soft to have read its result */
	bench_init(&b);
	ping_pong_program(&b, 8);
	put(&b, "mma.0", "c0", 40, 0);
	put(&b, "soft.0", "c0", 50, 0);
	put(&b, "mma.1", "c1", 40, 0);
	put(&b, "soft.1", "c1", 50, 0);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 60 + 50, 1e-9, "a product and what reads it");
	is_near(x.res_mii, 100, 1e-9, "two lanes want the vector unit for 50 each");
	is_str(binding_name(b.plan, x.binding_seu), "vector", "... which bounds them");
	versions(&b, "mma.0", 2);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 110, 1e-9, "two versions for one of them change nothing");
	versions(&b, "mma.1", 2);
	bound(&b, 0, &x);
	is_near(x.rec_mii, 55, 1e-9, "two for both halve it");
	bench_release(&b);

	bench_init(&b);
	ping_pong_program(&b, 8);
	bound(&b, 0, &x);
	is_near(x.res_mii + x.rec_mii, 0, 0, "an empty plan is bound by nothing");
	is_int(x.ncycle, 0, "... and no cycle");
	bench_release(&b);
}

/* Whatever the order and the waits, T iterations take no less than T times what a
 * resource is asked for, nor than the cycle of dependences as often as it fits in. */
static void test_random_plans(void)
{
	enum { TRIPS = 64, SPAN = 16 };	/* SPAN: more than any cycle's distance */
	struct prng r = { 7 };
	int legal = 0, resource = 0, recurrence = 0, tight = 0;

	for (int round = 0; round < 400; round++) {
		struct problems problems = { 0 };
		struct usage usage;
		struct bench b;
		const struct phase_line *l;

		bench_init(&b);
		b.device.eus = 1;
		attention_program(&b, TRIPS, false, 1 + (int)prng_below(&r, 2));
		b.g->grids[0].total = 1;	/* one tile is enough */
		random_plan(&b, &r);
		must(&b, plan_check(b.plan, &b.arena, NULL, &problems, &usage, &b.e));
		if (problems.v.n) {
			bench_release(&b);
			continue;
		}
		legal++;
		must(&b, sim_run(&b.mem, b.plan, NULL, NULL, &b.t, &b.e));
		l = &b.t->phases[0];
		resource += (double)l->cycles < TRIPS * l->res_mii;
		recurrence += (double)l->cycles < (TRIPS - SPAN) * l->rec_mii;
		tight += l->ii < 1.1 * fmax(l->res_mii, l->rec_mii);
		bench_release(&b);
	}
	diag("%d legal plans, %d near their bound", legal, tight);
	ok(legal > 40, "of random plans, some are legal");
	is_int(resource, 0, "... none is faster than its resources");
	is_int(recurrence, 0, "... nor than its recurrences");
	ok(tight > 0, "... and some come near");
}

int main(void)
{
	test_ring();
	test_resources();
	test_chain();
	test_two_lanes();
	test_random_plans();
	return tap_done();
}
