#include "search/proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/contention.h"
#include "search/loop/modulo_what_if.h"
#include "sim/bounds.h"

enum {
	NODES = 20000, MILP_NODES = 2000,	/* effort for the bound */
	WHY_NODES = 2000,		/* ... for each subset of requirements */
	EASE_NODES = 1000,		/* ... for each ease, without CBC */
	EASES_MAX = 48,
};

#define ROUNDING 1e-5			/* relative: the simulator rounds costs to ticks */
#define A_LITTLE 1.1			/* factors of eases: faster, larger */
#define MUCH 2.0

struct prover {
	struct arena *a;
	const struct plan *p;
	const struct phase_line *line;
	const struct stop *stop;
	struct proof *out;
};

/* ---- easing ------------------------------------------------------------------------ */

static void speed_up_unit(struct entry_cost *c, double times)
{
	c->cost.busy /= times;
	c->cost.alone = (c->cost.alone - c->fixed) / times + c->fixed;
}

static void reduce_work(struct entry_cost *c, double times)
{
	speed_up_unit(c, times);
	c->cost.alone += c->fixed / times - c->fixed;
	c->fixed /= times;
	c->cost.issue /= times;
	c->cost.latency /= times;
	c->cost.l2 /= times;
	c->cost.global /= times;
	c->cost.memory /= times;
	c->before /= times;
	c->after /= times;
	c->handover /= times;
}

/* The memory cycles of an entry are those of the slower memory. */
static void speed_up_memory(struct entry_cost *c, bool global, double times)
{
	*(global ? &c->cost.global : &c->cost.l2) /= times;
	c->cost.memory = fmin(c->cost.memory, fmax(c->cost.l2, c->cost.global));
}

static void ease_entry(const struct prover *m, const struct proof_ease *x, int entry, struct entry_cost *c)
{
	const struct entry *en = &m->p->entries.v[entry];

	if (x->kind == PROOF_WORK && m->p->graph->tasks.v[en->task].task == x->of)
		reduce_work(c, x->times);
	if (x->kind != PROOF_UNIT)
		return;
	if (m->out->loop.unit[x->of].seu == NONE)
		speed_up_memory(c, m->out->loop.unit[x->of].global, x->times);
	else if (m->out->loop.unit[x->of].seu == en->seu)
		speed_up_unit(c, x->times);
}

static const struct entry_cost *ease_costs(const struct prover *m, const struct proof_ease *x)
{
	struct entry_cost *out = ARENA_ARRAY(m->a, m->p->entries.n, struct entry_cost);

	for (int i = 0; i < m->p->entries.n; i++) {
		out[i] = m->line->entry_costs[i];
		ease_entry(m, x, i, &out[i]);
	}
	return out;
}

/* The most iterations of the loop in a tile. */
static int64_t tile_trips(const struct prover *m)
{
	const struct graph *g = m->p->graph;
	int64_t trips = 1;

	for (int l = m->line->ii_loop; l != NONE; l = g->program->loops.v[l].parent)
		trips *= g->trips[l].most;
	return trips;
}

/* How often each sTask runs at least for each end of a tile in the distance over which the interval is taken. The distance
 * has ii_step iterations of the loop, and so at least ii_step / trips ends of tiles: if they were the fewest, each tile
 * has `iterations` iterations. Loops around it are scaled likewise; other loops have as few iterations as they may. */
static const double *tile_runs(const struct prover *m, double iterations)
{
	const struct graph *g = m->p->graph;
	double *runs = ARENA_ARRAY(m->a, g->tasks.n, double);
	double scale = iterations / (double)tile_trips(m);

	for (int t = 0; t < g->tasks.n; t++) {
		bool around = g->tasks.v[t].loop != NONE &&
			program_loop_within(g->program, m->line->ii_loop, g->tasks.v[t].loop);

		runs[t] = around ? scale : 1;
		for (int l = g->tasks.v[t].loop; l != NONE; l = g->program->loops.v[l].parent)
			runs[t] *= (double)(around ? g->trips[l].most : g->trips[l].least);
	}
	return runs;
}

