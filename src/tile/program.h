/* program.h - a tile program whose sizes are bound.
 *
 * A program says what to compute, on tiles: values over named axes, made by loads, matrix products and element-wise
 * operations, grouped into named tasks, which stand in order inside phases and loops. It says nothing about where or
 * when. It is built once, front to back, by the calls below (the Lua language in lua/std calls them while the user's
 * function runs), then read by everything else. Positions in the arrays are the ids; they never change.
 *
 *   axis    a named dimension with a size
 *   tensor  an array in global memory: input, output, or temporary between phases
 *   node    one operation; its value is a tile over some axes
 *   carry   a tile-valued variable; it takes its initial value whenever the region
 *           where it was declared begins an iteration (at top level: once an output
 *           tile), and keeps what was last set
 *   task    an ordered group of nodes that will be one sTask: a load, a product, a
 *           store, or element-wise work
 *   loop    repeats its body over the tiles of some axes, in order
 *   phase   a grid of independent output tiles; phases run one after the other,
 *           and a temporary stored by one may be loaded by a later one
 *
 * What an element beyond the end of an axis would hold can never be observed: a last, ragged tile is shorter. A load
 * outside its tensor (padding) gives zero.
 *
 * A value made in a loop may be used in that loop's body only; what must outlive an iteration is a carry. A value made
 * before a loop may be used inside.
 *
 * Every call that can fail leaves the program as it was and names the user's line. Names are unique among their kind
 * and read as identifiers: letters, digits and '_', no digit first, at most 63.
 */
#ifndef TILE_PROGRAM_H
#define TILE_PROGRAM_H

#include "base/arena.h"
#include "base/err.h"
#include "tile/dtype.h"
#include "tile/index.h"
#include "tile/ops.h"

enum {
	RANK_MAX = 8,			/* axes of a value, dimensions of a tensor */
	AXES_MAX = 64,			/* axes of a program */
	LOOP_AXES_MAX = 4,
	EXPANDED_BY_VALUE = 2, EXPANDED_BY_BYTE = 8,	/* elements that stand for one of the arguments of program_expand */
	LOOP_DEPTH_MAX = 16,		/* loops around an sTask; what reads programs counts on it */
	NONE = -1,			/* no such id */
};

struct axis {
	const char *name;
	int64_t size;
	/* If not 0, the size is known only when a kernel is launched: a multiple of this number, `size` at most.
	 * Programs, graphs and plans are made for `size`. */
	int64_t multiple;
	int like;			/* an axis before it that has the same size at launch; NONE */
	/* An axis of packed words (see program_unpack, program_expand) stands wherever axis `packs` stands, an index of it for `per` of
	 * that one; it is never tiled, looped over, stored over or batch by itself. NONE: an ordinary axis. */
	int packs, per;
	bool of_window;			/* along the box of loads that have a window in common (program_window) */
	bool single;			/* batch, in a phase or in a loop: one value a tile, wherever it is tiled */
	/* Stands for the axis twin_of, of the same name, in phases that have that one as batch, because others tile it
	 * (program_twins.c). */
	bool is_twin;
	int twin_of;
	struct srcloc loc;
};

/* A number of which the size is a multiple, whatever it is at launch. */
static inline int64_t axis_divisor(const struct axis *a)
{
	return a->multiple ? a->multiple : a->size;
}

enum tensor_role { TENSOR_INPUT, TENSOR_OUTPUT, TENSOR_TEMP };

struct tensor {
	const char *name;
	enum tensor_role role;
	enum dtype type;
	int rank;
	int dim[RANK_MAX];		/* axis of each dimension; the last is contiguous */
	/* Of an input with elements of 4 bits, which the program takes as words of eight (program_tensor): the
	 * type that it is declared with, and the axis of the elements in its last dimension. Else `type`, and
	 * NONE. */
	enum dtype element;
	int unpacked;
	/* If elements make indices of loads, a number below which random ones should be so that these loads stay inside
	 * their tensors, a guess where several values are added or chosen from; 0: they make none. By program_finish. */
	int64_t index_below;
	/* ... and they name elements that are stored, so they should differ; of bytes: they are what program_expand takes */
	bool index_distinct;
	/* Input whose memory holds the addresses of its parts, one for each index of its first dimension; a part
	 * lies as a tensor of the other dimensions does. */
	bool by_address;
	bool sorted;			/* input of i32 that is promised to ascend along its last dimension */
	struct srcloc loc;
};

