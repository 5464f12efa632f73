/* gpu_smoke.c - src/gpu on a real device: what works, and what goes wrong.
 *
 * Run by gpu_smoke.sh, which needs nothing but a C compiler, the driver and NVRTC.
 * Each case prints PASS or FAIL, what it saw, and how long it took.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "gpu/wire.h"

static const char source[] =
	"struct alignas(64) map { unsigned long long opaque[16]; };\n"
	"extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y)\n"
	"{\n"
	"	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n) y[i] += a * x[i];\n"
	"}\n"
	"extern \"C\" __global__ void hang(volatile float *y) { while (y[0] != 12345) ; }\n"
	"extern \"C\" __global__ void fault(float *y) { y[threadIdx.x] = 1; }\n"
	"extern \"C\" __global__ void trap() { asm volatile(\"trap;\"); }\n"
	"extern \"C\" __global__ void beyond(int n, float *y) { y[n + threadIdx.x] = 0; }\n"
	"extern \"C\" __global__ void dynamic(float *y)\n"
	"{\n"
	"	extern __shared__ float s[];\n"
	"	s[50000 + threadIdx.x] = threadIdx.x;\n"
	"	__syncthreads();\n"
	"	y[threadIdx.x] = s[50000 + blockDim.x - 1 - threadIdx.x];\n"
	"}\n";

/* For sm_90 and later. */
static const char source90[] =
	"struct alignas(64) map { unsigned long long opaque[16]; };\n"
	"extern \"C\" __global__ void cluster(unsigned *y)\n"
	"{\n"
	"	unsigned rank, count;\n"
	"	asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"
	"	asm volatile(\"mov.u32 %0, %%cluster_nctarank;\" : \"=r\"(count));\n"
	"	y[blockIdx.x] = count * 100 + rank;\n"
	"}\n"
	"extern \"C\" __global__ void tma(const __grid_constant__ map m, int c0, int c1,\n"
	"	float *y)\n"
	"{\n"
	"	__shared__ alignas(128) float tile[128];\n"
	"	__shared__ alignas(8) unsigned long long bar;\n"
	"	unsigned b = (unsigned)__cvta_generic_to_shared(&bar);\n"
	"	unsigned t = (unsigned)__cvta_generic_to_shared(tile);\n"
	"	if (threadIdx.x == 0) {\n"
	"		asm volatile(\"mbarrier.init.shared::cta.b64 [%0], 1;\" :: \"r\"(b));\n"
	"		asm volatile(\"fence.mbarrier_init.release.cluster;\");\n"
	"	}\n"
	"	__syncthreads();\n"
	"	if (threadIdx.x == 0) {\n"
	"		asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;\"\n"
	"			:: \"r\"(b) : \"memory\");\n"
	"		asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier\"\n"
	"			\"::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\"\n"
	"			:: \"r\"(t), \"l\"(&m), \"r\"(c0), \"r\"(c1), \"r\"(b)\n"
	"			: \"memory\");\n"
	"	}\n"
	"	asm volatile(\"{\\n.reg .pred p;\\nagain:\\n\"\n"
	"		\"mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\\n\"\n"
	"		\"@!p bra again;\\n}\" :: \"r\"(b) : \"memory\");\n"
	"	y[threadIdx.x] = tile[threadIdx.x];\n"
	"}\n";

enum { N = 1 << 20, BIG = 1 << 26 };

static struct mem mem;
static struct arena arena;
static struct err err;
static struct gpu *g;
static struct gpu_info info;
static struct compile_result code, code90;
static int failed;
static double since;

static void verdict(bool good, const char *fmt, ...)
{
	double now = clock_seconds();
	va_list ap;

	failed += !good;
	printf("%s  ", good ? "PASS" : "FAIL");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("  [%.3f s]\n", now - since);
	if (!good || err.code)
		printf("      %s\n", err.msg);
	fflush(stdout);
	err = (struct err){ 0 };
	since = clock_seconds();
}

