#include "search/loop/modulo.h"

#include <math.h>
#include <string.h>

#include "search/loop/milp.h"
#include "search/loop/modulo_branch.h"
#include "search/loop/modulo_list.h"
#include "search/loop/modulo_milp.h"

enum {
	NODES = 50000,			/* of branch and bound, if CBC can continue */
	NODES_ALONE = 400000,		/* ... without CBC */
	MILP_NODES = 3000,
};

static const double EQUAL = 1e-9;	/* relative: intervals nearer than this are equal */

/* ---- bounds ---- */

/* The cycles that an iteration holds the lanes of a set: of tasks that may be on no other lane. */
static double lanes_load(const struct modulo_problem *p, uint32_t set)
{
	double sum = 0;

	for (int i = 0; i < p->ntasks; i++)
		if (p->tasks[i].lanes && !(p->tasks[i].lanes & ~set))
			sum += p->tasks[i].hold;
	return sum;
}

/* Raise ResMII. */
static void raise_res(struct modulo_floor *out, double cycles, int unit, uint32_t lanes, int task)
{
	if (cycles <= out->res * (1 + 1e-12))
		return;
	out->res = cycles;
	out->unit = unit;
	out->lanes = lanes;
	out->task = task;
}

static void bound_units(const struct modulo_problem *p, struct modulo_floor *out)
{
	for (int u = 0; u < p->nunits; u++) {
		double sum = 0;

		for (int i = 0; i < p->ntasks; i++)
			if (p->tasks[i].unit == u)
				sum += p->tasks[i].busy;
		if (p->units[u].share != MODULO_UNLIMITED)
			raise_res(out, sum, u, 0, MODULO_NONE);
	}
}

static void bound_lanes(const struct modulo_problem *p, struct modulo_floor *out)
{
	uint32_t limited = 0;

	for (int l = 0; l < p->nlanes; l++)
		if (!p->lanes[l].unlimited)
			limited |= (uint32_t)1 << l;
	for (uint32_t set = 1; set < (uint32_t)1 << p->nlanes; set++)
		if (!(set & ~limited))
			raise_res(out, lanes_load(p, set) / __builtin_popcount(set), MODULO_NONE, set, MODULO_NONE);
}

static void bound_memories(const struct modulo_problem *p, struct modulo_floor *out)
{
	for (int r = 0; r < p->nmemories; r++) {
		double sum = 0;

		for (int i = 0; i < p->nvalues; i++)
			if (modulo_memory_of(p, &p->values[i], p->tasks[p->values[i].def].lanes) == r)
				sum += p->values[i].bytes * p->values[i].least;
		if (sum > modulo_memory_limit(&p->memories[r]) && out->memory == MODULO_NONE)
			out->memory = r;
	}
}

void modulo_floor(struct arena *a, const struct modulo_problem *p, struct modulo_floor *out)
{
	struct arena_mark scratch = arena_mark(a);
	struct modulo_net net;

	*out = (struct modulo_floor){ .unit = MODULO_NONE, .task = MODULO_NONE,
		.memory = MODULO_NONE };
	bound_units(p, out);
	bound_lanes(p, out);
	for (int i = 0; i < p->ntasks; i++)
		raise_res(out, modulo_task_least(p, i), MODULO_NONE, 0, i);
	bound_memories(p, out);
	modulo_net_make(a, p, false, &net);
	out->rec = modulo_net_recurrence(a, &net, out->links, &out->nlinks);
	out->ii = out->memory == MODULO_NONE ? fmax(out->res, out->rec) : INFINITY;
	arena_reset(a, scratch);
}

/* ---- solving ---- */

struct solver {
	struct arena *arena;
	const struct modulo_problem *p;
	const struct stop *stop;
	int64_t nodes;			/* of branch and bound, per program */
	int milp_nodes;			/* 0: CBC is not used */
	struct modulo_answer *out;
};

/* The state of solving one program: what was found, and what is proven. */
struct progress {
	const struct modulo_net *net;
	struct modulo_found best;
	double least;			/* a proven bound */
	enum modulo_solver by;
};

