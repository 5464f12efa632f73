/* A plan's order first (findings.h), then what it asks of an EU (fit.h). */
#include "plan/check.h"

#include "plan/cluster.h"
#include "plan/keep.h"
#include "plan/fit.h"
#include "plan/problem.h"

/* Adds the breaches of the dependences of a buffer. A wait until the old value is read also keeps that it was written
 * before; so writes after writes come last, for those who repair one after the other. */
static void add_breaches(const struct findings *f, int buffer, struct arena *a, struct problems *out)
{
	const struct edge *edges = f->plan->graph->edges.v;

	for (int last = 0; last < 2; last++)
		for (int i = 0; i < f->plan->graph->edges.n; i++)
			if (f->edge[i].found && edges[i].buffer == buffer && (edges[i].kind == EDGE_OUTPUT) == last)
				problem_add_breach(f, i, a, out);
}

/* kept: nothing is wrong with the order, so one list is enough, of which the usage is read off. */
static enum err_code check_order(const struct plan *p, bool kept, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	const struct graph *g = p->graph;
	struct findings f = findings_new(p, a, stop, e);
	struct usage u = { 0 };

	*out = (struct problems){ 0 };
	problem_add_entries(p, a, out);
	if (!out->v.n) {
		for (int phase = 0; phase < g->program->phases.n && !f.ncycle && !f.code && (usage || !kept); phase++)
			findings_add_phase(&f, phase, kept, a, usage ? &u : NULL);
		if (f.code)
			return f.code;
		if (f.ncycle)
			problem_add_deadlock(&f, a, out);
		for (int b = 0; b < g->buffers.n && !f.ncycle; b++)
			add_breaches(&f, b, a, out);
		cluster_check(p, a, out);
		keep_check(p, a, out);
		problem_add_aliases(p, a, out);
		problem_add_products(p, a, out);
		problem_add_columns(p, a, out);
	}
	if (usage)
		*usage = u;
	return OK;
}

static enum err_code check(const struct plan *p, bool kept, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	struct usage u;

	TRY(check_order(p, kept, a, stop, out, &u, e));
	if (p->lanes.n && !problems_have(out, PROBLEM_DUPLICATE_TASK)) {
		fit_memory(p, a, out, &u);
		fit_register_file(p, a, out, &u);
	}
	if (usage)
		*usage = u;
	return OK;
}

enum err_code plan_check_order(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	return check_order(p, false, a, stop, out, usage, e);
}

enum err_code plan_check(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	return check(p, false, a, stop, out, usage, e);
}

enum err_code plan_check_kept(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	return check(p, true, a, stop, out, usage, e);
}
