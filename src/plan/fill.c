/* plan_fill_waits: add the wait of the first breach until there is none, then take out what
 * turns out needless. */
#include "plan/check.h"

#include <string.h>

#include "plan/problem.h"

/* Breached edges, in the order in which waits are best added: what is read first,
 * then what is overwritten, then reuse. */
static int first_breach(const struct findings *f)
{
	const struct graph *g = f->plan->graph;

	for (int rank = 0; rank < 3; rank++) {
		for (int i = 0; i < g->edges.n; i++) {
			const struct edge *e = &g->edges.v[i];
			int r = e->reuse ? 2 : e->kind != EDGE_FLOW;

			if (r == rank && f->edge[i].found &&
			    (f->edge[i].code == PROBLEM_MISSING_WAIT ||
			     f->edge[i].code == PROBLEM_MISPLACED_WAIT))
				return i;
		}
	}
	return NONE;
}

/* What waits are added for. */
struct filling {
	struct plan *plan;
	const struct stop *stop;
	struct err *e;
};

/* Breaches and deadlocks, if any, in *f. */
static enum err_code look(const struct filling *x, bool quick, struct findings *f)
{
	struct arena *a = &x->plan->arena;

	*f = findings_new(x->plan, a, x->stop, x->e);
	for (int phase = 0; phase < x->plan->graph->program->phases.n && !f->code; phase++)
		findings_add_phase(f, phase, quick, a, NULL);
	return f->code;
}

static bool has_auto_wait(const struct plan *p, int task, int on)
{
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == task && p->waits.v[i].on == on &&
		    p->waits.v[i].distance == DISTANCE_AUTO &&
		    p->waits.v[i].when == WAIT_COMPLETE)
			return true;
	return false;
}

/* Add waits until nothing is missing; *added grows by how many. */
static enum err_code add_waits(const struct filling *x, bool quick, int *added)
{
	struct plan *p = x->plan;

	for (;;) {
		struct arena_mark mark = arena_mark(&p->arena);
		struct wait w = { .distance = DISTANCE_AUTO, .when = WAIT_COMPLETE };
		struct findings f;
		int edge;

		TRY(look(x, quick, &f));
		edge = f.any ? first_breach(&f) : NONE;
		if (edge != NONE) {
			w.task = p->graph->edges.v[edge].to;
			w.on = p->graph->edges.v[edge].from;
			w.loc = p->entries.v[plan_entry_of(p, w.task)].loc;
		}
		arena_reset(&p->arena, mark);
		if (edge == NONE || has_auto_wait(p, w.task, w.on))
			return OK;
		VEC_PUSH(&p->arena, &p->waits, w);
		++*added;
	}
}

/* Drop those of the last n waits that the others make unnecessary. */
static enum err_code drop_needless(const struct filling *x, int n, int *added)
{
	struct plan *p = x->plan;

	for (int i = p->waits.n - n; i < p->waits.n;) {
		struct arena_mark mark = arena_mark(&p->arena);
		struct wait w = p->waits.v[i];
		struct findings f;

		memmove(&p->waits.v[i], &p->waits.v[i + 1],
			(size_t)(p->waits.n - i - 1) * sizeof(w));
		p->waits.n--;
		TRY(look(x, false, &f));
		arena_reset(&p->arena, mark);
		if (!f.any) {
			--*added;
			continue;
		}
		memmove(&p->waits.v[i + 1], &p->waits.v[i],
			(size_t)(p->waits.n - i) * sizeof(w));
		p->waits.v[i++] = w;
		p->waits.n++;
	}
	return OK;
}

enum err_code plan_fill_waits(struct plan *p, const struct stop *stop, int *added, struct err *e)
{
	const struct filling x = { p, stop, e };
	struct arena_mark mark = arena_mark(&p->arena);
	struct problems problems = { 0 };
	struct findings f;

	*added = 0;
	problem_add_entries(p, &p->arena, &problems);
	arena_reset(&p->arena, mark);
	if (problems.v.n)
		return OK;
	TRY(add_waits(&x, true, added));
	TRY(add_waits(&x, false, added));
	mark = arena_mark(&p->arena);
	TRY(look(&x, false, &f));
	arena_reset(&p->arena, mark);
	return f.any ? OK : drop_needless(&x, *added, added);
}
