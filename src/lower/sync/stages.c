/* Waits for products that the machine's compiler needs, beyond those of the plan.
 *
 * ptxas allocates registers of asynchronous products (wgmma) by pipeline stages, from an issue to the wait that ends
 * it. If it cannot prove that a stage ends before other instructions access its registers, it makes each product wait
 * for itself ("serialized", warnings C7513 to C7515), which costs far more than one wait. Its rules, found by
 * experiment:
 *
 * - a product issued in an earlier iteration of a loop has ended only behind a wait that leaves nothing under way;
 * - products that accumulate to the same registers, without such a wait between them, are one stage; during it no
 *   instruction may write operands in registers of any of them;
 * - of a stage that goes on in the next iteration ptxas may not see what ends behind a wait there that leaves some products
 *   under way, so that sums which are read behind such a wait count as unfinished.
 *
 * A fourth rule is kept where the tree is built: where branches join, nothing is under way. */
#include "lower/passes.h"

/* The steps of a region, in the order of an iteration. */
struct iteration_order {
	struct kernel *k;
	struct klane *l;
	const struct kregion *v;
	int loop;
};

static struct kentry *entry_at(const struct iteration_order *t, int pos)
{
	const struct kstep *s = &t->v->steps.v[pos];

	return s->is_loop ? NULL : &t->l->entries.v[s->id];
}

static bool is_asynchronous(const struct iteration_order *t, const struct kentry *x)
{
	return is_async_product(t->k, x->task) && !kernel_result_shared(t->k, x->task);
}

static bool waits_for_all(const struct group_wait *w)
{
	return w->groups_left[0] <= 0;
}

/* Is there a wait for all groups between step `from` and step `to`, `iterations` later? */
static bool waits_between(const struct iteration_order *t, int from, int to, int iterations)
{
	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);
		bool behind = iterations > 1 || (iterations ? pos > from || pos <= to : pos > from && pos <= to);

		if (x && x->waits_groups && waits_for_all(&x->before) && behind)
			return true;
		if (x && x->drains && waits_for_all(&x->after) && (pos == from || (behind && pos != to)))
			return true;
	}
	return false;
}

static bool accumulates_to_same(const struct iteration_order *t, const struct kentry *x, const struct kentry *y)
{
	const struct stask *a = stask_at(t->k, x->task), *b = stask_at(t->k, y->task);

	for (int i = 0; i < a->writes.n; i++)
		if (ints_hold(b->writes.v, b->writes.n, a->writes.v[i]))
			return true;
	return false;
}

/* Iterations from product m to the entry x that accesses its registers; NONE: it does not, by itself. */
static int iterations_to(const struct iteration_order *t, const struct kentry *m, const struct kentry *x)
{
	const struct graph *g = t->k->plan->graph;
	int iterations = NONE;

	for (int i = g->first_in[x->task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *e = &g->edges.v[i];
		int back = e->distance * (e->reuse ? t->k->plan->versions[e->buffer] : 1) + m->at - x->at;

		if (e->from == m->task && e->loop == t->loop && t->k->ring_of[e->buffer] == NONE && back > iterations)
			iterations = back;
	}
	return iterations;
}

/* ... or registers to which a later product y adds, in whose stage m is; 0: not across iterations. */
static int iterations_since(const struct iteration_order *t, const struct kentry *m, const struct kentry *x)
{
	int iterations = iterations_to(t, m, x);

	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *y = entry_at(t, pos);
		int first, second;

		if (!y || y == m || !is_asynchronous(t, y) || !accumulates_to_same(t, m, y))
			continue;
		first = iterations_to(t, m, y);
		second = iterations_to(t, y, x);
		if (first != NONE && second != NONE && first + second > iterations)
			iterations = first + second;
	}
	return iterations > 0 ? iterations : 0;
}

static void end_earlier_iterations(const struct iteration_order *t)
{
	for (int pos = 0; pos < t->v->steps.n; pos++) {
		struct kentry *x = entry_at(t, pos);

		for (int from = 0; from < t->v->steps.n && x && !is_async_product(t->k, x->task); from++) {
			const struct kentry *m = entry_at(t, from);
			int iterations = m && is_asynchronous(t, m) ? iterations_since(t, m, x) : 0;

			if (!iterations || waits_between(t, from, pos, iterations))
				continue;
			x->waits_groups = true;
			x->before.groups_left[0] = 0;
		}
	}
}

