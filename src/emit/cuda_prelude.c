/* The definitions that precede a kernel for sm_90a or sm_80. Its body is plain C over these names, which
 * src/host/millrace_host.h defines for the host. Forms and operands of the instructions are those of the PTX ISA 8.x:
 * mbarrier, cp.async, and on sm_90a cp.async.bulk.tensor and wgmma. A kernel for sm_80 does not name what needs
 * those. */
#include "emit/print.h"

#define TMA_LOAD(rank, name, how, args, coords, hint, operands) \
	"DEV void tma_load_" name #rank "d(u32 dst, const TensorMap *map, u32 flag, " args ")\n" \
	"{ asm volatile(\"cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes" how "\"\n" \
	"\t\" [%0], [%1, {" coords "}], [%2]" hint ";\" :: \"r\"(dst), \"l\"(map), \"r\"(flag), " operands " : \"memory\"); }\n"
/* What nobody asks for again leaves L2 first. */
#define TMA(rank, args, coords, last, operands) \
	TMA_LOAD(rank, "", "", args, coords, "", operands), \
	TMA_LOAD(rank, "once_", ".L2::cache_hint", args, coords, ", %" last, \
		operands ", \"l\"(EVICT_FIRST)")

/* Boxes out of shared memory, of each rank. An addition finds the type of elements in the map. */
#define TMA_BOX_OUT(name, instruction, how, rank, args, coords, operands) \
	"DEV void tma_" name "_" #rank "d(const TensorMap *map, u32 from, " args ")\n" \
	"{ asm volatile(\"" instruction ".async.bulk.tensor." #rank "d.global.shared::cta" how ".bulk_group\"\n" \
	"\t\" [%0, {" coords "}], [%1];\" :: \"l\"(map), \"r\"(from), " operands " : \"memory\"); }\n"
#define TMA_OUT(name, instruction, how) \
	TMA_BOX_OUT(name, instruction, how, 1, "int c0", "%2", "\"r\"(c0)"), \
	TMA_BOX_OUT(name, instruction, how, 2, "int c0, int c1", "%2, %3", "\"r\"(c0), \"r\"(c1)"), \
	TMA_BOX_OUT(name, instruction, how, 3, "int c0, int c1, int c2", "%2, %3, %4", \
		"\"r\"(c0), \"r\"(c1), \"r\"(c2)"), \
	TMA_BOX_OUT(name, instruction, how, 4, "int c0, int c1, int c2, int c3", "%2, %3, %4, %5", \
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3)"), \
	TMA_BOX_OUT(name, instruction, how, 5, "int c0, int c1, int c2, int c3, int c4", "%2, %3, %4, %5, %6", \
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3), \"r\"(c4)")

#define COPY(bytes, cache) \
	"DEV void copy_" #bytes "(u32 to, const void *from, int inside)\n" \
	"{ asm volatile(\"cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;\"\n" \
	"\t:: \"r\"(to), \"l\"(from), \"r\"(inside ? " #bytes " : 0) : \"memory\"); }\n"

