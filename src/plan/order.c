#include "plan/order.h"

#include <string.h>

static const struct loop *loop_at(const struct graph *g, int loop)
{
	return &g->program->loops.v[loop];
}

/* Where the trip counts of a walk come from: one of these. */
struct trip_source {
	const int64_t *tiles;		/* the program's bounds, for these tiles */
	const int64_t *by_tile;		/* [loop * ntiles + tile] */
	const int16_t *by_step;		/* [loop * steps + iteration of the region around] */
	int steps;
};

/* Set the ranges of all axes in iteration s of `loop`: its tile and all loops around it. */
static void ranges_at(const struct walk *w, const int64_t *tiles, int loop, int64_t s, struct axis_ranges *at)
{
	const struct graph *g = w->graph;
	int chain[LOOP_DEPTH_MAX], n = 0;
	int64_t seq[LOOP_DEPTH_MAX];

	for (; loop != NONE; loop = loop_at(g, loop)->parent) {
		chain[n] = loop;
		seq[n++] = s;
		s = w->parent[loop][s];
	}
	ranges_set_tile(&g->extents, &g->grids[w->phase], tiles[s], at);
	while (n-- > 0) {
		int64_t outer = w->parent[chain[n]][seq[n]], first, last;

		visited_iterations(&g->extents, chain[n], at, &first, &last);
		ranges_set_iteration(&g->extents, chain[n], first + seq[n] - w->cum[chain[n]][outer], at);
	}
}

/* Iterations of a loop in iteration s of the region around it. */
static int64_t trips_in(const struct walk *w, const struct trip_source *x, int loop, int64_t s)
{
	const struct trips *trips = &w->graph->trips[loop];
	int parent = loop_at(w->graph, loop)->parent;
	struct axis_ranges at;
	int64_t first, last;

	if (x->by_step)
		return x->by_step[(int64_t)loop * x->steps + min_i64(s, x->steps - 1)];
	if (x->by_tile)
		return x->by_tile[(int64_t)loop * w->ntiles + walk_outer(w, parent, s, NONE)];
	if (trips->least == trips->most)
		return trips->least;
	ranges_at(w, x->tiles, parent, s, &at);
	visited_iterations(&w->graph->extents, loop, &at, &first, &last);
	return last - first;
}

static void walk_build(struct arena *a, struct walk *w, const struct graph *g, int phase, int ntiles,
	struct trip_source x)
{
	int nloops = g->program->loops.n;

	*w = (struct walk){ .graph = g, .phase = phase, .ntiles = ntiles, .cum = ARENA_ARRAY(a, nloops, int64_t *),
		.count = ARENA_ARRAY(a, nloops, int64_t), .parent = ARENA_ARRAY(a, nloops, int64_t *),
		.replicas = ARENA_ARRAY(a, g->edges.n, int) };
	for (int l = 0; l < nloops; l++) {	/* parents come before their children */
		int64_t parents;

		if (loop_at(g, l)->phase != phase)
			continue;
		parents = walk_count(w, loop_at(g, l)->parent);
		w->cum[l] = ARENA_ARRAY(a, parents + 1, int64_t);
		for (int64_t s = 0; s < parents; s++)
			w->cum[l][s + 1] = w->cum[l][s] + trips_in(w, &x, l, s);
		w->count[l] = w->cum[l][parents];
		w->parent[l] = ARENA_ARRAY(a, w->count[l], int64_t);
		for (int64_t s = 0; s < parents; s++)
			for (int64_t i = w->cum[l][s]; i < w->cum[l][s + 1]; i++)
				w->parent[l][i] = s;
	}
}

void walk_init(struct arena *a, struct walk *w, const struct graph *g, int phase, int ntiles, const int64_t *tiles)
{
	walk_build(a, w, g, phase, ntiles, (struct trip_source){ .tiles = tiles });
}

