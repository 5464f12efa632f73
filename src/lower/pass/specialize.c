/* Specialising: a steady loop in which unmask found iterations that need fewer conditions gets copies for these,
 * without the conditions. Before the loop as it is, which does what is left, stand, in this order:
 *
 *  - if its first iterations may need conditions (sliding windows), the loop as it is, until an iteration needs none;
 *  - the loop without all conditions that unmask considered, while they hold for all elements;
 *  - the loop without those for ends of axes, while these hold.
 *
 * An sTask of the prologue that computes behind a wait for all products, as a softmax of the first block of keys, has what it
 * computes twice: without the conditions, and, if they do not hold for all elements, with them. Not where an axis may end.
 *
 * Where a copy ends with products in flight, the lane waits for them: where control flow joins, compilers do not know
 * which registers are in use, and would serialize the products. */
#include "lower/pass/pass.h"
#include "role/operands.h"

struct specializing {
	struct arena *a;
	bool unmasked;			/* conditions of the program hold, not only those of ends */
};

static const struct val *specialize_value(const struct specializing *s, const struct val *v)
{
	struct val *n;

	if (s->unmasked && v->unmasked)
		return specialize_value(s, v->arg[1]);
	n = arena_copy(s->a, v, 1, sizeof(*v));
	if (v->num)
		n->num = num_assume_interior(s->a, v->num);
	if (v->less)
		n->less = num_assume_interior(s->a, v->less);
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		n->arg[i] = specialize_value(s, v->arg[i]);
	return n;
}

static void specialize_operand(void *ctx, enum operand_kind kind, void *field)
{
	const struct specializing *s = ctx;
	const struct num **x = field;
	const struct val **v = field;

	if (operand_is_number(kind) && *x)
		*x = num_assume_interior(s->a, *x);
	else if (kind == OPERAND_VALUE && *v)
		*v = specialize_value(s, *v);
}

static void specialize_body(struct specializing *s, const struct role_body *from, struct role_body *to)
{
	*to = (struct role_body){ 0 };
	for (int i = 0; i < from->v.n; i++) {
		const struct role_op *o = from->v.v[i];
		struct role_op *n = role_copy_op(s->a, o);

		if (s->unmasked && o->what == DO_MAP)
			n->u.map.some = NULL;
		role_each_field(n, specialize_operand, s);
		VEC_PUSH(s->a, &to->v, n);
		if (!role_is_region(o->what))
			continue;
		specialize_body(s, &o->u.region.body, &n->u.region.body);
		specialize_body(s, &o->u.region.other, &n->u.region.other);
	}
}

struct index_search {
	struct arena *a;
	const struct loop *loop;
	VEC(int) nodes;			/* computed with an index, of the map at hand */
	bool found;
};

static bool is_of_iteration(const struct index_search *s, const struct num *x)
{
	bool is = false;

	for (int i = 0; i < s->loop->naxes; i++)
		is |= num_uses_of(x, VAR_LO, s->loop->axis[i]);
	return is;
}

/* Is one of the numbers that it computes with, not only compares, made of where the tile of the iteration begins? */
static bool computes_with_index(const struct index_search *s, const struct val *v)
{
	bool does = v && ((v->kind == VAL_NUM && is_of_iteration(s, v->num)) ||
		(v->kind == VAL_NODE && ints_hold(s->nodes.v, s->nodes.n, v->node)));

	for (int i = 0; v && v->type != DT_BOOL && i < LEN(v->arg) && !does; i++)
		does = computes_with_index(s, v->arg[i]);
	return does;
}

static void find_index(void *ctx, const struct operand *x)
{
	struct index_search *s = ctx;

	s->found |= x->kind == OPERAND_VALUE && computes_with_index(s, x->value);
}

/* Numbers that later steps only compare do not count. */
static void find_index_in_map(struct index_search *s, const struct role_op *o)
{
	s->nodes.n = 0;
	for (int i = 0; i < o->u.map.steps.n; i++) {
		const struct role_step *x = &o->u.map.steps.v[i];

		if (!computes_with_index(s, x->value))
			continue;
		s->found |= x->to != NULL;
		VEC_PUSH(s->a, &s->nodes, x->node);
	}
	s->nodes.n = 0;
}

static void find_index_in_body(struct index_search *s, const struct role_body *b)
{
	for (int i = 0; i < b->v.n && !s->found; i++) {
		const struct role_op *o = b->v.v[i];

		if (role_is_region(o->what)) {
			find_index_in_body(s, &o->u.region.body);
			find_index_in_body(s, &o->u.region.other);
		} else if (o->what == DO_MAP) {
			find_index_in_map(s, o);
		} else {
			role_visit(o, find_index, s);
		}
	}
}

