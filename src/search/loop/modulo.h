/* modulo.h - the best modulo schedule of a loop, and a proof of how good it is.
 *
 * A loop has tasks, each of which starts once in every iteration. A modulo schedule
 * gives each a start y, in units of the initiation interval II: iteration n of task t
 * starts at (y[t] + n) * II cycles. floor(y) is the stage, the rest is the phase. What
 * is asked of a schedule is stated below without any word of machines or programs; the
 * answer has the least II, in cycles, as a rational number: nothing is rounded to slots.
 *
 * Formulation. Everything is linear in y and alpha = 1 / II. A dependence is
 *     y[to] + distance >= y[from] + latency * alpha,
 * two tasks that exclude each other for s_i and s_j cycles have an integer k with
 *     s_i * alpha <= y[j] - y[i] - k <= 1 - s_j * alpha,
 * and a value with c versions must have been read before its slot is written again,
 *     y[def] + c >= y[use] + distance + latency * alpha,
 * where bytes * c of all values of a memory are at most its capacity. For given k, c and
 * lanes the least II is a greatest ratio over cycles; see docs/internals/modulo.md.
 *
 * Two programs. In the schedule that is returned a unit does one task at a time. The
 * bound also holds where work on a unit is mixed (see enum modulo_share), so it holds
 * for all that may happen on units that take turns in small parts.
 *
 * The problem and all its arrays are borrowed and not changed. Answers live in the
 * arena that is given. No clock is read: the same problem gets the same answer, with
 * the same solvers present, on every machine.
 */
#ifndef SEARCH_LOOP_MODULO_H
#define SEARCH_LOOP_MODULO_H

#include "base/arena.h"
#include "base/err.h"

enum {
	MODULO_NONE = -1,		/* no unit, no memory */
	MODULO_TASKS_MAX = 96,
	MODULO_LANES_MAX = 12,
	MODULO_VERSIONS_MAX = 64,
};

/* What tasks on one unit have to do with each other. In every case but the last the
 * work of one iteration takes no less than the sum.
 *
 * A task's start is both when its lane issues it and when its unit begins. Where a unit
 * keeps a queue of what was issued, the schedule issues when the unit is free, and a
 * bound that also holds for those who queue needs MODULO_MIX, with which start is the
 * issue alone; or a task for the issue (a lane, no unit) and one for the work (a unit,
 * no lanes) with a dependence from the start of the one to the other. */
enum modulo_share {
	MODULO_EXCLUSIVE,			/* one at a time */
	MODULO_LANES_MIX,		/* the bound: one at a time of each lane; lanes may mix */
	MODULO_MIX,			/* the bound: all may mix */
	MODULO_UNLIMITED,		/* nothing, in both programs */
};

struct modulo_unit {
	enum modulo_share share;
};

/* What issues tasks: during a task's `hold` no other task of the lane starts. */
struct modulo_lane {
	int memory;			/* of the values that its tasks make; or MODULO_NONE */
	bool unlimited;			/* tasks do not hold it */
};

struct modulo_memory {
	double capacity;		/* bytes; INFINITY: no limit */
};

struct modulo_task {
	int unit;			/* or MODULO_NONE */
	double busy;			/* cycles of its unit, from its start */
	uint32_t lanes;			/* one bit: its lane; more: one is chosen; 0: needs none */
	double hold;			/* cycles of its lane, from its start */
	double latency;			/* cycles from its start until it is complete */
};

/* `to` of iteration n starts no earlier than `lag` cycles after `from` of iteration
 * n - distance is complete, or has started; `cross` more if their lanes differ. The
 * sum of the cycles is not negative, lag may be. */
struct modulo_dep {
	int from, to;
	int distance;			/* may be negative */
	bool from_start;
	double lag, cross;
};

/* `task` of iteration n + distance reads what is made in iteration n. It has done so
 * `lag` cycles after it is complete, or has started; `cross` as above. */
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
	int memory;			/* MODULO_NONE: that of def's lane, if it has one */
	double bytes;			/* of one version */
	int least, most;		/* versions; at least 1; most 0: no limit */
};