const char *const cuda_prelude[] = {
	"#pragma nv_diag_suppress 177\n",
	"typedef unsigned int u32;\n",
	"typedef unsigned long long u64;\n",
	"typedef unsigned short u16;\n",
	"typedef unsigned char u8;\n",
	"typedef struct alignas(64) { u64 opaque[16]; } TensorMap;\n",
	"#define DEV static __device__ __forceinline__\n",
	"#define KERNEL(name, threads) extern \"C\" __global__ void __launch_bounds__(threads, 1) name\n",
	"#define MAP const __grid_constant__ TensorMap\n",
	"#define EACH(i, n) _Pragma(\"unroll\") for (int i = 0; i < (n); i++)\n",
	"#define LOOP _Pragma(\"unroll 1\") for\n",
	"#define THREAD ((int)threadIdx.x)\n",
	"#define BLOCK ((int)blockIdx.x)\n",
	"#define BLOCK_SYNC() __syncthreads()\n",
	"/* A phase may be launched while what is in front of it runs, and waits until that has ended. */\n",
	ONLY_SM_90,
	"#define NEXT_PHASE_MAY_BEGIN() asm volatile(\"griddepcontrol.launch_dependents;\")\n",
	"#define LAST_PHASE_WAIT() asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")\n",
	ONLY_SM_80,
	"#define NEXT_PHASE_MAY_BEGIN()\n",
	"#define LAST_PHASE_WAIT()\n",
	FOR_ALL,
	"#define WARP_SYNC() __syncwarp()\n",
	"#define UNIFORM(x) __shfl_sync(~0u, x, 0)\n",
	"#define SET_REGISTERS(how, n) asm volatile(\"setmaxnreg.\" #how \".sync.aligned.u32 \" #n \";\")\n",
	"/* Registers of a group under way: the compiler must not move them across this. */\n",
	"#define PIN_F(x, n) EACH(i_, n) asm volatile(\"\" : \"+f\"((x)[i_]) :: \"memory\")\n",
	"#define PIN_U(x, n) EACH(i_, n) asm volatile(\"\" : \"+r\"((x)[i_]) :: \"memory\")\n",
	"#define GROUPS_WAIT(n) asm volatile(\"wgmma.wait_group.sync.aligned \" #n \";\" ::: \"memory\")\n",
	"/* Where the text is; for the host. */\n",
	"#define AT(task, iteration)\n",
	"/* As if it were computed here: nothing made of it before is kept. */\n",
	"DEV int opaque(int x) { asm volatile(\"\" : \"+r\"(x)); return x; }\n",
	"#define INFINITE __int_as_float(0x7f800000)\n",
	"\n",
	"/* By way of unsigned numbers: ptxas 13.0 fuses max(0, min(a, b)), and answers whether the\n",
	"   result equals b from the fused instruction's predicate, which is false where a > b. */\n",
	"DEV int max_of(int a, int b)\n",
	"{\n",
	"\tconst u32 x = (u32)a ^ 0x80000000u, y = (u32)b ^ 0x80000000u;\n",
	"\treturn (int)((x > y ? x : y) ^ 0x80000000u);\n",
	"}\n",
	"DEV int min_of(int a, int b) { return a < b ? a : b; }\n",
	"/* Of numbers that are not negative: as unsigned ones they take fewer instructions. */\n",
	"DEV int quo(int a, int b) { return (int)((u32)a / (u32)b); }\n",
	"DEV int rem(int a, int b) { return (int)((u32)a % (u32)b); }\n",
	"DEV u32 shared_base(void)\n",
	"{\n",
	"\textern __shared__ char dynamic[];\n",
	"\treturn ((u32)__cvta_generic_to_shared(dynamic) + 1023) & ~1023u;\n",
	"}\n",
	"DEV void flag_init(u32 a, u32 arrivals, const char *name, int index)\n",
	"{ asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" :: \"r\"(a), \"r\"(arrivals)); }\n",
	ONLY_SM_90,
	"DEV void flags_ready(void) { asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\"); }\n",
	ONLY_SM_80,
	"DEV void flags_ready(void) { }\n",
	FOR_ALL,
	"DEV void flag_expect(u32 a, u32 bytes)\n",
	"{ asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" :: \"r\"(a), \"r\"(bytes) : \"memory\"); }\n",
	ONLY_SM_90,
	"DEV void flag_arrive_warp(u32 a)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nelect.sync _|p, 0xffffffff;\\n\"\n",
	"\t\t\"@p mbarrier.arrive.shared::cta.b64 _, [%0];\\n}\" :: \"r\"(a) : \"memory\");\n",
	"}\n",
	"/* Phases are distinguished by their parity. */\n",
	"DEV void flag_wait(u32 a, u32 phase)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nAGAIN:\\n\"\n",
	"\t\t\"mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n\"\n",
	"\t\t\"@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}\" :: \"r\"(a), \"r\"(phase & 1) : \"memory\");\n",
	"}\n",
	ONLY_SM_80,
	"DEV void flag_arrive_warp(u32 a)\n",
	"{\n",
	"\tif (threadIdx.x % 32 == 0)\n",
	"\t\tasm volatile(\"{\\n.reg .b64 s;\\nmbarrier.arrive.shared.b64 s, [%0];\\n}\" :: \"r\"(a) : \"memory\");\n",
	"}\n",
	"/* Phases are distinguished by their parity. */\n",
	"DEV void flag_wait(u32 a, u32 phase)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nAGAIN:\\n\"\n",
	"\t\t\"mbarrier.test_wait.parity.shared.b64 p, [%0], %1;\\n\"\n",
	"\t\t\"@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}\" :: \"r\"(a), \"r\"(phase & 1) : \"memory\");\n",
	"}\n",
	FOR_ALL,
	"DEV void lane_sync(int id, int threads)\n",
	"{ asm volatile(\"bar.sync %0, %1;\" :: \"r\"(id), \"r\"(threads) : \"memory\"); }\n",
	ONLY_SM_90,
	"DEV int elect(void)\n",
	"{\n",
	"\tint p;\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nelect.sync _|p, 0xffffffff;\\nselp.s32 %0, 1, 0, p;\\n}\" : \"=r\"(p));\n",
	"\treturn p;\n",
	"}\n",
	"DEV void fence_async(void) { asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); }\n",
	ONLY_SM_80,
	"DEV int elect(void) { return threadIdx.x % 32 == 0; }\n",
	"DEV void fence_async(void) { }\n",
	FOR_ALL,
	"#define EVICT_FIRST 0x12f0000000000000ull\n",
	TMA(1, "int c0", "%3", "4", "\"r\"(c0)"),
	TMA(2, "int c0, int c1", "%3, %4", "5", "\"r\"(c0), \"r\"(c1)"),
	TMA(3, "int c0, int c1, int c2", "%3, %4, %5", "6", "\"r\"(c0), \"r\"(c1), \"r\"(c2)"),
	TMA(4, "int c0, int c1, int c2, int c3", "%3, %4, %5, %6", "7",
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3)"),
	TMA(5, "int c0, int c1, int c2, int c3, int c4", "%3, %4, %5, %6, %7", "8",
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3), \"r\"(c4)"),
	TMA_OUT("store", "cp", ""),
	"DEV void stores_commit(void) { asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\"); }\n",
	"#define STORES_READ(n) asm volatile(\"cp.async.bulk.wait_group.read \" #n \";\" ::: \"memory\")\n",
	"/* Addresses are a field of 14 bits, in units of 16 bytes: what is added stays within. Where a\n",
	"   compiler knew that low bits are 0 it would compute each again, by `or`, and in two halves. */\n",
	"DEV u64 descriptor(u64 bits, u32 from, u32 by)\n",
	"{\n",
	"\tu64 d = bits | from >> 4;\n",
	"\tasm(\"\" : \"+l\"(d));\n",
	"\treturn d + (by >> 4);\n",
	"}\n",
	"DEV void groups_fence(void) { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n",
	"DEV void groups_commit(void) { asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n",
	"DEV float shuffle_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }\n",
	"DEV float shuffle_from(float x, int lane) { return __shfl_sync(~0u, x, lane); }\n",
	"DEV int shuffle_xor_i(int x, int mask) { return __shfl_xor_sync(~0u, x, mask); }\n",
	"DEV int shuffle_from_i(int x, int lane) { return __shfl_sync(~0u, x, lane); }\n",
	"DEV float op_exp2(float x) { float y; asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x)); return y; }\n",
	"DEV float op_log2(float x) { float y; asm(\"lg2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x)); return y; }\n",
	"DEV float op_tanh(float x) { return 1.f - __fdividef(2.f, 1.f + op_exp2(2.885390082f * x)); }\n",
	"DEV float op_div(float x, float y) { return __fdividef(x, y); }\n",
	"DEV float op_rsqrt(float x) { return rsqrtf(x); }\n",
	"DEV u32 pack_bf16(float lo, float hi)\n",
	"{ u32 r; asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(hi), \"f\"(lo)); return r; }\n",
	"DEV u32 pack_f16(float lo, float hi)\n",
	"{ u32 r; asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(hi), \"f\"(lo)); return r; }\n",
	"DEV float from_bf16(u16 x) { return __uint_as_float((u32)x << 16); }\n",
	"DEV float from_f16(u16 x) { float y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); return y; }\n",
	ONLY_SM_90,
	"DEV u8 to_e4m3(float x)\n",
	"{ u16 r; asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;\" : \"=h\"(r) : \"f\"(x)); return (u8)r; }\n",
	"DEV u8 to_e5m2(float x)\n",
	"{\n",
	"\tu16 r;	/* the instruction saturates; the type has an infinity */\n",
	"\tasm(\"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %1;\" : \"=h\"(r) : \"f\"(x));\n",
	"\treturn (u8)(fabsf(x) >= 61440.f ? 0x7c | (x < 0.f ? 0x80 : 0) : r);\n",
	"}\n",
	"DEV float from_e4m3(u32 x)\n",
	"{ u32 r; asm(\"cvt.rn.f16x2.e4m3x2 %0, %1;\" : \"=r\"(r) : \"h\"((u16)(x & 0xff))); return from_f16((u16)r); }\n",
	ONLY_SM_80,
	"/* Without instructions for them: the mantissa's bits are rounded to nearest or even, below the least exponent in steps of\n",
	"   the least number, and what is too great becomes the greatest. */\n",
	"DEV u8 to_small(float x, int bits, int least, float most, u32 nan)\n",
	"{\n",
	"\tconst float y = fminf(fabsf(x), most);\n",
	"\tconst int e = max_of(least, (int)(__float_as_uint(y) >> 23) - 127);\n",
	"\tconst u32 steps = (u32)__float2int_rn(y * __uint_as_float((u32)(bits - e + 127) << 23));\n",
	"\tconst u32 sign = __float_as_uint(x) >> 24 & 0x80;\n",
	"\treturn (u8)(x != x ? sign | nan : sign | (steps + ((u32)(e - least) << bits)));\n",
	"}\n",
	"DEV u8 to_e4m3(float x) { return to_small(x, 3, -6, 448.f, 0x7f); }\n",
	"DEV u8 to_e5m2(float x) { return fabsf(x) >= 61440.f ? (u8)((x < 0.f ? 0x80 : 0) | 0x7c) : to_small(x, 2, -14, 57344.f, 0x7f); }\n",
	"DEV float from_e4m3(u32 x)\n",
	"{\n",
	"\tconst float y = __uint_as_float((x & 0x7f) << 20) * __uint_as_float(0x7b800000);\n",
	"\treturn (x & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000) : x & 0x80 ? -y : y;\n",
	"}\n",
	FOR_ALL,
	"DEV float from_e5m2(u32 x) { return from_f16((u16)(x << 8)); }\n",
	"DEV float from_e2m1(u32 x)\n",
	"{\n",
	"\tconst float y = x & 6 ? __uint_as_float((x & 7) * 0x400000 + 0x3f000000) : 0.5f * (x & 1);\n",
	"\treturn x & 8 ? -y : y;\n",
	"}\n",
	"/* Of an exponent: that of 0 is a subnormal float, that of 255 NaN. */\n",
	"DEV float from_e8m0(u32 x) { return __uint_as_float((x & 255) << 23 | (((x + 1) & 254) == 0 ? 0x400000 : 0)); }\n",
	"/* The exponent of a power of two that is not greater is that of the float. */\n",
	"DEV u8 to_e8m0(float x) { return (u8)(x != x ? 255 : min_of(254, (int)(__float_as_uint(x) >> 23 & 255))); }\n",
	"DEV float to_tf32(float x)\n",
	"{\n",
	"\tconst u32 b = __float_as_uint(x);\n",
	"\treturn isfinite(x) ? __uint_as_float((b + 0xfff + (b >> 13 & 1)) & ~0x1fffu) : x;\n",
	"}\n",
	"DEV int from_i4(u32 x, int at) { return (int)(x << (28 - at)) >> 28; }\n",
	"DEV int from_i8(u32 x, int at) { return (int)(x << (24 - at)) >> 24; }\n",
	"DEV u8 to_i8(int x) { return (u8)x; }\n",
	"DEV int to_i32(float x) { return __float2int_rz(x); }\n",
	"DEV u16 half_of(u32 x, int e) { return (u16)(e ? x >> 16 : x); }\n",
	"DEV u16 shared_u16(u32 a) { u16 x; asm volatile(\"ld.shared.u16 %0, [%1];\" : \"=h\"(x) : \"r\"(a)); return x; }\n",
	"DEV float shared_f32(u32 a) { float x; asm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(x) : \"r\"(a)); return x; }\n",
	"/* Word i of thread q of four becomes word q of thread i. */\n",
	"DEV void quad_transpose(u32 *y, int q)\n",
	"{\n",
	"\tEACH(p, 2) {\n",
	"\t\tconst u32 z = shuffle_xor_i(q & 1 ? y[2 * p] : y[2 * p + 1], 1);\n",
	"\t\tif (q & 1) y[2 * p] = z; else y[2 * p + 1] = z;\n",
	"\t}\n",
	"\tEACH(p, 2) {\n",
	"\t\tconst u32 z = shuffle_xor_i(q & 2 ? y[p] : y[p + 2], 2);\n",
	"\t\tif (q & 2) y[p] = z; else y[p + 2] = z;\n",
	"\t}\n",
	"}\n",
	"/* To shared memory; zeros unless `inside`. */\n",
	COPY(4, "ca"),
	COPY(8, "ca"),
	COPY(16, "cg"),
	"DEV void copies_wait(void) { asm volatile(\"cp.async.wait_all;\" ::: \"memory\"); }\n",
	"/* This thread arrives when what it has copied is there. */\n",
	"DEV void copies_arrive(u32 flag)\n",
	"{ asm volatile(\"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\" :: \"r\"(flag) : \"memory\"); }\n",
	"/* 16 bytes that begin anywhere, from the words of 8 around them. */\n",
	"DEV uint2 words_at(u64 at)\n",
	"{ uint2 w; asm volatile(\"ld.global.v2.u32 {%0, %1}, [%2];\" : \"=r\"(w.x), \"=r\"(w.y) : \"l\"(at)); return w; }\n",
	"DEV void read_shifted(u32 *x, const void *from)\n",
	"{\n",
	"\tconst u64 at = (u64)from, w = at & ~7ull;\n",
	"\tconst uint2 a = words_at(w), b = words_at(w + 8);\n",
	"\tconst uint2 c = at & 7 ? words_at(w + 16) : make_uint2(0, 0);\n",
	"\tconst bool half = at & 4;\n",
	"\tconst u32 bits = (u32)(at & 3) * 8;\n",
	"\tconst u32 y0 = half ? a.y : a.x, y1 = half ? b.x : a.y, y2 = half ? b.y : b.x;\n",
	"\tconst u32 y3 = half ? c.x : b.y, y4 = half ? c.y : c.x;\n",
	"\tx[0] = __funnelshift_r(y0, y1, bits), x[1] = __funnelshift_r(y1, y2, bits);\n",
	"\tx[2] = __funnelshift_r(y2, y3, bits), x[3] = __funnelshift_r(y3, y4, bits);\n",
	"}\n",
	"DEV void shared_put_16(u32 a, const u32 *x)\n",
	"{ asm volatile(\"st.shared.v4.u32 [%0], {%1, %2, %3, %4};\"\n",
	"\t:: \"r\"(a), \"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]), \"r\"(x[3]) : \"memory\"); }\n",
	"DEV void store_16(void *to, const u32 *y)\n",
	"{ *(uint4 *)to = make_uint4(y[0], y[1], y[2], y[3]); }\n",
	"DEV u32 shared_u32(u32 a) { u32 x; asm volatile(\"ld.shared.u32 %0, [%1];\" : \"=r\"(x) : \"r\"(a)); return x; }\n",
	"DEV u8 shared_u8(u32 a) { u32 x; asm volatile(\"ld.shared.u8 %0, [%1];\" : \"=r\"(x) : \"r\"(a)); return (u8)x; }\n",
	"DEV void shared_put_u8(u32 a, u8 x) { asm volatile(\"st.shared.u8 [%0], %1;\" :: \"r\"(a), \"r\"((u32)x) : \"memory\"); }\n",
	"DEV void shared_put_u16(u32 a, u16 x) { asm volatile(\"st.shared.u16 [%0], %1;\" :: \"r\"(a), \"h\"(x) : \"memory\"); }\n",
	"DEV void shared_put_u32(u32 a, u32 x) { asm volatile(\"st.shared.u32 [%0], %1;\" :: \"r\"(a), \"r\"(x) : \"memory\"); }\n",
	"DEV void shared_put_f32(u32 a, float x) { asm volatile(\"st.shared.f32 [%0], %1;\" :: \"r\"(a), \"f\"(x) : \"memory\"); }\n",
	"\n",
	NULL
};

