/* report.h - problems that the compiler reports about a kernel. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "plan/check.h"
#include "run/run.h"

/* The problems of a compiled kernel, like those of plan_check, in `a`: spills, and products that the compiler
 * serialized, each with its sTask. Without the compiler's other warnings. */
void built_problems(const struct built *b, struct arena *a, struct problems *out);

#endif
