/* Register pressure by liveness: how many words of values a thread of a lane holds at most.
 *
 * A forward walk over the tree notes which operations write and read each version of a fragment; a backward walk keeps
 * which versions are live: from their write to their last read. A loop is repeated until nothing changes. The result of
 * an element-wise operation takes the registers of its operands, so the two count once.
 *
 * Compilers do not keep all operations where the text has them:
 *
 *  - A value that is computed element by element, and used once in the same way, is computed where it is used: a tile
 *    that is converted while it is stored takes no more registers. A value that is made of numbers alone is so however
 *    often it is used, and a copy has the registers of what it is a copy of. Its operands must not have changed in
 *    between, and the use must be in the same iteration of the same loop.
 *  - Neighbours that are read together from shared memory are in registers before the first is used. The reserved registers have
 *    one word for each value that is read.
 *  - Asynchronous matrix products read and write their registers later than the text says: an operand in registers is
 *    live until the lane has waited for the product's group, and a sum that the first product of a loop overwrites
 *    becomes live with the loop.
 *
 * Registers of sums and operands of asynchronous products are the same in all iterations, and aligned: compilers move
 * no values between them. So an operand that is made of a sum's elements, and is live when the next product begins to
 * write that sum, has registers of its own, and would count next to what it is made of (words_apart). A plan is legal
 * without them, as few lanes use all reserved registers.
 */
#include "role/live.h"

#include <string.h>

#include "role/operands.h"

/* A version of a fragment. */
struct version {
	struct frag_at at;
	int words;
	int makers, uses;		/* operations, and the last one met */
	const struct role_op *maker, *user;
	int made_at, made_in;		/* its number in the order of the text; its loop's */
	int pinned_at;			/* the number of the last pin: other registers may hold it from there on */
	bool all;			/* some operation needs more of it than the element at hand */
	bool stale;			/* where some operation uses it, it could not be computed */
	bool of_numbers;		/* it is computed from nothing in registers */
	bool is_operand;		/* of an asynchronous product */
	VEC(int) apart;			/* sums that asynchronous products begin to write while it is live */
};

/* A sum that has no value before the loop. */
struct born {
	const struct role_op *loop;
	int version;
};

/* An operand in registers that a product may read until this wait for groups. */
struct retired {
	const struct role_op *wait;
	int version;
};

/* Operands in registers of products under way. */
struct group {
	VEC(int) operands;		/* versions */
};

struct ops {
	VEC(const struct role_op *) v;
};

struct reading {
	struct arena *a;
	VEC(struct version) versions;
	VEC(struct born) born;
	VEC(struct retired) retired;
	struct ops fresh;		/* products that add to nothing, whatever they say */
	bool keeps;			/* sums keep their registers from tile to tile: see role_kept_words */
	bool fetches;			/* reading shared memory takes no registers of its own */
	/* where it stands */
	const struct role_op *at, *task;
	int order, loop, loops;		/* operations so far; the loop at hand, and all so far */
	struct ops around;		/* loops with a counter around it */
	VEC(struct group) groups;	/* under way; the last one is in the making */
};

static inline bool ops_hold(const struct ops *x, const struct role_op *o)
{
	for (int i = 0; i < x->v.n; i++)
		if (x->v.v[i] == o)
			return true;
	return false;
}

/* The version's number. One that is not known is added, which moves the others in memory. */
static int find_version(struct reading *r, struct frag_at at)
{
	for (int i = r->versions.n - 1; i >= 0; i--) {
		const struct frag_at *x = &r->versions.v[i].at;

		if (x->frag == at.frag && x->version == at.version)
			return i;
	}
	VEC_PUSH(r->a, &r->versions, ((struct version){ .at = at, .words = frag_words(at.frag) }));
	return r->versions.n - 1;
}

/* Until another one is added. */
static struct version *version_at(struct reading *r, struct frag_at at)
{
	int i = find_version(r, at);

	return &r->versions.v[i];
}

/* who makes it -------------------------------------------------------------------- */

bool role_reads_shared(const struct val *v)
{
	bool reads = v && v->kind == VAL_SHARED;

	for (int i = 0; v && i < LEN(v->arg); i++)
		reads |= role_reads_shared(v->arg[i]);
	return reads;
}

/* Does it make one element after the other, of registers alone? */
static bool is_elementwise(const struct reading *r, const struct role_op *o)
{
	if (o->what == DO_PACK)
		return r->fetches || !role_reads_shared(o->u.pack.value);
	for (int i = 0; o->what == DO_MAP && i < o->u.map.steps.n; i++)
		if (!r->fetches && role_reads_shared(o->u.map.steps.v[i].value))
			return false;
	return o->what == DO_MAP || o->what == DO_KEEP;
}

