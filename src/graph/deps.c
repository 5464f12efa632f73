/* Dependences, from what the sTasks read and write.
 *
 * For each buffer, one life of it is played: its region's body once, each loop inside two times, and not at all where
 * it may have no iteration. Who may have written last and who may have read since then give the edges; where the two
 * ends stand in different iterations of a loop, that loop and distance 1. Two rounds show every pair there is, as a
 * third would meet the same last writers and readers. Then all who touched a life give the reuse edges to those who may
 * begin the one that takes its slot. What lies in the place of a buffer is played with it, as if it were the same: who
 * wrote last is then who must have written what is read. */
#include "graph/build.h"

#include <string.h>

/* An sTask touching the buffer, and the round of each loop around it. */
struct access {
	int task;
	int depth;			/* loops inside the buffer's region */
	int loop[16], round[16];
	bool unread;			/* of a writer: perhaps nobody has read since */
};

struct accesses {
	struct access *v;
	int n, cap;
};

/* What may be the case at one point of the program. */
struct moment {
	bool fresh;			/* nobody has touched the buffer */
	struct accesses writers;	/* one of these was the last */
	struct accesses readers;	/* since then */
};

struct player {
	struct graph *g;
	const int *first_stask;		/* by task of the program: its first sTask, or NONE */
	int buffer;
	struct access at;		/* loops being played */
	struct moment now;
	VEC(int) firsts;		/* who may begin a life */
};

static void add_edge(struct graph *g, struct edge e)
{
	for (int i = g->first_in[e.to]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *o = &g->edges.v[i];

		if (o->from == e.from && o->kind == e.kind && o->loop == e.loop &&
		    o->distance == e.distance && o->reuse == e.reuse && o->buffer == e.buffer)
			return;
	}
	graph_add_edge(g, e);
}

static bool accumulates(const struct graph *g, int stask, int buffer)
{
	const struct stask *s = &g->tasks.v[stask];
	bool writes = false;

	for (int i = 0; i < s->writes.n; i++)
		writes |= s->writes.v[i] == buffer;
	return s->kind == TASK_MMA && writes && g->buffers.v[buffer].carry != NONE;
}

/* The outermost loop in which the two accesses are in different rounds. */
static struct edge edge_between(const struct player *p, const struct access *from,
	const struct access *to, enum edge_kind kind)
{
	struct edge e = { .from = from->task, .to = to->task, .kind = kind, .buffer = p->buffer,
		.loop = graph_common_loop(p->g, from->task, to->task) };

	for (int i = 0; i < from->depth && i < to->depth && from->loop[i] == to->loop[i]; i++) {
		if (from->round[i] != to->round[i]) {
			e.loop = from->loop[i];
			e.distance = to->round[i] - from->round[i];
			break;
		}
	}
	e.chain = accumulates(p->g, e.from, p->buffer) && accumulates(p->g, e.to, p->buffer);
	return e;
}

/* An sTask does not depend on itself within one instance. */
static void join(struct player *p, const struct access *from, const struct access *to, enum edge_kind kind)
{
	struct edge e = edge_between(p, from, to, kind);

	if (e.from != e.to || e.distance)
		add_edge(p->g, e);
}

/* To who reads the buffer, or what lies in its place: whatever that is. */
static void join_reader(struct player *p, const struct access *from, const struct access *to)
{
	const struct graph *g = p->g;
	const struct stask *s = &g->tasks.v[to->task];

	for (int i = 0; i < s->reads.n; i++) {
		struct edge e = edge_between(p, from, to, EDGE_FLOW);

		if (s->reads.v[i] != p->buffer && g->buffers.v[s->reads.v[i]].alias_of != p->buffer)
			continue;
		e.buffer = s->reads.v[i];
		if (e.from != e.to || e.distance)
			add_edge(p->g, e);
	}
}

static bool touches(const int *list, int n, int buffer)
{
	for (int i = 0; i < n; i++)
		if (list[i] == buffer)
			return true;
	return false;
}

/* Does the list have the buffer, or what lies in its place? */
static bool meets(const struct graph *g, const int *list, int n, int buffer)
{
	for (int i = 0; i < n; i++)
		if (list[i] == buffer || g->buffers.v[list[i]].alias_of == buffer)
			return true;
	return false;
}

static bool same_access(const struct access *a, const struct access *b)
{
	size_t size = (size_t)a->depth * sizeof(a->loop[0]);

	return a->task == b->task && a->depth == b->depth && !memcmp(a->loop, b->loop, size) &&
		!memcmp(a->round, b->round, size);
}

static void add_access(struct arena *a, struct accesses *list, const struct access *x)
{
	int i = 0;

	while (i < list->n && !same_access(&list->v[i], x))
		i++;
	if (i == list->n)
		VEC_PUSH(a, list, *x);
	list->v[i].unread |= x->unread;
}

static void add_moment(struct arena *a, struct moment *now, const struct moment *other)
{
	now->fresh |= other->fresh;
	for (int i = 0; i < other->writers.n; i++)
		add_access(a, &now->writers, &other->writers.v[i]);
	for (int i = 0; i < other->readers.n; i++)
		add_access(a, &now->readers, &other->readers.v[i]);
}

