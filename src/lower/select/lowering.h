/* lowering.h - instruction selection: from a kernel's decisions to the operations of its role program;
 * inside src/lower.
 *
 * needs: a kernel after all passes of passes.h
 * computes: its role program (role/role.h)
 *
 * program.c makes the role program and runs the passes of pass/ over each lane. The pass `select` calls the
 * functions here for each sTask: select_load (load.c, boxes.c), select_store (store.c), select_compute (compute.c,
 * with value.c, reduce.c, lines.c, carry.c and conversion.c), select_matrix_product (product.c) and
 * select_thread_product (sums.c, operands.c). indices.c computes indices and conditions, ring_addresses.c addresses in shared
 * memory; op.c appends operations.
 *
 * Conventions: every result is allocated in c->a. Functions that return an error code fail with ERR_ILLEGAL, and
 * name the user's line, where the plan asks for something that has no lowering. "The current element" is the
 * element of a fragment that the operation in the making is about, as its loop variables (RB, H, COL_GROUP, E, ...)
 * number it. Offsets of addresses are bytes; indices and extents are elements.
 */
#ifndef LOWER_SELECT_LOWERING_H
#define LOWER_SELECT_LOWERING_H

#include "lower/layout/folds.h"
#include "lower/passes.h"
#include "role/role.h"

struct point;
enum { GROUPS_MOST = 7 };		/* the largest count that a wait for groups can name */

/* A value that has been written to the lane's scratch for a layout conversion (layout/conversions.h). */
struct converted {
	int node;			/* that takes the value */
	int arg, carry;			/* the value: of a node, or a carry; the other is NONE */
	int64_t at;			/* bytes from the start of the scratch */
};

/* A value in shared memory that the sTask has fetched to registers (fetched.c). */
struct fetched {
	int buffer;
	const struct shape2 *shape;	/* of the node that reads it */
	const struct frag *frag;
};

/* The state of lowering one kernel. */
struct lowering {
	/* the kernel */
	const struct kernel *k;
	const struct plan *plan;
	const struct graph *g;
	const struct program *p;
	struct arena *a;
	struct role_program *r;
	/* the lane */
	struct role *role;
	const struct klane *lane;
	const struct frag **buffer_frags;	/* by buffer: its registers on this lane; NULL: not laid out yet */
	int live_words;			/* 32-bit words a thread needs for the buffers that the lane has in registers */
	bool has_spare_registers;	/* each loop has registers for all its values at once (fragments.c) */
	/* where operations are appended */
	struct role_body *body;
	struct point *point;		/* the iteration they stand in (pass/pass.h) */
	int task, wait;			/* noted in operations: sTask, wait of the plan; NONE */
	VEC(struct touch) touches;	/* of the next operation that may have any */
	/* the latest fence behind reads, which a later one can replace, and the body that it is in; no body: the lane has
	 * signaled since */
	const struct role_op *fence;
	struct role_body *fence_body;
	/* the sTask */
	struct frag **node_frags;	/* by node: its registers; NULL: not laid out yet */
	bool *fused;			/* by node: an earlier step of the current element-wise loop computes it, so
					 * its element is there and needs no fragment */
	int *inline_depth;		/* by node of the sTask: nodes from it to the reduction that computes its
					 * elements, as nothing else uses them; 0: there is no such one */
	VEC(struct converted) conversions;	/* values that are in the lane's scratch now */
	VEC(struct fetched) fetched;	/* values in shared memory that the sTask has in registers, too (fetched.c) */
	const struct frag **summed;	/* by buffer: its sum over all blocks of the cluster (parts.c); NULL: none yet */
	const struct frag *stored_result;	/* accumulator of a product whose result goes to a ring; NULL */
	/* how indices of the current element are computed (indices.c) */
	const struct num *axis_index[AXES_MAX];	/* by axis: its index in the tile; NULL: from the fragment's element */
	/* by axis, which the value that is read has in full: the index, from 0, at which it is read; NULL: that of the
	 * current element */
	const struct num *read_at[AXES_MAX];
	const struct frag_layout *element_layout;	/* of the fragment; NULL: the lane's */
	int k_step_cols;		/* columns of a k step, of which step KS is current; 0: all columns at once */
	const struct num *first_row;	/* of what the thread's part of the lane fetches; NULL: 0 */
	bool fetches;			/* an operand's elements are fetched into registers */
	bool makes;			/* the sTask makes an operand, in whose layout its values are */
	VEC(const struct frag_layout *) made_layouts;	/* of such operands, each once: lanes that are alike have the same */
	bool keeps_conditions;		/* they are not marked, as no copy of the loop leaves them out */
	const struct shape2 *contracted;	/* axes that a thread product contracts, as rows, with KS as the current
						 * row; NULL */
	bool walks_ring;		/* row and column are those of a walk over a ring, not of a fragment */
	enum one_row { ROW_UNKNOWN, ONE_ROW, ROWS } one_row;	/* do the phase's values have no rows, in a layout in
					 * which all warps share a row? */
	bool reads_element;		/* row and column are those of a fragment: quotients may be simplified */
	bool reads_window;		/* conditions are for reads out of the box of a window, of neighbours at once */
};

