/* plan_fill_waits: add a wait for the first breach until there is none, then take out the waits that are needless.
 * plan_repair_waits: the same after a change of the order, with versions. Phases run one after the other, so no wait of one
 * has an effect on another, and each is looked at alone. */
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

/* The breach to repair first; NONE. Versions are raised only if no breach is of a kind that no wait or version
 * repairs. */
static int first_breach(const struct findings *f, bool raise)
{
	int n = f->plan->graph->edges.n;

	for (int i = 0; i < n; i++)
		raise &= !f->edge[i].found || f->edge[i].code != PROBLEM_OFFSET;
	for (int rank = 0; rank < 4; rank++)
		for (int i = 0; i < n; i++)
			if (rank_of(f, i, raise) == rank)
				return i;
	return NONE;
}

/* How much is looked at. */
struct looking {
	int phase;			/* NONE: all */
	bool quick;			/* one list only */
	bool reads;			/* dependences of readers on writers only */
	int most;			/* breaches: one more than that is enough */
	bool *needed;			/* as in struct findings */
	struct sound *sound;		/* the same */
};

/* Find breaches and deadlocks. */
static enum err_code look(const struct filling *x, struct looking how, struct findings *f)
{
	*f = findings_new(x->plan, x->a, x->stop, x->e);
	f->most = how.most;
	f->reads = how.reads;
	f->needed = how.needed;
	f->sound = how.sound;
	for (int phase = 0; phase < x->plan->graph->program->phases.n && !f->code; phase++)
		if (how.phase == NONE || how.phase == phase)
			findings_add_phase(f, phase, how.quick, x->a, NULL);
	return f->code;
}

/* The number of dependences that are not kept, in a deadlock more than there can be. */
static int breaches_of(const struct findings *f)
{
	return f->ncycle ? INT32_MAX : f->broken;
}

/* The same of a phase, or of all if it is NONE; if more than `most`, any number above it. */
static enum err_code count_breaches(const struct filling *x, int phase, bool quick, int most, int *n)
{
	struct arena_mark mark = arena_mark(x->a);
	struct findings f;

	TRY(look(x, (struct looking){ .phase = phase, .quick = quick, .most = most }, &f));
	*n = breaches_of(&f);
	arena_reset(x->a, mark);
	return OK;
}

static bool is_open(const struct wait *w)
{
	return w->distance == DISTANCE_AUTO && w->when == WAIT_COMPLETE;
}

/* What is left when waits are added. */
struct filled {
	int breaches;
	bool *needed;			/* by wait: nothing else does what it does. False: it is not known */
};

static struct sound *new_sound(const struct filling *x)
{
	struct sound *out = ARENA_NEW(x->a, struct sound);

	out->edge = ARENA_ARRAY(x->a, x->plan->graph->edges.n, bool);
	return out;
}

/* Add waits to a phase until nothing is missing, after those that there are. Dependences of readers come first: nothing
 * else is looked at until they are kept. What is sound is left out. So not all waits that are needed may be known
 * as such, but those are for which other lists than the first were of use. */
static enum err_code add_waits_of(const struct filling *x, int phase, bool quick, struct filled *out)
{
	struct plan *p = x->plan;
	const struct graph *g = p->graph;
	struct sound *sound = new_sound(x);
	bool reads = quick;

