/* In which turn of its sTask an operation can be done: behind the reductions whose results it needs. */
#include "sim/price.h"

static int turn_of_frag(const struct turns *t, const struct frag *f)
{
	for (int i = t->v.n - 1; i >= 0; i--)
		if (t->v.v[i].frag == f)
			return t->v.v[i].turn;
	return 0;
}

static int turn_of_value(const struct turns *t, const struct val *v)
{
	int turn;

	if (!v)
		return 0;
	turn = v->kind == VAL_FRAG ? turn_of_frag(t, v->frag.frag) : 0;
	for (int i = 0; i < LEN(v->arg); i++) {
		int of = turn_of_value(t, v->arg[i]);

		turn = of > turn ? of : turn;
	}
	return turn;
}

static void made(struct turns *t, const struct frag *f, int turn)
{
	if (f)
		VEC_PUSH(t->a, &t->v, ((struct made){ f, turn }));
}

static int turn_of_map(struct turns *t, const struct role_op *o)
{
	int turn = 0;

	for (int i = 0; i < o->u.map.steps.n; i++) {
		int of = turn_of_value(t, o->u.map.steps.v[i].value);

		turn = of > turn ? of : turn;
	}
	for (int i = 0; i < o->u.map.steps.n; i++)
		made(t, o->u.map.steps.v[i].to, turn);
	made(t, o->u.map.to.frag, turn);
	return turn;
}

/* What comes of a row's reduction is there when all of it has been read. */
static int turn_of_reduce(struct turns *t, const struct role_op *o)
{
	int turn = turn_of_value(t, o->u.reduce.value);

	made(t, o->u.reduce.to, o->u.reduce.over->kind == FRAG_FULL ? turn + 1 : turn);
	return turn;
}

int turns_of(struct turns *t, const struct role_op *o)
{
	int turn = 0;

	if (o->what == DO_MAP) {
		turn = turn_of_map(t, o);
	} else if (o->what == DO_REDUCE || o->what == DO_SCAN) {
		turn = turn_of_reduce(t, o);
	} else if (o->what == DO_PACK) {
		turn = turn_of_value(t, o->u.pack.value);
		made(t, o->u.pack.to.frag, turn);
	}
	return turn < TURNS_KEPT ? turn : TURNS_KEPT - 1;
}
