/* Reads the tree once, top down: variables, the operations that declare, change and use them, what an sTask must do,
 * and how a lane must begin. */
#include "verify/names.h"

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
		c->op ? role_op_info[c->op->what].name : "the beginning", arena_vstrf(c->a, fmt, ap));
	va_end(ap);
}

/* variables -------------------------------------------------------------------- */

static int name_of(const struct names *c, enum var v, int of)
{
	/* `of` may be NONE, which is -1: a variable has one name more than it has indices. */
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

static void use_name(struct names *c, enum var v, int of)
{
	struct name *n = &c->name[name_of(c, v, of)];

	c->in_scratch |= v == VAR_SHARED;	/* addresses in slots begin at VAR_SLOT */
	if (var_info[v].given)
		return;
	if (!n->body)
		names_fail(c, "needs '%s', which is not there", text_of(c, v, of));
	else if (c->hiding && is_stale(c, n))
		names_fail(c, "uses '%s', which was computed from other values", text_of(c, v, of));
	n->used = c->now;
}

static void declare_name(struct names *c, enum var v, int of, bool changes)
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

static void change_name(struct names *c, enum var v, int of)
{
	use_name(c, v, of);
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

static void read_num(struct names *c, const struct num *x)
{
	if (!x || x->op == NUM_CONST)
		return;
	if (x->op == NUM_VAR) {
		use_name(c, x->var, x->of);
		return;
	}
	read_num(c, x->a);
	read_num(c, x->b);
	read_num(c, x->c);
}

static void read_val(struct names *c, const struct val *v)
{
	if (!v)
		return;
	read_num(c, v->less);
	c->in_scratch = false;
	read_num(c, v->num);
	if (v->kind == VAL_SHARED && c->in_scratch)
		names_scratch_read(c, v->num);
	if (v->kind == VAL_FRAG || v->kind == VAL_FLIPPED)
		names_read(c, v->frag);
	if (v->kind == VAL_FLIPPED && c->op->what != DO_MAP)
		names_fail(c, "exchanges elements where not all threads of a warp may be");
	for (int i = 0; i < LEN(v->arg); i++) {
		if (v->arg[i] && v->arg[i]->kind == VAL_FLIPPED)
			names_fail(c, "exchanges elements within an expression, which may be computed by some threads alone");
		read_val(c, v->arg[i]);
	}
}

static void read_let(struct names *c, const struct role_op *o)
{
	for (int i = 0; i < o->u.let.v.n; i++) {
		const struct role_let *l = &o->u.let.v.v[i];
		int deps = c->deps.n;

		read_num(c, l->to);
		if (o->what != DO_LET) {
			change_name(c, l->var, l->of);
			continue;
		}
		note_deps(c, l->to);
		declare_name(c, l->var, l->of, o->u.let.changes);
		c->name[name_of(c, l->var, l->of)].deps = deps;
		c->name[name_of(c, l->var, l->of)].ndeps = c->deps.n - deps;
	}
}

/* sTasks ----------------------------------------------------------------------- */

static void begin_task(struct names *c)
{
	c->task_began = c->now;
	c->product = c->fenced = 0;
	c->sum = NULL;
	c->multiplied = 0;
	c->stores = false;
	c->scratch.n = 0;
	c->scratch_read = true;		/* perhaps by the sTask before */
	c->wrote.n = 0;
	c->depth = 0;
}

/* Note what the operation stores and writes. An sTask may read what the graph says, or what it has written itself. What
 * may not be executed proves no write, and what it reads may be written in the same body: both are left out. */
static void note_touches(struct names *c, const struct role_op *o)
{
	const struct graph *g = c->set->plan->graph;

	if (o->touches.n && !role_may_touch(o->what))
		names_fail(c, "touches a buffer, which it cannot");
	if (c->depth && !c->may_store)
		return;
	if (c->depth) {
		c->stores |= o->what == DO_STORE_BOXES || o->what == DO_STORE_THREADS;
		return;
	}
	c->stores |= o->what == DO_STORE_BOXES || o->what == DO_STORE_THREADS || o->what == DO_STORE_RING;
	for (int i = 0; i < o->touches.n; i++) {
		const struct touch *t = &o->touches.v[i];

		if (t->how == TOUCH_READ && t->what == TOUCH_FRAG && o->task != NONE &&
		    !stask_reads(&g->tasks.v[o->task], t->of) && !ints_hold(c->wrote.v, c->wrote.n, t->of))
			names_fail(c, "reads '%s', which nothing has written", g->buffers.v[t->of].name);
		if (t->how == TOUCH_WRITE && !t->initial && t->what != TOUCH_STAGING)
			VEC_PUSH(c->a, &c->wrote, t->of);
	}
}

static void end_task(struct names *c, const struct role_op *task)
{
	const struct graph *g = c->set->plan->graph;
	const struct stask *s = &g->tasks.v[task->task];

	c->op = task;
	if (s->kind == TASK_STORE && !c->stores)
		names_fail(c, "does not store");
	if (s->kind == TASK_MMA && !c->product)
		names_fail(c, "does not multiply");
	if (c->sum && c->multiplied < frag_part_cols(c->sum))
		names_fail(c, "leaves out columns of '%s'", c->sum->name);
	for (int i = 0; i < s->writes.n; i++)
		if (!ints_hold(c->wrote.v, c->wrote.n, s->writes.v[i]))
			names_fail(c, "does not write '%s'", g->buffers.v[s->writes.v[i]].name);
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

static bool is_write(const struct touch *t)
{
	return t->how == TOUCH_WRITE && t->what != TOUCH_STAGING && !t->initial;
}

static bool writes_as(const struct role_body *b, const struct touch *t)
{
	for (int i = 0; i < b->v.n; i++)
		for (int k = 0; k < b->v.v[i]->touches.n; k++) {
			const struct touch *u = &b->v.v[i]->touches.v[k];

			if (is_write(u) && u->what == t->what && u->of == t->of)
				return true;
		}
	return false;
}

/* One of the bodies is executed: what both write is written. */
static void note_writes_of_both(struct names *c, const struct role_body *one, const struct role_body *other)
{
	if (c->depth)
		return;
	for (int i = 0; i < one->v.n; i++)
		for (int k = 0; k < one->v.v[i]->touches.n; k++) {
			const struct touch *t = &one->v.v[i]->touches.v[k];

			if (is_write(t) && writes_as(other, t))
				VEC_PUSH(c->a, &c->wrote, t->of);
		}
}

/* Regions whose header declares names, which their body can see. */
static void read_header(struct names *c, const struct role_op *o)
{
	int names = c->shadowed.n, frags = c->frags.n, body = c->body, begin = c->begin;

	c->body = ++c->bodies;
	c->begin = c->now;		/* the header belongs to it: the counter must not hide what the header uses */
	read_num(c, o->u.region.from);	/* before the counter is declared, which it cannot use */
	if (o->what == DO_TILES) {
		declare_name(c, VAR_AT, NONE, false);
		declare_name(c, VAR_T, NONE, false);
		declare_name(c, VAR_TILE, NONE, false);
	} else if (o->what == DO_EACH || o->u.region.from) {
		declare_name(c, o->u.region.var, o->u.region.of, true);
	} else {
		change_name(c, o->u.region.var, o->u.region.of);
	}
	read_num(c, o->u.region.end);
	read_num(c, o->u.region.run_while);
	read_num(c, o->u.region.run_until);
	read_num(c, o->u.region.unmasked);
	read_num(c, o->u.region.interior);
	if (o->what == DO_EACH)
		read_body(c, &o->u.region.body);
	else
		read_perhaps(c, &o->u.region.body);
	leave_body(c, names, frags);
	c->body = body;
	c->begin = begin;
}

/* operations ------------------------------------------------------------------- */

static void read_operand(void *ctx, const struct operand *x)
{
	struct names *c = ctx;

	switch ((int)x->kind) {
	case OPERAND_NUM: read_num(c, x->num); break;
	case OPERAND_VALUE: read_val(c, x->value); break;
	case OPERAND_USE: names_read(c, x->frag); break;
	case OPERAND_DEF: names_write(c, x->frag); break;
	case OPERAND_NEEDS: use_name(c, x->var, NONE); break;
	case OPERAND_ADDRESS: case OPERAND_OWN_ADDRESS:
		/* At its own address a thread may overwrite what it has read there in this operation, because no other
		 * thread reads it: so the operation's reads do not count. */
		c->in_scratch = false;
		read_num(c, x->num);
		if (x->kind == OPERAND_OWN_ADDRESS)
			c->scratch_read = c->scratch_read_before;
		if (c->in_scratch)
			names_scratch_write(c, x->num);
		break;
	}
}

/* What an operation does to names beyond its operands. */
static void read_own(struct names *c, const struct role_op *o)
{
	static const enum var of_lane[] = { VAR_THREAD, VAR_GROUP, VAR_ROW0, VAR_COL0 };

	switch ((int)o->what) {
	case DO_LANE:
		for (int i = 0; i < LEN(of_lane); i++)
			declare_name(c, of_lane[i], NONE, false);
		break;
	case DO_COUNT_TILES: declare_name(c, VAR_TILES, NONE, false); break;
	case DO_SLOT: declare_name(c, VAR_SLOT, o->u.slot.ring, false); break;
	case DO_FRAGMENT: names_declare_frag(c, o->u.frag.at.frag); break;
	case DO_PIN: names_pin(c, o->u.frag.at); break;
	case DO_RELEASE: change_name(c, VAR_RELEASED, o->u.flag.flag); break;
	case DO_GROUPS_FENCE: c->fenced = c->now; break;
	case DO_GROUPS_WAIT: names_groups_wait(c, o->u.count); break;
	case DO_PRODUCT: case DO_SUM_PRODUCT: names_product(c, o); break;
	case DO_PACK: case DO_KEEP: names_pack(c, o); break;
	case DO_AT: use_name(c, o->u.let.v.v[0].var, o->u.let.v.v[0].of); break;
	case DO_WAIT:
		if (o->u.flag.once)
			change_name(c, VAR_SEEN, o->u.flag.flag);
		break;
	case DO_WARP_SYNC: case DO_LANE_SYNC: case DO_BLOCK_SYNC:
		if (o->what != DO_WARP_SYNC || c->role->warps == 1)
			names_met(c);
		break;
	case DO_STORES_WAIT:
		if (o->u.stores.first != o->u.stores.other)	/* else it is the same number in every round */
			use_name(c, VAR_ROUND, NONE);
		break;
	case DO_REDUCE: case DO_SCAN:
		if (role_joins_warps(o, c->role->warps))
			names_scratch_all(c);
		break;
	default:
		break;
	}
}

static void read_region(struct names *c, const struct role_op *o)
{
	int depth = c->depth;

	if (o->what == DO_BLOCK) {
		read_body(c, &o->u.region.body);
	} else if (o->what == DO_TASK) {
		/* The kernel does not compute u.region.iteration and seq: nothing needs what they are made of. */
		begin_task(c);
		read_body(c, &o->u.region.body);
		end_task(c, o);
		c->depth = depth;
	} else if (o->what == DO_IF) {
		read_num(c, o->u.region.when);
		c->may_store = o->u.region.section == SECTION_REACHED && !c->depth;
		read_perhaps(c, &o->u.region.body);
		read_perhaps(c, &o->u.region.other);
		note_writes_of_both(c, &o->u.region.body, &o->u.region.other);
		c->may_store = false;
	} else {
		read_header(c, o);
	}
}

/* A sparse product reads registers that are no fragment's, which compilers give to what comes next. */
static void check_indices(struct names *c, const struct role_op *o)
{
	bool waits = o->what == DO_GROUPS_WAIT && !o->u.count;

	if (c->indices && !waits && o->what != DO_PRODUCT && o->what != DO_GROUPS_COMMIT)
		names_fail(c, "comes while a sparse product may still read its indices from registers");
	c->indices = (c->indices && !waits) || (o->what == DO_PRODUCT && o->u.product.form.sparse);
}

static void read_op(struct names *c, const struct role_op *o)
{
	check_indices(c, o);
	if (role_is_region(o->what)) {
		read_region(c, o);
	} else if (o->what == DO_LET || o->what == DO_SET || o->what == DO_ADVANCE) {
		read_let(c, o);
	} else {
		c->scratch_read_before = c->scratch_read;
		role_visit(o, read_operand, c);
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
		note_touches(c, c->op);
		read_op(c, c->op);
	}
	leave_body(c, names, frags);
	c->body = body;
	c->begin = begin;
}

/* How a lane must begin: all warps of a warpgroup change their registers together, before some of them end. */
static void check_head(struct names *c)
{
	const struct role_body *b = &c->role->body;
	const struct target *t = c->r->target;
	/* A kernel of one warpgroup has no other to exchange registers with. */
	bool asks = t->registers.step && c->r->threads > t->group * t->warp;
	bool leaves = c->role->warps % t->group;
	int asked = 0, left = 0;

	for (int n = 0; n < b->v.n; n++) {
		enum role_do what = b->v.v[n]->what;

		if (what != DO_REGISTERS && what != DO_WATCH && what != DO_WATCH_ENDS && what != DO_STAMPS_BEGIN &&
		    what != DO_LANE && what != DO_LEAVE)
			break;
		c->op = b->v.v[n];
		if (what == DO_REGISTERS && left)
			names_fail(c, "comes when some have left");
		asked += what == DO_REGISTERS;
		left += what == DO_LEAVE;
	}
	c->op = NULL;
	if (asked != asks)
		names_fail(c, "has registers set %d times, not %d", asked, asks);
	if (leaves && !left)
		names_fail(c, "is reached by warps that are not the lane's");
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
		check_head(&c);
		read_body(&c, &c.role->body);
	}
	return c.code;
}
