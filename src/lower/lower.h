/* lower.h - from a legal plan to kernels. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "lower/kernel.h"

/* The passes that make a kernel's tree (passes.def), and other decisions that a plan may leave out: bits of
 * plan.without. */
enum pass_id {
#define PASS(id, name, optional, needs, promises) PASS_##id,
#include "lower/passes.def"
#undef PASS
	PASS_COUNT,
	PASSES_PROVEN = PASS_SPECIALIZE,	/* so many make the tree that verify and sim read */
	PARTIAL_SUMS = PASS_COUNT,	/* sums stay with their threads (layout/partial.c) */
	LOAD_FENCES,			/* lanes that load fence for those that have read (select/fences.c) */
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
 * line, what cannot be lowered; ERR_INTERRUPTED: `stop`, which may be NULL, asked for it. *out is set first. Free with
 * kernel_free. */
NODISCARD enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, struct err *e);
/* The same without verify: to price the kernel. Nothing may run it before lower_plan has accepted the plan.
 * *shared_bytes: those that a kernel would need which is refused because it needs more than an EU has; else 0. */
NODISCARD enum err_code lower_for_price(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, int64_t *shared_bytes, struct err *e);
/* The same, but a kernel that verify rejects is returned, too: for tests of plans that are not legal. */
NODISCARD enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase,
	struct kernel **out, struct err *e);
void kernel_free(struct kernel *k);
/* Runs the passes that make the tree ready to be printed. Behind it only emit and dumps can read the tree. */
void kernel_finish(struct kernel *k);
/* Replaces the tree of a kernel by what it is after a pass, to show it. */
NODISCARD enum err_code kernel_after(struct kernel *k, enum pass_id pass, struct err *e);

/* Is the plan legal (plan_check), and can each phase be lowered? Reasons why not are added to *out, in `a`; *usage,
 * which may be NULL, is what the kernels take of an EU. A plan without problems is lowered without an error. Devices
 * without a printer are checked by plan_check alone: *model_only. *held is the kernel that is being made, so that a
 * caller which a longjmp interrupts can free it; NULL when this returns. */
NODISCARD enum err_code lower_check(struct mem *mem, const struct plan *p, struct arena *a, const struct stop *stop,
	struct kernel **held, struct problems *out, struct usage *usage, bool *model_only, struct err *e);
/* The part of that which needs no kernel; lowering reports the other problems. */
NODISCARD enum err_code lower_check_plan(const struct plan *p, struct arena *a,
	const struct stop *stop, struct problems *out, struct usage *usage, struct err *e);
/* Adds notes on products whose tiles are small, or have all of an axis, because of what another phase needs. */
void note_tied(const struct plan *p, struct arena *a, struct problems *out);
/* The registers of a thread with which a lane that copies unaligned rows has as many accesses in flight as it can use. 0: on
 * the device all lanes have equally many. */
int lower_copy_registers(const struct vdevice *d);
/* Has the device a copy engine that takes boxes of tensors? */
bool lower_has_boxes(const struct vdevice *d);
/* Can kernels be made for the device at all? */
bool lower_has_target(const struct vdevice *d);

#endif