	for (;;) {
		bool *needed = ARENA_ARRAY(x->a, p->waits.n, bool), versions = false, known;
		struct arena_mark mark = arena_mark(x->a);
		struct wait w = { .distance = DISTANCE_AUTO, .when = WAIT_COMPLETE };
		struct findings f;
		int edge;

		TRY(look(x, (struct looking){ phase, quick, reads, reads ? 0 : INT32_MAX, quick ? NULL : needed,
			sound }, &f));
		*out = (struct filled){ breaches_of(&f), needed };
		edge = f.any ? first_breach(&f, x->raise) : NONE;
		if (edge != NONE) {
			w.task = g->edges.v[edge].to;
			w.on = g->edges.v[edge].from;
			w.loc = p->entries.v[plan_entry_of(p, w.task)].loc;
			versions = f.edge[edge].code == PROBLEM_VERSIONS;
		}
		arena_reset(x->a, mark);
		known = edge == NONE || plan_find_wait(p, &w) != NONE;
		if (reads && (known || versions)) {
			reads = false;
		} else if (versions) {
			int buffer = g->edges.v[edge].buffer, n = ++p->versions[buffer];

			sound = new_sound(x);
			for (int i = 0; i < g->buffers.n; i++)	/* aliases have as many */
				if (g->buffers.v[i].alias_of == buffer || g->buffers.v[buffer].alias_of == i)
					p->versions[i] = n > p->versions[i] ? n : p->versions[i];
		} else if (known) {
			break;
		} else {
			VEC_PUSH(x->a, &p->waits, w);
		}
	}
	return OK;
}

/* The same for all phases. */
static enum err_code add_waits(const struct filling *x, bool quick, struct filled *out)
{
	struct plan *p = x->plan;
	const struct graph *g = p->graph;
	int nphases = g->program->phases.n, *had = arena_ints(x->a, nphases, 0);
	struct filled *of = ARENA_ARRAY(x->a, nphases, struct filled);

	*out = (struct filled){ 0 };
	for (int i = 0; i < nphases; i++) {
		TRY(add_waits_of(x, i, quick, &of[i]));
		had[i] = p->waits.n;	/* later ones are of other phases */
		out->breaches = of[i].breaches > INT32_MAX - out->breaches ? INT32_MAX : out->breaches + of[i].breaches;
	}
	out->needed = ARENA_ARRAY(x->a, p->waits.n, bool);
	for (int i = 0; i < nphases; i++)
		for (int k = 0; k < had[i]; k++)
			out->needed[k] |= of[i].needed[k];
	if (out->breaches)
		memset(out->needed, 0, (size_t)p->waits.n * sizeof(bool));
	/* what a wait keeps through the order of its unit, other waits may keep, too */
	for (int i = 0; i < g->edges.n; i++)
		for (int k = 0; k < p->waits.n && g->edges.v[i].chain; k++)
			if (p->waits.v[k].task == g->edges.v[i].to && p->waits.v[k].on == g->edges.v[i].from)
				out->needed[k] = false;
	return OK;
}

/* Would no more than `breaches` dependences be broken without wait i? quick: in one list. A wait that is needed there
 * is needed, but a breach may show in other lists only. */
static enum err_code is_needless(const struct filling *x, int i, int breaches, bool quick, bool *out)
{
	struct plan *p = x->plan;
	struct wait w = p->waits.v[i];
	int n, phase = breaches ? NONE : p->graph->tasks.v[w.task].phase;

	plan_drop_wait(p, &w);
	TRY(count_breaches(x, phase, true, breaches, &n));
	if (n <= breaches && !quick)
		TRY(count_breaches(x, phase, false, breaches, &n));
	*out = n <= breaches;
	memmove(&p->waits.v[i + 1], &p->waits.v[i], (size_t)(p->waits.n - i) * sizeof(w));
	p->waits.v[i] = w;
	p->waits.n++;
	return OK;
}

/* Drop those of the waits from the n-th on that the others make needless. A wait that is needed while all are there is
 * needed. */
static enum err_code drop_each(const struct filling *x, int n, const struct filled *filled, bool quick)
{
	struct plan *p = x->plan;

	for (int i = n, was = n; i < p->waits.n; was++) {
		struct wait w = p->waits.v[i];
		bool needless = false;

		if (!filled->needed[was])
			TRY(is_needless(x, i, filled->breaches, quick, &needless));
		if (needless)
			plan_drop_wait(p, &w);
		else
			i++;
	}
	return OK;
}

/* The same, faster: first drop all waits that one list does without, then look at all lists once. If nothing more is
 * broken, each of them could have been dropped by itself, too, as more waits never break more. */
