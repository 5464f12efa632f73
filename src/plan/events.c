#include "plan/events.h"

#include <string.h>

/* List the instances of each lane replica in its order. An entry has as many as its region has iterations, of which each
 * is on one replica of the lane. */
static void collect_instances(struct arena *a, struct relation *r)
{
	const struct plan *p = r->plan;
	VEC(struct node_instance) v = { 0 };
	VEC(int) first = { 0 };
	int64_t n = 0;

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];

		n += s->phase == r->walk->phase ? walk_count(r->walk, s->loop) : 0;
	}
	v.v = ARENA_ARRAY(a, n, struct node_instance);
	v.cap = (int)min_i64(n, INT32_MAX);
	for (int lane = 0; lane < p->lanes.n; lane++) {
		for (int replica = 0; replica < p->lanes.v[lane].replicas; replica++) {
			struct cursor *c = cursor_new(a, p, r->walk, lane, replica);
			struct instance i;

			VEC_PUSH(a, &first, v.n);
			for (int position = 0; cursor_next(c, &i); position++)
				VEC_PUSH(a, &v, ((struct node_instance){
					.task = p->entries.v[i.entry].task, .entry = i.entry,
					.lane = lane, .replica = replica,
					.lane_replica = first.n - 1, .seq = i.seq,
					.position = position }));
		}
	}
	r->nlanes = first.n;
	VEC_PUSH(a, &first, v.n);
	r->lane_first = first.v;
	r->inst = v.v;
	r->n = v.n;
}

static void index_instances(struct arena *a, struct relation *r)
{
	const struct graph *g = r->plan->graph;
	int total = 0;

	r->of_task = ARENA_ARRAY(a, g->tasks.n + 1, int);
	for (int t = 0; t < g->tasks.n; t++) {
		r->of_task[t] = total;
		if (g->tasks.v[t].phase == r->walk->phase)
			total += (int)walk_count(r->walk, g->tasks.v[t].loop);
	}
	r->index = arena_ints(a, total, NONE);
	for (int i = 0; i < r->n; i++)
		r->index[r->of_task[r->inst[i].task] + r->inst[i].seq] = i;
}

static const struct seu *unit_of(const struct relation *r, int i)
{
	return &r->plan->device->seu[r->plan->entries.v[r->inst[i].entry].seu];
}

/* ---- clocks ----------------------------------------------------------------------- */

/* Instances that a wait asks for. */
struct awaited {
	int wait;
	struct span span;
};

/* The lane replicas on their way through their orders, each as far as its waits allow. */
struct progress {
	struct arena *a;
	struct relation *r;
	int *at;			/* by lane replica: its next instance */
	int *sleeper, *next;		/* lane replicas that wait for an instance, as lists */
	int *ready, nready;		/* lane replicas that may go on */
	int *wait_head, *wait_next;	/* by sTask: its waits, the last one first */
	int *last;			/* [lane replica * SEU_MAX + unit]: on ordered units */
	struct span *covered;		/* [wait * nlanes + lane replica]: what the instances of
					 * the lane replica that are done have waited for */
	int asked;			/* the instance that waits for `awaited` */
	VEC(struct awaited) awaited;
	bool *needed;			/* as relation_build's */
	int *others;			/* clocks for note_needed */
};

static bool is_done(const struct progress *g, int i)
{
	return i < g->at[g->r->inst[i].lane_replica];
}

static const struct wait *wait_at(const struct relation *r, int k)
{
	return &r->plan->waits.v[k];
}

static int spans_of(const struct relation *r, int wait, int i, struct span *out)
{
	return walk_wait_spans(r->walk, r->plan, wait_at(r, wait), r->inst[i].seq, out);
}

static struct span *covered_by(const struct progress *g, int wait, int i)
{
	return &g->covered[(size_t)wait * (size_t)g->r->nlanes + (size_t)g->r->inst[i].lane_replica];
}

/* Find what instance i waits for, without what an earlier instance of its lane replica waited for: the reader of a
 * carry waits for all iterations before. It stands in g->awaited until another instance asks. */
