/* target.h - what the lowering must know about a machine, as data.
 *
 * A device (device.h) says what a machine costs, a target how it is programmed: how the threads of a warp share a
 * value, what its matrix instructions take, how shared memory must be laid out for them, how a lane finds that work is
 * complete. A printer (emit.h) writes for it and decides nothing. Each target is a file of this folder with one record,
 * which a device names by `arch`.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "device/device.h"

/* A number of thread t of a warp: t / div % mod * step. */
struct spread {
	int div, mod, step;
};

/* How a matrix in registers is spread over the threads of a lane. Its rows are divided into blocks, in which each warp
 * of the lane has `rows` consecutive rows, the next warp the following ones; its columns into groups of `cols`. In each
 * block and group a thread has elements of `halves` rows: row `row` of its warp's and the one `half` rows below; of
 * each row it has `pair` neighbouring columns from `col` on.
 *
 * `woven` groups may lie interwoven: then a thread's pairs of the first so many groups are neighbours, from `col` on, and so on
 * with the next ones. */
struct frag_layout {
	int rows, cols;
	struct spread row, col;
	int halves, half;
	int pair;
	int woven;			/* 0: groups follow each other */
	int deep;			/* a product contracts a multiple of so many columns */
	bool every_warp;		/* each warp has all rows, not blocks of its own */
	bool across_warps;		/* ... with columns of its own: `col` spreads them over all threads of the lane */
	/* The lane's warps are in so many parts, one behind the other. Each has all rows, and an equal range of the
	 * columns of every value. 0: they are one. */
	int parts;
	bool every_part;		/* of an operand, not a value: each part has all columns */
	int row_parts;			/* of a second operand that a lane in parts makes: each has an equal range of its rows. 0:
					 * all have all rows */
};

static inline bool spread_is(const struct spread *x, const struct spread *y)
{
	return x->div == y->div && x->mod == y->mod && x->step == y->step;
}

/* Is it the same layout? Those of operands are made for each product. */
static inline bool layout_is(const struct frag_layout *x, const struct frag_layout *y)
{
	return x == y || (x->rows == y->rows && x->cols == y->cols && spread_is(&x->row, &y->row) && spread_is(&x->col, &y->col) &&
		x->halves == y->halves && x->half == y->half && x->pair == y->pair && x->woven == y->woven && x->deep == y->deep &&
		x->every_warp == y->every_warp && x->across_warps == y->across_warps && x->parts == y->parts &&
		x->every_part == y->every_part && x->row_parts == y->row_parts);
}

/* The parts that divide a lane's columns; the warps of one that have rows of their own. */
static inline int layout_parts(const struct frag_layout *l)
{
	return l->parts > 1 && !l->every_part ? l->parts : 1;
}
static inline int layout_row_warps(const struct frag_layout *l, int warps)
{
	return l->every_warp ? 1 : l->parts > 1 ? warps / l->parts : warps;
}

/* Rows of a block, of all warps of a lane; columns of a group, of all its parts. */
static inline int layout_block_rows(const struct frag_layout *l, int warps)
{
	return l->rows * layout_row_warps(l, warps);
}
static inline int layout_group_cols(const struct frag_layout *l)
{
	return l->cols * layout_parts(l);
}

/* How a waiting lane finds that an sTask is complete: it is when its own lane goes on; by a count of the younger ones
 * of its lane that may be under way; by a flag in shared memory, on which its lane or its unit arrives; at a barrier of
 * all threads. */
enum seen_by { SEEN_DONE, SEEN_COUNTED, SEEN_FLAGGED, SEEN_BARRIER };

/* By its own lane, by others, of what runs on a unit of this kind. The first row holds that fits the unit. */
struct completion {
	enum seu_kind unit;
	bool async;
	enum seen_by own, others;
	bool ordered;			/* only of units whose work completes in order */
};

/* Where an operand may be. */
enum { FROM_REGISTERS = 1, FROM_SHARED = 2 };

/* A matrix instruction: `warps` warps make rows x cols of the result, spread as fragments are, of
 * k_bytes bytes of what is contracted. Operands in registers are fragments whose rows are their own
 * axis, and whose columns are contracted. */
