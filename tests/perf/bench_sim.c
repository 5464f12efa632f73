/* How fast plans are simulated: a matrix product and attention, as one would plan
 * them for an H200. Prints events a second and bytes an event; asserts nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/check.h"
#include "sim/sim.h"

enum { SECONDS = 2 };

static struct err err;

static void must(enum err_code code)
{
	if (!code)
		return;
	fprintf(stderr, "bench_sim: %s\n", err.msg);
	exit(1);
}

struct given {
	const char *path;
	double number;
	const char *text;
};

/* The numbers of hw/h200.lua that matter here. */
static const struct given h200[] = {
	{ "title", 0, "H200" }, { "arch", 0, "sm_90a" }, { "eus", 132, NULL },
	{ "clock_ghz", 1.5, NULL }, { "limits.warp", 32, NULL },
	{ "limits.max_threads", 1024, NULL }, { "limits.registers", 65536, NULL },
	{ "limits.thread_registers", 255, NULL }, { "limits.register_step", 8, NULL },
	{ "limits.reserved_registers", 24, NULL }, { "limits.named_barriers", 16, NULL },
	{ "limits.max_cluster", 8, NULL }, { "limits.cluster_eus", 120, NULL },
	{ "memory.global.bytes", 141e9, NULL },
	{ "memory.global.rate", 4.2e12, NULL }, { "memory.global.latency", 690, NULL },
	{ "memory.l2.bytes", 52428800, NULL }, { "memory.l2.rate", 6467, NULL },
	{ "memory.l2.eu_rate", 64, NULL }, { "memory.l2.latency", 281, NULL },
	{ "memory.shared.bytes", 232448, NULL }, { "memory.shared.rate", 128, NULL },
	{ "sync.wait_cost", 30, NULL }, { "sync.flag_latency", 92, NULL },
	{ "sync.tell_cost", 12, NULL }, { "sync.warp_cost", 8, NULL },
	{ "sync.fence_cost", 24, NULL },
	{ "sync.issue_order_latency", 30, NULL }, { "sync.handoff_latency", 61, NULL },
	{ "sync.handoff_rate", 64, NULL }, { "sync.launch_seconds", 2.5e-6, NULL },
	{ "sync.tile_overhead", 200, NULL }, { "seu.tma.kind", 0, "copy" },
	{ "seu.tma.async", 1, NULL }, { "seu.tma.issue", 30, NULL },
	{ "seu.tma.latency", 179, NULL }, { "seu.tma.box_bytes", 32768, NULL },
	{ "seu.tma.box_interval", 64, NULL }, { "seu.tensor.kind", 0, "matrix" },
	{ "seu.tensor.async", 1, NULL }, { "seu.tensor.ordered", 1, NULL },
	{ "seu.tensor.issue", 32, NULL }, { "seu.tensor.latency", 32, NULL },
	{ "seu.tensor.flops.bf16", 4096, NULL }, { "seu.tensor.efficiency", 0.95, NULL },
	{ "seu.tensor.min_m", 64, NULL }, { "seu.tensor.min_n", 8, NULL },
	{ "seu.tensor.min_k", 32, NULL }, { "seu.cuda.kind", 0, "vector" },
	{ "seu.cuda.ordered", 1, NULL }, { "seu.cuda.issue", 0, NULL },
	{ "seu.cuda.latency", 24, NULL }, { "seu.cuda.ops.fma", 128, NULL },
	{ "seu.cuda.ops.alu", 64, NULL }, { "seu.cuda.ops.sfu", 16, NULL },
	{ "seu.cuda.ops.cvt", 64, NULL }, { "seu.cuda.ops.div", 8, NULL },
	{ "seu.cuda.ops.reduce", 64, NULL }, { "seu.cuda.ops.scan", 12, NULL },
	{ "seu.cuda.ops.move", 32, NULL }, { "seu.cuda.slots", 128, NULL },
	{ "seu.cuda.lane_share", 0.9, NULL }, { "seu.cuda.chain", 4, NULL },
};

