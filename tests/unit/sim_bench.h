/* sim_bench.h - a device with round numbers, and small programs and plans on it.
 *
 * For the tests of src/sim. Each gives the sTasks the cycles it wants, so that what
 * comes out can be worked out by hand. Calls that fail end the test program: refusals
 * of other modules are their tests' business.
 */
#ifndef TESTS_SIM_BENCH_H
#define TESTS_SIM_BENCH_H

#include "base/prng.h"
#include "plan/check.h"
#include "plan/order.h"
#include "sim/sim.h"
#include "tests/unit/make_program.h"

enum { COPY, MATRIX, VECTOR };

/* Copies take 10 cycles of the engine and 50 to arrive; products arrive after 20;
 * memory is no limit. */
static const struct vdevice round_device = {
	.name = "round", .eus = 2, .clock_hz = 1e9, .nseus = 3, .warp = 32,
	.seu = {
		{ .name = "copy", .kind = SEU_COPY, .async = true, .issue = 2, .latency = 50,
			.box_bytes = 1e9, .box_interval = 10 },
		{ .name = "matrix", .kind = SEU_MATRIX, .async = true, .ordered = true,
			.issue = 4, .latency = 20, .flops = { [DT_BF16] = 2 }, .efficiency = 1,
			.min_m = 1, .min_n = 1, .min_k = 1 },
		{ .name = "vector", .kind = SEU_VECTOR, .ops = { [CLASS_FMA] = 1 }, .slots = 1,
			.lane_share = 1, .contention = 1 },
	},
	.max_threads = 1024, .registers = 65536, .thread_registers = 255, .register_step = 8,
	.shared_bytes = 1 << 20, .named_barriers = 16, .max_cluster = 4, .cluster_eus = 1 << 20,
	.global_rate = 1e27, .l2_bytes = 1 << 20, .l2_rate = 1e18, .l2_eu_rate = 1e18,
	.l2_add_rate = 1e18, .l2_add_eu_rate = 1e18,
	.shared_rate = 1e18, .wait_cost = 1, .flag_latency = 3, .issue_order_latency = 2,
	.handoff_latency = 7, .handoff_rate = 1e18,
};

/* A program, its graph and a plan under construction. */
struct bench {
	struct mem mem;
	struct arena arena;
	struct vdevice device;
	struct program *p;
	struct tiling tiling;
	struct graph *g;
	struct plan *plan;
	struct timeline *t;
	struct err e;
};

static inline void must(const struct bench *b, enum err_code code)
{
	must_make(code, &b->e);
}

static inline void bench_init(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	b->device = round_device;
	arena_init(&b->arena, &b->mem);
	b->p = program_new(&b->mem, "test");
}

static inline void bench_release(struct bench *b)
{
	timeline_free(b->t);
	plan_free(b->plan);
	graph_free(b->g);
	program_free(b->p);
	arena_release(&b->arena);
	if (b->mem.used)
		ok(false, "all memory is given back");
}

/* ---- building programs ------------------------------------------------------------ */

static inline int axis(struct bench *b, const char *name, int64_t size, int64_t tile)
{
	int id = make_axis(b->p, name, size);
	
	b->tiling.extent[id] = tile;
	return id;
}

static inline int tensor(struct bench *b, enum tensor_role role, const char *name, int rank,
	const int *dims)
{
	return make_tensor(b->p, role, name, DT_BF16, rank, dims);
}

static inline int load(struct bench *b, int t)
{
	struct index_expr index[RANK_MAX];
	
	for (int i = 0; i < b->p->tensors.v[t].rank; i++)
		index[i] = index_axis(b->p->tensors.v[t].dim[i]);
	return make_load(b->p, t, index);
}

static inline int product(struct bench *b, const char *name, int x, int y)
{
	return make_mma(b->p, name, x, y);
}

static inline int add(struct bench *b, int x, int y)
{
	return make_op(b->p, OP_ADD, x, y, NONE);
}

static inline int sum(struct bench *b, int v, int ax)
{
	return make_reduce(b->p, OP_SUM, v, ax);
}

static inline int carry(struct bench *b, const char *name, int n, const int *axes)
{
	return make_carry(b->p, name, n, axes, 0);
}

