/* millrace_host.h - what a kernel's text stands on, on a CPU.
 *
 * The names are those of src/emit/cuda_prelude.c. Every thread of a block is a coroutine
 * (rt_machine.h); flags, copies and matrix instructions behave as on the GPU, in any
 * order and at any time that the GPU's rules allow, as a seed decides; what these rules
 * forbid is reported and ends the run. A text ends with
 *
 *	HOST_ENTRY(name, threads) { name(args[0], args[1], ...); }
 */
#ifndef MILLRACE_HOST_H
#define MILLRACE_HOST_H

#include <math.h>

#include "host/rt_async.h"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef const struct host_map *TensorMap;

#define DEV static inline
#define KERNEL(name, threads) static void name
#define MAP const TensorMap
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define LOOP for
#define THREAD (HOST_SELF->thread)
#define BLOCK (host.block)
#define BLOCK_SYNC() host_block_sync()
#define WARP_SYNC() ((void)host_meet(HOST_WARP_SYNC, 0, 0))
#define UNIFORM(x) host_uniform(x)
#define SET_REGISTERS(how, n) host_set_registers(n)
/* Memory that others may change is read again after this. */
#define PIN_F(x, n) __asm__ volatile("" : : "r"(x) : "memory")
#define PIN_U(x, n) PIN_F(x, n)
#define GROUPS_WAIT(n) host_groups_wait(n)
#define INFINITE INFINITY
#define AT(task, iteration) host_at(task, iteration)

/* ---- flags, barriers, warps --------------------------------------------------------- */

static inline u32 shared_base(void)
{
	return HOST_FIRST;
}

/* The name and the place in its ring are for reports. */
static inline void flag_init(u32 a, u32 arrivals, const char *name, int index)
{
	host_flag_init(a, arrivals);
	host_flag_at(a)->name = name;
	host_flag_at(a)->index = index;
}

static inline void flags_ready(void)
{
}

static inline void flag_expect(u32 a, u32 bytes)
{
	host_flag_arrive(a, bytes);
}

static inline void flag_arrive(u32 a)
{
	host_flag_arrive(a, 0);
}

static inline void flag_wait(u32 a, u32 phase)
{
	host_flag_wait(a, phase);
}

static inline void turn_wait(int id, int threads)
{
	host_barrier_wait(id, threads);
}

static inline void turn_pass(int id, int threads)
{
	host_barrier_pass(id, threads);
}

static inline void lane_sync(int id, int threads)
{
	host_barrier_wait(id, threads);
}

static inline int elect(void)
{
	return host_elect();
}

static inline float shuffle_xor(float x, int mask)
{
	return host_shuffle_xor(x, mask);
}

/* A block's warpgroups have 64 Ki registers between them. */
static inline void host_set_registers(int n)
{
	int all = 0;

	if (n < 24 || n > 256 || n % 8)
		host_fail("setmaxnreg takes multiples of 8 from 24 to 256, not %d", n);
	host.self->registers = n;
	for (int i = 0; i < host.threads; i += HOST_GROUP)
		all += HOST_GROUP * host.thread[i].registers;
	if (all > 65536)
		host_fail("the block's warpgroups ask for %d registers; there are 65536", all);
}

/* ---- asynchronous work ---------------------------------------------------------------- */

static inline void fence_async(void)
{
	host_fence();
}

static inline void groups_fence(void)
{
	host_meet(HOST_GROUPS_FENCE, 0, 0);
	HOST_SELF->fenced = true;
}

static inline void groups_commit(void)
{
	host_groups_commit();
}

static inline void tma_load_1d(u32 dst, const TensorMap *map, u32 flag, int c0)
{
	host_copy_start(dst, *map, flag, 1, (int[]){ c0 });
}

static inline void tma_load_2d(u32 dst, const TensorMap *map, u32 flag, int c0, int c1)
{
	host_copy_start(dst, *map, flag, 2, (int[]){ c0, c1 });
}

static inline void tma_load_3d(u32 dst, const TensorMap *map, u32 flag, int c0, int c1, int c2)
{
	host_copy_start(dst, *map, flag, 3, (int[]){ c0, c1, c2 });
}

static inline void tma_load_4d(u32 dst, const TensorMap *map, u32 flag, int c0, int c1, int c2,
	int c3)
{
	host_copy_start(dst, *map, flag, 4, (int[]){ c0, c1, c2, c3 });
}

static inline void tma_load_5d(u32 dst, const TensorMap *map, u32 flag, int c0, int c1, int c2,
	int c3, int c4)
{
	host_copy_start(dst, *map, flag, 5, (int[]){ c0, c1, c2, c3, c4 });
}

/* ---- shared memory --------------------------------------------------------------------- */

static inline u16 shared_u16(u32 a)
{
	u16 x;

	host_get(a, &x, sizeof(x));
	return x;
}

static inline float shared_f32(u32 a)
{
	float x;

	host_get(a, &x, sizeof(x));
	return x;
}

static inline int shared_i32(u32 a)
{
	int x;

	host_get(a, &x, sizeof(x));
	return x;
}

static inline void shared_put_u16(u32 a, u16 x)
{
	host_put(a, &x, sizeof(x));
}

static inline void shared_put_u32(u32 a, u32 x)
{
	host_put(a, &x, sizeof(x));
}

static inline void shared_put_f32(u32 a, float x)
{
	host_put(a, &x, sizeof(x));
}

/* ---- arithmetic -------------------------------------------------------------------------- */

static inline int max_of(int a, int b)
{
	return a > b ? a : b;
}

static inline int min_of(int a, int b)
{
	return a < b ? a : b;
}

static inline float op_exp2(float x)
{
	return exp2f(x);
}