/* Iteration n of `task` starts within the interval that begins with the start of
 * iteration n + ahead of `other`: 0 <= y[task] - y[other] - ahead <= 1. */
struct modulo_pin {
	int task, other;
	int ahead;
};

/* After any start of a comes one of b no later than one of c. */
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

/* How long to try. Zeroes: the usual. Effort is counted, not timed. */
struct modulo_effort {
	int64_t nodes;			/* of our own search, per program; < 0: only a heuristic's few */
	int milp_nodes;			/* of the other solver; < 0: never ask it */
};

enum modulo_status {
	MODULO_FOUND,
	MODULO_IMPOSSIBLE,		/* there is no schedule at any II; proven */
	MODULO_UNKNOWN,			/* none was found with this effort */
};

/* Who had the last word. */
enum modulo_solver {
	MODULO_BY_BOUNDS,		/* sums or a recurrence say that less is impossible */
	MODULO_BY_SEARCH,		/* modulo_branch.h */
	MODULO_BY_MILP,			/* milp.h */
};

enum modulo_arc_kind { MODULO_DEP, MODULO_VALUE, MODULO_PIN, MODULO_PAIR };

/* One requirement of a cycle: of dependence, value or pin `index`, or that two tasks
 * exclude each other. */
struct modulo_link {
	enum modulo_arc_kind kind;
	int index;
	int from, to;			/* tasks */
};

/* What needs no solver. ResMII: the cycles that an iteration asks of a unit, or of a
 * set of lanes over their number (Rau, Iterative modulo scheduling, MICRO-27, 1994).
 * RecMII: the greatest ratio of latency to distance over all cycles of dependences and
 * of values with as many versions as they may have. */
struct modulo_floor {
	double ii;			/* the greater of both; INFINITY: impossible */
	double res;
	int unit;			/* that gives res; or MODULO_NONE, and then */
	uint32_t lanes;			/* these lanes do; or both none: task, by its own length */
	int task;
	double rec;
	int nlinks;			/* of a cycle that gives rec */
	struct modulo_link links[MODULO_TASKS_MAX];
	int memory;			/* too small for the least versions; or MODULO_NONE */
};

struct modulo_answer {
	enum modulo_status status;
	double ii;			/* cycles; INFINITY unless found */
	double bound;			/* no schedule has less, mixed or not; INFINITY if impossible */
	double exclusive;			/* no schedule has less whose units do one task at a time */
	bool proven;			/* ii is bound, but for 1e-9 of it */
	bool best;			/* ii is exclusive, but for 1e-9 of it */
	double *start;			/* y, by task, the least in [0, 1); NULL unless found */
	int *lane;			/* by task; MODULO_NONE for one without lanes */
	int *versions;			/* by value: as few as this schedule needs */
	enum modulo_solver solver;	/* of ii and exclusive */
	int memory;			/* impossible: too small for any schedule; else MODULO_NONE */
	struct modulo_floor floor;
	int64_t nodes;			/* of our own search */
	int milp_calls;
};

/* ERR_INPUT: an index, a count or a number out of its range; nothing takes any time.
 * ERR_LIMIT: more than MODULO_TASKS_MAX tasks, or numbers too far apart.
 * ERR_INTERRUPTED: `stop` asked; *out then has what was found so far, with bounds that
 * hold. While CBC works `stop` is not asked, but Ctrl-C ends it. */
NODISCARD enum err_code modulo_solve(struct arena *a, const struct modulo_problem *p,
	const struct modulo_effort *effort, const struct stop *stop, struct modulo_answer *out,
	struct err *e);

/* Is the problem one at all? The errors of modulo_solve. */
NODISCARD enum err_code modulo_check(const struct modulo_problem *p, struct err *e);

/* Only the bounds, of a problem that modulo_check takes. Scratch in `a`, given back. */
void modulo_floor(struct arena *a, const struct modulo_problem *p, struct modulo_floor *out);

#endif
