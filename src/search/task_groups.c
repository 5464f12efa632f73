#include "search/task_groups.h"

/* The component of a task is named by its first task, to which chains of `up` lead. */
static int component_of(const int *up, int task)
{
	while (up[task] != task)
		task = up[task];
	return task;
}

static void join(int *up, int x, int y)
{
	x = component_of(up, x);
	y = component_of(up, y);
	if (x < y)
		up[y] = x;
	else
		up[x] = y;
}

/* Does the sTask use the buffer otherwise than as an operand of a product? */
static bool keeps_in_registers(const struct graph *g, int task, int buffer)
{
	const struct stask *s = &g->tasks.v[task];

	if (s->kind == TASK_LOAD)
		return false;
	return ints_hold(s->writes.v, s->writes.n, buffer) || (ints_hold(s->reads.v, s->reads.n, buffer) &&
		(s->kind != TASK_MMA || g->buffers.v[buffer].carry != NONE));
}

static void find_components(const struct graph *g, int *up)
{
	for (int t = 0; t < g->tasks.n; t++)
		up[t] = t;
	for (int b = 0; b < g->buffers.n; b++) {
		int first = NONE;

		for (int t = 0; t < g->tasks.n && g->buffers.v[b].scope != SCOPE_SHARED; t++) {
			if (!keeps_in_registers(g, t, b))
				continue;
			if (first == NONE)
				first = t;
			join(up, first, t);
		}
	}
}

/* Cycles of its unit in all iterations of a tile. */
static double busy_cycles(const struct graph *g, const struct vdevice *d, int task)
{
	const struct stask *s = &g->tasks.v[task];
	int seu = device_seu_for(d, &s->work);

	if (seu == NONE || d->seu[seu].kind == SEU_COPY)
		return 0;
	return device_cost(d, seu, &s->work, 4, (struct pace){ .active = d->eus, .clock_hz = d->clock_hz }).busy *
		graph_runs(g, s->loop, NONE);
}

/* Of the components of the phase without a lane, the one that takes most time; NONE: all have lanes. */
static int find_longest(const struct graph *g, int phase, const int *up, const double *time, const int *group)
{
	int longest = NONE;

	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == phase && g->tasks.v[t].kind != TASK_LOAD && up[t] == t && group[t] == NONE &&
		    (longest == NONE || time[t] > time[longest]))
			longest = t;
	return longest;
}

/* Returns how many lanes are used. */
static int group_phase(const struct graph *g, int phase, int lanes, const int *up, const double *time, int *group)
{
	double load[8] = { 0 };
	int used = 0, next;

	while ((next = find_longest(g, phase, up, time, group)) != NONE) {
		int least = 0;

		for (int l = 1; l < lanes && l < LEN(load); l++)
			if (load[l] < load[least])
				least = l;
		group[next] = least;
		load[least] += time[next];
		used = least >= used ? least + 1 : used;
	}
	return used;
}

int group_tasks(struct arena *a, const struct graph *g, const struct vdevice *d, int lanes, int *group)
{
	struct arena_mark mark = arena_mark(a);
	int *up = ARENA_ARRAY(a, g->tasks.n, int), most = 0;
	double *time = ARENA_ARRAY(a, g->tasks.n, double);

	find_components(g, up);
	for (int t = 0; t < g->tasks.n; t++) {
		group[t] = NONE;
		time[component_of(up, t)] += busy_cycles(g, d, t);
	}
	for (int phase = 0; phase < g->program->phases.n; phase++) {
		int used = group_phase(g, phase, lanes, up, time, group);

		most = used > most ? used : most;
	}
	for (int t = 0; t < g->tasks.n; t++)
		group[t] = group[component_of(up, t)];
	arena_reset(a, mark);
	return most;
}
