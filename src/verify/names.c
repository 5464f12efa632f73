/* The tree as a text: variables, and the way through it. */
#include "verify/names_state.h"

#include <stdarg.h>

void names_fail(struct names *c, const char *fmt, ...)
{
	const struct graph *g = c->set->plan->graph;
	int task = c->op ? c->op->task : NONE;
	va_list ap;

	if (c->code)
		return;
	va_start(ap, fmt);
	c->code = err_set(c->e, ERR_ILLEGAL, task == NONE ? NOWHERE : g->tasks.v[task].loc,
		"lane '%s'%s: '%s' %s", c->role->name, task == NONE ? "" : arena_strf(c->a, ", '%s'",
		g->tasks.v[task].name), c->op ? role_do_info[c->op->what].name : "the end",
		arena_vstrf(c->a, fmt, ap));
	va_end(ap);
}

/* variables -------------------------------------------------------------------- */

/* Is it there without being let: a place in what an operation goes through? */
static bool is_given(enum var v)
{
	return v == VAR_SHARED || v == VAR_WARP || v == VAR_RANK || v == VAR_RB || v == VAR_EIGHT ||
		v == VAR_H || v == VAR_E || v == VAR_KS || v == VAR_ALONG || v == VAR_CB || v == VAR_EACH ||
		v == VAR_PANEL || v == VAR_INDEX || v == VAR_W || v == VAR_ALL_TILES;
}

static int name_of(const struct names *c, enum var v, int of)
{
	return c->first[v] + of + 1;
}

static const char *text_of(struct names *c, enum var v, int of)
{
	return var_text(c->a, v, of, &c->r->names);
}

/* Has something that it was computed from another meaning here? */
static bool is_stale(const struct names *c, const struct name *n)
{
	for (int i = 0; i < n->ndeps; i++) {
		const struct dep *d = &c->deps.v[n->deps + i];

		if (c->name[d->name].id != d->id || is_stale(c, &c->name[d->name]))
			return true;
	}
	return false;
}

static void use(struct names *c, enum var v, int of)
{
	struct name *n = &c->name[name_of(c, v, of)];

	c->absolute |= v == VAR_SHARED;
	if (is_given(v))
		return;
	if (!n->body)
		names_fail(c, "needs '%s', which is not there", text_of(c, v, of));
	else if (c->hiding && is_stale(c, n))
		names_fail(c, "takes '%s' of another place", text_of(c, v, of));
	n->used = c->now;
}

static void declare(struct names *c, enum var v, int of, bool changes)
{
	int at = name_of(c, v, of);
	struct name *n = &c->name[at];

	if (n->body == c->body)
		names_fail(c, "lets '%s', which is there already", text_of(c, v, of));
	else if (n->body && n->used >= c->begin)
		names_fail(c, "lets '%s' behind what needs it", text_of(c, v, of));
	c->hiding += n->body != 0;
	VEC_PUSH(c->a, &c->shadowed, ((struct shadow){ at, *n }));
	*n = (struct name){ .body = c->body, .id = ++c->ids, .changes = changes };
}

static void change(struct names *c, enum var v, int of)
{
	use(c, v, of);
	if (!c->name[name_of(c, v, of)].changes)
		names_fail(c, "changes '%s', which does not change", text_of(c, v, of));
}

static void note_deps(struct names *c, const struct num *x)
{
	if (!x)
		return;
	if (x->op == NUM_VAR && !is_given(x->var)) {
		int at = name_of(c, x->var, x->of);

		VEC_PUSH(c->a, &c->deps, ((struct dep){ at, c->name[at].id }));
	}
	note_deps(c, x->a);
	note_deps(c, x->b);
	note_deps(c, x->c);
}

void names_num(struct names *c, const struct num *x)
{
	if (!x || x->op == NUM_CONST)
		return;
	if (x->op == NUM_VAR) {
		use(c, x->var, x->of);
		return;
	}
	names_num(c, x->a);
	names_num(c, x->b);
	names_num(c, x->c);
}

void names_val(struct names *c, const struct val *v)
{
	if (!v)
		return;
	names_num(c, v->less);
	c->absolute = false;
	names_num(c, v->num);
	if (v->kind == VAL_SHARED && c->absolute)
		names_scratch_read(c, v->num);
	if (v->kind == VAL_FRAG)
		names_read(c, v->frag);
	for (int i = 0; i < LEN(v->arg); i++)
		names_val(c, v->arg[i]);
}

