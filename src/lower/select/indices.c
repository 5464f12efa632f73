/* Indices and conditions of elements: along axes and in tensors. Divisions are simplified, because the compiler does
 * not know that COL0 + E, an element's column within its group, is less than the group's width. */
#include "lower/select/indices.h"

enum { VECTOR_BYTES = 16, WORD_BYTES = 4, HALF_BYTES = 2 };

/* quotients ---------------------------------------------------------------------- */

const struct frag_layout *current_layout(const struct lowering *c)
{
	return c->element_layout ? c->element_layout : c->lane->layout;
}

static const struct num *sum_or_null(struct lowering *c, const struct num *x, const struct num *y)
{
	return x && y ? ADD(x, y) : x ? x : y;
}

static bool is_multiple(const struct num *x, int64_t unit)
{
	if (x->op == NUM_MUL)
		return is_multiple(x->a, unit) || is_multiple(x->b, unit);
	return num_is_const(x) && x->k % unit == 0;
}

/* Is it where a tile begins, at a multiple of the unit? */
static bool begins_at_multiple(const struct lowering *c, const struct num *x, int64_t unit)
{
	return x->op == NUM_VAR && x->var == VAR_LO && c->g->extents.tile[x->of] % unit == 0;
}

struct split_sum split_multiples(struct lowering *c, const struct num *x, int64_t unit)
{
	struct split_sum a, b;

	if (x->op != NUM_ADD)
		return is_multiple(x, unit) || (c->fetches && begins_at_multiple(c, x, unit)) ?
			(struct split_sum){ x, NULL } : (struct split_sum){ NULL, x };
	a = split_multiples(c, x->a, unit);
	b = split_multiples(c, x->b, unit);
	return (struct split_sum){ sum_or_null(c, a.multiple, b.multiple), sum_or_null(c, a.others, b.others) };
}

bool is_column_in_group(const struct num *x)
{
	return x && x->op == NUM_ADD && x->a->op == NUM_VAR && x->a->var == VAR_COL0 &&
		x->b->op == NUM_VAR && x->b->var == VAR_E;
}

const struct num *divide_terms(struct lowering *c, const struct num *x, int64_t by)
{
	if (x->op == NUM_ADD)
		return ADD(divide_terms(c, x->a, by), divide_terms(c, x->b, by));
	if (x->op == NUM_MUL && is_multiple(x->a, by))
		return MUL(divide_terms(c, x->a, by), x->b);
	if (x->op == NUM_MUL && is_multiple(x->b, by))
		return MUL(x->a, divide_terms(c, x->b, by));
	/* The first index of a tile is such a term, too (begins_at_multiple), and no constant. */
	return x->op == NUM_CONST ? N(c, x->k / by) : DIV(x, N(c, by));
}

static const struct num *divide_sum(struct lowering *c, const struct num *x, int64_t by)
{
	return split_multiples(c, x, by).others ? DIV(x, N(c, by)) : divide_terms(c, x, by);
}

/* Can the terms of x that number the group and the column within it, COL0 + E, be divided separately? That leaves no
 * division that depends on the element if `by` is a multiple of the group's width. */
static bool can_split_by_group(const struct lowering *c, const struct split_sum *x, int64_t by)
{
	int cols = current_layout(c)->cols;

	return c->reads_element && is_column_in_group(x->others) && (by % cols == 0 || cols % by == 0);
}

static int64_t alignment_of_var(const void *ctx, enum var v, int of)
{
	const struct lowering *c = ctx;
	int64_t k = 1;

	if (v == VAR_E)				/* the first of neighbours has e = 0 */
		return INT32_MAX / 2 + 1;
	if (v == VAR_SLOT || v == VAR_SHARED)
		return VECTOR_BYTES;
	if (v == VAR_COL0)
		k = current_layout(c)->col.step;
	if (v == VAR_LO)			/* tiles begin at multiples of their extent */
		k = c->g->extents.tile[of];
	return k & -k;
}

