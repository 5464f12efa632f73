/* passes.h - the analyses and allocations that fill in a kernel, what each needs of the others, and the functions that
 * they share; for use inside src/lower.
 *
 * refine.c calls them in the order of this file. Each fills in fields that none before it reads (only lower_copy_waits
 * replaces one, by an equal copy), and adds to shared_bytes what it allocates. verify (verify/verify.h), which shares no
 * code with them, checks the finished kernel, and a counterexample that it finds becomes a refinement of the next
 * attempt (refine.h).
 *
 * The passes that make and change the tree of operations are in passes.def and pass/. */
#ifndef LOWER_PASSES_H
#define LOWER_PASSES_H

#include "lower/lower.h"
#include "plan/events.h"

enum { DEPTH_MAX = 16 };			/* the most mbarriers that a flag may have */

/* Like lower_plan or, if `unproven`, lower_for_price (lower.h); on ERR_ILLEGAL *why says which limit or rule the plan
 * breaks. */
NODISCARD enum err_code lower_or_refuse(struct mem *mem, const struct plan *p, int phase, bool unproven,
	const struct stop *stop, struct kernel **out, struct refusal *why, struct err *e);

/* Before each pass: the fields of the kernel that it needs, those that it computes, and what holds afterwards. */

/* needs: the plan
 * computes: node_shape, carry_shape, contracted
 * promises: operands and result of a product agree on which axes are rows and which columns; the result of an
 * element-wise operation keeps its arguments' rows and columns as far as these agree */
NODISCARD enum err_code lower_shapes(struct kernel *k, struct err *e);

/* needs: shapes
 * computes: rings, ring_of, shared_bytes so far
 * promises: what several lanes touch, or an engine, is in a ring; no two rings share memory, except an alias and what
 * it is an alias of, and slices of a value that are stored together */
NODISCARD enum err_code lower_rings(struct kernel *k, struct err *e);
/* The buffer in registers of which an sTask writes the value to this one; NONE. */
int lower_staged_in(const struct kernel *k, int buffer);
/* Does the sTask write to shared memory what a load has left in registers? */
static inline bool lower_puts(const struct kernel *k, const struct stask *s)
{
	return s->writes.n && lower_staged_in(k, s->writes.v[0]) != NONE;
}
/* Do matrix instructions read the buffer as an operand in shared memory? Then they determine the layout of its ring. */
bool lower_is_shared_operand(const struct kernel *k, int buffer);
/* Do they read it out of shared memory or registers? Then it must be zero beyond the end of a contracted axis. */
bool lower_is_matrix_operand(const struct kernel *k, int buffer);
/* Can the matrix instructions of product s read its argument number `arg` from a ring of this shape (layout/
 * operand_shape.c; needs shapes)? Then *k_major says whether they contract the columns, or else the rows. */
bool lower_reads_operand(const struct kernel *k, const struct stask *s, int arg, const struct shape2 *v, bool *k_major);
/* May the length of a loop around the region end within a tile of the axis? Tiles of one element are there or not. */
static inline bool ends_within_tile(const struct graph *g, int loop, int axis)
{
	int over = program_length_loop(g->program, loop, axis);

	return over != NONE && !program_length_fills_tiles(g->program, over, g->extents.tile[axis]);
}

/* Does a product contract an axis of the loaded tile that ends at the length of a loop around the load? Elements beyond
 * the end must be zeros, which the copy engine does not write (layout/loads.c). */
bool lower_ends_by_length(const struct kernel *k, const struct buffer *b);

/* If the engine copies all tiles but the one in which such a length ends, threads must copy that one. Why they
 * cannot: */
enum end_obstacle {
	END_NONE,
	END_LOOP,			/* the length is not that of the load's own loop */
	END_TILE,			/* the tile is no multiple of what an instruction contracts */
	END_CLUSTER,			/* the blocks of a cluster load together */
};
/* Sets *axis to the axis that the length ends, *multiple to the elements that an instruction contracts. */
enum end_obstacle lower_end_obstacle(const struct kernel *k, const struct buffer *b, int *axis, int64_t *multiple);
/* The dimensions of the copy engine's box for a ring whose axes are in another order than the tensor's
 * (layout/box_order.c), innermost first. */
