/* adds.cu - measures how fast the SMs of a device add in memory.
 *
 * Build:  nvcc -O3 -gencode=arch=compute_90a,code=sm_90a -o build/adds tests/perf/adds.cu -lcuda
 * Run:    build/adds        a few seconds; needs an otherwise idle card and 1 GB of its memory
 *
 * One line for each case: how it adds; bytes of a region, how many SMs share one, how many SMs are at work; whether those that
 * share it go through it in the same order, or each from another element on; bytes that all add in a cycle (clock64, the slowest
 * SM), and in a second. The output is the source of the numbers for additions in hw/h100.lua.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(x) do { \
	int code = (int)(x); \
	if (code) { printf("%s: error %d\n", #x, code); exit(2); } \
} while (0)

enum way { BULK, ROWS, SINGLE, FOURS, APART, FOURS_APART };
static const char *const way_names[] = { "contiguous boxes", "boxes of 16 rows of 64 B", "threads, one float each",
	"threads, four each", "threads, one of eight", "threads, four of eight" };

struct job {
	char *base;
	long region, bytes;		/* that `share` SMs share; that each SM adds */
	int box, share, spread;
	long long *cycles;
};

__device__ static long first(const job &j, long step)
{
	long n = j.region / step, i = blockIdx.x % j.share;

	return j.spread && n ? i * n / j.share * step : 0;
}

__device__ static char *region_of(const job &j)
{
	return j.base + blockIdx.x / j.share * j.region;
}

template<int WAY> __global__ void add_boxes(const __grid_constant__ CUtensorMap map, job j)
{
	extern __shared__ __align__(1024) char shared[];

	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		((float *)shared)[i] = 1;
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x)
		return;
	uint32_t from = (uint32_t)__cvta_generic_to_shared(shared);
	long at = first(j, j.box), row = (region_of(j) - j.base) / 512;
	long long t = clock64();
	for (long done = 0; done < j.bytes; done += j.box) {
		int x = (int)(at / 1024 % 8 * 16), y = (int)(row + at / 8192 * 16);	/* of rows of 128 floats */

		if (WAY == BULK)
			asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
				:: "l"(region_of(j) + at), "r"(from), "r"(j.box) : "memory");
		else
			asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
				:: "l"(&map), "r"(x), "r"(y), "r"(from) : "memory");
		asm volatile("cp.async.bulk.commit_group;" ::: "memory");
		asm volatile("cp.async.bulk.wait_group.read 8;" ::: "memory");
		at = at + j.box < j.region ? at + j.box : 0;
	}
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
	j.cycles[blockIdx.x] = clock64() - t;
}

__device__ static void add_one(char *to)
{
	asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to), "f"(1.f) : "memory");
}

__device__ static void add_four(char *to)
{
	asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" :: "l"(to), "f"(1.f) : "memory");
}

template<int WAY> __global__ void add_by_threads(job j)
{
	int own = WAY == SINGLE ? 4 : WAY == FOURS ? 16 : 32;	/* bytes of a thread */
	long round = (long)blockDim.x * own, step = min(round, j.region), at = first(j, step);
	char *to = region_of(j) + (long)threadIdx.x * own % j.region;

	__syncthreads();
	long long t = clock64();
	for (long done = 0; done < j.bytes; done += round) {
		if (WAY == SINGLE || WAY == APART)
			for (int e = 0; e < own; e += 4)
				add_one(to + at + e);
		else
			for (int e = 0; e < own; e += 16)
				add_four(to + at + e);
		at = at + step < j.region ? at + step : 0;
	}
	__threadfence();
	__syncthreads();
	if (!threadIdx.x)
		j.cycles[blockIdx.x] = clock64() - t;
}

static const long KB = 1 << 10, MB = 1 << 20, ALL = 512 * MB;
static CUtensorMap map;
static struct job usual;
static int sms;

static void run(enum way way, int at_work, const job &j)
{
	switch (way) {
	case BULK: add_boxes<BULK><<<at_work, 128, 16384>>>(map, j); break;
	case ROWS: add_boxes<ROWS><<<at_work, 128, 16384>>>(map, j); break;
	case SINGLE: add_by_threads<SINGLE><<<at_work, 512>>>(j); break;
	case FOURS: add_by_threads<FOURS><<<at_work, 512>>>(j); break;
	case APART: add_by_threads<APART><<<at_work, 512>>>(j); break;
	case FOURS_APART: add_by_threads<FOURS_APART><<<at_work, 512>>>(j); break;
	}
	CHECK(cudaGetLastError());
}

static void measure(enum way way, long region, int box, int share, int at_work, int spread)
{
	job j = usual;
	std::vector<long long> cycles(at_work);
	cudaEvent_t from, to;
	double best = 1e30, seconds = 1e30;

	j.region = region;
	j.bytes = std::max(MB, std::min(region, 4 * MB));
	j.box = box;
	j.share = share;
	j.spread = spread;
	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	for (int i = 0; i < 4; i++) {
		float ms;

		CHECK(cudaEventRecord(from));
		run(way, at_work, j);
		CHECK(cudaEventRecord(to));
		CHECK(cudaEventSynchronize(to));
		CHECK(cudaEventElapsedTime(&ms, from, to));
		CHECK(cudaMemcpy(cycles.data(), j.cycles, at_work * sizeof(long long), cudaMemcpyDeviceToHost));
		if (i) {
			best = std::min(best, (double)*std::max_element(cycles.begin(), cycles.end()));
			seconds = std::min(seconds, ms / 1e3);
		}
	}
	printf("%-26s region %6ld KB, box %5d, shared by %3d of %3d, %-8s %8.1f B/cycle %8.3f TB/s\n", way_names[way], region / KB,
		box, share, at_work, spread ? "spread" : "in order", (double)j.bytes * at_work / best, (double)j.bytes * at_work / seconds / 1e12);
}

int main()
{
	const cuuint64_t size[2] = { 128, (cuuint64_t)ALL / 512 }, pitch[1] = { 512 };
	const cuuint32_t rows[2] = { 16, 16 }, step[2] = { 1, 1 };

	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaMalloc(&usual.base, ALL));
	CHECK(cudaMemset(usual.base, 0, ALL));
	CHECK(cudaMalloc(&usual.cycles, sms * sizeof(long long)));
	CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, usual.base, size, pitch, rows, step,
		CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	for (long region = KB; region <= 64 * MB; region *= region < 64 * KB ? 2 : 4)
		for (int spread = 0; spread < 2; spread++)
			measure(BULK, region, (int)std::min(region, 8 * KB), sms, sms, spread);
	for (int box = 512; box <= 16 * KB; box *= 2)
		measure(BULK, 2 * MB, box, sms, sms, 0);
	measure(ROWS, 2 * MB, KB, sms, sms, 0);
	for (int way = SINGLE; way <= FOURS_APART; way++)
		for (long region : { KB, 8 * KB, 64 * KB, 16 * MB })
			measure((enum way)way, region, 0, sms, sms, 0);
	for (long region : { 8 * KB, 256 * KB, MB, 2 * MB })
		measure(BULK, region, 8 * KB, 1, sms, 0);
	for (int at_work = 1; at_work <= sms; at_work *= 2) {
		measure(BULK, MB, KB, at_work, at_work, 0);
		measure(BULK, MB, 8 * KB, at_work, at_work, 0);
	}
	return 0;
}
