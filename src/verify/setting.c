/* What all scenarios of a role program share, and which instance writes what each sTask reads. */
#include "verify/acts.h"

static const struct stask *stask_at(const struct setting *s, int task)
{
	return &s->plan->graph->tasks.v[task];
}

static const struct buffer *buffer_at(const struct setting *s, int buffer)
{
	return &s->plan->graph->buffers.v[buffer];
}

/* Does the result of a product go to shared memory? Then the lane waits for the product at once. */
static bool is_result_shared(const struct setting *s, int task)
{
	const struct stask *t = stask_at(s, task);

	for (int i = 0; i < t->writes.n; i++)
		if (s->ring_of[t->writes.v[i]] != NONE)
			return true;
	return false;
}

/* Is it a product of which the lane learns later that it is complete? */
static bool is_async_product(const struct setting *s, int task)
{
	const struct seu *u = &s->plan->device->seu[s->plan->entries.v[plan_entry_of(s->plan, task)].seu];

	return u->kind == SEU_MATRIX && target_seen(s->r->target, u, true) == SEEN_COUNTED &&
		!is_result_shared(s, task);
}

static int role_of(const struct role_program *r, int lane)
{
	int i = 0;

	while (i < r->roles.n && r->roles.v[i].lane != lane)
		i++;
	return i < r->roles.n ? i : NONE;
}

static void find_lanes(struct arena *a, struct setting *s)
{
	int n = s->plan->graph->tasks.n;

	s->lane = ARENA_ARRAY(a, n, int);
	s->matrix = ARENA_ARRAY(a, n, bool);
	for (int i = 0; i < n; i++) {
		s->lane[i] = NONE;
		if (stask_at(s, i)->phase != s->phase)
			continue;
		s->lane[i] = role_of(s->r, s->plan->entries.v[plan_entry_of(s->plan, i)].lane);
		s->matrix[i] = is_async_product(s, i);
	}
}

static int versions_of(const struct setting *s, int buffer)
{
	int ring = s->ring_of[buffer];

	return ring != NONE ? s->r->rings.v[ring].versions : s->plan->versions[buffer];
}

/* Each replica of a lane has its own registers. */
static int replicas_of(const struct setting *s, int buffer)
{
	int lane = s->lane[buffer_at(s, buffer)->first];

	return s->ring_of[buffer] != NONE ? 1 : s->r->roles.v[lane].replicas;
}

static void add_cells(struct setting *s, int buffer)
{
	s->first[buffer] = s->ncells;
	s->ncells += s->versions[buffer] * replicas_of(s, buffer);
}

void setting_init(struct arena *a, const struct role_program *r, const struct plan *p, int phase, struct setting *s)
{
	int n = p->graph->buffers.n;

	*s = (struct setting){ .r = r, .plan = p, .phase = phase, .first = ARENA_ARRAY(a, n, int),
		.versions = ARENA_ARRAY(a, n, int), .ring_of = ARENA_ARRAY(a, n, int) };
	for (int i = 0; i < n; i++)
		s->first[i] = s->ring_of[i] = NONE;
	for (int i = 0; i < r->rings.n; i++)
		s->ring_of[r->rings.v[i].buffer] = i;
	find_lanes(a, s);
	for (int i = 0; i < n; i++)
		s->versions[i] = versions_of(s, i);
	for (int i = 0; i < r->rings.n; i++)
		if (buffer_at(s, r->rings.v[i].buffer)->alias_of == NONE)
			add_cells(s, r->rings.v[i].buffer);
	s->nslots = s->ncells;
	s->staging = ARENA_ARRAY(a, r->stagings.n, int);
	for (int i = 0; i < r->stagings.n; i++) {
		s->staging[i] = s->ncells;
		s->ncells += r->stagings.v[i].batches;
	}
	s->nshared = s->ncells;
	for (int i = 0; i < n; i++)
		if (buffer_at(s, i)->phase == phase && s->ring_of[i] == NONE &&
		    buffer_at(s, i)->alias_of == NONE)
			add_cells(s, i);
	for (int i = 0; i < n; i++)
		if (buffer_at(s, i)->phase == phase && buffer_at(s, i)->alias_of != NONE)
			s->first[i] = s->first[buffer_at(s, i)->alias_of];
	s->buffer = ARENA_ARRAY(a, s->ncells, int);
	for (int i = 0; i < n; i++)
		for (int v = 0; s->first[i] != NONE && buffer_at(s, i)->alias_of == NONE && v < s->versions[i] *
		     replicas_of(s, i); v++)
			s->buffer[s->first[i] + v] = i;
	for (int i = 0; i < r->stagings.n; i++)
		for (int v = 0; v < r->stagings.v[i].batches; v++)
			s->buffer[s->staging[i] + v] = stask_at(s, r->stagings.v[i].task)->reads.v[0];
}

int setting_vars(const struct setting *s, enum var_index index)
{
	const struct program *p = s->plan->graph->program;

	switch (index) {
	case OF_NONE: return 0;
	case OF_LOOP: return p->loops.n;
	case OF_AXIS: return p->axes.n;
	case OF_FLAG: return s->r->flags.n;
	case OF_RING: return s->r->rings.n;
	case OF_START: return s->r->begins;
	case OF_DIMENSION: break;
	}
	return RANK_MAX;
}

/* writers --------------------------------------------------- */

/* An execution of the program in its own order, one sTask after the other. */
struct sequence {
	struct scenario *s;
	int *writer;			/* by buffer: the instance that wrote last in its current life */
	int64_t *at;			/* by loop: sequence number */
	int64_t tile;
};

static int64_t sequence_of(const struct sequence *q, int loop)
{
	return loop == NONE ? q->tile : q->at[loop];
}

static void sequence_task(struct sequence *q, int task)
{
	const struct stask *t = stask_at(q->s->set, task);
	int64_t seq = sequence_of(q, t->loop);

	for (int i = 0; i < t->reads.n; i++)
		q->s->want[task][seq * t->reads.n + i] = q->writer[t->reads.v[i]];
	for (int i = 0; i < t->writes.n; i++)
		q->writer[t->writes.v[i]] = scenario_instance(q->s, task, seq);
}

static void new_lives(struct sequence *q, int loop)
{
	for (int i = 0; i < q->s->set->plan->graph->buffers.n; i++)
		if (buffer_at(q->s->set, i)->loop == loop)
			q->writer[i] = NONE;
}

static void sequence_body(struct sequence *q, int loop, const struct item *items, int n)
{
	const struct graph *g = q->s->set->plan->graph;

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
			sequence_body(q, l, g->program->loops.v[l].body.v, g->program->loops.v[l].body.n);
		}
	}
}

void scenario_writers(struct arena *a, struct scenario *s)
{
	const struct graph *g = s->set->plan->graph;
	const struct phase *p = &g->program->phases.v[s->set->phase];
	struct sequence q = { .s = s, .writer = ARENA_ARRAY(a, g->buffers.n, int),
		.at = ARENA_ARRAY(a, g->program->loops.n, int64_t) };

	for (q.tile = 0; q.tile < s->walk->ntiles; q.tile++) {
		new_lives(&q, NONE);
		sequence_body(&q, NONE, p->body.v, p->body.n);
	}
}
