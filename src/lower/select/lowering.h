/* body.h - how a kernel's decisions become the tree of its operations; inside src/lower.
 *
 * needs: a kernel after all passes of passes.h
 * computes: its role program (role/role.h)
 *
 * The tree is made from the outside in: program.c, lane.c, loop.c, task.c, wait.c and release.c.
 * What is inside a task is product.c's, sums.c's (with operands.c), compute.c's (with value.c,
 * reduce.c, lines.c, carry.c, layout_conversion.c), load.c's (with boxes.c) and store.c's; where things are
 * is place.c's;
 * op.c has what all of them are made with. Each operation is made where what it
 * needs is known: registers by version, instances by the turn at hand.
 */
#ifndef LOWER_SELECT_LOWERING_H
#define LOWER_SELECT_LOWERING_H

#include "lower/layout/folds.h"
#include "lower/passes.h"
#include "role/role.h"

struct point;
enum { GROUPS_MOST = 7 };		/* that a wait can name */

/* A value in the lane's scratch, see conversions.h. */
struct converted {
	int node, arg, carry;		/* what takes which */
	int64_t at;
};

struct lowering {
	const struct kernel *k;
	const struct plan *plan;
	const struct graph *g;
	const struct program *p;
	struct arena *a;
	struct role_program *r;
	struct role *role;
	const struct klane *lane;
	struct role_body *into;		/* where operations go */
	int task, wait;			/* that the next ones are for; NONE */
	VEC(struct touch) touches;	/* of the operation in the making */
	const struct point *at;		/* where they stand (pass/pass.h) */
	const struct frag **of_buffer;	/* by buffer, on this lane; NULL: not yet */
	struct frag **of_node;		/* by node: of the sTask at work alone */
	bool *fused;			/* by node: an element of the loop at hand */
	VEC(struct converted) conversions;	/* in the lane's scratch at hand */
	const struct num *at_hand[AXES_MAX];	/* where axes stand in the part, if not where the
						 * fragment's element at hand is; NULL */
	const struct frag_layout *layout;	/* of the fragment at hand; NULL: as values lie */
	int step;			/* its columns are those of step KS, of so many; 0: all */
	const struct frag *stored_result;	/* of the product at hand, whose result goes to a ring; NULL */
	int words;			/* of all the lane's buffers in registers, of a thread */
	bool has_spare_registers;			/* for those of each loop beside each other: lane.c */
	bool walks;			/* row and column at hand are any element's, not a fragment's */
	bool reads_value;		/* ... are certainly a fragment's */
	const struct shape2 *along;	/* what a product by threads contracts, as rows, of which
					 * element KS is at hand; NULL */
};

/* ---- making operations (add_op.c) ----------------------------------------------------- */

/* Append an operation, with the touches that have come up. It may be filled in until the
 * next. */
struct role_op *add_op(struct lowering *c, enum role_do what);
/* What follows goes into its body (or another's), until what was before is put back. */
struct role_body *enter_body(struct lowering *c, struct role_body *inner);
static inline void leave_body(struct lowering *c, struct role_body *outer)
{
	c->into = outer;
}
void add_touch(struct lowering *c, enum touch_how how, enum touch_what what, int of, int version);

struct role_op *add_block(struct lowering *c, const char *note);
struct role_op *add_if(struct lowering *c, const struct num *when, const char *note);
struct role_op *add_let(struct lowering *c, enum var v, int of, const struct num *to);
void add_let_more(struct lowering *c, struct role_op *let, enum var v, int of, const struct num *to);
void add_set(struct lowering *c, enum var v, int of, const struct num *to);
void add_advance(struct lowering *c, enum var v, int of, const struct num *by);
/* why: for who asks why it is there. */
void add_warp_sync(struct lowering *c, const char *why);
void add_lane_sync(struct lowering *c, const char *why);
void add_fence(struct lowering *c, const char *why);
void add_groups_wait_op(struct lowering *c, int n, const char *why);
void add_pin(struct lowering *c, const struct frag *f, int version, int words);

