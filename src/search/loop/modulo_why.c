#include "search/loop/modulo_why.h"

#include <math.h>
#include <string.h>

#include "search/loop/modulo_branch.h"

enum { NODES = 50000 };			/* for each subset of requirements, by default */

static const double LESS = 1e-6;	/* relative: an interval less by this is refuted */

/* ---- a problem without some requirements ---- */

static bool needed(const struct modulo_need *needs, int n, enum modulo_need_kind kind, int index)
{
	for (int i = 0; i < n; i++)
		if (needs[i].kind == kind && needs[i].index == index)
			return true;
	return false;
}

/* A value without its limit of versions still counts in its memory, if the memory is needed; otherwise not at all. */
static struct modulo_value *only_values(struct arena *a, const struct modulo_problem *p,
	const struct modulo_need *needs, int n)
{
	struct modulo_value *out = ARENA_ARRAY(a, p->nvalues + 1, struct modulo_value);

	for (int i = 0; i < p->nvalues; i++) {
		bool memory = p->values[i].memory != MODULO_NONE &&
			needed(needs, n, MODULO_NEED_CAPACITY, p->values[i].memory);

		out[i] = p->values[i];
		for (int l = 0; l < p->nlanes && out[i].memory == MODULO_NONE; l++)
			if (p->tasks[out[i].def].lanes >> l & 1 && p->lanes[l].memory != MODULO_NONE)
				memory |= needed(needs, n, MODULO_NEED_CAPACITY, p->lanes[l].memory);
		if (needed(needs, n, MODULO_NEED_VERSIONS, i))
			continue;
		out[i].most = 0;
		if (!memory)
			out[i].nuses = 0;
	}
	return out;
}

struct modulo_problem *modulo_only(struct arena *a, const struct modulo_problem *p,
	const struct modulo_need *needs, int n)
{
	struct modulo_problem *out = ARENA_NEW(a, struct modulo_problem);
	struct modulo_unit *units = ARENA_ARRAY(a, p->nunits + 1, struct modulo_unit);
	struct modulo_lane *lanes = ARENA_ARRAY(a, p->nlanes + 1, struct modulo_lane);
	struct modulo_memory *memories = ARENA_ARRAY(a, p->nmemories + 1, struct modulo_memory);
	struct modulo_dep *deps = ARENA_ARRAY(a, p->ndeps + 1, struct modulo_dep);
	struct modulo_pin *pins = ARENA_ARRAY(a, p->npins + 1, struct modulo_pin);
	struct modulo_order *orders = ARENA_ARRAY(a, p->norders + 1, struct modulo_order);

	*out = *p;
	out->ndeps = out->npins = out->norders = 0;
	for (int i = 0; i < p->nunits; i++)
		units[i].share = needed(needs, n, MODULO_NEED_UNIT, i) ? p->units[i].share : MODULO_UNLIMITED;
	for (int i = 0; i < p->nlanes; i++) {
		lanes[i] = p->lanes[i];
		lanes[i].unlimited |= !needed(needs, n, MODULO_NEED_LANE, i);
	}
	for (int i = 0; i < p->nmemories; i++)
		memories[i].capacity = needed(needs, n, MODULO_NEED_CAPACITY, i) ? p->memories[i].capacity : INFINITY;
	for (int i = 0; i < p->ndeps; i++)
		if (needed(needs, n, MODULO_NEED_DEP, i))
			deps[out->ndeps++] = p->deps[i];
	for (int i = 0; i < p->npins; i++)
		if (needed(needs, n, MODULO_NEED_PIN, i))
			pins[out->npins++] = p->pins[i];
	for (int i = 0; i < p->norders; i++)
		if (needed(needs, n, MODULO_NEED_ORDER, i))
			orders[out->norders++] = p->orders[i];
	out->values = only_values(a, p, needs, n);
	out->units = units;
	out->lanes = lanes;
	out->memories = memories;
	out->deps = deps;
	out->pins = pins;
	out->orders = orders;
	return out;
}

/* ---- subsets of requirements ---- */

struct refuter {
	struct arena *arena;
	const struct modulo_problem *p;
	const struct stop *stop;
	int64_t nodes;
	double ii;			/* the interval to refute */
	bool exclusive;
	VEC(struct modulo_need) needs;
};

/* Do the requirements refute the interval, and all shorter ones? */
static enum modulo_end refute(struct refuter *q)
{
	struct arena_mark scratch = arena_mark(q->arena);
	const struct modulo_problem *p = modulo_only(q->arena, q->p, q->needs.v, q->needs.n);
	struct modulo_try t = { q->ii, q->nodes, 0, q->stop };
	enum modulo_end end = MODULO_END_REFUTED;
	struct modulo_found found;
	struct modulo_floor floor;
	struct modulo_net net;

	modulo_floor(q->arena, p, &floor);
	if (floor.ii <= q->ii) {
		modulo_net_make(q->arena, p, q->exclusive, &net);
		modulo_found_init(q->arena, p, &found);
		end = modulo_branch(q->arena, &net, &t, &found, NULL);
	}
	arena_reset(q->arena, scratch);
	return end;
}

