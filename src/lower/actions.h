/* actions.h - what the lanes of a kernel do, as lists; for use inside src/lower.
 *
 * For a list of tiles and trip counts, the actions of each lane in order, as the text of
 * src/emit/text_{lane,loop,entry,wait}.c does them: actions.c and act_entry.c are those files
 * once more, statement by statement, with numbers where they have C text. Who changes one
 * changes the other.
 *
 * All warps of a lane do the same. Only copies, and stores out of rings, are issued by the
 * first warp alone. All blocks of a cluster do the same.
 */
#ifndef LOWER_ACTIONS_H
#define LOWER_ACTIONS_H

#include "lower/kernel.h"
#include "plan/order.h"

enum act_kind {
	ACT_WAIT,			/* for instance n of flag `at` */
	ACT_ARRIVE,			/* at the barrier of instance n of flag `at`; if that is all
					 * blocks', of each block */
	ACT_COPY,			/* arrive there and let the engine fill place `to`; or a part of
					 * it, in each block, if the cluster shares the load */
	ACT_SYNC,			/* all warps of the lane meet */
	ACT_CLUSTER,			/* all warps of the cluster meet */
	ACT_FENCE,			/* what the warp wrote, the engines may now see */
	ACT_READ, ACT_WRITE,		/* place `at`, with ordinary instructions */
	ACT_GROUP_READ, ACT_GROUP_SUM,	/* place `at`, as part of the group that is next */
	ACT_COMMIT,			/* the group is issued */
	ACT_GROUPS,			/* until at most n groups are under way */
	ACT_STORE,			/* let the engine read place `at`, as the next of the stores */
	ACT_STORES,			/* until at most n stores still read */
};

struct act {
	enum act_kind kind;
	int instance;			/* of the sTask at work; NONE: none */
	int at, to, n;
	int want;			/* READ and group's: the instance that must have written it;
					 * NONE: nobody in this life of it ... */
	bool initial;			/* ... so that it must be an initial value; WRITE: it is one */
};

/* What is the same in every play. Places: each slot of each ring, each batch of the rooms of
 * each outbox, then each version of each buffer in registers, for each copy of its lane. */
struct setting {
	const struct kernel *k;
	int *lane;			/* by sTask: index into k->lanes, of the first copy; NONE: of
					 * another phase */
	bool *matrix;			/* by sTask: on an asynchronous matrix unit, and not done when
					 * the lane goes on */
	int *first, *versions;		/* by buffer: its first place, places of a copy */
	int *room;			/* by outbox: its first place, if it has room */
	int *buffer;			/* by place */
	int shared, rooms, nplaces;	/* places below `shared` are slots; others are each warp's
					 * own, those from `rooms` on in registers */
};
void setting_init(struct arena *a, const struct kernel *k, struct setting *out);

/* One play: how often the loops run, and what should come of it. */
struct script {
	const struct setting *set;
	const struct walk *walk;
	int ninstances;
	int *first;			/* by sTask: its instance 0 */
	int *task;			/* by instance */
	int **want;			/* by sTask: [seq * reads + i], who writes its reads.v[i] */
	struct act **acts;		/* by lane of the kernel */
	int *nacts;
	int *ran;			/* by instance: how often */
};

/* In `a`; the rest outlives it. */
void script_init(struct arena *a, const struct setting *set, const struct walk *w,
	struct script *out);

static inline int script_instance(const struct script *s, int task, int64_t seq)
{
	return s->first[task] + (int)seq;
}

/* Fill in s->want. */
void script_writers(struct arena *a, struct script *s);
/* The region of whose iterations a flag has a phase each. */
int flag_loop(const struct kernel *k, int flag);
/* Index into k->lanes of the copy that completes instance n of a flag. */
int script_lane(const struct script *s, int flag, int n);

#endif
