/* Matrix products: wgmma with the second operand, and often the first, read from
 * swizzled shared memory through matrix descriptors. */
#include "emit/gpu_text.h"

#include <string.h>

enum { INSTRUCTION_COLS = 256, INSTRUCTION_K_BYTES = 32 };

/* One function for each form in use. Returns its name. */
static const char *make_function(struct text *c, const struct product_form *f)
{
	struct buf *o = &c->functions;
	const char *name = arena_strf(c->a, "mma_%s_%s_%d_%d_%d", dtype_name(f->type),
		f->registers ? "rs" : "ss", f->cols, f->a_rows, f->b_rows);

	if (strstr(o->text, arena_strf(c->a, " %s(", name)))
		return name;
	buf_printf(o, "DEV void %s(float *d, %s, u64 b, int add)\n{\n", name, f->registers ?
		"const u32 *a" : "u64 a");
	c->target->product(o, f);
	buf_puts(o, "}\n");
	return name;
}

/* An operand in shared memory. */
struct operand {
	const struct ring *ring;
	bool k_major;			/* the contracted axis is the contiguous one */
	const char *slot;
	const char *k_first;		/* k step at which this iteration begins; "0" */
};

/* Do the axes of more than one element agree, in order? */
static bool same_order(const struct text *c, const int *a, int na, const int *b, int nb)
{
	const int64_t *tile = c->g->extents.tile;
	int i = 0, k = 0;

	for (;;) {
		while (i < na && tile[a[i]] == 1)
			i++;
		while (k < nb && tile[b[k]] == 1)
			k++;
		if (i == na || k == nb)
			return i == na && k == nb;
		if (a[i++] != b[k++])
			return false;
	}
}

/* The step, of the contracted axis, at which an iteration's part of a whole axis lies. */
static enum err_code find_first_step(struct text *c, const struct stask *s, const struct buffer *b,
	struct operand *o, struct err *e)
{
	int64_t step = INSTRUCTION_K_BYTES * 8 / dtype_bits(b->type);

	o->k_first = "0";
	for (int i = 0; i < b->naxes; i++) {
		int axis = b->axis[i];

		if (!(o->ring->shape.whole >> axis & 1) || !program_axis_bound(c->p, s->loop, axis))
			continue;
		if ((!o->k_major && !o->ring->shape.nrow) ||
		    (o->k_major ? o->ring->shape.col[0] : o->ring->shape.row[0]) != axis ||
		    c->g->extents.tile[axis] % step)
			return err_set(e, ERR_ILLEGAL, b->loc, "'%s' holds a whole axis of which "
				"each iteration multiplies a part; that is not lowered for these "
				"axes", b->name);
		o->k_first = arena_strf(c->a, "%s / %lld", axis_lo(c, s, NULL, axis),
			(long long)step);
	}
	return OK;
}

/* own: axes of the result that are the operand's. */
static enum err_code find_operand(struct text *c, const struct kentry *x, int arg, const int *own,
	int nown, struct operand *o, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	const struct node *mma = &c->p->nodes.v[t->nodes.v[t->nodes.n - 1]];
	const struct buffer *b = &c->g->buffers.v[buffer_of_node(c, s, arg)];
	const struct shape2 *shape;
	bool kept = false;

	o->ring = &c->k->rings.v[c->k->ring_of[buffer_of_node(c, s, arg)]];
	o->slot = c_name(c, "slot_", b->name);
	shape = &o->ring->shape;
	if (shape->ncol != 1)
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s': the contiguous axis of an operand "
			"must be one axis", b->name);
	for (int i = 0; i < mma->naxes; i++)
		kept |= mma->axis[i] == shape->col[0];
	o->k_major = !kept;
	if (kept ? !same_order(c, own, nown, shape->col, 1) || shape->nrow > 1 :
	    !same_order(c, own, nown, shape->row, shape->nrow))
		return err_set(e, ERR_ILLEGAL, b->loc, "'%s' lies in memory with its axes in an order "
			"that the matrix unit cannot read for '%s'", b->name, s->name);
	return find_first_step(c, s, b, o, e);
}

/* The constant part of a descriptor (PTX ISA, matrix descriptor format): strides
 * between groups of 8 rows, between panels, and the swizzle. */
static unsigned long long descriptor_bits(const struct operand *o)
{
	unsigned long long swizzle = o->ring->swizzle == 128 ? 1 : o->ring->swizzle == 64 ? 2 : 3;
	unsigned long long sbo = (unsigned long long)o->ring->swizzle * 8 / 16;
	unsigned long long lbo = o->k_major ? 1 : (unsigned long long)o->ring->panel_bytes / 16;

	return swizzle << 62 | sbo << 32 | lbo << 16;
}

