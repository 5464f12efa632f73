/* role.h - role programs: what each lane of an EU does, as one tree of operations.
 *
 * lower makes a role program from each phase of a plan. What the tree does not say does not happen: verify proves it,
 * sim prices it and emit prints it, from the same operations. Regions are operations that hold bodies, which are lists
 * of operations: the tile loop, loops, and the straight-line code of prologues and epilogues. Bounds, sTask
 * instances, slots and addresses are expressions (num.h) over counters, each of which is declared once.
 *
 * An operation names the sTask that it belongs to and, if it synchronises, the wait of the plan that it serves. An
 * operation on data names what it *touches*: slots of rings, versions of fragments, staging of stores. ops.def has a
 * row for each operation, with everything that holds for all operations of that kind.
 */
#ifndef ROLE_ROLE_H
#define ROLE_ROLE_H

#include "base/buf.h"
#include "role/value.h"
#include "target/target.h"
#include "tile/raster.h"

enum role_do {
#define OP(id, name, group, play, cost, traits, text, operands) DO_##id,
#include "role/ops.def"
#undef OP
	DO_COUNT
};

/* The columns of ops.def, which explains their values. */
enum role_group { OPS_REGION, OPS_CONTROL, OPS_SYNC, OPS_MOVE, OPS_MATH, OPS_STAMP };
enum role_play { PLAY_NONE, PLAY_TOUCHES, PLAY_OWN };
enum role_cost { COST_LANE, COST_STAGED, COST_UNIT, COST_ISSUE, COST_COMPILER, COST_OVERHEAD, COST_TRACE };
enum role_trait { TRAIT_HIDDEN = 1, TRAIT_ELEMENTWISE = 2 };

struct role_operand;			/* operands.h */

struct role_op_info {
	const char *name;
	enum role_group group;
	enum role_play play;
	enum role_cost cost;
	int traits;			/* bits of enum role_trait */
	const char *text;		/* of its operands in a dump; NULL: dump.c has a case */
	const struct role_operand *operands;	/* up to OPERAND_END */
};
extern const struct role_op_info role_op_info[DO_COUNT];

/* Does it hold bodies, u.region? */
static inline bool role_is_region(enum role_do what)
{
	return role_op_info[what].group == OPS_REGION;
}

/* May it have touches? */
static inline bool role_may_touch(enum role_do what)
{
	return what == DO_EACH || role_op_info[what].group == OPS_MOVE || role_op_info[what].group == OPS_MATH;
}

/* Which part of a pipelined loop a region is. */
enum role_section {
	SECTION_NONE,
	SECTION_LOOP,			/* LOOP: all iterations of a pipelined loop, before it is peeled */
	SECTION_STEADY,			/* LOOP: its steady state */
	SECTION_EPILOGUE,		/* IF: the steady state ends here; what follows is the epilogue */
	SECTION_TRIPS,			/* IF: for so many iterations, or at least so many */
	SECTION_SKIP,			/* IF: a tile of another replica, which the lane passes over */
	SECTION_REACHED,		/* IF: something of the tile is inside of the tensor that it is stored to */
	SECTION_LENGTH,			/* IF: the length of the loop ends within the tile; else it is complete */
};

struct point;				/* of lowering: lower/pass/pass.h */
struct role_op;
struct role_body {
	VEC(struct role_op *) v;
};

/* What an operation reads or writes that other operations do, too. */
enum touch_how { TOUCH_READ, TOUCH_WRITE };
enum touch_what { TOUCH_SLOT, TOUCH_FRAG, TOUCH_STAGING };

struct touch {
	enum touch_how how;
	enum touch_what what;
	int of;				/* SLOT, FRAG: buffer of the graph; STAGING: its number */
	int version;			/* FRAG: version; STAGING: number of batches. A SLOT is the one that
					 * the last DO_SLOT of the ring has chosen */
	bool initial;			/* WRITE: an initial value of no instance; READ: it may be one */
	bool own;			/* READ: of what the same instance of the sTask has written */
	bool sums;			/* WRITE: by a product that adds to the old value */
};