/* The cycles of a tile on a lane or a vector unit, with what contention costs. */
static double tile_contention(const struct prover *m, const struct entry_cost *costs, const double *runs)
{
	const struct plan *p = m->p;
	double most = 0;

	for (int u = 0; u < p->device->nseus; u++) {
		struct contention b = { .device = p->device, .unit = u };

		if (!contention_matters(p->device, u))
			continue;
		for (int i = 0; i < p->entries.n; i++) {
			const struct stask *t = &p->graph->tasks.v[p->entries.v[i].task];
			struct entry_cost part = bounds_group(p, costs, i);

			if (t->phase == m->line->phase)
				contention_add(&b, p->entries.v[i].lane, p->entries.v[i].seu, &part, costs[i].cost.busy,
					bounds_hold(p, costs, i), runs[p->entries.v[i].task]);
		}
		for (int l = 0; l < p->lanes.n; l++)
			if (p->lanes.v[l].replicas == 1)
				most = fmax(most, contention_lane(&b, l));
		most = fmax(most, contention_unit(&b));
	}
	return most;
}

/* If the interval is taken over complete tiles: all work of a tile, divided by its iterations. */
static double tile_resources(const struct prover *m, const struct entry_cost *costs)
{
	int64_t trips = tile_trips(m), tiles = trips > 0 ? m->line->ii_step / trips : 0;
	const double *runs;
	double iterations;
	struct bounds b;

	if (m->line->ii_loop == NONE || !tiles)
		return 0;
	iterations = (double)m->line->ii_step / (double)tiles;
	runs = tile_runs(m, iterations);
	bounds_of_costs(m->a, m->p, costs, m->line->phase, NONE, runs, &b);
	return fmax(b.res_mii, tile_contention(m, costs, runs)) / iterations;
}

static double resources(const struct prover *m, const struct entry_cost *costs)
{
	struct bounds b;

	bounds_of_costs(m->a, m->p, costs, m->line->phase, m->line->ii_loop, NULL, &b);
	if (!m->out->loop.stated)
		b.res_mii = fmax(b.res_mii, b.rec_mii);
	return fmax(b.res_mii, tile_resources(m, costs));
}

static int value_of(const struct prover *m, int buffer)
{
	for (int i = 0; i < m->out->loop.problem.nvalues; i++)
		if (m->out->loop.buffer[i] == buffer)
			return i;
	return NONE;
}

/* Solve the eased problem. x->bound stays as it is if there is none. */
static enum err_code solve_eased(const struct prover *m, struct proof_ease *x, struct err *e)
{
	static const enum modulo_ease_kind kinds[] = { [PROOF_VERSION] = MODULO_EASE_VERSIONS,
		[PROOF_CAPACITY] = MODULO_EASE_CAPACITY, [PROOF_LANE] = MODULO_EASE_LANE };
	const struct modulo_effort effort = { EASE_NODES, -1 };
	const struct entry_cost *costs = ease_costs(m, x);
	struct modulo_ease ease = { .kind = kinds[x->kind], .amount = x->kind == PROOF_CAPACITY ? x->times : 1,
		.index = x->kind == PROOF_VERSION ? value_of(m, x->of) : x->kind == PROOF_LANE ? x->of : 0 };
	double others = x->kind == PROOF_LANE ? 0 : resources(m, costs);
	struct loop_answer eased;
	struct modulo_answer answer;
	enum err_code code;

	loop_state(m->a, m->p, costs, m->line->ii_loop, LOOP_BOUND, &eased);
	if (x->kind == PROOF_WORK || x->kind == PROOF_UNIT)
		code = modulo_solve(m->a, &eased.problem, &effort, m->stop, &answer, e);
	else
		code = modulo_what_if(m->a, &eased.problem, &ease, &effort, m->stop, &answer, e);
	if (code == ERR_INTERRUPTED)
		return code;
	if (code || answer.status == MODULO_IMPOSSIBLE)
		return OK;
	x->bound = fmin(fmax(answer.bound, others), m->out->bound);
	x->exact = answer.proven || others >= answer.bound;
	return OK;
}

