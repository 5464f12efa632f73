/* Fragments, and the lane's scratch in shared memory. */
#include "verify/names.h"

#include <string.h>

static struct seen_frag *find_frag(struct names *c, const struct frag *f)
{
	for (int i = c->frags.n - 1; i >= 0; i--)
		if (c->frags.v[i].frag == f)
			return &c->frags.v[i];
	for (int i = c->frags.n - 1; i >= 0; i--)	/* another description of it */
		if (!strcmp(c->frags.v[i].frag->name, f->name))
			return &c->frags.v[i];
	names_fail(c, "needs the fragment '%s', which is not there", f->name);
	return NULL;
}

void names_declare_frag(struct names *c, const struct frag *f)
{
	for (int i = 0; i < c->frags.n; i++)
		if (c->frags.v[i].body == c->body && !strcmp(c->frags.v[i].frag->name, f->name))
			names_fail(c, "'%s' is there already", f->name);
	VEC_PUSH(c->a, &c->frags, ((struct seen_frag){ .frag = f, .body = c->body }));
}

static bool is_own(const struct seen_frag *x)
{
	return x->frag->buffer == NONE;
}

static void check_sum(struct names *c, const struct seen_frag *x)
{
	if (x->sum == SUM_UNDER_WAY)
		names_fail(c, "touches '%s' while a product is under way on it", x->frag->name);
	else if (x->sum == SUM_UNPINNED)
		names_fail(c, "touches '%s', which is not pinned since its product is complete", x->frag->name);
}

void names_read(struct names *c, struct frag_at at)
{
	struct seen_frag *x = find_frag(c, at.frag);

	if (!x)
		return;
	if (is_own(x) && !x->written)
		names_fail(c, "reads '%s', which nothing has written", at.frag->name);
	check_sum(c, x);
	x->read = c->now;
	x->version = at.version;
}

static void note_write(const struct names *c, struct seen_frag *x)
{
	x->changed = c->now;
	x->pairs = x->unordered = false;
	x->written = x->written ? x->written : c->now;
}

void names_write(struct names *c, struct frag_at at)
{
	struct seen_frag *x = find_frag(c, at.frag);

	if (!x)
		return;
	if (x->read == c->now && x->version == at.version)
		names_fail(c, "reads '%s' and writes it", at.frag->name);
	check_sum(c, x);
	note_write(c, x);
}

void names_forget(struct names *c, int since)
{
	for (int i = 0; i < c->frags.n; i++)
		if (c->frags.v[i].written > since)
			c->frags.v[i].written = 0;
}

void names_pack(struct names *c, const struct role_op *o)
{
	struct seen_frag *to = find_frag(c, o->u.pack.to.frag), *from = o->what == DO_KEEP ? find_frag(c, o->u.pack.from) : NULL;

	if (to) {
		to->pairs = from ? from->pairs : o->u.pack.pairs;
		to->unordered = from ? from->unordered : o->u.pack.pairs && !o->u.pack.ordered;
	}
}

/* products --------------------------------------------------------------------- */

void names_pin(struct names *c, struct frag_at at)
{
	struct seen_frag *x = find_frag(c, at.frag);

	if (!x)
		return;
	x->pinned = c->now;
	x->pinned_version = at.version;
	if (x->sum == SUM_UNPINNED)
		x->sum = SUM_THERE;
}

void names_groups_wait(struct names *c, int n)
{
	for (int i = 0; i < c->frags.n; i++) {
		struct seen_frag *x = &c->frags.v[i];

		if (!n && x->sum == SUM_UNDER_WAY)
			x->sum = SUM_UNPINNED;
		x->unordered |= x->pairs && is_own(x);
	}
}

/* The pin and the fence keep the compiler from moving its own accesses to the registers past them. A change by the
 * sTask's product at time `before` is no access of the compiler's. */
static void check_fenced(struct names *c, const struct seen_frag *x, int version, int before)
{
	bool changed = x->pinned <= x->changed && (!before || x->changed != before);

	if (changed || x->pinned <= c->task_began || x->pinned_version != version)
		names_fail(c, "takes '%s', which is not pinned before", x->frag->name);
	else if (c->fenced <= x->pinned)
		names_fail(c, "has no groups_fence behind the pin of '%s'", x->frag->name);
}

