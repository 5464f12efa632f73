/* kernel.h - the kernel of one phase of a plan, as the passes of src/lower fill it in.
 *
 * Lowering makes a kernel of each phase of a legal plan. The kernel says for each lane which sTasks it issues in which
 * order, what each waits for and signals, and where every value is stored: in fragments (registers of a lane) or in
 * rings (shared memory). Its last field, the role program, is all of that as one tree of operations, which emit prints
 * without further decisions. Facts about the machine come from its target (target/target.h).
 *
 * Fragments. A value in registers is a matrix of rows x columns, spread over the threads of a lane as the accumulators
 * of a matrix instruction are (role/value.h). The products decide which axes are rows: those that only the first
 * operand has; those that only the second has are columns; element-wise sTasks keep them. Rows are padded to complete
 * blocks and columns to complete groups (on sm_90a 8, or 16 along an axis that a product contracts, as its instructions
 * are 16 deep). Padding is never stored, and reductions skip it.
 *
 * Rings. A value in shared memory has `versions` slots. A value that a copy engine fills or a matrix instruction reads
 * is stored in panels: the contiguous axis is divided into at most 128 bytes each, a panel has all rows one below the
 * other, and the 16-byte chunks of a row are swizzled by the row's number. Other values are stored row by row. As a
 * matrix instruction reads complete blocks, a slot of an operand has space for padding, which nothing fills.
 *
 * Flags. Other lanes learn through a ring of mbarriers that an sTask, or the copy engine, has finished: instance s
 * completes generation s / depth of barrier s mod depth. The depth is the least for which the relation of the plan's
 * events (plan/events.h) proves that no waiter mistakes one generation for another (sync/depths.c); for a load at least
 * the number of slots of its ring. If no depth suffices, a wait is added that holds back the lane that runs ahead.
 * Loops without an iteration may need more than the relation says: then verify finds a counterexample and the depth is
 * doubled (refine.h). A flag of runs counts the runs of a loop instead of instances. Lanes outside of the loop use it
 * if they cannot count the loop's iterations, or if there may be none.
 *
 * Outboxes. A store on the copy engine is issued by one thread of a warp in bulk groups of its own; the engine reads
 * shared memory until that thread has waited for the group. Registers are free as soon as they are copied to staging.
 *
 * Clusters. The blocks of a cluster (plan/cluster.h) execute the same text on neighbouring tiles, in which all loops
 * make equally many iterations. Of a load that they share each block copies a share into the slots of all blocks and
 * completes transaction bytes of the flags of all blocks (multicast); a generation of such a flag is complete when all
 * shares have arrived. So a slot is free only when all blocks have released it: the flag on which the loading lane
 * waits for that exists once in each block and counts the arrivals of all blocks. No block accesses the memory of
 * another before that has initialised its flags, nor ends before all blocks do.
 *
 * Groups. A lane waits for its own asynchronous products by a count of younger groups that may still be under way
 * (wgmma.wait_group). The count is the least over all numbers of iterations, separately for each iteration of the
 * prologue, for the steady state, and for each iteration of the epilogue. Before a lane waits for another lane that
 * needs one of its products to go on, it waits for that product; otherwise both would wait for ever.
 */
#ifndef LOWER_KERNEL_H
#define LOWER_KERNEL_H

#include "plan/check.h"
#include "role/role.h"
#include "target/target.h"

enum { FRAG_AXES_MAX = RANK_MAX };

/* The axes of a value in a fragment or a ring as a matrix. */
struct shape2 {
	int nrow, row[FRAG_AXES_MAX];	/* axes that number the rows, the last fastest */
	int ncol, col[FRAG_AXES_MAX];
	int64_t rows, cols;		/* products of the extents, without padding; 1 without axes */
	uint64_t full_axes;		/* bit a: it has all of axis a, not one tile of it */
	/* by axis: how many neighbouring indices have one element in common; 1 except in rings */
	int64_t row_share[FRAG_AXES_MAX], col_share[FRAG_AXES_MAX];
};

/* The axes of a shape: first those of the rows, then those of the columns. */
static inline int shape_rank(const struct shape2 *v)
{
	return v->nrow + v->ncol;
}
static inline int shape_axis(const struct shape2 *v, int i)
{
	return i < v->nrow ? v->row[i] : v->col[i - v->nrow];
}

static inline void shape_add_axis(struct shape2 *v, bool is_row, int axis, int64_t extent)
{
	if (is_row) {
		v->row_share[v->nrow] = 1;
		v->row[v->nrow++] = axis;
		v->rows *= extent;
	} else {
		v->col_share[v->ncol] = 1;
		v->col[v->ncol++] = axis;
		v->cols *= extent;
	}
}

