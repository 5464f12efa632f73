/* Small kernels written by hand on the host's runtime: what it does, and what it refuses,
 * under many seeds. */
#include "host/host.h"

#include <stdlib.h>

#include "tap.h"

enum { SEEDS = 12 };

struct bench {
	struct mem mem;
	struct arena arena;
	struct host_kernel *k;
	struct host_buffer buffers[8];
	struct host_arg args[8];
	struct host_job job;
	struct err e;
	const char *report;
};

static void bench_init(struct bench *b, const char *const *text, int threads, int shared)
{
	size_t len = 0, n;
	char *whole;

	*b = (struct bench){ .k = NULL };
	arena_init(&b->arena, &b->mem);
	for (int i = 0; text[i]; i++)
		len += strlen(text[i]);
	whole = arena_alloc(&b->arena, len + 1);
	n = 0;
	for (int i = 0; text[i]; i++) {
		memcpy(whole + n, text[i], strlen(text[i]));
		n += strlen(text[i]);
	}
	b->job = (struct host_job){ .buffers = b->buffers, .args = b->args, .blocks = 1,
		.threads = threads, .shared_bytes = shared + 1024, .seconds = 20 };
	if (host_compile(&b->mem, whole, len, NULL, &b->k, &b->e)) {
		ok(false, "a kernel compiles");
		diag("%s", b->e.msg);
	}
}

static void bench_free(struct bench *b)
{
	host_free(b->k);
	arena_release(&b->arena);
}

static struct host_arg *add(struct bench *b, size_t bytes, const void *from, void *to)
{
	int i = b->job.nbuffers++;

	b->buffers[i] = (struct host_buffer){ bytes, from, to };
	b->args[b->job.nargs] = (struct host_arg){ .buffer = i };
	return &b->args[b->job.nargs++];
}

/* A tensor of two dimensions, boxes of as many columns as its swizzle has. */
static void add_map(struct bench *b, const void *from, int rows, int cols, int bytes, int box_rows,
	int box_cols)
{
	struct host_arg *a = add(b, (size_t)(rows * cols * bytes), from, NULL);

	a->is_map = true;
	a->map = (struct host_map){ .rank = 2, .element_bytes = bytes, .dim = { cols, rows },
		.stride = { bytes, cols * bytes }, .box = { box_cols, box_rows },
		.swizzle = box_cols * bytes };
}

static const char *play(struct bench *b, uint64_t seed, bool race)
{
	b->job.seed = seed;
	b->job.race = race;
	if (!b->k || host_run(b->k, &b->job, NULL, &b->arena, &b->report, &b->e))
		return "it did not run";
	return b->report;
}

/* Every seed's report has the words; or some seed's, if not all must. */
static void refuses(struct bench *b, bool race, bool all, const char *words, const char *what)
{
	int seen = 0;
	const char *other = NULL;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		const char *report = play(b, seed, race);

		if (report && strstr(report, words))
			seen++;
		else
			other = report ? report : "all went well";
	}
	if (!ok(all ? seen == SEEDS : seen > 0, what))
		diag("%d of %d, else: %s", seen, SEEDS, other);
}

/* ---- copies and flags --------------------------------------------------------------- */

/* A producer warp brings tiles of 16 x 32 floats to a ring of two; four warps sum their
 * columns. */
static const char ring_text[] =
	"#include \"millrace_host.h\"\n"
	"KERNEL(ring, 160)(MAP map, float *out, const int *trips)\n"
	"{\n"
	"	const u32 shared = shared_base(), full = shared + 4096, empty = shared + 4096 + 16;\n"
	"	if (THREAD == 0) {\n"
	"		EACH(i, 2) flag_init(full + 8 * i, 1, \"full\", i);\n"
	"		EACH(i, 2) flag_init(empty + 8 * i, 4, \"empty\", i);\n"
	"		flags_ready();\n"
	"	}\n"
	"	BLOCK_SYNC();\n"
	"	if (THREAD >= 128) {\n"
	"		LOOP (int i = 0; i < *trips; i++) {\n"
	"			AT(\"load\", i);\n"
	"			if (i >= 2) flag_wait(empty + 8 * (i % 2), i / 2 - 1);\n"
	"			WARP_SYNC();\n"
	"			if (THREAD == 128) {\n"
	"				flag_expect(full + 8 * (i % 2), EXPECT);\n"
	"				tma_load_2d(shared + 2048 * (i % 2), &map, full + 8 * (i % 2), 0, 16 * i);\n"
	"			}\n"
	"		}\n"
	"		return;\n"
	"	}\n"
	"	float sum = 0;\n"
	"	LOOP (int i = 0; i < *trips; i++) {\n"
	"		AT(\"use\", i);\n"
	"		if (WAITS) flag_wait(full + 8 * (i % 2), i / 2);\n"
	"		EACH(r, 16) {\n"
	"			u32 a = shared + 2048 * (i % 2) + 128 * r + 4 * (THREAD % 32);\n"
	"			sum += shared_f32(a ^ (r % 8) << 4);\n"
	"		}\n"
	"		WARP_SYNC();\n"
	"		if (THREAD % 32 == 0) EACH(n, ARRIVES) flag_arrive(empty + 8 * (i % 2));\n"
	"	}\n"
	"	out[THREAD + 128 * BLOCK] = sum;\n"
	"}\n"
	"HOST_ENTRY(ring, 160) { ring(args[0], args[1], args[2]); }\n";

