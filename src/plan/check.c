#include "plan/check.h"

#include <string.h>

#include "plan/cluster.h"
#include "plan/events.h"
#include "plan/fit.h"

enum {
	CYCLE_SHOWN = 12,		/* sTasks of a deadlock that are told */
	STEPS = 256,			/* of a region, in which a loop inside is told apart */
	LIVES_SOME = 6,			/* up to so many are distributed in all ways ... */
	LIVES_MANY = 16,		/* ... and up to so many in all that are even */
	EMPTY_MOST = 3,			/* iterations without any */
	COUNT_MOST = 1 << 30,		/* more are counted as so many */
	INSTANCES_MOST = 1 << 20,	/* of one list, iterations of loops included */
};

const char *problem_name(enum problem_code c)
{
	static const char *const names[] = { "missing_wait", "misplaced_wait", "deadlock",
		"wrong_seu", "versions", "registers", "shared_memory", "barriers", "threads",
		"missing_task", "duplicate_task", "offset", "cluster", "spills", "serialized" };

	return names[c];
}

/* The first breach of one dependence. */
struct breach {
	bool found;
	enum problem_code code;
	int64_t from, to;		/* sequence numbers */
};

struct findings {
	const struct plan *plan;
	struct breach *edge;		/* by edge */
	int ncycle;			/* sTasks of a deadlock */
	int cycle[CYCLE_SHOWN];
	bool any;
	const struct stop *stop;
	enum err_code code;		/* why there is no answer; *e says more */
	struct err *e;
};

/* How often loops may run: counts beyond what matters are cut down to it. */
struct choices {
	int phase;
	int *least, *most;		/* by loop */
	int turns;			/* of the lane with most */
	int ntiles;			/* of a list in which every deadlock shows */
};

static bool in_region(const struct graph *g, int task, int phase, int loop)
{
	return g->tasks.v[task].phase == phase && g->tasks.v[task].loop == loop;
}

/* Lanes' offsets summed up: how far a cycle of waiting can stretch, at most. */
static int sum_of_spreads(const struct plan *p, int phase, int loop)
{
	int sum = 0;

	for (int l = 0; l < p->lanes.n; l++) {
		int least = 0, most = 0;

		for (int i = 0; i < p->entries.n; i++) {
			const struct entry *e = &p->entries.v[i];

			if (e->lane != l || !in_region(p->graph, e->task, phase, loop))
				continue;
			least = e->at < least ? e->at : least;
			most = e->at > most ? e->at : most;
		}
		sum += most - least;
	}
	return sum;
}

/* The farthest that a ring or a wait reaches back in a region. */
static int greatest_reach(const struct plan *p, int phase, int loop)
{
	const struct graph *g = p->graph;
	int most = 1;

	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].phase == phase && g->buffers.v[i].loop == loop &&
		    p->versions[i] > most)
			most = p->versions[i];
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].distance > most &&
		    graph_common_loop(g, p->waits.v[i].task, p->waits.v[i].on) == loop)
			most = p->waits.v[i].distance;
	return most;
}

static int as_many_as_matter(const struct plan *p, int phase, int loop)
{
	return sum_of_spreads(p, phase, loop) + greatest_reach(p, phase, loop) + 2;
}

static int greatest_turns(const struct plan *p)
{
	int turns = 1;

	for (int i = 0; i < p->lanes.n; i++)
		if (p->lanes.v[i].turns > turns)
			turns = p->lanes.v[i].turns;
	return turns;
}

static void choose(const struct plan *p, int phase, struct arena *a, struct choices *c)
{
	const struct graph *g = p->graph;
	int nloops = g->program->loops.n;

	*c = (struct choices){ .phase = phase, .turns = greatest_turns(p),
		.least = ARENA_ARRAY(a, nloops, int), .most = ARENA_ARRAY(a, nloops, int) };
	for (int l = 0; l < nloops; l++) {
		int many = as_many_as_matter(p, phase, l);

		c->least[l] = (int)min_i64(g->trips[l].least, many);
		c->most[l] = (int)min_i64(g->trips[l].most, many);
	}
	c->ntiles = (int)min_i64(c->turns * as_many_as_matter(p, phase, NONE),
		g->grids[phase].total);
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
	b->from = r->inst[from].seq;
	b->to = r->inst[to].seq;
	if (relation_before(r, to, AT_ISSUE, from, AT_END))
		b->code = e->reuse ? PROBLEM_VERSIONS : PROBLEM_OFFSET;
	else
		b->code = has_wait(r->plan, e->to, e->from) ? PROBLEM_MISPLACED_WAIT :
			PROBLEM_MISSING_WAIT;
}