/* A counter and the value that it gets, or by which it grows. */
struct role_let {
	enum var var;
	int of;
	const struct num *to;
};

/* The form of one matrix instruction: d += a b, by the threads of its warps. d is as high as the instruction
 * says and `cols` wide; `depth` elements of the contracted axis are contracted. The words of d, and of operands in
 * registers, are spread over threads as the instruction says (struct frag_layout). */
struct product_form {
	const struct matrix_instruction *by;
	bool sparse;			/* of a, two of each four elements are there; `depth` counts all four. `pairs` has their
					 * indices (DO_PAIRS) */
	bool registers, b_registers;	/* a, b are words of each thread; else descriptors, as the PTX ISA
					 * has them for wgmma, of swizzled shared memory */
	bool a_rows, b_rows;		/* in memory the contracted axis goes along rows, not columns */
	int cols, depth;
	enum dtype a_type, b_type;
};

/* An operand in shared memory. The instruction at (rb, cb, ks) reads from `from` + `by`. */
struct matrix_operand {
	uint64_t bits;			/* of the descriptor, without the address */
	const struct num *from;		/* address; the same for all rb, cb, ks. NULL: it is in registers */
	const struct num *by;		/* bytes, a multiple of 16 */
};

/* The index of an element in one dimension of a tensor. */
struct role_index {
	const struct num *at;
	const struct val *value;	/* is added to it; NULL: nothing */
	int64_t size;			/* of the dimension */
	int axis;			/* ... whose size is known at launch, `size` at most; NONE */
};

/* A box that the copy engine moves. */
struct role_box {
	const struct num *when;		/* NULL: always */
	const struct num *to;		/* its address in shared memory, for stores too */
	const struct num *corner[RANK_MAX];	/* its first index; innermost dimension first */
	const struct val *value[RANK_MAX];	/* LOAD: is added to it; NULL: nothing */
};

/* One step of an element-wise loop. */
struct role_step {
	int node;			/* of the program */
	const struct val *value;
	const struct frag *to;		/* NULL: only later steps use it (VAL_NODE) */
};

/* How elements come from shared memory to the registers of an operand: one by one; a word at once, from the address of
 * its first element; a warp together, four matrices of 8 x 8 at once, of which the threads give the addresses of eight
 * contiguous elements each: of columns of the operand, or of rows. */
enum fetch_by { FETCH_ELEMENTS, FETCH_WORDS, FETCH_MATRICES, FETCH_MATRICES_ACROSS };
enum { MATRIX_ROWS = 8 };		/* and columns */

