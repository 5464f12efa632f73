#include "lower/lower.h"

#include <string.h>

#include "lower/protocol.h"
#include "plan/events.h"
#include "sim/sim.h"

enum {
	SLOT_ALIGN = 1024,		/* of a swizzled slot: the pattern repeats after it */
	FLAG_BYTES = 8,
	BOX_COLS = 256,			/* most elements of a row of a box */
	BOX_ROWS = 256,
	STEP_BYTES = 32,		/* of the contracted axis that a matrix instruction takes */
	DEPTH_MAX = 16,
	GROUP_WARPS = 4,
	TILES_MOST = 3,
};

static const struct stask *stask_at(const struct kernel *k, int task)
{
	return &k->plan->graph->tasks.v[task];
}

static const struct seu *seu_of(const struct kernel *k, int task)
{
	return &k->plan->device->seu[k->plan->entries.v[plan_entry_of(k->plan, task)].seu];
}

static int lane_of(const struct kernel *k, int task)
{
	return k->plan->entries.v[plan_entry_of(k->plan, task)].lane;
}

static bool on_matrix(const struct kernel *k, int task)
{
	return seu_of(k, task)->kind == SEU_MATRIX && seu_of(k, task)->async;
}

static bool is_load(const struct kernel *k, int task)
{
	return stask_at(k, task)->kind == TASK_LOAD;
}

/* rings ------------------------------------------------------------------- */

static int64_t axis_extent(const struct buffer *b, int axis)
{
	for (int i = 0; i < b->naxes; i++)
		if (b->axis[i] == axis)
			return b->extent[i];
	return 1;
}

static bool reads(const struct stask *s, int buffer)
{
	for (int i = 0; i < s->reads.n; i++)
		if (s->reads.v[i] == buffer)
			return true;
	return false;
}

static const struct node *product_of(const struct kernel *k, const struct stask *s)
{
	const struct program *p = k->plan->graph->program;
	const struct task *t = &p->tasks.v[s->task];

	return &p->nodes.v[t->nodes.v[t->nodes.n - 1]];
}

static bool has_axis(const struct node *n, int axis)
{
	for (int i = 0; i < n->naxes; i++)
		if (n->axis[i] == axis)
			return true;
	return false;
}

/* Does a product contract this axis of the buffer? */
static bool contracts(const struct kernel *k, int buffer, int axis)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].kind == TASK_MMA && reads(&g->tasks.v[i], buffer) &&
		    !has_axis(product_of(k, &g->tasks.v[i]), axis))
			return true;
	return false;
}

/* Beyond the end of an axis that a product contracts there must be zeros, as far as a step
 * of its instructions goes. The copy engine brings them only beyond the end of the tensor. */
static bool ends_with_tensor(const struct kernel *k, const struct buffer *b,
	const struct node *n, int axis)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	int64_t size = p->axes.v[axis].size, tile = axis_extent(b, axis);
	int64_t depth = STEP_BYTES * 8 / dtype_bits(b->type);

	if ((size % tile == 0 && tile % depth == 0) ||
	    !contracts(k, (int)(b - k->plan->graph->buffers.v), axis))
		return true;
	if (tile % depth && tile < size)
		return false;
	for (int d = 0; d < t->rank; d++)
		if (n->index[d].n == 1 && n->index[d].term[0].axis == axis && !n->index[d].k &&
		    p->axes.v[t->dim[d]].size == size)
			return true;
	return false;
}

/* How many neighbours along an axis come from one element of the tensor: x // 32 does not
 * change within 32. Tiles begin at multiples of their extent. */
static int64_t share_of(const struct kernel *k, const struct index_term *t)
{
	int64_t tile = k->plan->graph->extents.tile[t->axis];

	if (t->mod || (tile % t->div && t->div % tile))
		return 1;
	return min_i64(t->div, tile);
}

/* Add the axes of one dimension's index. Returns whether the copy engine can follow: one
 * axis at most, as it is. */
static bool add_dimension(const struct kernel *k, const struct buffer *b,
	const struct index_expr *x, bool last, struct shape2 *s)
{
	int *n = last ? &s->ncol : &s->nrow, *axes = last ? s->col : s->row, before = *n;
	int64_t *share = last ? s->col_share : s->row_share;
	bool plain = true;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		int known = NONE;

		if (axis_extent(b, t->axis) == 1)
			continue;
		plain &= t->coef == 1 && t->div == 1 && !t->mod;
		for (int j = 0; j < s->nrow; j++)
			if (s->row[j] == t->axis)
				s->row_share[known = j] = 1;
		for (int j = 0; j < s->ncol; j++)
			if (s->col[j] == t->axis)
				s->col_share[known = j] = 1;
		plain &= known == NONE;
		if (known != NONE)
			continue;
		axes[*n] = t->axis;
		share[(*n)++] = share_of(k, t);
	}
	/* an operand has columns, be it one */
	for (int i = 0; i < x->n && last && !*n && (b->matrix_a || b->matrix_b); i++)
		for (int j = 0; j < b->naxes && !*n; j++)
			if (b->axis[j] == x->term[i].axis) {
				axes[*n] = x->term[i].axis;
				share[(*n)++] = 1;
			}
	return plain && *n - before <= 1;
}

