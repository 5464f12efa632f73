/* millrace_host.h - the functions that a kernel's text calls, on a CPU.
 *
 * The names are those of src/emit/cuda_prelude.c. Every thread of a block is a coroutine (rt_machine.h). Flags, copies
 * and matrix instructions happen in a random order, which a seed decides, among all orders that the GPU's rules
 * allow; a violation of these rules is reported and ends the run. The runtime is part of the program (rt.c), and the
 * text calls it through a table, so only the text has to be compiled. The text ends with
 *
 *	HOST_ENTRY(name, threads) { name(args[0], args[1], ...); }
 */
#ifndef MILLRACE_HOST_H
#define MILLRACE_HOST_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "host/rt_abi.h"
#include "host/rt_number.h"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef unsigned char u8;
typedef const struct host_map *TensorMap;

static const struct host_runtime *host_rt;	/* set by the entry */
static int host_warp;			/* threads of a warp; likewise */

#define DEV static inline
#define KERNEL(name, threads) static void name
#define CLUSTER_KERNEL(name, threads, blocks) static void name
#define MAP const TensorMap
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define LOOP for
#define THREAD (host_rt->thread())
#define BLOCK (host_rt->block())
#define BLOCK_SYNC() host_rt->block_sync()
#define CLUSTER_SYNC() host_rt->cluster_sync()
#define NEXT_PHASE_MAY_BEGIN() ((void)0)
#define LAST_PHASE_WAIT() ((void)0)	/* phases run one after the other */
#define WARP_SYNC() host_rt->warp_sync()
#define ANY_OF_WARP(x) (x)		/* threads are run one by one, so each may say for itself */
#define UNIFORM(x) host_rt->uniform(x)
#define SET_REGISTERS(how, n) host_rt->set_registers(n)
/* The compiler must read memory again after this. */
#define PIN_F(x, n) __asm__ volatile("" : : "r"(x) : "memory")
#define PIN_U(x, n) PIN_F(x, n)
/* What a kernel must not read any more is made wrong here. */
#define FRESH_F(x, n) do { for (int i_ = 0; i_ < (n); i_++) (x)[i_] = NAN; PIN_F(x, n); } while (0)
#define FRESH_U(x, n) do { for (int i_ = 0; i_ < (n); i_++) (x)[i_] = 0xffc1ffc1; PIN_F(x, n); } while (0)
#define GROUPS_WAIT(n) host_rt->groups_wait(n)
#define INFINITE INFINITY
#define AT(task, iteration) host_rt->at(task, iteration)
#define PRIORITY(n)
#define opaque(x) (x)
#define recomputed(x, n) (x)

/* ---- flags, barriers, warps --------------------------------------------------------- */

#define shared_base() host_rt->shared_base()
/* The name, and the flag's index in its ring, are for reports. */
#define flag_init(a, arrivals, name, index) host_rt->flag_init(a, arrivals, name, index)
#define flags_ready() ((void)0)
#define flag_expect(a, bytes) host_rt->flag_arrive(a, bytes)
#define flag_arrive_thread(a) host_rt->flag_arrive(a, 0)
/* x in the thread that elect() elects, -1 in others. */
#define if_elected(x) (elect() ? (x) : -1)
/* How many tiles all blocks have asked for before this call. */
#define tile_ask(counter, last) host_rt->ask(counter, last)
/* Arrive at the flag with the same address in another block of the cluster. */
#define flag_arrive_at(a, block) host_rt->flag_arrive_at(a, block)
#define flag_tell_at(a, block) flag_arrive_at(a, block)
#define flag_wait_peers(a, phase) flag_wait(a, phase)
#define flag_wait(a, phase) host_rt->flag_wait(a, phase)
#define lane_sync(id, threads) host_rt->barrier_wait(id, threads)
#define elect() host_rt->elect()
#define shuffle_from(x, lane) host_rt->shuffle(x, lane)

/* One thread of the warp arrives. */
static inline void flag_arrive_warp(u32 a)
{
	if (elect())
		host_rt->flag_arrive(a, 0);
}

