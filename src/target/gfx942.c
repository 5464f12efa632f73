/* CDNA 3, for checking and simulating plans: waves of 64 threads, each with matrix products of its own (MFMA 16 x
 * 16, CDNA 3 ISA). The two operands are exchanged, so that a thread has neighbouring columns of the result. */
#include "target/target.h"

#define TYPES_16 (1u << DT_BF16 | 1u << DT_F16)

static const struct matrix_instruction matrix[] = {
	{ .name = "mfma", .warps = 1, .rows = 16, .cols_most = 16, .cols_step = 16, .k_bytes = 32,
		.types = TYPES_16 | 1u << DT_E4M3 | 1u << DT_E5M2 | 1u << DT_I8,
		.loose = TYPES_16, .a = FROM_REGISTERS, .b = FROM_REGISTERS },
};

/* vmcnt and lgkmcnt count a wave's own; others meet it at a barrier. */
static const struct completion completes[] = {
	{ SEU_COPY, true, SEEN_COUNTED, SEEN_BARRIER },
	{ SEU_COPY, false, SEEN_DONE, SEEN_BARRIER },
	{ SEU_MATRIX, false, SEEN_DONE, SEEN_BARRIER },
	{ SEU_VECTOR, false, SEEN_DONE, SEEN_BARRIER },
};

const struct target target_gfx942 = {
	.name = "gfx942", .warp = 64, .group = 1,
	.frag = { .rows = 16, .cols = 16, .row = { 1, 16, 1 }, .col = { 16, 4, 4 }, .halves = 1,
		.pair = 4, .deep = 16 },
	.lines = { .rows = 1, .cols = 128, .row = { 1, 1, 0 }, .col = { 1, 64, 2 }, .halves = 1, .pair = 2,
		.deep = 128 },
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024,
		.copy_align = 128, .flag = 8 },
	.matrix = matrix, .nmatrix = LEN(matrix),
};
