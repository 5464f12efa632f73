/* Stores: by the copy engine, or by the lane's threads, from registers or out of a ring. */
#include "emit/gpu_text.h"

/* The pieces in which a fragment goes to memory: single elements; pairs, as a thread has
 * them; or eights, once the threads of a quad have exchanged theirs. */
enum piece { PIECE_ONE = 1, PIECE_PAIR = 2, PIECE_EIGHT = 8 };

/* Do `n` neighbouring columns of the fragment lie next to each other in the tensor, begin
 * at multiples of n, and end together? */
static bool in_pieces(const struct text *c, const struct node *n, const struct shape2 *shape,
	const struct view *v, int64_t piece)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct index_expr *last = &n->index[t->rank - 1];
	int axis = shape->ncol ? shape->col[shape->ncol - 1] : NONE;

	return v->packed && last->n == 1 && last->term[0].axis == axis && last->term[0].coef == 1 &&
		last->term[0].div == 1 && !last->term[0].mod && last->k % piece == 0 &&
		c->p->axes.v[axis].size % piece == 0 && c->g->extents.tile[axis] % piece == 0 &&
		v->width % piece == 0 && c->p->axes.v[t->dim[t->rank - 1]].size % piece == 0;
}

static enum piece piece_of_store(const struct text *c, const struct node *n,
	const struct shape2 *shape, const struct view *v)
{
	if (v->cols % 32 == 0 && in_pieces(c, n, shape, v, PIECE_EIGHT))
		return PIECE_EIGHT;
	return in_pieces(c, n, shape, v, PIECE_PAIR) ? PIECE_PAIR : PIECE_ONE;
}

/* Two columns at once of a type of 16 bits. */
static void store_pairs(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct view *v, const char *name)
{
	const char *inside = inside_text(c, s, shape, v, ALL_AXES), *element;

	put(c, "EACH(rb, %d) EACH(h, 2) EACH(j, %lld) {", v->blocks, (long long)(v->cols / 8));
	put(c, "\tconst int e = 0;");
	element = put_indices(c, s, n, shape, &inside);
	put(c, "\tif (%s) *(u32 *)&%s = %s[rb][j * 2 + h];", inside, element, name);
	put(c, "}");
}

/* Of four eights of columns each thread of a quad takes one: 16 bytes at once, and the
 * quad writes 64 next to each other. `j` is the thread's eight, and its first column. */
static void store_eights(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const struct view *v, const char *name)
{
	const char *inside = inside_text(c, s, shape, v, ALL_AXES), *element;

	put(c, "EACH(rb, %d) EACH(h, 2) EACH(jj, %lld) {", v->blocks, (long long)(v->cols / 32));
	put(c, "\tu32 y[4]; EACH(i, 4) y[i] = %s[rb][(4 * jj + i) * 2 + h];", name);
	put(c, "\tquad_transpose(y, thread & 3);");
	put(c, "\tconst int j = 4 * jj + (thread & 3), e = 0, col0 = 0;");
	element = put_indices(c, s, n, shape, &inside);
	put(c, "\tif (%s) store_16(&%s, y);", inside, element);
	put(c, "}");
}

static const struct shape2 *value_shape(const struct text *c, const struct buffer *b)
{
	return b->node == NONE ? &c->k->carry_shape[b->carry] : &c->k->node_shape[b->node];
}

/* Straight from the fragment to global memory. */
static enum err_code store_fragment(struct text *c, const struct kentry *x, const struct node *n,
	int buffer, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct shape2 *shape = value_shape(c, b);
	enum dtype t = c->p->tensors.v[n->ref].type;
	const char *name = buffer_name(c, x, buffer), *value, *inside, *element;
	struct view v;

	TRY(buffer_view(c, buffer, &v, e));
	switch (piece_of_store(c, n, shape, &v)) {
	case PIECE_EIGHT:
		store_eights(c, s, n, shape, &v, name);
		return OK;
	case PIECE_PAIR:
		store_pairs(c, s, n, shape, &v, name);
		return OK;
	case PIECE_ONE:
		break;
	}
	value = v.packed ? arena_strf(c->a, "half_of(%s[rb][j * 2 + h], e)", name) :
		to_bits(c, t, arena_strf(c->a, "%s%s", name, frag_element(v.kind)));
	put(c, "%s{", frag_loops(c, &v));
	inside = arena_strf(c->a, "%s%s", one_of_copies(v.kind), inside_text(c, s, shape, &v, ALL_AXES));
	element = put_indices(c, s, n, shape, &inside);
	put(c, "\tif (%s) %s = %s;", inside, element, value);
	put(c, "}");
	return OK;
}

