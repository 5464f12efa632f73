/* Values that an sTask of elements reads in shared memory, fetched to registers before it computes.
 *
 * A thread that reads its elements where it uses them has an access, and an address, for each pair of neighbours, and for each
 * loop over the elements again. A warp's instruction for operands (ldmatrix) brings four matrices of 8 x 8 elements of 16 bits,
 * in the layout of sums, by one address of each thread: a fourth of the accesses. So each such value is fetched once, if
 * the lane has registers for all of its values at once. */
#include "lower/select/lowering.h"

static bool has_matrix_reads(const struct target *t)
{
	for (int i = 0; i < t->nmatrix; i++)
		if (t->matrix[i].ldmatrix)
			return true;
	return false;
}

/* Is the fragment laid out in matrices of 8 x 8, of which each thread has two neighbours in a row? */
static bool is_in_matrices(const struct frag *f)
{
	const struct frag_layout *l = f->layout;

	return f->kind == FRAG_FULL && f->packed && l->halves == 2 && l->pair == 2 && l->cols == MATRIX_ROWS && layout_parts(l) == 1 &&
		l->row_parts <= 1 && f->cols % (2 * l->cols) == 0 && f->height == f->rows && f->width == f->cols;
}

/* Are the columns of the value those of the ring, and neighbours in it? */
static bool has_columns_of_ring(const struct lowering *c, const struct stask *s, const struct ring *r, const struct shape2 *shape)
{
	int64_t tile = shape->ncol == 1 ? c->g->extents.tile[shape->col[0]] : 0;

	if (tile && shape->col[0] == s->split_axis)
		tile /= s->slices;
	return tile && r->shape.ncol == 1 && r->shape.col[0] == shape->col[0] && r->shape.col_share[0] == 1 &&
		tile % MATRIX_ROWS == 0 && r->panel_cols % MATRIX_ROWS == 0;
}

const struct frag *find_fetched(const struct lowering *c, int buffer, const struct shape2 *shape)
{
	for (int i = 0; i < c->fetched.n; i++)
		if (c->fetched.v[i].buffer == buffer && has_same_layout(c->k, c->fetched.v[i].shape, shape))
			return c->fetched.v[i].frag;
	return NULL;
}

/* Is the node a product that its conversion makes in pairs? */
static bool is_made_in_pairs(const struct lowering *c, const struct stask *s, int node)
{
	const struct task *t = &c->p->tasks.v[s->task];
	bool is = false;

	for (int i = 0; i < t->nodes.n; i++)
		is |= c->p->nodes.v[t->nodes.v[i]].arg[0] == node && multiplies_pairs(c, s, t->nodes.v[i]);
	return is;
}

/* Adds the operation that fetches values of the buffer from its ring to the fragment, in which later operations find them. */
static struct role_op *add_fetch(struct lowering *c, const struct stask *s, int buffer, const struct shape2 *shape, struct frag *f,
	const struct num *address)
{
	struct role_op *o;

	f->name = arena_strf(c->a, "m%d", c->fetched.n);
	add_op(c, DO_FRAGMENT)->u.frag.at.frag = f;
	add_ring_touch(c, s, buffer);
	o = add_op(c, DO_FETCH);
	o->u.fetch.to.frag = f;
	o->u.fetch.address = address;
	o->u.fetch.inside = o->u.fetch.contracted = N(c, 1);
	o->u.fetch.slot = slot_address(c, ring_of(c, buffer));
	o->u.fetch.patterns = 1;
	VEC_PUSH(c->a, &c->fetched, ((struct fetched){ .buffer = buffer, .shape = shape, .frag = f }));
	return o;
}

/* A factor of pairs that is the same in all rows: a word for each pair of columns. Then all that such a product reads in shared
 * memory can be read before what its result waits for. */
static enum err_code fetch_columns(struct lowering *c, const struct kentry *x, int buffer, const struct shape2 *shape, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct ring *r = ring_of(c, buffer);
	struct frag *f = ARENA_NEW(c->a, struct frag);
	const struct num *address;

	TRY(lay_out_shape(c, s, shape, c->g->buffers.v[buffer].type, f, e));
	c->reads_element = true;
	address = ring_address(c, s, r, shape);
	c->reads_element = false;
	if (!f->packed || frag_words_together(f) != 1 || together_at(c, address, f->type) != f->layout->pair)
		return OK;
	f->kind = FRAG_COL;
	f->height = f->rows = 1;
	add_fetch(c, s, buffer, shape, f, address)->u.fetch.by = FETCH_WORDS;
	return OK;
}

static enum err_code fetch_value(struct lowering *c, const struct kentry *x, int node, int buffer, const struct shape2 *shape,
	struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct ring *r = ring_of(c, buffer);
	struct frag *f = ARENA_NEW(c->a, struct frag);
	const struct num *address;
	struct role_op *o;
	int words = 0;

	TRY(lay_out_shape(c, s, shape, c->g->buffers.v[buffer].type, f, e));
	for (int i = 0; i < c->fetched.n; i++)
		words += frag_words(c->fetched.v[i].frag);
	words += fragment_words(c, s);
	if (!is_in_matrices(f) || !has_columns_of_ring(c, s, r, shape) || !has_registers_for_all(c, x->task, frag_words(f) + words) ||
	    !num_is(inside_condition(c, s, shape, f, r->shape.full_axes & ~shape->full_axes), 1))
		return OK;
	c->fetches = true;
	address = ring_address(c, s, r, shape);
	c->fetches = false;
	if (!num_uses(address, VAR_ROW0))	/* all rows are one in the ring */
		return is_made_in_pairs(c, s, node) ? fetch_columns(c, x, buffer, shape, e) : OK;
	o = add_fetch(c, s, buffer, shape, f, address);
	o->u.fetch.by = FETCH_MATRICES;
	if (r->swizzle)
		o->u.fetch.patterns = (int)(min_i64(f->cols, r->panel_cols) / (2 * MATRIX_ROWS));
	return OK;
}

enum err_code fetch_values(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];

	c->fetched.n = 0;
	if (!c->has_spare_registers || c->makes || !has_matrix_reads(c->k->target))
		return OK;
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];
		const struct shape2 *shape = &c->k->node_shape[t->nodes.v[i]];

		for (int k = 0; k < node_arity(n) && op_class(n->op) != CLASS_MOVE; k++) {
			const struct node *a = &c->p->nodes.v[n->arg[k]];
			int buffer = a->task == s->task || a->task == NONE ? NONE : buffer_of_node(c, s, n->arg[k]);

			if (buffer != NONE && has_ring(c, buffer) && !find_fetched(c, buffer, shape))
				TRY(fetch_value(c, x, t->nodes.v[i], buffer, shape, e));
		}
	}
	return OK;
}
