/* The stage of each operation of an sTask (price.h): one after that of the row reductions whose results it needs,
 * directly or through other fragments. */
#include "sim/price.h"

static int stage_of_frag(const struct stages *t, const struct frag *f)
{
	for (int i = t->v.n - 1; i >= 0; i--)
		if (t->v.v[i].frag == f)
			return t->v.v[i].stage;
	return 0;
}

static int stage_of_value(const struct stages *t, const struct val *v)
{
	int stage;

	if (!v)
		return 0;
	stage = v->kind == VAL_FRAG ? stage_of_frag(t, v->frag.frag) : 0;
	for (int i = 0; i < LEN(v->arg); i++) {
		int of = stage_of_value(t, v->arg[i]);

		stage = of > stage ? of : stage;
	}
	return stage;
}

static void note_result(struct stages *t, const struct frag *f, int stage)
{
	if (f)
		VEC_PUSH(t->a, &t->v, ((struct frag_stage){ f, stage }));
}

static int stage_of_map(struct stages *t, const struct role_op *o)
{
	int stage = 0;

	for (int i = 0; i < o->u.map.steps.n; i++) {
		int of = stage_of_value(t, o->u.map.steps.v[i].value);

		stage = of > stage ? of : stage;
	}
	for (int i = 0; i < o->u.map.steps.n; i++)
		note_result(t, o->u.map.steps.v[i].to, stage);
	note_result(t, o->u.map.to.frag, stage);
	return stage;
}

/* The result of a row reduction is known only after the whole row was read: one stage later. */
static int stage_of_reduce(struct stages *t, const struct role_op *o)
{
	int stage = stage_of_value(t, o->u.reduce.value);

	note_result(t, o->u.reduce.to, o->u.reduce.over->kind == FRAG_FULL ? stage + 1 : stage);
	return stage;
}

int stage_of(struct stages *t, const struct role_op *o)
{
	int stage = 0;

	if (o->what == DO_MAP) {
		stage = stage_of_map(t, o);
	} else if (o->what == DO_REDUCE || o->what == DO_SCAN) {
		stage = stage_of_reduce(t, o);
	} else if (o->what == DO_PACK) {
		stage = stage_of_value(t, o->u.pack.value);
		note_result(t, o->u.pack.to.frag, stage);
	}
	return stage < STAGES ? stage : STAGES - 1;
}