/* x with the first of a thread's neighbours instead of the one at hand. */
static const struct num *first_neighbour(struct lowering *c, const struct num *x)
{
	if (x->op != NUM_ADD)
		return x->op == NUM_VAR && x->var == VAR_E ? N(c, 0) : x;
	if (x->b->op == NUM_VAR && x->b->var == VAR_E)
		return x->a;
	return ADD(first_neighbour(c, x->a), first_neighbour(c, x->b));
}

/* Have all neighbours of a thread the same quotient? They do if as many as they are divide both their first one and
 * `by`. */
static bool divides_neighbours(const struct lowering *c, const struct num *x, int64_t by)
{
	int pair = current_layout(c)->pair;
	int64_t slope;

	return !c->fetches && pair > 1 && by % pair == 0 && num_slope(x, VAR_E, &slope) && slope == 1 &&
		num_alignment(x, pair, alignment_of_var, c) == pair;
}

static const struct num *divide(struct lowering *c, const struct num *x, int64_t by)
{
	return DIV(divides_neighbours(c, x, by) ? first_neighbour(c, x) : x, N(c, by));
}

static const struct num *modulo(struct lowering *c, const struct num *x, int64_t by)
{
	return divides_neighbours(c, x, by) ? ADD(MOD(first_neighbour(c, x), N(c, by)), V(c, VAR_E, NONE)) :
		MOD(x, N(c, by));
}

static const struct num *current_col(struct lowering *c, const struct num *first);

/* Is x the column of the element at hand, of which so many multiples of interwoven groups are divided? */
static bool divides_woven(struct lowering *c, const struct num *x, int64_t by)
{
	const struct frag_layout *l = current_layout(c);

	return l->woven && by % (l->woven * l->cols) == 0 && !c->k_step_cols && num_alike(x, current_col(c, NULL));
}

const struct num *quotient(struct lowering *c, const struct num *x, int64_t by)
{
	int cols = current_layout(c)->cols;
	struct split_sum a = split_multiples(c, x, cols);
	const struct num *quot;

	if (divides_woven(c, x, by))
		return DIV(V(c, VAR_COL_GROUP, NONE), N(c, by / cols));
	if (by == 1 || !can_split_by_group(c, &a, by))
		return divide(c, x, by);
	quot = a.multiple ? divide_sum(c, a.multiple, by) : N(c, 0);
	return by % cols == 0 ? quot : ADD(quot, divide(c, a.others, by));
}

static const struct num *remainder_of(struct lowering *c, const struct num *x, int64_t by)
{
	int cols = current_layout(c)->cols;
	struct split_sum a = split_multiples(c, x, cols);

	if (by == 1 || !can_split_by_group(c, &a, by))
		return modulo(c, x, by);
	if (by % cols || !a.multiple)
		return by % cols ? modulo(c, a.others, by) : a.others;
	return ADD(MOD(a.multiple, N(c, by)), a.others);
}

/* axes ------------------------------------------------------------------------- */

int buffer_of_node(const struct lowering *c, const struct stask *s, int node)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].node == node && stask_touches(s, i))
			return i;
	return NONE;
}

int buffer_of_carry(const struct lowering *c, const struct stask *s, int carry)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].carry == carry && stask_touches(s, i))
			return i;
	return NONE;
}

int product_buffer(const struct lowering *c, const struct stask *s)
{
	int carry = last_node_of(c->k, s)->ref;

	return carry != NONE ? buffer_of_carry(c, s, carry) : buffer_of_node(c, s, last_node(c->g, s));
}

const struct shape2 *buffer_shape(const struct lowering *c, const struct buffer *b)
{
	return b->node == NONE ? &c->k->carry_shape[b->carry] : &c->k->node_shape[b->node];
}

bool has_full_axis(const struct shape2 *shape, int axis)
{
	return shape && (shape->full_axes >> axis & 1);
}

const struct num *axis_first(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	const struct axis *a = &c->p->axes.v[axis];
	enum axis_role role = program_axis_role(c->p, s->phase, axis);

	if (has_full_axis(shape, axis))
		return N(c, 0);
	if (a->packs != NONE)		/* the word that holds the packed axis's first element */
		return DIV(axis_first(c, s, shape, a->packs), N(c, a->per));
	if (role == AXIS_BATCH || role == AXIS_GRID || program_axis_bound(c->p, s->loop, axis))
		return V(c, VAR_LO, axis);
	return N(c, 0);
}

