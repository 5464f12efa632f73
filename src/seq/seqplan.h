/* seqplan.h - the plan of a sequence: a plan for each call's kernels, and what is between them.
 *
 *   order    the order in which the calls are launched
 *   stream   calls of one stream run one after the other, those of two streams at the same time, unless one waits
 *            for another
 *   waits    of calls of other streams, which must have ended
 *   early    the kernel may be launched while the one in front of it in its stream runs (programmatic dependent
 *            launch): it waits for the end of that itself, before it accesses what others write
 *   arena    a block of device memory in which all temporaries are; two of them may share bytes if all that uses one
 *            comes before all that uses the other
 *
 * One relation serves the checker, the placement in the arena, the simulator and those who run it: call i comes before
 * call j if everything that i does is over before j accesses anything that a call of the sequence writes
 * (seqplan_relation).
 */
#ifndef SEQ_SEQPLAN_H
#define SEQ_SEQPLAN_H

#include "plan/plan.h"
#include "seq/sequence.h"

enum {
	SEQ_STREAMS_MAX = 16,
	SEQ_ALIGN = 256,		/* bytes: of temporaries in the arena, as of what a driver allocates */
};

struct seq_launch {
	const struct plan *plan;	/* borrowed; NULL: none so far */
	int stream;
	bool early;
	VEC(int) waits;			/* calls, in order of the sequence */
	struct srcloc loc;		/* of the statement that says so; of the call unless one does */
};

struct seqplan {
	struct arena arena;
	const struct sequence *s;	/* borrowed, as is the device */
	const struct vdevice *device;
	int *order;			/* call by position */
	struct srcloc order_loc;
	struct seq_launch *launches;	/* by call */
	int64_t *offset;		/* by tensor: of a temporary, its first byte in the arena; else NONE */
	struct srcloc *placed_at;	/* by tensor: the statement that says so */
	int64_t arena_bytes;
	bool fixed;			/* a copy for kernels or a timeline, which are of this plan: edits fail */
};

/* In the order of the sequence, on one stream, early wherever the device can; with offsets for the temporaries.
 * *out is set before anything that can fail. Free with seqplan_free. */
void seqplan_new(struct mem *mem, const struct sequence *s, const struct vdevice *d, struct seqplan **out);
void seqplan_free(struct seqplan *p);
/* A copy, which borrows the same plans of kernels. *out as above. */
void seqplan_copy(struct mem *mem, const struct seqplan *p, struct seqplan **out);
/* The plan of a sequence that leaves sizes to the launch, for `s`, which is that sequence at some sizes, with the
 * same tensors and calls: it borrows the same plans of kernels, and is fixed. *out as above. */
void seqplan_at_sizes(struct mem *mem, const struct seqplan *p, const struct sequence *s, struct seqplan **out);

/* Edits. Each fails without changing anything; what they make may be wrong, which seqplan_check finds. */

/* The plan of the call's program, at its sizes and on the plan's device; it is borrowed. `program`: of which it
 * was made, as edits of a plan may derive another one from it. */
NODISCARD enum err_code seqplan_use(struct seqplan *p, int call, const struct plan *plan, const struct program *program,
	struct srcloc loc, struct err *e);
/* All calls, each once. */
NODISCARD enum err_code seqplan_order(struct seqplan *p, const int *calls, int n, struct srcloc loc, struct err *e);
NODISCARD enum err_code seqplan_launch(struct seqplan *p, int call, int stream, bool early, const int *waits,
	int nwaits, struct srcloc loc, struct err *e);
/* Where temporaries are. bytes: of the arena; 0: so many that all fit. */
NODISCARD enum err_code seqplan_at(struct seqplan *p, const int *tensors, const int64_t *offsets, int n, int64_t bytes,
	struct srcloc loc, struct err *e);
/* Find offsets for all temporaries, so that none shares bytes with one that may be in use at the same time: the
 * largest first, each at the lowest offset that is free. */
void seqplan_allocate(struct seqplan *p);

/* Does call i come before call j? By i * calls + j; in `a`. */
bool *seqplan_relation(struct arena *a, const struct seqplan *p);
/* Is all that uses tensor x over before anything uses y, by the relation? */
bool seqplan_apart(const struct sequence *s, const bool *before, int x, int y);

/* Statements that rebuild the plan, but for those of its kernels' plans, with the variable named `sp`. Equal plans
 * print equal text. */
void seqplan_script(const struct seqplan *p, struct buf *out);

/* ---- check ---- */

enum seq_problem_code {
	SEQ_NO_PLAN,			/* a call has none */
	SEQ_KERNEL,			/* the plan of a call is not legal */
	SEQ_ORDER,			/* two calls that depend on each other are in no order, or in the wrong one */
	SEQ_WAIT,			/* a wait for what is launched later */
	SEQ_ARENA,			/* temporaries that are in use at the same time share bytes */
	SEQ_BOUNDS,			/* a temporary has no offset, or ends outside of the arena */
	SEQ_EARLY,			/* a launch that cannot be early */
	SEQ_READY,			/* a plan says that a tensor is ready (struct launch_plan), and a call of the sequence writes it */
};
const char *seq_problem_name(enum seq_problem_code c);	/* "no_plan", ... */

struct seq_problem {
	enum seq_problem_code code;
	int call, other;		/* calls concerned; NONE */
	int tensor, other_tensor;	/* NONE */
	const char *message;		/* a complete sentence with the names */
	const char *hint;
	struct srcloc loc, other_loc;	/* the two statements that do not agree; other_loc.line 0: there is one alone */
};

struct seq_problems {
	VEC(struct seq_problem) v;
};

/* Everything that is wrong, in the order of the calls, in `a`; legal if there is nothing. The plans of the kernels
 * are looked at, too. Fails as plan_check does. */
NODISCARD enum err_code seqplan_check(const struct seqplan *p, struct arena *a, const struct stop *stop,
	struct seq_problems *out, struct err *e);

#endif