static struct vdevice *make_device(struct mem *mem)
{
	struct vdevice *d = device_new(mem, "h200");

	for (int i = 0; i < LEN(h200); i++)
		must(h200[i].text ?
			device_set_text(d, h200[i].path, h200[i].text, NOWHERE, &err) :
			device_set_number(d, h200[i].path, h200[i].number, NOWHERE, &err));
	must(device_finish(d, NOWHERE, &err));
	return d;
}

static int axis(struct program *p, const char *name, int64_t size)
{
	int id;

	must(program_axis(p, name, size, NOWHERE, &id, &err));
	return id;
}

static int tensor(struct program *p, enum tensor_role role, const char *name, int rank,
	const int *dims)
{
	int id;

	must(program_tensor(p, role, name, DT_BF16, rank, dims, NOWHERE, &id, &err));
	return id;
}

static int load(struct program *p, int tensor_id)
{
	struct index_expr index[RANK_MAX];
	int id;

	for (int i = 0; i < p->tensors.v[tensor_id].rank; i++)
		index[i] = index_axis(p->tensors.v[tensor_id].dim[i]);
	must(program_load(p, NULL, tensor_id, index, NOWHERE, &id, &err));
	return id;
}

static int mma(struct program *p, const char *name, int a, int b)
{
	int id;

	must(program_mma(p, name, a, b, NOWHERE, &id, &err));
	return id;
}

static int op(struct program *p, enum op o, int x, int y)
{
	int args[3] = { x, y, NONE }, id;

	must(program_op(p, o, args, NOWHERE, &id, &err));
	return id;
}

static int carry(struct program *p, const char *name, int n, const int *axes, double init)
{
	int id;

	must(program_carry(p, name, n, axes, init, NOWHERE, &id, &err));
	return id;
}

static int get(struct program *p, int c)
{
	int id;

	must(program_get(p, c, NOWHERE, &id, &err));
	return id;
}

static int cast(struct program *p, int v, enum dtype t)
{
	int id;

	must(program_cast(p, v, t, NOWHERE, &id, &err));
	return id;
}

static int reduce(struct program *p, enum op o, int v, int ax)
{
	int id;

	must(program_reduce(p, o, v, ax, NOWHERE, &id, &err));
	return id;
}

/* C[m,n] = sum over k of A[m,k] B[n,k]. */
static struct program *gemm(struct mem *mem, int64_t m, int64_t n, int64_t k)
{
	struct program *p = program_new(mem, "gemm");
	int am = axis(p, "m", m), an = axis(p, "n", n), ak = axis(p, "k", k), c;
	int a = tensor(p, TENSOR_INPUT, "A", 2, (int[]){ am, ak });
	int b = tensor(p, TENSOR_INPUT, "B", 2, (int[]){ an, ak });
	int out = tensor(p, TENSOR_OUTPUT, "C", 2, (int[]){ am, an });

	c = carry(p, "acc", 2, (int[]){ am, an }, 0);
	must(program_loop_begin(p, 1, &ak, NULL, NULL, NOWHERE, &err));
	must(program_accumulate(p, c, mma(p, "mma", load(p, a), load(p, b)), NOWHERE, &err));
	must(program_loop_end(p, NOWHERE, &err));
	must(program_task_begin(p, "convert", NOWHERE, &err));
	c = cast(p, get(p, c), DT_BF16);
	must(program_task_end(p, NOWHERE, &err));
	must(program_store(p, NULL, out, NULL, c, NOWHERE, &err));
	must(program_finish(p, &err));
	return p;
}

/* exp2(x - y) */
static int exp2_of(struct program *p, int x, int y)
{
	return op(p, OP_EXP2, op(p, OP_SUB, x, y), NONE);
}

/* One step of the running softmax over the axis `an` of s; *alpha is what the sums so
 * far must be scaled by. */
