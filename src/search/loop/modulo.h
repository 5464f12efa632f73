/* modulo.h - the best modulo schedule of a loop, and a proof of how good it is.
 *
 * A loop has tasks, each of which starts once in every iteration. A modulo schedule gives each a start y, in units of
 * the initiation interval II: iteration n of task t starts at (y[t] + n) * II cycles. floor(y) is the stage, the
 * fraction of y the phase. The constraints below know nothing of machines or programs. The answer has the least II, in
 * cycles, as a real number: starts are not rounded to slots.
 *
 * Formulation. All constraints are linear in y and alpha = 1 / II. A dependence is
 *     y[to] + distance >= y[from] + latency * alpha,
 * two tasks that exclude each other for s_i and s_j cycles have an integer k with
 *     s_i * alpha <= y[j] - y[i] - k <= 1 - s_j * alpha,
 * and a value with c versions must have been read before its slot is overwritten,
 *     y[def] + c >= y[use] + distance + latency * alpha,
 * where bytes * c of all values in a memory are at most its capacity. For given k, c and lanes the least II is the greatest
 * ratio of cycles to distance over cycles of constraints; see docs/internals/modulo.md.
 *
 * Two programs. In the schedule that is returned a unit does one task at a time: the exclusive program. The bound also
 * holds if units mix work (enum modulo_share): the relaxed program. So it holds for units that alternate between small
 * parts of tasks.
 *
 * The problem and all its arrays are borrowed and not changed. Answers live in the arena that is given. No clock is
 * read: with the same solvers present, the same problem has the same answer on every machine. */
#ifndef SEARCH_LOOP_MODULO_H
#define SEARCH_LOOP_MODULO_H

#include "base/arena.h"
#include "base/err.h"

enum {
	MODULO_NONE = -1,		/* no unit, no memory, no lane */
	MODULO_TASKS_MAX = 96,
	MODULO_LANES_MAX = 12,
	MODULO_VERSIONS_MAX = 64,
};

/* How tasks share a unit. In every case but the last, the work of one iteration takes at least the sum of its cycles.
 *
 * A task's start is both when its lane issues it and when its unit begins. If a unit queues what was issued, the schedule
 * issues a task when the unit is free. A bound that also holds for queueing needs MODULO_MIX, with which the start is the
 * issue alone; or two tasks, one for the issue (with a lane) and one for the work (with a unit), and a dependence from the
 * start of the first to the start of the second. */
enum modulo_share {
	MODULO_EXCLUSIVE,		/* one task at a time */
	MODULO_LANES_MIX,		/* relaxed: one task of each lane at a time */
	MODULO_MIX,			/* relaxed: any number of tasks */
	MODULO_UNLIMITED,		/* any number of tasks, in both programs; no sum */
};

struct modulo_unit {
	enum modulo_share share;
};

/* A lane issues tasks: during a task's `hold` no other task of the lane starts. */
struct modulo_lane {
	int memory;			/* of the values that its tasks define; or MODULO_NONE */
	bool unlimited;			/* tasks may overlap on it */
};

struct modulo_memory {
	double capacity;		/* bytes; INFINITY: no limit */
};

struct modulo_task {
	int unit;			/* or MODULO_NONE */
	double busy;			/* cycles of its unit, from its start */
	uint32_t lanes;			/* bits; one: its lane; several: one is chosen; 0: it needs none */
	double hold;			/* cycles of its lane, from its start */
	double latency;			/* cycles from its start until it is complete */
};

/* `to` of iteration n starts no earlier than `lag` cycles after the completion (from_start: after the start) of `from` of
 * iteration n - distance; `cross` cycles later if they are on different lanes. The sum of the cycles is not negative; lag
 * may be. */
struct modulo_dep {
	int from, to;
	int distance;			/* may be negative */
	bool from_start;
	double lag, cross;
};

/* `task` of iteration n + distance reads the value of iteration n. It has done so `lag` cycles after its completion, or its
 * start; cross as above. */
struct modulo_use {
	int task;
	int distance;
	bool from_start;
	double lag, cross;
};

struct modulo_value {
	int def;
	const struct modulo_use *uses;
	int nuses;
	int memory;			/* MODULO_NONE: the memory of def's lane, if it has one */
	double bytes;			/* of one version */
	int least, most;		/* versions; least is at least 1; most 0: no limit */
};

/* Iteration n of `task` starts in the interval that begins with the start of iteration n + ahead of `other`:
 * 0 <= y[task] - y[other] - ahead <= 1. */
