/* play_state.h - the state of the execution of a scenario; for play*.c alone.
 *
 * play.c executes actions and finds deadlocks; play_flags.c has the rules of flags and copies, play_cells.c those of
 * slots, stagings and registers.
 */
#ifndef VERIFY_PLAY_STATE_H
#define VERIFY_PLAY_STATE_H

#include "verify/play.h"

enum {
	WARPS = 2,			/* of a lane: its first, which issues copies, and another */
	BLOCKS_MOST = 16,		/* of a cluster */
};
_Static_assert(WARPS * BLOCKS_MOST <= 32, "a bit a warp");

/* A read or write of a cell. An event knows that it is over if component `of` of the event's clock is at least
 * `until`. */
struct access {
	int of, until;
	int instance;
	int warp;			/* that did it with ordinary instructions; NONE: an engine did */
	int fence;			/* event of the first fence of that warp after it; 0: none yet */
	int by;				/* the warp that did or issued it */
	bool peer;			/* of a cell of another block */
	bool within;			/* by an engine, in the block of the warp that issued it */
	bool copied;			/* by copies that threads do not wait for */
	bool writes, sums;
	bool initial;			/* it writes an initial value, of no instance */
};

struct cell_state {
	int writer;			/* instance that wrote last */
	bool written;
	VEC(struct access) now, before;	/* since that instance wrote, and since the one before */
};

struct waiter {
	int warp, event, next;
};

/* The generation that instance n of a flag completes in one block. */
struct generation_state {
	uint32_t arrived;		/* a bit a warp, by block */
	int *event;			/* of each arrival, by bit */
	int copies;			/* parts of a load that are issued */
	bool complete;
	int waiter;			/* first of a list in play.waiters */
	int *clock;			/* the join of those of all arrivals and copies */
};

struct warp {
	int block, lane, number;	/* 0: the lane's first */
	int at;				/* next action */
	int event;			/* number of the event at hand */
	int groups, stores, copies;	/* issued */
	bool multiplies, stores_on;	/* products, stores that are not committed */
	bool meets;			/* waits at an ACT_SYNC or ACT_CLUSTER */
	int *clock, *fenced;		/* now; at its last fence */
	VEC(int) unfenced;		/* cells that it has accessed since */
};

struct play {
	struct arena *a;
	const struct scenario *s;
	const struct role_program *r;
	int blocks, nwarps, nclock;
	struct warp *warp;
	/* flags are numbered over all blocks, those of the first block as in the kernel */
	int *first_barrier;		/* by flag: component of the clock */
	int *awaited;			/* by component of a barrier: generations up to the last that a lane awaits */
	int *ninstances;		/* by flag */
	struct generation_state **generation;	/* by flag and instance */
	struct cell_state *cell;	/* by block: slots, then the other cells of each of the WARPS */
	VEC(struct waiter) waiters;
	struct counterexample *counterexample;
	struct err *e;
};

static inline int warp_index(const struct play *p, const struct warp *w)
{
	return (int)(w - p->warp);
}

static inline int warps_of(const struct play *p, const struct warp *w)
{
	return p->r->roles.v[w->lane].warps > 1 ? WARPS : 1;
}

/* Number of the kernel's flag in block `block`; and back. */
static inline int flag_in(const struct play *p, int block, int flag)
{
	return block * p->r->flags.n + flag;
}

static inline int kernel_flag(const struct play *p, int flag)
{
	return flag % p->r->flags.n;
}

static inline const struct role_flag *flag_at(const struct play *p, int flag)
{
	return &p->r->flags.v[kernel_flag(p, flag)];
}

static inline int depth_of(const struct play *p, int flag)
{
	return flag_at(p, flag)->depth;
}

/* The first warp of the lane that completes instance n of a flag, in its own block. */
static inline const struct warp *completer(const struct play *p, int flag, int n)
{
	const struct warp *w = p->warp + flag / p->r->flags.n * (p->nwarps / p->blocks);

	while (w->lane != scenario_lane(p->s, kernel_flag(p, flag), n))
		w++;
	return w;
}

/* The warp's bit in generation_state.arrived. */
static inline int bit_of(const struct warp *w)
{
	return w->block * WARPS + w->number;
}

/* The bits of all warps that must arrive for instance n. */
static inline uint32_t arrivals_of(const struct play *p, int flag, int n)
{
	const struct warp *w = completer(p, flag, n);
	const struct role_flag *f = flag_at(p, flag);
	uint32_t bits = f->bytes && !f->each_warp ? 1 : (1u << warps_of(p, w)) - 1, all = 0;

	if (!f->all)
		return bits << w->block * WARPS;
	for (int i = 0; i < p->blocks; i++)
		all |= bits << i * WARPS;
	return all;
}

/* Components of a clock: events of each warp, groups, stores and counted copies of each warp that are over, generations of
 * barriers that are over. */
enum warp_component { EVENTS, GROUPS, STORES, COPIES, WARP_COMPONENTS };

static inline int component(int warp, enum warp_component of)
{
	return warp * WARP_COMPONENTS + (int)of;
}

static inline int barrier_of(const struct play *p, int flag, int n)
{
	return p->first_barrier[flag] + n % depth_of(p, flag);
}

static inline void join(const struct play *p, int *into, const int *from)
{
	for (int i = 0; i < p->nclock; i++)
		into[i] = into[i] > from[i] ? into[i] : from[i];
}

/* A warp may take a generation of the flag for another one. */
static inline void blame_flag(const struct play *p, int flag)
{
	p->counterexample->mistaken = kernel_flag(p, flag);
}

/* For messages; in p->a. */
const char *play_name(const struct play *p, int instance);
const char *play_flag_name(const struct play *p, int flag, int n);
struct srcloc play_line(const struct play *p, int instance);
struct srcloc play_flag_line(const struct play *p, int flag);

/* How many cells a block has, those that each warp has for itself counted for each. */
int play_ncells(const struct play *p);
/* Adds an access by the warp to a cell of the block. ERR_ILLEGAL if an earlier access may not be over. */
NODISCARD enum err_code play_add_access(struct play *p, int block, struct warp *w, int cell, struct access x);
/* ACT_READ, ACT_WRITE, ACT_GROUP_READ, ACT_GROUP_SUM and ACT_STORE; and so on. */
NODISCARD enum err_code play_access(struct play *p, struct warp *w, const struct act *a);
/* ACT_COPY_COUNTED: a write that is over with the last of its copies. */
NODISCARD enum err_code play_counted_copy(struct play *p, struct warp *w, const struct act *a);
void play_fence(struct play *p, struct warp *w);

NODISCARD enum err_code play_arrive(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_copy(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_wait(struct play *p, struct warp *w, const struct act *a);

#endif
