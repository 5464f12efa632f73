/* Waits that are seen by flags: which instance of the awaited sTask each is for. */
#include "lower/lower.h"

static int loop_of(const struct kernel *k, int task)
{
	return k->plan->graph->tasks.v[task].loop;
}

/* `d` iterations of region `loop` back. life: only within a run of that region. */
static enum err_code add_wait(struct kernel *k, struct kentry *x, int wait, int loop, int d,
	bool life, struct err *e)
{
	const struct wait *w = &k->plan->waits.v[wait];
	const struct graph *g = k->plan->graph;
	int mine = loop_of(k, w->task), theirs = loop_of(k, w->on);
	struct flag_wait f = { .wait = wait, .loop = loop, .back = d,
		.flag = w->when == WAIT_ISSUED ? k->issue_flag_of[w->on] : k->flag_of[w->on] };

	if (mine == loop && theirs == loop) {
		f.which = life && d > 0 && loop != NONE ? AWAIT_WITHIN : AWAIT_BACK;
	} else if (theirs == loop && d == 0) {
		f.which = AWAIT_AROUND;
	} else if (mine == loop && d <= 1 && g->program->loops.v[theirs].parent == loop) {
		f.which = AWAIT_RUN;
		f.loop = theirs;
	} else {
		return err_set(e, ERR_ILLEGAL, w->loc, "'%s' waits for '%s' over loops in a way that "
			"is not lowered yet", g->tasks.v[w->task].name, g->tasks.v[w->on].name);
	}
	VEC_PUSH(&k->arena, &x->waits, f);
	return OK;
}

enum err_code lower_flag_waits(struct kernel *k, struct kentry *x, int wait, struct err *e)
{
	const struct wait *w = &k->plan->waits.v[wait];
	const struct graph *g = k->plan->graph;
	bool served = false;

	for (int i = 0; i < g->edges.n && w->distance == DISTANCE_AUTO; i++) {
		const struct edge *d = &g->edges.v[i];

		if (d->from != w->on || d->to != w->task)
			continue;
		if (d->reuse && d->kind == EDGE_OUTPUT && served)
			continue;	/* the edge beside it says as much */
		served = true;
		TRY(add_wait(k, x, wait, d->loop, edge_distance(k->plan, d), !d->reuse, e));
	}
	if (served)
		return OK;
	return add_wait(k, x, wait, graph_common_loop(g, w->on, w->task),
		w->distance == DISTANCE_AUTO ? 0 : w->distance, false, e);
}