static void check_edge(struct findings *f, const struct relation *r, int edge)
{
	const struct graph *g = r->plan->graph;
	const struct edge *e = &g->edges.v[edge];
	int64_t n = walk_count(r->walk, g->tasks.v[e->to].loop);
	struct span before = { 0 };
	int copy = NONE;

	for (int64_t s = 0; s < n && !f->edge[edge].found; s++) {
		int to = relation_instance(r, e->to, s);
		struct span now;
		int64_t x;

		walk_edge_span(r->walk, r->plan, e, s, &now.first, &now.last);
		x = now.first;
		/* what is kept for one instance is for the next of the same lane copy */
		if (r->inst[to].lane_copy == copy && before.first <= x && x < before.last)
			x = before.last;
		for (; x < now.last && !f->edge[edge].found; x++)
			check_pair(f, r, edge, relation_instance(r, e->from, x), to);
		before = now;
		copy = r->inst[to].lane_copy;
	}
}

/* Tiles, and for each loop its iterations in each iteration of the region around it. */
struct list {
	int ntiles;
	int16_t *trips;			/* [loop * STEPS + iteration] */
};

/* The lists in which an instance of one sTask and an instance of another that depends on
 * it are as far apart as they may be, and nothing is there that need not be. */
struct trial {
	struct findings *f;
	const struct choices *c;
	struct arena *a;
	const struct edge *edge;
	int from, to;			/* loops that must run for it, or edge->loop */
	int stride;			/* of so many tiles, one is taken */
	int16_t *trips;			/* of the list that is put together */
	VEC(struct list) tried;
};

static const struct graph *graph_of(const struct trial *t)
{
	return t->f->plan->graph;
}

static int parent_of(const struct trial *t, int loop)
{
	return graph_of(t)->program->loops.v[loop].parent;
}

static int16_t *trips_of(const struct trial *t, int loop)
{
	return t->trips + (size_t)loop * STEPS;
}

static void set_trips(const struct trial *t, int loop, int from, int to, int trips)
{
	for (int s = from; s < to; s++)
		trips_of(t, loop)[s] = (int16_t)trips;
}

/* Iterations of `loop` in the first n of those around it; COUNT_MOST at most. */
static int count_trips(const struct trial *t, int loop, int n)
{
	const int16_t *v = trips_of(t, loop);
	int64_t sum = n > STEPS ? (int64_t)(n - STEPS) * v[STEPS - 1] : 0;

	for (int s = 0; s < n && s < STEPS; s++)
		sum += v[s];
	return (int)min_i64(sum, COUNT_MOST);
}

/* Iterations of `loop` in the first n of `outer`. */
static int count_inside(const struct trial *t, int outer, int loop, int n)
{
	return loop == outer ? n : count_trips(t, loop,
		count_inside(t, outer, parent_of(t, loop), n));
}

static bool is_new(struct trial *t, int ntiles)
{
	size_t size = (size_t)graph_of(t)->program->loops.n * STEPS * sizeof(*t->trips);
	struct list l = { .ntiles = ntiles };

	for (int i = 0; i < t->tried.n; i++)
		if (t->tried.v[i].ntiles == ntiles && !memcmp(t->tried.v[i].trips, t->trips, size))
			return false;
	l.trips = arena_alloc(t->a, size);
	memcpy(l.trips, t->trips, size);
	VEC_PUSH(t->a, &t->tried, l);
	return true;
}

/* Is the list one that can be checked? Ends the check if not, or if the user does. */
static bool may_check(const struct trial *t, int ntiles)
{
	const struct graph *g = graph_of(t);
	struct arena_mark mark = arena_mark(t->a);
	int *count = ARENA_ARRAY(t->a, g->program->loops.n, int);
	int64_t sum = 0;

	for (int l = 0; l < g->program->loops.n; l++) {	/* a loop comes after that around it */
		int parent = parent_of(t, l);

		if (g->program->loops.v[l].phase == t->c->phase)
			sum += count[l] = count_trips(t, l, parent == NONE ? ntiles : count[parent]);
	}
	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].phase == t->c->phase)
			sum += g->tasks.v[i].loop == NONE ? ntiles : count[g->tasks.v[i].loop];
	arena_reset(t->a, mark);
	if (sum > INSTANCES_MOST)
		t->f->code = err_set(t->f->e, ERR_LIMIT, NOWHERE, "checking the plan takes more "
			"than %d instances of sTasks; put fewer loops in one another, or use "
			"fewer versions, smaller offsets and distances", INSTANCES_MOST);
	else if (stop_asked(t->f->stop))
		t->f->code = err_set(t->f->e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	return !t->f->code;
}