/* Which share of a load each block of a cluster copies. */
enum cluster_share {
	SHARE_NONE,			/* all: the load is not shared */
	SHARE_PANELS,			/* panel p is copied by block p mod the cluster's size */
	SHARE_ROWS,			/* each block copies an equal part of the rows of each panel */
};

/* Why the copy engine cannot load a tile (layout/loads.c, layout/rings.c). */
enum engine_obstacle {
	OBSTACLE_INDICES,		/* more than one axis, or a multiple of one, in a dimension; or values that
					 * differ by row */
	OBSTACLE_ROW_INDICES,		/* rows are to be copied one by one, but are not along the last dimension
					 * alone */
	OBSTACLE_ROW_BYTES,		/* ... but would not begin where the engine can write */
	OBSTACLE_ADDRESSES,		/* the tensor has an address for each index of its first dimension */
	OBSTACLE_ZEROS,			/* zeros beyond the end of a contracted axis that is not the tensor's */
	OBSTACLE_BEGIN,			/* tiles do not begin at a multiple of a chunk */
	OBSTACLE_ROWS,			/* more rows than a box has */
	OBSTACLE_CHUNKS,		/* the tile's rows are no multiple of a chunk */
	OBSTACLE_LAUNCH,		/* at launch the tensor's rows may be narrower than the boxes that readers
					 * need */
	OBSTACLE_LAYOUT,		/* readers need another layout than the engine writes */
	OBSTACLE_COLS,			/* rows are wider than a box, and no multiple of what begins aligned */
};

/* A ring in shared memory: the slots of a buffer. */
struct ring {
	int buffer;
	int64_t offset, slot_bytes;	/* bytes; the offset is into the block's shared memory */
	int versions;
	struct shape2 shape;		/* columns: the contiguous axis */
	bool one_slice;			/* it has one slice of a split value; else all slices, whose buffers share it */
	int64_t first_row, first_col;	/* where the slice begins that the buffer's load fills */
	int64_t full_rows, full_cols;	/* what is filled, with zeros beyond the end of a contracted axis */
	int64_t rows, cols;		/* of a slot: the same, padded to what matrix instructions read */
	int swizzle;			/* bytes of a swizzled row: 128, 64, 32; 0: plain rows */
	int64_t panel_cols;		/* elements of a row of a panel */
	int64_t panel_bytes;
	int boxes;			/* panels, but for those that have padding alone */
	int64_t box_bytes;		/* that are filled in a panel */
	bool engine;			/* filled by the copy engine, one box a panel */
	enum engine_obstacle obstacle;	/* of a load: why the engine cannot fill it, if not `engine` */
	bool reordered;			/* by the engine, whose boxes have the tensor's dimensions in another order */
	bool ends_by_threads;		/* by the engine, but by threads where the length of the loop ends in the
					 * tile */
	int64_t run;			/* values name rows, and so many rows of a panel are a box; 0: they do not */
	bool by_rows;			/* each row of a panel is a box, at an index of its own; each thread issues
					 * those of some rows */
	enum cluster_share share;
	bool kept;			/* its load leaves out what a slot has already (plan/keep.h); it has, at `words` in shared
					 * memory, 4 bytes for each slot that say what that is */
	int64_t words;
	int64_t box_rows;		/* of one box: full_rows, or a block's share of them */
};

/* A store by the copy engine, one box a panel. Out of a ring, its slot is stored as it is, and the lane's first warp
 * issues it. Out of registers, each warp copies its own rows to staging of its own, one batch of panels after the
 * other, and issues them, so that no warp waits for another. If the staging has two batches, a warp fills one while
 * the engine reads the other. */
struct outbox {
	int task;
	int ring;			/* index; NONE: out of registers, through staging at `offset` */
	int64_t offset;			/* bytes, in shared memory: staging of the first warp; the others' follows */
	int staging;			/* whose staging it is: its own number, or that of an earlier store of the lane */
	int64_t rows;			/* of a box */
	int swizzle;			/* bytes of a row of a panel: 128, 64, 32 */
	int64_t panel_cols, panel_bytes;
	int panels;			/* of a warp, or of the slot */
	int across;			/* panels side by side, in the columns */
	int batch;			/* panels stored at once: a divisor of `panels` */
	int batches;			/* in the staging of a warp: 1 or 2 */
	int unread[2];			/* groups that the engine may still be reading when a warp fills a batch: [0]
					 * the first batch of a value, [1] the others */
};

