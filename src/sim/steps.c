/* Makes steps of entries. The waits follow the rule of walk_wait_spans (plan/order.h). */
#include "sim/steps.h"

#include <math.h>

/* The largest cost, which only a device with a rate near 0 has; sums of it stay in range. */
#define TICKS_MAX ((int64_t)1 << 44)

int64_t cycles_to_ticks(double cycles)
{
	double ticks = cycles * TICKS + 0.5;

	if (!(ticks > 0))
		return 0;
	return ticks < (double)TICKS_MAX ? (int64_t)ticks : TICKS_MAX;
}

static struct track *track_of(struct steps *s, int on, int region, enum wait_when when, int group)
{
	for (int i = 0; i < s->tracks.n; i++) {
		struct track *t = s->tracks.v[i];

		if (t->on == on && t->region == region && t->when == when && t->group == group)
			return t;
	}
	struct track *t = ARENA_NEW(s->a, struct track);
	*t = (struct track){ .on = on, .region = region, .when = when, .group = group };
	VEC_PUSH(s->a, &s->tracks, t);
	return t;
}

/* Set how long the lane waits until it sees a signal, and what the wait costs it. A synchronous sTask of
 * the same lane is complete when the lane continues, which costs nothing. */
static void set_source_cost(const struct eu_run *r, const struct wait *w, struct source *s)
{
	const struct plan *p = r->plan;
	int to = plan_entry_of(p, w->task), on = plan_entry_of(p, w->on);
	const struct vdevice *d = p->device;

	if (on == NONE)
		return;
	if (p->entries.v[to].lane != p->entries.v[on].lane)
		s->delay = cycles_to_ticks(w->when == WAIT_ISSUED ? d->issue_order_latency : d->flag_latency);
	else if (!d->seu[p->entries.v[on].seu].async || w->when == WAIT_ISSUED)
		return;
	s->cost = cycles_to_ticks(r->price ? r->price->wait[w - p->waits.v] : d->wait_cost);
}

static bool same_lane(const struct plan *p, int a, int b)
{
	int ea = plan_entry_of(p, a), eb = plan_entry_of(p, b);

	return ea != NONE && eb != NONE && p->entries.v[ea].lane == p->entries.v[eb].lane;
}

/* A warpgroup waits for its own part of an sTask of its lane, and for all parts of another lane's sTask. */
static void add_source(struct steps *s, struct step *step, const struct wait *w, const struct edge *edge, int region,
	int64_t distance)
{
	const struct plan *p = s->run->plan;
	const struct graph *g = p->graph;
	bool is_own = same_lane(p, w->on, w->task);
	/* replicas of a lane count their own tiles */
	bool by_span = is_own && p->lanes.v[p->entries.v[plan_entry_of(p, w->on)].lane].replicas > 1;
	struct source x = { .wait = w, .edge = edge, .key = -1, .distance = distance, .by_span = by_span,
		.track = track_of(s, w->on, region, w->when, step->groups > 1 && is_own ? step->group : NONE),
		.life_region = NO_LIFE, .direct = g->tasks.v[w->task].loop == region };

	if (edge && !edge->reuse && edge->distance > 0)
		x.life_region = g->buffers.v[edge->buffer].loop;
	for (int i = 0; i < step->sources.n; i++) {
		const struct source *o = &step->sources.v[i];

		if (o->wait == w && o->track == x.track && o->distance == distance && o->life_region == x.life_region)
			return;
	}
	set_source_cost(s->run, w, &x);
	VEC_PUSH(s->a, &step->sources, x);
}

/* The rule of walk_wait_spans, once for all instances. */
static void find_sources(struct steps *s, struct step *step)
{
	const struct plan *p = s->run->plan;
	const struct graph *g = p->graph;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		bool served = false;

		if (w->task != step->task || g->tasks.v[w->on].phase != g->tasks.v[step->task].phase)
			continue;
		if (step->meeting && !same_lane(p, w->on, w->task))
			continue;		/* it holds by the lanes' meetings */
		for (int k = 0; k < g->edges.n && w->distance == DISTANCE_AUTO; k++) {
			const struct edge *e = &g->edges.v[k];

			if (e->from != w->on || e->to != step->task)
				continue;
			served = true;
			add_source(s, step, w, e, e->loop, edge_distance(p, e));
		}
		if (!served)
			add_source(s, step, w, NULL, graph_common_loop(g, w->on, step->task),
				w->distance == DISTANCE_AUTO ? 0 : w->distance);
	}
}

static void fill_step(struct steps *s, int entry, int groups, int group, struct step *step)
{
	const struct eu_run *r = s->run;
	const struct entry *en = &r->plan->entries.v[entry];
	const struct seu *seu = &r->plan->device->seu[en->seu];
	const struct entry_cost c = price_group(&r->costs[entry], seu);

	*step = (struct step){ .task = en->task, .seu = en->seu, .groups = groups, .group = group,
		.loop = r->plan->graph->tasks.v[en->task].loop, .is_async = seu->async,
		.is_shared = seu->kind == SEU_VECTOR && !seu->async,
		.is_product = seu->kind == SEU_MATRIX && seu->async,
		.is_watched = en->task == r->watch && group == groups - 1,
		.issue = seu->async ? cycles_to_ticks(c.cost.issue) : 0, .busy = cycles_to_ticks(c.cost.busy),
		.l2 = cycles_to_ticks(c.cost.l2), .global = cycles_to_ticks(c.cost.global),
		.latency = cycles_to_ticks(c.cost.latency), .handover = cycles_to_ticks(c.handover),
		.handover_loop = c.handover_loop, .handover_last = -1, .tile = -1, .before = cycles_to_ticks(c.before),
		.after = cycles_to_ticks(c.after), .stored_to_shared = c.stored_to_shared,
		.drain_cost = cycles_to_ticks(c.drain_cost), .drain = c.drain, .drain_after = c.drain_after };
	if (step->is_product && c.steps > 0)
		step->parts = (int)ceil(c.steps * PARTS_AHEAD / seu->depth);
	step->alone = max_i64(cycles_to_ticks(c.cost.alone), step->busy);
	if (r->price && r->price->meetings) {
		step->meeting = &r->price->meetings->of[entry];
		step->counted = seu->async && r->plan->graph->tasks.v[en->task].kind == TASK_LOAD;
	}
	find_sources(s, step);
}

