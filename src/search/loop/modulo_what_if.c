#include "search/loop/modulo_what_if.h"

#include <math.h>
#include <string.h>

/* A copy of an array of n, with space for one more. */
static void *copy(struct arena *a, const void *v, int n, size_t size)
{
	void *out = arena_array(a, (size_t)n + 1, size);

	if (n)
		memcpy(out, v, (size_t)n * size);
	return out;
}

/* The most cycles that a negative lag subtracts from the latency of a task. */
static double most_lag(const struct modulo_problem *p, int task)
{
	double most = 0;

	for (int i = 0; i < p->ndeps; i++)
		if (p->deps[i].from == task && !p->deps[i].from_start)
			most = fmax(most, -p->deps[i].lag);
	for (int i = 0; i < p->nvalues; i++)
		for (int k = 0; k < p->values[i].nuses; k++)
			if (p->values[i].uses[k].task == task && !p->values[i].uses[k].from_start)
				most = fmax(most, -p->values[i].uses[k].lag);
	return most;
}

static void shorten(const struct modulo_problem *p, struct modulo_task *t, int task, double cycles)
{
	t->latency = fmax(t->latency - cycles, fmin(most_lag(p, task), t->latency));
}

static void speed_up(const struct modulo_problem *p, struct modulo_task *tasks, int unit, double times)
{
	for (int i = 0; i < p->ntasks; i++) {
		struct modulo_task *t = &tasks[i];
		double less = t->busy - t->busy / times;

		if (t->unit != unit)
			continue;
		if (t->hold >= t->busy)
			t->hold -= less;
		t->busy -= less;
		shorten(p, t, i, less);
	}
}

static enum err_code add_lane(struct arena *a, const struct modulo_problem *p, int lane,
	struct modulo_task *tasks, struct modulo_problem *out, struct err *e)
{
	struct modulo_lane *lanes = copy(a, p->lanes, p->nlanes, sizeof(*lanes));
	struct modulo_memory *memories = copy(a, p->memories, p->nmemories, sizeof(*memories));

	if (p->nlanes == MODULO_LANES_MAX)
		return err_set(e, ERR_LIMIT, NOWHERE, "there are already %d lanes", p->nlanes);
	for (int i = 0; i < p->ntasks; i++)
		if (tasks[i].lanes >> lane & 1)
			tasks[i].lanes |= (uint32_t)1 << p->nlanes;
	lanes[p->nlanes] = lanes[lane];
	if (lanes[lane].memory != MODULO_NONE) {
		lanes[p->nlanes].memory = p->nmemories;
		memories[out->nmemories++] = memories[lanes[lane].memory];
	}
	out->nlanes++;
	out->lanes = lanes;
	out->memories = memories;
	return OK;
}

static enum err_code check(const struct modulo_problem *p, const struct modulo_ease *x, struct err *e)
{
	const int count[] = {
		[MODULO_EASE_VERSIONS] = p->nvalues, [MODULO_EASE_CAPACITY] = p->nmemories,
		[MODULO_EASE_UNIT] = p->nunits, [MODULO_EASE_LATENCY] = p->ntasks,
		[MODULO_EASE_HOLD] = p->ntasks, [MODULO_EASE_LANE] = p->nlanes,
	};
	bool times = x->kind == MODULO_EASE_CAPACITY || x->kind == MODULO_EASE_UNIT;

	if ((int)x->kind < 0 || (int)x->kind >= LEN(count) || x->index < 0 ||
	    x->index >= count[x->kind] || !(x->amount >= (times ? 1 : 0) && x->amount <= 1e9))
		return err_set(e, ERR_INPUT, NOWHERE, "a modulo schedule has nothing of this kind that could be eased");
	return OK;
}

enum err_code modulo_ease(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, struct modulo_problem *out, struct err *e)
{
	struct modulo_task *tasks;
	struct modulo_value *values;
	struct modulo_memory *memories;

	TRY(check(p, x, e));
	*out = *p;
	out->tasks = tasks = copy(a, p->tasks, p->ntasks, sizeof(*tasks));
	out->values = values = copy(a, p->values, p->nvalues, sizeof(*values));
	out->memories = memories = copy(a, p->memories, p->nmemories, sizeof(*memories));
	switch (x->kind) {
	case MODULO_EASE_VERSIONS:
		if (values[x->index].most)
			values[x->index].most = (int)fmin(values[x->index].most + x->amount, MODULO_VERSIONS_MAX);
		return OK;
	case MODULO_EASE_CAPACITY:
		memories[x->index].capacity *= x->amount;
		return OK;
	case MODULO_EASE_UNIT:
		speed_up(p, tasks, x->index, x->amount);
		return OK;
	case MODULO_EASE_LATENCY:
		shorten(p, &tasks[x->index], x->index, x->amount);
		return OK;
	case MODULO_EASE_HOLD:
		tasks[x->index].hold = fmax(tasks[x->index].hold - x->amount, 0);
		return OK;
	case MODULO_EASE_LANE:
		return add_lane(a, p, x->index, tasks, out, e);
	}
	return OK;
}

enum err_code modulo_what_if(struct arena *a, const struct modulo_problem *p,
	const struct modulo_ease *x, const struct modulo_effort *effort, const struct stop *stop,
	struct modulo_answer *out, struct err *e)
{
	struct modulo_problem eased;

	TRY(modulo_check(p, e));
	TRY(modulo_ease(a, p, x, &eased, e));
	return modulo_solve(a, &eased, effort, stop, out, e);
}