enum { RING_TRIPS = 7, RING_ROWS = 16 * RING_TRIPS - 3 };

static float ring_data[RING_ROWS][32], ring_out[2][128];
static int ring_trips = RING_TRIPS;

static void ring_bench(struct bench *b, const char *defines)
{
	bench_init(b, (const char *[]){ defines, ring_text, NULL }, 160, 8192);
	for (int i = 0; i < RING_ROWS; i++)
		for (int j = 0; j < 32; j++)
			ring_data[i][j] = (float)(i * j % 13 - 5);
	add_map(b, ring_data, RING_ROWS, 32, 4, 16, 32);
	add(b, sizeof(ring_out), NULL, ring_out);
	add(b, sizeof(ring_trips), &ring_trips, NULL);
	b->job.blocks = 2;
}

static int ring_mistakes(void)
{
	int bad = 0;

	for (int t = 0; t < 256; t++) {
		float want = 0;

		for (int i = 0; i < RING_ROWS; i++)
			want += ring_data[i][t % 32];
		bad += !(ring_out[t / 128][t % 128] == want);
	}
	return bad;
}

static void test_ring(void)
{
	struct bench b;
	int bad = 0;

	ring_bench(&b, "#define EXPECT 2048\n#define WAITS 1\n#define ARRIVES 1\n");
	for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
		const char *report = play(&b, seed, seed % 2);

		bad += report || ring_mistakes();
		if (report)
			diag("%s", report);
	}
	is_int(bad, 0, "a ring filled by copies, rows beyond the end are zeros");
	bench_free(&b);
}

static void test_ring_mistakes(void)
{
	struct bench b;

	ring_bench(&b, "#define EXPECT 2048\n#define WAITS 1\n#define ARRIVES 0\n");
	refuses(&b, false, true, "block 0: deadlock\n  threads 0 to 127 at 'use' iteration 2 wait for "
		"phase 1 of flag 'full'[0] (now in phase 1: 1 of 1 arrivals to come, 0 bytes)\n"
		"  threads 128 to 159 at 'load' iteration 2 wait for phase 0 of flag 'empty'[0]",
		"a deadlock tells who waits for what");
	bench_free(&b);
	ring_bench(&b, "#define EXPECT 2064\n#define WAITS 1\n#define ARRIVES 1\n");
	refuses(&b, false, true, "0 of 1 arrivals to come, 16 bytes)", "bytes that never come");
	bench_free(&b);
	ring_bench(&b, "#define EXPECT 2032\n#define WAITS 1\n#define ARRIVES 1\n");
	refuses(&b, false, true, "16 bytes more have come than were expected", "bytes too many");
	bench_free(&b);
	ring_bench(&b, "#define EXPECT 2048\n#define WAITS 0\n#define ARRIVES 1\n");
	refuses(&b, true, true, "race in shared memory", "a read without a wait is a race");
	refuses(&b, true, false, "'use' iteration", "which names the places");
	bench_free(&b);
	ring_bench(&b, "#define EXPECT 2048\n#define WAITS 1\n#define ARRIVES 2\n");
	refuses(&b, true, false, "race in shared memory", "a slot released too early is a race");
	bench_free(&b);
}

