/* Loads: rows and columns of a loaded tile, as its tensor lies in memory, and whether the copy engine can load it; else
 * how wide the accesses of threads are, and whether their copies arrive at the flag themselves.
 *
 * Threads copy neighbours of a row together, as many as may begin where they do in memory: 16 bytes at most. Accesses
 * of 4 bytes or more are copied asynchronously (cp.async); then each thread's copies arrive at the load's flag when
 * they are complete (cp.async.mbarrier.arrive), and the lane goes on. Where rows begin anywhere, 16 bytes are read as
 * the words around them, and shifted in registers. */
#include "lower/layout/rings.h"

/* What keeps the threads of the load's lane from copying the tile in which a loop over the axis ends, and signaling as
 * the engine does? One warp arrives, once, as the thread that issues a copy does. */
static enum end_obstacle obstacle_along(const struct kernel *k, const struct buffer *b, int axis)
{
	const struct plan *p = k->plan;
	const struct stask *s = &p->graph->tasks.v[b->first];

	if (program_length_loop(p->graph->program, s->loop, axis) != s->loop)
		return END_LOOP;
	if (ring_axis_extent(k, b, axis) % k_step_depth(k, b))
		return END_TILE;
	return p->grid.cluster > 1 ? END_CLUSTER : END_NONE;
}

enum end_obstacle lower_end_obstacle(const struct kernel *k, const struct buffer *b, int *axis, int64_t *multiple)
{
	enum end_obstacle is = END_NONE;

	*multiple = k_step_depth(k, b);
	for (int i = 0; i < b->naxes && is == END_NONE; i++) {
		*axis = b->axis[i];
		if (ends_within_tile(k->plan->graph, k->plan->graph->tasks.v[b->first].loop, *axis) &&
		    lower_is_contracted(k, buffer_index(k, b), *axis))
			is = obstacle_along(k, b, *axis);
	}
	return is;
}

bool lower_ends_by_length(const struct kernel *k, const struct buffer *b)
{
	int loop = k->plan->graph->tasks.v[b->first].loop;

	for (int i = 0; i < b->naxes; i++)
		if (ends_within_tile(k->plan->graph, loop, b->axis[i]) &&
		    lower_is_contracted(k, buffer_index(k, b), b->axis[i]))
			return true;
	return false;
}

/* Beyond the end of an axis that a product contracts there must be zeros, as far as a k step goes. The copy engine
 * writes them only beyond the end of the tensor. */
static bool ends_with_tensor(const struct kernel *k, const struct buffer *b, const struct node *n, int axis)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	int64_t size = axis_divisor(&p->axes.v[axis]), tile = ring_axis_extent(k, b, axis);
	int64_t depth = k_step_depth(k, b);

	if (!lower_is_contracted(k, buffer_index(k, b), axis))
		return true;
	if (ends_within_tile(k->plan->graph, p->tasks.v[n->task].loop, axis))
		return obstacle_along(k, b, axis) == END_NONE;
	if (size % tile == 0 && tile % depth == 0)
		return true;
	if (tile % depth && tile < p->axes.v[axis].size)
		return false;
	for (int d = 0; d < t->rank; d++) {
		const struct index_expr *x = &n->index[d];

		if (x->n == 1 && x->term[0].axis == axis && x->term[0].coef == 1 && x->term[0].div == 1 && !x->term[0].mod && !x->k &&
		    !x->value && axes_end_alike(p, axis, t->dim[d]))
			return true;
	}
	return false;
}

/* How many neighbours along an axis come from one element of the tensor: x // 32 does not change within 32. Tiles begin
 * at multiples of their extent. A matrix unit needs an element in the ring for each of them, so they do not share it
 * then. */
static int64_t share_of(const struct kernel *k, const struct buffer *b, const struct index_term *t)
{
	int64_t tile = k->plan->graph->extents.tile[t->axis];

	if (t->axis == buffer_split_axis(k, b))
		tile = ring_slice_extent(k, b, t->axis);
	if (t->mod || (tile % t->div && t->div % tile) || lower_is_shared_operand(k, buffer_index(k, b)))
		return 1;
	return min_i64(t->div, tile);
}

