/* fixture.h - an sTask-graph, a plan, a device and a timeline made by hand, for the
 * tests of src/draw. Nothing here is computed by the modules that usually make them. */
#ifndef DRAW_FIXTURE_H
#define DRAW_FIXTURE_H

#include "draw/draw.h"
#include "base/prng.h"

enum { AX_M, AX_N, AX_D };
enum { T_LOAD_Q, T_LOAD_K, T_MMA_QK, T_SOFTMAX, T_RESCALE, T_LOAD_V, T_MMA_PV, T_NORMALISE,
	T_STORE_O, NTASKS };
enum { B_Q, B_K, B_S, B_MX, B_L, B_O, B_ALPHA, B_PR, B_V, B_OUT, NBUFFERS };
enum { SEU_TMA, SEU_TENSOR, SEU_CUDA };

struct fixture {
	struct mem mem;
	struct arena arena;
	struct program program;
	struct trips trips[1];
	struct grid grids[1];
	struct graph graph;
	struct vdevice device;
	struct plan plan;
	struct phase_line line;
	struct timeline timeline;
};

#define LIST(a) { .v = (a), .n = LEN(a) }

static struct index_expr anywhere[2];
static struct index_expr queries[2] = {
	{ .n = 1, .term = { { AX_M, 1, 1, 0 } } }, { .n = 1, .term = { { AX_D, 1, 1, 0 } } }
};

static struct node mma_nodes[] = {
	{ .op = OP_LOAD, .naxes = 2, .axis = { AX_M, AX_D }, .arg = { NONE, NONE, NONE }, .index = queries },
	{ .op = OP_LOAD, .naxes = 2, .axis = { AX_N, AX_D }, .ref = NONE, .arg = { NONE, NONE, NONE }, .index = anywhere },
	{ .op = OP_MMA, .naxes = 2, .axis = { AX_M, AX_N }, .arg = { 0, 1 } },
	{ .op = OP_CAST, .naxes = 2, .axis = { AX_M, AX_N } },
	{ .op = OP_LOAD, .naxes = 2, .axis = { AX_N, AX_D }, .ref = NONE, .arg = { NONE, NONE, NONE }, .index = anywhere },
	{ .op = OP_MMA, .naxes = 2, .axis = { AX_M, AX_D }, .arg = { 3, 4 } },
};

static void make_program(struct fixture *f)
{
	static struct axis axes[] = { { .name = "m", .size = 4096, .packs = NONE },
		{ .name = "n", .size = 4096, .packs = NONE },
		{ .name = "d", .size = 128, .packs = NONE } };
	static struct tensor tensors[] = {
		{ .name = "Q", .role = TENSOR_INPUT, .type = DT_BF16, .rank = 2, .dim = { AX_M, AX_D } },
		{ .name = "O", .role = TENSOR_OUTPUT, .type = DT_BF16, .rank = 2, .dim = { AX_M, AX_D } },
	};
	static int q[] = { 0 }, k[] = { 1 }, qk[] = { 2 }, v[] = { 4 }, pv[] = { 5 };
	static struct item inside[] = { { false, T_LOAD_K }, { false, T_MMA_QK },
		{ false, T_SOFTMAX }, { false, T_RESCALE }, { false, T_LOAD_V },
		{ false, T_MMA_PV } };
	static struct item top[] = { { false, T_LOAD_Q }, { true, 0 }, { false, T_NORMALISE },
		{ false, T_STORE_O } };
	static struct loop loops[] = { { .parent = NONE, .naxes = 1, .axis = { AX_N },
		.body = LIST(inside) } };
	static struct phase phases[] = { { .name = "main", .body = LIST(top) } };
	struct task *tasks = ARENA_ARRAY(&f->arena, NTASKS, struct task);

	tasks[T_LOAD_Q].nodes.v = q;
	tasks[T_LOAD_K].nodes.v = k;
	tasks[T_LOAD_V].nodes.v = v;
	tasks[T_LOAD_Q].nodes.n = tasks[T_LOAD_K].nodes.n = tasks[T_LOAD_V].nodes.n = 1;
	tasks[T_MMA_QK].nodes.v = qk;
	tasks[T_MMA_PV].nodes.v = pv;
	tasks[T_MMA_QK].nodes.n = tasks[T_MMA_PV].nodes.n = 1;
	f->program = (struct program){ .name = "attention", .axes = LIST(axes),
		.tensors = LIST(tensors), .nodes = LIST(mma_nodes),
		.tasks = { .v = tasks, .n = NTASKS }, .loops = LIST(loops),
		.phases = LIST(phases) };
}

#define SHAPE(x, nx, y, ny) .naxes = 2, .axis = { x, y }, .extent = { nx, ny }
#define COPIES(n) { .kind = WORK_LOAD, .type = DT_BF16, .global_bytes = (n) }
#define PRODUCT(mm, nn, kk) { .kind = WORK_MMA, .type = DT_BF16, .m = (mm), .n = (nn), \
	.k = (kk), .flops = 2.0 * (mm) * (nn) * (kk) }