/* Does every box begin at a whole 16-byte piece of the tensor's rows? */
static bool begins_aligned(const struct kernel *k, const struct buffer *b,
	const struct index_expr *x)
{
	const struct graph *g = k->plan->graph;
	int bits = dtype_bits(b->type);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		bool stands = axis_extent(b, t->axis) < g->program->axes.v[t->axis].size;

		if (stands && t->coef * g->extents.tile[t->axis] * bits % 128)
			return false;
	}
	return x->k * bits % 128 == 0;
}

/* Rows and columns of a loaded tile as its tensor lies in memory. True if the copy
 * engine can bring it: plain indices, strides and rows of whole 16-byte pieces. */
static bool load_shape(const struct kernel *k, const struct buffer *b, struct shape2 *s)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	bool engine = t->rank <= 5;
	int64_t stride = dtype_bits(t->type) * p->axes.v[t->dim[t->rank - 1]].size;

	*s = (struct shape2){ .rows = 1, .cols = 1, .whole = k->node_shape[b->node].whole };
	for (int d = 0; d < t->rank; d++)
		engine &= add_dimension(k, b, &n->index[d], d == t->rank - 1, s);
	for (int i = 0; i < s->nrow; i++)
		s->rows *= ceil_div(axis_extent(b, s->row[i]), s->row_share[i]);
	for (int i = 0; i < s->ncol; i++)
		s->cols *= ceil_div(axis_extent(b, s->col[i]), s->col_share[i]);
	for (int i = 0; i < b->naxes; i++)
		engine &= ends_with_tensor(k, b, n, b->axis[i]);
	engine &= begins_aligned(k, b, &n->index[t->rank - 1]);
	return engine && (t->rank == 1 || stride % 128 == 0) && s->rows <= BOX_ROWS &&
		(s->cols * dtype_bits(t->type) % 128 == 0 || b->matrix_a || b->matrix_b);
}

static int64_t round_up(int64_t x, int64_t unit)
{
	return ceil_div(x, unit) * unit;
}

/* Room for the rows (first operand) or columns that product s reads of `extent`: whole
 * blocks, from the last part on. */
static int64_t room_for(const struct kernel *k, const struct stask *s, int64_t extent, bool split,
	bool first)
{
	int64_t unit = first ? 16 * lane_warps(k->plan, lane_of(k, (int)(s -
		k->plan->graph->tasks.v))) : 8;
	int64_t part = split ? extent / s->parts : extent;

	return extent - part + round_up(part, unit);
}

/* An operand's room: its own axes are read by whole blocks. */
static void make_room(const struct kernel *k, struct ring *r)
{
	const struct graph *g = k->plan->graph;
	const struct buffer *b = &g->buffers.v[r->buffer];
	int64_t depth = STEP_BYTES * 8 / dtype_bits(b->type);

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		const struct node *mma;
		bool first, split = false, by_rows;
		int64_t room;

		if (s->kind != TASK_MMA || b->node == NONE || !reads(s, r->buffer))
			continue;
		mma = product_of(k, s);
		first = mma->arg[0] == b->node;
		by_rows = r->shape.ncol && !has_axis(mma, r->shape.col[0]);
		for (int a = 0; a < b->naxes; a++)
			split |= s->parts > 1 && b->parts == 1 && b->axis[a] == s->split_axis &&
				has_axis(mma, b->axis[a]);
		room = room_for(k, s, by_rows ? r->shape.rows : r->shape.cols, split, first);
		*(by_rows ? &r->rows : &r->cols) = max_i64(by_rows ? r->rows : r->cols, room);
		/* along the other side it is contracted, step by step */
		if (by_rows)
			r->full_cols = r->cols = round_up(r->shape.cols, depth);
		else
			r->full_rows = r->rows = round_up(r->shape.rows, depth);
	}
}

/* The widest panel whose rows are swizzled and make up the columns; 0 if there is none. */
static int64_t panel_of(const struct ring *r, int bits)
{
	for (int bytes = 128; bytes >= 32; bytes /= 2)
		if (r->cols * bits / 8 % bytes == 0)
			return (int64_t)bytes * 8 / bits;
	return 0;
}

/* Elements of a row of the tensor that a buffer is loaded from. */
static int64_t tensor_row(const struct kernel *k, const struct buffer *b)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[p->nodes.v[b->node].ref];

	return p->axes.v[t->dim[t->rank - 1]].size;
}

/* Columns that are not contracted are read by whole panels. No box may be wider than the
 * tensor: the copy engine faults. */
static void fill_columns(const struct kernel *k, struct ring *r, const struct buffer *b)
{
	int bits = dtype_bits(b->type);
	int64_t wide = 128 * 8 / bits, least = 32 * 8 / bits;

	while (r->engine && wide > least && wide > tensor_row(k, b))
		wide /= 2;
	r->cols = r->cols > wide / 2 ? round_up(r->cols, wide) : max_i64(wide / 2, least);
}

