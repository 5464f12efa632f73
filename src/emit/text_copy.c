/* Loads and stores. */
#include "emit/gpu_text.h"

#include <string.h>

static int add_map(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct buffer *b = &c->g->buffers.v[r->buffer];
	struct param m = { .kind = PARAM_MAP, .tensor = n->ref, .task = x->task, .rank = t->rank,
		.swizzle = r->swizzle };
	int64_t bytes = dtype_bits(t->type) / 8;

	for (int i = 0; i < c->src->params.n; i++)
		if (c->src->params.v[i].kind == PARAM_MAP && c->src->params.v[i].task == x->task)
			return i;
	for (int d = 0; d < t->rank; d++) {
		int dim = t->rank - 1 - d;		/* innermost first */
		const struct index_expr *ix = &n->index[dim];

		m.dim[d] = c->p->axes.v[t->dim[dim]].size;
		m.stride[d] = bytes;
		bytes *= m.dim[d];
		m.box[d] = 1;
		for (int k = 0; k < ix->n; k++)
			for (int q = 0; q < b->naxes; q++)
				if (b->axis[q] == ix->term[k].axis && b->extent[q] > 1)
					m.box[d] = b->extent[q];
		if (d == 0)
			m.box[d] = r->panel_cols;
	}
	VEC_PUSH(c->a, &c->src->params, m);
	return c->src->params.n - 1;
}

/* The pieces of each load: one box a panel, all on one flag. */
static void emit_boxes(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct tensor *t = &c->p->tensors.v[n->ref];
	int map = add_map(c, x, r, n), panels = (int)(r->shape.cols / r->panel_cols);
	struct buf b;

	/* no thread may still look at a flag whose next phase this copy brings about */
	if (x->waits.n && c->lane->warps > 1)
		put(c, "lane_sync(%d, %d);", c->lane->lane + 1, c->lane->warps * 32);
	else if (x->waits.n)
		put(c, "WARP_SYNC();");
	put(c, "if (leader) {");
	put(c, "\tflag_expect(full, %lld);", (long long)c->k->flags.v[x->flag].bytes);
	for (int p = 0; p < panels; p++) {
		buf_init(&b, c->a);
		for (int d = t->rank - 1; d >= 0; d--)
			buf_printf(&b, ", %s%s", index_text(c, s, &n->index[d], &r->shape, false),
				d == t->rank - 1 && p ? arena_strf(c->a, " + %lld",
				(long long)(p * r->panel_cols)) : "");
		put(c, "\ttma_load_%dd(%s + %lld, &map%d, full%s);", t->rank, c_name(c, "slot_",
			c->g->buffers.v[r->buffer].name), (long long)(p * r->panel_bytes), map, b.text);
	}
	put(c, "}");
}

/* Where the copy engine cannot go, the lane's threads copy element by element. */
static void emit_elements(struct text *c, const struct kentry *x, const struct ring *r,
	const struct node *n, int node)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct tensor *t = &c->p->tensors.v[n->ref];
	struct shape2 flat = r->shape;
	int bits = dtype_bits(t->type);
	struct buf off, ok;

	(void)node;
	buf_init(&off, c->a);
	buf_init(&ok, c->a);
	buf_puts(&off, "0");
	buf_puts(&ok, "true");
	put(c, "for (int at = thread; at < %lld; at += %d) {", (long long)(flat.rows * flat.cols),
		c->lane->warps * 32);
	/* row and column of the ring stand for the fragment's */
	put(c, "\tconst int rb = 0, h = 0, j = 0, e = 0, row0 = at / %lld, col0 = at %% %lld;",
		(long long)flat.cols, (long long)flat.cols);
	for (int d = 0; d < t->rank; d++) {
		int64_t size = c->p->axes.v[t->dim[d]].size;

		put(c, "\tconst long i%d = %s;", d, index_text(c, s, &n->index[d], &flat, true));
		char *o = arena_strf(c->a, "(%s) * %lldl + i%d", off.text, (long long)size, d);
		buf_init(&off, c->a);
		buf_puts(&off, o);
		buf_printf(&ok, " && i%d >= 0 && i%d < %lld", d, d, (long long)size);
	}
	put(c, "\tconst %s value = %s ? ((const %s *)tensor_%s)[%s] : (%s)0;", bits == 16 ? "u16" : "u32", ok.text,
		bits == 16 ? "u16" : "u32", t->name, off.text, bits == 16 ? "u16" : "u32");
	put(c, "\tshared_put_u%d(%s, value);", bits, ring_address(c, s, r, &flat, c_name(c, "slot_",
		c->g->buffers.v[r->buffer].name)));
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
		emit_elements(c, x, r, n, node);
	return OK;
}

/* Straight from the fragment to global memory, two columns at once where the tensor's
 * rows allow it. */
enum err_code emit_store(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *n = &c->p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	const struct tensor *to = &c->p->tensors.v[n->ref];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	int buffer = buffer_of_node(c, s, n->arg[0]);
	struct buf off, ok;
	struct view v;
	const char *name;

	if (buffer == NONE)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' must store a value that another sTask "
			"made", s->name);
	TRY(buffer_view(c, buffer, &v, e));
	if (v.kind != FRAG_FULL || c->k->ring_of[buffer] != NONE ||
	    (!v.packed && to->type != DT_F32))
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s': this store is not lowered for sm_90a "
			"yet", s->name);
	name = buffer_name(c, x, buffer);
	buf_init(&off, c->a);
	buf_init(&ok, c->a);
	buf_puts(&off, "0");
	buf_puts(&ok, "true");
	put(c, "EACH(rb, %d) EACH(h, 2) EACH(j, %lld) {", v.blocks, (long long)(v.cols / 8));
	put(c, "\tconst int e = 0;");
	for (int d = 0; d < to->rank; d++) {
		int64_t size = c->p->axes.v[to->dim[d]].size;
		char *o = arena_strf(c->a, "(%s) * %lldl + i%d", off.text, (long long)size, d);

		put(c, "\tconst long i%d = %s;", d, index_text(c, s, &n->index[d], shape, true));
		buf_init(&off, c->a);
		buf_puts(&off, o);
		buf_printf(&ok, " && i%d >= 0 && i%d < %lld", d, d, (long long)size);
	}
	put(c, "\tif (%s) {", ok.text);
	if (!v.packed)
		put(c, "\t\tEACH(f, 2) if (i%d + f < %lld) tensor_%s[%s + f] = %s[rb][(j * 2 + h) * 2 + f];",
			to->rank - 1, (long long)c->p->axes.v[to->dim[to->rank - 1]].size, to->name,
			off.text, name);
	else if (c->p->axes.v[to->dim[to->rank - 1]].size % 2 == 0)
		put(c, "\t\t*(u32 *)(tensor_%s + %s) = %s[rb][j * 2 + h];", to->name, off.text, name);
	else
		put(c, "\t\tEACH(f, 2) if (i%d + f < %lld) tensor_%s[%s + f] = half_of(%s[rb][j * 2 + h], f);",
			to->rank - 1, (long long)c->p->axes.v[to->dim[to->rank - 1]].size, to->name,
			off.text, name);
	put(c, "\t}");
	put(c, "}");
	return OK;
}
