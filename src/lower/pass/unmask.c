/* Unmasking: in most iterations of a loop no tile reaches the end of an axis, and no element fails a condition such as
 * a causal mask; testing costs as much as computing.
 *
 * So a steady loop gets a condition on its iteration (role.h, region.unmasked) under which all conditions hold that its
 * sTasks have marked, for all elements: NUM_INTERIOR, or a `where` that is unmasked; and another one under which
 * NUM_INTERIOR holds. specialize.c makes a loop without these conditions of it. They are made of bounds over the tile
 * (select/masks.c), so an iteration may be missed, but none is too many. */
#include "lower/pass/pass.h"

/* `all` and `when`, unless it is there already. */
const struct num *add_conjunct(struct lowering *c, const struct num *all, const struct num *when)
{
	return num_has_conjunct(all, when) ? all : NUM2(BOTH, all, when);
}

bool can_unmask(const struct lowering *c, int loop)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	/* where few registers are left, compilers spill over several texts */
	if (loop == NONE || !lower_does(c->k, PASS_UNMASK) || !c->has_spare_registers)
		return false;
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)	/* its text would be there several times, too */
			return false;
	return true;
}

/* Does it load to registers, in which the words stay until another sTask writes them to shared memory? */
static bool holds_load(const struct lowering *c, const struct kentry *x)
{
	const struct stask *s = x ? stask_of(c, x) : NULL;

	return s && s->kind == TASK_LOAD && c->g->buffers.v[s->writes.v[0]].staged;
}

/* Where loads are held in registers from one iteration to the next, clang 22 keeps all that a loop carries, products' sums
 * among it, in other registers in each copy of the loop, and moves it where one ends: of kernels with 64 sums a thread those
 * with a copy took 240 registers instead of 114, with 128 sums they spilled. So there must be so many, and something else to
 * gain than the test of a load, which is one instruction for 16 bytes. */
static bool pays_under_held_loads(const struct lowering *c, const struct role_body *b)
{
	bool held = false, others = false;

	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what != DO_TASK)
			continue;
		held |= holds_load(c, o->point->entry);
		others |= !holds_load(c, o->point->entry) && o->point->hints.n;
	}
	return !held || (others && 2 * c->live_words + c->plan->device->reserved_registers <= lane_usable_registers(c->lane));
}

static void unmask_loop(struct lowering *c, struct role_op *loop)
{
	const struct num *unmasked = N(c, 1), *interior = N(c, 1);

	if (!pays_under_held_loads(c, &loop->u.region.body))
		return;
	for (int i = 0; i < loop->u.region.body.v.n; i++) {
		const struct role_op *o = loop->u.region.body.v.v[i];

		for (int k = 0; o->what == DO_TASK && k < o->point->hints.n; k++) {
			const struct hint *h = &o->point->hints.v[k];

			unmasked = add_conjunct(c, unmasked, h->holds);
			if (h->interior)
				interior = add_conjunct(c, interior, h->holds);
		}
	}
	if (num_is(unmasked, 1))
		return;
	loop->u.region.unmasked = unmasked;
	if (!num_is(interior, 1) && !num_has_conjunct(interior, unmasked))
		loop->u.region.interior = interior;
}

static enum err_code unmask_op(struct lowering *c, struct role_op *o, struct err *e)
{
	if (is_section(o, SECTION_STEADY) && can_unmask(c, o->u.region.of))
		unmask_loop(c, o);
	append_op(c, o);
	return rewrite_inside(c, o, unmask_op, e);
}

enum err_code pass_unmask(struct lowering *c, struct err *e)
{
	return rewrite_body(c, &c->role->body, unmask_op, e);
}
