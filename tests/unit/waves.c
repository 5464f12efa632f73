/* Waves of 64 threads: the host's machine runs them, its matrix cores lay elements out as AMD's do, and so does the
 * record of gfx942. */
#include "base/buf.h"
#include "host/host.h"
#include "target/target.h"

#include "tap.h"

enum { SEEDS = 6, THREADS = 128, WAVE = 64 };

/* Where the elements of v_mfma_f32_NxN are, as AMD's matrix instruction calculator says: the lane, and its register.
 * Element [i][k] of the first operand and [k][i] of the second one are in the same lane, as the same half of a
 * register. */
struct held_by {
	int lane, reg, half;
};

static struct held_by sum_held_by(int n, int i, int j)
{
	if (n == 16)
		return (struct held_by){ .lane = j + 16 * (i / 4), .reg = i % 4 };
	return (struct held_by){ .lane = j + 32 * (i / 4 % 2), .reg = 4 * (i / 8) + i % 4 };
}

static struct held_by operand_held_by(int n, int i, int k)
{
	return (struct held_by){ .lane = i + n * (k / 4), .reg = k % 4 / 2, .half = k % 2 };
}

/* ---- the machine ------------------------------------------------------------------------ */

static float out[THREADS * 16];
static uint32_t a_words[WAVE * 2], b_words[WAVE * 2];

static const char *play(const char *body, int warp, int group, uint64_t seed, struct arena *a, struct mem *mem)
{
	struct host_buffer buffers[] = { { sizeof(out), NULL, out }, { sizeof(a_words), a_words, NULL },
		{ sizeof(b_words), b_words, NULL } };
	struct host_arg args[] = { { .buffer = 0 }, { .buffer = 1 }, { .buffer = 2 } };
	struct host_job job = { .buffers = buffers, .args = args, .nbuffers = LEN(buffers), .nargs = LEN(args),
		.blocks = 1, .threads = THREADS, .warp = warp, .group = group, .shared_bytes = 2048, .seed = seed,
		.race = true, .seconds = 20 };
	struct buf text = buf_new(a);
	struct host_kernel *k;
	const char *report = "it did not run";
	struct err e;

	buf_printf(&text, "#include \"millrace_host.h\"\n"
		"KERNEL(waves, 128)(float *out, const u32 *a, const u32 *b)\n"
		"{ const u32 shared = shared_base(); const int t = THREAD, lane = t %% 64; %s }\n"
		"HOST_ENTRY(waves, 128) { waves(args[0], args[1], args[2]); }\n", body);
	if (host_compile(mem, text.text, text.len, false, NULL, &k, &e) ||
	    host_run(k, &job, NULL, a, &report, &e))
		report = e.msg;
	host_free(k);
	return report;
}

static void refuses(const char *report, const char *words, const char *what)
{
	if (!ok(report && strstr(report, words), what))
		diag("%s", report ? report : "all went well");
}

static void test_waves(struct arena *a, struct mem *mem)
{
	static const struct {
		const char *body, *what;
	} cases[] = {
		{ "if (shuffle_xor((float)t, 32) != (t ^ 32)) out[0] = 1;", "shuffles reach all 64 threads" },
		{ "if (shuffle_from((float)t, 63) != (t | 63)) out[0] = 1;", "... by their number in the wave" },
		{ "if (UNIFORM(t) != t / 64 * 64) out[0] = 1;", "a number is the same in the wave" },
		{ "float n = elect(); EACH(o, 6) n += shuffle_xor(n, 1 << o); if (n != 1) out[0] = 1;",
			"one thread of 64 is elected" },
		{ "shared_put_f32(shared + 4 * t, t); WARP_SYNC();"
			" if (shared_f32(shared + 4 * (t ^ 32)) != (t ^ 32)) out[0] = 1;",
			"WARP_SYNC orders the accesses of 64 threads" },
		{ "if (t < 64) lane_sync(1, 64); else lane_sync(2, 64);", "a wave is a lane" },
	};
	bool none = true;

	for (int i = 0; i < LEN(cases); i++) {
		const char *report = NULL;
		const char *body = arena_strf(a, "if (t == 0) out[0] = 0; BLOCK_SYNC(); %s", cases[i].body);

		for (uint64_t seed = 0; seed < SEEDS && !report; seed++) {
			report = play(body, WAVE, WAVE, seed, a, mem);
			none &= out[0] == 0;
		}
		if (!ok(!report && none, cases[i].what))
			diag("%s", report ? report : "it is not so");
	}
	refuses(play("lane_sync(1, 32);", WAVE, WAVE, 1, a, mem), "there is no barrier 1 of 32 threads",
		"half a wave is no lane");
	refuses(play("", 48, 48, 1, a, mem), "a launch with warps of 48 threads in groups of 48",
		"a size that no machine has");
	refuses(play("float d[4] = { 0 }; host_mfma(d, a, b, 1, 16, HOST_bf16, HOST_bf16);", 32, 128, 1, a, mem),
		"an MFMA of 16 x 16 by a warp of 32 threads", "a product that warps of 32 threads do not have");
}

