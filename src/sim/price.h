/* price.h - what a plan costs beyond its work, read from the kernels that are made of it.
 *
 * device_cost (device/device.h) knows the cost of what an sTask computes and moves. A lane does more for it, and that
 * is in the kernel's role program (role/role.h): it waits and signals, synchronises, fences, drains its products,
 * writes values to shared memory and reads them back, and copies element by element what no engine can copy. price_add
 * walks the role program once per plan, not once per event. Each sTask gets the mean over its occurrences in the steady
 * state; each lane gets what it does between tiles and after the last one.
 *
 * price_op.c has the cost of each operation, price_math.c that of arithmetic on elements; price.c
 * adds them up. Unless stated otherwise costs are cycles of the EU clock. */
#ifndef SIM_PRICE_H
#define SIM_PRICE_H

#include "plan/plan.h"
#include "role/role.h"

/* Operations of an sTask are in stages: stage 0 depends on no reduction of the sTask, stage i + 1 on one of
 * stage i. The pipes of a vector unit work in parallel within a stage, but not across stages. */
enum { STAGES = 4 };

/* The cost of operations, in cycles unless stated otherwise. */
struct op_cost {
	double lane;			/* of the lane, which does nothing else meanwhile */
	double unit;			/* of the vector unit at its full rate */
	double shared;			/* of shared memory, which delivers to all lanes */
	double global_reads;		/* a number: reads of global memory that the lane waits for, each */
	double ops[STAGES][CLASS_COUNT];	/* numbers: operations on elements, by stage and class; a
					 * single operation has all of them in stage 0 */
};

static inline struct op_cost op_cost_times(struct op_cost s, double n)
{
	s.lane *= n;
	s.unit *= n;
	s.shared *= n;
	s.global_reads *= n;
	for (int i = 0; i < STAGES; i++)
		for (int k = 0; k < CLASS_COUNT; k++)
			s.ops[i][k] *= n;
	return s;
}

static inline struct op_cost op_cost_sum(struct op_cost a, struct op_cost b)
{
	a.lane += b.lane;
	a.unit += b.unit;
	a.shared += b.shared;
	a.global_reads += b.global_reads;
	for (int i = 0; i < STAGES; i++)
		for (int k = 0; k < CLASS_COUNT; k++)
			a.ops[i][k] += b.ops[i][k];
	return a;
}

/* The cost of an sTask to its lane, per instance. */
struct task_price {
	bool known;			/* the role program has it */
	bool by_threads;		/* a load or store by threads, not by an engine */
	bool kept;			/* a load that leaves out what its slot has already (plan/keep.h) */
	bool shifted;			/* ... through registers, which limit how much of it is in flight */
	bool arrives;			/* ... whose completion is signaled later, when the copies arrive */
	double dma;			/* ... instructions of warps that copy without registers */
	bool stored_to_shared;		/* a product that the lane waits for and then stores to shared
					 * memory: it is complete when that is done */
	double drain_cost;		/* cycles of the wait for its lane's own products, not the waiting */
	struct op_cost before, after;	/* until its unit has the work, and then; if it has no product all
					 * is in `before` */
	int drain, drain_after;		/* products of the lane that may be in flight when it begins, and
					 * when the lane continues; NONE: it does not wait */
	double steps;			/* instructions of its product */
	bool fetches;			/* it fetches operands itself */
	double fetch_lane, fetch_latency;	/* ... in so many cycles of the lane, which are in `before` and `after`, as are
					 * those in which it waits for the first word of each fetch */
	double from_shared;		/* of a synchronous product: cycles in which shared memory delivers its operands, or what they
					 * are made of */
	double sharing;			/* warps that share a quarter's matrix unit and wait each for itself; 0: one */
	double boxes, issued;		/* boxes for the copy engine; those that one thread issues */
	double row_boxes;		/* boxes of a row each, which threads of all warps issue */
	double copies;			/* operations that issue boxes */
	double sector_ratio;		/* if by_threads: bytes of the sectors that it moves, over the bytes
					 * that it needs */
};

/* What a lane does outside of sTasks. */
struct lane_price {
	double tile;			/* cycles between a tile and the next */
	int drain;			/* products that may be in flight then; NONE: it does not wait */
	int groups;			/* warpgroups that run the loops without synchronising; 1: they
					 * synchronise, or there is one */
	double end;			/* cycles after the last tile */
	int handover;			/* a replica begins a tile when the one that has the tile before has issued this
					 * sTask; NONE: it does not wait */
	/* Blocks take tiles by a counter, but for the first `own` of each: cycles for the number of a tile; and how many it takes to
	 * come, for the lane that asks for it. 0: they do not, or it does not. */
	double number, asks;
	int own;
};

