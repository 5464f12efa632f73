#include "role/operands.h"

#include <stddef.h>
#include <string.h>

/* the table -------------------------------------------------------------------- */

#define OPERAND(kind, path)	{ OPERAND_##kind, (int)offsetof(struct role_op, u.path), #path },
#define NUM(path)		OPERAND(NUM, path)
#define ADDRESS(path)		OPERAND(ADDRESS, path)
#define OWN_ADDRESS(path)	OPERAND(OWN_ADDRESS, path)
#define VALUE(path)		OPERAND(VALUE, path)
#define USE(path)		OPERAND(USE, path)
#define DEF(path)		OPERAND(DEF, path)
#define SUM(path)		OPERAND(SUM, path)
#define FRAG(path)		OPERAND(FRAG, path)
#define USE_FRAG(path)		OPERAND(USE_FRAG, path)
#define DEF_FRAG(path)		OPERAND(DEF_FRAG, path)
#define OVER(path)		OPERAND(OVER, path)
#define NEEDS(var)		{ OPERAND_NEEDS, VAR_##var, #var },
#define COUNTER(path)		OPERAND(COUNTER, path)
#define FLAG(path)		OPERAND(FLAG, path)
#define RING(path)		OPERAND(RING, path)
#define OFFSET(path)		OPERAND(OFFSET, path)
#define STAGING(path)		OPERAND(STAGING, path)
#define INT(path)		OPERAND(INT, path)
#define INT64(path)		OPERAND(INT64, path)
#define BOOL(path)		OPERAND(BOOL, path)
#define TYPE(path)		OPERAND(TYPE, path)
#define OPERATOR(path)		OPERAND(OPERATOR, path)
#define STRING(path)		OPERAND(STRING, path)
#define LETS(path)		OPERAND(LETS, path)
#define INDICES(path)		OPERAND(INDICES, path)
#define BOXES(path)		OPERAND(BOXES, path)
#define STEPS(path)		OPERAND(STEPS, path)

#define OP(id, name, group, play, cost, traits, text, operands) \
	static const struct role_operand operands_##id[] = { operands { OPERAND_END, 0, NULL } };
#include "role/ops.def"
#undef OP

#define HIDDEN			TRAIT_HIDDEN
#define ELEMENTWISE		TRAIT_ELEMENTWISE
const struct role_op_info role_op_info[DO_COUNT] = {
#define OP(id, name, group, play, cost, traits, text, operands) \
	{ name, OPS_##group, PLAY_##play, COST_##cost, traits, text, operands_##id },
#include "role/ops.def"
#undef OP
};

/* fields ----------------------------------------------------------------------- */

void role_each_field(struct role_op *o, role_field_fn *fn, void *ctx)
{
	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++) {
		switch ((int)x->kind) {
		case OPERAND_LETS:
			for (int i = 0; i < o->u.let.v.n; i++) {
				fn(ctx, OPERAND_COUNTER, &o->u.let.v.v[i].var);
				fn(ctx, OPERAND_LETS, &o->u.let.v.v[i].to);
			}
			break;
		case OPERAND_INDICES:
			for (int d = 0; d < o->u.move.rank; d++) {
				fn(ctx, OPERAND_NUM, &o->u.move.index[d].at);
				fn(ctx, OPERAND_VALUE, &o->u.move.index[d].value);
			}
			break;
		case OPERAND_BOXES:
			for (int i = 0; i < o->u.boxes.boxes.n; i++) {
				struct role_box *b = &o->u.boxes.boxes.v[i];

				fn(ctx, OPERAND_NUM, &b->when);
				fn(ctx, OPERAND_NUM, &b->to);
				for (int d = 0; d < RANK_MAX; d++) {
					fn(ctx, OPERAND_NUM, &b->corner[d]);
					fn(ctx, OPERAND_VALUE, &b->value[d]);
				}
			}
			break;
		case OPERAND_STEPS:
			for (int i = 0; i < o->u.map.steps.n; i++) {
				fn(ctx, OPERAND_INT, &o->u.map.steps.v[i].node);
				fn(ctx, OPERAND_VALUE, &o->u.map.steps.v[i].value);
				fn(ctx, OPERAND_DEF_FRAG, &o->u.map.steps.v[i].to);
			}
			break;
		case OPERAND_NEEDS:
			fn(ctx, OPERAND_NEEDS, (void *)&x->offset);
			break;
		default:
			fn(ctx, x->kind, (void *)role_field(o, x));
		}
	}
}

