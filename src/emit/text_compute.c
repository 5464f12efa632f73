/* Element-wise sTasks: one loop a node over the fragment, all in registers. */
#include "emit/gpu_text.h"
#include "lower/detours.h"

#include <string.h>

const char *register_type(enum dtype t)
{
	if (dtype_is_float(t))
		return "float";
	return t == DT_BOOL ? "bool" : "int";
}

/* Index of the element at hand in an array of registers of this kind. */
const char *frag_element(enum frag kind)
{
	switch (kind) {
	case FRAG_FULL:
		return "[rb][(j * 2 + h) * 2 + e]";
	case FRAG_ROW:
		return "[rb][h]";
	case FRAG_COL:
		return "[j * 2 + e]";
	case FRAG_SCALAR:
		break;
	}
	return "[0]";
}

const char *frag_dims(struct text *c, const struct view *v)
{
	switch (v->kind) {
	case FRAG_FULL:
		return arena_strf(c->a, "[%d][%lld]", v->blocks,
			(long long)(v->packed ? v->cols / 4 : v->cols / 2));
	case FRAG_ROW:
		return arena_strf(c->a, "[%d][2]", v->blocks);
	case FRAG_COL:
		return arena_strf(c->a, "[%lld]", (long long)(v->cols / 4));
	case FRAG_SCALAR:
		break;
	}
	return "[1]";
}

const char *frag_loops(struct text *c, const struct view *v)
{
	switch (v->kind) {
	case FRAG_FULL:
		return arena_strf(c->a, "EACH(rb, %d) EACH(j, %lld) EACH(h, 2) EACH(e, 2) ",
			v->blocks, (long long)(v->cols / 8));
	case FRAG_ROW:
		return arena_strf(c->a, "EACH(rb, %d) EACH(h, 2) ", v->blocks);
	case FRAG_COL:
		return arena_strf(c->a, "EACH(j, %lld) EACH(e, 2) ", (long long)(v->cols / 8));
	case FRAG_SCALAR:
		break;
	}
	return "";
}

static const char *unpacked(struct text *c, enum dtype t, const char *name)
{
	return arena_strf(c->a, "from_%s(half_of(%s[rb][j * 2 + h], e))", dtype_name(t), name);
}

static const char *literal(struct text *c, const struct node *n)
{
	if (n->type == DT_BOOL || !dtype_is_float(n->type))
		return arena_strf(c->a, "%lld", (long long)n->k);
	return float_text(c, n->k);
}

/* Read an element of a tile in shared memory; of what is beyond its extents, zero. */
enum err_code from_ring(struct text *c, const struct kentry *x, const struct ring *r,
	int node, const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct shape2 *shape = &c->k->node_shape[node];
	const struct buffer *b = &c->g->buffers.v[r->buffer];
	const char *inside;
	struct view v;

	TRY(node_view(c, s, node, &v, e));
	/* a tile that reaches beyond the end of an axis of which the ring has all */
	inside = inside_text(c, s, shape, &v, r->shape.whole & ~shape->whole);
	*out = from_bits(c, b->type, shared_get(c, b->type, ring_address(c, s, r, shape,
		c_name(c, "slot_", b->name))));
	if (strcmp(inside, "true"))
		*out = arena_strf(c->a, "(%s ? %s : 0)", inside, *out);
	return OK;
}

/* An argument in registers: of this sTask, or of an earlier one on the lane. */
static enum err_code from_registers(struct text *c, const struct kentry *x, int node, int arg,
	const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct node *a = &c->p->nodes.v[arg];
	const char *name = a->task == s->task ? arena_strf(c->a, "x%d", arg) :
		buffer_name(c, x, buffer_of_node(c, s, arg));
	struct view v;

	if (shape_alike(&c->k->node_shape[node], &c->k->node_shape[arg]))
		TRY(node_view(c, s, arg, &v, e));
	else
		return detour_text(c, x, node, arg, NONE, out, e);
	if (a->task == s->task && c->fused[arg])
		*out = arena_strf(c->a, "e%d", arg);
	else
		*out = v.packed ? unpacked(c, a->type, name) :
			arena_strf(c->a, "%s%s", name, frag_element(v.kind));
	return OK;
}

