/* Truth values of an sTask as bits of words. Compilers do not keep a comparison until it is used: predicates are few,
 * so they compare later, and keep what is compared, two registers for each truth value. Where a lane does not have so
 * many, an operation puts the truth values that it makes into words, which are pinned behind it. */
#include "lower/select/lowering.h"
#include "role/operands.h"

struct truths {
	struct arena *a;
	const struct role_op *op;	/* at hand */
	int64_t spare;			/* registers that values leave */
	VEC(const struct frag *) made;	/* fragments of truth values for which there are no registers */
	VEC(const struct frag *) kept;	/* what some operation reads or makes otherwise than element by element */
};

static bool holds(const struct frag *const *v, int n, const struct frag *f)
{
	for (int i = 0; i < n; i++)
		if (v[i] == f)
			return true;
	return false;
}

static bool reads_others(const struct role_op *o)
{
	for (int i = 0; o->what == DO_MAP && i < o->u.map.steps.n; i++)
		if (role_reads_flipped(o->u.map.steps.v[i].value))
			return true;
	return o->what == DO_REDUCE ? role_reads_flipped(o->u.reduce.value) : o->what != DO_MAP;
}

static void note_made(void *ctx, struct frag_at at)
{
	struct truths *x = ctx;

	if (x->op->what != DO_MAP)
		VEC_PUSH(x->a, &x->kept, at.frag);
}

static void note_used(void *ctx, struct frag_at at, bool all)
{
	struct truths *x = ctx;

	(void)all;
	if (reads_others(x->op))
		VEC_PUSH(x->a, &x->kept, at.frag);
}

static void find_truths(struct truths *x, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];
		const struct frag *f = o->what == DO_FRAGMENT ? o->u.frag.at.frag : NULL;

		if (f && f->type == DT_BOOL && !f->versions && f->kind == FRAG_FULL && frag_words(f) > x->spare)
			VEC_PUSH(x->a, &x->made, f);
		if (role_is_region(o->what)) {
			find_truths(x, &o->u.region.body);
			find_truths(x, &o->u.region.other);
		} else if (o->what != DO_FRAGMENT) {
			x->op = o;
			role_uses(o, note_made, note_used, x);
		}
	}
}

void pack_truths(struct lowering *c)
{
	struct truths x = { .a = c->a, .spare = lane_usable_registers(c->lane) - c->role->words - c->plan->device->reserved_registers };

	find_truths(&x, &c->role->body);
	for (int i = 0; i < x.made.n; i++)
		if (!holds(x.kept.v, x.kept.n, x.made.v[i]))
			VEC_PUSH(c->a, &c->role->bits, x.made.v[i]);
}