static bool is_closed(const struct progress *g)
{
	return g->best.ii <= g->least * (1 + EQUAL);
}

static enum modulo_end try_at(struct solver *s, struct progress *g, double ii, int64_t *nodes)
{
	struct modulo_try t = { ii, *nodes, 0, s->stop };
	enum modulo_end end = modulo_branch(s->arena, g->net, &t, &g->best, NULL);

	s->out->nodes += *nodes - t.nodes;
	*nodes = t.nodes;
	if (end == MODULO_END_REFUTED)
		g->least = fmax(g->least, fmin(ii, g->best.ii));
	return end;
}

/* Look for schedules that are better than the best until there is none. */
static enum modulo_end improve(struct solver *s, struct progress *g)
{
	int64_t nodes = s->nodes;
	enum modulo_end end = MODULO_END_FOUND;

	while (!is_closed(g) && end == MODULO_END_FOUND) {
		double before = g->best.ii;

		end = try_at(s, g, before * (1 - EQUAL / 2), &nodes);
		if (end == MODULO_END_FOUND && !(g->best.ii < before))
			end = MODULO_END_LIMIT;	/* of precision */
	}
	if (end == MODULO_END_REFUTED)
		g->least = g->best.ii;
	g->by = MODULO_BY_SEARCH;
	return end;
}

/* The effort did not suffice for a proof of the best: raise the bound by bisection. */
static enum modulo_end raise_bound(struct solver *s, struct progress *g)
{
	double high = g->best.ii;

	for (int i = 0; i < 5 && !is_closed(g); i++) {
		int64_t nodes = s->nodes / 8;
		double ii = (g->least + fmin(high, g->best.ii)) / 2;
		enum modulo_end end = try_at(s, g, ii, &nodes);

		if (end == MODULO_END_STOPPED)
			return end;
		if (end == MODULO_END_LIMIT)
			high = ii;
	}
	return MODULO_END_LIMIT;
}

static enum modulo_end ask_milp(struct solver *s, struct progress *g)
{
	enum modulo_end end;

	if (!s->milp_nodes)
		return MODULO_END_LIMIT;
	s->out->milp_calls++;
	end = modulo_milp(s->arena, g->net, s->milp_nodes, &g->best, &g->least);
	if (end == MODULO_END_FOUND && is_closed(g))
		g->by = MODULO_BY_MILP;
	return stop_asked(s->stop) ? MODULO_END_STOPPED : end;
}

/* From any schedule to the best one and its proof, as far as the effort goes. */
static enum modulo_end prove(struct solver *s, struct progress *g)
{
	enum modulo_end end;

	if (is_closed(g))
		return MODULO_END_FOUND;
	if (s->nodes <= 0)
		return MODULO_END_LIMIT;
	end = improve(s, g);
	if (end == MODULO_END_LIMIT)
		end = ask_milp(s, g);
	if (end != MODULO_END_STOPPED && !is_closed(g))
		end = raise_bound(s, g);
	return end;
}

static bool has_mixing_units(const struct modulo_problem *p)
{
	for (int u = 0; u < p->nunits; u++)
		if (p->units[u].share == MODULO_LANES_MIX || p->units[u].share == MODULO_MIX)
			return true;
	return false;
}

/* Bound the interval of the relaxed program. Its schedules are not returned. */
static enum modulo_end bound_mixed(struct solver *s, const struct progress *g)
{
	struct modulo_net net;
	struct progress r = { .net = &net, .least = s->out->bound };
	enum modulo_end end;

	modulo_net_make(s->arena, s->p, false, &net);
	modulo_found_init(s->arena, s->p, &r.best);
	/* a schedule of the exclusive program is one of the relaxed program, too */
	modulo_found_copy(s->p, &r.best, &g->best);
	end = modulo_list(s->arena, &net, &r.least, s->stop, &r.best, NULL, &s->out->nodes);
	if (end != MODULO_END_STOPPED)
		end = prove(s, &r);
	s->out->bound = fmax(s->out->bound, r.least);
	return end;
}