#define TMA_ALL(rank, args, coords, operands) \
	"DEV void tma_load_all_" #rank "d(u32 dst, const TensorMap *map, u32 flag, u16 blocks, " args ")\n" \
	"{ asm volatile(\"cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes\"\n" \
	"\t\".multicast::cluster [%0], [%1, {" coords "}], [%2], %3;\" :: \"r\"(dst), \"l\"(map), \"r\"(flag), \"h\"(blocks), " operands \
	" : \"memory\"); }\n"

const char *const cuda_cluster[] = {
	"/* Clusters. What a block tells another is only that its reads of a slot are done: no scope\n",
	" * wider than the block's own, which would flush caches. But no block may end before what others\n",
	" * tell it has arrived, so the barrier at the end releases. */\n",
	"#define CLUSTER_KERNEL(name, threads, blocks) extern \"C\" __global__ void __launch_bounds__(threads, 1) \\\n",
	"\t__cluster_dims__(blocks, 1, 1) name\n",
	"#define CLUSTER_SYNC() asm volatile(\"barrier.cluster.arrive.release;\\nbarrier.cluster.wait.acquire;\" ::: \"memory\")\n",
	"/* As its own block numbers it: addresses in a cluster have the block's rank above that. */\n",
	"DEV u32 in_block(u32 a) { return a & 0xffffff; }\n",
	"DEV void flag_arrive_at(u32 a, u32 block)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .b32 r;\\nmapa.shared::cluster.u32 r, %0, %1;\\n\"\n",
	"\t\t\"mbarrier.arrive.shared::cluster.b64 _, [r];\\n}\" :: \"r\"(a), \"r\"(block) : \"memory\");\n",
	"}\n",
	"/* To the same address in each block, on each one's flag. */\n",
	TMA_ALL(1, "int c0", "%4", "\"r\"(c0)"),
	TMA_ALL(2, "int c0, int c1", "%4, %5", "\"r\"(c0), \"r\"(c1)"),
	TMA_ALL(3, "int c0, int c1, int c2", "%4, %5, %6", "\"r\"(c0), \"r\"(c1), \"r\"(c2)"),
	TMA_ALL(4, "int c0, int c1, int c2, int c3", "%4, %5, %6, %7",
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3)"),
	TMA_ALL(5, "int c0, int c1, int c2, int c3, int c4", "%4, %5, %6, %7, %8",
		"\"r\"(c0), \"r\"(c1), \"r\"(c2), \"r\"(c3), \"r\"(c4)"),
	"\n",
	NULL
};