int role_flag(const struct role_op *o)
{
	const struct role_operand *x = role_op_info[o->what].operands;

	while (x->kind != OPERAND_FLAG)
		x++;
	return *(const int *)role_field(o, x);
}

#define COPY_LIST(a, list) ((list).v = arena_copy(a, (list).v, (size_t)(list).n, sizeof(*(list).v)))

struct role_op *role_copy_op(struct arena *a, const struct role_op *o)
{
	struct role_op *n = arena_copy(a, o, 1, sizeof(*o));

	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++) {
		if (x->kind == OPERAND_LETS)
			COPY_LIST(a, n->u.let.v);
		else if (x->kind == OPERAND_BOXES)
			COPY_LIST(a, n->u.boxes.boxes);
		else if (x->kind == OPERAND_STEPS)
			COPY_LIST(a, n->u.map.steps);
	}
	return n;
}

void role_remove_op(struct role_body *b, const struct role_op *o)
{
	int n = 0;

	for (int i = 0; i < b->v.n; i++)
		if (b->v.v[i] != o)
			b->v.v[n++] = b->v.v[i];
	b->v.n = n;
}

bool role_reads_flipped(const struct val *v)
{
	bool flips = v->kind == VAL_FLIPPED;

	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		flips |= role_reads_flipped(v->arg[i]);
	return flips;
}

/* Bytes of the field of an operand that is no setting; 0: it is one. */
static size_t operand_bytes(const struct role_op *o, enum operand_kind kind)
{
	switch (kind) {
	case OPERAND_NUM: case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS: case OPERAND_VALUE: case OPERAND_USE_FRAG:
	case OPERAND_DEF_FRAG: case OPERAND_OVER: case OPERAND_STRING:
		return sizeof(void *);
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM: case OPERAND_FRAG:
		return sizeof(struct frag_at);
	case OPERAND_FLAG: case OPERAND_RING: case OPERAND_STAGING: case OPERAND_OFFSET:
		return sizeof(int);
	case OPERAND_LETS:
		return sizeof(o->u.let.v);
	case OPERAND_BOXES:
		return sizeof(o->u.boxes.boxes);
	case OPERAND_STEPS:
		return sizeof(o->u.map.steps);
	case OPERAND_INDICES: case OPERAND_NEEDS: case OPERAND_COUNTER: case OPERAND_INT: case OPERAND_INT64:
	case OPERAND_BOOL: case OPERAND_TYPE: case OPERAND_OPERATOR: case OPERAND_END:
		break;
	}
	return 0;
}

static struct role_op settings_of(const struct role_op *o)
{
	struct role_op s;

	memcpy(&s, o, sizeof(s));
	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++) {
		memset((void *)role_field(&s, x), 0, operand_bytes(o, x->kind));
		for (int d = 0; x->kind == OPERAND_INDICES && d < RANK_MAX; d++) {
			s.u.move.index[d].at = NULL;
			s.u.move.index[d].value = NULL;
		}
	}
	if (role_is_region(o->what))
		memset(&s.u.region.body, 0, sizeof(s.u.region.body) + sizeof(s.u.region.other));
	return s;
}

bool role_same_settings(const struct role_op *x, const struct role_op *y)
{
	struct role_op s, t;

	if (x->what != y->what)
		return false;
	s = settings_of(x);
	t = settings_of(y);
	return !memcmp(&s.u, &t.u, sizeof(s.u));
}

/* walks ------------------------------------------------------------------------ */

struct visit {
	role_operand_fn *fn;
	void *ctx;
};

/* The fragment of a field; none if it is not of such a kind. */
static struct frag_at frag_of_field(enum operand_kind kind, const void *field)
{
	switch ((int)kind) {
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM:
		return *(const struct frag_at *)field;
	case OPERAND_USE_FRAG: case OPERAND_DEF_FRAG:
		return (struct frag_at){ *(const struct frag *const *)field, 0 };
	default:
		return (struct frag_at){ NULL, 0 };
	}
}

