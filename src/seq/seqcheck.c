/* Is a plan of a sequence legal? */
#include "seq/seqplan.h"

#include <string.h>

#include "plan/check.h"
#include "target/target.h"

/* ORDER seq_problem_code */
static const char *const names[] = { "no_plan", "kernel", "order", "wait", "arena", "bounds", "early", "ready" };

const char *seq_problem_name(enum seq_problem_code c)
{
	return names[c];
}

struct checker {
	const struct seqplan *p;
	const struct sequence *s;
	struct arena *a;
	const bool *before;		/* by seqplan_relation */
	int *position;			/* by call: its number in the order of launches */
	struct seq_problems *out;
};

static const char *call_name(const struct checker *c, int call)
{
	return c->s->calls.v[call].name;
}

static bool comes_before(const struct checker *c, int i, int j)
{
	return c->before[i * c->s->calls.n + j];
}

static struct seq_problem *add(struct checker *c, enum seq_problem_code code, int call, int other)
{
	struct seq_problem *x = VEC_ADD(c->a, &c->out->v);

	*x = (struct seq_problem){ .code = code, .call = call, .other = other, .tensor = NONE, .other_tensor = NONE,
		.loc = c->p->launches[call].loc };
	if (other != NONE)
		x->other_loc = c->p->launches[other].loc;
	return x;
}

static enum err_code check_kernel(struct checker *c, int call, const struct stop *stop, struct err *e)
{
	const struct plan *plan = c->p->launches[call].plan;
	struct problems problems = { 0 };
	struct seq_problem *x;

	if (!plan) {
		x = add(c, SEQ_NO_PLAN, call, NONE);
		x->message = arena_strf(c->a, "call '%s' has no plan", call_name(c, call));
		x->hint = arena_strf(c->a, "sp:use(\"%s\", plan), with a plan of sp.sequence:program(\"%s\")", call_name(c, call),
			call_name(c, call));
		return OK;
	}
	TRY(plan_check(plan, c->a, stop, &problems, NULL, e));
	if (!problems.v.n)
		return OK;
	x = add(c, SEQ_KERNEL, call, NONE);
	x->message = arena_strf(c->a, "the plan of call '%s' is not legal: %s: %s", call_name(c, call),
		problem_name(problems.v.v[0].code), problems.v.v[0].message);
	x->hint = problems.v.v[0].hint;
	x->loc = problems.v.v[0].loc;
	return OK;
}

/* "reads", "writes" */
static const char *verb(bool writes)
{
	return writes ? "writes" : "reads";
}

static void check_edge(struct checker *c, const struct seq_edge *d)
{
	const char *from = call_name(c, d->from), *to = call_name(c, d->to), *tensor = c->s->tensors.v[d->tensor].name;
	struct seq_problem *x;

	if (comes_before(c, d->from, d->to))
		return;
	x = add(c, SEQ_ORDER, d->to, d->from);
	x->tensor = d->tensor;
	if (comes_before(c, d->to, d->from) || c->position[d->to] < c->position[d->from]) {
		x->message = arena_strf(c->a, "'%s' %s '%s' before '%s' %s it; in the sequence '%s' comes first", to,
			verb(d->to_writes), tensor, from, verb(d->from_writes), from);
		x->hint = arena_strf(c->a, "launch '%s' before '%s', by sp:order", from, to);
		x->loc = c->p->order_loc;
		return;
	}
	x->message = arena_strf(c->a, "'%s' %s '%s', which '%s' %s, and nothing orders them: they are in streams %d and "
		"%d", to,
		verb(d->to_writes), tensor, from, verb(d->from_writes), c->p->launches[d->to].stream, c->p->launches[d->from].stream);
	x->hint = arena_strf(c->a, "sp:launch(\"%s\", {stream=%d, early=false, after={\"%s\"}})", to,
		c->p->launches[d->to].stream, from);
}

static void check_launch(struct checker *c, int call)
{
	const struct seq_launch *l = &c->p->launches[call];
	bool any_in_front = false;
	struct seq_problem *x;

	for (int i = 0; i < l->waits.n; i++) {
		if (c->position[l->waits.v[i]] < c->position[call])
			continue;
		x = add(c, SEQ_WAIT, call, l->waits.v[i]);
		x->message = arena_strf(c->a, "'%s' waits for '%s', which is launched later", call_name(c, call),
			call_name(c, l->waits.v[i]));
		x->hint = arena_strf(c->a, "launch '%s' before '%s', by sp:order", call_name(c, l->waits.v[i]), call_name(c, call));
	}
	if (!l->early)
		return;
	for (int i = 0; i < c->position[call]; i++)
		any_in_front |= c->p->launches[c->p->order[i]].stream == l->stream;
	if (any_in_front && !l->waits.n && target_of(c->p->device)->phases_overlap)
		return;
	x = add(c, SEQ_EARLY, call, NONE);
	if (!target_of(c->p->device)->phases_overlap)
		x->message = arena_strf(c->a, "'%s' would be launched early, which kernels for '%s' cannot be", call_name(c, call),
			c->p->device->name);
	else if (l->waits.n)
		x->message = arena_strf(c->a, "'%s' would be launched early, but waits for a call of another stream, as only the "
			"launch itself can", call_name(c, call));
	else
		x->message = arena_strf(c->a, "'%s' would be launched early, but is the first one of stream %d", call_name(c, call),
			l->stream);
	x->hint = arena_strf(c->a, "sp:launch(\"%s\", {stream=%d, early=false})", call_name(c, call), l->stream);
}

