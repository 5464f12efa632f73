/* acts.h - what the lanes of a role program do, as lists of actions; for use inside src/verify.
 *
 * A scenario says how many tiles there are and how many iterations each run of a loop makes. For it, run.c goes
 * through the tree of each lane as a GPU would, and lists the lane's actions in order. Trip counts are those of
 * the scenario, not those that the tree computes.
 *
 * All warps of a lane have the same list, except that its first warp alone issues copies by the engine and
 * stores from rings. All blocks of a cluster have the same lists.
 */
#ifndef VERIFY_ACTS_H
#define VERIFY_ACTS_H

#include "plan/order.h"
#include "role/role.h"

enum act_kind {
	ACT_WAIT,			/* for instance n of flag `at` */
	ACT_ARRIVE,			/* at the barrier of instance n of flag `at`; of each block, if the flag
					 * is one of all blocks */
	ACT_COPY,			/* arrive there and have the engine fill cell `to`; of a shared load a part
					 * of that cell, in each block */
	ACT_COPY_THREADS,		/* arrive there once the warp's copies to cell `to` are complete */
	ACT_COPY_COUNTED,		/* n of the warp's copies to cell `to`, which it counts */
	ACT_COPIES,			/* until at most n of them are under way */
	ACT_SYNC,			/* all warps of the lane meet */
	ACT_CLUSTER,			/* all warps of the cluster meet */
	ACT_FENCE,			/* engines may see what the warp has written */
	ACT_READ, ACT_WRITE,		/* cell `at`, with ordinary instructions */
	ACT_GROUP_READ, ACT_GROUP_SUM,	/* cell `at`, as part of the next group of products */
	ACT_COMMIT,			/* the group is issued */
	ACT_GROUPS,			/* until at most n groups are under way */
	ACT_STORE,			/* have the engine read cell `at`, as part of the next group of stores;
					 * from a slot only by the lane's first warp */
	ACT_STORE_COMMIT,		/* the stores are issued */
	ACT_STORES,			/* until at most n groups of stores still read */
};

struct act {
	enum act_kind kind;
	int instance;			/* that it belongs to; NONE: none */
	int at, to, n;
	int want;			/* reads: the instance that must have written the cell; NONE: none has in
					 * the current life of the value */
	bool initial;			/* reads, if `want` is NONE: the cell must have an initial value; WRITE: it
					 * writes one */
	bool fenced;			/* READ: the operation itself has a fence behind it */
	bool multicast;			/* COPY: to all blocks */
	bool each;			/* COPY: each warp arrives, and copies its rows */
	bool peers;			/* READ: of the cells of all blocks */
	bool leader;			/* READ, STORE_COMMIT, ARRIVE: by a thread of the lane's first warp alone */
};

/* What all scenarios of a role program share. A cell is memory that is written and read as one:
 * each slot of each ring, each batch of each staging, then each version of each buffer in registers, for each
 * replica of its lane. */
struct setting {
	const struct role_program *r;
	const struct plan *plan;
	int phase;
	int *lane;			/* by sTask: index into r->roles, of the first replica; NONE: it is
					 * of another phase */
	bool *matrix;			/* by sTask: an asynchronous product that is not complete when the lane
					 * goes on */
	int *ring_of;			/* by buffer: index into r->rings; NONE: registers */
	int *first, *versions;		/* by buffer: its first cell; cells of each replica */
	int *staging;			/* by staging: its first cell */
	VEC(int) buffer;		/* by cell */
	int nslots, nshared, ncells;	/* cells below `nslots` are slots. The others are each warp's own; those
					 * from `nshared` on are in registers */
	bool even_ends;			/* of plays: loops with lengths end within their last tile in even runs, else in
					 * odd ones */
};
void setting_init(struct arena *a, const struct role_program *r, const struct plan *p, int phase, struct setting *out);
/* How many variables there are of such an index, the tile loop not counted. */
int setting_vars(const struct setting *s, enum var_index index);

/* A scenario, the actions of its lanes, and what they must come to. */
struct scenario {
	const struct setting *set;
	const struct walk *walk;
	int ninstances;
	int *first;			/* by sTask: its instance 0 */
	int *task;			/* by instance */
	int **want;			/* by sTask: [seq * reads + i], the instance that writes reads.v[i] */
	struct act **acts;		/* by role */
	int *nacts;
	int *ran;			/* by instance: how often it is executed */
};

/* Lists the actions, in `a`; borrows `set` and `w`. ERR_ILLEGAL if a lane breaks a rule within its own list. */
NODISCARD enum err_code scenario_init(struct arena *a, const struct setting *set,
	const struct walk *w, struct scenario *out, struct err *e);

static inline int scenario_instance(const struct scenario *s, int task, int64_t seq)
{
	return s->first[task] + (int)seq;
}

/* Fills in s->want: executes the program in its own order, one sTask after the other. */
void scenario_writers(struct arena *a, struct scenario *s);
/* Index into r->roles of the replica that completes instance n of a flag. */
int scenario_lane(const struct scenario *s, int flag, int n);

#endif
