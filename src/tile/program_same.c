/* Is a program the same at all sizes that it leaves to the launch? Its function can read the size of an axis, and
 * so make constants and other axes of it. It runs again for other sizes, and what it makes is compared here. */
#include "tile/program_build.h"

#include <stdio.h>
#include <string.h>

/* Two programs that are walked side by side. */
struct pair {
	const struct program *p, *q;
	int *like;			/* by node of p: the one of q that is like it; NONE: not met yet */
	/* the first node of p that is not like the one of q that stands where it does; NONE */
	int differs;
	struct err *e;
};

static bool same_ints(const int *x, const int *y, int n)
{
	return n == 0 || memcmp(x, y, (size_t)n * sizeof(*x)) == 0;
}

static bool same_node(struct pair *c, int x, int y);

/* Of a node that is in no task, a constant or a part of a length, its operation is compared wherever it is used. */
static bool same_value(struct pair *c, int x, int y)
{
	if (x == NONE || y == NONE)
		return x == y;
	return c->p->nodes.v[x].task == NONE ? same_node(c, x, y) : c->like[x] == y;
}

static bool same_index(struct pair *c, const struct index_expr *x, const struct index_expr *y)
{
	bool same = x->k == y->k && x->n == y->n && !x->value == !y->value;

	for (int i = 0; i < x->n && same; i++)
		same = x->term[i].axis == y->term[i].axis && x->term[i].coef == y->term[i].coef &&
			x->term[i].div == y->term[i].div && x->term[i].mod == y->term[i].mod;
	return same && (!x->value || same_value(c, index_value(x), index_value(y)));
}

/* Recursion is as deep as a length (LENGTH_DEPTH). */
static bool same_node(struct pair *c, int a, int b)
{
	const struct node *x = &c->p->nodes.v[a], *y = &c->q->nodes.v[b];
	bool same = x->op == y->op && x->type == y->type && x->naxes == y->naxes && x->ref == y->ref &&
		x->adds == y->adds &&
		(x->task == NONE) == (y->task == NONE) && memcmp(&x->k, &y->k, sizeof(x->k)) == 0 &&
		same_ints(x->axis, y->axis, x->naxes);

	for (int i = 0; i < LEN(x->arg) && same; i++)
		same = same_value(c, x->arg[i], y->arg[i]);
	for (int d = 0; same && d < node_index_count(c->p, x); d++)
		same = same_index(c, &x->index[d], &y->index[d]);
	c->like[a] = b;
	c->differs = same || c->differs != NONE ? c->differs : a;
	return same;
}

static bool same_loop(struct pair *c, const struct loop *x, const struct loop *y)
{
	bool same = x->naxes == y->naxes && x->has_from == y->has_from && x->has_upto == y->has_upto &&
		x->batch == y->batch && x->has_length == y->has_length && same_ints(x->axis, y->axis, x->naxes);

	return same && (!x->has_from || same_index(c, &x->from, &y->from)) &&
		(!x->has_upto || same_index(c, &x->upto, &y->upto)) &&
		(!x->has_length || same_index(c, &x->length, &y->length));
}

static bool same_axis(const struct axis *x, const struct axis *y)
{
	return !strcmp(x->name, y->name) && x->packs == y->packs && x->per == y->per && x->single == y->single &&
		(x->multiple || x->size == y->size);
}

static bool same_tensor(const struct tensor *x, const struct tensor *y)
{
	return !strcmp(x->name, y->name) && x->role == y->role && x->type == y->type && x->rank == y->rank &&
		x->element == y->element && x->unpacked == y->unpacked && x->by_address == y->by_address &&
		x->sorted == y->sorted && same_ints(x->dim, y->dim, x->rank);
}

static bool same_carry(const struct carry *x, const struct carry *y)
{
	return !strcmp(x->name, y->name) && x->type == y->type && x->naxes == y->naxes &&
		memcmp(&x->init, &y->init, sizeof(x->init)) == 0 && x->loop == y->loop && x->phase == y->phase &&
		same_ints(x->axis, y->axis, x->naxes);
}

