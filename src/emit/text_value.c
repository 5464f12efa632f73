/* Where values are, as C text. */
#include "emit/gpu_text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { FRAGMENT_MOST = 4096 };		/* elements a thread: beyond all use */

void put(struct text *c, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = arena_vstrf(c->a, fmt, ap);
	va_end(ap);
	if (*s && *s != '#')
		buf_repeat(c->out, "\t", c->indent);
	buf_puts(c->out, s);
	buf_putc(c->out, '\n');
}

const char *c_name(struct text *c, const char *prefix, const char *name)
{
	char *s = arena_strf(c->a, "%s%s", prefix, name);

	for (char *p = s; *p; p++)
		if (*p == '.')
			*p = '_';
	return s;
}

const char *float_text(struct text *c, double x)
{
	const char *s = arena_strf(c->a, "%.9g", x);

	if (isinf(x))
		return x < 0 ? "(-INFINITE)" : "INFINITE";
	return arena_strf(c->a, strpbrk(s, ".e") ? "%sf" : "%s.f", s);
}

static enum err_code make_view(struct text *c, const struct stask *s, const struct shape2 *shape,
	enum dtype type, struct view *v, struct err *e)
{
	int warps = c->lane->warps, eight = 8;

	*v = (struct view){ .height = shape->rows, .width = shape->cols };
	for (int i = 0; i < shape->nrow; i++)
		if (shape->row[i] == s->split_axis)
			v->height /= s->parts;
	for (int i = 0; i < shape->ncol; i++) {
		if (shape->col[i] == s->split_axis)
			v->width /= s->parts;
		if (c->k->deep >> shape->col[i] & 1)
			eight = 16;
	}
	v->kind = shape->nrow ? (shape->ncol ? FRAG_FULL : FRAG_ROW) :
		shape->ncol ? FRAG_COL : FRAG_SCALAR;
	v->blocks = (int)ceil_div(v->height, 16 * warps);
	v->rows = shape->nrow ? (int64_t)v->blocks * 16 * warps : 1;
	v->cols = shape->ncol ? ceil_div(v->width, eight) * eight : 1;
	v->packed = v->kind == FRAG_FULL && (type == DT_BF16 || type == DT_F16);
	if (v->rows * v->cols / (32 * warps) > FRAGMENT_MOST)
		return err_set(e, ERR_ILLEGAL, s->loc, "'%s' has a value of %lld x %lld, too large "
			"for the registers of %d warp%s", s->name, (long long)v->height,
			(long long)v->width, warps, warps == 1 ? "" : "s");
	return OK;
}

enum err_code node_view(struct text *c, const struct stask *s, int node, struct view *v,
	struct err *e)
{
	return make_view(c, s, &c->k->node_shape[node], c->p->nodes.v[node].type, v, e);
}

enum err_code buffer_view(struct text *c, int buffer, struct view *v, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	const struct stask *s = &c->g->tasks.v[b->first];

	if (b->node != NONE)
		return node_view(c, s, b->node, v, e);
	return make_view(c, s, &c->k->carry_shape[b->carry], b->type, v, e);
}

static bool lists(const int *v, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

int buffer_of_node(const struct text *c, const struct stask *s, int node)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].node == node && (lists(s->reads.v, s->reads.n, i) ||
		    lists(s->writes.v, s->writes.n, i)))
			return i;
	return NONE;
}

int buffer_of_carry(const struct text *c, const struct stask *s, int carry)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].carry == carry && (lists(s->reads.v, s->reads.n, i) ||
		    lists(s->writes.v, s->writes.n, i)))
			return i;
	return NONE;
}

const char *version_name(struct text *c, int buffer, int version)
{
	return arena_strf(c->a, "%s[%d]", c_name(c, "r_", c->g->buffers.v[buffer].name), version);
}

/* A value of the entry's own region is of iteration turn + at, so its version is known
 * in each copy of the unrolled turn. */
const char *buffer_name(struct text *c, const struct kentry *x, int buffer)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	int versions = c->plan->versions[buffer], version = 0;

	if (b->loop == c->g->tasks.v[x->task].loop)
		version = (int)floor_mod(c->turn + x->at, versions);
	else
		version = (int)floor_mod(c->around[b->loop], versions);
	return version_name(c, buffer, version);
}

static bool is_whole(const struct shape2 *shape, int axis)
{
	return shape && (shape->whole >> axis & 1);
}

const char *axis_lo(struct text *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	const struct axis *a = &c->p->axes.v[axis];
	enum axis_role role = program_axis_role(c->p, s->phase, axis);

	if (is_whole(shape, axis))
		return "0";
	if (a->packs != NONE)		/* words stand where what they hold stands */
		return arena_strf(c->a, "(%s / %d)", axis_lo(c, s, shape, a->packs), a->per);
	if (role == AXIS_BATCH || role == AXIS_GRID || program_axis_bound(c->p, s->loop, axis))
		return arena_strf(c->a, "lo_%s", a->name);
	return "0";
}