struct node {
	enum op op;
	enum dtype type;
	int naxes;
	int axis[RANK_MAX];		/* axes of the value, batch axes left out */
	int arg[3];			/* nodes; NONE beyond those that node_arity counts */
	int ref;			/* axis, tensor or carry, by op; NONE */
	/* CONST, exact whatever its type (i32 or f32); INDEX: where the axis begins, 0 but in samples */
	double k;
	const struct index_expr *index;	/* LOAD, STORE: one a dimension; AT: one */
	bool adds;			/* STORE: to what the tensor holds */
	/* MMA, sums: the set of the axes of which each tile of the grid can give its part, as only additions in memory
	 * that do not have the axis use the value */
	uint64_t partial;
	int task;			/* where it is computed; NONE: CONST, or dropped */
	struct srcloc loc;
};

/* Does the node add a product to a carry; set one, or part of one; read one? In all three n->ref is the carry. */
static inline bool node_adds_to_carry(const struct node *n)
{
	return n->op == OP_MMA && n->ref != NONE;
}
static inline bool node_sets_carry(const struct node *n)
{
	return n->op == OP_SET || node_adds_to_carry(n);
}
static inline bool node_gets_carry(const struct node *n)
{
	return n->op == OP_GET || node_adds_to_carry(n);
}

/* Values that a node takes: those of its operation; of a load or store also those that its indices add, each once. */
static inline int node_arity(const struct node *n)
{
	int arity = op_arity(n->op);

	while ((n->op == OP_LOAD || n->op == OP_STORE) && arity < 3 && n->arg[arity] != NONE)
		arity++;
	return arity;
}

struct carry {
	const char *name;
	/* as declared; else i32 if the first thing that happens to it is to be set to an integer, else f32. One of f32,
	 * declared or not, is of f64 once it was set to a value of that type. */
	enum dtype type;
	bool is_typed;			/* the type was declared */
	int naxes;
	int axis[RANK_MAX];
	double init;
	int loop;			/* region of the declaration; NONE: top of the phase */
	int phase;
	struct srcloc loc;
};

enum task_kind { TASK_LOAD, TASK_MMA, TASK_COMPUTE, TASK_STORE };

struct task {
	const char *name;		/* unique in the program */
	enum task_kind kind;
	int phase;
	int loop;			/* innermost loop around it; NONE */
	bool named;			/* COMPUTE: by program_task_begin */
	bool puts;			/* COMPUTE: writes to shared memory what a load has left in registers (program_split_off) */
	bool fetches;			/* COMPUTE: its value is an operand of a product, as it is (program_fetch) */
	bool direct;			/* COMPUTE: it makes an operand of products where these take it (program_direct) */
	VEC(int) nodes;			/* in order of evaluation; MMA: expansions that are operands of the product, then that */
	struct srcloc loc;
};

/* An entry of a body: a task or a loop. */
struct item {
	bool is_loop;
	int id;
};

struct loop {
	int parent;			/* NONE: directly in the phase */
	int phase;
	int naxes;
	int axis[LOOP_AXES_MAX];	/* the last runs fastest */
	/* Of a loop over one axis: only the tiles are visited that meet the range [least value of `from`, greatest
	 * value of `upto`], inclusive, taken over the output tile and the surrounding loops' tiles. */
	bool has_from, has_upto;
	bool batch;			/* an iteration has one value of each axis: they are batch axes inside */
	struct index_expr from, upto;
	/* Of a loop over one axis: in a run of it the axis ends at `length`, a value plus an expression, if that is less
	 * than its size. What lies behind is nowhere in the loop, as behind the end of the axis itself. The value is
	 * computed from inputs where the run begins, not by a task (program_is_length). */
	bool has_length;
	struct index_expr length;
	int64_t typical;		/* the value that predictions assume; 0: one that ends no run early */
	/* The loop runs one time or not at all, so it keeps or leaves out steps of the loop around it. Then
	 * `typical` is how many of its steps, spread evenly, predictions assume to be kept; 0: all. */
	bool keeps_steps;
	VEC(struct item) body;
	struct srcloc loc;
};