struct box_order {
	int n, dim[RANK_MAX];		/* the dimension of the tensor */
	int64_t extent[RANK_MAX];	/* elements of the box along it */
	int merged;			/* so many of the tensor's last dimensions are one dimension of the box, its
					 * first */
};
/* Sets *out for a ring that is `reordered`. */
void lower_order_box(const struct kernel *k, const struct ring *r, struct box_order *out);
/* Is the node a sum of which each thread keeps its own partial sum? Does the node read a carry to which such sums are
 * added, so that the partial sums must be added up first? (layout/partial.c; needs shapes and rings.) */
bool lower_is_partial_sum(const struct kernel *k, int node);
bool lower_joins_partial_sums(const struct kernel *k, int node);

/* computes: own, a copy of the plan, which k->plan is from now on; the two functions below change its waits
 * promises: every order that the plan's waits guarantee still holds */
void lower_copy_waits(struct kernel *k);
/* needs: own, rings, refinements; removes or replaces waits of own
 * promises: a flag can show each wait that is left, or the lane needs none for it, except for the instances of earlier
 * tiles that replicas cannot count, which other waits imply. ERR_ILLEGAL: a wait that no flag can show (is_hidden in
 * sync/own_waits.c) is not implied by others and cannot be replaced, or such instances are not (check_last_tile) */
NODISCARD enum err_code lower_remove_hidden_waits(struct kernel *k, struct err *e);
/* Keeps a lane from running too far ahead: adds to `own` a wait in the other direction, by which the awaited sTask of
 * wait number `wait` waits for an earlier instance of the waiting one. refine.c calls it when no depth of a flag is
 * enough for that wait, and then repeats all passes from lower_flags on. False: there are too many waits, or each wait
 * that could be added would be a deadlock, is there already, or is for no earlier instance. */
bool lower_hold_back(struct kernel *k, int wait);

/* The part of a ring that belongs to sTask s; all of it unless it holds all slices of a split value. height and width
 * are its extents, rows and cols what s fills, which with the last slice includes zeros beyond the value's end. */
struct frag lower_ring_slice(const struct stask *s, const struct ring *r);
/* needs: rings. The ring that has what the load loads; of one to registers, to which another sTask writes it. */
const struct ring *lower_loaded_ring(const struct kernel *k, int task);
/* needs: rings. Access width of a load by threads: contiguous elements that a thread copies at once. */
int lower_copy_width(const struct kernel *k, int task);
/* Likewise of a load through registers by aligned words, whose elements may begin at any address; 1: one by one. */
int lower_unaligned_width(const struct kernel *k, int task);
/* For the copy engine a dimension of the load's tensor may be divided into blocks of neighbours, so that it sees two
 * dimensions and can load some elements of each block. Returns the elements of a block; 1: it is not divided. */
int64_t lower_split_dimension(const struct kernel *k, int buffer, int d);
/* Can the copy engine load each row of a ring of that shape by itself, so that rows may be anywhere? If not, *why says
 * why. */
bool lower_goes_by_rows(const struct kernel *k, const struct buffer *b, const struct shape2 *v,
	enum engine_obstacle *why);
/* What keeps a load from being made of copies without registers. */
enum dma_obstacle {
	DMA_NONE,
	DMA_UNIT,			/* it is no load to shared memory on a unit that has them */
	DMA_ADDRESSES,			/* the tensor is given by several addresses */
	DMA_WORDS,			/* elements that would fill a copy are no neighbours, or not aligned to that */
	DMA_SIZE,			/* the tensor has more bytes than offsets reach */
	DMA_PANELS,			/* rows of the slot are not filled completely */
	DMA_PARTS,			/* warps have no equal parts of complete copies */
};
enum dma_obstacle lower_dma_obstacle(const struct kernel *k, int task);
/* needs: rings. If the load is made of copies without registers (dma_bytes of the target), how many each thread of its
 * lane has; else 0: its unit has none, or they cannot make such a tile, and threads copy by way of registers. */
