/* oracle_machine.h - what a plan does, found by trying everything.
 *
 * A small machine after the prose of plan.h, apart from src/plan: it knows nothing of
 * events, relations, cursors or walks, and of the graph's edges only what a wait of
 * open distance means. It writes down the instances of a list of tiles in the order
 * in which the program has them, lets the lanes issue and the units complete them in
 * every possible order, and looks at what each one finds in memory.
 */
#ifndef ORACLE_MACHINE_H
#define ORACLE_MACHINE_H

#include <stdlib.h>

#include "plan/plan.h"

enum {
	LIST = 8,			/* tiles of a list */
	LOOPS = 6,
	TRIPS = 8,			/* iterations of a loop */
	REPLICAS = 3,
	INSTANCES = 512,
	WORDS = INSTANCES / 64,
	COPIES = 9,			/* of lanes */
	TOUCHES = 16,			/* buffers of one sTask */
	SLOTS = 512,
	EXPLORED_MOST = 128,		/* instances of which every execution is tried */
	STATES_MOST = 200000,
};

/* How often each loop runs: in tile t of the list, in iteration i of the loop around. */
struct scenario {
	int ntiles;
	int8_t trips[LOOPS][LIST][TRIPS];
};

/* A set of instances. */
struct bits {
	uint64_t w[WORDS];
};

