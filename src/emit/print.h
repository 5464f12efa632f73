/* print.h - the body of a kernel as C text; what its files share.
 *
 * The body is plain C over the names that a target's prelude defines: flags, copies, matrix instructions, shuffles;
 * docs/internals/adding.md lists them. cuda_prelude.c says what they are on sm_90a, millrace_host.h of src/host what
 * they are on a CPU, so both targets run the same text. Each operation of the tree has one function that writes it.
 */
#ifndef EMIT_PRINT_H
#define EMIT_PRINT_H

#include "emit/emit.h"
#include "role/operands.h"

/* In a list of lines: those that follow are for one machine only, or for all again. */
#define ONLY_SM_90 "\1"
#define ONLY_SM_80 "\2"
#define FOR_ALL "\3"

/* op_sin and op_cos, for which compilers have only slow paths or rough ones; FMA: the name of a fused multiply-add. */
#define SINE_AND_COSINE(FMA) \
	"/* The nearest multiple n of a quarter of the circle is taken away in three parts, of 72 bits; then a series. " \
	"Up to 2^20. */\n", \
	"DEV float op_wave(float x, int quarters)\n", \
	"{\n", \
	"\tconst float n = floorf(x * 0.636619772f + 0.5f);\n", \
	"\tconst float r = " FMA "(n, 1.71512451e-15f, " FMA "(n, 4.37113883e-8f, " \
	FMA "(n, -1.57079637f, x))), s = r * r;\n", \
	"\tconst float y = r - r * s * (1.f / 6 - s * (1.f / 120 - s * (1.f / 5040 - s * (1.f / 362880))));\n", \
	"\tconst float z = 1.f - s * (0.5f - s * (1.f / 24 - s * (1.f / 720 - s * (1.f / 40320))));\n", \
	"\tconst int at = (int)n + quarters;\n", \
	"\tconst float wave = at & 1 ? z : y;\n", \
	"\treturn at & 2 ? -wave : wave;\n", \
	"}\n", \
	"DEV float op_sin(float x) { return op_wave(x, 0); }\n", \
	"DEV float op_cos(float x) { return op_wave(x, 1); }\n"

extern const char *const cuda_prelude[];	/* line by line, then NULL */
extern const char *const cuda_stamps[];		/* the same, of a traced kernel */
extern const char *const hip_stamps[];
extern const char *const cuda_cluster[];	/* ... of one whose blocks form clusters */
extern const char *const cuda_parts[];		/* ... of one whose blocks add up what each has */
extern const char *const cuda_additions[];	/* ... of one that adds to elements in memory */
extern const char *const cuda_taken[];		/* ... of one whose blocks take tiles by a counter */
extern const char *const cuda_fresh[];		/* ... of one with accumulators whose old content is of no use */
extern const char *const cuda_skips[];		/* ... of one whose warps compute only some columns */
extern const char *const cuda_recomputed[];	/* ... of one whose operations compute coordinates again */
extern const char *const cuda_vectors[];	/* ... of one with accesses of several words */
extern const char *const cuda_staged[];		/* ... of one whose loads leave words in registers */
extern const char *const cuda_transposes[];	/* ... of one that transposes matrices that a warp has */
extern const char *const cuda_rare[];		/* ... of one with functions that few kernels have */
extern const char *const cuda_nibbles[];	/* ... of one that makes elements of 4 bits */
extern const char *const cuda_matrices[];	/* ... of one that fetches operands in matrices */
extern const char *const cuda_pairs[];		/* ... of one that computes with pairs */
extern const char *const cuda_ordered_pairs[];
extern const char *const hip_pairs[];
extern const char *const hip_prelude[];		/* likewise of hip_prelude.c */
extern const char *const hip_additions[];
extern const char *const hip_staged[];
extern const char *const hip_dma[];		/* ... of one with copies to shared memory without registers */
extern const char *const hip_rare[];
extern const char *const hip_priority[];
extern const char *const hip_skips[];
extern const char *const hip_recomputed[];
extern const char *const hip_nibbles[];

/* A read of neighbours for all elements that a thread has of a group of columns: v0, v1, ... in the text. It is done
 * where all conditions around it in its expression hold for the first of them, as those that differ within a group are
 * of ends, behind which no further element is; NULL: always. */