static void visit_field(void *ctx, enum operand_kind kind, void *field)
{
	const struct visit *v = ctx;
	struct operand x = { .kind = kind };
	bool there;

	if (operand_is_number(kind)) {
		x.num = *(const struct num *const *)field;
		there = x.num;
		x.kind = kind == OPERAND_LETS ? OPERAND_NUM : kind;
	} else if (kind == OPERAND_VALUE) {
		x.value = *(const struct val *const *)field;
		there = x.value;
	} else if (kind == OPERAND_NEEDS) {
		there = true;
		x.var = (enum var)*(const int *)field;
	} else {
		x.frag = frag_of_field(kind, field);
		there = x.frag.frag;
		x.kind = kind == OPERAND_USE_FRAG ? OPERAND_USE : kind == OPERAND_DEF_FRAG ? OPERAND_DEF : kind;
	}
	if (there)
		v->fn(v->ctx, &x);
}

void role_visit(const struct role_op *o, role_operand_fn *fn, void *ctx)
{
	role_each_field((struct role_op *)o, visit_field, &(struct visit){ fn, ctx });
}

/* fragments -------------------------------------------------------------------- */

/* One walk of role_uses. */
struct uses {
	const struct role_op *op;
	bool all;			/* the result's elements need more than the same element of each operand */
	role_made_fn *made;
	role_used_fn *used;
	void *ctx;
};

static void note_used(const struct uses *u, struct frag_at at)
{
	u->used(u->ctx, at, u->all || at.frag->kind != FRAG_FULL);
}

static void note_value(const struct uses *u, const struct val *v)
{
	if (v->kind == VAL_FRAG)
		note_used(u, v->frag);
	if (v->kind == VAL_FLIPPED)		/* of another column than that of the result */
		u->used(u->ctx, v->frag, true);
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		note_value(u, v->arg[i]);
}

/* Does a product add to what its sum holds, at least in some iterations? */
static bool adds(const struct role_op *o)
{
	return o->what != DO_PRODUCT || o->u.product.adds->op != NUM_GT;
}

static void note_made(const struct uses *u, const struct role_operand *x)
{
	const struct role_op *o = u->op;
	struct frag_at at = { NULL, 0 };

	if (x->kind == OPERAND_DEF || x->kind == OPERAND_SUM || x->kind == OPERAND_DEF_FRAG)
		at = frag_of_field(x->kind, role_field(o, x));
	if (at.frag)
		u->made(u->ctx, at);
	for (int i = 0; x->kind == OPERAND_STEPS && i < o->u.map.steps.n; i++)
		if (o->u.map.steps.v[i].to)
			u->made(u->ctx, (struct frag_at){ o->u.map.steps.v[i].to, 0 });
}

static void note_read(const struct uses *u, const struct role_operand *x)
{
	const struct role_op *o = u->op;
	const struct val *v = x->kind == OPERAND_VALUE ? *(const struct val *const *)role_field(o, x) : NULL;
	struct frag_at at = { NULL, 0 };

	if (x->kind == OPERAND_USE || x->kind == OPERAND_USE_FRAG || (x->kind == OPERAND_SUM && adds(o)))
		at = frag_of_field(x->kind, role_field(o, x));
	if (at.frag)
		note_used(u, at);
	if (v)
		note_value(u, v);
	for (int i = 0; x->kind == OPERAND_STEPS && i < o->u.map.steps.n; i++)
		note_value(u, o->u.map.steps.v[i].value);
}

/* Liveness calls this for each operation several times, so it looks only at operands that have fragments. */
void role_uses(const struct role_op *o, role_made_fn *made, role_used_fn *used, void *ctx)
{
	const struct role_operand *const operands = role_op_info[o->what].operands, *x = operands;
	struct uses u = { .op = o, .made = made, .used = used, .ctx = ctx };

	while (x->kind != OPERAND_OVER && x->kind != OPERAND_END)
		x++;
	u.all = !(role_op_info[o->what].traits & TRAIT_ELEMENTWISE) || (x->kind == OPERAND_OVER &&
		(*(const struct frag *const *)role_field(o, x))->kind != FRAG_FULL);
	for (x = operands; made && x->kind != OPERAND_END; x++)
		note_made(&u, x);
	for (x = operands; used && x->kind != OPERAND_END; x++)
		note_read(&u, x);
}