static void let(struct names *c, const struct role_op *o)
{
	for (int i = 0; i < o->u.let.v.n; i++) {
		const struct role_let *l = &o->u.let.v.v[i];
		int deps = c->deps.n;

		names_num(c, l->to);
		if (o->what != DO_LET) {
			change(c, l->var, l->of);
			continue;
		}
		note_deps(c, l->to);
		declare(c, l->var, l->of, o->u.let.changes);
		c->name[name_of(c, l->var, l->of)].deps = deps;
		c->name[name_of(c, l->var, l->of)].ndeps = c->deps.n - deps;
	}
}

/* regions ---------------------------------------------------------------------- */

static void read_body(struct names *c, const struct role_body *b);

/* What is let in it can be seen no more. */
static void leave_body(struct names *c, int names, int frags)
{
	for (; c->shadowed.n > names; c->shadowed.n--) {
		const struct shadow *s = &c->shadowed.v[c->shadowed.n - 1];

		c->name[s->name] = s->was;
		c->hiding -= s->was.body != 0;
	}
	c->frags.n = frags;
}

/* A body that need not be done. */
static void read_perhaps(struct names *c, const struct role_body *b)
{
	int since = c->now;

	c->depth++;
	read_body(c, b);
	c->depth--;
	names_forget(c, since);
}

/* Regions with names of their own, beside those in the body. */
static void read_header(struct names *c, const struct role_op *o)
{
	int names = c->shadowed.n, frags = c->frags.n, body = c->body, begin = c->begin;

	c->body = ++c->bodies;
	c->begin = c->now;
	if (o->what == DO_TILES) {
		declare(c, VAR_AT, NONE, false);
		declare(c, VAR_T, NONE, false);
		declare(c, VAR_TILE, NONE, false);
	} else if (o->what == DO_EACH || o->u.region.from) {
		declare(c, o->u.region.var, o->u.region.of, true);
	} else {
		change(c, o->u.region.var, o->u.region.of);
	}
	names_num(c, o->u.region.end);
	names_num(c, o->u.region.unmasked);
	names_num(c, o->u.region.interior);
	if (o->what == DO_EACH)
		read_body(c, &o->u.region.body);
	else
		read_perhaps(c, &o->u.region.body);
	leave_body(c, names, frags);
	c->body = body;
	c->begin = begin;
}

static void read_task(struct names *c, const struct role_op *o)
{
	names_begin_task(c);
	read_body(c, &o->u.region.body);
	names_end_task(c, o);
}

/* operations ------------------------------------------------------------------- */

static void read_indices(struct names *c, const struct role_op *o)
{
	for (int i = 0; i < o->u.move.rank; i++)
		names_num(c, o->u.move.index[i].at);
	names_num(c, o->u.move.inside);
	names_num(c, o->u.move.address);
	names_num(c, o->u.move.n);
	use(c, VAR_THREAD, NONE);
	if (o->what == DO_STORE_THREADS)
		names_read(c, o->u.move.from);
}

static void read_boxes(struct names *c, const struct role_op *o)
{
	int rank = c->r->maps.v[o->u.boxes.map].rank;

	names_num(c, o->u.boxes.n);
	use(c, VAR_THREAD, NONE);
	for (int i = 0; i < o->u.boxes.boxes.n; i++) {
		const struct role_box *b = &o->u.boxes.boxes.v[i];

		names_num(c, b->when);
		names_num(c, b->to);
		for (int d = 0; d < rank; d++)
			names_num(c, b->corner[d]);
	}
}

static void read_put(struct names *c, const struct role_op *o)
{
	names_num(c, o->u.put.when);
	names_num(c, o->u.put.inside);
	if (o->u.put.from.frag)
		names_read(c, o->u.put.from);
	else
		names_val(c, o->u.put.value);
	c->absolute = false;
	names_num(c, o->u.put.address);
	if (c->absolute)
		names_scratch_write(c, o->u.put.address);
}

static void read_panels(struct names *c, const struct role_op *o)
{
	use(c, VAR_THREAD, NONE);
	names_read(c, o->u.panels.from);
	names_num(c, o->u.panels.to);
	names_num(c, o->u.panels.block);
	names_num(c, o->u.panels.column);
}

