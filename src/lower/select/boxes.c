/* Loads by the copy engine: each box of a tensor fills one panel of a slot. The blocks of a cluster may each load
 * a share of the boxes. */
#include "lower/select/lowering.h"
#include "plan/keep.h"

#include <stdlib.h>
#include <string.h>

/* The number of a tensor map, which the kernel may have already. */
static int map_number(struct lowering *c, const struct role_map *m)
{
	for (int i = 0; i < c->r->maps.n; i++) {
		const struct role_map *x = &c->r->maps.v[i];

		if (x->tensor == m->tensor && x->swizzle == m->swizzle && !memcmp(x->box, m->box, sizeof(m->box)) &&
		    !memcmp(x->dim, m->dim, sizeof(m->dim)) && !memcmp(x->stride, m->stride, sizeof(m->stride)) &&
		    !memcmp(x->dim_of, m->dim_of, sizeof(m->dim_of)))
			return i;
	}
	VEC_PUSH(c->a, &c->r->maps, *m);
	return c->r->maps.n - 1;
}

/* Elements of a row axis in a box of that many rows. */
static int64_t box_extent(const struct lowering *c, const struct shape2 *v, int buffer, int axis, int64_t rows)
{
	const struct buffer *b = &c->g->buffers.v[buffer];

	for (int i = 0; i < v->nrow; i++)
		for (int k = 0; k < b->naxes && v->row[i] == axis; k++)
			if (b->axis[k] == axis)
				return v->nrow == 1 ? rows : ceil_div(b->extent[k], v->row_share[i]);
	return 1;
}

/* Adds a dimension to the map: `part` of tensor dimension d, of which a box has so many elements. */
static void add_map_dim(const struct lowering *c, const struct tensor *t, int d, int64_t dim_factor, int64_t stride_factor,
	int64_t box, struct role_map *m)
{
	int64_t bytes = dtype_bits(t->type) / 8 * stride_factor;
	int n = m->rank++;

	m->dim_of[n] = dim_factor == 1 ? 1u << d : 0;
	m->dim_factor[n] = dim_factor;
	m->dim[n] = dim_factor == 1 ? c->p->axes.v[t->dim[d]].size : dim_factor;
	m->stride_factor[n] = stride_factor;
	for (int i = d + 1; i < t->rank; i++) {
		m->stride_of[n] |= 1u << i;
		bytes *= c->p->axes.v[t->dim[i]].size;
	}
	m->stride[n] = bytes;
	m->box[n] = box;
}

int tensor_map(struct lowering *c, const struct stask *s, const struct node *n, const struct shape2 *v, int buffer,
	int64_t rows, int64_t cols, int swizzle)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	struct role_map m = { .tensor = n->ref, .task = (int)(s - c->g->tasks.v), .swizzle = swizzle };

	for (int d = t->rank - 1; d >= 0; d--) {
		const struct index_expr *x = &n->index[d];
		int64_t split = n->op == OP_LOAD && v->nrow ? lower_split_dimension(c->k, buffer, d) : 1;
		int64_t inner = 1, outer = 1;

		for (int k = 0; k < x->n && d < t->rank - 1; k++) {
			int64_t extent = box_extent(c, v, buffer, x->term[k].axis, rows);

			if (x->term[k].div == 1 || (n->op == OP_LOAD && !has_index_values(n)))
				*(x->term[k].coef == split ? &outer : &inner) *= extent;
		}
		if (split == 1) {
			add_map_dim(c, t, d, 1, 1, d < t->rank - 1 ? inner * outer : cols, &m);
			continue;
		}
		add_map_dim(c, t, d, split, 1, inner, &m);
		add_map_dim(c, t, d, c->p->axes.v[t->dim[d]].size / split, split, outer, &m);
	}
	return map_number(c, &m);
}