int64_t lower_dma_copies(const struct kernel *k, int task);
/* Do the copies of a load by threads arrive at its flag when they are complete (cp.async.mbarrier.arrive)? */
bool lower_copies_arrive(const struct kernel *k, int task);

/* needs: own, rings
 * computes: meetings
 * promises: where there are any, all waits of `own` hold by them, and no flags are needed */
void lower_meetings(struct kernel *k);
/* Computes their before_wait and end_wait. within: by entry of the plan, for a counted load how many meetings are between it
 * and the first sTask that waits for it; INT_MAX: none does, or what waits for a later one. */
void lower_count_copies(struct kernel *k, int loop, const int *within);
/* Does the sTask write to shared memory by the lane's threads what it gets from global memory? In a loop the meetings of all
 * lanes order that with what the lane itself reads, too. */
bool lower_meets_for(const struct kernel *k, int task);

/* needs: own, rings, refinements
 * computes: flags except offset, each with the depth to begin with (a load's: its ring's versions);
 *           flag_of, issue_flag_of, handover_flag_of
 * promises: all that a wait of `own`, or the issue order of replicas, asks for is shown by a generation of a flag */
void lower_flags(struct kernel *k);

/* needs: rings, flags
 * computes: cluster; the shares of loads (cluster_share), and which flags all blocks arrive at */
void lower_cluster(struct kernel *k);

/* needs: own, flags, refinements
 * computes: offset of each flag, and its depth, which only grows; shared_bytes so far
 * promises: as far as the relation of the plan's events says, no waiter mistakes a generation of a barrier for another
 * ERR_ILLEGAL: a flag needs more than DEPTH_MAX mbarriers. If windows show that lanes run too far apart for a wait of
 * `own`, *unserved is that wait; otherwise NONE. What only longer runs show, verify finds (refine.c). */
NODISCARD enum err_code lower_depths(struct kernel *k, int *unserved, struct err *e);

/* needs: rings; computes: which of them are kept, and where their words are; shared_bytes so far */
void lower_kept(struct kernel *k);

/* needs: own, rings, flags with depths, refinements
 * computes: lanes, except outboxes; threads; shared_bytes so far
 * promises: each entry makes all waits that the plan gives it, on flags or by a count of groups */
NODISCARD enum err_code lower_lanes(struct kernel *k, struct err *e);
/* May the text of the lane's loop be there once for each of the versions that buffer `b` has in registers? */
bool lower_unrolls_for(const struct kernel *k, const struct klane *l, int b);
enum { UNROLL_MOST = 1 << 20 };		/* greater least common multiples are as good as this one */
/* Is the text of the lanes short enough for check and for compilers (text.c)? */
NODISCARD enum err_code lower_count_text(struct kernel *k, struct err *e);
/* The lane's entry of the sTask; it must have one. */
struct kentry *lower_entry_of(const struct klane *l, int task);
/* Has the lane an entry in the phase? A lane without one is not part of the kernel. */
bool lower_has_work(const struct kernel *k, int lane);

/* needs: lanes, rings
 * computes: taken: which lane asks for tiles, where their numbers are in shared memory; shared_bytes so far
 * ERR_ILLEGAL: tiles are dynamic, and the lanes or the target do not let them be taken by a counter */
NODISCARD enum err_code lower_taken(struct kernel *k, struct err *e);

/* needs: lanes
 * computes: parts, shared_nodes, and the flags of the parts; adds to shared_bytes */
NODISCARD enum err_code lower_cluster_sums(struct kernel *k, struct err *e);
/* Do the blocks of a cluster await all that others signal to them? A block writes parts to others before it signals to them, and
 * these await that for each of their tiles; but that parts have been read nobody awaits behind the last tile. */