struct phase {
	const char *name;
	int nbatch;
	int batch[RANK_MAX];		/* axes of which a tile has exactly one value */
	/* The set of the axes that stores of the phase have, but that are not divided among tiles: what is added in memory
	 * is made of all of them, so that each of their tiles would add all of it. */
	uint64_t undivided;
	VEC(struct item) body;
	struct srcloc loc;
};

struct program {
	struct arena arena;
	const char *name;
	VEC(const char *) options;	/* "causal=true": what bind was given that is no size and no default; for texts alone */
	VEC(struct axis) axes;
	VEC(struct tensor) tensors;
	VEC(struct node) nodes;
	VEC(struct carry) carries;
	VEC(struct task) tasks;
	VEC(struct loop) loops;
	VEC(struct phase) phases;
	/* while building */
	int cur_phase;			/* NONE before the first */
	int cur_loop;
	int cur_task;			/* NONE: element-wise nodes start a task of their own */
	bool task_is_open;		/* cur_task was opened by program_task_begin */
};

/* A value, and the name that users know it by, whose last steps become a task of its own, named `name`. The last step of a
 * load is to write to shared memory what its threads have in registers. */
struct split_off {
	int node;
	const char *value, *name;
	struct srcloc loc;
	int steps;			/* so many, one after the other; 0: one */
};

enum { SPLIT_OFF_STEPS_MOST = 8 };

/* An operand of a product, and the name that users know its value by, which a task of its own, named `name`, hands on. */
struct fetch {
	int node, arg;			/* the product, and as which of its operands */
	const char *value, *name;
	struct srcloc loc;
};

/* `mem` is borrowed and outlives the program. Free with program_free. */
struct program *program_new(struct mem *mem, const char *name);
void program_free(struct program *p);

/* Adds an option, as "causal=true", to what texts about the program say; it changes nothing that is computed. */
void program_option(struct program *p, const char *text);

/* Ids through *out. Sizes are at least 1 and at most 2^40. */
NODISCARD enum err_code program_axis(struct program *p, const char *name, int64_t size,
	struct srcloc loc, int *out, struct err *e);
/* The axis's size is known at launch: a multiple of `multiple`, which divides the size that it was declared with, the
 * largest. ERR_INPUT: it does not, or is not positive. like: an axis that has the same size, whatever that is; NONE. */
NODISCARD enum err_code program_axis_any(struct program *p, int axis, int64_t multiple, int like, struct srcloc loc,
	struct err *e);
/* An input of a type of 4 bits whose last dimension is a multiple of 8 is declared as words, i32, of eight
 * elements, over an axis of words that this makes: the bytes are the same, and program_load gives words. */
NODISCARD enum err_code program_tensor(struct program *p, enum tensor_role role, const char *name,
	enum dtype type, int rank, const int *dims, struct srcloc loc, int *out, struct err *e);

/* The promise that an input of i32 ascends along its last dimension: what is loaded by its elements lies together.
 * ERR_INPUT: it is another tensor. */
NODISCARD enum err_code program_sorted(struct program *p, int tensor, struct srcloc loc, struct err *e);

/* Kernels get the addresses of the parts of an input along its first dimension, not one address of the input.
 * ERR_INPUT: it is none, or has no dimensions but that one. */
NODISCARD enum err_code program_by_address(struct program *p, int tensor, struct srcloc loc, struct err *e);

/* A program has at least one phase; one named "main" begins by itself if a node,
 * loop or batch axis comes before any. Phases do not nest. */
NODISCARD enum err_code program_phase_begin(struct program *p, const char *name, struct srcloc loc, struct err *e);
NODISCARD enum err_code program_phase_end(struct program *p, struct srcloc loc, struct err *e);
/* Declare an axis of the present phase as batch: before its first task. */
NODISCARD enum err_code program_batch(struct program *p, int axis, struct srcloc loc, struct err *e);

/* from, upto: NULL if not bounded. */
NODISCARD enum err_code program_loop_begin(struct program *p, int naxes, const int *axes, const struct index_expr *from,
	const struct index_expr *upto, struct srcloc loc, struct err *e);
