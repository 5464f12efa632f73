/* Registers by liveness: how many words of values a thread of a lane holds at most.
 *
 * Backward over the tree, as for any program: a fragment's version is live from where it is
 * written to where it is read last. A loop is gone through until nothing changes. Element-wise
 * work takes the place of what it is made of, so the two count once. Two things are not where
 * the text has them:
 *
 * - a matrix product reads an operand in registers until the lane has waited for its group;
 * - a value that is made of others element by element, and is used so and once, is made where
 *   it is used, as compilers do: a tile that is converted while it is stored takes no more
 *   room than before. One that is made of numbers alone is, however often it is used.
 *
 * A sum to which a loop's first product adds nothing begins with the loop.
 */
#include "role/live.h"

#include <string.h>

#include "role/uses.h"

/* A version of a fragment. */
struct version {
	struct frag_at at;
	int words;
	int makers, uses;		/* operations, and the last one met */
	const struct role_op *maker, *user;
	int made_at, made_in;		/* its number in the order of the text; its loop's */
	bool whole;			/* somebody needs more of it than the element at hand */
	bool of_numbers;		/* it is made of nothing in registers */
};

/* A sum that has no value before the loop. */
struct born {
	const struct role_op *loop;
	int version;
};

/* What a wait for groups sets free. */
struct retired {
	const struct role_op *wait;
	int version;
};

/* Operands in registers of products under way. */
struct group {
	VEC(int) operands;		/* versions */
};

struct live {
	struct arena *a;
	VEC(struct version) versions;
	VEC(struct retired) retired;
	/* of the operation at hand, going forward */
	const struct role_op *at;
	int order, loop, loops;
	VEC(const struct role_op *) around;	/* loops */
	const struct role_op *task;
	VEC(struct born) born;
	VEC(const struct role_op *) fresh;	/* products that add to nothing, whatever they say */
	VEC(struct group) groups;	/* under way; the last one is in the making */
	/* ... backward */
	bool *now;			/* live behind it */
	const bool *at_break, *at_continue;	/* behind the loop; where its next turn begins */
	int most, most_in;
	VEC(const struct role_op *) needed;	/* pins of what is live */
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

static int find(struct live *x, struct frag_at at)
{
	for (int i = x->versions.n - 1; i >= 0; i--)
		if (x->versions.v[i].at.frag == at.frag && x->versions.v[i].at.version == at.version)
			return i;
	*VEC_ADD(x->a, &x->versions) = (struct version){ .at = at, .words = frag_words(at.frag) };
	return x->versions.n - 1;
}

/* Until the next one is met. */
static struct version *version_at(struct live *x, struct frag_at at)
{
	int i = find(x, at);