const char *const cuda_parts[] = {
	"/* What blocks write to each other, or have read: scopes are the cluster. */\n",
	"DEV void flag_tell_at(u32 a, u32 block)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .b32 r;\\nmapa.shared::cluster.u32 r, %0, %1;\\n\"\n",
	"\t\t\"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\\n}\" :: \"r\"(a), \"r\"(block) : \"memory\");\n",
	"}\n",
	"DEV void flag_wait_peers(u32 a, u32 phase)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nAGAIN:\\n\"\n",
	"\t\t\"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\\n\"\n",
	"\t\t\"@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}\" :: \"r\"(a), \"r\"(phase & 1) : \"memory\");\n",
	"}\n",
	"/* To the same address in another block. */\n",
	"DEV void peer_put_16(u32 a, u32 block, const u32 *x)\n",
	"{\n",
	"\tasm volatile(\"{\\n.reg .b32 r;\\nmapa.shared::cluster.u32 r, %0, %1;\\n\"\n",
	"\t\t\"st.shared::cluster.v4.u32 [r], {%2, %3, %4, %5};\\n}\"\n",
	"\t\t:: \"r\"(a), \"r\"(block), \"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]), \"r\"(x[3]) : \"memory\");\n",
	"}\n",
	"\n",
	NULL
};

