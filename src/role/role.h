/* role.h - role programs: what each lane of an EU does, as one tree of operations.
 *
 * lower makes a role program from each phase of a plan. What the tree does not say does not happen: verify
 * proves it, sim prices it and emit prints it, from the same operations. Regions are operations that hold
 * bodies, which are lists of operations: the tile loop, loops, and the straight-line pieces of prologues and
 * epilogues. Bounds, sTask instances, slots and addresses are expressions (num.h) over counters, each of
 * which is declared in one place.
 *
 * An operation names the sTask that it belongs to and, if it synchronises, the wait of the plan that it
 * serves. An operation on data names what it *touches*: slots of rings, versions of fragments, staging of
 * stores. ops.def has a row for each operation, with everything that holds for all operations of that kind.
 */
#ifndef ROLE_ROLE_H
#define ROLE_ROLE_H

#include "base/buf.h"
#include "role/value.h"
#include "target/target.h"

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
};

struct point;				/* of lowering: lower/pass/pass.h */
struct role_op;
struct role_body {
	VEC(struct role_op *) v;
};

/* What an operation touches. */
enum touch_how { TOUCH_READ, TOUCH_WRITE };
enum touch_what { TOUCH_SLOT, TOUCH_FRAG, TOUCH_STAGING };

struct touch {
	enum touch_how how;
	enum touch_what what;
	int of;				/* SLOT, FRAG: buffer of the graph; ROOM: outbox */
	int version;			/* FRAG; SLOT: the one at hand (DO_SLOT); ROOM: batch */
	bool initial;			/* WRITE: no instance's value; READ: may be such a one */
	bool sums;			/* by a product that adds to what is there */
};

/* Counters that are let or set. */
struct role_let {
	enum var var;
	int of;
	const struct num *to;
};

/* A matrix product of one instruction's size, by the threads of its warps: d is as high as the
 * instruction is, `cols` wide, as fragments are (value.h), and `depth` elements of the contracted
 * axis deep. An operand is in registers, as the instruction says, or a descriptor of swizzled shared
 * memory as the PTX ISA has them for wgmma. */
struct product_form {
	const struct matrix_instruction *by;
	bool registers, b_registers;	/* a, b: words of each thread */
	bool a_rows, b_rows;		/* the contracted axis goes along rows, not columns */
	int cols, depth;
	enum dtype type;		/* of both operands */
};

/* Where an instruction finds an operand in shared memory: `from` is an address, the same for all
 * blocks and steps of a product, `by` the bytes from there at (rb, cb, ks), a multiple of 16; `bits`
 * of the descriptor are the same wherever it is. */
struct matrix_place {
	uint64_t bits;
	const struct num *from, *by;	/* NULL: in registers */
};

/* One dimension of a tensor where an element, or a box's corner, is. */
struct role_index {
	const struct num *at;
	int64_t size;			/* of the dimension */
};

/* A box for the copy engine. */
struct role_box {
	const struct num *when;		/* NULL: always */
	const struct num *to;		/* in shared memory: where it goes, or comes from */
	const struct num *corner[RANK_MAX];	/* innermost dimension first */
};

/* Elements that go to or come from global memory by threads: how many neighbours at once. */
enum piece { PIECE_ONE = 1, PIECE_PAIR = 2, PIECE_EIGHT = 8 };

/* One step of an element-wise loop. */
struct role_step {
	int node;
	const struct val *value;
	const struct frag *to;		/* NULL: only what follows in the loop uses it */
};