/* Does any index of the load add a value that has the axis? */
static bool is_axis_of_value(const struct kernel *k, const struct buffer *b, int axis)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];

	for (int d = 0; d < p->tensors.v[n->ref].rank; d++)
		if (index_value_has(p, &n->index[d], axis))
			return true;
	return false;
}

/* Adds the axes of the value that is added to a dimension's index. Neighbours along them are anywhere in the tensor. */
static void add_value_axes(const struct kernel *k, const struct buffer *b, const struct index_expr *x, bool last,
	struct shape2 *s)
{
	const struct node *v = &k->plan->graph->program->nodes.v[index_value(x)];
	int *n = last ? &s->ncol : &s->nrow, *axes = last ? s->col : s->row;

	for (int i = 0; i < v->naxes; i++) {
		if (ring_axis_extent(k, b, v->axis[i]) == 1 || ints_hold(s->row, s->nrow, v->axis[i]) ||
		    ints_hold(s->col, s->ncol, v->axis[i]))
			continue;
		axes[*n] = v->axis[i];
		(last ? s->col_share : s->row_share)[(*n)++] = 1;
	}
}

/* Has the node's value several elements for the tile? */
static bool moves_in_tile(const struct kernel *k, const struct buffer *b, int node)
{
	const struct node *n = &k->plan->graph->program->nodes.v[node];

	for (int i = 0; i < n->naxes; i++)
		if (ring_axis_extent(k, b, n->axis[i]) > 1)
			return true;
	return false;
}

/* Does the term take one element of the tensor for each `div` neighbours, so that the ring has as many as a box? */
static bool takes_chunks(const struct kernel *k, const struct buffer *b, const struct index_term *t)
{
	int64_t tile = ring_axis_extent(k, b, t->axis);

	return t->div > 1 && !t->mod && t->axis != buffer_split_axis(k, b) && !is_axis_of_value(k, b, t->axis) &&
		share_of(k, b, t) == min_i64(t->div, tile);
}

/* Do the terms that move in the tile, the greatest coefficient first, go over neighbours one after the other, as b * 128 + j with
 * all 128 of j? */
static bool is_one_run(const struct kernel *k, const struct buffer *b, const struct index_expr *x)
{
	int64_t below = 1;

	for (int i = x->n - 1; i >= 0; i--) {
		const struct index_term *t = &x->term[i];

		if (ring_axis_extent(k, b, t->axis) == 1)
			continue;
		if (t->coef != below || t->div != 1 || t->mod)
			return false;
		below *= ring_axis_extent(k, b, t->axis);
	}
	return true;
}

/* How many elements apart are those that the index takes of the dimension: 2 * t and what is fixed; or of what neighbours a
 * block consists, of which a tile has some of several: a * 256 + b. 1: none of both. */
static int64_t step_of(const struct kernel *k, const struct buffer *b, const struct index_expr *x)
{
	const struct index_term *most = NULL, *least = NULL;
	const struct program *p = k->plan->graph->program;
	int moving = 0;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		if (ring_axis_extent(k, b, t->axis) == 1)
			continue;
		if (t->div != 1 || t->mod || p->axes.v[t->axis].packs != NONE)
			return 1;
		most = !most || t->coef > most->coef ? t : most;
		least = !least || t->coef <= least->coef ? t : least;
		moving++;
	}
	if (moving == 1)
		return most->coef;
	return moving == 2 && x->n == 2 && !x->k && most == &x->term[0] && least->coef == 1 &&
		p->axes.v[least->axis].size <= most->coef && !p->axes.v[least->axis].multiple ? most->coef : 1;
}