int64_t axis_share(const struct shape2 *shape, int axis)
{
	for (int i = 0; i < shape_rank(shape); i++)
		if (shape_axis(shape, i) == axis)
			return i < shape->nrow ? shape->row_share[i] : shape->col_share[i - shape->nrow];
	return 1;
}

int64_t axis_extent(const struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	int64_t x = has_full_axis(shape, axis) ? c->p->axes.v[axis].size : c->g->extents.tile[axis];

	if (axis == s->split_axis)
		x /= s->slices;
	return ceil_div(x, axis_share(shape, axis));
}

/* The index along one axis, from the flat number of a row or column. */
static const struct num *axis_part_of_flat(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const int *axes, int n, int axis, const struct num *flat)
{
	int64_t below = 1;
	int i = n - 1;

	for (; axes[i] != axis; i--)
		below *= axis_extent(c, s, shape, axes[i]);
	if (n == 1)
		return flat;
	if (i == 0)
		return quotient(c, flat, below);
	return remainder_of(c, quotient(c, flat, below), axis_extent(c, s, shape, axis));
}

static const struct num *current_row(struct lowering *c)
{
	const struct frag_layout *l = current_layout(c);
	int high = layout_block_rows(l, c->lane->warps);
	const struct num *first = sum_or_null(c, c->first_row, MUL(V(c, VAR_RB, NONE), N(c, high)));
	const struct num *row = ADD(first, V(c, VAR_ROW0, NONE));

	return l->halves > 1 ? ADD(row, MUL(N(c, l->half), V(c, VAR_H, NONE))) : row;
}

/* First of so many columns that the part of the lane has to which the thread belongs; NULL: 0, as the layout has one.
 */
static const struct num *first_in_layout(struct lowering *c, const struct frag_layout *l, int64_t cols)
{
	int threads = layout_row_warps(l, c->lane->warps) * c->k->target->warp;

	if (layout_parts(l) == 1)
		return NULL;
	return MUL(DIV(V(c, VAR_THREAD, NONE), N(c, threads)), N(c, cols));
}

static const struct num *first_of_part(struct lowering *c, int64_t cols)
{
	return first_in_layout(c, current_layout(c), cols);
}

const struct num *first_column_of_part(struct lowering *c, const struct frag *f)
{
	return first_in_layout(c, f->layout, frag_part_cols(f));
}

const struct num *part_first_col(struct lowering *c, const struct stask *s, const struct shape2 *shape)
{
	const struct frag_layout *l = current_layout(c);
	int cols = layout_group_cols(l);
	int64_t all = 1;

	for (int i = 0; i < shape->ncol; i++) {
		all *= axis_extent(c, s, shape, shape->col[i]);
		if (c->k->contracted >> shape->col[i] & 1)
			cols = l->deep * layout_parts(l);
	}
	return first_of_part(c, round_up(all, cols) / layout_parts(l));
}

const struct num *first_of_group(struct lowering *c, const struct frag_layout *l)
{
	const struct num *group = V(c, VAR_COL_GROUP, NONE);

	if (!l->woven)
		return MUL(N(c, l->cols), group);
	return ADD(MUL(N(c, l->pair), group), MUL(N(c, l->woven * (l->cols - l->pair)), DIV(group, N(c, l->woven))));
}

/* Of a fragment whose columns begin at `first` for the thread's part of the lane; NULL: at 0. */
static const struct num *current_col(struct lowering *c, const struct num *first)
{
	const struct num *group = sum_or_null(c, first, first_of_group(c, current_layout(c)));
	const struct num *col = ADD(ADD(group, V(c, VAR_COL0, NONE)), V(c, VAR_E, NONE));

	return c->k_step_cols ? ADD(MUL(N(c, c->k_step_cols), V(c, VAR_KS, NONE)), col) : col;
}

