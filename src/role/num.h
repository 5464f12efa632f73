/* num.h - integers of a role program: bounds, instances, slots, addresses, conditions.
 *
 * An expression over the counters of a lane and the coordinates of its threads, as data: emit prints it as C text,
 * verify evaluates it. All in an arena; constants are folded when the expression is made. Comparisons are 1 or 0.
 */
#ifndef ROLE_NUM_H
#define ROLE_NUM_H

#include "base/arena.h"

/* What there are several of a variable for. The tile loop is loop NONE. */
enum var_index {
	OF_NONE,			/* there is one */
	OF_LOOP, OF_AXIS, OF_FLAG, OF_RING,
	OF_START,			/* one of the lives of carries, by what may begin them */
	OF_DIMENSION,			/* of a tensor */
};

/* Columns: id; name in a dump, in which %d or %s is the index; index; LET, if an operation declares the
 * variable, or GIVEN, if it needs no declaration. */
#define VARS(X) \
	/* counters of a lane */ \
	X(AT, "at", OF_NONE, LET)		/* position in the EU's list of tiles */ \
	X(T, "t", OF_NONE, LET)			/* number of the tile among those of the EU, from 0 */ \
	X(TILE, "tile", OF_NONE, LET)		/* number of that tile in the grid */ \
	X(TILES, "tiles", OF_NONE, LET)		/* how many tiles the EU has */ \
	X(ALL_TILES, "start[BLOCK + 1] - start[BLOCK]", OF_NONE, GIVEN)	/* the same, not declared */ \
	X(LO, "lo_%s", OF_AXIS, LET)		/* first index of an axis in the tile at hand */ \
	X(FIRST, "first_%d", OF_LOOP, LET)	/* tile of its axes with which a loop begins */ \
	X(END, "end_%d", OF_LOOP, LET)		/* where the axis of a loop with a length ends in this run */ \
	X(TRIPS, "trips_%d", OF_LOOP, LET)	/* iterations of this run of a loop */ \
	X(BASE, "base_%d", OF_LOOP, LET)	/* iterations of all runs before */ \
	X(I, "i_%d", OF_LOOP, LET)		/* number of the source iteration in this run */ \
	X(SEQ, "seq_%d", OF_LOOP, LET)		/* its number in all runs: base + i */ \
	X(J, "j_%d", OF_LOOP, LET)		/* number of the iteration of the pipelined loop */ \
	X(STEADY, "steady_%d", OF_LOOP, LET)	/* how many of those are in the steady state */ \
	X(PASSED, "passed_%d", OF_LOOP, LET)	/* tiles whose iterations a replica of a lane has counted */ \
	X(TILE_BASE, "tile_base_%d", OF_LOOP, LET)	/* base when the tile began, for stamps */ \
	X(ISSUED, "issued_%d", OF_FLAG, LET)	/* instances of a flag's product that are issued */ \
	X(RELEASED, "released_%d", OF_FLAG, LET)	/* instances that the lane has signalled */ \
	X(SEEN, "seen_%d", OF_FLAG, LET)	/* instances that the lane has waited for, where it counts them */ \
	X(SIGNALLED, "signalled_%d", OF_FLAG, LET)/* runs of a loop that were signalled before their end */ \
	X(FRESH, "fresh", OF_NONE, LET)		/* is a carry still without a value? */ \
	X(BARE, "bare_%d", OF_START, LET)	/* the same, where no number of iterations says it */ \
	X(SLOT, "slot_%s", OF_RING, LET)	/* address of the slot at hand */ \
	X(SIZE, "size_%s", OF_AXIS, GIVEN)	/* of an axis, where that is known at launch */ \
	/* where a thread is, and which elements it has at hand */ \
	X(SHARED, "shared", OF_NONE, GIVEN)	/* where the block's shared memory begins */ \
	X(WARP, "warp", OF_NONE, GIVEN)		/* number of the warp in its block */ \
	X(THREAD, "thread", OF_NONE, LET)	/* number of the thread in its lane */ \
	X(GROUP, "group", OF_NONE, LET)		/* number of the warpgroup in its lane */ \
	X(RANK, "rank", OF_NONE, GIVEN)		/* number of the block in its cluster */ \
	X(ROW0, "row0", OF_NONE, LET)		/* first row and column of a fragment that a thread has */ \
	X(COL0, "col0", OF_NONE, LET) \
	X(RB, "rb", OF_NONE, GIVEN)		/* block of rows */ \
	X(COL_GROUP, "j", OF_NONE, GIVEN)	/* group of columns */ \
	X(H, "h", OF_NONE, GIVEN)		/* half of the rows of a block */ \
	X(E, "e", OF_NONE, GIVEN)		/* element of a thread's neighbouring elements */ \
	X(KS, "ks", OF_NONE, GIVEN)		/* step, or element, along what a product contracts */ \
	X(CB, "cb", OF_NONE, GIVEN)		/* number of the instruction along the columns of a product */ \
	X(EACH, "at", OF_NONE, GIVEN)		/* element of a ring, or line of DO_LINES, over all threads */ \
	X(ALONG, "along", OF_NONE, GIVEN)	/* element of a line of DO_LINES, DO_REDUCE_SHARED */ \
	X(ROUND, "n", OF_NONE, LET)		/* batch of a store */ \
	X(PANEL, "p", OF_NONE, GIVEN)		/* panel of that batch */ \
	X(INDEX, "i%d", OF_DIMENSION, GIVEN)	/* index in a tensor */ \
	X(TO, "to", OF_NONE, LET)		/* address of the batch */ \
	X(W, "w", OF_NONE, GIVEN)		/* warp of the lane, in a loop over all */