static inline float shuffle_xor(float x, int mask) { return shuffle_from(x, THREAD ^ mask); }
static inline int shuffle_from_i(int x, int lane) { return (int)host_bits(shuffle_from(host_float((u32)x), lane)); }
static inline int shuffle_xor_i(int x, int mask) { return shuffle_from_i(x, THREAD ^ mask); }

/* Stamps of a traced kernel: there is no clock, so each is the number of stamps so far. */
static u32 host_stamps;

static inline void stamp(int here, u32 at)
{
	u32 now;

	if (!here || THREAD % host_warp)	/* one stamp for the warp */
		return;
	now = ++host_stamps;
	host_rt->put(at, &now, sizeof(now));
}

static inline void stamps_out(u32 *to, u32 from, int n, int lane)
{
	WARP_SYNC();
	for (int i = lane; i < n; i += host_warp)
		host_rt->get(from + 4 * (u32)i, &to[i], sizeof(*to));
	WARP_SYNC();
}

/* Not implemented: a copy completes in no time. */
#define stamp_watch(to, most, flag, depth, ended) ((void)0)

static inline void stamp_block(u32 *at)
{
	at[0] = (u32)BLOCK;
	at[1] = host_stamps;
	at[2] = at[3] = 0;
}

static inline void stamp_end(u32 *at)
{
	at[0] = ++host_stamps;
	at[1] = at[2] = 0;
}

/* Word i of thread q of four becomes word q of thread i. */
static inline void quad_transpose(u32 *y, int q)
{
	for (int bit = 1; bit <= 2; bit++)
		for (int p = 0; p < 2; p++) {
			u32 *own = &y[p * (3 - bit) + (q & bit ? 0 : bit)];

			*own = (u32)shuffle_xor_i((int)*own, bit);
		}
}

/* Of a matrix of 8 x 8 elements of 16 bits, of which thread t has row t / 4, columns 2 (t mod 4) and the next: then column
 * t / 4, rows 2 (t mod 4) and the next. */
static inline u32 matrix_transpose(u32 x)
{
	int thread = THREAD % host_warp, column = thread / 4, from = THREAD - thread + thread % 4 * 8 + column / 2;
	u32 y[2];

	for (int i = 0; i < 2; i++)
		y[i] = (u32)shuffle_from_i((int)x, from + 4 * i) >> 16 * (column % 2) & 0xffff;
	return y[1] << 16 | y[0];
}

static inline void swap_halves(u32 *x, int odd)
{
	for (int i = 0; i < 4; i++) {
		u32 *own = &x[i + (odd ? 0 : 4)];

		*own = (u32)shuffle_xor_i((int)*own, 1);
	}
}

/* ---- asynchronous work ---------------------------------------------------------------- */

#define fence_async() host_rt->fence()
/* The address without the rank of the block. */
#define in_block(a) ((u32)(a) & HOST_IN_BLOCK)
#define groups_fence() host_rt->groups_fence()
#define groups_commit() host_rt->groups_commit()
#define stores_commit() host_rt->stores_commit()
#define STORES_READ(n) host_rt->stores_read(n)
/* The last two arguments are the types of the operands. */
#define host_mma_ss(d, a, b, add, columns, ta, tb, ...) host_rt->product(d, NULL, a, b, add, columns, ta, tb, __VA_ARGS__)
#define host_mma_rs(d, a, b, add, columns, ta, tb, ...) host_rt->product(d, a, 0, b, add, columns, ta, tb, __VA_ARGS__)
#define host_mma_sparse(d, a, b, pairs, add, ...) host_rt->sparse_product(d, a, b, pairs, add, __VA_ARGS__)
#define host_mma_warp(d, a, b, add, ...) host_rt->warp_product(d, a, b, add, __VA_ARGS__)
#define host_mfma(d, a, b, add, n, ...) host_rt->mfma(d, a, b, add, n, __VA_ARGS__)

static inline u64 descriptor(u64 bits, u32 from, u32 by)
{
	return (bits | from >> 4) + (by >> 4);
}