static bool is_never_negative(const struct index_expr *x)
{
	bool never = x->k >= 0;

	for (int i = 0; i < x->n; i++)
		never &= x->term[i].coef > 0;
	return never;
}

int64_t lower_split_dimension(const struct kernel *k, int buffer, int d)
{
	const struct buffer *b = &k->plan->graph->buffers.v[buffer];
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	const struct axis *of = &p->axes.v[t->dim[d]];
	int64_t by;

	if (d == t->rank - 1 || has_index_values(n) || is_one_run(k, b, &n->index[d]))
		return 1;
	by = step_of(k, b, &n->index[d]);
	return by > 1 && (!(by & (by - 1)) || is_never_negative(&n->index[d])) && !of->multiple && of->size % by == 0 &&
		of->size > by ? by : 1;		/* with one block the map would have no second dimension */
}

/* Adds the axes of one dimension's index. Returns whether the copy engine can load it: neighbours, or every second one of them, or
 * some of several blocks of them (lower_split_dimension). */
static bool add_dimension(const struct kernel *k, const struct buffer *b,
	const struct index_expr *x, bool last, struct shape2 *s)
{
	const struct node *of = &k->plan->graph->program->nodes.v[b->node];
	int *n = last ? &s->ncol : &s->nrow, *axes = last ? s->col : s->row, before = *n;
	int64_t *share = last ? s->col_share : s->row_share;
	bool plain = !x->value || !moves_in_tile(k, b, index_value(x)), operand = lower_is_shared_operand(k, buffer_index(k, b)), chunks = false;

	if (x->value)
		add_value_axes(k, b, x, last, s);
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		int known = NONE;

		if (ring_axis_extent(k, b, t->axis) == 1)
			continue;
		plain &= takes_chunks(k, b, t) && !has_index_values(of) ? t->coef == 1 : t->div == 1 && !t->mod;
		chunks |= t->div > 1;
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
		share[(*n)++] = is_axis_of_value(k, b, t->axis) ? 1 : share_of(k, b, t);
	}
	/* an operand has columns, be it one */
	for (int i = 0; i < x->n && last && !*n && operand; i++)
		for (int j = 0; j < b->naxes && !*n; j++)
			if (b->axis[j] == x->term[i].axis) {
				axes[*n] = x->term[i].axis;
				share[(*n)++] = 1;
			}
	return plain && (chunks ? *n - before <= 1 : is_one_run(k, b, x) ||
		(!last && lower_split_dimension(k, buffer_index(k, b), (int)(x - of->index)) > 1));
}

/* Bits of a chunk: the copy engine takes complete chunks of a tensor's rows. */
static int chunk_bits(const struct kernel *k)
{
	return 8 * k->target->shared.chunk;
}

/* Does every box begin where a chunk of the tensor's rows does? x: the index in a dimension with `below` elements for each
 * of its values. */
static bool begins_aligned(const struct kernel *k, const struct buffer *b, const struct index_expr *x, int64_t below)
{
	const struct graph *g = k->plan->graph;
	int64_t bits = dtype_bits(b->type) * below;

	if (x->value && program_value_step(g->program, index_value(x)) * bits % chunk_bits(k))
		return false;
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		bool stands = ring_axis_extent(k, b, t->axis) < g->program->axes.v[t->axis].size;
		bool in_parts = t->axis == buffer_split_axis(k, b);

		int64_t tile = g->extents.tile[t->axis], by = tile % t->div ? 1 : tile / t->div;

		if (stands && t->coef * by * bits % chunk_bits(k))
			return false;
		if (in_parts && t->coef * ring_slice_extent(k, b, t->axis) * bits % chunk_bits(k))
			return false;
	}
	return x->k * bits % chunk_bits(k) == 0;
}

bool lower_rows_aligned(const struct kernel *k, const struct buffer *b, int merged)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	int64_t below = 1;

	for (int d = t->rank - 1; d >= t->rank - merged; d--) {
		if (!begins_aligned(k, b, &n->index[d], below))
			return false;
		below *= axis_divisor(&p->axes.v[t->dim[d]]);
	}
	return t->rank == merged || dtype_bits(t->type) * below % chunk_bits(k) == 0;
}

