/* loop.h - the body of a plan's loop as a problem of modulo scheduling, and an order out of its answer.
 *
 * The plan says which lane each sTask is on; its orders, offsets and versions do not count: those
 * are what is asked for. Costs are those that the simulator plays with, so that the bound is one on
 * what it can come to (loop/modulo.h has the formulation). What the problem leaves out (registers, the
 * tiles' ends, what cannot be lowered) only makes the bound lower, and is checked of whatever comes
 * of the order.
 *
 * Units of the problem are those of the device, then what else a loop may ask too much of (loop_unit): an EU's
 * shares of memory; an asynchronous unit as far as one lane alone can use it; a lane, and a vector unit, with the
 * time that they lose while products are at work. Those are asked by tasks of their own, which stand for no
 * sTask.
 */
#ifndef SEARCH_LOOP_H
#define SEARCH_LOOP_H

#include "search/loop/modulo.h"
#include "search/orders.h"
#include "sim/traffic.h"

struct loop_unit {
	int seu;			/* or NONE: memory */
	int lane;			/* the unit as this lane alone can use it; NONE: all of it */
	bool global;			/* device memory; else L2 */
	bool contended;		/* a vector unit, or the lane, slower beside products */
};
enum { LOOP_DEMANDS = 2 + 3 * LANES_MAX, LOOP_UNITS = SEU_MAX + LOOP_DEMANDS };

struct loop_answer {
	bool stated;
	const char *unstated;		/* why not: a few words */
	double bound;			/* cycles: no order, offsets or versions give a shorter interval */
	double ii;			/* of the order; INFINITY: there is none */
	bool proven;			/* ii is the bound */
	struct order order;		/* of the lane of the first part; all parts go alike */
	struct modulo_problem problem;	/* in the arena, as the answer */
	struct modulo_answer answer;
	int *task;			/* of the problem: sTask of the graph; NONE */
	int *buffer;			/* of the problem's values: buffer of the graph */
	struct loop_unit *unit;		/* of the problem */
};

/* What is asked: a schedule, to read an order from, or the greatest bound. What only counts cycles of an
 * interval says nothing about orders, and a solver that has come to it looks no further: only a bound has it. */
enum loop_aim { LOOP_ORDER, LOOP_BOUND };

/* The problem alone, to be solved as it is or with something eased: out->problem, task, buffer and unit, if it
 * is stated. */
void loop_state(struct arena *a, const struct plan *p, const struct entry_cost *costs, int loop,
	enum loop_aim aim, struct loop_answer *out);

/* costs: by entry of p, as sim's. All in `a`. ERR_INTERRUPTED. */
NODISCARD enum err_code loop_solve(struct arena *a, const struct plan *p,
	const struct entry_cost *costs, int loop, enum loop_aim aim, const struct modulo_effort *effort,
	const struct stop *stop, struct loop_answer *out, struct err *e);

#endif