/* "m=8, n=64": the sizes in q of axes whose sizes are known at launch in p. */
static struct phrase launch_sizes(const struct program *p, const struct program *q)
{
	struct phrase x = { "" };
	size_t len = 0;

	for (int i = 0; i < p->axes.n && i < q->axes.n && len < sizeof(x.s); i++)
		if (p->axes.v[i].multiple)
			len += (size_t)snprintf(x.s + len, sizeof(x.s) - len, "%s%s=%lld", len ? ", " : "",
				p->axes.v[i].name,
				(long long)q->axes.v[i].size);
	return x;
}

static enum err_code differs(const struct program *p, const struct program *q, const char *what, struct srcloc loc,
	struct err *e)
{
	return err_set(e, ERR_INPUT, loc,
		"%s: it is not the same for %s as for %s, but one kernel serves all sizes; compute it from "
		"an input or from axis:index(), give axes that change together mr.any{like=...}, or bind a size", what,
		launch_sizes(p, q).s, launch_sizes(p, p).s);
}

/* A number that is x in p and y in q. */
static enum err_code number_differs(const struct pair *c, const char *what, double x, double y, struct srcloc loc)
{
	return err_set(c->e, ERR_INPUT, loc,
		"%s is %g for %s and %g for %s, but one kernel serves all sizes; compute it from an input "
		"or from axis:index(), give axes that change together mr.any{like=...}, or bind a size", what, y,
		launch_sizes(c->p, c->q).s, x, launch_sizes(c->p, c->p).s);
}

static enum err_code carry_differs(const struct pair *c, const struct carry *x, const struct carry *y)
{
	char what[120];

	if (x->init != y->init) {
		snprintf(what, sizeof(what), "the first value of carry '%.63s'", x->name);
		return number_differs(c, what, x->init, y->init, x->loc);
	}
	snprintf(what, sizeof(what), "carry '%.63s'", x->name);
	return differs(c->p, c->q, what, x->loc, c->e);
}

static enum err_code node_differs(struct pair *c)
{
	const struct node *x = &c->p->nodes.v[c->differs], *y = &c->q->nodes.v[c->like[c->differs]];
	char what[160];

	if (x->op == OP_CONST && y->op == OP_CONST)
		return number_differs(c, "this constant", x->k, y->k, x->loc);
	snprintf(what, sizeof(what), "%.150s", value_phrase(c->p, c->differs).s);
	return differs(c->p, c->q, what, x->loc, c->e);
}

static enum err_code same_task(struct pair *c, const struct task *x, const struct task *y)
{
	if (strcmp(x->name, y->name) || x->nodes.n != y->nodes.n)
		return differs(c->p, c->q, x->name, x->loc, c->e);
	for (int i = 0; i < x->nodes.n; i++)
		if (!same_node(c, x->nodes.v[i], y->nodes.v[i]))
			return node_differs(c);
	return OK;
}

/* The body of a loop in each, or of a phase. Recursion is as deep as loops are in one another. */
static enum err_code same_body(struct pair *c, int phase, int loop, int other)
{
	struct items x = program_body(c->p, phase, loop), y = program_body(c->q, phase, other);

	if (x.n != y.n)
		return differs(c->p, c->q, loop == NONE ? "the program" : loop_phrase(c->p, loop).s,
			loop == NONE ? c->p->phases.v[phase].loc : c->p->loops.v[loop].loc, c->e);
	for (int i = 0; i < x.n; i++) {
		int id = x.v[i].id, like = y.v[i].id;

		if (!x.v[i].is_loop && !y.v[i].is_loop) {
			TRY(same_task(c, &c->p->tasks.v[id], &c->q->tasks.v[like]));
			continue;
		}
		if (x.v[i].is_loop != y.v[i].is_loop || !same_loop(c, &c->p->loops.v[id], &c->q->loops.v[like]))
			return differs(c->p, c->q, x.v[i].is_loop ? loop_phrase(c->p, id).s : c->p->tasks.v[id].name,
				x.v[i].is_loop ? c->p->loops.v[id].loc : c->p->tasks.v[id].loc, c->e);
		TRY(same_body(c, phase, id, like));
	}
	return OK;
}