/* ---- jobs ---- */

static enum err_code run_step(const struct gpu_step *step, const struct gpu_buffer *buffers,
	int nbuffers, double limit, const struct compile_result *c)
{
	struct gpu_binary binary = { c->cubin, c->cubin_bytes };
	struct gpu_job job = { .binaries = &binary, .nbinaries = 1, .buffers = buffers,
		.nbuffers = nbuffers, .steps = step, .nsteps = 1 };
	struct gpu_result r;

	return gpu_run(g, &job, limit, NULL, &arena, &r, &err);
}

/* A kernel whose only parameter is buffer 0, or, with `address`, this number. */
static enum err_code run_one(const char *entry, double limit, const uint64_t *address)
{
	struct gpu_buffer y = { .name = "y", .bytes = 4096, .init = GPU_INIT_WORD };
	struct gpu_param p = { .kind = address ? GPU_PARAM_BITS64 : GPU_PARAM_POINTER,
		.bits = address ? *address : 0 };
	struct gpu_step s = { .entry = entry, .block = { 32 }, .params = &p, .nparams = 1 };

	return run_step(&s, &y, 1, limit, &code);
}

static void saxpy_job(struct gpu_param p[4], struct gpu_step *s, struct gpu_buffer b[2], int n)
{
	p[0] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = (uint64_t)n };
	p[1] = (struct gpu_param){ .kind = GPU_PARAM_BITS32, .bits = 0x40000000 /* 2.0f */ };
	p[2] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 0 };
	p[3] = (struct gpu_param){ .kind = GPU_PARAM_POINTER, .buffer = 1 };
	*s = (struct gpu_step){ .entry = "saxpy", .grid = { (unsigned)(n + 255) / 256 },
		.block = { 256 }, .params = p, .nparams = 4 };
	b[0] = (struct gpu_buffer){ .name = "x", .bytes = (size_t)n * 4, .init = GPU_INIT_WORD,
		.word = 0x3f800000 /* 1.0f */, .rotate = true };
	b[1] = (struct gpu_buffer){ .name = "y", .bytes = (size_t)n * 4, .init = GPU_INIT_WORD,
		.rotate = true };
}

static void test_saxpy(const char *when)
{
	static float x[N], y[N];
	struct gpu_buffer b[2];
	struct gpu_param p[4];
	struct gpu_step s;
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		x[i] = (float)(i % 1000);
		y[i] = 1;
	}
	saxpy_job(p, &s, b, N);
	b[0].init = b[1].init = GPU_INIT_HOST;
	b[0].from = x;
	b[1].from = b[1].to = y;
	if (run_step(&s, b, 2, 10, &code))
		wrong = -1;
	for (int i = 0; i < N; i++)
		wrong += y[i] != 1 + 2 * (float)(i % 1000);
	verdict(!wrong, "saxpy %s: %d wrong", when, wrong);
}

static void test_bench(int n)
{
	struct gpu_buffer b[2];
	struct gpu_param p[4];
	struct gpu_step s;
	struct gpu_binary binary = { code.cubin, code.cubin_bytes };
	struct gpu_job job = { .binaries = &binary, .nbinaries = 1, .buffers = b, .nbuffers = 2, .steps = &s, .nsteps = 1, .mode = GPU_BENCH,
		.bench = { .warmup = 0.1, .seconds = 0.2 } };
	struct gpu_result r;
	double best = 1e9, sum = 0;

	saxpy_job(p, &s, b, n);
	if (gpu_run(g, &job, 10, NULL, &arena, &r, &err) || !r.runs) {
		verdict(false, "benchmark of saxpy, %d elements", n);
		return;
	}
	for (int i = 0; i < r.runs; i++) {
		sum += r.ms[i];
		best = r.ms[i] < best ? r.ms[i] : best;
	}
	verdict(best > 0, "benchmark of saxpy, %d elements: %d runs over %d copies, best %.4f ms, "
		"mean %.4f ms, %.0f GB/s", n, r.runs, r.copies, best, sum / r.runs,
		12.0 * n / (sum / r.runs) * 1e-6);
}

