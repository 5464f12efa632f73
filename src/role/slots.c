/* Addresses of slots: a lane has one at hand for each ring that it touches. */
#include "role/live.h"

struct slots {
	struct arena *a;
	VEC(int) rings;
};

static void find_slots(struct slots *s, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_SLOT && !ints_hold(s->rings.v, s->rings.n, o->u.slot.ring))
			VEC_PUSH(s->a, &s->rings, o->u.slot.ring);
		if (role_is_region(o->what))
			find_slots(s, &o->u.region.body);
		if (o->what == DO_IF)
			find_slots(s, &o->u.region.other);
	}
}

int role_slot_words(const struct role *l, struct arena *a)
{
	struct slots s = { .a = a };

	find_slots(&s, &l->body);
	return s.rings.n;
}