/* One operation. Conditions (`when`, `inside`) that are NULL always hold. */
struct role_op {
	enum role_do what;
	int task;			/* the sTask that it belongs to; NONE */
	int wait;			/* the wait that it serves, of the kernel's plan; NONE */
	const char *why;		/* its reason, for a dump; NULL */
	const struct point *point;	/* while it is lowered; NULL */
	const struct role_op *const *merged;	/* in a role of several lanes: what it is in each, then NULL; NULL */
	VEC(struct touch) touches;
	union {
		struct {		/* BLOCK, TASK, TILES, LOOP, EACH, IF */
			struct role_body body;
			struct role_body other;		/* IF: the else branch; empty in all others */
			enum role_section section;
			const char *note;		/* BLOCK, IF: a comment; NULL */
			/* BLOCK: all fragments in it lie so, and threads have their coordinates in them; NULL: as around it */
			const struct frag_layout *layout;
			const struct num *when;		/* IF */
			/* LOOP: for (var = from; var < end; var += step). EACH, which is unrolled: var
			 * from 0 to step - 1. TASK: `of` is the loop of the sTask */
			enum var var;
			int of;
			const struct num *from;		/* NULL: the counter is declared before */
			const struct num *end;		/* NULL: the loop ends with a BREAK */
			int step;
			/* LOOP: it also ends where run_while does not hold, or run_until does; NULL: they make
			 * no difference */
			const struct num *run_while, *run_until;
			/* LOOP: compilers must not know when these hold. TILES: nor keep the first and the last tile's
			 * number in registers: they are read again */
			bool hidden;
			/* TILES: blocks take them by a counter; this lane asks for them */
			bool taken, asks;
			/* LOOP: in iterations where this holds no element fails a condition that the program
			 * or the end of an axis makes (`unmasked`), or only none about ends (`interior`); NULL:
			 * there are no such iterations that pass/specialize.c would copy the loop for */
			const struct num *unmasked, *interior;
			/* TASK */
			const struct num *iteration;	/* of its loop, or the tile; NULL: the tile at hand */
			const struct num *seq;		/* sequence number of the instance */
		} region;
		struct {		/* AT (only the counter), LET, SET, ADVANCE (adds) */
			VEC(struct role_let) v;
			bool changes;			/* LET: the counters may be set later */
			bool hidden;			/* LET: compilers must not know the values */
			const char *note;
		} let;
		struct {		/* OPAQUE */
			bool unmasked;			/* compilers must not know how large the thread's number can be */
			int again;			/* ptxas, too, must not find it like others of the lane, which
							 * have other numbers; 0: it may */
		} opaque;
		struct {		/* LOOP_END: the iterations of a loop are over */
			int loop;
			int trips;			/* how many there were, modulo the unrolling */
			bool exact;			/* just so many */
		} loop_end;
		struct {		/* REGISTERS */
			int n;				/* of a thread */
			bool more;			/* than it has so far */
		} registers;
		struct {		/* LANE, LEAVE */
			int warp;			/* first warp of the lane; LEAVE: first warp that ends */
			bool stores;			/* LANE: a thread of each warp issues stores */
		} lane;
		struct {		/* FRAGMENT, PIN, INIT */
			struct frag_at at;
			int words;			/* PIN: of a block of rows */
			bool fresh;			/* PIN: what they hold is read no more: they are written next */
			const struct val *value;	/* INIT */
		} frag;
		struct {		/* SLOT: chooses the slot at hand */
			int ring;
			const struct num *life;		/* its slot is this modulo the versions */
		} slot;
		struct {		/* WAIT, WAIT_LAST, ARRIVE, RELEASE */
			int flag;
			const struct num *n;		/* WAIT, ARRIVE: the instance; none if negative.
							 * WAIT_LAST: how many instances there are; it waits
							 * for the last `depth`. RELEASE: it arrives for all
							 * before this one that it has not arrived for yet */
			const struct num *when;		/* WAIT, ARRIVE */
			bool once;			/* WAIT: not for instances that VAR_SEEN counts */
		} flag;
		int count;		/* GROUPS_WAIT: groups of products that may be under way. COPIES_WAIT: the thread's copies */
		struct {		/* STORES_WAIT, STORES_COMMIT */
			bool elected;			/* by one thread of each warp; else one of the lane */
			int first, other;		/* WAIT: groups that may be unread, in ROUND 0 and later */
		} stores;
		struct {		/* LOAD_BOXES, STORE_BOXES */
			int map;			/* of the program's maps */
			int flag;			/* LOAD: where the bytes are counted */
			const struct num *n;		/* LOAD: instance of the flag */
			int64_t bytes;			/* LOAD: that the flag expects of this block */
			/* LOAD: if not 0, boxes are functions of VAR_ROW0, of which there are so many. All threads of the
			 * lane copy, each the boxes of its rows, and each warp arrives with the bytes of its own */
			int64_t rows;
			int ring;			/* of the slot; NONE: a staging */
			int outbox;			/* STORE: number of the staging */
			bool multicast;			/* LOAD: to all blocks of the cluster */
			const struct num *key;		/* LOAD: says which bytes these are, and is not 0. They are left out if the
							 * slot's word is the key, which it is afterwards; NULL: there are no words */
			bool once;			/* LOAD: these bytes are not read again */
			int panels;			/* STORE: boxes of the batch, VAR_PANEL from 0 */
			bool elected;			/* STORE: by one thread of each warp; else one of the lane */
			bool adds;			/* STORE: to the elements of the tensor */
			VEC(struct role_box) boxes;	/* STORE: one, a function of VAR_PANEL */
		} boxes;
		/* LOAD_THREADS, STORE_THREADS, STORE_RING: without the copy engine. LOAD_WORDS and PUT_WORDS are the halves of
		 * a LOAD_THREADS: to registers, and to shared memory from there */
		struct {
			int tensor, rank;
			struct role_index index[RANK_MAX];	/* of the element at hand */
			const struct num *inside;	/* LOAD: zero where not; STORE: nothing */
			enum dtype type;		/* of the tensor */
			struct frag_at from;		/* STORE_THREADS */
			struct frag_at staged;		/* LOAD_WORDS, PUT_WORDS */
			bool by_offset;			/* LOAD_WORDS: from the tensor's start and bytes behind it */
			const struct val *value;	/* STORE: the converted element; NULL: as it is there */
			bool adds;			/* STORE: to the element of the tensor */
			int width;			/* STORE_THREADS: elements of one access */
			bool quads;			/* ... for which the threads of a quad exchange theirs, */
			bool swaps;			/* ... or two threads the halves of theirs */
			int64_t elements, cols;		/* of the ring's slot: all, and of a row */
			bool down;			/* STORE_RING: neighbouring threads have neighbours of a column, as these
							 * are contiguous in global memory. STORE_THREADS: each thread has
							 * eight of a column, after those of the warp have exchanged theirs */
			int run;			/* LOAD: neighbours in one access, 4, 8 or 16 bytes; or 1 */
			bool shifted;			/* LOAD: accesses of 16 bytes that need not be aligned in
							 * global memory */
			int in_flight;			/* ... of which a thread begins so many at once */
			/* LOAD: a thread goes on by `rows` rows, which are so many bytes in the slot and
			 * elements in global memory; rows 0: every access computes its addresses */
			struct role_stride {
				int64_t rows, to, from;
			} stride;
			/* LOAD: by copies without registers, `run` elements each. Those of a warp fill contiguous bytes, so
			 * the thread's number says which bytes from `to` on it fills. These are rows of panels (struct ring,
			 * whose fields the others are), where a swizzle has put some column of the row. The lane waits for
			 * them by a count (COPIES_WAIT) */
			bool dma;
			const struct num *to;
			int64_t first_row, panel_cols, panel_bytes;
			int swizzle;
			bool arrives;			/* LOAD: the thread's copies arrive at the flag; else the
							 * lane waits for them */
			int flag;			/* LOAD; NONE: it does not arrive */
			const struct num *n;		/* instance of the flag */
			const struct num *address;	/* of the element at hand in the slot */
			int64_t bytes;			/* of a tile, in global memory */
		} move;
		struct {		/* PUT: elements of a fragment to shared memory */
			const struct frag *over;
			const struct num *when, *address;
			const struct val *value;	/* NULL: the element of `from` */
			enum dtype type;		/* in memory */
			bool pairs;			/* two columns at once, as one word */
			int together;			/* `value`: neighbours of 32 bits that are written at once; else 1 */
			struct frag_at from;
			const struct num *inside;	/* zero where not */
		} put;
		struct {		/* PUT_PANELS: a batch of swizzled panels of a warp's rows to its staging */
			struct frag_at from;
			int batch;			/* panels */
			const struct num *to;		/* address of the batch */
			int64_t panel_bytes, panel_cols;
			int swizzle;			/* bytes of a row of a panel */
			const struct num *block, *column;	/* of a panel in the fragment */
			enum dtype type;		/* in memory */
		} panels;
		/* PUT_PARTS: of a partial sum, what other blocks of the cluster add up, to their shared memory. SUM_PARTS: a copy
		 * of a partial sum, in which the block's share of the elements is the sum over all blocks, in the order of their
		 * numbers. A chunk is what a thread has of a group of columns in a block of rows; block r of the cluster has
		 * chunks r * chunks to (r + 1) * chunks - 1, of those that there are. */
		struct {
			struct frag_at from, to;
			int staging;
			int chunks;
		} parts;
		struct {		/* FILL: all of a slot with one value */
			int ring;
			int64_t elements;
			const struct num *address;	/* of the element at hand */
			const struct val *value;
			enum dtype type;		/* in memory */
		} fill;
		struct {		/* FETCH: a fragment from shared memory, without conversion */
			struct frag_at to;
			const struct num *address;	/* of the element at hand */
			const struct num *inside;	/* zero where not */
			enum fetch_by by;
			int groups;			/* WORDS: of columns that are fetched by one access; 0: one */
			int patterns;			/* addresses of a thread that differ by no constants */
			/* MATRICES: an address to read from instead of one that is not inside; the part of `inside` that
			 * concerns contracted axes, as others make rows of the result that nobody uses */
			const struct num *slot, *contracted;
		} fetch;
		struct {		/* PAIRS: a word for each block of rows and step, with indices of elements of four */
			int blocks, steps;
			int parts;			/* of the word: 2, from rows VAR_H, the first one lowest; or 1, where
							 * VAR_H is 0 in even threads, 1 in others */
			bool bytes;			/* VAR_E of each part, one by one; else at once */
			const struct num *address;
			const struct num *inside;	/* zero where not */
		} pairs;
		struct {		/* PRODUCT: by matrix instructions */
			struct product_form form;
			struct frag_at sum, a, b;	/* a, b: if the form has them in registers */
			int steps;			/* instructions along the contracted axis */
			int col_steps;			/* instructions along the columns of the sum, */
			int first;			/* which begin at this column */
			struct matrix_operand a_at, b_at;	/* if the form has them in memory */
			const struct num *adds;		/* 0: the sum begins at zero */
		} product;
		struct {		/* SUM_PRODUCT: by threads, added to the sum */
			struct frag_at sum;
			int64_t depth;			/* elements along the contracted axis, VAR_KS from 0 */
			const struct num *inside;	/* only those */
			const struct val *a, *b;	/* at the row, the column of the sum's element at hand */
		} sum_product;
		struct {		/* MAP: an element-wise loop */
			const struct frag *over;
			VEC(struct role_step) steps;
			struct frag_at to;		/* result of the only step; frag NULL: steps say where */
			int apart;			/* groups of columns between which the warp is synchronised, which compilers
							 * move nothing across that reads shared memory; 0: it is not */
			/* Of chunks of so many groups of columns only those are computed in which, for a thread of the warp,
			 * `some` holds, of the first group. The last step is a `where`, whose constant the others get. NULL:
			 * all are */
			const struct num *some;
			int chunk;
		} map;
		struct {		/* PACK (to pairs of a 16-bit type), KEEP (copies a fragment) */
			struct frag_at to;
			const struct frag *from;	/* KEEP */
			const struct val *value;	/* PACK */
			const struct num *inside;	/* zero where not */
			enum dtype type;
			int groups;			/* PACK: of columns for which values are read at once; 0: one */
			int rounds;			/* PACK: so many times as many for some of them; 0: none */
			bool pairs;			/* PACK: two elements are computed at once, in the type of the result */
			bool ordered;			/* PACK, pairs: where the result goes, a product under way may read until the
							 * wait before it, so compilers must not move it */
			bool short_nans;		/* PACK, to bf16: the lower half of a NaN is zero, so that rounding keeps it */
		} pack;
		struct {		/* REDUCE, SCAN; REDUCE_SHARED: a thread goes over a line in shared memory for each
					 * element of `to` that it holds, VAR_ALONG from 0 to length - 1 */
			const struct frag *over, *to;	/* the same row vector: joins the parts of threads */
			bool partial;			/* REDUCE: each thread joins only what it has */
			enum op op;
			const struct val *value;
			const struct val *zero;		/* the neutral element of op */
			bool along_rows;
			int scratch;			/* offset in shared memory, where warps join their parts */
			const struct num *length;	/* REDUCE_SHARED */
		} reduce;
		struct {		/* LINES: reductions or scans of lines in shared memory. One thread does one of
					 * the n lines, number VAR_EACH: VAR_ALONG from 0 to length - 1 */
			int64_t n;
			const struct num *when, *length;
			enum op op;
			enum dtype type, kept;		/* of the result; of it in memory */
			const struct val *value, *zero;
			bool running;			/* a scan: it stores each partial result */
			const struct num *to;		/* address of the result */
		} lines;
		struct {		/* STAMP */
			int at;				/* offset of its first word among those of the tile: bytes */
			int step;			/* bytes from an iteration's to the next one's */
			const struct num *iteration, *when;
		} stamp;
		struct {		/* WATCH, WATCH_ENDS: see lower/stamps.h */
			int flag, warp;
			int64_t ended;			/* offset of the word in shared memory that ends it */
			int64_t at, keep;		/* first of the block's words, how many */
		} watch;
	} u;
};