/* A kernel of two warps with one flag of `arrivals`, and what its threads do. */
static void small_bench(struct bench *b, const char *body)
{
	static unsigned out[64];

	bench_init(b, (const char *[]){
		"#include \"millrace_host.h\"\n"
		"KERNEL(small, 64)(u32 *out)\n"
		"{\n"
		"	const u32 shared = shared_base(), flag = shared + 1024;\n"
		"	const int t = THREAD;\n"
		"	if (t == 0) { flag_init(flag, 2, \"flag\", 0); flags_ready(); }\n"
		"	BLOCK_SYNC();\n", body,
		"	out[t] = t;\n"
		"}\n"
		"HOST_ENTRY(small, 64) { small(args[0]); }\n", NULL }, 64, 2048);
	add(b, sizeof(out), NULL, out);
}

static void test_refused(void)
{
	static const struct {
		const char *body, *words;
		bool race, all;
	} cases[] = {
		{ "if (t == 0) flag_expect(flag, 16), flag_arrive(flag), flag_arrive(flag);\n",
			"flag 'flag'[0]: an arrival too many in phase 0, which takes 2", false, true },
		{ "if (t == 0) EACH(i, 4) flag_arrive(flag); BLOCK_SYNC(); flag_wait(flag, 0);\n",
			"a wait for phase 0, but phase 1 has passed as well", false, true },
		{ "flag_wait(flag + 8, 0);\n", "there is no flag at 1032", false, true },
		{ "if (t < 32) UNIFORM(t); else if (t < 48) shuffle_xor(1, 1); else elect();\n",
			"the threads of warp 1 come together in different instructions", false, true },
		{ "if (t < 16) WARP_SYNC();\n",
			"wait for the other threads of the warp in WARP_SYNC", false, true },
		{ "if (t >= 32) turn_wait(1, 64);\n",
			"threads 32 to 63 at its start wait for barrier 1, where 32 of 64", false, true },
		{ "if (t < 32) { turn_pass(1, 64); turn_pass(1, 64); }\n",
			"barrier 1: the thread comes twice", false, true },
		{ "turn_wait(1, t < 32 ? 32 : 64);\n", "barrier 1: ", false, false },
		{ "shared_put_f32(shared + 4096, 1);\n", "outside of its 2048 bytes", false, true },
		{ "shared_put_f32(shared + 4 * (t / 2), 1);\n", "race in shared memory at 0: its start "
			"overwrites what its start writes", true, true },
		{ "if (t < 32) shared_put_f32(shared + 4 * t, 1); shared_f32(shared + 4 * (t % 32));\n",
			"race in shared memory", true, true },
		{ "out[1 << 20] = 1;\n", "the kernel's code faulted (SIGSEGV)", false, true },
		{ "SET_REGISTERS(inc, 100);\n", "setmaxnreg", false, true },
	};
	struct bench b;

	for (int i = 0; i < LEN(cases); i++) {
		small_bench(&b, cases[i].body);
		refuses(&b, cases[i].race, cases[i].all, cases[i].words, cases[i].words);
		bench_free(&b);
	}
}

static void test_allowed(void)
{
	static const char *const cases[] = {
		"if (t < 32) { turn_wait(1, 64); turn_pass(2, 64); turn_wait(1, 64); } else {\n"
		"	turn_pass(1, 64); turn_wait(2, 64); turn_pass(1, 64); }\n",
		"shared_put_f32(shared + 4 * t, 1); WARP_SYNC(); shared_f32(shared + 4 * (t ^ 31));\n",
		"shared_put_u16(shared + 2 * t, 1); lane_sync(3, 64); shared_u16(shared + 126 - 2 * t);\n"
		"lane_sync(3, 64); shared_put_f32(shared + 4 * t, 1);\n",
		"if (t < 32) { shared_put_f32(shared + 4 * t, 1); WARP_SYNC();\n"
		"	if (t < 2) flag_arrive(flag); } else { flag_wait(flag, 0); shared_f32(shared); }\n",
		"float x = shuffle_xor((float)t, 3); if (x != (t ^ 3)) out[-100000] = 1;\n"
		"if (UNIFORM(t) != t / 32 * 32) out[-100000] = 1;\n",
		"if (from_f16((u16)pack_f16(1.0009766f, 0)) != 1.0009765625f ||\n"
		"	pack_f16(65519.f, 70000.f) != 0x7c007bff || pack_f16(5.96e-8f, 2.9e-8f) != 1 ||\n"
		"	pack_bf16(1.00390625f, 1.01171875f) != 0x3f823f80) out[-100000] = 1;\n",
	};
	struct bench b;

	for (int i = 0; i < LEN(cases); i++) {
		const char *report = NULL;

		small_bench(&b, cases[i]);
		for (uint64_t seed = 0; seed < SEEDS && !report; seed++)
			report = play(&b, seed, true);
		if (!ok(!report, cases[i]))
			diag("%s", report);
		bench_free(&b);
	}
}

