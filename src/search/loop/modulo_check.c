#include <math.h>

#include "search/loop/modulo.h"

static const double CYCLES_MAX = 1e9;
static const double SPREAD_MAX = 1e6;	/* the sum of all cycles, divided by the most that a resource needs */
enum { DISTANCE_MAX = 1000 };

static bool cycles_ok(double x)
{
	return x >= 0 && x <= CYCLES_MAX;
}

static bool index_ok(int i, int n, bool none)
{
	return (i >= 0 && i < n) || (none && i == MODULO_NONE);
}

static bool distance_ok(int d)
{
	return d >= -DISTANCE_MAX && d <= DISTANCE_MAX;
}

/* Cycles after the completion of a task, or its start. */
static bool after_ok(const struct modulo_problem *p, int task, bool from_start, double lag, double cross)
{
	return index_ok(task, p->ntasks, false) && cycles_ok(cross) &&
		cycles_ok((from_start ? 0 : p->tasks[task].latency) + lag);
}

static bool value_ok(const struct modulo_problem *p, const struct modulo_value *v)
{
	if (!index_ok(v->def, p->ntasks, false) || !index_ok(v->memory, p->nmemories, true) ||
	    !(v->bytes >= 0 && v->bytes <= 1e15) || v->least < 1 || v->least > MODULO_VERSIONS_MAX ||
	    v->most > MODULO_VERSIONS_MAX || (v->most && v->most < v->least) || v->nuses < 0)
		return false;
	for (int i = 0; i < v->nuses; i++)
		if (!after_ok(p, v->uses[i].task, v->uses[i].from_start, v->uses[i].lag,
		    v->uses[i].cross) || !distance_ok(v->uses[i].distance))
			return false;
	return true;
}

static enum err_code wrong(struct err *e, const char *what, int i)
{
	return err_set(e, ERR_INPUT, NOWHERE, "%s %d of a modulo schedule has a number out of its range", what, i);
}

static enum err_code check_lists(const struct modulo_problem *p, struct err *e)
{
	for (int i = 0; i < p->nlanes; i++)
		if (!index_ok(p->lanes[i].memory, p->nmemories, true))
			return wrong(e, "lane", i);
	for (int i = 0; i < p->nmemories; i++)
		if (!(p->memories[i].capacity >= 0))
			return wrong(e, "memory", i);
	for (int i = 0; i < p->ntasks; i++) {
		const struct modulo_task *t = &p->tasks[i];

		if (!index_ok(t->unit, p->nunits, true) || !cycles_ok(t->busy) || !cycles_ok(t->hold) ||
		    !cycles_ok(t->latency) || t->lanes >> p->nlanes)
			return wrong(e, "task", i);
	}
	for (int i = 0; i < p->ndeps; i++) {
		const struct modulo_dep *d = &p->deps[i];

		if (!index_ok(d->to, p->ntasks, false) || !distance_ok(d->distance) ||
		    !after_ok(p, d->from, d->from_start, d->lag, d->cross))
			return wrong(e, "dependence", i);
	}
	for (int i = 0; i < p->nvalues; i++)
		if (!value_ok(p, &p->values[i]))
			return wrong(e, "value", i);
	for (int i = 0; i < p->npins; i++)
		if (!index_ok(p->pins[i].task, p->ntasks, false) || !distance_ok(p->pins[i].ahead) ||
		    !index_ok(p->pins[i].other, p->ntasks, false) || p->pins[i].task == p->pins[i].other)
			return wrong(e, "pin", i);
	for (int i = 0; i < p->norders; i++) {
		const struct modulo_order *o = &p->orders[i];

		if (!index_ok(o->a, p->ntasks, false) || !index_ok(o->b, p->ntasks, false) ||
		    !index_ok(o->c, p->ntasks, false) || o->a == o->b || o->b == o->c || o->a == o->c)
			return wrong(e, "order", i);
	}
	return OK;
}

/* Starts are in units of the interval. If an iteration took a million intervals, they would be exact to a thousandth. */
static enum err_code check_spread(const struct modulo_problem *p, struct err *e)
{
	double all = 0, most = 0;

	for (int i = 0; i < p->ntasks; i++) {
		const struct modulo_task *t = &p->tasks[i];
		bool worked = t->unit != MODULO_NONE && p->units[t->unit].share != MODULO_UNLIMITED;

		all += t->latency;
		most = fmax(most, fmax(worked ? t->busy : 0, t->lanes ? t->hold : 0));
	}
	for (int i = 0; i < p->ndeps; i++)
		all += fabs(p->deps[i].lag) + p->deps[i].cross;
	if (!(most > 0))
		return err_set(e, ERR_INPUT, NOWHERE, "no task of a modulo schedule takes any time");
	if (all > most * SPREAD_MAX)
		return err_set(e, ERR_LIMIT, NOWHERE, "the times of a modulo schedule are too far apart");
	return OK;
}

enum err_code modulo_check(const struct modulo_problem *p, struct err *e)
{
	if (p->ntasks < 1 || p->nlanes < 0)
		return err_set(e, ERR_INPUT, NOWHERE, "a modulo schedule of no tasks");
	if (p->ntasks > MODULO_TASKS_MAX || p->nlanes > MODULO_LANES_MAX)
		return err_set(e, ERR_LIMIT, NOWHERE,
			"a modulo schedule of more than %d tasks or %d lanes", MODULO_TASKS_MAX, MODULO_LANES_MAX);
	TRY(check_lists(p, e));
	return check_spread(p, e);
}