/* Register the step with the tracks that it reads and writes, so that they keep what it may still access. */
static void register_tracks(struct steps *s, struct step *step)
{
	step->posts = ARENA_ARRAY(s->a, s->tracks.n, struct post);
	for (int i = 0; i < s->tracks.n; i++) {
		struct track *t = s->tracks.v[i];

		if (t->on != step->task || (t->group != NONE && t->group != step->group))
			continue;
		struct post *post = &step->posts[step->nposts++];
		*post = (struct post){ .track = t, .last = -1, .direct = t->region == step->loop };
		VEC_PUSH(s->a, &t->users, &post->key);
	}
	for (int i = 0; i < step->sources.n; i++)
		VEC_PUSH(s->a, &step->sources.v[i].track->users, &step->sources.v[i].key);
}

/* A replica begins a tile when the one that has the tile before has issued its sTask `on`, and so has seen all flags of
 * that tile. */
static void add_handover(struct steps *s, struct step *step, int on)
{
	const struct plan *p = s->run->plan;
	struct wait *w = ARENA_NEW(s->a, struct wait);
	struct source x = { .wait = w, .key = -1, .distance = 1, .life_region = NO_LIFE, .direct = step->loop == NONE };

	*w = (struct wait){ .task = step->task, .on = on, .distance = 1, .when = WAIT_ISSUED };
	x.track = track_of(s, on, NONE, w->when, NONE);
	x.delay = cycles_to_ticks(p->device->flag_latency);
	VEC_PUSH(s->a, &step->sources, x);
}

static void build_lane(struct steps *s, struct lane_run *l, int lane, int replica, int groups, int group)
{
	const struct plan *p = s->run->plan;
	const struct lane_price *price = s->run->price ? &s->run->price->lanes[lane] : NULL;

	*l = (struct lane_run){ .signals_late = price != NULL, .lane = lane, .replica = replica, .tile = -1,
		.tile_cost = cycles_to_ticks(p->device->tile_overhead + (price ? price->tile : 0)),
		.number = cycles_to_ticks(price ? price->number : 0), .own = price ? price->own : 0,
		.asks = cycles_to_ticks(price ? price->asks : 0),
		.end_cost = cycles_to_ticks(price ? price->end : 0), .tile_drain = price ? price->drain : NONE,
		.drained_task = NONE, .done = NONE, .must_complete = -1, .products = ARENA_ARRAY(s->a, PRODUCTS_KEPT, struct product),
		.capacity = PRODUCTS_KEPT, .cursor = cursor_new(s->a, p, s->run->walk, lane, replica),
		.step_of = ARENA_ARRAY(s->a, p->entries.n, struct step *) };
	l->steps = ARENA_ARRAY(s->a, p->entries.n, struct step);
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *en = &p->entries.v[i];

		if (en->lane != lane || p->graph->tasks.v[en->task].phase != s->run->walk->phase)
			continue;
		l->step_of[i] = &l->steps[l->nsteps++];
		fill_step(s, i, groups, group, l->step_of[i]);
		if (price && p->lanes.v[lane].replicas > 1 && price->handover != NONE)
			add_handover(s, l->step_of[i], price->handover);
	}
}

static int groups_of(const struct eu_run *r, int lane)
{
	return r->price ? (int)max_i64(r->price->lanes[lane].groups, 1) : 1;
}

void steps_release(struct lane_run *l)
{
	if (l->nsignaled < l->nproducts)
		return;
	for (int i = 0; i < l->nsteps; i++) {
		for (int k = 0; k < l->steps[i].sources.n; k++)
			l->steps[i].sources.v[k].key = NEVER;
		for (int k = 0; k < l->steps[i].nposts; k++)
			l->steps[i].posts[k].key = NEVER;
	}
}

enum err_code steps_build(struct arena *a, const struct eu_run *r, struct steps *out, struct err *e)
{
	const struct plan *p = r->plan;
	int n = 0;

	for (int i = 0; i < p->lanes.n; i++)
		n += p->lanes.v[i].replicas * groups_of(r, i);
	if (n > RUNS_MAX)
		return err_set(e, ERR_LIMIT, p->lanes.v[p->lanes.n - 1].loc,
			"the plan has %d lanes, counting replicas; an EU is simulated with at most %d", n, RUNS_MAX);
	*out = (struct steps){ .a = a, .run = r, .lanes = ARENA_ARRAY(a, n, struct lane_run) };
	for (int i = 0; i < p->lanes.n; i++)
		for (int replica = 0; replica < p->lanes.v[i].replicas; replica++)
			for (int group = 0; group < groups_of(r, i); group++)
				build_lane(out, &out->lanes[out->nlanes++], i, replica, groups_of(r, i), group);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < out->lanes[i].nsteps; k++)
			register_tracks(out, &out->lanes[i].steps[k]);
	return OK;
}