/* A ring of mbarriers through which other lanes see instances of an sTask. */
struct flag {
	int task;
	bool issued;			/* it signals that an instance is issued; else that it is complete */
	bool runs;			/* its generations are runs of `loop`, not instances: each iteration of the
					 * region around the loop has one, which may be empty */
	int loop;			/* the sTask's, or one around it */
	bool ends_complete;		/* the lane waits for its products before it signals a run */
	bool in_loop;			/* a run is signaled with its last instance, not after the loop */
	int depth;
	int arrivals;			/* that complete a generation, in one block */
	bool all_blocks;		/* lanes of all blocks of the cluster arrive, at the flags of all */
	bool copies_arrive;		/* cp.async.mbarrier.arrive: threads' copies arrive when they are complete */
	bool parts;			/* of a struct parts_sum */
	bool each_warp;			/* a load of rows by the copy engine: each warp arrives, and expects the bytes
					 * of the rows that it loads */
	int64_t bytes;			/* transaction bytes of the copy engine in a generation; 0: none */
	int64_t offset;			/* of the first barrier in shared memory, in bytes */
};

/* A carry that is a partial sum in each block of a cluster (plan/cluster.h). In the sTask behind the loop that uses it a
 * lane writes what other blocks are to add up to their shared memory, signals that to all blocks, waits for all of them, adds
 * up its own share, and signals that it has read, unless each block has a single tile. For that the lane has two flags of
 * its own, whose generations are the instances of the sTask. */
struct parts_sum {
	int buffer, task;		/* the carry's; the sTask that uses it */
	int replica;			/* of the lane */
	int groups;			/* of columns in a block of rows: chunks (role.h, u.parts) */
	int chunks;			/* of a block's share */
	int64_t offset, bytes;		/* of the staging; bytes: of a warp */
	int there, read;		/* flags: the parts are there; they have been read. NONE: there is one tile */
};

/* Offsets in the kernel are those of the plan minus the least one of the lane's region; max_offset is the greatest.
 * Each iteration of a region is of a class: 0 is the steady state; 1 .. max_offset are iterations -1, -2, ... of the
 * prologue; max_offset + 1 .. 2 max_offset are those of the epilogue. */
enum { ITERATION_CLASSES = 4 * OFFSET_MAX + 2 };

/* A wait for the lane's own groups of products (wgmma.wait_group), by class of the iteration. */
struct group_wait {
	int groups_left[ITERATION_CLASSES];	/* it leaves at most so many under way; -1: there is no wait in the
						 * class */
	int under_way[ITERATION_CLASSES];	/* at most so many are under way afterwards, given earlier waits, too */
	int *instances_left[ITERATION_CLASSES];	/* by sTask: at most so many of its last instances are among them */
};

/* Which instance of the awaited sTask a wait on a flag is for, counted in the sequence of the awaited sTask. A wait
 * for an instance before the first one is skipped. */
enum awaited {
	AWAIT_BACK,			/* both sTasks in one region: `back` iterations before this one;
					 * of a flag of runs, the run in that iteration */
	AWAIT_WITHIN,			/* like AWAIT_BACK, but only within this run of the region */
	AWAIT_BEFORE,			/* like AWAIT_BACK, but only before this run of the region */
	AWAIT_AROUND,			/* the awaited sTask is in region `loop` around: `back` iterations before the
					 * current one; the wait is made in the first iteration of all loops inside */
	AWAIT_RUN,			/* it is in `loop` inside: its last instance in the runs so far */
};

struct flag_wait {
	int wait;			/* of the plan */
	int flag;
	enum awaited awaited;
	int loop, back;
	bool even_if_empty;		/* AWAIT_AROUND, if loops between may make no iteration: waits in their first
					 * iteration, or behind them if there is none */
	int stamp;			/* of a traced kernel: position in the record of the stamp after this wait;
					 * NONE: the stamp is after a later wait */
};

/* A carry in shared memory whose initial value the entry writes if it is the first to access a life of the carry. It is
 * the first in the first iteration of all loops inside the carry's region, if none of the loops before the entry that
 * access the carry made an iteration. If loops may make no iteration, iteration numbers alone do not say which access
 * is the first: loops after the entry may have accessed the life in an earlier iteration (select/carry.c). */
struct carry_start {
	int buffer;
	int number;			/* counted in the kernel */
	VEC(int) loops_before, loops_behind;	/* that access the carry, before and after the entry */
};

/* What a traced kernel has in addition: memory for time stamps, and which warps store them. Filled in by lower_stamps
 * (stamps.h), zero in other kernels. */

/* The time stamps of an sTask. */
struct record {
	int64_t at;			/* offset from the tile's first word, in words */
	int words;			/* of one iteration */
	int64_t keep;			/* iterations of a tile that are recorded: the first ones */
	int groups, body, drain;	/* positions in it; NONE */
};