static void find_awaited(struct progress *g, int i)
{
	if (g->asked == i)
		return;
	g->asked = i;
	g->awaited.n = 0;
	VEC_MAKE_SPACE(g->a, &g->awaited);	/* so that its end is an address, of an empty list, too */
	for (int k = g->wait_head[g->r->inst[i].task]; k != NONE; k = g->wait_next[k]) {
		const struct span *c = covered_by(g, k, i);
		struct span spans[SPANS_MAX];
		int n = spans_of(g->r, k, i, spans);

		for (int s = 0; s < n; s++) {
			if (c->first <= spans[s].first && spans[s].first < c->last)
				spans[s].first = min_i64(c->last, spans[s].last);
			VEC_PUSH(g->a, &g->awaited, ((struct awaited){ k, spans[s] }));
		}
	}
}

/* An instance that i waits for and that is not done; NONE. Usually the last one of a span is done last. */
static int missing(struct progress *g, int i)
{
	find_awaited(g, i);
	for (const struct awaited *w = g->awaited.v; w < g->awaited.v + g->awaited.n; w++)
		for (int64_t x = w->span.last - 1; x >= w->span.first; x--) {
			int on = relation_instance(g->r, wait_at(g->r, w->wait)->on, x);

			if (on != NONE && !is_done(g, on))
				return on;
		}
	return NONE;
}

static int *issue_of(const struct relation *r, int i)
{
	return r->issue + (size_t)i * (size_t)r->nchains;
}

static int *start_of(const struct relation *r, int i)
{
	return r->start + (size_t)i * (size_t)r->nchains;
}

static void raise_to(int *clock, const int *other, int n)
{
	for (int k = 0; k < n; k++)
		if (other[k] > clock[k])
			clock[k] = other[k];
}

static void raise_to_completion(const struct relation *r, int *clock, int on)
{
	const struct node_instance *x = &r->inst[on];

	raise_to(clock, start_of(r, on), r->nchains);
	if (x->chain != NONE && x->link > clock[x->chain])
		clock[x->chain] = x->link;
}

/* Do these clocks show that instance i is complete? */
static bool is_complete_by(const struct relation *r, int i, const int *clock)
{
	const struct node_instance *x = &r->inst[i];

	if (x->chain != NONE)
		return clock[x->chain] >= x->link;
	for (int k = x->known; k != NONE; k = r->first_observers.v[k].next) {
		const struct node_instance *z = &r->inst[r->first_observers.v[k].instance];

		if (clock[z->lane_replica] >= 2 * z->position + 1)
			return true;
	}
	return false;
}

/* Instance i waits for the completion of an unordered one. */
static void note_first_observer(struct progress *g, int on, int i)
{
	struct relation *r = g->r;

	for (int k = r->inst[on].known; k != NONE; k = r->first_observers.v[k].next)
		if (r->inst[r->first_observers.v[k].instance].lane_replica == r->inst[i].lane_replica)
			return;
	VEC_PUSH(g->a, &r->first_observers, ((struct first_observer){ i, r->inst[on].known }));
	r->inst[on].known = r->first_observers.n - 1;
}

/* What a lane knows when instance `on` is as far as a wait asks for. */
static void raise_to_awaited(const struct relation *r, int *clock, const struct wait *w, int on)
{
	if (w->when == WAIT_ISSUED)
		raise_to(clock, issue_of(r, on), r->nchains);
	else
		raise_to_completion(r, clock, on);
}

/* What it knows when it goes on after the instance before i. */
static void raise_to_previous(const struct relation *r, int *clock, int i)
{
	if (r->inst[i].position && unit_of(r, i - 1)->async)
		raise_to(clock, issue_of(r, i - 1), r->nchains);
	else if (r->inst[i].position)
		raise_to_completion(r, clock, i - 1);
}

static void raise_to_waits(struct progress *g, int i)
{
	struct relation *r = g->r;

	find_awaited(g, i);
	for (const struct awaited *w = g->awaited.v; w < g->awaited.v + g->awaited.n; w++) {
		struct span *c = covered_by(g, w->wait, i);

		for (int64_t x = w->span.first; x < w->span.last; x++) {
			int on = relation_instance(r, wait_at(r, w->wait)->on, x);

			if (on == NONE)
				continue;
			raise_to_awaited(r, issue_of(r, i), wait_at(r, w->wait), on);
			if (wait_at(r, w->wait)->when != WAIT_ISSUED && r->inst[on].chain == NONE)
				note_first_observer(g, on, i);
		}
		if (w->span.first == c->last)
			c->last = w->span.last;
		else if (w->span.last - w->span.first > c->last - c->first)
			*c = w->span;
	}
}