/* Out of shared memory, where another lane left the value. */
static void store_ring(struct text *c, const struct kentry *x, const struct node *n, int buffer)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct ring *r = &c->k->rings.v[c->k->ring_of[buffer]];
	enum dtype t = c->p->tensors.v[n->ref].type;
	const char *inside, *element;

	put_each_of_ring(c, r);
	inside = within_ring(c, s, r);
	element = put_indices(c, s, n, &r->shape, &inside);
	put(c, "\tif (%s) %s = shared_%s(%s);", inside, element, shared_type(t), ring_place(c, r,
		slot_of(c, r->buffer), "row0", "col0"));
	put(c, "}");
}

/* ---- by the copy engine ---------------------------------------------------------------- */

/* Of panel number `panel`: how many are left of it, and the block of rows that it is in. */
static const char *column_of(struct text *c, const struct outbox *o, const char *panel)
{
	return o->across == o->panels ? panel : arena_strf(c->a, "%s %% %d", panel, o->across);
}

static const char *block_of(struct text *c, const struct outbox *o, const char *panel)
{
	return o->across == o->panels ? "0" : arena_strf(c->a, "%s / %d", panel, o->across);
}

/* A loop over the panels of a batch, and which one p is of all of batch number n. */
static const char *each_panel(struct text *c, const struct outbox *o)
{
	return o->batch > 1 ? arena_strf(c->a, "EACH(p, %d) ", o->batch) : "";
}

static const char *panel_text(struct text *c, const struct outbox *o)
{
	if (o->panels == o->batch)
		return o->batch > 1 ? "p" : "0";
	return o->batch > 1 ? arena_strf(c->a, "(n * %d + p)", o->batch) : "n";
}

/* Where a panel of the batch at hand lies that begins at `from`. */
static const char *place_of(struct text *c, const struct outbox *o, const char *from)
{
	return o->batch > 1 ? arena_strf(c->a, "%s + p * %lld", from, (long long)o->panel_bytes) :
		from;
}

/* Where panel number `panel` begins in the tensor, innermost dimension first: what follows
 * the address of a copy. */
static const char *corner_text(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o, const char *panel)
{
	int rank = c->p->tensors.v[n->ref].rank;
	struct buf b;

	buf_init(&b, c->a);
	for (int d = rank - 1; d >= 0; d--) {
		const struct index_expr *x = &n->index[d];

		buf_printf(&b, ", %s", index_text(c, s, x, v, false));
		for (int i = 0; i < x->n && s->parts > 1; i++)
			if (x->term[i].axis == s->split_axis)
				buf_printf(&b, " + %lld", (long long)(s->part * (c->g->extents.tile[
					s->split_axis] / s->parts)));
		if (d == rank - 1 && o->across > 1)
			buf_printf(&b, " + %s * %lld", column_of(c, o, panel),
				(long long)o->panel_cols);
		for (int i = 0; i < x->n && o->ring == NONE; i++)
			if (x->term[i].axis == v->row[0])
				buf_printf(&b, " + (%s * %d + thread / 32) * %lld", block_of(c, o,
					panel), c->lane->warps, (long long)o->rows);
	}
	return b.text;
}

static int store_map(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o)
{
	int rank = c->p->tensors.v[n->ref].rank;
	int64_t box[RANK_MAX] = { 0 };

	for (int d = 0; d < rank; d++) {
		const struct index_expr *x = &n->index[rank - 1 - d];

		box[d] = 1;
		for (int i = 0; i < x->n; i++)
			if (x->term[i].axis == v->row[0])
				box[d] = o->rows;
	}
	box[0] = o->panel_cols;
	return map_param(c, s, n, box, o->swizzle);
}

/* The panels of a batch, from `from` on, by the thread that will ask about them. */
static void put_batch(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o, const char *from, const char *inside)
{
	put(c, "\t%s%stma_store_%dd(&map%d, %s%s);", each_panel(c, o), inside,
		c->p->tensors.v[n->ref].rank, store_map(c, s, n, v, o), place_of(c, o, from),
		corner_text(c, s, n, v, o, panel_text(c, o)));
	put(c, "\tstores_commit();");
}

/* The slot must not be given back before it has been read. */
static void store_slot(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *v, const struct outbox *o)
{
	put(c, "if (leader) {");
	put_batch(c, s, n, v, o, slot_of(c, c->k->rings.v[o->ring].buffer), "");
	put(c, "\tSTORES_READ(0);");
	put(c, "}");
	if (c->lane->warps > 1)
		put_lane_sync(c);
}

