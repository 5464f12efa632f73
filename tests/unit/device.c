/* The vDevice: building one from paths, every refusal, and costs by hand. */
#include "device/device.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/prng.h"
#include "tests/tap.h"

/* So many EUs at the full clock. */
#define PACE(n) ((struct pace){ .active = n, .clock_hz = d->clock_hz })

static const struct srcloc here = { "test.lua", 7 };

/* One field of a description: a text, or if that is NULL a number. */
struct given {
	const char *path;
	double number;
	const char *text;
};

/* An SM with round numbers: the clock is 1 GHz, so a cycle is a nanosecond. */
static const struct given sm[] = {
	{ "title", 0, "A GPU" },
	{ "arch", 0, "sm_90a" },
	{ "eus", 100, NULL },
	{ "clock_ghz", 1, NULL },
	{ "limits.warp", 32, NULL },
	{ "limits.max_threads", 1024, NULL },
	{ "limits.registers", 65536, NULL },
	{ "limits.thread_registers", 255, NULL },
	{ "limits.register_step", 8, NULL },
	{ "limits.reserved_registers", 24, NULL },
	{ "limits.named_barriers", 16, NULL },
	{ "limits.max_cluster", 8, NULL },
	{ "limits.cluster_eus", 96, NULL },
	{ "memory.global.bytes", 1e11, NULL },
	{ "memory.global.rate", 4e12, NULL },	/* 40 B/cycle for each of 100 SMs */
	{ "memory.global.latency", 700, NULL },
	{ "memory.global.uneven", 0.25, NULL },
	{ "memory.global.switching", 0.5, NULL },
	{ "memory.l2.bytes", 5e7, NULL },
	{ "memory.l2.rate", 4800, NULL },	/* 48 B/cycle for each of 100 SMs */
	{ "memory.l2.eu_rate", 64, NULL },
	{ "memory.l2.latency", 280, NULL },
	{ "memory.shared.bytes", 232448, NULL },
	{ "memory.shared.rate", 128, NULL },
	{ "sync.wait_cost", 30, NULL },
	{ "sync.tell_cost", 12, NULL },
	{ "sync.warp_cost", 8, NULL },
	{ "sync.fence_cost", 24, NULL },
	{ "sync.flag_latency", 92, NULL },
	{ "sync.issue_order_latency", 30, NULL },
	{ "sync.handoff_latency", 61, NULL },
	{ "sync.handoff_rate", 64, NULL },
	{ "sync.launch_seconds", 2e-6, NULL },
	{ "sync.early_seconds", 1.5e-6, NULL },
	{ "sync.ahead_seconds", 5e-7, NULL },
	{ "sync.tile_overhead", 200, NULL },
	{ "seu.tma.kind", 0, "copy" },
	{ "seu.tma.async", 1, NULL },
	{ "seu.tma.issue", 30, NULL },
	{ "seu.tma.latency", 180, NULL },
	{ "seu.tma.box_bytes", 32768, NULL },
	{ "seu.tma.box_interval", 64, NULL },
	{ "seu.tensor.kind", 0, "matrix" },
	{ "seu.tensor.async", 1, NULL },
	{ "seu.tensor.ordered", 1, NULL },
	{ "seu.tensor.issue", 32, NULL },
	{ "seu.tensor.latency", 33, NULL },
	{ "seu.tensor.flops.bf16", 4096, NULL },
	{ "seu.tensor.flops.e4m3", 8192, NULL },
	{ "seu.tensor.efficiency", 0.8, NULL },
	{ "seu.tensor.min_m", 64, NULL },
	{ "seu.tensor.min_n", 8, NULL },
	{ "seu.tensor.min_k", 32, NULL },
	{ "seu.cuda.kind", 0, "vector" },
	{ "seu.cuda.issue", 0, NULL },
	{ "seu.cuda.latency", 24, NULL },
	{ "seu.cuda.ops.fma", 128, NULL },
	{ "seu.cuda.ops.alu", 64, NULL },
	{ "seu.cuda.ops.sfu", 16, NULL },
	{ "seu.cuda.ops.cvt", 64, NULL },
	{ "seu.cuda.ops.div", 8, NULL },
	{ "seu.cuda.ops.reduce", 64, NULL },
	{ "seu.cuda.ops.scan", 16, NULL },
	{ "seu.cuda.ops.move", 32, NULL },
	{ "seu.cuda.slots", 128, NULL },
	{ "seu.cuda.lane_share", 0.5, NULL },
	{ "seu.cuda.chain", 4, NULL },
};

