/* What is checked is large, or too large, or not to be waited for any longer. */
#include "plan/check.h"

#include <string.h>

#include "plan/history.h"
#include "search/build.h"
#include "tests/unit/sim_bench.h"

/* Everything in the order of the program, on two lanes. */
static void plain_plan(struct bench *b)
{
	for (int i = 0; i < b->g->tasks.n; i++)
		put(b, b->g->tasks.v[i].name, b->g->tasks.v[i].kind == TASK_LOAD ? "p" : "c", 10, 0);
}

static int count_waits(const struct plan *p, enum wait_when when)
{
	int n = 0;

	for (int i = 0; i < p->waits.n; i++)
		n += p->waits.v[i].when == when;
	return n;
}

/* 64 lives of every buffer, in the loop and over tiles: 66 tiles of 66 iterations. */
static void test_large(void)
{
	struct problems problems;
	struct usage usage;
	struct bench b;
	int added;

	bench_init(&b);
	attention_program(&b, 128, false, 1);
	plain_plan(&b);
	for (int i = 0; i < b.g->buffers.n; i++)
		b.plan->versions[i] = VERSIONS_MAX;
	b.mem.cap = b.mem.used + (128 << 20);	/* more than that ends the test */
	must(&b, plan_fill_waits(b.plan, NULL, &added, &b.e));
	is_int(added, b.plan->waits.n, "waits for rings of 64 versions are added");
	must(&b, plan_check(b.plan, &b.arena, NULL, &problems, &usage, &b.e));
	is_int(problems.v.n, 0, "  and do, in 128 MiB");
	b.plan->waits.n--;
	must(&b, plan_check(b.plan, &b.arena, NULL, &problems, &usage, &b.e));
	ok(problems.v.n && problems.v.v[0].code == PROBLEM_MISSING_WAIT,
		"  and none is needless");
	bench_release(&b);
}

/* Ctrl-C was pressed. */
static void test_stop(void)
{
	static const volatile int pressed = 1;
	const struct stop stop = { &pressed };
	struct problems problems;
	struct history *h;
	struct bench b;
	int added;

	bench_init(&b);
	ring_program(&b, 4, 8, 1, 1);
	plain_plan(&b);
	is_int(plan_check(b.plan, &b.arena, &stop, &problems, NULL, &b.e), ERR_INTERRUPTED,
		"a check is interrupted");
	is_str(b.e.msg, "interrupted", "  and says so");
	history_new(&b.mem, b.g, &b.device, &h);
	for (int i = 0; i < b.g->tasks.n; i++)
		must(&b, history_append(h, b.g->tasks.v[i].name, NULL, NULL, 0, false, NOWHERE, &b.e));
	is_int(history_fill_waits(h, &stop, NOWHERE, &added, &b.e), ERR_INTERRUPTED,
		"so is adding waits");
	is_int(count_waits(history_plan(h), WAIT_COMPLETE), 0, "  the plan is as it was");
	is_int(history_edits(h), b.g->tasks.n, "  and its log");
	must(&b, history_fill_waits(h, NULL, NOWHERE, &added, &b.e));
	is_int(count_waits(history_plan(h), WAIT_COMPLETE), added, "it can be done later");
	ok(added > 0, "  and there was something to do");
	history_free(h);
	bench_release(&b);
}

/* s[m] = sum of X[m] over `depth` loops in one another, of 4 iterations each. */
static void nested_program(struct bench *b, int depth)
{
	int m = axis(b, "m", 4, 1), x = tensor(b, TENSOR_INPUT, "X", 1, &m);
	int out = tensor(b, TENSOR_OUTPUT, "S", 1, &m), s = carry(b, "s", 1, &m), v;

	for (int i = 0; i < depth; i++)
		begin_loop(b, axis(b, (char[]){ 'a', (char)('a' + i), 0 }, 4, 1), NULL);
	v = load(b, x);
	begin_task(b, "use");
	accumulate(b, s, v);
	end_task(b);
	for (int i = 0; i < depth; i++)
		end_loop(b);
	begin_task(b, "convert");
	v = cast(b, get(b, s), DT_BF16);
	end_task(b);
	store(b, out, v);
	make_graph(b, 1);
	plain_plan(b);
}

