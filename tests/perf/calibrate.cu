/* calibrate.cu - measures the machine constants of an NVIDIA H200 for the performance model.
 *
 * Micro-benchmarks of the tensor cores, the copy engine (TMA), L2 and device memory, the CUDA
 * cores, synchronisation, shared memory and launches. The output is the source of the numbers in
 * hw/h200.lua: after a change of driver or card, run it again and compare.
 *
 * Build:  nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o build/calibrate \
 *              tests/perf/calibrate.cu -lcuda
 *         A warning of ptxas that wgmma is serialized makes every wgmma figure void.
 * Run:    build/calibrate [SECTION ...]     all sections without arguments, under a minute;
 *         needs an otherwise idle card and 9 GB of its memory
 *
 * One line per figure on stdout: "name value unit". A figure is nan if a barrier did not complete
 * within SPIN_LIMIT. Exit status: 0, 1 if some figure is nan, 2 on a CUDA error or wrong usage.
 *
 * Cycles are SM cycles (clock64), from the first start to the last end on the SM. A figure per
 * iteration is the slope between a short and a long run: starting and draining are out of it.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

/* ---- device: helpers -------------------------------------------------------------------- */

#define DEVICE __device__ __forceinline__
#define PTX(text, ...) asm volatile(text ::__VA_ARGS__ : "memory")

constexpr long long SPIN_LIMIT = 1ll << 28;	/* cycles, about 0.15 s */
constexpr int SAMPLES = 32;			/* of a latency; the median is reported */
constexpr int ALIGN = 1024;			/* of the arena; kernels get so much more memory */

struct Span {
	unsigned long long first, last;		/* clock64 of one SM */
};

__device__ int stuck;				/* a wait ran into SPIN_LIMIT, or data was wrong */
__device__ unsigned sink;			/* never written; keeps results alive */

/* The dynamic shared memory, aligned for 128-byte swizzle. */
DEVICE uint8_t *arena()
{
	extern __shared__ uint8_t raw[];
	return raw + (-(uint32_t)__cvta_generic_to_shared(raw) & (ALIGN - 1));
}

DEVICE uint32_t addr_of(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* Every warp that took part reports; the block's span is from the first to the last. */
DEVICE void record(Span *spans, long long start, long long end)
{
	if (threadIdx.x % 32 == 0) {
		atomicMin(&spans[blockIdx.x].first, (unsigned long long)start);
		atomicMax(&spans[blockIdx.x].last, (unsigned long long)end);
	}
}

/* x is in its register before what follows. */
DEVICE void pin_register(uint32_t &x)
{
	asm volatile("" : "+r"(x));
}

DEVICE void keep(unsigned x)
{
	if (x == 0x9e3779b9u)
		sink = x;
}

/* The finaliser of MurmurHash3. */
DEVICE uint32_t hash(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x85ebca6bu;
	x = (x ^ (x >> 13)) * 0xc2b2ae35u;
	return x ^ (x >> 16);
}

DEVICE uint32_t pack_bf16(float lo, float hi)
{
	uint32_t r;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
	return r;
}

/* Two bf16 of a standard normal distribution (Box-Muller). */
DEVICE uint32_t normal_pair(uint32_t i)
{
	const float u = (hash(2 * i) + 1.0f) * 0x1p-32f, v = hash(2 * i + 1) * 0x1p-32f;
	const float r = sqrtf(-2 * __logf(fminf(u, 0.9999999f)));

	return pack_bf16(r * __cosf(6.2831853f * v), r * __sinf(6.2831853f * v));
}

enum Fill { ZEROS, NORMAL };

__device__ void fill_shared(uint8_t *p, int bytes, Fill fill)
{
	for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
		((uint32_t *)p)[i] = fill == ZEROS ? 0 : normal_pair(i);
	PTX("fence.proxy.async.shared::cta;");
	__syncthreads();
}

__global__ void fill_global(uint32_t *p, size_t words)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	for (; i < words; i += (size_t)gridDim.x * blockDim.x)
		p[i] = normal_pair((uint32_t)i);
}

/* ---- device: mbarriers and TMA ---------------------------------------------------------- */

/* One thread of a warp. The compiler knows elect.sync and then issues TMA without a loop over the
 * active threads, which it puts around it under any other condition. */
DEVICE bool elected()
{
	uint32_t yes;

	asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
		: "=r"(yes));
	return yes;
}

DEVICE void bar_init(uint32_t bar, int count)
{
	PTX("mbarrier.init.shared::cta.b64 [%0], %1;", "r"(bar), "r"(count));
	PTX("fence.mbarrier_init.release.cluster;");
}

DEVICE void bar_arrive(uint32_t bar)
{
	PTX("mbarrier.arrive.shared::cta.b64 _, [%0];", "r"(bar));
}

DEVICE void bar_arrive_at(uint32_t bar, int block)
{
	PTX("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1;"
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]; }",
		"r"(bar), "r"(block));
}

DEVICE void bar_expect(uint32_t bar, int bytes)
{
	PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "r"(bar), "r"(bytes));
}

DEVICE bool bar_try(uint32_t bar, uint32_t parity)
{
	uint32_t done;

	asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
		"selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
	return done;
}

/* False, and `stuck` set, if the phase does not complete. */
DEVICE bool bar_wait(uint32_t bar, uint32_t parity)
{
	if (bar_try(bar, parity))
		return true;
	for (const long long start = clock64(); !bar_try(bar, parity);) {
		if (clock64() - start > SPIN_LIMIT) {
			stuck = 1;
			return false;
		}
	}
	return true;
}

/* With BOTH, to the same offset in both blocks of a cluster of two, and to both their barriers. */
template <bool BOTH>
DEVICE void tma_load(uint32_t dst, const CUtensorMap &map, int col, int row, uint32_t bar)
{
#define LOAD "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
	if (BOTH)
		PTX(LOAD ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;", "r"(dst), "l"(&map),
			"r"(col), "r"(row), "r"(bar), "h"((uint16_t)3));
	else
		PTX(LOAD " [%0], [%1, {%2, %3}], [%4];", "r"(dst), "l"(&map), "r"(col), "r"(row),
			"r"(bar));
#undef LOAD
}

DEVICE void tma_store(const CUtensorMap &map, int col, int row, uint32_t src)
{
	PTX("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];",
		"l"(&map), "r"(col), "r"(row), "r"(src));
	PTX("cp.async.bulk.commit_group;");
}

