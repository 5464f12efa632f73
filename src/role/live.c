/* Registers by liveness: how many words of values a thread of a lane holds at most.
 *
 * Backward over the tree, as for any program: a fragment's version is live from where it is
 * written to where it is read last. A loop is gone through until nothing changes. Element-wise
 * work takes the place of what it is made of, so the two count once. */
#include "role/live.h"

#include <string.h>

struct live {
	struct arena *a;
	VEC(const struct frag *) frags;
	int *first;			/* by fragment: number of its version 0 */
	int n;				/* versions of all */
	int *words;			/* by version */
	bool *now;			/* live behind the operation at hand, going backward */
	const bool *at_break, *at_continue;	/* behind the loop; where its next turn begins */
	int most, task;
};

int frag_words(const struct frag *f)
{
	switch (f->kind) {
	case FRAG_FULL:
		return f->blocks * frag_block_words(f);
	case FRAG_ROW:
		return f->blocks * f->layout->halves;
	case FRAG_COL:
		return frag_groups(f) * f->layout->pair;
	case FRAG_SCALAR:
		break;
	}
	return 1;
}

/* which fragments there are ------------------------------------------------------ */

static int find(const struct live *x, const struct frag *f)
{
	for (int i = x->frags.n - 1; i >= 0; i--)
		if (x->frags.v[i] == f || (f->buffer != NONE && x->frags.v[i]->buffer == f->buffer) ||
		    (f->buffer == NONE && !strcmp(x->frags.v[i]->name, f->name)))
			return i;
	return NONE;
}

static void collect(struct live *x, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_FRAGMENT && find(x, o->u.frag.at.frag) == NONE)
			VEC_PUSH(x->a, &x->frags, o->u.frag.at.frag);
		if (role_is_region(o->what))
			collect(x, &o->u.region.body);
		if (o->what == DO_IF)
			collect(x, &o->u.region.other);
	}
}

static void number(struct live *x)
{
	x->first = ARENA_ARRAY(x->a, x->frags.n, int);
	for (int i = 0; i < x->frags.n; i++) {
		x->first[i] = x->n;
		x->n += x->frags.v[i]->versions ? x->frags.v[i]->versions : 1;
	}
	x->words = ARENA_ARRAY(x->a, x->n, int);
	for (int i = 0; i < x->frags.n; i++)
		for (int v = x->first[i]; v < (i + 1 < x->frags.n ? x->first[i + 1] : x->n); v++)
			x->words[v] = frag_words(x->frags.v[i]);
}

/* uses and definitions ----------------------------------------------------------- */

static void set(struct live *x, struct frag_at at, bool live)
{
	int i = at.frag ? find(x, at.frag) : NONE;

	if (i != NONE)
		x->now[x->first[i] + at.version] = live;
}

static void use_value(struct live *x, const struct val *v)
{
	if (!v)
		return;
	if (v->kind == VAL_FRAG)
		set(x, v->frag, true);
	for (int i = 0; i < LEN(v->arg); i++)
		use_value(x, v->arg[i]);
}

static void count(struct live *x, const struct role_op *o)
{
	int words = 0;

	for (int i = 0; i < x->n; i++)
		words += x->now[i] ? x->words[i] : 0;
	if (words > x->most) {
		x->most = words;
		x->task = o->task;
	}
}

static void pass_map(struct live *x, const struct role_op *o)
{
	set(x, o->u.map.to, false);
	for (int i = o->u.map.steps.n - 1; i >= 0; i--)
		set(x, (struct frag_at){ o->u.map.steps.v[i].to, 0 }, false);
	for (int i = 0; i < o->u.map.steps.n; i++)
		use_value(x, o->u.map.steps.v[i].value);
	/* what a step has left for others is no use before it */
	for (int i = 0; i < o->u.map.steps.n; i++)
		set(x, (struct frag_at){ o->u.map.steps.v[i].to, 0 }, false);
}

static void pass_product(struct live *x, const struct role_op *o)
{
	if (o->u.product.adds->op == NUM_GT)	/* it begins with nothing */
		set(x, o->u.product.sum, false);
	else
		set(x, o->u.product.sum, true);
	if (o->u.product.form.registers)
		set(x, o->u.product.a, true);
	if (o->u.product.form.b_registers)
		set(x, o->u.product.b, true);
}