/* The tensor map for the boxes of a ring. */
static int ring_map(struct lowering *c, const struct stask *s, const struct node *n, const struct ring *r)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	struct role_map m = { .tensor = n->ref, .task = (int)(s - c->g->tasks.v), .swizzle = r->swizzle };
	struct box_order order;

	if (r->by_rows)
		return tensor_map(c, s, n, &(struct shape2){ .rows = 1 }, r->buffer, 1, r->panel_cols, r->swizzle);
	if (!r->reordered)
		return tensor_map(c, s, n, &r->shape, r->buffer, r->run ? r->run : r->box_rows, r->panel_cols,
			r->swizzle);
	lower_order_box(c->k, r, &order);
	m.rank = order.n;
	for (int i = 0; i < order.n; i++) {
		m.dim[i] = c->p->axes.v[t->dim[order.dim[i]]].size;
		m.dim_of[i] = 1u << order.dim[i];
		m.dim_factor[i] = m.stride_factor[i] = 1;
		m.box[i] = order.extent[i];
		m.stride[i] = dtype_bits(t->type) / 8;
		for (int d = order.dim[i] + 1; d < t->rank; d++) {
			m.stride[i] *= c->p->axes.v[t->dim[d]].size;
			m.stride_of[i] |= 1u << d;
		}
	}
	for (int i = 1; i < order.merged; i++)
		m.dim_of[0] |= 1u << (t->rank - 1 - i);
	for (int i = 1; i < order.merged; i++)
		m.dim[0] *= c->p->axes.v[t->dim[t->rank - 1 - i]].size;
	return map_number(c, &m);
}

/* Does the index have a different value for each combination of its axes? Only mixed-radix sums are recognized:
 * each coefficient exceeds the greatest sum of all terms with smaller ones. */
static bool is_one_to_one(const struct lowering *c, const struct index_expr *x)
{
	for (int i = 0; i < x->n; i++) {
		int64_t reach = 0;

		for (int k = 0; k < x->n; k++)
			if (k != i && (llabs(x->term[k].coef) < llabs(x->term[i].coef) ||
			    (llabs(x->term[k].coef) == llabs(x->term[i].coef) && k > i)))
				reach += llabs(x->term[k].coef) * (c->p->axes.v[x->term[k].axis].size - 1);
		if (x->term[i].div != 1 || x->term[i].mod || llabs(x->term[i].coef) <= reach)
			return false;
	}
	return true;
}

/* Does each tile load different bytes, so that none is worth caching? */
static bool is_read_once(const struct lowering *c, const struct stask *s, const struct node *n)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	bool used[AXES_MAX] = { false };

	for (int d = 0; d < t->rank; d++) {
		if (n->index[d].value || !is_one_to_one(c, &n->index[d]))
			return false;
		for (int k = 0; k < n->index[d].n; k++)
			used[n->index[d].term[k].axis] = true;
	}
	for (int i = 0; i < c->p->nodes.n; i++)
		if (&c->p->nodes.v[i] != n && c->p->nodes.v[i].op == OP_LOAD && c->p->nodes.v[i].ref == n->ref)
			return false;
	for (int a = 0; a < c->p->axes.n; a++) {
		enum axis_role role = program_axis_role(c->p, s->phase, a);

		if (!used[a] && c->g->extents.tile[a] < c->p->axes.v[a].size && (role == AXIS_BATCH ||
		    role == AXIS_GRID || program_axis_bound(c->p, s->loop, a)))
			return false;
	}
	return true;
}

/* Does the phase leave a tensor for a later one? It is then worth more in L2 than what tiles load once. */
static bool leaves_tensors(const struct lowering *c, int phase)
{
	for (int i = 0; i < c->g->tasks.n; i++) {
		const struct stask *s = &c->g->tasks.v[i];

		if (s->phase == phase && s->kind == TASK_STORE &&
		    c->p->tensors.v[last_node_of(c->k, s)->ref].role == TENSOR_TEMP)
			return true;
	}
	return false;
}

static int64_t tensor_bits(const struct lowering *c, int tensor)
{
	return tensor_elements(c->p, tensor) * dtype_bits(c->p->tensors.v[tensor].type);
}

/* Is the tensor many times what the phase stores? Then its bytes leave L2 to what is there for longer. A phase that stores as much as it loads
 * takes longer so. */
static bool outweighs_stores(const struct lowering *c, int phase, int tensor)
{
	enum { TIMES = 16 };
	int64_t stored = 0;

	for (int t = 0; t < c->p->tensors.n; t++) {
		bool stores = false;

		for (int i = 0; i < c->g->tasks.n && !stores; i++) {
			const struct stask *s = &c->g->tasks.v[i];

			stores = s->phase == phase && s->kind == TASK_STORE && last_node_of(c->k, s)->ref == t;
		}
		stored += stores ? tensor_bits(c, t) : 0;
	}
	return tensor_bits(c, tensor) / TIMES >= stored;
}

