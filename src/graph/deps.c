/* Dependences, from what the sTasks read and write.
 *
 * For each buffer, one life of it is played: its region's body once, each loop
 * inside two times. Who last wrote and who has read since give the edges; where the
 * two ends stand in different iterations of a loop, that loop and distance 1. Two
 * rounds show every pair there is, as a third would meet the same last writer and
 * readers. Then the ends of a life give the reuse edges to the beginning of the one
 * that takes its slot. */
#include "graph/build.h"

/* An sTask touching the buffer, and the round of each loop around it. */
struct access {
	int task;
	int depth;			/* loops inside the buffer's region */
	int loop[16], round[16];
};

struct player {
	struct graph *g;
	int buffer;
	struct access at;		/* loops being played */
	VEC(struct access) readers;	/* since the last write */
	struct access writer;
	bool begun;
};

static void add_edge(struct graph *g, struct edge e)
{
	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *o = &g->edges.v[i];

		if (o->from == e.from && o->to == e.to && o->kind == e.kind && o->loop == e.loop &&
		    o->distance == e.distance && o->reuse == e.reuse && o->buffer == e.buffer)
			return;
	}
	VEC_PUSH(&g->arena, &g->edges, e);
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
static void join(struct player *p, const struct access *from, const struct access *to,
	enum edge_kind kind)
{
	struct edge e = edge_between(p, from, to, kind);

	if (e.from != e.to || e.distance)
		add_edge(p->g, e);
}

static bool touches(const int *list, int n, int buffer)
{
	for (int i = 0; i < n; i++)
		if (list[i] == buffer)
			return true;
	return false;
}

static void play_task(struct player *p, int task)
{
	const struct stask *s = &p->g->tasks.v[task];
	bool reads = touches(s->reads.v, s->reads.n, p->buffer);
	bool writes = touches(s->writes.v, s->writes.n, p->buffer);
	struct access here = p->at;

	if (!reads && !writes)
		return;
	here.task = task;
	if (!p->begun) {
		/* whoever comes first gives a carry its initial value */
		p->begun = true;
		p->writer = here;
		p->g->buffers.v[p->buffer].first = task;
		if (!reads)
			return;
		reads = false;
	}
	if (reads)
		join(p, &p->writer, &here, EDGE_FLOW);
	if (writes) {
		for (int i = 0; i < p->readers.n; i++)
			join(p, &p->readers.v[i], &here, EDGE_ANTI);
		if (!p->readers.n && !reads)
			join(p, &p->writer, &here, EDGE_OUTPUT);
		p->writer = here;
		p->readers.n = 0;
	}
	if (reads && !writes)
		VEC_PUSH(&p->g->arena, &p->readers, here);
}

static void play_body(struct player *p, const struct item *items, int n);

static void play_loop(struct player *p, int loop)
{
	const struct loop *l = &p->g->program->loops.v[loop];
	int level = p->at.depth++;

	if (level >= LEN(p->at.loop))
		BUG("loops nested more than %d deep", LEN(p->at.loop));
	p->at.loop[level] = loop;
	for (int round = 0; round < 2; round++) {
		p->at.round[level] = round;
		play_body(p, l->body.v, l->body.n);
	}
	p->at.depth = level;
}

static void play_body(struct player *p, const struct item *items, int n)
{
	for (int i = 0; i < n; i++) {
		if (items[i].is_loop) {
			play_loop(p, items[i].id);
			continue;
		}
		for (int s = 0; s < p->g->tasks.n; s++)
			if (p->g->tasks.v[s].task == items[i].id)
				play_task(p, s);
	}
}

/* The next life in the same slot begins with `first`, after the last writer and all
 * who touched this one. The writer is named too: a loop in between may not run. */
static void reuse_edges(struct player *p)
{
	struct graph *g = p->g;
	const struct buffer *b = &g->buffers.v[p->buffer];

	for (int s = 0; s < g->tasks.n; s++) {
		const struct stask *t = &g->tasks.v[s];
		bool reads = touches(t->reads.v, t->reads.n, p->buffer);
		bool writes = touches(t->writes.v, t->writes.n, p->buffer);

		if (reads || writes)
			add_edge(g, (struct edge){ .from = s, .to = b->first, .loop = b->loop,
				.kind = writes ? EDGE_OUTPUT : EDGE_ANTI, .distance = 1,
				.reuse = true, .buffer = p->buffer,
				.chain = accumulates(g, s, p->buffer) &&
					accumulates(g, b->first, p->buffer) });
	}
}

void build_edges(struct graph *g)
{
	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		struct player p = { .g = g, .buffer = i };

		if (b->loop != NONE)
			play_body(&p, g->program->loops.v[b->loop].body.v,
				g->program->loops.v[b->loop].body.n);
		else
			play_body(&p, g->program->phases.v[b->phase].body.v,
				g->program->phases.v[b->phase].body.n);
		if (!p.begun)
			BUG("buffer '%s' is touched by nobody", b->name);
		reuse_edges(&p);
	}
}