/* ---- products ------------------------------------------------------------------------- */

/* D[64][64] = A B over a depth of DEPTH, twice: first new, then added to. A and B lie in
 * panels of a swizzled row each, as the emitter lays them out. */
static const char mma_text[] =
	"#include \"millrace_host.h\"\n"
	"KERNEL(mma, 128)(MAP map_a, MAP map_b, const u16 *a, float *out)\n"
	"{\n"
	"	const u32 shared = shared_base(), full = shared + 32768, slot_a = shared, slot_b = shared + 16384;\n"
	"	const int t = THREAD;\n"
	"	if (t == 0) { flag_init(full, 1, \"full\", 0); flags_ready(); }\n"
	"	BLOCK_SYNC();\n"
	"	if (t == 0) {\n"
	"		flag_expect(full, 2 * 64 * DEPTH * 2);\n"
	"		tma_load_2d(slot_a, &map_a, full, 0, 0);\n"
	"		tma_load_2d(slot_b, &map_b, full, 0, 0);\n"
	"	}\n"
	"	flag_wait(full, 0);\n"
	"	float d[32];\n"
	"	u32 r[DEPTH / 16][4];\n"
	"	EACH(s, DEPTH / 16) EACH(i, 4) {\n"
	"		int row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2), k = 16 * s + 2 * (t % 4) + 8 * (i / 2);\n"
	"		r[s][i] = a[row * DEPTH + k] | (u32)a[row * DEPTH + k + 1] << 16;\n"
	"	}\n"
	"	EACH(n, 2) {\n"
	"		groups_fence();\n"
	"		EACH(s, DEPTH / 16) {\n"
	"			u64 da = DESC(slot_a, TA, s), db = DESC(slot_b, TB, s);\n"
	"			if (RS) host_mma_rs(d, r[s], db, n || s, 64, 0, TB, HOST_bf16);\n"
	"			else host_mma_ss(d, da, db, n || s, 64, TA, TB, HOST_bf16);\n"
	"		}\n"
	"		groups_commit();\n"
	"	}\n"
	"	AFTER\n"
	"	GROUPS_WAIT(LEFT);\n"
	"	EACH(i, 32) out[(t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2)) * 64 + i / 4 * 8 + 2 * (t % 4) + i % 2] = d[i];\n"
	"	GROUPS_WAIT(0);\n"
	"}\n"
	"HOST_ENTRY(mma, 128) { mma(args[0], args[1], args[2], args[3]); }\n"
	;

/* Rows of KSW bytes if the depth is contiguous, of 128 if not. */
static const char desc_text[] =
	"#define KSW (DEPTH * 2)\n"
	"#define BITS(sw) ((unsigned long long)((sw) == 128 ? 1 : (sw) == 64 ? 2 : 3) << 62 | (unsigned long long)((sw) / 2) << 32)\n"
	"#define DESC(slot, t, s) (BITS((t) ? 128 : KSW) | 1 << 16 | ((slot) + (s) * ((t) ? 2048 : 32)) >> 4)\n";

static float mma_a[64][64], mma_b[64][64], mma_out[64][64];
static uint16_t mma_rows[64 * 64], mma_pa[64 * 64], mma_pb[64 * 64];