/* Does the operation do nothing but read another fragment, element by element? */
static bool is_copy(const struct role_op *o)
{
	return o->what == DO_MAP && o->u.map.steps.n == 1 && o->u.map.steps.v[0].value->kind == VAL_FRAG;
}

struct sources {
	struct reading *r;
	int last;			/* number of the operation that made the last one */
	int pinned;			/* ... and of the last pin of one */
	bool of_numbers;		/* all are */
};

static void note_source(void *ctx, struct frag_at at, bool all)
{
	struct sources *s = ctx;
	const struct version *v = version_at(s->r, at);

	(void)all;
	s->of_numbers &= v->of_numbers;
	s->last = v->made_at > s->last ? v->made_at : s->last;
	s->pinned = v->pinned_at > s->pinned ? v->pinned_at : s->pinned;
}

/* About all versions that an operation reads. */
static struct sources sources_of(struct reading *r, const struct role_op *o)
{
	struct sources s = { .r = r, .of_numbers = true };

	role_uses(o, NULL, note_source, &s);
	return s;
}

static void note_made(void *ctx, struct frag_at at)
{
	struct reading *r = ctx;
	bool of_numbers = is_elementwise(r, r->at) && sources_of(r, r->at).of_numbers;
	struct version *v = version_at(r, at);

	v->of_numbers = of_numbers;
	v->makers += v->maker != r->at;
	v->maker = r->at;
	v->made_at = r->order;
	v->made_in = r->loop;
}

/* who uses it --------------------------------------------------------------------- */

static void note_used(void *ctx, struct frag_at at, bool all)
{
	struct reading *r = ctx;
	int i = find_version(r, at);
	struct version v = r->versions.v[i];

	v.uses += v.user != r->at;
	v.user = r->at;
	v.all |= all;
	/* computed where it is used only if its operands are unchanged since */
	v.stale |= !v.maker || v.made_in != r->loop || !is_elementwise(r, v.maker);
	if (!v.stale) {
		struct sources of = sources_of(r, v.maker);

		v.stale = of.last > v.made_at || (is_copy(v.maker) && of.pinned > v.made_at);
	}
	r->versions.v[i] = v;
}

/* Is the value computed where it is used? Not if it is pinned where it is made. */
static bool is_passing(const struct version *v)
{
	return v->makers == 1 && v->pinned_at < v->made_at && (v->of_numbers || (!v->stale && ((!v->all && v->uses == 1) || is_copy(v->maker))));
}

/* matrix products --------------------------------------------------------------- */

/* A group begins when the one before is committed. */
static void begin_group(struct reading *r)
{
	VEC_PUSH(r->a, &r->groups, ((struct group){ { 0 } }));
}

/* If the first operand of a synchronous product has several blocks of rows, compilers that lack registers fetch one operand a
 * part at a time, each of which is multiplied by all of the other: the first by blocks, or the second by 16 columns, of which they
 * have two parts at once. */
static void note_fetched(struct reading *r, const struct role_op *o)
{
	enum { WORDS_AT_ONCE = 8 };
	int first = find_version(r, o->u.product.a), second = find_version(r, o->u.product.b);
	struct version *a = &r->versions.v[first], *b = &r->versions.v[second];
	int block = frag_block_words(a->at.frag), all_a = frag_words(a->at.frag), all_b = frag_words(b->at.frag);

	if (all_a == block || !a->maker || a->maker->what != DO_FETCH || a->at.frag->buffer != NONE ||
	    b->at.frag->buffer != NONE)
		return;
	if (block + all_b <= all_a + WORDS_AT_ONCE)
		a->words = block;
	else
		b->words = WORDS_AT_ONCE;
}

/* The product is in a loop with a counter, or in the first iteration, which was peeled off before it. */
static void note_product(struct reading *r, const struct role_op *o)
{
	const struct num *adds = o->u.product.adds;
	const struct role_op *task = r->task;

	if (o->u.product.form.registers && !o->u.product.form.by->async)
		note_fetched(r, o);

	if (o->u.product.form.by->async && !r->groups.n)
		begin_group(r);
	if (o->u.product.form.by->async && o->u.product.form.registers) {
		version_at(r, o->u.product.a)->is_operand = true;
		VEC_PUSH(r->a, &r->groups.v[r->groups.n - 1].operands, find_version(r, o->u.product.a));
	}
	for (int i = 0; i < r->around.v.n; i++)
		if (num_uses_of(adds, VAR_I, r->around.v.v[i]->u.region.of)) {
			VEC_PUSH(r->a, &r->born, ((struct born){ r->around.v.v[i],
				find_version(r, o->u.product.sum) }));
			return;
		}
	if (task && task->u.region.iteration && num_is(task->u.region.iteration, 0) &&
	    num_uses_of(adds, VAR_I, task->u.region.of))
		VEC_PUSH(r->a, &r->fresh.v, o);
}