bool lower_ends_apart(const struct kernel *k);
/* Is what the sTask stores made of a sum over blocks, so that each stores its share? */
bool lower_stores_share(const struct kernel *k, const struct stask *s);
/* Then how that sum is divided; NULL: the lane does not have it as its threads hold the sum. */
const struct parts_sum *lower_stored_parts(const struct kernel *k, const struct stask *s);

/* needs: all above, as staging takes shared memory that is left
 * computes: outboxes: the stores by the copy engine; shared_bytes, complete */
void lower_stores(struct kernel *k);
/* The shape in which the copy engine stores the buffer's value: axes of which it has one element are left out. */
struct shape2 lower_stored_shape(const struct kernel *k, int buffer);

/* needs: lanes, threads, outboxes
 * computes: what each lane does (klane.work); registers granted to its threads (klane.granted); shares_registers
 * promises: the grants sum to no more than the launch has, so no setmaxnreg waits for ever */
NODISCARD enum err_code lower_grant(struct kernel *k, struct err *e);
/* Registers of each thread at launch. */
int lower_launched(const struct kernel *k);

/* needs: all above
 * computes: role: the kernel as one tree of operations, by the passes of passes.def (pass/pass.h) */
NODISCARD enum err_code lower_body(struct kernel *k, struct err *e);

/* needs: role; computes: klane.needed. ERR_ILLEGAL: a lane needs more than it is granted */
NODISCARD enum err_code lower_fit_registers(struct kernel *k, struct err *e);

/* After that: if an equal share is too little for one of the lanes that share registers, and another one needs at most
 * half of it, the next attempt gives each what it needs and an equal share of what then remains (k->share_of). Else
 * lanes that copy get fewer in the next attempt, if that is enough (k->copying_registers). False: no lane lacks registers,
 * there are not enough of them, or this attempt has shared them so already. */
bool lower_share_by_need(struct kernel *k);

/* Grants lanes whose threads copy, and those that load many boxes, registers that the lanes that share the remainder do
 * not need. */
void lower_grant_more(struct kernel *k);

/* Which instance, or run of a loop, a wait needs to see by a flag: that of the iteration `back` iterations before the
 * current one of `loop`. A wait has one demand for each distance of the dependences that it serves. */
struct flag_demand {
	int loop, back;
	bool within_run;		/* none if that iteration is before the current run of `loop` */
	bool before_run;		/* none if it is in the current run, which no other replica executes */
	int runs;			/* the loop whose runs the flag counts; NONE: it counts instances */
};
/* Of a wait for an sTask of the same lane: does it await instances by another replica, because the replicas share a
 * ring; does it await instances by the same replica? Both can be true. */
bool lower_awaits_replicas(const struct kernel *k, const struct wait *w);
bool lower_awaits_own(const struct kernel *k, const struct wait *w);
/* Is it a wait of a lane with replicas for a load of its own, `distance` iterations of a loop back? Its first
 * iterations then await instances in the last tile of the same replica. */
bool lower_awaits_last_tile(const struct kernel *k, const struct wait *w);
/* Iterates over the demands of a wait; false: no more. *i is the state, 0 before the first. */
bool lower_next_demand(struct kernel *k, const struct wait *w, int *i, struct flag_demand *out);
/* The flag that shows a demand of the wait; NONE: lower_flags has not made it yet. */
int lower_demand_flag(const struct kernel *k, const struct wait *w, const struct flag_demand *demand);
/* Has the wait a demand that flag f shows? *first is the first one. */
bool lower_has_demand(struct kernel *k, const struct wait *w, const struct flag *f, struct flag_demand *first);
/* Do both signal the same? Their depths may differ, and they may be of different attempts. */
bool lower_same_flag(const struct flag *a, const struct flag *b);
/* In a lane with tile offsets: the flag that hands step s of the tile loop over to the next replica, or NONE. */
int lower_step_handover(const struct kernel *k, int lane, const struct order_step *s);
/* The flag on which an sTask signals the runs of `loop`, in which it is; NONE. */
int lower_run_flag(const struct kernel *k, int task, int loop);
/* Does instance i of the waiting sTask learn through a flag that instance `on` of the awaited one is complete? (Indices
 * into r->inst.) */