/* Neighbours along the axis that are one element of a ring of this shape. */
static int64_t share_in(const struct shape2 *shape, int axis)
{
	for (int i = 0; i < shape->nrow; i++)
		if (shape->row[i] == axis)
			return shape->row_share[i];
	for (int i = 0; i < shape->ncol; i++)
		if (shape->col[i] == axis)
			return shape->col_share[i];
	return 1;
}

static int64_t extent_in(const struct text *c, const struct stask *s, const struct shape2 *shape,
	int axis)
{
	int64_t x = is_whole(shape, axis) ? c->p->axes.v[axis].size : c->g->extents.tile[axis];

	if (axis == s->split_axis)
		x /= s->parts;
	return ceil_div(x, share_in(shape, axis));
}

/* The axis's part of a flat row or column number. */
static const char *part_of(struct text *c, const struct stask *s, const struct shape2 *shape,
	const int *axes, int n, int axis, const char *flat)
{
	int64_t below = 1;
	int i = n - 1;

	for (; axes[i] != axis; i--)
		below *= extent_in(c, s, shape, axes[i]);
	if (n == 1)
		return flat;
	if (i == 0)
		return arena_strf(c->a, "((%s) / %lld)", flat, (long long)below);
	return arena_strf(c->a, "((%s) / %lld %% %lld)", flat, (long long)below,
		(long long)extent_in(c, s, shape, axis));
}

const char *axis_local(struct text *c, const struct stask *s, const struct shape2 *shape, int axis)
{
	const char *text = "0";
	int packs = c->p->axes.v[axis].packs;

	if (packs != NONE && !lists(shape->row, shape->nrow, axis) &&
	    !lists(shape->col, shape->ncol, axis))
		return arena_strf(c->a, "(%s / %d)", axis_local(c, s, shape, packs),
			c->p->axes.v[axis].per);
	if (lists(shape->row, shape->nrow, axis))
		text = part_of(c, s, shape, shape->row, shape->nrow, axis, arena_strf(c->a,
			"(rb * %d + row0 + 8 * h)", 16 * c->lane->warps));
	else if (lists(shape->col, shape->ncol, axis))
		text = part_of(c, s, shape, shape->col, shape->ncol, axis, "(8 * j + col0 + e)");
	if (share_in(shape, axis) > 1)
		text = arena_strf(c->a, "(%s * %lld)", text, (long long)share_in(shape, axis));
	if (axis == s->split_axis && s->parts > 1)
		text = arena_strf(c->a, "(%s + %lld)", text,
			(long long)(s->part * extent_in(c, s, shape, axis) * share_in(shape, axis)));
	return text;
}

static bool is_ragged(const struct text *c, const struct shape2 *shape, int axis)
{
	return !is_whole(shape, axis) && c->p->axes.v[axis].size % c->g->extents.tile[axis];
}

const char *inside_text(struct text *c, const struct stask *s, const struct shape2 *shape,
	const struct view *v, uint64_t ends)
{
	const char *text = "true";

	if (v->height < v->rows)
		text = arena_strf(c->a, "%s && rb * %d + row0 + 8 * h < %lld", text,
			16 * c->lane->warps, (long long)v->height);
	if (v->width < v->cols)
		text = arena_strf(c->a, "%s && 8 * j + col0 + e < %lld", text,
			(long long)v->width);
	for (int i = 0; i < shape->nrow + shape->ncol; i++) {
		int axis = i < shape->nrow ? shape->row[i] : shape->col[i - shape->nrow];

		if (ends >> axis & 1 && is_ragged(c, shape, axis))
			text = arena_strf(c->a, "%s && %s + %s < %lld", text, axis_lo(c, s, shape,
				axis), axis_local(c, s, shape, axis), (long long)
				c->p->axes.v[axis].size);
	}
	return strcmp(text, "true") ? text + strlen("true && ") : text;
}

const char *index_text(struct text *c, const struct stask *s, const struct index_expr *x,
	const struct shape2 *shape, bool local)
{
	struct buf b;

	buf_init(&b, c->a);
	buf_printf(&b, "(%lld", (long long)x->k);
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		const char *lo = axis_lo(c, s, shape, t->axis);

		buf_puts(&b, " + ");
		if (t->coef != 1)
			buf_printf(&b, "%lld * ", (long long)t->coef);
		buf_puts(&b, local ? arena_strf(c->a, "((%s + %s)", lo,
			axis_local(c, s, shape, t->axis)) : arena_strf(c->a, "(%s", lo));
		if (t->div != 1)
			buf_printf(&b, " / %lld", (long long)t->div);
		if (t->mod)
			buf_printf(&b, " %% %lld", (long long)t->mod);
		buf_putc(&b, ')');
	}
	buf_putc(&b, ')');
	return b.text;
}