enum err_code operand_text(struct text *c, const struct kentry *x, int node, int arg,
	const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct shape2 *shape = &c->k->node_shape[node];
	const struct node *a = &c->p->nodes.v[arg];
	int buffer;

	if (a->op == OP_CONST) {
		*out = literal(c, a);
		return OK;
	}
	if (a->op == OP_INDEX) {
		*out = arena_strf(c->a, "(%s + %s)", axis_lo(c, s, shape, a->ref),
			axis_local(c, s, shape, a->ref));
		return OK;
	}
	buffer = a->task == s->task ? NONE : buffer_of_node(c, s, arg);
	if (buffer != NONE && c->k->ring_of[buffer] != NONE)
		return from_ring(c, x, &c->k->rings.v[c->k->ring_of[buffer]], node, out, e);
	return from_registers(c, x, node, arg, out, e);
}

/* Field of the word that holds the element at hand (program_unpack). */
static enum err_code unpack_text(struct text *c, const struct kentry *x, int node,
	const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct node *n = &c->p->nodes.v[node];
	int buffer = buffer_of_node(c, s, n->arg[0]), bits = dtype_bits(n->type);
	const char *word;

	if (buffer == NONE || c->k->ring_of[buffer] == NONE)
		return err_set(e, ERR_ILLEGAL, n->loc, "unpack takes words out of shared memory; "
			"these are in registers");
	TRY(operand_text(c, x, node, n->arg[0], &word, e));
	*out = arena_strf(c->a, "from_%s((u32)%s >> %s %% %d * %d)", dtype_name(n->type), word,
		axis_local(c, s, &c->k->node_shape[node], n->ref), 32 / bits, bits);
	return OK;
}

/* The element-wise operations in C, on floats and on integers; $0 $1 $2 stand for the
 * arguments. What is not here is emitted otherwise, or not yet. */
static const struct {
	enum op op;
	const char *on_float, *on_int;
} forms[] = {
	{ OP_ADD, "$0 + $1", "(int)((u32)$0 + (u32)$1)" },
	{ OP_SUB, "$0 - $1", "(int)((u32)$0 - (u32)$1)" },
	{ OP_MUL, "$0 * $1", "(int)((u32)$0 * (u32)$1)" },
	{ OP_DIV, "op_div($0, $1)", NULL },
	{ OP_NEG, "-$0", "(int)(0u - (u32)$0)" },
	{ OP_ABS, "fabsf($0)", "($0 < 0 ? (int)(0u - (u32)$0) : $0)" },
	{ OP_MIN, "fminf($0, $1)", "min_of($0, $1)" },
	{ OP_MAX, "fmaxf($0, $1)", "max_of($0, $1)" },
	{ OP_FLOOR, "floorf($0)", NULL },
	{ OP_EXP2, "op_exp2($0)", NULL },
	{ OP_LOG2, "op_log2($0)", NULL },
	{ OP_RSQRT, "op_rsqrt($0)", NULL },
	{ OP_SQRT, "sqrtf($0)", NULL },
	{ OP_TANH, "op_tanh($0)", NULL },
	{ OP_LT, NULL, "$0 < $1" },
	{ OP_LE, NULL, "$0 <= $1" },
	{ OP_EQ, NULL, "$0 == $1" },
	{ OP_NE, NULL, "$0 != $1" },
	{ OP_WHERE, "$0 ? $1 : $2", "$0 ? $1 : $2" },
	{ OP_AND, NULL, "$0 & $1" },
	{ OP_OR, NULL, "$0 | $1" },
	{ OP_XOR, NULL, "$0 ^ $1" },
	{ OP_SHL, NULL, "(int)((u32)$0 << ($1 & 31))" },
	{ OP_SHR, NULL, "$0 >> ($1 & 31)" },
};

