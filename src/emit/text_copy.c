/* What passes through memory: loads, and results that a lane hands on; text_store.c has the
 * stores. */
#include "emit/gpu_text.h"

#include <string.h>

bool reads_own(const struct text *c, const struct kentry *x)
{
	int buffer = c->g->tasks.v[x->task].writes.v[0];

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = &c->g->tasks.v[c->lane->entries.v[i].task];

		for (int k = 0; k < s->reads.n; k++)
			if (s->reads.v[k] == buffer)
				return true;
	}
	return false;
}

void put_lane_sync(struct text *c)
{
	if (c->lane->warps > 1)
		put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	else
		put(c, "WARP_SYNC();");
}

const char *put_indices(struct text *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape, const char **inside)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const char *at = "0";

	for (int d = 0; d < t->rank; d++) {
		long long size = c->p->axes.v[t->dim[d]].size;

		put(c, "\tconst long i%d = %s;", d, index_text(c, s, &n->index[d], shape, true));
		at = d ? arena_strf(c->a, "(%s) * %lldl + i%d", at, size, d) : "i0";
		*inside = arena_strf(c->a, "%s && i%d >= 0 && i%d < %lld", *inside, d, d, size);
	}
	return arena_strf(c->a, "tensor_%s[%s]", t->name, at);
}

void put_each_of_ring(struct text *c, const struct ring *r)
{
	put(c, "for (int at = thread; at < %lld; at += %d) {",
		(long long)(r->full_rows * r->full_cols), c->lane->warps * 32);
	put(c, "\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = at / %lld, col0 = at %% %lld;",
		(long long)r->full_cols, (long long)r->full_cols);
}

const char *slot_of(struct text *c, int buffer)
{
	return c_name(c, "slot_", c->g->buffers.v[buffer].name);
}

const char *within_ring(struct text *c, const struct stask *s, const struct ring *r)
{
	struct view v = { .height = r->shape.rows, .width = r->shape.cols, .rows = r->full_rows,
		.cols = r->full_cols };

	return inside_text(c, s, &r->shape, &v, ALL_AXES);
}

/* Where the copy engine cannot go, the lane's threads copy element by element. */
static void emit_elements(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	enum dtype t = c->p->tensors.v[n->ref].type;
	const char *inside, *element;

	if (reads_own(c, x))
		put_lane_sync(c);
	put_each_of_ring(c, r);
	inside = within_ring(c, s, r);
	element = put_indices(c, s, n, &r->shape, &inside);
	put(c, "\tconst %s value = %s ? %s : (%s)0;", bits_type(t), inside, element, bits_type(t));
	put(c, "\tshared_put_%s(%s, value);", shared_type(t), ring_place(c, r, slot_of(c, r->buffer), "row0",
		"col0"));
	put(c, "}");
	put(c, "fence_async();");
	put(c, "WARP_SYNC();");
	put(c, "if (elect()) flag_arrive(full);");
}

enum err_code emit_load(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	int node = t->nodes.v[t->nodes.n - 1];
	const struct node *n = &c->p->nodes.v[node];
	const struct ring *r = &c->k->rings.v[c->k->ring_of[s->writes.v[0]]];
	const struct flag *f;

	if (x->flag == NONE)
		return err_set(e, ERR_ILLEGAL, s->loc, "nobody waits for '%s'", s->name);
	f = &c->k->flags.v[x->flag];
	put(c, "const u32 full = shared + %lld + 8 * (seq %% %d);", (long long)f->offset, f->depth);
	if (r->engine)
		emit_boxes(c, x, r, n);
	else
		emit_elements(c, x, r, n);
	return OK;
}

const char *one_of_copies(enum frag kind)
{
	switch (kind) {
	case FRAG_FULL:
		break;
	case FRAG_ROW:
		return "thread % 4 == 0 && ";
	case FRAG_COL:
		return "thread < 4 && ";
	case FRAG_SCALAR:
		return "thread == 0 && ";
	}
	return "";
}