/* The tensor dimension that the ring's row axis indexes, if it has one row axis; else NONE. */
static int row_dimension(const struct lowering *c, const struct ring *r, const struct node *n)
{
	for (int d = 0; d < c->p->tensors.v[n->ref].rank; d++)
		for (int i = 0; i < n->index[d].n; i++)
			if (r->shape.nrow == 1 && n->index[d].term[i].axis == r->shape.row[0])
				return d;
	return NONE;
}

/* The first index in dimension d of a panel of a reordered ring. */
static const struct num *reordered_corner(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct index_expr *x, const struct num *panel)
{
	const struct num *col = MUL(panel, N(c, r->panel_cols)), *at;
	int64_t below = 1;

	for (int i = 0; i < r->shape.nrow; i++)
		c->axis_index[r->shape.row[i]] = N(c, 0);
	for (int i = r->shape.ncol - 1; i >= 0; i--) {
		int64_t extent = axis_extent(c, s, &r->shape, r->shape.col[i]);
		const struct num *part = below > 1 ? DIV(col, N(c, below)) : col;

		c->axis_index[r->shape.col[i]] = i ? MOD(part, N(c, extent)) : part;
		below *= extent;
	}
	at = tensor_index(c, s, x, &r->shape, true);
	for (int i = 0; i < shape_rank(&r->shape); i++)
		c->axis_index[shape_axis(&r->shape, i)] = NULL;
	return at;
}

/* The value that is added to the index of a dimension, for all rows of the box that begins at local row `row`. */
static const struct val *box_value(struct lowering *c, const struct stask *s, const struct ring *r, int node,
	int64_t row)
{
	int axis = r->shape.nrow ? r->shape.row[0] : NONE;
	const struct val *v;

	if (axis != NONE)
		c->axis_index[axis] = N(c, row);
	v = added_value(c, s, &r->shape, node, axis == NONE ? N(c, 1) : within_ends(c, s, &r->shape, &axis, 1),
		true);
	if (axis != NONE)
		c->axis_index[axis] = NULL;
	return v;
}

/* The boxes of a panel where values name rows: each has as many rows as all values are the same for. */
static void add_row_boxes(struct lowering *c, const struct stask *s, const struct ring *r, const struct node *n,
	int panel, struct role_op *o)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	int64_t rows = r->run ? r->box_rows : 1, step = r->run ? r->run : 1;
	int64_t pitch = r->swizzle ? r->swizzle : r->panel_cols * dtype_bits(t->type) / 8;
	int64_t first = r->first_row * pitch + r->first_col / r->panel_cols * r->panel_bytes + panel * r->panel_bytes;

	for (int64_t row = 0; row < rows; row += step) {
		struct role_box b = { .to = ADD(slot_address(c, r), N(c, first + row * pitch)) };

		for (int i = 0; i < shape_rank(&r->shape); i++)
			c->axis_index[shape_axis(&r->shape, i)] = N(c, i < r->shape.nrow ? row : 0);
		for (int d = t->rank - 1; d >= 0; d--) {
			b.corner[t->rank - 1 - d] = tensor_index(c, s, &n->index[d], &r->shape, true);
			if (d == t->rank - 1 && panel)
				b.corner[0] = ADD(b.corner[0], N(c, panel * r->panel_cols));
		}
		for (int i = 0; i < shape_rank(&r->shape); i++)
			c->axis_index[shape_axis(&r->shape, i)] = NULL;
		for (int d = 0; d < t->rank; d++)
			if (n->index[d].value)
				b.value[t->rank - 1 - d] = box_value(c, s, r, index_value(&n->index[d]), row);
		VEC_PUSH(c->a, &o->u.boxes.boxes, b);
	}
}

/* The dimension whose coordinate says that a row is none of the tile: one that adds a value, or else the outermost. */
static int guarded_dimension(const struct node *n, int rank)
{
	for (int d = 0; d < rank; d++)
		if (n->index[d].value)
			return d;
	return 0;
}