enum { TMA, TENSOR, CUDA };

static struct mem mem;

static enum err_code give(struct vdevice *d, const struct given *g, struct err *e)
{
	if (g->text)
		return device_set_text(d, g->path, g->text, here, e);
	return device_set_number(d, g->path, g->number, here, e);
}

/* The device above without the fields whose path begins with `but` (if not NULL). */
static struct vdevice *build(const char *but)
{
	struct vdevice *d = device_new(&mem, "gpu");
	struct err e = { 0 };

	for (int i = 0; i < LEN(sm); i++) {
		if (but && !strncmp(sm[i].path, but, strlen(but)))
			continue;
		if (give(d, &sm[i], &e)) {
			diag("%s", e.msg);
			exit(1);
		}
	}
	return d;
}

static struct vdevice *finished(void)
{
	struct vdevice *d = build(NULL);
	struct err e = { 0 };

	if (device_finish(d, here, &e)) {
		diag("%s", e.msg);
		exit(1);
	}
	return d;
}

static void test_fields(void)
{
	struct vdevice *d = finished();
	struct err e = { 0 };

	is_str(d->name, "gpu", "name");
	is_str(d->title, "A GPU", "a text");
	is_int(d->eus, 100, "an int");
	is_int(d->l2_bytes, 50000000, "an int64");
	is_near(d->clock_hz, 1e9, 0, "clock_ghz is stored in Hz");
	is_near(d->launch_seconds, 2e-6, 0, "a number");
	is_int(d->nseus, 3, "three sEUs");
	is_str(d->seu[TENSOR].name, "tensor", "in order of appearance");
	is_int(d->seu[CUDA].kind, SEU_VECTOR, "a kind");
	ok(d->seu[TENSOR].ordered && !d->seu[CUDA].async, "flags, false if not given");
	is_near(d->seu[TENSOR].flops[DT_E4M3], 8192, 0, "a rate by type");
	is_near(d->seu[TENSOR].flops[DT_F16], 0, 0, "not given: not supported");
	is_near(d->seu[CUDA].ops[CLASS_MOVE], 32, 0, "a rate by class");
	is_near(d->seu[TMA].efficiency, 0, 0, "what a kind has not is 0");
	is_near(d->seu[CUDA].ops[CLASS_MMA], 0, 0, "there is no rate of products");
	is_int(device_find_seu(d, "cuda"), CUDA, "found by name");
	is_int(device_find_seu(d, "cud"), NONE, "a part of a name is none");
	is_int(device_set_number(d, "clock_ghz", 1.25, here, &e), OK, "a field may be refined");
	is_int(device_finish(d, here, &e), OK, "and the device finished again");
	is_near(d->clock_hz, 1.25e9, 0, "to its new value");
	device_free(d);
	device_free(NULL);
}

/* What is said about one field given to a device that has all the others. */
static void refused(struct given g, enum err_code code, const char *msg)
{
	struct vdevice *d = build(NULL), before = *d;
	struct err e = { 0 };

	ok(give(d, &g, &e) == code && e.code == code && e.line == 7, g.path);
	is_str(e.msg, msg, "... its message");
	ok(!memcmp(d->seu, before.seu, sizeof(d->seu)) && d->nseus == before.nseus &&
		d->clock_hz == before.clock_hz, "... and the device as it was");
	device_free(d);
}

