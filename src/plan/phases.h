/* phases.h - what of a phase must wait for what runs in front of it.
 *
 * A phase can be launched while what is in front of it runs (target/target.h): for the first phase of a program that is the kernel of
 * another one, for a further one the phase before it. Loads of tensors that nothing in front writes, and products of them, may begin at
 * once; loads of others, and all stores, wait. A phase ends only when what it stores has waited, so the end of what is in front is
 * also that of all that is in front of that.
 */
#ifndef PLAN_PHASES_H
#define PLAN_PHASES_H

#include "plan/plan.h"
#include "target/target.h"

/* Do all threads of the first phase wait before they access memory, and let nothing begin before? So it is unless the plan says that
 * inputs are ready, or that the next kernel may begin at the start (struct launch_plan). Then what runs in front of a further phase are
 * earlier phases alone, and all inputs are ready for it. */
bool plan_waits_first(const struct plan *p);
/* May what runs in front of the phase still write the tensor? */
bool phase_awaits_tensor(const struct plan *p, int phase, int tensor);
/* Does the sTask load such a tensor? */
bool stask_loads_late(const struct plan *p, int task);
/* Is some length, bound or index of the phase loaded from such a tensor? Then any of its sTasks may depend on it. */
bool phase_is_bound_late(const struct plan *p, int phase);
/* Must all that has to do with the sTask wait from the start of its lane? Else only its own access to memory, if it stores. */
bool stask_waits_early(const struct plan *p, int task);

/* Can the further phase begin its loads while the one before it runs: has it some, and none that waits? Its start then takes no time of
 * its own. */
bool phase_begins_early(const struct plan *p, int phase, const struct target *t);
/* The phases of the program whose start takes time, if nothing of this library runs in front of it. */
int phases_launched(const struct plan *p, const struct target *t);
/* At least so many, whatever a plan says. */
int phases_launched_least(const struct graph *g, const struct target *t);

#endif