/* The box of a panel for the current row (VAR_ROW0). Of rows behind the end of the tile it brings zeros. */
static void add_one_row(struct lowering *c, const struct stask *s, const struct ring *r, const struct node *n,
	int64_t panel, struct role_op *o)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	int64_t width = r->panel_cols * dtype_bits(t->type) / 8;
	struct role_box *b = VEC_ADD(c->a, &o->u.boxes.boxes);
	struct frag f = lower_ring_slice(s, r);
	int guarded = guarded_dimension(n, t->rank);
	const struct num *inside;
	uint64_t rows = 0;

	for (int i = 0; i < r->shape.nrow; i++)
		rows |= UINT64_C(1) << r->shape.row[i];
	f.width = f.cols;
	inside = inside_condition(c, s, &r->shape, &f, rows);
	c->axis_index[r->shape.col[0]] = N(c, 0);
	*b = (struct role_box){ .to = ADD(slot_address(c, r), ADD(MUL(V(c, VAR_ROW0, NONE), N(c, width)),
		N(c, r->first_row * width + (r->first_col / r->panel_cols + panel) * r->panel_bytes))) };
	for (int d = 0; d < t->rank; d++) {
		const struct num *at = tensor_index(c, s, &n->index[d], &r->shape, true);
		int value = n->index[d].value ? index_value(&n->index[d]) : NONE;

		if (d == t->rank - 1 && panel)
			at = ADD(at, N(c, panel * r->panel_cols));
		if (d == guarded && value == NONE)
			at = num_select(c->a, inside, at, N(c, -r->panel_cols));	/* the box ends before the tensor */
		b->corner[t->rank - 1 - d] = at;
		if (value == NONE)
			continue;
		b->value[t->rank - 1 - d] = added_value(c, s, &r->shape, value, N(c, 1), true);
		if (d == guarded)
			b->value[t->rank - 1 - d] = val_guard(c, inside, b->value[t->rank - 1 - d],
				val_const(c, DT_I32, INT32_MIN));
	}
	c->axis_index[r->shape.col[0]] = NULL;
}

/* One box: panel number `panel`, or this block's share of its rows. */
static void add_box(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct node *n, const struct num *when, const struct num *panel, struct role_op *o)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	int rows = r->share == SHARE_ROWS ? row_dimension(c, r, n) : NONE;
	const struct num *rank = V(c, VAR_RANK, NONE);
	const struct buffer *buf = &c->g->buffers.v[r->buffer];
	int64_t pitch = r->swizzle ? r->swizzle : r->panel_cols * dtype_bits(t->type) / 8;
	int64_t first = r->first_row * pitch + r->first_col / r->panel_cols * r->panel_bytes;
	int64_t part = 0;
	int64_t below = 1;
	struct box_order order = { 0 };
	struct role_box *b = VEC_ADD(c->a, &o->u.boxes.boxes);

	*b = (struct role_box){ .when = when };
	for (int i = 0; i < buf->naxes; i++)
		if (buf->axis[i] == s->split_axis)
			part = buf->extent[i];
	if (r->reordered)
		lower_order_box(c->k, r, &order);
	for (int i = 0; i < order.n && r->reordered; i++)
		b->corner[i] = reordered_corner(c, s, r, &n->index[order.dim[i]], panel);
	for (int i = 1; i < order.merged && r->reordered; i++) {
		below *= c->p->axes.v[t->dim[t->rank - i]].size;
		b->corner[0] = ADD(MUL(reordered_corner(c, s, r, &n->index[t->rank - 1 - i], panel), N(c, below)),
			b->corner[0]);
	}
	for (int d = t->rank - 1, to = 0; d >= 0 && !r->reordered; d--) {
		const struct num *at = tensor_index(c, s, &n->index[d], &r->shape, false);
		int64_t split = r->shape.nrow ? lower_split_dimension(c->k, r->buffer, d) : 1;

		for (int i = 0; i < n->index[d].n && s->slices > 1; i++)
			if (n->index[d].term[i].axis == s->split_axis)
				at = ADD(at, N(c, n->index[d].term[i].coef * s->slice * part));
		if (d == t->rank - 1 && !num_is(panel, 0))
			at = ADD(at, MUL(panel, N(c, r->panel_cols)));
		if (split > 1) {
			bool power = !(split & (split - 1));	/* else the index is never negative */

			b->corner[to++] = power ? NUM2(AND, at, N(c, split - 1)) : MOD(at, N(c, split));
			at = power ? NUM2(SHR, at, N(c, log2_of((int)split))) : DIV(at, N(c, split));
		}
		if (d == rows)
			at = ADD(at, MUL(rank, N(c, r->box_rows)));
		b->corner[to++] = at;
	}
	b->to = ADD(slot_address(c, r), MUL(panel, N(c, r->panel_bytes)));
	if (first)
		b->to = ADD(b->to, N(c, first));
	if (rows != NONE)
		b->to = ADD(b->to, MUL(rank, N(c, r->box_bytes / c->k->cluster)));
}