/* ---- what the lanes of a block share --------------------------------------------------------- */

struct role_ring {
	const char *name;		/* of its buffer */
	int buffer;
	int64_t offset, slot_bytes;	/* in the block's shared memory: of slot 0; of each */
	int versions;
	bool shared;			/* the blocks of a cluster load it together */
	bool in_slices;			/* several sTasks fill a slot: who reads a slice may not read the others */
	int64_t words;			/* in shared memory, behind the slots: 4 bytes for each of them, 0 at first, that say what has
					 * been loaded to it; 0: there are none */
};

/* A ring of mbarriers: instance n completes a phase of barrier n mod depth (lower/kernel.h). */
struct role_flag {
	const char *name;		/* "mma.0 complete" */
	int task;
	bool issued;			/* phases complete when instances are issued, else when they are complete */
	bool runs;			/* phases are runs of loop `run_of`, not instances */
	int loop;			/* each of its iterations has a phase; NONE: each tile */
	int run_of;			/* if `runs`: a loop inside of `loop` */
	bool early;			/* if `runs`: a run ends with its last instance, not with the loop */
	int depth, arrivals;		/* barriers; arrivals in a phase */
	bool all;			/* each arrival is at the flags of all blocks of the cluster */
	bool parts;			/* ... and about what others write to the block's shared memory, or have read there */
	bool copies;			/* copies by threads arrive when they are complete */
	bool each_warp;			/* each warp announces the bytes of the copies that it issues to the engine */
	int64_t bytes;			/* that the copy engine brings in a phase; 0: none */
	int64_t offset;			/* in shared memory, 8 bytes a barrier */
};