const char *const cuda_additions[] = {
	"/* Additions in memory, in any order. */\n",
	"#define add_to(to, x) ((void)atomicAdd(to, x))\n",
	"DEV void add_to_2(float *to, const u32 *x)\n",
	"{ asm volatile(\"red.global.add.v2.f32 [%0], {%1, %2};\" :: \"l\"(__cvta_generic_to_global(to)),\n",
	"\t\"f\"(__uint_as_float(x[0])), \"f\"(__uint_as_float(x[1])) : \"memory\"); }\n",
	"DEV void add_to_4(float *to, const u32 *x)\n",
	"{ asm volatile(\"red.global.add.v4.f32 [%0], {%1, %2, %3, %4};\" :: \"l\"(__cvta_generic_to_global(to)),\n",
	"\t\"f\"(__uint_as_float(x[0])), \"f\"(__uint_as_float(x[1])), \"f\"(__uint_as_float(x[2])),\n",
	"\t\"f\"(__uint_as_float(x[3])) : \"memory\"); }\n",
	"/* Threads 2 i and 2 i + 1 have eight words each: word k of both, then, is from thread 2 i + k / 4. */\n",
	"DEV void swap_halves(u32 *x, int odd)\n",
	"{\n",
	"\tEACH(i, 4) {\n",
	"\t\tconst u32 y = shuffle_xor_i(odd ? x[i] : x[4 + i], 1);\n",
	"\t\tif (odd) x[i] = y; else x[4 + i] = y;\n",
	"\t}\n",
	"}\n",
	TMA_OUT("add", "cp.reduce", ".add"),
	"\n",
	NULL
};