static enum err_code solve(const struct prover *m, struct proof_ease x, struct err *e)
{
	struct arena_mark mark = arena_mark(m->a);
	enum err_code code;

	if (m->out->eases.n == m->out->eases.cap)
		return OK;		/* its memory is allocated once, so that scratch can be released */
	for (int i = 0; i < m->out->eases.n; i++) {
		const struct proof_ease *y = &m->out->eases.v[i];

		if (y->kind == x.kind && y->of == x.of && y->times == x.times)
			return OK;
	}
	x.bound = m->out->bound;
	code = solve_eased(m, &x, e);
	arena_reset(m->a, mark);
	if (!code)
		m->out->eases.v[m->out->eases.n++] = x;
	return code;
}

/* ---- what is worth easing ------------------------------------------------------------- */

static enum err_code ease_units(const struct prover *m, struct err *e)
{
	const struct loop_answer *l = &m->out->loop;

	for (int u = 0; u < l->problem.nunits; u++) {
		double busy = 0;

		for (int i = 0; i < l->problem.ntasks; i++)
			busy += l->problem.tasks[i].unit == u ? l->problem.tasks[i].busy : 0;
		if (busy <= 0 || l->unit[u].lane != NONE || l->unit[u].contended)
			continue;
		TRY(solve(m, (struct proof_ease){ .kind = PROOF_UNIT, .of = u, .times = A_LITTLE }, e));
		TRY(solve(m, (struct proof_ease){ .kind = PROOF_UNIT, .of = u, .times = MUCH }, e));
	}
	return OK;
}

static enum err_code ease_work(const struct prover *m, int task, struct err *e)
{
	if (task == NONE)
		return OK;
	return solve(m, (struct proof_ease){ .kind = PROOF_WORK, .of = m->p->graph->tasks.v[task].task,
		.times = 1 / 0.9 }, e);
}

static enum err_code ease_version(const struct prover *m, int value, struct err *e)
{
	return solve(m, (struct proof_ease){ .kind = PROOF_VERSION, .of = m->out->loop.buffer[value], .times = 1 }, e);
}

/* Does the requirement concern this task of the problem? A unit that only demands use concerns all sTasks of its lane, or of
 * the sEU that it belongs to. */
static bool concerns(const struct prover *m, const struct modulo_need *need, int i)
{
	const struct modulo_task *t = &m->out->loop.problem.tasks[i];
	const struct loop_unit *u = &m->out->loop.unit[need->index];

	if (need->kind == MODULO_NEED_LANE)
		return t->lanes >> need->index & 1;
	if (u->lane != NONE)
		return t->lanes >> u->lane & 1;
	return t->unit == (u->seu != NONE ? u->seu : need->index);
}

static enum err_code ease_tasks_of(const struct prover *m, const struct modulo_need *need, struct err *e)
{
	const struct loop_answer *l = &m->out->loop;

	for (int i = 0; i < l->problem.ntasks; i++)
		if (concerns(m, need, i))
			TRY(ease_work(m, l->task[i], e));
	return OK;
}

static enum err_code ease_need(const struct prover *m, const struct modulo_need *need, struct err *e)
{
	const struct loop_answer *l = &m->out->loop;

	switch (need->kind) {
	case MODULO_NEED_DEP:
		TRY(ease_work(m, l->task[l->problem.deps[need->index].from], e));
		return ease_work(m, l->task[l->problem.deps[need->index].to], e);
	case MODULO_NEED_VERSIONS:
		return ease_version(m, need->index, e);
	case MODULO_NEED_CAPACITY:
		TRY(solve(m, (struct proof_ease){ .kind = PROOF_CAPACITY, .times = A_LITTLE }, e));
		return solve(m, (struct proof_ease){ .kind = PROOF_CAPACITY, .times = MUCH }, e);
	case MODULO_NEED_LANE:
		TRY(ease_tasks_of(m, need, e));
		return solve(m, (struct proof_ease){ .kind = PROOF_LANE, .of = need->index, .times = 1 }, e);
	case MODULO_NEED_UNIT:
		return ease_tasks_of(m, need, e);
	case MODULO_NEED_PIN:
	case MODULO_NEED_ORDER:
		return OK;
	}
	return OK;
}