/* Byte offset in a slot of k step `ks` (C text) and row or column block at `first`. */
static const char *operand_offset(struct text *c, const struct operand *o, const char *first)
{
	const struct ring *r = o->ring;
	int per_panel = r->swizzle / INSTRUCTION_K_BYTES;
	const char *ks = strcmp(o->k_first, "0") ? arena_strf(c->a, "(ks + %s)", o->k_first) : "ks";

	if (o->k_major)
		return arena_strf(c->a, "%s / %d * %lld + %s %% %d * %d + (%s) * %d", ks, per_panel,
			(long long)r->panel_bytes, ks, per_panel, INSTRUCTION_K_BYTES, first,
			r->swizzle);
	return arena_strf(c->a, "%s * %d + (%s) / %lld * %lld", ks, 16 * r->swizzle, first,
		(long long)r->panel_cols, (long long)r->panel_bytes);
}

/* 0 in the first product of a life that begins with this sTask and with zero. */
static const char *add_text(struct text *c, const struct kentry *x, const struct node *mma,
	int buffer)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct carry *carry;
	struct buf b;

	if (mma->ref == NONE)
		return "ks > 0";
	carry = &c->p->carries.v[mma->ref];
	if (carry->init != 0 || x->lands || c->g->buffers.v[buffer].first != x->task)
		return "1";
	buf_init(&b, c->a);
	buf_puts(&b, "ks > 0");
	for (int l = s->loop; l != carry->loop && l != NONE; l = c->p->loops.v[l].parent)
		buf_printf(&b, " || i_%d > 0", l);
	return b.text;
}

/* The rows of a part lie together only if no other axis goes around its own. */
static enum err_code check_part(const struct text *c, const struct stask *s,
	const struct operand *o, const struct buffer *b, struct err *e)
{
	const struct shape2 *shape = &o->ring->shape;

	for (int i = 0; o->k_major && i < shape->nrow && shape->row[i] != s->split_axis; i++)
		if (c->g->extents.tile[shape->row[i]] > 1)
			return err_set(e, ERR_ILLEGAL, s->loc, "'%s' takes a part of '%s', of which "
				"'%s' has a piece for each '%s': its rows do not lie together; split "
				"'%s', or take a tile of 1 of it", s->name,
				c->p->axes.v[s->split_axis].name, b->name,
				c->p->axes.v[shape->row[i]].name, c->p->axes.v[shape->row[i]].name);
	return OK;
}

/* First row or column of the operand's that this part of a split product takes. */
static enum err_code part_first(const struct text *c, const struct stask *s,
	const struct operand *o, const struct buffer *b, int64_t extent, int64_t *first, struct err *e)
{
	bool part = false;

	*first = 0;
	for (int i = 0; i < b->naxes && b->parts == 1 && s->parts > 1; i++)
		part |= b->axis[i] == s->split_axis;
	if (!part)
		return OK;
	*first = extent * s->part;
	TRY(check_part(c, s, o, b, e));
	if (*first % (o->k_major ? 8 : o->ring->panel_cols))
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' begins at %lld of '%s'; the matrix unit "
			"takes parts by %lld", s->name, (long long)*first, b->name,
			(long long)(o->k_major ? 8 : o->ring->panel_cols));
	return OK;
}

/* Columns of one instruction: the fewest equal pieces that it takes. */
static int piece_of(int cols)
{
	int pieces = (int)ceil_div(cols, INSTRUCTION_COLS);

	while (cols % pieces || cols / pieces % 8)
		pieces++;
	return cols / pieces;
}

struct product {
	const struct node *mma;
	int result;			/* buffer */
	struct view view;
	bool registers;			/* the first operand is in registers, of buffer pa */
	int pa;
	struct operand a, b;
	int64_t first_a, first_b;
	int steps, cols;		/* of an instruction */
};

static enum err_code check_product(const struct text *c, const struct stask *s,
	const struct view *v, struct err *e)
{
	enum dtype t = s->work.type;

	if ((t != DT_BF16 && t != DT_F16 && t != DT_TF32 && t != DT_E4M3 && t != DT_E5M2) ||
	    v->kind != FRAG_FULL || c->lane->warps % 4)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s': a product of %s, %lld x %lld on %d "
			"warps, is not lowered for sm_90a; a warpgroup of 4 warps multiplies bf16, "
			"f16, tf32, e4m3 or e5m2", s->name, dtype_name(t), (long long)v->height,
			(long long)v->width, c->lane->warps);
	return OK;
}