const char *const cuda_taken[] = {
	"/* How many were asked for before. `last`: how many are in a launch, less one; behind that the counter is 0 again. */\n",
	"DEV int tile_ask(u32 *counter, u32 last) { return (int)atomicInc(counter, last); }\n",
	"/* x in the thread that elect() elects, -1 in others. */\n",
	ONLY_SM_90,
	"DEV int if_elected(int x)\n",
	"{\n",
	"\tint y;\n",
	"\tasm volatile(\"{\\n.reg .pred p;\\nelect.sync _|p, 0xffffffff;\\nselp.s32 %0, %1, -1, p;\\n}\" : \"=r\"(y) : \"r\"(x) : \"memory\");\n",
	"\treturn y;\n",
	"}\n",
	ONLY_SM_80,
	"DEV int if_elected(int x) { return elect() ? x : -1; }\n",
	FOR_ALL,
	"DEV void flag_arrive_thread(u32 a)\n",
	"{ asm volatile(\"{\\n.reg .b64 s;\\nmbarrier.arrive.shared.b64 s, [%0];\\n}\" :: \"r\"(a) : \"memory\"); }\n",
	NULL
};

const char *const cuda_fresh[] = {
	"/* As a pin, and what the registers hold is of no use from here on. */\n",
	"#define FRESH_F(x, n) EACH(i_, n) asm volatile(\"\" : \"=f\"((x)[i_]) :: \"memory\")\n",
	"#define FRESH_U(x, n) EACH(i_, n) asm volatile(\"\" : \"=r\"((x)[i_]) :: \"memory\")\n",
	"\n",
	NULL
};

const char *const cuda_skips[] = {
	"/* Does it hold for a thread of the warp? */\n",
	"#define ANY_OF_WARP(x) (__any_sync(~0u, x) != 0)\n",
	"\n",
	NULL
};

const char *const cuda_recomputed[] = {
	"/* As opaque, and for ptxas, too, which an empty statement does not stop. Calls with the same n "
	"may be alike for it. */\n",
	"DEV int recomputed(int x, int n)\n",
	"{\n",
	"\tasm volatile(\"xor.b32 %0, %0, %1;\" : \"+r\"(x) : \"r\"(n << 10));\n",
	"\tasm volatile(\"xor.b32 %0, %0, %1;\" : \"+r\"(x) : \"r\"(n << 10));\n",
	"\treturn x;\n",
	"}\n",
	"\n",
	NULL
};

