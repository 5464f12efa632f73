/* kernel.h - role programs: exactly what each lane of an EU does.
 *
 * lower turns a legal plan into one kernel a phase: for each lane the entries of each
 * region with what must be waited for before and signalled after each, and where every
 * value lies: fragments in the registers of a lane, rings in shared memory. Nothing is
 * printed here, and emit decides nothing. What is so on some machine is read from its target
 * (target/target.h).
 *
 * Fragments. A value in registers is a matrix of rows x columns spread over the lane's
 * threads as the sums of a matrix instruction are (role/value.h). Which axes are rows
 * follows from the products: the first operand's own axes are rows of the result, the
 * second's its columns; element-wise work keeps them.
 * Rows are rounded up to whole blocks and columns to whole groups (on sm_90a eights, or sixteens
 * along an axis that a product contracts, whose instructions go so deep): what lies beyond the
 * value's extents is nobody's, is never stored, and a reduction passes over it.
 *
 * Rings. A value in shared memory has `versions` slots. One that a copy engine fills or
 * a matrix instruction reads lies in panels: the contiguous axis in pieces of at most
 * 128 bytes, each with all rows below each other, the 16-byte chunks of a row swizzled
 * by the row's number; others lie row by row. A matrix instruction reads whole blocks of
 * rows and columns, so an operand has room for them; nothing is brought there.
 *
 * Flags. Another lane's sTask, and a copy engine's, is seen through a ring of mbarriers:
 * the instance with sequence number s completes phase s / depth of barrier s mod depth.
 * depth is the least for which the relation of the plan's events proves that no phase
 * is passed again before all who wait for it have, and that the one before is over for
 * them; of a load not less than its ring has slots. Where there is none, the kernel has
 * waits of its own that hold back who runs ahead; where the check of the kernel finds that
 * it takes more, because loops may make no iteration, it is the least power of two times
 * that depth. A flag of runs counts the runs of a loop instead, for those outside of the
 * loop who cannot keep count of its iterations or may find that there are none.
 *
 * Outboxes. A store on the copy engine is issued by one thread of a warp, in groups of its
 * own, and reads shared memory until that thread has waited for the group. A value in
 * registers is free as soon as it is written there.
 *
 * Clusters. The blocks of a cluster (plan/cluster.h) run the same text on neighbouring tiles,
 * in which all loops make as many iterations. A load that they share is brought in parts:
 * each block copies its own into the slots of all, on the flags of all, so a phase of such
 * a flag ends in each block when the parts of all have come. Hence who releases a slot tells
 * all blocks: a flag on which a lane that loads for all waits gets the arrivals of all blocks'
 * lanes, and is there once in each. No block looks at another's memory before that has its
 * flags, nor ends before all do.
 *
 * Groups. A wait on the lane's own asynchronous work is a count of younger groups that
 * may still be under way; it is the least over all trip counts, for each turn of the
 * prologue, the steady state and the epilogue of its own. The lane also learns that a product
 * is complete before it waits for somebody who cannot go on without it.
 */
#ifndef LOWER_KERNEL_H
#define LOWER_KERNEL_H

#include "lower/traced.h"
#include "plan/check.h"
#include "role/role.h"
#include "target/target.h"

enum { FRAG_AXES_MAX = RANK_MAX };

/* How a value with the axes of some node is spread over fragment or ring. */
struct shape2 {
	int nrow, row[FRAG_AXES_MAX];	/* axes that number the rows, the last fastest */
	int ncol, col[FRAG_AXES_MAX];
	int64_t rows, cols;		/* nominal extents; 1 without axes */
	uint64_t full_axes;		/* bit a: it has all of axis a, not the tile at hand */
	/* so many neighbours along the axis are one element: 1, and more in rings alone */
	int64_t row_share[FRAG_AXES_MAX], col_share[FRAG_AXES_MAX];
};

/* What a block brings of a load that the cluster shares. */
enum cluster_share {
	SHARE_NONE,			/* all of it: it is not shared */
	SHARE_PANELS,			/* panel p by block p mod the cluster's */
	SHARE_ROWS,			/* of each panel an equal part of the rows, by block */
};

/* A ring in shared memory. */
struct ring {
	int buffer;
	int64_t offset, slot_bytes;	/* of the block's shared memory */
	int versions;
	struct shape2 shape;		/* columns: the contiguous axis */
	bool alone;			/* it holds one part of a value; else all of it, and the rings
					 * of its parts are one */
	int64_t first_row, first_col;	/* of what the buffer's load brings, where that is a part */
	int64_t full_rows, full_cols;	/* what is filled: zeros follow what is contracted */
	int64_t rows, cols;		/* room: that, or what matrix instructions read */
	int swizzle;			/* bytes of a swizzled row: 128, 64, 32; 0: plain rows */
	int64_t panel_cols;		/* elements of a row of a panel */
	int64_t panel_bytes;
	int boxes;			/* panels that hold something, and bytes in one of them */
	int64_t box_bytes;
	bool engine;			/* filled by the copy engine, in boxes of one panel */
	enum cluster_share share;
	int64_t box_rows;		/* of one box: full_rows, or a block's part of them */
};