struct role_op {
	enum role_do what;
	int task;			/* at work; NONE */
	int wait;			/* of the kernel's plan, that it serves; NONE */
	const char *why;		/* why it is there, for a dump; NULL */
	const struct point *point;	/* while it is lowered; NULL */
	VEC(struct touch) touches;
	union {
		struct {		/* BLOCK, TASK, TILES, LOOP, EACH, IF */
			struct role_body body;
			struct role_body other;		/* IF: otherwise */
			enum role_section section;
			const char *note;		/* BLOCK, IF: for who reads; NULL */
			const struct num *when;		/* IF */
			/* LOOP: for (var = from; var < end; var += step); from NULL: it is let
			 * before; end NULL: until a BREAK */
			enum var var;
			int of;
			const struct num *from, *end;
			int step;			/* EACH, unrolled: how often, var from 0 */
			const struct num *unmasked;	/* LOOP: turns for which that holds are clear: nothing
							 * cuts their elements (lower/body/clear.c). Of the
							 * first ones there can be a text that asks nothing;
							 * NULL */
			const struct num *interior;	/* ... in turns for which that holds no axis ends, but
							 * the program may ask; NULL: it asks in no others */
			bool late;			/* ... but the loop may begin with others */
			bool meets;			/* no product may be under way between such texts */
			/* TASK */
			const struct num *iteration;	/* of its loop, or tile; NULL: tile at hand */
			const struct num *seq;		/* instance */
		} region;
		struct {		/* LET, SET, ADVANCE (+= to) */
			VEC(struct role_let) v;
			bool changes;			/* LET: not constant */
			bool hidden;			/* LET: compilers shall not know what it is */
			const char *note;
		} let;
		struct {		/* LOOP_END: the iterations of a loop are over */
			int loop;
			int trips;			/* iterations, modulo the unrolling */
			bool exact;			/* just so many */
		} loop_end;
		struct {		/* REGISTERS */
			int n;
			bool more;			/* than the launch gave */
		} registers;
		struct {		/* LANE, LEAVE */
			int warp;			/* the first */
			bool stores;			/* a thread of each warp issues stores */
		} lane;
		struct {		/* FRAGMENT, PIN, INIT */
			struct frag_at at;
			int words;			/* PIN: of a block; FRAGMENT: NONE all */
			const struct val *value;	/* INIT */
		} frag;
		struct {		/* SLOT */
			int ring;
			const struct num *life;		/* whose slot it is */
		} slot;
		struct {		/* WAIT, WAIT_LAST, ARRIVE, RELEASE */
			int flag;
			const struct num *n;		/* instance; negative: none. WAIT_LAST: the end
							 * of all; RELEASE: those to be told of */
			const struct num *when;		/* WAIT: else not; NULL */
			bool once;			/* WAIT: only beyond those that were seen */
		} flag;
		int count;		/* GROUPS_WAIT, STORES_WAIT */
		struct {		/* STORES_WAIT, STORES_COMMIT */
			bool elected;			/* by a thread of each warp, else one of the lane */
			int first, other;		/* left unread: in ROUND 0, in others */
		} stores;
		struct {		/* LOAD_BOXES, STORE_BOXES */
			int map;			/* of the program's */
			int flag;			/* LOAD */
			const struct num *n;		/* LOAD: instance of the flag */
			int64_t bytes;			/* LOAD: that the flag expects here */
			int ring;			/* of the slot; NONE: out of room */
			int outbox;			/* STORE */
			bool all;			/* LOAD: to all blocks of the cluster */
			bool once;			/* LOAD: nobody reads these bytes again */
			int panels;			/* STORE: as many boxes, PANEL from 0 */
			bool elected;			/* STORE: by a thread of each warp, else one of
							 * the lane */
			VEC(struct role_box) boxes;
		} boxes;
		struct {		/* LOAD_THREADS, STORE_THREADS, STORE_RING */
			int tensor, rank;
			struct role_index index[RANK_MAX];
			const struct num *inside;
			enum dtype type;
			struct frag_at from;		/* STORE_THREADS */
			const struct val *value;	/* where it is converted; NULL: as it lies */
			enum piece piece;		/* STORE_THREADS */
			int64_t elements, cols;		/* of the ring, gone through one by one, or
							 * `run` neighbours in a row at once */
			int run;			/* LOAD_THREADS: 4, 8 or 16 bytes of them, or a
							 * single one of any size */
			bool shifted;			/* ... of 16 bytes that begin anywhere in memory, */
			int together;			/* of which a thread has so many on their way */
			/* LOAD_THREADS: if a thread may go on by so many rows at once, bytes in the
			 * slot and elements in memory from one to the next; rows 0: it may not */
			struct role_stride {
				int64_t rows, to, from;
			} stride;
			bool arrives;			/* LOAD_THREADS: each thread's copies arrive at
							 * instance `n` of `flag` when they are there */
			int flag;
			const struct num *n;
			const struct num *address;	/* of the ring's element */
			int64_t bytes;			/* of a tile, in global memory */
		} move;
		struct {		/* PUT: elements of a fragment to shared memory */
			const struct frag *over;
			const struct num *when, *address;
			const struct val *value;
			enum dtype type;		/* what memory holds */
			bool pairs;			/* words of two columns */
			struct frag_at from;		/* where `value` is just its element */
			const struct num *inside;	/* zero where not; NULL */
		} put;
		struct {		/* PUT_PANELS: a batch of a warp's rows, swizzled */
			struct frag_at from;
			int batch;
			const struct num *to;		/* where the batch begins */
			int64_t panel_bytes, panel_cols;
			int swizzle;
			const struct num *block, *column;	/* of a panel */
			enum dtype type;
		} panels;
		struct {		/* FILL: a ring's slot with one value */
			int ring;
			int64_t elements;
			const struct num *address;
			const struct val *value;
			enum dtype type;
		} fill;
		struct {		/* FETCH: a fragment out of shared memory, as its elements lie there */
			const struct frag *to;
			const struct num *address;	/* of the element at hand */
			const struct num *inside;	/* zero where not */
			bool words;			/* all of a word's at once, by the first one's */
		} fetch;
		struct {		/* PRODUCT */
			struct product_form form;
			struct frag_at sum, a, b;	/* a, b: where they are in registers */
			int steps, pieces;		/* along the contracted axis; of the columns */
			int first;			/* column of the sum, with which they begin */
			struct matrix_place a_at, b_at;	/* of operands in shared memory */
			const struct num *adds;		/* to what is there? */
		} product;
		struct {		/* SUM_PRODUCT: by threads, to what is there */
			struct frag_at sum;
			int64_t depth;			/* steps KS along what is contracted */
			const struct num *inside;	/* of them only those; NULL: all */
			const struct val *a, *b;	/* elements of the step: of the sum's row at
							 * hand, of its column */
		} sum_product;
		struct {		/* MAP */
			const struct frag *over;
			VEC(struct role_step) steps;
			struct frag_at to;		/* the last one's; NULL: none but in steps */
		} map;
		struct {		/* PACK, KEEP */
			struct frag_at to;
			const struct frag *from;	/* KEEP */
			const struct val *value;	/* PACK */
			const struct num *inside;	/* KEEP: zero where not; NULL */
			enum dtype type;
		} pack;
		struct {		/* REDUCE, SCAN; over a row vector: joins the parts of its threads */
			const struct frag *over, *to;
			bool part;			/* REDUCE: of what each thread has, no more */
			enum op op;
			const struct val *value;
			const struct val *zero;	/* joined with anything leaves it as it is */
			bool along_rows;
			int64_t scratch;
		} reduce;
		struct {		/* LINES: a reduction or scan in shared memory, line EACH
					 * of `n` by one thread, ALONG from 0 to `length` */
			int64_t n;
			const struct num *when, *length;
			enum op op;
			enum dtype type, kept;		/* of the result; what memory holds of it */
			const struct val *value, *zero;
			bool running;			/* each element's is left, not the last one's */
			const struct num *to;		/* address */
		} lines;
		struct {		/* STAMP */
			int at;				/* bytes from the tile's */
			int step;			/* ... and an iteration's */
			const struct num *iteration, *when;
		} stamp;
		struct {		/* WATCH, WATCH_ENDS */
			int flag, warp;
			int64_t ended, at, keep;
		} watch;
	} u;
};