static void note_wait(struct reading *r, const struct role_op *o)
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

/* the tree ------------------------------------------------------------------------ */

static void read_body(struct reading *r, const struct role_body *b);

/* Groups under way after it are those of the branch that does not leave the loop. */
static void read_if(struct reading *r, const struct role_op *o)
{
	const struct role_body *b = &o->u.region.body;
	enum role_do last = b->v.n ? b->v.v[b->v.n - 1]->what : DO_COUNT;
	int n = r->groups.n;
	struct group *before = arena_copy(r->a, r->groups.v, (size_t)n, sizeof(*before));

	read_body(r, b);
	if (last == DO_BREAK || last == DO_CONTINUE) {
		r->groups.n = 0;
		for (int i = 0; i < n; i++)
			VEC_PUSH(r->a, &r->groups, before[i]);
	}
	read_body(r, &o->u.region.other);
}

/* Twice, because an iteration begins with the groups that the one before has left under way. */
static void read_loop(struct reading *r, const struct role_op *o)
{
	int outer = r->loop;

	if (o->what == DO_LOOP)
		VEC_PUSH(r->a, &r->around.v, o);
	r->loop = ++r->loops;
	read_body(r, &o->u.region.body);
	r->loop = ++r->loops;
	read_body(r, &o->u.region.body);
	r->loop = outer;
	r->around.v.n -= o->what == DO_LOOP;
}

static void read_op(struct reading *r, const struct role_op *o)
{
	r->at = o;
	r->order++;
	if (o->what == DO_TASK)
		r->task = o;
	if (o->what == DO_IF)
		read_if(r, o);
	else if (o->what == DO_TILES || o->what == DO_LOOP)
		read_loop(r, o);
	else if (role_is_region(o->what))
		read_body(r, &o->u.region.body);
	else if (o->what == DO_GROUPS_COMMIT)
		begin_group(r);
	else if (o->what == DO_GROUPS_WAIT)
		note_wait(r, o);
	else if (o->what == DO_PIN)
		version_at(r, o->u.frag.at)->pinned_at = r->order;
	else
		role_uses(o, note_made, note_used, r);
	if (o->what == DO_PRODUCT)
		note_product(r, o);
}

static void read_body(struct reading *r, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++)
		read_op(r, b->v.v[i]);
}

/* the backward walk --------------------------------------------------------------- */

struct live {
	struct reading r;
	const struct role_op *at;
	bool makes_passing, makes_others;	/* it makes values that are computed where they are used; and others */
	bool *now;			/* by version: live after the operation at hand */
	const bool *at_break, *at_continue;	/* live after the loop; where its next iteration begins */
	int *followed, visit;		/* by version: the visit of an operation in which its operands were counted last */
	int apart;			/* words that the operation at hand makes, apart from those of its operands */
	int most, most_in;		/* words, and the sTask then */
	int most_apart;			/* ... with those */
	struct ops pins;		/* those of live fragments */
};

/* operations ---------------------------------------------------------------------- */

static void set_made(void *ctx, struct frag_at at)
{
	struct live *x = ctx;

	x->now[find_version(&x->r, at)] = false;
}

/* A value that is computed where it is used is not live before: its operands are. */
static void set_used(void *ctx, struct frag_at at, bool all)
{
	struct live *x = ctx;
	int i = find_version(&x->r, at);
	const struct version *v = &x->r.versions.v[i];

	(void)all;
	if (x->at->what == DO_PRODUCT && ops_hold(&x->r.fresh, x->at) &&
	    at.frag == x->at->u.product.sum.frag)
		return;
	if (!is_passing(v))
		x->now[i] = true;
	else if (x->followed[i] != x->visit) {	/* once: its operands may be passing, and used twice, too */
		x->followed[i] = x->visit;
		role_uses(v->maker, NULL, set_used, x);
	}
}

static void find_passing(void *ctx, struct frag_at at)
{
	struct live *x = ctx;
	int i = find_version(&x->r, at);

	*(is_passing(&x->r.versions.v[i]) ? &x->makes_passing : &x->makes_others) = true;
}