/* Place along an axis in a ring of the element at hand. */
static const char *place_in(struct text *c, const struct stask *s, const struct ring *r, int axis,
	const struct shape2 *shape)
{
	const char *at = axis_local(c, s, shape, axis);

	/* the tile at hand, of a ring that holds the whole axis */
	if (is_whole(&r->shape, axis) && !is_whole(shape, axis))
		at = arena_strf(c->a, "%s + %s", axis_lo(c, s, shape, axis), at);
	if (c->g->buffers.v[r->buffer].parts > 1 && axis == s->split_axis)
		at = arena_strf(c->a, "%s - %lld", at, (long long)(s->part *
			extent_in(c, s, shape, axis)));
	if (share_in(&r->shape, axis) > 1)
		at = arena_strf(c->a, "(%s) / %lld", at, (long long)share_in(&r->shape, axis));
	return at;
}

/* Flat number of the axes' places in a ring. */
static const char *flatten(struct text *c, const struct stask *s, const struct ring *r,
	const int *axes, int n, const struct shape2 *shape)
{
	const struct buffer *b = &c->g->buffers.v[r->buffer];
	const char *text = "0";

	for (int i = 0; i < n; i++) {
		int axis = axes[i];
		int64_t extent = is_whole(&r->shape, axis) ? c->p->axes.v[axis].size :
			c->g->extents.tile[axis];
		const char *at = place_in(c, s, r, axis, shape);

		if (b->parts > 1 && axis == s->split_axis)	/* it has no other part */
			extent /= b->parts;
		extent = ceil_div(extent, share_in(&r->shape, axis));
		text = i ? arena_strf(c->a, "(%s) * %lld + %s", text, (long long)extent, at) : at;
	}
	return text;
}

/* The same where what lies in rows and columns is the part of s alone. */
const char *plain_place(struct text *c, const struct stask *s, const struct shape2 *from,
	const struct shape2 *to)
{
	const char *text = "0";

	for (int i = 0; i < from->nrow + from->ncol; i++) {
		int axis = i < from->nrow ? from->row[i] : from->col[i - from->nrow];
		const char *at = axis_local(c, s, to, axis);

		if (is_whole(from, axis) && !is_whole(to, axis))
			at = arena_strf(c->a, "%s + %s", axis_lo(c, s, to, axis), at);
		if (axis == s->split_axis && s->parts > 1)
			at = arena_strf(c->a, "%s - %lld", at, (long long)(s->part *
				extent_in(c, s, from, axis)));
		text = i ? arena_strf(c->a, "(%s) * %lld + %s", text, (long long)extent_in(c, s,
			from, axis), at) : at;
	}
	return text;
}

const char *ring_place(struct text *c, const struct ring *r, const char *slot, const char *row,
	const char *col)
{
	int bytes = dtype_bits(c->g->buffers.v[r->buffer].type) / 8;

	if (!r->swizzle)
		return arena_strf(c->a, "(%s + ((%s) * %lld + (%s)) * %d)", slot, row,
			(long long)r->panel_cols, col, bytes);
	return arena_strf(c->a, "(%s + (%s) / %lld * %lld + ((((%s) * %d + (%s) %% %lld * %d)) ^ "
		"(((%s) * %d / 128 & %d) << 4)))", slot, col, (long long)r->panel_cols,
		(long long)r->panel_bytes, row, r->swizzle, col, (long long)r->panel_cols, bytes,
		row, r->swizzle, r->swizzle / 16 - 1);
}

const char *ring_address(struct text *c, const struct stask *s, const struct ring *r,
	const struct shape2 *shape, const char *slot)
{
	return ring_place(c, r, slot, flatten(c, s, r, r->shape.row, r->shape.nrow, shape),
		flatten(c, s, r, r->shape.col, r->shape.ncol, shape));
}

/* What memory holds of an element, and a register. */

static bool in_float(enum dtype t)
{
	return t == DT_F32 || t == DT_TF32;
}

const char *bits_type(enum dtype t)
{
	return dtype_bits(t) == 16 ? "u16" : dtype_bits(t) == 8 ? "u8" : in_float(t) ? "float" :
		"u32";
}

const char *from_bits(struct text *c, enum dtype t, const char *bits)
{
	return in_float(t) ? bits : t == DT_I32 ? arena_strf(c->a, "(int)%s", bits) :
		arena_strf(c->a, "from_%s(%s)", dtype_name(t), bits);
}

const char *to_bits(struct text *c, enum dtype t, const char *value)
{
	if (t == DT_BF16 || t == DT_F16)
		return arena_strf(c->a, "(u16)pack_%s(%s, 0.f)", dtype_name(t), value);
	return in_float(t) ? value : t == DT_I32 ? arena_strf(c->a, "(u32)%s", value) :
		arena_strf(c->a, "to_%s(%s)", dtype_name(t), value);
}

const char *shared_type(enum dtype t)
{
	return in_float(t) ? "f32" : dtype_bits(t) == 16 ? "u16" : dtype_bits(t) == 8 ? "u8" : "u32";
}

const char *shared_get(struct text *c, enum dtype t, const char *address)
{
	return arena_strf(c->a, "shared_%s(%s)", shared_type(t), address);
}

const char *shared_put(struct text *c, enum dtype t, const char *address, const char *value)
{
	return arena_strf(c->a, "shared_put_%s(%s, %s);", shared_type(t), address,
		to_bits(c, t, value));
}