void walk_init_counts(struct arena *a, struct walk *w, const struct graph *g, int phase,
	int ntiles, const int64_t *trips)
{
	walk_build(a, w, g, phase, ntiles, (struct trip_source){ .by_tile = trips });
}

void walk_init_trips(struct arena *a, struct walk *w, const struct graph *g, int phase,
	int ntiles, int steps, const int16_t *trips)
{
	walk_build(a, w, g, phase, ntiles, (struct trip_source){ .by_step = trips, .steps = steps });
}

int64_t walk_count(const struct walk *w, int loop)
{
	return loop == NONE ? w->ntiles : w->count[loop];
}

int64_t walk_outer(const struct walk *w, int loop, int64_t s, int outer)
{
	for (; loop != outer; loop = loop_at(w->graph, loop)->parent)
		s = w->parent[loop][s];
	return s;
}

int64_t walk_inner(const struct walk *w, int outer, int64_t n, int loop)
{
	if (loop == outer)
		return n;
	return w->cum[loop][walk_inner(w, outer, n, loop_at(w->graph, loop)->parent)];
}

/* The replicas of the lane that both sTasks are on; 1 if they are on two. */
static int shared_replicas(const struct plan *p, int a, int b)
{
	bool any = false;
	int ea, eb;

	for (int i = 0; i < p->lanes.n && !any; i++)
		any = p->lanes.v[i].replicas > 1;
	if (!any)			/* the usual case, and this is asked for every instance */
		return 1;
	ea = plan_entry_of(p, a);
	eb = plan_entry_of(p, b);
	return ea == NONE || eb == NONE || p->entries.v[ea].lane != p->entries.v[eb].lane ? 1 :
		p->lanes.v[p->entries.v[ea].lane].replicas;
}

/* Iteration d before s of region c, if every `replicas`-th tile counts; negative if that is before the start. */
static int64_t walk_back(const struct walk *w, int c, int64_t s, int64_t d, int replicas)
{
	int64_t tile;

	if (replicas == 1)
		return s - d;
	if (c == NONE)
		return s - d * replicas;
	tile = walk_outer(w, c, s, NONE);
	for (;;) {
		int64_t inside = s - walk_inner(w, NONE, tile, c);

		if (inside >= d)
			return s - d;
		d -= inside;		/* leaves d >= 1 for the tiles before */
		tile -= replicas;
		if (tile < 0)
			return -1;
		s = walk_inner(w, NONE, tile + 1, c);
	}
}

/* Instances of `from` in iterations [at, end) of region c. */
static struct span span_of(const struct walk *w, int from, int c, int64_t at, int64_t end)
{
	int loop = w->graph->tasks.v[from].loop;

	if (at < 0 || at >= end)
		return (struct span){ 0 };
	return (struct span){ walk_inner(w, c, at, loop), walk_inner(w, c, end, loop) };
}

struct span walk_span(const struct walk *w, const struct plan *p, int from, int to, int c, int d, int64_t s)
{
	int64_t at = walk_outer(w, p->graph->tasks.v[to].loop, s, c);

	at = walk_back(w, c, at, d, shared_replicas(p, from, to));
	return span_of(w, from, c, at, at + 1);
}

/* Does the sTask touch that life of the buffer? Not if it is in a loop that did not run. */
static bool is_used_by(const struct walk *w, const struct stask *t, int buffer, int64_t life)
{
	int loop = w->graph->buffers.v[buffer].loop;

	return stask_touches(t, buffer) && walk_inner(w, loop, life, t->loop) < walk_inner(w, loop, life + 1, t->loop);
}

/* Does any sTask touch that life? The likely one is looked at first, as this is asked for every instance. */
static bool is_used(const struct walk *w, int buffer, int64_t life, int likely)
{
	const struct graph *g = w->graph;

	if (g->tasks.v[g->buffers.v[buffer].first].loop == g->buffers.v[buffer].loop ||
	    is_used_by(w, &g->tasks.v[likely], buffer, life))
		return true;
	for (int t = 0; t < g->tasks.n; t++)
		if (is_used_by(w, &g->tasks.v[t], buffer, life))
			return true;
	return false;
}

