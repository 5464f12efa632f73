/* Register pressure by liveness: how many words of values a thread of a lane holds at most.
 *
 * A backward walk over the tree: a version of a fragment is live from its write to its last read. A loop is repeated
 * until nothing changes. The result of an element-wise operation takes the registers of its operands, so the two count
 * once. Compilers do not keep all operations where the text has them: live_read.c knows which values are computed where
 * they are used, live_products.c what matrix products read later and which sums begin later.
 */
#include "role/live_state.h"

#include <string.h>

#include "role/operands.h"

struct live {
	struct reading r;
	const struct role_op *at;
	bool *now;			/* by version: live after the operation at hand */
	const bool *at_break, *at_continue;	/* live after the loop; where its next iteration begins */
	int most, most_in;		/* words, and the sTask then */
	struct ops pins;		/* those of live fragments */
};

/* operations ---------------------------------------------------------------------- */

static void set_made(void *ctx, struct frag_at at)
{
	struct live *x = ctx;

	x->now[live_find(&x->r, at)] = false;
}

/* A value that is computed where it is used is not live before: its operands are. */
static void set_used(void *ctx, struct frag_at at, bool all)
{
	struct live *x = ctx;
	int i = live_find(&x->r, at);
	const struct version *v = &x->r.versions.v[i];

	(void)all;
	if (x->at->what == DO_PRODUCT && ops_hold(&x->r.fresh, x->at) &&
	    at.frag == x->at->u.product.sum.frag)
		return;
	if (live_is_passing(v))
		role_uses(v->maker, NULL, set_used, x);
	else
		x->now[i] = true;
}

static void count(struct live *x, const struct role_op *o)
{
	int words = 0;

	for (int i = 0; i < x->r.versions.n; i++)
		words += x->now[i] ? x->r.versions.v[i].words : 0;
	if (words > x->most) {
		x->most = words;
		x->most_in = o->task;
	}
}

/* What an operation makes. */
struct makes {
	struct reading *r;
	bool passing, others;
};

static void find_passing(void *ctx, struct frag_at at)
{
	struct makes *m = ctx;
	int i = live_find(m->r, at);

	*(live_is_passing(&m->r->versions.v[i]) ? &m->passing : &m->others) = true;
}

static void pass_work(struct live *x, const struct role_op *o)
{
	struct makes m = { &x->r, false, false };

	x->at = o;
	role_uses(o, find_passing, NULL, &m);
	if (m.passing && !m.others)	/* its operands count where its results are used */
		return;
	role_uses(o, set_made, set_used, x);
	for (int i = 0; i < x->r.retired.n; i++)
		if (x->r.retired.v[i].wait == o)
			x->now[x->r.retired.v[i].version] = true;
	count(x, o);
}

/* regions ------------------------------------------------------------------------- */

static void pass_body(struct live *x, const struct role_body *b);

static void set(struct live *x, const bool *to)
{
	memcpy(x->now, to, (size_t)x->r.versions.n * sizeof(*to));
}

static bool *copy(struct live *x)
{
	bool *out = ARENA_ARRAY(x->r.a, x->r.versions.n + 1, bool);

	memcpy(out, x->now, (size_t)x->r.versions.n * sizeof(*out));
	return out;
}

/* Is there more now? */
static bool join(const struct live *x, bool *into, const bool *from)
{
	bool more = false;

	for (int i = 0; i < x->r.versions.n; i++) {
		more |= from[i] && !into[i];
		into[i] |= from[i];
	}
	return more;
}

static void pass_if(struct live *x, const struct role_op *o)
{
	bool *behind = copy(x);

	pass_body(x, &o->u.region.other);
	bool *other = copy(x);
	set(x, behind);
	pass_body(x, &o->u.region.body);
	join(x, x->now, other);
}

static void pass_loop(struct live *x, const struct role_op *o)
{
	const bool *was_break = x->at_break, *was_continue = x->at_continue;
	bool *head = copy(x), more = true;

	x->at_break = copy(x);
	x->at_continue = head;
	while (more) {
		set(x, head);
		pass_body(x, &o->u.region.body);
		more = join(x, head, x->now);
	}
	set(x, head);
	for (int i = 0; i < x->r.born.n; i++)
		if (x->r.born.v[i].loop == o)
			x->now[x->r.born.v[i].version] = false;
	x->at_break = was_break;
	x->at_continue = was_continue;
}

static void note_pin(struct live *x, const struct role_op *o)
{
	if (x->now[live_find(&x->r, o->u.frag.at)] && !ops_hold(&x->pins, o))
		VEC_PUSH(x->r.a, &x->pins.v, o);
}

static void pass_op(struct live *x, const struct role_op *o)
{
	if (o->what == DO_IF)
		pass_if(x, o);
	else if (o->what == DO_TILES || o->what == DO_LOOP)
		pass_loop(x, o);
	else if (role_is_region(o->what))
		pass_body(x, &o->u.region.body);
	else if (o->what == DO_BREAK || o->what == DO_CONTINUE)
		set(x, o->what == DO_BREAK ? x->at_break : x->at_continue);
	else
		pass_work(x, o);
	if (o->what == DO_PIN)
		note_pin(x, o);
}

static void pass_body(struct live *x, const struct role_body *b)
{
	for (int i = b->v.n - 1; i >= 0; i--)
		pass_op(x, b->v.v[i]);
}

void role_find_live(struct role *l, struct arena *a)
{
	struct live x = { .r = live_read(l, a), .most_in = NONE };

	x.now = ARENA_ARRAY(a, x.r.versions.n + 1, bool);
	pass_body(&x, &l->body);
	l->words = x.most;
	l->words_in = x.most_in;
	live_drop_pins(&l->body, &x.pins);
}

/* addresses of slots -------------------------------------------------------------- */

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
		if (role_is_region(o->what)) {
			find_slots(s, &o->u.region.body);
			find_slots(s, &o->u.region.other);
		}
	}
}

int role_slot_words(const struct role *l, struct arena *a)
{
	struct slots s = { .a = a };

	find_slots(&s, &l->body);
	return s.rings.n;
}
