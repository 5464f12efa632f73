/* What is the same in every play of a kernel, and what its program would do in order. */
#include "lower/actions.h"

static const struct stask *stask_at(const struct kernel *k, int task)
{
	return &k->plan->graph->tasks.v[task];
}

static const struct buffer *buffer_at(const struct kernel *k, int buffer)
{
	return &k->plan->graph->buffers.v[buffer];
}

int flag_loop(const struct kernel *k, int flag)
{
	const struct flag *f = &k->flags.v[flag];

	return f->runs ? k->plan->graph->program->loops.v[f->loop].parent : stask_at(k, f->task)->loop;
}

/* Whose completion the lane learns of later? */
static bool on_matrix(const struct kernel *k, int task)
{
	const struct seu *u = &k->plan->device->seu[k->plan->entries.v[plan_entry_of(k->plan,
		task)].seu];

	return u->kind == SEU_MATRIX && u->async && !kernel_lands(k, task);
}

static void find_lanes(struct arena *a, struct setting *s)
{
	int n = s->k->plan->graph->tasks.n;

	s->lane = ARENA_ARRAY(a, n, int);
	s->matrix = ARENA_ARRAY(a, n, bool);
	for (int i = 0; i < n; i++)
		s->lane[i] = NONE;
	for (int i = 0; i < s->k->lanes.n; i++) {
		for (int j = 0; j < s->k->lanes.v[i].entries.n; j++) {
			int task = s->k->lanes.v[i].entries.v[j].task;

			s->lane[task] = i - s->k->lanes.v[i].copy;
			s->matrix[task] = on_matrix(s->k, task);
		}
	}
}

static int versions_of(const struct kernel *k, int buffer)
{
	int ring = k->ring_of[buffer];

	return ring != NONE ? k->rings.v[ring].versions : k->plan->versions[buffer];
}

/* Copies of a lane have registers of their own. */
static int copies_of(const struct setting *s, int buffer)
{
	int lane = s->lane[buffer_at(s->k, buffer)->first];

	return s->k->ring_of[buffer] != NONE ? 1 : s->k->lanes.v[lane].copies;
}

static void add_places(struct setting *s, int buffer)
{
	s->first[buffer] = s->nplaces;
	s->nplaces += versions_of(s->k, buffer) * copies_of(s, buffer);
}

void setting_init(struct arena *a, const struct kernel *k, struct setting *s)
{
	int n = k->plan->graph->buffers.n;

	*s = (struct setting){ .k = k, .first = ARENA_ARRAY(a, n, int),
		.versions = ARENA_ARRAY(a, n, int) };
	find_lanes(a, s);
	for (int i = 0; i < n; i++) {
		s->first[i] = NONE;
		s->versions[i] = versions_of(k, i);
	}
	for (int i = 0; i < k->rings.n; i++)
		add_places(s, k->rings.v[i].buffer);
	s->shared = s->nplaces;
	s->room = ARENA_ARRAY(a, k->outboxes.n, int);
	for (int i = 0; i < k->outboxes.n; i++) {
		s->room[i] = s->nplaces;
		s->nplaces += k->outboxes.v[i].batches;
	}
	s->rooms = s->nplaces;
	for (int i = 0; i < n; i++)
		if (buffer_at(k, i)->phase == k->phase && k->ring_of[i] == NONE)
			add_places(s, i);
	s->buffer = ARENA_ARRAY(a, s->nplaces, int);
	for (int i = 0; i < n; i++)
		for (int v = 0; s->first[i] != NONE && v < versions_of(k, i) * copies_of(s, i); v++)
			s->buffer[s->first[i] + v] = i;
	for (int i = 0; i < k->outboxes.n; i++)
		for (int v = 0; v < k->outboxes.v[i].batches; v++)
			s->buffer[s->room[i] + v] = stask_at(k, k->outboxes.v[i].task)->reads.v[0];
}

/* who writes what is read --------------------------------------------------- */

/* The program in its own order, one thing after the other. */
struct sequence {
	struct script *s;
	int *writer;			/* by buffer: the instance that wrote last in this life */
	int64_t *at;			/* by loop: sequence number */
	int64_t tile;
};

static int64_t sequence_of(const struct sequence *q, int loop)
{
	return loop == NONE ? q->tile : q->at[loop];
}

static void sequence_task(struct sequence *q, int task)
{
	const struct stask *t = stask_at(q->s->set->k, task);
	int64_t seq = sequence_of(q, t->loop);

	for (int i = 0; i < t->reads.n; i++)
		q->s->want[task][seq * t->reads.n + i] = q->writer[t->reads.v[i]];
	for (int i = 0; i < t->writes.n; i++)
		q->writer[t->writes.v[i]] = script_instance(q->s, task, seq);
}

static void new_lives(struct sequence *q, int loop)
{
	for (int i = 0; i < q->s->set->k->plan->graph->buffers.n; i++)
		if (buffer_at(q->s->set->k, i)->loop == loop)
			q->writer[i] = NONE;
}

static void sequence_body(struct sequence *q, int loop, const struct item *items, int n)
{
	const struct graph *g = q->s->set->k->plan->graph;

	for (int i = 0; i < n; i++) {
		int l = items[i].id;

		if (!items[i].is_loop) {
			for (int t = 0; t < g->tasks.n; t++)
				if (g->tasks.v[t].task == l)
					sequence_task(q, t);
			continue;
		}
		const int64_t *cum = &q->s->walk->cum[l][sequence_of(q, loop)];

		for (q->at[l] = cum[0]; q->at[l] < cum[1]; q->at[l]++) {
			new_lives(q, l);
			sequence_body(q, l, g->program->loops.v[l].body.v,
				g->program->loops.v[l].body.n);
		}
	}
}

void script_writers(struct arena *a, struct script *s)
{
	const struct graph *g = s->set->k->plan->graph;
	const struct phase *p = &g->program->phases.v[s->set->k->phase];
	struct sequence q = { .s = s, .writer = ARENA_ARRAY(a, g->buffers.n, int),
		.at = ARENA_ARRAY(a, g->program->loops.n, int64_t) };

	for (q.tile = 0; q.tile < s->walk->ntiles; q.tile++) {
		new_lives(&q, NONE);
		sequence_body(&q, NONE, p->body.v, p->body.n);
	}
}
