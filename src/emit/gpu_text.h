/* gpu_text.h - the body of a kernel as C text; what its files share.
 *
 * The body is plain C over the names that a target's prelude defines: flags, copies,
 * matrix instructions, shuffles; docs/internals/adding.md lists them. cuda_prelude.c says
 * what they are on sm_90a, millrace_host.h of src/host what they are on a CPU, so both
 * targets run the same text.
 */
#ifndef EMIT_GPU_TEXT_H
#define EMIT_GPU_TEXT_H

#include "emit/emit.h"

extern const char *const cuda_prelude[];	/* line by line, then NULL */
extern const char *const cuda_stamps[];		/* the same, of a traced kernel */
extern const char *const cuda_cluster[];	/* ... of one whose blocks form clusters */

struct text {
	const struct kernel *k;
	const struct plan *plan;
	const struct graph *g;
	const struct program *p;
	struct arena *a;
	struct buf *out;
	struct buf functions;		/* matrix instructions in use */
	struct source *src;
	int indent;
	const struct klane *lane;
	int turn;			/* turn of the text at hand, modulo the region's unroll */
	int *around;			/* by loop, NONE too: the turn's iteration, of those around */
	int last;			/* greatest iteration there is, counted likewise */
	const struct target *target;
	bool *fused;			/* by node: an element of the loop at hand */
	VEC(struct detoured) detours;	/* in the lane's scratch at hand */
};

struct detoured {
	int node, arg, carry;		/* what takes which; see lower/detours.h */
	int64_t at;
};

enum {
	GROUP_WARPS = 4,		/* of a warpgroup */
	LANES_MERGED = 8,		/* at most */
};

/* If the n texts of lanes say the same, append one for all to `out`, in which `who`, from
 * 0 to n - 1, says which lane it is, and return true. What is appended otherwise is of no
 * use. */
bool merge_texts(struct arena *a, const char *const *text, int n, struct buf *out);

/* A value as the lane's threads hold it. */
enum frag { FRAG_FULL, FRAG_ROW, FRAG_COL, FRAG_SCALAR };

struct view {
	enum frag kind;
	int64_t height, width;		/* of the part at hand */
	int64_t rows, cols;		/* ... filled up to whole blocks and eights */
	int blocks;			/* row blocks: rows / (16 * warps) */
	bool packed;			/* FULL of a 16-bit type: pairs of columns in a word */
};

void put(struct text *c, const char *fmt, ...) PRINTF(2, 3);
const char *c_name(struct text *c, const char *prefix, const char *name);

const char *float_text(struct text *c, double x);

/* Shape of a node's or carry's value in the part that sTask s works on. */
NODISCARD enum err_code node_view(struct text *c, const struct stask *s, int node,
	struct view *v, struct err *e);
NODISCARD enum err_code buffer_view(struct text *c, int buffer, struct view *v, struct err *e);
/* Name of the registers of a buffer as sTask s sees them in this turn; of a version. */
const char *buffer_name(struct text *c, const struct kentry *x, int buffer);
const char *version_name(struct text *c, int buffer, int version);
/* C text of where an axis stands: its first index in this tile or iteration, and for
 * the fragment element at hand (rb, j, h, e) its index within the tile. */
const char *axis_lo(struct text *c, const struct stask *s, const struct shape2 *shape, int axis);
const char *axis_local(struct text *c, const struct stask *s, const struct shape2 *shape, int axis);
/* C text of a ring element's address: at a row and column of it; at the axes' positions. */
const char *ring_place(struct text *c, const struct ring *r, const char *slot, const char *row,
	const char *col);
const char *ring_address(struct text *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape, const char *slot);
#define ALL_AXES (~(uint64_t)0)

/* C text of a condition: the element at hand is one of the part, and within the ends of
 * those of its axes that are in the set `ends`; "true" if there is nothing to ask. */
const char *inside_text(struct text *c, const struct stask *s, const struct shape2 *shape,
	const struct view *v, uint64_t ends);
const char *index_text(struct text *c, const struct stask *s, const struct index_expr *x,
	const struct shape2 *shape, bool local);