/* A store by the copy engine, in boxes of one panel each. Out of a ring, whose slot it takes:
 * then the lane's first warp issues it. Or out of registers: then each warp writes its own
 * rows to room of its own, a batch of panels after the other, and issues them, so that no
 * warp waits for another. Where the room has two batches, one is written while the engine
 * reads the other. */
struct outbox {
	int task;
	int ring;			/* index; NONE: through room at `offset` */
	int64_t offset;			/* in shared memory: the first warp's, the others' follow */
	int64_t rows;			/* of a box */
	int swizzle;			/* bytes of a row of a panel: 128, 64, 32 */
	int64_t panel_cols, panel_bytes;
	int panels;			/* of a warp, or in the slot */
	int across;			/* that lie side by side */
	int batch;			/* panels at once, a divisor of them */
	int batches;			/* in a warp's room: 1 or 2 */
	int unread[2];			/* groups that may still be unread when a batch is written:
					 * the first of a value, the others */
};

/* A ring of mbarriers by which others see instances of an sTask. */
struct flag {
	int task;
	bool issued;			/* phases complete on issue, else on completion */
	bool runs;			/* they are no instances but runs of `loop`: an iteration of
					 * the region around has one, perhaps empty */
	int loop;			/* the sTask's, or one around it */
	bool ends;			/* at the end of a run the lane waits for its products */
	bool early;			/* a run is over with the last instance in it, not with the loop */
	int depth;
	int arrivals;			/* a phase */
	bool all;			/* those of all blocks of the cluster, each to all */
	bool copies;			/* copies by threads arrive, when they are there */
	int64_t bytes;			/* that the copy engine brings in a phase; 0: none */
	int64_t offset;			/* in shared memory, 8 bytes each */
};

/* Offsets here are counted from the least one of the lane's region, which is 0. So turns
 * of a region fall into classes: 0 the steady state, 1 .. most the turns -1, -2, ... of
 * the prologue, most + 1 .. 2 most the turns of the epilogue. */
enum { ITERATION_CLASSES = 4 * OFFSET_MAX + 2 };

/* A point where the lane waits for its own matrix groups: at most `younger` of them may
 * still be under way then, among them the last behind[t] of sTask t. */
struct group_wait {
	int younger[ITERATION_CLASSES];
	int *behind[ITERATION_CLASSES];	/* by sTask */
};

/* Which instance of the awaited sTask a wait on a flag is for, counted in the awaited
 * sTask's own sequence. Nobody waits for an instance before the first. */
enum awaited {
	AWAIT_BACK,			/* both in one region: `back` iterations before this one;
					 * if the flag is of runs, the run in that iteration */
	AWAIT_WITHIN,			/* the same, if that is in this run of the region */
	AWAIT_BEFORE,			/* the same, if that is before this run of the region */
	AWAIT_AROUND,			/* it is in region `loop` around: `back` iterations before the
					 * one at hand, asked for in the first iteration of all
					 * loops inside */
	AWAIT_RUN,			/* it is in `loop` inside: the last of the runs passed */
};

struct flag_wait {
	int wait;			/* of the plan */
	int flag;
	enum awaited which;
	int loop, back;
	bool once;			/* AROUND, where loops between may make no iteration: in
					 * the first that there is, or else after them */
	int stamp;			/* of a traced kernel: behind it, position in the record;
					 * NONE: behind the next */
};

/* A carry in shared memory that the entry finds without a value when it is the first to touch
 * a life of it: in the first iteration of all loops inside the carry's region, if none of
 * those in `empty`, which stand before it there, made any. Then it writes the initial one. Where
 * loops between may make no iteration, its first one is not known by its number, and those in
 * `behind` may have made some in an iteration before (body/carry.c). */
struct begins {
	int buffer;
	int number;			/* in the kernel */
	VEC(int) empty, behind;
};