static void choose_panels(const struct kernel *k, struct ring *r, const struct buffer *b)
{
	int bits = dtype_bits(b->type);
	bool operand = b->matrix_a || b->matrix_b;

	if (operand && r->shape.ncol && !contracts(k, r->buffer, r->shape.col[0]))
		fill_columns(k, r, b);
	r->panel_cols = operand ? panel_of(r, bits) : min_i64(r->cols, 128 * 8 / bits);
	r->swizzle = (int)(r->panel_cols * bits / 8);
	if (operand && r->swizzle)	/* the pattern goes by address: each panel begins with it */
		r->rows = round_up(r->rows, SLOT_ALIGN / r->swizzle);
	if ((r->swizzle != 128 && r->swizzle != 64 && r->swizzle != 32) ||
	    r->cols % r->panel_cols || r->rows * r->swizzle % SLOT_ALIGN)
		r->swizzle = 0;
	if (!r->swizzle)
		r->panel_cols = r->cols;
	r->panel_bytes = r->rows * r->panel_cols * bits / 8;
	r->boxes = (int)ceil_div(r->full_cols, r->panel_cols);
	r->box_bytes = r->full_rows * r->panel_cols * bits / 8;
	r->engine = r->engine && r->full_rows <= BOX_ROWS && (r->swizzle || r->cols <= BOX_COLS) &&
		r->panel_cols <= tensor_row(k, b);
}

/* A buffer of a split sTask holds its part alone. */
static void take_part(const struct kernel *k, const struct buffer *b, struct shape2 *v)
{
	int axis = k->plan->graph->tasks.v[b->first].split_axis;

	for (int i = 0; i < v->nrow; i++)
		if (v->row[i] == axis)
			v->rows /= b->parts;
	for (int i = 0; i < v->ncol; i++)
		if (v->col[i] == axis)
			v->cols /= b->parts;
}

static void add_ring(struct kernel *k, int buffer)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct program *p = k->plan->graph->program;
	struct ring r = { .buffer = buffer, .versions = k->plan->versions[buffer] };

	if (b->node != NONE && p->nodes.v[b->node].op == OP_LOAD)
		r.engine = load_shape(k, b, &r.shape);
	else
		r.shape = b->node != NONE ? k->node_shape[b->node] : k->carry_shape[b->carry];
	if (b->parts > 1)
		take_part(k, b, &r.shape);
	r.rows = r.full_rows = r.shape.rows;
	r.cols = r.full_cols = r.shape.cols;
	make_room(k, &r);
	choose_panels(k, &r, b);
	r.slot_bytes = round_up(r.panel_bytes * (r.cols / r.panel_cols), SLOT_ALIGN);
	r.offset = k->shared_bytes;
	k->shared_bytes += r.slot_bytes * r.versions;
	k->ring_of[buffer] = k->rings.n;
	VEC_PUSH(&k->arena, &k->rings, r);
}

enum err_code lower_rings(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;

	k->ring_of = ARENA_ARRAY(&k->arena, g->buffers.n, int);
	for (int i = 0; i < g->buffers.n; i++) {
		k->ring_of[i] = NONE;
		if (g->buffers.v[i].phase == k->phase && plan_scope(k->plan, i) == SCOPE_SHARED)
			add_ring(k, i);
	}
	for (int i = 0; i < k->rings.n; i++) {
		const struct buffer *b = &g->buffers.v[k->rings.v[i].buffer];

		if ((b->matrix_a || b->matrix_b) && !k->rings.v[i].swizzle)
			return err_set(e, ERR_ILLEGAL, b->loc, "'%s' cannot be read by the matrix "
				"unit: a row of its tile has %lld bytes, which is no multiple of "
				"32", b->name, (long long)(k->rings.v[i].shape.cols *
				dtype_bits(b->type) / 8));
	}
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].phase == k->phase && g->buffers.v[i].carry != NONE &&
		    k->ring_of[i] != NONE)
			return err_set(e, ERR_ILLEGAL, g->buffers.v[i].loc, "'%s' is used on several "
				"lanes; a carry that passes between lanes is not lowered yet",
				g->buffers.v[i].name);
	return OK;
}

/* flags ------------------------------------------------------------------- */

static int add_flag(struct kernel *k, int task, bool issued)
{
	int *slot = issued ? &k->issue_flag_of[task] : &k->flag_of[task];
	struct flag f = { .task = task, .issued = issued, .depth = 1 };

	if (*slot != NONE)
		return *slot;
	if (is_load(k, task) && !issued) {
		const struct stask *s = stask_at(k, task);
		const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];

		f.arrivals = r->engine ? 1 : lane_warps(k->plan, lane_of(k, task));
		f.bytes = r->engine ? r->boxes * r->box_bytes : 0;
		f.depth = r->versions;
	} else {
		f.arrivals = lane_warps(k->plan, lane_of(k, task));
	}
	*slot = k->flags.n;
	VEC_PUSH(&k->arena, &k->flags, f);
	return *slot;
}

/* Who waits for a run does so in each iteration, and the run after the ones it may be
 * behind waits for it. */