/* Numbers, short. */
static inline const struct num *N(struct lowering *c, int64_t k)
{
	return num_const(c->a, k);
}
static inline const struct num *V(struct lowering *c, enum var v, int of)
{
	return num_var(c->a, v, of);
}
#define ADD(x, y) num_make(c->a, NUM_ADD, x, y)
#define SUB(x, y) num_make(c->a, NUM_SUB, x, y)
#define MUL(x, y) num_make(c->a, NUM_MUL, x, y)
#define DIV(x, y) num_make(c->a, NUM_DIV, x, y)
#define MOD(x, y) num_make(c->a, NUM_MOD, x, y)
#define NUM2(op, x, y) num_make(c->a, NUM_##op, x, y)

/* ---- where things are (body_place.c) --------------------------------------------------- */

#define ALL_AXES (~(uint64_t)0)

/* How a value of a shape, a node's or carry's in the part that sTask s works on is spread over the lane. */
NODISCARD enum err_code lay_out_shape(struct lowering *c, const struct stask *s,
	const struct shape2 *shape, enum dtype type, struct frag *f, struct err *e);
NODISCARD enum err_code lay_out_node(struct lowering *c, const struct stask *s, int node,
	struct frag *f, struct err *e);
NODISCARD enum err_code lay_out_buffer(struct lowering *c, int buffer, struct frag *f, struct err *e);
/* The registers of a buffer; those of a node of the sTask at work. */
NODISCARD enum err_code find_buffer_frag(struct lowering *c, int buffer, const struct frag **f,
	struct err *e);
NODISCARD enum err_code find_node_frag(struct lowering *c, const struct stask *s, int node,
	const struct frag **f, struct err *e);
/* The version of a buffer in registers that entry x has at hand in this turn. */
int register_version(const struct lowering *c, const struct kentry *x, int buffer);
/* Where an axis stands: its first index in this tile or iteration; and for the fragment
 * element at hand its index within the tile. */
const struct num *axis_first(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis);
const struct num *axis_local_index(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis);
/* The element at hand is one of the part, and within the ends of those of its axes that are in
 * the set `ends`; 1 if there is nothing to ask. */
const struct num *inside_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f, uint64_t ends);
const struct num *tensor_index(struct lowering *c, const struct stask *s, const struct index_expr *x,
	const struct shape2 *shape, bool local);
/* Address of a ring's element: at a row and column of it; at the axes' positions. */
const struct num *slot_address(struct lowering *c, const struct ring *r);
const struct num *ring_element_address(struct lowering *c, const struct ring *r, const struct num *row,
	const struct num *col);
const struct num *ring_address(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape);
/* Elements that the part has along an axis of the shape. */
int64_t axis_extent(const struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis);
/* Does the last tile of an axis of the shape reach beyond its end? */
bool axis_is_ragged(const struct lowering *c, const struct shape2 *shape, int axis);
/* The place, in rows and columns of `from`, of the element at hand of `to`. */
const struct num *plain_offset(struct lowering *c, const struct stask *s,
	const struct shape2 *from, const struct shape2 *to);
/* One thread for each element: of vectors several hold the same. 1: all. */
const struct num *one_holder_condition(struct lowering *c, enum frag_kind kind);
/* Which threads and elements bring the part's elements to memory. */
const struct num *owner_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f);
/* Elements of a ring, or of the part of s in it, gone through over the lane's threads: how many
 * there are and where the one at hand is, (ROW0, COL0) of them, for `move`. Returns whether it
 * is one of the tile, within the ends of its axes. */
const struct num *walk_ring(struct lowering *c, const struct stask *s, const struct ring *r,
	struct role_op *o);
/* s reads what lies in the buffer's ring: of all parts of the value that it takes. */
void add_ring_touch(struct lowering *c, const struct stask *s, int buffer);
/* Where the element at hand is in the tensor of a load or store, by dimension; *inside: and it
 * is there, after what is asked already. */
void tensor_indices(struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, struct role_index *out, const struct num **inside);
/* The buffer that node `node` of another sTask is to this one; NONE. */
int buffer_of_node(const struct lowering *c, const struct stask *s, int node);
int buffer_of_carry(const struct lowering *c, const struct stask *s, int carry);
const struct shape2 *buffer_shape(const struct lowering *c, const struct buffer *b);