bool lower_shown_by_flag(const struct kernel *k, const struct wait *w, const struct relation *r, int i, int on);
/* Adds to entry x the waits on flags that make up wait number `wait` of the plan. Needs flags. */
void lower_flag_waits(struct kernel *k, struct kentry *x, int wait);
/* Is the wait for an sTask in a loop inside the waiting one's, so that a flag must count that loop's runs? *back: for
 * the run so many runs back. */
bool lower_waits_for_run(const struct kernel *k, const struct wait *w, int *back);
/* Must the awaited load wait for the runs of the waiting sTask's loop, so that it cannot run ahead of empty ones? */
bool lower_keeps_lockstep(const struct kernel *k, const struct wait *w);
/* Adds waits that are not in the plan but needed because a loop may make no iteration. */
void lower_run_waits(struct kernel *k, struct kentry *x);
/* Fills in x->carry_starts: the carries in shared memory whose initial value entry x may have to write. */
void lower_carry_starts(struct kernel *k, struct kentry *x);
/* Fills in the waits for groups of all lanes, and after which entries they wait until one group is left
 * (kentry.drains). */
void lower_groups(struct kernel *k);
/* Adds waits for all groups where ptxas needs them to see that what it calls a pipeline stage ends. Without them it
 * would serialize products. */
void lower_end_stages(struct kernel *k, struct klane *l);

/* The relation of the plan's events over `ntiles` tiles in which each loop makes so many iterations: trips, by loop.
 * Allocated in `a`. */
void lower_relation(struct kernel *k, struct arena *a, const int64_t *trips, int ntiles, struct walk *w, struct relation *r);
/* The most iterations of each loop, from 1 to `trips`, whose events in so many tiles are not too many to look at. */
int64_t lower_fitting_trips(const struct kernel *k, int64_t trips, int64_t tiles);
/* Does `holds` accept the relation of every window (depths.c): a few tiles, in which all loops make equally many
 * iterations, or as nearly as many as they can? Stops at the first that it rejects, and where the user interrupts: then false,
 * and lowering ends with ERR_INTERRUPTED whatever is made of that. */
bool lower_all_windows(struct kernel *k, bool (*holds)(void *ctx, const struct relation *r), void *ctx);
/* Difference of the greatest and the least offset of a lane in the tile loop; *least is the latter. */
int lower_tile_offsets(const struct kernel *k, int lane, int *least);
/* That difference summed over all replicas of all lanes: tiles that lanes may be apart in addition to their waits. */
int lower_tile_spread(const struct kernel *k);
/* Iterations of a window, among which any two that interact are expected to be (depths.c; verify finds exceptions). */
int64_t lower_window_iterations(const struct kernel *k);

static inline const struct stask *stask_at(const struct kernel *k, int task)
{
	return &k->plan->graph->tasks.v[task];
}

/* The last node of the sTask's task: a product, a load, a store. */
static inline int last_node(const struct graph *g, const struct stask *s)
{
	const struct task *t = &g->program->tasks.v[s->task];

	return t->nodes.v[t->nodes.n - 1];
}
static inline const struct node *last_node_of(const struct kernel *k, const struct stask *s)
{
	return stask_last_node(k->plan->graph, s);
}

/* The type that a kernel needs for the node: of a store its tensor's. */
static inline enum dtype type_lowered(const struct program *p, const struct node *n)
{
	return n->op == OP_STORE ? p->tensors.v[n->ref].type : n->type;
}

/* Do kernels compute with numbers of the type in registers? No target does with f64, which is the reference's type.
 * bool has no numbers, and elements of 4 bits are unpacked first. */
static inline bool is_number_type(enum dtype t)
{
	return t == DT_F32 || t == DT_TF32 || t == DT_F16 || t == DT_BF16 || t == DT_E4M3 || t == DT_E5M2 ||
		t == DT_E8M0 || t == DT_I32 || t == DT_I8 || t == DT_U8;
}

