#include "search/orders.h"

#include "search/indices.h"

enum { SETS_MAX = 20, NEEDED_MAX = 28 };	/* fewer than ORDERS_MAX, for exact orders to come */

/* The body of a loop without its loads and their indices. Sets of its sTasks are bits. */
struct body {
	const struct graph *g;
	const struct vdevice *d;
	int phase, loop, n;
	int task[ORDER_TASKS];
	bool async[ORDER_TASKS];
};

/* False if there are too many sTasks, or a loop among them. */
static bool collect(struct body *b)
{
	const struct program *p = b->g->program;

	for (int l = 0; l < p->loops.n; l++)
		if (p->loops.v[l].parent == b->loop && p->loops.v[l].phase == b->phase)
			return false;
	for (int t = 0; t < b->g->tasks.n; t++) {
		const struct stask *s = &b->g->tasks.v[t];
		int seu = device_seu_for(b->d, &s->work);

		if (s->loop != b->loop || s->phase != b->phase || s->kind == TASK_LOAD || computes_indices(b->g, t))
			continue;
		if (b->n == ORDER_TASKS || seu == NONE)
			return false;
		b->async[b->n] = b->d->seu[seu].async;
		b->task[b->n++] = t;
	}
	return true;
}

/* Is the edge a dependence of the body? *early: the iterations by which its end comes too early if `ahead` runs ahead;
 * 0: its ends belong to one iteration, in which they must be in order. */
static bool binds(const struct body *b, const struct edge *e, uint32_t ahead, int *early)
{
	int from = ints_find(b->task, b->n, e->from), to = ints_find(b->task, b->n, e->to);

	if (e->loop != b->loop || e->reuse || from == NONE || to == NONE)
		return false;
	*early = (int)(ahead >> to & 1) - (int)(ahead >> from & 1) - e->distance;
	return true;
}

static bool is_possible(const struct body *b, uint32_t ahead)
{
	int early;

	for (int i = 0; i < b->g->edges.n; i++)
		if (binds(b, &b->g->edges.v[i], ahead, &early) && early > 0)
			return false;
	return true;
}

/* Must sTask x come after one of `open` in the iteration? */
static bool must_wait(const struct body *b, int x, uint32_t ahead, uint32_t open)
{
	int early;

	for (int i = 0; i < b->g->edges.n; i++) {
		const struct edge *e = &b->g->edges.v[i];

		if (e->to == b->task[x] && e->from != e->to && binds(b, e, ahead, &early) &&
		    early == 0 && open >> ints_find(b->task, b->n, e->from) & 1)
			return true;
	}
	return false;
}

static bool goes_before(const struct body *b, uint32_t ahead, int x, int y)
{
	bool xa = ahead >> x & 1, ya = ahead >> y & 1;

	if (b->async[x] != b->async[y])
		return b->async[x];
	return xa != ya ? ya : x < y;
}

/* Topological order of the body. False: there is a circle. */
static bool arrange(const struct body *b, uint32_t ahead, struct order *out)
{
	uint32_t open = b->n ? (uint32_t)((UINT64_C(1) << b->n) - 1) : 0;

	*out = (struct order){ 0 };
	while (open) {
		int best = NONE;

		for (int i = 0; i < b->n; i++)
			if (open >> i & 1 && !must_wait(b, i, ahead, open & ~(UINT32_C(1) << i)) &&
			    (best == NONE || goes_before(b, ahead, i, best)))
				best = i;
		if (best == NONE)
			return false;
		out->v[out->n].task = b->g->tasks.v[b->task[best]].task;
		out->v[out->n++].at = ahead >> best & 1;
		open &= ~(UINT32_C(1) << best);
	}
	return true;
}

static bool equal(const struct order *x, const struct order *y)
{
	for (int i = 0; i < x->n; i++)
		if (x->v[i].task != y->v[i].task || x->v[i].at != y->v[i].at)
			return false;
	return x->n == y->n;
}

static bool is_computed(const struct graph *g, int buffer)
{
	const struct buffer *b = &g->buffers.v[buffer];

	return (b->loop != NONE || !g->program->loops.n) && b->carry == NONE && g->tasks.v[b->first].kind != TASK_LOAD;
}

int order_value(const struct graph *g, int buffer)
{
	int n = 0;

	if (!is_computed(g, buffer))
		return NONE;
	for (int i = 0; i < buffer; i++)
		n += is_computed(g, i) && g->buffers.v[i].slice == 0;
	return g->buffers.v[buffer].slice ? n - 1 : n;
}

