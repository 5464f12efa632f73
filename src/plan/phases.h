/* phases.h - what of a phase must wait for the phases before it.
 *
 * A phase can be launched while the one before it runs (target/target.h). What it loads from inputs no phase writes, so its loads
 * and products may begin at once; what it loads from other tensors, and what it stores, waits. A phase ends only when what it
 * stores has waited, so the end of the one before is also that of all earlier ones.
 */
#ifndef PLAN_PHASES_H
#define PLAN_PHASES_H

#include "graph/graph.h"
#include "target/target.h"

/* Does the sTask load what an earlier phase may have stored, or may still store? */
bool stask_loads_stored(const struct graph *g, int task);
/* Is some length, bound or index of the program loaded from such a tensor? Then any sTask may depend on it. */
bool phases_bound_loops(const struct graph *g);
/* Must all that has to do with the sTask wait from the start of its lane? Else only its own access to memory, if it stores. */
bool stask_waits_early(const struct graph *g, int task);

/* Can the phase begin its loads while the one before it runs: has it some, and none that waits? Its start then takes no time of its
 * own. */
bool phase_begins_early(const struct graph *g, int phase, const struct target *t);
/* The phases whose start takes time. */
int phases_launched(const struct graph *g, const struct target *t);

#endif