int edge_replicas(const struct plan *p, const struct edge *e)
{
	int replicas = shared_replicas(p, e->from, e->to);

	return replicas > 1 && plan_scope(p, e->buffer) == SCOPE_REGISTERS ? replicas : 1;
}

/* edge_replicas, which looks at all entries, once for each edge. */
static int known_replicas(const struct walk *w, const struct plan *p, const struct edge *e)
{
	int *replicas = &w->replicas[e - w->graph->edges.v];

	if (!*replicas)
		*replicas = edge_replicas(p, e);
	return *replicas;
}

struct span walk_edge_span(const struct walk *w, const struct plan *p, const struct edge *e, int64_t s)
{
	int life = p->graph->buffers.v[e->buffer].loop;
	int64_t at = walk_outer(w, p->graph->tasks.v[e->to].loop, s, e->loop), begin;

	if (e->reuse) {			/* of the life that was in the slot before */
		int replicas = known_replicas(w, p, e);

		do
			at = walk_back(w, e->loop, at, edge_distance(p, e), replicas);
		while (at >= 0 && !is_used(w, e->buffer, at, e->from));
		return span_of(w, e->from, e->loop, at, at + 1);
	}
	begin = e->distance ? walk_inner(w, life, walk_outer(w, e->loop, at, life), e->loop) : at;
	return span_of(w, e->from, e->loop, begin, at - e->distance + 1);
}

static void add_span(struct span *out, int *n, struct span x)
{
	if (x.first == x.last)
		return;
	for (int i = 0; i < *n; i++)
		if (out[i].first == x.first && out[i].last == x.last)
			return;
	if (*n == SPANS_MAX)
		BUG("a wait serves more than %d dependences", SPANS_MAX);
	out[(*n)++] = x;
}

int walk_wait_spans(const struct walk *w, const struct plan *p, const struct wait *wt, int64_t s, struct span *out)
{
	const struct graph *g = p->graph;
	bool served = false;
	int n = 0;

	for (int i = wt->distance == DISTANCE_AUTO ? g->first_in[wt->task] : NONE; i != NONE; i = g->next_in.v[i]) {
		if (g->edges.v[i].from != wt->on)
			continue;
		served = true;
		add_span(out, &n, walk_edge_span(w, p, &g->edges.v[i], s));
	}
	if (!served)
		add_span(out, &n, walk_span(w, p, wt->on, wt->task, graph_common_loop(g, wt->on, wt->task),
			wt->distance == DISTANCE_AUTO ? 0 : wt->distance, s));
	return n;
}

/* One region of the lane's order. */
struct level {
	int loop, nsteps;
	struct order_step *steps;
	int least, most;		/* offsets of the entries */
};

/* Where the cursor stands in a region. */
struct frame {
	const struct level *level;
	int64_t base;			/* sequence number of the first iteration of this run */
	int64_t count;			/* iterations of this run */
	int64_t iteration, step;
};

struct cursor {
	const struct plan *p;
	const struct walk *w;
	int replica, replicas;
	struct level *levels;		/* by loop id + 1; 0 is the tile loop */
	struct frame stack[17];
	int depth;
};

/* The position of a loop in program order: that of the first sTask inside. */
static int loop_position(const struct graph *g, int loop)
{
	int best = INT32_MAX;

	for (int i = 0; i < g->tasks.n; i++)
		if (program_loop_within(g->program, g->tasks.v[i].loop, loop) && g->tasks.v[i].position < best)
			best = g->tasks.v[i].position;
	return best;
}

bool lane_has_loop(const struct plan *p, int lane, int loop)
{
	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == lane && program_loop_within(p->graph->program,
		    p->graph->tasks.v[p->entries.v[i].task].loop, loop))
			return true;
	return false;
}