enum var {
#define X(id, name, index, scope) VAR_##id,
	VARS(X)
#undef X
	VAR_COUNT
};

struct var_info {
	const char *name;
	enum var_index index;
	bool given;
};
extern const struct var_info var_info[VAR_COUNT];

enum num_op {
	NUM_CONST, NUM_VAR,
	NUM_ADD, NUM_SUB, NUM_MUL, NUM_DIV, NUM_MOD,	/* of numbers that are not negative: DIV, MOD */
	NUM_SHL, NUM_AND, NUM_XOR,
	NUM_SHR,			/* of a number that may be negative, too: keeps its sign */
	NUM_LT, NUM_LE, NUM_GT, NUM_GE, NUM_EQ, NUM_NE, NUM_BOTH, NUM_EITHER,
	NUM_MIN, NUM_MAX,
	NUM_SELECT,			/* a ? b : c */
	NUM_INTERIOR,			/* a, which holds in iterations in which no axis ends (role.h) */
	NUM_OF_LANE,			/* a + b * number of the lane among those that share a tree */
	NUM_TILE_AT,			/* the tile at position a of the order; b: a is relative to START[BLOCK] */
	NUM_ELEMENT,			/* element a of tensor `of`, which holds i32 or bool, row-major */
};

struct num {
	enum num_op op;
	int64_t k;			/* CONST */
	enum var var;			/* VAR */
	int of;				/* loop, flag, axis, ring, dimension; NONE: the tile loop. ELEMENT: tensor */
	const struct num *a, *b, *c;
};

const struct num *num_const(struct arena *a, int64_t k);
const struct num *num_var(struct arena *a, enum var v, int of);
const struct num *num_make(struct arena *a, enum num_op op, const struct num *x, const struct num *y);
/* NUM_ELEMENT. It has no value but in a kernel. */
const struct num *num_element(struct arena *a, int tensor, const struct num *at);
/* NUM_OF_LANE. */
const struct num *num_of_lane(struct arena *a, int64_t first, int64_t step);
const struct num *num_select(struct arena *a, const struct num *when, const struct num *x, const struct num *y);

/* The condition, marked as one that holds in every interior iteration. */
const struct num *num_mark_interior(struct arena *a, const struct num *when);
/* What is left to test in such an iteration; 1: nothing. */
const struct num *num_assume_interior(struct arena *a, const struct num *when);
bool num_alike(const struct num *x, const struct num *y);	/* NULL is like NULL alone */
/* Is x one of the conditions that must hold together for `all` to hold? */
bool num_has_conjunct(const struct num *all, const struct num *x);

/* Is it that number, whatever the counters are? */
bool num_is(const struct num *x, int64_t k);
static inline bool num_is_const(const struct num *x)
{
	return x->op == NUM_CONST;
}

bool num_uses(const struct num *x, enum var v);	/* x NULL: no */
bool num_uses_of(const struct num *x, enum var v, int of);
/* Does it go on by the same whenever the variable goes on by 1? Then *by says by how much. */
bool num_slope(const struct num *x, enum var v, int64_t *by);

/* While v goes through n numbers, from a multiple of n on: does x grow by the same from each to the next? Then *by is how much, and
 * *aligned a power of two up to NUM_ALIGNED_MOST that divides x at the first of them. n is a power of two; of_var as below. */
enum { NUM_ALIGNED_MOST = 1 << 16 };
bool num_steps(const struct num *x, enum var v, int n, int64_t (*of_var)(const void *ctx, enum var v, int of), const void *ctx,
	int64_t *by, int64_t *aligned);

/* The greatest power of two up to `most`, itself one, by which it is divisible, if variables are divisible by what
 * `of_var` says. */
int64_t num_alignment(const struct num *x, int64_t most, int64_t (*of_var)(const void *ctx, enum var v, int of),
	const void *ctx);

/* Its value, given those of variables. */
struct num_env {
	int64_t (*var)(const struct num_env *env, enum var v, int of);
};
int64_t num_value(const struct num *x, const struct num_env *env);

/* As C has it, with as few parentheses as it takes; names[] are what %s stands for. */
struct num_names {
	const char *const *axes, *const *rings, *const *tensors;
	int64_t tiles;			/* of the grid, if block b has those at positions b, b + blocks, ...; 0: tables say which it has */
	int blocks;
	const char *tile_at;		/* the function of a position that says which tile is there; NULL: that of its number */
	bool taken;			/* blocks take tiles by a counter: positions are numbers that it gives */
};

const char *num_text(struct arena *a, const struct num *x, const struct num_names *names);
const char *var_text(struct arena *a, enum var v, int of, const struct num_names *names);

#endif
