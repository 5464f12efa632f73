/* mma_sync.h - the instructions mma.sync.m16n8k8, k16 and k32 (PTX ISA), for the tables of several targets. */
#ifndef TARGET_MMA_SYNC_H
#define TARGET_MMA_SYNC_H

#include "target/target.h"

#define TYPES_16 (1u << DT_BF16 | 1u << DT_F16)
#define TYPES_8 (1u << DT_E4M3 | 1u << DT_E5M2)
#define INTEGERS_8 (1u << DT_I8 | 1u << DT_U8)

/* Layouts of operands for elements of which a word has `step`. An instruction contracts 32 bytes of each row of an
 * operand. Thread t has word t mod 4 of either half of them: of the second operand in row t / 4 (a column of the
 * result), of the first one in rows t / 4 and t / 4 + 8. For elements of 16 bits the first operand has the layout of
 * the sums. */
#define WORDS(step) .col = { 1, 4, (step) }, .cols = 4 * (step), .pair = (step), .deep = 8 * (step), .row = { 4, 8, 1 }
#define FIRST(step) { WORDS(step), .rows = 16, .halves = 2, .half = 8 }
#define SECOND(step) { WORDS(step), .rows = 8, .halves = 1, .every_warp = true }

static const struct frag_layout second = SECOND(2), first_8 = FIRST(4), second_8 = SECOND(4), first_32 = FIRST(1),
	second_32 = SECOND(1);

#define MMA .name = "mma.sync", .warps = 1, .rows = 16, .cols_most = 8, .cols_step = 8, .k_bytes = 32, \
	.a = FROM_REGISTERS, .b = FROM_REGISTERS, .ldmatrix = true
#define MMA_16 { MMA, .types = TYPES_16, .loose = TYPES_16, .b_layout = &second }
#define MMA_8(set) { MMA, .types = (set), .loose = (set), .a_layout = &first_8, .b_layout = &second_8 }
#define MMA_TF32 { MMA, .types = 1u << DT_TF32, .loose = 1u << DT_TF32, .a_layout = &first_32, .b_layout = &second_32 }
/* All of them: sm_89 and later machines multiply floats of 8 bits, too. */
#define MMA_SM_89 MMA_16, MMA_8(INTEGERS_8), MMA_TF32, MMA_8(TYPES_8)

#endif