static const char *expand(struct text *c, const char *form, const char *const *a)
{
	struct buf b;

	buf_init(&b, c->a);
	for (; *form; form++) {
		if (*form == '$')
			buf_puts(&b, a[*++form - '0']);
		else
			buf_putc(&b, *form);
	}
	return b.text;
}

static const char *formula(struct text *c, const struct node *n, const char *const *a)
{
	if (n->op == OP_NOT)
		return arena_strf(c->a, n->type == DT_BOOL ? "!%s" : "~%s", a[0]);
	for (int i = 0; i < LEN(forms); i++) {
		const char *form = dtype_is_float(n->type) ? forms[i].on_float : forms[i].on_int;

		if (forms[i].op == n->op && form)
			return expand(c, form, a);
	}
	return NULL;
}

enum err_code not_lowered(const struct node *n, struct err *e)
{
	return err_set(e, ERR_ILLEGAL, n->loc, "'%s' over these axes is not lowered for sm_90a yet",
		op_name(n->op));
}

static enum err_code emit_set(struct text *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct stask *s = &c->g->tasks.v[x->task];
	int buffer = buffer_of_carry(c, s, n->ref);
	const char *arg;
	struct view v;

	if (c->k->ring_of[buffer] != NONE)
		return put_set_shared(c, x, node, e);
	TRY(buffer_view(c, buffer, &v, e));
	if (has_detour(c, node, n->arg[0], NONE))
		TRY(detour_text(c, x, node, n->arg[0], NONE, &arg, e));
	else
		TRY(operand_text(c, x, n->arg[0], n->arg[0], &arg, e));
	put(c, "%s%s%s = %s;", frag_loops(c, &v), buffer_name(c, x, buffer), frag_element(v.kind), arg);
	return OK;
}

static enum err_code emit_packed_cast(struct text *c, const struct kentry *x, int node,
	const struct view *v, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const char *arg;

	TRY(operand_text(c, x, node, n->arg[0], &arg, e));
	put(c, "EACH(rb, %d) EACH(j, %lld) EACH(h, 2) {", v->blocks, (long long)(v->cols / 8));
	put(c, "\tfloat y[2]; EACH(e, 2) y[e] = %s;", arg);
	put(c, "\tx%d[rb][j * 2 + h] = pack_%s(y[0], y[1]);", node, dtype_name(n->type));
	put(c, "}");
	return OK;
}

/* Is the node an index along the one column axis plus a constant? */
static bool is_column_index(const struct text *c, const struct shape2 *shape, int node, int64_t *k)
{
	const struct node *n = &c->p->nodes.v[node];

	*k = 0;
	if ((n->op == OP_ADD || n->op == OP_SUB) && c->p->nodes.v[n->arg[1]].op == OP_CONST) {
		*k = (int64_t)c->p->nodes.v[n->arg[1]].k * (n->op == OP_ADD ? 1 : -1);
		n = &c->p->nodes.v[n->arg[0]];
	}
	return n->op == OP_INDEX && shape->ncol == 1 && shape->col[0] == n->ref;
}

/* A comparison of the column's index with something of the row is one of a number that
 * the compiler knows, 8 j + e, with the rest: otherwise it would keep the indices of
 * all columns in registers. NULL if it is not such a comparison. */