/* The coordinates of a box, innermost first. */
#define HOST_BOX(...) (int[]){ __VA_ARGS__ }
#define tma_load_1d(to, map, flag, ...) host_rt->copy(to, *(map), flag, 0, 1, HOST_BOX(__VA_ARGS__))
#define tma_load_2d(to, map, flag, ...) host_rt->copy(to, *(map), flag, 0, 2, HOST_BOX(__VA_ARGS__))
#define tma_load_3d(to, map, flag, ...) host_rt->copy(to, *(map), flag, 0, 3, HOST_BOX(__VA_ARGS__))
#define tma_load_4d(to, map, flag, ...) host_rt->copy(to, *(map), flag, 0, 4, HOST_BOX(__VA_ARGS__))
#define tma_load_5d(to, map, flag, ...) host_rt->copy(to, *(map), flag, 0, 5, HOST_BOX(__VA_ARGS__))

/* To the same address in each of these blocks of the cluster (bits), with the flag of each. */
#define HOST_MULTICAST(to, map, flag, blocks, rank, ...) \
	host_rt->copy(to, *(map), flag, blocks, rank, HOST_BOX(__VA_ARGS__))
#define tma_load_all_1d(to, map, flag, blocks, ...) HOST_MULTICAST(to, map, flag, blocks, 1, __VA_ARGS__)
#define tma_load_all_2d(to, map, flag, blocks, ...) HOST_MULTICAST(to, map, flag, blocks, 2, __VA_ARGS__)
#define tma_load_all_3d(to, map, flag, blocks, ...) HOST_MULTICAST(to, map, flag, blocks, 3, __VA_ARGS__)
#define tma_load_all_4d(to, map, flag, blocks, ...) HOST_MULTICAST(to, map, flag, blocks, 4, __VA_ARGS__)
#define tma_load_all_5d(to, map, flag, blocks, ...) HOST_MULTICAST(to, map, flag, blocks, 5, __VA_ARGS__)

#define tma_store_1d(map, from, ...) host_rt->store(*(map), from, 1, HOST_BOX(__VA_ARGS__))
#define tma_store_2d(map, from, ...) host_rt->store(*(map), from, 2, HOST_BOX(__VA_ARGS__))
#define tma_store_3d(map, from, ...) host_rt->store(*(map), from, 3, HOST_BOX(__VA_ARGS__))
#define tma_store_4d(map, from, ...) host_rt->store(*(map), from, 4, HOST_BOX(__VA_ARGS__))
#define tma_store_5d(map, from, ...) host_rt->store(*(map), from, 5, HOST_BOX(__VA_ARGS__))
#define tma_add_1d(map, from, ...) host_rt->add(*(map), from, 1, HOST_BOX(__VA_ARGS__))
#define tma_add_2d(map, from, ...) host_rt->add(*(map), from, 2, HOST_BOX(__VA_ARGS__))
#define tma_add_3d(map, from, ...) host_rt->add(*(map), from, 3, HOST_BOX(__VA_ARGS__))
#define tma_add_4d(map, from, ...) host_rt->add(*(map), from, 4, HOST_BOX(__VA_ARGS__))
#define tma_add_5d(map, from, ...) host_rt->add(*(map), from, 5, HOST_BOX(__VA_ARGS__))
#define add_to(to, x) ((void)(*(to) += (x)))
#define add_to_2(to, y) add_words(to, y, 2)
#define add_to_4(to, y) add_words(to, y, 4)
static inline void add_words(float *to, const u32 *y, int n)
{
	for (int i = 0; i < n; i++) {
		float x;

		memcpy(&x, y + i, sizeof(x));
		to[i] += x;
	}
}

/* Without an L2 there is no eviction hint. */
#define tma_load_once_1d tma_load_1d
#define tma_load_once_2d tma_load_2d
#define tma_load_once_3d tma_load_3d
#define tma_load_once_4d tma_load_4d
#define tma_load_once_5d tma_load_5d

/* ---- shared memory --------------------------------------------------------------------- */