/* The loop that has just begun takes one value of each of its axes at a time, which are batch axes inside. */
NODISCARD enum err_code program_loop_batch(struct program *p, struct srcloc loc, struct err *e);
/* Right behind program_loop_begin: the loop's axis ends at `length`. That is an i32 value without axes, plus an
 * expression of batch axes. The value is an element of an input at indices of such axes, or is computed from such elements,
 * constants and indices by + - * min max, // and % by powers of two, comparisons and where. typical: at least 1, or 0: none is given. */
NODISCARD enum err_code program_loop_length(struct program *p, const struct index_expr *length, int64_t typical,
	struct srcloc loc, struct err *e);
/* Before program_loop_length, whose typical is then 0: the loop over an axis of one element keeps or leaves out steps
 * of the loop around it. typical: of how many steps predictions assume that they are kept, at least 1; 0: of all. */
NODISCARD enum err_code program_loop_keeps_steps(struct program *p, int64_t typical, struct srcloc loc, struct err *e);
NODISCARD enum err_code program_loop_end(struct program *p, struct srcloc loc, struct err *e);

/* Element-wise nodes, sets and reductions between begin and end form the task `name`. Without an open task each run of
 * such nodes forms one named "ew1", "ew2", ... that ends at the next load, product, store, loop or named task. */
NODISCARD enum err_code program_task_begin(struct program *p, const char *name, struct srcloc loc, struct err *e);
NODISCARD enum err_code program_task_end(struct program *p, struct srcloc loc, struct err *e);

/* A load is a task of its own; its value has one axis for every non-batch axis that the index expressions use, and for
 * each that their values have, in order of first use, a value before the expression that it is added to. index: one
 * expression a dimension of the tensor; NULL: each at its own axis. At most 3 values, which are i32, may be added. name
 * NULL: "load_" and the tensor's name. Of a tensor that is held as words the last index is one of elements, an
 * axis plus multiples of the elements of a word; the value has the axis of its words instead, see
 * program_load_unpacks. */
NODISCARD enum err_code program_load(struct program *p, const char *name, int tensor,
	const struct index_expr *index, struct srcloc loc, int *out, struct err *e);
/* index may be NULL: each dimension at its own axis. The value's axes must be those that the expressions use and their
 * values have, and no two elements may have the same coordinates: all batch axes take part. If values are added to
 * indices, at most 2, the user promises that. name NULL: "store_" and the tensor's name. */
NODISCARD enum err_code program_store(struct program *p, const char *name, int tensor,
	const struct index_expr *index, int value, struct srcloc loc, struct err *e);
/* Adds the value to what stores of earlier phases left in the tensor, an f32 or i32 one. Otherwise as program_store, but
 * that several elements may have the same coordinates, and batch axes need not take part: all are added, in any order.
 * name NULL: "add_" and the tensor's name. */
NODISCARD enum err_code program_add(struct program *p, const char *name, int tensor, const struct index_expr *index,
	int value, struct srcloc loc, struct err *e);
/* Contracts every axis that both operands have, of which there must be at least one. The result has a's other axes,
 * then b's, and type f32 (i32 for integers). A task of its own, named `name` ("mma1", ... if NULL). An operand that
 * program_expand has made outside of a named task, along an axis that is contracted, is expanded by the product: that is
 * part of its task, and the first operand, so where only b is expanded, the two are exchanged. */
NODISCARD enum err_code program_mma(struct program *p, const char *name, int a, int b,
	struct srcloc loc, int *out, struct err *e);

/* Batch axes among `axes` are left out. */
NODISCARD enum err_code program_carry(struct program *p, const char *name, int naxes,
	const int *axes, double init, struct srcloc loc, int *out, struct err *e);
/* Declare the carry's type, i32 or f32, before anything is done to it. */
NODISCARD enum err_code program_type_carry(struct program *p, int carry, enum dtype type, struct srcloc loc,
	struct err *e);
NODISCARD enum err_code program_get(struct program *p, int carry, struct srcloc loc, int *out, struct err *e);
NODISCARD enum err_code program_set(struct program *p, int carry, int value, struct srcloc loc, struct err *e);
/* carry += value. If value is a product that nothing has used yet, the last task of
 * the same body, the product accumulates into the carry itself, and the node's value is
 * the carry's new one: it cannot be used from then on, the carry can. */
