#include "lplan.h"

#include <math.h>
#include <string.h>

#include "search/proof.h"
#include "sim/bounds.h"

static void set_number(lua_State *L, const char *key, double x)
{
	if (isfinite(x))
		set_real(L, key, x);
}

/* A proof and its timeline. */
struct context {
	const struct timeline *t;
	const struct proof *x;
};

static const char *task_name(const struct context *s, int i)
{
	int task = s->x->loop.task[i];

	return task == NONE ? NULL : s->t->plan->graph->tasks.v[task].name;
}

static const char *buffer_name(const struct context *s, int value)
{
	return s->t->plan->graph->buffers.v[s->x->loop.buffer[value]].name;
}

/* unit = "tensor", "L2" or "device memory"; lane = the lane that alone uses it, if the unit of the problem says so. */
static void set_unit(lua_State *L, const struct context *s, int unit)
{
	const struct loop_unit *u = &s->x->loop.unit[unit];

	set_text(L, "unit", u->seu != NONE ? s->t->plan->device->seu[u->seu].name : u->global ? "device memory" : "L2");
	if (u->lane != NONE)
		set_text(L, "lane", s->t->plan->lanes.v[u->lane].name);
	if (u->contended)
		set_bool(L, "contention", true);
}

static void push_tasks_of(lua_State *L, const struct context *s)
{
	const struct modulo_problem *p = &s->x->loop.problem;
	const struct modulo_answer *a = &s->x->loop.answer;
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < p->ntasks; i++) {
		const struct modulo_task *t = &p->tasks[i];
		const struct plan *plan = s->t->plan;
		int entry = s->x->loop.task[i] == NONE ? NONE : plan_entry_of(plan, s->x->loop.task[i]);

		if (entry == NONE)
			continue;
		lua_createtable(L, 0, 8);
		set_text(L, "name", task_name(s, i));
		set_text(L, "lane", plan->lanes.v[plan->entries.v[entry].lane].name);
		set_text(L, "unit", plan->device->seu[t->unit].name);
		set_number(L, "hold", t->hold);
		set_number(L, "busy", t->busy);
		set_number(L, "latency", t->latency);
		if (a->status == MODULO_FOUND) {
			double stage = floor(a->start[i] + 1e-9);

			set_number(L, "start", fmax(a->start[i] - stage, 0) * a->ii);
			set_integer(L, "stage", (int64_t)stage);
		}
		lua_rawseti(L, -2, ++n);
	}
}

static void push_versions(lua_State *L, const struct context *s)
{
	const struct modulo_answer *a = &s->x->loop.answer;

	lua_newtable(L);
	for (int i = 0; a->status == MODULO_FOUND && i < s->x->loop.problem.nvalues; i++)
		set_integer(L, buffer_name(s, i), a->versions[i]);
}

/* The names of the sTasks of the recurrence that gives RecMII. */
static void push_circle(lua_State *L, const struct context *s)
{
	const struct modulo_floor *f = &s->x->loop.answer.floor;
	double cycles;
	int iterations;

	lua_createtable(L, f->nlinks, 2);
	for (int i = 0; i < f->nlinks; i++) {
		lua_pushstring(L, task_name(s, f->links[i].from));
		lua_rawseti(L, -2, i + 1);
	}
	proof_circle(s->x, &cycles, &iterations);
	set_number(L, "cycles", cycles);
	set_integer(L, "iterations", iterations);
}

/* The cycles for which an iteration holds a lane, or uses a unit. */
static double cycles_needed(const struct context *s, const struct modulo_need *n)
{
	const struct modulo_problem *p = &s->x->loop.problem;
	double sum = 0;

	for (int i = 0; i < p->ntasks; i++) {
		if (n->kind == MODULO_NEED_LANE && p->tasks[i].lanes >> n->index & 1)
			sum += p->tasks[i].hold;
		if (n->kind == MODULO_NEED_UNIT && p->tasks[i].unit == n->index)
			sum += p->tasks[i].busy;
	}
	return sum;
}