/* Entries in order of appending, each nested loop before the first entry that the program has after it. */
int order_steps(struct arena *a, const struct plan *p, int lane, int phase, int loop,
	struct order_step **out, int *least, int *most)
{
	const struct graph *g = p->graph;
	int nloops = g->program->loops.n;
	bool *placed = ARENA_ARRAY(a, nloops, bool);
	VEC(struct order_step) steps = { 0 };

	*least = *most = 0;
	for (int i = 0; i <= p->entries.n; i++) {
		const struct stask *s = i < p->entries.n ? &g->tasks.v[p->entries.v[i].task] : NULL;

		if (s && (p->entries.v[i].lane != lane || s->phase != phase || s->loop != loop))
			continue;
		for (int l = 0; l < nloops; l++) {
			const struct loop *inner = loop_at(g, l);

			if (placed[l] || inner->parent != loop || inner->phase != phase || !lane_has_loop(p, lane, l) ||
			    (s && loop_position(g, l) > s->position))
				continue;
			placed[l] = true;
			VEC_PUSH(a, &steps, ((struct order_step){ true, l }));
		}
		if (!s)
			break;
		VEC_PUSH(a, &steps, ((struct order_step){ false, i }));
		if (p->entries.v[i].at < *least)
			*least = p->entries.v[i].at;
		if (p->entries.v[i].at > *most)
			*most = p->entries.v[i].at;
	}
	*out = steps.v;
	return steps.n;
}

static void push_frame(struct cursor *c, int loop, int64_t base, int64_t count)
{
	const struct level *v = &c->levels[loop + 1];

	c->stack[c->depth++] = (struct frame){ .level = v, .base = base, .count = count, .iteration = -v->most };
}

struct cursor *cursor_new(struct arena *a, const struct plan *p, const struct walk *w, int lane, int replica)
{
	const struct graph *g = p->graph;
	struct cursor *c = ARENA_NEW(a, struct cursor);
	int replicas = p->lanes.v[lane].replicas;

	c->p = p;
	c->w = w;
	c->replica = replica;
	c->replicas = replicas;
	c->levels = ARENA_ARRAY(a, g->program->loops.n + 1, struct level);
	for (int l = NONE; l < g->program->loops.n; l++)
		if (l == NONE || loop_at(g, l)->phase == w->phase) {
			struct level *v = &c->levels[l + 1];

			v->loop = l;
			v->nsteps = order_steps(a, p, lane, w->phase, l, &v->steps, &v->least, &v->most);
		}
	if (w->ntiles > replica)
		push_frame(c, NONE, 0, (w->ntiles - replica + replicas - 1) / replicas);
	return c;
}

bool cursor_next(struct cursor *c, struct instance *out)
{
	while (c->depth) {
		struct frame *f = &c->stack[c->depth - 1];
		const struct order_step *s;
		int64_t i, seq;

		if (f->iteration > f->count - 1 - f->level->least || !f->level->nsteps) {
			c->depth--;
			continue;
		}
		if (f->step == f->level->nsteps) {
			f->step = 0;
			f->iteration++;
			continue;
		}
		s = &f->level->steps[f->step++];
		i = f->iteration + (s->is_loop ? 0 : c->p->entries.v[s->id].at);
		if (i < 0 || i >= f->count)
			continue;
		seq = f->level->loop == NONE ? c->replica + i * c->replicas : f->base + i;
		if (!s->is_loop) {
			*out = (struct instance){ .entry = s->id, .seq = seq };
			return true;
		}
		if (c->w->cum[s->id][seq + 1] > c->w->cum[s->id][seq])
			push_frame(c, s->id, c->w->cum[s->id][seq], c->w->cum[s->id][seq + 1] - c->w->cum[s->id][seq]);
	}
	return false;
}
