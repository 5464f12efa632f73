/* What is checked is large, or too large, or not to be waited for any longer. */
#include "plan/check.h"

#include "plan/history.h"
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
		must(&b, history_append(h, b.g->tasks.v[i].name, NULL, NULL, 0, NOWHERE, &b.e));
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

int main(void)
{
	test_large();
	test_stop();
	test_nests();
	return tap_done();
}