const char *const cuda_vectors[] = {
	"/* Several words at once. */\n",
	"DEV u32 float_bits(float x) { return __float_as_uint(x); }\n",
	"DEV float bits_float(u32 x) { return __uint_as_float(x); }\n",
	"DEV void store_8(void *to, const u32 *y) { *(uint2 *)to = make_uint2(y[0], y[1]); }\n",
	"DEV void shared_8(u32 *x, u32 a)\n",
	"{ asm volatile(\"ld.shared.v2.u32 {%0, %1}, [%2];\" : \"=r\"(x[0]), \"=r\"(x[1]) : \"r\"(a)); }\n",
	"DEV void shared_16(u32 *x, u32 a)\n",
	"{ asm volatile(\"ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\"\n",
	"\t: \"=r\"(x[0]), \"=r\"(x[1]), \"=r\"(x[2]), \"=r\"(x[3]) : \"r\"(a)); }\n",
	"\n",
	NULL
};

const char *const cuda_staged[] = {
	"/* Loads to registers, zeros unless `inside`, and what goes from there to shared memory. */\n",
	"DEV void load_4(u32 *x, const void *from, int inside) { x[0] = inside ? *(const u32 *)from : 0; }\n",
	"DEV void load_8(u32 *x, const void *from, int inside)\n",
	"{ const uint2 y = inside ? *(const uint2 *)from : make_uint2(0, 0); x[0] = y.x, x[1] = y.y; }\n",
	"DEV void load_16(u32 *x, const void *from, int inside)\n",
	"{\n",
	"\tconst uint4 y = inside ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);\n",
	"\tx[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;\n",
	"}\n",
	"DEV void shared_put_8(u32 a, const u32 *x)\n",
	"{ asm volatile(\"st.shared.v2.u32 [%0], {%1, %2};\" :: \"r\"(a), \"r\"(x[0]), \"r\"(x[1]) : \"memory\"); }\n",
	"\n",
	NULL
};

const char *const cuda_rare[] = {
	SINE_AND_COSINE("fmaf"),
	"DEV int op_popcount(int x) { return __popc(x); }\n",
	NULL
};

const char *const cuda_transposes[] = {
	"/* Of a matrix of 8 x 8 elements of 16 bits, of which thread t has row t / 4, columns 2 (t mod 4) and the next: then\n"
	" * column t / 4, rows 2 (t mod 4) and the next. */\n",
	"DEV u32 matrix_transpose(u32 x)\n",
	"{ u32 y; asm volatile(\"movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\" : \"=r\"(y) : \"r\"(x)); return y; }\n",
	"\n",
	NULL
};

const char *const cuda_nibbles[] = {
	"/* Elements of 4 bits. The mantissa's bit is rounded to nearest or even: below 1 in steps of a half, else by the bits of\n",
	" * the float, whose exponent begins at bit 23. NaN becomes the greatest value, as by cvt.rn.satfinite.e2m1x2. */\n",
	"DEV u32 to_e2m1(float x)\n",
	"{\n",
	"\tconst float y = fminf(fabsf(x), 6.f);\n",
	"\tconst u32 b = __float_as_uint(y), sign = x == x ? __float_as_uint(x) >> 28 & 8 : 0;\n",
	"\treturn sign | (y < 1.f ? (u32)__float2int_rn(2.f * y) : ((b + 0x1fffff + (b >> 22 & 1)) >> 22) - 252);\n",
	"}\n",
	"/* The element at bit `at` of a word: its exponent becomes the low bits of a float's, which are that of a number 2^126 times\n",
	" * too small, a subnormal one if it is. */\n",
	"DEV float e2m1_at(u32 w, int at)\n",
	"{\n",
	"\tconst u32 x = w >> at;\n",
	"\treturn __uint_as_float((x << 28 & 0x80000000u) | (x << 22 & 0x1c00000u)) * __uint_as_float(0x7e800000);\n",
	"}\n",
	"DEV u32 to_i4(int x) { return (u32)x & 15; }\n",
	"\n",
	NULL
};

