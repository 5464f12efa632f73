/* pass.h - the passes that make the tree of a lane; inside src/lower.
 *
 * build makes the plain tree: the tile loop, the loops of the program, none of them divided yet, and in them an
 * operation TASK for each sTask with its waits and its slots, in the lane's order. What the sTask does is a
 * placeholder, WORK. Each pass after it rewrites the tree; passes.def has their order, and what each needs and
 * promises. From `select` on the tree has real operations alone, and verify accepts it.
 *
 * What passes know of an operation beyond the role program is its point: in which iteration of which loop it stands. It
 * is gone when the tree is complete. */
#ifndef LOWER_PASS_PASS_H
#define LOWER_PASS_PASS_H

#include "lower/select/lowering.h"

/* What is known of an iteration's number: all of it, that it is one of the steady state, or how far it
 * is from the end. */
enum iteration_kind { ITERATION_KNOWN, ITERATION_STEADY, ITERATION_LATE };

/* Of which products lanes are signaled behind a wait for groups: none, all that are complete, or the runs of a loop. */
enum signals { SIGNAL_NOTHING, SIGNAL_COMPLETE, SIGNAL_RUNS };

/* A condition of elements that may hold for all elements of an iteration's tile: `holds` says whether it does. */
struct hint {
	const struct num *holds;
	bool interior;			/* no axis ends in the tile; else the program asks, as a mask does */
};

struct point {
	int region;			/* loop in whose iterations the operation stands; NONE: tile loop */
	const struct kentry *entry;	/* the entry that the lane performs there; NULL: none */
	int at;				/* offset of a TASK, or of a nested loop, in its region */
	const struct num *iteration;	/* of a TASK: number of its iteration */
	enum iteration_kind kind;
	int class;			/* of the pipelined iteration, see kernel.h */
	int number;			/* of that iteration, modulo the unrolling */
	int last;			/* greatest iteration of the region, counted likewise */
	int *around;			/* by loop, NONE too: iteration of the regions around, likewise */
	VEC(struct hint) hints;		/* of a TASK, once its operations are selected */
	/* of a flag's WAIT */
	const struct flag_wait *flag_wait;
	/* of a COPIES_WAIT */
	const struct copies_wait *copies;	/* what it leaves under way, by class; NULL: as its count says */
	/* of a GROUPS_WAIT */
	const struct group_wait *wait;	/* what it leaves under way, by class; NULL: as its count says */
	const int *instances_left;	/* by sTask: latest instances that may be under way; NULL: none */
	bool pins;			/* registers of complete products are pinned behind it */
	bool issued;			/* the entry's own product is issued */
	enum signals signals;
	int run_of;			/* SIGNAL_RUNS: of this loop */
	bool last_only;			/* it stands in the last iteration of its region alone */
};

typedef enum err_code pass_run(struct lowering *c, struct err *e);

/* On the tree of c->lane; lower_passes (lower.h) has their names and contracts. */
pass_run pass_build, pass_stamp, pass_peel, pass_hoist, pass_unroll, pass_signal, pass_pin, pass_select,
	pass_skip, pass_unmask, pass_specialize;
/* On all lanes of c->r. */
pass_run pass_merge;

/* Sets what a wait for groups leaves under way to that of a class of iterations. */
void group_wait_set_class(struct role_op *o, struct point *p, int class);
/* Number of iteration n of the tile loop among the tiles of the EU: the lane may have replicas. */
const struct num *tile_number(struct lowering *c, const struct num *n);
/* The latest iteration of product m that is issued when the lane stands at the point, at entry x. */
int latest_issued(const struct point *p, const struct kentry *x, const struct kentry *m);
/* Is the result of product m pinned where it is read, not where it is awaited? */
bool is_pinned_where_read(const struct lowering *c, const struct kentry *m, int buffer);
/* Operations of an sTask's initial value: as iteration `iteration` has it. */
NODISCARD enum err_code add_initial(struct lowering *c, int buffer, int iteration, struct err *e);
void spare_kept_sums(struct lowering *c);
NODISCARD enum err_code add_initial_of_task(struct lowering *c, const struct kentry *x, struct err *e);

/* BUG if the body has something that no pass behind that one expects (promises.c). */
void check_promises(const struct lowering *c, const struct role_body *b, enum pass_id behind);

/* ---- what passes share ------------------------------------------------------------------ */

/* Rewrites a body: `rewrite` is called for each of its operations, and appends what replaces it.
 * rewrite_inside does that with the bodies of an operation that is a region. */
typedef enum err_code rewrite_fn(struct lowering *c, struct role_op *o, struct err *e);
NODISCARD enum err_code rewrite_body(struct lowering *c, struct role_body *b, rewrite_fn *rewrite, struct err *e);
NODISCARD enum err_code rewrite_inside(struct lowering *c, struct role_op *o, rewrite_fn *rewrite, struct err *e);

/* Add an operation that stands somewhere: its point, to be filled in. */
struct point *point_new(struct lowering *c, const struct point *like);
static inline bool is_section(const struct role_op *o, enum role_section s)
{
	return (o->what == DO_LOOP || o->what == DO_IF) && o->u.region.section == s;
}

/* A copy of an operation and of all inside, as iteration `number + shift` of `loop` has it. */
struct copying {
	int loop, shift;
	/* of what stands in the loop's own iterations */
	enum iteration_kind kind;
	int class;
	int last;
	const struct num *from;		/* entries at offset `at` perform iteration from + add + at */
	int add;
};
void copy_op(struct lowering *c, const struct role_op *o, const struct copying *how);
/* from + n, without + 0. */
const struct num *num_offset(struct lowering *c, const struct num *from, int n);
/* Where the paths for different trip counts join, the compiler does not know which products are in flight and may move
 * registers: add a wait for all products that the loop may have left in flight, if there are any. */
void add_join_wait(struct lowering *c, const struct point *p);
/* Such a wait. entry: the last one of the loop that has products; NULL: they are of sTasks before the loop. */
void add_join(struct lowering *c, const struct point *p, const struct kentry *entry);
/* A wait for groups, with the point that passes read. */
struct point *add_groups_wait(struct lowering *c, int n, const struct point *like, const char *why);
/* The last product of the loop that may be in flight when an iteration ends; NULL. */
const struct kentry *last_product(const struct lowering *c, int loop);
/* Both conditions, of which `all` may have the other one already. */
const struct num *add_conjunct(struct lowering *c, const struct num *all, const struct num *when);
/* May the loop have several texts, of which some leave conditions out? */
bool can_unmask(const struct lowering *c, int loop);
/* Pins of what is complete behind a wait for groups at that point. */
NODISCARD enum err_code add_pins(struct lowering *c, const struct point *p, struct err *e);

#endif
