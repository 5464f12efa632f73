/* Which lists of tiles a plan is checked on: for deadlocks the one with the most of everything, for each dependence
 * those with the least, in which its two ends are as far apart as they may be. docs/internals/check.md says why these
 * are enough. */
#include "plan/findings.h"

#include <string.h>

#include "base/hash.h"

enum {
	STEPS = 256,			/* iterations of a region for which trip counts of a loop inside are kept */
	LIVES_SOME = 6,			/* up to so many are distributed in all ways ... */
	LIVES_MANY = 16,		/* ... and up to so many in all that are even */
	EMPTY_MOST = 3,			/* iterations without any */
	COUNT_MOST = 1 << 30,		/* more are counted as so many */
	INSTANCES_MOST = 1 << 20,	/* of one list, iterations of loops included */
	SLOTS_FIRST = 64,
};

/* How often loops may run, no more than matters. */
struct choices {
	int phase;
	int *least, *most;		/* by loop */
	int replicas;			/* of the lane with most */
	int ntiles;			/* of a list in which every deadlock shows */
};

/* Lanes' offsets summed up: how far a cycle of waiting can stretch, at most. */
static int sum_of_spreads(const struct plan *p, int phase, int loop)
{
	int sum = 0;

	for (int l = 0; l < p->lanes.n; l++) {
		int least = 0, most = 0;

		for (int i = 0; i < p->entries.n; i++) {
			const struct entry *e = &p->entries.v[i];
			const struct stask *s = &p->graph->tasks.v[e->task];

			if (e->lane != l || s->phase != phase || s->loop != loop)
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
		if (g->buffers.v[i].phase == phase && g->buffers.v[i].loop == loop && p->versions[i] > most)
			most = p->versions[i];
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].distance > most && graph_common_loop(g, p->waits.v[i].task, p->waits.v[i].on) == loop)
			most = p->waits.v[i].distance;
	return most;
}

static int as_many_as_matter(const struct plan *p, int phase, int loop)
{
	return sum_of_spreads(p, phase, loop) + greatest_reach(p, phase, loop) + 2;
}

static void choose(const struct plan *p, int phase, struct arena *a, struct choices *c)
{
	const struct graph *g = p->graph;
	int nloops = g->program->loops.n;

	*c = (struct choices){ .phase = phase, .replicas = 1,
		.least = ARENA_ARRAY(a, nloops, int), .most = ARENA_ARRAY(a, nloops, int) };
	for (int i = 0; i < p->lanes.n; i++)
		c->replicas = p->lanes.v[i].replicas > c->replicas ? p->lanes.v[i].replicas : c->replicas;
	for (int l = 0; l < nloops; l++) {
		int many = as_many_as_matter(p, phase, l);

		c->least[l] = (int)min_i64(g->trips[l].least, many);
		c->most[l] = (int)min_i64(g->trips[l].most, many);
	}
	c->ntiles = (int)min_i64(c->replicas * as_many_as_matter(p, phase, NONE), g->grids[phase].total);
}

/* Tiles, and loop by loop its iterations in each iteration of the region around it that there is. */
struct list {
	int ntiles, n;
	uint64_t hash;
	int16_t *trips;			/* n of them */
};

/* The lists in which an instance of one sTask and an instance of another that depends on
 * it are as far apart as they may be, and nothing is there that need not be. */
struct trial {
	struct findings *f;
	const struct choices *c;
	struct arena *a;
	const struct edge *edge;
	int from, to;			/* loops that must run for it, or edge->loop */
	int stride;			/* one of so many tiles is taken */
	int16_t *trips;			/* of the list that is put together: [loop * STEPS + iteration] */
	int16_t *compact;		/* for as many */
	int *count;			/* by loop, for scratch */
	VEC(struct list) tried;
	int *slots, nslots;		/* a hash table of these: 1 + an index; 0: free */
	int *replicas;			/* of all walks */
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
	return loop == outer ? n : count_trips(t, loop, count_inside(t, outer, parent_of(t, loop), n));
}

/* The list that is put together, without what it says of iterations that there are not: most regions have few. In
 * *compact, which holds the trips of all. */
static struct list as_list(const struct trial *t, int ntiles, int16_t *compact)
{
	const struct graph *g = graph_of(t);
	struct list l = { .ntiles = ntiles, .trips = compact };
	int *count = t->count;

	for (int loop = 0; loop < g->program->loops.n; loop++) {	/* parents come before their children */
		int parent = parent_of(t, loop), n;

		if (g->program->loops.v[loop].phase != t->c->phase)
			continue;
		n = parent == NONE ? ntiles : count[parent];
		count[loop] = count_trips(t, loop, n);
		n = n < STEPS ? n : STEPS;
		memcpy(compact + l.n, trips_of(t, loop), (size_t)n * sizeof(*compact));
		l.n += n;
	}
	l.hash = hash_mix(hash_bytes(hash_basis(0), compact, (size_t)l.n * sizeof(*compact)), (uint64_t)ntiles);
	return l;
}

