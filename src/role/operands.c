#include "role/operands.h"

#include <stddef.h>

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

/* walks ------------------------------------------------------------------------ */

struct visit {
	role_operand_fn *fn;
	void *ctx;
};

static void visit_num(const struct visit *v, enum operand_kind kind, const struct num *x)
{
	if (x)
		v->fn(v->ctx, &(struct operand){ .kind = kind, .num = x });
}

static void visit_value(const struct visit *v, const struct val *x)
{
	if (x)
		v->fn(v->ctx, &(struct operand){ .kind = OPERAND_VALUE, .value = x });
}

static void visit_frag(const struct visit *v, enum operand_kind kind, const struct frag *f, int version)
{
	if (f)
		v->fn(v->ctx, &(struct operand){ .kind = kind, .frag = { f, version } });
}

static void visit_boxes(const struct visit *v, const struct role_op *o)
{
	for (int i = 0; i < o->u.boxes.boxes.n; i++) {
		const struct role_box *b = &o->u.boxes.boxes.v[i];

		visit_num(v, OPERAND_NUM, b->when);
		visit_num(v, OPERAND_NUM, b->to);
		for (int d = 0; d < RANK_MAX; d++)
			visit_num(v, OPERAND_NUM, b->corner[d]);
	}
}

static void visit(const struct visit *v, const struct role_op *o, const struct role_operand *x)
{
	const void *at = role_field(o, x);
	const struct frag_at *frag_at = at;

	switch (x->kind) {
	case OPERAND_NUM: case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS:
		visit_num(v, x->kind, *(const struct num *const *)at);
		break;
	case OPERAND_VALUE:
		visit_value(v, *(const struct val *const *)at);
		break;
	case OPERAND_USE: case OPERAND_DEF: case OPERAND_SUM:
		visit_frag(v, x->kind, frag_at->frag, frag_at->version);
		break;
	case OPERAND_USE_FRAG: case OPERAND_DEF_FRAG:
		visit_frag(v, x->kind == OPERAND_USE_FRAG ? OPERAND_USE : OPERAND_DEF, *(const struct frag *const *)at, 0);
		break;
	case OPERAND_NEEDS:
		v->fn(v->ctx, &(struct operand){ .kind = OPERAND_NEEDS, .var = (enum var)x->offset });
		break;
	case OPERAND_LETS:
		for (int i = 0; i < o->u.let.v.n; i++)
			visit_num(v, OPERAND_NUM, o->u.let.v.v[i].to);
		break;
	case OPERAND_INDICES:
		for (int d = 0; d < o->u.move.rank; d++)
			visit_num(v, OPERAND_NUM, o->u.move.index[d].at);
		break;
	case OPERAND_BOXES:
		visit_boxes(v, o);
		break;
	case OPERAND_STEPS:
		for (int i = 0; i < o->u.map.steps.n; i++) {
			visit_value(v, o->u.map.steps.v[i].value);
			visit_frag(v, OPERAND_DEF, o->u.map.steps.v[i].to, 0);
		}
		break;
	case OPERAND_FRAG: case OPERAND_OVER: case OPERAND_COUNTER: case OPERAND_FLAG: case OPERAND_RING:
	case OPERAND_INT: case OPERAND_INT64: case OPERAND_BOOL: case OPERAND_TYPE: case OPERAND_OPERATOR:
	case OPERAND_STRING: case OPERAND_END:
		break;
	}
}

void role_visit(const struct role_op *o, role_operand_fn *fn, void *ctx)
{
	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++)
		visit(&(struct visit){ fn, ctx }, o, x);
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