struct matrix_instruction {
	const char *name;
	bool async;			/* the lane goes on before it is complete, and counts groups of such
					 * instructions */
	int warps;
	int rows;
	int cols_most, cols_step;	/* as many as that, and a multiple of this; */
	int cols_step_wide;		/* from twice as many columns as this on, a multiple of this. 0: of cols_step */
	int more_registers;		/* that the launch must give a thread in addition to those of sums and
					 * operands, or its compiler fails; 0: it never does */
	int k_bytes;
	bool sparse;			/* the first operand has 2:4 sparsity and is in shared memory: two of each four
					 * elements, whose indices the threads have in a register. k_bytes counts those
					 * two alone */
	uint32_t types;			/* of both operands: bit t of enum dtype */
	/* Sets like `types`. fnuz: the machine has these in another encoding (FNUZ: the bias of exponents is greater by
	 * one, 0x80 is NaN, there are no infinities), and a printer converts operands to it. as_f16: a printer converts
	 * operands to f16, which has all their values. */
	uint32_t fnuz, as_f16;
	uint32_t loose;			/* a set like `types`: operands of these may be in registers, and in shared
					 * memory either axis may be contiguous; of other types the contracted axis must
					 * be */
	int a, b;			/* where the operands may be: FROM_REGISTERS | FROM_SHARED */
	const struct frag_layout *a_layout, *b_layout;	/* in registers; NULL: the layout of values */
	/* The layout of its sums; NULL: the target's layout of values. A kernel uses only instructions whose sums have
	 * one layout, and all its values have that layout (lower.c). */
	const struct frag_layout *sums;
	int sums_most;			/* registers of a thread for all its sums, beyond which compilers move them to and fro
					 * where this is not the only form; 0: any number */
	bool transposed;		/* a printer exchanges its operands, so that the machine computes the transposed
					 * result */
	/* A thread reads so many contiguous bytes of an operand's row from shared memory at once, and uses them in
	 * several consecutive instructions. These then contract the elements in another order than memory has them, the
	 * same order for both operands. 0: it reads the elements of each instruction by themselves. */
	int fetch_bytes;
	int passes;			/* time on the matrix unit, in a unit of time that all instructions of the
					 * target share */
	bool ldmatrix;			/* a warp can read operands from shared memory in matrices of 8 rows of 16
					 * bytes, of which each thread gets a word: the layout of operands in
					 * registers */
};

/* How shared memory must lie for engines. */
struct shared_layout {
	int chunk;			/* bytes that stay together: a row's are exchanged by its number */
	int line;			/* bytes: chunks move within these, by the number of their line */
	int widest, narrowest;		/* bytes of a panel's row: powers of two between */
	int align;			/* of a slot: all patterns repeat after so many bytes */
	/* A kernel's shared memory begins at such an address. Else it is given as many bytes more, and aligns it */
	bool begins_aligned;
	/* most of a box for the copy engine, and dimensions; 0: there is no such engine */
	int box_rows, box_cols, box_rank;
	int copy_align;			/* bytes: where a box may begin that is part of a panel */
	int flag;			/* bytes of a barrier in shared memory */
	/* there are no mbarriers: a flag is a counter in shared memory, which a waiting warp reads again and again. So
	 * is the barrier of a lane's threads, unless the lane has all threads of the block, whose barrier it then
	 * uses */
	bool polled;
};

/* Is it the width of a panel's row? Chunks are exchanged then. */
static inline bool shared_has_swizzle(const struct shared_layout *l, int64_t bytes)
{
	return bytes >= l->narrowest && bytes <= l->widest && !(bytes & (bytes - 1));
}

/* Bytes that a kernel is given beyond what it uses, to align that. */
static inline int shared_slack(const struct shared_layout *l)
{
	return l->begins_aligned ? 0 : l->align;
}

/* Rows after which a swizzle repeats. */
static inline int shared_pattern_rows(const struct shared_layout *l)
{
	return l->align / l->line;
}

/* The registers that a lane can ask for when it begins, of a thread (setmaxnreg). */
struct granting {
	int least, most, step;		/* a multiple of `step` between these */
	int producer;			/* what a lane that does not compute gets if there are enough */
};