static void add_run_flag(struct kernel *k, int task, int depth)
{
	struct flag f = { .task = task, .runs = true, .depth = depth > 1 ? depth : 1,
		.arrivals = lane_warps(k->plan, lane_of(k, task)) };

	if (k->run_flag_of[task] == NONE) {
		k->run_flag_of[task] = k->flags.n;
		VEC_PUSH(&k->arena, &k->flags, f);
	}
	if (k->flags.v[k->run_flag_of[task]].depth < depth)
		k->flags.v[k->run_flag_of[task]].depth = depth;
}

/* Is this wait seen by a flag, or does the lane count its own groups? */
static bool by_flag(const struct kernel *k, const struct wait *w)
{
	return lane_of(k, w->task) != lane_of(k, w->on) || is_load(k, w->on);
}

/* The sTask that says that a copy of the lane has seen all flags of its tile: the first
 * that is on its own behind those that wait for any. */
static int turn_task(struct kernel *k, int lane)
{
	const struct plan *p = k->plan;
	struct order_step *steps;
	int least, most, after = NONE;
	int n = order_steps(&k->arena, p, lane, k->phase, NONE, &steps, &least, &most);

	for (int i = 0; i < n; i++) {
		int task = steps[i].is_loop ? NONE : p->entries.v[steps[i].id].task;
		bool waits = steps[i].is_loop;

		for (int w = 0; w < p->waits.n; w++)
			waits |= task == p->waits.v[w].task && by_flag(k, &p->waits.v[w]);
		if (waits)
			after = NONE;
		else if (after == NONE)
			after = task;
	}
	return after;
}

static enum err_code find_turn(struct kernel *k, int lane, struct err *e)
{
	const struct lane *l = &k->plan->lanes.v[lane];
	int task;

	k->turn_of[lane] = NONE;
	if (l->turns == 1)
		return OK;
	task = turn_task(k, lane);
	if (task == NONE)
		return err_set(e, ERR_ILLEGAL, l->loc, "lane '%s' takes tiles in turn, but does "
			"nothing in a tile after it has waited for other lanes: a copy cannot tell "
			"when it is its turn", l->name);
	k->turn_of[lane] = add_flag(k, task, true);
	return OK;
}

static enum err_code find_flags(struct kernel *k, struct err *e)
{
	const struct plan *p = k->plan;
	int n = p->graph->tasks.n, depth;

	k->flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->issue_flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->run_flag_of = ARENA_ARRAY(&k->arena, n, int);
	k->turn_of = ARENA_ARRAY(&k->arena, p->lanes.n, int);
	for (int i = 0; i < n; i++)
		k->flag_of[i] = k->issue_flag_of[i] = k->run_flag_of[i] = NONE;
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];

		if (stask_at(k, w->task)->phase != k->phase || !by_flag(k, w))
			continue;
		if (lane_of(k, w->task) == lane_of(k, w->on) &&
		    p->lanes.v[lane_of(k, w->task)].turns > 1)
			return err_set(e, ERR_ILLEGAL, w->loc, "'%s' and '%s', which it waits for, "
				"are on lane '%s', which takes tiles in turn: let another lane load",
				stask_at(k, w->task)->name, stask_at(k, w->on)->name,
				p->lanes.v[lane_of(k, w->task)].name);
		if (stask_at(k, w->on)->kind == TASK_STORE)
			return err_set(e, ERR_ILLEGAL, w->loc, "'%s' waits for '%s' of another "
				"lane: only the lane that stores can see that it is done",
				stask_at(k, w->task)->name, stask_at(k, w->on)->name);
		if (lower_waits_for_run(k, w, &depth))
			add_run_flag(k, w->on, depth);
		else
			add_flag(k, w->on, w->when == WAIT_ISSUED);
	}
	for (int l = 0; l < p->lanes.n; l++)
		TRY(find_turn(k, l, e));
	return OK;
}

/* events over a few tiles with trips of one length ------------------------- */

static void build_relation(struct kernel *k, struct arena *a, int64_t trips, int ntiles,
	struct walk *w, struct relation *r)
{
	const struct graph *g = k->plan->graph;
	int nloops = g->program->loops.n;
	int64_t *t = ARENA_ARRAY(a, nloops * ntiles, int64_t);

	for (int l = 0; l < nloops; l++)
		for (int i = 0; i < ntiles; i++)
			t[l * ntiles + i] = max_i64(g->trips[l].least, min_i64(trips,
				g->trips[l].most));
	for (int l = 0; l < nloops; l++)
		for (int i = 0; i < ntiles; i++)
			t[l * ntiles + i] = min_i64(t[l * ntiles + i], trips);
	walk_init_counts(a, w, g, k->phase, ntiles, t);
	relation_build(a, k->plan, w, r);
}

static enum event_of flag_event(const struct flag *f)
{
	return f->issued ? AT_ISSUE : AT_END;
}

/* Under a depth, waiting instance j may look at the barrier of instance x: it knows that
 * the phase before is over, and is done before the next one is. */
static bool wait_holds(const struct relation *r, const struct flag *f, int depth, int j, int64_t x,
	int64_t n, const bool *seen)
{
	if (x + depth < n && !relation_before(r, j, AT_ISSUE, relation_instance(r, f->task, x +
	    depth), flag_event(f)))
		return false;
	if (x < depth || seen[x - depth])
		return true;
	return r->inst[j].place && relation_before(r, relation_instance(r, f->task, x - depth),
		flag_event(f), j - 1, AT_ISSUE);
}