NODISCARD enum err_code program_accumulate(struct program *p, int carry, int value, struct srcloc loc, struct err *e);

NODISCARD enum err_code program_const(struct program *p, double k, struct srcloc loc, int *out, struct err *e);
/* The index along an axis as an i32 value: over that axis, or a scalar if batch. */
NODISCARD enum err_code program_index(struct program *p, int axis, struct srcloc loc, int *out, struct err *e);
/* Element-wise with broadcasting by axis name; the result has the union of the
 * arguments' axes. Arithmetic on types below f32 is f32. */
NODISCARD enum err_code program_op(struct program *p, enum op op, const int *args,
	struct srcloc loc, int *out, struct err *e);
NODISCARD enum err_code program_cast(struct program *p, int value, enum dtype type,
	struct srcloc loc, int *out, struct err *e);
/* Reductions (SUM RMAX RMIN) and scans (CUM...) along `axis`. */
NODISCARD enum err_code program_reduce(struct program *p, enum op op, int value, int axis,
	struct srcloc loc, int *out, struct err *e);
/* Words over `from` to elements of `type` over `to`, where to = from * (32 / bits), the lowest bits first. size(to)
 * must be at most size(from) * (32 / bits). The result has the argument's axes with `to` instead of `from`. From then
 * on the words are tiled with the elements: see struct axis. */
NODISCARD enum err_code program_unpack(struct program *p, int value, int from, int to,
	enum dtype type, struct srcloc loc, int *out, struct err *e);

/* Elements along `axis` of which two of each four are there, and the others are 0: the value has them over an axis of its
 * own, and `which`, of u8 or i8, has their indices among the four over another, of a half of it. A byte is that of eight elements:
 * from its lowest bit on, two bits for each of the four that are there, the lower index of a group first. The two must
 * differ. Both arguments have the same other axes. The result has the value's axes with `axis` instead of its own, which
 * from then on is tiled with `axis`, as words are (program_unpack). */
NODISCARD enum err_code program_expand(struct program *p, int value, int which, int axis, struct srcloc loc, int *out,
	struct err *e);

/* Of the value's elements along `axis` those at `index`, an expression of axes and numbers: the result has the value's
 * axes without `axis`, and each axis of the expression that is not batch. Beyond the ends of `axis` it is 0. All of
 * `axis` is needed of the value, so no loop over it may be around that. */
NODISCARD enum err_code program_at(struct program *p, int value, int axis, const struct index_expr *index,
	struct srcloc loc, int *out, struct err *e);

/* Checks what only the complete program can show (every output stored, every loop closed, every load and product used)
 * and drops element-wise nodes that nothing uses: they are in no task then; tasks and loops left empty are in no body.
 * Call once, last. */
NODISCARD enum err_code program_finish(struct program *p, struct err *e);

/* Does the finished program say what it computes, whatever its tiles are (meaning.h)? If it does only where an axis that some phases
 * have as batch has tiles of one in the others, too, it gets these. ERR_INPUT. */
NODISCARD enum err_code program_check_meaning(struct program *p, struct err *e);

/* The same program with each value's last steps, element-wise ones, as a task of its own behind the one
 * that it is split off from; ids stay, the new tasks' come behind. Of a load, what reads its value reads that of a new node
 * instead, a cast to the same type, which is the only one in the new task. It borrows from p, and is in `a`. */
NODISCARD enum err_code program_split_off(struct arena *a, const struct program *p, const struct split_off *split_offs,
	int n, const struct program **out, struct err *e);

/* The load of which the task writes the value to shared memory; NONE: it does not. */
static inline int task_put_load(const struct program *p, int task)
{
	return p->tasks.v[task].puts ? p->nodes.v[p->tasks.v[task].nodes.v[0]].arg[0] : NONE;
}

/* The same program with tasks of their own, each before its product, that hand on operands: a plan can say when these are
 * fetched. Ids stay as there. ERR_INPUT: the task name is taken, or the product makes the operand itself. */
NODISCARD enum err_code program_fetch(struct arena *a, const struct program *p, const struct fetch *fetches, int n,
	const struct program **out, struct err *e);

/* The same program in which the tasks of these values make them where products take them: in the registers of an operand.
 * Ids stay as there. ERR_INPUT: a value is made in another way than element by element, is not the only result of its task,
 * or is used by others than products, too. */