/* ---- appending operations (op.c) ------------------------------------------------------ */

/* Appends an operation to c->body, with the touches noted since the last one. The caller fills in its
 * operands before it appends another. */
struct role_op *add_op(struct lowering *c, enum role_do what);
/* Makes `inner` the body that operations are appended to. Returns the one before, for leave_body. */
struct role_body *enter_body(struct lowering *c, struct role_body *inner);
static inline void leave_body(struct lowering *c, struct role_body *outer)
{
	c->body = outer;
}
/* Enters the body, emptied, to be filled again from its operations so far, which are returned. */
static inline struct role_body reopen_body(struct lowering *c, struct role_body *b, struct role_body **outer)
{
	struct role_body old = *b;

	*b = (struct role_body){ 0 };
	*outer = enter_body(c, b);
	return old;
}
static inline void append_op(struct lowering *c, struct role_op *o)
{
	VEC_PUSH(c->a, &c->body->v, o);
}
/* Notes that the next operation reads or writes a buffer; a touch that is noted already is ignored. */
void add_touch(struct lowering *c, enum touch_how how, enum touch_what what, int of, int version);
/* node: an OP_GET of the sTask. If the sTask has set the carry before, what the next operation reads of it is that. */
void note_own_reads(struct lowering *c, const struct stask *s, int node);

/* Regions; `note` is a comment for the printed kernel, or NULL. */
struct role_op *add_block(struct lowering *c, const char *note);
struct role_op *add_if(struct lowering *c, const struct num *when, const char *note);
/* A loop over v = from .. end - 1, whose body is entered. `from` NULL: v is declared. Returns the body around. */
struct role_body *enter_loop(struct lowering *c, enum var v, int of, const struct num *from, const struct num *end);
/* Variable v of `of` (a loop, flag, ...): declared; one more in the same declaration; set; incremented. */
struct role_op *add_let(struct lowering *c, enum var v, int of, const struct num *to);
void add_let_more(struct lowering *c, struct role_op *let, enum var v, int of, const struct num *to);
void add_set(struct lowering *c, enum var v, int of, const struct num *to);
void add_advance(struct lowering *c, enum var v, int of, const struct num *by);
/* Synchronizes the threads of the lane. `why` explains it in the printed kernel. */
void add_lane_sync(struct lowering *c, const char *why);
/* Waits until at most n of the lane's groups of products are in flight. */
void add_groups_wait_op(struct lowering *c, int n, const char *why);
/* A wait for instance n of a flag, an arrival for it, or a release of all before it. */
struct role_op *add_flag_op(struct lowering *c, enum role_do what, int flag, const struct num *n, const char *why);
/* Arrives at the flag for its instance `seq`, by one thread of each warp. */
void add_arrive(struct lowering *c, int flag, const struct num *seq, const char *why);
/* Stores the value of each element of `over` to shared memory, where `when` holds, as `type`. */
void add_put(struct lowering *c, const struct frag *over, const struct num *when, const struct num *address,
	const struct val *value, enum dtype type);
/* Sets each element of a fragment to a value, which is the node's. */
void add_map(struct lowering *c, struct frag_at to, int node, const struct val *value);
/* Keeps the compiler from moving accesses to a version of f across this point; `words` registers of a block. */
struct role_op *add_pin(struct lowering *c, const struct frag *f, int version, int words);

/* Short names for expressions (role/num.h). */
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

/* ---- fragments (fragments.c) ------------------------------------------------- */

/* How a value is spread over the lane's registers: of that shape and type; of a node; of a buffer. Of a value
 * that is split, *f has the slice of sTask s. ERR_ILLEGAL: it does not fit in the registers. */