const struct num *axis_local_index(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	const struct num *at = N(c, 0);
	int packs = c->p->axes.v[axis].packs;

	if (c->axis_index[axis])
		at = c->axis_index[axis];
	else if (ints_hold(shape->row, shape->nrow, axis))
		at = axis_part_of_flat(c, s, shape, shape->row, shape->nrow, axis, current_row(c));
	else if (ints_hold(shape->col, shape->ncol, axis))
		at = axis_part_of_flat(c, s, shape, shape->col, shape->ncol, axis,
			current_col(c, part_first_col(c, s, shape)));
	else if (packs != NONE)		/* the shape has the packed axis, not that of its words */
		return quotient(c, axis_local_index(c, s, shape, packs), c->p->axes.v[axis].per);
	else if (c->contracted && ints_hold(c->contracted->row, c->contracted->nrow, axis))
		at = axis_part_of_flat(c, s, c->contracted, c->contracted->row, c->contracted->nrow, axis,
			V(c, VAR_KS, NONE));
	if (axis_share(shape, axis) > 1)
		at = MUL(at, N(c, axis_share(shape, axis)));
	if (axis == s->split_axis && s->slices > 1)
		at = ADD(at, N(c, s->slice * axis_extent(c, s, shape, axis) * axis_share(shape, axis)));
	return at;
}

bool axis_is_ragged(const struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	return !has_full_axis(shape, axis) && (axis_divisor(&c->p->axes.v[axis]) % c->g->extents.tile[axis] ||
		ends_within_tile(c->g, s->loop, axis));
}

const struct num *axis_size(struct lowering *c, int axis)
{
	return c->p->axes.v[axis].multiple ? V(c, VAR_SIZE, axis) : N(c, c->p->axes.v[axis].size);
}

const struct num *axis_tiles(struct lowering *c, int axis)
{
	int64_t tile = c->g->extents.tile[axis];

	if (!c->p->axes.v[axis].multiple)
		return N(c, extent_tiles(&c->g->extents, axis));
	return DIV(ADD(V(c, VAR_SIZE, axis), N(c, tile - 1)), N(c, tile));
}

const struct num *axis_end(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	int loop = has_full_axis(shape, axis) ? NONE : program_length_loop(c->p, s->loop, axis);

	return loop == NONE ? axis_size(c, axis) : V(c, VAR_END, loop);
}

static const struct num *before_end(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	return NUM2(LT, ADD(axis_first(c, s, shape, axis), axis_local_index(c, s, shape, axis)),
		axis_end(c, s, shape, axis));
}

const struct num *within_ends(struct lowering *c,
	const struct stask *s, const struct shape2 *shape, const int *axes, int n)
{
	const struct num *all = N(c, 1);

	for (int i = 0; i < n; i++)
		if (axis_is_ragged(c, s, shape, axes[i]))
			all = NUM2(BOTH, all, before_end(c, s, shape, axes[i]));
	return all;
}

const struct num *inside_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f, uint64_t ends)
{
	const struct num *all = N(c, 1);

	if (f->height < f->rows)
		all = NUM2(BOTH, all, NUM2(LT, current_row(c), N(c, f->height)));
	if (f->width < f->cols) {
		const struct num *col = current_col(c, first_of_part(c, f->cols / layout_parts(current_layout(c))));

		/* all of a thread's neighbours are inside, or none, and may be read at once */
		if (c->reads_window && f->width % current_layout(c)->pair == 0)
			col = first_neighbour(c, col);
		all = NUM2(BOTH, all, NUM2(LT, col, N(c, f->width)));
	}
	for (int i = 0; i < shape_rank(shape); i++) {
		int axis = shape_axis(shape, i);

		if (ends >> axis & 1 && axis_is_ragged(c, s, shape, axis))
			all = NUM2(BOTH, all, mark_axis_end(c, s, shape, axis, before_end(c, s, shape, axis)));
	}
	return all;
}

/* What the term divides, of an element behind the first one. Where the tile begins at a multiple, elements of a thread
 * differ by constants once what is a multiple is out of the quotient: compilers do not know what divides it, and had
 * two registers for each address. */