	return &x->versions.v[i];
}

/* the text in order: what is made where it is used -------------------------------- */

static bool reads_shared(const struct val *v)
{
	bool reads = v && v->kind == VAL_SHARED;

	for (int i = 0; v && i < LEN(v->arg); i++)
		reads |= reads_shared(v->arg[i]);
	return reads;
}

struct since {
	struct live *x;
	int order;
	bool same;
};

/* Does it make one element after the other, of registers alone? */
static bool is_elementwise(const struct role_op *o)
{
	if (o->what == DO_PACK)
		return !reads_shared(o->u.pack.value);
	for (int i = 0; o->what == DO_MAP && i < o->u.map.steps.n; i++)
		if (reads_shared(o->u.map.steps.v[i].value))
			return false;
	return o->what == DO_MAP || o->what == DO_KEEP;
}

static void compare_numbers(void *ctx, struct frag_at at, bool whole)
{
	struct since *s = ctx;

	(void)whole;
	s->same &= version_at(s->x, at)->of_numbers;
}

static void skip_made(void *ctx, struct frag_at at)
{
	(void)ctx, (void)at;
}

static void note_made(void *ctx, struct frag_at at)
{
	struct live *x = ctx;
	struct since s = { x, 0, is_elementwise(x->at) };
	struct version *v;

	role_uses(x->at, &(struct uses){ skip_made, compare_numbers, &s });
	v = version_at(x, at);
	v->of_numbers = s.same;

	v->makers += v->maker != x->at;
	v->maker = x->at;
	v->made_at = x->order;
	v->made_in = x->loop;
}

static void compare_made(void *ctx, struct frag_at at, bool whole)
{
	struct since *s = ctx;

	(void)whole;
	s->same &= version_at(s->x, at)->made_at <= s->order;
}

/* Is all that the version was made of as it was then? */
static bool stands(struct live *x, const struct version *v)
{
	struct since s = { x, v->made_at, true };

	role_uses(v->maker, &(struct uses){ skip_made, compare_made, &s });
	return s.same;
}

static void note_used(void *ctx, struct frag_at at, bool whole)
{
	struct live *x = ctx;
	int i = find(x, at);
	struct version v = x->versions.v[i];

	v.uses += v.user != x->at;
	v.user = x->at;
	v.whole |= whole || !v.maker || v.made_in != x->loop || !is_elementwise(v.maker) ||
		!stands(x, &v);
	x->versions.v[i] = v;
}

/* Is it made where it is used? */
static bool is_passing(const struct version *v)
{
	return v->makers == 1 && (v->of_numbers || (!v->whole && v->uses == 1));
}

/* ... where sums begin ------------------------------------------------------------ */

static bool asks_iteration(const struct num *x, int loop)
{
	if (!x)
		return false;
	return (x->op == NUM_VAR && x->var == VAR_I && x->of == loop) || asks_iteration(x->a, loop) ||
		asks_iteration(x->b, loop) || asks_iteration(x->c, loop);
}

static void note_sum(struct live *x, const struct role_op *o)
{
	const struct num *adds = o->u.product.adds;

	for (int i = 0; i < x->around.n; i++)
		if (asks_iteration(adds, x->around.v[i]->u.region.of)) {
			VEC_PUSH(x->a, &x->born, ((struct born){ x->around.v[i], find(x,
				o->u.product.sum) }));
			return;
		}
	if (x->task && x->task->u.region.iteration && num_is(x->task->u.region.iteration, 0) &&
	    asks_iteration(adds, x->task->u.region.of))
		VEC_PUSH(x->a, &x->fresh, o);
}

/* ... and which operands products still read -------------------------------------- */

static void note_operand(struct live *x, const struct role_op *o)
{
	if (!x->groups.n)
		*VEC_ADD(x->a, &x->groups) = (struct group){ { 0 } };
	if (o->u.product.form.registers)
		VEC_PUSH(x->a, &x->groups.v[x->groups.n - 1].operands, find(x, o->u.product.a));
}

static void note_wait(struct live *x, const struct role_op *o)
{
	int open = x->groups.n ? 1 : 0, done = x->groups.n - open - o->u.count;

	for (int g = 0; g < done; g++)
		for (int i = 0; i < x->groups.v[g].operands.n; i++)
			VEC_PUSH(x->a, &x->retired, ((struct retired){ o,
				x->groups.v[g].operands.v[i] }));
	if (done <= 0)
		return;
	x->groups.n -= done;
	memmove(x->groups.v, x->groups.v + done, (size_t)x->groups.n * sizeof(*x->groups.v));
}

static bool leaves(const struct role_body *b)
{
	enum role_do last = b->v.n ? b->v.v[b->v.n - 1]->what : DO_COUNT;

	return last == DO_BREAK || last == DO_CONTINUE;
}

static void read_body(struct live *x, const struct role_body *b);

/* What is under way behind it is what the branch that goes on leaves there. */
static void read_if(struct live *x, const struct role_op *o)
{
	int n = x->groups.n;
	struct group *before = ARENA_ARRAY(x->a, n + 1, struct group);

	for (int i = 0; i < n; i++)
		before[i] = x->groups.v[i];
	read_body(x, &o->u.region.body);
	if (leaves(&o->u.region.body)) {
		x->groups.n = 0;
		for (int i = 0; i < n; i++)
			VEC_PUSH(x->a, &x->groups, before[i]);
	}
	read_body(x, &o->u.region.other);
}

/* Twice: what a turn leaves under way, the next one finds. */
static void read_loop(struct live *x, const struct role_op *o)
{
	int outer = x->loop;

	if (o->what == DO_LOOP)
		VEC_PUSH(x->a, &x->around, o);
	x->loop = ++x->loops;
	read_body(x, &o->u.region.body);
	x->loop = ++x->loops;
	read_body(x, &o->u.region.body);
	x->loop = outer;
	x->around.n -= o->what == DO_LOOP;
}

static void read_op(struct live *x, const struct role_op *o)
{
	x->at = o;
	x->order++;
	if (o->what == DO_TASK)
		x->task = o;
	if (o->what == DO_IF)
		read_if(x, o);
	else if (o->what == DO_TILES || o->what == DO_LOOP)
		read_loop(x, o);
	else if (role_is_region(o->what))
		read_body(x, &o->u.region.body);
	else if (o->what == DO_GROUPS_WAIT)
		note_wait(x, o);
	else if (o->what == DO_PIN)
		find(x, o->u.frag.at);	/* all versions are known from here on */
	else if (o->what == DO_GROUPS_COMMIT)
		*VEC_ADD(x->a, &x->groups) = (struct group){ { 0 } };
	else
		role_uses(o, &(struct uses){ note_made, note_used, x });
	if (o->what == DO_PRODUCT && o->u.product.form.by->async)
		note_operand(x, o);
	if (o->what == DO_PRODUCT)
		note_sum(x, o);
}

static void read_body(struct live *x, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++)
		read_op(x, b->v.v[i]);
}

/* backward: what is live ---------------------------------------------------------- */

static void set_made(void *ctx, struct frag_at at)
{
	struct live *x = ctx;

	x->now[find(x, at)] = false;
}

static bool is_fresh(const struct live *x, const struct role_op *o)
{
	for (int i = 0; i < x->fresh.n; i++)
		if (x->fresh.v[i] == o)
			return true;
	return false;
}