/* boxes of rows that values name ------------------------------------------------ */

enum { VALUE_DEPTH = 6 };		/* nodes one behind the other that are looked at */

/* Neighbours along the axis for which the node's value is the same, from multiples of that number on: 16, if it is
 * loaded by n // 16. 0: all of them. */
static int64_t constant_run(const struct program *p, int node, int axis, int depth)
{
	const struct node *n = &p->nodes.v[node];
	int64_t run = 0;

	if (!node_has_axis(n, axis))
		return 0;
	if (depth == VALUE_DEPTH || (n->op != OP_LOAD && op_kind(n->op) != OP_ELEMENTWISE))
		return 1;
	for (int d = 0; n->op == OP_LOAD && d < p->tensors.v[n->ref].rank; d++)
		for (int i = 0; i < n->index[d].n; i++)
			if (n->index[d].term[i].axis == axis)
				run = gcd_i64(run, n->index[d].term[i].div);
	for (int i = 0; i < node_arity(n); i++)
		run = gcd_i64(run, constant_run(p, n->arg[i], axis, depth + 1));
	return run;
}

/* Which dimension the rows of a box lie along, and how many there can be. */
struct row_boxes {
	int axis;			/* of the tile's rows; NONE: there is one row */
	int dimensions;			/* along which the index advances with the row */
	int64_t run;			/* 0: all rows of the tile */
};

/* One term of an index of a dimension that is not the last one. False: the engine cannot follow it. */
static bool add_row_term(const struct kernel *k, const struct buffer *b, const struct index_term *t,
	struct row_boxes *r)
{
	if (ring_axis_extent(k, b, t->axis) == 1)
		return true;
	if (t->axis != r->axis || (t->div > 1 && t->mod))
		return false;
	r->dimensions += t->div == 1;
	if (t->div > 1 || t->mod)
		r->run = gcd_i64(r->run, t->div > 1 ? t->div : t->mod);
	return t->div > 1 || t->coef == 1;
}

/* Loads whose indices are values: the engine can bring boxes of as many rows as all values are the same for, if the
 * other dimensions advance by one element with each row of the box. *run: rows of a box; 0: all of the tile. */
static bool goes_in_row_boxes(const struct kernel *k, const struct buffer *b, const struct shape2 *s, int64_t *run)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	int rank = p->tensors.v[n->ref].rank;
	const struct index_expr *last = &n->index[rank - 1];
	struct row_boxes r = { .axis = s->nrow ? s->row[0] : NONE };
	int64_t tile = s->nrow ? ring_slice_extent(k, b, r.axis) : 1;
	bool one_run = !last->value && is_one_run(k, b, last);

	if (s->nrow > 1 || (s->ncol > 1 && !one_run) || (s->nrow && s->row_share[0] != 1) ||
	    (last->value && s->ncol && index_value_has(p, last, s->col[0])))
		return false;
	for (int i = 0; i < last->n; i++)
		if (ring_axis_extent(k, b, last->term[i].axis) > 1 && (last->term[i].axis == r.axis || (!one_run &&
		    (last->term[i].coef != 1 || last->term[i].div != 1 || last->term[i].mod))))
			return false;
	for (int d = 0; d < rank; d++) {
		for (int i = 0; i < n->index[d].n && d < rank - 1; i++)
			if (!add_row_term(k, b, &n->index[d].term[i], &r))
				return false;
		if (n->index[d].value && r.axis != NONE)
			r.run = gcd_i64(r.run, constant_run(p, index_value(&n->index[d]), r.axis, 0));
	}
	*run = r.run ? gcd_i64(r.run, tile) : 0;
	return r.dimensions == (r.axis != NONE) && (!*run || *run % shared_pattern_rows(&k->target->shared) == 0);
}

