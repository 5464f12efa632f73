/* The stage of each operation of an sTask (price.h): one after that of the row reductions whose results it needs,
 * directly or through other fragments. */
#include "role/operands.h"
#include "sim/price.h"

/* A walk over the fragments of an operation. */
struct stage_walk {
	struct stages *known;
	int stage;			/* the latest of those read so far; then that of the results */
};

static void note_operand(void *ctx, struct frag_at at, bool all)
{
	struct stage_walk *w = ctx;

	(void)all;
	for (int i = w->known->v.n - 1; i >= 0; i--) {
		const struct frag_stage *f = &w->known->v.v[i];

		if (f->frag == at.frag) {
			w->stage = f->stage > w->stage ? f->stage : w->stage;
			return;
		}
	}
}

static void note_result(void *ctx, struct frag_at at)
{
	struct stage_walk *w = ctx;

	VEC_PUSH(w->known->a, &w->known->v, ((struct frag_stage){ at.frag, w->stage }));
}

int stage_of(struct stages *t, const struct role_op *o)
{
	struct stage_walk w = { t, 0 };

	if (role_op_info[o->what].cost != COST_STAGED)
		return 0;
	role_uses(o, &(struct uses){ NULL, note_operand, &w });
	int stage = w.stage;
	/* the result of a row reduction is known only after the whole row was read: one stage later */
	if ((o->what == DO_REDUCE || o->what == DO_SCAN) && o->u.reduce.over->kind == FRAG_FULL)
		w.stage++;
	role_uses(o, &(struct uses){ note_result, NULL, &w });
	return stage < STAGES ? stage : STAGES - 1;
}