/* Small integers, which bf16 and f16 have exactly. */
static int element(int row, int k)
{
	return (7 * row + 5 * k + row * k % 3) % 9 - 4;
}

static uint32_t half_bits(bool bf16, int x)
{
	static const uint32_t of_f16[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400 };
	static const uint32_t of_bf16[] = { 0, 0x3f80, 0x4000, 0x4040, 0x4080 };

	return (bf16 ? of_bf16 : of_f16)[x < 0 ? -x : x] | (x < 0 ? 0x8000 : 0);
}

static void put_operand(int n, bool bf16, int shift, uint32_t *words)
{
	memset(words, 0, sizeof(a_words));
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 256 / n; k++) {
			struct held_by p = operand_held_by(n, i, k);

			words[2 * p.lane + p.reg] |= half_bits(bf16, element(i + shift, k)) << 16 * p.half;
		}
}

static void test_products(struct arena *a, struct mem *mem)
{
	for (int which = 0; which < 4; which++) {
		int n = which & 1 ? 32 : 16, sums = n * n / WAVE, wrong = 0;
		bool bf16 = which & 2;
		const char *type = bf16 ? "bf16" : "f16", *report;

		put_operand(n, bf16, 0, a_words);
		put_operand(n, bf16, 5, b_words);
		report = play(arena_strf(a, "float d[16]; EACH(i, %d) d[i] = 100.f * i;"
			" host_mfma(d, a + 2 * lane, b + 2 * lane, t < 64, %d, HOST_%s, HOST_%s);"
			" EACH(i, %d) out[16 * t + i] = d[i];", sums, n, type, type, sums), WAVE, WAVE, 1, a, mem);
		for (int i = 0; i < n && !report; i++)
			for (int j = 0; j < n; j++) {
				struct held_by p = sum_held_by(n, i, j);
				float want = 0;

				for (int k = 0; k < 256 / n; k++)
					want += (float)(element(i, k) * element(j + 5, k));
				wrong += out[16 * p.lane + p.reg] != want + 100.f * (float)p.reg;
				wrong += out[16 * (p.lane + WAVE) + p.reg] != want;
			}
		if (!ok(!report && !wrong, arena_strf(a, "%d x %d x %d of %s lies as AMD's does", n, n, 256 / n, type)))
			diag("%s, %d wrong", report ? report : "it ran", wrong);
	}
}

/* ---- the record ------------------------------------------------------------------------- */

static int digit(const struct spread *s, int thread)
{
	return thread / s->div % s->mod * s->step;
}

/* Is element e of a group of columns that a thread has at this row and column, each group being `l->cols` wide? */
static bool lies_at(const struct frag_layout *l, int thread, int group, int e, int row, int col)
{
	return digit(&l->row, thread) == row && group * l->cols + digit(&l->col, thread) + e == col;
}

/* The instruction gets the plan's second operand first, so its result is transposed. */
static void test_record(const struct matrix_instruction *x)
{
	const struct frag_layout *sums = x->sums ? x->sums : &target_gfx942.frag, *b = x->b_layout;
	const struct frag_layout *first = x->a_layout ? x->a_layout : sums;
	int bits = x->types >> DT_BF16 & 1 ? 16 : 8, n = x->rows, depth = x->k_bytes * 8 / bits, wrong = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			struct held_by p = sum_held_by(n, i, j);

			wrong += !lies_at(sums, p.lane, p.reg / sums->pair, p.reg % sums->pair, j, i);
		}
	is_int(wrong, 0, x->name);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < depth; k++) {
			struct held_by p = operand_held_by(n, i, k);
			int each = 64 / bits, e = bits == 16 ? 2 * p.reg + p.half : k % each;
			int lane = bits == 16 ? p.lane : i + n * (k / each);	/* eight neighbours of 8 bits */

			wrong += !lies_at(first, lane, 0, e, i, k);
			wrong += !lies_at(b, lane, 0, e, i, k);
		}
	is_int(wrong, 0, "... sums and both operands lie as the record says");
	ok(sums->halves == 1 && b->halves == 1 && first->halves == 1 && b->every_warp && !first->every_warp &&
		n * depth * bits == 4096, "... of one row a thread, the second one in every warp");
}

int main(void)
{
	struct mem mem = { 0 };
	struct arena a;

	arena_init(&a, &mem);
	test_waves(&a, &mem);
	test_products(&a, &mem);
	is_int(target_gfx942.nmatrix, 8, "gfx942 has two forms of products of 16 bits, i8, e4m3 and e5m2");
	for (int i = 0; i < target_gfx942.nmatrix; i++)
		test_record(&target_gfx942.matrix[i]);
	arena_release(&a);
	return tap_done();
}