struct target {
	const char *name;		/* as a device's `arch` has it */
	bool lowers;			/* kernels are made for it: there is a printer */
	int priorities;			/* that a warp may raise its own to, from 1; 0: it has none */
	int warp;			/* threads of a warp */
	int group;			/* a lane takes a multiple of so many warps */
	int copied_most;		/* instructions of a thread in a kernel's copies of sTasks, as lower/text.c estimates
					 * them: of more the compiler may need longer than a minute */
	struct granting registers;	/* step 0: all lanes keep the registers that the launch gave them */
	struct frag_layout frag;	/* of values, and of products' sums unless the instruction says otherwise
					 * (`sums`) */
	struct frag_layout lines;	/* of values in kernels without products, whose rows are long: each warp has a
					 * row */
	const struct completion *completes;	/* a row for each kind of unit, async and not */
	int ncompletes;
	struct shared_layout shared;
	/* A printer hides from the compiler how the addresses of an operand in shared memory are computed, as it would
	 * compute them before a loop and keep each in a register. */
	bool hides_fetches;
	/* Its compiler forgets that a loop is not to be unrolled if the body ends with a loop that is: it merges the ends of
	 * both, and only the end says so. Where it knows the number of iterations it then unrolls it completely. */
	bool forgets_loops;
	/* A phase can be launched while the one before it runs; its kernel waits for the end of that (DO_PHASE_WAIT). */
	bool phases_overlap;
	/* What an asynchronous load to shared memory that its lane counts (SEEN_COUNTED) is made of: copies without registers.
	 * The threads of a warp copy so many bytes each, from anywhere, to contiguous bytes of shared memory. Zeros are
	 * written for what is not there. 0: there are no such copies. */
	int dma_bytes;
	int dma_most;		/* of a lane's copies that it can leave under way when it waits */
	bool loads_by_offset;		/* a load to registers takes the start of a tensor below 2 GiB and bytes behind it, and gives
					 * zeros where these are beyond: no branch */
	bool copies_by_registers;	/* so a plan can divide such a copy into a load to registers, and a write to shared memory */
	uint32_t pairs;			/* types of 16 bits of which an instruction multiplies two neighbours */
	bool transposes;		/* a warp's threads exchange the words that they have of 8 x 8 elements of 16 bits (movmatrix) */
	int adds_together;		/* f32 neighbours to which one instruction adds in memory; 0: one */
	const struct matrix_instruction *matrix;
	int nmatrix;
};

/* The target that a device's `arch` names; NULL: there is no record. */
const struct target *target_find(const struct vdevice *d);
/* The same, or the usual one if there is none: plans are counted by it for which no kernel is made, and the work of a
 * graph, which has no device. */
const struct target *target_of(const struct vdevice *d);
const struct target *target_usual(void);

/* How the work of a unit is seen to be complete, by its own lane or by others. */
enum seen_by target_seen(const struct target *t, const struct seu *unit, bool own);
/* Is the instruction for operands of the type, the first of them sparse or not, on a unit that is asynchronous or
 * not? */
static inline bool matrix_takes(const struct matrix_instruction *x, bool async, bool sparse, enum dtype type)
{
	return x->async == async && x->sparse == sparse && x->types >> type & 1;
}

/* The target's first instruction for them; NULL. */
const struct matrix_instruction *target_matrix(const struct target *t, bool async, bool sparse, enum dtype type);
/* Can it make so many columns? */
static inline bool matrix_has_width(const struct matrix_instruction *x, int64_t cols)
{
	return cols > 0 && cols <= x->cols_most && cols % x->cols_step == 0 &&
		(!x->cols_step_wide || cols < 2 * x->cols_step_wide || cols % x->cols_step_wide == 0);
}

/* Elements of a type that an instruction takes of what is contracted. */
static inline int matrix_depth(const struct matrix_instruction *x, enum dtype type)
{
	return x->k_bytes * 8 / dtype_bits(type);
}

/* Warps that a lane takes: a multiple of the group. */
static inline int target_warps(const struct target *t, int warps)
{
	return (warps + t->group - 1) / t->group * t->group;
}

/* Have its devices an engine that copies instead of threads? */
static inline bool target_has_copy_engine(const struct target *t)
{
	return t->shared.box_rank > 0;
}

/* What a barrier in shared memory is called. */
static inline const char *target_flag_name(const struct target *t)
{
	return t->shared.polled ? "flag" : "mbarrier";
}

/* Does t / div alone determine it, in a warp? */
static inline bool spread_is_top(const struct spread *s, const struct target *t)
{
	return s->div * s->mod == t->warp;
}

/* The bits in which the numbers differ of two threads that have columns of which `flips` are the bits that differ; the other
 * bits number elements of a thread. */
static inline int64_t spread_bits(const struct frag_layout *l, int64_t flips)
{
	return (flips & (l->cols - 1)) / l->pair * l->col.div;
}

/* n of 2^n; x is a power of two. */
static inline int log2_of(int x)
{
	int n = 0;

	while (x >> n > 1)
		n++;
	return n;
}

/* The records. */
extern const struct target target_sm_90a, target_mma_sync, target_sm_80, target_gfx942;

#endif