/* Values that are computed ahead of their readers. */
static unsigned made_ahead(const struct body *b, uint32_t ahead)
{
	unsigned versions = 0;

	for (int i = 0; i < b->g->edges.n; i++) {
		const struct edge *e = &b->g->edges.v[i];
		int from = ints_find(b->task, b->n, e->from), to = ints_find(b->task, b->n, e->to),
			value = order_value(b->g, e->buffer);

		if (e->kind == EDGE_FLOW && from != NONE && to != NONE && value != NONE && value < 32 &&
		    (ahead >> from & 1) > (ahead >> to & 1))
			versions |= 1u << value;
	}
	return versions;
}

int orders_add(struct orders *o, const struct order *x)
{
	for (int i = 0; i < o->n; i++)
		if (equal(&o->v[i], x))
			return i;
	if (o->n == ORDERS_MAX)
		return NONE;
	o->v[o->n] = *x;
	return o->n++;
}

/* ---- needed products first -------------------------------------------------------------- */

/* The index in the body of the sTask at that step of the order. */
static int task_at_step(const struct body *b, const struct order *o, int step)
{
	int i;

	FIND_FIRST(i, b->n, b->g->tasks.v[b->task[i]].task == o->v[step].task);
	return i;
}

/* Does something other than a product need x in the iteration? */
static bool is_needed(const struct body *b, int x, uint32_t ahead)
{
	int early;

	for (int i = 0; i < b->g->edges.n; i++) {
		const struct edge *e = &b->g->edges.v[i];

		if (e->kind == EDGE_FLOW && e->from == b->task[x] && binds(b, e, ahead, &early) && early == 0 &&
		    b->g->tasks.v[e->to].kind != TASK_MMA)
			return true;
	}
	return false;
}

/* Can the product of the next step come before that of this one, and does something wait for it, but for this one nothing? */
static bool should_swap(const struct body *b, const struct order *o, int step, uint32_t ahead)
{
	int x = task_at_step(b, o, step), y = task_at_step(b, o, step + 1);

	return b->g->tasks.v[b->task[x]].kind == TASK_MMA && b->g->tasks.v[b->task[y]].kind == TASK_MMA &&
		!must_wait(b, y, ahead, UINT32_C(1) << x) && is_needed(b, y, ahead) && !is_needed(b, x, ahead);
}

/* Products of an iteration come in the program's order. What waits for the last of them waits for all, as they retire in order. So
 * there is another order for each product that it can come before, of those that nothing waits for. */
static void add_needed_first(const struct body *b, struct orders *out)
{
	int n = out->n;

	for (int i = 0; i < n; i++) {
		uint32_t ahead = 0;

		for (int k = 0; k < out->v[i].n; k++)
			ahead |= (uint32_t)out->v[i].v[k].at << task_at_step(b, &out->v[i], k);
		for (int step = 0; step + 1 < b->n; step++) {
			struct order x = out->v[i];

			for (int k = step; k >= 0 && should_swap(b, &x, k, ahead) && out->n < NEEDED_MAX; k--) {
				const struct order before = x;

				x.v[k] = before.v[k + 1];
				x.v[k + 1] = before.v[k];
				orders_add(out, &x);
			}
		}
	}
}

void orders_find(const struct graph *g, const struct vdevice *d, int phase, int loop, struct orders *out)
{
	struct body b = { .g = g, .d = d, .phase = phase, .loop = loop };
	uint32_t most;

	out->n = out->most = 0;
	if (!collect(&b))
		return;
	out->v[out->n] = (struct order){ .n = b.n };
	for (int i = 0; i < b.n; i++)
		out->v[out->n].v[i].task = b.g->tasks.v[b.task[i]].task;
	out->n++;
	most = b.n <= 12 ? (UINT32_C(1) << b.n) - 1 : 0;	/* proper subsets */
	for (int n = 0; n < b.n; n++)
		for (uint32_t ahead = 0; ahead < most; ahead++) {
			struct order x;

			if (__builtin_popcount(ahead) == n && is_possible(&b, ahead) && arrange(&b, ahead, &x) &&
			    out->n < SETS_MAX) {
				x.versions = made_ahead(&b, ahead);
				orders_add(out, &x);
			}
		}
	out->most = out->n - 1;
	add_needed_first(&b, out);
}