const char *const cuda_pairs[] = {
	"#define pack_short_bf16 pack_bf16\n",
	"/* Words of two elements of 16 bits. A fused operation multiplies, as it is there on all machines; adding -0 changes nothing. */\n",
	"DEV u32 fma_pair_bf16(u32 x, u32 y, u32 z)\n",
	"{ u32 r; asm(\"fma.rn.bf16x2 %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(x), \"r\"(y), \"r\"(z)); return r; }\n",
	"DEV u32 fma_pair_f16(u32 x, u32 y, u32 z)\n",
	"{ u32 r; asm(\"fma.rn.f16x2 %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(x), \"r\"(y), \"r\"(z)); return r; }\n",
	"DEV u32 mul_pair_bf16(u32 x, u32 y) { return fma_pair_bf16(x, y, 0x80008000u); }\n",
	"DEV u32 mul_pair_f16(u32 x, u32 y) { return fma_pair_f16(x, y, 0x80008000u); }\n",
	"/* The byte at bit `at` of both words, in each half: of two elements of 4 bits one in its low or high bits. */\n",
	"DEV u32 byte_pair(u32 x, u32 y, int at) { return __byte_perm(x, y, (at >> 3) * 0x1111 + 0x4400); }\n",
	"DEV u32 low_nibbles(u32 x, u32 flipped)\n",
	"{ u32 r; asm(\"lop3.b32 %0, %1, 0xf000f, %2, 0x6a;\" : \"=r\"(r) : \"r\"(x), \"r\"(flipped)); return r; }\n",
	"/* As the low bits of the mantissa of 128, or 1024, an element + 8 is that much more than it. */\n",
	"DEV u32 i4_pair_bf16(u32 w, int at)\n",
	"{ return fma_pair_bf16(low_nibbles(byte_pair(w, w >> 4, at), 0x43084308u), 0x3f803f80u, 0xc308c308u); }\n",
	"DEV u32 i4_pair_f16(u32 w, int at)\n",
	"{ return fma_pair_f16(low_nibbles(byte_pair(w, w >> 4, at), 0x64086408u), 0x3c003c00u, 0xe408e408u); }\n",
	"/* Two bytes from bit `at` on, with zeros above. */\n",
	"DEV u32 bytes_apart(u32 w, int at) { return __byte_perm(w, 0, (at >> 3) * 0x101 + 0x4140); }\n",
	"DEV u32 and_or(u32 x, u32 y, u32 z)\n",
	"{ u32 r; asm(\"lop3.b32 %0, %1, %2, %3, 0xea;\" : \"=r\"(r) : \"r\"(x), \"r\"(y), \"r\"(z)); return r; }\n",
	"/* 128 and the low seven bits; -128, or -256 where the sign is set: bf16 has eight bits, and the sum. */\n",
	"DEV u32 i8_pair_bf16(u32 w, int at)\n",
	"{\n",
	"\tconst u32 x = bytes_apart(w, at);\n",
	"\treturn fma_pair_bf16(and_or(x, 0x7f007fu, 0x43004300u), 0x3f803f80u, and_or(x, 0x800080u, 0xc300c300u));\n",
	"}\n",
	"DEV u32 i8_pair_f16(u32 w, int at)\n",
	"{ return fma_pair_f16(bytes_apart(w, at) ^ 0x64806480u, 0x3c003c00u, 0xe480e480u); }\n",
	"/* The exponent becomes the low bits of one that is 126, or 14, greater. */\n",
	"DEV u32 e2m1_pair_bf16(u32 w, int at)\n",
	"{\n",
	"\tconst u32 x = byte_pair(w << 4, w, at);\n",
	"\treturn mul_pair_bf16((x & 0x80008000u) | (x >> 6 & 0x1c001c0u), 0x7e807e80u);\n",
	"}\n",
	"DEV u32 e2m1_pair_f16(u32 w, int at)\n",
	"{\n",
	"\tconst u32 x = byte_pair(w << 4, w, at);\n",
	"\treturn mul_pair_f16((x & 0x80008000u) | (x >> 3 & 0xe000e00u), 0x74007400u);\n",
	"}\n",
	"\n",
	NULL
};

/* A product under way reads registers to which these write the next operand. Compilers do not know that, and give both the same
 * registers, so nothing but where the instruction stands in the text keeps it behind the wait for the product. */
const char *const cuda_ordered_pairs[] = {
	"/* Pairs that are made where they stand: behind the wait for a product that reads the registers of the result. */\n",
	"DEV u32 fma_pair_bf16_here(u32 x, u32 y, u32 z)\n",
	"{ u32 r; asm volatile(\"fma.rn.bf16x2 %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(x), \"r\"(y), \"r\"(z)); return r; }\n",
	"DEV u32 fma_pair_f16_here(u32 x, u32 y, u32 z)\n",
	"{ u32 r; asm volatile(\"fma.rn.f16x2 %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(x), \"r\"(y), \"r\"(z)); return r; }\n",
	"DEV u32 mul_pair_bf16_here(u32 x, u32 y) { return fma_pair_bf16_here(x, y, 0x80008000u); }\n",
	"DEV u32 mul_pair_f16_here(u32 x, u32 y) { return fma_pair_f16_here(x, y, 0x80008000u); }\n",
	"\n",
	NULL
};

const char *const cuda_matrices[] = {
	"/* Four matrices of 8 x 8 elements of 16 bits: thread t gives the address of row t % 8 of matrix t / 8, and gets of each\n",
	"   the elements of row t / 4 in columns 2 (t % 4) and the next; `across`: of column t / 4 in these rows. */\n",
	"DEV void shared_matrices(u32 *x, u32 a)\n",
	"{ asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n",
	"\t: \"=r\"(x[0]), \"=r\"(x[1]), \"=r\"(x[2]), \"=r\"(x[3]) : \"r\"(a)); }\n",
	"DEV void shared_matrices_across(u32 *x, u32 a)\n",
	"{ asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"\n",
	"\t: \"=r\"(x[0]), \"=r\"(x[1]), \"=r\"(x[2]), \"=r\"(x[3]) : \"r\"(a)); }\n",
	"\n",
	NULL
};