static inline int get(struct bench *b, int c)
{
	return make_get(b->p, c);
}

static inline int cast(struct bench *b, int v, enum dtype t)
{
	return make_cast(b->p, v, t);
}

static inline void begin_loop(struct bench *b, int ax, const struct index_expr *upto)
{
	begin_loop_over(b->p, 1, &ax, upto);
}

static inline void end_loop(struct bench *b)
{
	end_loop_of(b->p);
}

static inline void begin_task(struct bench *b, const char *name)
{
	begin_task_of(b->p, name);
}

static inline void end_task(struct bench *b)
{
	end_task_of(b->p);
}

/* s += v */
static inline void accumulate(struct bench *b, int c, int v)
{
	make_set(b->p, c, add(b, get(b, c), v));
}

static inline void store(struct bench *b, int t, int v)
{
	make_store(b->p, t, v);
}

/* Propagate and begin a plan; split all but the loads `ways` along axis `m`. */
static inline void make_graph(struct bench *b, int ways)
{
	int tasks[16];
	struct split s = { .axis = program_find_axis(b->p, "m"), .ways = ways, .tasks = tasks };

	must(b, program_finish(b->p, &b->e));
	for (int i = 0; i < b->p->tasks.n; i++)
		if (b->p->tasks.v[i].kind != TASK_LOAD)
			tasks[s.ntasks++] = i;
	must(b, graph_build(&b->mem, b->p, &b->tiling, &(struct shaping){ .splits = &s,
		.nsplits = ways > 1 }, &b->g, &b->e));
	b->plan = plan_new(&b->mem, b->g, &b->device);
}

/* "load_X" -> "use" -> "store_S": s[m] = sum over k of X[m,k]. */
static inline void ring_program(struct bench *b, int64_t tiles, int64_t trips, int64_t tile_m,
	int ways)
{
	int m = axis(b, "m", tiles * tile_m, tile_m), k = axis(b, "k", trips, 1);
	int x = tensor(b, TENSOR_INPUT, "X", 2, (int[]){ m, k });
	int out = tensor(b, TENSOR_OUTPUT, "S", 1, &m), s = carry(b, "s", 1, &m), v;

	begin_loop(b, k, NULL);
	v = load(b, x);
	begin_task(b, "use");
	accumulate(b, s, sum(b, v, k));
	end_task(b);
	end_loop(b);
	begin_task(b, "convert");
	v = cast(b, get(b, s), DT_BF16);
	end_task(b);
	store(b, out, v);
	make_graph(b, ways);
}

/* "mma" and "soft" in a loop, each in two parts along m. */
static inline void ping_pong_program(struct bench *b, int64_t trips)
{
	int m = axis(b, "m", 2, 2), n = axis(b, "n", trips, 1), d = axis(b, "d", 4, 0);
	int q = tensor(b, TENSOR_INPUT, "Q", 2, (int[]){ m, d });
	int x = tensor(b, TENSOR_INPUT, "K", 2, (int[]){ n, d });
	int out = tensor(b, TENSOR_OUTPUT, "S", 1, &m), s = carry(b, "s", 1, &m), v;

	q = load(b, q);
	begin_loop(b, n, NULL);
	v = product(b, "mma", q, load(b, x));
	begin_task(b, "soft");
	accumulate(b, s, sum(b, v, n));
	end_task(b);
	end_loop(b);
	begin_task(b, "convert");
	v = cast(b, get(b, s), DT_BF16);
	end_task(b);
	store(b, out, v);
	make_graph(b, 2);
}