static const struct num *divide_term(struct lowering *c, const struct index_term *t, const struct num *first,
	const struct num *local)
{
	int64_t unit = (int64_t)t->div * (t->mod ? t->mod : 1);
	bool splits = local && begins_at_multiple(c, first, unit);
	struct split_sum parts = { NULL, local ? ADD(first, local) : first };
	const struct num *at;

	if (local && t->div == 1 && begins_at_multiple(c, first, t->mod) && c->g->extents.tile[t->axis] == t->mod)
		return local;		/* a window: the index within the tile */
	if (splits)
		parts = split_multiples(c, local, unit);
	at = parts.others ? parts.others : N(c, 0);
	if (t->div != 1)
		at = DIV(at, N(c, t->div));
	if (t->mod)
		return MOD(at, N(c, t->mod));
	if (parts.multiple)
		at = ADD(divide_terms(c, parts.multiple, unit), at);
	return splits ? ADD(DIV(first, N(c, unit)), at) : at;
}

const struct num *tensor_index(struct lowering *c, const struct stask *s, const struct index_expr *x,
	const struct shape2 *shape, bool local)
{
	const struct num *sum = x->k || !x->n ? N(c, x->k) : NULL;

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		const struct num *at = c->read_at[t->axis] ? c->read_at[t->axis] : axis_first(c, s, shape, t->axis);
		const struct num *behind = NULL;
		int64_t by = t->coef;

		if (local && !c->read_at[t->axis])
			behind = axis_local_index(c, s, shape, t->axis);
		if (t->div != 1 && !t->mod && !behind && t->coef % t->div == 0 && begins_at_multiple(c, at, t->div)) {
			by /= t->div;		/* where the tile begins */
		} else if (t->div != 1 || t->mod) {
			at = divide_term(c, t, at, behind);
		}
		if (t->div == 1 && !t->mod && behind)
			at = ADD(at, behind);
		if (by != 1)
			at = MUL(N(c, by), at);
		sum = sum ? ADD(sum, at) : at;
	}
	return sum;
}

const struct num *row_major_offset(struct lowering *c, const struct stask *s,
	const struct shape2 *from, const struct shape2 *to)
{
	const struct num *flat = N(c, 0);

	for (int i = 0; i < shape_rank(from); i++) {
		int axis = shape_axis(from, i);
		const struct num *elsewhere = c->read_at[axis], *at = elsewhere ? elsewhere : axis_local_index(c, s, to, axis);

		if (!elsewhere && has_full_axis(from, axis) && !has_full_axis(to, axis) && !(c->k->one_tile >> axis & 1))
			at = ADD(axis_first(c, s, to, axis), at);
		if (!elsewhere && axis == s->split_axis && s->slices > 1)
			at = SUB(at, N(c, s->slice * axis_extent(c, s, from, axis)));
		flat = i ? ADD(MUL(flat, N(c, axis_extent(c, s, from, axis))), at) : at;
	}
	return flat;
}

/* addresses -------------------------------------------------------------------- */

int together_at(const struct lowering *c, const struct num *address, enum dtype type)
{
	const struct frag_layout *l = current_layout(c);
	int bytes = dtype_bits(type) / 8, most = bytes ? VECTOR_BYTES / bytes : 1;
	int64_t by, aligned;

	if (dtype_bits(type) % 8 || !num_slope(address, VAR_E, &by) || by != bytes)
		return 1;
	aligned = num_alignment(address, VECTOR_BYTES, alignment_of_var, c) / bytes;
	while (most > 1 && (l->pair % most || !aligned || aligned % most))
		most /= 2;
	/* less than a word only where an operand is made, of all that a thread has of a group */
	return most * bytes < WORD_BYTES && !(c->makes && most == l->pair && most * bytes == HALF_BYTES) ? 1 : most;
}

bool address_steps(const struct lowering *c, const struct num *address, int n, int64_t *by, int64_t *aligned)
{
	return num_steps(address, VAR_COL_GROUP, n, alignment_of_var, c, by, aligned);
}