static void push_need(lua_State *L, const struct context *s, const struct modulo_need *n)
{
	static const char *const kinds[] = { [MODULO_NEED_DEP] = "dependence", [MODULO_NEED_PIN] = "pin",
		[MODULO_NEED_ORDER] = "order", [MODULO_NEED_VERSIONS] = "versions",
		[MODULO_NEED_CAPACITY] = "shared memory", [MODULO_NEED_LANE] = "lane", [MODULO_NEED_UNIT] = "unit" };
	const struct modulo_problem *p = &s->x->loop.problem;

	lua_createtable(L, 0, 4);
	set_text(L, "kind", kinds[n->kind]);
	if (n->kind == MODULO_NEED_DEP) {
		const struct modulo_dep *d = &p->deps[n->index];

		set_text(L, "from", task_name(s, d->from));
		set_text(L, "to", task_name(s, d->to));
		set_integer(L, "distance", d->distance);
		set_number(L, "cycles", d->lag);
	} else if (n->kind == MODULO_NEED_VERSIONS) {
		set_text(L, "buffer", buffer_name(s, n->index));
		set_integer(L, "most", p->values[n->index].most);
	} else if (n->kind == MODULO_NEED_CAPACITY) {
		set_number(L, "bytes", p->memories[n->index].capacity);
	} else if (n->kind == MODULO_NEED_LANE) {
		set_text(L, "lane", s->t->plan->lanes.v[n->index].name);
		set_number(L, "cycles", cycles_needed(s, n));
	} else if (n->kind == MODULO_NEED_UNIT) {
		set_unit(L, s, n->index);
		set_number(L, "cycles", cycles_needed(s, n));
	}
}

static void push_core(lua_State *L, const struct context *s)
{
	const struct modulo_core *core = &s->x->core;

	lua_createtable(L, core->nneeds, 1);
	for (int i = 0; i < core->nneeds; i++) {
		push_need(L, s, &core->needs[i]);
		lua_rawseti(L, -2, i + 1);
	}
	set_bool(L, "irreducible", core->irreducible);
}

static void push_ease(lua_State *L, const struct context *s, const struct proof_ease *e)
{
	const struct plan *p = s->t->plan;

	lua_createtable(L, 0, 5);
	if (e->kind == PROOF_VERSION)
		set_text(L, "buffer", p->graph->buffers.v[e->of].name);
	else if (e->kind == PROOF_CAPACITY)
		set_text(L, "memory", "shared memory");
	else if (e->kind == PROOF_UNIT)
		set_unit(L, s, e->of);
	else if (e->kind == PROOF_WORK)
		set_text(L, "task", p->graph->program->tasks.v[e->of].name);
	else
		set_text(L, "lane", p->lanes.v[e->of].name);
	set_number(L, "times", e->times);
	set_number(L, "bound", e->bound);
	set_number(L, "gain", 1 - e->bound / s->x->bound);
	set_bool(L, "exact", e->exact);
}

static void push_stated(lua_State *L, const struct context *s)
{
	static const char *const solvers[] = { [MODULO_BY_BOUNDS] = "bounds", [MODULO_BY_SEARCH] = "search",
		[MODULO_BY_MILP] = "cbc" };
	const struct modulo_answer *a = &s->x->loop.answer;

	set_text(L, "solver", solvers[a->solver]);
	set_number(L, "best", a->status == MODULO_FOUND ? fmax(a->ii, s->x->bound) : NAN);
	set_bool(L, "exact", a->proven || a->ii <= s->x->bound);
	set_number(L, "best_loop", s->x->loop.bound);
	push_tasks_of(L, s);
	lua_setfield(L, -2, "tasks");
	push_versions(L, s);
	lua_setfield(L, -2, "versions");
	push_circle(L, s);
	lua_setfield(L, -2, "circle");
	push_core(L, s);
	lua_setfield(L, -2, "core");
	PUSH_LIST(L, i, s->x->eases.n, push_ease(L, s, &s->x->eases.v[i]));
	lua_setfield(L, -2, "eases");
}

/* A loop is named by its fastest axis. NULL: the loop over tiles. */
static const char *loop_name(const struct program *p, int loop)
{
	return loop == NONE ? NULL : p->axes.v[p->loops.v[loop].axis[p->loops.v[loop].naxes - 1]].name;
}

/* core.proof(timeline) -> table; lua/std/proof.lua makes tl:proof() of it */
static int proof_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct timeline *t = check_timeline(L, 1, "proof");
	const struct phase_line *line = timeline_longest(t);
	struct stop stop = stop_of(h);
	struct arena *a = scratch_push(L);
	struct proof x;
	struct context s = { t, &x };
	struct err e;

	if (t->measured)
		throw_msg(L, "proof: this timeline is measured; ask the simulated one");
	raise_if(L, proof_make(a, t, &stop, &x, &e), &e);
	lua_createtable(L, 0, 16);
	set_number(L, "ii", line->ii);
	set_number(L, "bound", x.bound);
	set_text(L, "binding", line->rec_mii > line->res_mii ? "a circle of dependences" :
		binding_name(t->plan, line->binding_seu));
	set_number(L, "rec_of_plan", line->rec_mii);
	set_text(L, "loop", loop_name(t->plan->graph->program, line->ii_loop));
	set_text(L, "unstated", x.loop.unstated);
	set_bool(L, "tile", x.tile);
	if (x.loop.stated)
		push_stated(L, &s);
	return 1;
}

void lua_open_proof(lua_State *L)
{
	set_function(L, "proof", proof_l);
}
