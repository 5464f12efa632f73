/* Layouts of values in shared memory: which axes of a tile are rows, the bytes of a slot, panels and swizzle, and
 * whether the copy engine can load it. */
#include "lower/layout/rings.h"

/* Does the sTask read what lies in the buffer's ring? */
static bool reads_ring(const struct graph *g, const struct stask *s, int buffer)
{
	const struct buffer *b = &g->buffers.v[buffer];

	for (int i = 0; i < s->reads.n; i++) {
		const struct buffer *a = &g->buffers.v[s->reads.v[i]];

		if (a == b || (a->together && a->node != NONE && a->node == b->node))
			return true;
	}
	return false;
}

/* Does the buffer hold the indices by which the product expands its operand? Threads read these. */
static bool has_indices(const struct kernel *k, const struct stask *s, const struct buffer *b)
{
	return product_indices(k->plan->graph->program, last_node_of(k, s)) == b->node;
}

/* Is the sTask a product on a matrix unit with the buffer as an operand? */
static bool is_matrix_operand(const struct kernel *k, int task, int buffer)
{
	const struct stask *s = stask_at(k, task);

	return s->kind == TASK_MMA && s->phase == k->phase && seu_of(k, task)->kind == SEU_MATRIX &&
		k->plan->graph->buffers.v[buffer].node != NONE && reads_ring(k->plan->graph, s, buffer) &&
		!has_indices(k, s, &k->plan->graph->buffers.v[buffer]);
}

/* ... whose instructions read it from shared memory? Others take operands in registers. */
static bool is_shared_operand(const struct kernel *k, int task, int buffer)
{
	const struct matrix_instruction *by;

	if (!is_matrix_operand(k, task, buffer))
		return false;
	by = instruction_for(k, seu_of(k, task), &stask_at(k, task)->work);
	return by && by->b & FROM_SHARED;
}

bool lower_is_matrix_operand(const struct kernel *k, int buffer)
{
	for (int i = 0; i < k->plan->graph->tasks.n; i++)
		if (is_matrix_operand(k, i, buffer))
			return true;
	return false;
}

const struct stask *lower_next_product(const struct kernel *k, int buffer, int *i)
{
	for (; *i < k->plan->graph->tasks.n; ++*i)
		if (is_shared_operand(k, *i, buffer))
			return stask_at(k, (*i)++);
	return NULL;
}

bool lower_is_shared_operand(const struct kernel *k, int buffer)
{
	return lower_next_product(k, buffer, &(int){ 0 });
}

bool lower_is_contracted(const struct kernel *k, int buffer, int axis)
{
	const struct stask *s;

	for (int i = 0; (s = lower_next_product(k, buffer, &i));)
		if (!node_has_axis(last_node_of(k, s), axis))
			return true;
	return false;
}

/* How products divide one side of an operand: into `count` tiles of `extent` rows or columns, one for each slice, tile
 * or iteration. */
struct operand_tiling {
	int64_t extent, count;
};

/* own: the side that the result has, else the one that is contracted. */
static struct operand_tiling operand_tiling(const struct kernel *k, const struct stask *s,
	const struct buffer *b, bool own, int64_t side)
{
	const struct graph *g = k->plan->graph;
	const struct node *mma = last_node_of(k, s);
	struct operand_tiling x = { 1, 1 };

	for (int i = 0; i < b->naxes; i++) {
		int axis = b->axis[i];
		int64_t take = ring_axis_extent(k, b, axis);

		if (node_has_axis(mma, axis) != own)
			continue;
		if (axis == s->split_axis && s->slices > 1)
			take = ring_slice_extent(k, b, axis);
		if (!own && program_reduces_tile(g->program, mma, axis))
			take = g->extents.tile[axis];
		for (int j = 0; j < mma->naxes && own; j++)
			if (mma->axis[j] == axis)
				take = extent_of_node(&g->extents, (int)(mma - g->program->nodes.v), j) /
					(axis == s->split_axis ? s->slices : 1);
		x.count *= ceil_div(ring_axis_extent(k, b, axis), take);
		x.extent *= take;
	}
	/* elements that neighbours share are fewer */
	return x.count == 1 ? (struct operand_tiling){ side, 1 } : x;
}