NODISCARD enum err_code lay_out_shape(struct lowering *c, const struct stask *s,
	const struct shape2 *shape, enum dtype type, struct frag *f, struct err *e);
NODISCARD enum err_code lay_out_node(struct lowering *c, const struct stask *s, int node,
	struct frag *f, struct err *e);
/* ... in another layout than that of the lane's values. */
NODISCARD enum err_code lay_out_shape_as(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	enum dtype type, const struct frag_layout *l, struct frag *f, struct err *e);
NODISCARD enum err_code lay_out_buffer(struct lowering *c, int buffer, struct frag *f, struct err *e);
/* The registers of a buffer, or of a node of the current sTask; laid out by the first call. */
NODISCARD enum err_code find_buffer_frag(struct lowering *c, int buffer, const struct frag **f, struct err *e);
NODISCARD enum err_code find_node_frag(struct lowering *c, const struct stask *s, int node,
	const struct frag **f, struct err *e);
/* The prefix and the name, with '_' for '.'. */
const char *c_identifier(struct lowering *c, const char *prefix, const char *name);
/* The version of a buffer in registers that entry x uses in the current iteration. */
int register_version(const struct lowering *c, const struct kentry *x, int buffer);
/* The same as a fragment; notes that the next operation reads or writes it. */
NODISCARD enum err_code use_registers(struct lowering *c, const struct kentry *x, int buffer, enum touch_how how,
	struct frag_at *at, struct err *e);
/* Does some number in the value use the variable? */
bool value_uses(const struct val *v, enum var var);
/* Lets sTasks compute their addresses again if the lane does not have registers to keep them (addresses.c). */
void hide_addresses(struct lowering *c);
/* Lets truth values be bits of words if the lane does not have registers for what they compare (bits.c). */
void pack_truths(struct lowering *c);

/* Does the lane have registers for all values of the sTask's loop at once, although they are not live at once, and for so
 * many more words? */
bool has_registers_for_all(const struct lowering *c, int task, int more);
/* Is a product in flight when an iteration of the loop ends? */
bool ends_in_flight(const struct lowering *c, int loop);
/* ... when the step of an iteration ends? `under`: one is when it begins. */
bool step_ends_in_flight(const struct lowering *c, const struct kstep *s, bool under);
/* Is the node of an sTask of elements computed where it is used, so that nothing is to be done where it stands? */
bool is_left_out(const struct lowering *c, const struct stask *s, int node);
/* Fetches values of 16 bits that the sTask reads in shared memory to registers, as far as that saves accesses. */
enum err_code fetch_values(struct lowering *c, const struct kentry *x, struct err *e);
/* Where the sTask has such a value, read by a node of this shape; NULL: in shared memory alone. */
const struct frag *find_fetched(const struct lowering *c, int buffer, const struct shape2 *shape);
/* Declares the fragments of the lane that outlive an sTask. Sets c->live_words and c->has_spare_registers. */
NODISCARD enum err_code add_fragments(struct lowering *c, struct err *e);

/* ---- indices and conditions (indices.c) ------------------------------------------------- */

#define ALL_AXES (~(uint64_t)0)

/* First index of the axis in the current tile or iteration; 0 if the shape has the full axis. shape: or NULL. */
const struct num *axis_first(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis);
/* Index of the current element along the axis, counted from axis_first. */
const struct num *axis_local_index(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis);
/* Elements along an axis of the shape, in the slice of s. */
int64_t axis_extent(const struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis);
/* Does the last tile of the axis reach beyond its end? */
bool axis_is_ragged(const struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis);
/* Where the axis ends: at its size, or where a loop with a length around the sTask ends. */
const struct num *axis_end(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis);
/* Its size, which may be known at launch only; how many tiles it has. */
const struct num *axis_size(struct lowering *c, int axis);
const struct num *axis_tiles(struct lowering *c, int axis);
/* Can the index be outside of a tensor's dimension of that axis although all axes are within their ends? */
bool index_may_leave(const struct lowering *c, const struct index_expr *x, int dim);
/* Condition: the current element is within the ends of these axes. Constant 1 if nothing needs to be tested. */
const struct num *within_ends(struct lowering *c,
	const struct stask *s, const struct shape2 *shape, const int *axes, int n);
