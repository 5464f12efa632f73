/* What the relation of one list shows. */
#include "plan/findings.h"

#include "plan/events.h"
#include "plan/fit.h"

struct findings findings_new(const struct plan *p, struct arena *a, const struct stop *stop, struct err *e)
{
	return (struct findings){ .plan = p, .stop = stop, .e = e, .most = INT32_MAX,
		.edge = ARENA_ARRAY(a, p->graph->edges.n, struct breach) };
}

static void note_cycle(struct findings *f, const struct relation *r)
{
	if (f->ncycle)
		return;
	f->any = true;
	for (int i = 0; i < r->ncycle && f->ncycle < CYCLE_SHOWN; i++)
		f->cycle[f->ncycle++] = r->inst[r->cycle[i]].task;
}

static bool has_wait(const struct plan *p, int task, int on)
{
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == task && p->waits.v[i].on == on)
			return true;
	return false;
}

/* Is `to` ordered after `from` in every execution? On a breach, is the opposite? */
static void check_pair(struct findings *f, const struct relation *r, int edge, int from, int to)
{
	const struct edge *e = &r->plan->graph->edges.v[edge];
	struct breach *b = &f->edge[edge];

	if (relation_before(r, from, AT_END, to, e->chain ? AT_START : AT_ISSUE))
		return;
	b->found = f->any = true;
	f->broken++;
	b->from = r->inst[from].seq;
	b->to = r->inst[to].seq;
	if (relation_before(r, to, AT_ISSUE, from, AT_END))
		b->code = e->reuse ? PROBLEM_VERSIONS : PROBLEM_OFFSET;
	else
		b->code = has_wait(r->plan, e->to, e->from) ? PROBLEM_MISPLACED_WAIT : PROBLEM_MISSING_WAIT;
}

static void check_edge(struct findings *f, const struct relation *r, int edge)
{
	const struct graph *g = r->plan->graph;
	const struct edge *e = &g->edges.v[edge];
	int64_t n = walk_count(r->walk, g->tasks.v[e->to].loop);
	struct span before = { 0 };
	int replica = NONE;

	for (int64_t s = 0; s < n && !f->edge[edge].found; s++) {
		int to = relation_instance(r, e->to, s);
		struct span now;
		int64_t x;

		walk_edge_span(r->walk, r->plan, e, s, &now.first, &now.last);
		x = now.first;
		/* what is kept for one instance is for the next of the same lane replica */
		if (r->inst[to].lane_replica == replica && before.first <= x && x < before.last)
			x = before.last;
		for (; x < now.last && !f->edge[edge].found; x++)
			check_pair(f, r, edge, relation_instance(r, e->from, x), to);
		before = now;
		replica = r->inst[to].lane_replica;
	}
}

static bool is_read(const struct edge *e)
{
	return e->kind == EDGE_FLOW && !e->reuse;
}

void findings_add_list(struct findings *f, const struct walk *w, struct arena *a, struct usage *u)
{
	const struct graph *g = f->plan->graph;
	struct arena_mark mark = arena_mark(a);
	struct relation r;

	relation_build(a, f->plan, w, f->needed, &r);
	if (r.ncycle) {
		note_cycle(f, &r);
	} else {
		for (int i = 0; i < g->edges.n && f->broken <= f->most; i++)
			if (g->tasks.v[g->edges.v[i].to].phase == w->phase && !f->edge[i].found &&
			    (!f->reads || is_read(&g->edges.v[i])))
				check_edge(f, &r, i);
		/* without its waits, a plan holds values for ever */
		if (u && !f->any)
			fit_registers(&r, a, u);
	}
	arena_reset(a, mark);
}