/* Do all warps of the lane know that they all have arrived for instance x - depth when
 * they arrive for x? Only from another lane. */
static bool arrival_holds(const struct relation *r, const struct flag *f, int depth, int64_t x)
{
	int old = relation_instance(r, f->task, x - depth), now = relation_instance(r, f->task, x);

	for (int j = 0; j < r->n; j++)
		if (r->inst[j].lane != r->inst[now].lane && relation_before(r, old, flag_event(f),
		    j, AT_ISSUE) && relation_before(r, j, AT_ISSUE, now, AT_ISSUE))
			return true;
	return false;
}

/* Does somebody wait on the barrier of instance x, for it or one of the two before? */
static bool is_awaited(const bool *awaited, int64_t n, int depth, int64_t x)
{
	for (int64_t y = x < 2 * depth ? x % depth : x - 2 * depth; y < n; y += depth)
		if (awaited[y])
			return true;
	return false;
}

/* Can all who wait for instances of the flag's sTask tell the phases apart? */
static bool depth_holds(const struct kernel *k, const struct relation *r, const struct flag *f,
	int depth, bool *awaited, bool *seen)
{
	const struct plan *p = k->plan;
	int64_t n = walk_count(r->walk, stask_at(k, f->task)->loop);

	memset(awaited, 0, (size_t)n * sizeof(*awaited));
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		int64_t count;
		bool in_turn;
		int behind;

		if (w->on != f->task || (w->when == WAIT_ISSUED) != f->issued || !by_flag(k, w) ||
		    lower_waits_for_run(k, w, &behind))
			continue;
		count = walk_count(r->walk, stask_at(k, w->task)->loop);
		in_turn = p->lanes.v[lane_of(k, w->task)].turns > 1;
		memset(seen, 0, (size_t)n * sizeof(*seen));
		for (int64_t s = 0; s < count; s++) {
			struct span spans[SPANS_MAX];
			int ns = walk_wait_spans(r->walk, p, w, s, spans);

			for (int x = 0; x < ns; x++) {
				awaited[spans[x].last - 1] = true;
				if (!wait_holds(r, f, depth, relation_instance(r, w->task, s),
				    spans[x].last - 1, n, seen))
					return false;
				/* copies of a lane begin their tiles in turn */
				seen[spans[x].last - 1] = in_turn;
			}
		}
	}
	for (int64_t x = depth; x < n && f->arrivals > 1; x++)
		if (is_awaited(awaited, n, depth, x) && !arrival_holds(r, f, depth, x))
			return false;
	return true;
}

static int64_t window(const struct kernel *k)
{
	int64_t n = 4;

	for (int i = 0; i < k->plan->graph->buffers.n; i++)
		n = max_i64(n, k->plan->versions[i] + 2);
	return n + 2;
}

/* Tiles in a row that tell all there is to know when loops make that many trips, or as
 * many as one EU gets. */
static int tiles_in_window(struct kernel *k, int64_t trips)
{
	const struct graph *g = k->plan->graph;
	struct dealing d;
	int64_t most = 1, least = TILES_MOST;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			trips = min_i64(trips, max_i64(1, g->trips[l].most));
	sim_deal(&k->arena, k->plan, k->phase, &d);
	for (int i = 0; i < d.eus; i++)
		most = max_i64(most, d.start[i + 1] - d.start[i]);
	for (int i = 0; i < k->plan->lanes.n; i++)
		least = max_i64(least, TILES_MOST * k->plan->lanes.v[i].turns);
	return (int)min_i64(most, max_i64(least, ceil_div(2 * window(k), trips)));
}

/* Deepen flags until phases can be told apart with so many trips. */
static void deepen(struct kernel *k, int64_t trips)
{
	struct arena_mark mark = arena_mark(&k->arena);
	struct relation r;
	struct walk w;
	bool *awaited, *seen;

	build_relation(k, &k->arena, trips, tiles_in_window(k, trips), &w, &r);
	awaited = ARENA_ARRAY(&k->arena, r.n, bool);
	seen = ARENA_ARRAY(&k->arena, r.n, bool);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];

		while (!f->runs && f->depth <= DEPTH_MAX && !depth_holds(k, &r, f, f->depth, awaited, seen))
			f->depth++;
	}
	arena_reset(&k->arena, mark);
}

static enum err_code find_depths(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;
	const char *late = NULL;
	int64_t few = 1, most = 1;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			few = max_i64(few, g->trips[l].least);
	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			most = max_i64(most, g->trips[l].most);
	most = min_i64(most, 2 * window(k));
	for (int64_t trips = min_i64(few, most); trips <= most; trips++)
		deepen(k, trips);
	for (int l = 0; l < k->plan->lanes.n; l++)
		if (k->turn_of[l] != NONE)
			k->flags.v[k->turn_of[l]].depth = (int)round_up(k->flags.v[k->turn_of[l]].depth,
				k->plan->lanes.v[l].turns);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];

		if (f->depth > DEPTH_MAX || (is_load(k, f->task) && f->bytes && f->depth !=
		    k->rings.v[k->ring_of[stask_at(k, f->task)->writes.v[0]]].versions))
			late = stask_at(k, f->task)->name;
		f->offset = k->shared_bytes;
		k->shared_bytes += (int64_t)f->depth * FLAG_BYTES;
	}
	return late ? err_set(e, ERR_ILLEGAL, NOWHERE, "'%s' may run so far ahead of those that wait "
		"for it that they cannot tell its iterations apart", late) : OK;
}