static void test_refusals(void)
{
	refused((struct given){ "clock_ghx", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'clock_ghx'; did you mean 'clock_ghz'?");
	refused((struct given){ "memory.l2.latncy", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'memory.l2.latncy'; did you mean 'memory.l2.latency'?");
	refused((struct given){ "colour", 0, "red" }, ERR_INPUT,
		"device 'gpu' has no field 'colour'");
	refused((struct given){ "seu.tensor.flops.bf1", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'seu.tensor.flops.bf1'; did you mean "
		"'seu.tensor.flops.bf16'?");
	refused((struct given){ "seu.new.ops.fmaa", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'seu.new.ops.fmaa'; did you mean 'seu.new.ops.fma'?");
	refused((struct given){ "seu.cuda.ops.mma", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'seu.cuda.ops.mma'; did you mean 'seu.cuda.ops.fma'?");
	refused((struct given){ "seu.cuda.ops", 1, NULL }, ERR_INPUT,
		"device 'gpu' has no field 'seu.cuda.ops'");
	refused((struct given){ "seu.cuda", 1, NULL }, ERR_INPUT,
		"'seu.cuda' is an sEU and holds fields, not a value");
	refused((struct given){ "seu..issue", 1, NULL }, ERR_INPUT,
		"'seu..issue': an sEU is named by at most 31 letters, digits and underscores, "
		"a digit not first");
	refused((struct given){ "seu.1st.issue", 1, NULL }, ERR_INPUT,
		"'seu.1st.issue': an sEU is named by at most 31 letters, digits and underscores, "
		"a digit not first");
	refused((struct given){ "clock_ghz", 1500, NULL }, ERR_INPUT,
		"'clock_ghz' is 1500 GHz; it must be from 0.01 to 20");
	refused((struct given){ "clock_ghz", NAN, NULL }, ERR_INPUT,
		"'clock_ghz' is nan GHz; it must be from 0.01 to 20");
	refused((struct given){ "eus", 1.5, NULL }, ERR_INPUT,
		"'eus' is 1.5; it must be an integer");
	refused((struct given){ "seu.new.efficiency", 1.2, NULL }, ERR_INPUT,
		"'seu.new.efficiency' is 1.2; it must be from 0.001 to 1");
	refused((struct given){ "eus", 0, "many" }, ERR_INPUT,
		"'eus' takes a number, not the text 'many'");
	refused((struct given){ "title", 3, NULL }, ERR_INPUT,
		"'title' takes a text, not the number 3");
	refused((struct given){ "title", 0, "" }, ERR_INPUT, "'title' is an empty text");
	refused((struct given){ "seu.tensor.kind", 0, "tensor" }, ERR_INPUT,
		"'seu.tensor.kind' is 'tensor'; it must be copy, matrix or vector");
	refused((struct given){ "seu.tensor.async", 2, NULL }, ERR_INPUT,
		"'seu.tensor.async' is 2; it must be from 0 to 1");
}

static void test_seu_limit(void)
{
	struct vdevice *d = device_new(&mem, "gpu");
	struct err e = { 0 };
	char path[] = "seu.unit0.issue";

	for (int i = 0; i < SEU_MAX; i++) {
		path[8] = (char)('0' + i);
		if (device_set_number(d, path, 1, here, &e))
			diag("%s", e.msg);
	}
	is_int(d->nseus, SEU_MAX, "as many sEUs as fit");
	is_int(device_set_number(d, "seu.last.issue", 1, here, &e), ERR_LIMIT, "one too many");
	is_str(e.msg, "sEU 'last' is one too many: a device has at most 8", "... its message");
	is_int(device_set_number(d, "seu.unit7.issue", 2, here, &e), OK, "but a known one is none");
	device_free(d);
}

/* What device_finish says of the device without some fields and with one more. */
static void incomplete(const char *but, struct given more, const char *msg)
{
	struct vdevice *d = build(but);
	struct err e = { 0 };

	if (more.path && give(d, &more, &e))
		diag("%s", e.msg);
	is_int(device_finish(d, here, &e), ERR_INPUT, but ? but : more.path);
	is_str(e.msg, msg, "... its message");
	device_free(d);
}

static void test_finish(void)
{
	static const struct given none;

	incomplete("title", none, "device 'gpu' lacks 'title' (what people call it)");
	incomplete("clock_ghz", none,
		"device 'gpu' lacks 'clock_ghz' (clock of the EUs, in GHz)");
	incomplete("limits.", none,
		"device 'gpu' lacks 'limits.warp' (of a warp or wave, in threads)");
	incomplete("memory.l2.eu_rate", none,
		"device 'gpu' lacks 'memory.l2.eu_rate' (that one EU can draw, in B/cycle)");
	incomplete("seu.tma.kind", none,
		"device 'gpu' lacks 'seu.tma.kind' (copy, matrix or vector)");
	incomplete("seu.tma.box_interval", none,
		"device 'gpu' lacks 'seu.tma.box_interval' (between instructions, in cycles)");
	incomplete("seu.tensor.min_k", none,
		"device 'gpu' lacks 'seu.tensor.min_k' (depth of an instruction, in B)");
	incomplete("seu.tensor.flops", none,
		"device 'gpu' lacks 'seu.tensor.flops.TYPE': a matrix sEU supports at least one "
		"type");
	incomplete("seu.cuda.ops.scan", none,
		"device 'gpu' lacks 'seu.cuda.ops.scan' (operations on elements, in /cycle)");
	incomplete("seu.cuda", none,
		"device 'gpu' lacks a vector sEU, which element-wise work needs");
	incomplete("seu.", none, "device 'gpu' lacks a vector sEU, which element-wise work needs");
	incomplete(NULL, (struct given){ "seu.tma.flops.bf16", 1, NULL },
		"'seu.tma.flops.bf16' is given, but a copy sEU has no such field");
	incomplete(NULL, (struct given){ "seu.cuda.box_bytes", 1, NULL },
		"'seu.cuda.box_bytes' is given, but a vector sEU has no such field");
	incomplete(NULL, (struct given){ "memory.l2.eu_rate", 9600, NULL },
		"'memory.l2.eu_rate' is 9600; it must not exceed 'memory.l2.rate', which is 4800");
	incomplete(NULL, (struct given){ "memory.l2.latency", 900, NULL },
		"'memory.l2.latency' is 900; it must not exceed 'memory.global.latency', which is "
		"700");
	incomplete(NULL, (struct given){ "limits.reserved_registers", 300, NULL },
		"'limits.reserved_registers' is 300; it must not exceed 'limits.thread_registers', "
		"which is 255");
	incomplete(NULL, (struct given){ "limits.max_threads", 1000, NULL },
		"'limits.max_threads' is 1000; it must be a multiple of 'limits.warp', which is "
		"32");
}

static struct work product(int64_t m, int64_t n, int64_t k, enum dtype type)
{
	return (struct work){ .kind = WORK_MMA, .type = type, .m = m, .n = n, .k = k,
		.flops = 2.0 * (double)m * (double)n * (double)k };
}

static double busy(const struct vdevice *d, int seu, const struct work *w)
{
	return device_cost(d, seu, w, 4, PACE(100)).busy;
}

static void test_matrix(const struct vdevice *d)
{
	struct work w = product(64, 256, 16, DT_BF16);
	struct cost c = device_cost(d, TENSOR, &w, 4, PACE(100));

	/* 2 * 64 * 256 * 16 / 4096 = 128, of which 0.8 are used */
	is_near(c.busy, 128 / 0.8, 1e-9, "m64n256k16 takes 128 cycles at full rate");
	is_near(c.alone, c.busy, 1e-9, "a warpgroup fills the tensor cores");
	is_near(c.issue, 32, 0, "issue");
	is_near(c.latency, 33, 0, "latency");
	is_near(c.memory, 0, 0, "no memory");
	w = product(64, 256, 32, DT_E4M3);
	is_near(busy(d, TENSOR, &w), 128 / 0.8, 1e-9, "fp8: twice the depth");
	w = product(16, 250, 10, DT_BF16);
	is_near(busy(d, TENSOR, &w), 128 / 0.8, 1e-9, "rounded up in m, n, k");
	w = product(128, 256, 64, DT_BF16);
	is_near(busy(d, TENSOR, &w), 1024 / 0.8, 1e-9, "128x256x64: 1024");
	w = product(64, 256, 16, DT_BF16);
	is_near(device_cost(d, TENSOR, &w, 2, PACE(100)).alone, 256 / 0.8, 1e-9, "two warps reach half");
	/* n = 32 from shared memory: (64 + 32) rows of 32 bytes / 128 = 24 cycles; at full
	 * rate 16, at 0.8 of it 20 */
	w = product(64, 32, 16, DT_BF16);
	is_near(busy(d, TENSOR, &w), 24, 1e-9, "narrow: bound by shared memory");
	w.a_in_registers = true;
	is_near(busy(d, TENSOR, &w), 20, 1e-9, "unless a is in registers");
	/* two instructions of 64 rows read b twice: 2 * (64 + 32) * 32 / 128 = 48 */
	w = product(128, 32, 16, DT_BF16);
	is_near(busy(d, TENSOR, &w), 48, 1e-9, "more rows read b again");
	w = product(64, 256, 16, DT_BF16);
	w.shared_bytes = 51200;
	is_near(busy(d, TENSOR, &w), 400, 1e-9, "bytes that the graph knows of");
}

/* mma.sync: the operands are in registers, and their reading is the work's own. A
 * copy without an engine holds its lane, which issues nothing else. */
static void test_synchronous(void)
{
	struct vdevice *d = finished();
	struct work w = product(64, 32, 16, DT_BF16);

	d->seu[TENSOR].async = false;
	is_near(busy(d, TENSOR, &w), 20, 1e-9, "synchronous: no operand bytes");
	w.shared_bytes = 12800;
	is_near(busy(d, TENSOR, &w), 100, 1e-9, "but those of the work");
	d->seu[TMA].async = false;
	w = (struct work){ .kind = WORK_LOAD, .type = DT_BF16, .boxes = 5 };
	is_near(device_cost(d, TMA, &w, 1, PACE(1)).issue, 30, 1e-9, "synchronous: one issue");
	device_free(d);
}

static void test_vector(const struct vdevice *d)
{
	struct work w = { .kind = WORK_COMPUTE, .type = DT_F32 };
	struct cost c;

	w.ops[CLASS_SFU] = 128 * 128;
	c = device_cost(d, CUDA, &w, 4, PACE(100));
	is_near(c.busy, 1024, 1e-9, "exp2 of 128x128 is 1024 cycles of SFU");
	is_near(c.alone, 2048, 1e-9, "one lane draws its share, here a half");
	is_near(device_cost(d, CUDA, &w, 8, PACE(100)).alone, 1024, 1e-9, "twice the warps draw all");
	is_near(device_cost(d, CUDA, &w, 16, PACE(100)).alone, 1024, 1e-9, "and not more than that");
	is_near(device_cost(d, CUDA, &w, 1, PACE(100)).alone, 8192, 1e-9, "one warp an eighth");
	is_near(c.latency, 24, 0, "latency");
	w.ops[CLASS_FMA] = w.ops[CLASS_ALU] = 128 * 128;
	is_near(busy(d, CUDA, &w), 1024, 1e-9, "other pipes work meanwhile");
	w.ops[CLASS_SFU] = 0;
	w.ops[CLASS_FMA] = 3 * 128 * 128;
	/* alu alone 256, fma alone 384, all in 128 slots 512 */
	is_near(busy(d, CUDA, &w), 512, 1e-9, "issue slots are shared");
	w.ops[CLASS_REDUCE] = 128 * 128;
	is_near(busy(d, CUDA, &w), 512 + 256, 1e-9, "a reduction adds to them");
	w.ops[CLASS_FREE] = 1e9;
	is_near(busy(d, CUDA, &w), 768, 1e-9, "what is free costs nothing");
	w.shared_bytes = 12800;
	is_near(busy(d, CUDA, &w), 868, 1e-9, "shared memory comes on top");
	w = product(128, 128, 64, DT_F32);
	is_near(busy(d, CUDA, &w), 8192, 1e-9, "a product is its FMA");
	w = (struct work){ .kind = WORK_LOAD, .type = DT_BF16, .global_bytes = 6400 };
	is_near(busy(d, CUDA, &w), 100, 1e-9, "a load is a move an element");
}

static void test_copy(const struct vdevice *d)
{
	/* the operands of 128x256x64 in bf16 */
	struct work w = { .kind = WORK_LOAD, .type = DT_BF16, .global_bytes = 49152,
		.unique_share = 0.5, .boxes = 2 };
	struct cost c = device_cost(d, TMA, &w, 1, PACE(100));

	is_near(c.memory, 1024, 1e-9, "48 KiB at this EU's 48 B a cycle of L2");
	is_near(c.busy, 128, 1e-9, "two boxes");
	is_near(c.issue, 30 + 64, 1e-9, "the second is issued an interval later");
	is_near(c.latency, 180 + 700, 1e-9, "a part from device memory: its latency");
	w.unique_share = 1;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).memory, 49152 / 40.0, 1e-9,
		"all from device memory at 40 B a cycle");
	is_near(device_cost(d, TMA, &w, 1, (struct pace){ .active = 100, .clock_hz = 1e9, .regained = 0.25 }).global, 49152 / 50.0, 1e-9,
		"device memory is as much faster as tiles by a counter make it");
	is_near(device_cost(d, TMA, &w, 1, (struct pace){ .active = 100, .clock_hz = 1e9, .written = 0.5 }).global, 1.25 * 49152 / 40.0,
		1e-9, "... and slower where every second byte is written");
	is_near(device_switching(d, 0.2), 1.16, 1e-9, "... and less so where one of five is");
	is_near(device_switching(d, 1), 1, 0, "what is only written takes no longer than what is only read");
	is_near(device_cost(d, TMA, &w, 1, PACE(1)).memory, 768, 1e-9, "alone: as fast as an EU draws");
	w.unique_share = 0;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).l2, 1024, 1e-9, "all EUs: their share of L2's rate");
	struct vdevice apart = *d;
	apart.l2_apart_rate = d->l2_rate / 4;
	is_near(device_cost(&apart, TMA, &w, 1, PACE(100)).l2, 1024, 1e-9, "... all of it where they go on together");
	w.apart = true;
	is_near(device_cost(&apart, TMA, &w, 1, PACE(100)).l2, 4096, 1e-9, "... less where clusters divide a loop");
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).l2, 1024, 1e-9, "... unless the device says nothing of that");
	w.apart = false;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).latency, 180 + 280, 1e-9, "all from L2");
	w.kind = WORK_STORE;
	w.adds = true;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).memory, 2048, 1e-9, "additions: half of L2's rate unless given");
	struct vdevice adding = *d;
	adding.l2_add_eu_rate = 12;
	adding.l2_add_interval = 16;
	is_near(device_cost(&adding, TMA, &w, 1, PACE(1)).memory, 4096, 1e-9, "... an EU's own rate, if the others are idle");
	w.region = 1024;
	is_near(device_cost(&adding, TMA, &w, 1, PACE(100)).memory, 76800, 1e-9, "... a KiB every 16 cycles, if all add to that");
	w.region = 1 << 20;
	is_near(device_cost(&adding, TMA, &w, 1, PACE(100)).memory, 4096, 1e-9, "... a large region is as fast as none");
	w.unique_share = 1;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).global, 2 * 49152 / 40.0, 1e-9, "... sums are read and written back");
	w.unique_share = w.region = 0;
	w.kind = WORK_LOAD;
	w.adds = false;
	w.boxes = 1;
	is_near(busy(d, TMA, &w), 128, 1e-9, "48 KiB are two boxes at least");
	w.kind = WORK_STORE;
	is_near(device_cost(d, TMA, &w, 1, PACE(100)).latency, 180, 1e-9, "a store waits for no memory");
}

