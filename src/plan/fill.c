/* plan_fill_waits: add the wait of the first breach until there is none, then take out what
 * turns out needless. plan_repair_waits: the same after a change of the order, and with versions. */
#include "plan/check.h"

#include <string.h>

#include "plan/problem.h"

/* What waits are added for. */
struct filling {
	struct plan *plan;
	struct arena *a;		/* for scratch, and the waits */
	bool raise;			/* versions, too */
	const struct stop *stop;
	struct err *e;
};

/* Breached edges, in the order in which waits are best added: what is read first,
 * then what is overwritten, then reuse; that only once the versions are enough. */
static int rank_of(const struct findings *f, int edge, bool raise)
{
	const struct edge *e = &f->plan->graph->edges.v[edge];
	enum problem_code code = f->edge[edge].code;

	if (!f->edge[edge].found)
		return NONE;
	if (code == PROBLEM_MISSING_WAIT || code == PROBLEM_MISPLACED_WAIT)
		return e->reuse ? 3 : e->kind != EDGE_FLOW;
	return raise && code == PROBLEM_VERSIONS && f->plan->versions[e->buffer] < VERSIONS_MAX ? 2 : NONE;
}

/* No wait and no version repairs it. */
static bool is_in_vain(const struct findings *f)
{
	for (int i = 0; i < f->plan->graph->edges.n; i++)
		if (f->edge[i].found && f->edge[i].code == PROBLEM_OFFSET)
			return true;
	return false;
}

static int first_breach(const struct findings *f, bool raise)
{
	raise = raise && !is_in_vain(f);
	for (int rank = 0; rank < 4; rank++)
		for (int i = 0; i < f->plan->graph->edges.n; i++)
			if (rank_of(f, i, raise) == rank)
				return i;
	return NONE;
}

/* How much is looked at. */
struct looking {
	bool quick;			/* in one list alone */
	bool reads;			/* dependences of who reads a value, alone */
	int most;			/* breaches: that and one more are enough */
	bool *needed;			/* as findings have it */
};

/* Breaches and deadlocks, if any, in *f. */
static enum err_code look(const struct filling *x, const struct looking *how, struct findings *f)
{
	*f = findings_new(x->plan, x->a, x->stop, x->e);
	f->most = how->most;
	f->reads = how->reads;
	f->needed = how->needed;
	for (int phase = 0; phase < x->plan->graph->program->phases.n && !f->code; phase++)
		findings_add_phase(f, phase, how->quick, x->a, NULL);
	return f->code;
}

/* How many dependences are not kept; more than there can be, in a deadlock. */
static int breaches_of(const struct findings *f)
{
	return f->ncycle ? INT32_MAX : f->broken;
}

/* The same of the plan; if more than `most`, any number more. */
static enum err_code count_breaches(const struct filling *x, bool quick, int most, int *n)
{
	struct arena_mark mark = arena_mark(x->a);
	struct findings f;

	TRY(look(x, &(struct looking){ .quick = quick, .most = most }, &f));
	*n = breaches_of(&f);
	arena_reset(x->a, mark);
	return OK;
}

/* One version more, and so of whatever shares its room. */
static void raise_versions(struct plan *p, int buffer)
{
	const struct graph *g = p->graph;
	int n = ++p->versions[buffer];

	for (int i = 0; i < g->buffers.n; i++)
		if ((g->buffers.v[i].alias_of == buffer || g->buffers.v[buffer].alias_of == i) && p->versions[i] < n)
			p->versions[i] = n;
}

static bool is_open(const struct wait *w)
{
	return w->distance == DISTANCE_AUTO && w->when == WAIT_COMPLETE;
}

/* What waits leave. */
struct rest {
	int breaches;
	bool *needed;			/* by wait: nothing else does what it does. All false: it is not known */
};

/* What one wait alone keeps it is needed for; what it keeps by the order of its unit, others may, too. */
static void keep_certain(const struct plan *p, bool *needed)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->edges.n; i++)
		for (int k = 0; k < p->waits.n && g->edges.v[i].chain; k++)
			if (p->waits.v[k].task == g->edges.v[i].to && p->waits.v[k].on == g->edges.v[i].from)
				needed[k] = false;
}

/* Add waits until nothing is missing, behind those that there are. What is read comes first: until that is
 * there, nothing else is looked at. */
static enum err_code add_waits(const struct filling *x, bool quick, struct rest *out)
{
	struct plan *p = x->plan;
	bool reads = quick;