static void read_map(struct names *c, const struct role_op *o)
{
	for (int i = 0; i < o->u.map.steps.n; i++) {
		const struct role_step *s = &o->u.map.steps.v[i];

		names_val(c, s->value);
		if (s->to)
			names_write(c, (struct frag_at){ s->to, 0 });
	}
	if (o->u.map.to.frag)
		names_write(c, o->u.map.to);
}

static void read_pack(struct names *c, const struct role_op *o)
{
	names_val(c, o->u.pack.value);
	names_num(c, o->u.pack.inside);
	if (o->u.pack.from)
		names_read(c, (struct frag_at){ o->u.pack.from, 0 });
	names_write(c, o->u.pack.to);
}

static void read_reduce(struct names *c, const struct role_op *o)
{
	use(c, VAR_THREAD, NONE);
	names_val(c, o->u.reduce.value);
	names_val(c, o->u.reduce.zero);
	if (o->what == DO_REDUCE && o->u.reduce.along_rows && c->role->warps > 1)
		names_scratch_all(c);
	names_write(c, (struct frag_at){ o->u.reduce.to, 0 });
}

/* A thread has a line to itself: what it reads of it, it may write over. */
static void read_lines(struct names *c, const struct role_op *o)
{
	bool read = c->scratch_read;

	use(c, VAR_THREAD, NONE);
	names_num(c, o->u.lines.when);
	names_num(c, o->u.lines.length);
	names_val(c, o->u.lines.value);
	names_val(c, o->u.lines.zero);
	c->scratch_read = read;
	names_scratch_write(c, o->u.lines.to);
}

static void read_sync(struct names *c, const struct role_op *o)
{
	if (o->what == DO_GROUPS_WAIT)
		names_groups_wait(c, o->u.count);
	else if (o->what == DO_GROUPS_FENCE)
		c->fenced = c->now;
	else if (o->what == DO_LANE_SYNC || (o->what == DO_WARP_SYNC && c->role->warps == 1))
		names_met(c);
	else if (o->what == DO_STORES_WAIT && o->u.stores.first != o->u.stores.other)
		use(c, VAR_ROUND, NONE);
}

static void read_flag(struct names *c, const struct role_op *o)
{
	names_num(c, o->u.flag.n);
	names_num(c, o->u.flag.when);
	if (o->what == DO_ARRIVE || o->what == DO_RELEASE)
		use(c, VAR_THREAD, NONE);
	if (o->what == DO_RELEASE)
		change(c, VAR_RELEASED, o->u.flag.flag);
	if (o->what == DO_WAIT && o->u.flag.once)
		change(c, VAR_SEEN, o->u.flag.flag);
}

static void read_lane(struct names *c)
{
	static const enum var v[] = { VAR_THREAD, VAR_GROUP, VAR_ROW0, VAR_COL0 };

	for (int i = 0; i < LEN(v); i++)
		declare(c, v[i], NONE, false);
}

static void read_opaque(struct names *c)
{
	use(c, VAR_THREAD, NONE);
	use(c, VAR_ROW0, NONE);
	use(c, VAR_COL0, NONE);
}