/* lanes ------------------------------------------------------------------- */

static int turn_class(const struct kregion *v, int64_t turn, int64_t trips)
{
	if (turn < 0)
		return (int)-turn;
	if (turn <= trips - 1 - v->most)
		return 0;
	return v->most + (int)(turn - (trips - 1 - v->most));
}

static void init_group_wait(struct kernel *k, struct group_wait *w)
{
	for (int c = 0; c < TURN_CLASSES; c++) {
		w->younger[c] = -1;
		w->behind[c] = ARENA_ARRAY(&k->arena, k->plan->graph->tasks.n, int);
	}
}

static enum err_code add_entry(struct kernel *k, struct klane *l, int entry, struct err *e)
{
	const struct plan *p = k->plan;
	struct kentry *x = VEC_ADD(&k->arena, &l->entries);

	*x = (struct kentry){ .task = p->entries.v[entry].task, .entry = entry,
		.at = p->entries.v[entry].at };
	x->flag = k->flag_of[x->task];
	x->issue_flag = k->issue_flag_of[x->task];
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];

		if (w->task != x->task)
			continue;
		if (by_flag(k, w))
			TRY(lower_flag_waits(k, x, i, e));
		else if (on_matrix(k, w->on) && w->when == WAIT_COMPLETE)
			x->waits_groups = true;
		else if (stask_at(k, w->on)->kind == TASK_STORE)
			x->waits_stores = true;
	}
	if (stask_at(k, x->task)->loop == NONE && x->at)
		return err_set(e, ERR_ILLEGAL, p->entries.v[entry].loc, "'%s': an offset in the "
			"tile loop is not lowered yet", stask_at(k, x->task)->name);
	return OK;
}

/* The cursor's steps once more, as structure. */
static enum err_code build_regions(struct kernel *k, struct klane *l, struct err *e)
{
	const struct program *p = k->plan->graph->program;

	l->regions = ARENA_ARRAY(&k->arena, p->loops.n + 1, struct kregion);
	for (int loop = NONE; loop < p->loops.n; loop++) {
		struct kregion *v = &l->regions[loop + 1];
		struct order_step *steps;
		int n, least;

		if (loop != NONE && p->loops.v[loop].phase != k->phase)
			continue;
		n = order_steps(&k->arena, k->plan, l->lane, k->phase, loop, &steps, &least,
			&v->most);
		v->most -= least;
		for (int i = 0; i < n; i++) {
			struct kstep s = { steps[i].is_loop, steps[i].id, -least };

			if (!s.is_loop) {
				TRY(add_entry(k, l, steps[i].id, e));
				s.id = l->entries.n - 1;
				s.at = l->entries.v[s.id].at -= least;
			}
			VEC_PUSH(&k->arena, &v->steps, s);
		}
		v->unroll = 1;
	}
	return OK;
}

static int gcd(int a, int b)
{
	return b ? gcd(b, a % b) : a;
}

static void find_unroll(struct kernel *k, struct klane *l)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		int v = k->plan->versions[i];
		struct kregion *r = &l->regions[b->loop + 1];

		if (b->phase == k->phase && k->ring_of[i] == NONE && lane_of(k, b->first) == l->lane)
			r->unroll = r->unroll / gcd(r->unroll, v) * v;
	}
}

/* A product whose completion others wait for needs a point in its own region where the
 * lane learns of it. If no wait of the plan is one, the lane keeps one group under way
 * and waits for the one before. */
static void find_drains(const struct kernel *k, struct klane *l)
{
	for (int i = 0; i < l->entries.n; i++) {
		struct kentry *x = &l->entries.v[i];
		bool seen = false;

		if (!on_matrix(k, x->task) || x->flag == NONE)
			continue;
		for (int j = 0; j < l->entries.n; j++)
			seen |= (l->entries.v[j].waits_groups || l->entries.v[j].drains) &&
				stask_at(k, l->entries.v[j].task)->loop ==
				stask_at(k, x->task)->loop;
		x->drains = !seen;
	}
}

/* Under one length of trips: how many younger groups the lane may leave under way. */
struct counting {
	struct kernel *k;
	struct klane *l;
	const struct relation *r;
	int lane_copy;
	bool opens;			/* second pass: what each wait leaves open */
	int *scratch;			/* by sTask */
};

static struct kentry *entry_of_task(struct klane *l, int task)
{
	for (int i = 0; i < l->entries.n; i++)
		if (l->entries.v[i].task == task)
			return &l->entries.v[i];
	BUG("sTask %d is on another lane", task);
}