static inline float op_log2(float x)
{
	return log2f(x);
}

static inline float op_tanh(float x)
{
	return tanhf(x);
}

static inline float op_div(float x, float y)
{
	return x / y;
}

static inline float op_rsqrt(float x)
{
	return 1.f / sqrtf(x);
}

/* To nearest, ties to even. */
static inline u32 host_to_bf16(float x)
{
	u32 bits = host_bits(x);

	if (x != x)
		return 0x7fff;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static inline u32 host_to_f16(float x)
{
	u32 sign = host_bits(x) >> 16 & 0x8000, e;
	float y = fabsf(x);

	if (x != x)
		return 0x7fff;
	if (y >= 65520.f)
		return sign | 0x7c00;
	if (y < 0x1p-14f)		/* a step of 2^-24: what nearbyint rounds to */
		return sign | (u32)nearbyintf(y * 0x1p24f);
	e = host_bits(y);
	return sign | (((e + 0xfff + (e >> 13 & 1)) >> 13) - (112 << 10));
}

static inline u32 pack_bf16(float lo, float hi)
{
	return host_to_bf16(hi) << 16 | host_to_bf16(lo);
}

static inline u32 pack_f16(float lo, float hi)
{
	return host_to_f16(hi) << 16 | host_to_f16(lo);
}

static inline float from_bf16(u16 x)
{
	return host_from_half(HOST_bf16, x);
}

static inline float from_f16(u16 x)
{
	return host_from_half(HOST_f16, x);
}

static inline u16 half_of(u32 x, int e)
{
	return (u16)(e ? x >> 16 : x);
}

/* ---- deadlocks --------------------------------------------------------------------------- */

static inline void host_say_flag(const struct host_thread *t)
{
	const struct host_flag *f = host_flag_at(t->a);

	host_say("phase %u of %s (now in phase %u: %d of %d arrivals to come, %lld bytes)", t->b,
		host_flag_place(f).text, f->phase, f->pending, f->arrivals, (long long)f->bytes);
}

static inline void host_say_wait(const struct host_thread *t)
{
	static const char *const together[] = { "shuffle_xor", "UNIFORM", "WARP_SYNC", "elect",
		"groups_fence", "GROUPS_WAIT" };		/* ORDER host_together */

	switch (t->wait) {
	case HOST_WAIT_FLAG:
		host_say_flag(t);
		break;
	case HOST_WAIT_BARRIER:
		host_say("barrier %u, where %d of %u threads are", t->a,
			host_sync.barrier[t->a].arrived, t->b);
		break;
	case HOST_WAIT_BLOCK:
		host_say("the other threads of the block");
		break;
	case HOST_WAIT_WARP:
		host_say("the other threads of the warp in %s", together[t->a]);
		break;
	case HOST_WAIT_GROUPS:
		host_say("group %u of matrix products", t->a);
		break;
	}
}

static inline bool host_waits_alike(const struct host_thread *a, const struct host_thread *b)
{
	return a->state == b->state && a->on == b->on && a->a == b->a && a->b == b->b &&
		a->task == b->task && a->iteration == b->iteration;
}

/* Everybody waits and nothing is under way. */
static inline void host_deadlock(void)
{
	host_say("block %d: deadlock", host.block);
	for (int i = 0, n; i < host.threads; i += n) {
		const struct host_thread *t = &host.thread[i];

		for (n = 1; i + n < host.threads && host_waits_alike(t, t + n); n++)
			;
		if (t->state == HOST_DONE)
			continue;
		host_say("\n  threads %d to %d at %s wait for ", i, i + n - 1,
			host_place(t->task, t->iteration).text);
		host_say_wait(t);
	}
	host_stop();
}

/* ---- running ----------------------------------------------------------------------------- */

static inline void host_block_start(int block)
{
	host.block = block;
	host.nready = host.ndone = 0;
	host_memory_start();
	host_sync_start();
	host_async_start();
	host_change();
	for (int i = 0; i < host.threads; i++) {
		struct host_thread *t = &host.thread[i];

		t->thread = i;
		t->task = NULL;
		t->fences = 0;
		t->deposits = t->commits = t->registers = 0;
		t->fenced = false;
		host_thread_start(t);
		host_make_ready(t);
	}
}

static inline void host_run_block(int block)
{
	host_block_start(block);
	while (host.ndone < host.threads) {
		if (!host_random(HOST_CHANGE_EVERY))
			host_change();
		if (host.nready && host_random(256) >= host.eager)
			host_step_thread();
		else if (!host_async_step()) {
			if (!host.nready)
				host_deadlock();
			host_step_thread();
		}
	}
	host_async_end();
}

static inline void host_play(const struct host_launch *launch, void (*kernel)(void *const *args),
	int threads)
{
	host.launch = launch;
	host.kernel = kernel;
	host.threads = launch->threads;
	host.random = launch->seed;
	host_catch_faults();
	if (threads != launch->threads || threads < 1 || threads > HOST_THREADS_MAX ||
	    threads % HOST_WARP || launch->shared_bytes < 1024 || launch->shared_bytes > 228 << 10)
		host_fail("a launch with %d threads and %lld bytes of shared memory", launch->threads,
			(long long)launch->shared_bytes);
	host.elected = (int)host_random(HOST_WARP);
	host_make_stacks();
	host_memory_open();
	host_async_open();
	for (int i = 0; i < launch->blocks; i++)
		host_run_block(i);
}

#define HOST_ENTRY(name, threads) \
	static void host_call_##name(void *const *args); \
	__attribute__((visibility("default"))) void millrace_host_run(const struct host_launch *l) \
	{ host_play(l, host_call_##name, threads); } \
	static void host_call_##name(void *const *args)

#endif