static const char *column_comparison(struct text *c, const struct kentry *x, int node)
{
	static const char *const signs[2][4] = { { "<", "<=", "==", "!=" }, { ">", ">=", "==", "!=" } };
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[node];
	int sign = n->op == OP_LT ? 0 : n->op == OP_LE ? 1 : n->op == OP_EQ ? 2 : 3;

	if (n->op != OP_LT && n->op != OP_LE && n->op != OP_EQ && n->op != OP_NE)
		return NULL;
	for (int side = 0; side < 2; side++) {
		int other = n->arg[1 - side], axis = shape->ncol ? shape->col[0] : NONE;
		const char *text;
		struct err e;
		int64_t k;

		if (!is_column_index(c, shape, n->arg[side], &k) ||
		    dtype_is_float(c->p->nodes.v[other].type))
			continue;
		for (int i = 0; i < c->p->nodes.v[other].naxes; i++)
			if (c->p->nodes.v[other].axis[i] == axis)
				return NULL;
		if (operand_text(c, x, node, other, &text, &e))
			return NULL;
		return arena_strf(c->a, "8 * j + e %s %s - (%s + col0 + %lld)", signs[side][sign],
			text, axis_lo(c, s, shape, axis), (long long)(k + (axis == s->split_axis ?
			s->part * c->g->extents.tile[axis] / s->parts : 0)));
	}
	return NULL;
}

/* A register holds the value that an element of the type would have; NULL: not yet. */
static const char *cast_text(struct text *c, enum dtype to, enum dtype from, const char *value)
{
	if (dtype_is_float(to) && !dtype_is_float(from))
		value = arena_strf(c->a, "(float)(%s)", value);
	switch (to) {
	case DT_BOOL:
		return arena_strf(c->a, "%s != 0", value);
	case DT_F32:
		return value;
	case DT_BF16: case DT_F16: case DT_E4M3: case DT_E5M2:
		return from_bits(c, to, to_bits(c, to, value));
	case DT_I32: case DT_I8:
		value = dtype_is_float(from) ? arena_strf(c->a, "to_i32(%s)", value) : value;
		return to == DT_I32 ? value : arena_strf(c->a, "max_of(-128, min_of(127, %s))",
			value);
	case DT_TF32:
		return arena_strf(c->a, "to_tf32(%s)", value);
	case DT_F64: case DT_E2M1: case DT_I4: case DT_COUNT:
		break;
	}
	return NULL;
}

static enum err_code carry_text(struct text *c, const struct kentry *x, int node,
	const struct view *v, const char **out, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	int buffer = buffer_of_carry(c, &c->g->tasks.v[x->task], n->ref);

	if (c->k->ring_of[buffer] != NONE)
		return from_ring(c, x, &c->k->rings.v[c->k->ring_of[buffer]], node, out, e);
	if (!shape_alike(&c->k->node_shape[node], &c->k->carry_shape[n->ref]))
		return detour_text(c, x, node, NONE, n->ref, out, e);
	*out = arena_strf(c->a, "%s%s", buffer_name(c, x, buffer), frag_element(v->kind));
	return OK;
}

/* The value of an element-wise node's element at hand. */
static enum err_code element_text(struct text *c, const struct kentry *x, int node,
	const char **out, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct node *n = &c->p->nodes.v[node];
	const char *a[3] = { NULL };
	struct view v;

	TRY(node_view(c, s, node, &v, e));
	if (n->op == OP_GET)
		return carry_text(c, x, node, &v, out, e);
	if (n->op == OP_UNPACK)
		return unpack_text(c, x, node, out, e);
	*out = column_comparison(c, x, node);
	if (*out)
		return OK;
	for (int i = 0; i < op_arity(n->op); i++)
		TRY(operand_text(c, x, node, n->arg[i], &a[i], e));
	*out = n->op == OP_CAST ? cast_text(c, n->type, c->p->nodes.v[n->arg[0]].type, a[0]) :
		formula(c, n, a);
	return *out ? OK : not_lowered(n, e);
}

static bool is_scan(enum op op)
{
	return op_class(op) == CLASS_SCAN;
}

static bool is_reduction(enum op op)
{
	return op_class(op) == CLASS_REDUCE;
}

/* Can this node share one loop over the elements with those around it? */
static bool can_fuse(struct text *c, const struct stask *s, int node, const struct view *with)
{
	const struct node *n = &c->p->nodes.v[node];
	struct view v;
	struct err e;

	return n->op != OP_SET && !is_reduction(n->op) && !is_scan(n->op) && !node_view(c, s, node, &v, &e) &&
		v.kind == with->kind && v.blocks == with->blocks && v.cols == with->cols && !v.packed;
}

