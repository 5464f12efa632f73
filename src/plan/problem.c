#include "plan/problem.h"

#include <stdarg.h>

const char *problem_name(enum problem_code c)
{
	static const char *const names[] = { "missing_wait", "misplaced_wait", "deadlock", "wrong_seu", "versions",
		"registers", "shared_memory", "barriers", "threads", "missing_task", "duplicate_task", "offset",
		"cluster", "alias", "layout", "product", "waits", "kernel", "spills", "serialized", "by_threads" };

	return names[c];
}

struct problem *problem_add(struct arena *a, struct problems *out, enum problem_code code, struct srcloc loc,
	const char *hint, const char *fmt, ...)
{
	struct problem *pr = VEC_ADD(a, &out->v);
	va_list ap;

	va_start(ap, fmt);
	*pr = (struct problem){ .code = code, .task = NONE, .other = NONE, .edge = NONE, .loc = loc, .hint = hint,
		.message = arena_vstrf(a, fmt, ap) };
	va_end(ap);
	return pr;
}

void problem_add_entries(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		const struct entry *last = NULL;
		struct problem *pr = NULL;
		int n = 0, able = device_seu_for(p->device, &s->work);

		for (int i = 0; i < p->entries.n; i++)
			if (p->entries.v[i].task == t) {
				n++;
				last = &p->entries.v[i];
			}
		if (n == 0)
			pr = problem_add(a, out, PROBLEM_MISSING_TASK, s->loc, arena_strf(a, "plan:append(\"%s\")",
				s->name), "sTask '%s' is not in the plan", s->name);
		else if (n > 1)
			pr = problem_add(a, out, PROBLEM_DUPLICATE_TASK, last->loc, arena_strf(a, "plan:remove(\"%s\") "
				"and append it once; to run it on several lanes, split it", s->name),
				"sTask '%s' is appended %d times", s->name, n);
		else if (!device_can(p->device, last->seu, &s->work))
			pr = problem_add(a, out, PROBLEM_WRONG_SEU, last->loc, able == NONE ? "no sEU of this device "
				"can" : arena_strf(a, "plan:move(\"%s\", {seu=\"%s\"})", s->name,
				p->device->seu[able].name), "'%s' (%s of %s) cannot run on sEU '%s'", s->name,
				task_kind_name(s->kind), dtype_name(s->work.type), p->device->seu[last->seu].name);
		if (pr)
			pr->task = t;
	}
}

/* The lane of the sTask that makes the value; a life of its storage may begin on another one. */
static int lane_of_value(const struct plan *p, int buffer)
{
	const struct graph *g = p->graph;
	int t = 0;

	while (!ints_hold(g->tasks.v[t].writes.v, g->tasks.v[t].writes.n, buffer))
		t++;
	return p->entries.v[plan_entry_of(p, t)].lane;
}

/* Why a value cannot share the storage of another under this plan; NULL: it can. */
static const char *alias_conflict(const struct plan *p, struct arena *a, int buffer, int of)
{
	const struct buffer *v = p->graph->buffers.v;

	if (v[of].scope == SCOPE_SHARED)
		return p->versions[buffer] == p->versions[of] ? NULL : arena_strf(a, "'%s' has versions: %d, "
			"'%s': %d", v[buffer].name, p->versions[buffer], v[of].name, p->versions[of]);
	for (int i = 0; i < 2; i++) {
		int b = i ? of : buffer;

		if (plan_scope(p, b) == SCOPE_SHARED)
			return arena_strf(a, "'%s' is in shared memory, for other lanes or as an operand", v[b].name);
		if (p->versions[b] > 1)
			return arena_strf(a, "'%s' has %d versions, in registers", v[b].name, p->versions[b]);
	}
	return lane_of_value(p, buffer) == lane_of_value(p, of) ? NULL : "they are in registers of different lanes";
}