enum err_code program_check_same(struct arena *a, const struct program *p, const struct program *q, struct err *e)
{
	struct pair c = { .p = p, .q = q, .differs = NONE, .e = e };
	char what[160];

	for (int i = 0; i < p->axes.n && i < q->axes.n; i++)
		if (!same_axis(&p->axes.v[i], &q->axes.v[i])) {
			snprintf(what, sizeof(what), "%saxis '%.63s'", p->axes.v[i].single != q->axes.v[i].single ?
				"p:batch of " : "", p->axes.v[i].name);
			return differs(p, q, what, p->axes.v[i].loc, e);
		}
	for (int i = 0; i < p->tensors.n && i < q->tensors.n; i++)
		if (!same_tensor(&p->tensors.v[i], &q->tensors.v[i])) {
			snprintf(what, sizeof(what), "tensor '%.63s'", p->tensors.v[i].name);
			return differs(p, q, what, p->tensors.v[i].loc, e);
		}
	if (p->axes.n != q->axes.n || p->tensors.n != q->tensors.n || p->carries.n != q->carries.n ||
		p->phases.n != q->phases.n)
		return differs(p, q, "the program", p->phases.n ? p->phases.v[0].loc : NOWHERE, e);
	for (int i = 0; i < p->carries.n; i++)
		if (!same_carry(&p->carries.v[i], &q->carries.v[i]))
			return carry_differs(&c, &p->carries.v[i], &q->carries.v[i]);
	c.like = ARENA_ARRAY(a, p->nodes.n, int);
	for (int i = 0; i < p->nodes.n; i++)
		c.like[i] = NONE;
	for (int i = 0; i < p->phases.n; i++)
		TRY(same_body(&c, i, NONE, NONE));
	return OK;
}

enum err_code program_check_sizes(const struct program *p, const int64_t *sizes, const char *what, struct err *e)
{
	for (int i = 0; i < p->axes.n; i++) {
		const struct axis *x = &p->axes.v[i];

		if (!x->multiple && sizes[i] != x->size)
			return err_set(e, ERR_INPUT, NOWHERE,
				"%s: %s is %lld, and the program is for %lld; bind the program for another "
				"size, or with %s=mr.any{max=...}", what, x->name, (long long)sizes[i],
					(long long)x->size, x->name);
		if (x->multiple && sizes[i] < 1)
			return err_set(e, ERR_INPUT, NOWHERE,
				"%s: %s is %lld, and the program is for 1 to %lld; give at least %lld",
				what, x->name, (long long)sizes[i], (long long)x->size, (long long)x->multiple);
		if (x->multiple && sizes[i] > x->size)
			return err_set(e, ERR_INPUT, NOWHERE,
				"%s: %s is %lld, and the program is for 1 to %lld; bind the program with a "
				"larger max", what, x->name, (long long)sizes[i], (long long)x->size);
		if (x->multiple && sizes[i] % x->multiple)
			return err_set(e, ERR_INPUT, NOWHERE,
				"%s: %s is %lld, and the program is for multiples of %lld; fill it up to "
				"%lld, or bind the program with another multiple", what, x->name, (long long)sizes[i],
				(long long)x->multiple, (long long)round_up(sizes[i], x->multiple));
		if (x->like != NONE && sizes[i] != sizes[x->like])
			return err_set(e, ERR_INPUT, NOWHERE,
				"%s: %s is %lld and %s is %lld, which are one size (like=); bind "
				"the program with a mr.any{max=...} for each", what, x->name, (long long)sizes[i],
					p->axes.v[x->like].name,
				(long long)sizes[x->like]);
	}
	return OK;
}