#define HOST_GET(type, a) type x; host_rt->get(a, &x, sizeof(x)); return x
static inline u8 shared_u8(u32 a) { HOST_GET(u8, a); }
static inline u16 shared_u16(u32 a) { HOST_GET(u16, a); }
static inline u32 shared_u32(u32 a) { HOST_GET(u32, a); }
static inline float shared_f32(u32 a) { HOST_GET(float, a); }
/* Four matrices of 8 x 8 elements of 16 bits, whose rows begin at the addresses of the warp's threads. */
#define shared_matrices(x, a) host_rt->matrices(x, a, 0)
#define shared_matrices_across(x, a) host_rt->matrices(x, a, 1)
static inline void shared_put_u8(u32 a, u8 x) { host_rt->put(a, &x, sizeof(x)); }
static inline void shared_put_u16(u32 a, u16 x) { host_rt->put(a, &x, sizeof(x)); }
static inline void shared_put_u32(u32 a, u32 x) { host_rt->put(a, &x, sizeof(x)); }
static inline void shared_put_f32(u32 a, float x) { host_rt->put(a, &x, sizeof(x)); }

/* Copy to shared memory; zeros unless `inside`. It is done at once: no text reads the memory before
 * copies_wait or the flag of copies_arrive. */
static inline void host_copy(u32 to, const void *from, u32 n, bool inside)
{
	static const u32 zeros[4];

	host_rt->put_copied(to, inside ? from : zeros, n);
}

/* Load to registers; zeros unless `inside`. */
static inline void host_load(u32 *x, const void *from, u32 n, bool inside)
{
	if (inside)
		memcpy(x, from, n);
	else
		memset(x, 0, n);
}

#define copy_4(to, from, inside) host_copy(to, from, 4, inside)
#define copy_8(to, from, inside) host_copy(to, from, 8, inside)
#define copy_16(to, from, inside) host_copy(to, from, 16, inside)

/* Of a word of each thread, those of the warp from `to` on, until which the threads wait by DMA_WAIT. */
#define dma_4(to, tensor, at, inside) host_rt->copy_dma((u32)UNIFORM((int)(to)) + 4 * (u32)(THREAD % host_warp), \
	(inside) ? (const char *)(tensor) + (at) : NULL)
#define DMA_WAIT(n) host_rt->dma_wait(n)

#define shared_8(x, a) host_rt->get(a, x, 8)
#define shared_16(x, a) host_rt->get(a, x, 16)
/* From the same address in another block of the cluster. */
#define peer_put_16(a, block, x) host_rt->put_at(a, block, x, 16)
#define store_8(to, y) memcpy(to, y, 8)
#define store_16(to, y) memcpy(to, y, 16)
#define float_bits host_bits
#define bits_float host_float
#define read_shifted(x, from) memcpy(x, from, 16)	/* 16 bytes at any alignment */
#define shared_put_8(a, x) host_rt->put(a, x, 8)
#define shared_put_16(a, x) host_rt->put(a, x, 16)
#define load_4(x, from, inside) host_load(x, from, 4, inside)
#define load_8(x, from, inside) host_load(x, from, 8, inside)
#define load_16(x, from, inside) host_load(x, from, 16, inside)
#define load_4_of(x, tensor, at, inside) host_load(x, (const char *)(tensor) + (at), 4, inside)
#define load_8_of(x, tensor, at, inside) host_load(x, (const char *)(tensor) + (at), 8, inside)
#define load_16_of(x, tensor, at, inside) host_load(x, (const char *)(tensor) + (at), 16, inside)
#define copies_wait() ((void)0)
#define copies_arrive(flag) host_rt->flag_arrive(flag, 0)

/* ---- arithmetic -------------------------------------------------------------------------- */

