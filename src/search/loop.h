/* loop.h - the body of a plan's loop as a modulo scheduling problem, and an order from its solution.
 *
 * The plan says which lane each sTask is on. Its orders, offsets and versions do not count: the solution chooses them.
 * The costs are those that the simulator uses, so a bound of the problem is a bound on what can be simulated
 * (loop/modulo.h has the formulation). The problem leaves out registers, the ends of tiles, and what cannot be lowered:
 * this only makes the bound lower, and plans made from the order are checked.
 *
 * Units of the problem are those of the device, and whatever else a loop may ask too much of (loop_unit): an EU's share
 * of the memories; an asynchronous unit as far as one lane can use it; a lane, and a vector unit, with the cycles that
 * contention costs. Tasks that stand for no sTask ask for these. */
#ifndef SEARCH_LOOP_H
#define SEARCH_LOOP_H

#include "search/loop/modulo.h"
#include "search/orders.h"
#include "sim/traffic.h"

struct loop_unit {
	int seu;			/* or NONE: a memory */
	int lane;			/* the unit as far as this lane can use it; NONE: all of the unit */
	bool global;			/* device memory; else L2 */
	bool contended;		/* a vector unit, or a lane, with what contention costs */
};
enum { LOOP_DEMANDS = 2 + 3 * LANES_MAX, LOOP_UNITS = SEU_MAX + LOOP_DEMANDS };

struct loop_answer {
	bool stated;			/* there is a problem */
	const char *unstated;		/* why there is none, in a few words */
	double bound;			/* cycles: no order, offsets or versions give a shorter interval */
	double ii;			/* of the order; INFINITY: there is no order */
	bool proven;			/* ii is the bound */
	struct order order;		/* of the lane of the first slice; all slices have the same */
	struct modulo_problem problem;	/* in the arena, as the answer */
	struct modulo_answer answer;
	int *task;			/* by task of the problem: its sTask; NONE */
	int *buffer;			/* by value of the problem: its buffer */
	struct loop_unit *unit;		/* by unit of the problem */
};

/* What the problem is for: a schedule, to read an order from, or the greatest bound. Only a bound counts what merely adds up
 * cycles of an iteration: it says nothing about orders, and a solver stops at an interval that it proves. */
enum loop_aim { LOOP_ORDER, LOOP_BOUND };

/* State the problem without solving it: sets out->stated, and if it is, problem, task, buffer and unit. */
void loop_state(struct arena *a, const struct plan *p, const struct entry_cost *costs, int loop,
	enum loop_aim aim, struct loop_answer *out);

/* State and solve. costs: by entry of p (sim_costs). Everything is in `a`. ERR_INTERRUPTED. */
NODISCARD enum err_code loop_solve(struct arena *a, const struct plan *p,
	const struct entry_cost *costs, int loop, enum loop_aim aim, const struct modulo_effort *effort,
	const struct stop *stop, struct loop_answer *out, struct err *e);

#endif
