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
		if (x->kind == OPERAND_LETS) {
			for (int i = 0; i < o->u.let.v.n; i++) {
				fn(ctx, OPERAND_COUNTER, &o->u.let.v.v[i].var);
				fn(ctx, OPERAND_LETS, &o->u.let.v.v[i].to);
			}
		} else if (x->kind == OPERAND_INDICES) {
			for (int d = 0; d < o->u.move.rank; d++)
				fn(ctx, OPERAND_NUM, &o->u.move.index[d].at);
		} else if (x->kind == OPERAND_BOXES) {
			for (int i = 0; i < o->u.boxes.boxes.n; i++) {
				struct role_box *b = &o->u.boxes.boxes.v[i];

				fn(ctx, OPERAND_NUM, &b->when);
				fn(ctx, OPERAND_NUM, &b->to);
				for (int d = 0; d < RANK_MAX; d++)
					fn(ctx, OPERAND_NUM, &b->corner[d]);
			}
		} else if (x->kind == OPERAND_STEPS) {
			for (int i = 0; i < o->u.map.steps.n; i++) {
				fn(ctx, OPERAND_INT, &o->u.map.steps.v[i].node);
				fn(ctx, OPERAND_VALUE, &o->u.map.steps.v[i].value);
				fn(ctx, OPERAND_DEF_FRAG, &o->u.map.steps.v[i].to);
			}
		} else if (x->kind != OPERAND_NEEDS) {
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
		for (int d = 0; x->kind == OPERAND_INDICES && d < RANK_MAX; d++)
			s.u.move.index[d].at = NULL;
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

static void visit_field(void *ctx, enum operand_kind kind, void *field)
{
	const struct visit *v = ctx;
	struct operand x = { .kind = kind };

	if (operand_is_number(kind)) {
		x.num = *(const struct num *const *)field;
		x.kind = kind == OPERAND_LETS ? OPERAND_NUM : kind;
	} else if (kind == OPERAND_VALUE) {
		x.value = *(const struct val *const *)field;
	} else if (kind == OPERAND_USE || kind == OPERAND_DEF || kind == OPERAND_SUM) {
		x.frag = *(const struct frag_at *)field;
	} else if (kind == OPERAND_USE_FRAG || kind == OPERAND_DEF_FRAG) {
		x.frag.frag = *(const struct frag *const *)field;
		x.kind = kind == OPERAND_USE_FRAG ? OPERAND_USE : OPERAND_DEF;
	}
	if (x.num || x.value || x.frag.frag)
		v->fn(v->ctx, &x);
}

void role_visit(const struct role_op *o, role_operand_fn *fn, void *ctx)
{
	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++)
		if (x->kind == OPERAND_NEEDS)
			fn(ctx, &(struct operand){ .kind = OPERAND_NEEDS, .var = (enum var)x->offset });
	role_each_field((struct role_op *)o, visit_field, &(struct visit){ fn, ctx });
}

/* fragments -------------------------------------------------------------------- */

/* One walk of role_uses. */
struct uses {
	const struct role_op *op;
	bool all;			/* the result's elements need more than the same element of each operand */
	role_made_fn *made;		/* NULL: in the walk over what the operation reads */
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
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		note_value(u, v->arg[i]);
}

static void note_operand(void *ctx, const struct operand *x)
{
	const struct uses *u = ctx;
	/* does a product add to what its sum holds, at least in some iterations? */
	bool adds = u->op->what != DO_PRODUCT || u->op->u.product.adds->op != NUM_GT;

	if (u->made && (x->kind == OPERAND_DEF || x->kind == OPERAND_SUM))
		u->made(u->ctx, x->frag);
	else if (!u->made && x->kind == OPERAND_VALUE)
		note_value(u, x->value);
	else if (!u->made && (x->kind == OPERAND_USE || (x->kind == OPERAND_SUM && adds)))
		note_used(u, x->frag);
}

void role_uses(const struct role_op *o, role_made_fn *made, role_used_fn *used, void *ctx)
{
	const struct role_operand *x = role_op_info[o->what].operands;
	struct uses u = { .op = o, .made = made, .used = used, .ctx = ctx };

	while (x->kind != OPERAND_OVER && x->kind != OPERAND_END)
		x++;
	u.all = !(role_op_info[o->what].traits & TRAIT_ELEMENTWISE) || (x->kind == OPERAND_OVER &&
		(*(const struct frag *const *)role_field(o, x))->kind != FRAG_FULL);
	if (made)
		role_visit(o, note_operand, &u);
	u.made = NULL;
	if (used)
		role_visit(o, note_operand, &u);
}