static inline int max_of(int a, int b) { return a > b ? a : b; }
static inline int min_of(int a, int b) { return a < b ? a : b; }
/* For numbers that are not negative. */
static inline int quo(int a, int b) { return (int)((u32)a / (u32)b); }
static inline int rem(int a, int b) { return (int)((u32)a % (u32)b); }
static inline float op_div(float x, float y) { return x / y; }
static inline float op_rsqrt(float x) { return 1.f / sqrtf(x); }
/* In fields of 2 bits, of 4, of 8, which the product adds. */
static inline int op_popcount(int word)
{
	u32 x = (u32)word - ((u32)word >> 1 & 0x55555555);

	x = (x & 0x33333333) + (x >> 2 & 0x33333333);
	return (int)(((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24);
}
static inline u32 pack_bf16(float lo, float hi) { return host_to_bf16(hi) << 16 | host_to_bf16(lo); }
static inline u32 pack_f16(float lo, float hi) { return host_to_f16(hi) << 16 | host_to_f16(lo); }

#define op_exp2 exp2f
#define op_log2 log2f
#define op_tanh tanhf
#define op_sin sinf
#define op_cos cosf
#define from_bf16 host_from_bf16
#define from_f16 host_from_f16
#define from_e4m3 host_from_e4m3
#define to_tf32 host_to_tf32

static inline u8 to_e4m3(float x) { return (u8)host_to_e4m3(x); }
static inline u8 to_e5m2(float x) { return (u8)host_to_e5m2(x); }
static inline float from_e5m2(u32 x) { return host_from_f16((u16)(x << 8)); }
static inline float from_e2m1(u32 x) { return (x & 8 ? -1.f : 1.f) * host_from_small(x & 7, 1, 1); }
static inline float from_e8m0(u32 x) { return host_float((x & 255) << 23 | (((x + 1) & 254) == 0 ? 0x400000 : 0)); }
static inline u8 to_e8m0(float x) { return (u8)(x != x ? 255 : min_of(254, (int)(host_bits(x) >> 23 & 255))); }
static inline int from_i4(u32 x, int at) { return (int)(x << (28 - at)) >> 28; }
static inline int from_i8(u32 x, int at) { return (int)(x << (24 - at)) >> 24; }
static inline u8 to_i8(int x) { return (u8)x; }
static inline u32 to_i4(int x) { return (u32)x & 15; }

static inline float e2m1_at(u32 w, int at) { return from_e2m1(w >> at); }

#define pack_short_bf16 pack_bf16

/* Words of two elements of 16 bits. */
static inline u32 mul_pair_bf16(u32 x, u32 y)
{
	return pack_bf16(from_bf16((u16)x) * from_bf16((u16)y), from_bf16((u16)(x >> 16)) * from_bf16((u16)(y >> 16)));
}
static inline u32 mul_pair_f16(u32 x, u32 y)
{
	return pack_f16(from_f16((u16)x) * from_f16((u16)y), from_f16((u16)(x >> 16)) * from_f16((u16)(y >> 16)));
}
#define mul_pair_bf16_here mul_pair_bf16
#define mul_pair_f16_here mul_pair_f16
static inline u32 i4_pair_bf16(u32 w, int at) { return pack_bf16((float)from_i4(w, at), (float)from_i4(w, at + 4)); }
static inline u32 i4_pair_f16(u32 w, int at) { return pack_f16((float)from_i4(w, at), (float)from_i4(w, at + 4)); }
static inline u32 i8_pair_bf16(u32 w, int at) { return pack_bf16((float)from_i8(w, at), (float)from_i8(w, at + 8)); }
static inline u32 i8_pair_f16(u32 w, int at) { return pack_f16((float)from_i8(w, at), (float)from_i8(w, at + 8)); }
static inline u32 e2m1_pair_bf16(u32 w, int at) { return pack_bf16(e2m1_at(w, at), e2m1_at(w, at + 4)); }
static inline u32 e2m1_pair_f16(u32 w, int at) { return pack_f16(e2m1_at(w, at), e2m1_at(w, at + 4)); }

/* NaN becomes the greatest value. */
static inline u32 to_e2m1(float x)
{
	const float y = fminf(fabsf(x), 6.f);
	const u32 b = host_bits(y), sign = x == x ? host_bits(x) >> 28 & 8 : 0;

	return sign | (y < 1.f ? (u32)(int)rintf(2.f * y) : ((b + 0x1fffff + (b >> 22 & 1)) >> 22) - 252);
}
static inline u16 half_of(u32 x, int e) { return (u16)(e ? x >> 16 : x); }

static inline int to_i32(float x)
{
	if (x != x)
		return 0;
	return x >= 0x1p31f ? 2147483647 : x <= -0x1p31f ? -2147483647 - 1 : (int)x;
}

/* ---- the entry --------------------------------------------------------------------------- */

#define HOST_ENTRY(name, threads) \
	static void host_call_##name(void *const *args); \
	__attribute__((visibility("default"))) void millrace_host_run(const struct host_launch *l) \
	{ host_rt = l->runtime; host_warp = l->warp; host_rt->play(l, host_call_##name, threads); } \
	static void host_call_##name(void *const *args)

#endif