static void test_nests(void)
{
	struct problems problems;
	struct bench b;
	int added;

	bench_init(&b);
	nested_program(&b, 6);
	must(&b, plan_fill_waits(b.plan, NULL, &added, &b.e));
	must(&b, plan_check(b.plan, &b.arena, NULL, &problems, NULL, &b.e));
	is_int(problems.v.n, 0, "six loops in one another are checked");
	bench_release(&b);
	for (int depth = 12; depth <= LOOP_DEPTH_MAX; depth += 4) {
		bench_init(&b);
		nested_program(&b, depth);
		is_int(plan_check(b.plan, &b.arena, NULL, &problems, NULL, &b.e), ERR_LIMIT,
			"more are too many");
		is_str(b.e.msg, "checking the plan takes more than 1048576 instances of sTasks; "
			"put fewer loops in one another, or use fewer versions, smaller offsets "
			"and distances", "  which the message says");
		is_int(plan_fill_waits(b.plan, NULL, &added, &b.e), ERR_LIMIT, "  for waits, too");
		bench_release(&b);
	}
}

/* Attention of so many tiles on two lanes, with the same offsets and versions for the same seed; waits are repaired. */
static void repaired_plan(struct bench *b, int64_t tiles, uint64_t seed, uint64_t *hash, bool *kept)
{
	struct prng r = { seed };
	int reach;

	bench_init(b);
	attention_program(b, tiles, false, 1);
	for (int i = 0; i < b->g->tasks.n; i++) {
		const struct stask *s = &b->g->tasks.v[i];

		put(b, s->name, s->kind == TASK_LOAD ? "p" : prng_below(&r, 4) ? "c" : "d", 10,
			s->loop == NONE ? 0 : (int)prng_below(&r, 2));
	}
	for (int i = 0; i < b->g->buffers.n; i++)
		b->plan->versions[i] = 1 + (int)prng_below(&r, 3);
	*hash = build_hash_order(b->plan, &reach);
	must(b, plan_repair_waits(b->plan, NULL, NULL, 0, kept, NULL, &b->e));
	for (int i = 0; i < b->g->buffers.n; i++)
		if (b->plan->versions[i] > reach)
			*hash = seed;	/* it holds for no other plan */
}

static bool same_waits(const struct bench *a, const struct bench *b)
{
	bool same = a->plan->waits.n == b->plan->waits.n &&
		!memcmp(a->plan->versions, b->plan->versions, (size_t)a->g->buffers.n * sizeof(int));

	for (int i = 0; i < a->plan->waits.n && same; i++)
		same = a->plan->waits.v[i].task == b->plan->waits.v[i].task &&
			a->plan->waits.v[i].on == b->plan->waits.v[i].on;
	return same;
}

/* What the search does not check again: plans whose repair kept all dependences, and the waits of plans with as good as the
 * same order. */
static void test_repairs(void)
{
	int reported = 0, legal = 0, usages = 0, alike = 0, same = 0, small = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct problems order, all, others;
		struct usage u, v;
		struct bench a, b;
		uint64_t of_a, of_b;
		bool kept;

		repaired_plan(&a, 80, seed, &of_a, &kept);
		must(&a, plan_check_order(a.plan, &a.arena, NULL, &order, NULL, &a.e));
		reported += kept == !order.v.n;
		legal += kept;
		memset(&u, 0, sizeof(u));
		memset(&v, 0, sizeof(v));
		if (kept) {
			must(&a, plan_check(a.plan, &a.arena, NULL, &all, &u, &a.e));
			must(&a, plan_check_kept(a.plan, &a.arena, NULL, &others, &v, &a.e));
			usages += all.v.n == others.v.n && !memcmp(&u, &v, sizeof(u));
		}
		repaired_plan(&b, 160, seed, &of_b, &kept);
		alike += of_a == of_b;
		same += of_a == of_b && same_waits(&a, &b);
		bench_release(&b);
		repaired_plan(&b, 1, seed, &of_b, &kept);
		small += of_a == of_b;
		bench_release(&b);
		bench_release(&a);
	}
	diag("%d of 200 are legal", legal);
	is_int(reported, 200, "repairing waits tells whether all dependences are kept");
	ok(legal > 20, "  which they are in some plans");
	is_int(usages, legal, "  and then all else is checked, with the same result");
	ok(alike > 150, "twice as many tiles and iterations make no difference to the order");
	is_int(same, alike, "  nor to its waits");
	is_int(small, 0, "  but a single one does");
}

int main(void)
{
	test_large();
	test_stop();
	test_nests();
	test_repairs();
	return tap_done();
}