struct read {
	const struct val *of;
	const struct num *when;
};

struct print {
	const struct role_program *r;
	const struct role *role;
	struct arena *a;
	struct buf *out;
	int indent;
	VEC(struct read) reads;		/* of the block at hand */
	const struct frag_layout *layout;	/* of a block with one of its own; NULL: that of values */
	const struct num *when;		/* all conditions around the value at hand in its expression; NULL: none */
	/* In it, what all elements of the group have from one address is read once. So it is where fields of 4
	 * bits are: most of what it does is to read. */
	bool shares_reads;
	bool fresh;			/* the text has FRESH_F or FRESH_U (printer.fresh) */
	bool skips;			/* warps compute only some columns (printer.skips) */
	bool recomputed;		/* the text computes coordinates again in operations (printer.recomputed) */
	bool vectors;			/* the text has accesses of 8 or 16 bytes, or bits of floats (printer.vectors) */
	bool staged;			/* the text loads words to registers (printer.staged) */
	bool dma;			/* the text copies to shared memory without registers (printer.dma) */
	bool transposes;		/* the text calls matrix_transpose (printer.transposes) */
	bool rare;			/* the text calls op_sin, op_cos or op_popcount (printer.rare) */
	bool nibbles;			/* the text makes elements of 4 bits (printer.nibbles) */
	bool matrices;			/* the text fetches operands in matrices (printer.matrices) */
	bool pairs;			/* the text computes with pairs (printer.pairs) */
	bool ordered_pairs;		/* ... which compilers must not move (printer.ordered_pairs) */
	bool parts;			/* blocks of a cluster exchange partial sums (printer.parts) */
	bool priority;			/* the text sets a priority (printer.priority) */
};

static inline int warp_threads(const struct print *c)
{
	return c->r->target->warp;
}

/* The layout of values, or of those in the block at hand. */
static inline const struct frag_layout *layout(const struct print *c)
{
	return c->layout ? c->layout : c->role->layout;
}

static inline int lane_threads(const struct print *c)
{
	return c->role->warps * warp_threads(c);
}

/* An operation in the second of merged lanes, whose numbers say by how much they grow from lane to lane; else o
 * itself. */
static inline const struct role_op *second_of(const struct role_op *o)
{
	return o->merged ? o->merged[1] : o;
}
static inline const struct role *second_role(const struct print *c)
{
	return c->role->merged ? c->role->merged[1] : c->role;
}

/* A number that is `first` in the first of merged lanes and `second` in the second. */
const char *by_lane(struct print *c, int64_t first, int64_t second);
/* Print that the lane's threads wait for each other. */
void put_lane_sync(struct print *c);
/* Number of the lane's named barrier. */
static inline const char *barrier(struct print *c)
{
	return by_lane(c, c->role->barrier, second_role(c)->barrier);
}

/* Append a line to the kernel. */
void put(struct print *c, const char *fmt, ...) PRINTF(2, 3);
/* C text of a number or a condition. */
const char *num(struct print *c, const struct num *x);
/* Must a condition be tested? NULL and 1 always hold. */
static inline bool is_tested(const struct num *when)
{
	return when && !num_is(when, 1);
}

/* ---- values (print_value.c) ------------------------------------------------------------ */

const char *register_type(enum dtype t);
/* What an array of registers holds, and its dimensions in a declaration. */
const char *frag_type(const struct frag *f);
/* Are the fragment's elements, of FRAG_FULL, bits of words? So many words has a block of rows. */
bool is_in_bits(const struct print *c, const struct frag *f);
int bits_block_words(const struct frag *f);
/* The word and the number of the bit that is the element at hand. */
const char *bits_word(struct print *c, const struct frag *f);
const char *bits_number(struct print *c, const struct frag *f);
const char *frag_dims(struct print *c, const struct frag *f);
/* A row or column of a thread, and its digit in that: C text of the number of a thread. */
const char *spread_digit(struct print *c, const struct spread *s);
const char *spread_text(struct print *c, const struct spread *s);
/* Does it have the first digit? */
const char *spread_is_first(struct print *c, const struct spread *s);
/* A loop over the exchanges o of a butterfly: in each a thread joins its value with that of a thread at a distance that
 * doubles, until all threads of the spread have all values; and the distance. */