	for (;;) {
		bool *needed = ARENA_ARRAY(x->a, p->waits.n, bool);
		struct arena_mark mark = arena_mark(x->a);
		const struct looking how = { .quick = quick, .reads = reads, .most = reads ? 0 : INT32_MAX,
			.needed = quick ? NULL : needed };
		struct wait w = { .distance = DISTANCE_AUTO, .when = WAIT_COMPLETE };
		bool versions = false;
		struct findings f;
		int edge;

		TRY(look(x, &how, &f));
		*out = (struct rest){ breaches_of(&f), needed };
		edge = f.any ? first_breach(&f, x->raise) : NONE;
		if (edge != NONE) {
			w.task = p->graph->edges.v[edge].to;
			w.on = p->graph->edges.v[edge].from;
			w.loc = p->entries.v[plan_entry_of(p, w.task)].loc;
			versions = f.edge[edge].code == PROBLEM_VERSIONS;
		}
		arena_reset(x->a, mark);
		if (reads && (edge == NONE || versions || plan_find_wait(p, &w) != NONE)) {
			reads = false;
			continue;
		}
		if (versions) {
			raise_versions(p, p->graph->edges.v[edge].buffer);
			continue;
		}
		if (edge == NONE || plan_find_wait(p, &w) != NONE)
			break;
		VEC_PUSH(x->a, &p->waits, w);
	}
	if (out->breaches)
		memset(out->needed, 0, (size_t)p->waits.n * sizeof(bool));
	else
		keep_certain(p, out->needed);
	return OK;
}

/* Would no more than so many dependences be broken without wait i? quick: in one list; what is needed
 * there is needed, but a breach may show in other lists alone. */
static enum err_code is_needless(const struct filling *x, int i, int breaches, bool quick, bool *out)
{
	struct plan *p = x->plan;
	struct wait w = p->waits.v[i];
	int n;

	plan_drop_wait(p, &w);
	TRY(count_breaches(x, true, breaches, &n));
	if (n <= breaches && !quick)
		TRY(count_breaches(x, false, breaches, &n));
	*out = n <= breaches;
	memmove(&p->waits.v[i + 1], &p->waits.v[i], (size_t)(p->waits.n - i) * sizeof(w));
	p->waits.v[i] = w;
	p->waits.n++;
	return OK;
}

/* Drop those of the waits from the n-th on that the others make unnecessary. What is needed while all are
 * there is needed. */
static enum err_code drop_each(const struct filling *x, int n, const struct rest *rest, bool quick)
{
	struct plan *p = x->plan;

	for (int i = n, was = n; i < p->waits.n; was++) {
		struct wait w = p->waits.v[i];
		bool needless = false;

		if (!rest->needed[was])
			TRY(is_needless(x, i, rest->breaches, quick, &needless));
		if (needless)
			plan_drop_wait(p, &w);
		else
			i++;
	}
	return OK;
}

/* The same, soon: all lists are looked at once, when all is dropped that one list does without. With more
 * waits no more is broken, so that each might have been dropped by itself then; mostly that is so. */
static enum err_code drop_needless(const struct filling *x, int n, const struct rest *rest)
{
	struct plan *p = x->plan;
	int had = p->waits.n, left;
	struct wait *waits = arena_copy(x->a, p->waits.v, (size_t)had, sizeof(*waits));

	TRY(drop_each(x, n, rest, true));
	if (p->waits.n == had)
		return OK;
	TRY(count_breaches(x, false, rest->breaches, &left));
	if (left <= rest->breaches)
		return OK;
	memcpy(p->waits.v, waits, (size_t)had * sizeof(*waits));
	p->waits.n = had;
	return drop_each(x, n, rest, false);
}

/* Is every sTask there once, on a unit that can run it? */
static bool is_whole(const struct plan *p, struct arena *a)
{
	struct arena_mark mark = arena_mark(a);
	struct problems problems = { 0 };

	problem_add_entries(p, a, &problems);
	arena_reset(a, mark);
	return !problems.v.n;
}

enum err_code plan_fill_waits(struct plan *p, const struct stop *stop, int *added, struct err *e)
{
	const struct filling x = { p, &p->arena, false, stop, e };
	int had = p->waits.n;
	struct rest rest;

	*added = 0;
	if (!is_whole(p, &p->arena))
		return OK;
	TRY(add_waits(&x, true, &rest));
	TRY(add_waits(&x, false, &rest));
	if (!rest.breaches)
		TRY(drop_needless(&x, had, &rest));
	*added = p->waits.n - had;
	return OK;
}

/* ---- after a change of the order ------------------------------------------------------- */

/* A plan as it was, whose waits are its own: its arena is that of another. */
struct former {
	struct plan plan;
	struct filling filling;
	int breaches;
};

static enum err_code former_init(struct former *f, const struct plan *p, const struct filling *of)
{
	f->plan = *p;
	f->filling = (struct filling){ &f->plan, of->a, false, of->stop, of->e };
	f->plan.waits.v = arena_copy(of->a, p->waits.v, (size_t)p->waits.n, sizeof(struct wait));
	f->plan.waits.cap = p->waits.n;
	return count_breaches(&f->filling, false, INT32_MAX, &f->breaches);
}

