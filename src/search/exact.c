#include "search/exact.h"

#include "search/loop.h"
#include "sim/sim.h"

/* A search solves many loops, so each gets little effort. */
enum { NODES = 4000, MILP_NODES = 200 };

/* *order: the index of the order among the space's; NONE if there is none. */
static enum err_code solve(struct space *s, const struct choice *c, const struct plan *p, int phase, int loop,
	int region, struct arena *scratch, const struct stop *stop, int *order, struct err *e)
{
	const struct modulo_effort effort = { NODES, MILP_NODES };
	struct arena_mark mark = arena_mark(scratch);
	struct loop_answer answer;

	*order = NONE;
	TRY(loop_solve(scratch, p, sim_costs(scratch, p, phase, NULL), loop, LOOP_ORDER, &effort, stop, &answer, e));
	if (answer.stated && answer.order.n)
		*order = orders_add(&s->variants[c->split_off].orders[region], &answer.order);
	arena_reset(scratch, mark);
	return OK;
}

enum err_code exact_orders(struct space *s, const struct choice *c, const struct plan *p,
	struct arena *scratch, const struct stop *stop, struct choices *out, struct err *e)
{
	const struct program *prog = p->graph->program;
	struct choice x = *c;
	bool found = false;

	for (int phase = 0; phase < prog->phases.n; phase++)
		for (int loop = 0; loop < prog->loops.n; loop++) {
			int region = space_order_index(s->program, phase, loop), order;

			if (region == NONE || prog->loops.v[loop].phase != phase)
				continue;
			TRY(solve(s, c, p, phase, loop, region, scratch, stop, &order, e));
			if (order != NONE && order != c->order[region]) {
				x.order[region] = order;
				found = true;
			}
		}
	for (int issue_order = 0; found && issue_order < 1 + (c->ways > 1); issue_order++) {
		x.issue_order = issue_order;
		VEC_PUSH(s->a, &out->v, x);
	}
	return OK;
}