/* The list that is put together. u NULL: of no interest. */
static void check_list(const struct trial *t, int ntiles, struct usage *u)
{
	struct findings *f = t->f;
	const struct graph *g = graph_of(t);
	struct arena_mark mark = arena_mark(t->a);
	struct relation r;
	struct walk w;

	if (!may_check(t, ntiles))
		return;
	walk_init_trips(t->a, &w, g, t->c->phase, ntiles, STEPS, t->trips);
	relation_build(t->a, f->plan, &w, &r);
	if (r.ncycle) {
		note_cycle(f, &r);
	} else {
		for (int i = 0; i < g->edges.n; i++)
			if (g->tasks.v[g->edges.v[i].to].phase == t->c->phase && !f->edge[i].found)
				check_edge(f, &r, i);
		/* without its waits, a plan holds values for ever */
		if (u && !f->any)
			fit_registers(&r, t->a, u);
	}
	arena_reset(t->a, mark);
}

/* Nothing more is to be found. */
static bool is_over(const struct trial *t)
{
	return t->f->ncycle || t->f->code;
}

static void try_list(struct trial *t, int ntiles)
{
	if (ntiles <= graph_of(t)->grids[t->c->phase].total && !is_over(t) && is_new(t, ntiles))
		check_list(t, ntiles, NULL);
}

/* Let `loop` run in each of the iterations [first, end) of `outer`. */
static void enter(struct trial *t, int loop, int outer, int first, int end)
{
	if (loop == outer)
		return;
	enter(t, parent_of(t, loop), outer, first, end);
	first = count_inside(t, outer, parent_of(t, loop), first);
	end = count_inside(t, outer, parent_of(t, loop), end);
	for (int s = first; s < end && s < STEPS - 1; s++)
		if (!trips_of(t, loop)[s])
			trips_of(t, loop)[s] = 1;
}

/* The iterations of the region of the edge are there: let the sTasks be, in two that
 * are as far apart as the edge says, and nowhere else or everywhere. */
static void place_ends(struct trial *t, int ntiles)
{
	const struct graph *g = graph_of(t);
	int c = t->edge->loop;
	int lives = edge_distance(t->f->plan, t->edge) * (c == NONE ? t->stride : 1);
	int n = count_inside(t, NONE, c, ntiles);
	bool certain = t->from == c && t->to == c;

	for (int i = 0; i < n && !is_over(t); i++) {
		bool all = certain || i + lives >= n;

		for (int l = 0; l < g->program->loops.n; l++)
			if (l != c && program_loop_within(g->program, l, c))
				set_trips(t, l, 0, STEPS, t->c->least[l]);
		enter(t, t->from, c, all ? 0 : i, all ? n : i + 1);
		enter(t, t->to, c, all ? 0 : i + lives, all ? n : i + lives + 1);
		try_list(t, ntiles);
		if (all)
			break;
	}
}

/* A way to distribute iterations of a loop over those of the region around it. */
struct parts {
	int loop;
	int left;			/* iterations that remain */
	int n;				/* parts so far */
	int last;			/* of them */
	int empty;			/* parts of 0 that may come */
};

/* May n iterations be the next part? Even ways have all parts alike but for the first
 * and the last one. */
static bool may_take(const struct trial *t, const struct parts *x, int n)
{
	const struct edge *e = t->edge;
	int whole = x->left + x->n;	/* at least */

	if (n > graph_of(t)->trips[x->loop].most)
		return false;
	if (!e->reuse && parent_of(t, x->loop) == graph_of(t)->buffers.v[e->buffer].loop)
		return n == x->left;
	if (n && x->n && n < x->left && n < t->c->least[x->loop])
		return false;
	if (x->loop != e->loop && x->loop != parent_of(t, e->loop))
		return n == 1 || (n == x->left && !x->n);
	if (whole <= LIVES_SOME || n == 0 || n == x->left)
		return true;
	if (whole > LIVES_MANY && n > 3 && n != t->c->most[x->loop])
		return false;
	return x->n < 2 || n == x->last;
}