struct direct {
	int node;
	const char *value;		/* the name that users know it by */
	struct srcloc loc;
};
NODISCARD enum err_code program_direct(struct arena *a, const struct program *p, const struct direct *directs, int n,
	const struct program **out, struct err *e);

/* The same program in which the operands of these products are exchanged. Ids stay as there. ERR_INPUT: a product expands its first
 * operand. */
struct swap {
	int node;
	const char *product;		/* the name of its task */
	struct srcloc loc;
};
NODISCARD enum err_code program_swap(struct arena *a, const struct program *p, const struct swap *swaps, int n,
	const struct program **out, struct err *e);

/* Loads of one tensor whose indices differ by constants, or one of which several axes move in one dimension. */
struct window {
	int n;
	const int *loads;		/* nodes */
	const char *const *names;	/* of their tasks */
	struct srcloc loc;
};
struct tiling;
/* The same program with tiles of that extent, in which the first load of each window brings the box of all, once, and the tasks that use
 * them read it there. Ids stay as there; the tasks of other loads are in no body. New axes follow the others, and no tile has a part of
 * them. chunk: bytes of which a row of the box is made. ERR_INPUT: they are no such loads, or something else than a task that computes
 * uses them. */
NODISCARD enum err_code program_window(struct arena *a, const struct program *p, const struct tiling *t, const struct window *windows,
	int n, int chunk, const struct program **out, struct err *e);
/* Windows that a program may have; not all tiles have all of them. Returns how many. */
int program_find_windows(struct arena *a, const struct program *p, struct window **out);

/* How an axis is used in a phase. */
enum axis_role {
	AXIS_UNUSED,
	AXIS_BATCH,			/* one value a tile */
	AXIS_GRID,			/* of the outputs, tiled over the grid */
	AXIS_LOOP,			/* tiled over a loop */
	AXIS_FULL,			/* complete in every tile */
};
enum axis_role program_axis_role(const struct program *p, int phase, int axis);
/* Is the node a conversion to 16 bits of the product, in f32, of two values of that type? GPUs multiply two such elements at
 * once, in that type, with the same result. */
bool program_is_pair_product(const struct program *p, int node);
int program_find_axis(const struct program *p, const char *name);	/* NONE */
int program_find_task(const struct program *p, const char *name);	/* NONE */
int program_find_tensor(const struct program *p, const char *name);	/* NONE */
/* Is `loop` inside `outer`, or the same? NONE as outer holds everything. */
bool program_loop_within(const struct program *p, int loop, int outer);
/* Does a loop that surrounds region `loop` (itself included) run over the axis? */
bool program_axis_bound(const struct program *p, int loop, int axis);
/* Does a contraction or reduction go over the present tile of the axis alone? It does inside a loop over the axis; and
 * over the grid, where the results of all tiles are added up in memory. */
bool program_reduces_tile(const struct program *p, const struct node *n, int axis);
/* The steps of the loop around one that keeps steps: each index of each of its axes. */
int64_t program_steps_around(const struct program *p, const struct loop *l);
/* Does a bound of the loop depend on the axis, or the value of its length? */
bool loop_bounds_use(const struct program *p, const struct loop *l, int axis);
/* The same, where each length has the value that predictions assume (typical_end), or all have the greatest one. */
bool loop_trips_use(const struct loop *l, int axis);
/* The loop over the axis around region `loop` (itself included), if it has a length; NONE. */
int program_length_loop(const struct program *p, int loop, int axis);
/* A power of two of which the i32 value is known to be a multiple: 64 for n * 64. */
int64_t program_value_step(const struct program *p, int node);
/* Is the loop's length known to be a multiple of the tile, where it is not the axis's size: n * 64 is of 16? */
bool program_length_fills_tiles(const struct program *p, int loop, int64_t tile);

static inline bool node_has_axis(const struct node *n, int axis)
{
	return ints_hold(n->axis, n->naxes, axis);
}

/* Goes one of these axes along the box of a window? */
static inline bool any_of_window(const struct program *p, const int *axis, int naxes)
{
	for (int i = 0; i < naxes; i++)
		if (p->axes.v[axis[i]].of_window)
			return true;
	return false;
}