/* Adds the words, but for the first, of the neighbours that v reads together. */
static void count_read_words(const struct val *v, int *words)
{
	if (v->kind == VAL_SHARED && val_at_once(v) * dtype_bits(v->from) > 32)
		*words += val_at_once(v) * dtype_bits(v->from) / 32 - 1;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		count_read_words(v->arg[i], words);
}

static void count_read_operand(void *ctx, const struct operand *o)
{
	if (o->kind == OPERAND_VALUE)
		count_read_words(o->value, ctx);
}

/* Operands in registers that are live when the product begins to write its sum. */
static void note_apart(struct live *x, const struct role_op *product)
{
	int sum = find_version(&x->r, product->u.product.sum);

	for (int i = 0; i < x->r.versions.n; i++) {
		struct version *v = &x->r.versions.v[i];

		if (x->now[i] && v->is_operand && !ints_hold(v->apart.v, v->apart.n, sum))
			VEC_PUSH(x->r.a, &v->apart, sum);
	}
}

struct origin {
	struct live *x;
	const struct version *operand;
	int words;			/* those of the operand if it is made of a sum that it is apart from */
};

/* The value is computed in the registers of what it is made of, element by element. */
static void find_origin(void *ctx, struct frag_at at, bool all)
{
	struct origin *s = ctx;
	int i = find_version(&s->x->r, at);
	const struct version *v = &s->x->r.versions.v[i];

	(void)all;
	if (ints_hold(s->operand->apart.v, s->operand->apart.n, i))
		s->words = s->operand->words;
	else if (v->maker && is_elementwise(&s->x->r, v->maker) && s->x->followed[i] != s->x->visit) {
		s->x->followed[i] = s->x->visit;
		role_uses(v->maker, NULL, find_origin, s);
	}
}

static void count_apart(void *ctx, struct frag_at at)
{
	struct live *x = ctx;
	struct origin s = { .x = x, .operand = version_at(&x->r, at) };

	x->visit++;
	if (s.operand->is_operand && s.operand->apart.n)
		role_uses(x->at, NULL, find_origin, &s);
	x->apart += s.words;
}

static void pass_work(struct live *x, const struct role_op *o)
{
	int words = 0;

	x->at = o;
	x->apart = 0;
	if (o->what == DO_PRODUCT && o->u.product.form.by->async)
		note_apart(x, o);
	role_uses(o, count_apart, NULL, x);
	x->visit++;
	x->makes_passing = x->makes_others = false;
	role_uses(o, find_passing, NULL, x);
	if (x->makes_passing && !x->makes_others)	/* its operands count where its results are used */
		return;
	role_uses(o, set_made, set_used, x);
	for (int i = 0; i < x->r.retired.n; i++)
		if (x->r.retired.v[i].wait == o)
			x->now[x->r.retired.v[i].version] = true;
	role_visit(o, count_read_operand, &words);
	for (int i = 0; i < x->r.versions.n; i++)
		words += x->now[i] ? x->r.versions.v[i].words : 0;
	x->most_apart = (int)max_i64(x->most_apart, words + x->apart);
	if (words > x->most) {
		x->most = words;
		x->most_in = o->task;
	}
}

/* regions ------------------------------------------------------------------------- */

static void pass_body(struct live *x, const struct role_body *b);

static void set_live(struct live *x, const bool *to)
{
	memcpy(x->now, to, (size_t)x->r.versions.n * sizeof(*to));
}

static bool *copy_now(struct live *x)
{
	return arena_copy(x->r.a, x->now, (size_t)x->r.versions.n + 1, sizeof(*x->now));
}

/* Is there more now? */
static bool merge_live(const struct live *x, bool *into, const bool *from)
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
	const bool *after = copy_now(x);

	pass_body(x, &o->u.region.other);
	const bool *other = copy_now(x);
	set_live(x, after);
	pass_body(x, &o->u.region.body);
	merge_live(x, x->now, other);
}

static void pass_loop(struct live *x, const struct role_op *o)
{
	const bool *was_break = x->at_break, *was_continue = x->at_continue;
	bool *head = copy_now(x), more = true;

	x->at_break = copy_now(x);
	x->at_continue = head;
	while (more) {
		set_live(x, head);
		pass_body(x, &o->u.region.body);
		more = merge_live(x, head, x->now);
	}
	set_live(x, head);
	for (int i = 0; i < x->r.born.n && !x->r.keeps; i++)
		if (x->r.born.v[i].loop == o)
			x->now[x->r.born.v[i].version] = false;
	x->at_break = was_break;
	x->at_continue = was_continue;
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
		set_live(x, o->what == DO_BREAK ? x->at_break : x->at_continue);
	else
		pass_work(x, o);
	if (o->what == DO_PIN && x->now[find_version(&x->r, o->u.frag.at)] && !ops_hold(&x->pins, o))
		VEC_PUSH(x->r.a, &x->pins.v, o);
}

