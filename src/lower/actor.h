/* actor.h - a lane at work on its list of actions; for actions.c and act_entry.c. */
#ifndef LOWER_ACTOR_H
#define LOWER_ACTOR_H

#include "lower/actions.h"
#include "lower/passes.h"

struct actor {
	struct arena *a;
	struct script *s;
	const struct kernel *k;
	const struct klane *lane;
	VEC(struct act) acts;
	int64_t tile, turn;		/* at hand: of all tiles; of the lane's */
	int64_t *base, *i, *seq;	/* by loop, as the text's variables */
	int *issued, *released, *seen, *told;	/* by flag */
	int instance;			/* at work */
};

static inline void act(struct actor *x, enum act_kind kind, int at, int64_t n)
{
	VEC_PUSH(x->a, &x->acts, ((struct act){ .kind = kind, .instance = x->instance, .at = at,
		.n = (int)n, .want = NONE }));
}

static inline int64_t passed(const struct actor *x, int loop)
{
	return loop == NONE ? x->tile : x->seq[loop];
}

static inline bool in_lane(const struct actor *x, int task)
{
	return x->s->set->lane[task] == x->lane - x->k->lanes.v - x->lane->copy;
}

/* One sTask, of an iteration of its own region, in a turn of that class. */
void actor_entry(struct actor *x, const struct kentry *e, int class, int64_t iteration);
/* Give carries their initial value whose lives are iterations of `loop` and begin with
 * `task`, or with any sTask inside loop `nested`; all of them if both are NONE. */
void actor_begin_lives(struct actor *x, int loop, int task, int nested);
/* After loop `nested` in an iteration of `loop`: what its entries would have waited for
 * had it made one. */
void actor_wait_missed(struct actor *x, int loop, int nested);
/* Run n of its loop is over for the flag's sTask. */
void actor_tell_run(struct actor *x, int f, int64_t n);
/* Arrive for the products that are known to be complete. behind NULL: all are. */
void actor_release(struct actor *x, const int *behind);

#endif