bool begins_with_pair(const struct lowering *c, const struct num *index)
{
	int64_t by;

	return num_slope(index, VAR_E, &by) && by == 1 && num_alignment(index, 2, alignment_of_var, c) == 2;
}

/* accesses by threads ----------------------------------------------------------- */

/* Condition: the spread gives this thread the number 0. */
static const struct num *first_of_spread(struct lowering *c, const struct num *thread, const struct spread *s)
{
	return NUM2(EQ, MOD(s->div > 1 ? DIV(thread, N(c, s->div)) : thread, N(c, s->mod)), N(c, 0));
}

const struct num *one_holder_condition(struct lowering *c, enum frag_kind kind)
{
	const struct frag_layout *l = c->lane->layout;
	const struct num *thread = V(c, VAR_THREAD, NONE), *in_part = thread;
	int threads = layout_row_warps(l, c->lane->warps) * c->k->target->warp;

	switch (kind) {
	case FRAG_FULL:
		break;
	case FRAG_ROW:
		if (layout_parts(l) > 1)		/* all parts have it */
			return NUM2(BOTH, NUM2(LT, thread, N(c, threads)), first_of_spread(c, thread, &l->col));
		return first_of_spread(c, thread, &l->col);
	case FRAG_COL:
		if (l->across_warps)
			break;
		if (layout_parts(l) > 1)		/* each part has others */
			in_part = MOD(thread, N(c, threads));
		if (spread_is_top(&l->row, c->k->target))	/* the first threads of the first warp */
			return NUM2(LT, in_part, N(c, l->row.div));
		return NUM2(BOTH, NUM2(LT, in_part, N(c, c->k->target->warp)), first_of_spread(c, thread, &l->row));
	case FRAG_WORDS:
		break;
	case FRAG_SCALAR:
		return NUM2(EQ, thread, N(c, 0));
	}
	return N(c, 1);
}

const struct num *owner_condition(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f)
{
	return NUM2(BOTH, one_holder_condition(c, f->kind), inside_condition(c, s, shape, f, 0));
}

/* Is it the index along the axis, neither more nor less? */
static bool is_index_along(const struct index_expr *x, int axis)
{
	const struct index_term *t = &x->term[0];

	return !x->value && x->n == 1 && !x->k && t->axis == axis && t->coef == 1 && t->div == 1 && !t->mod;
}

bool index_may_leave(const struct lowering *c, const struct index_expr *x, int dim)
{
	int64_t least[AXES_MAX] = { 0 }, most[AXES_MAX], size = c->p->axes.v[dim].size;
	struct index_range r;

	if (x->value)
		return true;
	if (c->p->axes.v[dim].multiple)
		return !is_index_along(x, dim);
	for (int i = 0; i < c->p->axes.n; i++) {
		most[i] = c->p->axes.v[i].size - 1;
		if (c->p->axes.v[i].packs != NONE && index_uses(x, i))
			return true;	/* unknown, as the axis counts packed words */
	}
	r = index_bounds(x, least, most);
	return r.lo < 0 || r.hi >= size;
}

void set_move(struct lowering *c, struct role_op *o, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct num *inside)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	struct role_index *out = o->u.move.index;

	o->u.move.tensor = n->ref;
	o->u.move.rank = t->rank;
	o->u.move.type = t->type;
	o->u.move.adds = n->adds;
	for (int d = 0; d < t->rank; d++) {
		const struct num *i = V(c, VAR_INDEX, d), *within;

		out[d].at = tensor_index(c, s, &n->index[d], shape, true);
		out[d].size = c->p->axes.v[t->dim[d]].size;
		out[d].axis = c->p->axes.v[t->dim[d]].multiple ? t->dim[d] : NONE;
		if (!index_may_leave(c, &n->index[d], t->dim[d]))
			continue;
		within = NUM2(BOTH, NUM2(GE, i, N(c, 0)), NUM2(LT, i, axis_size(c, t->dim[d])));
		if (!n->index[d].value)
			within = mark_index(c, s, shape, &n->index[d], axis_size(c, t->dim[d]), within);
		inside = NUM2(BOTH, inside, within);
	}
	o->u.move.inside = inside;
}