struct traced_lane {
	int64_t held_at;		/* of the tiles held: bytes, of shared memory */
	int64_t out_at;			/* of all its tiles: words, from the block's */
	int64_t tile_words;
	int64_t tiles_held;		/* so many of its tiles are in shared memory before they are written out */
	int64_t tiles_out;		/* so many are written out at most; a multiple of tiles_held */
};

/* An otherwise idle warp that waits on a flag of a load and stamps when each copy completes. */
struct watch {
	int flag, warp;
	int64_t ended;			/* offset in shared memory of a word that tells the warp to end */
	int64_t at, keep;		/* its words, from the block's: one an instance */
};

struct traced {
	int64_t words;			/* of a block; 0: the kernel is not traced */
	int64_t tiles;			/* so many tiles of a block are kept */
	VEC(struct watch) watches;
};

/* One sTask on a lane. */
struct kentry {
	int task, entry;
	int at;
	VEC(struct carry_start) carry_starts;
	bool result_shared;		/* a product whose result is stored to shared memory: the lane waits for it at
					 * once and stores it, so it is complete when the lane goes on */
	bool waits_groups;
	struct group_wait before;	/* if waits_groups */
	bool drains;			/* after issuing, it waits until at most one group is under way */
	struct group_wait after;	/* if drains */
	VEC(struct flag_wait) waits;	/* in this order */
	int flag, issue_flag;		/* index of the flags that this sTask signals; NONE */
	int outbox;			/* index; NONE: no store, or one by the lane's threads */
	struct record stamps;		/* if the kernel is traced */
};

/* A step of a region: an entry, or a loop inside. */
struct kstep {
	bool is_loop;
	int id;				/* index into entries, or loop */
	int at;				/* offset */
	int groups_left;		/* of a loop in a lane with tile offsets: products that may be under way when
					 * its run is signaled; NONE: the lane does not wait */
	int handover_flag;		/* of a lane with replicas: flag whose instance t - 1 is awaited
					 * before the step for tile t; NONE */
};

/* A loop as a lane executes it; or the tile loop. */
struct kregion {
	int max_offset;
	int unroll;			/* iterations of the text, after which each value has the same register version
					 * again: the least common multiple of their numbers. Tile loop: 1 without
					 * offsets */
	VEC(struct kstep) steps;
};

/* What the threads of a lane do, which decides how many registers they need: they only issue work to engines; they copy
 * between global and shared memory; they compute with values in registers. A lane that does several has the last. */
enum lane_work { LANE_ISSUES, LANE_COPIES, LANE_COMPUTES };

struct klane {
	int lane;			/* of the plan */
	enum lane_work work;
	int replica, replicas;		/* it takes tiles t with t mod replicas = replica */
	int handover_flag;		/* flag whose instance t - 1 is awaited before tile t; without it a replica
					 * could mistake a generation of another replica's tile for its own. NONE: one
					 * replica, or each step has its own flag because of offsets in the tile loop */
	int barrier;			/* number of its threads' named barrier */
	int warps, first_warp;
	const struct frag_layout *layout;	/* of its values: the target's, unless parts of it divide columns */
	/* Registers of a thread: */
	int registers;			/* that the plan asks for; 0: a share of those that other lanes leave */
	int spare;			/* that lowering leaves to the compiler, as the plan says (struct lane) */
	int granted;			/* that it gets */
	int wanted;			/* that it could use beyond those (lower_grant_more) */
	int needed;			/* that its values and addresses take where most of them are live */
	int needed_apart;		/* the same, if operands of products under way are copies of the values */
	int64_t scratch;		/* offset in shared memory, for reductions over its warps */
	VEC(struct kentry) entries;
	struct kregion *regions;	/* by loop + 1; 0: the tile loop */
	struct traced_lane traced;
};

/* The registers of a thread that optional choices of lowering may fill: those granted, less the plan's `spare`. Values
 * that a lane must keep may take all that are granted. */
static inline int lane_usable_registers(const struct klane *l)
{
	return l->granted - l->spare;
}

/* Does one iteration of the tile loop work on several tiles (offsets)? Else a tile ends before the next begins. */
static inline bool shifts_tiles(const struct klane *l)
{
	return l->regions[0].max_offset > 0;
}

/* How many of `tiles` tiles of the EU the lane takes. */
static inline int64_t lane_tiles(const struct klane *l, int64_t tiles)
{
	return (tiles + l->replicas - 1 - l->replica) / l->replicas;
}