static inline const struct stask *stask_of(const struct lowering *c, const struct kentry *x)
{
	return &c->g->tasks.v[x->task];
}
static inline bool has_ring(const struct lowering *c, int buffer)
{
	return c->k->ring_of[buffer] != NONE;
}
static inline const struct ring *ring_of(const struct lowering *c, int buffer)
{
	return &c->k->rings.v[c->k->ring_of[buffer]];
}
static inline bool in_lane(const struct lowering *c, int task)
{
	return c->plan->entries.v[plan_entry_of(c->plan, task)].lane == c->lane->lane;
}
/* Does the lane go on before the product is complete? */
static inline bool under_way(const struct lowering *c, int task)
{
	return on_matrix(c->k, task) && !kernel_result_shared(c->k, task);
}

/* ---- conditions that whole tiles may meet (masks.c) ------------------------------------- */

/* `inside`, which is about the end of the axis, marked if the turn can be clear of it. */
const struct num *mark_axis_end(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis, const struct num *inside);
/* The same of `within`, that an index of a tensor is not beyond its ends. */
const struct num *mark_index(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct index_expr *x, int64_t size, const struct num *within);
/* Can the turn be clear of the condition of a `where`? */
bool mark_where(struct lowering *c, const struct stask *s, int node);

/* ---- products (product.c, sums.c, operands.c) ------------------------------------------ */

/* A product that is done when the lane goes on. */
struct sync_product {
	const struct node *mma;
	int node, result;		/* of the program; buffer */
	struct frag_at sum;
	struct shape2 along;		/* what is contracted, as rows */
	struct shape2 at;		/* the result's, with what of `along` is whole */
};

/* The matrix instruction for an sTask whose result is spread so. */
NODISCARD enum err_code find_matrix_instruction(struct lowering *c, const struct stask *s,
	const struct frag *sum, const struct matrix_instruction **out, struct err *e);
/* It is one that the kernel has. */
void note_product_form(struct lowering *c, const struct product_form *f);
/* Does the operand in a ring lie in one piece, as the product takes it? */
NODISCARD enum err_code check_contiguous(const struct lowering *c, const struct stask *s,
	const struct ring *r, struct err *e);
/* The product in steps, on a synchronous matrix unit; the sum is there. */
NODISCARD enum err_code select_step_products(struct lowering *c, const struct kentry *x,
	const struct sync_product *p, struct err *e);

/* ---- elements (body_value.c) ----------------------------------------------------------- */

const struct val *val_const(struct lowering *c, enum dtype t, double k);
const struct val *val_num(struct lowering *c, const struct num *n);
const struct val *val_frag(struct lowering *c, struct frag_at at);
const struct val *val_shared(struct lowering *c, enum dtype type, enum dtype from,
	const struct num *address);
const struct val *val_cast(struct lowering *c, enum dtype to, enum dtype from, const struct val *x);
const struct val *val_guard(struct lowering *c, const struct num *when, const struct val *x,
	const struct val *otherwise);
/* Where a value of this shape is at hand, its element out of a tile in shared memory, if it is
 * there; or zero; of `node`. */
const struct val *ring_value(struct lowering *c, const struct kentry *x, const struct ring *r,
	const struct shape2 *shape);
NODISCARD enum err_code ring_value_as(struct lowering *c, const struct kentry *x,
	const struct ring *r, const struct shape2 *shape, const struct val **out, struct err *e);
NODISCARD enum err_code ring_value_of_node(struct lowering *c, const struct kentry *x,
	const struct ring *r, int node, const struct val **out, struct err *e);
/* Element `arg` where element (rb, j, h, e) of `node` is at hand. */
NODISCARD enum err_code operand_value(struct lowering *c, const struct kentry *x, int node, int arg,
	const struct val **out, struct err *e);
/* The value of an element-wise node's element at hand. */
NODISCARD enum err_code element_value(struct lowering *c, const struct kentry *x, int node,
	const struct val **out, struct err *e);
NODISCARD enum err_code refuse_node(const struct node *n, struct err *e);

/* ---- sTasks ---------------------------------------------------------------------------- */

NODISCARD enum err_code select_compute(struct lowering *c, const struct kentry *x, struct err *e);
/* The whole of a carry of which each thread has a part, in registers of its node's own. */
NODISCARD enum err_code join_partial_sums(struct lowering *c, const struct kentry *x, int node,
	const struct val *parts, const struct val **out, struct err *e);