struct phase_price {
	const struct plan *plan;	/* the plan with the kernel's own waits; NULL: there is no kernel, and
					 * only the costs of the plan's entries are known */
	double *wait;			/* by wait of that plan: cycles of the waiting lane */
	const struct role_meetings *meetings;	/* of its lanes; NULL: they signal by flags */
	double meeting;			/* cycles of a meeting, once all lanes are there */
	bool ends_apart;		/* the blocks of a cluster do not meet before they end */
	struct lane_price lanes[LANES_MAX];
};

struct price {
	struct arena *a;
	struct phase_price *phases;	/* of the program */
	struct task_price *tasks;	/* of the graph */
};

/* A price without any kernel, for all phases of p. Allocated in `a`, which must outlive it. */
void price_init(struct arena *a, const struct plan *p, struct price *out);
/* Add the kernel of a phase. own: its plan, with the waits that the kernel's operations serve; borrowed. */
void price_add(struct price *x, const struct plan *own, int phase, const struct role_program *r);

/* ---- one entry ------------------------------------------------------------------------- */

/* The cost of an instance of a plan's entry: its work, and with a kernel what its lane does for it. */
struct entry_cost {
	struct cost cost;
	struct effort effort;
	/* Without a kernel: a register value that another lane reads is handed over through shared memory,
	 * which delays the producer's completion. If handover_loop is the sTask's own region this holds for
	 * every instance, else for the last one in each iteration of that region. */
	double handover;			/* cycles; 0: none */
	int handover_loop;
	/* With a kernel: cycles of the lane before an asynchronous unit has the work, and after that
	 * (stored_to_shared: after the work is done, which delays its completion). */
	double before, after;
	bool stored_to_shared;
	double steps;			/* instructions of a product; 0: not known */
	double drain_cost;		/* cycles of the wait for `drain`, not the waiting */
	int drain, drain_after;		/* as in struct task_price */
	int groups;			/* warpgroups of the lane that each do a part and then continue; 0 or
					 * 1: all continue together */
	double fixed;			/* cycles of cost.alone that each of them needs, whatever its part */
};

/* Add the kernel's cost to that of an entry's work, which has no traffic with shared memory in it. Nothing
 * changes if there is no kernel. share: of the bytes that it loads, those from device memory. */
void price_entry(const struct price *x, const struct plan *p, int entry, double share, struct entry_cost *c);
/* The cost for one warpgroup, if those of the entry's lane run separately; else *c. A warpgroup may need longer for its
 * part than the lane for all parts, over their number, because seu limits the share that few warps draw
 * (lane_share). */
struct entry_cost price_group(const struct entry_cost *c, const struct seu *seu);
/* Is there a kernel of the phase? */
static inline bool price_knows(const struct price *x, int phase)
{
	return x && x->phases[phase].plan;
}

/* ---- one operation (price_op.c) ---------------------------------------------------------- */

/* Who executes an operation, and where it is. */
struct cost_context {
	const struct vdevice *device;
	const struct seu *vector;	/* the unit that executes the lane's own instructions */
	const struct role_program *program;
	const struct program *source;	/* what it is lowered from: the sizes of its tensors */
	int warps;			/* of the lane */
	int repetition;			/* of the DO_EACH around it */
	bool unmasked;			/* in interior iterations of the loop around it */
	double needed;			/* share of the columns of a map that its warps compute in the other iterations */
	struct arena *a;		/* scratch */
};

/* The cost of an operation to its lane. 0 if it is bookkeeping, the work of another unit, or a wait of the
 * plan (phase_price.wait). */
struct op_cost price_op(const struct cost_context *x, const struct role_op *o);
/* Bytes of the memory sectors that the operation moves, over those of its elements; 0: it moves none itself. */
double price_sector_ratio(const struct cost_context *x, const struct role_op *o);
/* Instructions of warps by which a load copies without registers. */
double price_dma(const struct cost_context *x, const struct role_op *o);
/* Boxes that the operation makes the copy engine move; *issued: those that one thread issues. */
double price_boxes(const struct cost_context *x, const struct role_op *o, double *issued);

/* ---- dependences within an sTask (price_math.c) ----------------------------------------- */

/* The stage in which each fragment is computed that operations of the sTask have written so far. */
struct stages {
	struct arena *a;
	VEC(struct frag_stage { const struct frag *frag; int stage; }) v;
};

/* The stage of the operation, 0 to STAGES - 1; records the stage of its results. */
int stage_of(struct stages *t, const struct role_op *o);

/* ---- arithmetic (price_math.c) ----------------------------------------------------------- */

/* Add what a map, pack, sum_product, reduce or scan does with n elements, including those that only fill up its
 * fragment, to s->ops[0] (and to s->lane for waits between threads). */
void price_arithmetic(const struct cost_context *x, const struct role_op *o, double n, struct op_cost *s);

#endif
