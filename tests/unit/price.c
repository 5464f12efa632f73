/* The price of a kernel's operations: if one that has a cost is removed, the price changes; and plans whose lanes do
 * more are predicted to take longer. */
#include <stddef.h>

#include "lower/lower.h"
#include "lua/lplan.h"
#include "plan/check.h"
#include "sim/priced.h"
#include "tests/unit/script.h"

struct bench {
	struct host h;
	lua_State *L;
	struct mem mem;
	struct arena arena;
	const struct plan *plan;
	struct err e;
};

static void must(const struct bench *b, enum err_code code)
{
	if (!code)
		return;
	script_stop(b->e.msg);
}

static void bench_open(struct bench *b, const char *script)
{
	struct problems problems = { 0 };

	*b = (struct bench){ .h.home = script_home() };
	b->L = host_open(&b->h);
	arena_init(&b->arena, &b->mem);
	script_run(b->L, "plans", arena_strf(&b->arena, "return %s", script));
	b->plan = history_plan(check_plan(b->L, -1, "test"));
	must(b, plan_check(b->plan, &b->arena, NULL, &problems, NULL, &b->e));
	if (problems.v.n)
		script_stop(problems.v.v[0].message);
}

static void bench_close(struct bench *b)
{
	arena_release(&b->arena);
	host_close(b->L);
	is_int((long long)b->mem.used, 0, "... all memory is given back");
}

/* one operation less -------------------------------------------------------------- */

/* Which operations have a cost whatever they are about. */
static bool is_dear(enum role_do what)
{
	static const enum role_do dear[] = { DO_WAIT, DO_WAIT_LAST, DO_ARRIVE, DO_RELEASE, DO_WARP_SYNC,
		DO_LANE_SYNC, DO_FENCE, DO_GROUPS_WAIT, DO_STORES_WAIT, DO_LOAD_BOXES, DO_LOAD_THREADS,
		DO_STORE_BOXES, DO_STORE_THREADS, DO_STORE_RING, DO_PUT, DO_PUT_PANELS, DO_FILL };

	for (int i = 0; i < LEN(dear); i++)
		if (dear[i] == what)
			return true;
	return false;
}

/* Remove all operations of one kind from the tree: those of an sTask, or of a lane outside of any. The
 * original bodies are kept. */
struct pruned {
	struct arena *a;
	enum role_do what;
	int task;			/* NONE: outside */
	bool inside;
	int n;
	VEC(struct role_body *) at;
	VEC(struct role_body) was;
};

static void prune(struct pruned *p, struct role_body *b)
{
	struct role_body left = { 0 };

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];
		bool inside = p->inside;

		p->inside |= o->what == DO_TASK;
		if (role_is_region(o->what)) {
			prune(p, &o->u.region.body);
			prune(p, &o->u.region.other);
		}
		p->inside = inside;
		if (o->what == p->what && (p->task == NONE ? !inside : o->task == p->task))
			p->n++;
		else
			VEC_PUSH(p->a, &left.v, o);
	}
	if (left.v.n == b->v.n)
		return;
	VEC_PUSH(p->a, &p->at, b);
	VEC_PUSH(p->a, &p->was, *b);
	*b = left;
}

static void put_back(struct pruned *p)
{
	for (int i = 0; i < p->at.n; i++)
		*p->at.v[i] = p->was.v[i];
}

static bool same_tasks(const struct graph *g, const struct price *x, const struct price *y)
{
	return !memcmp(x->tasks, y->tasks, (size_t)g->tasks.n * sizeof(*x->tasks));
}

static bool same_phase(const struct phase_price *x, const struct phase_price *y)
{
	return !memcmp(x->wait, y->wait, (size_t)x->plan->waits.n * sizeof(*x->wait)) &&
		!memcmp(x->lanes, y->lanes, sizeof(x->lanes));
}

static void price_of(struct bench *b, const struct kernel *k, struct price *out)
{
	price_init(&b->arena, k->plan, out);
	price_add(out, k->plan, k->phase, k->role);
}

/* Does the price change if the lane, or the sTask, has none of these operations any more? */
static void drop(struct bench *b, struct kernel *k, struct role *r, enum role_do what, int task,
	int *dropped, int *missed)
{
	struct pruned p = { .a = &b->arena, .what = what, .task = task };
	struct price was, is;

	price_of(b, k, &was);
	prune(&p, &r->body);
	price_of(b, k, &is);
	put_back(&p);
	if (!p.n)
		return;
	++*dropped;
	if (!same_tasks(k->plan->graph, &was, &is) ||
	    !same_phase(&was.phases[k->phase], &is.phases[k->phase]))
		return;
	++*missed;
	printf("# %s of lane '%s'%s%s costs nothing\n", role_op_info[what].name, r->name,
		task == NONE ? "" : ", ", task == NONE ? "" : k->plan->graph->tasks.v[task].name);
}

static void test_drops(const char *script)
{
	struct bench b;
	struct kernel *k;
	int dropped = 0, missed = 0;

	bench_open(&b, script);
	for (int i = 0; i < b.plan->graph->program->phases.n; i++) {
		must(&b, lower_plan(&b.mem, b.plan, i, NULL, &k, &b.e));
		for (int r = 0; r < k->role->roles.n; r++)
			for (int what = 0; what < DO_COUNT; what++)
				for (int t = NONE; t < b.plan->graph->tasks.n && is_dear((enum role_do)what); t++)
					drop(&b, k, &k->role->roles.v[r], (enum role_do)what, t,
						&dropped, &missed);
		kernel_free(k);
	}
	ok(dropped > 10, script);
	is_int(missed, 0, "... each kind of operation has its price");
	bench_close(&b);
}