static enum err_code drop_needless(const struct filling *x, int n, const struct filled *filled)
{
	struct plan *p = x->plan;
	int had = p->waits.n, left;
	struct wait *waits = arena_copy(x->a, p->waits.v, (size_t)had, sizeof(*waits));

	TRY(drop_each(x, n, filled, true));
	if (p->waits.n == had)
		return OK;
	TRY(count_breaches(x, NONE, false, filled->breaches, &left));
	if (left <= filled->breaches)
		return OK;
	memcpy(p->waits.v, waits, (size_t)had * sizeof(*waits));
	p->waits.n = had;
	return drop_each(x, n, filled, false);
}

/* Is every sTask there exactly once, on a unit that can run it? */
static bool is_complete(const struct plan *p, struct arena *a)
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
	struct filled filled;

	*added = 0;
	if (!is_complete(p, &p->arena))
		return OK;
	TRY(add_waits(&x, true, &filled));
	TRY(add_waits(&x, false, &filled));
	if (!filled.breaches)
		TRY(drop_needless(&x, had, &filled));
	*added = p->waits.n - had;
	return OK;
}

enum err_code plan_adapt_waits(struct plan *p, struct err *e)
{
	const struct filling x = { p, &p->arena, false, NULL, e };
	int had = p->waits.n, added;
	struct wait *waits = arena_copy(&p->arena, p->waits.v, (size_t)had, sizeof(*waits));
	struct filled filled;

	if (!is_complete(p, &p->arena))
		return OK;
	VEC_FILTER(&p->waits, i, !p->waits.v[i].added);
	if (p->waits.n < had) {
		int stated = p->waits.n;

		TRY(add_waits(&x, true, &filled));
		TRY(add_waits(&x, false, &filled));
		if (!filled.breaches)
			return drop_needless(&x, stated, &filled);
		p->waits.v = waits;
		p->waits.n = p->waits.cap = had;
	}
	return plan_fill_waits(p, NULL, &added, e);
}

/* ---- after a change of the order ------------------------------------------------------- */

/* Is the wait only for free slots? */
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

/* Add the waits that are needed, and take out those of them that are needless. *breaches: how many are left; *old: the
 * number of waits that were there before. */
static enum err_code refill(const struct filling *x, int *old, int *breaches)
{
	struct plan *p = x->plan;
	struct filled filled;

	for (int again = 0; again < 2; again++) {
		if (again)		/* the lanes wait for each other for ever */
			VEC_FILTER(&p->waits, i, !is_for_slots(p, &p->waits.v[i]));
		*old = p->waits.n;
		TRY(add_waits(x, true, &filled));
		TRY(add_waits(x, false, &filled));
		if (filled.breaches != INT32_MAX)
			break;
	}
	*breaches = filled.breaches;
	return filled.breaches == INT32_MAX ? OK : drop_needless(x, *old, &filled);
}

/* Drop those of the first n waits, which were there before the change, that were needed then and are no more. */
static enum err_code drop_idle(const struct filling *x, const struct plan *was, int n, int breaches)
{
	struct plan *p = x->plan, baseline = *was;	/* with waits of its own; its arena is not used */
	const struct filling before = { &baseline, x->a, false, x->stop, x->e };
	int had;

	baseline.waits.v = arena_copy(x->a, was->waits.v, (size_t)was->waits.n, sizeof(struct wait));
	baseline.waits.cap = was->waits.n;
	TRY(count_breaches(&before, NONE, false, INT32_MAX, &had));
	for (int i = 0; i < n;) {
		struct wait w = p->waits.v[i];
		int then = plan_find_wait(&baseline, &w);
		bool idle = false, needless = true;

		if (is_open(&w) && then != NONE)
			TRY(is_needless(x, i, breaches, false, &idle));
		if (idle)
			TRY(is_needless(&before, then, had, false, &needless));
		if (!needless) {
			plan_drop_wait(p, &w);
			n--;
		} else {
			i++;
		}
	}
	return OK;
}

