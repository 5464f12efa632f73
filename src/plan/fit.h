/* fit.h - does a plan fit an EU? The second half of check.c. */
#ifndef PLAN_FIT_H
#define PLAN_FIT_H

#include "plan/check.h"
#include "plan/events.h"

/* Shared memory, threads, barriers; adds what does not fit to `out`. */
void fit_memory(const struct plan *p, struct arena *a, struct problems *out, struct usage *u);
/* Bytes of shared memory that a phase needs, flags aside. */
int64_t fit_shared(const struct plan *p, int phase);
/* Bytes of shared memory through which a phase stores, at least: the stores of a lane behind each other can share them. */
int64_t fit_staging(const struct plan *p, int phase);
/* Registers of each lane, from the lives of its register values in one relation of
 * a phase; raises u->lane_registers to what this phase needs. */
void fit_registers(const struct relation *r, struct arena *a, struct usage *u);
/* Sum them up and add what does not fit. */
void fit_register_file(const struct plan *p, struct arena *a, struct problems *out, struct usage *u);

#endif
