/* Small kernels written by hand on the host's runtime: what it does, and what it refuses,
 * under many seeds. */
#include "base/buf.h"
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

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .k = NULL };
	arena_init(&b->arena, &b->mem);
}

static void bench_compile(struct bench *b, const struct buf *text, int threads, int shared)
{
	b->job = (struct host_job){ .buffers = b->buffers, .args = b->args, .blocks = 1,
		.threads = threads, .warp = 32, .group = 128, .shared_bytes = shared + 1024, .seconds = 20 };
	if (host_compile(&b->mem, text->text, text->len, false, NULL, &b->k, &b->e)) {
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
	"struct ring_options { int trips, expect, waits, arrives, unfenced, issuer; };\n"
	"KERNEL(ring, 160)(MAP map, float *out, const struct ring_options *o)\n"
	"{\n"
	"	const u32 shared = shared_base(), full = shared + 4096, empty = shared + 4096 + 16;\n"
	"	if (THREAD == 0) {\n"
	"		EACH(i, 2) flag_init(full + 8 * i, 1, \"full\", i);\n"
	"		EACH(i, 2) flag_init(empty + 8 * i, 4, \"empty\", i);\n"
	"		flags_ready();\n"
	"	}\n"
	"	BLOCK_SYNC();\n"
	"	if (THREAD >= 128) {\n"
	"		LOOP (int i = 0; i < o->trips; i++) {\n"
	"			AT(\"load\", i);\n"
	"			if (o->issuer == 1) fence_async();\n"
	"			if (i >= 2) flag_wait(empty + 8 * (i % 2), i / 2 - 1);\n"
	"			if (o->issuer == 2 || (o->issuer == 3 && THREAD != 128)) fence_async();\n"
	"			WARP_SYNC();\n"
	"			if (THREAD == 128) {\n"
	"				flag_expect(full + 8 * (i % 2), o->expect);\n"
	"				tma_load_2d(shared + 2048 * (i % 2), &map, full + 8 * (i % 2), 0, 16 * i);\n"
	"			}\n"
	"			if (o->issuer == 4) fence_async();\n"
	"		}\n"
	"		return;\n"
	"	}\n"
	"	float sum = 0;\n"
	"	LOOP (int i = 0; i < o->trips; i++) {\n"
	"		AT(\"use\", i);\n"
	"		if (o->waits) flag_wait(full + 8 * (i % 2), i / 2);\n"
	"		EACH(r, 16) {\n"
	"			u32 a = shared + 2048 * (i % 2) + 128 * r + 4 * (THREAD % 32);\n"
	"			sum += shared_f32(a ^ (r % 8) << 4);\n"
	"		}\n"
	"		if (THREAD != o->unfenced && !o->issuer) fence_async();\n"
	"		WARP_SYNC();\n"
	"		if (THREAD % 32 == 0) EACH(n, o->arrives) host_rt->flag_arrive(empty + 8 * (i % 2), 0);\n"
	"	}\n"
	"	out[THREAD + 128 * BLOCK] = sum;\n"
	"}\n"
	"HOST_ENTRY(ring, 160) { ring(args[0], args[1], args[2]); }\n";

enum { RING_TRIPS = 7, RING_ROWS = 16 * RING_TRIPS - 3 };

static float ring_data[RING_ROWS][32], ring_out[2][128];
/* unfenced: a reader without a fence. issuer: no reader has one, but threads that issue copies, before they wait for readers (1), behind that
 * (2), all but the one that issues (3), or behind the copy (4). */
static struct { int trips, expect, waits, arrives, unfenced, issuer; } ring_options;

static void ring_bench(struct bench *b)
{
	struct buf text;

	bench_init(b);
	buf_init(&text, &b->arena);
	buf_puts(&text, ring_text);
	bench_compile(b, &text, 160, 8192);
	for (int i = 0; i < RING_ROWS; i++)
		for (int j = 0; j < 32; j++)
			ring_data[i][j] = (float)(i * j % 13 - 5);
	add_map(b, ring_data, RING_ROWS, 32, 4, 16, 32);
	add(b, sizeof(ring_out), NULL, ring_out);
	add(b, sizeof(ring_options), &ring_options, NULL);
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

static void set_ring(int expect, int waits, int arrives)
{
	ring_options.trips = RING_TRIPS;
	ring_options.expect = expect;
	ring_options.waits = waits;
	ring_options.arrives = arrives;
	ring_options.unfenced = -1;	/* no thread */
	ring_options.issuer = 0;
}

static void test_ring(void)
{
	struct bench b;
	int bad = 0;

	ring_bench(&b);
	set_ring(2048, 1, 1);
	for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
		const char *report = play(&b, seed, seed % 2);

		bad += report || ring_mistakes();
		if (report)
			diag("%s", report);
	}
	is_int(bad, 0, "a ring filled by copies, rows beyond the end are zeros");
	set_ring(2048, 1, 0);
	refuses(&b, false, true, "block 0: deadlock\n  threads 0 to 127 at 'use' iteration 2 wait for "
		"phase 1 of flag 'full'[0] (now in phase 1: 1 of 1 arrivals to come, 0 bytes)\n"
		"  threads 128 to 159 at 'load' iteration 2 wait for phase 0 of flag 'empty'[0]",
		"a deadlock tells who waits for what");
	set_ring(2064, 1, 1);
	refuses(&b, false, true, "0 of 1 arrivals to come, 16 bytes)", "bytes that never come");
	set_ring(2032, 1, 1);
	refuses(&b, false, true, "16 bytes more have come than were expected", "bytes too many");
	set_ring(2048, 0, 1);
	refuses(&b, true, true, "race in shared memory", "a read without a wait is a race");
	refuses(&b, true, false, "'use' iteration", "which names the accesses");
	set_ring(2048, 1, 2);
	refuses(&b, true, false, "race in shared memory", "a slot released too early is a race");
	set_ring(2048, 1, 1);
	ring_options.unfenced = 77;
	refuses(&b, true, true, "asynchronously, which thread 77 read in 'use' iteration 0 without a fence",
		"a copy over what a thread has read without a fence");
	set_ring(2048, 1, 1);
	ring_options.issuer = 2;
	bad = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		bad += play(&b, seed, true) || ring_mistakes();
	is_int(bad, 0, "... which the thread that issues the copy may have, once it knows of the reads");
	for (int i = 1; i <= 4; i++) {
		ring_options.issuer = i;
		if (i != 2)
			refuses(&b, true, true, "read in 'use' iteration 0 without a fence", i == 1 ? "  but not before" :
				i == 3 ? "  nor another thread of its warp" : "  nor behind the copy");
	}
	bench_free(&b);
}

/* A kernel of two warps with one flag of two arrivals; what its threads do is `which`. */
static unsigned small_out[64];
static int small_which;

static void small_bench(struct bench *b, const char *const *cases, int n)
{
	struct buf text;

	bench_init(b);
	buf_init(&text, &b->arena);
	buf_puts(&text, "#include \"millrace_host.h\"\n"
		"KERNEL(small, 64)(u32 *out, const int *which)\n"
		"{\n"
		"	const u32 shared = shared_base(), flag = shared + 1024;\n"
		"	const int t = THREAD;\n"
		"	if (t == 0) { flag_init(flag, 2, \"flag\", 0); flags_ready(); }\n"
		"	BLOCK_SYNC();\n"
		"	switch (*which) {\n");
	for (int i = 0; i < n; i++)
		buf_printf(&text, "	case %d: { %s } break;\n", i, cases[i]);
	buf_puts(&text, "	}\n"
		"	out[t] = t;\n"
		"}\n"
		"HOST_ENTRY(small, 64) { small(args[0], args[1]); }\n");
	bench_compile(b, &text, 64, 2048);
	add(b, sizeof(small_out), NULL, small_out);
	add(b, sizeof(small_which), &small_which, NULL);
}

static void test_refused(void)
{
	static const struct {
		const char *body, *words;
		bool race, some;		/* not every seed shows it */
	} cases[] = {
		{ "if (t == 0) flag_expect(flag, 16), host_rt->flag_arrive(flag, 0), host_rt->flag_arrive(flag, 0);",
			"flag 'flag'[0]: an arrival too many in phase 0, which takes 2", false, false },
		{ "if (t == 0) EACH(i, 4) host_rt->flag_arrive(flag, 0); BLOCK_SYNC(); flag_wait(flag, 0);",
			"a wait for phase 0, but phase 1 has passed as well", false, false },
		{ "flag_wait(flag + 8, 0);", "there is no flag at 1032", false, false },
		{ "if (t < 32) UNIFORM(t); else if (t < 48) shuffle_xor(1, 1); else elect();",
			"the threads of warp 1 come together in different instructions", false, false },
		{ "if (t < 16) WARP_SYNC();",
			"wait for the other threads of the warp in WARP_SYNC", false, false },
		{ "if (t >= 32) host_rt->barrier_wait(1, 64);",
			"threads 32 to 63 at its start wait for barrier 1, where 32 of 64", false, false },
		{ "if (t < 32) { host_rt->barrier_pass(1, 64); host_rt->barrier_pass(1, 64); }",
			"barrier 1: the thread comes twice", false, false },
		{ "host_rt->barrier_wait(1, t < 32 ? 32 : 64);", "threads are given here", false, true },
		{ "shared_put_f32(shared + 4096, 1);", "outside of its 2048 bytes", false, false },
		{ "shared_put_f32(shared + 4 * (t / 2), 1);",
			"its start overwrites what its start writes, and nothing orders", true, false },
		{ "if (t < 32) shared_put_f32(shared + 4 * t, 1); shared_f32(shared + 4 * (t % 32));",
			"race in shared memory", true, false },
		{ "if (t == 0) { AT(\"one\", 3); shared_put_f32(shared, 1); }"
			" if (t == 32) { AT(\"two\", 4); shared_f32(shared); }",
			"'two' iteration 4 reads what 'one' iteration 3 writes", true, true },
		{ "out[64] = 1;", "the kernel's code faulted (SIGSEGV)", false, false },
		{ "SET_REGISTERS(inc, 100);", "setmaxnreg", false, false },
	};
	const char *bodies[LEN(cases)];
	struct bench b;

	for (int i = 0; i < LEN(cases); i++)
		bodies[i] = cases[i].body;
	small_bench(&b, bodies, LEN(cases));
	for (small_which = 0; small_which < LEN(cases); small_which++)
		refuses(&b, cases[small_which].race, !cases[small_which].some,
			cases[small_which].words, cases[small_which].words);
	bench_free(&b);
}

static void test_allowed(void)
{
	static const char *const cases[] = {
		"if (t < 32) { host_rt->barrier_wait(1, 64); host_rt->barrier_pass(2, 64); host_rt->barrier_wait(1, 64); } else {"
		" host_rt->barrier_pass(1, 64); host_rt->barrier_wait(2, 64); host_rt->barrier_pass(1, 64); }",
		"shared_put_f32(shared + 4 * t, 1); WARP_SYNC(); shared_f32(shared + 4 * (t ^ 31));",
		"shared_put_u16(shared + 2 * t, 1); lane_sync(3, 64); shared_u16(shared + 126 - 2 * t);"
		" lane_sync(3, 64); shared_put_f32(shared + 4 * t, 1);",
		"if (t < 32) { shared_put_f32(shared + 4 * t, 1); WARP_SYNC();"
		" if (t < 2) host_rt->flag_arrive(flag, 0); } else { flag_wait(flag, 0); shared_f32(shared); }",
		"float x = shuffle_xor((float)t, 3); if (x != (t ^ 3)) out[64] = 1;"
		" if (UNIFORM(t) != t / 32 * 32) out[64] = 1;",
		"if (from_f16((u16)pack_f16(1.0009766f, 0)) != 1.0009765625f ||"
		" pack_f16(65519.f, 70000.f) != 0x7c007bff || pack_f16(5.96e-8f, 2.9e-8f) != 1 ||"
		" pack_bf16(1.00390625f, 1.01171875f) != 0x3f823f80) out[64] = 1;",
	};
	static const char *const names[] = { "ping-pong by named barriers", "a warp's WARP_SYNC orders",
		"lane_sync orders", "a flag orders", "shuffles", "conversions" };
	struct bench b;

	small_bench(&b, cases, LEN(cases));
	for (small_which = 0; small_which < LEN(cases); small_which++) {
		const char *report = NULL;

		for (uint64_t seed = 0; seed < SEEDS && !report; seed++)
			report = play(&b, seed, true);
		if (!ok(!report, names[small_which]))
			diag("%s", report);
	}
	bench_free(&b);
}

/* ---- clusters ----------------------------------------------------------------------- */

/* Two blocks of four warps, and one flag in each that takes an arrival of each block; the
 * first thread of block `rank` does what `which` says. */
static float cluster_data[8][32], cluster_out[2][8][32];

static void cluster_bench(struct bench *b, const char *const *cases, int n)
{
	struct buf text;

	bench_init(b);
	buf_init(&text, &b->arena);
	buf_puts(&text, "#include \"millrace_host.h\"\n"
		"CLUSTER_KERNEL(pair, 128, 2)(float *out, const int *which, MAP map)\n"
		"{\n"
		"	const u32 shared = shared_base(), flag = shared + 1024, full = flag + 8;\n"
		"	const int t = THREAD, rank = BLOCK % 2;\n"
		"	if (t == 0) { flag_init(flag, 2, \"signal\", 0); flag_init(full, 1, \"full\", 0); }\n"
		"	switch (*which) {\n");
	for (int i = 0; i < n; i++)
		buf_printf(&text, "	case %d: { %s } break;\n", i, cases[i]);
	buf_puts(&text, "	}\n"
		"}\n"
		"HOST_ENTRY(pair, 128) { pair(args[0], args[1], args[2]); }\n");
	bench_compile(b, &text, 128, 2048);
	b->job.blocks = b->job.cluster = 2;
	add(b, sizeof(cluster_out), NULL, cluster_out);
	add(b, sizeof(small_which), &small_which, NULL);
	add_map(b, cluster_data, 8, 32, 4, 4, 32);
	b->args[2].map.swizzle = 0;
}

/* Each block copies four rows to both, waits for all eight and writes them out. */
#define SHARE "CLUSTER_SYNC(); if (t == 0) { flag_expect(full, 1024);" \
	" tma_load_all_2d(shared + rank * 512, &map, full, 3, 0, rank * 4); } flag_wait(full, 0);" \
	" EACH(i, 2) out[rank * 256 + i * 128 + t] = shared_f32(shared + 4 * (i * 128 + t));"

static void test_clusters(void)
{
	static const struct {
		const char *body, *words;	/* NULL: it is right */
		bool race, some;
	} cases[] = {
		{ SHARE, NULL, true, false },
		{ SHARE " if (t < 2) flag_arrive_at(flag, t); flag_wait(flag, 0); CLUSTER_SYNC();"
			" if (t == 0) tma_load_all_2d(shared + rank * 512, &map, full, 3, 0, 0),"
			" flag_expect(full, 1024); flag_wait(full, 1); CLUSTER_SYNC();", NULL, false, false },
		{ "CLUSTER_SYNC(); if (t >= 32) return; if (t == 0) shared_put_f32(shared, 1);"
			" CLUSTER_SYNC(); shared_f32(shared);", NULL, true, false },
		{ "if (t < 2) flag_arrive_at(flag, t); flag_wait(flag, 0); CLUSTER_SYNC();",
			"there is no flag at 1024 in that block", false, true },
		{ "CLUSTER_SYNC(); if (rank == 0 && t == 0) flag_arrive_at(flag, 1);",
			"flag 'signal'[0] of block 1: an arrival after all threads of that block have "
			"ended", false, true },
		{ "CLUSTER_SYNC(); if (rank == 0 && t == 0) tma_load_all_2d(shared, &map, full, 2, 0, 0);",
			"block 1 has ended while the copy of its start into its memory is under way",
			false, true },
		{ SHARE " fence_async(); CLUSTER_SYNC(); if (t == 0) flag_expect(full, 1024),"
			" tma_load_all_2d(shared + rank * 512, &map, full, 3, 0, 0); flag_wait(full, 1);"
			" shared_f32(shared); if (t == 0) flag_expect(full, 512),"
			" tma_load_all_2d(shared, &map, full, 1 << rank, 0, 0); flag_wait(full, 2);"
			" CLUSTER_SYNC();", "race in shared memory at ", true, false },
		{ "CLUSTER_SYNC(); if (t == 0) flag_arrive_at(flag, 0); if (rank) flag_wait(flag, 0);"
			" CLUSTER_SYNC();", "block 1, threads 0 to 127 at its start wait for phase 0 of flag "
			"'signal'[0] of block 1 (now in phase 0: 2 of 2 arrivals", false, false },
		{ "flag_arrive_at(flag, 2);", "the cluster has no block 2", false, false },
		{ "CLUSTER_SYNC(); u32 x[4] = { 1, 2, 3, 4 }; peer_put_16(shared + 16 * t, !rank, x); CLUSTER_SYNC();"
			" shared_f32(shared + 16 * t);", NULL, true, false },
		{ "CLUSTER_SYNC(); u32 x[4] = { 0 }; if (rank == 0 && t == 0) peer_put_16(shared, 1, x);",
			"a write to block 1 of the cluster, of which all threads have ended", false, true },
		{ "CLUSTER_SYNC(); u32 x[4] = { 0 }; if (rank == 0) peer_put_16(shared + 16 * t, 1, x);"
			" else shared_f32(shared + 16 * t); CLUSTER_SYNC();", "race in shared memory at ", true, false },
		{ "u32 x[4] = { 0 }; peer_put_16(shared, 2, x);", "the cluster has no block 2", false, false },
		{ "tma_load_all_2d(shared, &map, full, 5, 0, 0);", "a copy to blocks 0x5 of a cluster "
			"of 2", false, false },
	};
	const char *bodies[LEN(cases)];
	struct bench b;

	for (int i = 0; i < LEN(cases); i++)
		bodies[i] = cases[i].body;
	for (int i = 0; i < 256; i++)
		cluster_data[i / 32][i % 32] = (float)i;
	cluster_bench(&b, bodies, LEN(cases));
	for (small_which = 0; small_which < LEN(cases); small_which++) {
		const char *report = NULL;

		if (cases[small_which].words) {
			refuses(&b, cases[small_which].race, !cases[small_which].some,
				cases[small_which].words, cases[small_which].words);
			continue;
		}
		for (uint64_t seed = 0; seed < SEEDS && !report; seed++)
			report = play(&b, seed, cases[small_which].race);
		if (!ok(!report, small_which ? "a cluster that does no wrong" : "multicast"))
			diag("%s", report);
		if (small_which == 0)
			ok(!memcmp(cluster_out[0], cluster_data, sizeof(cluster_data)) &&
				!memcmp(cluster_out[1], cluster_data, sizeof(cluster_data)),
				"both blocks have what each brought to both");
	}
	b.job.blocks = 3;
	small_which = 2;
	refuses(&b, false, true, "a launch of 3 blocks in clusters of 2", "blocks that make no clusters");
	bench_free(&b);
}

/* ---- products ------------------------------------------------------------------------- */

/* D[64][64] = A B over a depth, twice: first new, then added to. A and B lie in panels of
 * a swizzled row each, as the emitter lays them out: rows of 2 * depth bytes if the depth
 * is contiguous, of 128 if not. `after`: what goes wrong then. */
static const char mma_text[] =
	"#include \"millrace_host.h\"\n"
	"struct mma_options { int depth, ta, tb, rs, left, after; };\n"
	"DEV u64 desc(u32 slot, int depth, int t, int s)\n"
	"{\n"
	"	const int sw = t ? 128 : 2 * depth;\n"
	"	return (u64)(sw == 128 ? 1 : sw == 64 ? 2 : 3) << 62 | (u64)(sw / 2) << 32 | 1 << 16 |\n"
	"		(slot + s * (t ? 2048 : 32)) >> 4;\n"
	"}\n"
	"KERNEL(mma, 128)(MAP map_a, MAP map_b, const u16 *a, float *out, const struct mma_options *o)\n"
	"{\n"
	"	const u32 shared = shared_base(), full = shared + 32768, slot_a = shared, slot_b = shared + 16384;\n"
	"	const int t = THREAD, depth = o->depth;\n"
	"	if (t == 0) { flag_init(full, 1, \"full\", 0); flags_ready(); }\n"
	"	BLOCK_SYNC();\n"
	"	if (t == 0) {\n"
	"		flag_expect(full, 2 * 64 * depth * 2);\n"
	"		tma_load_2d(slot_a, &map_a, full, 0, 0);\n"
	"		tma_load_2d(slot_b, &map_b, full, 0, 0);\n"
	"	}\n"
	"	flag_wait(full, 0);\n"
	"	float d[32];\n"
	"	u32 r[4][4];\n"
	"	EACH(s, depth / 16) EACH(i, 4) {\n"
	"		int row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2), k = 16 * s + 2 * (t % 4) + 8 * (i / 2);\n"
	"		r[s][i] = a[row * depth + k] | (u32)a[row * depth + k + 1] << 16;\n"
	"	}\n"
	"	EACH(n, 2) {\n"
	"		groups_fence();\n"
	"		EACH(s, depth / 16) {\n"
	"			u64 da = desc(slot_a, depth, o->ta, s), db = desc(slot_b, depth, o->tb, s);\n"
	"			if (o->rs) host_mma_rs(d, r[s], db, n || s, 64, 0, o->tb, HOST_bf16, HOST_bf16);\n"
	"			else host_mma_ss(d, da, db, n || s, 64, o->ta, o->tb, HOST_bf16, HOST_bf16);\n"
	"		}\n"
	"		groups_commit();\n"
	"	}\n"
	"	const u64 db = desc(slot_b, depth, 0, 0);\n"
	"	switch (o->after) {\n"
	"	case 1: d[3] = 1; break;\n"
	"	case 2: r[1][2] = 1; break;\n"
	"	case 3: if (t == 5) shared_put_f32(slot_b, 1); WARP_SYNC(); groups_fence();\n"
	"		host_mma_rs(d, r[0], db, 1, 64, 0, 0, HOST_bf16, HOST_bf16); groups_commit(); break;\n"
	"	case 4: host_mma_rs(d, r[0], db + (t == 9), 1, 64, 0, 0, HOST_bf16, HOST_bf16); break;\n"
	"	case 5: host_mma_rs(d, r[0], 1ull << 60, 1, 64, 0, 0, HOST_bf16, HOST_bf16); groups_commit(); break;\n"
	"	case 6: GROUPS_WAIT(0); if (t == 5) shared_put_f32(slot_b, 1); lane_sync(1, 128); fence_async();\n"
	"		groups_fence(); host_mma_rs(d, r[0], db, 1, 64, 0, 0, HOST_bf16, HOST_bf16); groups_commit(); break;\n"
	"	case 7: GROUPS_WAIT(0); host_mma_rs(d, r[0], db, 1, 64, 0, 0, HOST_bf16, HOST_bf16); break;\n"
	"	case 8: EACH(n, 2) {\n"
	"		groups_fence(); host_mma_sparse(d, desc(slot_a, depth, 0, 0), db, 0x44444444, 1, 64, 0, 0, HOST_bf16, HOST_bf16);\n"
	"		groups_commit(); GROUPS_WAIT(1);\n"
	"	} break;\n"
	"	}\n"
	"	if (o->left) GROUPS_WAIT(1);\n"
	"	else GROUPS_WAIT(0);\n"
	"	EACH(i, 32) out[(t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2)) * 64 + i / 4 * 8 + 2 * (t % 4) + i % 2] = d[i];\n"
	"	GROUPS_WAIT(0);\n"
	"}\n"
	"HOST_ENTRY(mma, 128) { mma(args[0], args[1], args[2], args[3], args[4]); }\n";

static struct { int depth, ta, tb, rs, left, after; } mma_options;
static float mma_a[64][64], mma_b[64][64], mma_out[64][64];
static uint16_t mma_rows[64 * 64], mma_pa[64 * 64], mma_pb[64 * 64];

static uint16_t bf16(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static void mma_bench(struct bench *b)
{
	struct buf text;

	bench_init(b);
	buf_init(&text, &b->arena);
	buf_puts(&text, mma_text);
	bench_compile(b, &text, 128, 40960);
}

/* Operands for the options as they are. */
static void mma_arguments(struct bench *b)
{
	int depth = mma_options.depth, ta = mma_options.ta, tb = mma_options.tb;

	for (int i = 0; i < 64; i++) {
		for (int k = 0; k < depth; k++) {
			mma_a[i][k] = (float)((i * 7 + k * 3) % 17 - 8);
			mma_b[i][k] = (float)((i * 5 + k * 11) % 19 - 9);
			mma_rows[i * depth + k] = bf16(mma_a[i][k]);
			mma_pa[ta ? k * 64 + i : i * depth + k] = bf16(mma_a[i][k]);
			mma_pb[tb ? k * 64 + i : i * depth + k] = bf16(mma_b[i][k]);
		}
	}
	b->job.nbuffers = b->job.nargs = 0;
	add_map(b, mma_pa, ta ? depth : 64, ta ? 64 : depth, 2, ta ? depth : 64, ta ? 64 : depth);
	add_map(b, mma_pb, tb ? depth : 64, tb ? 64 : depth, 2, tb ? depth : 64, tb ? 64 : depth);
	add(b, sizeof(mma_rows), mma_rows, NULL);
	add(b, sizeof(mma_out), NULL, mma_out);
	add(b, sizeof(mma_options), &mma_options, NULL);
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

static void test_products(struct bench *b)
{
	static const struct {
		int ta, tb, rs;
	} forms[] = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 1, 1, 0 }, { 0, 0, 1 }, { 0, 1, 1 } };
	char what[96];

	for (int n = 0; n < 3 * LEN(forms); n++) {
		int bad = 0;

		mma_options.depth = 16 << n % 3;
		mma_options.ta = forms[n / 3].ta;
		mma_options.tb = forms[n / 3].tb;
		mma_options.rs = forms[n / 3].rs;
		mma_arguments(b);
		for (uint64_t seed = 0; seed < 4; seed++) {
			const char *report = play(b, seed, seed % 2);

			bad += report || mma_mistakes(mma_options.depth);
			if (report)
				diag("%s", report);
		}
		snprintf(what, sizeof(what), "64 x 64 x %d, A %s, B %s", mma_options.depth,
			mma_options.rs ? "in registers" : mma_options.ta ? "by columns" : "by rows",
			mma_options.tb ? "by columns" : "by rows");
		is_int(bad, 0, what);
	}
}

static void test_products_misused(struct bench *b)
{
	static const struct {
		const char *words;
		bool race;
	} cases[] = {
		{ "wrote to its accumulators while the product was under way", false },
		{ "wrote to the registers of the first operand while", false },
		{ "which thread 5 wrote in its start without a fence", false },
		{ "disagree about its next matrix instruction", false },
		{ "has bits where none belong", false },
		{ "which thread 5 wrote in its start without a fence", true },
		{ "a product without groups_fence since the last wait", false },
		{ "the words of indices are new while a sparse product may still read", false },
	};
	int early = 0;

	mma_options.depth = 32;
	mma_options.ta = mma_options.tb = 0;
	mma_options.rs = 1;
	mma_arguments(b);
	for (int i = 0; i < LEN(cases); i++) {
		mma_options.after = i + 1;
		refuses(b, cases[i].race, false, cases[i].words, cases[i].words);
	}
	mma_options.after = 0;
	mma_options.left = 1;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		early += !play(b, seed, false) && mma_mistakes(32);
	ok(early > 0, "accumulators that are read too early are seen in the result");
}

static void test_all_products(void)
{
	struct bench b;

	mma_bench(&b);
	test_products(&b);
	test_products_misused(&b);
	bench_free(&b);
}

/* ---- the process ------------------------------------------------------------------------ */

static void test_process(void)
{
	struct bench b;
	struct mem mem = { 0 };
	struct host_kernel *k = NULL;
	struct err e;

	small_bench(&b, (const char *[]){ "for (volatile int i = 0; ; i++);" }, 1);
	small_which = 0;
	b.job.seconds = 0.3;
	refuses(&b, false, true, "the kernel did not finish within 0.3 s", "a kernel that hangs is stopped");
	bench_free(&b);
	is_int(host_compile(&mem, "int x = y;\n", 11, false, NULL, &k, &e), ERR_IO, "what is no C is refused");
	ok(strstr(e.msg, "host: the C compiler failed:") && strstr(e.msg, "kernel.c:1:"),
		"with the compiler's words");
	host_free(k);
	setenv("CC", "there-is-none", 1);
	is_int(host_compile(&mem, "int x;\n", 7, false, NULL, &k, &e), ERR_IO, "without a compiler");
	ok(strstr(e.msg, "there is no C compiler 'there-is-none'"), "the message says so");
	host_free(k);
	unsetenv("CC");
	is_int((long long)mem.used, 0, "all memory is given back");
}

int main(void)
{
	test_ring();
	test_allowed();
	test_clusters();
	test_refused();
	test_all_products();
	test_process();
	return tap_done();
}