/* One sTask on a lane. */
struct kentry {
	int task, entry;
	int at;
	VEC(struct begins) begins;
	bool result_shared;			/* a product whose result goes to shared memory: the lane waits
					 * for it at once and stores it, and so it is done when the
					 * lane goes on */
	bool waits_groups;
	struct group_wait before;	/* if waits_groups */
	bool drains;			/* after issuing, wait until one group is under way */
	struct group_wait after;	/* if drains */
	VEC(struct flag_wait) waits;	/* in this order */
	int flag, issue_flag;		/* that this sTask completes; NONE */
	int outbox;			/* by which it stores; NONE: the lane's threads do it, or it
					 * is no store */
	struct record stamps;		/* of a traced kernel */
};

struct kstep {
	bool is_loop;
	int id;				/* index into entries, or loop */
	int at;				/* offset */
	int younger;			/* of a loop in a lane that shifts tiles: products that may be
					 * under way when others are told of its run; NONE: no wait */
	int handover_flag;			/* there, if it is taken by replicas in turn: flag whose instance
					 * t - 1 is awaited before the step for tile t; NONE */
};

struct kregion {
	int most;			/* offset */
	int unroll;			/* least common multiple of its register versions; of the tile
					 * loop only if it has offsets: else there is one version */
	VEC(struct kstep) steps;
};

struct klane {
	int lane;			/* of the plan */
	int replica, replicas;		/* of `replicas` consecutive tiles it takes number `replica` */
	int handover_flag;			/* flag whose instance t - 1 is awaited when tile t begins:
					 * else a phase of a tile that another replica waits for could
					 * be taken for one of this. NONE: there is one replica, or each
					 * step has its own, as they are about several tiles */
	int barrier;			/* number of the named barrier where its threads meet */
	int warps, first_warp;
	int registers;			/* that the plan wants a thread to have; 0: what is left */
	int given, needed;		/* that it gets, and that its values take at most */
	int64_t scratch;		/* in shared memory: for reductions over its warps */
	VEC(struct kentry) entries;
	struct kregion *regions;	/* by loop + 1; 0: the tile loop */
	struct traced_lane traced;
};

/* Does the lane work on several tiles in a turn? Else a tile is over before the next begins. */
static inline bool shifts_tiles(const struct klane *l)
{
	return l->regions[0].most > 0;
}

/* How many of so many tiles it takes. */
static inline int64_t lane_tiles(const struct klane *l, int64_t tiles)
{
	return (tiles + l->replicas - 1 - l->replica) / l->replicas;
}

/* Why no kernel comes of a plan. */
struct refusal {
	enum problem_code code;
	int task;			/* NONE */
};

struct refinements;

struct kernel {
	struct arena arena;
	struct refusal refusal;		/* what it would be if the pass at work failed */
	const struct plan *plan;	/* as the kernel has it: own */
	const struct target *target;
	struct plan *own;		/* the plan, but for waits that no flag shows, and some that
					 * hold back who would run too far ahead; borrows the rest */
	int phase;
	bool unproven;			/* it is for its price only */
	int passes;			/* so many of passes.def make the tree; 0: all */
	VEC(struct klane) lanes;
	int *ring_of;			/* by buffer: index into rings; NONE: registers */
	VEC(struct ring) rings;
	VEC(struct outbox) outboxes;
	int *flag_of, *issue_flag_of;	/* by sTask; NONE */
	int *handover_flag_of;			/* by lane of the plan: flag; NONE */
	VEC(struct flag) flags;
	int begins;
	struct shape2 *node_shape;	/* by program node */
	struct shape2 *carry_shape;	/* by carry */
	uint64_t deep;			/* bit a: a product contracts axis a */
	int64_t shared_bytes;
	int threads;
	bool shares_registers;		/* lanes are given each their own number */
	int cluster;			/* blocks that share loads; 1 */
	int most_tiles;			/* that an EU gets */
	struct traced traced;
	struct role_program *role;	/* what all of it comes to: the last pass */
	struct refinements *refinements;	/* of earlier attempts (refine.h) */
};

/* Does the result of a product go to shared memory? The rings are there. */
static inline bool kernel_result_shared(const struct kernel *k, int task)
{
	const struct stask *s = &k->plan->graph->tasks.v[task];

	for (int i = 0; i < s->writes.n && s->kind == TASK_MMA; i++)
		if (k->ring_of[s->writes.v[i]] != NONE)
			return true;
	return false;
}

/* Innermost region that holds both loops. */
static inline int kernel_common_loop(const struct program *p, int a, int b)
{
	while (!program_loop_within(p, b, a))
		a = p->loops.v[a].parent;
	return a;
}

/* The class of a turn where the loop makes so many trips. */
static inline int iteration_class(const struct kregion *v, int64_t turn, int64_t trips)
{
	if (turn < 0)
		return (int)-turn;
	if (turn <= trips - 1 - v->most)
		return 0;
	return v->most + (int)(turn - (trips - 1 - v->most));
}

#endif
