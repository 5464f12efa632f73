/* live_state.h - facts about the values of a lane, for liveness; for live*.c alone.
 *
 * live_read.c walks forward over the tree and notes what live.c needs on its backward walk; live_products.c adds what
 * holds for matrix products alone. live_pins.c removes the pins that live.c has not found useful.
 */
#ifndef ROLE_LIVE_STATE_H
#define ROLE_LIVE_STATE_H

#include "role/live.h"

/* A version of a fragment. */
struct version {
	struct frag_at at;
	int words;
	int makers, uses;		/* operations, and the last one met */
	const struct role_op *maker, *user;
	int made_at, made_in;		/* its number in the order of the text; its loop's */
	bool all;			/* some operation needs more of it than the element at hand */
	bool of_numbers;		/* it is computed from nothing in registers */
};

/* A sum that has no value before the loop. */
struct born {
	const struct role_op *loop;
	int version;
};

/* An operand in registers that a product may read until this wait for groups. */
struct retired {
	const struct role_op *wait;
	int version;
};

/* Operands in registers of products under way. */
struct group {
	VEC(int) operands;		/* versions */
};

struct ops {
	VEC(const struct role_op *) v;
};

struct reading {
	struct arena *a;
	VEC(struct version) versions;
	VEC(struct born) born;
	VEC(struct retired) retired;
	struct ops fresh;		/* products that add to nothing, whatever they say */
	/* where it stands */
	const struct role_op *at, *task;
	int order, loop, loops;		/* operations so far; the loop at hand, and all so far */
	struct ops around;		/* loops with a counter around it */
	VEC(struct group) groups;	/* under way; the last one is in the making */
};

static inline bool ops_hold(const struct ops *x, const struct role_op *o)
{
	for (int i = 0; i < x->v.n; i++)
		if (x->v.v[i] == o)
			return true;
	return false;
}

/* live_read.c: all of a lane; what it notes is in `a`. Each version that an operation makes, uses
 * or pins is known then. */
struct reading live_read(const struct role *l, struct arena *a);
/* The version's number. One that is not known is added, which moves the others in memory. */
int live_find(struct reading *r, struct frag_at at);
/* Is it made where it is used? */
bool live_is_passing(const struct version *v);

/* live_products.c: the operation at hand, when what it makes and uses is known. */
void live_note_product(struct reading *r, const struct role_op *o);
void live_note_commit(struct reading *r);
void live_note_wait(struct reading *r, const struct role_op *o);

/* live_pins.c: take out those behind waits for groups that are not needed. */
void live_drop_pins(struct role_body *b, const struct ops *needed);

#endif