/* First column of a fragment of the shape that the thread's part of the lane has; NULL: 0, as the lane has one. */
const struct num *part_first_col(struct lowering *c, const struct stask *s, const struct shape2 *shape);
/* ... and that it has of a fragment, whatever the layout of the element at hand. */
const struct num *first_column_of_part(struct lowering *c, const struct frag *f);
/* Condition: the current element of f is one of the value, not padding, and within the ends of those of its axes
 * that are in the set `ends`. Constant 1 if nothing needs to be tested. */
const struct num *inside_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f, uint64_t ends);
/* Condition: this thread is the one that stands for the element; of vectors several threads hold the same. */
const struct num *one_holder_condition(struct lowering *c, enum frag_kind kind);
/* Condition: this thread writes the current element of f to memory. */
const struct num *owner_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f);
/* Value of an index expression of a tensor: of the tile's first element or, if `local`, of the current one. */
const struct num *tensor_index(struct lowering *c, const struct stask *s, const struct index_expr *x,
	const struct shape2 *shape, bool local);
/* Fills in the `move` operands of o for load or store n by threads: the tensor, the indices of the current element in
 * it, and the condition: `inside`, and within the tensor where the indices may leave it. */
void set_move(struct lowering *c, struct role_op *o, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct num *inside);

/* ---- shared memory (ring_addresses.c, indices.c) ---------------------------------------- */

/* Address of the ring's current slot; of the element in a row and column of it; of the element of the slot that
 * belongs to the current element of a value with that shape. */
const struct num *slot_address(struct lowering *c, const struct ring *r);
const struct num *ring_element_address(struct lowering *c, const struct ring *r, const struct num *row,
	const struct num *col);
const struct num *ring_address(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape);
/* How many neighbours of a thread, 1 or more, an access can read at once: they follow each other from the address of the
 * element at hand on, which is divisible by their bytes. */
int together_at(const struct lowering *c, const struct num *address, enum dtype type);
/* Lets the operation (DO_PACK) read for several groups of columns at once what it reads from shared memory: the words of one row
 * that follow each other, or one that serves all groups. */
void widen_reads(struct lowering *c, struct role_op *pack);
/* Words that a thread of the sTask takes for values that are neither its results, nor computed where they are used, nor one
 * element after the other in a loop with all that uses them. */
int fragment_words(struct lowering *c, const struct stask *s);
/* Is the node a conversion to a type of 16 bits of the product of two values of that type, which nothing else uses? */
bool multiplies_pairs(const struct lowering *c, const struct stask *s, int node);
/* Lets it compute two elements at once where that gives the same result (pairs.c). */
void pair_arithmetic(struct lowering *c, struct role_op *pack);
/* Is it an index of neighbours, of which the first of each two of a thread is even? */
bool begins_with_pair(const struct lowering *c, const struct num *index);
/* The column in which the group at hand begins for the first thread. */
const struct num *first_of_group(struct lowering *c, const struct frag_layout *l);
/* How an address goes on from group to group of n: num_steps. */
bool address_steps(const struct lowering *c, const struct num *address, int n, int64_t *by, int64_t *aligned);
/* Row-major number, in a value of shape `from`, of the current element of a value of shape `to`. */
const struct num *row_major_offset(struct lowering *c, const struct stask *s,
	const struct shape2 *from, const struct shape2 *to);
/* The shape of the value in a ring: that of the ring, but with all of its elements, of which neighbours may share one of
 * the ring's. */
struct shape2 unshared_shape(const struct lowering *c, const struct stask *s, const struct ring *r);
/* Fills in the `move` operands of o by which the lane's threads walk over a ring, or over the slice of s in it, or, with
 * the unshared shape, over the elements of its value: element count, columns, and the address of element (ROW0, COL0).
 * Returns the condition that the element is one of the tile, within the ends of its axes. */
const struct num *walk_ring(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape, struct role_op *o);
/* Notes that s reads the buffer's ring, with all slices of the value that it takes. */
void add_ring_touch(struct lowering *c, const struct stask *s, int buffer);

/* ---- buffers -------------------------------------------------------------------------- */

/* The buffer by which s reads or writes the value of a node, or a carry; NONE. */
int buffer_of_node(const struct lowering *c, const struct stask *s, int node);
int buffer_of_carry(const struct lowering *c, const struct stask *s, int carry);
/* The buffer to which product s writes its result. */
int product_buffer(const struct lowering *c, const struct stask *s);
const struct shape2 *buffer_shape(const struct lowering *c, const struct buffer *b);
/* Does s write a buffer that is in shared memory? */
bool writes_ring(const struct lowering *c, const struct stask *s);

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