/* Of a fragment: its dimensions in a declaration, loops over its elements (rb, j, h, e)
 * and the element at hand. */
const char *frag_dims(struct text *c, const struct view *v);
const char *frag_loops(struct text *c, const struct view *v);
const char *frag_element(enum frag kind);
const char *register_type(enum dtype t);
/* C text of element `arg` where element (rb, j, h, e) of `node` is at hand. */
NODISCARD enum err_code operand_text(struct text *c, const struct kentry *x, int node, int arg,
	const char **out, struct err *e);
/* From stored bits and to them: what memory holds of an element. */
const char *bits_type(enum dtype t);
const char *shared_type(enum dtype t);
const char *from_bits(struct text *c, enum dtype t, const char *bits);
const char *to_bits(struct text *c, enum dtype t, const char *value);
const char *shared_get(struct text *c, enum dtype t, const char *address);
const char *shared_put(struct text *c, enum dtype t, const char *address, const char *value);
NODISCARD enum err_code not_lowered(const struct node *n, struct err *e);

NODISCARD enum err_code emit_reduce(struct text *c, const struct kentry *x, int node,
	struct err *e);
NODISCARD enum err_code emit_scan(struct text *c, const struct kentry *x, int node,
	struct err *e);
NODISCARD enum err_code emit_result(struct text *c, const struct kentry *x, int buffer,
	struct err *e);
NODISCARD enum err_code emit_compute(struct text *c, const struct kentry *x, struct err *e);
NODISCARD enum err_code emit_mma(struct text *c, const struct kentry *x, struct err *e);
/* Carries in shared memory, and products whose results go there (text_carry.c): initial
 * values where x is the first to touch a life; a carry's new value, by node `node` of x; the
 * registers of a product, which are `acc`, from the ring and, once it is complete, to it. */
void put_begins(struct text *c, const struct kentry *x);
NODISCARD enum err_code put_set_shared(struct text *c, const struct kentry *x, int node,
	struct err *e);
const char *landing_name(struct text *c, int buffer);
NODISCARD enum err_code put_take_off(struct text *c, const struct kentry *x, int node, int buffer,
	struct err *e);
NODISCARD enum err_code put_landing(struct text *c, const struct kentry *x, struct err *e);
/* Values in registers that nodes [first, last) of x's task take in another layout go to the
 * lane's scratch (text_detour.c); C text of the element of one where it is taken. */
NODISCARD enum err_code put_detours(struct text *c, const struct kentry *x, int first, int last,
	struct err *e);
bool has_detour(const struct text *c, int node, int arg, int carry);
NODISCARD enum err_code detour_text(struct text *c, const struct kentry *x, int node, int arg,
	int carry, const char **out, struct err *e);
/* C text of the place, in rows and columns of `from`, of the element at hand of `to`. */
const char *plain_place(struct text *c, const struct stask *s, const struct shape2 *from,
	const struct shape2 *to);
/* C text of the element at hand of `node`, out of a tile in shared memory. */
NODISCARD enum err_code from_ring(struct text *c, const struct kentry *x, const struct ring *r,
	int node, const char **out, struct err *e);
/* One thread for each element: of vectors several hold the same. */
const char *one_of_copies(enum frag kind);
/* "if (...) " for the threads and elements that bring the part's elements to memory; "". */
const char *if_brought(struct text *c, const struct stask *s, const struct shape2 *shape,
	const struct view *v);
/* Number of the parameter that maps the tensor of a load or store, innermost dimension
 * first, in boxes of this size. */
int map_param(struct text *c, const struct stask *s, const struct node *n, const int64_t *box,
	int swizzle);
/* Boxes for ring r from the tensor that node n loads, by the lane at hand. */
void emit_boxes(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n);
/* Does the lane itself read what x loads? Then its threads may not be done with it. */
bool reads_own(const struct text *c, const struct kentry *x);
void put_lane_sync(struct text *c);
NODISCARD enum err_code emit_load(struct text *c, const struct kentry *x, struct err *e);
/* One element of a ring after the other, over the lane's threads: its row and column stand for
 * the fragment's; name of its slot; is it one of the tile, within the ends of its axes? */