/* Attention in miniature, over tiles of 1, 2, 3 ... iterations, or of all. */
static inline void attention_program(struct bench *b, int64_t tiles, bool causal, int ways)
{
	int m = axis(b, "m", 2 * tiles, 2), n = axis(b, "n", 2 * tiles, 2), d = axis(b, "d", 4, 0);
	int q = tensor(b, TENSOR_INPUT, "Q", 2, (int[]){ m, d });
	int kk = tensor(b, TENSOR_INPUT, "K", 2, (int[]){ n, d });
	int vv = tensor(b, TENSOR_INPUT, "V", 2, (int[]){ n, d });
	int out = tensor(b, TENSOR_OUTPUT, "O", 2, (int[]){ m, d }), l, o, s, v;
	struct index_expr upto = index_axis(m);

	q = load(b, q);
	l = carry(b, "l", 1, &m);
	o = carry(b, "o", 2, (int[]){ m, d });
	begin_loop(b, n, causal ? &upto : NULL);
	s = product(b, "mma_qk", q, load(b, kk));
	begin_task(b, "soft");
	accumulate(b, l, sum(b, s, n));
	v = cast(b, add(b, s, get(b, l)), DT_BF16);
	end_task(b);
	begin_task(b, "rescale");
	accumulate(b, o, get(b, l));
	end_task(b);
	s = product(b, "mma_pv", v, load(b, vv));
	must(b, program_accumulate(b->p, o, s, NOWHERE, &b->e));
	end_loop(b);
	begin_task(b, "normalise");
	v = cast(b, add(b, get(b, o), get(b, l)), DT_BF16);
	end_task(b);
	store(b, out, v);
	make_graph(b, ways);
}

/* ---- building plans --------------------------------------------------------------- */

static inline int task(const struct bench *b, const char *name)
{
	int id = graph_find_task(b->g, name);

	if (id == NONE) {
		printf("Bail out! no sTask '%s'\n", name);
		exit(1);
	}
	return id;
}

/* Put an sTask on a lane, at so many cycles of its usual unit. */
static inline void put(struct bench *b, const char *name, const char *lane, double cycles, int at)
{
	struct work *w = &b->g->tasks.v[task(b, name)].work;
	enum work_kind kind = w->kind;

	*w = (struct work){ .kind = kind, .type = DT_BF16 };
	if (kind == WORK_LOAD || kind == WORK_STORE)
		w->boxes = cycles / 10;
	else if (kind == WORK_MMA)
		w->m = (int64_t)cycles, w->n = w->k = 1;
	else
		w->ops[CLASS_FMA] = cycles;
	must(b, plan_append(b->plan, task(b, name), NULL, lane, at, NOWHERE, &b->e));
}

static inline void wait_for(struct bench *b, const char *name, const char *on, int distance,
	enum wait_when when)
{
	must(b, plan_wait(b->plan, task(b, name), task(b, on), distance, when, NOWHERE, &b->e));
}

static inline void versions(struct bench *b, const char *buffer, int n)
{
	must(b, plan_versions(b->plan, graph_find_buffer(b->g, buffer), n, NOWHERE, &b->e));
}

static inline void lane(struct bench *b, const char *name, int warps, int replicas)
{
	must(b, plan_lane(b->plan, &(struct lane){ .name = name, .warps = warps, .replicas = replicas }, &b->e));
}

/* Everything somewhere, at some offset, with some versions; then the waits that the
 * dependences need, and some more that follow the order of the program. */
static inline void random_plan(struct bench *b, struct prng *r)
{
	static const char *const lanes[] = { "a", "b", "c" };
	int added;

	for (int i = 0; i < 3; i++) {
		int replicas = prng_below(r, 4) ? 1 : 2;

		lane(b, lanes[i], prng_below(r, 2) ? 4 : 1, replicas);
	}
	for (int i = 0; i < b->g->tasks.n; i++) {
		const struct stask *s = &b->g->tasks.v[i];
		int any = (int)prng_below(r, 3), ahead = !prng_below(r, 3);
		int which = s->kind == TASK_LOAD ? 0 : s->slices > 1 ? 1 + s->slice : any;

		put(b, s->name, lanes[which], 10.0 * prng_below(r, 5), s->loop != NONE && ahead);
	}
	for (int i = 0; i < b->g->buffers.n; i++)
		b->plan->versions[i] = 1 + (int)prng_below(r, 3);
	for (int i = 0; i < 2; i++) {
		int from = (int)prng_below(r, (uint32_t)b->g->tasks.n);
		int to = (int)prng_below(r, (uint32_t)b->g->tasks.n);
		enum wait_when when = prng_below(r, 2) ? WAIT_ISSUED : WAIT_COMPLETE;

		must(b, plan_wait(b->plan, to, from, to > from ? 0 : 2, when, NOWHERE, &b->e));
	}
	must(b, plan_fill_waits(b->plan, NULL, &added, &b->e));
}

#endif