/* fences.c. Do threads that read the buffer's slots by ordinary loads fence before they signal that, as the copy engine fills these slots,
 * or those of an alias? */
bool readers_fence(const struct lowering *c, int buffer);
/* Does the operation read a slot by ordinary loads of threads? */
bool reads_by_threads(const struct role_op *o, const struct touch *t);
/* Adds the fences of lanes that load, once the trees of all lanes have real operations. */
void fence_loads(struct lowering *c);
static inline bool in_lane(const struct lowering *c, int task)
{
	return c->plan->entries.v[plan_entry_of(c->plan, task)].lane == c->lane->lane;
}
/* Is it a product that is still in flight when the lane goes on? */
static inline bool is_in_flight(const struct lowering *c, int task)
{
	return is_async_product(c->k, task) && !kernel_result_shared(c->k, task);
}

/* ---- conditions that hold for all of a tile (masks.c) ------------------------------------ */

/* Each notes in the current point when the condition holds for all elements of the tile, if that can be said by
 * bounds. The first two return the condition, marked then, so that pass/unmask.c can leave it out.
 * mark_axis_end: `inside` tests the end of the axis. mark_index: `within` tests index x of a dimension of `size`
 * elements. mark_where: the condition of a `where` node; returns whether it was noted. */
const struct num *mark_axis_end(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis, const struct num *inside);
const struct num *mark_index(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct index_expr *x, const struct num *size, const struct num *within);
bool mark_where(struct lowering *c, const struct stask *s, int node);

/* ---- expressions of single elements (value.c) ------------------------------------------ */

const struct val *val_const(struct lowering *c, enum dtype t, double k);
const struct val *val_num(struct lowering *c, const struct num *x);
const struct val *val_frag(struct lowering *c, struct frag_at at);
/* An element of type `from` in shared memory, as `type`. */
const struct val *val_shared(struct lowering *c, enum dtype type, enum dtype from, const struct num *address);
const struct val *val_cast(struct lowering *c, enum dtype to, enum dtype from, const struct val *x);
/* x where the condition holds, else `otherwise`. */
const struct val *val_guard(struct lowering *c, const struct num *when, const struct val *x,
	const struct val *otherwise);
/* The same value, of which each read is of one element. */
const struct val *val_one_by_one(struct lowering *c, const struct val *v);
/* A value in shared memory, of which as many neighbours are read at once as lie together, if all or none of them are inside. */
const struct val *neighbours_at_once(struct lowering *c, const struct val *value, const struct num *inside);
/* The element of a ring that belongs to the current element of a value: of that shape, unguarded; the same, with zero
 * outside of the axes that the ring has in full; the same with the shape of `node`. */
const struct val *ring_value(struct lowering *c, const struct kentry *x, const struct ring *r,
	const struct shape2 *shape);
NODISCARD enum err_code ring_value_as(struct lowering *c, const struct kentry *x,
	const struct ring *r, const struct shape2 *shape, const struct val **out, struct err *e);
NODISCARD enum err_code ring_value_of_node(struct lowering *c, const struct kentry *x,
	const struct ring *r, int node, const struct val **out, struct err *e);
/* The element of argument `arg` that belongs to the current element of `node`. */
NODISCARD enum err_code operand_value(struct lowering *c, const struct kentry *x, int node, int arg,
	const struct val **out, struct err *e);
/* The current element of an element-wise node. */
NODISCARD enum err_code element_value(struct lowering *c, const struct kentry *x, int node,
	const struct val **out, struct err *e);
/* The current element, by the shape, of a node that expands (program_expand), whose arguments are in rings: one of two
 * elements of four, or 0. Both are read, as which of them it is depends on the data. f: where the shape is of a fragment. */
NODISCARD enum err_code expanded_value(struct lowering *c, const struct kentry *x, int node, const struct shape2 *shape,
	const struct frag *f, const struct val **out, struct err *e);
/* ERR_ILLEGAL: the node has no lowering. */
NODISCARD enum err_code refuse_node(const struct node *n, struct err *e);

/* ---- layout conversions (conversion.c) -------------------------------------------------- */

/* Writes the values in registers that nodes [first, last) of x's task take in another layout to the lane's scratch. */
NODISCARD enum err_code add_layout_conversions(struct lowering *c, const struct kentry *x, int first, int last,
	struct err *e);