/* Position in the lane of the last instance that x's waits on own groups ask for. */
static int last_awaited(const struct counting *c, int inst)
{
	const struct plan *p = c->k->plan;
	int last = NONE;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		struct span spans[SPANS_MAX];
		int n;

		if (w->task != c->r->inst[inst].task || by_flag(c->k, w) || !on_matrix(c->k, w->on))
			continue;
		n = walk_wait_spans(c->r->walk, p, w, c->r->inst[inst].seq, spans);
		for (int s = 0; s < n; s++) {
			int on = relation_instance(c->r, w->on, spans[s].last - 1);

			if (on > last)
				last = on;
		}
	}
	return last;
}

/* A point after which `younger` groups may be under way. Once the least of these is
 * known, note what it leaves open of each sTask, counted back from instance `before`,
 * exclusive. */
static void note_group_wait(const struct counting *c, struct group_wait *w, int class, int before,
	int younger)
{
	int first = c->r->lane_first[c->lane_copy], groups = 0;
	int ntasks = c->k->plan->graph->tasks.n;
	int *open = w->behind[class], *now = c->scratch;

	if (!c->opens) {
		if (w->younger[class] < 0 || younger < w->younger[class])
			w->younger[class] = younger;
		return;
	}
	younger = w->younger[class];
	memset(now, 0, (size_t)ntasks * sizeof(*now));
	for (int i = before - 1; i >= first && groups < younger; i--) {
		if (!on_matrix(c->k, c->r->inst[i].task))
			continue;
		groups++;
		now[c->r->inst[i].task]++;
	}
	for (int t = 0; t < ntasks; t++)
		open[t] = now[t] > open[t] ? now[t] : open[t];
}

static int instance_class(const struct counting *c, int inst)
{
	const struct node_instance *n = &c->r->inst[inst];
	int loop = stask_at(c->k, n->task)->loop, parent;
	int64_t outer, base, trips;

	if (loop == NONE)
		return 0;
	parent = c->k->plan->graph->program->loops.v[loop].parent;
	outer = walk_outer(c->r->walk, loop, n->seq, parent);
	base = walk_inner(c->r->walk, parent, outer, loop);
	trips = walk_inner(c->r->walk, parent, outer + 1, loop) - base;
	return turn_class(&c->l->regions[loop + 1], n->seq - base -
		entry_of_task(c->l, n->task)->at, trips);
}

/* Does what instance j waits for by flags come after the end of product i? */
static bool needs_end(const struct counting *c, int i, int j)
{
	const struct plan *p = c->k->plan;

	for (int k = 0; k < p->waits.n; k++) {
		const struct wait *w = &p->waits.v[k];
		struct span spans[SPANS_MAX];
		int n;

		if (w->task != c->r->inst[j].task || !by_flag(c->k, w))
			continue;
		n = walk_wait_spans(c->r->walk, p, w, c->r->inst[j].seq, spans);
		for (int s = 0; s < n; s++)
			if (relation_before(c->r, i, AT_END, relation_instance(c->r, w->on,
			    spans[s].last - 1), w->when == WAIT_ISSUED ? AT_ISSUE : AT_END))
				return true;
	}
	return false;
}

static int products_between(const struct counting *c, int first, int end)
{
	int n = 0;

	for (int i = first; i < end; i++)
		n += on_matrix(c->k, c->r->inst[i].task);
	return n;
}

/* Others go on only after the lane has told them of its product i, and it waits for them
 * at instance j: in between it must learn that i is complete. */
static void learn_before(const struct counting *c, int i, int j)
{
	for (int p = j - 1; p >= i; p--) {
		struct kentry *x = entry_of_task(c->l, c->r->inst[p].task);

		if (x->drains)
			note_group_wait(c, &x->after, instance_class(c, p), p + 1,
				products_between(c, i + 1, p + 1));
		else if (x->waits_groups && p > i)
			note_group_wait(c, &x->before, instance_class(c, p), p,
				products_between(c, i + 1, p));
		else
			continue;
		return;
	}
	entry_of_task(c->l, c->r->inst[i].task)->drains = true;
	learn_before(c, i, j);
}

static void count_dependents(const struct counting *c, int i)
{
	int end = c->r->lane_first[c->lane_copy + 1];

	if (!on_matrix(c->k, c->r->inst[i].task) || c->k->flag_of[c->r->inst[i].task] == NONE)
		return;
	for (int j = i + 1; j < end; j++) {
		if (!needs_end(c, i, j))
			continue;
		learn_before(c, i, j);
		return;			/* who comes later knows it too */
	}
}

static void count_instance(const struct counting *c, int inst)
{
	struct kentry *x = entry_of_task(c->l, c->r->inst[inst].task);
	int first = c->r->lane_first[c->lane_copy], younger = 0, awaited;
	int class = instance_class(c, inst);

	if (x->waits_groups) {
		awaited = last_awaited(c, inst);
		for (int i = inst - 1; i >= first && i > awaited; i--)
			younger += on_matrix(c->k, c->r->inst[i].task);
		note_group_wait(c, &x->before, class, inst, younger);
	}
	if (x->drains)
		note_group_wait(c, &x->after, class, inst + 1, 1);
	if (!c->opens)
		count_dependents(c, inst);
}