static int64_t zero_var(const struct num_env *env, enum var v, int of)
{
	(void)env, (void)v, (void)of;
	return 0;
}

/* With all counters 0: of an address its constant part. */
static int64_t at_zero(const struct num *x)
{
	struct num_env env = { zero_var };

	return num_value(x, &env);
}

/* The products of an sTask compute its columns one after the other. */
static void check_columns(struct names *c, const struct role_op *o)
{
	if (c->product && (o->what == DO_SUM_PRODUCT || o->u.product.first != c->multiplied))
		names_fail(c, "multiplies for columns that a product of its sTask has, too");
	else if (o->what == DO_PRODUCT && o->u.product.first != c->multiplied)
		names_fail(c, "begins behind columns that no product of its sTask has");
	if (o->what == DO_PRODUCT) {
		c->sum = o->u.product.sum.frag;
		c->multiplied += (int64_t)o->u.product.form.cols * o->u.product.col_steps;
	}
	c->product = c->now;
}

/* Its operands have been read. What an asynchronous product reads or writes is pinned, behind a fence. */
void names_product(struct names *c, const struct role_op *o)
{
	bool async = o->what == DO_PRODUCT && o->u.product.form.by->async;
	struct frag_at sum = o->what == DO_PRODUCT ? o->u.product.sum : o->u.sum_product.sum;
	bool adds = o->what == DO_SUM_PRODUCT || at_zero(o->u.product.adds);
	struct seen_frag *x = async && o->u.product.a.frag ? find_frag(c, o->u.product.a.frag) : NULL;
	int before = c->product;

	check_columns(c, o);
	if (x)
		check_fenced(c, x, o->u.product.a.version, 0);
	if (x && x->unordered)
		names_fail(c, "reads '%s', which a compiler may overwrite while the previous product still reads its registers", x->frag->name);
	x = find_frag(c, sum.frag);
	if (!x)
		return;
	if (is_own(x) && adds && !x->written)
		names_fail(c, "adds to '%s', which nothing has written", x->frag->name);
	if (async)
		check_fenced(c, x, sum.version, before);
	note_write(c, x);
	if (is_own(x) && async)
		x->sum = SUM_UNDER_WAY;
}

/* scratch ---------------------------------------------------------------------- */

/* The value that has the byte. */
static struct scratched *scratched_at(struct names *c, int64_t at)
{
	for (int i = 0; i < c->scratch.n; i++)
		if (c->scratch.v[i].at <= at && at < c->scratch.v[i].end)
			return &c->scratch.v[i];
	return NULL;
}

/* Bytes that the operation at hand writes to the scratch: all elements of a fragment, or what replaces what it has read. */
static int64_t scratch_bytes_written(const struct names *c)
{
	const struct frag *f = c->op->what == DO_PUT ? c->op->u.put.over : NULL;

	return f ? 4 * max_i64(f->height, 1) * max_i64(f->width, 1) : 4;
}

void names_scratch_read(struct names *c, const struct num *address)
{
	const struct scratched *x = scratched_at(c, at_zero(address));

	if (!x || !x->there)
		names_fail(c, "reads a value in the scratch that may not be there");
	c->scratch_read = true;
}

/* A write after the threads have met ends the use of what was written before. */
void names_scratch_write(struct names *c, const struct num *address)
{
	int64_t at = at_zero(address);

	if (c->scratch_read)
		names_fail(c, "writes to the scratch while others may read it");
	if (c->scratch.n && c->scratch.v[0].there)
		c->scratch.n = 0;
	if (!scratched_at(c, at))
		VEC_PUSH(c->a, &c->scratch, ((struct scratched){ at, at + scratch_bytes_written(c), false }));
}

/* The lane's warps meet, then use all of the scratch, and read it last. */
void names_scratch_all(struct names *c)
{
	c->scratch.n = 0;
	c->scratch_read = true;
}

void names_met(struct names *c)
{
	c->scratch_read = false;
	for (int i = 0; i < c->scratch.n; i++)
		c->scratch.v[i].there = true;
}
