/* What the compiler of a machine asks of waits for products, beyond the plan.
 *
 * ptxas gives registers to asynchronous products by pipeline stages, from an issue to the wait
 * that ends it. Where it cannot tell that a stage is over before other instructions touch its
 * registers, it lets each product wait for itself ("serialized", C7513 to C7515), which costs far
 * more than a wait. Found by taking texts apart:
 *
 * - a product that was issued in an earlier turn of a loop is over for it only behind a wait
 *   that leaves nothing under way;
 * - products that add to the same sum, without such a wait between, are one stage, while which
 *   nobody may write the operands in registers of any of them.
 *
 * A third one concerns branches and is body/loop.c's: where they meet, nothing is under way. */
#include "lower/passes.h"

/* The entries of a region, in the order of a turn. */
struct turn_order {
	struct kernel *k;
	struct klane *l;
	const struct kregion *v;
	int loop;
};

static struct kentry *entry_at(const struct turn_order *t, int pos)
{
	const struct kstep *s = &t->v->steps.v[pos];

	return s->is_loop ? NULL : &t->l->entries.v[s->id];
}

static bool goes_on(const struct turn_order *t, const struct kentry *x)
{
	return on_matrix(t->k, x->task) && !kernel_result_shared(t->k, x->task);
}

static bool waits_for_all(const struct group_wait *w)
{
	return w->younger[0] <= 0;
}

/* Is there a wait for all in the turns between the end of step `from` and the work of step `to`,
 * which is in a turn `turns` later? */
static bool ends_between(const struct turn_order *t, int from, int to, int turns)
{
	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);
		bool behind = turns > 1 || (turns ? pos > from || pos <= to : pos > from && pos <= to);

		if (x && x->waits_groups && waits_for_all(&x->before) && behind)
			return true;
		if (x && x->drains && waits_for_all(&x->after) && (pos == from ||
		    (behind && pos != to)))
			return true;
	}
	return false;
}

/* Turns from an instance of product m to one of x that touches its registers; 0: none of an
 * earlier turn. */
static int turns_since(const struct turn_order *t, const struct kentry *m, const struct kentry *x)
{
	const struct graph *g = t->k->plan->graph;
	int turns = 0;

	for (int i = g->first_in[x->task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *e = &g->edges.v[i];
		int back = e->distance * (e->reuse ? t->k->plan->versions[e->buffer] : 1) + m->at - x->at;

		if (e->from == m->task && e->loop == t->loop && t->k->ring_of[e->buffer] == NONE &&
		    back > turns)
			turns = back;
	}
	return turns;
}

static void end_earlier_turns(const struct turn_order *t)
{
	for (int pos = 0; pos < t->v->steps.n; pos++) {
		struct kentry *x = entry_at(t, pos);

		for (int from = 0; from < t->v->steps.n && x && !on_matrix(t->k, x->task); from++) {
			const struct kentry *m = entry_at(t, from);
			int turns = m && goes_on(t, m) ? turns_since(t, m, x) : 0;

			if (!turns || ends_between(t, from, pos, turns))
				continue;
			x->waits_groups = true;
			x->before.younger[0] = 0;
		}
	}
}

static bool sums_up(const struct turn_order *t, const struct kentry *x, const struct kentry *y)
{
	const struct stask *a = stask_at(t->k, x->task), *b = stask_at(t->k, y->task);

	for (int i = 0; i < a->writes.n; i++)
		if (ints_hold(b->writes.v, b->writes.n, a->writes.v[i]))
			return true;
	return false;
}

/* Is an operand in registers of product x written between step `from` and it, `turns` later? */
static bool is_fed_between(const struct turn_order *t, int from, int to, int turns)
{
	const struct stask *s = stask_at(t->k, entry_at(t, to)->task);

	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);
		const struct stask *w = x ? stask_at(t->k, x->task) : NULL;

		if (!x || on_matrix(t->k, x->task) || !(turns ? pos > from || pos < to : pos > from &&
		    pos < to))
			continue;
		for (int i = 0; i < w->writes.n; i++)
			if (stask_reads(s, w->writes.v[i]) && t->k->ring_of[w->writes.v[i]] == NONE)
				return true;
	}
	return false;
}

static void part_stages(const struct turn_order *t)
{
	for (int to = 0; to < t->v->steps.n; to++) {
		struct kentry *x = entry_at(t, to);

		for (int from = 0; from < t->v->steps.n && x && goes_on(t, x); from++) {
			const struct kentry *y = entry_at(t, from);
			int turns = from >= to;

			if (!y || !goes_on(t, y) || !sums_up(t, x, y) || !is_fed_between(t, from, to,
			    turns) || ends_between(t, from, to, turns))
				continue;
			x->waits_groups = true;
			for (int c = 0; c < ITERATION_CLASSES; c++)
				x->before.younger[c] = 0;
		}
	}
}

void lower_stages(struct kernel *k, struct klane *l)
{
	for (int loop = 0; loop < k->plan->graph->program->loops.n; loop++) {
		struct turn_order t = { k, l, &l->regions[loop + 1], loop };

		end_earlier_turns(&t);
		part_stages(&t);
	}
}