/* What the node takes from the scratch: the value of a node, or of a carry; NULL: it is not converted. */
const struct converted *find_converted(const struct lowering *c, int node, int arg, int carry);
/* The element of a converted value that belongs to the current element of `node`. */
NODISCARD enum err_code converted_value(struct lowering *c, const struct kentry *x, int node, int arg,
	int carry, const struct val **out, struct err *e);
/* The type that an element has in the scratch: 4 bytes each. */
enum dtype scratch_type(enum dtype t);
/* Address of the current element of shape `to`, of a value that lies as `from`, `at` bytes into the scratch. */
const struct num *scratch_address(struct lowering *c, const struct stask *s, int64_t at,
	const struct shape2 *from, const struct shape2 *to);

/* ---- products (product.c, sums.c, operands.c) ------------------------------------------ */

/* A product that is complete when the lane goes on. */
struct sync_product {
	const struct node *mma;
	int node, result;		/* of the program; buffer */
	struct frag_at sum;		/* the accumulator */
	struct shape2 along;		/* contracted axes, as rows */
	struct shape2 at;		/* the result's shape, with the full axes of `along` */
};

NODISCARD enum err_code select_matrix_product(struct lowering *c, const struct kentry *x, struct err *e);
/* A synchronous product: by the lane's threads, or in k steps on a synchronous matrix unit. */
NODISCARD enum err_code select_thread_product(struct lowering *c, const struct kentry *x, struct err *e);
/* The latter; p->sum has been initialized. */
NODISCARD enum err_code select_step_products(struct lowering *c, const struct kentry *x,
	const struct sync_product *p, struct err *e);
/* Sets p->along and p->at, from the other fields: the contracted axes are in the order of the first operand, and one that no loop
 * runs over is contracted in full. */
void find_contracted_axes(const struct lowering *c, const struct stask *s, struct sync_product *p);
/* Does the sTask fetch an operand for k steps? Its registers, which are in the layout of the instruction, for all steps;
 * its operations. */
bool fetches_steps(const struct lowering *c, const struct stask *s);
NODISCARD enum err_code lay_out_fetched(struct lowering *c, const struct stask *s, struct frag *f, struct err *e);
NODISCARD enum err_code select_fetch(struct lowering *c, const struct kentry *x, struct err *e);
/* The same of an sTask that makes an operand where k steps take it (plan:direct): its operations are those of any computation,
 * on values that lie as the operand does. */
bool makes_steps(const struct lowering *c, const struct stask *s);
NODISCARD enum err_code lay_out_made(struct lowering *c, const struct stask *s, struct frag *f, struct err *e);
NODISCARD enum err_code select_made(struct lowering *c, const struct kentry *x, struct err *e);
/* The matrix instruction for a product with that accumulator. ERR_ILLEGAL: the target has none. */
NODISCARD enum err_code find_matrix_instruction(struct lowering *c, const struct stask *s,
	const struct frag *sum, const struct matrix_instruction **out, struct err *e);
/* Adds the form to those that the role program declares, once. */
void note_product_form(struct lowering *c, const struct product_form *f);
/* ERR_ILLEGAL: the ring has one slice of an operand of which the product reads all slices. */
NODISCARD enum err_code check_contiguous(const struct lowering *c, const struct stask *s,
	const struct ring *r, struct err *e);
/* A product whose result goes to a ring has an accumulator of its own: find it; load what it adds to; store it once
 * the product is complete. */
NODISCARD enum err_code stored_result_frag(struct lowering *c, const struct kentry *x,
	const struct frag **f, struct err *e);
NODISCARD enum err_code load_accumulator(struct lowering *c, const struct kentry *x, int node, int buffer,
	const struct frag *acc, struct err *e);
NODISCARD enum err_code store_result(struct lowering *c, const struct kentry *x, struct err *e);

/* ---- element-wise work, reductions and scans -------------------------------------------- */

/* The operations of an sTask that computes a value and is no product: its nodes, then the results to their buffers. */
NODISCARD enum err_code select_compute(struct lowering *c, const struct kentry *x, struct err *e);
/* Writes the value of x's node to its buffer: registers or a ring. */
NODISCARD enum err_code write_result(struct lowering *c, const struct kentry *x, int buffer, struct err *e);
/* A reduction or scan; line by line through the lane's scratch (`zero`: the identity of the operator). */
NODISCARD enum err_code select_fold(struct lowering *c, const struct kentry *x, int node, struct err *e);
NODISCARD enum err_code select_lines(struct lowering *c, const struct kentry *x, int node,
	const struct fold *f, const struct val *zero, struct err *e);
