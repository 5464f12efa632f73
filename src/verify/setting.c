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

/* Is it a product of which the lane learns later that it is complete? If the result goes to shared memory, the lane
 * waits for the product at once. */
static bool is_async_product(const struct setting *s, int task)
{
	const struct seu *u = &s->plan->device->seu[s->plan->entries.v[plan_entry_of(s->plan, task)].seu];
	const struct stask *t = stask_at(s, task);

	for (int i = 0; i < t->writes.n; i++)
		if (s->ring_of[t->writes.v[i]] != NONE)
			return false;
	return u->kind == SEU_MATRIX && target_seen(s->r->target, u, true) == SEEN_COUNTED;
}

/* Add n cells for a buffer; returns the first. */
static int add_cells(struct arena *a, struct setting *s, int buffer, int n)
{
	int first = s->buffer.n;

	for (int i = 0; i < n; i++)
		VEC_PUSH(a, &s->buffer, buffer);
	return first;
}

void setting_init(struct arena *a, const struct role_program *r, const struct plan *p, int phase,
	struct setting *s)
{
	int n = p->graph->buffers.n, ntasks = p->graph->tasks.n;

	*s = (struct setting){ .r = r, .plan = p, .phase = phase, .first = ARENA_ARRAY(a, n, int),
		.versions = ARENA_ARRAY(a, n, int), .ring_of = ARENA_ARRAY(a, n, int),
		.lane = ARENA_ARRAY(a, ntasks, int), .matrix = ARENA_ARRAY(a, ntasks, bool),
		.staging = ARENA_ARRAY(a, r->stagings.n, int) };
	for (int i = 0; i < n; i++) {
		s->first[i] = s->ring_of[i] = NONE;
		s->versions[i] = p->versions[i];
	}
	for (int i = 0; i < r->rings.n; i++) {
		s->ring_of[r->rings.v[i].buffer] = i;
		s->versions[r->rings.v[i].buffer] = r->rings.v[i].versions;
	}
	for (int i = 0; i < ntasks; i++) {
		s->lane[i] = NONE;
		for (int k = 0; k < r->roles.n && stask_at(s, i)->phase == phase; k++)
			if (s->lane[i] == NONE && r->roles.v[k].lane == p->entries.v[plan_entry_of(p, i)].lane)
				s->lane[i] = k;
		s->matrix[i] = stask_at(s, i)->phase == phase && is_async_product(s, i);
	}
	for (int i = 0; i < r->rings.n; i++) {
		int buffer = r->rings.v[i].buffer;

		if (buffer_at(s, buffer)->alias_of == NONE)
			s->first[buffer] = add_cells(a, s, buffer, s->versions[buffer]);
	}
	s->nslots = s->buffer.n;
	for (int i = 0; i < r->stagings.n; i++) {
		const struct role_staging *x = &r->stagings.v[i];

		s->staging[i] = add_cells(a, s, stask_at(s, x->task)->reads.v[0], x->batches);
	}
	s->nshared = s->buffer.n;
	for (int i = 0; i < n; i++) {
		const struct buffer *b = buffer_at(s, i);

		if (b->phase == phase && s->ring_of[i] == NONE && b->alias_of == NONE)
			s->first[i] = add_cells(a, s, i, s->versions[i] * r->roles.v[s->lane[b->first]].replicas);
	}
	s->ncells = s->buffer.n;
	for (int i = 0; i < n; i++)
		if (buffer_at(s, i)->phase == phase && buffer_at(s, i)->alias_of != NONE)
			s->first[i] = s->first[buffer_at(s, i)->alias_of];
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
};

static void begin_lives(struct sequence *q, int loop)
{
	for (int i = 0; i < q->s->set->plan->graph->buffers.n; i++)
		if (buffer_at(q->s->set, i)->loop == loop)
			q->writer[i] = NONE;
}

/* seq: the iteration of loop `loop`, or tile, that the items are in. */
static void sequence_body(struct sequence *q, int64_t seq, const struct item *items, int n)
{
	const struct graph *g = q->s->set->plan->graph;

	for (int i = 0; i < n; i++) {
		int id = items[i].id;

		for (int t = 0; t < g->tasks.n && !items[i].is_loop; t++) {
			const struct stask *task = &g->tasks.v[t];

			if (task->task != id)
				continue;
			for (int k = 0; k < task->reads.n; k++)
				q->s->want[t][seq * task->reads.n + k] = q->writer[task->reads.v[k]];
			for (int k = 0; k < task->writes.n; k++)
				q->writer[task->writes.v[k]] = scenario_instance(q->s, t, seq);
		}
		if (!items[i].is_loop)
			continue;
		const struct loop *l = &g->program->loops.v[id];
		for (int64_t s = q->s->walk->cum[id][seq]; s < q->s->walk->cum[id][seq + 1]; s++) {
			begin_lives(q, id);
			sequence_body(q, s, l->body.v, l->body.n);
		}
	}
}

void scenario_writers(struct arena *a, struct scenario *s)
{
	const struct graph *g = s->set->plan->graph;
	const struct phase *p = &g->program->phases.v[s->set->phase];
	struct sequence q = { .s = s, .writer = ARENA_ARRAY(a, g->buffers.n, int) };

	for (int64_t tile = 0; tile < s->walk->ntiles; tile++) {
		begin_lives(&q, NONE);
		sequence_body(&q, tile, p->body.v, p->body.n);
	}
}