static void pass_body(struct live *x, const struct role_body *b)
{
	for (int i = b->v.n - 1; i >= 0; i--)
		pass_op(x, b->v.v[i]);
}

/* needless pins ------------------------------------------------------------------- */

/* Lowering pins every result that is complete after a wait for groups. If nothing reads the fragment before it is
 * written again, its pin is removed, because compilers would keep the registers where branches join. The pins that
 * belong to a product stay, even right after a wait. */

static void drop_pins(struct role_body *b, const struct ops *needed)
{
	bool droppable = false;
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];
		int k = i + 1;

		if (role_is_region(o->what)) {
			drop_pins(&o->u.region.body, needed);
			drop_pins(&o->u.region.other, needed);
		}
		if (o->what != DO_PIN) {
			while (k < b->v.n && b->v.v[k]->what == DO_PIN)
				k++;
			/* the fence of a product follows its pins */
			droppable = o->what == DO_GROUPS_WAIT && (k == b->v.n || b->v.v[k]->what != DO_GROUPS_FENCE);
		}
		if (!droppable || o->what != DO_PIN || ops_hold(needed, o))
			b->v.v[n++] = o;
	}
	b->v.n = n;
}

static void follow_values(struct live *x, const struct role *l)
{
	read_body(&x->r, &l->body);
	x->now = ARENA_ARRAY(x->r.a, x->r.versions.n + 1, bool);
	x->followed = ARENA_ARRAY(x->r.a, x->r.versions.n + 1, int);
	x->most_in = NONE;
	pass_body(x, &l->body);
}

void role_find_live(struct role *l, struct arena *a)
{
	struct live x = { .r = { .a = a } };

	follow_values(&x, l);
	l->words = x.most;
	l->words_in = x.most_in;
	l->words_apart = x.most_apart;
	drop_pins(&l->body, &x.pins);
}

int role_kept_words(const struct role *l, struct arena *a, bool fetches, struct role_sums *sums)
{
	struct live x = { .r = { .a = a, .keeps = true, .fetches = fetches } };

	follow_values(&x, l);
	for (int i = 0; sums && i < x.r.born.n; i++) {
		const struct frag_at *at = &x.r.versions.v[x.r.born.v[i].version].at;
		bool known = false;

		for (int k = 0; k < sums->v.n; k++)
			known |= sums->v.v[k].frag == at->frag && sums->v.v[k].version == at->version;
		if (!known)
			VEC_PUSH(a, &sums->v, *at);
	}
	return x.most;
}

/* addresses of slots -------------------------------------------------------------- */

struct slots {
	struct arena *a;
	VEC(int) rings;
	VEC(const struct role_op *) fetches;	/* of different elements */
};

static void find_fetch(struct slots *s, const struct role_op *o)
{
	for (int i = 0; i < s->fetches.n; i++)
		if (num_alike(s->fetches.v[i]->u.fetch.address, o->u.fetch.address))
			return;
	VEC_PUSH(s->a, &s->fetches, o);
}

static void find_slots(struct slots *s, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++) {
		const struct role_op *o = b->v.v[i];

		if (o->what == DO_SLOT && !ints_hold(s->rings.v, s->rings.n, o->u.slot.ring))
			VEC_PUSH(s->a, &s->rings, o->u.slot.ring);
		if (o->what == DO_FETCH)
			find_fetch(s, o);
		if (role_is_region(o->what)) {
			find_slots(s, &o->u.region.body);
			find_slots(s, &o->u.region.other);
		}
	}
}

static int fetch_words(const struct slots *s, int task, bool by_task)
{
	int words = 0;

	for (int i = 0; i < s->fetches.n; i++)
		if ((s->fetches.v[i]->task == task) == by_task)
			words += s->fetches.v[i]->u.fetch.patterns;
	return words;
}

int role_slot_words(const struct role *l, struct arena *a)
{
	struct slots s = { .a = a };

	find_slots(&s, &l->body);
	/* what the sTask with most values fetches itself has addresses that are computed where they are used */
	return s.rings.n + fetch_words(&s, l->words_in, false);
}

int role_most_fetch_words(const struct role *l, struct arena *a)
{
	struct slots s = { .a = a };

	find_slots(&s, &l->body);
	return fetch_words(&s, l->words_in, true);
}