/* ---- what lanes share ------------------------------------------------------------------ */

struct role_ring {
	const char *name;		/* of its buffer */
	int buffer;
	int64_t offset, slot_bytes;	/* of the block's shared memory */
	int versions;
	bool shared;			/* its load, by all blocks of the cluster */
};

/* A ring of mbarriers, see lower/kernel.h. */
struct role_flag {
	const char *name;		/* "mma.0 complete" */
	int task;
	bool issued, runs;
	int loop;			/* of whose iterations it has a phase each; NONE: tiles */
	int run_of;			/* if `runs`: they are those of this loop, inside that one */
	bool early;			/* a run is over with the last instance in it, not with the loop */
	int depth, arrivals;
	bool all;			/* those of all blocks of the cluster, each to all */
	bool copies;			/* copies by threads arrive, when they are there */
	int64_t bytes;			/* that the copy engine brings in a phase; 0: none */
	int64_t offset;			/* in shared memory, 8 bytes each */
};

/* Room in shared memory through which registers are stored, see lower/kernel.h. */
struct role_staging {
	int task;
	int64_t offset, bytes;		/* the first warp's; of one batch. 0: there is none */
	int warps, batches;		/* that lie one after the other */
};

/* Boxes of a tensor, as the copy engine is told of them. */
struct role_map {
	int tensor, task;		/* the first sTask that goes by it */
	int rank;			/* dimensions innermost first */
	int64_t dim[RANK_MAX], box[RANK_MAX];
	int64_t stride[RANK_MAX];	/* bytes, from one element of the dimension to the next */
	int swizzle;			/* bytes */
};

struct role_tensor {
	const char *name;
	enum dtype type;
	bool input;
};

/* What repeats: turns of a region. */
struct role_region {
	int most;			/* turns of the prologue */
	int unroll;			/* turns after which registers are where they were */
};

struct role {
	const char *name;		/* of the lane */
	int lane;			/* of the plan */
	int replica, replicas;		/* of `replicas` consecutive tiles it takes number `replica` */
	int warps, first_warp;
	int barrier;			/* named barrier where its threads meet */
	struct role_body body;
	VEC(struct role_region) regions;	/* the tile loop, then all loops that it has */
	int words;			/* of values, that a thread holds at most at a time */
	int words_in;			/* the sTask where that is; NONE: between sTasks */
	/* of a traced kernel */
	int64_t stamps;			/* of the tiles held: bytes, of shared memory */
	int64_t stamps_out;		/* of all its tiles: words, from the block's */
	int64_t tile_words;
	int64_t tiles_held, tiles_out;
};

struct role_program {
	const char *program, *phase, *device;
	const struct target *target;
	int threads;
	int cluster;			/* blocks that share loads; 1 */
	int64_t shared_bytes;
	bool first, last;		/* of the program's phases */
	struct num_names names;
	const char *const *tasks;	/* names of sTasks */
	VEC(struct role_tensor) tensors;
	VEC(struct role_ring) rings;
	VEC(struct role_flag) flags;
	VEC(struct role_staging) stagings;
	VEC(struct role_map) maps;
	int begins;			/* lives of carries, by who may begin them */
	VEC(struct role) roles;
	VEC(struct product_form) products;	/* in use */
	int64_t stamp_words;		/* of a block; 0: it is not traced */
	VEC(int64_t) watched;		/* words in shared memory that end a watch */
};

/* A readable dump, lane by lane: each operation with its sTask, what it touches, and why a
 * wait is there. */
void role_print(const struct role_program *r, struct buf *out);

#endif