/* Does the product contract the operand's columns, whose elements are contiguous? If it cannot read the ring at all,
 * product.c refuses that. */
static bool is_k_major(const struct kernel *k, const struct ring *r, const struct stask *s)
{
	const struct node *mma = last_node_of(k, s);
	bool k_major = false;

	(void)lower_reads_operand(k, s, product_operand(k->plan->graph->program, mma, 0) ==
		k->plan->graph->buffers.v[r->buffer].node ? 0 : 1, &r->shape, &k_major);
	return k_major;
}

/* Does any product contract the columns? */
static bool has_contracted_columns(const struct kernel *k, const struct ring *r)
{
	const struct stask *s;

	for (int i = 0; (s = lower_next_product(k, r->buffer, &i));)
		if (is_k_major(k, r, s))
			return true;
	return false;
}

/* Extent with the last tile padded to complete units, as the instructions read it. */
static int64_t padded_extent(struct operand_tiling x, int64_t unit)
{
	return (x.count - 1) * x.extent + round_up(x.extent, unit);
}

/* Rows (first operand) or columns of which a product reads complete blocks. */
static int64_t block_extent(const struct kernel *k, const struct stask *s, const struct buffer *b)
{
	const struct node *mma = last_node_of(k, s);
	int lane = lane_of(k, (int)(s - k->plan->graph->tasks.v)), parts = lower_parts(k, s);
	bool deep = false;		/* another product contracts them */

	if (product_operand(k->plan->graph->program, mma, 0) == b->node)
		return k->target->frag.rows * (lane_warps(k->plan, lane) / parts);
	for (int a = 0; a < b->naxes; a++)
		deep |= node_has_axis(mma, b->axis[a]) && (k->contracted >> b->axis[a] & 1);
	return parts * (deep ? k->target->frag.deep : k->target->frag.cols);
}

/* Pads an operand: its own axes are read by complete blocks, the contracted ones by k steps, whose padding must be
 * zero. */
static void pad_operand(const struct kernel *k, struct ring *r, const struct buffer *b)
{
	int64_t depth = k_step_depth(k, b);
	const struct stask *s;

	for (int i = 0; (s = lower_next_product(k, r->buffer, &i));) {
		bool by_rows = is_k_major(k, r, s);
		int64_t rows = r->shape.rows, cols = r->shape.cols;
		int64_t own = padded_extent(operand_tiling(k, s, b, true, by_rows ? rows : cols), block_extent(k,
			s, b));
		int64_t deep = padded_extent(operand_tiling(k, s, b, false, by_rows ? cols : rows), depth);
		int64_t *full = by_rows ? &r->full_cols : &r->full_rows;

		*full = max_i64(*full, deep);
		r->rows = max_i64(r->rows, by_rows ? own : deep);
		r->cols = max_i64(r->cols, by_rows ? deep : own);
	}
}

/* A product can begin to read columns that it does not contract at the beginning of a panel. So where products take
 * tiles of them, or asynchronous ones parts of a tile, a panel must divide the extents of all these: returns their greatest common divisor; 0: all begin
 * at column 0. *by: one of those products. */
static int64_t find_grain(const struct kernel *k, const struct ring *r, const struct buffer *b, const struct stask **by)
{
	const struct stask *s;
	int64_t grain = 0;

	for (int i = 0; (s = lower_next_product(k, r->buffer, &i));) {
		struct operand_tiling x = operand_tiling(k, s, b, true, r->shape.cols);
		int task = (int)(s - k->plan->graph->tasks.v);
		int parts = last_node_of(k, s)->arg[1] == b->node && is_async_product(k, task) ? lower_parts(k, s) : 1;

		if (is_k_major(k, r, s) || (x.count == 1 && parts == 1))
			continue;
		grain = gcd_i64(grain, x.extent / parts);
		*by = s;
	}
	return grain;
}

/* How wide panels may be: at most a row of the tensor, and a divisor of the grain (find_grain) ... */
struct limits {
	int64_t most, grain;
	int64_t box;			/* ... and of what a box has of the contiguous axis; 0: no such limit */
	int64_t widest, least;		/* panels of the target */
};