static void make_tasks(struct fixture *f)
{
	static const struct stask tasks[NTASKS] = {
		{ .name = "load_q", .kind = TASK_LOAD, .loop = NONE, SHAPE(AX_M, 128, AX_D, 128),
			.work = COPIES(32768) },
		{ .name = "load_k", .kind = TASK_LOAD, SHAPE(AX_N, 64, AX_D, 128),
			.work = COPIES(16384) },
		{ .name = "mma_qk", .kind = TASK_MMA, SHAPE(AX_M, 128, AX_N, 64),
			.work = PRODUCT(128, 64, 128) },
		{ .name = "softmax", .kind = TASK_COMPUTE, SHAPE(AX_M, 128, AX_N, 64),
			.work = { .kind = WORK_COMPUTE, .flops = 42000,
				.ops = { [CLASS_SFU] = 8320 } } },
		{ .name = "rescale", .kind = TASK_COMPUTE, SHAPE(AX_M, 128, AX_D, 128),
			.work = { .kind = WORK_COMPUTE, .flops = 16384 } },
		{ .name = "load_v", .kind = TASK_LOAD, SHAPE(AX_N, 64, AX_D, 128),
			.work = COPIES(16384) },
		{ .name = "mma_pv", .kind = TASK_MMA, SHAPE(AX_M, 128, AX_D, 128),
			.work = PRODUCT(128, 128, 64) },
		{ .name = "normalise", .kind = TASK_COMPUTE, .loop = NONE,
			SHAPE(AX_M, 128, AX_D, 128),
			.work = { .kind = WORK_COMPUTE, .flops = 16384 } },
		{ .name = "store_o", .kind = TASK_STORE, .loop = NONE,
			SHAPE(AX_M, 128, AX_D, 128), .work = COPIES(32768) },
	};
	struct stask *v = ARENA_ARRAY(&f->arena, NTASKS, struct stask);

	for (int i = 0; i < NTASKS; i++) {
		v[i] = tasks[i];
		v[i].task = v[i].position = i;
		v[i].slices = 1;
		v[i].split_axis = NONE;
	}
	f->graph.tasks.v = v;
	f->graph.tasks.n = NTASKS;
}

static void make_buffers(struct fixture *f)
{
	static const struct buffer buffers[NBUFFERS] = {
		{ .name = "q", .carry = NONE, .scope = SCOPE_SHARED, .type = DT_BF16,
			SHAPE(AX_M, 128, AX_D, 128), .loop = NONE, .first = T_LOAD_Q },
		{ .name = "k", .carry = NONE, .scope = SCOPE_SHARED, .type = DT_BF16,
			SHAPE(AX_N, 64, AX_D, 128), .first = T_LOAD_K },
		{ .name = "s", .carry = NONE, .type = DT_F32, SHAPE(AX_M, 128, AX_N, 64),
			.first = T_MMA_QK },
		{ .name = "mx", .type = DT_F32, .naxes = 1, .axis = { AX_M }, .extent = { 128 },
			.loop = NONE, .first = T_SOFTMAX },
		{ .name = "l", .type = DT_F32, .naxes = 1, .axis = { AX_M }, .extent = { 128 },
			.loop = NONE, .first = T_SOFTMAX },
		{ .name = "o", .type = DT_F32, SHAPE(AX_M, 128, AX_D, 128), .loop = NONE,
			.first = T_RESCALE },
		{ .name = "alpha", .carry = NONE, .type = DT_F32, .naxes = 1, .axis = { AX_M },
			.extent = { 128 }, .first = T_SOFTMAX },
		{ .name = "pr", .carry = NONE, .type = DT_BF16, SHAPE(AX_M, 128, AX_N, 64),
			.first = T_SOFTMAX },
		{ .name = "v", .carry = NONE, .scope = SCOPE_SHARED, .type = DT_BF16,
			SHAPE(AX_N, 64, AX_D, 128), .first = T_LOAD_V },
		{ .name = "out", .carry = NONE, .type = DT_BF16, SHAPE(AX_M, 128, AX_D, 128),
			.loop = NONE, .first = T_NORMALISE },
	};
	struct buffer *v = ARENA_ARRAY(&f->arena, NBUFFERS, struct buffer);

	for (int i = 0; i < NBUFFERS; i++) {
		v[i] = buffers[i];
		v[i].elements = 1;
		v[i].alias_of = NONE;
		for (int k = 0; k < v[i].naxes; k++)
			v[i].elements *= v[i].extent[k];
		v[i].bytes = v[i].elements * dtype_bits(v[i].type) / 8;
	}
	f->graph.buffers.v = v;
	f->graph.buffers.n = NBUFFERS;
	for (int i = 0; i < NBUFFERS; i++)
		VEC_PUSH(&f->arena, &f->graph.tasks.v[v[i].first].writes, i);
}