static void drop_of_tasks(struct plan *p, const int *tasks, int n)
{
	int kept = 0;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];

		if (!is_open(w) || !(ints_hold(tasks, n, w->task) || ints_hold(tasks, n, w->on)))
			p->waits.v[kept++] = *w;
	}
	p->waits.n = kept;
}

/* Is the wait for nothing but that slots are free? */
static bool is_for_slots(const struct plan *p, const struct wait *w)
{
	const struct graph *g = p->graph;
	bool slots = false;

	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i]) {
		if (g->edges.v[i].from == w->on && !g->edges.v[i].reuse)
			return false;
		slots |= g->edges.v[i].from == w->on;
	}
	return slots && is_open(w);
}

static void drop_for_slots(struct plan *p)
{
	int kept = 0;

	for (int i = 0; i < p->waits.n; i++)
		if (!is_for_slots(p, &p->waits.v[i]))
			p->waits.v[kept++] = p->waits.v[i];
	p->waits.n = kept;
}

/* Add what is needed, and take out what of that is not. *breaches: how many are left; *old: waits
 * that were there before. */
static enum err_code fill_anew(const struct filling *x, int *old, int *breaches)
{
	struct rest rest;

	for (int again = 0; again < 2; again++) {
		if (again)
			drop_for_slots(x->plan);
		*old = x->plan->waits.n;
		TRY(add_waits(x, true, &rest));
		TRY(add_waits(x, false, &rest));
		if (rest.breaches != INT32_MAX)
			break;
	}
	*breaches = rest.breaches;
	return rest.breaches == INT32_MAX ? OK : drop_needless(x, *old, &rest);
}

/* Is wait i needless, but was not? */
static enum err_code is_idle(const struct filling *x, const struct former *f, int i, int breaches, bool *out)
{
	const struct wait *w = &x->plan->waits.v[i];
	int before = plan_find_wait(&f->plan, w);
	bool needless;

	*out = false;
	if (!is_open(w) || before == NONE)
		return OK;
	TRY(is_needless(x, i, breaches, false, &needless));
	if (!needless)
		return OK;
	TRY(is_needless(&f->filling, before, f->breaches, false, &needless));
	*out = !needless;
	return OK;
}

/* Of the first n waits, which were there before the change. */
static enum err_code drop_idle(const struct filling *x, const struct former *f, int n, int breaches)
{
	struct plan *p = x->plan;

	for (int i = 0; i < n;) {
		struct wait w = p->waits.v[i];
		bool idle;

		TRY(is_idle(x, f, i, breaches, &idle));
		if (idle) {
			plan_drop_wait(p, &w);
			n--;
		} else {
			i++;
		}
	}
	return OK;
}

/* The waits that were there come first, in the order and with the places that they had. */
static void restore_order(struct plan *p, const struct wait *had, int n)
{
	struct plan now = *p;

	p->waits.v = ARENA_ARRAY(&p->arena, now.waits.n, struct wait);
	p->waits.cap = now.waits.n;
	p->waits.n = 0;
	for (int i = 0; i < n; i++)
		if (plan_find_wait(&now, &had[i]) != NONE)
			p->waits.v[p->waits.n++] = had[i];
	for (int i = 0; i < now.waits.n; i++)
		if (plan_find_wait(p, &now.waits.v[i]) == NONE)
			p->waits.v[p->waits.n++] = now.waits.v[i];
}

enum err_code plan_repair_waits(struct plan *p, const struct plan *was, const int *tasks, int n,
	const struct stop *stop, struct err *e)
{
	const struct filling x = { p, &p->arena, true, stop, e };
	int had = p->waits.n, old, breaches, nversions = p->graph->buffers.n;
	struct wait *waits = arena_copy(&p->arena, p->waits.v, (size_t)had, sizeof(*waits));
	int *versions = arena_copy(&p->arena, p->versions, (size_t)nversions, sizeof(*versions));
	struct former f;

	if (!is_whole(p, &p->arena))
		return OK;
	drop_of_tasks(p, tasks, n);
	TRY(fill_anew(&x, &old, &breaches));
	if (breaches == INT32_MAX) {
		memcpy(p->versions, versions, (size_t)nversions * sizeof(int));
		p->waits.v = waits;
		p->waits.n = p->waits.cap = had;
		return OK;
	}
	if (was && is_whole(was, &p->arena)) {
		TRY(former_init(&f, was, &x));
		TRY(drop_idle(&x, &f, old, breaches));
	}
	restore_order(p, waits, had);
	return OK;
}