static void count_pass(struct kernel *k, struct klane *l, int lane_copy, bool opens)
{
	for (int64_t trips = 0; trips <= window(k); trips++) {
		struct arena_mark mark = arena_mark(&k->arena);
		struct counting c = { .k = k, .l = l, .lane_copy = lane_copy, .opens = opens,
			.scratch = ARENA_ARRAY(&k->arena, k->plan->graph->tasks.n, int) };
		struct relation r;
		struct walk w;

		build_relation(k, &k->arena, trips, 2 * l->copies, &w, &r);
		c.r = &r;
		for (int i = r.lane_first[lane_copy]; !r.ncycle && i < r.lane_first[lane_copy + 1]; i++)
			count_instance(&c, i);
		arena_reset(&k->arena, mark);
	}
}

static void count_groups(struct kernel *k, struct klane *l, int lane_copy)
{
	for (int i = 0; i < l->entries.n; i++) {
		init_group_wait(k, &l->entries.v[i].before);
		init_group_wait(k, &l->entries.v[i].after);
	}
	count_pass(k, l, lane_copy, false);
	count_pass(k, l, lane_copy, true);
}

/* A reduction along rows leaves a number a warp and column. */
static int64_t scratch_bytes(const struct kernel *k, const struct klane *l)
{
	const struct program *p = k->plan->graph->program;
	int64_t most = 0;

	for (int i = 0; i < l->entries.n; i++) {
		const struct task *t = &p->tasks.v[stask_at(k, l->entries.v[i].task)->task];

		for (int j = 0; j < t->nodes.n; j++) {
			const struct node *n = &p->nodes.v[t->nodes.v[j]];
			const struct shape2 *v;

			if (op_class(n->op) != CLASS_REDUCE)
				continue;
			v = &k->node_shape[n->arg[0]];
			if (v->nrow && v->row[0] == n->ref)
				most = max_i64(most, 4 * l->warps * round_up(v->cols, 8));
		}
	}
	return l->warps > 1 ? most : 0;
}

/* One copy of a lane that takes tiles in turn. */
static enum err_code add_lane(struct kernel *k, int lane, int copy, struct err *e)
{
	const struct plan *p = k->plan;
	struct klane *l = VEC_ADD(&k->arena, &k->lanes);

	*l = (struct klane){ .lane = lane, .copy = copy, .copies = p->lanes.v[lane].turns,
		.turn = k->turn_of[lane], .barrier = k->lanes.n, .warps = lane_warps(p, lane),
		.registers = p->lanes.v[lane].registers };
	if (l->barrier >= p->device->named_barriers)
		return err_set(e, ERR_ILLEGAL, p->lanes.v[lane].loc, "the lanes are more than the %d "
			"named barriers of '%s'", p->device->named_barriers - 1, p->device->name);
	TRY(build_regions(k, l, e));
	l->scratch = k->shared_bytes;
	k->shared_bytes += scratch_bytes(k, l);
	find_unroll(k, l);
	find_drains(k, l);
	count_groups(k, l, k->lanes.n - 1);
	return OK;
}

enum err_code lower_lanes(struct kernel *k, struct err *e)
{
	const struct plan *p = k->plan;
	int warp = 0;

	TRY(find_flags(k, e));
	TRY(find_depths(k, e));
	for (int i = 0; i < p->lanes.n; i++)
		for (int copy = 0; copy < p->lanes.v[i].turns; copy++)
			TRY(add_lane(k, i, copy, e));
	/* lanes of whole warpgroups first: matrix instructions want aligned ones */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < k->lanes.n; i++) {
			struct klane *l = &k->lanes.v[i];

			if ((l->warps % GROUP_WARPS == 0) != (pass == 0))
				continue;
			l->first_warp = warp;
			warp += (int)ceil_div(l->warps, GROUP_WARPS) * GROUP_WARPS;
		}
	}
	k->threads = warp * p->device->warp;
	return OK;
}

/* What the plan's account of shared memory leaves out: room that fills blocks up. */
static enum err_code check_room(const struct kernel *k, struct err *e)
{
	const struct vdevice *d = k->plan->device;
	int64_t bytes = k->shared_bytes + SLOT_ALIGN;

	return bytes <= d->shared_bytes ? OK : err_set(e, ERR_ILLEGAL, NOWHERE, "with operands "
		"filled up to whole blocks the kernel needs %lld bytes of shared memory, '%s' has "
		"%lld; lower a ring with plan:buffers, or take a smaller tile", (long long)bytes,
		d->name, (long long)d->shared_bytes);
}

enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, struct kernel **out,
	struct err *e)
{
	struct arena a;
	enum err_code code;

	arena_init(&a, mem);
	*out = ARENA_NEW(&a, struct kernel);
	(*out)->arena = a;
	(*out)->plan = p;
	(*out)->phase = phase;
	code = lower_shapes(*out, e);
	if (!code)
		code = lower_rings(*out, e);
	if (!code)
		code = lower_lanes(*out, e);
	if (!code)
		code = check_room(*out, e);
	if (!code)
		code = protocol_check(*out, NULL, e);
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

void kernel_free(struct kernel *k)
{
	struct arena a;

	if (!k)
		return;
	a = k->arena;
	arena_release(&a);
}