/* A loop is left: in which of its rounds somebody was makes no difference any more. */
static void forget_rounds(struct arena *a, struct accesses *list, int depth)
{
	int n = list->n;

	list->n = 0;
	for (int i = 0; i < n; i++) {
		struct access x = list->v[i];

		x.depth = x.depth < depth ? x.depth : depth;
		add_access(a, list, &x);
	}
}

/* Whoever comes first gives a carry its initial value, so it counts as a writer. */
static void play_task(struct player *p, int task)
{
	struct arena *a = &p->g->arena;
	const struct stask *s = &p->g->tasks.v[task];
	bool reads = meets(p->g, s->reads.v, s->reads.n, p->buffer);
	bool writes = meets(p->g, s->writes.v, s->writes.n, p->buffer);
	struct moment *now = &p->now;
	struct access here = p->at;
	bool first = now->fresh;

	if (!reads && !writes)
		return;
	here.task = task;
	here.unread = true;
	for (int i = 0; i < now->writers.n; i++) {
		if (reads)
			join_reader(p, &now->writers.v[i], &here);
		else if (now->writers.v[i].unread)
			join(p, &now->writers.v[i], &here, EDGE_OUTPUT);
		now->writers.v[i].unread = false;
	}
	for (int i = 0; i < now->readers.n && writes; i++)
		join(p, &now->readers.v[i], &here, EDGE_ANTI);
	if (first && !touches(p->firsts.v, p->firsts.n, task))
		VEC_PUSH(a, &p->firsts, task);
	now->fresh = false;
	if (!writes && now->writers.n)
		VEC_PUSH(a, &now->readers, here);
	if (writes)
		now->writers.n = now->readers.n = 0;
	if (writes || first)
		VEC_PUSH(a, &now->writers, here);
}

static void play_body(struct player *p, const struct item *items, int n);

static void play_loop(struct player *p, int loop)
{
	const struct loop *l = &p->g->program->loops.v[loop];
	struct arena *a = &p->g->arena;
	struct moment before = { 0 };
	int level = p->at.depth++;

	if (level >= LEN(p->at.loop))
		BUG("loops nested more than %d deep", LEN(p->at.loop));
	if (p->g->trips[loop].least == 0)
		add_moment(a, &before, &p->now);
	p->at.loop[level] = loop;
	for (int round = 0; round < 2; round++) {
		p->at.round[level] = round;
		play_body(p, l->body.v, l->body.n);
	}
	p->at.depth = level;
	forget_rounds(a, &p->now.writers, level);
	forget_rounds(a, &p->now.readers, level);
	add_moment(a, &p->now, &before);
}

static void play_body(struct player *p, const struct item *items, int n)
{
	for (int i = 0; i < n; i++) {
		if (items[i].is_loop) {
			play_loop(p, items[i].id);
			continue;
		}
		for (int s = p->first_stask[items[i].id]; s != NONE && s < p->g->tasks.n &&
		     p->g->tasks.v[s].task == items[i].id; s++)
			play_task(p, s);
	}
}

/* The next life in the same slot begins after all who touched this one. They are all
 * named, as a loop in between may not run. */
static void reuse_edges(struct player *p)
{
	struct graph *g = p->g;
	const struct buffer *b = &g->buffers.v[p->buffer];

	for (int i = 0; i < p->firsts.n; i++) {
		int first = p->firsts.v[i];

		for (int s = 0; s < g->tasks.n; s++) {
			const struct stask *t = &g->tasks.v[s];
			bool reads = meets(g, t->reads.v, t->reads.n, p->buffer);
			bool writes = meets(g, t->writes.v, t->writes.n, p->buffer);

			if (reads || writes)
				add_edge(g, (struct edge){ .from = s, .to = first, .loop = b->loop, .kind = writes ?
					EDGE_OUTPUT : EDGE_ANTI, .distance = 1, .reuse = true, .buffer = p->buffer,
					.chain = accumulates(g, s, p->buffer) && accumulates(g, first, p->buffer) });
		}
	}
}

/* Of those who may begin a life, the first that ever does anything. */
static int first_to_run(const struct player *p)
{
	for (int i = 0; i < p->firsts.n; i++)
		if (!graph_never_runs(p->g, p->firsts.v[i]))
			return p->firsts.v[i];
	return p->firsts.v[0];
}

void build_edges(struct graph *g, const int *first_stask)
{
	g->first_in = ARENA_ARRAY(&g->arena, g->tasks.n, int);
	for (int i = 0; i < g->tasks.n; i++)
		g->first_in[i] = NONE;
	for (int i = 0; i < g->buffers.n; i++) {
		struct buffer *b = &g->buffers.v[i];
		struct player p = { .g = g, .first_stask = first_stask, .buffer = i, .now.fresh = true };

		if (b->loop != NONE)
			play_body(&p, g->program->loops.v[b->loop].body.v, g->program->loops.v[b->loop].body.n);
		else
			play_body(&p, g->program->phases.v[b->phase].body.v, g->program->phases.v[b->phase].body.n);
		if (!p.firsts.n)
			BUG("buffer '%s' is touched by nobody", b->name);
		b->first = first_to_run(&p);
		reuse_edges(&p);
	}
}
