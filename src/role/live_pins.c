/* Removes needless pins after waits for groups. Lowering pins every result that is complete then. If nothing reads the
 * fragment before it is written again, its pin is removed, because compilers would keep the registers where branches
 * join. The pins that belong to a product stay, even right after a wait. */
#include "role/live_state.h"

/* Do the pins from operation i on belong to a product, whose fence follows them? */
static bool are_of_product(const struct role_body *b, int i)
{
	while (i < b->v.n && b->v.v[i]->what == DO_PIN)
		i++;
	return i < b->v.n && b->v.v[i]->what == DO_GROUPS_FENCE;
}

void live_drop_pins(struct role_body *b, const struct ops *needed)
{
	bool droppable = false;
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (role_is_region(o->what))
			live_drop_pins(&o->u.region.body, needed);
		if (o->what == DO_IF)
			live_drop_pins(&o->u.region.other, needed);
		if (o->what != DO_PIN)
			droppable = o->what == DO_GROUPS_WAIT && !are_of_product(b, i + 1);
		if (!droppable || o->what != DO_PIN || ops_hold(needed, o))
			b->v.v[n++] = o;
	}
	b->v.n = n;
}