/* ---- device: wgmma ---------------------------------------------------------------------- */

enum MmaForm { SS, RS, E4M3 };

#define REGS_32 \
	"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22," \
	"%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGS_64 REGS_32 "," \
	"%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52," \
	"%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define REGS_128 REGS_64 "," \
	"%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84," \
	"%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104," \
	"%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121," \
	"%122,%123,%124,%125,%126,%127"
#define ACC_4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC_16(i) ACC_4(i), ACC_4((i) + 4), ACC_4((i) + 8), ACC_4((i) + 12)
#define ACC_32 ACC_16(0), ACC_16(16)
#define ACC_64 ACC_32, ACC_16(32), ACC_16(48)
#define ACC_128 ACC_64, ACC_16(64), ACC_16(80), ACC_16(96), ACC_16(112)

/* With R accumulators; their operand numbers are 0 to R - 1, those of the other operands follow. */
#define MMA_SS(type, transpose, R, i0, i1, i2) \
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #i2 ", 0;" \
		"wgmma.mma_async.sync.aligned." type " {" REGS_##R "}, %" #i0 ", %" #i1 \
		", p, 1, 1" transpose "; }" : ACC_##R : "l"(da), "l"(db), "r"(accumulate))
#define MMA_RS(type, R, i0, i1, i2, i3, i4, i5) \
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #i5 ", 0;" \
		"wgmma.mma_async.sync.aligned." type " {" REGS_##R "}, {%" #i0 ", %" #i1 ", %" #i2 \
		", %" #i3 "}, %" #i4 ", p, 1, 1, 0; }" : ACC_##R \
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db), "r"(accumulate))

/* d = A B + (accumulate ? d : 0), 64 x N x 32 bytes of k; A from `da` or, in RS form, from `a`. */
template <int N, MmaForm F>
DEVICE void mma(float (&d)[N / 2], const uint32_t *a, uint64_t da, uint64_t db, int accumulate)
{
	if constexpr (F == SS && N == 64)
		MMA_SS("m64n64k16.f32.bf16.bf16", ", 0, 0", 32, 32, 33, 34);
	else if constexpr (F == SS && N == 128)
		MMA_SS("m64n128k16.f32.bf16.bf16", ", 0, 0", 64, 64, 65, 66);
	else if constexpr (F == SS && N == 256)
		MMA_SS("m64n256k16.f32.bf16.bf16", ", 0, 0", 128, 128, 129, 130);
	else if constexpr (F == E4M3 && N == 256)
		MMA_SS("m64n256k32.f32.e4m3.e4m3", "", 128, 128, 129, 130);
	else if constexpr (F == RS && N == 128)
		MMA_RS("m64n128k16.f32.bf16.bf16", 64, 64, 65, 66, 67, 68, 69);
	else if constexpr (F == RS && N == 256)
		MMA_RS("m64n256k16.f32.bf16.bf16", 128, 128, 129, 130, 131, 132, 133);
	else
		static_assert(N < 0, "no such form");
}

/* Stops the compiler from moving uses of d across the asynchronous region. */
template <int R> DEVICE void pin(float (&d)[R])
{
#pragma unroll
	for (int i = 0; i < R; i++)
		asm volatile("" : "+f"(d[i])::"memory");
}

template <int R> DEVICE void keep_all(const float (&d)[R], float sum)
{
	for (int i = 0; i < R; i++)
		sum += d[i];
	keep(__float_as_uint(sum));
}

