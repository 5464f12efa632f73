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

static void visit_num(const struct role_visitor *v, const struct num *x)
{
	if (x && v->num)
		v->num(v->ctx, x);
}

static void visit_address(const struct role_visitor *v, const struct num *x, bool own)
{
	if (x && v->address)
		v->address(v->ctx, x, own);
	else
		visit_num(v, x);
}

static void visit_value(const struct role_visitor *v, const struct val *x)
{
	if (x && v->value)
		v->value(v->ctx, x);
}

static void visit_frag(const struct role_visitor *v, void (*fn)(void *ctx, struct frag_at at), struct frag_at at)
{
	if (at.frag && fn)
		fn(v->ctx, at);
}

static struct frag_at version_0(const struct frag *f)
{
	return (struct frag_at){ f, 0 };
}

static void visit_boxes(const struct role_visitor *v, const struct role_op *o)
{
	for (int i = 0; i < o->u.boxes.boxes.n; i++) {
		const struct role_box *b = &o->u.boxes.boxes.v[i];

		visit_num(v, b->when);
		visit_num(v, b->to);
		for (int d = 0; d < RANK_MAX; d++)
			visit_num(v, b->corner[d]);
	}
}

static void visit_steps(const struct role_visitor *v, const struct role_op *o)
{
	for (int i = 0; i < o->u.map.steps.n; i++) {
		visit_value(v, o->u.map.steps.v[i].value);
		visit_frag(v, v->def, version_0(o->u.map.steps.v[i].to));
	}
}

static void visit(const struct role_op *o, const struct role_operand *x, const struct role_visitor *v)
{
	const void *at = (const char *)o + x->offset;

	switch (x->kind) {
	case OPERAND_NUM:
		visit_num(v, *(const struct num *const *)at);
		break;
	case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS:
		visit_address(v, *(const struct num *const *)at, x->kind == OPERAND_OWN_ADDRESS);
		break;
	case OPERAND_VALUE:
		visit_value(v, *(const struct val *const *)at);
		break;
	case OPERAND_USE:
		visit_frag(v, v->use, *(const struct frag_at *)at);
		break;
	case OPERAND_DEF:
		visit_frag(v, v->def, *(const struct frag_at *)at);
		break;
	case OPERAND_SUM:
		visit_frag(v, v->sum, *(const struct frag_at *)at);
		break;
	case OPERAND_USE_FRAG:
		visit_frag(v, v->use, version_0(*(const struct frag *const *)at));
		break;
	case OPERAND_DEF_FRAG:
		visit_frag(v, v->def, version_0(*(const struct frag *const *)at));
		break;
	case OPERAND_NEEDS:
		if (v->needs)
			v->needs(v->ctx, (enum var)x->offset);
		break;
	case OPERAND_LETS:
		for (int i = 0; i < o->u.let.v.n; i++)
			visit_num(v, o->u.let.v.v[i].to);
		break;
	case OPERAND_INDICES:
		for (int d = 0; d < o->u.move.rank; d++)
			visit_num(v, o->u.move.index[d].at);
		break;
	case OPERAND_BOXES:
		visit_boxes(v, o);
		break;
	case OPERAND_STEPS:
		visit_steps(v, o);
		break;
	case OPERAND_FRAG: case OPERAND_OVER: case OPERAND_COUNTER: case OPERAND_FLAG: case OPERAND_RING:
	case OPERAND_INT: case OPERAND_INT64: case OPERAND_BOOL: case OPERAND_TYPE: case OPERAND_OPERATOR:
	case OPERAND_STRING: case OPERAND_END:
		break;
	}
}

void role_visit(const struct role_op *o, const struct role_visitor *v)
{
	for (const struct role_operand *x = role_op_info[o->what].operands; x->kind != OPERAND_END; x++)
		visit(o, x, v);
}

/* fragments -------------------------------------------------------------------- */

bool role_adds(const struct role_op *o)
{
	return o->what != DO_PRODUCT || o->u.product.adds->op != NUM_GT;
}

/* One walk of role_uses. */
struct walk {
	const struct uses *u;
	const struct role_op *op;
	bool all;			/* of every fragment that it reads */
};

static void note_use(void *ctx, struct frag_at at)
{
	const struct walk *w = ctx;

	w->u->used(w->u->ctx, at, w->all || at.frag->kind != FRAG_FULL);
}

static void note_value(void *ctx, const struct val *v)
{
	if (v->kind == VAL_FRAG)
		note_use(ctx, v->frag);
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		note_value(ctx, v->arg[i]);
}

static void note_sum(void *ctx, struct frag_at at)
{
	const struct walk *w = ctx;

	if (role_adds(w->op))
		note_use(ctx, at);
}

static bool needs_all(const struct role_op *o)
{
	const struct role_operand *x = role_op_info[o->what].operands;

	while (x->kind != OPERAND_OVER && x->kind != OPERAND_END)
		x++;
	return !(role_op_info[o->what].traits & TRAIT_ELEMENTWISE) || (x->kind == OPERAND_OVER &&
		(*(const struct frag *const *)(const void *)((const char *)o + x->offset))->kind != FRAG_FULL);
}

void role_uses(const struct role_op *o, const struct uses *u)
{
	struct walk w = { u, o, needs_all(o) };

	if (u->made)
		role_visit(o, &(struct role_visitor){ .ctx = u->ctx, .def = u->made, .sum = u->made });
	if (u->used)
		role_visit(o, &(struct role_visitor){ .ctx = &w, .value = note_value, .use = note_use,
			.sum = note_sum });
}