/* rows one by one ------------------------------------------------------------- */

/* The last dimension of the tensor goes along the columns, one element after the other. Rows may move in it by complete
 * chunks. */
static bool is_row_of_tensor(const struct kernel *k, const struct index_expr *last, const struct buffer *b, const struct shape2 *v)
{
	const struct program *p = k->plan->graph->program;
	bool along = false;

	if (v->ncol != 1 || v->col_share[0] != 1 || (last->value && index_value_has(p, last, v->col[0])))
		return false;
	for (int i = 0; i < last->n; i++) {
		const struct index_term *t = &last->term[i];

		if (t->axis == v->col[0]) {
			if (along || t->coef != 1 || t->div != 1 || t->mod)
				return false;
			along = true;
		} else if (ring_axis_extent(k, b, t->axis) > 1 && t->coef * dtype_bits(b->type) % chunk_bits(k)) {
			return false;
		}
	}
	return along;
}

bool lower_goes_by_rows(const struct kernel *k, const struct buffer *b, const struct shape2 *v,
	enum engine_obstacle *why)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	bool plain = t->rank && t->rank <= k->target->shared.box_rank &&
		is_row_of_tensor(k, &n->index[t->rank - 1], b, v);

	for (int d = 0; plain && d < t->rank - 1; d++)
		for (int i = 0; i < n->index[d].n; i++)
			plain &= n->index[d].term[i].axis != v->col[0];
	for (int d = 0; plain && d < t->rank - 1; d++)
		plain &= !n->index[d].value || !index_value_has(p, &n->index[d], v->col[0]);
	for (int i = 0; plain && i < v->nrow; i++)
		plain &= v->row_share[i] == 1;
	if (t->by_address)
		*why = OBSTACLE_ADDRESSES;
	else if (!plain)
		*why = OBSTACLE_ROW_INDICES;
	else if (!ends_with_tensor(k, b, n, v->col[0]) || (lower_is_contracted(k, buffer_index(k, b), v->col[0]) &&
		 ends_within_tile(k->plan->graph, p->tasks.v[n->task].loop, v->col[0])))
		*why = OBSTACLE_ZEROS;
	else if (!lower_rows_aligned(k, b, 1))
		*why = OBSTACLE_BEGIN;
	else
		return true;
	return false;
}

/* The most rows of a tile that are in one dimension of the tensor map. */
static int64_t most_in_dimension(const struct kernel *k, const struct buffer *b, const struct shape2 *s)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	int64_t most = 1;

	for (int d = 0; d < p->tensors.v[n->ref].rank - 1; d++) {
		bool split = lower_split_dimension(k, buffer_index(k, b), d) > 1;
		int64_t rows = 1;

		for (int i = 0; i < s->nrow; i++) {
			int64_t extent = ceil_div(ring_axis_extent(k, b, s->row[i]), s->row_share[i]);

			if (index_uses(&n->index[d], s->row[i]))
				rows = split ? max_i64(rows, extent) : rows * extent;
		}
		most = max_i64(most, rows);
	}
	return most;
}

/* Do products contract all axes of a side together, of which a tile has complete k steps, and are all tiles complete? */
static bool is_in_steps(const struct kernel *k, const struct buffer *b, const struct shape2 *s, bool rows)
{
	const struct program *p = k->plan->graph->program;
	int n = rows ? s->nrow : s->ncol;
	bool all = n > 1 && (rows ? s->rows : s->cols) % k_step_depth(k, b) == 0;

	for (int i = 0; i < n; i++) {
		int axis = rows ? s->row[i] : s->col[i];

		all &= lower_is_contracted(k, buffer_index(k, b), axis) &&
			axis_divisor(&p->axes.v[axis]) % ring_axis_extent(k, b, axis) == 0 &&
			!ends_within_tile(k->plan->graph, p->tasks.v[p->nodes.v[b->node].task].loop, axis);
	}
	return all;
}

/* the shape --------------------------------------------------------------------- */

