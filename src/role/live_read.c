/* A forward walk over the tree: which operations write and read each version of a fragment, and whether a value is
 * computed where it is used.
 *
 * A value that is computed element by element, and used once in the same way, is computed where it is used, as compilers
 * do: a tile that is converted while it is stored takes no more registers. A value that is made of numbers alone is so
 * however often it is used. Its operands must not have changed in between, and the use must be in the same iteration of
 * the same loop.
 */
#include "role/live_state.h"

#include "role/operands.h"

int live_find(struct reading *r, struct frag_at at)
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
	int i = live_find(r, at);

	return &r->versions.v[i];
}

/* who makes it -------------------------------------------------------------------- */

static bool reads_shared(const struct val *v)
{
	bool reads = v && v->kind == VAL_SHARED;

	for (int i = 0; v && i < LEN(v->arg); i++)
		reads |= reads_shared(v->arg[i]);
	return reads;
}

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

/* A test of all versions that an operation reads. */
struct sources {
	struct reading *r;
	int order;			/* made no later */
	bool all;
};

static void ask_numbers(void *ctx, struct frag_at at, bool all)
{
	struct sources *s = ctx;

	(void)all;
	s->all &= version_at(s->r, at)->of_numbers;
}

static bool is_of_numbers(struct reading *r, const struct role_op *o)
{
	struct sources s = { r, 0, is_elementwise(o) };

	role_uses(o, NULL, ask_numbers, &s);
	return s.all;
}

static void note_made(void *ctx, struct frag_at at)
{
	struct reading *r = ctx;
	bool of_numbers = is_of_numbers(r, r->at);
	struct version *v = version_at(r, at);

	v->of_numbers = of_numbers;
	v->makers += v->maker != r->at;
	v->maker = r->at;
	v->made_at = r->order;
	v->made_in = r->loop;
}

/* who uses it --------------------------------------------------------------------- */

static void ask_made(void *ctx, struct frag_at at, bool all)
{
	struct sources *s = ctx;

	(void)all;
	s->all &= version_at(s->r, at)->made_at <= s->order;
}

/* Are all operands of the version unchanged since it was computed? */
static bool stands(struct reading *r, const struct version *v)
{
	struct sources s = { r, v->made_at, true };

	role_uses(v->maker, NULL, ask_made, &s);
	return s.all;
}

static void note_used(void *ctx, struct frag_at at, bool all)
{
	struct reading *r = ctx;
	int i = live_find(r, at);
	struct version v = r->versions.v[i];

	v.uses += v.user != r->at;
	v.user = r->at;
	v.all |= all || !v.maker || v.made_in != r->loop || !is_elementwise(v.maker) || !stands(r, &v);
	r->versions.v[i] = v;
}

bool live_is_passing(const struct version *v)
{
	return v->makers == 1 && (v->of_numbers || (!v->all && v->uses == 1));
}

/* the tree ------------------------------------------------------------------------ */

static void read_body(struct reading *r, const struct role_body *b);

static bool leaves(const struct role_body *b)
{
	enum role_do last = b->v.n ? b->v.v[b->v.n - 1]->what : DO_COUNT;

	return last == DO_BREAK || last == DO_CONTINUE;
}

/* Groups under way after it are those of the branch that does not leave the loop. */
static void read_if(struct reading *r, const struct role_op *o)
{
	int n = r->groups.n;
	struct group *before = ARENA_ARRAY(r->a, n + 1, struct group);

	for (int i = 0; i < n; i++)
		before[i] = r->groups.v[i];
	read_body(r, &o->u.region.body);
	if (leaves(&o->u.region.body)) {
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
		live_note_commit(r);
	else if (o->what == DO_GROUPS_WAIT)
		live_note_wait(r, o);
	else if (o->what == DO_PIN)
		live_find(r, o->u.frag.at);
	else
		role_uses(o, note_made, note_used, r);
	if (o->what == DO_PRODUCT)
		live_note_product(r, o);
}

static void read_body(struct reading *r, const struct role_body *b)
{
	for (int i = 0; i < b->v.n; i++)
		read_op(r, b->v.v[i]);
}

struct reading live_read(const struct role *l, struct arena *a)
{
	struct reading r = { .a = a };

	read_body(&r, &l->body);
	return r;
}