/* ---- sm_90 ---- */

static void test_cluster(void)
{
	unsigned y[8] = { 0 };
	struct gpu_buffer b = { .bytes = sizeof(y), .init = GPU_INIT_WORD, .to = y };
	struct gpu_param p = { .kind = GPU_PARAM_POINTER };
	struct gpu_step s = { .entry = "cluster", .grid = { 8 }, .block = { 32 },
		.cluster = { 4 }, .params = &p, .nparams = 1 };
	bool good = !run_step(&s, &b, 1, 10, &code90);

	for (int i = 0; i < 8; i++)
		good = good && y[i] == 400 + (unsigned)i % 4;
	verdict(good, "cluster of 4");
}

static void test_tma(void)
{
	static float x[32 * 32], y[128];
	struct gpu_tensor t = { .element = GPU_F32, .rank = 2, .dims = { 32, 32 },
		.strides = { 4, 128 }, .box = { 16, 8 } };
	struct gpu_buffer b[2] = {
		{ .name = "x", .bytes = sizeof(x), .init = GPU_INIT_HOST, .from = x },
		{ .name = "y", .bytes = sizeof(y), .init = GPU_INIT_WORD, .word = 0xffffffff,
			.to = y },
	};
	struct gpu_param p[4] = {
		{ .kind = GPU_PARAM_TENSOR, .tensor = &t },
		{ .kind = GPU_PARAM_BITS32, .bits = 24 },
		{ .kind = GPU_PARAM_BITS32, .bits = 28 },
		{ .kind = GPU_PARAM_POINTER, .buffer = 1 },
	};
	struct gpu_step s = { .entry = "tma", .block = { 128 }, .params = p, .nparams = 4 };
	bool good;

	for (int i = 0; i < LEN(x); i++)
		x[i] = (float)(i + 1);
	good = !run_step(&s, b, 2, 10, &code90);
	for (int i = 0; i < 128; i++) {
		int column = 24 + i % 16, row = 28 + i / 16;
		bool inside = column < 32 && row < 32;

		good = good && y[i] == (inside ? (float)(row * 32 + column + 1) : 0);
	}
	verdict(good, "tensor map, with zeros outside");
}

static void test_large_smem(void)
{
	float y[256] = { 0 };
	struct gpu_buffer b = { .bytes = sizeof(y), .init = GPU_INIT_WORD, .to = y };
	struct gpu_param p = { .kind = GPU_PARAM_POINTER };
	struct gpu_step s = { .entry = "dynamic", .block = { 256 }, .smem = 50256 * 4,
		.params = &p, .nparams = 1 };
	bool good = !run_step(&s, &b, 1, 10, &code);

	verdict(good && y[0] == 255 && y[255] == 0, "200 KB of dynamic shared memory");
	s.smem = 500000;
	good = run_step(&s, &b, 1, 10, &code) && gpu_failure(g) == GPU_FAIL_LAUNCH;
	verdict(good, "500 KB of it are refused");
}

/* ---- what goes wrong ---- */