/* Only 16-bit operands may be in registers, or lie with their own axis contiguous. */
static enum err_code check_operands(const struct stask *s, const struct product *p,
	struct err *e)
{
	if (dtype_bits(s->work.type) == 16 || (!p->registers && p->a.k_major && p->b.k_major))
		return OK;
	return err_set(e, ERR_ILLEGAL, s->loc, "'%s': the matrix unit takes operands of %s out of "
		"shared memory alone, and the axis that it contracts must be the contiguous one",
		s->name, dtype_name(s->work.type));
}

static enum err_code find_product(struct text *c, const struct kentry *x, struct product *p,
	struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	int node = t->nodes.v[t->nodes.n - 1], pb;
	const struct shape2 *shape = &c->k->node_shape[node];

	p->mma = &c->p->nodes.v[node];
	p->result = p->mma->ref != NONE ? buffer_of_carry(c, s, p->mma->ref) :
		buffer_of_node(c, s, node);
	TRY(x->lands ? node_view(c, s, node, &p->view, e) : buffer_view(c, p->result, &p->view, e));
	TRY(check_product(c, s, &p->view, e));
	p->pa = buffer_of_node(c, s, p->mma->arg[0]);
	pb = buffer_of_node(c, s, p->mma->arg[1]);
	p->registers = c->k->ring_of[p->pa] == NONE;
	p->steps = (int)ceil_div(s->work.k * dtype_bits(s->work.type) / 8, INSTRUCTION_K_BYTES);
	p->cols = piece_of((int)p->view.cols);
	TRY(find_operand(c, x, p->mma->arg[1], shape->col, shape->ncol, &p->b, e));
	TRY(part_first(c, s, &p->b, &c->g->buffers.v[pb], p->view.width, &p->first_b, e));
	if (!p->b.k_major && p->cols < p->view.cols && p->cols % p->b.ring->panel_cols)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' has %lld columns, which make no equal "
			"instructions", s->name, (long long)p->view.cols);
	if (p->registers)
		return check_operands(s, p, e);
	TRY(find_operand(c, x, p->mma->arg[0], shape->row, shape->nrow, &p->a, e));
	TRY(check_operands(s, p, e));
	return part_first(c, s, &p->a, &c->g->buffers.v[p->pa], p->view.height, &p->first_a, e);
}

enum err_code emit_mma(struct text *c, const struct kentry *x, struct err *e)
{
	struct product p = { 0 };
	const struct view *v = &p.view;
	const char *acc, *pieces = "", *name;
	bool ta, tb;

	TRY(find_product(c, x, &p, e));
	ta = !p.registers && !p.a.k_major;
	tb = !p.b.k_major;
	name = make_function(c, &(struct product_form){ p.registers, ta, tb, p.cols,
		c->g->tasks.v[x->task].work.type });
	acc = x->lands ? landing_name(c, p.result) : buffer_name(c, x, p.result);
	if (x->lands)
		TRY(put_take_off(c, x, (int)(p.mma - c->p->nodes.v), p.result, e));
	put(c, "EACH(rb, %d) PIN_F(%s[rb], %lld);", v->blocks, acc, (long long)(v->cols / 2));
	if (p.registers)
		put(c, "EACH(rb, %d) PIN_U(%s[rb], %d);", v->blocks, buffer_name(c, x, p.pa),
			4 * p.steps);
	put(c, "groups_fence();");
	if (p.cols < v->cols)
		pieces = arena_strf(c->a, " EACH(cb, %lld)", (long long)(v->cols / p.cols));
	put(c, "EACH(rb, %d)%s EACH(ks, %d) {", v->blocks, pieces, p.steps);
	if (!p.registers)
		put(c, "\tconst u64 da = 0x%llxull | ((%s + %s) >> 4 & 0x3fff);",
			descriptor_bits(&p.a), p.a.slot, operand_offset(c, &p.a, arena_strf(c->a,
			"%lld + rb * %d + group * 64", (long long)p.first_a, 16 * c->lane->warps)));
	put(c, "\tconst u64 db = 0x%llxull | ((%s + %s) >> 4 & 0x3fff);", descriptor_bits(&p.b),
		p.b.slot, operand_offset(c, &p.b, arena_strf(c->a, "%lld%s", (long long)p.first_b,
		*pieces ? arena_strf(c->a, " + cb * %d", p.cols) : "")));
	put(c, "\t%s(%s[rb]%s, %s, db, %s);", name, acc, *pieces ? arena_strf(c->a, " + cb * %d", p.cols / 2) : "", p.registers ?
		arena_strf(c->a, "&%s[rb][4 * ks]", buffer_name(c, x, p.pa)) : "da",
		add_text(c, x, p.mma, p.result));
	put(c, "}");
	put(c, "groups_commit();");
	put(c, "EACH(rb, %d) PIN_F(%s[rb], %lld);", v->blocks, acc, (long long)(v->cols / 2));
	return OK;
}