/* Let the waits that were there come first, in the order and with the source locations that they had. */
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

enum err_code plan_repair_waits(struct plan *p, const struct plan *was, const int *tasks, int n, bool *kept,
	const struct stop *stop, struct err *e)
{
	const struct filling x = { p, &p->arena, true, stop, e };
	int had = p->waits.n, old, breaches, nversions = p->graph->buffers.n;
	struct wait *waits = arena_copy(&p->arena, p->waits.v, (size_t)had, sizeof(*waits));
	int *versions = arena_copy(&p->arena, p->versions, (size_t)nversions, sizeof(*versions));

	if (kept)
		*kept = false;
	if (!is_complete(p, &p->arena))
		return OK;
	VEC_FILTER(&p->waits, i, !is_open(&p->waits.v[i]) ||
		!(ints_hold(tasks, n, p->waits.v[i].task) || ints_hold(tasks, n, p->waits.v[i].on)));
	TRY(refill(&x, &old, &breaches));
	if (breaches == INT32_MAX) {
		memcpy(p->versions, versions, (size_t)nversions * sizeof(int));
		p->waits.v = waits;
		p->waits.n = p->waits.cap = had;
		return OK;
	}
	if (was && is_complete(was, &p->arena))
		TRY(drop_idle(&x, was, old, breaches));
	restore_order(p, waits, had);
	if (kept)
		*kept = !breaches;
	return OK;
}

/* ---- notes ---------------------------------------------------------------------------- */

/* Is it a dependence for a value of the same iteration, which is kept by completion? */
static bool is_for_value(const struct edge *e)
{
	return e->kind == EDGE_FLOW && !e->distance && !e->reuse && !e->chain;
}

/* An sTask that `to` needs a value of, in the same iteration, and that needs one of `from` itself or by others; NONE. */
static int between(const struct graph *g, int from, int to, struct arena *a)
{
	bool *behind = ARENA_ARRAY(a, g->tasks.n, bool);	/* `from` */
	bool more = true;

	behind[from] = true;
	while (more) {
		more = false;
		for (int i = 0; i < g->edges.n; i++) {
			const struct edge *e = &g->edges.v[i];

			if (!is_for_value(e) || !behind[e->from] || behind[e->to])
				continue;
			behind[e->to] = more = true;
		}
	}
	for (int i = g->first_in[to]; i != NONE; i = g->next_in.v[i])
		if (g->edges.v[i].from != from && behind[g->edges.v[i].from] && is_for_value(&g->edges.v[i]))
			return g->edges.v[i].from;
	return NONE;
}

/* Has the wait a dependence of its own that is not for a value of the same iteration? */
static bool says_more(const struct graph *g, const struct wait *w)
{
	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i])
		if (g->edges.v[i].from == w->on && !is_for_value(&g->edges.v[i]))
			return true;
	return false;
}

/* Does an entry's instance of iteration s - distance stand before that of iteration s of another one on the lane? */
static bool stands_before(const struct plan *p, int from, int to, int distance)
{
	int ahead = p->entries.v[to].at - distance - p->entries.v[from].at;

	return ahead < 0 || (ahead == 0 && from < to);
}

/* Is what the wait asks for complete by the order of the lane alone? So it is if both sTasks are on one lane, the other one
 * is on a unit that the lane itself works on, and the instance asked for stands before. */
static bool is_kept_by_order(const struct plan *p, const struct wait *w)
{
	const struct graph *g = p->graph;
	int to = plan_entry_of(p, w->task), from = plan_entry_of(p, w->on);
	bool any = false;
	const struct entry *t, *o;

	if (!is_open(w) || to == NONE || from == NONE)
		return false;
	t = &p->entries.v[to];
	o = &p->entries.v[from];
	if (t->lane != o->lane || p->lanes.v[t->lane].replicas > 1 ||
	    p->device->seu[o->seu].async || g->tasks.v[w->task].loop != g->tasks.v[w->on].loop ||
	    g->tasks.v[w->task].phase != g->tasks.v[w->on].phase)
		return false;
	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *d = &g->edges.v[i];

		if (d->from != w->on)
			continue;
		if (d->loop != g->tasks.v[w->task].loop || !stands_before(p, from, to, edge_distance(p, d)))
			return false;
		any = true;
	}
	return any || stands_before(p, from, to, 0);
}

