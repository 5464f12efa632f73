/* price.h - what a plan costs beyond its work: read off the kernel that is made of it.
 *
 * device_cost knows what an sTask computes and moves. What else a lane does for it stands in
 * the kernel's tree (role/role.h): it asks and tells, meets, fences, drains its products,
 * writes values to shared memory and gets them back, copies element by element what no engine
 * can. The tree is gone through once a plan, not once an event: each sTask gets the mean of
 * its texts in the steady state, each lane what it does between tiles and at the end.
 *
 * price_op.c has what each operation costs, price_math.c and price_stages.c what those on
 * elements do; price.c how that adds up.
 */
#ifndef SIM_PRICE_H
#define SIM_PRICE_H

#include "plan/plan.h"
#include "role/role.h"

/* Operations of an sTask come in stages: those behind a reduction that need what came of it, behind a
 * reduction of theirs, and so on. In a stage, all pipes of the unit work at the same time. */
enum { STAGES = 4 };

/* What operations take, in cycles unless said. */
struct spent {
	double lane;			/* of the lane, which does nothing else meanwhile */
	double unit;			/* of the vector unit at its full rate */
	double rounds;			/* reads of global memory, each waited for */
	double ops[STAGES][CLASS_COUNT];	/* operations on elements, which the vector unit does;
					 * of a single operation all are in the first stage */
};

static inline struct spent spent_times(struct spent s, double n)
{
	s.lane *= n;
	s.unit *= n;
	s.rounds *= n;
	for (int i = 0; i < STAGES; i++)
		for (int k = 0; k < CLASS_COUNT; k++)
			s.ops[i][k] *= n;
	return s;
}

static inline struct spent spent_sum(struct spent a, const struct spent *b)
{
	a.lane += b->lane;
	a.unit += b->unit;
	a.rounds += b->rounds;
	for (int i = 0; i < STAGES; i++)
		for (int k = 0; k < CLASS_COUNT; k++)
			a.ops[i][k] += b->ops[i][k];
	return a;
}

/* What an sTask costs a lane. */
struct task_price {
	bool known;			/* it is in the tree */
	bool by_threads;		/* a load or store that no engine does */
	bool arrives;			/* ... and which is there later than the lane goes on */
	bool stored_to_shared;			/* a product for which the lane stays, and whose result it then
					 * brings to shared memory: complete when that is done */
	double drain_cost;			/* cycles to ask for its own products, waiting or not */
	struct spent before, after;	/* its unit is at work; all of what has no product: before */
	/* groups of the lane's products that may be under way when it begins, and when the lane
	 * goes on; NONE: that is not asked */
	int drain, drain_after;
	double steps;			/* instructions of its product */
	double boxes, issued;		/* on the copy engine, and of them by one thread */
	double pieces;			/* operations that issue such */
	double spread;			/* if by_threads: bytes that leave L2 in whole sectors, over
					 * those that are asked for */
};

/* What a lane does outside of sTasks. */
struct lane_price {
	double tile;			/* cycles between a tile and the next */
	int drain;			/* then: groups that may be under way; NONE */
	int groups;			/* warpgroups that go through its loops without meeting; 1: they meet */
	double end;			/* cycles behind the last tile */
};

struct phase_price {
	const struct plan *plan;	/* the plan with the kernel's own waits; NULL: there is no
					 * kernel, and the plan's entries are all that is known */
	double *wait;			/* by wait of that: cycles of the lane that asks */
	struct lane_price lanes[LANES_MAX];
};

struct price {
	struct arena *a;
	struct phase_price *phases;
	struct task_price *tasks;	/* of the graph */
};

/* A price of nothing, for all phases of p. In `a`. */
void price_init(struct arena *a, const struct plan *p, struct price *out);
/* What the kernel of a phase costs. own: its plan, with the waits that its operations serve;
 * borrowed. */
void price_add(struct price *x, const struct plan *own, int phase, const struct role_program *r);

/* ---- one entry ------------------------------------------------------------------------- */

/* What an entry of a plan costs: its work, and with a kernel what its lane does for it. */
struct entry_cost {
	struct cost cost;
	struct effort effort;
	/* Without a kernel: a value that crosses lanes in registers is brought over through
	 * shared memory, which puts off the producer's end: of every instance if handoff_loop
	 * is the sTask's own region, else of the last in each iteration of that region. */
	double handoff;			/* cycles; 0: none */
	int handoff_loop;
	/* With one: cycles of the lane before an asynchronous unit has the work, and when it has
	 * (`lands`: when it is done, and that puts off the end); groups of products that may
	 * be under way then, NONE if that is not asked. */
	double before, after;
	bool stored_to_shared;
	double steps;			/* instructions of a product; 0: not known */
	double drain_cost;			/* cycles to ask for `drain`, waiting or not */
	int drain, drain_after;
	/* Warpgroups of the lane that each go on with their part when they have done it; 0 or 1: all
	 * go together. Of cost.alone, what each of them spends whatever its part: cycles. */
	int groups;
	double fixed;
};

/* Make of the cost of an entry's work, without its traffic with shared memory, what it
 * costs with the kernel. Nothing changes where there is none. share: of what it loads,
 * from device memory. */
void price_entry(const struct price *x, const struct plan *p, int entry, double share,
	struct entry_cost *c);
/* Of an entry whose lane's groups go on by themselves, what one of them takes; of others all. pace: as many
 * times as long as its part of what all of them take together. */
struct entry_cost price_part(const struct entry_cost *c, double pace);
/* That: a group's own warps draw less of a vector unit than its share of what all would. */
double price_pace(const struct seu *seu, int groups);
/* Is there a kernel of the phase? */
static inline bool price_knows(const struct price *x, int phase)
{
	return x && x->phases[phase].plan;
}

/* ---- one operation (price_op.c) ---------------------------------------------------------- */

/* Whoever does it. */
struct payer {
	const struct vdevice *device;
	const struct seu *vector;	/* the unit that a lane's own instructions run on */
	const struct role_program *program;
	int warps;
	int round;			/* of a DO_EACH around */
	bool clear;			/* in turns of a loop that nothing cuts */
	struct arena *a;		/* scratch */
};

/* What an operation takes of the lane. Nothing: it is bookkeeping, or its unit's work, or a
 * wait of the plan (phase_price.wait). */
struct spent price_op(const struct payer *x, const struct role_op *o);
/* Bytes of memory's sectors that it moves over those of its elements; 0: it moves none itself. */
double price_spread(const struct payer *x, const struct role_op *o);
/* Boxes that it has the copy engine move, and of them those that one thread issues. */
double price_boxes(const struct payer *x, const struct role_op *o, double *issued);

/* ---- what follows what (price_stages.c) --------------------------------------------------- */

/* Of the fragments that operations of an sTask leave, in which stage they are there. */
struct stages {
	struct arena *a;
	VEC(struct made { const struct frag *frag; int stage; }) v;
};

/* In which of STAGES the operation is, given those before it. */
int stage_of(struct stages *t, const struct role_op *o);

/* ---- arithmetic (price_math.c) ----------------------------------------------------------- */

/* Adds what the operation does with n elements, those that its fragment is filled up with too. */
void price_map(const struct payer *x, const struct role_op *o, double n, struct spent *s);
void price_pack(const struct payer *x, const struct role_op *o, double n, struct spent *s);
void price_sum_product(const struct payer *x, const struct role_op *o, double n, struct spent *s);
void price_reduce(const struct payer *x, const struct role_op *o, double n, struct spent *s);

#endif