static void pass_move(struct live *x, const struct role_op *o)
{
	if (o->what == DO_PUT) {
		set(x, o->u.put.from, true);
		use_value(x, o->u.put.value);
	} else if (o->what == DO_PUT_PANELS) {
		set(x, o->u.panels.from, true);
	} else if (o->what == DO_STORE_THREADS) {
		set(x, o->u.move.from, true);
	}
}

static void pass(struct live *x, const struct role_op *o)
{
	if (o->what == DO_INIT) {
		set(x, o->u.frag.at, false);
	} else if (o->what == DO_PIN) {
		set(x, o->u.frag.at, true);
	} else if (o->what == DO_MAP) {
		pass_map(x, o);
	} else if (o->what == DO_PACK) {
		set(x, o->u.pack.to, false);
		use_value(x, o->u.pack.value);
	} else if (o->what == DO_KEEP) {
		set(x, o->u.pack.to, false);
		set(x, (struct frag_at){ o->u.pack.from, 0 }, true);
	} else if (o->what == DO_REDUCE || o->what == DO_SCAN) {
		set(x, (struct frag_at){ o->u.reduce.to, 0 }, false);
		use_value(x, o->u.reduce.value);
	} else if (o->what == DO_FETCH) {
		set(x, (struct frag_at){ o->u.fetch.to, 0 }, false);
	} else if (o->what == DO_PRODUCT) {
		pass_product(x, o);
	} else {
		pass_move(x, o);
	}
}

/* regions ------------------------------------------------------------------------ */

static void pass_body(struct live *x, const struct role_body *b);

static bool *copy(struct live *x, const bool *v)
{
	bool *out = ARENA_ARRAY(x->a, x->n, bool);

	memcpy(out, v, (size_t)x->n * sizeof(*v));
	return out;
}

static bool join(struct live *x, bool *into, const bool *from)
{
	bool more = false;

	for (int i = 0; i < x->n; i++) {
		more |= from[i] && !into[i];
		into[i] |= from[i];
	}
	return more;
}

static void pass_if(struct live *x, const struct role_op *o)
{
	bool *behind = copy(x, x->now), *other;

	pass_body(x, &o->u.region.other);
	other = copy(x, x->now);
	memcpy(x->now, behind, (size_t)x->n * sizeof(*behind));
	pass_body(x, &o->u.region.body);
	join(x, x->now, other);
}

static void pass_loop(struct live *x, const struct role_op *o)
{
	const bool *was_break = x->at_break, *was_continue = x->at_continue;
	bool *behind = copy(x, x->now), *head = copy(x, x->now), more = true;

	x->at_break = behind;
	while (more) {
		x->at_continue = head;
		memcpy(x->now, head, (size_t)x->n * sizeof(bool));
		pass_body(x, &o->u.region.body);
		more = join(x, head, x->now);
	}
	memcpy(x->now, head, (size_t)x->n * sizeof(bool));
	x->at_break = was_break;
	x->at_continue = was_continue;
}

static void pass_op(struct live *x, const struct role_op *o)
{
	if (o->what == DO_IF) {
		pass_if(x, o);
	} else if (o->what == DO_TILES || o->what == DO_LOOP) {
		pass_loop(x, o);
	} else if (role_is_region(o->what)) {
		pass_body(x, &o->u.region.body);
	} else if (o->what == DO_BREAK || o->what == DO_CONTINUE) {
		memcpy(x->now, o->what == DO_BREAK ? x->at_break : x->at_continue,
			(size_t)x->n * sizeof(*x->now));
	} else {
		pass(x, o);
		count(x, o);
	}
}

static void pass_body(struct live *x, const struct role_body *b)
{
	for (int i = b->v.n - 1; i >= 0; i--)
		pass_op(x, b->v.v[i]);
}

int role_live_words(const struct role *l, struct arena *a, int *task)
{
	struct live x = { .a = a, .task = NONE };

	collect(&x, &l->body);
	number(&x);
	x.now = ARENA_ARRAY(a, x.n, bool);
	pass_body(&x, &l->body);
	*task = x.task;
	return x.most;
}