static void add_need(struct refuter *q, enum modulo_need_kind kind, int index)
{
	if (!needed(q->needs.v, q->needs.n, kind, index))
		VEC_PUSH(q->arena, &q->needs, ((struct modulo_need){ kind, index }));
}

static void add_all(struct refuter *q)
{
	const struct modulo_problem *p = q->p;
	const int count[] = {
		[MODULO_NEED_DEP] = p->ndeps, [MODULO_NEED_PIN] = p->npins,
		[MODULO_NEED_ORDER] = p->norders, [MODULO_NEED_VERSIONS] = p->nvalues,
		[MODULO_NEED_CAPACITY] = p->nmemories, [MODULO_NEED_LANE] = p->nlanes,
		[MODULO_NEED_UNIT] = p->nunits,
	};

	q->needs.n = 0;
	for (int kind = 0; kind < LEN(count); kind++)
		for (int i = 0; i < count[kind]; i++)
			add_need(q, (enum modulo_need_kind)kind, i);
}

static void add_lanes(struct refuter *q, uint32_t lanes)
{
	for (int l = 0; l < q->p->nlanes; l++)
		if (lanes >> l & 1)
			add_need(q, MODULO_NEED_LANE, l);
}

/* One resource that is asked for too much, or one recurrence, as ResMII and RecMII tell. */
static void add_simple(struct refuter *q, const struct modulo_floor *f)
{
	static const enum modulo_need_kind kind[] = { [MODULO_DEP] = MODULO_NEED_DEP,
		[MODULO_VALUE] = MODULO_NEED_VERSIONS, [MODULO_PIN] = MODULO_NEED_PIN };

	q->needs.n = 0;
	if (f->memory != MODULO_NONE) {
		add_need(q, MODULO_NEED_CAPACITY, f->memory);
	} else if (f->res > q->ii && f->task != MODULO_NONE) {
		add_lanes(q, q->p->tasks[f->task].lanes);
		if (q->p->tasks[f->task].unit != MODULO_NONE)
			add_need(q, MODULO_NEED_UNIT, q->p->tasks[f->task].unit);
	} else if (f->res > q->ii) {
		add_lanes(q, f->lanes);
		if (f->unit != MODULO_NONE)
			add_need(q, MODULO_NEED_UNIT, f->unit);
	} else if (f->rec > q->ii) {
		for (int i = 0; i < f->nlinks; i++)
			add_need(q, kind[f->links[i].kind], f->links[i].index);
	}
}

/* Requirements that refute the interval, to begin with. Simple ones may not suffice, as they lack what limits versions. */
static enum modulo_end begin(struct refuter *q, const struct modulo_floor *f)
{
	add_simple(q, f);
	if (q->needs.n && refute(q) == MODULO_END_REFUTED)
		return MODULO_END_REFUTED;
	add_all(q);
	return refute(q);
}

/* Leave out one requirement after the other. False: it is not known whether all that are left are needed. */
static bool filter(struct refuter *q, enum modulo_end *end)
{
	bool known = true;

	for (int i = 0; i < q->needs.n; ) {
		struct modulo_need out = q->needs.v[i];
		size_t behind = (size_t)(q->needs.n - i - 1) * sizeof(out);

		memmove(&q->needs.v[i], &q->needs.v[i + 1], behind);
		q->needs.n--;
		*end = refute(q);
		if (*end == MODULO_END_REFUTED)
			continue;
		memmove(&q->needs.v[i + 1], &q->needs.v[i], behind);
		q->needs.v[i++] = out;
		q->needs.n++;
		if (*end == MODULO_END_STOPPED)
			return false;
		known = known && *end == MODULO_END_FOUND;
	}
	return known;
}

/* Set the interval to refute, and the program. */
static void set_target(struct refuter *q, const struct modulo_answer *x, struct modulo_core *out)
{
	struct modulo_net net;

	out->ii = x->status == MODULO_IMPOSSIBLE ? INFINITY : x->exclusive;
	q->exclusive = out->exclusive = x->status != MODULO_IMPOSSIBLE && x->exclusive > x->bound * (1 + LESS);
	q->ii = out->ii * (1 - LESS);
	if (x->status != MODULO_IMPOSSIBLE)
		return;
	modulo_net_make(q->arena, q->p, false, &net);
	q->ii = net.total * 1.01;
}

enum err_code modulo_why(struct arena *a, const struct modulo_problem *p,
	const struct modulo_answer *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_core *out, struct err *e)
{
	int64_t nodes = effort && effort->nodes > 0 ? effort->nodes : NODES;
	struct refuter q = { .arena = a, .p = p, .stop = stop, .nodes = nodes };
	enum modulo_end end;

	*out = (struct modulo_core){ 0 };
	TRY(modulo_check(p, e));
	set_target(&q, x, out);
	end = begin(&q, &x->floor);
	if (end == MODULO_END_REFUTED)
		out->irreducible = filter(&q, &end);
	out->needs = q.needs.v;
	out->nneeds = q.needs.n;
	if (end == MODULO_END_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "the search for reasons was stopped");
	return OK;
}
