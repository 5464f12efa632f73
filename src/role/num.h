/* num.h - whole numbers of a role program: bounds, instances, slots, addresses, conditions.
 *
 * An expression over the counters of a lane and the places of its threads, as data: a
 * printer writes it down, a verifier evaluates it. All in an arena; what is known is
 * computed when the expression is made. Comparisons are 1 or 0.
 */
#ifndef ROLE_NUM_H
#define ROLE_NUM_H

#include "base/arena.h"

/* columns: ID, name in a dump (%d: the loop or flag, %s: the axis or ring) */
#define VARS(X) \
	/* of a lane, changing as it goes */ \
	X(AT, "at")			/* of the EU's tiles in the order of dealing */ \
	X(T, "t")			/* number of the tile at hand among those of the EU */ \
	X(TILE, "tile")			/* number of that tile in the grid */ \
	X(TILES, "tiles")		/* of the EU */ \
	X(ALL_TILES, "start[BLOCK + 1] - start[BLOCK]")	/* the same, where it is not let */ \
	X(LO, "lo_%s")			/* where an axis stands: first index at hand */ \
	X(FIRST, "first_%d")		/* tile of its axes with which a loop begins */ \
	X(TRIPS, "trips_%d")		/* iterations that it makes then */ \
	X(BASE, "base_%d")		/* that it has made in all runs before */ \
	X(I, "i_%d")			/* iteration at hand, of this run */ \
	X(SEQ, "seq_%d")		/* ... of all runs */ \
	X(J, "j_%d")			/* turn */ \
	X(STEADY, "steady_%d")		/* turns of the steady state */ \
	X(PASSED, "passed_%d")		/* tiles of which a copy has counted the iterations */ \
	X(TILE_BASE, "tile_base_%d")	/* base where the tile begins, for stamps */ \
	X(ISSUED, "issued_%d")		/* of a flag: instances of its product issued */ \
	X(RELEASED, "released_%d")	/* ... that others have been told of */ \
	X(SEEN, "seen_%d")		/* ... that the lane has waited for, where that is counted */ \
	X(TOLD, "told_%d")		/* runs told of early */ \
	X(FRESH, "fresh")		/* is a carry without a value? */ \
	X(BARE, "bare_%d")		/* ... where no number of iterations says so? By who begins it */ \
	X(SLOT, "slot_%s")		/* address of the slot of a ring at hand */ \
	/* places of threads, and of what they have at hand */ \
	X(SHARED, "shared")		/* where the block's shared memory begins */ \
	X(WARP, "warp")			/* of the block */ \
	X(THREAD, "thread")		/* of the lane */ \
	X(GROUP, "group")		/* warpgroup of the lane */ \
	X(RANK, "rank")			/* of the block in its cluster */ \
	X(ROW0, "row0")			/* first row and column of a fragment that a thread has */ \
	X(COL0, "col0") \
	X(RB, "rb")			/* block of rows; eight of columns, half of its rows, element */ \
	X(EIGHT, "j") \
	X(H, "h") \
	X(E, "e") \
	X(KS, "ks")			/* step, or element, along what a product contracts */ \
	X(CB, "cb")			/* piece of its columns */ \
	X(EACH, "at")			/* element of a ring, one after the other over the threads */ \
	X(ALONG, "along")		/* along an axis, in a line of DO_LINES; EACH: which line */ \
	X(ROUND, "n")			/* of a store in batches; panel of the batch */ \
	X(PANEL, "p") \
	X(INDEX, "i%d")			/* in a dimension of the tensor */ \
	X(TO, "to")			/* address of the batch */ \
	X(W, "w")			/* warp of the lane, where all are gone through */

enum var {
#define X(id, name) VAR_##id,
	VARS(X)
#undef X
	VAR_COUNT
};

enum num_op {
	NUM_CONST, NUM_VAR,
	NUM_ADD, NUM_SUB, NUM_MUL, NUM_DIV, NUM_MOD,	/* of numbers that are not negative: DIV, MOD */
	NUM_SHL, NUM_AND, NUM_XOR,
	NUM_LT, NUM_LE, NUM_GT, NUM_GE, NUM_EQ, NUM_NE, NUM_BOTH, NUM_EITHER,
	NUM_MIN, NUM_MAX,
	NUM_SELECT,			/* a ? b : c */
	NUM_INTERIOR,			/* a, which holds in turns in which no axis ends (role.h) */
	NUM_TILE_AT,			/* the tile at place a of the order, START[a] behind b */
};

struct num {
	enum num_op op;
	int64_t k;			/* CONST */
	enum var var;			/* VAR */
	int of;				/* loop, flag, axis, ring, dimension; NONE: the tile loop */
	const struct num *a, *b, *c;
};

const struct num *num_const(struct arena *a, int64_t k);
const struct num *num_var(struct arena *a, enum var v, int of);
const struct num *num_make(struct arena *a, enum num_op op, const struct num *x,
	const struct num *y);
/* x + k as it is, even if x is known: in another lane's role k may be another number. */
const struct num *num_plus(struct arena *a, const struct num *x, int64_t k);
const struct num *num_select(struct arena *a, const struct num *when, const struct num *x,
	const struct num *y);

/* The condition, which holds wherever a turn is whole. */
const struct num *num_mark_interior(struct arena *a, const struct num *when);
/* What is left to ask in such a turn; 1: nothing. */
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

/* Its value, given those of variables. */
struct num_env {
	int64_t (*var)(const struct num_env *env, enum var v, int of);
};
int64_t num_value(const struct num *x, const struct num_env *env);

/* As C has it, with as few parentheses as it takes; names[] are what %s stands for. */
struct num_names {
	const char *const *axes, *const *rings;
};
struct buf;
void num_print(struct buf *out, const struct num *x, const struct num_names *names);
const char *num_text(struct arena *a, const struct num *x, const struct num_names *names);
const char *var_text(struct arena *a, enum var v, int of, const struct num_names *names);

#endif