/* Is an operand in registers of the product at step `to` written between step `from` and it, `iterations` later? */
static bool is_fed_between(const struct iteration_order *t, int from, int to, int iterations)
{
	const struct stask *s = stask_at(t->k, entry_at(t, to)->task);

	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);
		const struct stask *w = x ? stask_at(t->k, x->task) : NULL;

		if (!x ||
		    is_async_product(t->k, x->task) || !(iterations ? pos > from || pos < to : pos > from && pos < to))
			continue;
		for (int i = 0; i < w->writes.n; i++)
			if (stask_reads(s, w->writes.v[i]) && t->k->ring_of[w->writes.v[i]] == NONE)
				return true;
	}
	return false;
}

static void separate_stages(const struct iteration_order *t)
{
	for (int to = 0; to < t->v->steps.n; to++) {
		struct kentry *x = entry_at(t, to);

		for (int from = 0; from < t->v->steps.n && x && is_asynchronous(t, x); from++) {
			const struct kentry *y = entry_at(t, from);
			int iterations = from >= to;

			if (!y || !is_asynchronous(t, y) || !accumulates_to_same(t, x, y) ||
			    !is_fed_between(t, from, to, iterations) || waits_between(t, from, to, iterations))
				continue;
			x->waits_groups = true;
			for (int c = 0; c < ITERATION_CLASSES; c++)
				x->before.groups_left[c] = 0;
		}
	}
}

/* Does an sTask that is no product read or write registers that a product of the lane has for its sums? */
static bool accesses_product(const struct iteration_order *t, const struct kentry *x)
{
	const struct stask *s = stask_at(t->k, x->task);

	for (int pos = 0; pos < t->v->steps.n && !is_async_product(t->k, x->task); pos++) {
		const struct kentry *m = entry_at(t, pos);
		const struct stask *product = m && is_asynchronous(t, m) ? stask_at(t->k, m->task) : NULL;

		for (int i = 0; product && i < product->writes.n; i++) {
			int b = product->writes.v[i];

			if (stask_reads(s, b) || ints_hold(s->writes.v, s->writes.n, b))
				return true;
		}
	}
	return false;
}

static bool is_all_awaited_before(const struct kentry *x)
{
	return x && x->waits_groups && waits_for_all(&x->before);
}

static bool is_all_awaited_after(const struct kentry *x)
{
	return x && x->drains && waits_for_all(&x->after);
}

/* Does the stage of the product at step `from` go on in the next iteration? */
static bool ends_later(const struct iteration_order *t, int from)
{
	for (int pos = from; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);

		if ((pos > from && is_all_awaited_before(x)) || is_all_awaited_after(x))
			return false;
	}
	return true;
}

/* Does a wait in an iteration leave products under way before all are awaited, and is the sTask one that accesses
 * registers of a product? */
static bool some_are_awaited_first(const struct iteration_order *t)
{
	for (int pos = 0; pos < t->v->steps.n; pos++) {
		const struct kentry *x = entry_at(t, pos);

		if (is_all_awaited_before(x) || is_all_awaited_after(x))
			return false;
		if (x && x->waits_groups && x->before.groups_left[0] > 0 && accesses_product(t, x))
			return true;
	}
	return false;
}

/* The wait stands before the first product of an iteration, so that what is under way at the end of the iteration before
 * has overlapped with all of that. */
static void end_with_iterations(const struct iteration_order *t)
{
	struct kentry *first = NULL;

	for (int pos = 0; pos < t->v->steps.n && !first; pos++) {
		struct kentry *x = entry_at(t, pos);

		if (x && is_asynchronous(t, x))
			first = x;
	}
	for (int from = 0; from < t->v->steps.n; from++) {
		const struct kentry *m = entry_at(t, from);

		if (!m || !is_asynchronous(t, m) || !ends_later(t, from) || !some_are_awaited_first(t))
			continue;
		first->waits_groups = true;
		first->before.groups_left[0] = 0;
	}
}

void lower_end_stages(struct kernel *k, struct klane *l)
{
	for (int loop = 0; loop < k->plan->graph->program->loops.n; loop++) {
		struct iteration_order t = { k, l, &l->regions[loop + 1], loop };

		end_earlier_iterations(&t);
		separate_stages(&t);
		end_with_iterations(&t);
	}
}