static bool may_be_wide(int64_t wide, struct limits x)
{
	return wide <= max_i64(x.most, x.least) && x.grain % wide == 0 && x.box % wide == 0;
}

/* The widest panel whose rows are swizzled and make up the columns; 0 if there is none. */
static int64_t widest_panel(const struct ring *r, struct limits x)
{
	for (int64_t wide = x.widest; wide >= x.least; wide /= 2)
		if (may_be_wide(wide, x) && r->cols % wide == 0)
			return wide;
	return 0;
}

/* Elements of a row of the tensor that a buffer is loaded from, at least. */
static int64_t tensor_row(const struct kernel *k, const struct buffer *b)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[p->nodes.v[b->node].ref];

	return axis_divisor(&p->axes.v[t->dim[t->rank - 1]]);
}

/* Can a launch have rows of at most `most` elements, and do readers need boxes of more? */
static bool may_be_narrow(const struct kernel *k, const struct buffer *b, int64_t most, int64_t least)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[p->nodes.v[b->node].ref];
	const struct axis *last = &p->axes.v[t->dim[t->rank - 1]];

	return last->multiple && most == last->multiple && most < least;
}

/* Columns that are not contracted are read by complete panels: pads them. */
static void fill_columns(struct ring *r, struct limits x)
{
	int64_t wide = x.widest;

	while (wide > x.least && !may_be_wide(wide, x))
		wide /= 2;
	r->cols = r->cols > wide / 2 ? round_up(r->cols, wide) : max_i64(wide / 2, x.least);
}

/* How many columns each box has that is not swizzled: boxes lie one behind the other, and those of a single row fill
 * it. All of them if such boxes would not begin at aligned addresses. */
static int64_t plain_box(const struct shared_layout *l, int64_t cols, int bits, int64_t most)
{
	int64_t box = min_i64(l->box_cols, most);

	if (cols <= box)
		return cols;
	while (box > 1 && cols % box)
		box /= 2;
	return box * bits / 8 % l->copy_align ? cols : box;
}

/* Is it the box of a window? Threads read it at a constant distance from their element, in one row or another: rows that lie as they
 * are let them read neighbours at once, where the pattern of a swizzle would be another one for each. */
static bool is_window(const struct kernel *k, const struct buffer *b)
{
	return any_of_window(k->plan->graph->program, b->axis, b->naxes);
}

static void choose_panels(const struct kernel *k, struct ring *r, const struct buffer *b)
{
	const struct shared_layout *l = &k->target->shared;
	int bits = dtype_bits(b->type);
	bool operand = lower_is_shared_operand(k, r->buffer);
	const struct stask *by;
	/* no box may be wider than the tensor: the copy engine faults */
	int64_t box = r->reordered ? lower_box_grain(k, b, &r->shape) : 0;
	int64_t most = box ? box : r->engine ? tensor_row(k, b) : INT64_MAX;
	struct limits limits = { most, operand ? find_grain(k, r, b, &by) : 0,
		box,
		l->widest * 8 / bits, l->narrowest * 8 / bits };

	if (operand && r->shape.ncol && !has_contracted_columns(k, r))
		fill_columns(r, limits);
	r->panel_cols = operand ? widest_panel(r, limits) : min_i64(r->cols, limits.widest);
	r->swizzle = (int)(r->panel_cols * bits / 8);
	if (operand && r->swizzle)	/* the pattern goes by address: each panel begins with it */
		r->rows = round_up(r->rows, l->align / r->swizzle);
	if (r->engine)
		r->obstacle = operand && may_be_narrow(k, b, most, max_i64(limits.least, limits.grain)) ?
			OBSTACLE_LAUNCH :
			!operand && r->cols % r->panel_cols ? OBSTACLE_COLS : OBSTACLE_LAYOUT;
	if (!shared_has_swizzle(l, r->swizzle) || is_window(k, b) || r->cols % r->panel_cols || r->rows * r->swizzle % l->align)
		r->swizzle = 0;
	if (!r->swizzle)
		r->panel_cols = r->engine ? plain_box(l, r->cols, bits, most) : r->cols;
	r->panel_bytes = r->rows * r->panel_cols * bits / 8;
	r->boxes = (int)ceil_div(r->full_cols, r->panel_cols);
	r->box_rows = r->full_rows;
	r->box_bytes = r->full_rows * r->panel_cols * bits / 8;
	/* zeros that follow a contracted axis of one element are in no box */
	if (r->by_rows && r->panel_cols * bits / 8 % l->copy_align) {
		r->engine = false;
		r->obstacle = OBSTACLE_ROW_BYTES;
	}
	r->engine = r->engine && (r->by_rows || (r->run ? r->full_rows == r->shape.rows :
		r->full_rows <= l->box_rows || (r->shape.nrow > 1 && !r->reordered))) &&
		(r->swizzle || r->panel_cols <= l->box_cols) && r->panel_cols <= most &&
		(r->by_rows || r->shape.nrow == 1 || r->full_rows == r->shape.rows);
	r->by_rows &= r->engine;
}

