/* Hopper: matrix products of a warpgroup out of swizzled shared memory (wgmma, PTX ISA 8.x), on an asynchronous unit;
 * and of single warps out of registers (mma.sync), on a synchronous one. */
#include "target/mma_sync.h"

/* ptxas asks for 26 (C7602), whatever setmaxnreg gives */
#define WGMMA .name = "wgmma", .async = true, .warps = 4, .rows = 64, .cols_most = 256, .cols_step = 8, \
	.more_registers = 26, .k_bytes = 32, .a = FROM_REGISTERS | FROM_SHARED, .b = FROM_SHARED

static const struct matrix_instruction matrix[] = {
	{ WGMMA, .types = TYPES_16 | 1u << DT_TF32 | 1u << DT_E4M3 | 1u << DT_E5M2, .loose = TYPES_16 },
	{ WGMMA, .types = INTEGERS_8, .cols_step_wide = 16 },
	{ WGMMA, .types = TYPES_16 | 1u << DT_E4M3 | 1u << DT_E5M2, .loose = TYPES_16, .sparse = true },
	{ WGMMA, .types = INTEGERS_8, .cols_step_wide = 16, .sparse = true },
	MMA_SM_89,
};

static const struct completion completes[] = {
	/* mbarriers, on which bytes count */
	{ SEU_COPY, true, SEEN_FLAGGED, SEEN_FLAGGED, false },
	{ SEU_COPY, false, SEEN_DONE, SEEN_FLAGGED, false },
	/* groups retire in order */
	{ SEU_MATRIX, true, SEEN_COUNTED, SEEN_FLAGGED, false },
	{ SEU_MATRIX, false, SEEN_DONE, SEEN_FLAGGED, false },
	{ SEU_VECTOR, true, SEEN_FLAGGED, SEEN_FLAGGED, false },
	{ SEU_VECTOR, false, SEEN_DONE, SEEN_FLAGGED, false },
};

const struct target target_sm_90a = {
	.name = "sm_90a", .lowers = true, .copied_most = 65536, .warp = 32, .group = 4,
	/* setmaxnreg */
	.registers = { .least = 24, .most = 240, .step = 8, .producer = 40 },
	/* the accumulator: thread t has rows t / 4 and t / 4 + 8, and of each eight columns
	 * 2 (t mod 4) and the next; sixteen columns are a step of a 16-bit operand */
	.frag = { .rows = 16, .cols = 8, .row = { 4, 8, 1 }, .col = { 1, 4, 2 }, .halves = 2,
		.half = 8, .pair = 2, .deep = 16 },
	.lines = { .rows = 1, .cols = 64, .row = { 1, 1, 0 }, .col = { 1, 32, 2 }, .halves = 1, .pair = 2, .deep = 64 },
	.completes = completes, .ncompletes = LEN(completes),
	.adds_together = 4,	/* red.v4.f32 */
	.pairs = TYPES_16, .transposes = true, .forgets_loops = true, .phases_overlap = true,
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.box_rows = 256, .box_cols = 256, .box_rank = 5, .copy_align = 128, .flag = 8 },
	.matrix = matrix, .nmatrix = LEN(matrix),
};