/* The clocks of what i comes after without one of its waits: after the instance before it, and the other waits. */
static void raise_to_others(struct progress *g, int i, int without)
{
	const struct relation *r = g->r;

	memset(g->others, 0, (size_t)r->nchains * sizeof(int));
	raise_to_previous(r, g->others, i);
	for (const struct awaited *w = g->awaited.v; w < g->awaited.v + g->awaited.n; w++)
		for (int64_t x = w->span.first; x < w->span.last && w->wait != without; x++) {
			int on = relation_instance(r, wait_at(r, w->wait)->on, x);

			if (on != NONE)
				raise_to_awaited(r, g->others, wait_at(r, w->wait), on);
		}
}

/* Note which waits of i are the only way in which it comes after what they ask for. */
static void note_needed(struct progress *g, int i)
{
	int without = NONE;

	for (const struct awaited *w = g->awaited.v; w < g->awaited.v + g->awaited.n; w++) {
		if (g->needed[w->wait] || wait_at(g->r, w->wait)->when != WAIT_COMPLETE)
			continue;
		if (w->wait != without)
			raise_to_others(g, i, without = w->wait);
		for (int64_t x = w->span.first; x < w->span.last; x++) {
			int on = relation_instance(g->r, wait_at(g->r, w->wait)->on, x);

			g->needed[w->wait] |= on != NONE && !is_complete_by(g->r, on, g->others);
		}
	}
}

/* Compute the clocks of instance i; everything that it waits for is done. */
static void pass_instance(struct progress *g, int i)
{
	struct relation *r = g->r;
	struct node_instance *x = &r->inst[i];
	const struct seu *unit = unit_of(r, i);
	int *last = &g->last[x->lane_replica * SEU_MAX + r->plan->entries.v[x->entry].seu];

	raise_to_previous(r, issue_of(r, i), i);
	raise_to_waits(g, i);
	if (g->needed)
		note_needed(g, i);
	issue_of(r, i)[x->lane_replica] = 2 * x->position + 1;
	raise_to(start_of(r, i), issue_of(r, i), r->nchains);
	if (!unit->async || !unit->ordered)
		return;
	if (*last != NONE)
		raise_to_completion(r, start_of(r, i), *last);
	*last = i;
}

static void advance(struct progress *g, int lane_replica)
{
	const struct relation *r = g->r;

	while (g->at[lane_replica] < r->lane_first[lane_replica + 1]) {
		int i = g->at[lane_replica], on = missing(g, i);

		if (on != NONE) {
			g->next[lane_replica] = g->sleeper[on];
			g->sleeper[on] = lane_replica;
			return;
		}
		pass_instance(g, i);
		g->at[lane_replica]++;
		for (int l = g->sleeper[i]; l != NONE; l = g->next[l])
			g->ready[g->nready++] = l;
	}
}

/* Give each completion its chain and its link in it. */
static void number_chains(struct arena *a, struct relation *r)
{
	int *chain = ARENA_ARRAY(a, r->nlanes * SEU_MAX, int);
	int *length = ARENA_ARRAY(a, r->nlanes * SEU_MAX, int);

	r->nchains = r->nlanes;
	for (int i = 0; i < r->n; i++) {
		struct node_instance *x = &r->inst[i];
		int k = x->lane_replica * SEU_MAX + r->plan->entries.v[x->entry].seu;

		x->known = x->chain = NONE;
		if (!unit_of(r, i)->async) {
			x->chain = x->lane_replica;
			x->link = 2 * x->position + 2;
		} else if (unit_of(r, i)->ordered) {
			if (!length[k]++)
				chain[k] = r->nchains++;
			x->chain = chain[k];
			x->link = length[k];
		}
	}
}