/* The slot of the list; a free one if it was not tried. */
static int *find_slot(const struct trial *t, const struct list *l)
{
	int *slot = &t->slots[l->hash % (uint64_t)t->nslots];

	while (*slot) {
		const struct list *x = &t->tried.v[*slot - 1];

		if (x->hash == l->hash && x->ntiles == l->ntiles && x->n == l->n &&
		    !memcmp(x->trips, l->trips, (size_t)l->n * sizeof(*l->trips)))
			break;
		slot = slot + 1 < t->slots + t->nslots ? slot + 1 : t->slots;
	}
	return slot;
}

/* Twice as many slots. There may be thousands of lists, most of which come several times. */
static void grow_slots(struct trial *t)
{
	t->nslots = t->nslots ? 2 * t->nslots : SLOTS_FIRST;
	t->slots = ARENA_ARRAY(t->a, t->nslots, int);
	for (int i = 0; i < t->tried.n; i++)
		*find_slot(t, &t->tried.v[i]) = i + 1;
}

static bool is_new(struct trial *t, int ntiles)
{
	struct list l = as_list(t, ntiles, t->compact);
	int *slot;

	if (2 * t->tried.n >= t->nslots)
		grow_slots(t);
	slot = find_slot(t, &l);
	if (*slot)
		return false;
	l.trips = arena_copy(t->a, l.trips, (size_t)l.n, sizeof(*l.trips));
	VEC_PUSH(t->a, &t->tried, l);
	*slot = t->tried.n;
	return true;
}

/* Can the list be checked? If it is too long, or the user interrupts, the check ends. */
static bool may_check(const struct trial *t, int ntiles)
{
	const struct graph *g = graph_of(t);
	struct arena_mark mark = arena_mark(t->a);
	int *count = ARENA_ARRAY(t->a, g->program->loops.n, int);
	int64_t sum = 0;

	for (int l = 0; l < g->program->loops.n; l++) {	/* parents come before their children */
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

/* Check the list that is put together, without the edges of which it is known that they are sound in it. u NULL: of no
 * interest. Is all of it sound? */
static bool check_list(const struct trial *t, int ntiles, bool *edges, struct usage *u)
{
	struct arena_mark mark = arena_mark(t->a);
	struct walk w;
	bool sound;

	if (!may_check(t, ntiles))
		return false;
	walk_init_trips(t->a, &w, graph_of(t), t->c->phase, ntiles, STEPS, t->trips);
	w.replicas = t->replicas;
	sound = findings_add_list(t->f, &w, edges, t->a, u);
	arena_reset(t->a, mark);
	return sound;
}

/* Is there no need to look further? */
static bool is_over(const struct trial *t)
{
	return t->f->ncycle || t->f->code || t->f->broken > t->f->most;
}

static void try_list(struct trial *t, int ntiles)
{
	struct sound *sound = t->f->sound;
	int number = t->tried.n;

	if (ntiles > graph_of(t)->grids[t->c->phase].total || is_over(t) || !is_new(t, ntiles))
		return;
	if (sound && number < LISTS_NOTED && sound->list[number])
		return;
	bool is_sound = check_list(t, ntiles, NULL, NULL);
	if (sound && number < LISTS_NOTED && !sound->all_looked_at)
		sound->list[number] = is_sound;
}

/* Let `loop` run in each of the iterations [first, end) of `outer`. */
static void run_loop(struct trial *t, int loop, int outer, int first, int end)
{
	if (loop == outer)
		return;
	run_loop(t, parent_of(t, loop), outer, first, end);
	first = count_inside(t, outer, parent_of(t, loop), first);
	end = count_inside(t, outer, parent_of(t, loop), end);
	for (int s = first; s < end && s < STEPS - 1; s++)
		if (!trips_of(t, loop)[s])
			trips_of(t, loop)[s] = 1;
}

/* Given the iterations of the region of the edge, let its two sTasks run in two that are as far apart as the edge says,
 * and in no others, or in all. */
static void run_ends(struct trial *t, int ntiles)
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
		run_loop(t, t->from, c, all ? 0 : i, all ? n : i + 1);
		run_loop(t, t->to, c, all ? 0 : i + lives, all ? n : i + lives + 1);
		try_list(t, ntiles);
		if (all)
			break;
	}
}

/* A way to distribute iterations of a loop over iterations of the region around it, as far as it is decided. */
struct distribution {
	int loop;
	int left;			/* iterations that remain */
	int n;				/* iterations of the region around that have their number */
	int last;			/* the last of these numbers */
	int empty;			/* numbers of 0 that may come */
};