/* Shared memory through which registers are stored. A warp has `batches` batches, one after the other. */
struct role_staging {
	int task;
	int64_t offset;			/* of the first warp's */
	int64_t bytes;			/* of a batch; 0: the store needs none */
	int warps, batches;
};

/* How the copy engine sees a tensor: dimensions innermost first. */
struct role_map {
	int tensor, task;		/* the first sTask that uses it */
	int rank;
	int64_t dim[RANK_MAX], box[RANK_MAX];	/* elements */
	int64_t stride[RANK_MAX];	/* bytes from one element of the dimension to the next */
	/* bit i: of the product of the sizes of the tensor's dimensions i that dim or stride is, which may be known at
	 * launch only, times the factor; dim and stride are for the largest sizes */
	unsigned dim_of[RANK_MAX], stride_of[RANK_MAX];
	int64_t dim_factor[RANK_MAX], stride_factor[RANK_MAX];	/* of the stride: without an element's bytes */
	int swizzle;			/* bytes */
};

struct role_tensor {
	const char *name;
	enum dtype type;
	bool input, added;		/* added: elements are added to in memory */
	bool by_address;		/* memory holds an address for each index of the first dimension */
};

/* How a loop, or the tile loop, was pipelined. */
struct role_region {
	int prologue;			/* iterations */
	int unroll;			/* iterations of the steady state that the text has */
};

