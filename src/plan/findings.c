/* What the relation of one list shows. */
#include "plan/findings.h"

#include "plan/events.h"
#include "plan/fit.h"

struct findings findings_new(const struct plan *p, struct arena *a, const struct stop *stop, struct err *e)
{
	return (struct findings){ .plan = p, .stop = stop, .e = e, .most = INT32_MAX,
		.edge = ARENA_ARRAY(a, p->graph->edges.n, struct breach) };
}

/* Note a breach if `to` is not ordered after `from` in every execution. */
static void check_pair(struct findings *f, const struct relation *r, int edge, int from, int to)
{
	const struct edge *e = &r->plan->graph->edges.v[edge];
	struct breach *b = &f->edge[edge];

	bool waits = false;

	if (relation_before(r, from, AT_END, to, e->chain ? AT_START : AT_ISSUE))
		return;
	b->found = f->any = true;
	f->broken++;
	b->from = r->inst[from].seq;
	b->to = r->inst[to].seq;
	for (int i = 0; i < r->plan->waits.n; i++)
		waits |= r->plan->waits.v[i].task == e->to && r->plan->waits.v[i].on == e->from;
	if (relation_before(r, to, AT_ISSUE, from, AT_END))
		b->code = e->reuse ? PROBLEM_VERSIONS : PROBLEM_OFFSET;
	else
		b->code = waits ? PROBLEM_MISPLACED_WAIT : PROBLEM_MISSING_WAIT;
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

		now = walk_edge_span(r->walk, r->plan, e, s);
		x = now.first;
		/* what is complete before one instance is so before the next one of the same lane replica */
		if (r->inst[to].lane_replica == replica && before.first <= x && x < before.last)
			x = before.last;
		for (; x < now.last && !f->edge[edge].found; x++)
			check_pair(f, r, edge, relation_instance(r, e->from, x), to);
		before = now;
		replica = r->inst[to].lane_replica;
	}
}

/* Does the list at hand show a breach of an edge of which there is one already? */
static bool shows_again(struct findings *f, const struct relation *r, int edge)
{
	const struct breach first = f->edge[edge];
	int broken = f->broken;
	bool again;

	f->edge[edge].found = false;
	check_edge(f, r, edge);
	again = f->edge[edge].found;
	f->edge[edge] = first;
	f->broken = broken;
	return again;
}

bool findings_add_list(struct findings *f, const struct walk *w, bool *sound, struct arena *a, struct usage *u)
{
	const struct graph *g = f->plan->graph;
	struct arena_mark mark = arena_mark(a);
	bool all_sound = true;
	struct relation r;

	relation_build(a, f->plan, w, f->needed, &r);
	if (r.ncycle) {
		f->any = true;
		all_sound = false;
		for (int i = f->ncycle ? r.ncycle : 0; i < r.ncycle && f->ncycle < CYCLE_SHOWN; i++)
			f->cycle[f->ncycle++] = r.inst[r.cycle[i]].task;
	} else {
		for (int i = 0; i < g->edges.n && f->broken <= f->most; i++) {
			const struct edge *e = &g->edges.v[i];

			if (g->tasks.v[e->to].phase != w->phase || (sound && sound[i]) ||
			    (f->reads && (e->kind != EDGE_FLOW || e->reuse)))
				continue;
			if (!f->edge[i].found) {
				check_edge(f, &r, i);
				all_sound &= !f->edge[i].found;
				if (sound)
					sound[i] = !f->edge[i].found;
			} else if (f->sound && all_sound) {
				all_sound = !shows_again(f, &r, i);
			}
		}
		/* without its waits, a plan holds values for ever */
		if (u && !f->any)
			fit_registers(&r, a, u);
	}
	arena_reset(a, mark);
	return all_sound;
}