/* May the next iteration of the region around have n? In even distributions all but the first and last have as many. */
static bool may_give(const struct trial *t, const struct distribution *x, int n)
{
	const struct edge *e = t->edge;
	int total = x->left + x->n;	/* at least */

	if (n > graph_of(t)->trips[x->loop].most)
		return false;
	if (!e->reuse && parent_of(t, x->loop) == graph_of(t)->buffers.v[e->buffer].loop)
		return n == x->left;
	if (n && x->n && n < x->left && n < t->c->least[x->loop])
		return false;
	if (x->loop != e->loop && x->loop != parent_of(t, e->loop))
		return n == 1 || (n == x->left && !x->n);
	if (total <= LIVES_SOME || n == 0 || n == x->left)
		return true;
	if (total > LIVES_MANY && n > 3 && n != t->c->most[x->loop])
		return false;
	return x->n < 2 || n == x->last;
}

/* Let `by` iterations (or -by fewer) come before those inside `loop`, on the way to the region of the edge. */
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

static void distribute_left(struct trial *t, const struct distribution *x);

/* Give n iterations to the next iteration of the region around. If the loop must run more often there, the first of
 * these n are the end of its iterations, or anywhere among them if there are no others. */
static void give(struct trial *t, const struct distribution *x, int n)
{
	int least = t->c->least[x->loop], parent = parent_of(t, x->loop);
	int at = parent == NONE ? x->n * t->stride : x->n, extra = n && n < least ? least - n : 0;
	struct distribution next = { .loop = x->loop, .left = x->left - n, .n = x->n + 1, .last = n,
		.empty = x->empty - !n };

	if (at >= STEPS - 1)
		return;
	set_trips(t, x->loop, at, at + 1, n > least ? n : least);
	for (int by = next.left ? extra : 0; by <= extra; by++) {
		shift_inside(t, x->loop, x->n ? 0 : by);
		distribute_left(t, &next);
		shift_inside(t, x->loop, x->n ? 0 : -by);
		if (x->n)
			break;
	}
	set_trips(t, x->loop, at, at + 1, least);
}

static void distribute_left(struct trial *t, const struct distribution *x)
{
	int parent = parent_of(t, x->loop);

	if (is_over(t))
		return;
	if (!x->left)
		distribute(t, parent, parent == NONE ? (x->n - 1) * t->stride + 1 : x->n);
	for (int n = x->n && !t->c->least[x->loop] && x->empty ? 0 : 1; n <= x->left; n++)
		if (may_give(t, x, n))
			give(t, x, n);
}

/* Distribute iterations of a region over those of the region around it, and so on outward. The two ends of a dependence
 * within a life are in one iteration of the life's region. Iterations without any matter if they cannot be left out:
 * if another replica has the tile, or a loop must run so often. */
static void distribute(struct trial *t, int region, int count)
{
	struct distribution x = { .loop = region, .left = count };
	int parent;

	if (region == NONE) {
		run_ends(t, count);
		return;
	}
	parent = parent_of(t, region);
	if (parent == NONE ? t->c->replicas > 1 : t->c->least[parent] > 1)
		x.empty = count <= LIVES_SOME ? EMPTY_MOST : 1;
	distribute_left(t, &x);
}

/* Let all loops run as little or as much as they can, in as many tiles as are necessary. */
static void try_uniform(struct trial *t, const int *trips)
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
	t->stride = e->reuse ? edge_replicas(t->f->plan, e) : 1;
	try_uniform(t, t->c->most);
	try_uniform(t, t->c->least);
	for (int k = 1; k == 1 || (k == 2 && lives && has_gaps(t, e->loop)); k++)
		distribute(t, e->loop, e->loop == NONE ? k * lives * t->stride + 1 : k * lives + 1);
}

/* A list with as many tiles and iterations as matter first: every deadlock shows in
 * it, as there is more to wait for than in any other. */
void findings_add_phase(struct findings *f, int phase, bool quick, struct arena *a, struct usage *u)
{
	const struct graph *g = f->plan->graph;
	struct arena_mark mark = arena_mark(a);
	struct choices c;
	struct trial t = { .f = f, .c = &c, .a = a, .replicas = ARENA_ARRAY(a, g->edges.n, int) };

	choose(f->plan, phase, a, &c);
	t.trips = ARENA_ARRAY(a, g->program->loops.n * STEPS, int16_t);
	t.compact = ARENA_ARRAY(a, g->program->loops.n * STEPS, int16_t);
	t.count = ARENA_ARRAY(a, g->program->loops.n, int);
	for (int l = 0; l < g->program->loops.n; l++)
		set_trips(&t, l, 0, STEPS, c.most[l]);
	check_list(&t, c.ntiles, f->sound ? f->sound->edge : NULL, u);
	for (int i = 0; i < g->edges.n && !quick && !is_over(&t); i++) {
		t.edge = &g->edges.v[i];
		if (g->tasks.v[t.edge->to].phase == phase)
			try_edge(&t);
	}
	if (f->sound && !quick)
		f->sound->all_looked_at = true;
	arena_reset(a, mark);
}
