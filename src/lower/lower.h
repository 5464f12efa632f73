/* lower.h - from a legal plan to kernels. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "lower/kernel.h"

/* The passes that make a kernel's tree (passes.def), and other decisions that a plan may leave out: bits of plan.without. */
enum pass_id {
#define PASS(id, name, optional, needs, promises) PASS_##id,
#include "lower/passes.def"
#undef PASS
	PASS_COUNT,
	PARTIAL_SUMS = PASS_COUNT,	/* sums stay with their threads (layout/partial.c) */
	OPTION_COUNT
};
struct pass_info {
	const char *name;
	bool optional;			/* kernels are right without it: plan.without may leave it out */
	const char *needs, *promises;
};
extern const struct pass_info lower_passes[OPTION_COUNT];
static inline bool lower_does(const struct kernel *k, enum pass_id id)
{
	return !(k->plan->without >> id & 1);
}

/* The plan must be legal and outlives the kernel. ERR_ILLEGAL says, with the user's
 * line, what cannot be lowered. *out is set first. Free with kernel_free. */
NODISCARD enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
/* The same without a proof that what came of it is right: for its price, until somebody goes on with
 * the plan and has it proven. */
NODISCARD enum err_code lower_for_price(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
/* The same without a look at what came of it: for tests of plans that are not legal. */
NODISCARD enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
void kernel_free(struct kernel *k);
/* The tree of a kernel as it is behind a pass, in place of what it had: to be shown. */
NODISCARD enum err_code kernel_after(struct kernel *k, enum pass_id pass, struct err *e);

/* Is the plan legal (plan_check), and does a kernel come of each phase? Whatever keeps one
 * from that is a problem, and what the plan asks of an EU is counted off the kernels. What
 * passes is lowered without an error. Devices that there is no printer for are checked by
 * plan_check alone: *model_only. Problems in `a`; *held is the kernel in the making, to be
 * freed by who is left by a jump; NULL when this returns. Usage may be NULL. */
NODISCARD enum err_code lower_check(struct mem *mem, const struct plan *p, struct arena *a,
	const struct stop *stop, struct kernel **held, struct problems *out, struct usage *usage,
	bool *model_only, struct err *e);
/* The same as far as it takes no kernel: whoever makes one hears of the rest. */
NODISCARD enum err_code lower_check_plan(const struct plan *p, struct arena *a,
	const struct stop *stop, struct problems *out, struct usage *usage, struct err *e);
/* Can kernels be made for the device at all? */
bool lower_has_target(const struct vdevice *d);

#endif
