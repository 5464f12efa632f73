/* Matrix products: wgmma with the second operand, and often the first, read from
 * swizzled shared memory through matrix descriptors. */
#include "emit/gpu_text.h"

#include <string.h>

enum { INSTRUCTION_ROWS = 64, INSTRUCTION_K_BYTES = 32 };

/* One function for each form in use: 64 x n x 16; ta, tb: the operand's rows, not its
 * contracted axis, are contiguous. On the host they all call one. */
static void make_function(struct text *c, bool registers, bool ta, bool tb, int n, const char *type)
{
	struct buf *o = &c->functions;
	int next = n / 2;

	if (c->made[registers][ta][tb][n])
		return;
	c->made[registers][ta][tb][n] = true;
	buf_printf(o, "DEV void mma_%s_%d_%d_%d(float *d, %s, u64 b, int add)\n{\n", registers ? "rs" :
		"ss", n, ta, tb, registers ? "const u32 *a" : "u64 a");
	if (c->host) {
		buf_printf(o, "\thost_mma_%s(d, a, b, add, %d, %d, %d, HOST_%s);\n}\n", registers ?
			"rs" : "ss", n, ta, tb, type);
		return;
	}
	buf_printf(o, "\tasm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n\"\n\t\t\"wgmma.mma_async.sync.aligned."
		"m64n%dk16.f32.%s.%s {", next + (registers ? 5 : 2), n, type, type);
	for (int i = 0; i < n / 2; i++)
		buf_printf(o, "%s%%%d", i ? ", " : "", i);
	if (registers)
		buf_printf(o, "}, {%%%d, %%%d, %%%d, %%%d}, %%%d, p, 1, 1, %d;\\n}\"\n\t\t: ", next,
			next + 1, next + 2, next + 3, next + 4, tb);
	else
		buf_printf(o, "}, %%%d, %%%d, p, 1, 1, %d, %d;\\n}\"\n\t\t: ", next, next + 1, ta, tb);
	for (int i = 0; i < n / 2; i++)
		buf_printf(o, "%s\"+f\"(d[%d])", i ? ", " : "", i);
	buf_printf(o, "\n\t\t: %s, \"l\"(b), \"r\"(add));\n}\n", registers ?
		"\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
}

/* An operand in shared memory. k_major: the contracted axis is the contiguous one. */
struct operand {
	const struct ring *ring;
	bool k_major;
	const char *slot;
};

static enum err_code find_operand(struct text *c, const struct kentry *x, int arg, bool second,
	struct operand *o, struct err *e)
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
	for (int i = 0; i < c->p->nodes.v[arg].naxes; i++)
		if (shape->whole >> c->p->nodes.v[arg].axis[i] & 1 && program_axis_bound(c->p, s->loop,
		    c->p->nodes.v[arg].axis[i]))
			return err_set(e, ERR_ILLEGAL, b->loc, "'%s' holds a whole axis of which each "
				"iteration multiplies a part; that is not lowered yet", b->name);
	o->k_major = !kept;
	(void)second;
	return OK;
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

	if (o->k_major)
		return arena_strf(c->a, "ks / %d * %lld + ks %% %d * %d + (%s) * %d", per_panel,
			(long long)r->panel_bytes, per_panel, INSTRUCTION_K_BYTES, first, r->swizzle);
	return arena_strf(c->a, "ks * %d + (%s) / %lld * %lld", 16 * r->swizzle, first,
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
	if (carry->init != 0 || c->g->buffers.v[buffer].first != x->task)
		return "1";
	buf_init(&b, c->a);
	buf_puts(&b, "ks > 0");
	for (int l = s->loop; l != carry->loop && l != NONE; l = c->p->loops.v[l].parent)
		buf_printf(&b, " || i_%d > 0", l);
	return b.text;
}

static bool splits(const struct text *c, const struct stask *s, int axis)
{
	(void)c;
	return s->parts > 1 && s->split_axis == axis;
}

enum err_code emit_mma(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	int node = t->nodes.v[t->nodes.n - 1], result, pa, part_rows = 0;
	const struct node *mma = &c->p->nodes.v[node];
	const struct node *a = &c->p->nodes.v[mma->arg[0]];
	bool registers = c->k->ring_of[buffer_of_node(c, s, mma->arg[0])] == NONE;
	struct operand oa = { 0 }, ob;
	int steps = (int)ceil_div(s->work.k * dtype_bits(s->work.type) / 8, INSTRUCTION_K_BYTES);
	const char *acc, *type = dtype_name(s->work.type);
	struct view v;
	int n;

	result = mma->ref != NONE ? buffer_of_carry(c, s, mma->ref) : buffer_of_node(c, s, node);
	TRY(buffer_view(c, result, &v, e));
	n = (int)v.cols;
	if ((s->work.type != DT_BF16 && s->work.type != DT_F16) || v.kind != FRAG_FULL || n > 256 ||
	    c->lane->warps % 4)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s': a product of %s, %lld x %lld on %d warps, "
			"is not lowered for sm_90a yet", s->name, type, (long long)v.rows,
			(long long)v.cols, c->lane->warps);
	if (s->work.k * dtype_bits(s->work.type) / 8 % INSTRUCTION_K_BYTES)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' contracts %lld elements at a time; the "
			"matrix unit takes multiples of %d", s->name, (long long)s->work.k,
			INSTRUCTION_K_BYTES * 8 / dtype_bits(s->work.type));
	TRY(find_operand(c, x, mma->arg[1], true, &ob, e));
	if (!registers)
		TRY(find_operand(c, x, mma->arg[0], false, &oa, e));
	for (int i = 0; i < a->naxes; i++)
		if (splits(c, s, a->axis[i]))
			part_rows = (int)(v.rows * s->part);
	make_function(c, registers, !registers && !oa.k_major, !ob.k_major, n, type);
	acc = buffer_name(c, x, result);
	put(c, "EACH(rb, %d) PIN_F(%s[rb], %d);", v.blocks, acc, n / 2);
	pa = registers ? buffer_of_node(c, s, mma->arg[0]) : NONE;
	if (registers)
		put(c, "EACH(rb, %d) PIN_U(%s[rb], %d);", v.blocks, buffer_name(c, x, pa), 4 * steps);
	put(c, "groups_fence();");
	put(c, "EACH(rb, %d) EACH(ks, %d) {", v.blocks, steps);
	if (!registers)
		put(c, "\tconst u64 da = 0x%llxull | ((%s + %s) >> 4 & 0x3fff);", descriptor_bits(&oa),
			oa.slot, operand_offset(c, &oa, arena_strf(c->a, "%d + rb * %d + group * 64",
			part_rows, 16 * c->lane->warps)));
	put(c, "\tconst u64 db = 0x%llxull | ((%s + %s) >> 4 & 0x3fff);", descriptor_bits(&ob),
		ob.slot, operand_offset(c, &ob, "0"));
	put(c, "\tmma_%s_%d_%d_%d(%s[rb], %s, db, %s);", registers ? "rs" : "ss", n,
		!registers && !oa.k_major, !ob.k_major, acc, registers ? arena_strf(c->a,
		"&%s[rb][4 * ks]", buffer_name(c, x, pa)) : "da", add_text(c, x, mma, result));
	put(c, "}");
	put(c, "groups_commit();");
	put(c, "EACH(rb, %d) PIN_F(%s[rb], %d);", v.blocks, acc, n / 2);
	return OK;
}