/* What one lane does, or one of its replicas; or what several lanes do that differ by numbers alone (pass/merge.c). */
struct role {
	const char *name;		/* of the lane */
	int lane;			/* of the plan */
	int replica, replicas;		/* of `replicas` consecutive tiles it takes number `replica` */
	int warps, first_warp;
	int priority;			/* of its warps while they multiply; 0: that of all others */
	const struct frag_layout *layout;	/* of its values */
	int barrier;			/* named barrier at which its threads meet */
	int nmerged;			/* lanes that it is for, which NUM_OF_LANE distinguishes; 1: one */
	const struct role *const *merged;	/* those lanes; NULL: one */
	struct role_body body;
	VEC(struct role_region) regions;	/* the tile loop, then all its loops */
	int words;			/* the most registers that its values take at a time (live.h) */
	int words_in;			/* the sTask in which they take as many; NONE: between sTasks */
	int words_apart;		/* the same if operands of products under way are copies of the values they are
					 * made of */
	VEC(const struct frag *) bits;	/* of truth values, which are bits of words, 32 each */
	/* of a traced kernel, see lower/stamps.h */
	int64_t stamps;			/* offset in shared memory of the stamps of tiles held there */
	int64_t stamps_out;		/* first word of the lane among those of the block in global memory */
	int64_t tile_words;		/* of one tile */
	int64_t tiles_held, tiles_out;	/* how many in shared memory; in global memory */
};