static void progress_init(struct progress *g, struct arena *a, struct relation *r, bool *needed)
{
	const struct plan *p = r->plan;

	*g = (struct progress){ .a = a, .r = r, .needed = needed, .asked = NONE,
		.others = ARENA_ARRAY(a, r->nchains, int), .at = ARENA_ARRAY(a, r->nlanes, int),
		.sleeper = arena_ints(a, r->n, NONE), .next = arena_ints(a, r->nlanes, NONE),
		.ready = ARENA_ARRAY(a, r->nlanes, int), .wait_next = ARENA_ARRAY(a, p->waits.n, int),
		.wait_head = arena_ints(a, p->graph->tasks.n, NONE), .last = arena_ints(a, r->nlanes * SEU_MAX, NONE),
		.covered = arena_array(a, (size_t)p->waits.n * (size_t)r->nlanes, sizeof(struct span)) };
	for (int k = 0; k < p->waits.n; k++) {
		g->wait_next[k] = g->wait_head[wait_at(r, k)->task];
		g->wait_head[wait_at(r, k)->task] = k;
	}
	for (int l = r->nlanes - 1; l >= 0; l--) {
		g->at[l] = r->lane_first[l];
		g->ready[g->nready++] = l;
	}
}

/* ---- deadlocks -------------------------------------------------------------------- */

/* Of the events for which an event that never happens waits, the last that never happens either. Events are numbered
 * 3 * instance + enum event_of. */
static int cause(const struct progress *g, int event)
{
	const struct relation *r = g->r;
	int i = event / 3, prev = NONE;

	switch ((enum event_of)(event % 3)) {
	case AT_END:
		return event - 1;
	case AT_START:
		if (r->inst[i].chain >= r->nlanes)
			for (prev = i - 1; prev >= r->lane_first[r->inst[i].lane_replica]; prev--)
				if (r->inst[prev].chain == r->inst[i].chain)
					return is_done(g, prev) ? event - 1 : prev * 3 + AT_END;
		return event - 1;
	case AT_ISSUE:
		break;
	}
	for (int k = g->wait_head[r->inst[i].task]; k != NONE; k = g->wait_next[k]) {
		struct span spans[SPANS_MAX];

		for (int s = spans_of(r, k, i, spans) - 1; s >= 0; s--) {
			for (int64_t x = spans[s].last - 1; x >= spans[s].first; x--) {
				int on = relation_instance(r, wait_at(r, k)->on, x);

				if (on != NONE && !is_done(g, on))
					return on * 3 + (wait_at(r, k)->when == WAIT_ISSUED ? AT_ISSUE : AT_END);
			}
		}
	}
	return (i - 1) * 3 + (unit_of(r, i - 1)->async ? AT_ISSUE : AT_END);
}

/* Follow causes from an event that never happens until one comes again: the cycle, in order of waiting. */
static void find_cycle(const struct progress *g)
{
	struct relation *r = g->r;
	bool *seen = ARENA_ARRAY(g->a, r->n * 3, bool);
	VEC(int) cycle = { 0 };
	int e = 0, start;

	while (is_done(g, e / 3))
		e += 3;
	for (; !seen[e]; e = cause(g, e))
		seen[e] = true;
	start = e;
	do {
		if (!cycle.n || cycle.v[cycle.n - 1] != e / 3)
			VEC_PUSH(g->a, &cycle, e / 3);
		e = cause(g, e);
	} while (e != start);
	if (cycle.n > 1 && cycle.v[0] == cycle.v[cycle.n - 1])
		cycle.n--;
	r->cycle = cycle.v;
	r->ncycle = cycle.n;
}

void relation_build(struct arena *a, const struct plan *p, const struct walk *w, bool *needed, struct relation *out)
{
	struct progress g;

	*out = (struct relation){ .plan = p, .walk = w };
	collect_instances(a, out);
	index_instances(a, out);
	number_chains(a, out);
	out->issue = ARENA_ARRAY(a, (size_t)out->n * (size_t)out->nchains, int);
	out->start = ARENA_ARRAY(a, (size_t)out->n * (size_t)out->nchains, int);
	progress_init(&g, a, out, needed);
	while (g.nready)
		advance(&g, g.ready[--g.nready]);
	for (int l = 0; l < out->nlanes && !out->ncycle; l++)
		if (g.at[l] < out->lane_first[l + 1])
			find_cycle(&g);
}

bool relation_before(const struct relation *r, int i, enum event_of x, int j, enum event_of y)
{
	const struct node_instance *from = &r->inst[i];
	const int *clock = y == AT_ISSUE ? issue_of(r, j) : start_of(r, j);

	if (i == j)
		return x < y;
	if (x == AT_ISSUE)
		return clock[from->lane_replica] >= 2 * from->position + 1;
	return is_complete_by(r, i, clock);
}
