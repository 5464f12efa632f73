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
		for (int l = mine; l != loop; l = g->program->loops.v[l].parent)
			f.once |= g->trips[l].least == 0;
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

static int first_position(const struct kernel *k, int loop)
{
	const struct graph *g = k->plan->graph;
	int first = INT32_MAX;

	for (int i = 0; i < g->tasks.n; i++)
		if (program_loop_within(g->program, g->tasks.v[i].loop, loop) &&
		    g->tasks.v[i].position < first)
			first = g->tasks.v[i].position;
	return first;
}

/* Before the first entry that the program has after it, like other loops (order.h). */
static void insert_loop(struct kernel *k, struct klane *l, struct kregion *v, int loop, int at)
{
	int place = 0;

	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop && v->steps.v[i].id == loop)
			return;
	while (place < v->steps.n && first_position(k, loop) >= (v->steps.v[place].is_loop ?
	       first_position(k, v->steps.v[place].id) : k->plan->graph->tasks.v[l->entries.v[
	       v->steps.v[place].id].task].position))
		place++;
	VEC_PUSH(&k->arena, &v->steps, (struct kstep){ 0 });
	for (int i = v->steps.n - 1; i > place; i--)
		v->steps.v[i] = v->steps.v[i - 1];
	v->steps.v[place] = (struct kstep){ true, loop, at };
}

void lower_passed_loops(struct kernel *k, struct klane *l, int loop, int at)
{
	for (int i = 0; i < l->entries.n; i++) {
		const struct kentry *x = &l->entries.v[i];

		for (int w = 0; w < x->waits.n; w++)
			if (x->waits.v[w].which == AWAIT_RUN && loop_of(k, x->task) == loop)
				insert_loop(k, l, &l->regions[loop + 1], x->waits.v[w].loop, at);
	}
}
