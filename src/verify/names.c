/* Reads the tree once, top down: variables, and the operations that declare, change and use them. */
#include "verify/names_state.h"

#include <stdarg.h>

#include "role/operands.h"

void names_fail(struct names *c, const char *fmt, ...)
{
	const struct graph *g = c->set->plan->graph;
	int task = c->op ? c->op->task : NONE;
	va_list ap;

	if (c->code)
		return;
	va_start(ap, fmt);
	c->code = err_set(c->e, ERR_ILLEGAL, task == NONE ? NOWHERE : g->tasks.v[task].loc, "lane '%s'%s: '%s' %s",
		c->role->name, task == NONE ? "" : arena_strf(c->a, ", '%s'", g->tasks.v[task].name),
		c->op ? role_op_info[c->op->what].name : "the end", arena_vstrf(c->a, fmt, ap));
	va_end(ap);
}

/* variables -------------------------------------------------------------------- */

static int name_of(const struct names *c, enum var v, int of)
{
	return c->first[v] + of + 1;
}

static const char *text_of(struct names *c, enum var v, int of)
{
	return var_text(c->a, v, of, &c->r->names);
}

/* Was it computed from a variable whose name means another declaration here? */
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
	if (var_info[v].given)
		return;
	if (!n->body)
		names_fail(c, "needs '%s', which is not there", text_of(c, v, of));
	else if (c->hiding && is_stale(c, n))
		names_fail(c, "uses '%s', which was computed from other values", text_of(c, v, of));
	n->used = c->now;
}

static void declare(struct names *c, enum var v, int of, bool changes)
{
	int at = name_of(c, v, of);
	struct name *n = &c->name[at];

	if (n->body == c->body)
		names_fail(c, "declares '%s', which is there already", text_of(c, v, of));
	else if (n->body && n->used >= c->begin)
		names_fail(c, "declares '%s' after what needs it", text_of(c, v, of));
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
	if (x->op == NUM_VAR && !var_info[x->var].given) {
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

/* What the body has declared ends with it; declarations that it hid are visible again. */
static void leave_body(struct names *c, int names, int frags)
{
	for (; c->shadowed.n > names; c->shadowed.n--) {
		const struct shadow *s = &c->shadowed.v[c->shadowed.n - 1];

		c->name[s->name] = s->was;
		c->hiding -= s->was.body != 0;
	}
	c->frags.n = frags;
}

/* A body that may not be executed. */
static void read_perhaps(struct names *c, const struct role_body *b)
{
	int since = c->now;

	c->depth++;
	read_body(c, b);
	c->depth--;
	names_forget(c, since);
}

/* Regions whose header declares names, which their body can see. */
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

static void visit_num(void *ctx, const struct num *x)
{
	names_num(ctx, x);
}

static void visit_value(void *ctx, const struct val *v)
{
	names_val(ctx, v);
}

static void visit_use(void *ctx, struct frag_at at)
{
	names_read(ctx, at);
}

static void visit_def(void *ctx, struct frag_at at)
{
	names_write(ctx, at);
}

static void visit_needs(void *ctx, enum var v)
{
	use(ctx, v, NONE);
}

/* Only addresses in the scratch begin at VAR_SHARED: those of slots begin at VAR_SLOT. `own`: a thread may
 * write over what it alone has read in this operation. */
static void visit_address(void *ctx, const struct num *x, bool own)
{
	struct names *c = ctx;

	c->absolute = false;
	names_num(c, x);
	c->scratch_read = own ? c->scratch_read_before : c->scratch_read;
	if (c->absolute)
		names_scratch_write(c, x);
}

static void read_operands(struct names *c, const struct role_op *o)
{
	c->scratch_read_before = c->scratch_read;
	role_visit(o, &(struct role_visitor){ .ctx = c, .num = visit_num, .address = visit_address,
		.value = visit_value, .use = visit_use, .def = visit_def, .needs = visit_needs });
}

/* What an operation does to names beyond its operands. */
static void read_own(struct names *c, const struct role_op *o)
{
	static const enum var of_lane[] = { VAR_THREAD, VAR_GROUP, VAR_ROW0, VAR_COL0 };

	switch ((int)o->what) {
	case DO_AT:
		use(c, o->u.let.v.v[0].var, o->u.let.v.v[0].of);
		break;
	case DO_LANE:
		for (int i = 0; i < LEN(of_lane); i++)
			declare(c, of_lane[i], NONE, false);
		break;
	case DO_COUNT_TILES:
		declare(c, VAR_TILES, NONE, false);
		break;
	case DO_SLOT:
		declare(c, VAR_SLOT, o->u.slot.ring, false);
		break;
	case DO_FRAGMENT:
		names_declare_frag(c, o->u.frag.at.frag);
		break;
	case DO_PIN:
		names_pin(c, o->u.frag.at);
		break;
	case DO_WAIT:
		if (o->u.flag.once)
			change(c, VAR_SEEN, o->u.flag.flag);
		break;
	case DO_RELEASE:
		change(c, VAR_RELEASED, o->u.flag.flag);
		break;
	case DO_WARP_SYNC: case DO_LANE_SYNC:
		if (o->what == DO_LANE_SYNC || c->role->warps == 1)
			names_met(c);
		break;
	case DO_GROUPS_FENCE:
		c->fenced = c->now;
		break;
	case DO_GROUPS_WAIT:
		names_groups_wait(c, o->u.count);
		break;
	case DO_STORES_WAIT:
		if (o->u.stores.first != o->u.stores.other)
			use(c, VAR_ROUND, NONE);
		break;
	case DO_PRODUCT: case DO_SUM_PRODUCT:
		names_product(c, o);
		break;
	case DO_REDUCE:
		if (o->u.reduce.along_rows && c->role->warps > 1)
			names_scratch_all(c);
		break;
	default:
		break;
	}
}

static void read_region(struct names *c, const struct role_op *o)
{
	if (o->what == DO_BLOCK) {
		read_body(c, &o->u.region.body);
	} else if (o->what == DO_TASK) {
		read_task(c, o);
	} else if (o->what == DO_IF) {
		names_num(c, o->u.region.when);
		read_perhaps(c, &o->u.region.body);
		read_perhaps(c, &o->u.region.other);
	} else {
		read_header(c, o);
	}
}

static void read_op(struct names *c, const struct role_op *o)
{
	if (role_is_region(o->what)) {
		read_region(c, o);
	} else if (o->what == DO_LET || o->what == DO_SET || o->what == DO_ADVANCE) {
		let(c, o);
	} else {
		read_operands(c, o);
		read_own(c, o);
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

enum err_code names_check(struct arena *a, const struct setting *s, struct err *e)
{
	struct names c = { .a = a, .set = s, .r = s->r, .e = e };

	for (int v = 0; v < VAR_COUNT; v++)
		c.first[v + 1] = c.first[v] + setting_vars(s, var_info[v].index) + 1;
	for (int i = 0; i < s->r->roles.n && !c.code; i++) {
		c.role = &s->r->roles.v[i];
		c.op = NULL;
		c.name = ARENA_ARRAY(a, c.first[VAR_COUNT], struct name);
		names_lane_head(&c);
		read_body(&c, &c.role->body);
	}
	return c.code;
}