static int softmax(struct program *p, int s, int mx, int l, int an, int *alpha)
{
	int before = get(p, mx), now = op(p, OP_MAX, before, reduce(p, OP_RMAX, s, an));
	int pr = exp2_of(p, s, now);

	*alpha = exp2_of(p, before, now);
	must(program_set(p, l, op(p, OP_ADD, op(p, OP_MUL, get(p, l), *alpha),
		reduce(p, OP_SUM, pr, an)), NOWHERE, &err));
	must(program_set(p, mx, now, NOWHERE, &err));
	return cast(p, pr, DT_BF16);
}

static struct program *attention(struct mem *mem, int64_t heads, int64_t n, int causal)
{
	struct program *p = program_new(mem, "attention");
	int ah = axis(p, "h", heads), am = axis(p, "m", n), an = axis(p, "n", n);
	int ad = axis(p, "d", 128), pr, alpha, s, q;
	int tq = tensor(p, TENSOR_INPUT, "Q", 3, (int[]){ ah, am, ad });
	int tk = tensor(p, TENSOR_INPUT, "K", 3, (int[]){ ah, an, ad });
	int tv = tensor(p, TENSOR_INPUT, "V", 3, (int[]){ ah, an, ad });
	int to = tensor(p, TENSOR_OUTPUT, "O", 3, (int[]){ ah, am, ad });
	struct index_expr upto = index_axis(am);
	int mx, l, o;

	must(program_batch(p, ah, NOWHERE, &err));
	q = load(p, tq);
	mx = carry(p, "mx", 1, &am, -1e30);
	l = carry(p, "l", 1, &am, 0);
	o = carry(p, "o", 2, (int[]){ am, ad }, 0);
	must(program_loop_begin(p, 1, &an, NULL, causal ? &upto : NULL, NOWHERE, &err));
	s = mma(p, "mma_qk", q, load(p, tk));
	must(program_task_begin(p, "softmax", NOWHERE, &err));
	pr = softmax(p, s, mx, l, an, &alpha);
	must(program_task_end(p, NOWHERE, &err));
	must(program_task_begin(p, "rescale", NOWHERE, &err));
	must(program_set(p, o, op(p, OP_MUL, get(p, o), alpha), NOWHERE, &err));
	must(program_task_end(p, NOWHERE, &err));
	must(program_accumulate(p, o, mma(p, "mma_pv", pr, load(p, tv)), NOWHERE, &err));
	must(program_loop_end(p, NOWHERE, &err));
	must(program_task_begin(p, "normalise", NOWHERE, &err));
	s = cast(p, op(p, OP_DIV, get(p, o), get(p, l)), DT_BF16);
	must(program_task_end(p, NOWHERE, &err));
	must(program_store(p, NULL, to, NULL, s, NOWHERE, &err));
	must(program_finish(p, &err));
	return p;
}

struct tile {
	const char *axis;
	int64_t extent;
};

/* The graph with every sTask but the loads split in two along m. */
static struct graph *make_graph(struct mem *mem, const struct program *p, const struct tile *tiles)
{
	struct tiling t = { 0 };
	int tasks[32];
	struct split split = { .axis = program_find_axis(p, "m"), .ways = 2, .tasks = tasks };
	struct graph *g;

	for (; tiles->axis; tiles++)
		t.extent[program_find_axis(p, tiles->axis)] = tiles->extent;
	for (int i = 0; i < p->tasks.n; i++)
		if (p->tasks.v[i].kind != TASK_LOAD)
			tasks[split.ntasks++] = i;
	must(graph_build(mem, p, &t, &(struct shaping){ .splits = &split, .nsplits = 1 }, &g, &err));
	return g;
}

