/* How values lie in shared memory: which of a tile's axes are rows, what room it takes,
 * panels, and whether the copy engine can bring it. */
#include "lower/passes.h"

enum {
	BOX_COLS = 256,			/* most elements of a row of a box */
	BOX_ROWS = 256,
	STEP_BYTES = 32,		/* of the contracted axis that a matrix instruction takes */
};

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

/* A product on the matrix unit that reads the buffer as an operand? */
static bool multiplies(const struct kernel *k, int task, int buffer)
{
	const struct stask *s = stask_at(k, task);

	return s->kind == TASK_MMA && s->phase == k->phase && on_matrix(k, task) &&
		k->plan->graph->buffers.v[buffer].node != NONE && reads(s, buffer);
}

bool lower_is_operand(const struct kernel *k, int buffer)
{
	for (int i = 0; i < k->plan->graph->tasks.n; i++)
		if (multiplies(k, i, buffer))
			return true;
	return false;
}

/* Does such a product contract this axis of the buffer? */
static bool contracts(const struct kernel *k, int buffer, int axis)
{
	for (int i = 0; i < k->plan->graph->tasks.n; i++)
		if (multiplies(k, i, buffer) && !has_axis(product_of(k, stask_at(k, i)), axis))
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
	bool plain = true, operand = lower_is_operand(k, (int)(b - k->plan->graph->buffers.v));

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
	for (int i = 0; i < x->n && last && !*n && operand; i++)
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
	int64_t stride;

	*s = (struct shape2){ .rows = 1, .cols = 1, .whole = k->node_shape[b->node].whole };
	if (!t->rank)
		return false;
	stride = dtype_bits(t->type) * p->axes.v[t->dim[t->rank - 1]].size;
	for (int d = 0; d < t->rank; d++)
		engine &= add_dimension(k, b, &n->index[d], d == t->rank - 1, s);
	for (int i = 0; i < s->nrow; i++)
		s->rows *= ceil_div(axis_extent(b, s->row[i]), s->row_share[i]);
	for (int i = 0; i < s->ncol; i++)
		s->cols *= ceil_div(axis_extent(b, s->col[i]), s->col_share[i]);
	for (int i = 0; i < s->nrow + s->ncol; i++)
		engine &= ends_with_tensor(k, b, n, i < s->nrow ? s->row[i] : s->col[i - s->nrow]);
	engine &= begins_aligned(k, b, &n->index[t->rank - 1]);
	return engine && (t->rank == 1 || stride % 128 == 0) && s->rows <= BOX_ROWS &&
		(s->cols * dtype_bits(t->type) % 128 == 0 ||
		 lower_is_operand(k, (int)(b - k->plan->graph->buffers.v)));
}

/* Room for the rows (first operand) or columns that product s reads of `extent`: whole
 * blocks, from the last part on. deep: another product contracts these columns. */
static int64_t room_for(const struct kernel *k, const struct stask *s, int64_t extent, bool split,
	bool first, bool deep)
{
	int64_t unit = first ? 16 * lane_warps(k->plan, lane_of(k, (int)(s -
		k->plan->graph->tasks.v))) : deep ? 16 : 8;
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
		bool first, split = false, by_rows, deep = false;
		int64_t room;

		if (!multiplies(k, i, r->buffer))
			continue;
		mma = product_of(k, s);
		first = mma->arg[0] == b->node;
		by_rows = r->shape.ncol && !has_axis(mma, r->shape.col[0]);
		for (int a = 0; a < b->naxes; a++) {
			if (!has_axis(mma, b->axis[a]))
				continue;
			split |= s->parts > 1 && b->parts == 1 && b->axis[a] == s->split_axis;
			deep |= k->deep >> b->axis[a] & 1;
		}
		room = room_for(k, s, by_rows ? r->shape.rows : r->shape.cols, split, first, deep);
		*(by_rows ? &r->rows : &r->cols) = max_i64(by_rows ? r->rows : r->cols, room);
		/* along the other side it is contracted, step by step */
		if (by_rows)
			r->full_cols = r->cols = round_up(r->shape.cols, depth);
		else
			r->full_rows = r->rows = round_up(r->shape.rows, depth);
	}
}

/* The widest panel, of at most so many columns, whose rows are swizzled and make up the
 * columns; 0 if there is none. */
static int64_t panel_of(const struct ring *r, int bits, int64_t most)
{
	int64_t least = 32 * 8 / bits;

	for (int64_t wide = 128 * 8 / bits; wide >= least; wide /= 2)
		if (wide <= max_i64(most, least) && r->cols % wide == 0)
			return wide;
	return 0;
}