/* Does the node go along the axis, so that its elements need others than their own along it: a reduction, a scan, or a
 * read at other indices? */
static inline bool node_goes_along(const struct node *n, int axis)
{
	return n->ref == axis && (op_class(n->op) == CLASS_REDUCE || op_class(n->op) == CLASS_SCAN || n->op == OP_AT);
}

/* Index expressions of the node. */
int node_index_count(const struct program *p, const struct node *n);

/* Does the value that is added to the index have the axis? */
static inline bool index_value_has(const struct program *p, const struct index_expr *x, int axis)
{
	return x->value && node_has_axis(&p->nodes.v[index_value(x)], axis);
}

/* Does a load or store add a value to an index? */
static inline bool has_index_values(const struct node *n)
{
	return (n->op == OP_LOAD || n->op == OP_STORE) && node_arity(n) > op_arity(n->op);
}

/* Is the size of some axis known at launch? */
bool program_has_any(const struct program *p);
/* Do the two axes end at the same index, whatever their sizes are at launch? */
bool axes_end_alike(const struct program *p, int a, int b);
/* The same program where axis a has sizes[a] elements, at most as many as it has in p, and no size is left to the
 * launch. In `a`; all else is p's. */
const struct program *program_at_sizes(struct arena *a, const struct program *p, const int64_t *sizes);

/* ERR_INPUT: one of the sizes, by axis, is not one that the program is for. `what` begins the message. */
NODISCARD enum err_code program_check_sizes(const struct program *p, const int64_t *sizes, const char *what,
	struct err *e);
/* ERR_INPUT, at the line: q, which p's function makes with other sizes of axes that p leaves to the launch, is not
 * the same program but for these sizes. Scratch memory in `a`. */
NODISCARD enum err_code program_check_same(struct arena *a, const struct program *p, const struct program *q,
	struct err *e);
/* Of n axes the one whose elements each stand for `per` of axis `of`; NONE. */
static inline int find_packed_axis(const struct program *p, const int *axis, int n, int of, int per)
{
	for (int i = 0; i < n; i++)
		if (p->axes.v[axis[i]].packs == of && p->axes.v[axis[i]].per == per)
			return axis[i];
	return NONE;
}

/* The value that a product reads as its operand: where it expands the operand itself, what it expands. */
static inline int product_operand(const struct program *p, const struct node *mma, int i)
{
	const struct node *x = &p->nodes.v[mma->arg[i]];

	return x->op == OP_EXPAND && x->task == mma->task ? x->arg[0] : mma->arg[i];
}

/* The indices by which a product expands its first operand; NONE: it does not. */
static inline int product_indices(const struct program *p, const struct node *mma)
{
	return product_operand(p, mma, 0) == mma->arg[0] ? NONE : p->nodes.v[mma->arg[0]].arg[1];
}

/* What program_unpack takes to make elements of a load's words: the axes of words and of elements, and their type.
 * False: the tensor does not hold words of elements. */
bool program_load_unpacks(const struct program *p, int load, int *from, int *to, enum dtype *type);

/* The axis of dimension d as users declared it. */
static inline int tensor_declared_axis(const struct tensor *t, int d)
{
	return d == t->rank - 1 && t->unpacked != NONE ? t->unpacked : t->dim[d];
}

/* Does some store add to the tensor? */
bool tensor_is_added_to(const struct program *p, int tensor);
/* Elements of a tensor. */
int64_t tensor_elements(const struct program *p, int tensor);
/* Elements in a row that ascends; 0: the tensor is not sorted. */
int64_t tensor_sorted_row(const struct program *p, int tensor);
/* Readable listing, one node a line. Programs with the same one differ only in the lines of the user's file. */
void program_print(const struct program *p, struct buf *out);
/* The same without the sizes of the axes. */
void program_print_family(const struct program *p, struct buf *out);
/* program_print with the options, which the user reads there; hashes do without, as the statements have all of
 * their effect. */
void program_print_options(const struct program *p, struct buf *out);
/* "m=4096 n=4096 k=64" */
void program_print_sizes(const struct program *p, struct buf *out);
/* "attention{m=4096, n=4096, causal=true}": with sizes and options */
void program_print_call(const struct program *p, struct buf *out);

#endif