static void test_choice(const struct vdevice *d)
{
	struct work w = { .kind = WORK_LOAD, .type = DT_BF16 };

	is_int(device_seu_for(d, &w), TMA, "loads go to the copy engine");
	ok(device_can(d, CUDA, &w) && !device_can(d, TENSOR, &w), "or the vector unit");
	w.kind = WORK_STORE;
	is_int(device_seu_for(d, &w), TMA, "so do stores");
	w.kind = WORK_MMA;
	is_int(device_seu_for(d, &w), TENSOR, "products to the matrix unit");
	w.type = DT_F32;
	is_int(device_seu_for(d, &w), CUDA, "if it has the type");
	w.kind = WORK_COMPUTE;
	is_int(device_seu_for(d, &w), CUDA, "other work to the vector unit");
	ok(!device_can(d, TMA, &w) && !device_can(d, TENSOR, &w), "and nowhere else");
	ok(!device_can(d, NONE, &w) && !device_can(d, 3, &w), "no such sEU");
}

/* Extents and amounts over many orders of magnitude, now and then 0 or negative. */
static double any(struct prng *r)
{
	uint32_t what = prng_below(r, 8);

	if (what < 2)
		return what == 0 ? 0 : -prng_unit(r);
	return exp2(prng_unit(r) * 40);
}