const char *each_exchange(struct print *c, const struct spread *s);
const char *spread_mask(struct print *c, const struct spread *s);
/* Declare row0 and col0, the first row and column that a thread has of a fragment with this layout. */
/* The first row of the thread's warp among those of its part of the lane; NULL: 0, as every warp has all of them. */
const char *warp_row_text(struct print *c, const struct frag_layout *l);
void put_coordinates(struct print *c, const struct frag_layout *l);
/* Declare the number of the thread in its lane, from C text of that in its block, and these. known: the compiler may know
 * that the number is not negative. */
void put_thread(struct print *c, const char *number, bool known, const struct frag_layout *l);
/* Name with its version. */
const char *frag_name(struct print *c, struct frag_at at);
/* Do a thread's registers number rows, or columns? */
static inline bool has_rows(const struct frag *f)
{
	return f->kind == FRAG_FULL || f->kind == FRAG_ROW;
}
static inline bool has_cols(const struct frag *f)
{
	return f->kind == FRAG_FULL || f->kind == FRAG_COL;
}
/* Loops over parts of a fragment, each with a space at its end; b: blocks (rb), j: groups of columns, h: halves, e: the
 * elements of a pair. Then loops over all of it, and the index of the element at hand, and of its word. */
const char *each(struct print *c, const struct frag *f, const char *loops);
const char *frag_loops(struct print *c, const struct frag *f);
const char *frag_element(struct print *c, const struct frag *f);
const char *frag_word(struct print *c, const struct frag *f, const char *group);
/* The bits of the element at hand of a packed fragment; the loop over the words of a group of columns, and the head of
 * its body, in which e is the first element of a word. */
const char *half_at(struct print *c, struct frag_at at);
const char *each_word(struct print *c, const struct frag *f);
const char *value(struct print *c, const struct val *v);
/* ... of the element at hand and the next, as a word of two of the type (DO_PACK, pairs; ordered). */
const char *pair_text(struct print *c, enum dtype type, const struct val *v, bool ordered);
/* Notes which neighbours values read together, and returns whether there are any. Then put_reads prints these reads, in
 * a block in which the loop over `e` follows, and in which values take them from there; end_reads behind it. */
bool begin_reads(struct print *c, const struct val *v);
/* If a block has several values: for each of them, before begin_reads. */
void note_nibbles(struct print *c, const struct val *v);
void put_reads(struct print *c, const char *indent);
/* ... and those for several groups of columns, of which j is the first; then g is the number of the group at hand. `rounds`: for
 * several rounds of these groups, or for one. */
void put_wide_reads(struct print *c, const char *indent, bool rounds);
void end_reads(struct print *c);
/* C text that combines two values as a reduction or scan does. */
const char *joined(struct print *c, enum op op, enum dtype t, const char *x, const char *y);
/* The C type of what memory holds of an element, and conversions between that and a register. */
const char *bits_type(enum dtype t);
const char *shared_type(enum dtype t);
const char *to_bits(struct print *c, enum dtype t, const char *x);
const char *shared_get(struct print *c, enum dtype t, const char *address);
const char *shared_put(struct print *c, enum dtype t, const char *address, const char *x);

/* ---- operations ------------------------------------------------------------------------ */

void print_body(struct print *c, const struct role_body *b);	/* print_region.c */
/* Address of the barrier of instance n of the flag that the operation names. */
const char *flag_barrier(struct print *c, const struct role_op *o, const char *n);
/* `if` of a condition, and a space; "" if it always holds. */
const char *guard_text(struct print *c, const struct num *when);
/* A loop over the panels of a batch, and a space; "" if it is one. */
const char *each_panel(struct print *c, int panels);
/* Those of print_sync.c, print_parts.c, print_move.c, print_boxes.c, print_fetch.c, print_math.c and print_stamp.c. */
void print_sync(struct print *c, const struct role_op *o);
void print_parts(struct print *c, const struct role_op *o);
void print_move(struct print *c, const struct role_op *o);
void print_boxes(struct print *c, const struct role_op *o);
void print_fetch(struct print *c, const struct role_op *o);
void print_math(struct print *c, const struct role_op *o);
void print_stamp(struct print *c, const struct role_op *o);
void print_block_stamp(struct print *c);
const char *product_name(struct arena *a, const struct product_form *f);

#endif