/* ... each line by the thread that holds its result. */
NODISCARD enum err_code select_own_lines(struct lowering *c, const struct kentry *x, int node,
	const struct fold *f, const struct val *zero, struct err *e);
/* The carry's fragment with the block's share of the sums over all blocks of the cluster. The sTask adds up once. */
struct frag_at sum_parts(struct lowering *c, const struct kentry *x, int buffer, struct frag_at from);
/* Is the element at hand of the value that an sTask stores in the block's share? NULL: a block has all of it. */
const struct num *is_in_share(struct lowering *c, const struct stask *s, const struct num *row_block,
	const struct num *group);
/* The sum of the `parts` that the threads have of a carry (layout/partial.c), in registers of node's own. */
NODISCARD enum err_code join_partial_sums(struct lowering *c, const struct kentry *x, int node,
	const struct val *parts, const struct val **out, struct err *e);

/* ---- carries in shared memory (carry.c) ------------------------------------------------- */

/* Writes initial values of the carries of which x may be the first user. */
void add_carry_starts(struct lowering *c, const struct kentry *x);
/* Where a loop begins, or ends, keeps the variables that say whether a carry has its initial value yet. */
void add_late_carry_starts(struct lowering *c, int loop, bool ends);
/* Writes the carry's new value, by SET node `node` of x. */
NODISCARD enum err_code set_shared_carry(struct lowering *c, const struct kentry *x, int node, struct err *e);

/* ---- loads and stores ------------------------------------------------------------------- */

NODISCARD enum err_code select_load(struct lowering *c, const struct kentry *x, struct err *e);
/* Writes to shared memory what a load has left in registers (split_off in tile/program.h). */
NODISCARD enum err_code select_put(struct lowering *c, const struct kentry *x, struct err *e);
/* Must the lane's threads meet before what select_put writes, as others may still read the slot; behind it, so that all of the
 * value is there? Not for each of several that follow each other. */
void find_put_meets(const struct lowering *c, const struct kentry *x, bool *before, bool *behind);
NODISCARD enum err_code select_store(struct lowering *c, const struct kentry *x, struct err *e);
/* The value of `node` that is added to an index of a load or store: the element for the one at hand, of a value with that
 * shape in registers or, if it walks over one, in a ring. Where that is none of the tile (`inside`), it is 0: its address may
 * be outside of the value's ring. */
const struct val *added_value(struct lowering *c, const struct stask *s, const struct shape2 *shape, int node,
	const struct num *inside, bool walks_ring);
/* Sets the values that indices of n add, in the `move` operands of o. */
void add_values(struct lowering *c, const struct stask *s, const struct node *n, const struct shape2 *shape,
	const struct num *inside, bool walks_ring, struct role_op *o);
/* Notes that load or store n of s reads the values that its indices add; before the operation that does. */
void touch_added_values(struct lowering *c, const struct stask *s, const struct node *n);
/* A load by the copy engine. */
void select_boxes(struct lowering *c, const struct kentry *x, const struct ring *r, const struct node *n);
/* Index of the tensor map of a load or store, whose boxes have that many rows and columns of a value with shape v, and
 * that swizzle (bytes of a row, 0: none); added if it is new. Several row axes have the extents of the buffer. */
int tensor_map(struct lowering *c, const struct stask *s, const struct node *n, const struct shape2 *v, int buffer,
	int64_t rows, int64_t cols, int swizzle);

/* ---- for passes (pass/pass.h) ------------------------------------------------------------ */

/* Declares first iteration and trip count of a loop, for the current iteration of the loops around. */
void add_trips(struct lowering *c, int loop);
/* Declares the first indices of the axes of iteration i_LOOP. */
void add_loop_axes(struct lowering *c, int loop);
/* Counts the iterations of a loop, in a tile that another replica of the lane computes. */
void add_skipped_loop(struct lowering *c, int loop);
/* Does the lane signal the flag's products only after it has issued them and learnt that they are complete? */
bool signals_later(const struct lowering *c, int flag);
/* Number, over all runs, of the current iteration of `loop`, or of the current tile (NONE). */
static inline const struct num *instance_number(struct lowering *c, int loop)
{
	return loop == NONE ? V(c, VAR_T, NONE) : V(c, VAR_SEQ, loop);
}

#endif