/* Before a meeting, how many of its own copies a lane may leave under way, by class of the iteration: those of later
 * loads, while those of earlier ones are what other sTasks read behind it. -1: it does not wait. */
struct copies_wait {
	int left[ITERATION_CLASSES];
};

/* How often all lanes meet at the block's barrier where, instead of signaling by flags (sync/meetings.c). */
struct meetings {
	int interval;			/* meetings in an iteration of the loop; 0: lanes signal by flags */
	const char *why_not;		/* why they do, where the target's lanes can meet and there are several; else NULL */
	int *before;			/* by entry of the plan: meetings before it in each iteration; 0 for a lane's first entry */
	int *end;			/* by lane of the plan: meetings at the end of each iteration */
	int *first, *last;		/* by lane: meetings before its first iteration, and behind its last one */
	bool tile_end;			/* all meet once more where a tile ends */
	struct role_meetings numbers;	/* what that means for a lane that comes to an entry */
	/* for each meeting of before[] and end[]; NULL: none of the lane's loads is counted (sync/counted_copies.c) */
	struct copies_wait **before_wait, **end_wait;
};

/* Why lowering makes no kernel of a plan. */
struct refusal {
	enum problem_code code;
	int task;			/* NONE */
	bool equal_versions;		/* PROBLEM_COPIES: equal versions of all values in registers would avoid it */
	int64_t shared_bytes;		/* PROBLEM_SHARED_MEMORY: so many would be needed; else 0 */
};

struct refinements;

struct kernel {
	struct arena arena;
	struct refusal refusal;		/* the reason to report if the current pass fails */
	const struct plan *plan;	/* the user's plan; from lower_copy_waits on `own` */
	const struct target *target;
	struct plan *own;		/* the plan with waits of the kernel's own: without those that no flag can show,
					 * with some that hold back lanes that run too far ahead. It borrows everything
					 * else from the user's plan */
	int phase;
	const struct stop *stop;	/* borrowed; NULL */
	bool unproven;			/* made without verify, only to be priced */
	int passes;			/* how many passes of passes.def have made the tree; 0: all */
	VEC(struct klane) lanes;
	int *ring_of;			/* by buffer: index into rings; NONE: registers */
	VEC(struct ring) rings;
	VEC(struct outbox) outboxes;
	int *flag_of, *issue_flag_of;	/* by sTask; NONE */
	int *handover_flag_of;		/* by lane of the plan: flag; NONE */
	VEC(struct flag) flags;
	VEC(struct parts_sum) parts;
	const bool *shared_nodes;	/* by node: cluster_find_shares; NULL: no loop of the phase is divided */
	struct meetings meetings;
	struct role_taken taken;
	int ncarry_starts;		/* of all entries */
	struct shape2 *node_shape;	/* by program node */
	struct shape2 *carry_shape;	/* by carry */
	uint64_t contracted;		/* bit a: a product contracts axis a */
	uint64_t one_tile;		/* bit a: axis a is one tile, which has just its size */
	int64_t shared_bytes;
	int threads;
	bool shares_registers;		/* each lane has its own number of registers (setmaxnreg) */
	int share_of[LANES_MAX];	/* by the plan's lane: registers of a thread if lanes share by need; or 0 */
	int copying_registers;		/* of a thread of a lane that copies, where those that compute lack some; or 0 */
	int cluster;			/* blocks that share loads; 1: no cluster */
	int most_tiles;			/* tiles of an EU at most */
	struct traced traced;
	struct role_program *role;	/* the tree of operations; by the last pass */
	struct refinements *refinements;	/* of earlier attempts (refine.h) */
};

/* Is the sTask a product whose result is stored to shared memory? Needs ring_of. */
static inline bool kernel_result_shared(const struct kernel *k, int task)
{
	const struct stask *s = &k->plan->graph->tasks.v[task];

	for (int i = 0; i < s->writes.n && s->kind == TASK_MMA; i++)
		if (k->ring_of[s->writes.v[i]] != NONE)
			return true;
	return false;
}

/* The innermost loop that contains both a and b; NONE: the tile loop. */
static inline int common_loop(const struct program *p, int a, int b)
{
	while (!program_loop_within(p, b, a))
		a = p->loops.v[a].parent;
	return a;
}

/* The class of an iteration (ITERATION_CLASSES) if the source loop makes `trips` iterations. */
static inline int iteration_class(const struct kregion *v, int64_t iteration, int64_t trips)
{
	if (iteration < 0)
		return (int)-iteration;
	if (iteration <= trips - 1 - v->max_offset)
		return 0;
	return v->max_offset + (int)(iteration - (trips - 1 - v->max_offset));
}

#endif