/* numbers of a device ---------------------------------------------------------------- */

static void test_numbers(void)
{
	static const size_t number[] = { offsetof(struct vdevice, wait_cost),
		offsetof(struct vdevice, tell_cost), offsetof(struct vdevice, warp_cost),
		offsetof(struct vdevice, fence_cost), offsetof(struct vdevice, issue_order_latency),
		offsetof(struct vdevice, shared_rate), offsetof(struct vdevice, seu[2].chain),
		offsetof(struct vdevice, seu[2].slots), offsetof(struct vdevice, seu[2].latency) };
	struct price was, is;
	struct kernel *k;
	struct bench b;
	int missed = 0;

	bench_open(&b, "large_gemm(99, {apart = true, loading = 3})");
	must(&b, lower_plan(&b.mem, b.plan, 0, NULL, &k, &b.e));
	price_of(&b, k, &was);
	for (int i = 0; i < LEN(number); i++) {
		struct vdevice d = *b.plan->device;
		struct plan own = *k->plan;

		own.device = &d;
		*(double *)(void *)((char *)&d + number[i]) *= 2;
		price_init(&b.arena, &own, &is);
		price_add(&is, &own, 0, k->role);
		missed += same_tasks(own.graph, &was, &is) && same_phase(&was.phases[0], &is.phases[0]);
	}
	is_int(missed, 0, "each number of a device that is about kernels changes their price");
	kernel_free(k);
	bench_close(&b);
}

/* dearer plans ---------------------------------------------------------------------- */

static struct timeline *play(struct bench *b)
{
	struct sim_options o = { .keep = -1 };
	struct kernels *kernels;
	struct timeline *t;

	must(b, priced_run(&b->mem, b->plan, NULL, &o, NULL, &kernels, &t, &b->e));
	return t;
}

static double cycles_of(const char *script)
{
	struct bench b;
	struct timeline *t;
	double cycles;

	bench_open(&b, script);
	t = play(&b);
	ok(t->priced && !t->unpriced, script);
	cycles = (double)t->cycles;
	printf("# %.0f cycles\n", cycles);
	timeline_free(t);
	bench_close(&b);
	return cycles;
}

static void test_dearer(void)
{
	double one = cycles_of("large_gemm(512)"), odd = cycles_of("large_gemm(511, {loading = 3})"), two;

	two = cycles_of("large_gemm(512, {apart = true, rings = 6})");
	ok(two > 1.2 * cycles_of("large_gemm(512, {rings = 6})"),
		"an accumulator that is handed over each iteration is dear");
	ok(odd > 20 * one, "loads of single elements by threads are much dearer than by the engine");
	two = cycles_of("large_gemm(511)");
	ok(two < odd / 2, "... but not where neighbours are shifted together");
	ok(cycles_of("large_gemm(508)") < two / 2, "... and still less where they are copied as they lie");
	one = cycles_of("large_attention{}");
	two = cycles_of("large_attention{normalise = true, store_o = true}");
	ok(two > one, "an end on another lane costs more than on the same");
}

/* Cycles of the lane in addition to the sTask's own work. */
static double lane_of(const char *script, const char *name)
{
	struct bench b;
	struct kernel *k;
	struct price x;
	double lane;

	bench_open(&b, script);
	must(&b, lower_plan(&b.mem, b.plan, 0, NULL, &k, &b.e));
	price_of(&b, k, &x);
	lane = x.tasks[graph_find_task(b.plan->graph, name)].before.lane;
	printf("# %s of %s: %.0f cycles\n", name, script, lane);
	kernel_free(k);
	bench_close(&b);
	return lane;
}

static void test_layout_conversions(void)
{
	double none = lane_of("flipped(0)", "add"), one = lane_of("flipped(1)", "add");
	double two = lane_of("flipped(2)", "add");

	ok(one > none + 100, "a value in another layout needs a conversion");
	ok(two > one + 100, "two values need two");
}

/* with and without ---------------------------------------------------------------------- */

static void test_longer(void)
{
	struct sim_options o = { .keep = -1 };
	struct bench b;
	struct timeline *with, *without;

	bench_open(&b, "large_attention{}");
	with = play(&b);
	must(&b, sim_run(&b.mem, b.plan, &o, NULL, &without, &b.e));
	ok(!without->priced && with->priced, "a timeline knows whether it knows the kernel");
	ok(with->cycles > without->cycles, "... with which it takes longer");
	timeline_free(with);
	timeline_free(without);
	bench_close(&b);
}

int main(void)
{
	test_drops("example 'attention_overlap'");
	test_drops("example 'attention_pingpong'");
	test_drops("example 'gemm_cooperative'");
	test_drops("example 'decoding_split'");
	test_drops("example('gemm_cooperative', mr.examples.gemm{m = 512, n = 512, k = 196})");
	test_drops("large_gemm(128, {apart = true})");
	test_drops("large_attention{normalise = true, store_o = true}");
	test_numbers();
	test_dearer();
	test_layout_conversions();
	test_longer();
	return tap_done();
}