static bool computes_with_own_index(struct lowering *c, const struct role_op *loop)
{
	struct index_search s = { .a = c->a, .loop = &c->p->loops.v[loop->u.region.of] };

	find_index_in_body(&s, &loop->u.region.body);
	return s.found;
}

/* A copy of the loop that ends sooner. From the condition with which it ends nvcc knows the most iterations there can
 * be. Where the numbers of an iteration are constants once the loop is unrolled, such as a distance of a row from a
 * column, it then unrolls the loop completely, asked or not, and compiles for minutes. It unrolls other loops so, too,
 * and if a product is under way when an iteration ends, ptxas lacks registers for the products of all iterations. In
 * both cases the condition is hidden from nvcc. (What keeps nvcc from unrolling other loops is in
 * print_region.c, which changes no instructions.) */
static struct role_op *add_copy(struct lowering *c, const struct role_op *loop, const char *note)
{
	struct role_op *o = role_copy_op(c->a, loop);

	o->u.region.hidden = ends_in_flight(c, loop->u.region.of) || computes_with_own_index(c, loop);
	o->u.region.unmasked = o->u.region.interior = NULL;
	o->u.region.note = note;
	append_op(c, o);
	if (last_product(c, loop->u.region.of))
		add_groups_wait_op(c, 0, "the compiler sees paths meet");
	return o;
}

static void specialize_loop(struct lowering *c, struct role_op *loop)
{
	const struct num *const holds[] = { loop->u.region.unmasked, loop->u.region.interior };
	static const char *const notes[] = { "unmasked", "interior" };

	if (holds[0] && c->p->loops.v[loop->u.region.of].has_from)
		add_copy(c, loop, NULL)->u.region.run_until = holds[0];
	for (int i = 0; i < LEN(holds); i++) {
		struct specializing s = { .a = c->a, .unmasked = i == 0 };
		struct role_op *o;

		if (!holds[i])
			continue;
		o = add_copy(c, loop, notes[i]);
		o->u.region.run_while = holds[i];
		specialize_body(&s, &loop->u.region.body, &o->u.region.body);
	}
	loop->u.region.unmasked = loop->u.region.interior = NULL;
}

/* Does the operation only compute in registers? */
static bool computes(const struct role_op *o)
{
	return o->what == DO_MAP || o->what == DO_PACK || o->what == DO_REDUCE || o->what == DO_KEEP || o->what == DO_FRAGMENT;
}

/* From which operation on the sTask only computes, behind a wait for all products of the lane; NONE. */
static int computes_from(const struct role_body *b)
{
	bool waits = false;
	int from = b->v.n;

	while (from > 0 && computes(b->v.v[from - 1]))
		from--;
	for (int i = 0; i < from; i++)
		waits = b->v.v[i]->what == DO_PRODUCT ? false :
			waits || (b->v.v[i]->what == DO_GROUPS_WAIT && !b->v.v[i]->u.count);
	return waits && from < b->v.n ? from : NONE;
}

/* Is there a condition for the end of an axis? */
static bool meets_end(const struct point *p)
{
	for (int i = 0; i < p->hints.n; i++)
		if (p->hints.v[i].interior)
			return true;
	return false;
}

/* The sTask stands in one iteration alone, of a loop that can be unmasked. Where an axis may end, too, ptxas made such
 * kernels slower: attention with 176 keys a tile by 2.8 %, with 112 by 3.4 %. Without such ends it is 1 % faster. */
static void specialize_task(struct lowering *c, struct role_op *task)
{
	struct role_body *body = &task->u.region.body, plain = { 0 };
	struct specializing s = { .a = c->a, .unmasked = true };
	int from = computes_from(body);
	struct role_op *o;

	if (from == NONE || meets_end(task->point))
		return;
	for (int i = from; i < body->v.n; i++)
		VEC_PUSH(c->a, &plain.v, body->v.v[i]);
	o = role_copy_op(c->a, task);
	o->what = DO_IF;
	o->u = (__typeof__(o->u)){ .region = { .when = task->point->hints.v[0].holds, .note = "unmasked" } };
	for (int i = 1; i < task->point->hints.n; i++)
		o->u.region.when = add_conjunct(c, o->u.region.when, task->point->hints.v[i].holds);
	specialize_body(&s, &plain, &o->u.region.body);
	o->u.region.other = plain;
	body->v.n = from;
	VEC_PUSH(c->a, &body->v, o);
}

static enum err_code specialize_op(struct lowering *c, struct role_op *o, struct err *e)
{
	if (is_section(o, SECTION_STEADY))
		specialize_loop(c, o);
	if (o->what == DO_TASK && o->point && o->point->kind == ITERATION_KNOWN && o->point->hints.n)
		specialize_task(c, o);
	append_op(c, o);
	return rewrite_inside(c, o, specialize_op, e);
}

enum err_code pass_specialize(struct lowering *c, struct err *e)
{
	return rewrite_body(c, &c->role->body, specialize_op, e);
}