/* Let `by` iterations (or -by fewer) come before those inside `loop`, on the way to the
 * region of the edge. */
static void shift_inside(struct trial *t, int loop, int by)
{
	int inner = t->edge->loop;
	int16_t *v;

	if (loop == inner || !by)
		return;
	while (parent_of(t, inner) != loop)
		inner = parent_of(t, inner);
	v = trips_of(t, inner);
	shift_inside(t, inner, by * t->c->least[inner]);
	if (by > 0 && by < STEPS)
		memmove(v + by, v, (size_t)(STEPS - by) * sizeof(*v));
	if (by > 0)
		set_trips(t, inner, 0, by < STEPS ? by : STEPS, t->c->least[inner]);
	if (by < 0 && by > -STEPS)
		memmove(v, v - by, (size_t)(STEPS + by) * sizeof(*v));
	set_trips(t, inner, STEPS - 1, STEPS, t->c->least[inner]);
}

static void distribute(struct trial *t, int region, int count);

/* Take n iterations as the next part. If there must be more, the first part is the end
 * of them, or anywhere among them if it is the only one. */
static void distribute_rest(struct trial *t, const struct parts *x);
static void take(struct trial *t, const struct parts *x, int n)
{
	int least = t->c->least[x->loop], parent = parent_of(t, x->loop);
	int at = parent == NONE ? x->n * t->stride : x->n, extra = n && n < least ? least - n : 0;
	struct parts next = { .loop = x->loop, .left = x->left - n, .n = x->n + 1, .last = n,
		.empty = x->empty - !n };

	if (at >= STEPS - 1)
		return;
	set_trips(t, x->loop, at, at + 1, n > least ? n : least);
	for (int by = next.left ? extra : 0; by <= extra; by++) {
		shift_inside(t, x->loop, x->n ? 0 : by);
		distribute_rest(t, &next);
		shift_inside(t, x->loop, x->n ? 0 : -by);
		if (x->n)
			break;
	}
	set_trips(t, x->loop, at, at + 1, least);
}

static void distribute_rest(struct trial *t, const struct parts *x)
{
	int parent = parent_of(t, x->loop);

	if (is_over(t))
		return;
	if (!x->left)
		distribute(t, parent, parent == NONE ? (x->n - 1) * t->stride + 1 : x->n);
	for (int n = x->n && !t->c->least[x->loop] && x->empty ? 0 : 1; n <= x->left; n++)
		if (may_take(t, x, n))
			take(t, x, n);
}

/* Distribute iterations of a region over those of the region around it, and so on
 * outward. What is owed within a life stays in one iteration of the life's region.
 * Iterations without any matter if they cannot be left out: another copy of a lane has
 * the tile, or a loop must run so often. */
static void distribute(struct trial *t, int region, int count)
{
	struct parts x = { .loop = region, .left = count };
	int parent;

	if (region == NONE) {
		place_ends(t, count);
		return;
	}
	parent = parent_of(t, region);
	if (parent == NONE ? t->c->turns > 1 : t->c->least[parent] > 1)
		x.empty = count <= LIVES_SOME ? EMPTY_MOST : 1;
	distribute_rest(t, &x);
}

/* All loops run as little or as much as they can, in as many tiles as it takes. */
static void try_plain(struct trial *t, const int *trips)
{
	int c = t->edge->loop, lives = edge_distance(t->f->plan, t->edge) * t->stride, n = 1;

	for (int l = 0; l < graph_of(t)->program->loops.n; l++)
		set_trips(t, l, 0, STEPS, trips[l]);
	while (n < STEPS && count_inside(t, NONE, c, n) && count_inside(t, NONE, c, n) <= lives)
		n++;
	try_list(t, n);
	try_list(t, n + 1);
}

/* The innermost loop around an sTask, inside region c, that need not run; or c. */
static int uncertain_loop(const struct trial *t, int loop, int c)
{
	while (loop != c && t->c->least[loop])
		loop = parent_of(t, loop);
	return loop;
}

static bool may_run(const struct trial *t, int loop)
{
	for (; loop != NONE; loop = parent_of(t, loop))
		if (!graph_of(t)->trips[loop].most)
			return false;
	return true;
}

/* May an iteration of the region pass without anything of a loop inside? */
static bool has_gaps(const struct trial *t, int region)
{
	const struct graph *g = graph_of(t);

	for (int l = 0; l < g->program->loops.n; l++)
		if (l != region && !t->c->least[l] && g->program->loops.v[l].phase == t->c->phase &&
		    program_loop_within(g->program, l, region))
			return true;
	return false;
}