bool lower_find_load_shape(const struct kernel *k, const struct buffer *b, struct shape2 *s, int64_t *run,
	enum engine_obstacle *why)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	bool plain = true, zeros = true;
	int rank = 0;

	*why = OBSTACLE_INDICES;
	*run = 0;
	*s = (struct shape2){ .rows = 1, .cols = 1, .full_axes = k->node_shape[b->node].full_axes };
	if (!t->rank)
		return false;
	for (int d = 0; d < t->rank; d++) {
		plain &= add_dimension(k, b, &n->index[d], d == t->rank - 1, s);
		rank += 1 + (lower_split_dimension(k, buffer_index(k, b), d) > 1);
	}
	for (int i = 0; i < s->nrow; i++)
		s->rows *= ceil_div(ring_axis_extent(k, b, s->row[i]), s->row_share[i]);
	for (int i = 0; i < s->ncol; i++)
		s->cols *= ceil_div(ring_axis_extent(k, b, s->col[i]), s->col_share[i]);
	if (!plain && (!has_index_values(n) || !goes_in_row_boxes(k, b, s, run)))
		return false;
	if (rank > k->target->shared.box_rank)
		return false;
	for (int i = 0; i < shape_rank(s); i++)
		zeros &= ends_with_tensor(k, b, n, shape_axis(s, i)) || is_in_steps(k, b, s, i < s->nrow);
	if (t->by_address)
		*why = OBSTACLE_ADDRESSES;
	else if (!zeros)
		*why = OBSTACLE_ZEROS;
	else if (!lower_rows_aligned(k, b, 1))
		*why = OBSTACLE_BEGIN;
	else if ((*run ? *run : most_in_dimension(k, b, s)) > k->target->shared.box_rows)
		*why = OBSTACLE_ROWS;
	else if (s->cols * dtype_bits(t->type) % chunk_bits(k) && !lower_is_shared_operand(k, buffer_index(k, b)))
		*why = OBSTACLE_CHUNKS;
	else
		return true;
	return false;
}

/* The rows or columns that a split load fills in the slot of all slices. They must be contiguous; the copy engine can
 * start only where the swizzle pattern does. */
enum err_code lower_find_boxes(const struct kernel *k, struct ring *r, const struct buffer *b, struct err *e)
{
	const struct shape2 *v = &r->shape;
	bool by_rows = v->nrow && v->row[0] == buffer_split_axis(k, b);
	int64_t part = (by_rows ? v->rows : v->cols) / b->slices;
	int64_t bytes = r->panel_cols * dtype_bits(b->type) / 8;

	if ((!by_rows && (!v->ncol || v->col[0] != buffer_split_axis(k, b))) ||
	    (by_rows ? v->rows : v->cols) % b->slices || (by_rows ? v->row_share : v->col_share)[0] != 1)
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' is loaded in slices that cannot "
			"share a ring, and read by one sTask; do not split its load", b->name);
	*(by_rows ? &r->first_row : &r->first_col) = b->slice * part;
	if (by_rows) {
		r->engine &= !r->run || part % r->run == 0;
		r->engine &= r->by_rows || ((!r->swizzle || part % shared_pattern_rows(&k->target->shared) == 0) &&
			part * bytes % k->target->shared.copy_align == 0);
		r->engine &= r->full_rows == v->rows;
		r->box_rows = part;
		r->box_bytes = part * bytes;
	} else {
		int64_t end = b->slice == b->slices - 1 ? r->full_cols : r->first_col + part;

		r->engine &= part % r->panel_cols == 0;
		r->boxes = (int)ceil_div(end - r->first_col, r->panel_cols);
	}
	return OK;
}

/* by threads ------------------------------------------------------------------- */

struct frag lower_ring_slice(const struct stask *s, const struct ring *r)
{
	struct frag f = { .height = r->shape.rows, .width = r->shape.cols, .rows = r->full_rows,
		.cols = r->full_cols };
	const struct shape2 *v = &r->shape;
	bool last = s->slice == s->slices - 1;