static void set_answer(struct solver *s, const struct progress *g)
{
	struct modulo_answer *out = s->out;
	int n = s->p->ntasks;

	out->ii = g->best.ii;
	out->exclusive = fmax(fmin(g->least, g->best.ii), out->bound);
	if (isinf(g->best.ii))
		return;
	out->status = MODULO_FOUND;
	out->start = g->best.y;
	out->versions = g->best.versions;
	out->lane = ARENA_ARRAY(s->arena, n, int);
	for (int i = 0; i < n; i++)
		out->lane[i] = g->best.lanes[i] ? __builtin_ctz(g->best.lanes[i]) : MODULO_NONE;
	out->solver = g->by;
	out->bound = fmin(out->bound, out->ii);
	out->exclusive = fmin(out->exclusive, out->ii);
	out->best = out->ii <= out->exclusive * (1 + EQUAL);
	out->proven = out->ii <= out->bound * (1 + EQUAL);
}

static void impossible(struct modulo_answer *out, int memory)
{
	out->status = MODULO_IMPOSSIBLE;
	out->bound = out->exclusive = INFINITY;
	out->memory = memory;
}

/* The heuristic found no schedule, as lanes or capacities are tight: ask CBC for one. */
static enum modulo_end ask_for_any(struct solver *s, struct progress *g)
{
	enum modulo_end end;

	if (s->nodes <= 0)
		return MODULO_END_LIMIT;
	end = ask_milp(s, g);
	return end == MODULO_END_LIMIT && !isinf(g->best.ii) ? MODULO_END_FOUND : end;
}

static enum modulo_end solve(struct solver *s, struct progress *g)
{
	int memory = MODULO_NONE;
	enum modulo_end end = modulo_list(s->arena, g->net, &g->least, s->stop, &g->best, &memory, &s->out->nodes);

	if (end == MODULO_END_LIMIT)
		end = ask_for_any(s, g);
	if (end == MODULO_END_REFUTED)
		impossible(s->out, memory);
	if (end != MODULO_END_FOUND)
		return end;
	g->by = is_closed(g) && g->least <= s->out->floor.ii * (1 + EQUAL) ? MODULO_BY_BOUNDS : MODULO_BY_SEARCH;
	end = prove(s, g);
	if (end == MODULO_END_STOPPED)
		return end;
	if (!has_mixing_units(s->p)) {
		s->out->bound = fmax(s->out->bound, g->least);
		return end;
	}
	return bound_mixed(s, g);
}

static struct solver start(struct arena *a, const struct modulo_problem *p,
	const struct modulo_effort *effort, const struct stop *stop, struct modulo_answer *out)
{
	struct modulo_effort f = effort ? *effort : (struct modulo_effort){ 0 };
	struct solver s = { a, p, stop, f.nodes, 0, out };

	if (f.milp_nodes >= 0 && milp_available())
		s.milp_nodes = f.milp_nodes ? f.milp_nodes : MILP_NODES;
	if (!s.nodes)
		s.nodes = s.milp_nodes ? NODES : NODES_ALONE;
	return s;
}

enum err_code modulo_solve(struct arena *a, const struct modulo_problem *p,
	const struct modulo_effort *effort, const struct stop *stop, struct modulo_answer *out, struct err *e)
{
	struct modulo_net net;
	struct progress g = { .net = &net };
	enum modulo_end end = MODULO_END_FOUND;
	struct solver s;

	*out = (struct modulo_answer){ .status = MODULO_UNKNOWN, .ii = INFINITY,
		.memory = MODULO_NONE };
	TRY(modulo_check(p, e));
	s = start(a, p, effort, stop, out);
	modulo_floor(a, p, &out->floor);
	if (isinf(out->floor.ii)) {
		impossible(out, out->floor.memory);
		return OK;
	}
	out->bound = out->floor.ii;
	modulo_net_make(a, p, true, &net);
	modulo_found_init(a, p, &g.best);
	g.least = out->floor.ii;
	end = solve(&s, &g);
	if (out->status != MODULO_IMPOSSIBLE)
		set_answer(&s, &g);
	if (end == MODULO_END_STOPPED)
		return err_set(e, ERR_INTERRUPTED, NOWHERE, "the search for a schedule was stopped");
	return OK;
}