/* The side of a shape that has the axis along which the value is split; NULL: it lacks the axis. */
static int64_t *split_side(const struct kernel *k, const struct buffer *b, struct shape2 *v)
{
	int axis = buffer_split_axis(k, b);

	for (int i = 0; i < shape_rank(v); i++)
		if (shape_axis(v, i) == axis)
			return i < v->nrow ? &v->rows : &v->cols;
	return NULL;
}

/* A ring of one slice of a computed value: the shape was that of the full value. */
static void restrict_to_slice(const struct kernel *k, const struct buffer *b, struct shape2 *v)
{
	int64_t *side = split_side(k, b, v);

	if (side)
		*side /= b->slices;
}

/* A ring of all slices: the shape was that of one, as a load to registers has it. */
static void join_slices(const struct kernel *k, const struct buffer *b, struct shape2 *v)
{
	int64_t *side = split_side(k, b, v);

	if (side)
		*side *= b->slices;
}

/* Slices with a common ring have as many slots as the slice with most versions. */
static int slots_of(const struct kernel *k, int buffer)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	int most = k->plan->versions[buffer], first = buffer - b->slice;

	for (int i = first; b->together && i < first + b->slices; i++)
		most = k->plan->versions[i] > most ? k->plan->versions[i] : most;
	return most;
}

static void push_ring(struct kernel *k, const struct ring *r)
{
	k->ring_of[r->buffer] = k->rings.n;
	VEC_PUSH(&k->arena, &k->rings, *r);
}

/* Another slice of a ring that slice 0 has made. */
static enum err_code add_same_ring(struct kernel *k, int buffer, bool engine, struct err *e)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	struct ring r = k->rings.v[k->ring_of[buffer - b->slice]];

	r.buffer = buffer;
	r.engine = engine;
	if (k->plan->graph->tasks.v[b->first].kind == TASK_LOAD)
		TRY(lower_find_boxes(k, &r, b, e));
	push_ring(k, &r);
	return OK;
}

/* An alias uses the slots of another ring, which may be larger. */
static enum err_code use_alias_slots(const struct kernel *k, struct ring *r, const struct buffer *b, struct err *e)
{
	const struct ring *of = &k->rings.v[k->ring_of[b->alias_of]];

	if (r->slot_bytes > of->slot_bytes || r->versions != of->versions)
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' cannot be an alias of '%s': it takes %d times "
			"%lld bytes, not %d times %lld", b->name, k->plan->graph->buffers.v[b->alias_of].name,
			r->versions, (long long)r->slot_bytes, of->versions, (long long)of->slot_bytes);
	r->offset = of->offset;
	r->slot_bytes = of->slot_bytes;
	return OK;
}

/* Does the plan ask the engine for the rows of the load one by one, where it cannot bring them together? */
static bool asks_for_rows(const struct kernel *k, const struct buffer *b)
{
	return k->plan->entries.v[plan_entry_of(k->plan, b->first)].by_rows;
}

int lower_staged_in(const struct kernel *k, int buffer)
{
	const struct graph *g = k->plan->graph;
	const struct buffer *b = &g->buffers.v[buffer];
	int load = b->node == NONE ? NONE : task_put_load(g->program, g->program->nodes.v[b->node].task);

	for (int i = 0; i < g->buffers.n && load != NONE; i++)
		if (g->buffers.v[i].node == load && g->buffers.v[i].slice == b->slice)
			return i;
	return NONE;
}