/* This block's share of the boxes, multicast to all blocks of the cluster. */
static void add_shared_boxes(struct lowering *c, const struct stask *s, const struct ring *r,
	const struct node *n, struct role_op *o)
{
	const struct num *rank = V(c, VAR_RANK, NONE);
	int blocks = c->k->cluster;

	for (int p = 0; p < r->boxes && r->share == SHARE_ROWS; p++)
		add_box(c, s, r, n, NULL, N(c, p), o);
	for (int p = 0; p < r->boxes && r->share == SHARE_PANELS; p += blocks)
		add_box(c, s, r, n, p + blocks > r->boxes ? NUM2(LT, rank, N(c, r->boxes - p)) : NULL,
			ADD(N(c, p), rank), o);
}

/* Does the lane do anything but load? */
static bool works(const struct lowering *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (stask_of(c, &c->lane->entries.v[i])->kind != TASK_LOAD)
			return true;
	return false;
}

/* Must the lane's warps synchronize before the copy? One thread of one warp issues it, and a lane that waits for the
 * copy concludes that all warps have finished what precedes it, waits included. A lane that only loads, and has
 * waited for nothing since its last copy, need not. */
static bool follows_work(const struct lowering *c, const struct kentry *x)
{
	const struct kregion *v = &c->lane->regions[0];
	bool replicas = c->lane->handover_flag != NONE;

	for (int i = 0; i < v->steps.n; i++)
		replicas |= v->steps.v[i].handover_flag != NONE;
	return x->waits.n || replicas || works(c);
}

/* A number for each combination of what says which bytes a load brings. */
static const struct num *kept_key(struct lowering *c, const struct kentry *x)
{
	struct keep_part part[AXES_MAX];
	int parts = keep_parts(c->g, x->task, part);
	const struct num *key = N(c, 0);

	for (int i = 0; i < parts; i++)
		key = ADD(MUL(key, N(c, part[i].n)), DIV(V(c, VAR_LO, part[i].axis), N(c, part[i].unit)));
	return ADD(key, N(c, 1));
}

/* All boxes of a load arrive at one flag. */
void select_boxes(struct lowering *c, const struct kentry *x, const struct ring *r, const struct node *n)
{
	const struct stask *s = stask_of(c, x);
	struct role_op *o;

	if (r->by_rows && !works(c))
		add_op(c, DO_WARP_SYNC)->why = "all of its threads copy";
	else if (follows_work(c, x))
		add_lane_sync(c, "all warps have looked at the flag, or are done with the slot");
	add_touch(c, TOUCH_WRITE, TOUCH_SLOT, r->buffer, 0);	/* the first one: verify/run.c */
	touch_added_values(c, s, n);
	o = add_op(c, DO_LOAD_BOXES);
	o->u.boxes.flag = x->flag;
	o->u.boxes.n = instance_number(c, s->loop);
	o->u.boxes.bytes = c->k->flags.v[x->flag].bytes;
	o->u.boxes.map = ring_map(c, s, n, r);
	o->u.boxes.ring = c->k->ring_of[r->buffer];
	o->u.boxes.multicast = r->share != SHARE_NONE;
	o->u.boxes.key = r->kept ? kept_key(c, x) : NULL;
	o->u.boxes.once = !o->u.boxes.multicast && (leaves_tensors(c, s->phase) || outweighs_stores(c, s->phase, n->ref)) &&
		is_read_once(c, s, n);
	if (o->u.boxes.multicast)
		add_shared_boxes(c, s, r, n, o);
	for (int p = 0; p < r->boxes && r->by_rows; p++)
		add_one_row(c, s, r, n, p, o);
	if (r->by_rows) {
		o->u.boxes.rows = lower_ring_slice(s, r).rows;
		if (has_index_values(n))
			add_op(c, DO_WARP_SYNC)->why = "all of its threads have read indices";
		return;
	}
	for (int p = 0; p < r->boxes && has_index_values(n); p++)
		add_row_boxes(c, s, r, n, p, o);
	for (int p = 0; p < r->boxes && !o->u.boxes.multicast && !has_index_values(n); p++)
		add_box(c, s, r, n, NULL, N(c, p), o);
}
