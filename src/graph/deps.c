/* Dependences, from what the sTasks read and write.
 *
 * For each buffer, one life of it is played: the body of its region once, each loop inside two times, and not at all if
 * it may have no iteration. The sTasks that may have written last and may have read since then give the edges; where
 * the two ends are in different iterations of a loop, that loop and distance 1. Two rounds show every pair, as a third
 * would meet the same last writers and readers. Then all that touched a life give the reuse edges to those that may
 * begin the next life in its slot. An alias is played with its buffer, as if it were the same: the last writer must
 * then be the one that wrote what is read. */
#include "graph/build.h"

#include <string.h>

/* An sTask touching the buffer, and the round of each loop around it. */
struct access {
	int task;
	int depth;			/* loops inside the buffer's region */
	int loop[16], round[16];
	bool unread;			/* of a writer: perhaps not read since */
};

struct accesses {
	struct access *v;
	int n, cap;
};

/* What may be the case at one point of the program. */
struct moment {
	bool fresh;			/* the buffer is untouched */
	struct accesses writers;	/* one of these was the last */
	struct accesses readers;	/* since then */
};

struct player {
	struct graph *g;
	const int *first_stask;		/* by task of the program: its first sTask, or NONE */
	int buffer;
	struct access at;		/* loops being played */
	struct moment now;
	VEC(int) firsts;		/* sTasks that may begin a life */
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

	return s->kind == TASK_MMA && ints_hold(s->writes.v, s->writes.n, buffer) && g->buffers.v[buffer].carry != NONE;
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

/* Add an edge, unless an sTask would depend on itself within one instance. */
static void join(struct player *p, const struct access *from, const struct access *to, enum edge_kind kind)
{
	struct edge e = edge_between(p, from, to, kind);

	if (e.from != e.to || e.distance)
		add_edge(p->g, e);
}

/* Add edges to an sTask that reads the buffer or an alias of it, one for each of those that it reads. */
static void join_reader(struct player *p, const struct access *from, const struct access *to)
{
	const struct stask *s = &p->g->tasks.v[to->task];
	int buffer = p->buffer;

	for (int i = 0; i < s->reads.n; i++)
		if (s->reads.v[i] == buffer || p->g->buffers.v[s->reads.v[i]].alias_of == buffer) {
			struct edge e = edge_between(p, from, to, EDGE_FLOW);

			e.buffer = s->reads.v[i];
			if (e.from != e.to || e.distance)
				add_edge(p->g, e);
		}
}

static void add_access(struct arena *a, struct accesses *list, const struct access *x)
{
	size_t size = (size_t)x->depth * sizeof(x->loop[0]);
	int i = 0;

	while (i < list->n && (list->v[i].task != x->task || list->v[i].depth != x->depth ||
	       memcmp(list->v[i].loop, x->loop, size) || memcmp(list->v[i].round, x->round, size)))
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

/* After a loop, it makes no difference in which of its rounds an access was. */
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

/* The first sTask gives a carry its initial value, so it counts as a writer. */
static void play_task(struct player *p, int task)
{
	struct arena *a = &p->g->arena;
	const struct stask *s = &p->g->tasks.v[task];
	bool reads = graph_holds_storage(p->g, &s->reads, p->buffer);
	bool writes = graph_holds_storage(p->g, &s->writes, p->buffer);
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
	if (first && !ints_hold(p->firsts.v, p->firsts.n, task))
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

/* The next life in the same slot begins after all sTasks that touched this one: all, as a loop in between may not
 * run. */
static void reuse_edges(struct player *p)
{
	struct graph *g = p->g;
	const struct buffer *b = &g->buffers.v[p->buffer];

	for (int i = 0; i < p->firsts.n; i++) {
		int first = p->firsts.v[i];

		for (int s = 0; s < g->tasks.n; s++) {
			const struct stask *t = &g->tasks.v[s];
			bool reads = graph_holds_storage(g, &t->reads, p->buffer);
			bool writes = graph_holds_storage(g, &t->writes, p->buffer);

			if (reads || writes)
				add_edge(g, (struct edge){ .from = s, .to = first, .loop = b->loop, .kind = writes ?
					EDGE_OUTPUT : EDGE_ANTI, .distance = 1, .reuse = true, .buffer = p->buffer,
					.chain = accumulates(g, s, p->buffer) && accumulates(g, first, p->buffer) });
		}
	}
}

void build_edges(struct graph *g, const int *first_stask)
{
	g->first_in = arena_ints(&g->arena, g->tasks.n, NONE);
	for (int i = 0; i < g->buffers.n; i++) {
		struct buffer *b = &g->buffers.v[i];
		struct player p = { .g = g, .first_stask = first_stask, .buffer = i, .now.fresh = true };

		if (b->loop != NONE)
			play_body(&p, g->program->loops.v[b->loop].body.v, g->program->loops.v[b->loop].body.n);
		else
			play_body(&p, g->program->phases.v[b->phase].body.v, g->program->phases.v[b->phase].body.n);
		if (!p.firsts.n)
			BUG("buffer '%s' is touched by nobody", b->name);
		b->first = p.firsts.v[0];
		for (int k = p.firsts.n - 1; k >= 0; k--)	/* the first that ever runs */
			if (!graph_never_runs(g, p.firsts.v[k]))
				b->first = p.firsts.v[k];
		reuse_edges(&p);
	}
}