static void try_edge(struct trial *t)
{
	const struct graph *g = graph_of(t);
	const struct edge *e = t->edge;
	int lives = edge_distance(t->f->plan, e);

	if (!may_run(t, g->tasks.v[e->from].loop) || !may_run(t, g->tasks.v[e->to].loop))
		return;
	t->from = uncertain_loop(t, g->tasks.v[e->from].loop, e->loop);
	t->to = uncertain_loop(t, g->tasks.v[e->to].loop, e->loop);
	t->stride = e->reuse ? edge_turns(t->f->plan, e) : 1;
	try_plain(t, t->c->most);
	try_plain(t, t->c->least);
	for (int k = 1; k == 1 || (k == 2 && lives && has_gaps(t, e->loop)); k++)
		distribute(t, e->loop, e->loop == NONE ? k * lives * t->stride + 1 :
			k * lives + 1);
}

/* A list with as many tiles and iterations as matter first: every deadlock shows in
 * it, as there is more to wait for than in any other. */
static void check_phase(struct findings *f, int phase, bool quick, struct arena *a,
	struct usage *u)
{
	const struct graph *g = f->plan->graph;
	struct arena_mark mark = arena_mark(a);
	struct choices c;
	struct trial t = { .f = f, .c = &c, .a = a };

	choose(f->plan, phase, a, &c);
	t.trips = ARENA_ARRAY(a, g->program->loops.n * STEPS, int16_t);
	for (int l = 0; l < g->program->loops.n; l++)
		set_trips(&t, l, 0, STEPS, c.most[l]);
	check_list(&t, c.ntiles, u);
	for (int i = 0; i < g->edges.n && !quick && !is_over(&t); i++) {
		t.edge = &g->edges.v[i];
		if (g->tasks.v[t.edge->to].phase == phase)
			try_edge(&t);
	}
	arena_reset(a, mark);
}

static struct findings findings_new(const struct plan *p, struct arena *a,
	const struct stop *stop, struct err *e)
{
	return (struct findings){ .plan = p, .stop = stop, .e = e,
		.edge = ARENA_ARRAY(a, p->graph->edges.n, struct breach) };
}

/* Take an entry out and append it on a unit that can run it. */
static const char *move_hint(const struct plan *p, struct arena *a, const struct entry *e)
{
	const struct stask *s = &p->graph->tasks.v[e->task];
	int seu = device_seu_for(p->device, &s->work);

	if (seu == NONE)
		return "no sEU of this device can";
	return arena_strf(a, "plan:remove(\"%s\"); plan:append(\"%s\", {seu=\"%s\", lane=\"%s\", "
		"at=%d})", s->name, s->name, p->device->seu[seu].name, p->lanes.v[e->lane].name, e->at);
}

/* Every sTask once, on a unit that can run it. */
static void check_entries(const struct plan *p, struct arena *a, struct problems *out)
{
	const struct graph *g = p->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		int n = 0, last = NONE;

		for (int i = 0; i < p->entries.n; i++) {
			if (p->entries.v[i].task == t) {
				n++;
				last = i;
			}
		}
		if (n == 0)
			problem_add(a, out, (struct problem){ .code = PROBLEM_MISSING_TASK,
				.task = t, .other = NONE, .edge = NONE, .loc = s->loc,
				.message = arena_strf(a, "sTask '%s' is not in the plan", s->name),
				.hint = arena_strf(a, "plan:append(\"%s\")", s->name) });
		else if (n > 1)
			problem_add(a, out, (struct problem){ .code = PROBLEM_DUPLICATE_TASK,
				.task = t, .other = NONE, .edge = NONE, .loc = p->entries.v[last].loc,
				.message = arena_strf(a, "sTask '%s' is appended %d times", s->name, n),
				.hint = arena_strf(a, "plan:remove(\"%s\") and append it once; to run "
					"it on several lanes, split it", s->name) });
		else if (!device_can(p->device, p->entries.v[last].seu, &s->work))
			problem_add(a, out, (struct problem){ .code = PROBLEM_WRONG_SEU,
				.task = t, .other = NONE, .edge = NONE, .loc = p->entries.v[last].loc,
				.message = arena_strf(a, "'%s' (%s of %s) cannot run on sEU '%s'",
					s->name, task_kind_name(s->kind), dtype_name(s->work.type),
					p->device->seu[p->entries.v[last].seu].name),
				.hint = move_hint(p, a, &p->entries.v[last]) });
	}
}