/* Has the tensor's last dimension an even size? Then each byte of 4-bit elements is within a row. */
static inline bool has_even_rows(const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];

	return t->rank > 0 && axis_divisor(&p->axes.v[t->dim[t->rank - 1]]) % 2 == 0;
}

/* Can kernels have a value of the node's type? Of elements of 4 bits if it is unpacked, converted to these, or
 * stored. */
static inline bool has_lowering(const struct program *p, const struct node *n)
{
	enum dtype t = type_lowered(p, n);

	if (t == DT_I4 || t == DT_E2M1)
		return n->op == OP_UNPACK || n->op == OP_CAST || n->op == OP_SET ||
			(n->op == OP_STORE && has_even_rows(p, n->ref));
	return is_number_type(t) || t == DT_BOOL || n->op == OP_SET;
}

/* The matrix instruction of a unit for a product; NULL: it has none. */
static inline const struct matrix_instruction *instruction_for(const struct kernel *k, const struct seu *unit,
	const struct work *w)
{
	return unit->kind == SEU_MATRIX ? target_matrix(k->target, unit->async, w->sparse, w->type) : NULL;
}

static inline const struct seu *seu_of(const struct kernel *k, int task)
{
	return &k->plan->device->seu[k->plan->entries.v[plan_entry_of(k->plan, task)].seu];
}

static inline int lane_of(const struct kernel *k, int task)
{
	return k->plan->entries.v[plan_entry_of(k->plan, task)].lane;
}

/* The parts of the sTask's lane that divide columns. */
static inline int lower_parts(const struct kernel *k, const struct stask *s)
{
	return plan_lane_parts(k->plan, lane_of(k, (int)(s - k->plan->graph->tasks.v)), k->phase);
}

/* Is the sTask an asynchronous product, for which its lane waits by a count of groups? Other products, on a synchronous
 * unit or by threads, are complete when the lane goes on. */
static inline bool is_async_product(const struct kernel *k, int task)
{
	return seu_of(k, task)->kind == SEU_MATRIX && target_seen(k->target, seu_of(k, task), true) == SEEN_COUNTED;
}

/* Is the sTask an asynchronous load to shared memory? Its own lane, too, learns through a flag that it is complete, even where threads
 * copy because the engine cannot. A load on a synchronous unit is complete when the lane goes on, and so is
 * one by threads where lanes meet; compilers wait for one to registers where these are used. */
static inline bool is_async_load(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);

	return s->kind == TASK_LOAD && !k->meetings.interval && !k->plan->graph->buffers.v[s->writes.v[0]].staged && target_seen(k->target, seu_of(k, task), true) == SEEN_FLAGGED;
}

/* Is the sTask a load whose copies may be under way when its lane goes on, until the lane waits for them by a count? It is
 * where lanes meet in its loop; elsewhere the lane waits at once. */
static inline bool is_counted_load(const struct kernel *k, int task)
{
	return k->meetings.interval && stask_at(k, task)->loop != NONE && lower_dma_copies(k, task);
}

static inline bool on_same_lane(const struct kernel *k, const struct wait *w)
{
	return lane_of(k, w->task) == lane_of(k, w->on);
}

/* Does the wait await the completion of an asynchronous load of the same lane? */
static inline bool awaits_own_load(const struct kernel *k, const struct wait *w)
{
	return on_same_lane(k, w) && is_async_load(k, w->on) && w->when != WAIT_ISSUED;
}

/* Is the wait, or a part of it, shown by a flag? A lane knows what it has issued itself, and counts its own products;
 * but it needs flags for its asynchronous loads, which name one even if they never run, and for other replicas. */
static inline bool needs_flag(const struct kernel *k, const struct wait *w)
{
	if (k->meetings.interval || (graph_never_runs(k->plan->graph, w->on) && !is_async_load(k, w->on)))
		return false;
	if (!on_same_lane(k, w))
		return target_seen(k->target, seu_of(k, w->on), false) == SEEN_FLAGGED;
	return awaits_own_load(k, w) || lower_awaits_replicas(k, w);
}

#endif