static int by_bound(const void *a, const void *b)
{
	const struct proof_ease *x = a, *y = b;

	if (x->bound != y->bound)
		return x->bound < y->bound ? -1 : 1;
	if (x->kind != y->kind)
		return (int)x->kind - (int)y->kind;
	return x->of != y->of ? x->of - y->of : x->times < y->times ? -1 : 1;
}

static enum err_code ease_all(const struct prover *m, struct err *e)
{
	const struct modulo_core *core = &m->out->core;

	m->out->eases.v = ARENA_ARRAY(m->a, EASES_MAX, struct proof_ease);
	m->out->eases.cap = EASES_MAX;
	TRY(ease_units(m, e));
	for (int i = 0; i < core->nneeds; i++)
		TRY(ease_need(m, &core->needs[i], e));
	for (int i = 0; i < m->out->loop.problem.nvalues; i++)
		if (m->out->loop.problem.nvalues <= EASES_MAX / 4)
			TRY(ease_version(m, i, e));
	qsort(m->out->eases.v, (size_t)m->out->eases.n, sizeof(*m->out->eases.v), by_bound);
	return OK;
}

/* ---- the proof ------------------------------------------------------------------------ */

static enum err_code explain(struct prover *m, struct err *e)
{
	const struct modulo_effort effort = { WHY_NODES, -1 };
	struct modulo_answer about = m->out->loop.answer;

	about.exclusive = about.bound;	/* why units cannot do better even if they mix work */
	TRY(modulo_why(m->a, &m->out->loop.problem, &about, &effort, m->stop, &m->out->core, e));
	return ease_all(m, e);
}

enum err_code proof_make(struct arena *a, const struct timeline *t, const struct stop *stop,
	struct proof *out, struct err *e)
{
	const struct modulo_effort effort = { NODES, MILP_NODES };
	const struct phase_line *line = timeline_longest(t);
	struct prover m = { a, t->plan, line, stop, out };

	*out = (struct proof){ 0 };
	TRY(loop_solve(a, t->plan, line->entry_costs, line->ii_loop, LOOP_BOUND, &effort, stop, &out->loop, e));
	out->bound = resources(&m, line->entry_costs);
	if (out->loop.stated) {
		out->tile = out->bound > out->loop.bound * (1 + ROUNDING);
		out->bound = fmax(out->bound, out->loop.bound);
	}
	if (out->bound < line->ii * (1 + ROUNDING))
		out->bound = fmin(out->bound, line->ii);
	return out->loop.stated ? explain(&m, e) : OK;
}

/* The latest use of a value by the task. */
static double last_use(const struct modulo_value *v, int task)
{
	double most = 0;

	for (int i = 0; i < v->nuses; i++)
		if (v->uses[i].task == task)
			most = fmax(most, v->uses[i].lag);
	return most;
}

/* A value may have fewer versions than its most, if the memory holds no more. So the iterations follow from the ratio. */
void proof_circle(const struct proof *x, double *cycles, int *iterations)
{
	const struct modulo_problem *p = &x->loop.problem;
	const struct modulo_floor *f = &x->loop.answer.floor;

	*cycles = 0;
	for (int i = 0; i < f->nlinks; i++) {
		const struct modulo_link *l = &f->links[i];

		if (l->kind == MODULO_DEP)
			*cycles += p->deps[l->index].lag;
		else if (l->kind == MODULO_VALUE)
			*cycles += last_use(&p->values[l->index], l->from);
	}
	*iterations = f->rec > 0 ? (int)lrint(*cycles / f->rec) : 0;
}
