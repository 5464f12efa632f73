/* check.h - is a plan legal?
 *
 * A plan is legal if, for every number of iterations that the program can make, all lanes come to their end and every
 * dependence of the sTask-graph is kept whatever the speed of the units; and if it fits the EU. The argument: the
 * events of a plan (issue, start and completion of each instance) form a marked graph, all of whose constraints must
 * hold together, so the possible executions are just the linear extensions of one partial order. A plan deadlocks if
 * and only if that relation has a cycle, and a dependence is kept in all executions if and only if it follows from the
 * relation. Both are decided on the first iterations of a few tiles; the relation repeats itself after that
 * (docs/internals/check.md has the argument).
 */
#ifndef PLAN_CHECK_H
#define PLAN_CHECK_H

#include "plan/plan.h"

enum problem_code {
	PROBLEM_MISSING_WAIT,
	PROBLEM_MISPLACED_WAIT,		/* there is a wait, but for another iteration */
	PROBLEM_DEADLOCK,
	PROBLEM_WRONG_SEU,
	PROBLEM_VERSIONS,		/* a ring too short for the offsets */
	PROBLEM_REGISTERS,
	PROBLEM_SHARED_MEMORY,
	PROBLEM_BARRIERS,
	PROBLEM_THREADS,
	PROBLEM_MISSING_TASK,
	PROBLEM_DUPLICATE_TASK,
	PROBLEM_OFFSET,			/* an offset where none can be */
	PROBLEM_CLUSTER,		/* EUs that cannot go together */
	PROBLEM_KEEP,			/* neighbouring tiles without anything that an EU could keep */
	PROBLEM_ALIAS,			/* values that cannot share registers or memory */
	/* why lowering makes no kernel (lower/lower.h) */
	PROBLEM_LAYOUT,			/* a value has no layout that all its users can read */
	PROBLEM_PRODUCT,		/* a product that its unit cannot do */
	PROBLEM_WAITS,			/* a wait that no flag can show */
	PROBLEM_COPIES,			/* the text would have too many copies of sTasks */
	PROBLEM_DYNAMIC,		/* tiles that cannot be taken by a counter */
	PROBLEM_KERNEL,			/* the kernel would break its own rules: a mistake of ours */
	/* of kernels, not of plans (run/run.h) */
	PROBLEM_SPILLS,			/* registers kept in memory */
	PROBLEM_SERIALIZED,		/* products that wait for each other */
	PROBLEM_UNGRANTED,		/* the compiler leaves out that lanes change their registers */
	/* of the search alone (search/evaluate.h) */
	PROBLEM_EVENTS,			/* more events than are simulated */
	/* notes */
	NOTE_BY_THREADS,		/* loads that the copy engine cannot bring */
	NOTE_REDUNDANT_WAIT,		/* a wait that others imply */
	NOTE_REPEATED,			/* what several tiles do alike */
	NOTE_ON_VECTOR_UNIT,		/* products that a matrix unit would do faster */
	NOTE_UNUSED_LANE,		/* a lane without sTasks */
	NOTE_TIED,			/* tiles that a product has because of another phase */
};
const char *problem_name(enum problem_code c);	/* "missing_wait", ... */

struct problem {
	enum problem_code code;
	int task, other;		/* sTasks concerned; NONE */
	int edge;			/* the dependence that is not kept; NONE */
	int64_t from_iteration, to_iteration;	/* two instances that show it */
	const char *message;		/* a complete sentence with the names */
	const char *hint;		/* what would repair it: statements if it begins with "plan:" */
	struct srcloc loc;		/* of the entry, wait or task that causes it */
};

struct problems {
	VEC(struct problem) v;
	VEC(struct problem) notes;	/* a plan with notes alone is legal */
};

/* What the plan asks of an EU, for the user to see. */
struct usage {
	int threads;
	int64_t shared_bytes;
	int64_t registers;		/* of the EU */
	int lane_registers[LANES_MAX];	/* a thread */
	int named_barriers;
	int flags;			/* mbarriers */
};

/* Problems in `a`, in order of the program; the plan is legal if there are none. Usage may be NULL. Fails with
 * ERR_INTERRUPTED, or with ERR_LIMIT if loops in one another, versions, offsets and distances make more instances than
 * can be looked at: then neither is of use. */
NODISCARD enum err_code plan_check(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e);

/* The same without asking what the plan needs of an EU, which lowering finds out exactly. Of usage
 * only lane_registers are filled in, and not rounded up; NULL saves their estimate. */
NODISCARD enum err_code plan_check_order(const struct plan *p, struct arena *a,
	const struct stop *stop, struct problems *out, struct usage *usage, struct err *e);

/* plan_check of a plan of which it is known that its lanes come to their end and that it keeps all dependences:
 * looks only at what else may be wrong. */
NODISCARD enum err_code plan_check_kept(const struct plan *p, struct arena *a, const struct stop *stop,
	struct problems *out, struct usage *usage, struct err *e);

/* Add the waits (with DISTANCE_AUTO) that dependences need and that the plan's order does not imply; none is added that
 * the others make redundant. *added: how many. The plan may still have other problems. Fails like plan_check, and then
 * the plan can only be freed. */
NODISCARD enum err_code plan_fill_waits(struct plan *p, const struct stop *stop, int *added, struct err *e);

/* Add a note for each redundant wait of a legal plan: dependences imply it, as the waiting sTask needs a value of
 * another sTask, which needs one of the awaited sTask. Waits with a distance, and waits for issues, are not looked at.
 * Memory in `a`. */
void plan_note_waits(const struct plan *p, struct arena *a, struct problems *out);

/* Add a note for each lane that has no sTasks, though others have. Memory in `a`. */
void plan_note_lanes(const struct plan *p, struct arena *a, struct problems *out);

/* Adapt waits after a change of versions: removes the waits that edits have added (struct wait), and adds those that
 * plan_fill_waits finds necessary. So the plan does not depend on the steps in which its versions were changed. If a
 * dependence were not kept then, no wait is removed. An incomplete plan is not changed. Fails like plan_fill_waits. */
NODISCARD enum err_code plan_adapt_waits(struct plan *p, struct err *e);

/* Repair waits after a change of the order of the n sTasks in `tasks`. Only waits for completion whose distance is open
 * are removed:
 *
 *  - those of these sTasks, and of others for them; plan_fill_waits then adds what is necessary;
 *  - a wait between two other sTasks that was necessary in `was`, the plan before the change, and no longer is. If
 *    `was` is NULL or incomplete, there is none.
 *
 * A value gets more versions if the order needs them, unless the order is wrong with any number of versions. Where the
 * lanes would wait for each other for ever, the waits for free slots are determined again, too. The plan is not changed
 * if they still would, or if an sTask is not there exactly once, on a unit that can run it.
 *
 * *kept: the lanes come to their end, and all dependences are kept; kept may be NULL. Fails like plan_fill_waits. */
NODISCARD enum err_code plan_repair_waits(struct plan *p, const struct plan *was, const int *tasks, int n,
	bool *kept, const struct stop *stop, struct err *e);

#endif