/* Can threads of one lane load to registers, and write that to shared memory? */
static enum err_code check_staged(const struct kernel *k, const struct buffer *load, const struct buffer *put, struct err *e)
{
	const struct stask *from = stask_at(k, load->first), *to = stask_at(k, put->first);
	const struct seu *u = seu_of(k, load->first);

	if (load->slices != put->slices)
		return err_set(e, ERR_ILLEGAL, to->loc, "'%s' has %d slice%s, and '%s' %d: split both alike", from->name,
			load->slices, load->slices == 1 ? "" : "s", to->name, put->slices);
	if (lane_of(k, load->first) != lane_of(k, put->first))
		return err_set(e, ERR_ILLEGAL, to->loc, "'%s' writes to shared memory what '%s' has left in the registers of its "
			"threads: both must be on one lane", to->name, from->name);
	if (u->kind == SEU_COPY && (!k->target->copies_by_registers || target_seen(k->target, u, true) == SEEN_COUNTED))
		return err_set(e, ERR_ILLEGAL, from->loc, "'%s' copies to shared memory, but '%s' keeps in registers what it loads: "
			"choose a vector unit by seu=", u->name, from->name);
	return OK;
}

static enum err_code add_ring(struct kernel *k, int buffer, struct err *e)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct program *p = k->plan->graph->program;
	struct ring r = { .buffer = buffer, .versions = slots_of(k, buffer) };
	bool loaded = b->node != NONE && p->nodes.v[b->node].op == OP_LOAD;
	int staged = lower_staged_in(k, buffer);
	/* it lies as it would if threads had loaded it at once, unless instructions that read it decide that */
	bool as_loaded = staged != NONE && !lower_is_shared_operand(k, buffer);

	if (staged != NONE)
		TRY(check_staged(k, &k->plan->graph->buffers.v[staged], b, e));
	if (b->together && b->slice)
		return add_same_ring(k, buffer, k->rings.v[k->ring_of[buffer - b->slice]].engine, e);
	if (loaded)
		r.engine = lower_find_load_shape(k, b, &r.shape, &r.run, &r.obstacle) && is_async_load(k, b->first);
	else if (as_loaded) {
		(void)lower_find_load_shape(k, &k->plan->graph->buffers.v[staged], &r.shape, &r.run, &r.obstacle);
		if (b->together)
			join_slices(k, b, &r.shape);
	} else
		r.shape = b->node != NONE ? k->node_shape[b->node] : k->carry_shape[b->carry];
	r.run = as_loaded ? 0 : r.run;
	r.one_slice = b->slices > 1 && !b->together && ints_hold(b->axis, b->naxes, buffer_split_axis(k, b));
	if (r.one_slice && !loaded && !as_loaded)
		restrict_to_slice(k, b, &r.shape);
	if (lower_is_shared_operand(k, buffer) && lower_make_readable(k, buffer, &r.shape)) {
		r.obstacle = r.engine ? OBSTACLE_LAYOUT : r.obstacle;
		r.engine = false;	/* unless it can follow that shape */
		r.run = 0;
	}
	r.rows = r.full_rows = r.shape.rows;
	r.cols = r.full_cols = r.shape.cols;
	pad_operand(k, &r, b);
	if (loaded && !r.engine && is_async_load(k, b->first) && lower_is_shared_operand(k, buffer) &&
	    !p->tensors.v[p->nodes.v[b->node].ref].by_address)
		r.engine = r.reordered = r.full_rows == r.shape.rows && r.full_cols == r.shape.cols &&
			lower_box_grain(k, b, &r.shape);
	if (loaded && !r.engine && is_async_load(k, b->first) && asks_for_rows(k, b))
		r.engine = r.by_rows = lower_goes_by_rows(k, b, &r.shape, &r.obstacle);
	choose_panels(k, &r, b);
	r.ends_by_threads = loaded && r.engine && !r.by_rows && lower_ends_by_length(k, b);
	r.slot_bytes = round_up(r.panel_bytes * (r.cols / r.panel_cols), k->target->shared.align);
	r.offset = k->shared_bytes;
	if (b->alias_of != NONE)
		TRY(use_alias_slots(k, &r, b, e));
	else
		k->shared_bytes += r.slot_bytes * r.versions;
	if (loaded && b->together)
		TRY(lower_find_boxes(k, &r, b, e));
	push_ring(k, &r);
	return OK;
}

