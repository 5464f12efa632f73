#include "plan/problem.h"

const char *problem_name(enum problem_code c)
{
	static const char *const names[] = { "missing_wait", "misplaced_wait", "deadlock", "wrong_seu", "versions",
		"registers", "shared_memory", "barriers", "threads", "missing_task", "duplicate_task", "offset",
		"cluster", "alias", "layout", "product", "waits", "kernel", "spills", "serialized", "by_threads" };

	return names[c];
}

void problem_add(struct arena *a, struct problems *out, struct problem pr)
{
	VEC_PUSH(a, &out->v, pr);
}

void problem_add_note(struct arena *a, struct problems *out, struct problem note)
{
	VEC_PUSH(a, &out->notes, note);
}

/* Give an entry to a unit that can run it. */
static const char *move_hint(const struct plan *p, struct arena *a, const struct entry *e)
{
	const struct stask *s = &p->graph->tasks.v[e->task];
	int seu = device_seu_for(p->device, &s->work);

	if (seu == NONE)
		return "no sEU of this device can";
	return arena_strf(a, "plan:move(\"%s\", {seu=\"%s\"})", s->name, p->device->seu[seu].name);
}

void problem_add_entries(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		int n = 0, last = NONE;

		for (int i = 0; i < p->entries.n; i++) {
			if (p->entries.v[i].task == t) {
				n++;
				last = i;
			}
		}
		if (n == 0)
			problem_add(a, out, (struct problem){ .code = PROBLEM_MISSING_TASK, .task = t, .other = NONE,
				.edge = NONE, .loc = s->loc, .message = arena_strf(a, "sTask '%s' is not in the plan",
				s->name), .hint = arena_strf(a, "plan:append(\"%s\")", s->name) });
		else if (n > 1)
			problem_add(a, out, (struct problem){ .code = PROBLEM_DUPLICATE_TASK,
				.task = t, .other = NONE, .edge = NONE, .loc = p->entries.v[last].loc,
				.message = arena_strf(a, "sTask '%s' is appended %d times", s->name, n),
				.hint = arena_strf(a, "plan:remove(\"%s\") and append it once; to run "
					"it on several lanes, split it", s->name) });
		else if (!device_can(p->device, p->entries.v[last].seu, &s->work))
			problem_add(a, out, (struct problem){ .code = PROBLEM_WRONG_SEU, .task = t, .other = NONE,
				.edge = NONE, .loc = p->entries.v[last].loc, .message = arena_strf(a,
				"'%s' (%s of %s) cannot run on sEU '%s'", s->name, task_kind_name(s->kind),
				dtype_name(s->work.type), p->device->seu[p->entries.v[last].seu].name),
				.hint = move_hint(p, a, &p->entries.v[last]) });
	}
}

/* Of who makes it. Whoever begins a life of the place that it is in may be on another one. */
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

		if (why)
			problem_add(a, out, (struct problem){ .code = PROBLEM_ALIAS, .task = b->first,
				.other = g->buffers.v[b->alias_of].first, .edge = NONE,
				.loc = g->tasks.v[b->first].loc, .message = arena_strf(a, "'%s' cannot "
				"be an alias of '%s': %s", b->name, g->buffers.v[b->alias_of].name, why),
				.hint = "in registers, let one lane make and use both, in one version each; in "
					"shared memory, give both as many versions; or take out plan:alias" });
	}
}

static const char *deed(const struct edge *e)
{
	switch (e->kind) {
	case EDGE_FLOW:
		return "reads";
	case EDGE_ANTI:
	case EDGE_OUTPUT:
		break;
	}
	return "overwrites";
}

/* Of two sTasks of which the second has come first. */
static const char *order_hint(const struct plan *p, struct arena *a, int from, int to)
{
	const struct stask *s = &p->graph->tasks.v[from], *t = &p->graph->tasks.v[to];
	bool beside = p->entries.v[plan_entry_of(p, from)].lane ==
		p->entries.v[plan_entry_of(p, to)].lane && s->phase == t->phase && s->loop == t->loop;

	return arena_strf(a, beside ? "plan:move(\"%s\", {after=\"%s\"}), or give it a smaller at=" :
		"append '%s' after '%s', or give it a smaller at=", t->name, s->name);
}

static struct problem describe(const struct plan *p, struct arena *a, int edge, const struct breach *b)
{
	const struct graph *g = p->graph;
	const struct edge *e = &g->edges.v[edge];
	const char *from = g->tasks.v[e->from].name, *to = g->tasks.v[e->to].name;
	const char *buffer = g->buffers.v[e->buffer].name;
	int entry = plan_entry_of(p, e->to), versions = p->versions[e->buffer];
	struct problem pr = { .code = b->code, .task = e->to, .other = e->from, .edge = edge,
		.loc = p->entries.v[entry].loc };
	const char *which = arena_strf(a, "iteration %lld of '%s' %s '%s' of iteration %lld of '%s'",
		(long long)b->to, to, deed(e), buffer, (long long)b->from, from);

	if (b->code == PROBLEM_VERSIONS) {
		pr.message = arena_strf(a, "%s before that is complete: %d version%s of '%s' %s too few for this order",
			which, versions, versions == 1 ? "" : "s", buffer, versions == 1 ? "is" : "are");
		pr.hint = arena_strf(a, "plan:buffers{[\"%s\"]=%d}, or change the order", buffer, versions + 1);
	} else if (b->code == PROBLEM_OFFSET) {
		pr.message = arena_strf(a, "%s, but the order has it come first", which);
		pr.hint = order_hint(p, a, e->from, e->to);
	} else if (b->code == PROBLEM_MISPLACED_WAIT) {
		pr.message = arena_strf(a, "%s, but its wait is for another iteration (%s dependence, distance %d)",
			which, edge_kind_name(e->kind), edge_distance(p, e));
		pr.hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"}) without a distance", to, from);
	} else {
		pr.message = arena_strf(a, "%s, but does not wait until that is complete (%s dependence, distance %d)",
			which, edge_kind_name(e->kind), edge_distance(p, e));
		pr.hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"})", to, from);
	}
	return pr;
}

void problem_add_deadlock(const struct findings *f, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	struct buf b;
	int task = f->cycle[0];

	buf_init(&b, a);
	buf_puts(&b, "the lanes wait for each other for ever: ");
	for (int i = 0; i < f->ncycle; i++)
		buf_printf(&b, "'%s' after ", p->graph->tasks.v[f->cycle[i]].name);
	buf_printf(&b, "'%s'", p->graph->tasks.v[task].name);
	problem_add(a, out, (struct problem){ .code = PROBLEM_DEADLOCK, .task = task, .other = f->ncycle > 1 ?
		f->cycle[1] : task, .edge = NONE, .message = b.text, .loc = p->entries.v[plan_entry_of(p, task)].loc,
		.hint = "take out one of these waits, raise its distance, give the ring more versions, or change the "
		"order" });
}

void problem_add_breach(const struct findings *f, int edge, struct arena *a, struct problems *out)
{
	problem_add(a, out, describe(f->plan, a, edge, &f->edge[edge]));
}
