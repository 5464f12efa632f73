/* Products of single warps, synchronous and out of registers: mma.sync.m16n8k16 of the PTX ISA. Two machines have them:
 * one that is as sm_90a otherwise, and sm_80. */
#include "target/target.h"

#define TYPES_16 (1u << DT_BF16 | 1u << DT_F16)

/* The second operand: thread t has column t / 4 of each eight of the result, and of what is
 * contracted 2 (t mod 4) and the next of each eight. The first one lies as the sums do. */
static const struct frag_layout second = { .rows = 8, .cols = 8, .row = { 4, 8, 1 },
	.col = { 1, 4, 2 }, .halves = 1, .pair = 2, .deep = 16, .every_warp = true };

static const struct matrix_instruction matrix[] = {
	{ .name = "mma.sync", .warps = 1, .rows = 16, .cols_most = 8, .cols_step = 8, .k_bytes = 32, .types = TYPES_16,
		.loose = TYPES_16, .a = FROM_REGISTERS, .b = FROM_REGISTERS, .b_layout = &second,
		.by_matrices = true },
};

/* The sums lie as those of wgmma. */
#define SUMS { .rows = 16, .cols = 8, .row = { 4, 8, 1 }, .col = { 1, 4, 2 }, .halves = 2, \
	.half = 8, .pair = 2, .deep = 16 }
#define LINES { .rows = 1, .cols = 64, .row = { 1, 1, 0 }, .col = { 1, 32, 2 }, .halves = 1, .pair = 2, \
	.deep = 64 }

static const struct completion completes[] = {
	{ SEU_COPY, true, SEEN_FLAGGED, SEEN_FLAGGED },
	{ SEU_COPY, false, SEEN_DONE, SEEN_FLAGGED },
	{ SEU_MATRIX, false, SEEN_DONE, SEEN_FLAGGED },
	{ SEU_VECTOR, true, SEEN_FLAGGED, SEEN_FLAGGED },
	{ SEU_VECTOR, false, SEEN_DONE, SEEN_FLAGGED },
};

const struct target target_mma_sync = {
	.name = "mma_sync", .lowers = true, .warp = 32, .group = 1, .frag = SUMS, .lines = LINES,
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.box_rows = 256, .box_cols = 256, .box_rank = 5, .copy_align = 128, .flag = 8 },
	.matrix = matrix, .nmatrix = LEN(matrix),
};

const struct target target_sm_80 = {
	.name = "sm_80", .lowers = true, .warp = 32, .group = 1, .frag = SUMS, .lines = LINES,
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.copy_align = 128, .flag = 8 },
	.matrix = matrix, .nmatrix = LEN(matrix),
};