void problem_add_aliases(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		const char *why = b->alias_of == NONE ? NULL : alias_conflict(p, a, i, b->alias_of);

		if (why) {
			struct problem *pr = problem_add(a, out, PROBLEM_ALIAS, g->tasks.v[b->first].loc,
				"in registers, let one lane make and use both, in one version each; in shared memory, "
				"give both as many versions; or take out plan:alias", "'%s' cannot be an alias of "
				"'%s': %s", b->name, g->buffers.v[b->alias_of].name, why);

			pr->task = b->first;
			pr->other = g->buffers.v[b->alias_of].first;
		}
	}
}

/* How to bring two sTasks into order of which the second has come first. */
static const char *order_hint(const struct plan *p, struct arena *a, int from, int to)
{
	const struct stask *s = &p->graph->tasks.v[from], *t = &p->graph->tasks.v[to];
	bool same = p->entries.v[plan_entry_of(p, from)].lane == p->entries.v[plan_entry_of(p, to)].lane &&
		s->phase == t->phase && s->loop == t->loop;

	return arena_strf(a, same ? "plan:move(\"%s\", {after=\"%s\"}), or give it a smaller at=" :
		"append '%s' after '%s', or give it a smaller at=", t->name, s->name);
}

void problem_add_deadlock(const struct findings *f, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	int task = f->cycle[0];
	struct problem *pr;
	struct buf b;

	buf_init(&b, a);
	for (int i = 0; i < f->ncycle; i++)
		buf_printf(&b, "'%s' after ", p->graph->tasks.v[f->cycle[i]].name);
	pr = problem_add(a, out, PROBLEM_DEADLOCK, p->entries.v[plan_entry_of(p, task)].loc, "take out one of these "
		"waits, raise its distance, give the ring more versions, or change the order", "the lanes wait for "
		"each other for ever: %s'%s'", b.text, p->graph->tasks.v[task].name);
	pr->task = task;
	pr->other = f->ncycle > 1 ? f->cycle[1] : task;
}

void problem_add_breach(const struct findings *f, int edge, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	const struct graph *g = p->graph;
	const struct edge *e = &g->edges.v[edge];
	const struct breach *b = &f->edge[edge];
	const char *from = g->tasks.v[e->from].name, *to = g->tasks.v[e->to].name;
	const char *buffer = g->buffers.v[e->buffer].name;
	int versions = p->versions[e->buffer];
	struct problem *pr;
	const char *which = arena_strf(a, "iteration %lld of '%s' %s '%s' of iteration %lld of '%s'", (long long)b->to,
		to, e->kind == EDGE_FLOW ? "reads" : "overwrites", buffer, (long long)b->from, from);
	struct srcloc loc = p->entries.v[plan_entry_of(p, e->to)].loc;

	if (b->code == PROBLEM_VERSIONS)
		pr = problem_add(a, out, b->code, loc, arena_strf(a, "plan:buffers{[\"%s\"]=%d}, or change the order",
			buffer, versions + 1), "%s before that is complete: %d version%s of '%s' %s too few for this "
			"order", which, versions, versions == 1 ? "" : "s", buffer, versions == 1 ? "is" : "are");
	else if (b->code == PROBLEM_OFFSET)
		pr = problem_add(a, out, b->code, loc, order_hint(p, a, e->from, e->to),
			"%s, but the order has it come first", which);
	else
		pr = problem_add(a, out, b->code, loc, arena_strf(a, b->code == PROBLEM_MISPLACED_WAIT ?
			"plan:wait(\"%s\", {\"%s\"}) without a distance" : "plan:wait(\"%s\", {\"%s\"})", to, from),
			"%s, but %s (%s dependence, distance %d)", which, b->code == PROBLEM_MISPLACED_WAIT ?
			"its wait is for another iteration" : "does not wait until that is complete",
			edge_kind_name(e->kind), edge_distance(p, e));
	pr->task = e->to;
	pr->other = e->from;
	pr->edge = edge;
	pr->from_iteration = b->from;
	pr->to_iteration = b->to;
}