static void set_used(void *ctx, struct frag_at at, bool whole)
{
	struct live *x = ctx;
	const struct version *v = version_at(x, at);

	(void)whole;
	if (x->at->what == DO_PRODUCT && is_fresh(x, x->at) && at.frag == x->at->u.product.sum.frag)
		return;
	if (is_passing(v))
		role_uses(v->maker, &(struct uses){ skip_made, set_used, x });
	else
		x->now[find(x, at)] = true;
}

static void count(struct live *x, const struct role_op *o)
{
	int words = 0;

	for (int i = 0; i < x->versions.n; i++)
		words += x->now[i] ? x->versions.v[i].words : 0;
	if (words > x->most) {
		x->most = words;
		x->most_in = o->task;
	}
}

struct makes {
	struct live *x;
	bool passing, others;
};

static void find_passing(void *ctx, struct frag_at at)
{
	struct makes *m = ctx;

	*(is_passing(version_at(m->x, at)) ? &m->passing : &m->others) = true;
}

static void skip_used(void *ctx, struct frag_at at, bool whole)
{
	(void)ctx, (void)at, (void)whole;
}

static void pass_work(struct live *x, const struct role_op *o)
{
	struct makes m = { x, false, false };

	x->at = o;
	role_uses(o, &(struct uses){ find_passing, skip_used, &m });
	if (m.passing && !m.others)	/* its uses are those of who uses it */
		return;
	role_uses(o, &(struct uses){ set_made, set_used, x });
	for (int i = 0; i < x->retired.n; i++)
		if (x->retired.v[i].wait == o)
			x->now[x->retired.v[i].version] = true;
	count(x, o);
}

static void pass_body(struct live *x, const struct role_body *b);

static bool *copy(struct live *x, const bool *v)
{
	bool *out = ARENA_ARRAY(x->a, x->versions.n + 1, bool);

	memcpy(out, v, (size_t)x->versions.n * sizeof(*v));
	return out;
}

static bool join(struct live *x, bool *into, const bool *from)
{
	bool more = false;

	for (int i = 0; i < x->versions.n; i++) {
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
	memcpy(x->now, behind, (size_t)x->versions.n * sizeof(*behind));
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
		memcpy(x->now, head, (size_t)x->versions.n * sizeof(bool));
		pass_body(x, &o->u.region.body);
		more = join(x, head, x->now);
	}
	memcpy(x->now, head, (size_t)x->versions.n * sizeof(bool));
	for (int i = 0; i < x->born.n; i++)
		if (x->born.v[i].loop == o)
			x->now[x->born.v[i].version] = false;
	x->at_break = was_break;
	x->at_continue = was_continue;
}

static bool is_needed(const struct live *x, const struct role_op *pin)
{
	for (int i = 0; i < x->needed.n; i++)
		if (x->needed.v[i] == pin)
			return true;
	return false;
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
		memcpy(x->now, o->what == DO_BREAK ? x->at_break : x->at_continue,
			(size_t)x->versions.n * sizeof(*x->now));
	else
		pass_work(x, o);
	if (o->what == DO_PIN && x->now[find(x, o->u.frag.at)] && !is_needed(x, o))
		VEC_PUSH(x->a, &x->needed, o);
}

static void pass_body(struct live *x, const struct role_body *b)
{
	for (int i = b->v.n - 1; i >= 0; i--)
		pass_op(x, b->v.v[i]);
}

static struct live look(const struct role *l, struct arena *a)
{
	struct live x = { .a = a, .most_in = NONE };

	read_body(&x, &l->body);
	x.now = ARENA_ARRAY(a, x.versions.n + 1, bool);
	pass_body(&x, &l->body);
	return x;
}

int role_live_words(const struct role *l, struct arena *a, int *task)
{
	struct live x = look(l, a);

	*task = x.most_in;
	return x.most;
}

/* pins ----------------------------------------------------------------------------- */

/* Are the pins from the i-th operation on those of a product, or followed by them? */
static bool are_of_product(const struct role_body *b, int i)
{
	while (i < b->v.n && b->v.v[i]->what == DO_PIN)
		i++;
	return i < b->v.n && b->v.v[i]->what == DO_GROUPS_FENCE;
}

static void drop_pins(const struct live *x, struct role_body *b)
{
	bool droppable = false;
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (role_is_region(o->what))
			drop_pins(x, &o->u.region.body);
		if (o->what == DO_IF)
			drop_pins(x, &o->u.region.other);
		if (o->what != DO_PIN)
			droppable = o->what == DO_GROUPS_WAIT && !are_of_product(b, i + 1);
		if (!droppable || o->what != DO_PIN || is_needed(x, o))
			b->v.v[n++] = o;
	}
	b->v.n = n;
}

void role_drop_pins(struct role *l, struct arena *a)
{
	struct live x = look(l, a);

	drop_pins(&x, &l->body);
}

/* addresses ----------------------------------------------------------------------- */

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
