/* Machines whose only matrix products are those of single warps, synchronous and with operands in registers (mma.sync):
 * sm_80, and a machine that has Hopper's copy engine and mbarriers. */
#include "target/mma_sync.h"

static const struct matrix_instruction matrix_80[] = { MMA_16, MMA_8(INTEGERS_8), MMA_TF32 };
static const struct matrix_instruction matrix[] = { MMA_SM_89 };

/* The layout of sums is that of wgmma. */
#define SUMS { .rows = 16, .cols = 8, .row = { 4, 8, 1 }, .col = { 1, 4, 2 }, .halves = 2, \
	.half = 8, .pair = 2, .deep = 16 }
#define LINES { .rows = 1, .cols = 64, .row = { 1, 1, 0 }, .col = { 1, 32, 2 }, .halves = 1, .pair = 2, \
	.deep = 64 }

static const struct completion completes[] = {
	{ SEU_COPY, true, SEEN_FLAGGED, SEEN_FLAGGED, false },
	{ SEU_COPY, false, SEEN_DONE, SEEN_FLAGGED, false },
	{ SEU_MATRIX, false, SEEN_DONE, SEEN_FLAGGED, false },
	{ SEU_VECTOR, true, SEEN_FLAGGED, SEEN_FLAGGED, false },
	{ SEU_VECTOR, false, SEEN_DONE, SEEN_FLAGGED, false },
};

const struct target target_mma_sync = {
	.name = "mma_sync", .lowers = true, .copied_most = 65536, .warp = 32, .group = 1, .frag = SUMS, .lines = LINES,
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.box_rows = 256, .box_cols = 256, .box_rank = 5, .copy_align = 128, .flag = 8 },
	.forgets_loops = true, .phases_overlap = true, .pairs = TYPES_16, .matrix = matrix, .nmatrix = LEN(matrix),
};

const struct target target_sm_80 = {
	.name = "sm_80", .lowers = true, .copied_most = 65536, .warp = 32, .group = 1, .frag = SUMS, .lines = LINES,
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.copy_align = 128, .flag = 8 },
	.forgets_loops = true, .pairs = TYPES_16, .matrix = matrix_80, .nmatrix = LEN(matrix_80),
};