static void read_op(struct names *c, const struct role_op *o)
{
	switch (o->what) {
	case DO_BLOCK: read_body(c, &o->u.region.body); break;
	case DO_TASK: read_task(c, o); break;
	case DO_TILES: case DO_LOOP: case DO_EACH: read_header(c, o); break;
	case DO_IF:
		names_num(c, o->u.region.when);
		read_perhaps(c, &o->u.region.body);
		read_perhaps(c, &o->u.region.other);
		break;
	case DO_AT: use(c, o->u.let.v.v[0].var, o->u.let.v.v[0].of); break;
	case DO_OPAQUE: read_opaque(c); break;
	case DO_LANE: read_lane(c); break;
	case DO_COUNT_TILES: declare(c, VAR_TILES, NONE, false); break;
	case DO_LET: case DO_SET: case DO_ADVANCE: let(c, o); break;
	case DO_FRAGMENT: names_declare_frag(c, o->u.frag.at.frag); break;
	case DO_PIN: names_pin(c, o->u.frag.at); break;
	case DO_SLOT:
		names_num(c, o->u.slot.life);
		declare(c, VAR_SLOT, o->u.slot.ring, false);
		break;
	case DO_WAIT: case DO_WAIT_LAST: case DO_ARRIVE: case DO_RELEASE: read_flag(c, o); break;
	case DO_WARP_SYNC: case DO_LANE_SYNC: case DO_FENCE: case DO_GROUPS_FENCE:
	case DO_GROUPS_COMMIT: case DO_GROUPS_WAIT: case DO_STORES_COMMIT: case DO_STORES_WAIT:
		read_sync(c, o);
		break;
	case DO_LOAD_BOXES: case DO_STORE_BOXES: read_boxes(c, o); break;
	case DO_LOAD_THREADS: case DO_STORE_THREADS: case DO_STORE_RING: read_indices(c, o); break;
	case DO_PUT: read_put(c, o); break;
	case DO_PUT_PANELS: read_panels(c, o); break;
	case DO_FILL:
		names_num(c, o->u.fill.address);
		names_val(c, o->u.fill.value);
		break;
	case DO_FETCH:
		names_num(c, o->u.fetch.inside);
		names_num(c, o->u.fetch.address);
		names_write(c, (struct frag_at){ o->u.fetch.to, 0 });
		break;
	case DO_PRODUCT: case DO_SUM_PRODUCT: names_product(c, o); break;
	case DO_INIT:
		names_val(c, o->u.frag.value);
		names_write(c, o->u.frag.at);
		break;
	case DO_MAP: read_map(c, o); break;
	case DO_PACK: case DO_KEEP: read_pack(c, o); break;
	case DO_REDUCE: case DO_SCAN: read_reduce(c, o); break;
	case DO_LINES: read_lines(c, o); break;
	case DO_STAMP:
		names_num(c, o->u.stamp.iteration);
		names_num(c, o->u.stamp.when);
		break;
	case DO_BREAK: case DO_CONTINUE: case DO_REGISTERS: case DO_LEAVE: case DO_STAMPS_BEGIN:
	case DO_STAMPS_TILE: case DO_STAMPS_END: case DO_WATCH: case DO_WATCH_ENDS: case DO_COUNT:
		break;
	}
}

static void read_body(struct names *c, const struct role_body *b)
{
	int names = c->shadowed.n, frags = c->frags.n, body = c->body, begin = c->begin;

	c->body = ++c->bodies;
	c->begin = c->now + 1;
	for (int i = 0; i < b->v.n && !c->code; i++) {
		c->op = b->v.v[i];
		c->now++;
		names_note_work(c, c->op);
		read_op(c, c->op);
	}
	leave_body(c, names, frags);
	c->body = body;
	c->begin = begin;
}

/* How many there are of a variable. */
static int count_of(const struct names *c, enum var v)
{
	static const enum var by_loop[] = { VAR_FIRST, VAR_TRIPS, VAR_BASE, VAR_I, VAR_SEQ, VAR_J,
		VAR_STEADY, VAR_PASSED, VAR_TILE_BASE };
	static const enum var by_flag[] = { VAR_ISSUED, VAR_RELEASED, VAR_SEEN, VAR_TOLD };
	const struct program *p = c->set->plan->graph->program;

	for (int i = 0; i < LEN(by_loop); i++)
		if (v == by_loop[i])
			return p->loops.n;
	for (int i = 0; i < LEN(by_flag); i++)
		if (v == by_flag[i])
			return c->r->flags.n;
	return v == VAR_LO ? p->axes.n : v == VAR_SLOT ? c->r->rings.n : v == VAR_INDEX ? RANK_MAX :
		v == VAR_BARE ? c->r->begins : 0;
}

enum err_code names_check(struct arena *a, const struct setting *s, struct err *e)
{
	struct names c = { .a = a, .set = s, .r = s->r, .e = e };

	for (int v = 0; v < VAR_COUNT; v++)
		c.first[v + 1] = c.first[v] + count_of(&c, (enum var)v) + 1;
	for (int i = 0; i < s->r->roles.n && !c.code; i++) {
		c.role = &s->r->roles.v[i];
		c.op = NULL;
		c.name = ARENA_ARRAY(a, c.first[VAR_COUNT], struct name);
		names_lane_head(&c);
		read_body(&c, &c.role->body);
	}
	return c.code;
}