	for (int i = 0; i < shape_rank(v) && !r->one_slice; i++) {
		bool row = i < v->nrow;
		int64_t *part = row ? &f.height : &f.width, *full = row ? &f.rows : &f.cols;
		int64_t beyond = last ? *full - *part : 0;

		if (s->slices == 1 || shape_axis(v, i) != s->split_axis)
			continue;
		*part /= s->slices;
		*full = *part + beyond;
	}
	return f;
}

/* Of the last dimension's index the term of the axis whose neighbours in the tensor are neighbours in the ring's rows: of an
 * axis k, or of k // 32 where the ring has one element for each 32 of a tile. NULL: there is none. */
static const struct index_term *term_in_row(const struct kernel *k, const struct ring *r, const struct node *n)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	const struct index_expr *last = t->rank ? &n->index[t->rank - 1] : NULL;
	const struct index_term *found = NULL;
	int cols = r->shape.ncol, axis = cols ? r->shape.col[cols - 1] : NONE;

	if (!last || last->value || axis == NONE || p->axes.v[axis].packs != NONE)
		return NULL;
	for (int i = 0; i < last->n; i++) {
		const struct index_term *x = &last->term[i];

		if (x->axis == axis && (found || x->coef != 1 || x->div != r->shape.col_share[cols - 1]))
			return NULL;
		found = x->axis == axis ? x : found;
	}
	return found;
}

/* Do `run` of them begin at a multiple of that in the ring, and are all of one value of other axes of the columns, and
 * of the tile? */
static bool in_runs(const struct kernel *k, const struct stask *s, const struct ring *r, const struct index_term *in_row, int64_t run)
{
	const struct buffer *b = &k->plan->graph->buffers.v[r->buffer];
	int64_t extent = ring_axis_extent(k, b, in_row->axis), tile = k->plan->graph->extents.tile[in_row->axis];
	int64_t sizes[] = { r->shape.cols, lower_ring_slice(s, r).cols, r->panel_cols,
		r->shape.ncol > 1 ? extent / in_row->div : 0,
		r->shape.full_axes >> in_row->axis & 1 ? 0 : tile / in_row->div };

	if (extent % in_row->div || tile % in_row->div)
		return false;

	for (int i = 0; i < LEN(sizes); i++)
		if (sizes[i] % run)
			return false;
	return true;
}

/* ... and in memory, too, where all of them are there or none? */
static bool in_aligned_runs(const struct kernel *k, const struct node *n, const struct index_term *in_row, int64_t run)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[n->ref];
	const struct index_expr *last = &n->index[t->rank - 1];

	for (int i = 0; i < last->n; i++)
		if (&last->term[i] != in_row && last->term[i].coef % run)
			return false;
	return !ends_within_tile(k->plan->graph, p->tasks.v[n->task].loop, in_row->axis) &&
		axis_divisor(&p->axes.v[in_row->axis]) % (run * in_row->div) == 0 &&
		axis_divisor(&p->axes.v[t->dim[t->rank - 1]]) % run == 0 &&
		last->k % run == 0 && in_row->mod % run == 0;
}

static int element_bytes(const struct kernel *k, const struct stask *s)
{
	return dtype_bits(k->plan->graph->program->tensors.v[last_node_of(k, s)->ref].type) / 8;
}

const struct ring *lower_loaded_ring(const struct kernel *k, int task)
{
	int buffer = stask_at(k, task)->writes.v[0];

	if (k->ring_of[buffer] != NONE)
		return &k->rings.v[k->ring_of[buffer]];
	for (int i = 0; i < k->rings.n; i++)
		if (lower_staged_in(k, k->rings.v[i].buffer) == buffer)
			return &k->rings.v[i];
	BUG("'%s' loads to no ring", stask_at(k, task)->name);
}