struct modulo_pin {
	int task, other;
	int ahead;
};

/* After each start of a, b starts no later than c does: the cyclic order a, b, c. */
struct modulo_order {
	int a, b, c;
};

struct modulo_problem {
	const struct modulo_task *tasks;
	int ntasks;
	const struct modulo_unit *units;
	int nunits;
	const struct modulo_lane *lanes;
	int nlanes;
	const struct modulo_memory *memories;
	int nmemories;
	const struct modulo_dep *deps;
	int ndeps;
	const struct modulo_value *values;
	int nvalues;
	const struct modulo_pin *pins;
	int npins;
	const struct modulo_order *orders;
	int norders;
};

/* How much effort to spend. Zeroes: the default. Effort is counted, not timed. */
struct modulo_effort {
	int64_t nodes;			/* of branch and bound, per program; < 0: only the heuristic's */
	int milp_nodes;			/* of CBC, at most, and fewer of a large problem; < 0: it is not used */
};

enum modulo_status {
	MODULO_FOUND,
	MODULO_IMPOSSIBLE,		/* it is proven that there is no schedule at any II */
	MODULO_UNKNOWN,			/* no schedule was found with this effort */
};

/* The solver whose result is final. */
enum modulo_solver {
	MODULO_BY_BOUNDS,		/* ResMII or RecMII forbids less */
	MODULO_BY_SEARCH,		/* modulo_branch.h */
	MODULO_BY_MILP,			/* milp.h */
};

enum modulo_arc_kind { MODULO_DEP, MODULO_VALUE, MODULO_PIN, MODULO_PAIR };

/* One constraint of a cycle: that of dependence, value or pin `index`, or that two tasks exclude each other. */
struct modulo_link {
	enum modulo_arc_kind kind;
	int index;
	int from, to;			/* tasks */
};

/* Bounds that need no solver. ResMII: the cycles that an iteration asks of a unit, or of a set of lanes divided by their
 * number (Rau, Iterative modulo scheduling, MICRO-27, 1994). RecMII: the greatest ratio of latency to distance over all
 * cycles of dependences and of values with as many versions as they may have. */
struct modulo_floor {
	double ii;			/* the greater of both; INFINITY: there is no schedule */
	double res;
	int unit;			/* the unit that gives res; or MODULO_NONE, and then */
	uint32_t lanes;			/* ... these lanes; or if there are none: the task, by its own length */
	int task;
	double rec;
	int nlinks;			/* links of a cycle that gives rec */
	struct modulo_link links[MODULO_TASKS_MAX];
	int memory;			/* too small for the least versions; or MODULO_NONE */
};

struct modulo_answer {
	enum modulo_status status;
	double ii;			/* cycles; INFINITY unless found */
	double bound;			/* no schedule of either program has less; INFINITY if impossible */
	double exclusive;		/* no schedule of the exclusive program has less */
	bool proven;			/* ii equals bound, relative to 1e-9 */
	bool best;			/* ii equals exclusive, relative to 1e-9 */
	double *start;			/* y, by task, the least in [0, 1); NULL unless found */
	int *lane;			/* by task; MODULO_NONE for one without lanes */
	int *versions;			/* by value: no more than this schedule needs */
	enum modulo_solver solver;	/* of ii and exclusive */
	int memory;			/* if impossible: the memory that is too small; else MODULO_NONE */
	struct modulo_floor floor;
	int64_t nodes;			/* of branch and bound */
	int milp_calls;
};

/* Solve a problem. ERR_INPUT: an index, a count or a number is out of its range, or no task takes any time. ERR_LIMIT: more
 * than MODULO_TASKS_MAX tasks, or numbers too far apart. ERR_INTERRUPTED: `stop` asked; *out has what was found so far, and
 * its bounds hold. `stop` is not asked while CBC works, but Ctrl-C ends it. */
NODISCARD enum err_code modulo_solve(struct arena *a, const struct modulo_problem *p,
	const struct modulo_effort *effort, const struct stop *stop, struct modulo_answer *out, struct err *e);

/* Check a problem. Errors as of modulo_solve. */
NODISCARD enum err_code modulo_check(const struct modulo_problem *p, struct err *e);

/* Only the bounds, of a checked problem. Scratch memory in `a`, released on return. */
void modulo_floor(struct arena *a, const struct modulo_problem *p, struct modulo_floor *out);

#endif