static struct work any_work(struct prng *r)
{
	struct work w = { .kind = (enum work_kind)prng_below(r, WORK_COMPUTE + 1),
		.type = (enum dtype)prng_below(r, DT_COUNT) };

	w.m = (int64_t)any(r);
	w.n = (int64_t)any(r);
	w.k = (int64_t)any(r);
	w.flops = any(r);
	w.global_bytes = any(r);
	w.unique_share = 2 * prng_unit(r) - 0.5;
	w.shared_bytes = any(r);
	w.boxes = any(r);
	for (int i = 0; i < CLASS_COUNT; i++)
		w.ops[i] = any(r);
	return w;
}

static bool is_sane(struct cost c)
{
	return c.issue >= 0 && c.busy >= 0 && c.alone >= c.busy && c.memory >= 0 &&
		c.latency >= 0 && isfinite(c.issue + c.alone + c.memory + c.latency);
}

static void test_any_work(const struct vdevice *d)
{
	struct prng r = { 1 };
	int bad = 0, done = 0;

	for (int i = 0; i < 20000; i++) {
		struct work w = any_work(&r);

		for (int s = 0; s < d->nseus; s++) {
			int warps = (int)prng_below(&r, 17), active = (int)prng_below(&r, 101);

			if (!device_can(d, s, &w))
				continue;
			bad += !is_sane(device_cost(d, s, &w, warps, PACE(active)));
			done++;
		}
	}
	ok(done > 20000, "much work was costed");
	is_int(bad, 0, "no cost is negative, infinite or not a number");
}