static void keep_in_registers(struct text *c, const struct kentry *x, int buffer,
	const struct view *v, const char *inside)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const char *name = buffer_name(c, x, buffer);

	if (!v->packed) {
		put(c, "%s%s%s = x%d%s;", frag_loops(c, v), name, frag_element(v->kind), b->node,
			frag_element(v->kind));
		return;
	}
	put(c, "EACH(rb, %d) EACH(i, %lld) %s[rb][i] = x%d[rb][i];", v->blocks,
		(long long)(v->cols / 4), name, b->node);
	if (strcmp(inside, "true"))
		put(c, "%sif (!(%s)) %s[rb][j * 2 + h] &= e ? 0xffffu : 0xffff0000u;",
			frag_loops(c, v), inside, name);
}

static void leave_in_ring(struct text *c, const struct kentry *x, int buffer,
	const struct view *v, const char *inside)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct ring *r = &c->k->rings.v[c->k->ring_of[buffer]];
	const struct shape2 *shape = &c->k->node_shape[b->node];
	const char *address = ring_address(c, s, r, shape, slot_of(c, r->buffer));
	struct view room = *v;
	const char *fits, *value;

	room.height = min_i64(v->rows, r->full_rows);
	room.width = min_i64(v->cols, r->full_cols);
	fits = arena_strf(c->a, "%s%s", one_of_copies(v->kind), inside_text(c, s, shape, &room,
		0));
	if (v->packed && !strcmp(inside, "true") && shape->ncol == r->shape.ncol && v->width % 2 == 0) {
		put(c, "EACH(rb, %d) EACH(j, %lld) EACH(h, 2) { const int e = 0; if (%s) "
			"shared_put_u32(%s, x%d[rb][j * 2 + h]); }", v->blocks,
			(long long)(v->cols / 8), fits, address, b->node);
	} else {
		value = v->packed ? arena_strf(c->a, "half_of(x%d[rb][j * 2 + h], e)", b->node) :
			to_bits(c, b->type, arena_strf(c->a, "x%d%s", b->node,
			frag_element(v->kind)));
		if (strcmp(inside, "true"))
			value = arena_strf(c->a, "(%s ? %s : 0)", inside, value);
		put(c, "%s{ if (%s) shared_put_%s(%s, %s); }", frag_loops(c, v), fits,
			shared_type(b->type), address, value);
	}
	put(c, "fence_async();");
}

/* An operand must be zero beyond the end of the axis that the product contracts, as far as
 * its instructions read, whatever was computed there. */
static const char *within_contracted(struct text *c, const struct stask *s, int node,
	const struct view *v)
{
	const struct shape2 *shape = &c->k->node_shape[node];
	struct view deep = *v;
	uint64_t rows = 0, cols = 0;

	for (int i = 0; i < shape->nrow; i++)
		rows |= c->k->deep & (uint64_t)1 << shape->row[i];
	for (int i = 0; i < shape->ncol; i++)
		cols |= c->k->deep & (uint64_t)1 << shape->col[i];
	if (!rows)
		deep.height = deep.rows;
	if (!cols)
		deep.width = deep.cols;
	return inside_text(c, s, shape, &deep, rows | cols);
}

enum err_code emit_result(struct text *c, const struct kentry *x, int buffer, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const char *inside = "true";
	const struct ring *r;
	struct view v;

	TRY(buffer_view(c, buffer, &v, e));
	if (b->matrix_a || b->matrix_b)
		inside = within_contracted(c, &c->g->tasks.v[x->task], b->node, &v);
	if (c->k->ring_of[buffer] == NONE) {
		keep_in_registers(c, x, buffer, &v, inside);
		return OK;
	}
	r = &c->k->rings.v[c->k->ring_of[buffer]];
	if ((b->matrix_a || b->matrix_b) && (v.rows < r->full_rows || v.cols < r->full_cols))
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' is contracted along one element, which "
			"is not lowered for a value that is computed", b->name);
	leave_in_ring(c, x, buffer, &v, inside);
	return OK;
}
