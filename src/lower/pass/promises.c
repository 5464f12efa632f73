/* What passes promise of the tree, as far as it shows: a fault in one is found behind it, not where the kernel is
 * verified. Builds with CHECK_PASSES ask behind each pass. */
#include "lower/pass/pass.h"

/* Behind that pass, may the operation still be there? */
static bool may_stand(const struct lowering *c, const struct role_op *o, enum pass_id behind)
{
	if (o->what == DO_WORK)
		return behind < PASS_SELECT;
	if (o->what == DO_LOOP_END)
		return behind < PASS_SIGNAL;
	if (is_section(o, SECTION_LOOP))
		return behind < PASS_PEEL;
	if (is_section(o, SECTION_STEADY))
		return behind < PASS_UNROLL || o->u.region.step == c->lane->regions[o->u.region.of + 1].unroll;
	return true;
}

/* Where passes read the point of an operation, is there one? And has the fragment the version that the operation
 * names? */
static bool is_complete(const struct role_op *o)
{
	const struct frag_at *at = &o->u.frag.at;

	if (o->what == DO_TASK)
		return o->point && o->point->entry && o->point->entry->task == o->task;
	if (o->what == DO_LOOP && o->u.region.section != SECTION_NONE)
		return o->point && o->point->region == o->u.region.of;
	if (o->what == DO_PIN || o->what == DO_INIT)
		return o->touches.n <= 1 && at->version >= 0 && at->version < (at->frag->versions ? at->frag->versions : 1);
	return true;
}

void check_promises(const struct lowering *c, const struct role_body *b, enum pass_id behind)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (!may_stand(c, o, behind) || !is_complete(o))
			BUG("%s leaves '%s', operation %d of a body, as no pass behind it expects it",
				lower_passes[behind].name, role_op_info[o->what].name, i);
		if (!role_is_region(o->what))
			continue;
		check_promises(c, &o->u.region.body, behind);
		check_promises(c, &o->u.region.other, behind);
	}
}