static void test_print(const struct vdevice *d)
{
	struct arena a;
	struct buf b;

	arena_init(&a, &mem);
	buf_init(&b, &a);
	device_print(d, &b);
	ok(!strncmp(b.text, "gpu: A GPU (sm_90a)\n", 20), "printed: its title");
	ok(strstr(b.text, "  clock_ghz                             1 GHz         clock of the EUs\n") != NULL, "printed: a field in the unit of the file");
	ok(strstr(b.text, "\nsEU tensor: matrix, asynchronous, in order\n") != NULL,
		"printed: an sEU");
	ok(strstr(b.text, "seu.tensor.flops.bf16 ") && !strstr(b.text, "flops.f16 ") &&
		!strstr(b.text, "seu.cuda.box"), "printed: only what there is");
	arena_release(&a);
}

/* The clock that 100 W over idle leave: at x of it, work of E takes x E, in C / (x f) and the waits. */
static void test_power(void)
{
	struct vdevice *d = finished();
	struct effort e = { .of[EFFORT_PRODUCT] = 2e12 }, joules;
	double watts, clock;

	d->clock_hz = 1e9;
	clock = device_clock(d, &e, 1e6, 0, &watts);
	is_near(clock, 1e9, 0, "without a limit the clock is full");
	is_near(watts, 0, 0, "... and nothing is known of the power");
	d->power_limit = 300;
	d->power_idle = 200;
	d->energy[EFFORT_PRODUCT] = 0.1;
	/* 0.2 J in 1 ms would be 200 W: x^2 = 100 / 200 */
	clock = device_clock(d, &e, 1e6, 0, &watts);
	is_near(clock, 1e9 * sqrt(0.5), 1, "half of the power, less of the clock");
	is_near(watts, 300, 1e-9, "... which draws what may be drawn");
	joules = device_energy(d, &e, clock);
	is_near(joules.of[EFFORT_PRODUCT], 0.2 * sqrt(0.5), 1e-9, "... with less energy");

	struct work w = { .kind = WORK_LOAD, .type = DT_BF16, .global_bytes = 4096, .row_bytes = 64 };

	d->l2_row_energy = 0.5;
	is_near(device_effort(d, TMA, &w).of[EFFORT_L2], 6144, 1e-9, "rows of half a line: half as much more");
	w.row_bytes = 32;
	is_near(device_effort(d, TMA, &w).of[EFFORT_L2], 10240, 1e-9, "... of a quarter");
	w.row_bytes = 2;
	is_near(device_effort(d, TMA, &w).of[EFFORT_L2], 10240, 1e-9, "... of less: that is the least");
	w.by_threads = true;
	is_near(device_effort(d, TMA, &w).of[EFFORT_L2], 4096, 1e-9, "... by threads: no more than the bytes given");
	w.by_threads = false;
	w.row_bytes = 256;
	is_near(device_effort(d, TMA, &w).of[EFFORT_L2], 4096, 1e-9, "... of lines: no more");
	/* waits help: x 0.2 = 100 (1e-3 / x + 1e-3), x = 1 */
	clock = device_clock(d, &e, 1e6, 1e-3, &watts);
	is_near(clock, 1e9, 1e-3, "what waits cools");
	is_near(watts, 300, 1e-6, "... just so");
	clock = device_clock(d, &e, 1e6, 3e-3, &watts);
	is_near(watts, 200 + 0.2 / 4e-3, 1e-9, "... and draws less beyond");
	device_free(d);
}

/* L2 and device memory do not slow down with the EUs. */
static void test_pace(void)
{
	struct vdevice *d = finished();
	struct work w = { .kind = WORK_LOAD, .type = DT_BF16, .global_bytes = 49152, .unique_share = 1 };
	struct pace full = { .active = 100, .clock_hz = d->clock_hz }, half = { .active = 100, .clock_hz = d->clock_hz / 2 };
	struct cost a = device_cost(d, TMA, &w, 1, full), b = device_cost(d, TMA, &w, 1, half);

	is_near(b.global, a.global / 2, 1e-9, "device memory takes half of the longer cycles");
	ok(b.l2 < a.l2 && b.l2 >= a.l2 / 2, "L2 fewer, if one EU can draw more");
	device_free(d);
}

int main(void)
{
	struct vdevice *d = finished();

	test_fields();
	test_refusals();
	test_seu_limit();
	test_finish();
	test_matrix(d);
	test_synchronous();
	test_vector(d);
	test_copy(d);
	test_choice(d);
	test_any_work(d);
	test_print(d);
	device_free(d);
	test_power();
	test_pace();
	is_int((long long)mem.used, 0, "no memory is left in use");
	return tap_done();
}