static const struct edge fixture_edges[] = {
	{ T_LOAD_Q, T_MMA_QK, EDGE_FLOW, NONE, 0, false, false, B_Q },
	{ T_MMA_QK, T_LOAD_Q, EDGE_ANTI, NONE, 1, true, false, B_Q },
	{ T_LOAD_K, T_MMA_QK, EDGE_FLOW, 0, 0, false, false, B_K },
	{ T_LOAD_K, T_LOAD_K, EDGE_OUTPUT, 0, 1, true, false, B_K },
	{ T_MMA_QK, T_LOAD_K, EDGE_ANTI, 0, 1, true, false, B_K },
	{ T_MMA_QK, T_SOFTMAX, EDGE_FLOW, 0, 0, false, false, B_S },
	{ T_SOFTMAX, T_SOFTMAX, EDGE_FLOW, 0, 1, false, false, B_MX },
	{ T_SOFTMAX, T_SOFTMAX, EDGE_FLOW, 0, 1, false, false, B_L },
	{ T_SOFTMAX, T_NORMALISE, EDGE_FLOW, NONE, 0, false, false, B_L },
	{ T_SOFTMAX, T_RESCALE, EDGE_FLOW, 0, 0, false, false, B_ALPHA },
	{ T_SOFTMAX, T_MMA_PV, EDGE_FLOW, 0, 0, false, false, B_PR },
	{ T_MMA_PV, T_SOFTMAX, EDGE_ANTI, 0, 1, true, false, B_PR },
	{ T_RESCALE, T_MMA_PV, EDGE_FLOW, 0, 0, false, false, B_O },
	{ T_MMA_PV, T_RESCALE, EDGE_FLOW, 0, 1, false, false, B_O },
	{ T_MMA_PV, T_NORMALISE, EDGE_FLOW, NONE, 0, false, false, B_O },
	{ T_LOAD_V, T_MMA_PV, EDGE_FLOW, 0, 0, false, false, B_V },
	{ T_MMA_PV, T_LOAD_V, EDGE_ANTI, 0, 1, true, false, B_V },
	{ T_NORMALISE, T_STORE_O, EDGE_FLOW, NONE, 0, false, false, B_OUT },
};

/* Instead of those that the graph has. */
static void set_edges(struct fixture *f, const struct edge *edges, int n)
{
	struct graph *g = &f->graph;

	g->edges.n = g->next_in.n = 0;
	g->first_in = ARENA_ARRAY(&g->arena, g->tasks.n, int);
	for (int i = 0; i < g->tasks.n; i++)
		g->first_in[i] = NONE;
	for (int i = 0; i < n; i++)
		graph_add_edge(g, edges[i]);
}

static void make_device(struct fixture *f)
{
	f->device = (struct vdevice){ .name = "toy", .title = "Toy GPU", .arch = "sm_0", .eus = 4,
		.clock_hz = 1.5e9, .nseus = 3, .warp = 32, .max_threads = 1024,
		.registers = 65536, .thread_registers = 255, .shared_bytes = 232448,
		.named_barriers = 16, .max_cluster = 2, .cluster_eus = 132, .global_bytes = 1ll << 34,
		.global_rate = 1.2e12, .global_latency = 700, .l2_bytes = 50 << 20,
		.l2_rate = 256, .l2_latency = 280, .shared_rate = 128, .wait_cost = 30,
		.flag_latency = 92, .issue_order_latency = 30, .handoff_latency = 61,
		.handoff_rate = 64, .tile_overhead = 200 };
	f->device.seu[SEU_TMA] = (struct seu){ .name = "tma", .kind = SEU_COPY, .async = true,
		.issue = 10, .latency = 700 };
	f->device.seu[SEU_TENSOR] = (struct seu){ .name = "tensor", .kind = SEU_MATRIX,
		.async = true, .ordered = true, .issue = 20, .latency = 40,
		.flops = { [DT_BF16] = 4096, [DT_E4M3] = 8192 } };
	f->device.seu[SEU_CUDA] = (struct seu){ .name = "cuda", .kind = SEU_VECTOR,
		.ops = { [CLASS_FMA] = 128, [CLASS_SFU] = 16 } };
}

