/* acts.h - what the lanes of a role program do, as lists; for use inside src/verify.
 *
 * For a list of tiles and trip counts, the actions of each lane in order: run.c goes through
 * the tree as a GPU would, with the trip counts of the play in the place of those that the
 * tree computes.
 *
 * All warps of a lane do the same. Only copies by the engine, and stores out of rings, are issued by the
 * first warp alone. All blocks of a cluster do the same.
 */
#ifndef VERIFY_ACTS_H
#define VERIFY_ACTS_H

#include "plan/order.h"
#include "role/role.h"

enum act_kind {
	ACT_WAIT,			/* for instance n of flag `at` */
	ACT_ARRIVE,			/* at the barrier of instance n of flag `at`; if that is all
					 * blocks', of each block */
	ACT_COPY,			/* arrive there and let the engine fill place `to`; or a part of
					 * it, in each block, if the cluster shares the load */
	ACT_COPY_THREADS,		/* arrive there when what the warp copies to place `to` has come */
	ACT_SYNC,			/* all warps of the lane meet */
	ACT_CLUSTER,			/* all warps of the cluster meet */
	ACT_FENCE,			/* what the warp wrote, the engines may now see */
	ACT_READ, ACT_WRITE,		/* place `at`, with ordinary instructions */
	ACT_GROUP_READ, ACT_GROUP_SUM,	/* place `at`, as part of the group that is next */
	ACT_COMMIT,			/* the group is issued */
	ACT_GROUPS,			/* until at most n groups are under way */
	ACT_STORE,			/* let the engine read place `at`, as part of the store that is
					 * next; if `slot`, the lane's first warp does it */
	ACT_STORE_COMMIT,		/* the store is issued; if `leader`, by the lane's first warp */
	ACT_STORES,			/* until at most n stores still read */
};

struct act {
	enum act_kind kind;
	int instance;			/* of the sTask at work; NONE: none */
	int at, to, n;
	int want;			/* READ and group's: the instance that must have written it;
					 * NONE: nobody in this life of it ... */
	bool initial;			/* ... so that it must be an initial value; WRITE: it is one */
	bool all;			/* COPY: to all blocks */
	bool leader;
};

/* What is the same in every play. Places: each slot of each ring, each batch of the staging of
 * each outbox, then each version of each buffer in registers, for each copy of its lane. */
struct setting {
	const struct role_program *r;
	const struct plan *plan;
	int phase;
	int *lane;			/* by sTask: index into r->roles, of the first copy; NONE: of
					 * another phase */
	bool *matrix;			/* by sTask: on an asynchronous matrix unit, and not done when
					 * the lane goes on */
	int *ring_of;			/* by buffer: index into r->rings; NONE: registers */
	int *first, *versions;		/* by buffer: its first place, places of a copy */
	int *staging;			/* by outbox: its first place, if it has staging */
	int *buffer;			/* by place */
	int nslots, nshared, naliases;	/* places below `nslots` are slots; others are each warp's
					 * own, those from `nshared` on in registers */
};
void setting_init(struct arena *a, const struct role_program *r, const struct plan *p, int phase,
	struct setting *out);
/* How many variables there are of such an index, the tile loop not counted. */
int setting_vars(const struct setting *s, enum var_index index);

/* One play: how often the loops run, and what should come of it. */
struct script {
	const struct setting *set;
	const struct walk *walk;
	int ninstances;
	int *first;			/* by sTask: its instance 0 */
	int *task;			/* by instance */
	int **want;			/* by sTask: [seq * reads + i], who writes its reads.v[i] */
	struct act **acts;		/* by role */
	int *nacts;
	int *ran;			/* by instance: how often */
};

/* In `a`; the rest outlives it. ERR_ILLEGAL if a lane does what no play can. */
NODISCARD enum err_code script_init(struct arena *a, const struct setting *set,
	const struct walk *w, struct script *out, struct err *e);

static inline int script_instance(const struct script *s, int task, int64_t seq)
{
	return s->first[task] + (int)seq;
}

/* Fill in s->want. */
void script_writers(struct arena *a, struct script *s);
/* Index into r->roles of the copy that completes instance n of a flag. */
int script_lane(const struct script *s, int flag, int n);

#endif
