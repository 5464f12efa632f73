/* Boxes of a tensor for a ring that does not lie as the tensor does: the copy engine walks over the dimensions of a
 * tensor in any order but for the contiguous one, which is always the innermost.
 *
 * A box fills one panel. So the innermost dimension goes along the last axis of the columns, and panels must divide
 * that; the other columns have one value in a panel. Neighbouring dimensions of which the tile has all but the
 * outermost are one dimension. Dimensions of row axes follow, the last axis first, then all others. An axis may have
 * two dimensions, as in blocks of 16 along n: n % 16 is the inner one, n // 16 the outer one. */
#include "lower/layout/rings.h"

/* The dimensions along which an axis of the ring moves. */
struct axis_dims {
	int inner, outer;		/* NONE: it has no such dimension */
	int64_t block;			/* extent in the inner one */
};

/* Adds dimension d of the tensor, indexed by x. False: several axes move in it, or one in another way, or values are
 * added. */
static bool add_dim(const struct kernel *k, const struct buffer *b, int d, const struct index_expr *x,
	struct axis_dims *dims)
{
	const struct index_term *moving = NULL;
	struct axis_dims *to;
	int64_t extent;

	if (x->value)
		return false;
	for (int i = 0; i < x->n; i++) {
		if (ring_axis_extent(k, b, x->term[i].axis) == 1)
			continue;
		if (moving || x->term[i].coef != 1 || (x->term[i].div > 1 && x->term[i].mod))
			return false;
		moving = &x->term[i];
	}
	if (!moving)
		return true;
	to = &dims[moving->axis];
	extent = ring_axis_extent(k, b, moving->axis);
	if (*(moving->div > 1 ? &to->outer : &to->inner) != NONE)
		return false;
	*(moving->div > 1 ? &to->outer : &to->inner) = d;
	if (to->block && to->block != (moving->div > 1 ? moving->div : moving->mod ? moving->mod : extent))
		return false;
	to->block = moving->div > 1 ? moving->div : moving->mod ? moving->mod : extent;
	return true;
}

/* Do the dimensions of the axis bring each of its elements once, and zeros behind its end where a product contracts
 * it? */
static bool covers_axis(const struct kernel *k, const struct buffer *b, int axis, const struct axis_dims *dims)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	const struct tensor *t = &p->tensors.v[n->ref];
	int64_t extent = ring_axis_extent(k, b, axis), size = axis_divisor(&p->axes.v[axis]);
	bool in_blocks = dims->outer != NONE || dims->block < extent;

	if (dims->inner == NONE || (in_blocks && (dims->outer == NONE || extent % dims->block)))
		return false;
	if (lower_is_contracted(k, buffer_index(k, b), axis) && ends_within_tile(k->plan->graph, p->tasks.v[n->task].loop,
	    axis))
		return false;
	if (size % extent == 0 || !lower_is_contracted(k, buffer_index(k, b), axis))
		return true;
	return !in_blocks && !n->index[dims->inner].k && n->index[dims->inner].n == 1 &&
		axes_end_alike(p, axis, t->dim[dims->inner]);
}

/* Is the axis all of dimension d, so that it and the axis of the dimension before are one? */
static bool fills_dimension(const struct kernel *k, const struct buffer *b, int axis, int d)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	int64_t extent = ring_axis_extent(k, b, axis);

	return !p->axes.v[axis].multiple && !p->axes.v[p->tensors.v[n->ref].dim[d]].multiple && n->index[d].n == 1 &&
		!n->index[d].k && n->index[d].term[0].div == 1 && !n->index[d].term[0].mod &&
		extent == p->axes.v[axis].size && extent == p->axes.v[p->tensors.v[n->ref].dim[d]].size;
}

/* Elements that are neighbours in the columns of the ring and in the tensor, where they are along the last *merged
 * dimensions; 0: there is no box. */
static int64_t innermost_extent(const struct kernel *k, const struct buffer *b, const struct shape2 *v,
	struct axis_dims *dims, int *merged)
{
	const struct program *p = k->plan->graph->program;
	const struct node *n = &p->nodes.v[b->node];
	int rank = p->tensors.v[n->ref].rank, last = v->ncol ? v->col[v->ncol - 1] : NONE;
	int64_t extent;

	for (int a = 0; a < p->axes.n; a++)
		dims[a] = (struct axis_dims){ NONE, NONE, 0 };
	for (int d = 0; d < rank; d++)
		if (!add_dim(k, b, d, &n->index[d], dims))
			return 0;
	for (int i = 0; i < shape_rank(v); i++)
		if (ring_axis_extent(k, b, shape_axis(v, i)) > 1 &&
		    !covers_axis(k, b, shape_axis(v, i), &dims[shape_axis(v, i)]))
			return 0;
	if (last == NONE || !rank || dims[last].inner != rank - 1)
		return 0;
	extent = dims[last].block;
	*merged = 1;
	for (int i = v->ncol - 2; i >= 0 && fills_dimension(k, b, v->col[i + 1], rank - *merged); i--) {
		const struct axis_dims *x = &dims[v->col[i]];

		if (x->outer != NONE || x->inner != rank - 1 - *merged)
			break;
		extent *= x->block;
		++*merged;
	}
	return extent;
}

int64_t lower_box_grain(const struct kernel *k, const struct buffer *b, const struct shape2 *v)
{
	const struct program *p = k->plan->graph->program;
	const struct tensor *t = &p->tensors.v[p->nodes.v[b->node].ref];
	int64_t least = (int64_t)k->target->shared.narrowest * 8 / dtype_bits(b->type), grain;
	struct axis_dims dims[AXES_MAX];
	int merged = 0;

	if (b->slices > 1)
		return 0;
	grain = innermost_extent(k, b, v, dims, &merged);
	return !grain || grain % least || t->rank - merged >= k->target->shared.box_rank ||
		!lower_rows_aligned(k, b, merged) ? 0 : grain;
}

void lower_order_box(const struct kernel *k, const struct ring *r, struct box_order *out)
{
	const struct buffer *b = &k->plan->graph->buffers.v[r->buffer];
	const struct program *p = k->plan->graph->program;
	int rank = p->tensors.v[p->nodes.v[b->node].ref].rank;
	struct axis_dims dims[AXES_MAX];
	bool have[RANK_MAX] = { false };

	*out = (struct box_order){ .merged = 0 };
	(void)innermost_extent(k, b, &r->shape, dims, &out->merged);
	for (int d = rank - out->merged; d < rank; d++)
		have[d] = true;
	out->extent[out->n] = r->panel_cols;
	out->dim[out->n++] = rank - 1;
	for (int i = r->shape.nrow - 1; i >= 0; i--) {
		int axis = r->shape.row[i];
		const struct axis_dims *x = &dims[axis];

		out->extent[out->n] = x->block;
		out->dim[out->n++] = x->inner;
		have[x->inner] = true;
		if (x->outer == NONE)
			continue;
		out->extent[out->n] = ring_axis_extent(k, b, axis) / x->block;
		out->dim[out->n++] = x->outer;
		have[x->outer] = true;
	}
	for (int d = rank - 1; d >= 0; d--) {
		if (have[d])
			continue;
		out->extent[out->n] = 1;
		out->dim[out->n++] = d;
	}
}