static void make_plan(struct fixture *f)
{
	static struct lane lanes[] = { { .name = "p0", .warps = 1, .replicas = 1 },
		{ .name = "c0", .warps = 8, .registers = 240, .replicas = 1 } };
	static struct entry entries[] = {
		{ T_LOAD_Q, 0, SEU_TMA, 0, { 0 }, false }, { T_LOAD_K, 0, SEU_TMA, 0, { 0 }, false },
		{ T_LOAD_V, 0, SEU_TMA, 0, { 0 }, false }, { T_MMA_QK, 1, SEU_TENSOR, 1, { 0 }, false },
		{ T_MMA_PV, 1, SEU_TENSOR, 0, { 0 }, false }, { T_SOFTMAX, 1, SEU_CUDA, 1, { 0 }, false },
		{ T_RESCALE, 1, SEU_CUDA, 1, { 0 }, false }, { T_NORMALISE, 1, SEU_CUDA, 0, { 0 }, false },
	};
	static struct wait waits[] = {
		{ T_LOAD_Q, T_MMA_QK, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_LOAD_K, T_MMA_QK, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_LOAD_V, T_MMA_PV, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_MMA_QK, T_LOAD_Q, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_MMA_QK, T_LOAD_K, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_MMA_QK, T_MMA_PV, 2, WAIT_ISSUED, false, { 0 } },
		{ T_MMA_PV, T_LOAD_V, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
		{ T_SOFTMAX, T_MMA_QK, DISTANCE_AUTO, WAIT_COMPLETE, false, { 0 } },
	};
	static int versions[NBUFFERS] = { 1, 2, 1, 1, 1, 1, 1, 2, 2, 1 };

	f->plan = (struct plan){ .graph = &f->graph, .device = &f->device, .lanes = LIST(lanes),
		.entries = LIST(entries), .waits = LIST(waits), .versions = versions,
		.grid = { .raster = RASTER_COLUMNS, .group = 8, .cluster = 2 } };
}

static void add_event(struct fixture *f, struct event e)
{
	VEC_PUSH(&f->arena, &f->line.events, e);
}

/* Three iterations: load, product, softmax under the next product. */
static void make_timeline(struct fixture *f)
{
	f->line = (struct phase_line){ .eus = 4, .tiles = 32, .cycles = 8000, .ii = 630,
		.res_mii = 600, .rec_mii = 512.4, .binding_seu = SEU_TENSOR,
		.seu = { { 400, 0.05, 0.6, false }, { 6800, 0.85, 0.85, false }, { 4000, 0.5, 0.5, false } }, .memory_share = 0.3 };
	for (int i = 0; i < 3; i++) {
		int64_t t = 900 + 600 * i;

		add_event(f, (struct event){ 10 * i, 10 * i, 10 * i, 900 + 100 * i, i, 0,
			T_LOAD_K, NONE, 0, 0, SEU_TMA, CAUSE_NONE, 0, 0, NONE, 0, 0, 0, 0 });
		add_event(f, (struct event){ i ? t - 200 : 0, t, t, t + 340, i, 0, T_MMA_QK,
			T_LOAD_K, 1, 0, SEU_TENSOR, CAUSE_WAIT, 0, 0, NONE, 0, 0, 0, 0 });
		add_event(f, (struct event){ t + 20, t + 340, t + 350, t + 560, i, 0, T_SOFTMAX,
			T_MMA_QK, 1, 0, SEU_CUDA, CAUSE_WAIT, 0, 0, NONE, 0, 0, 0, 0 });
		add_event(f, (struct event){ t + 560, t + 560, t + 560, t + 600, i, 0, T_RESCALE,
			NONE, 1, 0, SEU_CUDA, CAUSE_NONE, 0, 0, NONE, 0, 0, 0, 0 });
		add_event(f, (struct event){ t + 620, t + 620, t + 900, t + 1180, i, 0, T_MMA_PV,
			T_MMA_QK, 1, 0, SEU_TENSOR, CAUSE_SEU, 0, 0, NONE, 0, 0, 0, 0 });
	}
	f->timeline = (struct timeline){ .plan = &f->plan, .nphases = 1, .phases = &f->line,
		.cycles = 8000, .seconds = 8000 / 1.5e9, .flops = 1e9, .nevents = 15,
		.cache = "cold L2" };
}

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, &f->mem);
	make_program(f);
	make_tasks(f);
	make_buffers(f);
	f->trips[0] = (struct trips){ 1, 64, 32.5 };
	f->grids[0] = (struct grid){ .n = 1, .axis = { AX_M }, .tiles = { 32 }, .total = 32 };
	f->graph.program = &f->program;
	f->graph.extents.program = &f->program;
	f->graph.extents.tile[AX_M] = f->graph.extents.tile[AX_D] = 128;
	f->graph.extents.tile[AX_N] = 64;
	arena_init(&f->graph.arena, &f->mem);
	set_edges(f, fixture_edges, LEN(fixture_edges));
	f->graph.trips = f->trips;
	f->graph.grids = f->grids;
	make_device(f);
	make_plan(f);
	make_timeline(f);
}

static void fixture_release(struct fixture *f)
{
	arena_release(&f->graph.arena);
	arena_release(&f->arena);
}

#endif