/* LOAD_THREADS without a stride: most accesses of a thread that are unrolled, so that it computes their addresses,
 * and reads the indices in them, side by side. More would not fit in the registers of a lane that only loads. */
enum { ROLE_UNROLLED_ACCESSES = 8 };

/* How many copies each thread of the lane has of a load without registers. */
static inline int64_t role_dma_copies(const struct role_op *o, int64_t threads)
{
	return o->u.move.elements / o->u.move.run / threads;
}

/* Are all accesses of a thread unrolled? If each thread has as many. */
static inline bool role_unrolls_accesses(const struct role_op *o, int64_t threads)
{
	int64_t accesses = o->u.move.elements / o->u.move.run;

	return accesses % threads == 0 && accesses / threads <= ROLE_UNROLLED_ACCESSES;
}

/* Lines of REDUCE_SHARED of so many elements are unrolled. */
enum { REDUCE_SHARED_UNROLLED = 16 };

/* Do the lane's warps combine, through shared memory, what each of them has reduced or scanned? */
static inline bool role_joins_warps(const struct role_op *o, int warps)
{
	const struct frag_layout *l = o->u.reduce.over->layout;

	if (warps == 1 || o->u.reduce.partial)
		return false;
	return o->u.reduce.along_rows ? layout_row_warps(l, warps) > 1 : l->across_warps || layout_parts(l) > 1;
}

/* Does the operation synchronize the lane's threads, once or several times? */
static inline bool role_syncs_lane(const struct role_op *o, int warps)
{
	return o->what == DO_LANE_SYNC || ((o->what == DO_REDUCE || o->what == DO_SCAN) && role_joins_warps(o, warps));
}

/* The least power of two that is no less than the number of the lane's threads; does the lane begin at a multiple of
 * it? */
static inline int role_thread_span(const struct role *l, const struct target *t)
{
	int span = 1;

	while (span < l->warps * t->warp)
		span *= 2;
	return span;
}
static inline bool role_is_aligned(const struct role *l, const struct target *t)
{
	return l->first_warp * t->warp % role_thread_span(l, t) == 0;
}

/* A kernel: one phase of a program. */
/* Where an sTask of a phase whose lanes meet stands in its lane's tile: before the loop, in it, or behind it. */
enum loop_part { PART_BEFORE, PART_LOOP, PART_BEHIND };