/* Notes a wait that asks for a nearer iteration than another one of the same two sTasks, which then does nothing; not if
 * copies are waited for, which may complete in another order. */
static void note_nearer(const struct plan *p, const struct wait *w, struct arena *a, struct problems *out)
{
	const struct stask *task = &p->graph->tasks.v[w->task], *on = &p->graph->tasks.v[w->on];
	int farther = NONE;

	if (w->distance == DISTANCE_AUTO || task->loop != on->loop || on->kind == TASK_LOAD || on->kind == TASK_STORE)
		return;
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *o = &p->waits.v[i];

		if (o != w && o->task == w->task && o->on == w->on && o->when == w->when)
			farther = wait_distance(p, o) > farther ? wait_distance(p, o) : farther;
	}
	if (farther <= w->distance)
		return;
	VEC_PUSH(a, &out->notes, ((struct problem){ .code = NOTE_REDUNDANT_WAIT, .task = w->task, .other = w->on,
		.edge = NONE, .loc = w->loc, .message = arena_strf(a, "'%s' waits for '%s' of %d iteration%s before and of %d "
		"before: the first holds, so that '%s' comes no further ahead, and the second does nothing", task->name,
		on->name, w->distance, w->distance == 1 ? "" : "s", farther, task->name),
		.hint = arena_strf(a, "plan:unwait(\"%s\", \"%s\"); plan:wait(\"%s\", {\"%s\"})", task->name, on->name, task->name,
		on->name) }));
}

void plan_note_waits(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		const char *task = g->tasks.v[w->task].name, *on = g->tasks.v[w->on].name;

		note_nearer(p, w, a, out);
		if (is_kept_by_order(p, w)) {
			VEC_PUSH(a, &out->notes, ((struct problem){ .code = NOTE_REDUNDANT_WAIT, .task = w->task, .other = w->on,
				.edge = NONE, .loc = w->loc, .message = arena_strf(a, "'%s' need not wait for '%s': lane '%s' executes "
				"'%s' before it, and goes on when that is complete", task, on,
				p->lanes.v[p->entries.v[plan_entry_of(p, w->on)].lane].name, on),
				.hint = arena_strf(a, "plan:unwait(\"%s\", \"%s\")", task, on) }));
			continue;
		}
		int by = is_open(w) && g->tasks.v[w->task].loop == g->tasks.v[w->on].loop && !says_more(g, w) ?
			between(g, w->on, w->task, a) : NONE;

		if (by == NONE)
			continue;
		VEC_PUSH(a, &out->notes, ((struct problem){ .code = NOTE_REDUNDANT_WAIT, .task = w->task, .other = w->on,
			.edge = NONE, .loc = w->loc, .message = arena_strf(a, "'%s' need not wait for '%s': it comes after "
			"'%s', which comes after that", task, on, g->tasks.v[by].name),
			.hint = arena_strf(a, "plan:unwait(\"%s\", \"%s\")", task, on) }));
	}
}

void plan_note_lanes(const struct plan *p, struct arena *a, struct problems *out)
{
	for (int i = 0; i < p->lanes.n && p->entries.n; i++)
		if (!lane_is_used(p, i))
			VEC_PUSH(a, &out->notes, ((struct problem){ .code = NOTE_UNUSED_LANE, .task = NONE, .other = NONE,
				.edge = NONE, .loc = p->lanes.v[i].loc, .message = arena_strf(a, "lane '%s' has no sTasks, so that "
				"the kernel has no threads for it; lane= of plan:append or plan:move gives it some", p->lanes.v[i].name),
				.hint = arena_strf(a, "plan:lane(\"%s\", false)", p->lanes.v[i].name) }));
}