void put_each_of_ring(struct text *c, const struct ring *r);
const char *slot_of(struct text *c, int buffer);
const char *within_ring(struct text *c, const struct stask *s, const struct ring *r);
/* Declare the indices i0, i1 ... of the element at hand in the tensor of a load or store: C
 * text of the element, and in *inside of the condition that it is there, after what is. */
const char *put_indices(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const char **inside);
NODISCARD enum err_code emit_store(struct text *c, const struct kentry *x, struct err *e);

/* The structure, from the outside in: text_kernel.c, _lane, _loop, _entry, _wait. */
NODISCARD enum err_code put_lane(struct text *c, struct err *e);	/* c->lane */
/* All turns of a loop in the iteration at hand; NONE: of the tile loop, where it has offsets. */
NODISCARD enum err_code put_region(struct text *c, int loop, struct err *e);
/* Step s of the tile loop for the tile that is called `iteration` among the lane's. */
NODISCARD enum err_code put_tile_step(struct text *c, const struct kstep *s, int class,
	const char *iteration, struct err *e);
/* A turn of the tile loop ends. */
void put_tile_turn_end(struct text *c, bool last);
/* Where the axes of the grid stand in `tile`; where a loop begins in the iteration at hand, and
 * how often it runs. */
void put_tile_axes(struct text *c);
void put_trips(struct text *c, int loop);
/* The loop of a tile that is another copy's: only its iterations are counted. */
void put_passed(struct text *c, int loop);
/* `iteration`: C text of its number; class: of the turn, see lower/kernel.h. */
NODISCARD enum err_code put_entry(struct text *c, const struct kentry *x, int class,
	const char *iteration, struct err *e);
void put_loop_axes(struct text *c, int loop);	/* where the axes of iteration i_LOOP stand */
/* Initial values: all carries of the tile; those of `loop` that first matter in `nested`. */
NODISCARD enum err_code put_initial_tile(struct text *c, struct err *e);
NODISCARD enum err_code put_initial_nested(struct text *c, int loop, int nested, struct err *e);
void put_flag_waits(struct text *c, const struct kentry *x);
void put_missed_waits(struct text *c, int loop, int nested);
bool waits_once(const struct text *c, int flag);
void put_group_wait(struct text *c, const struct kentry *x, const struct group_wait *w,
	int class);
void put_read_pins(struct text *c, const struct kentry *x);
void put_releases(struct text *c, const int *behind);
void put_arrive(struct text *c, int flag, const char *seq);
void put_early_runs(struct text *c, const struct kentry *x);
void put_run(struct text *c, const struct kstep *nested);

/* Stamps of a traced kernel; nothing in another. */
void put_stamp(struct text *c, const struct kentry *x, int n);	/* nth of x's record; NONE */
void put_block_stamp(struct text *c);
void put_watches(struct text *c);		/* by warps that this lane leaves over */
void put_lane_stamps(struct text *c);		/* where this lane's are */
void put_tile_stamps(struct text *c);		/* where a tile begins, or a turn with several */
void put_tile_bases(struct text *c);		/* where the steps of one tile do */
void put_tile_end_stamp(struct text *c);	/* where the tile ends, or that turn */
void put_end_stamp(struct text *c);

/* The buffer that node `node` of another sTask is to this one; NONE. */
int buffer_of_node(const struct text *c, const struct stask *s, int node);
int buffer_of_carry(const struct text *c, const struct stask *s, int carry);

static inline const struct stask *stask_of(const struct text *c, const struct kentry *x)
{
	return &c->g->tasks.v[x->task];
}

/* Does the lane go on before the product is complete? */
static inline bool on_matrix(const struct text *c, int task)
{
	const struct seu *u = &c->plan->device->seu[
		c->plan->entries.v[plan_entry_of(c->plan, task)].seu];

	return u->kind == SEU_MATRIX && u->async && !kernel_lands(c->k, task);
}

static inline bool in_lane(const struct text *c, int task)
{
	return c->plan->entries.v[plan_entry_of(c->plan, task)].lane == c->lane->lane;
}

#endif