/* K-major rows of 128 bytes, 128-byte swizzle, 1024 bytes from one group of 8 rows to the next. */
DEVICE uint64_t descriptor(uint32_t addr)
{
	return (uint64_t)((addr & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

DEVICE int warpgroup()
{
	return __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
}

/* A ring of four stages as a 128 x 256 x 64 matrix product has it: A 2 x 8 KB, B 32 KB. */
constexpr int STAGES = 4, A_BYTES = 16384, B_BYTES = 32768, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int RING_SMEM = STAGES * STAGE_BYTES + ALIGN;
constexpr int MMA_BATCH = 16;			/* instructions in one round of the ring */

/* `iters` groups of BATCH instructions, at most PENDING + 1 groups in flight. The accumulators are
 * cleared every 16 groups, so that their magnitudes are those of k = 4096. In e4m3 the bytes are
 * those of the bf16 data. */
template <int N, MmaForm F, int BATCH, int PENDING>
__global__ void __launch_bounds__(256, 1) mma_loop(int iters, Fill fill, Span *spans)
{
	uint8_t *smem = arena();
	float d[N / 2] = {};
	uint32_t a[4][4];

	for (int i = 0; i < 16; i++)
		a[i / 4][i % 4] = fill == ZEROS ? 0 : normal_pair(threadIdx.x * 16 + i);
	fill_shared(smem, STAGES * STAGE_BYTES, fill);
	const uint64_t da = descriptor(addr_of(smem) + warpgroup() * (A_BYTES / 2));
	const uint64_t db = descriptor(addr_of(smem) + A_BYTES);
	const long long start = clock64();
	pin(d);
	for (int i = 0; i < iters; i++) {
		PTX("wgmma.fence.sync.aligned;");
#pragma unroll
		for (int k = 0; k < BATCH; k++) {
			const int step = (k / 4 % STAGES * STAGE_BYTES + k % 4 * 32) >> 4;

			mma<N, F>(d, a[k % 4], da + step, db + step, k > 0 || i % 16 > 0);
		}
		PTX("wgmma.commit_group.sync.aligned;");
		PTX("wgmma.wait_group.sync.aligned %0;", "n"(PENDING));
	}
	PTX("wgmma.wait_group.sync.aligned 0;");
	pin(d);
	record(spans, start, clock64());
	keep_all(d, 0);
}

/* Attention-like: each warpgroup alternates S = Q K' (64 x 128 x 128), a softmax-like pass over S
 * and O += P V. Two warpgroups overlap as they find each other. */
constexpr int MIX_SMEM = 2 * 16384 + 2 * 65536 + ALIGN;	/* Q of each warpgroup; two of K and V */

__global__ void __launch_bounds__(256, 1) mix_loop(int iters, Fill fill, Span *spans)
{
	constexpr float SCALE = 0.1275f;	/* log2(e) / sqrt(128) */
	uint8_t *smem = arena();
	float s[64] = {}, o[64] = {}, sum = 0, top = 0;
	uint32_t p[32];

	fill_shared(smem, MIX_SMEM - ALIGN, fill);
	const uint64_t q = descriptor(addr_of(smem) + warpgroup() * 16384);
	const uint64_t kv = descriptor(addr_of(smem) + 32768);
	const long long start = clock64();
	pin(o);
	for (int i = 0; i < iters; i++) {
		const uint64_t key = kv + i % 2 * (65536 >> 4), value = key + (32768 >> 4);

		pin(s);
		PTX("wgmma.fence.sync.aligned;");
#pragma unroll
		for (int k = 0; k < 8; k++)
			mma<128, SS>(s, nullptr, q + ((k / 4 * 8192 + k % 4 * 32) >> 4),
				key + ((k / 4 * 16384 + k % 4 * 32) >> 4), k > 0);
		PTX("wgmma.commit_group.sync.aligned;");
		PTX("wgmma.wait_group.sync.aligned 0;");
		pin(s);
		pin(o);
#pragma unroll
		for (int j = 0; j < 64; j++)
			top = fmaxf(top, s[j]);
#pragma unroll
		for (int j = 0; j < 64; j++) {
			asm volatile("ex2.approx.ftz.f32 %0, %1;"
				: "=f"(s[j]) : "f"(fmaf(s[j], SCALE, -top * SCALE)));
			sum += s[j];
		}
#pragma unroll
		for (int j = 0; j < 32; j++)
			p[j] = pack_bf16(s[2 * j], s[2 * j + 1]);
		PTX("wgmma.fence.sync.aligned;");
#pragma unroll
		for (int k = 0; k < 8; k++)
			mma<128, RS>(o, p + 4 * k, 0, value + ((k / 4 * 16384 + k % 4 * 32) >> 4),
				k > 0 || i % 16 > 0);
		PTX("wgmma.commit_group.sync.aligned;");
	}
	PTX("wgmma.wait_group.sync.aligned 0;");
	pin(o);
	record(spans, start, clock64());
	keep_all(o, sum);
}

/* ---- device: TMA and device memory ------------------------------------------------------ */

/* Latency of one box of `rows` rows of 128 bytes: samples[0 ..] from device memory if the caller
 * has flushed L2, then samples[SAMPLES ..] of the same boxes again, now from L2. One warp. */
__global__ void load_latency(const __grid_constant__ CUtensorMap map, int rows, long long *samples)
{
	__shared__ uint64_t storage;
	uint32_t dst = addr_of(arena()), bar = addr_of(&storage), parity = 0;

	if (!elected())
		return;
	bar_init(bar, 1);
	for (int i = -1; i < 2 * SAMPLES; i++) {	/* the first brings in the tensor map */
		const int box = i < 0 ? SAMPLES : i % SAMPLES;
		uint32_t col = box % 16 * 256, row = box / 16 * rows;

		pin_register(dst), pin_register(bar), pin_register(col), pin_register(row);
		const long long start = clock64();
		bar_expect(bar, rows * 128);
		tma_load<false>(dst, map, col, row, bar);
		if (!bar_wait(bar, parity))
			break;
		const long long end = clock64();
		if (i >= 0)
			samples[i] = end - start;
		parity ^= 1;
	}
}

/* Cycles in which one thread issues COUNT pairs of expect_tx and an 8 KB load. One warp. */
template <int COUNT>
__global__ void load_issue(const __grid_constant__ CUtensorMap map, long long *samples)
{
	__shared__ uint64_t storage[COUNT];
	uint32_t dst = addr_of(arena()), bar = addr_of(storage);

	if (!elected())
		return;
	for (int i = 0; i < COUNT; i++)
		bar_init(bar + 8 * i, 1);
	for (int rep = 0; rep < SAMPLES; rep++) {
		pin_register(dst), pin_register(bar);
		const long long start = clock64();
#pragma unroll
		for (int i = 0; i < COUNT; i++) {
			bar_expect(bar + 8 * i, 8192);
			tma_load<false>(dst + i * 8192, map, i * 64, 0, bar + 8 * i);
		}
		samples[rep] = clock64() - start;
		for (int i = 0; i < COUNT; i++)
			if (!bar_wait(bar + 8 * i, rep & 1))
				return;
	}
}

/* What block b = i * inner + j moves: A at row a_i * i + a_j * j, B at b_base + b_i * i + b_j * j;
 * k runs over `kblocks` blocks of 64 columns, then both move down by `wrap_rows`. */
struct Walk {
	int inner, a_i, a_j, b_base, b_i, b_j, kblocks, wrap_rows, iters;
};

enum Share { OWN, SHARE_A, SHARE_B };		/* the operand that a cluster of two loads once */

/* Warp 0 loads, warp 1 frees the stages. */
template <Share S>
__global__ void __launch_bounds__(64, 1) load_stream(const __grid_constant__ CUtensorMap map_a,
	const __grid_constant__ CUtensorMap map_b, Walk w, Span *spans)
{
	constexpr int BLOCKS = S == OWN ? 1 : 2;
	__shared__ uint64_t storage[2 * STAGES];
	const uint32_t full = addr_of(storage), empty = full + 8 * STAGES, ring = addr_of(arena());
	const int i = blockIdx.x / w.inner, j = blockIdx.x % w.inner, rank = blockIdx.x % BLOCKS;
	const int half_a = S == SHARE_A ? rank * 64 : 0, half_b = S == SHARE_B ? rank * 128 : 0;
	const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
	int a_row = w.a_i * i + w.a_j * j + half_a;
	int b_row = w.b_base + w.b_i * i + w.b_j * j + half_b;

	for (int s = 0; s < STAGES && threadIdx.x == 0; s++) {
		bar_init(full + 8 * s, 1);
		bar_init(empty + 8 * s, BLOCKS);
	}
	__syncthreads();
	if (S != OWN)
		PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
	const long long start = clock64();
	if (warp == 0 && elected()) {
		for (int it = 0, k = 0; it < w.iters; it++) {
			const uint32_t s = it % STAGES, bar = full + 8 * s;
			const uint32_t a = ring + s * STAGE_BYTES, b = a + A_BYTES;

			if (!bar_wait(empty + 8 * s, (it / STAGES & 1) ^ 1))
				break;
			bar_expect(bar, STAGE_BYTES);
			tma_load<S == SHARE_A>(a + half_a * 128, map_a, k * 64, a_row, bar);
			tma_load<S == SHARE_B>(b + half_b * 128, map_b, k * 64, b_row, bar);
			if (++k == w.kblocks) {
				k = 0;
				a_row += w.wrap_rows;
				b_row += w.wrap_rows;
			}
		}
	} else if (warp == 1 && elected()) {
		for (int it = 0; it < w.iters; it++) {
			const uint32_t s = it % STAGES;

			if (!bar_wait(full + 8 * s, it / STAGES & 1))
				break;
			if (S == OWN)
				bar_arrive(empty + 8 * s);
			for (int block = 0; block < BLOCKS && S != OWN; block++)
				bar_arrive_at(empty + 8 * s, block);
		}
	}
	__syncwarp();
	record(spans, start, clock64());
	if (S != OWN)			/* the peer may still arrive here */
		PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
}

/* Boxes of 128 x 64 (16 KB), four in flight; A's part of the walk, with inner = 1. */
__global__ void store_stream(const __grid_constant__ CUtensorMap map, Walk w, Span *spans)
{
	uint8_t *smem = arena();
	const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);

	fill_shared(smem, 4 * 16384, NORMAL);
	if (warp > 0)
		return;
	const long long start = clock64();
	if (elected()) {
		for (int it = 0, k = 0, row = w.a_i * blockIdx.x; it < w.iters; it++) {
			tma_store(map, k * 64, row, addr_of(smem) + it % 4 * 16384);
			PTX("cp.async.bulk.wait_group.read 3;");
			if (++k == w.kblocks) {
				k = 0;
				row += w.wrap_rows;
			}
		}
		PTX("cp.async.bulk.wait_group 0;");
	}
	__syncwarp();
	record(spans, start, clock64());
}

/* One 8 KB box: samples[0 ..] until shared memory is free, samples[SAMPLES ..] until written. One
 * warp. ptxas 13.0 makes the same wait of both for sm_90, the second plus an L1 invalidation. */
__global__ void store_latency(const __grid_constant__ CUtensorMap map, long long *samples)
{
	uint8_t *smem = arena();
	uint32_t src = addr_of(smem);

	fill_shared(smem, 8192, NORMAL);
	if (!elected())
		return;
	for (int i = -1; i < SAMPLES; i++) {
		pin_register(src);
		const long long start = clock64();
		tma_store(map, 0, (i + 1) * 64, src);
		PTX("cp.async.bulk.wait_group.read 0;");
		const long long read = clock64();
		PTX("cp.async.bulk.wait_group 0;");
		const long long written = clock64();
		if (i >= 0) {
			samples[i] = read - start;
			samples[SAMPLES + i] = written - start;
		}
	}
}

constexpr int TRAFFIC_THREADS = 512, TRAFFIC_ILP = 8;

template <bool READ, bool WRITE>
__global__ void __launch_bounds__(TRAFFIC_THREADS) traffic(const uint4 *src, uint4 *dst)
{
	const size_t at = (size_t)blockIdx.x * TRAFFIC_THREADS * TRAFFIC_ILP + threadIdx.x;
	uint4 v[TRAFFIC_ILP];

#pragma unroll
	for (int i = 0; i < TRAFFIC_ILP; i++)
		v[i] = READ ? src[at + i * TRAFFIC_THREADS] : make_uint4(hash(at), i, at, ~at);
#pragma unroll
	for (int i = 0; i < TRAFFIC_ILP; i++) {
		if (WRITE)
			dst[at + i * TRAFFIC_THREADS] = v[i];
		else
			keep(v[i].x ^ v[i].y ^ v[i].z ^ v[i].w);
	}
}

/* ---- device: CUDA cores ----------------------------------------------------------------- */

/* One operation on chain %0; %2 and %3 are constants. The neighbouring chain %1, and the xor after
 * rcp, are there because the assembler would fold a chain of the bare operation. */
#define OPS(X) \
	X(FFMA, "ffma", "fma.rn.f32 %0, %0, %2, %3;") \
	X(FADD, "fadd", "add.rn.f32 %0, %0, %2;") \
	X(FMAX, "fmax", "max.f32 %0, %0, %1;") \
	X(EX2, "ex2", "ex2.approx.ftz.f32 %0, %0;") \
	X(PIPES, "ex2_fmax_ffma", "ex2.approx.ftz.f32 %0, %0; max.f32 %0, %0, %1; fma.rn.f32 %0, %0, %2, %3;") \
	X(RCP, "rcp", "rcp.approx.ftz.f32 %0, %0; xor.b32 %0, %0, %2;") \
	X(TANH, "tanh", "tanh.approx.f32 %0, %0;") \
	X(CVT, "cvt_bf16x2", "cvt.rn.bf16x2.f32 %0, %0, %1;") \
	X(IADD, "iadd", "add.s32 %0, %0, %1;") \
	X(LOP3, "lop3", "lop3.b32 %0, %0, %1, %2, 0xe8;") \
	X(SETSEL, "setp_selp", "{ .reg .pred p; setp.lt.f32 p, %0, %1; selp.b32 %0, %2, %0, p; }") \
	X(SHFL, "shfl", "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;")

#define OP_ID(op, name, text) op,
enum Op { OPS(OP_ID) };

constexpr int OPS_PER_ITER = 256;		/* of each thread */

template <Op O, int ILP> __global__ void op_loop(int iters, float fa, float fb, Span *spans)
{
	const uint32_t a = __float_as_uint(fa), b = __float_as_uint(fb);
	uint32_t x[ILP], all = 0;

#pragma unroll
	for (int c = 0; c < ILP; c++)
		x[c] = __float_as_uint(1 + 0.01f * c + 0.001f * threadIdx.x);
	__syncthreads();
	const long long start = clock64();
	for (int i = 0; i < iters; i++) {
#pragma unroll
		for (int u = 0; u < OPS_PER_ITER; u++) {
#define OPERATE(op, name, text) \
	if constexpr (O == op) \
		asm volatile(text : "+r"(x[u % ILP]) : "r"(x[(u + 1) % ILP]), "r"(a), "r"(b));
			OPS(OPERATE)
		}
	}
#pragma unroll
	for (int c = 0; c < ILP; c++)
		all ^= x[c];
	keep(all);				/* waits for the last results */
	record(spans, start, clock64());
}

/* ---- device: synchronisation and shared memory ------------------------------------------ */

enum Sync { ARRIVE, TRY_WAIT, HANDOFF_4, HANDOFF_128, HANDOFF_NAMED, BAR_128, FENCE, STORE_FENCE };

/* The hand-offs go from warpgroup 0 to 1 and back in each iteration: two one-way hand-offs. */
template <Sync S> __global__ void sync_loop(int iters, Span *spans)
{
	__shared__ uint64_t storage[2];
	__shared__ uint32_t words[256];
	const uint32_t bar[2] = {addr_of(&storage[0]), addr_of(&storage[1])};
	const uint32_t word = addr_of(&words[threadIdx.x]);
	const int wg = warpgroup();
	bool ok = true;

	for (int i = 0; i < 2 && threadIdx.x == 0; i++)
		bar_init(bar[i], S == HANDOFF_128 ? 128 : S == HANDOFF_4 ? 4 : 1);
	if (S == TRY_WAIT && threadIdx.x == 0)
		bar_arrive(bar[0]);
	if ((S == ARRIVE || S == TRY_WAIT) && threadIdx.x > 0)
		iters = 0;			/* one lane alone */
	__syncthreads();
	const long long start = clock64();
#pragma unroll 8
	for (int i = 0; i < iters && ok; i++) {
		if (S == ARRIVE) {
			bar_arrive(bar[0]);
		} else if (S == TRY_WAIT) {
			ok = bar_try(bar[0], 0);
		} else if (S == HANDOFF_4 || S == HANDOFF_128) {
			if (wg == 1)
				ok = bar_wait(bar[0], i & 1);
			if (S == HANDOFF_128 || threadIdx.x % 32 == 0)
				bar_arrive(wg ? bar[1] : bar[0]);
			if (wg == 0)
				ok = bar_wait(bar[1], i & 1);
		} else if (S == HANDOFF_NAMED && wg == 0) {
			PTX("bar.arrive 1, 256; bar.sync 2, 256;");
		} else if (S == HANDOFF_NAMED) {
			PTX("bar.sync 1, 256; bar.arrive 2, 256;");
		} else if (S == BAR_128) {
			PTX("bar.sync 1, 128;");
		} else {
			if (S == STORE_FENCE)
				PTX("st.shared.b32 [%0], %1;", "r"(word), "r"(i));
			PTX("fence.proxy.async.shared::cta;");
		}
	}
	record(spans, start, clock64());
	if (!ok)
		stuck = 1;
}

enum Access { ST_V4, LD_V4, ST_MATRIX, LD_MATRIX };

/* 512 bytes of a warp, 16 at each lane's address. */
template <Access A> DEVICE void access(uint32_t addr, uint32_t *x)
{
#define ST(text) \
	PTX(text " [%0], {%1, %2, %3, %4};", "r"(addr), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]))
#define LD(text) \
	asm volatile(text " {%0, %1, %2, %3}, [%4];" \
		: "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(addr) : "memory")
	if constexpr (A == ST_V4)
		ST("st.shared.v4.b32");
	else if constexpr (A == LD_V4)
		LD("ld.shared.v4.b32");
	else if constexpr (A == ST_MATRIX)
		ST("stmatrix.sync.aligned.m8n8.x4.shared.b16");
	else
		LD("ldmatrix.sync.aligned.m8n8.x4.shared.b16");
#undef ST
#undef LD
}

constexpr int ACCESSES = 16;			/* of each warp and iteration */
constexpr int ACCESS_SMEM = 16 * ACCESSES * 512 + ALIGN;

template <Access A> __global__ void access_loop(int iters, Span *spans)
{
	const int lane = threadIdx.x % 32;
	const uint32_t at = addr_of(arena()) + threadIdx.x / 32 * (ACCESSES * 512) + lane * 16;
	uint32_t x[4] = {threadIdx.x, 1, 2, 3}, all = 0;

	__syncthreads();
	const long long start = clock64();
	for (int i = 0; i < iters; i++) {
#pragma unroll
		for (int j = 0; j < ACCESSES; j++) {
			access<A>(at + j * 512, x);
			if (A == LD_V4 || A == LD_MATRIX)
				all ^= (x[0] & x[1]) ^ (x[2] & x[3]);
		}
	}
	keep(all);
	__syncthreads();			/* the stores have left the queue */
	record(spans, start, clock64());
}

/* A 64 x COLS bf16 tile from the registers of one warpgroup to those of the other and back: two
 * one-way hand-overs an iteration, with named barriers. 128-byte swizzle, panels of 64 columns. */
constexpr int HANDOVER_SMEM = 2 * 64 * 128 * 2 + ALIGN;

template <int COLS> __global__ void __launch_bounds__(256, 1) handover(int iters, Span *spans)
{
	constexpr int TILE_BYTES = 64 * COLS * 2;
	const int wg = warpgroup(), lane = threadIdx.x % 32;
	const int row = threadIdx.x % 128 / 32 * 16 + lane % 16;
	uint32_t r[COLS / 4], at[COLS / 16];

#pragma unroll
	for (int j = 0; j < COLS / 4; j++)
		r[j] = wg ? 0 : threadIdx.x * 32 + j;
#pragma unroll
	for (int j = 0; j < COLS / 16; j++)	/* 16-byte column 2 j + lane / 16 of the row */
		at[j] = addr_of(arena()) + row * 128 + j / 4 * 8192 +
			(((2 * j + lane / 16) % 8) ^ (row % 8)) * 16;
	__syncthreads();
	const long long start = clock64();
	for (int i = 0; i < iters; i++) {
#pragma unroll
		for (int group = 0; group < 2; group++) {
#pragma unroll
			for (int j = 0; j < COLS / 16 && group == wg; j++)
				access<ST_MATRIX>(at[j] + group * TILE_BYTES, r + 4 * j);
			if (group == wg)
				PTX("bar.arrive %0, 256;", "r"(1 + group));
			else
				PTX("bar.sync %0, 256;", "r"(1 + group));
#pragma unroll
			for (int j = 0; j < COLS / 16 && group != wg; j++)
				access<LD_MATRIX>(at[j] + group * TILE_BYTES, r + 4 * j);
		}
	}
	record(spans, start, clock64());
#pragma unroll
	for (int j = 0; j < COLS / 4; j++)
		if (r[j] != threadIdx.x % 128 * 32 + j)
			stuck = 1;
}

__global__ void __launch_bounds__(384, 1) empty_kernel()
{
}

/* ---- host: harness ---------------------------------------------------------------------- */

#define CU(call) check((int)(call), #call, __LINE__)

static void check(int code, const char *call, int line)
{
	if (code == 0)
		return;
	fprintf(stderr, "calibrate.cu:%d: %s: error %d (%s)\n", line, call, code,
		cudaGetErrorString((cudaError_t)code));
	exit(2);
}

constexpr size_t BUFFER_BYTES = 4ull << 30;
constexpr int SMS = 132;			/* the walks below are divided for this many */
constexpr int REPEATS = 4;			/* of a launch of about 1 ms within one timing */

static uint8_t *source, *target;		/* BUFFER_BYTES each, on the device, normal bf16 */
static Span *spans;				/* SMS, on the device */
static long long *samples;			/* 2 * SAMPLES, on the device */
static cudaEvent_t before, after;
static int failures;

__attribute__((format(printf, 3, 4)))
static void emit(double value, const char *unit, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf(" %.6g %s\n", value, unit);
	fflush(stdout);
	failures += std::isnan(value);
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

template <class... P, class... A>
static void launch(void (*kernel)(P...), int blocks, int threads, int smem, int cluster, A... args)
{
	cudaLaunchAttribute attr = {};
	cudaLaunchConfig_t config = {};

	attr.id = cudaLaunchAttributeClusterDimension;
	attr.val.clusterDim = {(unsigned)cluster, 1, 1};
	config.gridDim = blocks;
	config.blockDim = threads;
	config.dynamicSmemBytes = smem;
	config.attrs = &attr;
	config.numAttrs = 1;
	CU(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
	CU(cudaLaunchKernelEx(&config, kernel, P(args)...));
}

/* True if the kernels since the last call ran to their end. */
static bool finished()
{
	const int clear = 0;
	int flag = 0;

	CU(cudaDeviceSynchronize());
	CU(cudaMemcpyFromSymbol(&flag, stuck, sizeof flag));
	CU(cudaMemcpyToSymbol(stuck, &clear, sizeof clear));
	if (flag)
		fprintf(stderr, "calibrate: a barrier did not complete, or data arrived wrong\n");
	return !flag;
}

struct Timing {
	double cycles;				/* of the slowest block */
	double seconds;				/* between events around the launches */
};

template <class F> static Timing timed(F run)
{
	std::vector<Span> host(SMS, Span{~0ull, 0});
	double cycles = 0;
	float ms = 0;

	CU(cudaMemcpy(spans, host.data(), SMS * sizeof(Span), cudaMemcpyHostToDevice));
	CU(cudaEventRecord(before));
	run();
	CU(cudaEventRecord(after));
	if (!finished())
		return {NAN, NAN};
	CU(cudaEventElapsedTime(&ms, before, after));
	CU(cudaMemcpy(host.data(), spans, SMS * sizeof(Span), cudaMemcpyDeviceToHost));
	for (const Span &s : host)
		if (s.last > s.first)
			cycles = std::max(cycles, (double)(s.last - s.first));
	return {cycles, ms * 1e-3};
}

/* After a run to warm up. */
template <class F> static Timing median_timing(F run)
{
	std::vector<double> cycles, seconds;

	timed(run);
	for (int i = 0; i < 5; i++) {
		const Timing t = timed(run);

		if (std::isnan(t.seconds))
			return t;
		cycles.push_back(t.cycles);
		seconds.push_back(t.seconds);
	}
	return {median(cycles), median(seconds)};
}

/* Cycles of one iteration of kernel(iterations, args ..., spans) in one block. */
template <class... P, class... A>
static double per_iter(void (*kernel)(P...), int threads, int smem, A... args)
{
	const int few = 64, many = 576;
	auto cycles = [&](int iters) {
		auto run = [&] { launch(kernel, 1, threads, smem, 1, iters, args..., spans); };
		return median_timing(run).cycles;
	};
	const double base = cycles(few);

	return (cycles(many) - base) / (many - few);
}

/* The median of SAMPLES numbers that a kernel has left from samples[first]. */
static double sampled(int first)
{
	std::vector<long long> host(SAMPLES);
	const size_t bytes = SAMPLES * sizeof host[0];

	if (!finished())
		return NAN;
	CU(cudaMemcpy(host.data(), samples + first, bytes, cudaMemcpyDeviceToHost));
	return median(std::vector<double>(host.begin(), host.end()));
}

/* A row-major bf16 matrix in boxes of box_rows x 64 columns, 128-byte swizzle. */
static CUtensorMap tensor_map(void *base, uint64_t rows, uint64_t cols, uint32_t box_rows)
{
	const cuuint64_t size[2] = {cols, rows}, pitch[1] = {cols * 2};
	const cuuint32_t box[2] = {64, box_rows}, step[2] = {1, 1};
	CUtensorMap map;

	CU(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, base, size, pitch, box,
		step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

/* ---- host: the sections ----------------------------------------------------------------- */

template <int N, MmaForm F> static void mma_rate(const char *form)
{
	for (int wgs = 1; wgs <= 2; wgs++)
		emit(per_iter(mma_loop<N, F, MMA_BATCH, 1>, wgs * 128, RING_SMEM, NORMAL) /
			(MMA_BATCH * wgs), "cycles", "wgmma_%s_n%d_%dwg", form, N, wgs);
}

/* Of a group of COUNT instructions, with its fence, commit and wait. */
template <int N, int COUNT> static void mma_latency()
{
	emit(per_iter(mma_loop<N, SS, COUNT, 0>, 128, RING_SMEM, NORMAL), "cycles",
		"wgmma_bf16_ss_n%d_wait_%d", N, COUNT);
}

static void section_wgmma()
{
	mma_rate<64, SS>("bf16_ss");
	mma_rate<128, SS>("bf16_ss");
	mma_rate<256, SS>("bf16_ss");
	mma_rate<128, RS>("bf16_rs");
	mma_rate<256, RS>("bf16_rs");
	mma_rate<256, E4M3>("e4m3_ss");
	mma_latency<64, 1>(), mma_latency<64, 4>(), mma_latency<64, 8>();
	mma_latency<128, 1>(), mma_latency<128, 4>(), mma_latency<128, 8>();
	mma_latency<256, 1>(), mma_latency<256, 4>(), mma_latency<256, 8>();
}

/* About 1.5 s of launches of about 50 ms; the second half counts. `flops` of one iteration on one
 * SM. */
static void burn(const char *name, void (*kernel)(int, Fill, Span *), int smem, Fill fill,
	double flops)
{
	auto run = [&](int iters) {
		return timed([&] { launch(kernel, SMS, 256, smem, 1, iters, fill, spans); });
	};
	const int launches = 30;
	double cycles = 0, seconds = 0;

	run(1000);
	const int iters = (int)(1000 * 0.05 / run(1000).seconds);
	for (int i = 0; i < launches; i++) {
		const Timing t = run(iters);

		if (i == 0)
			emit(t.cycles / t.seconds / 1e6, "MHz", "%s_clock_at_start", name);
		if (i >= launches / 2) {
			cycles += t.cycles / (launches - launches / 2);
			seconds += t.seconds / (launches - launches / 2);
		}
	}
	emit(cycles / seconds / 1e6, "MHz", "%s_clock", name);
	emit(flops * iters * SMS / seconds / 1e12, "TFLOP/s", "%s_rate", name);
	emit(cycles / iters, "cycles", "%s_iteration", name);
}

static void section_clock()
{
	const double mma_flops = 2.0 * 2 * 64 * 256 * 16 * MMA_BATCH;
	const double mix_flops = 2.0 * 2 * 64 * 128 * 128 * 2;

	burn("burn_normal", mma_loop<256, SS, MMA_BATCH, 1>, RING_SMEM, NORMAL, mma_flops);
	burn("burn_zeros", mma_loop<256, SS, MMA_BATCH, 1>, RING_SMEM, ZEROS, mma_flops);
	burn("burn_mix", mix_loop, MIX_SMEM, NORMAL, mix_flops);
}

template <bool READ, bool WRITE> static void launch_traffic(const uint8_t *src, uint8_t *dst)
{
	launch(traffic<READ, WRITE>, (int)(BUFFER_BYTES / (16 * TRAFFIC_THREADS * TRAFFIC_ILP)),
		TRAFFIC_THREADS, 0, 1, (const uint4 *)src, (uint4 *)dst);
}

template <int COUNT> static void issue_cost()
{
	const CUtensorMap map = tensor_map(source, 4096, 4096, 64);

	launch(load_issue<COUNT>, 1, 32, COUNT * 8192 + ALIGN, 1, map, samples);
	emit(sampled(0) / COUNT, "cycles", "tma_load_issue_%d", COUNT);
}

static void section_tma()
{
	for (int rows = 64; rows <= 256; rows *= 2) {
		const CUtensorMap map = tensor_map(source, 4096, 4096, rows);

		launch_traffic<true, false>(target, nullptr);	/* flushes L2 */
		launch(load_latency, 1, 32, rows * 128 + ALIGN, 1, map, rows, samples);
		emit(sampled(SAMPLES), "cycles", "tma_load_%dkb_latency_l2", rows / 8);
		emit(sampled(0), "cycles", "tma_load_%dkb_latency_hbm", rows / 8);
	}
	issue_cost<1>();
	issue_cost<4>();
	issue_cost<16>();
}

/* `run` moves `bytes` on every SM. */
template <class F> static void emit_rate(const char *name, double bytes, F run)
{
	const Timing t = median_timing([&] {
		for (int i = 0; i < REPEATS; i++)
			run();
	});

	emit(bytes * REPEATS / t.cycles, "B/clk/SM", "%s", name);
	emit(bytes * REPEATS * SMS / t.seconds / 1e12, "TB/s", "%s_total", name);
}

template <Share S> static void load_rate(const char *name, uint64_t rows, uint64_t cols, Walk w)
{
	const CUtensorMap a = tensor_map(source, rows, cols, S == SHARE_A ? 64 : 128);
	const CUtensorMap b = tensor_map(source, rows, cols, S == SHARE_B ? 128 : 256);

	emit_rate(name, (double)STAGE_BYTES * w.iters, [&] {
		launch(load_stream<S>, SMS, 64, RING_SMEM, S == OWN ? 1 : 2, a, b, w, spans);
	});
}

/* Bytes that arrive in shared memory; with a cluster, L2 delivers the shared operand once to two.
 * As in a matrix product of 128 x 256 tiles: 11 blocks of A by 12 of B, or 12 by 11. */
static void section_l2()
{
	const int k = 2048, kb = k / 64, n = 2048, both = 128 + 256;
	const Walk rows_first = {12, 128, 0, 11 * 128, 0, 256, kb, 0, n};
	const Walk cols_first = {12, 0, 128, 12 * 128, 256, 0, kb, 0, n};

	load_rate<OWN>("tma_l2_own", SMS * both, 256, {1, both, 0, 128, both, 0, 4, 0, n});
	load_rate<OWN>("tma_l2_gemm", 11 * 128 + 12 * 256, k, rows_first);
	load_rate<SHARE_A>("tma_l2_gemm_multicast_a", 11 * 128 + 12 * 256, k, rows_first);
	load_rate<SHARE_B>("tma_l2_gemm_multicast_b", 12 * 128 + 11 * 256, k, cols_first);
}

template <bool READ, bool WRITE> static void traffic_rate(const char *name)
{
	const Timing t = median_timing([] {
		for (int i = 0; i < REPEATS; i++)
			launch_traffic<READ, WRITE>(source, target);
	});

	emit((READ + WRITE) * 1.0 * REPEATS * BUFFER_BYTES / t.seconds / 1e12, "TB/s", "%s", name);
}

static void section_hbm()
{
	const int kb = 64, panels = 10, both = 128 + 256, rows = SMS * both;	/* of a panel */
	const Walk walk = {1, both, 0, 128, both, 0, kb, rows, kb * panels};

	traffic_rate<true, false>("hbm_read");
	traffic_rate<false, true>("hbm_write");
	traffic_rate<true, true>("hbm_copy");
	load_rate<OWN>("hbm_read_tma", rows * panels, kb * 64, walk);
}

template <Op O> static void op_rate(const char *name)
{
	for (int warps = 4; warps <= 16; warps *= 2) {
		const double cycles = per_iter(op_loop<O, 8>, warps * 32, 0, 0.999f, 0.001f);

		emit(OPS_PER_ITER * 32.0 * warps / cycles, "op/clk/SM", "%s_%dw", name, warps);
	}
}

template <Op O> static void op_latency(const char *name)
{
	emit(per_iter(op_loop<O, 1>, 32, 0, 0.999f, 0.001f) / OPS_PER_ITER, "cycles", "%s_latency",
		name);
}

static void section_cores()
{
#define OP_RATE(op, name, text) op_rate<op>(name);
	OPS(OP_RATE)
	op_latency<FFMA>("ffma");
	op_latency<EX2>("ex2");
	op_latency<SHFL>("shfl");
}

static void section_sync()
{
	emit(per_iter(sync_loop<ARRIVE>, 32, 0), "cycles", "mbarrier_arrive");
	emit(per_iter(sync_loop<TRY_WAIT>, 32, 0), "cycles", "mbarrier_try_wait");
	emit(per_iter(sync_loop<HANDOFF_4>, 256, 0) / 2, "cycles", "mbarrier_handoff_4");
	emit(per_iter(sync_loop<HANDOFF_128>, 256, 0) / 2, "cycles", "mbarrier_handoff_128");
	emit(per_iter(sync_loop<HANDOFF_NAMED>, 256, 0) / 2, "cycles", "named_barrier_handoff");
	emit(per_iter(sync_loop<BAR_128>, 128, 0), "cycles", "bar_sync_128");
	emit(per_iter(sync_loop<FENCE>, 128, 0), "cycles", "fence_proxy_async");
	emit(per_iter(sync_loop<STORE_FENCE>, 128, 0), "cycles", "store_fence_proxy_async");
}

template <Access A> static void access_rate(const char *name)
{
	for (int warps = 4; warps <= 16; warps *= 2) {
		const double cycles = per_iter(access_loop<A>, warps * 32, ACCESS_SMEM);

		emit(512.0 * ACCESSES * warps / cycles, "B/clk/SM", "%s_%dw", name, warps);
	}
}

static void section_shared()
{
	access_rate<ST_V4>("st_shared_v4");
	access_rate<LD_V4>("ld_shared_v4");
	access_rate<ST_MATRIX>("stmatrix_x4");
	access_rate<LD_MATRIX>("ldmatrix_x4");
	emit(per_iter(handover<64>, 256, HANDOVER_SMEM) / 2, "cycles", "handover_64x64");
	emit(per_iter(handover<128>, 256, HANDOVER_SMEM) / 2, "cycles", "handover_64x128");
}

static void store_rate(const char *name, uint64_t rows, uint64_t cols, Walk w)
{
	const CUtensorMap map = tensor_map(target, rows, cols, 128);

	emit_rate(name, 16384.0 * w.iters, [&] {
		launch(store_stream, SMS, 512, 4 * 16384 + ALIGN, 1, map, w, spans);
	});
}

static void section_store()
{
	const int kb = 64, panels = 30, rows = SMS * 128;	/* of a panel */
	const Walk in_l2 = {1, 128, 0, 0, 0, 0, 4, 0, 4096};
	const Walk walk = {1, 128, 0, 0, 0, 0, kb, rows, kb * panels};
	const CUtensorMap map = tensor_map(target, 4096, 64, 64);

	store_rate("tma_store_l2", rows, 256, in_l2);
	store_rate("tma_store_hbm", rows * panels, kb * 64, walk);
	launch(store_latency, 1, 32, 8192 + ALIGN, 1, map, samples);
	emit(sampled(0), "cycles", "tma_store_8kb_latency_read");
	emit(sampled(SAMPLES), "cycles", "tma_store_8kb_latency");
}

static void section_launch()
{
	const int count = 1000, smem = 200 << 10;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	auto burst = [&](cudaStream_t s) {
		for (int i = 0; i < count; i++)
			empty_kernel<<<SMS, 384, smem, s>>>();
		CU(cudaGetLastError());
	};

	CU(cudaFuncSetAttribute(empty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
	const double direct = median_timing([&] { burst(0); }).seconds;
	CU(cudaStreamCreate(&stream));
	CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	burst(stream);
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	const double replayed = median_timing([&] { CU(cudaGraphLaunch(exec, 0)); }).seconds;
	emit(direct / count * 1e6, "us", "launch_stream");
	emit(replayed / count * 1e6, "us", "launch_graph");
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	CU(cudaStreamDestroy(stream));
}

static void setup()
{
	cudaDeviceProp prop;
	int driver = 0;

	CU(cudaGetDeviceProperties(&prop, 0));
	if (prop.major != 9 || prop.multiProcessorCount != SMS) {
		fprintf(stderr, "calibrate: %s is %d.%d with %d SMs, not 9.0 with %d\n",
			prop.name, prop.major, prop.minor, prop.multiProcessorCount, SMS);
		exit(2);
	}
	CU(cudaDriverGetVersion(&driver));
	emit(driver, "version", "cuda_driver");
	emit(prop.l2CacheSize / 1048576.0, "MiB", "l2_size");
	CU(cudaEventCreate(&before));
	CU(cudaEventCreate(&after));
	CU(cudaMalloc(&spans, SMS * sizeof *spans));
	CU(cudaMalloc(&samples, 2 * SAMPLES * sizeof *samples));
	for (uint8_t **buffer : {&source, &target}) {
		CU(cudaMalloc(buffer, BUFFER_BYTES));
		launch(fill_global, SMS * 8, 256, 0, 1, (uint32_t *)*buffer, BUFFER_BYTES / 4);
	}
	CU(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	const std::pair<std::string, void (*)()> sections[] = {
		{"wgmma", section_wgmma}, {"clock", section_clock}, {"tma", section_tma},
		{"l2", section_l2}, {"hbm", section_hbm}, {"cores", section_cores},
		{"sync", section_sync}, {"shared", section_shared}, {"store", section_store},
		{"launch", section_launch},
	};
	const std::set<std::string> wanted(argv + 1, argv + argc);
	size_t known = 0;

	for (const auto &s : sections)
		known += wanted.count(s.first);
	if (known < wanted.size()) {
		fprintf(stderr, "usage: calibrate [SECTION ...]\nsections:");
		for (const auto &s : sections)
			fprintf(stderr, " %s", s.first.c_str());
		fprintf(stderr, "\n");
		return 2;
	}
	setup();
	for (const auto &s : sections)
		if (wanted.empty() || wanted.count(s.first))
			s.second();
	return failures > 0;
}