static uint16_t bf16(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static void mma_bench(struct bench *b, int depth, int ta, int tb, int rs, const char *after, int left)
{
	char defines[512];

	snprintf(defines, sizeof(defines), "#define DEPTH %d\n#define TA %d\n#define TB %d\n"
		"#define RS %d\n#define AFTER %s\n#define LEFT %d\n", depth, ta, tb, rs, after, left);
	bench_init(b, (const char *[]){ defines, desc_text, mma_text, NULL }, 128, 40960);
	for (int i = 0; i < 64; i++) {
		for (int k = 0; k < depth; k++) {
			mma_a[i][k] = (float)((i * 7 + k * 3) % 17 - 8);
			mma_b[i][k] = (float)((i * 5 + k * 11) % 19 - 9);
			mma_rows[i * depth + k] = bf16(mma_a[i][k]);
			mma_pa[ta ? k * 64 + i : i * depth + k] = bf16(mma_a[i][k]);
			mma_pb[tb ? k * 64 + i : i * depth + k] = bf16(mma_b[i][k]);
		}
	}
	if (ta)
		add_map(b, mma_pa, depth, 64, 2, depth, 64);
	else
		add_map(b, mma_pa, 64, depth, 2, 64, depth);
	if (tb)
		add_map(b, mma_pb, depth, 64, 2, depth, 64);
	else
		add_map(b, mma_pb, 64, depth, 2, 64, depth);
	add(b, sizeof(mma_rows), mma_rows, NULL);
	add(b, sizeof(mma_out), NULL, mma_out);
}

static int mma_mistakes(int depth)
{
	int bad = 0;

	for (int i = 0; i < 64; i++) {
		for (int j = 0; j < 64; j++) {
			float want = 0;

			for (int k = 0; k < depth; k++)
				want += mma_a[i][k] * mma_b[j][k];
			bad += !(mma_out[i][j] == 2 * want);
		}
	}
	return bad;
}

static void test_products(void)
{
	static const int depths[] = { 16, 32, 64 };
	char what[96];
	struct bench b;

	for (int n = 0; n < 18; n++) {
		int depth = depths[n % 3], ta = n / 3 == 1 || n / 3 == 3, tb = n / 3 >= 2 && n / 3 <= 4;
		int rs = n / 3 >= 4, bad = 0;

		mma_bench(&b, depth, ta, tb, rs, "", 0);
		for (uint64_t seed = 0; seed < 4; seed++) {
			const char *report = play(&b, seed, seed % 2);

			bad += report || mma_mistakes(depth);
			if (report)
				diag("%s", report);
		}
		snprintf(what, sizeof(what), "64 x 64 x %d, A %s, B %s", depth, rs ? "in registers" :
			ta ? "by columns" : "by rows", tb ? "by columns" : "by rows");
		is_int(bad, 0, what);
		bench_free(&b);
	}
}

static void test_products_misused(void)
{
	static const struct {
		const char *after, *words;
	} cases[] = {
		{ "d[3] = 1;", "wrote to its accumulators while the product was under way" },
		{ "r[1][2] = 1;", "wrote to the registers of the first operand while" },
		{ "if (t == 5) shared_put_f32(slot_b, 1); WARP_SYNC(); groups_fence(); "
			"host_mma_rs(d, r[0], DESC(slot_b, 0, 0), 1, 64, 0, 0, HOST_bf16); groups_commit();",
			"thread 5 wrote in its start without a fence" },
		{ "groups_fence(); host_mma_rs(d, r[0], DESC(slot_b, 0, 0) + (t == 9), 1, 64, 0, 0, HOST_bf16);",
			"disagree about its next matrix instruction" },
		{ "groups_fence(); host_mma_rs(d, r[0], 1ull << 60, 1, 64, 0, 0, HOST_bf16); groups_commit();",
			"has bits where none belong" },
	};
	struct bench b;
	int early = 0;

	for (int i = 0; i < LEN(cases); i++) {
		mma_bench(&b, 32, 0, 0, 1, cases[i].after, 0);
		refuses(&b, false, false, cases[i].words, cases[i].words);
		bench_free(&b);
	}
	mma_bench(&b, 32, 0, 0, 0, "", 1);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		early += !play(&b, seed, false) && mma_mistakes(32);
	ok(early > 0, "accumulators that are read too early are seen in the result");
	bench_free(&b);
}

/* ---- the process ------------------------------------------------------------------------ */

static void test_process(void)
{
	struct bench b;
	struct mem mem = { 0 };
	struct host_kernel *k = NULL;
	struct err e;

	small_bench(&b, "for (volatile int i = 0; ; i++);\n");
	b.job.seconds = 0.3;
	refuses(&b, false, true, "the kernel did not end within 0.3 s", "a kernel that hangs is stopped");
	bench_free(&b);
	is_int(host_compile(&mem, "int x = y;\n", 11, NULL, &k, &e), ERR_IO, "what is no C is refused");
	ok(strstr(e.msg, "host: the C compiler failed:") && strstr(e.msg, "kernel.c:1:9"),
		"with the compiler's words");
	host_free(k);
	setenv("CC", "there-is-none", 1);
	is_int(host_compile(&mem, "int x;\n", 7, NULL, &k, &e), ERR_IO, "without a compiler");
	ok(strstr(e.msg, "there is no C compiler 'there-is-none'"), "the message says so");
	host_free(k);
	unsetenv("CC");
	is_int((long long)mem.used, 0, "all memory is given back");
}

int main(void)
{
	test_ring();
	test_ring_mistakes();
	test_allowed();
	test_refused();
	test_products();
	test_products_misused();
	test_process();
	return tap_done();
}