/* How many times a lane has met the block's other lanes when it comes to instances of an entry of the plan (sync/meetings.c). They
 * are counted over all tiles of the EU, alike in all lanes: before an instance of tile t there are
 *
 *	tile * t + interval * i + of[entry].offset
 *
 * meetings, where i is the iteration of the loop, counted over all tiles: of the instance, or, of an sTask before the loop,
 * the first one in its tile, or, of an sTask behind it, the first one in the next tile. */
struct role_meetings {
	int interval;			/* in an iteration of the loop; 0: lanes signal by flags */
	int tile;
	int loop;
	struct meeting_number {
		enum loop_part part;
		int offset;
		/* of a load whose lane goes on while it is under way: it must be complete before so many meetings more; 0:
		 * before the lane goes on; NONE: nothing waits for it */
		int within;
	} *of;				/* by entry of the plan */
};

/* Tiles that blocks take by a counter in memory (lower/sync/taken.c): the first `own` of a block are BLOCK, BLOCK + blocks and
 * so on; the numbers of all others go through a ring in shared memory. A number is the position in the order of tiles. */
struct role_taken {
	int lane;			/* the index of the role that asks, before roles are merged; NONE: blocks have their tiles
					 * from the start */
	int own, blocks;
	int64_t tiles;			/* of the phase */
	/* of the ring: barriers that show that a number is there, those that all warps have read it, then words */
	int slots, warps;
	int64_t offset;			/* in shared memory, 8 bytes a barrier */
};

struct role_program {
	const char *program, *phase, *device;	/* names */
	const struct target *target;
	int threads;			/* of a block */
	int cluster;			/* blocks of a cluster; 1: there are no clusters */
	bool ends_apart;		/* its blocks await all that others signal to them: each ends when its lanes have */
	struct role_meetings meetings;
	struct role_taken taken;
	struct tile_raster raster;		/* of tiles, if names.tiles */
	const char *why_flags;		/* why they signal by flags, where flags are counters (target/target.h); NULL */
	int64_t shared_bytes;
	/* Where barriers are polled (target/target.h) and lanes need some: counters at which lanes synchronize, that of barrier
	 * n is number n; their offset in shared memory */
	int ncounters;
	int64_t counters;
	bool first, last;		/* of the program's phases */
	bool waits_first;		/* all threads wait for what is in front of the kernel before they do anything else */
	bool next_at_start;		/* what is launched behind it may begin when all blocks have begun; and have waited, if they wait
					 * first */
	struct num_names names;
	const char *const *tasks;	/* names of sTasks */
	VEC(struct role_tensor) tensors;
	VEC(struct role_ring) rings;
	VEC(struct role_flag) flags;
	VEC(struct role_staging) stagings;
	VEC(struct role_map) maps;
	VEC(int) sizes;			/* axes whose sizes are parameters of the kernel */
	int begins;			/* how many variables VAR_BARE there are */
	VEC(struct role) roles;
	VEC(struct product_form) products;	/* in use, each once */
	int64_t stamp_words;		/* of a block; 0: the kernel is not traced */
	VEC(int64_t) watched;		/* offsets in shared memory of words that end a watch */
};

enum { ROLE_COUNTER_BYTES = 4 };

/* If the lane's threads synchronize, is that at a counter? One with all threads of the block takes the block's barrier, and a
 * single warp needs none. */
static inline bool role_meets_at_counter(const struct role_program *r, const struct role *l)
{
	return r->target->shared.polled && l->warps > 1 && l->warps * r->target->warp != r->threads;
}

/* Do the blocks of a cluster meet before they end? */
static inline bool role_meets_at_end(const struct role_program *r)
{
	return r->cluster > 1 && !r->ends_apart;
}

/* The name of the operation's sTask; of merged lanes "mma.0|mma.1". */
const char *role_task_names(struct arena *a, const struct role_program *r, const struct role_op *o);

/* Appends a readable dump: what lanes share, then each lane, operation by operation, with the reason of each
 * wait (docs/internals/role.md). */
void role_print(const struct role_program *r, struct buf *out);

#endif