static const char *deed(const struct edge *e)
{
	switch (e->kind) {
	case EDGE_FLOW:
		return "reads";
	case EDGE_ANTI:
	case EDGE_OUTPUT:
		break;
	}
	return "overwrites";
}

static struct problem describe(const struct plan *p, struct arena *a, int edge,
	const struct breach *b)
{
	const struct graph *g = p->graph;
	const struct edge *e = &g->edges.v[edge];
	const char *from = g->tasks.v[e->from].name, *to = g->tasks.v[e->to].name;
	const char *buffer = g->buffers.v[e->buffer].name;
	int entry = plan_entry_of(p, e->to), versions = p->versions[e->buffer];
	struct problem pr = { .code = b->code, .task = e->to, .other = e->from, .edge = edge,
		.loc = p->entries.v[entry].loc };
	const char *which = arena_strf(a, "iteration %lld of '%s' %s '%s' of iteration %lld of '%s'",
		(long long)b->to, to, deed(e), buffer, (long long)b->from, from);

	if (b->code == PROBLEM_VERSIONS) {
		pr.message = arena_strf(a, "%s before that is complete: %d version%s of '%s' %s too "
			"few for this order", which, versions, versions == 1 ? "" : "s", buffer,
			versions == 1 ? "is" : "are");
		pr.hint = arena_strf(a, "plan:buffers{[\"%s\"]=%d}, or change the order", buffer,
			versions + 1);
	} else if (b->code == PROBLEM_OFFSET) {
		pr.message = arena_strf(a, "%s, but the order has it come first", which);
		pr.hint = arena_strf(a, "append '%s' after '%s', or give it a smaller at=", to, from);
	} else if (b->code == PROBLEM_MISPLACED_WAIT) {
		pr.message = arena_strf(a, "%s, but its wait is for another iteration (%s "
			"dependence, distance %d)", which, edge_kind_name(e->kind),
			edge_distance(p, e));
		pr.hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"}) without a distance", to, from);
	} else {
		pr.message = arena_strf(a, "%s, but does not wait until that is complete (%s "
			"dependence, distance %d)", which, edge_kind_name(e->kind),
			edge_distance(p, e));
		pr.hint = arena_strf(a, "plan:wait(\"%s\", {\"%s\"})", to, from);
	}
	return pr;
}

static void describe_deadlock(const struct findings *f, struct arena *a, struct problems *out)
{
	const struct plan *p = f->plan;
	struct buf b;
	int task = f->cycle[0];

	buf_init(&b, a);
	buf_puts(&b, "the lanes wait for each other for ever: ");
	for (int i = 0; i < f->ncycle; i++)
		buf_printf(&b, "'%s' after ", p->graph->tasks.v[f->cycle[i]].name);
	buf_printf(&b, "'%s'", p->graph->tasks.v[task].name);
	problem_add(a, out, (struct problem){ .code = PROBLEM_DEADLOCK, .task = task,
		.other = f->ncycle > 1 ? f->cycle[1] : task, .edge = NONE, .message = b.text,
		.loc = p->entries.v[plan_entry_of(p, task)].loc,
		.hint = "take out one of these waits, raise its distance, give the ring more "
			"versions, or change the order" });
}

enum err_code plan_check(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e)
{
	const struct graph *g = p->graph;
	struct findings f = findings_new(p, a, stop, e);
	struct usage u = { 0 };

	*out = (struct problems){ 0 };
	check_entries(p, a, out);
	if (!out->v.n) {
		for (int phase = 0; phase < g->program->phases.n && !f.ncycle && !f.code; phase++)
			check_phase(&f, phase, false, a, &u);
		if (f.code)
			return f.code;
		if (f.ncycle)
			describe_deadlock(&f, a, out);
		for (int i = 0; i < g->edges.n && !f.ncycle; i++)
			if (f.edge[i].found)
				problem_add(a, out, describe(p, a, i, &f.edge[i]));
		cluster_check(p, a, out);
	}
	if (p->lanes.n) {
		fit_memory(p, a, out, &u);
		fit_register_file(p, a, out, &u);
	}
	if (usage)
		*usage = u;
	return OK;
}

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
		check_phase(f, phase, quick, a, NULL);
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
	check_entries(p, &p->arena, &problems);
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