static inline void bit_set(struct bits *b, int i)
{
	b->w[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bit_clear(struct bits *b, int i)
{
	b->w[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline bool bit_get(const struct bits *b, int i)
{
	return b->w[i / 64] >> (i % 64) & 1;
}

static inline bool bits_within(const struct bits *a, const struct bits *b, int words)
{
	uint64_t out = 0;

	for (int k = 0; k < words; k++)
		out |= a->w[k] & ~b->w[k];
	return !out;
}

static inline void bits_add(struct bits *a, const struct bits *b, int words)
{
	for (int k = 0; k < words; k++)
		a->w[k] |= b->w[k];
}

/* A slot as one instance uses it. `expect`: whose value it must find there; NONE: it
 * begins the life, and so it writes. */
struct touch {
	int slot, buffer, expect;
	bool reads, writes;
	bool adds;			/* a product's accumulator */
};

struct happening {
	int task, entry, lane, replica;	/* copies of all lanes are numbered through */
	int seu;
	bool is_async, is_ordered;
	/* The iteration of every region around it (by loop + 1; 0: the tile): counted over
	 * all tiles, and over the tiles that its replica of the lane gets. */
	int seq[LOOPS + 1], own[LOOPS + 1];
	int ntouches;
	struct touch touch[TOUCHES];
	struct bits issued, done;	/* who must be, for it to be issued */
	struct bits queue;		/* who must be done, for it to start */
	struct bits rivals;		/* who must not be under way when it is issued */
	struct bits queued;		/* who may: products that add to the same accumulator */
};

struct machine {
	const struct plan *p;
	const struct graph *g;
	const struct scenario *s;
	int phase;
	int n, words;			/* words of a set */
	struct happening at[INSTANCES];	/* in the order of the program */
	int ncopies, copy_first[LANES_MAX];
	int norder[COPIES], order[COPIES][INSTANCES];
	int nslots;
};

static const struct loop *oracle_loop(const struct machine *m, int loop)
{
	return &m->g->program->loops.v[loop];
}

static bool oracle_within(const struct machine *m, int loop, int outer)
{
	while (loop != NONE && loop != outer)
		loop = oracle_loop(m, loop)->parent;
	return loop == outer;
}

static int entry_of_task(const struct plan *p, int task)
{
	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].task == task)
			return i;
	return NONE;
}

static int replicas_of(const struct machine *m, int lane)
{
	return m->p->lanes.v[lane].replicas;
}

/* ---- the program, played in order -------------------------------------------------- */

struct playing {
	struct machine *m;
	int tile;
	int inside[LOOPS];		/* iteration in the present run of each loop */
	/* Iterations of each region so far, less 1: all, and those of each replica, by the number of replicas. */
	int seq[LOOPS + 1], own[REPLICAS][REPLICAS][LOOPS + 1];
	bool full;
};

static void play_one(struct playing *pl, int task)
{
	struct machine *m = pl->m;
	const struct seu *u;
	struct happening *x;
	int replicas;

	if (m->n == INSTANCES) {
		pl->full = true;
		return;
	}
	x = &m->at[m->n++];
	*x = (struct happening){ .task = task, .entry = entry_of_task(m->p, task) };
	x->lane = m->p->entries.v[x->entry].lane;
	x->seu = m->p->entries.v[x->entry].seu;
	u = &m->p->device->seu[x->seu];
	x->is_async = u->async;
	x->is_ordered = u->async && u->ordered;
	replicas = replicas_of(m, x->lane);
	x->replica = m->copy_first[x->lane] + pl->tile % replicas;
	memcpy(x->seq, pl->seq, sizeof(x->seq));
	memcpy(x->own, pl->own[replicas - 1][pl->tile % replicas], sizeof(x->own));
}

static void play_iteration(struct playing *pl, int region)
{
	pl->seq[region]++;
	for (int t = 0; t < REPLICAS; t++)
		pl->own[t][pl->tile % (t + 1)][region]++;
}

static void play_items(struct playing *pl, const struct item *v, int n)
{
	struct machine *m = pl->m;

	for (int i = 0; i < n && !pl->full; i++) {
		const struct loop *l;
		int around;

		for (int t = 0; !v[i].is_loop && t < m->g->tasks.n; t++)
			if (m->g->tasks.v[t].task == v[i].id)
				play_one(pl, t);
		if (!v[i].is_loop)
			continue;
		l = oracle_loop(m, v[i].id);
		around = l->parent == NONE ? 0 : pl->inside[l->parent];
		for (int k = 0; k < m->s->trips[v[i].id][pl->tile][around]; k++) {
			play_iteration(pl, v[i].id + 1);
			pl->inside[v[i].id] = k;
			play_items(pl, l->body.v, l->body.n);
		}
	}
}

/* False if there are too many instances. */
static bool play_program(struct machine *m)
{
	const struct phase *ph = &m->g->program->phases.v[m->phase];
	struct playing pl = { .m = m };

	memset(pl.seq, -1, sizeof(pl.seq));
	memset(pl.own, -1, sizeof(pl.own));
	m->n = 0;
	for (pl.tile = 0; pl.tile < m->s->ntiles; pl.tile++) {
		play_iteration(&pl, 0);
		play_items(&pl, ph->body.v, ph->body.n);
	}
	return !pl.full;
}

/* ---- the order of each lane -------------------------------------------------------- */

struct lining {
	struct machine *m;
	int lane, replica;
	int ntasks, nloops;		/* met so far in the text of the program */
	int task_position[64], loop_position[LOOPS];
};

/* The positions of tasks and loops in the text of the program. */
static void number_items(struct lining *l, const struct item *v, int n, int *count)
{
	for (int i = 0; i < n; i++) {
		if (v[i].is_loop) {
			const struct loop *inner = oracle_loop(l->m, v[i].id);

			l->loop_position[v[i].id] = (*count)++;
			number_items(l, inner->body.v, inner->body.n, count);
		} else {
			l->task_position[v[i].id] = (*count)++;
		}
	}
}

static bool lane_works_in(const struct lining *l, int loop)
{
	const struct plan *p = l->m->p;

	for (int i = 0; i < p->entries.n; i++)
		if (p->entries.v[i].lane == l->lane &&
		    oracle_within(l->m, p->graph->tasks.v[p->entries.v[i].task].loop, loop))
			return true;
	return false;
}

/* What a lane does in one iteration of a region: entry e as e, loop k as -1 - k. */
static int region_steps(const struct lining *l, int loop, int *steps)
{
	const struct plan *p = l->m->p;
	const struct program *prog = l->m->g->program;
	bool placed[LOOPS] = { false };
	int n = 0;

	for (int i = 0; i <= p->entries.n; i++) {
		const struct stask *t = i < p->entries.n ?
			&p->graph->tasks.v[p->entries.v[i].task] : NULL;

		if (t && (p->entries.v[i].lane != l->lane || t->loop != loop ||
			  t->phase != l->m->phase))
			continue;
		for (int k = 0; k < prog->loops.n; k++) {
			if (placed[k] || prog->loops.v[k].parent != loop ||
			    prog->loops.v[k].phase != l->m->phase || !lane_works_in(l, k) ||
			    (t && l->loop_position[k] > l->task_position[t->task]))
				continue;
			placed[k] = true;
			steps[n++] = -1 - k;
		}
		if (t)
			steps[n++] = i;
	}
	return n;
}

static void line_up(struct lining *l, int entry, int seq)
{
	struct machine *m = l->m;
	int task = m->p->entries.v[entry].task, region = m->g->tasks.v[task].loop + 1;

	for (int i = 0; i < m->n; i++) {
		if (m->at[i].task != task || m->at[i].seq[region] != seq)
			continue;
		m->order[l->replica][m->norder[l->replica]++] = i;
		return;
	}
	BUG("the oracle has no instance %d of sTask %d", seq, task);
}

/* First and number of the inner loop's iterations in iteration seq of `loop`. */
static void inner_run(const struct machine *m, int loop, int seq, int inner, int *first,
	int *count)
{
	*first = *count = 0;
	for (int i = 0; i < m->n; i++) {
		int s = m->at[i].seq[inner + 1];

		if (m->at[i].seq[loop + 1] != seq ||
		    !oracle_within(m, m->g->tasks.v[m->at[i].task].loop, inner))
			continue;
		if (!*count)
			*first = s;
		*count = s - *first + 1;
	}
}

/* `count` iterations of a region, `first` and every `step`-th after it, with the lane's offsets. */
static void run_region(struct lining *l, int loop, int first, int step, int count)
{
	const struct plan *p = l->m->p;
	int steps[64], n = region_steps(l, loop, steps), most = 0, least = 0;

	for (int k = 0; k < n; k++) {
		int at = steps[k] < 0 ? 0 : p->entries.v[steps[k]].at;

		most = at > most ? at : most;
		least = at < least ? at : least;
	}
	for (int j = -most; j < count - least; j++) {
		for (int k = 0; k < n; k++) {
			int i = j + (steps[k] < 0 ? 0 : p->entries.v[steps[k]].at);
			int inner = -1 - steps[k], inner_first, inner_count;

			if (i < 0 || i >= count)
				continue;
			if (steps[k] >= 0) {
				line_up(l, steps[k], first + i * step);
				continue;
			}
			inner_run(l->m, loop, first + i * step, inner, &inner_first, &inner_count);
			run_region(l, inner, inner_first, 1, inner_count);
		}
	}
}

static void order_lanes(struct machine *m)
{
	const struct phase *ph = &m->g->program->phases.v[m->phase];
	struct lining l = { .m = m };
	int count = 0;

	number_items(&l, ph->body.v, ph->body.n, &count);
	for (l.lane = 0; l.lane < m->p->lanes.n; l.lane++) {
		int replicas = replicas_of(m, l.lane);

		for (int t = 0; t < replicas; t++) {
			l.replica = m->copy_first[l.lane] + t;
			m->norder[l.replica] = 0;
			if (m->s->ntiles > t)
				run_region(&l, NONE, t, replicas, (m->s->ntiles - t - 1) / replicas + 1);
		}
	}
}

/* ---- waits ------------------------------------------------------------------------- */

static int common_region(const struct machine *m, int a, int b)
{
	int loop = m->g->tasks.v[a].loop;

	while (loop != NONE && !oracle_within(m, m->g->tasks.v[b].loop, loop))
		loop = oracle_loop(m, loop)->parent;
	return loop;
}

static bool list_has(const struct stask *s, int buffer, bool write)
{
	for (int i = 0; i < (write ? s->writes.n : s->reads.n); i++)
		if ((write ? s->writes.v[i] : s->reads.v[i]) == buffer)
			return true;
	return false;
}

static bool task_touches(const struct machine *m, int task, int buffer)
{
	return list_has(&m->g->tasks.v[task], buffer, false) ||
		list_has(&m->g->tasks.v[task], buffer, true);
}

/* The lane in whose registers a buffer is held, so that each replica of the lane has it
 * for itself; or NONE. */
static int private_lane(const struct machine *m, int buffer)
{
	int lane = NONE;

	if (m->g->buffers.v[buffer].scope == SCOPE_SHARED)
		return NONE;
	for (int t = 0; t < m->g->tasks.n; t++) {
		const struct stask *s = &m->g->tasks.v[t];
		int here;

		if (!task_touches(m, t, buffer))
			continue;
		/* threads that multiply each need all of an operand */
		if (s->kind == TASK_MMA && list_has(s, buffer, false) &&
		    m->g->buffers.v[buffer].node != NONE &&
		    m->p->device->seu[m->p->entries.v[entry_of_task(m->p, t)].seu].kind != SEU_MATRIX)
			return NONE;
		here = m->p->entries.v[entry_of_task(m->p, t)].lane;
		if (lane != NONE && lane != here)
			return NONE;
		lane = here;
	}
	return lane;
}

/* Was the life in which x stands in region `loop` the last to use the slot of y's? */
static bool was_before(const struct machine *m, int buffer, const struct happening *from,
	const struct happening *to)
{
	int region = m->g->buffers.v[buffer].loop + 1, versions = m->p->versions[buffer];
	bool private = private_lane(m, buffer) != NONE;
	int best = INT32_MIN, here = private ? to->own[region] : to->seq[region];

	if (private && from->replica != to->replica)
		return false;
	for (int i = 0; i < m->n; i++) {
		const struct happening *x = &m->at[i];
		int life = private ? x->own[region] : x->seq[region];

		if (life > best && life < here && (here - life) % versions == 0 &&
		    (!private || x->replica == to->replica) && task_touches(m, x->task, buffer))
			best = life;
	}
	return (private ? from->own[region] : from->seq[region]) == best;
}

/* Does an edge of the graph speak of these two instances of its sTasks? */
static bool edge_means(const struct machine *m, const struct edge *e, const struct happening *from,
	const struct happening *to)
{
	int region = e->loop + 1, life = m->g->buffers.v[e->buffer].loop + 1;

	if (e->reuse)
		return was_before(m, e->buffer, from, to);
	if (from->seq[life] != to->seq[life])
		return false;
	return e->distance ? from->seq[region] <= to->seq[region] - e->distance :
		from->seq[region] == to->seq[region];
}

/* Is instance x of the awaited sTask one that instance y of the other waits for? */
static bool wait_means(const struct machine *m, const struct wait *w, int x, int y)
{
	const struct happening *from = &m->at[x], *to = &m->at[y];
	int region = common_region(m, w->on, w->task) + 1;
	int back = w->distance == DISTANCE_AUTO ? 0 : w->distance;
	bool served = false;

	for (int i = 0; i < m->g->edges.n && w->distance == DISTANCE_AUTO; i++) {
		const struct edge *e = &m->g->edges.v[i];

		if (e->from != w->on || e->to != w->task)
			continue;
		if (edge_means(m, e, from, to))
			return true;
		served = true;
	}
	if (served)
		return false;
	if (from->lane == to->lane)
		return from->replica == to->replica && from->own[region] == to->own[region] - back;
	return from->seq[region] == to->seq[region] - back;
}

/* What each instance waits for: the lane, the queue of its unit, the plan's waits. */
static void take_order(struct machine *m, int replica)
{
	int last[SEU_MAX];

	for (int u = 0; u < SEU_MAX; u++)
		last[u] = NONE;
	for (int k = 0; k < m->norder[replica]; k++) {
		struct happening *x = &m->at[m->order[replica][k]];
		int before = k ? m->order[replica][k - 1] : NONE;

		if (before != NONE)
			bit_set(m->at[before].is_async ? &x->issued : &x->done, before);
		if (!x->is_ordered)
			continue;
		if (last[x->seu] != NONE)
			bit_set(&x->queue, last[x->seu]);
		last[x->seu] = m->order[replica][k];
	}
}

static void take_waits(struct machine *m)
{
	for (int c = 0; c < m->ncopies; c++)
		take_order(m, c);
	for (int i = 0; i < m->p->waits.n; i++) {
		const struct wait *w = &m->p->waits.v[i];

		for (int y = 0; y < m->n; y++)
			for (int x = 0; x < m->n && m->at[y].task == w->task; x++)
				if (m->at[x].task == w->on && wait_means(m, w, x, y))
					bit_set(w->when == WAIT_ISSUED ? &m->at[y].issued :
						&m->at[y].done, x);
	}
}

/* ---- memory ------------------------------------------------------------------------ */

static void lay_out_buffer(struct machine *m, int buffer)
{
	const struct buffer *b = &m->g->buffers.v[buffer];
	int versions = m->p->versions[buffer], lane = private_lane(m, buffer);
	int replicas = lane == NONE ? 1 : replicas_of(m, lane), writer[INSTANCES];

	for (int life = 0; life < INSTANCES; life++)
		writer[life] = NONE;
	for (int i = 0; i < m->n; i++) {
		struct happening *x = &m->at[i];
		struct touch t = { .buffer = buffer,
			.reads = list_has(&m->g->tasks.v[x->task], buffer, false),
			.writes = list_has(&m->g->tasks.v[x->task], buffer, true) };
		int life = x->seq[b->loop + 1];

		if (!t.reads && !t.writes)
			continue;
		t.slot = m->nslots + (lane == NONE ? life % versions :
			(x->replica - m->copy_first[lane]) * versions + x->own[b->loop + 1] % versions);
		t.adds = t.writes && b->carry != NONE && m->g->tasks.v[x->task].kind == TASK_MMA;
		t.expect = writer[life];
		t.reads &= t.expect != NONE;
		t.writes |= t.expect == NONE;
		if (t.writes)
			writer[life] = i;
		if (x->ntouches == TOUCHES)
			BUG("more than %d buffers", TOUCHES);
		x->touch[x->ntouches++] = t;
	}
	m->nslots += versions * replicas;
	if (m->nslots > SLOTS)
		BUG("more than %d slots", SLOTS);
}

/* Who may not be under way at once. All have their slots from issue to completion, but
 * products that add to one carry on the ordered unit of one lane may queue there. */
static void find_rivals(struct machine *m, int i, const struct touch *a)
{
	struct happening *x = &m->at[i];

	for (int k = 0; k < i; k++) {
		struct happening *y = &m->at[k];
		bool queue = x->replica == y->replica && x->seu == y->seu && x->is_ordered;

		for (int j = 0; j < y->ntouches; j++) {
			const struct touch *b = &y->touch[j];

			if (a->slot != b->slot || !(a->writes || b->writes))
				continue;
			bit_set(queue && a->adds && b->adds ? &x->queued : &x->rivals, k);
			bit_set(queue && a->adds && b->adds ? &y->queued : &y->rivals, i);
		}
	}
}

static void lay_out(struct machine *m)
{
	m->nslots = 0;
	for (int b = 0; b < m->g->buffers.n; b++)
		if (m->g->buffers.v[b].phase == m->phase)
			lay_out_buffer(m, b);
	for (int i = 0; i < m->n; i++)
		for (int j = 0; j < m->at[i].ntouches; j++)
			find_rivals(m, i, &m->at[i].touch[j]);
}

/* False if it is too large. p and s are borrowed. */
static bool machine_build(struct machine *m, const struct plan *p, const struct scenario *s,
	int phase)
{
	m->p = p;
	m->g = p->graph;
	m->s = s;
	m->phase = phase;
	m->ncopies = m->n = 0;
	for (int l = 0; l < p->lanes.n; l++) {
		m->copy_first[l] = m->ncopies;
		m->ncopies += p->lanes.v[l].replicas;
	}
	if (m->ncopies > COPIES || !play_program(m))
		return false;
	m->words = (m->n + 63) / 64;
	order_lanes(m);
	take_waits(m);
	lay_out(m);
	return true;
}

/* ---- every execution --------------------------------------------------------------- */

enum verdict { FINE, RACE, STALE, OVERTAKEN, DEADLOCK, TOO_LARGE };

static const char *const verdict_names[] = { "fine", "a race", "a wrong value",
	"a write overtaken", "a deadlock", "too large" };

/* A state is who was issued and who is done, `words` of each; that is all there is to
 * it: as long as nothing went wrong, a slot holds what the last of its writers that are
 * done left there. Open addressing; an entry whose stamp is old is none. */
struct states {
	uint64_t *v;
	uint32_t *stamp;
	uint32_t now;
	int words, cap, n;
};

struct exploration {
	const struct machine *m;
	struct states *seen;
	struct bits issued, done;
	int next[COPIES];		/* how far each lane replica has come */
	int content[SLOTS];		/* who wrote each slot last; NONE */
	int depth, trace[2 * INSTANCES];	/* 2i: issue of i; 2i + 1: its completion */
	enum verdict verdict;
	int slot;			/* where it went wrong */
};

/* Zeroed; there is no going on without. */
static void *fresh(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		BUG("no memory for %zu states", n);
	return p;
}

/* An empty table for states of `words` words. */
static void states_reset(struct states *t, int words)
{
	if (t->words != words || !t->cap) {
		free(t->v);
		free(t->stamp);
		*t = (struct states){ .words = words, .cap = 1 << 10 };
		t->v = fresh((size_t)t->cap * (size_t)words, sizeof(*t->v));
		t->stamp = fresh((size_t)t->cap, sizeof(*t->stamp));
	}
	t->n = 0;
	if (++t->now == 0)
		BUG("too many explorations");
}

static void states_free(struct states *t)
{
	free(t->v);
	free(t->stamp);
}

static bool states_add(struct states *t, const uint64_t *s);

static void states_grow(struct states *t)
{
	struct states old = *t;

	t->cap = old.cap * 4;
	t->n = 0;
	t->v = fresh((size_t)t->cap * (size_t)t->words, sizeof(*t->v));
	t->stamp = fresh((size_t)t->cap, sizeof(*t->stamp));
	for (int i = 0; i < old.cap; i++)
		if (old.stamp[i] == old.now)
			states_add(t, &old.v[(size_t)i * (size_t)t->words]);
	states_free(&old);
}

/* False if it was there before. */
static bool states_add(struct states *t, const uint64_t *s)
{
	size_t size = (size_t)t->words * sizeof(*s), i;
	uint64_t h = 0x9e3779b97f4a7c15u;

	if (t->n * 2 >= t->cap)
		states_grow(t);
	for (int k = 0; k < t->words; k++) {
		h = (h ^ s[k]) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	for (i = h; t->stamp[i &= (size_t)t->cap - 1] == t->now; i++)
		if (!memcmp(&t->v[i * (size_t)t->words], s, size))
			return false;
	t->stamp[i] = t->now;
	memcpy(&t->v[i * (size_t)t->words], s, size);
	t->n++;
	return true;
}

static bool goes_wrong(struct exploration *x, enum verdict v, int slot)
{
	x->verdict = v;
	x->slot = slot;
	return true;
}

static bool can_issue(const struct exploration *x, int i)
{
	const struct happening *h = &x->m->at[i];

	return bits_within(&h->issued, &x->issued, x->m->words) &&
		bits_within(&h->done, &x->done, x->m->words);
}

/* Is a rival under way, or what the instance reads not there? */
static bool wrong_at_issue(struct exploration *x, int i)
{
	const struct happening *h = &x->m->at[i];

	for (int k = 0; k < x->m->words; k++)
		if (h->rivals.w[k] & x->issued.w[k] & ~x->done.w[k])
			return goes_wrong(x, RACE, NONE);
	for (int k = 0; k < h->ntouches; k++) {
		const struct touch *t = &h->touch[k];

		if (t->reads && !t->adds && x->content[t->slot] != t->expect)
			return goes_wrong(x, STALE, t->slot);
	}
	return false;
}

/* An accumulator is read when the product starts, which from outside looks the same
 * as when it is complete: nobody else may touch it in between. */
static bool wrong_at_end(struct exploration *x, int i)
{
	const struct happening *h = &x->m->at[i];

	for (int k = 0; k < h->ntouches; k++) {
		const struct touch *t = &h->touch[k];

		if (t->reads && t->adds && x->content[t->slot] != t->expect)
			return goes_wrong(x, STALE, t->slot);
		if (t->writes && x->content[t->slot] > i)
			return goes_wrong(x, OVERTAKEN, t->slot);
	}
	return false;
}

static bool explore(struct exploration *x);

static bool explore_issue(struct exploration *x, int replica)
{
	int i = x->m->order[replica][x->next[replica]];

	x->trace[x->depth++] = 2 * i;
	if (wrong_at_issue(x, i))
		return false;
	bit_set(&x->issued, i);
	x->next[replica]++;
	if (!explore(x))
		return false;
	x->next[replica]--;
	bit_clear(&x->issued, i);
	x->depth--;
	return true;
}

static bool explore_end(struct exploration *x, int i)
{
	const struct happening *h = &x->m->at[i];
	int before[TOUCHES];

	x->trace[x->depth++] = 2 * i + 1;
	if (wrong_at_end(x, i))
		return false;
	bit_set(&x->done, i);
	for (int k = 0; k < h->ntouches; k++) {
		before[k] = x->content[h->touch[k].slot];
		if (h->touch[k].writes)
			x->content[h->touch[k].slot] = i;
	}
	if (!explore(x))
		return false;
	for (int k = 0; k < h->ntouches; k++)
		x->content[h->touch[k].slot] = before[k];
	bit_clear(&x->done, i);
	x->depth--;
	return true;
}

/* All that may follow; false as soon as something is wrong. */
static bool explore(struct exploration *x)
{
	const struct machine *m = x->m;
	uint64_t key[2 * WORDS];
	bool stuck = true;

	memcpy(key, x->issued.w, (size_t)m->words * sizeof(*key));
	memcpy(key + m->words, x->done.w, (size_t)m->words * sizeof(*key));
	if (!states_add(x->seen, key))
		return true;
	if (x->seen->n > STATES_MOST)
		return !goes_wrong(x, TOO_LARGE, NONE);
	for (int c = 0; c < m->ncopies; c++) {
		if (x->next[c] == m->norder[c] || !can_issue(x, m->order[c][x->next[c]]))
			continue;
		stuck = false;
		if (!explore_issue(x, c))
			return false;
	}
	for (int k = 0; k < m->words; k++) {
		uint64_t going = x->issued.w[k] & ~x->done.w[k];

		for (; going; going &= going - 1) {
			int i = k * 64 + __builtin_ctzll(going);

			if (!bits_within(&m->at[i].queue, &x->done, m->words))
				continue;
			stuck = false;
			if (!explore_end(x, i))
				return false;
		}
	}
	return !stuck || x->depth == 2 * m->n || !goes_wrong(x, DEADLOCK, NONE);
}

static enum verdict machine_explore(const struct machine *m, struct states *seen,
	struct exploration *x)
{
	*x = (struct exploration){ .m = m, .seen = seen };
	if (m->n == 0 || m->n > EXPLORED_MOST)
		return m->n ? TOO_LARGE : FINE;
	for (int i = 0; i < m->nslots; i++)
		x->content[i] = NONE;
	states_reset(seen, 2 * m->words);
	explore(x);
	return x->verdict;
}

/* ---- one execution is enough ------------------------------------------------------- */

/* For long runs: play one execution, and note for each instance who must be issued and
 * who done before it is issued, and before it is done. */
struct past {
	struct bits issued, done;
};

struct closure {
	struct exploration x;
	struct past issue[INSTANCES], end[INSTANCES];
};

static void add_past(const struct machine *m, struct closure *c, struct past *p,
	const struct bits *issued, const struct bits *done)
{
	for (int k = 0; k < m->n; k++) {
		if (issued && bit_get(issued, k)) {
			bits_add(&p->issued, &c->issue[k].issued, m->words);
			bits_add(&p->done, &c->issue[k].done, m->words);
			bit_set(&p->issued, k);
		}
		if (bit_get(done, k)) {
			bits_add(&p->issued, &c->end[k].issued, m->words);
			bits_add(&p->done, &c->end[k].done, m->words);
			bit_set(&p->done, k);
		}
	}
}

/* False if nothing more can be issued or done. */
static bool go_on(const struct machine *m, struct closure *c)
{
	struct exploration *x = &c->x;

	for (int l = 0; l < m->ncopies; l++) {
		int i = x->next[l] < m->norder[l] ? m->order[l][x->next[l]] : NONE;

		if (i == NONE || !can_issue(x, i))
			continue;
		add_past(m, c, &c->issue[i], &m->at[i].issued, &m->at[i].done);
		bit_set(&x->issued, i);
		x->next[l]++;
		return true;
	}
	for (int i = 0; i < m->n; i++) {
		if (bit_get(&x->done, i) || !bit_get(&x->issued, i) ||
		    !bits_within(&m->at[i].queue, &x->done, m->words))
			continue;
		c->end[i] = c->issue[i];
		bit_set(&c->end[i].issued, i);
		add_past(m, c, &c->end[i], NULL, &m->at[i].queue);
		bit_set(&x->done, i);
		return true;
	}
	return false;
}

/* Everything goes right if whoever meets in a slot does so in the order of the program,
 * with no other way to happen. */
static enum verdict machine_conclude(const struct machine *m, struct closure *c)
{
	memset(c, 0, sizeof(*c));
	c->x.m = m;
	while (go_on(m, c))
		;
	for (int i = 0; i < m->n; i++)
		if (!bit_get(&c->x.done, i))
			return DEADLOCK;
	for (int i = 0; i < m->n; i++)
		for (int k = 0; k < i; k++)
			if ((bit_get(&m->at[i].rivals, k) && !bit_get(&c->issue[i].done, k)) ||
			    (bit_get(&m->at[i].queued, k) && !bit_get(&c->end[i].done, k)))
				return RACE;
	return FINE;
}

#endif