/* Elements of a row of the tensor that a buffer is loaded from. */
static int64_t tensor_row(const struct kernel *k, const struct buffer *b)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[p->nodes.v[b->node].ref];

	return p->axes.v[t->dim[t->rank - 1]].size;
}

/* Columns that are not contracted are read by whole panels, of at most so many. */
static void fill_columns(struct ring *r, int bits, int64_t most)
{
	int64_t wide = 128 * 8 / bits, least = 32 * 8 / bits;

	while (wide > least && wide > most)
		wide /= 2;
	r->cols = r->cols > wide / 2 ? round_up(r->cols, wide) : max_i64(wide / 2, least);
}

static void choose_panels(const struct kernel *k, struct ring *r, const struct buffer *b)
{
	int bits = dtype_bits(b->type);
	bool operand = lower_is_operand(k, r->buffer);
	/* no box may be wider than the tensor: the copy engine faults */
	int64_t most = r->engine ? tensor_row(k, b) : INT64_MAX;

	if (operand && r->shape.ncol && !contracts(k, r->buffer, r->shape.col[0]))
		fill_columns(r, bits, most);
	r->panel_cols = operand ? panel_of(r, bits, most) : min_i64(r->cols, 128 * 8 / bits);
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
	r->box_rows = r->full_rows;
	r->box_bytes = r->full_rows * r->panel_cols * bits / 8;
	/* zeros that follow a contracted axis of one element are in no box */
	r->engine = r->engine && r->full_rows <= BOX_ROWS && (r->swizzle || r->cols <= BOX_COLS) &&
		r->panel_cols <= most && (r->shape.nrow == 1 || r->full_rows == r->shape.rows);
}

/* A buffer of a split sTask holds its part alone. What a load brings may have fewer
 * elements along the axis than its value, as one that goes by k // group. */
static enum err_code take_part(const struct kernel *k, const struct buffer *b, struct shape2 *v,
	struct err *e)
{
	int axis = k->plan->graph->tasks.v[b->first].split_axis;

	for (int i = 0; i < v->nrow + v->ncol; i++) {
		int64_t *n = i < v->nrow ? &v->rows : &v->cols;

		if ((i < v->nrow ? v->row[i] : v->col[i - v->nrow]) != axis)
			continue;
		if (*n % b->parts)
			return err_set(e, ERR_ILLEGAL, b->loc, "'%s' is split in %d parts along '%s', "
				"where its load brings %lld elements; that is not lowered", b->name,
				b->parts, k->plan->graph->program->axes.v[axis].name,
				(long long)*n);
		*n /= b->parts;
	}
	return OK;
}

static enum err_code add_ring(struct kernel *k, int buffer, struct err *e)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct program *p = k->plan->graph->program;
	struct ring r = { .buffer = buffer, .versions = k->plan->versions[buffer] };

	if (b->node != NONE && p->nodes.v[b->node].op == OP_LOAD)
		r.engine = load_shape(k, b, &r.shape) && is_copy(k, b->first);
	else
		r.shape = b->node != NONE ? k->node_shape[b->node] : k->carry_shape[b->carry];
	if (b->parts > 1)
		TRY(take_part(k, b, &r.shape, e));
	r.rows = r.full_rows = r.shape.rows;
	r.cols = r.full_cols = r.shape.cols;
	make_room(k, &r);
	choose_panels(k, &r, b);
	r.slot_bytes = round_up(r.panel_bytes * (r.cols / r.panel_cols), SLOT_ALIGN);
	r.offset = k->shared_bytes;
	k->shared_bytes += r.slot_bytes * r.versions;
	k->ring_of[buffer] = k->rings.n;
	VEC_PUSH(&k->arena, &k->rings, r);
	return OK;
}

enum err_code lower_rings(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;

	k->ring_of = ARENA_ARRAY(&k->arena, g->buffers.n, int);
	for (int i = 0; i < g->buffers.n; i++) {
		k->ring_of[i] = NONE;
		if (g->buffers.v[i].phase == k->phase && plan_scope(k->plan, i) == SCOPE_SHARED)
			TRY(add_ring(k, i, e));
	}
	for (int i = 0; i < k->rings.n; i++) {
		const struct buffer *b = &g->buffers.v[k->rings.v[i].buffer];

		if (lower_is_operand(k, k->rings.v[i].buffer) && !k->rings.v[i].swizzle)
			return err_set(e, ERR_ILLEGAL, b->loc, "'%s' cannot be read by the matrix "
				"unit: a row of its tile has %lld bytes, which is no multiple of "
				"32", b->name, (long long)(k->rings.v[i].shape.cols *
				dtype_bits(b->type) / 8));
	}
	return OK;
}