/* What an early kernel loads before it waits must not be written by any kernel that may still run: all those in
 * front of it, back to the first one, as each may be launched before the one in front of it has waited. */
static void check_ready(struct checker *c, int call)
{
	const struct plan *plan = c->p->launches[call].plan;
	struct seq_problem *x;

	for (int i = 0; plan && c->p->launches[call].early && i < plan->launch.ready.n; i++) {
		int own = plan->launch.ready.v[i], tensor = c->s->calls.v[call].args[own].tensor, k;
		const struct seq_tensor *t = &c->s->tensors.v[tensor];

		FIND_FIRST(k, t->uses.n, t->uses.v[k].writes);
		if (k == NONE)
			continue;
		x = add(c, SEQ_READY, call, t->uses.v[k].call);
		x->tensor = tensor;
		x->loc = plan->launch_loc;
		x->other_loc = c->s->calls.v[t->uses.v[k].call].loc;
		x->message = arena_strf(c->a, "the plan of '%s' says that %s is ready before the kernels in front have ended; "
			"that is '%s', which '%s' writes", call_name(c, call), c->s->calls.v[call].program->tensors.v[own].name, t->name,
			call_name(c, t->uses.v[k].call));
		x->hint = arena_strf(c->a, "plan:launch{ready={...}} without it, or sp:launch(\"%s\", {early=false})",
			call_name(c, call));
	}
}

/* ---- the arena ---- */

static struct seq_problem *add_tensor(struct checker *c, enum seq_problem_code code, int tensor)
{
	struct seq_problem *x = add(c, code, c->s->tensors.v[tensor].uses.v[0].call, NONE);

	x->tensor = tensor;
	x->loc = c->p->placed_at[tensor];
	return x;
}

static void check_bounds(struct checker *c, int tensor)
{
	const struct seq_tensor *t = &c->s->tensors.v[tensor];
	int64_t at = c->p->offset[tensor];
	struct seq_problem *x;

	if (at != NONE && at + (int64_t)t->bytes <= c->p->arena_bytes)
		return;
	x = add_tensor(c, SEQ_BOUNDS, tensor);
	if (at == NONE)
		x->message = arena_strf(c->a, "'%s' is not in the arena", t->name);
	else
		x->message = arena_strf(c->a, "'%s' ends at byte %lld of an arena of %lld", t->name,
			(long long)(at + (int64_t)t->bytes), (long long)c->p->arena_bytes);
	x->hint = "sp:arena() finds offsets for all temporaries";
}

/* Two calls that use x and y, of which neither comes before the other; or else the last two, that do so in the order
 * that is the other way around than that of others. */
static void find_users(const struct checker *c, const struct seq_tensor *x, const struct seq_tensor *y, int *user,
	int *other)
{
	*user = x->uses.v[0].call;
	*other = y->uses.v[0].call;
	for (int i = 0; i < x->uses.n; i++) {
		for (int j = 0; j < y->uses.n; j++) {
			*user = x->uses.v[i].call;
			*other = y->uses.v[j].call;
			if (!comes_before(c, *user, *other) && !comes_before(c, *other, *user))
				return;
		}
	}
}

static void check_shared_bytes(struct checker *c, int x, int y)
{
	const struct seq_tensor *s = &c->s->tensors.v[x], *t = &c->s->tensors.v[y];
	int64_t at = c->p->offset[x], to = c->p->offset[y];
	struct seq_problem *problem;
	int user, other;

	if (at == NONE || to == NONE || at >= to + (int64_t)t->bytes || to >= at + (int64_t)s->bytes ||
	    seqplan_apart(c->s, c->before, x, y) || seqplan_apart(c->s, c->before, y, x))
		return;
	find_users(c, s, t, &user, &other);
	problem = add(c, SEQ_ARENA, user, other);
	problem->tensor = x;
	problem->other_tensor = y;
	problem->loc = c->p->placed_at[x];
	problem->other_loc = c->p->placed_at[y];
	problem->message = arena_strf(c->a, "'%s', bytes %lld to %lld of the arena, and '%s', bytes %lld to %lld, share "
		"some, but both are "
		"in use when %s", s->name, (long long)at, (long long)(at + (int64_t)s->bytes), t->name, (long long)to,
		(long long)(to + (int64_t)t->bytes), user == other ? arena_strf(c->a, "'%s' runs", call_name(c, user)) :
		arena_strf(c->a, "'%s' and '%s' run", call_name(c, user), call_name(c, other)));
	problem->hint = "sp:arena() finds offsets for all temporaries";
}

enum err_code seqplan_check(const struct seqplan *p, struct arena *a, const struct stop *stop,
	struct seq_problems *out, struct err *e)
{
	struct checker c = { .p = p, .s = p->s, .a = a, .before = seqplan_relation(a, p), .out = out,
		.position = arena_ints(a, p->s->calls.n, 0) };

	for (int i = 0; i < p->s->calls.n; i++)
		c.position[p->order[i]] = i;
	*out = (struct seq_problems){ 0 };
	for (int i = 0; i < p->s->calls.n; i++) {
		TRY(check_kernel(&c, i, stop, e));
		check_launch(&c, i);
		check_ready(&c, i);
	}
	for (int i = 0; i < p->s->edges.n; i++)
		check_edge(&c, &p->s->edges.v[i]);
	for (int i = 0; i < p->s->tensors.n; i++) {
		if (p->s->tensors.v[i].role != SEQ_TEMP)
			continue;
		check_bounds(&c, i);
		for (int k = 0; k < i; k++)
			if (p->s->tensors.v[k].role == SEQ_TEMP)
				check_shared_bytes(&c, k, i);
	}
	return OK;
}
