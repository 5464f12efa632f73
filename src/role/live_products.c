/* Asynchronous matrix products, which read and write their registers later than the text says: an operand in registers
 * is live until the lane has waited for the product's group, and a sum that the first product of a loop overwrites
 * becomes live with the loop. */
#include "role/live_state.h"

#include <string.h>

/* where sums begin ---------------------------------------------------------------- */

static bool uses_iteration(const struct num *x, int loop)
{
	if (!x)
		return false;
	return (x->op == NUM_VAR && x->var == VAR_I && x->of == loop) ||
		uses_iteration(x->a, loop) || uses_iteration(x->b, loop) || uses_iteration(x->c, loop);
}

/* The product is in a loop with a counter, or in the first iteration, which was peeled off before it. */
static void note_sum(struct reading *r, const struct role_op *o)
{
	const struct num *adds = o->u.product.adds;
	const struct role_op *task = r->task;

	for (int i = 0; i < r->around.v.n; i++)
		if (uses_iteration(adds, r->around.v.v[i]->u.region.of)) {
			VEC_PUSH(r->a, &r->born, ((struct born){ r->around.v.v[i], live_find(r, o->u.product.sum) }));
			return;
		}
	if (task && task->u.region.iteration && num_is(task->u.region.iteration, 0) &&
	    uses_iteration(adds, task->u.region.of))
		VEC_PUSH(r->a, &r->fresh.v, o);
}

/* which operands are still read --------------------------------------------------- */

static void note_operand(struct reading *r, const struct role_op *o)
{
	if (!r->groups.n)
		live_note_commit(r);
	struct group *making = &r->groups.v[r->groups.n - 1];
	if (o->u.product.form.registers)
		VEC_PUSH(r->a, &making->operands, live_find(r, o->u.product.a));
}

void live_note_product(struct reading *r, const struct role_op *o)
{
	if (o->u.product.form.by->async)
		note_operand(r, o);
	note_sum(r, o);
}

/* A group begins when the one before is committed. */
void live_note_commit(struct reading *r)
{
	VEC_PUSH(r->a, &r->groups, ((struct group){ { 0 } }));
}

void live_note_wait(struct reading *r, const struct role_op *o)
{
	int open = r->groups.n ? 1 : 0, done = r->groups.n - open - o->u.count;

	for (int g = 0; g < done; g++)
		for (int i = 0; i < r->groups.v[g].operands.n; i++)
			VEC_PUSH(r->a, &r->retired, ((struct retired){ o, r->groups.v[g].operands.v[i] }));
	if (done <= 0)
		return;
	r->groups.n -= done;
	memmove(r->groups.v, r->groups.v + done, (size_t)r->groups.n * sizeof(*r->groups.v));
}