/* If the ring has the full contracted axis, of which each iteration multiplies a tile, a tile must consist of k
 * steps. */
static enum err_code check_steps(const struct kernel *k, const struct ring *r, const struct buffer *b, struct err *e)
{
	int64_t depth = k_step_depth(k, b);
	const struct program *p = k->plan->graph->program;
	const struct stask *s;

	for (int i = 0; (s = lower_next_product(k, r->buffer, &i));) {
		struct operand_tiling x = operand_tiling(k, s, b, false, depth);

		for (int a = 0; a < b->naxes && x.extent % depth; a++)
			if (!node_has_axis(last_node_of(k, s), b->axis[a]) &&
			    program_reduces_tile(p, last_node_of(k, s), b->axis[a]))
				return err_set(e, ERR_ILLEGAL, s->loc, "'%s' multiplies %lld of '%s' in "
					"an iteration, and '%s' holds all of them: the matrix unit takes "
					"multiples of %lld; take such a tile of '%s', or load '%s' inside the "
					"loop", s->name, (long long)x.extent, p->axes.v[b->axis[a]].name, b->name,
					(long long)depth, p->axes.v[b->axis[a]].name, b->name);
	}
	return OK;
}

/* Would splitting the buffer's sTask give it the same slices as its readers have? */
static bool could_be_split(const struct kernel *k, const struct buffer *b, const struct stask *by)
{
	const struct graph *g = k->plan->graph;
	bool could = by->slices > 1;

	for (int i = 0; i < g->tasks.n; i++)
		if (reads_ring(g, &g->tasks.v[i], buffer_index(k, b)))
			could &= g->tasks.v[i].slices == by->slices && g->tasks.v[i].split_axis == by->split_axis;
	return could;
}

/* Can the matrix instructions read it, from the start of each tile? */
static enum err_code check_operand(struct kernel *k, const struct ring *r, struct err *e)
{
	const struct graph *g = k->plan->graph;
	const struct buffer *b = &g->buffers.v[r->buffer];
	int narrowest = k->target->shared.narrowest;
	int64_t least = narrowest * 8 / dtype_bits(b->type), grain;
	const struct stask *by = NULL;

	TRY(check_steps(k, r, b, e));
	grain = find_grain(k, r, b, &by);
	if (grain % least)
		return err_set(e, ERR_ILLEGAL, by->loc, "'%s' reads '%s' in tiles of %lld along '%s', "
			"which is contiguous in memory: the matrix unit needs multiples of %lld; choose other %s%s",
			by->name, b->name, (long long)grain, g->program->axes.v[r->shape.col[0]].name,
			(long long)least, by->slices > 1 ? "slices" : "tiles", could_be_split(k, b, by) ?
			arena_strf(&k->arena, ", or split '%s' too", g->tasks.v[b->first].name) : "");
	if (!r->swizzle)
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' cannot be read by the matrix unit: a row "
			"of its tile has %lld bytes, which is no multiple of %d", b->name,
			(long long)(r->shape.cols * dtype_bits(b->type) / 8), narrowest);
	return OK;
}

/* Adds the rings of aliases, or of all other buffers in shared memory. */
static enum err_code add_rings(struct kernel *k, bool placed, struct err *e)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].phase == k->phase && plan_scope(k->plan, i) == SCOPE_SHARED &&
		    (g->buffers.v[i].alias_of != NONE) == placed)
			TRY(add_ring(k, i, e));
	return OK;
}

enum err_code lower_rings(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;

	k->ring_of = ARENA_ARRAY(&k->arena, g->buffers.n, int);
	for (int i = 0; i < g->buffers.n; i++)
		k->ring_of[i] = NONE;
	TRY(add_rings(k, false, e));
	TRY(add_rings(k, true, e));
	for (int i = 0; i < k->rings.n; i++)
		if (lower_is_shared_operand(k, k->rings.v[i].buffer))
			TRY(check_operand(k, &k->rings.v[i], e));
	return OK;
}