/* Is the node's value read after position `last` of its task, or by others? */
static bool outlives(const struct text *c, const struct stask *s, int node, int last)
{
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = last; i < t->nodes.n; i++) {
		const struct node *n = &c->p->nodes.v[t->nodes.v[i]];

		for (int k = 0; k < op_arity(n->op); k++)
			if (n->arg[k] == node)
				return true;
	}
	return buffer_of_node(c, s, node) != NONE;
}

/* Nodes [first, last) of the task in one loop, so that what only they use is never
 * more than one element in registers. */
static enum err_code emit_fused(struct text *c, const struct kentry *x, int first, int last,
	struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];
	struct view v;

	TRY(node_view(c, s, t->nodes.v[first], &v, e));
	for (int i = first; i < last; i++)
		if (outlives(c, s, t->nodes.v[i], last))
			put(c, "%s x%d%s;", register_type(c->p->nodes.v[t->nodes.v[i]].type),
				t->nodes.v[i], frag_dims(c, &v));
	put(c, "%s{", frag_loops(c, &v));
	for (int i = first; i < last; i++) {
		int node = t->nodes.v[i];
		const char *value;

		TRY(element_text(c, x, node, &value, e));
		put(c, "\tconst %s e%d = %s;", register_type(c->p->nodes.v[node].type), node, value);
		if (outlives(c, s, node, last))
			put(c, "\tx%d%s = e%d;", node, frag_element(v.kind), node);
		c->fused[node] = true;
	}
	put(c, "}");
	for (int i = first; i < last; i++)
		c->fused[t->nodes.v[i]] = false;
	return OK;
}

/* Does the node take a value that lies otherwise, of a node from `first` on? That must be
 * whole before. */
static bool takes_around(struct text *c, const struct stask *s, const struct task *t, int first,
	int at)
{
	struct detour d;

	for (int x = 0; detour_next(c->k, s, t->nodes.v[at], &x, &d);)
		for (int i = first; i < at; i++)
			if (t->nodes.v[i] == d.arg)
				return true;
	return false;
}

static enum err_code emit_single(struct text *c, const struct kentry *x, int node, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct node *n = &c->p->nodes.v[node];
	struct view v;

	if (n->op == OP_SET)
		return emit_set(c, x, node, e);
	TRY(node_view(c, s, node, &v, e));
	put(c, "%s x%d%s;", v.packed ? "u32" : register_type(n->type), node, frag_dims(c, &v));
	if (is_reduction(n->op))
		return emit_reduce(c, x, node, e);
	if (is_scan(n->op))
		return emit_scan(c, x, node, e);
	if (v.packed && n->op == OP_CAST)
		return emit_packed_cast(c, x, node, &v, e);
	return not_lowered(n, e);
}

enum err_code emit_compute(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = &c->g->tasks.v[x->task];
	const struct task *t = &c->p->tasks.v[s->task];

	for (int i = 0; i < t->nodes.n;) {
		int node = t->nodes.v[i], last = i;
		struct view v;

		if (c->p->nodes.v[node].op == OP_CONST || c->p->nodes.v[node].op == OP_INDEX) {
			i++;
			continue;
		}
		if (c->p->nodes.v[node].op != OP_SET)
			TRY(node_view(c, s, node, &v, e));
		while (last < t->nodes.n && c->p->nodes.v[node].op != OP_SET &&
		       can_fuse(c, s, t->nodes.v[last], &v) && !takes_around(c, s, t, i, last))
			last++;
		TRY(put_detours(c, x, i, last > i ? last : i + 1, e));
		if (last > i)
			TRY(emit_fused(c, x, i, last, e));
		else
			TRY(emit_single(c, x, node, e));
		i = last > i ? last : i + 1;
	}
	for (int i = 0; i < s->writes.n; i++)
		if (c->g->buffers.v[s->writes.v[i]].node != NONE)
			TRY(emit_result(c, x, s->writes.v[i], e));
	return OK;
}
