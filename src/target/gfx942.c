/* CDNA 3: waves of 64 threads, each with matrix products of its own (MFMA 16 x 16 and 32 x 32, CDNA 3 ISA). Printers
 * exchange the operands of an instruction, so that a thread has neighbouring columns of a row of the result, not
 * neighbouring rows of a column. */
#include "target/target.h"

#define TYPES_16 (1u << DT_BF16 | 1u << DT_F16)

/* Thread t has row t mod 16, and of each sixteen columns the four from 4 (t / 16) on. The first operand has this
 * layout, too. */
#define SUMS .rows = 16, .cols = 16, .row = { 1, 16, 1 }, .col = { 16, 4, 4 }, .halves = 1, .pair = 4, .deep = 16

/* The second operand's rows are columns of the result, of which each warp has all. */
static const struct frag_layout second = { SUMS, .every_warp = true };

/* Thread t has row t mod 32, and of each eight columns the four from 4 (t / 32) on. An instruction computes four such
 * groups of columns, and contracts one of each operand. */
#define SUMS_WIDE .rows = 32, .cols = 8, .row = { 1, 32, 1 }, .col = { 32, 2, 4 }, .halves = 1, .pair = 4, .deep = 8

static const struct frag_layout sums_wide = { SUMS_WIDE }, second_wide = { SUMS_WIDE, .every_warp = true };

/* Operands of 8 bits: a thread has 8 bytes of a row, as of other types, so eight columns. */
#define BYTES .rows = 16, .cols = 32, .row = { 1, 16, 1 }, .col = { 16, 4, 8 }, .halves = 1, .pair = 8, .deep = 32
#define BYTES_WIDE .rows = 32, .cols = 16, .row = { 1, 32, 1 }, .col = { 32, 2, 8 }, .halves = 1, .pair = 8, .deep = 16

static const struct frag_layout first_bytes = { BYTES }, second_bytes = { BYTES, .every_warp = true };
static const struct frag_layout first_bytes_wide = { BYTES_WIDE }, second_bytes_wide = { BYTES_WIDE, .every_warp = true };

/* The argument is how many passes, of four cycles each, an instruction takes (CDNA 3 ISA; LLVM's scheduling model of
 * gfx942 has the same numbers). Both forms multiply as many elements in a pass. The wide one takes half as many
 * instructions, and half as many registers for operands. A sum of it is 16 registers side by side. A thread has two files of
 * 256 registers, and arithmetic other than products reaches the first one alone. clang 22 puts sums there as long as they leave
 * it some, and when they do not, it moves many from one to the other in each iteration, and some to memory. Sums of four
 * registers it divides among both. */
#define MFMA .warps = 1, .a = FROM_REGISTERS, .b = FROM_REGISTERS, .transposed = true, .fetch_bytes = 16
#define NARROW(n) MFMA, .name = "mfma 16x16", .rows = 16, .cols_most = 16, .cols_step = 16, .k_bytes = 32, .passes = n
#define WIDE(n) MFMA, .name = "mfma 32x32", .rows = 32, .cols_most = 32, .cols_step = 32, .k_bytes = 16, \
	.sums = &sums_wide, .sums_most = 240, .passes = n
#define BY_BYTES(t) .types = t, .loose = t, .a_layout = &first_bytes, .b_layout = &second_bytes
#define BY_BYTES_WIDE(t) .types = t, .loose = t, .a_layout = &first_bytes_wide, .b_layout = &second_bytes_wide

/* The machine's floats of 8 bits are FNUZ. The bits of an e4m3 stand for half its value there, but for NaN and -0, so
 * they are used and results are multiplied by four. The machine's e5m2 has no infinities; so operands of e5m2 are
 * multiplied as f16, of which e5m2 is the upper half, by two instructions for each of 8 bits. The type of a product of
 * two types is that of its first operand. */
static const struct matrix_instruction matrix[] = {
	{ NARROW(4), .types = TYPES_16, .loose = TYPES_16, .b_layout = &second },
	{ WIDE(8), .types = TYPES_16, .loose = TYPES_16, .b_layout = &second_wide },
	{ NARROW(4), BY_BYTES(1u << DT_I8) },
	{ WIDE(8), BY_BYTES_WIDE(1u << DT_I8) },
	{ NARROW(4), BY_BYTES(1u << DT_E4M3), .fnuz = 1u << DT_E4M3, .as_f16 = 1u << DT_E5M2 },
	{ WIDE(8), BY_BYTES_WIDE(1u << DT_E4M3), .fnuz = 1u << DT_E4M3, .as_f16 = 1u << DT_E5M2 },
	{ NARROW(8), BY_BYTES(1u << DT_E5M2), .as_f16 = 1u << DT_E5M2 },
	{ WIDE(16), BY_BYTES_WIDE(1u << DT_E5M2), .as_f16 = 1u << DT_E5M2 },
};

/* Everything by flags, which are counters in LDS that a waiting wave reads again and again, where lanes cannot meet at the
 * barrier of all waves (s_barrier); a lane that has all waves synchronizes its threads by that. Of its own loads straight to
 * LDS, which complete in order, a wave has a count (vmcnt). */
static const struct completion completes[] = {
	{ SEU_COPY, true, SEEN_COUNTED, SEEN_FLAGGED, true },
	{ SEU_COPY, true, SEEN_FLAGGED, SEEN_FLAGGED, false },
	{ SEU_COPY, false, SEEN_DONE, SEEN_FLAGGED, false },
	{ SEU_MATRIX, false, SEEN_DONE, SEEN_FLAGGED, false },
	{ SEU_VECTOR, false, SEEN_DONE, SEEN_FLAGGED, false },
};

const struct target target_gfx942 = {
	.name = "gfx942", .lowers = true, .copied_most = 32768, .priorities = 3, .warp = 64, .group = 1, .frag = { SUMS },
	.lines = { .rows = 1, .cols = 128, .row = { 1, 1, 0 }, .col = { 1, 64, 2 }, .halves = 1, .pair = 2,
		.deep = 128 },
	.completes = completes, .ncompletes = LEN(completes),
	.shared = { .chunk = 16, .line = 128, .widest = 128, .narrowest = 32, .align = 1024, .begins_aligned = true,
		.copy_align = 128, .flag = 8, .polled = true },
	.hides_fetches = true, .copies_by_registers = true, .loads_by_offset = true, .dma_bytes = 4, .dma_most = 63,
	.matrix = matrix, .nmatrix = LEN(matrix),
};