/* One producer and two consumers; `ahead` is issued an iteration ahead. */
static struct plan *make_plan(struct mem *mem, const struct graph *g, const struct vdevice *d,
	const char *ahead, int versions)
{
	struct plan *p = plan_new(mem, g, d);
	struct problems problems = { 0 };
	struct usage usage;
	int added;

	must(plan_lane(p, &(struct lane){ .name = "p0", .warps = 1, .replicas = 1 }, &err));
	must(plan_lane(p, &(struct lane){ .name = "c0", .warps = 4, .replicas = 1 }, &err));
	must(plan_lane(p, &(struct lane){ .name = "c1", .warps = 4, .replicas = 1 }, &err));
	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const char *lane = s->kind == TASK_LOAD ? "p0" : s->slice ? "c1" : "c0";

		must(plan_append(p, i, NULL, lane, ahead && !strncmp(s->name, ahead,
			strlen(ahead)), NOWHERE, &err));
	}
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		bool early = ahead && !strncmp(b->name, ahead, strlen(ahead));

		if (b->loop != NONE && (early || b->scope == SCOPE_SHARED))
			must(plan_versions(p, i, versions, NOWHERE, &err));
	}
	must(plan_fill_waits(p, NULL, &added, &err));
	must(plan_check(p, &p->arena, NULL, &problems, &usage, &err));
	for (int i = 0; i < problems.v.n; i++)
		printf("# %s\n", problems.v.v[i].message);
	return p;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(const struct plan *p, const char *what, int64_t keep)
{
	struct mem mem = { 0 };
	struct sim_options o = { .keep = keep };
	double begin = now(), elapsed = 0;
	int64_t events = 0, kept = 0, runs = 0;
	size_t bytes = 0;
	struct timeline *t;

	for (; elapsed < SECONDS; runs++) {
		must(sim_run(&mem, p, &o, NULL, &t, &err));
		events += t->nevents;
		kept = t->phases[0].events.n;
		bytes = mem.used;
		elapsed = now() - begin;
		if (!runs)
			printf("# %s: %lld cycles, %.0f TFLOP/s, ii %.1f, bounds %.1f and %.1f, "
				"%lld events\n", what, (long long)t->cycles,
				t->flops / t->seconds * 1e-12, t->phases[0].ii,
				t->phases[0].res_mii, t->phases[0].rec_mii, (long long)t->nevents);
		timeline_free(t);
	}
	printf("%-24s %8.2f million events/s, %.3f ms a run", what, (double)events / elapsed * 1e-6,
		elapsed / (double)runs * 1e3);
	if (kept)
		printf(", %.1f bytes an event kept", (double)bytes / (double)kept);
	printf("\n");
}

static void bench(struct program *p, const struct tile *tiles, const char *ahead, int versions,
	bool longest_first, const char *what)
{
	struct mem mem = { 0 };
	struct vdevice *d = make_device(&mem);
	struct graph *g = make_graph(&mem, p, tiles);
	struct plan *plan = make_plan(&mem, g, d, ahead, versions);
	struct grid_plan grid = { .raster = RASTER_COLUMNS, .group = 8, .cluster = 1, .along = NONE,
		.longest_first = longest_first };
	char name[64];

	must(plan_grid(plan, &grid, NOWHERE, &err));
	run(plan, what, 0);
	snprintf(name, sizeof(name), "%s, kept", what);
	run(plan, name, INT64_MAX);
	plan_free(plan);
	graph_free(g);
	device_free(d);
	program_free(p);
}

int main(void)
{
	static const struct tile gemm_tiles[] = { { "m", 128 }, { "n", 256 }, { "k", 64 }, { 0 } };
	static const struct tile attention_tiles[] = { { "m", 128 }, { "n", 96 }, { 0 } };
	struct mem mem = { 0 };

	bench(gemm(&mem, 8192, 8192, 8192), gemm_tiles, NULL, 4, false, "gemm");
	bench(gemm(&mem, 8192, 8192, 262144), gemm_tiles, NULL, 4, false, "gemm, long");
	bench(attention(&mem, 16, 16384, 0), attention_tiles, "mma_qk", 2, false, "attention");
	bench(attention(&mem, 16, 16384, 1), attention_tiles, "mma_qk", 2, true,
		"causal attention");
	return 0;
}