int lower_copy_width(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	const struct ring *r = lower_loaded_ring(k, task);
	const struct node *n = last_node_of(k, s);
	const struct index_term *in_row = term_in_row(k, r, n);
	int bytes = element_bytes(k, s);

	for (int run = !in_row || !bytes ? 1 : k->target->shared.chunk / bytes; run > 1 && run * bytes >= 4; run /= 2)
		if (in_runs(k, s, r, in_row, run) && in_aligned_runs(k, n, in_row, run))
			return run;
	return 1;
}

int lower_unaligned_width(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	const struct ring *r = &k->rings.v[k->ring_of[s->writes.v[0]]];
	const struct node *n = last_node_of(k, s);
	const struct tensor *t = &k->plan->graph->program->tensors.v[n->ref];
	const struct index_expr *last = t->rank ? &n->index[t->rank - 1] : NULL;
	const struct index_term *in_row = term_in_row(k, r, n);
	int bytes = element_bytes(k, s), run = bytes ? k->target->shared.chunk / bytes : 1;
	bool plain = in_row && in_row->div == 1 && last->n == 1 && r->shape.ncol == 1 && !in_row->mod;

	return plain && run > 1 && bytes < 4 && in_runs(k, s, r, in_row, run) ? run : 1;
}

/* The threads of a warp copy to contiguous bytes, so they must have complete rows of complete panels; and all warps of
 * the lane the same number of copies, as they count these. Offsets of elements in the tensor have 31 bits. */
enum dma_obstacle lower_dma_obstacle(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	int buffer = s->kind == TASK_LOAD ? s->writes.v[0] : NONE, at_once = k->target->dma_bytes, bytes;

	if (buffer == NONE || k->ring_of[buffer] == NONE || !at_once ||
	    target_seen(k->target, seu_of(k, task), true) != SEEN_COUNTED)
		return DMA_UNIT;
	const struct ring *r = &k->rings.v[k->ring_of[buffer]];
	const struct program *p = k->plan->graph->program;
	int tensor = last_node_of(k, s)->ref;
	struct frag f = lower_ring_slice(s, r);
	int64_t warp = k->target->warp, threads = warp * lane_warps(k->plan, lane_of(k, task)), row;

	bytes = element_bytes(k, s);
	row = r->panel_cols * bytes;
	if (p->tensors.v[tensor].by_address)
		return DMA_ADDRESSES;
	if (!bytes || at_once % bytes || lower_copy_width(k, task) * bytes < at_once || row % at_once)
		return DMA_WORDS;
	if (tensor_elements(p, tensor) > INT32_MAX / bytes)
		return DMA_SIZE;
	if (f.cols % r->panel_cols || r->first_col % r->panel_cols)
		return DMA_PANELS;
	return f.rows * row % (at_once * warp) || f.rows * f.cols * bytes % (at_once * threads) ? DMA_PARTS : DMA_NONE;
}

int64_t lower_dma_copies(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	struct frag f;

	if (lower_dma_obstacle(k, task) != DMA_NONE)
		return 0;
	f = lower_ring_slice(s, lower_loaded_ring(k, task));
	return f.rows * f.cols * element_bytes(k, s) /
		(k->target->dma_bytes * (int64_t)k->target->warp * lane_warps(k->plan, lane_of(k, task)));
}

bool lower_copies_arrive(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);
	int buffer = s->writes.v[0];

	/* a replica would wait only for copies of its own last tiles, and those of others may be in flight */
	if (!is_async_load(k, task) || k->plan->lanes.v[lane_of(k, task)].replicas > 1 ||
	    k->rings.v[k->ring_of[buffer]].engine || lower_copy_width(k, task) * element_bytes(k, s) < 4)
		return false;
	for (int t = 0; t < k->plan->graph->tasks.n; t++)	/* a lane that waits for its copies reads them itself */
		if (stask_reads(stask_at(k, t), buffer) && lane_of(k, t) == lane_of(k, task))
			return false;
	return true;
}