static void test_failures(void)
{
	const uint64_t nowhere = 0x10;
	struct gpu_buffer big = { .name = "big", .bytes = (size_t)info.memory_total * 2 };
	struct gpu_buffer y = { .name = "y", .bytes = 4000, .init = GPU_INIT_WORD };
	struct gpu_step trap = { .entry = "trap", .block = { 32 } };
	struct gpu_param p[2] = { { .kind = GPU_PARAM_BITS32, .bits = 1000 },
		{ .kind = GPU_PARAM_POINTER } };
	struct gpu_step beyond = { .entry = "beyond", .block = { 32 }, .params = p, .nparams = 2 };
	bool good;

	run_one("hang", 2, NULL);
	verdict(gpu_failure(g) == GPU_FAIL_TIMEOUT, "a kernel that hangs");
	test_saxpy("after a hang");
	good = run_one("fault", 10, &nowhere);
	verdict(good && gpu_failure(g) == GPU_FAIL_FAULT, "a kernel that faults");
	test_saxpy("after a fault");
	good = run_step(&trap, NULL, 0, 10, &code);
	verdict(good && gpu_failure(g) == GPU_FAIL_FAULT, "a kernel that traps");
	good = run_step(&beyond, &y, 1, 10, &code);
	verdict(good && gpu_failure(g) == GPU_FAIL_OVERRUN, "a kernel that writes past the end");
	good = run_step(&trap, &big, 1, 10, &code);
	verdict(good && gpu_failure(g) == GPU_FAIL_MEMORY, "twice the device's memory");
	good = run_one("missing", 10, NULL);
	verdict(good && gpu_failure(g) == GPU_FAIL_BINARY, "no such kernel");
	p[0].kind = GPU_PARAM_BITS64;
	good = run_step(&beyond, &y, 1, 10, &code);
	verdict(good && gpu_failure(g) == GPU_FAIL_JOB,
		"a parameter of another size (CUDA 12.4 or later sees it)");
}

static void test_other_arch(void)
{
	struct compile_job job = { .name = "other.cu", .source = source, .arch = "sm_80",
		.no_cache = true };
	struct gpu_step trap = { .entry = "trap", .block = { 32 } };
	struct compile_result c;
	bool good;

	if (!strcmp(info.arch, "sm_80"))
		job.arch = "sm_90a";
	good = !gpu_compile(g, &job, NULL, &arena, &c, &err) &&
		run_step(&trap, NULL, 0, 10, &c) && gpu_failure(g) == GPU_FAIL_BINARY;
	verdict(good, "a binary for %s", job.arch);
}

int main(int argc, char **argv)
{
	struct compile_job job = { .name = "smoke.cu", .source = source, .no_cache = true };

	if (gpu_worker_asked(argc, argv))
		return gpu_worker_main(argc, argv);
	arena_init(&arena, &mem);
	gpu_new(&mem, 0, &g);
	since = clock_seconds();
	if (gpu_probe(g, GPU_CUDA, NULL, &info, &err)) {
		printf("SKIP  %s\n", err.msg);
		gpu_free(g);
		return argc > 1 && !strcmp(argv[1], "--need-device");
	}
	verdict(info.sms > 0, "%s, %s, %d SMs, %.2f GHz, %.1f of %.1f GiB free, L2 %.0f MiB, "
		"CUDA %d.%d", info.name, info.arch, info.sms, info.clock * 1e-9,
		(double)info.memory_free / 0x1p30, (double)info.memory_total / 0x1p30,
		(double)info.l2 / 0x1p20, info.driver_major, info.driver_minor);
	job.arch = info.arch;
	if (gpu_compile(g, &job, NULL, &arena, &code, &err)) {
		verdict(false, "compiling");
		return 1;
	}
	verdict(code.nuses == 6, "compiled by NVRTC %d.%d: %zu bytes, saxpy has %d registers",
		code.major, code.minor, code.cubin_bytes,
		code.nuses ? code.uses[code.nuses - 1].registers : 0);
	test_saxpy("first");
	test_saxpy("again");
	test_bench(BIG);
	test_bench(1024);
	test_large_smem();
	job.source = source90;
	if (info.major >= 9) {
		verdict(!gpu_compile(g, &job, NULL, &arena, &code90, &err), "compiling for sm_90");
		test_cluster();
		test_tma();
	}
	test_failures();
	test_other_arch();
	test_saxpy("last");
	gpu_free(g);
	arena_release(&arena);
	verdict(!mem.used, "all memory given back");
	return failed > 0;
}