/* A batch of panels of the warp's rows, swizzled as the engine expects it. */
static void put_panels(struct text *c, const struct outbox *o, int buffer, const char *name)
{
	enum dtype t = c->g->buffers.v[buffer].type;
	int bytes = dtype_bits(t) / 8;

	put(c, "%sEACH(h, 2) EACH(j, %lld) {", each_panel(c, o), (long long)(o->panel_cols / 8));
	put(c, "\tconst int rb = %s, i = %s * %lld + j, row = thread %% 32 / 4 + 8 * h;",
		block_of(c, o, panel_text(c, o)), column_of(c, o, panel_text(c, o)),
		(long long)(o->panel_cols / 8));
	put(c, "\tconst u32 x = (row * %d / 128 & %d) << 4;", o->swizzle, o->swizzle / 16 - 1);
	put(c, "\tconst u32 at = %s + row * %d + %s;", place_of(c, o, "to"), o->swizzle,
		bytes == 2 ? "((16 * j ^ x) + col0 * 2)" : "((32 * j + col0 * 4) ^ x)");
	if (bytes == 2)
		put(c, "\tshared_put_u32(at, %s[rb][i * 2 + h]);", name);
	else
		put(c, "\tEACH(e, 2) %s", shared_put(c, t, "at + 4 * e", arena_strf(c->a,
			"%s[rb][(i * 2 + h) * 2 + e]", name)));
	put(c, "}");
}

/* Of a fragment of which the last block is not full: has this warp rows in the block? */
static const char *has_rows(struct text *c, const struct view *v, const struct outbox *o)
{
	if (v->height == v->rows)
		return "";
	return arena_strf(c->a, "if ((%s * %d + thread / 32) * %lld < %lld) ", block_of(c, o,
		panel_text(c, o)), c->lane->warps, (long long)o->rows, (long long)v->height);
}

/* Through the room: batch number n is written when the one that was there has been read. */
static void store_panels(struct text *c, const struct kentry *x, const struct node *n,
	const struct shape2 *shape, const struct outbox *o, int buffer, const struct view *v)
{
	int rounds = o->panels / o->batch;
	int64_t bytes = o->batch * o->panel_bytes;

	put(c, "%s{", rounds > 1 ? arena_strf(c->a, "EACH(n, %d) ", rounds) : "");
	c->indent++;
	if (rounds > 1 && o->unread[0] != o->unread[1])
		put(c, "if (elected) { if (n) STORES_READ(%d); else STORES_READ(%d); }", o->unread[1],
			o->unread[0]);
	else
		put(c, "if (elected) STORES_READ(%d);", o->unread[0]);
	put(c, "WARP_SYNC();");
	put(c, "const u32 to = shared + %lld + thread / 32 * %lld%s;", (long long)o->offset,
		(long long)(o->batches * bytes), o->batches > 1 ? arena_strf(c->a,
		" + n %% 2 * %lld", (long long)bytes) : "");
	put_panels(c, o, buffer, buffer_name(c, x, buffer));
	put(c, "fence_async();");
	put(c, "WARP_SYNC();");
	put(c, "if (elected) {");
	put_batch(c, stask_of(c, x), n, shape, o, "to", has_rows(c, v, o));
	put(c, "}");
	c->indent--;
	put(c, "}");
}

static enum err_code store_by_engine(struct text *c, const struct kentry *x, const struct node *n,
	int buffer, struct err *e)
{
	const struct outbox *o = &c->k->outboxes.v[x->outbox];
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct shape2 *shape = value_shape(c, b);
	struct view v;

	TRY(buffer_view(c, buffer, &v, e));
	if (o->ring != NONE)
		store_slot(c, stask_of(c, x), n, shape, o);
	else
		store_panels(c, x, n, shape, o, buffer, &v);
	return OK;
}

enum err_code emit_store(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	int buffer = buffer_of_node(c, s, n->arg[0]);

	if (buffer == NONE || c->g->buffers.v[buffer].type != c->p->tensors.v[n->ref].type)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' must store a value that another sTask "
			"made, of the tensor's type", s->name);
	if (x->outbox != NONE)
		return store_by_engine(c, x, n, buffer, e);
	if (c->k->ring_of[buffer] == NONE)
		return store_fragment(c, x, n, buffer, e);
	store_ring(c, x, n, buffer);
	return OK;
}