/* A reduction or scan. */
NODISCARD enum err_code select_fold(struct lowering *c, const struct kentry *x, int node, struct err *e);
/* One that goes by way of the lane's scratch. */
NODISCARD enum err_code select_lines(struct lowering *c, const struct kentry *x, int node,
	const struct fold *f, const struct val *zero, struct err *e);
NODISCARD enum err_code keep_result(struct lowering *c, const struct kentry *x, int buffer,
	struct err *e);
NODISCARD enum err_code select_matrix_product(struct lowering *c, const struct kentry *x, struct err *e);
NODISCARD enum err_code select_thread_product(struct lowering *c, const struct kentry *x, struct err *e);
/* Carries in shared memory, and products whose results go there: initial values where x is the
 * first to touch a life, and what it takes to know that, where a loop begins and ends; a carry's
 * new value, by node `node` of x; the registers of a product from the ring and, once it is
 * complete, to it. */
void add_begins(struct lowering *c, const struct kentry *x);
void add_late_begins(struct lowering *c, int loop, bool ends);
NODISCARD enum err_code set_shared_carry(struct lowering *c, const struct kentry *x, int node,
	struct err *e);
NODISCARD enum err_code load_accumulator(struct lowering *c, const struct kentry *x, int node, int buffer,
	const struct frag *acc, struct err *e);
NODISCARD enum err_code store_result(struct lowering *c, const struct kentry *x, struct err *e);
/* The registers of a product whose result goes to a ring. */
NODISCARD enum err_code stored_result_frag(struct lowering *c, const struct kentry *x,
	const struct frag **f, struct err *e);
/* Values in registers that nodes [first, last) of x's task take in another layout go to the
 * lane's scratch; the element of one where it is taken. */
NODISCARD enum err_code add_layout_conversions(struct lowering *c, const struct kentry *x, int first, int last,
	struct err *e);
/* What the scratch holds of an element; its address, `at` bytes from where the scratch begins,
 * of a value that lies there as `from`, where one of shape `to` is at hand. */
enum dtype scratch_type(enum dtype t);
const struct num *scratch_address(struct lowering *c, const struct stask *s, int64_t at,
	const struct shape2 *from, const struct shape2 *to);
bool is_converted(const struct lowering *c, int node, int arg, int carry);
NODISCARD enum err_code converted_value(struct lowering *c, const struct kentry *x, int node, int arg,
	int carry, const struct val **out, struct err *e);
/* Number of the map of a load's or store's tensor, in boxes of this size. */
int tensor_map(struct lowering *c, const struct stask *s, const struct node *n, const int64_t *box,
	int swizzle);
void select_boxes(struct lowering *c, const struct kentry *x, const struct ring *r,
	const struct node *n);
/* Does the lane itself read what x loads? Then its threads may not be done with it. */
bool reads_own_load(const struct lowering *c, const struct kentry *x);
NODISCARD enum err_code select_load(struct lowering *c, const struct kentry *x, struct err *e);
NODISCARD enum err_code select_store(struct lowering *c, const struct kentry *x, struct err *e);

/* ---- what passes use (pass/pass.h) -------------------------------------------------------- */

/* The lane's fragments that live beyond an sTask; c->words, c->has_spare_registers. */
NODISCARD enum err_code add_fragments(struct lowering *c, struct err *e);
/* Where a loop begins in the iteration at hand, and how often it runs. */
void add_trips(struct lowering *c, int loop);
/* The loop of a tile that is another replica's: only its iterations are counted. */
void add_skipped_loop(struct lowering *c, int loop);
void add_loop_axes(struct lowering *c, int loop);	/* where the axes of iteration i_LOOP stand */
bool writes_ring(const struct lowering *c, const struct stask *s);
/* Does the lane issue the flag's products and learn later that they are complete? */
bool signals_later(const struct lowering *c, int flag);
void add_arrive(struct lowering *c, int flag, const struct num *seq, const char *why);
/* Number of the iteration, or tile, of region `loop` at hand, of all runs. */
static inline const struct num *instance_number(struct lowering *c, int loop)
{
	return loop == NONE ? V(c, VAR_T, NONE) : V(c, VAR_SEQ, loop);
}

#endif
