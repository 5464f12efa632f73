/* play_state.h - where a play stands, for the files that play it; inside src/verify.
 *
 * play.c lets warps go on, play_flags.c does what concerns flags and copies, play_places.c
 * what concerns slots and registers.
 */
#ifndef VERIFY_PLAY_STATE_H
#define VERIFY_PLAY_STATE_H

#include "verify/play.h"

enum {
	WARPS = 2,			/* of a lane: its first, which issues copies, and another */
	BLOCKS_MOST = 16,		/* of a cluster */
};
_Static_assert(WARPS * BLOCKS_MOST <= 32, "a bit a warp");

/* Something that happened to a place. It is over for those whose clock has at least
 * `until` of component `of`. */
struct access {
	int of, until;
	int instance;
	int warp;			/* who did it with ordinary instructions; NONE: an engine */
	int fence;			/* of that warp after it; 0: none yet */
	int by;				/* an engine's: the warp that issued it */
	bool copied;			/* by threads that do not wait for it */
	bool writes, sums;
	bool initial;			/* it writes a value that is no instance's */
};

struct cell {
	int writer;			/* instance that wrote last */
	bool written;
	VEC(struct access) now, before;	/* since that instance wrote, and since the one before */
};

struct waiter {
	int warp, event, next;
};

/* A phase of a barrier: the one that instance n of a flag completes in one block. */
struct round {
	uint32_t arrived;		/* a bit a warp, by block */
	int *event;			/* when they did, by bit */
	int copies;			/* under way to it, by block of the cluster */
	bool complete;
	int waiter;			/* list */
	int *clock;			/* joined as they come */
};

struct warp {
	int block, lane, number;	/* 0: the lane's first */
	int at;				/* next action */
	int event;			/* that is under way */
	int groups, stores;		/* issued */
	bool multiplies, stores_on;	/* something that no group has been issued with */
	bool meets;			/* stands at an ACT_SYNC or ACT_CLUSTER */
	int *clock, *fenced;		/* now; when it came to its last fence */
	VEC(int) unfenced;		/* places */
};

struct play {
	struct arena *a;
	const struct script *s;
	const struct role_program *r;
	int blocks, nwarps, nclock;
	struct warp *warp;
	/* Flags are numbered through over the blocks, those of the first as in the kernel. */
	int *first_barrier;		/* by flag: component of the clock */
	int *awaited;			/* by component, of barriers: phases up to the last that
					 * somebody waits for */
	int *ninstances;		/* by flag */
	struct round **round;		/* by flag and instance */
	struct cell *cell;		/* by block; but for slots, one a warp of the lane */
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

/* Of block `block`. */
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

	while (w->lane != script_lane(p->s, kernel_flag(p, flag), n))
		w++;
	return w;
}

/* Its bit among those who arrive. */
static inline int bit_of(const struct warp *w)
{
	return w->block * WARPS + w->number;
}

/* The bits of those who must arrive for instance n. */
static inline uint32_t arrivals_of(const struct play *p, int flag, int n)
{
	const struct warp *w = completer(p, flag, n);
	uint32_t bits = flag_at(p, flag)->bytes ? 1 : (1u << warps_of(p, w)) - 1, all = 0;

	if (!flag_at(p, flag)->all)
		return bits << w->block * WARPS;
	for (int i = 0; i < p->blocks; i++)
		all |= bits << i * WARPS;
	return all;
}

/* clocks: events of each warp, groups and stores of each warp that are over, phases of
 * barriers. */

static inline int events_of(const struct play *p, int warp)
{
	(void)p;
	return warp;
}

static inline int groups_of(const struct play *p, int warp)
{
	return p->nwarps + warp;
}

static inline int stores_of(const struct play *p, int warp)
{
	return 2 * p->nwarps + warp;
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

/* Somebody may take a phase of the flag for another. */
static inline void blame_flag(const struct play *p, int flag)
{
	p->counterexample->mistaken = kernel_flag(p, flag);
}

/* For messages; in p->a. */
const char *play_name(const struct play *p, int instance);
const char *play_flag_name(const struct play *p, int flag, int n);
struct srcloc play_line(const struct play *p, int instance);
struct srcloc play_flag_line(const struct play *p, int flag);

/* Cells of a block: its slots, then registers of either warp. */
int play_cells(const struct play *p);
/* An access that begins where the warp stands, to a place of this block. */
NODISCARD enum err_code play_add_access(struct play *p, int block, struct warp *w, int place,
	struct access x);
/* READ, WRITE, GROUP_READ and GROUP_SUM. */
NODISCARD enum err_code play_access(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_store(struct play *p, struct warp *w, const struct act *a);
void play_fence(struct play *p, struct warp *w);

NODISCARD enum err_code play_arrive(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_copy(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_copy_threads(struct play *p, struct warp *w, const struct act *a);
NODISCARD enum err_code play_wait(struct play *p, struct warp *w, const struct act *a);

#endif
